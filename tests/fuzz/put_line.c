/* OpenTSDB's put: whatever it makes of the bytes lies within them, and reads back the same. */
#include "base/buf.h"
#include "base/mem.h"
#include "wire/number.h"
#include "wire/put_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_word(struct slice word, struct slice words)
{
	ASSERT(word.len && word.data >= words.data &&
	       word.data + word.len <= words.data + words.len);
	ASSERT(!memchr(word.data, ' ', word.len) && !memchr(word.data, '\t', word.len));
}

/* The same point, as plainly as it can be written. */
static void write_again(const struct put_line *line, struct buf *out)
{
	buf_append(out, line->metric.data, line->metric.len);
	buf_printf(out, " %lld.%03d ", (long long)(line->ts_ms / 1000), (int)(line->ts_ms % 1000));
	ASSERT(number_append(out, line->value) == 0);
	for (size_t i = 0; i < line->tag_count; i++) {
		const struct tag *tag = &line->tags[i];
		buf_append_char(out, ' ');
		buf_append(out, tag->key.data, tag->key.len);
		buf_append_char(out, '=');
		buf_append(out, tag->value.data, tag->value.len);
	}
	ASSERT(!out->failed);
}

static void check_same(const struct put_line *a, const struct put_line *b)
{
	ASSERT(slice_equal(a->metric, b->metric) && a->ts_ms == b->ts_ms);
	ASSERT(value_identical(a->value, b->value) && a->tag_count == b->tag_count);
	for (size_t i = 0; i < a->tag_count; i++)
		ASSERT(slice_equal(a->tags[i].key, b->tags[i].key) &&
		       slice_equal(a->tags[i].value, b->tags[i].value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	struct slice words = {bytes, size};
	struct put_line line, again;
	struct errbuf e = {""};
	const char *at = NULL;
	enum put_line_fault fault = put_line_parse(words, &line, &at, &e);
	if (fault) {
		ASSERT(at >= bytes && at <= bytes + size && e.text[0]);
	} else {
		struct buf out;
		buf_init(&out, size + 100);
		check_word(line.metric, words);
		for (size_t i = 0; i < line.tag_count; i++) {
			check_word(line.tags[i].key, words);
			check_word(line.tags[i].value, words);
		}
		if (line.ts_ms >= 0 && line.ts_ms / 1000 < 1000000000000) {
			write_again(&line, &out);
			ASSERT(put_line_parse(buf_slice(&out), &again, &at, &e) == PUT_LINE_GOOD);
			check_same(&line, &again);
		}
		buf_release(&out);
	}
	mem_free(bytes);
	return 0;
}
