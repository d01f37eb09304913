/* From what clients of Loki push to chunks that are to be appended: their bytes, names and tags,
 * and how they are cut. What each becomes is worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ingest/loki.h"
#include "wire/loki_push.h"

enum { ROOM_BYTES = 64 << 20 };

struct rig {
	struct collector *collector;
	struct chunks_batch batch;
	struct arena arena;
	struct buf body, data;
	struct chunk_data unpacked;
	struct errbuf e;
};

static int nobody_examines(void *owner, struct stream_submission *submission)
{
	(void)owner;
	(void)submission;
	return ERR_BUSY;
}

static int rig_open(void **state)
{
	static struct rig rig;
	const struct collector_options options = {.seed = 1, .examine = nobody_examines};
	rig = (struct rig){.e = {""}};
	rig.collector = collector_new(&options);
	chunks_batch_init(&rig.batch);
	arena_init(&rig.arena, ROOM_BYTES);
	buf_init(&rig.body, ROOM_BYTES);
	buf_init(&rig.data, ROOM_BYTES);
	*state = &rig;
	return 0;
}

static int rig_close(void **state)
{
	struct rig *rig = *state;
	buf_release(&rig->data);
	buf_release(&rig->body);
	arena_release(&rig->arena);
	chunks_batch_release(&rig->batch);
	collector_free(rig->collector);
	return 0;
}

static int read_body(struct rig *rig)
{
	return loki_batch_read(&rig->batch, buf_slice(&rig->body), SLICE("t"), rig->collector,
			       &rig->e);
}

static void assert_text(struct slice text, const char *expected)
{
	assert_int_equal(text.len, strlen(expected));
	if (text.len)
		assert_memory_equal(text.data, expected, text.len);
}

/* The data of a chunk, and what it says of its records. */
static const struct chunk_fields *unpack(struct rig *rig, size_t at)
{
	const struct stream_append *append = rig->batch.chunks[at].append;
	const struct chunk_frame frame = chunk_unplaced_frame(&append->frame);
	assert_int_equal(chunk_frame_unpack(&frame, &rig->data, &rig->arena, &rig->unpacked), 0);
	return &append->frame.fields;
}

static void names_tags_and_bytes(void **state)
{
	struct rig *rig = *state;
	buf_append_text(
		&rig->body,
		"{\"streams\":[{\"stream\":{\"job\":\"j\",\"host\":\"h\",\"b\":\"a \\\"q\\\"\","
		"\"filename\":\"/f\",\"cluster\":\"c\"},\"values\":[[\"1\",\"one\"],"
		"[\"1000000001\",\"two\"]]}]}");
	assert_int_equal(read_body(rig), 0);
	assert_int_equal(rig->batch.chunk_count, 1);
	const struct stream_id *id = &rig->batch.chunks[0].id;
	assert_text(id->tenant, "t");
	assert_text(id->names.source, "h");
	assert_text(id->names.cluster, "c");
	assert_text(id->names.datatype, "j");
	assert_text(id->names.name, "/f{b=\"a \\\"q\\\"\"}");
	assert_int_equal(id->incarnation, 0);
	const struct chunk_fields *fields = unpack(rig, 0);
	assert_true(stream_names_equal(&fields->names, &id->names));
	/* A tag cannot have a quote. */
	assert_text(fields->tags, "b=\"a 'q'\" cluster=\"c\" filename=\"/f\" host=\"h\" job=\"j\"");
	assert_text(chunk_tag(fields->tags, "b"), "a 'q'");
	assert_text(rig->unpacked.data, "1970-01-01T00:00:00.000000001Z one\n"
					"1970-01-01T00:00:01.000000001Z two\n");
	assert_true(fields->lines);
	assert_int_equal(rig->batch.chunks[0].append->count, 2);
	assert_int_equal(rig->batch.chunks[0].append->hashes[1],
			 collector_hash_record(rig->collector,
					       SLICE("1970-01-01T00:00:01.000000001Z two\n")));
}

