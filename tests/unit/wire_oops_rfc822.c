/* python-oops' old form. What is expected is what `oops_datedir_repo.serializer_rfc822` 0.1.0 gives
 * for the same bytes, but where oops_rfc822.h says that we do something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"
#include "wire/oops_rfc822.h"

static const char whole_text[] = "Oops-Id: OOPS-A0001\n"
				 "Exception-Type: NotFound\n"
				 "Exception-Value: error message\n"
				 "Date: 2005-04-01T00:00:00+00:00\n"
				 "Page-Id: IFoo:+foo-template\n"
				 "Branch: mybranch\n"
				 "Revision: 45\n"
				 "User: Sample User\n"
				 "URL: http://localhost:9000/foo\n"
				 "Duration: 42.0\n"
				 "Informational: True\n"
				 "Oops-Reporter: foo/bar\n"
				 "\n"
				 "HTTP_REFERER=http://localhost:9000/\n"
				 "HTTP_USER_AGENT=Mozilla/5.0\n"
				 "name%3Dfoo=hello%0Aworld\n"
				 "\n"
				 "00001-00005@store_a SELECT 1\n"
				 "00005-00010@store_b SELECT 2\n"
				 "\n"
				 "traceback\n"
				 "text\n";
static const char whole_tree[] =
	"{\"id\":\"OOPS-A0001\",\"type\":\"NotFound\",\"value\":\"error message\","
	"\"time\":\"2005-04-01T00:00:00Z\",\"topic\":\"IFoo:+foo-template\","
	"\"branch_nick\":\"mybranch\",\"revno\":\"45\",\"username\":\"Sample User\","
	"\"url\":\"http://localhost:9000/foo\",\"duration\":42.0,\"informational\":\"True\","
	"\"reporter\":\"foo/bar\",\"req_vars\":{\"HTTP_REFERER\":\"http://localhost:9000/\","
	"\"HTTP_USER_AGENT\":\"Mozilla/5.0\",\"name=foo\":\"hello\\nworld\"},"
	"\"timeline\":[[1,5,\"store_a\",\"SELECT 1\"],[5,10,\"store_b\",\"SELECT 2\"]],"
	"\"tb_text\":\"traceback\\ntext\\n\"}";

/* A tree without what is null or empty, and without the duration where it is -1: else each case
 * would have to name it all. */
static void write_short(const struct json *root, struct buf *out)
{
	struct json_writer w;
	json_writer_init(&w, out);
	json_write_object_begin(&w);
	for (const struct json *m = root->first; m; m = m->next) {
		bool empty = m->type == JSON_T_NULL || (m->type == JSON_T_STRING && !m->text.len) ||
			     ((m->type == JSON_T_ARRAY || m->type == JSON_T_OBJECT) && !m->count);
		if (empty || (m->type == JSON_T_NUMBER && value_equal(m->number, value_f64(-1))))
			continue;
		struct json alone = *m;
		json_write_key_slice(&w, m->key);
		struct buf one;
		struct json_writer of_one;
		buf_init(&one, 1 << 20);
		json_writer_init(&of_one, &one);
		alone.next = NULL;
		json_write_tree(&of_one, &alone);
		json_write_raw(&w, buf_slice(&one));
		buf_release(&one);
	}
	json_write_object_end(&w);
}

static void expect_slice(struct slice text, const char *json)
{
	struct arena arena;
	struct buf out;
	struct json *root;
	char *copy = mem_alloc(text.len); /* of just that size, so that a byte too far is seen */
	memcpy(copy, text.data, text.len);
	arena_init(&arena, 1 << 20);
	buf_init(&out, 1 << 20);
	assert_int_equal(oops_rfc822_parse((struct slice){copy, text.len}, &arena, &root, NULL), 0);
	write_short(root, &out);
	buf_append_char(&out, 0);
	assert_string_equal(out.data, json);
	buf_release(&out);
	arena_release(&arena);
	mem_free(copy);
}

static void expect(const char *text, const char *json)
{
	expect_slice(slice_of(text), json);
}

