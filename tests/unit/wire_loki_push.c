/* What clients of Loki push, written by hand as Loki's page on its HTTP interface has it. Expected
 * times are from `date -u -d @SECONDS +%FT%T`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "wire/loki_push.h"

enum { ROOM_BYTES = 16 << 20, ENTRIES_MAX = 8 };

static struct arena arena;
static struct buf out;
static struct errbuf e;

static int start(void **state)
{
	(void)state;
	arena_init(&arena, ROOM_BYTES);
	buf_init(&out, ROOM_BYTES);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	buf_release(&out);
	arena_release(&arena);
	return 0;
}

static struct loki_push read_good(const char *body)
{
	struct loki_push push;
	assert_int_equal(loki_push_read(slice_of(body), &arena, &push, &e), 0);
	return push;
}

static void assert_text(struct slice text, const char *expected)
{
	assert_int_equal(text.len, strlen(expected));
	if (text.len)
		assert_memory_equal(text.data, expected, text.len);
}

static size_t entries_of(const struct loki_stream *stream, struct loki_entry *list)
{
	struct loki_entries entries;
	size_t count = 0;
	int err;
	loki_entries_begin(&entries, stream, &arena);
	while (!(err = loki_entries_next(&entries, &list[count])))
		assert_true(++count < ENTRIES_MAX);
	assert_int_equal(err, ERR_NOT_FOUND);
	return count;
}

static void assert_record(const struct loki_entry *entry, const char *expected)
{
	buf_clear(&out);
	assert_null(entry->wrong);
	loki_record_put(entry, &out);
	assert_text(buf_slice(&out), expected);
}

static void assert_labels(const struct loki_labels *labels, const bool *skip, const char *expected)
{
	buf_clear(&out);
	loki_labels_put(labels, skip, &out);
	assert_text(buf_slice(&out), expected);
}

static void the_example_of_the_documentation(void **state)
{
	struct loki_entry entries[ENTRIES_MAX];
	(void)state;
	struct loki_push push =
		read_good("{\"streams\":[{\"stream\":{\"label\":\"value\"},\"values\":["
			  "[\"1570818238000000000\",\"fizzbuzz\"],"
			  "[\"1570818238000000001\",\"log line\","
			  "{\"trace_id\":\"0242ac120002\",\"user_id\":\"superUser123\"}]]}]}");
	assert_int_equal(push.count, 1);
	assert_labels(&push.streams[0].labels, NULL, "{label=\"value\"}");
	assert_int_equal(entries_of(&push.streams[0], entries), 2);
	assert_record(&entries[0], "2019-10-11T18:23:58.000000000Z fizzbuzz\n");
	assert_record(&entries[1], "2019-10-11T18:23:58.000000001Z log line "
				   "trace_id=\"0242ac120002\" user_id=\"superUser123\"\n");
}

/* Members may stand in any order, and others are passed over; a stream may come again. */
static void order_does_not_matter(void **state)
{
	struct loki_entry entries[ENTRIES_MAX];
	(void)state;
	struct loki_push push = read_good(
		"{\"x\":[{\"streams\":1}],\"streams\":["
		"{\"values\":[[\"0\",\"\"]],\"more\":[[]],\"stream\":{\"b\":\"1\",\"a\":\"2\"}},"
		"{\"stream\":{\"b\":\"1\",\"a\":\"2\"},\"values\":[]}],\"y\":null}");
	assert_int_equal(push.count, 2);
	assert_labels(&push.streams[0].labels, NULL, "{a=\"2\",b=\"1\"}");
	assert_int_equal(entries_of(&push.streams[0], entries), 1);
	assert_record(&entries[0], "1970-01-01T00:00:00.000000000Z \n");
	assert_int_equal(entries_of(&push.streams[1], entries), 0);
	assert_int_equal(read_good("{\"streams\":[]}").count, 0);
}

static void texts_are_as_they_were_sent(void **state)
{
	struct loki_entry entries[ENTRIES_MAX];
	(void)state;
	struct loki_push push = read_good(
		"{\"streams\":[{\"stream\":{\"a\":\"\"},\"values\":[]},"
		"{\"stream\":{\"q\":\"a\\\"b\\\\c\\nd\",\"e\":\"\",\"z\":\"1\",\"z\":\"2\"},"
		"\"values\":[[\"1\",\"two\\nlines \\u00e5 \\ud800 "
		"\xff!\",{\"k.1\":\"v\\\"\\n\\\\\",\"e\":\"\"}],"
		"[\"9223372036854775807\",\"last\"]]}]}");
	assert_string_equal(push.streams[0].wrong, "it has no label; a stream has at least one");
	assert_labels(&push.streams[1].labels, NULL, "{q=\"a\\\"b\\\\c\\nd\",z=\"2\"}");
	assert_labels(&push.streams[1].labels, (const bool[]){true, false}, "{z=\"2\"}");
	assert_labels(&push.streams[1].labels, (const bool[]){true, true}, "");
	assert_int_equal(entries_of(&push.streams[1], entries), 2);
	assert_record(&entries[0],
		      "1970-01-01T00:00:00.000000001Z two\nlines \xc3\xa5 \xef\xbf\xbd "
		      "\xef\xbf\xbd! k_1=\"v\\\"\\n\\\\\"\n");
	assert_record(&entries[1], "2262-04-11T23:47:16.854775807Z last\n");
}

