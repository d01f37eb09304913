/* Line protocol: both searches tell the same of any bytes; names that are expected change nothing;
 * a key is taken apart within its bounds. */
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "wire/line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As a caller keeps the names of a line. */
struct kept {
	uint64_t words[2048];
	uint16_t lengths[LINE_FIELDS_MAX];
	struct line_names names;
};

static void keep(struct kept *kept, const struct line_fields *fields)
{
	size_t at = 0, i = 0;
	memset(kept->words, 0, sizeof(kept->words));
	for (; i < fields->count; i++) {
		size_t len = fields->names[i].len + 1, words = (len + 7) / 8;
		if (at + words > ARRAY_LEN(kept->words))
			break;
		memcpy(kept->words + at, fields->names[i].data, len - 1);
		((char *)(kept->words + at))[len - 1] = '=';
		kept->lengths[i] = (uint16_t)len;
		at += words;
	}
	kept->names = (struct line_names){i, kept->words, kept->lengths};
}

static void mix(uint64_t *told, const void *bytes, size_t len)
{
	*told = hash64(bytes, len, *told);
}

static void tell_fields(const struct line_fields *fields, const struct line_names *expected,
			uint64_t *told)
{
	const uint64_t *words = expected ? expected->words : NULL;
	mix(told, &fields->count, sizeof(fields->count));
	mix(told, &fields->fault_count, sizeof(fields->fault_count));
	if (fields->has_time)
		mix(told, &fields->ts_ms, sizeof(fields->ts_ms));
	for (size_t i = 0; i < fields->count; i++) {
		struct slice name = fields->names[i];
		if (fields->expected) {
			name = (struct slice){(const char *)words, expected->lengths[i] - 1u};
			words += (expected->lengths[i] + 7) / 8;
		}
		mix(told, name.data, name.len);
		mix(told, &fields->values[i].bits, sizeof(uint64_t));
		mix(told, &fields->values[i].type, sizeof(enum value_type));
	}
}

static void tell_key(struct slice key, uint64_t *told)
{
	char *scratch = mem_alloc(key.len);
	struct slice measurement;
	struct tag tags[LINE_TAGS_MAX];
	size_t count;
	const char *at, *reason;
	if (line_tags(key, scratch, &measurement, tags, &count, &at, &reason) == LINE_OK) {
		mix(told, measurement.data, measurement.len);
		for (size_t i = 0; i < count; i++) {
			mix(told, tags[i].key.data, tags[i].key.len);
			mix(told, tags[i].value.data, tags[i].value.len);
		}
	}
	ASSERT(at >= key.data && at <= key.data + key.len);
	mem_free(scratch);
}

/* Everything that is told of the bytes; with `expect`, each line is read with the names of the line
 * before it. */
static uint64_t tell(const char *bytes, size_t len, bool expect)
{
	static struct line_fields fields;
	static struct kept kept;
	struct line_reader reader;
	struct slice key;
	enum line_result result;
	uint64_t told = 0;
	kept.names.count = 0;
	line_reader_init(&reader, bytes, len, 1, LINE_NS);
	while ((result = line_next(&reader, &key)) != LINE_DONE) {
		const struct line_names *names = expect ? &kept.names : NULL;
		if (result == LINE_OK) {
			tell_key(key, &told);
			result = line_fields(&reader, names, &fields);
		}
		if (result == LINE_CUT)
			line_skip(&reader);
		if (result != LINE_OK) {
			mix(&told, reader.bad.reason, strlen(reader.bad.reason));
			mix(&told, &reader.bad.column, sizeof(reader.bad.column));
			mix(&told, &reader.bad.line, sizeof(reader.bad.line));
			continue;
		}
		tell_fields(&fields, names, &told);
		if (!fields.expected)
			keep(&kept, &fields);
	}
	return told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = mem_zalloc(size + 1 + LINE_PADDING_BYTES);
	memcpy(bytes, data, size);
	bytes[size] = '\n';
	uint64_t told = tell(bytes, size + 1, false);
	ASSERT(tell(bytes, size + 1, true) == told);
	line_use_avx2(false);
	ASSERT(tell(bytes, size + 1, false) == told);
	line_use_avx2(true);
	mem_free(bytes);
	return 0;
}