/* What is written of a report in JSON. */
static void expect_written(const char *json, const char *text)
{
	struct arena arena;
	struct buf out;
	struct json *root;
	struct errbuf e;
	arena_init(&arena, 1 << 20);
	buf_init(&out, 1 << 20);
	if (json_parse(slice_of(json), &arena, &root, &e))
		fail_msg("%s", e.text);
	oops_rfc822_write(root, &out);
	assert_false(out.failed);
	buf_append_char(&out, 0);
	assert_string_equal(out.data, text);
	buf_release(&out);
	arena_release(&arena);
}

static void a_whole_report_both_ways(void **state)
{
	struct arena arena;
	struct buf out;
	struct json_writer writer;
	struct json *root;
	(void)state;
	arena_init(&arena, 1 << 20);
	buf_init(&out, 1 << 20);
	assert_int_equal(oops_rfc822_parse(slice_of(whole_text), &arena, &root, NULL), 0);
	json_writer_init(&writer, &out);
	json_write_tree(&writer, root);
	buf_append_char(&out, 0);
	assert_string_equal(out.data, whole_tree);
	buf_release(&out);
	arena_release(&arena);
	expect_written(whole_tree, whole_text);
}

static void a_minimal_report_both_ways(void **state)
{
	struct arena arena;
	struct buf out;
	struct json_writer writer;
	struct json *root;
	(void)state;
	expect_written("{\"id\":\"OOPS-1234\"}", "Oops-Id: OOPS-1234\n\n");
	arena_init(&arena, 1 << 20);
	buf_init(&out, 1 << 20);
	assert_int_equal(oops_rfc822_parse(SLICE("Oops-Id: OOPS-1234\n\n"), &arena, &root, NULL),
			 0);
	json_writer_init(&writer, &out);
	json_write_tree(&writer, root);
	buf_append_char(&out, 0);
	static const char tree[] =
		"{\"id\":\"OOPS-1234\",\"type\":null,\"value\":null,\"time\":null,\"topic\":null,"
		"\"branch_nick\":null,\"revno\":null,\"username\":null,\"url\":null,"
		"\"duration\":-1.0,\"req_vars\":{},\"timeline\":[],\"tb_text\":\"\"}";
	assert_string_equal(out.data, tree);
	buf_release(&out);
	arena_release(&arena);
	/* What is null was not there; what is empty has its empty line. */
	expect_written(tree, "Oops-Id: OOPS-1234\nDuration: -1.0\n\n\n\n");
}

static void headers_as_a_letter_has_them(void **state)
{
	(void)state;
	expect("OOPS-ID: 1\n", "{\"id\":\"1\"}");
	expect("oops-id:1", "{\"id\":\"1\"}");
	expect("Oops-Id: \t 1 \n", "{\"id\":\"1 \"}");
	expect("Oops-Id: 1\nOops-Id: 2\n 3\nUser: a\n", "{\"id\":\"1\",\"username\":\"a\"}");
	expect("User: a\n b\n\tc\nURL: d\n", "{\"username\":\"a\\n b\\n\\tc\",\"url\":\"d\"}");
	expect("User:\n b\n", "{\"username\":\"\\n b\"}");
	expect(" c\nUser: a\n", "{\"username\":\"a\"}");
	expect("X-Other: b\n c\nUser: a\n", "{\"username\":\"a\"}");
	expect(": b\n c\nUser: a\n", "{\"username\":\"a\"}");
	expect("From me\nUser: a\n", "{\"username\":\"a\"}");
	expect("User: a\r\nURL: b\r\n\r\nk=v\r\n", "{\"username\":\"a\",\"url\":\"b\",\"req_vars\":"
						   "{\"k\":\"v\"},\"tb_text\":\"k=v\\n\"}");
	expect("User: a\rURL: b", "{\"username\":\"a\",\"url\":\"b\"}");
	expect("User: a\n \nURL: b", "{\"username\":\"a\\n \",\"url\":\"b\"}");
	/* The first line that is no header is of the body, as after an empty line. */
	expect("User: a\nk=v\nURL: b", "{\"username\":\"a\",\"req_vars\":{\"k\":\"v\"},"
				       "\"tb_text\":\"URL: b\"}");
	expect("User: a\nno name: b=c\n", "{\"username\":\"a\",\"req_vars\":{\"no name: b\":\"c\"},"
					  "\"tb_text\":\"no name: b=c\\n\"}");
	expect("Userx: a\nUse: b\n", "{}");
	expect("", "{}");
}

