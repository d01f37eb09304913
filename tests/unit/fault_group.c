/* Groups of reports: which words a report is grouped by, and which reports share a group. What is
 * expected is written by hand, from traces as the languages print them. Many more traces, in five
 * languages, are grouped through the server by tests/e2e/test_fault_groups.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/buf.h"
#include "fault/group.h"

static struct arena arena;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, 64 << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static struct fault_group group_of(const char *text)
{
	struct json *report;
	struct fault_group group;
	struct errbuf e = {""};
	if (json_parse(slice_of(text), &arena, &report, &e))
		fail_msg("%s: %s", text, e.text);
	assert_int_equal(fault_group_make(report, &arena, &group), 0);
	return group;
}

/* Words as "kind text" with a * behind those that are not the application's. */
static void expect_words(const char *report, const char *expected)
{
	struct fault_group group = group_of(report);
	struct buf words;
	buf_init(&words, 1 << 20);
	for (size_t i = 0; i < group.count; i++)
		buf_printf(&words, "%s%s %.*s%s", i ? "|" : "",
			   fault_word_kind_name(group.words[i].kind), (int)group.words[i].text.len,
			   group.words[i].text.data, group.words[i].application ? "" : "*");
	buf_append_char(&words, 0);
	assert_string_equal(words.data, expected);
	buf_release(&words);
}

static void expect_same(const char *one, const char *other)
{
	struct fault_group a = group_of(one), b = group_of(other);
	if (!slice_equal(a.name, b.name))
		fail_msg("two groups:\n%s\n%s", one, other);
}