/* The ends of its records are listed then. */
static void newlines_within_a_line(void **state)
{
	struct rig *rig = *state;
	buf_append_text(&rig->body, "{\"streams\":[{\"stream\":{\"a\":\"b\"},\"values\":["
				    "[\"1\",\"a\\nb\"],[\"2\",\"c\\n\"],[\"3\",\"d\"]]}]}");
	assert_int_equal(read_body(rig), 0);
	assert_int_equal(rig->batch.chunk_count, 1);
	assert_false(unpack(rig, 0)->lines);
	assert_int_equal(rig->unpacked.end_count, 3);
	assert_int_equal(rig->unpacked.ends[0], 35);
	assert_int_equal(rig->unpacked.ends[1], 69);
	assert_int_equal(rig->unpacked.ends[2], 102);
}

/* A chunk has at most 8,192 records, and 983,040 bytes: what is more goes into the next. */
static void what_is_more_than_a_chunk_may_have(void **state)
{
	struct rig *rig = *state;
	buf_append_text(&rig->body, "{\"streams\":[{\"stream\":{\"a\":\"b\"},\"values\":[");
	for (int i = 0; i < 8193; i++)
		buf_printf(&rig->body, "%s[\"%d\",\"\"]", i ? "," : "", i);
	buf_append_text(&rig->body, "]},{\"stream\":{\"c\":\"d\"},\"values\":[");
	for (int i = 0; i < 5; i++)
		buf_printf(&rig->body, "%s[\"%d\",\"%*s\"]", i ? "," : "", i, 245728, "x");
	buf_append_text(&rig->body, "]}]}");
	assert_int_equal(read_body(rig), 0);
	assert_int_equal(rig->batch.chunk_count, 4);
	static const size_t counts[] = {8192, 1, 4, 1};
	static const size_t bytes[] = {8192 * 32, 32, 4 * 245760, 245760};
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(rig->batch.chunks[i].append->count, counts[i]);
		(void)unpack(rig, i);
		assert_int_equal(rig->unpacked.data.len, bytes[i]);
	}
}

static void equal_entries_of_one_stream(void **state)
{
	struct rig *rig = *state;
	buf_append_text(&rig->body, "{\"streams\":[{\"stream\":{\"a\":\"b\"},\"values\":["
				    "[\"1\",\"x\"],[\"1\",\"x\"],[\"1\",\"y\"],[\"2\",\"x\"]]},"
				    "{\"stream\":{\"a\":\"c\"},\"values\":[[\"1\",\"x\"]]},"
				    "{\"stream\":{\"a\":\"b\"},\"values\":[[\"1\",\"y\"],"
				    "[\"3\",\"z\"]]}]}");
	assert_int_equal(read_body(rig), 0);
	assert_int_equal(rig->batch.chunk_count, 3);
	assert_int_equal(rig->batch.chunks[0].append->count, 3);
	assert_int_equal(rig->batch.chunks[1].append->count, 1);
	assert_int_equal(rig->batch.chunks[2].append->count, 1);
}

/* Labels are in the name, which has a limit: 3 * (500 + 5) bytes, two commas and two braces. */
static void labels_that_are_too_long(void **state)
{
	struct rig *rig = *state;
	buf_append_text(&rig->body, "{\"streams\":[{\"stream\":{");
	for (int i = 0; i < 3; i++)
		buf_printf(&rig->body, "%s\"a%d\":\"%*s\"", i ? "," : "", i, 500, "x");
	buf_append_text(&rig->body, "},\"values\":[[\"1\",\"x\"]]}]}");
	assert_int_equal(read_body(rig), 0);
	assert_int_equal(rig->batch.chunk_count, 0);
	assert_int_equal(rig->batch.item_count, 1);
	assert_non_null(strstr(rig->batch.items[0].sentence, "has 1519 bytes, more than 1024"));
}

static void too_many_entries(void **state)
{
	struct rig *rig = *state;
	buf_append_text(&rig->body,
			"{\"streams\":[{\"stream\":{\"a\":\"b\"},\"values\":[[\"1\",\"x\"]");
	for (int i = 1; i < LOKI_ENTRIES_MAX + 1; i++)
		buf_append_text(&rig->body, ",[\"1\",\"x\"]");
	buf_append_text(&rig->body, "]}]}");
	assert_int_equal(read_body(rig), ERR_LIMIT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_tags_and_bytes),
		TEST(newlines_within_a_line),
		TEST(what_is_more_than_a_chunk_may_have),
		TEST(equal_entries_of_one_stream),
		TEST(labels_that_are_too_long),
		TEST(too_many_entries),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