static void topic_counts_before_page_id(void **state)
{
	(void)state;
	expect("Page-Id: p\n", "{\"topic\":\"p\"}");
	expect("Topic: t\n", "{\"topic\":\"t\"}");
	expect("Page-Id: p\nTopic: t\n", "{\"topic\":\"t\"}");
	expect("Topic: t\nPage-Id: p\n", "{\"topic\":\"t\"}");
	expect("Topic: \nPage-Id: p\n", "{}");
}

static void a_bad_duration_is_minus_one(void **state)
{
	static const struct {
		const char *text, *tree;
	} cases[] = {
		{"Duration: 42\n", "{\"duration\":42.0}"},
		{"Duration:  4.25 \n", "{\"duration\":4.25}"},
		{"Duration: 1e3\n", "{\"duration\":1000.0}"},
		{"Duration: foo/bar\n", "{}"},
		{"Duration: \n", "{}"},
		{"Duration: nan\n", "{}"},
		{"Duration: inf\n", "{}"},
		{"Duration: 1e999\n", "{}"},
		{"Duration: 1 2\n", "{}"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		expect(cases[i].text, cases[i].tree);
}

static void times(void **state)
{
	(void)state;
	expect("Date: 2005-04-01T02:00:00+02:00\n", "{\"time\":\"2005-04-01T00:00:00Z\"}");
	expect("Date: 2005-04-01T00:00:00.123999\n", "{\"time\":\"2005-04-01T00:00:00.123Z\"}");
	expect("Date: 2005-04-01 00:00:00\n", "{\"time\":\"2005-04-01T00:00:00Z\"}");
	expect("Date: 2005-04-01\n", "{\"time\":\"2005-04-01T00:00:00Z\"}");
	expect("Date: Fri, 01 Apr 2005\n", "{\"time\":\"Fri, 01 Apr 2005\"}");
	expect("Date:\n", "{}");
}

static void variables(void **state)
{
	(void)state;
	expect("\n\nHTTP_USER_AGENT=Mozilla/"
	       "5.0\n\nHTTP_REFERER=x\n\n\nname%3Dfoo=hello%0Aworld\n\n",
	       "{\"req_vars\":{\"HTTP_USER_AGENT\":\"Mozilla/5.0\",\"HTTP_REFERER\":\"x\","
	       "\"name=foo\":\"hello\\nworld\"},\"tb_text\":\"\\n\"}");
	expect("\n k = v=w \n\n", "{\"req_vars\":{\"k \":\" v=w\"},\"tb_text\":\"\\n\"}");
	expect("\n=\n\n", "{\"req_vars\":{\"\":\"\"},\"tb_text\":\"\\n\"}");
	expect("\na=%41%c3%A9%ff%4%zz%\n\n",
	       "{\"req_vars\":{\"a\":\"A\xc3\xa9\xef\xbf\xbd%4%zz%\"},\"tb_text\":\"\\n\"}");
	expect("\na=%4", "{\"req_vars\":{\"a\":\"%4\"},\"tb_text\":\"a=%4\"}");
	expect("\na=b+c\n\n", "{\"req_vars\":{\"a\":\"b+c\"},\"tb_text\":\"\\n\"}");
	expect("\na=1\na=2\n\n", "{\"req_vars\":{\"a\":\"1\",\"a\":\"2\"},\"tb_text\":\"\\n\"}");
	/* Lines that say nothing are left out; Python ends lines at more than LF. */
	expect("\nnothing\na=1\v"
	       "b=2\x1e"
	       "c=3\n\n",
	       "{\"req_vars\":{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\"},\"tb_text\":\"\\n\"}");
}

static void statements(void **state)
{
	(void)state;
	expect("\n00001-00005@store_a SELECT 1\n0-07   SELECT  2 \n\n",
	       "{\"timeline\":[[1,5,\"store_a\",\"SELECT 1\"],[0,7,null,\"SELECT  2\"]],"
	       "\"tb_text\":\"\\n\"}");
	expect("\n1-2@SQL-main_9 a=b\n\n",
	       "{\"timeline\":[[1,2,\"SQL-main_9\",\"a=b\"]],\"tb_text\":\"\\n\"}");
	expect("\n9007199254740993-18446744073709551615 x\n\n",
	       "{\"timeline\":[[9007199254740993,18446744073709551615,null,\"x\"]],"
	       "\"tb_text\":\"\\n\"}");
	expect("\n0-18446744073709551616 x\n\n",
	       "{\"timeline\":[[0,1.8446744073709552e+19,null,\"x\"]],\"tb_text\":\"\\n\"}");
	/* Near misses: no statement, and a variable only with an equals sign. */
	expect("\n1-2\n1-2@a\n1-2@a!b c\n1-2@ c\n1 2 c\n-2 c\n1- c\n1-2c\n1-2@a=b\n\n",
	       "{\"req_vars\":{\"1-2@a\":\"b\"},\"tb_text\":\"\\n\"}");
}

static void the_traceback_begins_with_its_word(void **state)
{
	(void)state;
	expect("\nTraceback (most recent call last):\n  x=1\n1-2 x\n",
	       "{\"tb_text\":\"Traceback (most recent call last):\\n  x=1\\n1-2 x\\n\"}");
	expect("\na=b\n  TRACEBACK\n",
	       "{\"req_vars\":{\"a\":\"b\"},\"tb_text\":\"  TRACEBACK\\n\"}");
	expect("\n== EXTRA DATA ==\na=b", "{\"tb_text\":\"== EXTRA DATA ==\\na=b\"}");
	expect("\n== extra data ==\n\n",
	       "{\"req_vars\":{\"\":\"= extra data ==\"},\"tb_text\":\"\\n\"}");
	/* A variable first. */
	expect("\ntraceback=1\n\n", "{\"req_vars\":{\"traceback\":\"1\"},\"tb_text\":\"\\n\"}");
	/* Without one, the last line is taken for it. */
	expect("\nfoo\nbar\n", "{\"tb_text\":\"bar\\n\"}");
	expect("\n1-2 x", "{\"timeline\":[[1,2,null,\"x\"]],\"tb_text\":\"1-2 x\"}");
}

static void utf8_stays_and_all_else_is_replaced(void **state)
{
	(void)state;
	expect("Exception-Value: a\xe2\x82\xac\n\nk=\xc3\xa9\n\ntraceback \xf0\x9f\x98\x80",
	       "{\"value\":\"a\xe2\x82\xac\",\"req_vars\":{\"k\":\"\xc3\xa9\"},"
	       "\"tb_text\":\"traceback \xf0\x9f\x98\x80\"}");
	expect("Exception-Value: a\xff\r\n\r\nk=\xe9\n\ntraceback\xc3",
	       "{\"value\":\"a\xef\xbf\xbd\",\"req_vars\":{\"k\":\"\xef\xbf\xbd\"},"
	       "\"tb_text\":\"traceback\xef\xbf\xbd\"}");
	expect_slice(SLICE("User: a\0b\n\nk=\0\n\n"),
		     "{\"username\":\"a\\u0000b\",\"req_vars\":{\"k\":\"\\u0000\"},"
		     "\"tb_text\":\"\\n\"}");
}

/* The writer of JSON replaces wrong bytes too, so the tree itself is looked at. */
static void the_tree_is_utf8(void **state)
{
	struct arena arena;
	struct json *root;
	(void)state;
	arena_init(&arena, 1 << 20);
	assert_int_equal(oops_rfc822_parse(SLICE("User: a\xff"
						 "b\n\n%ff=%fe\n\ntraceback\xc3"),
					   &arena, &root, NULL),
			 0);
	const struct json *variable = json_member(root, "req_vars")->first;
	assert_true(slice_equal(json_member(root, "username")->text, SLICE("a\xef\xbf\xbd"
									   "b")));
	assert_true(slice_equal(variable->key, SLICE("\xef\xbf\xbd")));
	assert_true(slice_equal(variable->text, SLICE("\xef\xbf\xbd")));
	assert_true(
		slice_equal(json_member(root, "tb_text")->text, SLICE("traceback\xef\xbf\xbd")));
	arena_release(&arena);
}

static void what_is_written_is_ascii_in_lines(void **state)
{
	(void)state;
	expect_written(
		"{\"id\":\"OOPS-\xc3\xa9\",\"value\":\" a \\t\\n b\\\\c\\u20ac\\ud83d\\ude00 \"}",
		"Oops-Id: OOPS-\\xe9\nException-Value: a b\\\\c\\u20ac\\U0001f600\n\n");
	expect_written("{\"tb_text\":\"a\\n \xc3\xa9\\\\\\n\"}", "\na\n \\xe9\\\\\n");
	expect_written("{\"value\":\"x\\nOops-Id: 2\"}", "Exception-Value: x Oops-Id: 2\n\n");
	expect_written("{\"timeline\":[[1,2,\"a\\nb\",\"c\\nTraceback\"]]}",
		       "\n00001-00002@a b c Traceback\n\n");
}

static void variables_are_quoted_and_sorted(void **state)
{
	(void)state;
	expect_written("{\"req_vars\":{\"b\":\"1=2\",\"a b\":\"%\\n\xc3\xa9\\\\\",\"B\":\"~_.-\"}}",
		       "\nB=~_.-\na b=%25%0A\\xe9\\\\\nb=1%3D2\n\n");
	expect_written("{\"req_vars\":{\"k\":\";/\\\\?:@&+$, ()*!\",\"q\":\"'\\\"#<>[]^`{|}\"}}",
		       "\nk=;/\\\\?:@&+$, ()*!\n"
		       "q=%27%22%23%3C%3E%5B%5D%5E%60%7B%7C%7D\n\n");
	expect_written("{\"req_vars\":{\"k\":\"1\",\"a\":\"0\",\"k\":\"2\"}}",
		       "\na=0\nk=1\nk=2\n\n");
	/* A list of pairs as older reporters have it, in its order; a pair without its value. */
	expect_written("{\"req_vars\":[[\"b\",\"2\"],[\"a\",\"1\"],[\"c\"],[],7,[1,2]]}",
		       "\nb=2\na=1\nc=\n\n");
	expect_written("{\"req_vars\":{\"n\":null,\"i\":7,\"t\":true,\"o\":{\"x\":[]}}}",
		       "\ni=7.0\nn=\no=%7B%22x%22:%5B%5D%7D\nt=True\n\n");
	expect_written("{\"req_vars\":7,\"timeline\":7,\"tb_text\":null}", "\n");
}

static void rows_of_other_shapes_are_written_as_far_as_they_go(void **state)
{
	(void)state;
	expect_written("{\"timeline\":[[1,5,\"a\",\"s\",\"callstack\"],[1.9,100000,null,\"s\"],"
		       "[1,2,\"a\"],[1,2],[1],[],7,[\"1\",2,\"a\",\"s\"],[1,1e300,\"a\",\"s\"],"
		       "[-3,2,\"a\",\"s\"]]}",
		       "\n00001-00005@a s\n00001-100000 s\n00001-00002@a \n00001-00002 \n"
		       "-0003-00002@a s\n\n");
}

static void times_are_written_as_python_does(void **state)
{
	(void)state;
	expect_written("{\"time\":\"2005-04-01T00:00:00Z\"}",
		       "Date: 2005-04-01T00:00:00+00:00\n\n");
	expect_written("{\"time\":\"2005-04-01T02:00:00.123+02:00\"}",
		       "Date: 2005-04-01T00:00:00.123000+00:00\n\n");
	expect_written("{\"time\":\"one  day\"}", "Date: one day\n\n");
}

static void a_full_buffer_says_so(void **state)
{
	struct arena arena;
	struct json *root;
	(void)state;
	arena_init(&arena, 1 << 20);
	assert_int_equal(json_parse(slice_of(whole_tree), &arena, &root, NULL), 0);
	for (size_t max = 0; max <= sizeof(whole_text) - 1; max++) {
		struct buf out;
		buf_init(&out, max);
		oops_rfc822_write(root, &out);
		assert_true(out.failed == (max < sizeof(whole_text) - 1));
		buf_release(&out);
	}
	arena_release(&arena);
}

static void the_arena_bounds_the_tree(void **state)
{
	struct json *root;
	(void)state;
	for (size_t max = 0; max < 4096; max += 16) {
		struct arena arena;
		struct errbuf e = {""};
		arena_init(&arena, max);
		int err = oops_rfc822_parse(slice_of(whole_text), &arena, &root, &e);
		assert_true(err == 0 || err == ERR_LIMIT);
		assert_true((err == 0) == (e.text[0] == 0));
		assert_true(max >= 2000 || err);
		arena_release(&arena);
	}
}

/* Of a value that is no text, what does not fit is not left out in silence. */
static void a_value_that_does_not_fit_says_so(void **state)
{
	static const char report[] = "{\"id\":[\"01234567890123456789012345678901234567890123\"]}";
	struct arena arena;
	struct buf out;
	struct json *root;
	(void)state;
	arena_init(&arena, 1 << 20);
	buf_init(&out, 40);
	assert_int_equal(json_parse(slice_of(report), &arena, &root, NULL), 0);
	oops_rfc822_write(root, &out);
	assert_true(out.failed);
	buf_release(&out);
	arena_release(&arena);
}

/* Cut anywhere or with any byte changed, a report is read. */
static void damaged_reports_are_read(void **state)
{
	struct random random;
	struct arena arena;
	struct json *root;
	size_t len = sizeof(whole_text) - 1;
	(void)state;
	random_init(&random, 822);
	arena_init(&arena, 1 << 20);
	for (int i = 0; i < 20000; i++) {
		size_t cut = i < (int)len ? (size_t)i : len;
		char *copy = mem_alloc(cut);
		memcpy(copy, whole_text, cut);
		for (uint64_t n = i < (int)len ? 0 : random_below(&random, 4); n > 0; n--)
			copy[random_below(&random, len)] = (char)random_below(&random, 256);
		assert_int_equal(oops_rfc822_parse((struct slice){copy, cut}, &arena, &root, NULL),
				 0);
		arena_reset(&arena);
		mem_free(copy);
	}
	arena_release(&arena);
}

static void the_first_line_tells(void **state)
{
	(void)state;
	assert_true(oops_rfc822_begins(SLICE("Oops-Id: 1")));
	assert_true(oops_rfc822_begins(SLICE("a:")));
	assert_true(oops_rfc822_begins(SLICE("From me\n")));
	assert_false(oops_rfc822_begins(SLICE("From")));
	assert_false(oops_rfc822_begins(SLICE(":")));
	assert_false(oops_rfc822_begins(SLICE("a\n:")));
	assert_false(oops_rfc822_begins(SLICE("a b: c")));
	assert_false(oops_rfc822_begins((struct slice){NULL, 0}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_report_both_ways),
		cmocka_unit_test(a_minimal_report_both_ways),
		cmocka_unit_test(headers_as_a_letter_has_them),
		cmocka_unit_test(topic_counts_before_page_id),
		cmocka_unit_test(a_bad_duration_is_minus_one),
		cmocka_unit_test(times),
		cmocka_unit_test(variables),
		cmocka_unit_test(statements),
		cmocka_unit_test(the_traceback_begins_with_its_word),
		cmocka_unit_test(utf8_stays_and_all_else_is_replaced),
		cmocka_unit_test(the_tree_is_utf8),
		cmocka_unit_test(what_is_written_is_ascii_in_lines),
		cmocka_unit_test(variables_are_quoted_and_sorted),
		cmocka_unit_test(rows_of_other_shapes_are_written_as_far_as_they_go),
		cmocka_unit_test(times_are_written_as_python_does),
		cmocka_unit_test(a_full_buffer_says_so),
		cmocka_unit_test(a_value_that_does_not_fit_says_so),
		cmocka_unit_test(the_arena_bounds_the_tree),
		cmocka_unit_test(damaged_reports_are_read),
		cmocka_unit_test(the_first_line_tells),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