static void expect_different(const char *one, const char *other)
{
	struct fault_group a = group_of(one), b = group_of(other);
	if (slice_equal(a.name, b.name))
		fail_msg("one group:\n%s\n%s", one, other);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static void a_fingerprint_goes_first(void **state)
{
	(void)state;
	expect_words("{\"fingerprint\":[\"a\",\"7\"],\"exception\":\"E\",\"value\":\"v\"}",
		     "fingerprint a|fingerprint 7");
	expect_words("{\"fingerprint\":[\"{{ default }}\",\"x\"],\"exception\":\"E\","
		     "\"value\":\"v 7\"}",
		     "type E|message v #|fingerprint x");
	/* That it is the default is no fingerprint. */
	expect_same("{\"fingerprint\":[\"{{ default }}\"],\"exception\":\"E\"}",
		    "{\"exception\":\"E\"}");
	/* Two parts are not one. */
	expect_different("{\"fingerprint\":[\"ab\",\"c\"]}", "{\"fingerprint\":[\"a\",\"bc\"]}");
}

static void the_message_counts_where_no_frame_does(void **state)
{
	(void)state;
	expect_words("{\"exception\":\"ValueError\",\"value\":\"no user 'ann' in 12 rooms\"}",
		     "type ValueError|message no user # in # rooms");
	expect_words("{\"logentry\":{\"message\":\"lost %s\",\"formatted\":\"lost it\"}}",
		     "message lost %s");
	expect_words("{\"context\":\"/bugs/7/edit\"}", "context /bugs/#/edit");
	expect_words("{}", "");
	assert_int_equal(group_of("{\"context\":\"/x\"}").rule, FAULT_GROUPED_BY_CONTEXT);
}

static void what_varies_in_messages(void **state)
{
	static const char *const same[][2] = {
		{"at 10.0.0.1:80 failed", "at 192.168.7.14:8080 failed"},
		{"user ann@example.com is gone", "user bob.b@example.org is gone"},
		{"job 123e4567-e89b-12d3-a456-426614174000 died",
		 "job 00000000-1111-2222-3333-444444444444 died"},
		{"<Foo object at 0x7f12ab>", "<Foo object at 0x55>"},
		{"since 2026-11-24T10:00:00Z", "since 2025-01-01"},
		{"took 12ms", "took 3.5s"},
		{"ids 1, 2, 3 gone", "ids 7 gone"},
		{"not \\\"a b\\\" but", "not \\\"c\\\" but"},
		{"at https://a.example/x?y=1 no", "at http://b.example/ no"},
		{"blob da39a3ee5e6b4b0d3255bfef95601890afd80709 lost", "blob 1f2e3d4c lost"},
		{"rate -1.5e-7 low", "rate 12 low"},
		{"/var/spool/17/a is full", "/var/spool/2/a is full"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		char one[256], other[256];
		snprintf(one, sizeof(one), "{\"value\":\"%s\"}", same[i][0]);
		snprintf(other, sizeof(other), "{\"value\":\"%s\"}", same[i][1]);
		expect_same(one, other);
	}
	expect_different("{\"value\":\"can't open\"}", "{\"value\":\"can't close\"}");
	expect_different("{\"value\":\"disk is full\"}", "{\"value\":\"disk is gone\"}");
}

/* ---- Structured traces ----------------------------------------------------------------------- */

#define FRAME(module, function, line, in_app)                                                      \
	"{\"module\":\"" module "\",\"function\":\"" function "\",\"lineno\":" line                \
	",\"in_app\":" in_app "}"
#define EVENT(frames)                                                                              \
	"{\"exceptions\":{\"values\":[{\"type\":\"E\",\"value\":\"v\",\"stacktrace\":"             \
	"{\"frames\":[" frames "]}}]}}"

static void frames_without_lines(void **state)
{
	(void)state;
	expect_words(EVENT(FRAME("django.core", "run", "7", "false") "," FRAME("shop", "pay", "9",
									       "true")),
		     "type E|frame django.core run*|frame shop pay");
	expect_same(EVENT(FRAME("shop", "pay", "9", "true")),
		    EVENT(FRAME("shop", "pay", "10", "true")));
	expect_same(EVENT(FRAME("a", "x", "1", "false") "," FRAME("shop", "pay", "9", "true")),
		    EVENT(FRAME("b", "y", "1", "false") "," FRAME("shop", "pay", "9", "true")));
	expect_different(EVENT(FRAME("shop", "pay", "9", "true")),
			 EVENT(FRAME("shop", "buy", "9", "true")));
	/* None is the application's: all count. */
	expect_words(EVENT(FRAME("a", "x", "1", "false")), "type E|frame a x");
}

static void recursion_is_folded(void **state)
{
	(void)state;
	expect_words(EVENT(FRAME("m", "f", "1", "true") "," FRAME("m", "f", "2", "true") "," FRAME(
			     "m", "f", "2", "true") "," FRAME("m", "g", "3", "true")),
		     "type E|frame m f|frame m g");
	expect_same(EVENT(FRAME("m", "f", "1", "true") "," FRAME("m", "g", "1", "true")),
		    EVENT(FRAME("m", "f", "1", "true") "," FRAME("m", "g", "1", "true") "," FRAME(
			    "m", "f", "1", "true") "," FRAME("m", "g", "1", "true")));
}

static void two_hashes(void **state)
{
	struct fault_group one =
		group_of(EVENT(FRAME("lib", "x", "1", "false") "," FRAME("m", "f", "1", "true")));
	struct fault_group other =
		group_of(EVENT(FRAME("lib", "y", "1", "false") "," FRAME("m", "f", "1", "true")));
	struct fault_group bare = group_of(EVENT(FRAME("m", "f", "1", "true")));
	(void)state;
	assert_true(slice_equal(one.name, other.name) && slice_equal(one.name, bare.name));
	assert_false(slice_equal(one.all, other.all));
	assert_true(slice_equal(bare.all, bare.name));
	/* A recursion of which some frames are the application's is folded among all frames, too.
	 */
	struct fault_group mixed = group_of(
		EVENT(FRAME("lib", "x", "1", "false") "," FRAME("m", "f", "1", "true") "," FRAME(
			"m", "f", "1", "false") "," FRAME("m", "g", "1", "true")));
	struct fault_group plain = group_of(EVENT(FRAME("lib", "x", "1", "false") "," FRAME(
		"m", "f", "1", "true") "," FRAME("m", "g", "1", "true")));
	assert_true(slice_equal(mixed.all, plain.all));
	assert_int_equal(one.name.len, FAULT_GROUP_NAME_BYTES);
	assert_memory_equal(one.name.data, "1-", 2);
}

#define CHAINED(type, mechanism)                                                                   \
	"{\"type\":\"" type "\",\"mechanism\":{" mechanism                                         \
	"},\"stacktrace\":{\"frames\":[" FRAME("m", type, "1", "true") "]}}"
#define CHAIN(one, other) "{\"exceptions\":[" CHAINED("A", one) "," CHAINED("B", other) "]}"
#define GROUP_OF          "\"is_exception_group\":true"

/* The group around one exception is left out. Go's client calls each error of a chain a group, so
 * nothing was left of it. */
static void groups_of_exceptions(void **state)
{
	(void)state;
	expect_words(CHAIN("", ""), "type A|frame m A|type B|frame m B");
	expect_words(CHAIN("", GROUP_OF), "type A|frame m A");
	expect_words(CHAIN(GROUP_OF, ""), "type B|frame m B");
	expect_words(CHAIN(GROUP_OF, GROUP_OF), "type A|frame m A|type B|frame m B");
}

#define GO(module, place, in_app)                                                                  \
	"{\"module\":\"" module "\",\"function\":\"F\"," place ",\"in_app\":" in_app "}"

/* As Go's client writes them (0.29.1): with whole paths, and of a program built with -trimpath. */
static void frames_of_go(void **state)
{
	(void)state;
	expect_words(
		EVENT(GO("main", "\"abs_path\":\"/srv/shop/main.go\"", "true") "," GO(
			"sort", "\"abs_path\":\"/usr/lib/go-1.19/src/sort/slice.go\"", "false")),
		"type E|frame main F|frame sort F*");
	expect_words(
		EVENT(GO("main", "\"filename\":\"shop/main.go\"", "false") "," GO(
			"shop.test/till", "\"filename\":\"shop.test/till/till.go\"",
			"false") "," GO("sort", "\"filename\":\"sort/slice.go\"",
					"false") "," GO("host.test/lib",
							"\"filename\":\"host.test/lib@v1.2.3/"
							"a.go\"",
							"false")),
		"type E|frame main F|frame shop.test/till F|frame sort F*|frame host.test/lib F*");
	/* Frames of other languages without whole paths are what their clients say. */
	expect_words(EVENT(GO("shop", "\"filename\":\"shop/a.py\"",
			      "true") "," GO("x.y", "\"filename\":\"x.y/a.py\"", "false")),
		     "type E|frame shop F|frame x.y F*");
}

/* ---- Traces as texts ------------------------------------------------------------------------- */

static void a_trace_of_python(void **state)
{
	(void)state;
	expect_words("{\"tb_text\":\"Traceback (most recent call last):\\n"
		     "  File \\\"/usr/lib/python3.11/site.py\\\", line 3, in run\\n    go()\\n"
		     "  File \\\"/srv/app/shop/views.py\\\", line 12, in pay\\n    raise E: x\\n"
		     "KeyError: 'ann'\\n\\nDuring handling of the above exception, another "
		     "exception occurred:\\n\\nTraceback (most recent call last):\\n"
		     "  File \\\"/srv/app/shop/views.py\\\", line 14, in end\\n    raise\\n"
		     "shop.errors.Bad: 7\\n\"}",
		     "frame site.py run*|frame shop/views.py pay|type KeyError|"
		     "frame shop/views.py end|type shop.errors.Bad");
}

static void a_trace_of_java(void **state)
{
	(void)state;
	expect_words("{\"tb_text\":\"Exception in thread \\\"main\\\" java.lang.RuntimeException: "
		     "no\\n\\tat com.acme.Shop.pay(Shop.java:12)\\n"
		     "\\tat java.base/java.lang.Thread.run(Thread.java:829)\\n"
		     "\\tat com.acme.Shop$$Lambda$14/0x0000000800066840.run(Unknown Source)\\n"
		     "Caused by: com.acme.Bad: 12\\n\\tat com.acme.Shop.lambda$pay$3(Shop.java:1)"
		     "\\n\\t... 7 more\\n\"}",
		     "type java.lang.RuntimeException|frame com.acme.Shop pay|"
		     "frame java.lang.Thread run*|frame com.acme.Shop$$Lambda$#/# run|"
		     "type com.acme.Bad|frame com.acme.Shop lambda$pay$");
}

static void a_trace_of_javascript(void **state)
{
	(void)state;
	expect_words("{\"tb_text\":\"TypeError: x is undefined\\n"
		     "    at Object.pay (https://cdn.example/js/shop.3f2a9c1b.js:1:200)\\n"
		     "    at async Basket.end (/srv/app/lib/basket.js:7:3)\\n"
		     "    at /srv/app/node_modules/express/index.js:3:1\\n"
		     "    at <anonymous>\\n\"}",
		     "type TypeError|frame shop.#.js pay|frame lib/basket.js Basket.end|"
		     "frame express/index.js*");
	expect_words("{\"exception\":\"Error\",\"tb_text\":\"pay@https://h.example/a/b/shop.js:1:2"
		     "\\n@https://h.example/a/b/shop.js:9:9\\n\"}",
		     "frame b/shop.js pay|frame b/shop.js|type Error");
}

static void traces_of_c(void **state)
{
	(void)state;
	expect_words("{\"exception\":\"SIGSEGV\",\"tb_text\":\"#0  0x00007f in raise () from "
		     "/lib/x86_64-linux-gnu/libc.so.6\\n#1  0x55 in pay (n=7, s=0x0 \\\" at \\\") "
		     "at ../src/shop.c:12\\n#2  main.constprop.0 () at shop.c:1\\n\"}",
		     "frame x86_64-linux-gnu/libc.so.6 raise*|frame src/shop.c pay|frame shop.c "
		     "main|type SIGSEGV");
	expect_words("{\"tb_text\":\"#0 0x4f in (anonymous namespace)::work(int) /a/b/w.cc:1:2\\n"
		     "./prog(pay+0x1a) [0x7f00]\\n\"}",
		     "frame b/w.cc (anonymous namespace)::work|frame prog pay");
}

static void statements_of_time_outs(void **state)
{
	(void)state;
	expect_words("{\"exception\":\"TimeoutError\",\"value\":\"SELECT a FROM t1 WHERE b IN (1, "
		     "2,3) AND c = 'x''y' -- 7\"}",
		     "type TimeoutError|statement select a from t1 where b in (?) and c = ?");
	expect_same("{\"exception\":\"QueryCanceled\",\"value\":\"canceling statement due to "
		    "statement timeout\\n[SQL: SELECT %(a)s]\\n[parameters: {'a': 7}]\"}",
		    "{\"exception\":\"QueryCanceled\",\"value\":\"canceling statement due to "
		    "statement timeout\\n[SQL: select 12]\"}");
	expect_words("{\"exception\":\"SoftTimeout\",\"timeline\":[[0,1,\"SQL-m\",\"SELECT 1\"],"
		     "[1,9,\"SQL-m\",\"UPDATE t SET a = 7\"]]}",
		     "type SoftTimeout|statement update t set a = ?");
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* Names are on disk, so those of a version stay: of the bytes 01, 08 and seven 00, KeyError, XXH3
 * with seed 1, as libxxhash gives it. */
static void the_name_of_a_group(void **state)
{
	(void)state;
	assert_true(slice_equal(group_of("{\"exception\":\"KeyError\"}").name,
				SLICE("1-541d1cfa6743c1f07c79")));
}

/* ---- Hostile --------------------------------------------------------------------------------- */

/* A program was crashed from outside by such a name once: it looked behind its end. */
static void names_that_are_only_brackets(void **state)
{
	static const char *const lines[] = {
		"#0  0x1 in (anonymous namespace)",
		"#0  0x1 in (anonymous namespace",
		"#0  (",
		"#0  operator()",
		"#0  {lambda(",
		"at (",
		"at (anonymous namespace)",
		"(anonymous namespace)",
		"#1  ",
		"at a(",
		"at )",
		"at ()",
		"@:1:1",
		"a@:1:1",
		"(+0x) [0x]",
		"x() [0x",
		"File \\\"",
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		char report[256];
		snprintf(report, sizeof(report), "{\"tb_text\":\"%s\"}", lines[i]);
		group_of(report);
	}
	expect_different("{\"tb_text\":\"#0  0x1 in (anonymous namespace)::a ()\"}",
			 "{\"tb_text\":\"#0  0x1 in (anonymous namespace)::b ()\"}");
}

/* A long name is cut, but stays another one than its likes. */
static void long_names(void **state)
{
	char one[1200], other[1200];
	(void)state;
	memset(one, 'a', 1000);
	snprintf(one + 1000, 100, "x");
	memcpy(other, one, sizeof(one));
	other[1000] = 'y';
	char *a = arena_printf(&arena, "{\"fingerprint\":[\"%s\"]}", one);
	char *b = arena_printf(&arena, "{\"fingerprint\":[\"%s\"]}", other);
	expect_different(a, b);
	assert_int_equal(group_of(a).words[0].text.len, FAULT_GROUP_WORD_MAX_BYTES);
}

static void titles(void **state)
{
	(void)state;
	struct fault_group group =
		group_of("{\"exception\":\"E\",\"value\":\" no 7\\nmore\",\"context\":\"c\"}");
	assert_true(slice_equal(group.title, SLICE("E: no 7")));
	group = group_of("{\"context\":\"/page\"}");
	assert_true(slice_equal(group.title, SLICE("/page")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fingerprint_goes_first),
		cmocka_unit_test(the_message_counts_where_no_frame_does),
		cmocka_unit_test(what_varies_in_messages),
		cmocka_unit_test(frames_without_lines),
		cmocka_unit_test(recursion_is_folded),
		cmocka_unit_test(two_hashes),
		cmocka_unit_test(groups_of_exceptions),
		cmocka_unit_test(frames_of_go),
		cmocka_unit_test(a_trace_of_python),
		cmocka_unit_test(a_trace_of_java),
		cmocka_unit_test(a_trace_of_javascript),
		cmocka_unit_test(traces_of_c),
		cmocka_unit_test(statements_of_time_outs),
		cmocka_unit_test(the_name_of_a_group),
		cmocka_unit_test(names_that_are_only_brackets),
		cmocka_unit_test(long_names),
		cmocka_unit_test(titles),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