static void what_is_wrong_with_a_stream(void **state)
{
	static const struct {
		const char *stream, *wrong;
	} cases[] = {
		{"1", "it is no object"},
		{"{}", "it has no label; a stream has at least one"},
		{"{\"stream\":{\"a\":\"b\"}}", "it has no values"},
		{"{\"stream\":{\"a\":\"b\"},\"values\":{}}", "its values are no array"},
		{"{\"stream\":[\"a\"],\"values\":[]}", "its labels are no object"},
		{"{\"stream\":\"{a=\\\"b\\\"}\",\"values\":[]}", "its labels are no object"},
		{"{\"stream\":{\"a\":1},\"values\":[]}", "the value of a label is no text"},
		{"{\"stream\":{\"a\":{\"b\":[]}},\"values\":[]}",
		 "the value of a label is no text"},
		{"{\"stream\":{\"1a\":\"b\"},\"values\":[]}",
		 "the name of a label is none: it is 1 to 1024 of A-Z a-z 0-9 _, not beginning "
		 "with a digit"},
		{"{\"stream\":{\"a.b\":\"b\"},\"values\":[]}",
		 "the name of a label is none: it is 1 to 1024 of A-Z a-z 0-9 _, not beginning "
		 "with a digit"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char body[400];
		snprintf(body, sizeof(body),
			 "{\"streams\":[%s,{\"stream\":{\"a\":\"b\"},\"values\":[[\"1\",\"x\"]]}]}",
			 cases[i].stream);
		struct loki_push push = read_good(body);
		assert_int_equal(push.count, 2);
		assert_non_null(push.streams[0].wrong);
		assert_string_equal(push.streams[0].wrong, cases[i].wrong);
		assert_null(push.streams[1].wrong);
	}
}

static void labels_have_limits(void **state)
{
	(void)state;
	for (size_t count = 128; count <= 129; count++) {
		buf_clear(&out);
		buf_append_text(&out, "{\"streams\":[{\"stream\":{");
		for (size_t i = 0; i < count; i++)
			buf_printf(&out, "%s\"a%zu\":\"v\"", i ? "," : "", i);
		buf_append_text(&out, "},\"values\":[]}]}");
		buf_append_char(&out, 0);
		struct loki_push push = read_good(out.data);
		if (count == 128)
			assert_null(push.streams[0].wrong);
		else
			assert_string_equal(push.streams[0].wrong, "it has more than 128 labels");
	}
	for (int bytes = 2048; bytes <= 2049; bytes++) {
		buf_clear(&out);
		buf_printf(&out, "{\"streams\":[{\"stream\":{\"a\":\"%*s\"},\"values\":[]}]}",
			   bytes, "v");
		buf_append_char(&out, 0);
		struct loki_push push = read_good(out.data);
		assert_int_equal(push.streams[0].wrong != NULL, bytes > 2048);
	}
}

static void what_is_wrong_with_an_entry(void **state)
{
	static const char time[] = "its time is no text with a number of ns since 1970";
	static const char array[] = "it is no array of a time and a line";
	static const struct {
		const char *entry, *wrong, *shown;
	} cases[] = {
		{"1", array, ""},
		{"{}", array, ""},
		{"[]", array, ""},
		{"[\"1\"]", array, ""},
		{"[1,\"x\"]", time, "1"},
		{"[\"-1\",\"x\"]", time, "-1"},
		{"[\"1.5\",\"x\"]", time, "1.5"},
		{"[\"\",\"x\"]", time, ""},
		{"[\"2023-11-14\",\"x\"]", time, "2023-11-14"},
		{"[\"9223372036854775808\",\"x\"]", time, "9223372036854775808"},
		{"[null,\"x\"]", time, ""},
		{"[[\"1\"],\"x\"]", time, ""},
		{"[\"1\",2]", "its line is no text", ""},
		{"[\"1\",[[]]]", "its line is no text", ""},
		{"[\"1\",\"x\",[]]", "its metadata are no object of texts under names", ""},
		{"[\"1\",\"x\",{\"k\":1}]", "its metadata are no object of texts under names", ""},
		{"[\"1\",\"x\",{\"\":\"v\"}]", "its metadata are no object of texts under names",
		 ""},
		{"[\"1\",\"x\",{},{}]", "it has more than three elements", ""},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char body[400];
		struct loki_entry entries[ENTRIES_MAX];
		snprintf(
			body, sizeof(body),
			"{\"streams\":[{\"stream\":{\"a\":\"b\"},\"values\":[[\"1\",\"before\"],%s,"
			"[\"2\",\"behind\"]]}]}",
			cases[i].entry);
		struct loki_push push = read_good(body);
		assert_null(push.streams[0].wrong);
		assert_int_equal(entries_of(&push.streams[0], entries), 3);
		assert_non_null(entries[1].wrong);
		assert_string_equal(entries[1].wrong, cases[i].wrong);
		assert_text(entries[1].shown, cases[i].shown);
		assert_null(entries[0].wrong);
		assert_record(&entries[2], "1970-01-01T00:00:00.000000002Z behind\n");
	}
}

static void lines_have_a_limit(void **state)
{
	(void)state;
	for (int bytes = LOKI_LINE_MAX_BYTES; bytes <= LOKI_LINE_MAX_BYTES + 1; bytes++) {
		struct loki_entry entries[ENTRIES_MAX];
		buf_clear(&out);
		buf_printf(
			&out,
			"{\"streams\":[{\"stream\":{\"a\":\"b\"},\"values\":[[\"1\",\"%*s\"]]}]}",
			bytes, "x");
		buf_append_char(&out, 0);
		struct loki_push push = read_good(out.data);
		assert_int_equal(entries_of(&push.streams[0], entries), 1);
		if (bytes == LOKI_LINE_MAX_BYTES)
			assert_null(entries[0].wrong);
		else
			assert_string_equal(entries[0].wrong,
					    "its line has more than 262144 bytes");
	}
}

/* Nothing of it is taken. */
static void what_is_no_push(void **state)
{
	static const struct {
		const char *body, *sentence;
	} cases[] = {
		{"", "line 1, column 1: "},
		{"[]", "the body is no object with \"streams\""},
		{"1", "the body is no object with \"streams\""},
		{"{}", "the body is no object with \"streams\""},
		{"{\"streams\":{}}", "\"streams\" is no array"},
		{"{\"streams\":[],\"streams\":[]}", "the body has \"streams\" twice"},
		{"{\"streams\":[]} x", "line 1, column 16: "},
		{"{\"streams\":[}", "line 1, column 13: "},
	};
	static const char whole[] = "{\"streams\":[{\"stream\":{\"a\":\"b\"},\"values\":"
				    "[[\"1\",\"x\",{\"k\":\"v\"}]]}]}";
	struct loki_push push;
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(loki_push_read(slice_of(cases[i].body), &arena, &push, &e),
				 ERR_INVALID);
		assert_memory_equal(e.text, cases[i].sentence, strlen(cases[i].sentence));
	}
	for (size_t len = 0; len < sizeof(whole) - 1; len++)
		assert_int_equal(loki_push_read((struct slice){whole, len}, &arena, &push, &e),
				 ERR_INVALID);
	assert_int_equal(loki_push_read(slice_of(whole), &arena, &push, &e), 0);
}

