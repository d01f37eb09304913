/* Any bytes as a report of both dialects: its body is JSON that reads and writes the same again,
 * its names ascend, and what a document has as its password is nowhere in it. */
#include "base/mem.h"
#include "base/utf8.h"
#include "fault/report.h"
#include "fault/tags.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX_BYTES = 16 << 20, BODY_MAX_BYTES = 1 << 20 };

static const char secret[] = "S3CRET";

static bool fault_has_secret(struct slice text)
{
	return text.len && memmem(text.data, text.len, secret, sizeof(secret) - 1);
}

/* The only place of the secret is the value of a member `password`, once, as it is written here. */
static bool fault_is_planted(struct slice text)
{
	static const char planted[] = "\"password\":\"S3CRET\"";
	const char *at = memmem(text.data, text.len, planted, sizeof(planted) - 1);
	if (!at)
		return false;
	const char *after = at + sizeof(planted) - 1;
	return !fault_has_secret((struct slice){text.data, (size_t)(at - text.data)}) &&
	       !fault_has_secret((struct slice){after, (size_t)(text.data + text.len - after)});
}

static void check_body(struct slice body, struct arena *arena)
{
	struct json *tree;
	struct errbuf e;
	struct buf again;
	struct json_writer writer;
	ASSERT(json_parse(body, arena, &tree, &e) == 0 && tree->type == JSON_T_OBJECT);
	for (const struct json *m = tree->first; m; m = m->next) {
		ASSERT(m->key.len && m->key.len <= FAULT_ATTRIBUTE_MAX_BYTES);
		ASSERT(!m->next || slice_compare(m->key, m->next->key) < 0);
	}
	buf_init(&again, BODY_MAX_BYTES);
	json_writer_init(&writer, &again);
	json_write_literally(&writer, tree);
	ASSERT(slice_equal(buf_slice(&again), body));
	buf_release(&again);
}

static void check_tags(struct slice tags, bool planted)
{
	struct slice tag, name, value;
	size_t count = 0;
	while (fault_tags_next(&tags, &tag)) {
		ASSERT(fault_tag_split(tag, &name, &value));
		ASSERT(utf8_is_valid(name) && name.len <= FAULT_TAG_NAME_MAX_BYTES);
		ASSERT(utf8_is_valid(value) && value.len <= FAULT_TAG_VALUE_MAX_BYTES);
		ASSERT(!planted || (!fault_has_secret(name) && !fault_has_secret(value)));
		count++;
	}
	ASSERT(count <= FAULT_REPORT_TAGS_MAX && !tags.len);
}

static void check_report(const struct fault_report *report, bool planted, struct arena *arena)
{
	check_body(report->body, arena);
	ASSERT(fault_id_valid(report->id));
	ASSERT(report->facts.duration_us >= -1 && report->facts.statements >= -1);
	for (int i = 0; i < FAULT_TEXTS; i++)
		ASSERT(report->facts.texts[i].len <= fault_text_max_bytes((uint64_t)i));
	check_tags(report->facts.texts[FAULT_TAGS], planted);
	ASSERT(!planted || !fault_has_secret(report->body));
	for (size_t i = 0; i < report->refused_count && i < FAULT_REFUSED_MAX; i++) {
		ASSERT(report->refused[i].len);
		ASSERT(!planted || !fault_has_secret(report->refused[i]));
	}
}

static void read_report(struct slice text, enum fault_dialect dialect)
{
	struct fault_report_options options = {1, &fault_masks_preset, BODY_MAX_BYTES};
	struct arena arena;
	struct fault_report report;
	struct json *document;
	struct errbuf e = {""};
	arena_init(&arena, MEMORY_MAX_BYTES);
	int err = json_parse(text, &arena, &document, &e);
	if (!err)
		err = fault_report_read(document, dialect, (struct slice){NULL, 0}, &options,
					&arena, &report, &e);
	if (!err)
		check_report(&report, fault_is_planted(text), &arena);
	else
		ASSERT(e.text[0]);
	arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = {size ? (const char *)data : "", size};
	read_report(text, FAULT_OF_OOPS);
	read_report(text, FAULT_OF_PYTHON);
	return 0;
}