static void what_nests_too_deep(void **state)
{
	struct loki_push push;
	(void)state;
	buf_append_text(&out, "{\"streams\":[");
	for (int i = 0; i < 100; i++)
		buf_append_char(&out, '[');
	for (int i = 0; i < 100; i++)
		buf_append_char(&out, ']');
	buf_append_text(&out, "]}");
	assert_int_equal(loki_push_read(buf_slice(&out), &arena, &push, &e), ERR_INVALID);
	assert_string_equal(e.text, "the body is cut off, or nests too deep");
}

static void too_many_streams(void **state)
{
	struct loki_push push;
	(void)state;
	buf_append_text(&out, "{\"streams\":[0");
	for (int i = 1; i < LOKI_STREAMS_MAX; i++)
		buf_append_text(&out, ",0");
	size_t len = out.len;
	buf_append_text(&out, "]}");
	assert_int_equal(loki_push_read(buf_slice(&out), &arena, &push, &e), 0);
	assert_int_equal(push.count, LOKI_STREAMS_MAX);
	out.len = len;
	buf_append_text(&out, ",0]}");
	assert_int_equal(loki_push_read(buf_slice(&out), &arena, &push, &e), ERR_LIMIT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_example_of_the_documentation),
		TEST(order_does_not_matter),
		TEST(texts_are_as_they_were_sent),
		TEST(what_is_wrong_with_a_stream),
		TEST(labels_have_limits),
		TEST(what_is_wrong_with_an_entry),
		TEST(lines_have_a_limit),
		TEST(what_is_no_push),
		TEST(what_nests_too_deep),
		TEST(too_many_streams),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
