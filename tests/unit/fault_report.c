/* Reports of both dialects: what becomes of each part of a document. Expected bodies and canonical
 * texts are written by hand, from the design note of O and the documents of python-oops. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "fault/attributes.h"
#include "fault/report.h"

enum { KEY = 77, BODY_MAX_BYTES = 1 << 16 };

static struct arena arena;
static struct fault_report report;
static struct errbuf error;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, 8 << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static int read_as(const char *text, enum fault_dialect dialect, struct slice id)
{
	struct fault_report_options options = {KEY, &fault_masks_preset, BODY_MAX_BYTES};
	struct json *document;
	error.text[0] = 0;
	if (json_parse(slice_of(text), &arena, &document, &error))
		fail_msg("%s: %s", text, error.text);
	return fault_report_read(document, dialect, id, &options, &arena, &report, &error);
}

static void read_lax(const char *text)
{
	struct fault_report_options options = {KEY, &fault_masks_preset, BODY_MAX_BYTES};
	struct json *document;
	if (json_parse_lax(slice_of(text), &arena, &document, &error) ||
	    fault_report_read(document, FAULT_OF_OOPS, (struct slice){NULL, 0}, &options, &arena,
			      &report, &error))
		fail_msg("%s: %s", text, error.text);
}

static void read_oops(const char *text)
{
	if (read_as(text, FAULT_OF_OOPS, (struct slice){NULL, 0}))
		fail_msg("%s: %s", text, error.text);
}

static void read_python(const char *text)
{
	if (read_as(text, FAULT_OF_PYTHON, (struct slice){NULL, 0}))
		fail_msg("%s: %s", text, error.text);
}

static void expect_slice(struct slice found, const char *expected)
{
	if (!slice_equal(found, slice_of(expected)))
		fail_msg("%.*s\nand not\n%s", (int)found.len, found.data, expected);
}

static void expect_whole_body(const char *expected)
{
	expect_slice(report.body, expected);
}

/* Of what is refused, which what_is_refused_is_in_the_body has, only that it is there. */
static void expect_body(const char *expected)
{
	static const char begin[] = "\"refused\":[", end[] = "\"]";
	char rest[BODY_MAX_BYTES];
	struct slice body = report.body;
	if (!report.refused_count) {
		expect_slice(body, expected);
		return;
	}
	const char *from = memmem(body.data, body.len, begin, strlen(begin));
	assert_non_null(from);
	size_t before = (size_t)(from - body.data);
	const char *to = memmem(from, body.len - before, end, strlen(end));
	assert_non_null(to);
	to += strlen(end);
	if (*to == ',')
		to++;
	else if (before > 1)
		before--; /* the comma */
	size_t after = (size_t)(body.data + body.len - to);
	memcpy(rest, body.data, before);
	memcpy(rest + before, to, after);
	expect_slice((struct slice){rest, before + after}, expected);
}

static void expect_fact(enum fault_text fact, const char *expected)
{
	expect_slice(report.facts.texts[fact], expected);
}

/* One part was refused, in a sentence that begins so. */
static void expect_refused(const char *begin)
{
	assert_int_equal(report.refused_count, 1);
	struct slice sentence = report.refused[0];
	if (sentence.len < strlen(begin) || memcmp(sentence.data, begin, strlen(begin)) != 0)
		fail_msg("%.*s\nand not\n%s", (int)sentence.len, sentence.data, begin);
}

static void expect_nothing_refused(void)
{
	if (report.refused_count)
		fail_msg("%.*s", (int)report.refused[0].len, report.refused[0].data);
}

/* ---- The two dialects ----------------------------------------------------------------------- */

static void a_report_as_the_design_note_has_it(void **state)
{
	(void)state;
	read_oops(
		"{\"id\":\"OOPS-1\",\"date\":1298764800,\"bug.launchpad\":\"12\","
		"\"HTTP.method\":\"GET\",\"REQUEST.page\":\"2\",\"context\":\"Bug:+index\","
		"\"exception\":\"Timeout\",\"URL\":\"http://h/\",\"username\":\"Ann\","
		"\"userid\":\"7\",\"branch\":\"trunk\",\"revision\":\"100\",\"duration\":\"1500\","
		"\"timeline\":[{\"start\":\"0\",\"length\":\"34\",\"database\":\"main\","
		"\"statment\":\"SELECT 1\",\"callstack\":\"x\"}],\"level\":\"error\","
		"\"release\":\"1.2\",\"environment\":\"live\",\"host\":\"web1\",\"more\":[1,2.50]"
		"}");
	expect_nothing_refused();
	expect_slice(report.id, "OOPS-1");
	assert_true(report.id_given);
	expect_body("{\"HTTP.method\":\"GET\",\"REQUEST.page\":\"2\",\"URL\":\"http://h/\","
		    "\"branch\":\"trunk\",\"bug.launchpad\":\"12\",\"context\":\"Bug:+index\","
		    "\"duration\":1500,\"environment\":\"live\",\"exception\":\"Timeout\","
		    "\"host\":\"web1\",\"level\":\"error\",\"more\":[1,2.50],\"release\":\"1.2\","
		    "\"reported.date\":1298764800,\"revision\":\"100\","
		    "\"timeline\":[{\"callstack\":\"x\",\"database\":\"main\",\"length\":\"34\","
		    "\"start\":\"0\",\"statment\":\"SELECT 1\"}],\"userid\":\"7\","
		    "\"username\":\"Ann\"}");
	expect_fact(FAULT_CONTEXT, "Bug:+index");
	expect_fact(FAULT_EXCEPTION, "Timeout");
	expect_fact(FAULT_LEVEL, "error");
	expect_fact(FAULT_RELEASE, "1.2");
	expect_fact(FAULT_ENVIRONMENT, "live");
	expect_fact(FAULT_HOST, "web1");
	expect_fact(FAULT_USER, "7");
	assert_int_equal(report.facts.duration_us, 1500000);
	assert_int_equal(report.facts.statements, 1);
}

static void a_report_of_python_oops(void **state)
{
	(void)state;
	read_python("{\"id\":\"OOPS-0123456789abcdef0123456789abcdef\",\"type\":\"ValueError\","
		    "\"value\":\"no\",\"time\":\"2026-11-24T10:00:00\",\"hostname\":\"web1\","
		    "\"branch_nick\":\"trunk\",\"revno\":100,\"tb_text\":\"Traceback\","
		    "\"username\":\"Ann\",\"url\":\"http://h/\","
		    "\"req_vars\":{\"HTTP_COOKIE\":\"a=b\",\"PATH\":\"/\"},\"reporter\":\"LP\","
		    "\"topic\":\"Bug:+index\",\"duration\":2.3,"
		    "\"timeline\":[[0,34,\"SQL-main\",\"SELECT 1\"],[40,50,\"http\",\"GET /\"]],"
		    "\"HTTP_STATUS\":\"500\"}");
	expect_nothing_refused();
	expect_slice(report.id, "OOPS-0123456789abcdef0123456789abcdef");
	expect_body("{\"HTTP_STATUS\":\"500\",\"REQUEST.HTTP_COOKIE\":\"<hidden>\","
		    "\"REQUEST.PATH\":\"/\",\"URL\":\"http://h/\",\"branch\":\"trunk\","
		    "\"context\":\"Bug:+index\",\"duration\":2300,\"exception\":\"ValueError\","
		    "\"host\":\"web1\",\"reported.date\":\"2026-11-24T10:00:00\","
		    "\"reporter\":\"LP\",\"revision\":\"100\",\"tb_text\":\"Traceback\","
		    "\"timeline\":[[0,34,\"SQL-main\",\"SELECT 1\"],[40,50,\"http\",\"GET /\"]],"
		    "\"username\":\"Ann\",\"value\":\"no\"}");
	expect_fact(FAULT_USER, "Ann");
	assert_int_equal(report.facts.duration_us, 2300000);
	assert_int_equal(report.facts.statements, 1);
}

static void names_of_both_dialects_beside_each_other(void **state)
{
	(void)state;
	read_oops("{\"topic\":\"a\"}");
	expect_body("{\"context\":\"a\"}");
	read_oops("{\"topic\":\"a\",\"context\":\"b\",\"url\":\"c\"}");
	expect_body("{\"URL\":\"c\",\"context\":\"b\",\"topic\":\"a\"}");
	expect_nothing_refused();
	read_python("{\"time\":1,\"date\":2}");
	expect_body("{\"reported.date\":2,\"time\":1}");
	expect_nothing_refused();
	read_oops("{\"date\":2,\"reported.date\":3}");
	expect_body("{\"reported.date\":3}");
	expect_refused("date: it is left out, since reported.date is there");
}

static void variables_of_a_request(void **state)
{
	(void)state;
	read_python("{\"req_vars\":[[\"a\",\"1\"],[\"b\",[\"x\",2]],[\"Cookie\",\"x\"]]}");
	expect_body(
		"{\"REQUEST.Cookie\":\"<hidden>\",\"REQUEST.a\":\"1\",\"REQUEST.b\":[\"x\",2]}");
	expect_nothing_refused();
	read_python("{\"req_vars\":[[\"a\",\"1\"],[\"b\"],[3,4],\"c\",[\"d\",\"2\",\"e\"]]}");
	expect_body("{\"REQUEST.a\":\"1\",\"req_vars\":[[\"b\"],[3,4],\"c\",[\"d\",\"2\",\"e\"]]}");
	expect_refused("req_vars: 4 of its items are no pairs");
	read_python("{\"req_vars\":\"x\"}");
	expect_body("{\"req_vars\":\"x\"}");
	expect_refused("req_vars: neither an object nor a list of pairs");
	read_python("{\"req_vars\":null}");
	expect_body("{\"req_vars\":null}");
	expect_nothing_refused();
	read_python("{\"req_vars\":{},\"a\":1}");
	expect_body("{\"a\":1}");
	read_python("{\"req_vars\":[[\"a\",1],[\"a\",2]],\"REQUEST.a\":0}");
	expect_body("{\"REQUEST.a\":2}");
	assert_int_equal(report.refused_count, 2);
}

/* ---- Shapes --------------------------------------------------------------------------------- */

static void known_texts_are_texts(void **state)
{
	(void)state;
	read_oops("{\"revision\":12345678901234567890123,\"level\":true,\"branch\":1.50,"
		  "\"release\":null,\"other\":7}");
	expect_body("{\"branch\":\"1.50\",\"level\":\"true\",\"other\":7,\"release\":null,"
		    "\"revision\":\"12345678901234567890123\"}");
	expect_nothing_refused();
	read_oops("{\"exception\":[\"a\"]}");
	expect_body("{\"exception\":[\"a\"]}");
	expect_fact(FAULT_EXCEPTION, "");
	expect_refused("exception: it is no text");
}

static void users(void **state)
{
	(void)state;
	read_python("{\"username\":[1,\"Ann\"]}");
	expect_body("{\"username\":[1,\"Ann\"]}");
	expect_fact(FAULT_USER, "");
	expect_nothing_refused();
	read_oops("{\"userid\":\"\",\"username\":\"Ann\"}");
	expect_fact(FAULT_USER, "Ann");
	read_oops("{\"userid\":7,\"username\":\"Ann\"}");
	expect_fact(FAULT_USER, "7");
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		enum fault_dialect dialect;
		int64_t us;
		const char *body;
		bool refused;
	} cases[] = {
		{"1500", FAULT_OF_OOPS, 1500000, "1500", false},
		{"\"34.5\"", FAULT_OF_OOPS, 34500, "34.5", false},
		{"\"+5\"", FAULT_OF_OOPS, 5000, "5.0", false},
		{"0.0004", FAULT_OF_OOPS, 0, "0.0004", false},
		{"0", FAULT_OF_PYTHON, 0, "0", false},
		{"1.5", FAULT_OF_PYTHON, 1500000, "1500", false},
		{"0.0125", FAULT_OF_PYTHON, 12500, "12.5", false},
		{"\"2\"", FAULT_OF_PYTHON, 2000000, "2000", false},
		{"31622400000", FAULT_OF_OOPS, 31622400000000, "31622400000", false},
		{"31622400001", FAULT_OF_OOPS, -1, "31622400001", true},
		{"-1", FAULT_OF_PYTHON, -1, "-1", false},
		{"-1", FAULT_OF_OOPS, -1, "-1", true},
		{"-0.5", FAULT_OF_PYTHON, -1, "-0.5", true},
		{"1e400", FAULT_OF_OOPS, -1, "1e400", true},
		{"\"NaN\"", FAULT_OF_OOPS, -1, "\"NaN\"", true},
		{"\"-Infinity\"", FAULT_OF_OOPS, -1, "\"-Infinity\"", true},
		{"\"\"", FAULT_OF_OOPS, -1, "\"\"", true},
		{"\"-7\"", FAULT_OF_OOPS, -1, "\"-7\"", true},
		{"\"5 ms\"", FAULT_OF_OOPS, -1, "\"5 ms\"", true},
		{"true", FAULT_OF_OOPS, -1, "true", true},
		{"[1]", FAULT_OF_OOPS, -1, "[1]", true},
		{"null", FAULT_OF_OOPS, -1, "null", false},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[100], body[100];
		snprintf(text, sizeof(text), "{\"duration\":%s}", cases[i].text);
		snprintf(body, sizeof(body), "{\"duration\":%s}", cases[i].body);
		assert_int_equal(read_as(text, cases[i].dialect, (struct slice){NULL, 0}), 0);
		expect_body(body);
		assert_int_equal(report.facts.duration_us, cases[i].us);
		assert_int_equal(report.refused_count, cases[i].refused);
	}
	read_oops("{}");
	assert_int_equal(report.facts.duration_us, -1);
	assert_int_equal(report.facts.statements, -1);
}

static void timelines(void **state)
{
	(void)state;
	read_oops("{\"timeline\":[[1,2,\"sql\",\"x\"],7]}");
	assert_int_equal(report.facts.statements, 1);
	expect_body("{\"timeline\":[[1,2,\"sql\",\"x\"],7]}");
	expect_refused("timeline: 1 of its 2 items");
	read_oops("{\"timeline\":{\"a\":1}}");
	assert_int_equal(report.facts.statements, -1);
	expect_refused("timeline: it is no list");
	read_oops("{\"timeline\":null}");
	expect_nothing_refused();
	/* O keeps texts only, so that a list is one. */
	read_oops("{\"timeline\":\"[{\\\"statement\\\":\\\"SET password='x'\\\"}]\"}");
	assert_int_equal(report.facts.statements, 1);
	expect_body("{\"timeline\":[{\"statement\":\"SET password='<hidden>'\"}]}");
	expect_nothing_refused();
	/* Its secrets are those of the list, and not of a text. */
	read_oops("{\"timeline\":\"[{\\\"statement\\\":{\\\"token\\\":{\\\"a\\\":\\\"x\\\"}}}]\"}");
	expect_body("{\"timeline\":[{\"statement\":{\"token\":{\"a\":\"<hidden>\"}}}]}");
	read_oops("{\"timeline\":\"[cut\"}");
	expect_body("{\"timeline\":\"[cut\"}");
	expect_refused("timeline: it is no list");
}

/* `kept` zeros, and a hash in 16 digits. */
static void expect_closed(enum fault_text fact, size_t kept)
{
	struct slice text = report.facts.texts[fact];
	char again[FAULT_CONTEXT_MAX_BYTES];
	assert_int_equal(text.len, kept + 17);
	for (size_t i = 0; i < kept; i++)
		assert_int_equal(text.data[i], '0');
	assert_int_equal(text.data[kept], '~');
	for (size_t i = kept + 1; i < text.len; i++)
		assert_non_null(memchr("0123456789abcdef", text.data[i], 16));
	/* What is one stays so. */
	assert_int_equal(fault_fact_cut(again, fact, text), text.len);
	assert_memory_equal(again, text.data, text.len);
}

static void facts_are_cut_between_characters(void **state)
{
	char text[2000], expected[600];
	(void)state;
	/* 511 bytes and a character of two: 513. */
	snprintf(text, sizeof(text), "{\"context\":\"%0511d\xc3\xa9\",\"host\":\"%0201d\"}", 0, 0);
	read_oops(text);
	expect_closed(FAULT_CONTEXT, 495);
	expect_closed(FAULT_HOST, 183);
	struct slice one = arena_copy(&arena, report.facts.texts[FAULT_HOST]);
	/* 494 bytes and a character of two have no room before the hash. */
	snprintf(text, sizeof(text), "{\"context\":\"%0494d\xc3\xa9%0100d\",\"host\":\"%0200d1\"}",
		 0, 0, 0);
	read_oops(text);
	expect_closed(FAULT_CONTEXT, 494);
	assert_false(slice_equal(report.facts.texts[FAULT_HOST], one));
	/* U+FFFD stands for a NUL, and is longer. */
	read_oops("{\"username\":\"a\\u0000b\"}");
	expect_fact(FAULT_USER, "a\xef\xbf\xbd"
				"b");
	/* One less, and it fits. */
	snprintf(text, sizeof(text), "{\"context\":\"%0510d\xc3\xa9\"}", 0);
	read_oops(text);
	snprintf(expected, sizeof(expected), "%0510d\xc3\xa9", 0);
	expect_fact(FAULT_CONTEXT, expected);
}

/* ---- Names ---------------------------------------------------------------------------------- */

static void names_that_are_too_long(void **state)
{
	char name[400], text[600], body[600];
	(void)state;
	snprintf(name, sizeof(name), "%0200d", 0);
	snprintf(text, sizeof(text), "{\"%s\":1}", name);
	read_oops(text);
	expect_body(text);
	expect_nothing_refused();
	/* 166 bytes and a character of two, of which only one would fit in 167. */
	snprintf(name, sizeof(name), "%0166d\xc3\xa9%050d", 0, 0);
	snprintf(text, sizeof(text), "{\"%s\":1}", name);
	read_oops(text);
	struct hash128 hash = hash128(name, strlen(name), 0);
	snprintf(body, sizeof(body), "{\"%0166d~%016" PRIx64 "%016" PRIx64 "\":1}", 0, hash.high,
		 hash.low);
	expect_body(body);
	expect_refused("the name \"000");
	read_oops("{\"\":1}");
	hash = hash128("", 0, 0);
	snprintf(body, sizeof(body), "{\"~%016" PRIx64 "%016" PRIx64 "\":1}", hash.high, hash.low);
	expect_body(body);
	expect_refused("the name \"\" has 0 bytes");
}

static void of_doubled_names_the_last_counts(void **state)
{
	(void)state;
	read_oops("{\"a\":1,\"b\":{\"y\":1,\"x\":2,\"y\":3},\"a\":2}");
	expect_body("{\"a\":2,\"b\":{\"x\":2,\"y\":3}}");
	expect_refused("\"a\" is there more than once");
	read_oops("{\"id\":\"x\",\"id\":\"y\"}");
	expect_slice(report.id, "y");
	expect_body("{}");
}

static void more_is_refused_than_is_named(void **state)
{
	char text[4000] = "{\"a\":0";
	size_t len = strlen(text);
	(void)state;
	for (int i = 0; i < FAULT_REFUSED_MAX + 5; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, ",\"a\":%d", i);
	snprintf(text + len, sizeof(text) - len, "}");
	read_oops(text);
	assert_int_equal(report.refused_count, FAULT_REFUSED_MAX + 5);
	assert_true(report.refused[FAULT_REFUSED_MAX - 1].len > 0);
	expect_body("{\"a\":24}");
	len = (size_t)snprintf(text, sizeof(text), "{\"a\":24,\"refused\":[");
	for (int i = 0; i < FAULT_REFUSED_MAX; i++)
		len += (size_t)snprintf(
			text + len, sizeof(text) - len,
			"\"\\\"a\\\" is there more than once: the last one counts\",");
	snprintf(text + len, sizeof(text) - len, "\"5 more\"]}");
	expect_whole_body(text);
}

#define DURATION_REFUSED                                                                           \
	"\"refused\":[\"duration: no time from 0 to 366 days, so it is not known; "                \
	"it is kept as it is\""

static void what_is_refused_is_in_the_body(void **state)
{
	(void)state;
	read_oops("{\"timeline\":7,\"duration\":\"abc\"}");
	expect_whole_body("{\"duration\":\"abc\"," DURATION_REFUSED
			  ",\"timeline: it is no list, and is kept as it is\"],\"timeline\":7}");
	read_oops("{\"duration\":-1}");
	expect_whole_body("{\"duration\":-1," DURATION_REFUSED "]}");
	read_python("{\"duration\":-2,\"a\":1}");
	expect_whole_body("{\"a\":1,\"duration\":-2," DURATION_REFUSED "]}");
	assert_int_equal(read_as("{\"release\":[1]}", FAULT_OF_SENTRY, SLICE("x")), 0);
	expect_whole_body("{\"refused\":[\"release: it is no text, and is kept as it is\"],"
			  "\"release\":[1]}");
	read_oops("{\"duration\":1}");
	expect_whole_body("{\"duration\":1}");
}

/* It has another name, since the report has its own under this one. */
static void the_refused_of_a_sender(void **state)
{
	(void)state;
	read_oops("{\"refused\":[\"x\"]}");
	expect_whole_body("{\"reported.refused\":[\"x\"]}");
	read_python("{\"refused\":\"x\",\"duration\":-2}");
	expect_whole_body("{\"duration\":-2," DURATION_REFUSED "],\"reported.refused\":\"x\"}");
	assert_int_equal(read_as("{\"refused\":{\"a\":1}}", FAULT_OF_SENTRY, SLICE("x")), 0);
	expect_whole_body("{\"reported.refused\":{\"a\":1}}");
	read_oops("{\"refused\":1,\"reported.refused\":2}");
	expect_whole_body(
		"{\"refused\":[\"refused: it is left out, since reported.refused is there, too\"],"
		"\"reported.refused\":2}");
}

static void a_secret_in_a_name_is_in_no_sentence(void **state)
{
	(void)state;
	read_oops("{\"http://a:S3CRET@b/\":1,\"http://a:S3CRET@b/\":2}");
	expect_body("{\"http://a:<hidden>@b/\":2}");
	expect_refused("\"http://a:<hidden>@b/\" is there more than once");
}

/* ---- Ids and digests ------------------------------------------------------------------------ */

static struct hash128 digest_of(const char *canonical)
{
	return hash128(canonical, strlen(canonical), KEY);
}

static void expect_digest(const char *canonical)
{
	struct hash128 expected = digest_of(canonical);
	assert_true(report.digest.low == expected.low && report.digest.high == expected.high);
}

static void the_digest_is_of_the_content(void **state)
{
	(void)state;
	read_oops("{\"b\":[1,{\"d\":\"x\",\"c\":null}], \"a\":5, \"id\":\"one\"}");
	expect_digest("{\"a\":5.0,\"b\":[1.0,{\"c\":null,\"d\":\"x\"}]}");
	/* Other order, other spelling, other id, doubled names. */
	read_oops("{\"a\":7,\"a\":5.0,\"id\":\"two\",\"b\":[1e0,{\"c\":3,\"c\":null,\"d\":"
		  "\"\\u0078\"}]}");
	expect_digest("{\"a\":5.0,\"b\":[1.0,{\"c\":null,\"d\":\"x\"}]}");
	/* Before masking and mapping. */
	read_python("{\"password\":\"x\",\"topic\":\"t\"}");
	expect_digest("{\"password\":\"x\",\"topic\":\"t\"}");
	/* A timeline is as it came, too. */
	read_oops("{\"timeline\":\"[]\"}");
	expect_digest("{\"timeline\":\"[]\"}");
	/* What a reader of a datedir notes is no content. */
	read_python("{\"datedir_repo_filepath\":\"/a\",\"id\":\"x\"}");
	expect_digest("{}");
	expect_body("{\"datedir_repo_filepath\":\"/a\"}");
}

static void without_an_id_it_is_made_of_the_digest(void **state)
{
	struct hash128 digest = digest_of("{\"a\":1.0}");
	char id[100];
	(void)state;
	snprintf(id, sizeof(id), "OOPS-%016" PRIx64 "%016" PRIx64, digest.high, digest.low);
	read_oops("{\"a\":1}");
	expect_slice(report.id, id);
	assert_false(report.id_given);
	expect_nothing_refused();
	read_oops("{\"a\":1,\"id\":null}");
	expect_slice(report.id, id);
	expect_nothing_refused();
	/* What is refused of it, and is in the body, is no content. */
	digest = digest_of("{\"duration\":\"x\"}");
	snprintf(id, sizeof(id), "OOPS-%016" PRIx64 "%016" PRIx64, digest.high, digest.low);
	read_oops("{\"duration\":\"x\"}");
	expect_slice(report.id, id);
	assert_int_equal(report.refused_count, 1);
	/* What is kept of it is content. */
	digest = digest_of("{\"a\":1.0,\"id\":\"a/b\"}");
	snprintf(id, sizeof(id), "OOPS-%016" PRIx64 "%016" PRIx64, digest.high, digest.low);
	read_oops("{\"a\":1,\"id\":\"a/b\"}");
	expect_slice(report.id, id);
	assert_false(report.id_given);
	expect_body("{\"a\":1,\"reported.id\":\"a/b\"}");
	expect_refused("id: it cannot be one");
	read_oops("{\"id\":{\"a\":1}}");
	expect_body("{\"reported.id\":{\"a\":1}}");
}

static void ids_of_the_document_and_beside_it(void **state)
{
	(void)state;
	read_oops("{\"id\":17}");
	expect_slice(report.id, "17");
	/* It is no number of a card here, but an address. */
	read_oops("{\"id\":\"4111111111111111\"}");
	expect_slice(report.id, "4111111111111111");
	assert_int_equal(read_as("{\"id\":\"a\"}", FAULT_OF_OOPS, SLICE("b")), 0);
	expect_slice(report.id, "b");
	assert_true(report.id_given);
	expect_body("{\"reported.id\":\"a\"}");
	expect_nothing_refused();
	assert_int_equal(read_as("{\"id\":\"b\"}", FAULT_OF_OOPS, SLICE("b")), 0);
	expect_body("{}");
	assert_int_equal(read_as("{}", FAULT_OF_OOPS, SLICE("a b")), ERR_INVALID);
	assert_string_equal(error.text, "\"a b\" cannot be the id of a report: 1 to 200 bytes of "
					"UTF-8 without /, blanks and control characters, and not "
					"days, groups, live, messages or "
					"projects");
	assert_int_equal(read_as("{}", FAULT_OF_OOPS, SLICE("")), ERR_INVALID);
}

static void what_can_be_an_id(void **state)
{
	static const char *const good[] = {"a",   "day",      "Groups",  "OOPS-689S6",      "0",
					   "...", "\xc3\xa9", "a%2Fb?#", "\xf0\x9f\x98\x80"};
	static const char *const bad[] = {"",       ".",    "..",        "a/b",           "/",
					  "a b",    " a",   "a\n",       "a\x7f",         "\x01",
					  "\xc3",   "\xff", "a\xc2\x85", "a\xe2\x80\xae", "days",
					  "groups", "live", "messages",  "projects"};
	char text[FAULT_ID_MAX_BYTES + 2];
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(fault_id_valid(slice_of(good[i])));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(fault_id_valid(slice_of(bad[i])));
	memset(text, 'a', sizeof(text));
	assert_true(fault_id_valid((struct slice){text, FAULT_ID_MAX_BYTES}));
	assert_false(fault_id_valid((struct slice){text, FAULT_ID_MAX_BYTES + 1}));
	assert_false(fault_id_valid((struct slice){"a\0b", 3}));
}

/* ---- Limits --------------------------------------------------------------------------------- */

static void what_is_no_report(void **state)
{
	static const char *const texts[] = {"[]", "null", "7", "\"x\"", "[{\"a\":1}]"};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(read_as(texts[i], FAULT_OF_OOPS, (struct slice){NULL, 0}),
				 ERR_INVALID);
		assert_string_equal(error.text, "a report is an object, and this is none");
	}
}

static int read_small(const char *text, size_t body_max_bytes, size_t memory_max_bytes)
{
	struct fault_report_options options = {KEY, &fault_masks_preset, body_max_bytes};
	struct arena small;
	struct json *document;
	arena_init(&small, memory_max_bytes);
	assert_int_equal(json_parse(slice_of(text), &arena, &document, &error), 0);
	error.text[0] = 0;
	int err = fault_report_read(document, FAULT_OF_OOPS, (struct slice){NULL, 0}, &options,
				    &small, &report, &error);
	report.body = arena_copy(&arena, report.body);
	report.id = arena_copy(&arena, report.id);
	report.facts.texts[FAULT_CONTEXT] = arena_copy(&arena, report.facts.texts[FAULT_CONTEXT]);
	arena_release(&small);
	return err;
}

static void a_body_has_a_maximum(void **state)
{
	(void)state;
	assert_int_equal(read_small("{\"abc\":\"de\"}", 12, 1 << 20), 0);
	assert_int_equal(read_small("{\"abc\":\"def\"}", 12, 1 << 20), ERR_LIMIT);
	assert_string_equal(error.text, "the report has more than 12 bytes");
	/* What is refused is said where there is room for it, and the report is taken. */
	static const char bare[] = "{\"duration\":\"x\"}";
	static const char whole[] = "{\"duration\":\"x\"," DURATION_REFUSED "]}";
	assert_int_equal(read_small(bare, strlen(whole), 1 << 20), 0);
	expect_whole_body(whole);
	assert_int_equal(read_small(bare, strlen(whole) - 1, 1 << 20), 0);
	expect_whole_body(bare);
	assert_int_equal(report.refused_count, 1);
	assert_int_equal(read_small(bare, strlen(bare), 1 << 20), 0);
	assert_int_equal(read_small(bare, strlen(bare) - 1, 1 << 20), ERR_LIMIT);
}

/* Whatever memory there is, a report is whole or none. */
static void memory_has_a_maximum(void **state)
{
	struct hash128 digest =
		digest_of("{\"\":1.0,\"a\":2.0,\"b\":{\"y\":\"token=x\",\"z\":1.0},"
			  "\"context\":\"c\",\"level\":[],\"req_vars\":[[\"a\",1.0]],"
			  "\"timeline\":\"[[1,2]]\"}");
	struct hash128 name = hash128("", 0, 0);
	char expected[300];
	int err = ERR_LIMIT;
	(void)state;
	for (size_t max = 0; err; max += 16) {
		err = read_small("{\"b\":{\"z\":1,\"y\":\"token=x\"},\"a\":1,\"a\":2,"
				 "\"context\":\"c\",\"level\":[],\"\":1,\"req_vars\":[[\"a\",1]],"
				 "\"timeline\":\"[[1,2]]\"}",
				 1000, max);
		assert_true(err == 0 || err == ERR_LIMIT);
		assert_true(err == 0 || error.text[0]);
		assert_true(max < 1 << 16);
	}
	snprintf(expected, sizeof(expected), "OOPS-%016" PRIx64 "%016" PRIx64, digest.high,
		 digest.low);
	expect_slice(report.id, expected);
	expect_fact(FAULT_CONTEXT, "c");
	snprintf(expected, sizeof(expected),
		 "{\"REQUEST.a\":1,\"a\":2,\"b\":{\"y\":\"token=<hidden>\",\"z\":1},"
		 "\"context\":\"c\",\"level\":[],\"timeline\":[[1,2]],"
		 "\"~%016" PRIx64 "%016" PRIx64 "\":1}",
		 name.high, name.low);
	expect_body(expected);
	assert_int_equal(report.refused_count, 3);
}

static void nesting_as_deep_as_a_tree_has_it(void **state)
{
	char text[300] = "{\"a\":";
	size_t len = strlen(text);
	(void)state;
	memset(text + len, '[', JSON_DEPTH_MAX - 1);
	memset(text + len + JSON_DEPTH_MAX - 1, ']', JSON_DEPTH_MAX - 1);
	len += 2 * (JSON_DEPTH_MAX - 1);
	memcpy(text + len, "}", 2);
	read_oops(text);
	expect_body(text);
	/* A list within a text is as deep as the rest may be, or it stays a text. */
	for (int levels = JSON_DEPTH_MAX - 1; levels <= JSON_DEPTH_MAX; levels++) {
		len = (size_t)snprintf(text, sizeof(text), "{\"timeline\":\"");
		memset(text + len, '[', (size_t)levels);
		memset(text + len + levels, ']', (size_t)levels);
		memcpy(text + len + 2 * levels, "\"}", 3);
		read_oops(text);
		static const char list[] = "\"timeline\":[";
		bool is_list = memmem(report.body.data, report.body.len, list, strlen(list));
		assert_int_equal(is_list, levels < JSON_DEPTH_MAX);
	}
}

static void what_was_mended_is_named(void **state)
{
	(void)state;
	read_lax("{\"id\":\"1\",\"password\":\"x\",\"m\":\"a\xff\",\"n\":[{\"b\":\"cd");
	expect_whole_body(
		"{\"m\":\"a\xef\xbf\xbd\",\"n\":[{\"b\":\"cd\"}],\"password\":\"<hidden>\","
		"\"refused\":[\"id: it is that of the whole report, so the report has another; it "
		"is kept as reported.id\",\"m: U+FFFD stands for what is not UTF-8\",\"n: the "
		"report is cut within it, and what follows is not there\"],\"reported.id\":\"1\"}");
	read_lax("{\"a\":1,\"b");
	expect_whole_body(
		"{\"a\":1,\"refused\":[\"the report is cut, and what follows is not there\"]}");
	char text[300] = "{\"a\":";
	memset(text + 5, '[', JSON_DEPTH_MAX);
	memset(text + 5 + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	text[5 + 2 * JSON_DEPTH_MAX] = '}';
	read_lax(text);
	assert_int_equal(report.refused_count, 1);
	expect_slice(report.refused[0], "a: null stands for what nests deeper than 64");
	read_lax("{\"a\":1}");
	assert_int_equal(report.refused_count, 0);
}

/* No reader gives what is deeper. */
static void nesting_too_deep(void **state)
{
	struct fault_report_options options = {KEY, &fault_masks_preset, BODY_MAX_BYTES};
	struct json nodes[JSON_DEPTH_MAX + 1] = {{.type = JSON_T_OBJECT, .first = &nodes[1]}};
	(void)state;
	for (int i = 1; i <= JSON_DEPTH_MAX; i++)
		nodes[i] = (struct json){.type = JSON_T_ARRAY,
					 .key = SLICE("a"),
					 .count = 1,
					 .first = i < JSON_DEPTH_MAX ? &nodes[i + 1] : NULL};
	assert_int_equal(fault_report_read(nodes, FAULT_OF_OOPS, (struct slice){NULL, 0}, &options,
					   &arena, &report, &error),
			 ERR_LIMIT);
	assert_string_equal(error.text, "the report nests deeper than 64");
	nodes[JSON_DEPTH_MAX - 1].first = NULL;
	assert_int_equal(fault_report_read(nodes, FAULT_OF_OOPS, (struct slice){NULL, 0}, &options,
					   &arena, &report, &error),
			 0);
}

/* ---- Tags ----------------------------------------------------------------------------------- */

static void tags_are_one_fact(void **state)
{
	static const struct {
		const char *tags, *expected;
	} rows[] = {
		{"{\"b\":\"x\",\"a\":\"y\"}", "a\xff"
					      "y\xfe"
					      "b\xff"
					      "x"},
		{"[[\"b\",\"x\"],[\"a\",\"y\"],[\"b\",\"x\"],[\"b\",\"z\"]]", "b\xff"
									      "x\xfe"
									      "a\xff"
									      "y\xfe"
									      "b\xff"
									      "z"},
		{"{\"n\":1.50,\"no\":false,\"yes\":true}", "n\xff"
							   "1.50\xfe"
							   "no\xff"
							   "false\xfe"
							   "yes\xff"
							   "true"},
		{"[[1,2],[\"a\"],[],[null,\"b\"],[\"c\",[1]],\"d\",{\"e\":\"f\"}]", "1\xff"
										    "2"},
		{"{\"a\":null,\"b\":\"\",\"\":\"c\",\"d\":{\"e\":\"f\"}}", ""},
		{"\"text\"", ""},
		{"7", ""},
		{"null", ""},
		{"[]", ""},
		{"{\"k\":\"a,b\\u00ff\\n\"}", "k\xff"
					      "a,b\xc3\xbf\n"},
		{"{\"password\":\"s3cret\"}", "password\xff<hidden>"},
	};
	char text[200];
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(text, sizeof(text), "{\"tags\":%s}", rows[i].tags);
		read_oops(text);
		expect_nothing_refused();
		expect_fact(FAULT_TAGS, rows[i].expected);
	}
	read_oops("{\"other\":{\"a\":\"b\"}}");
	expect_fact(FAULT_TAGS, "");
}

/* 32 bytes of a name, 200 of a value, between characters: two of the same beginning are one. */
static void tags_are_cut(void **state)
{
	char text[1000], expected[300];
	static const char *const ends[] = {"1", "2"};
	(void)state;
	snprintf(text, sizeof(text),
		 "{\"tags\":[[\"%031dé\",\"%0199dé\"],[\"%032d%s\",\"%0200d%s\"],[\"%032d%s\",\"%"
		 "0200d%s\"]]}",
		 0, 0, 0, ends[0], 0, ends[0], 0, ends[1], 0, ends[1]);
	snprintf(expected, sizeof(expected), "%031d\xff%0199d\xfe%032d\xff", 0, 0, 0);
	read_oops(text);
	struct slice tags = report.facts.texts[FAULT_TAGS];
	assert_int_equal(tags.len, 31 + 1 + 199 + 1 + 32 + 1 + 200);
	assert_memory_equal(tags.data, expected, strlen(expected));
}

/* The first twenty of them, by name. */
static void the_first_tags_count(void **state)
{
	char text[1000] = "{\"tags\":{", expected[200] = "";
	(void)state;
	for (int i = 24; i >= 0; i--)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "\"t%02d\":\"%d\"%s", i,
			 i, i ? "," : "}}");
	for (int i = 0; i < 20; i++)
		snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected),
			 "%st%02d\xff%d", i ? "\xfe" : "", i, i);
	read_oops(text);
	expect_fact(FAULT_TAGS, expected);
}

/* ---- The table ------------------------------------------------------------------------------ */

static void rows_of_known_attributes(void **state)
{
	enum fault_named how;
	(void)state;
	assert_string_equal(fault_attribute_find(SLICE("bug.launchpad"), &how)->name, "bug.");
	assert_int_equal(how, FAULT_NAMED_SO);
	assert_string_equal(fault_attribute_find(SLICE("hostname"), &how)->name, "host");
	assert_int_equal(how, FAULT_NAMED_IN_PYTHON);
	assert_string_equal(fault_attribute_find(SLICE("date"), &how)->name, "reported.date");
	assert_int_equal(how, FAULT_NAMED_AS_SENT);
	assert_null(fault_attribute_find(SLICE("bug"), &how));
	assert_null(fault_attribute_find(SLICE("contexts"), &how));
	assert_null(fault_attribute_find(SLICE("Context"), &how));
	assert_null(fault_attribute_find(SLICE(""), &how));
	for (size_t i = 0; i < fault_attribute_count; i++) {
		const struct fault_attribute *row = &fault_attributes[i];
		assert_ptr_equal(fault_attribute_find(slice_of(row->name), &how), row);
		assert_true(row->help[strlen(row->help) - 1] == '.');
		assert_true(row->fact >= -1 && row->fact < FAULT_TEXTS);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_report_as_the_design_note_has_it),
		TEST(a_report_of_python_oops),
		TEST(names_of_both_dialects_beside_each_other),
		TEST(variables_of_a_request),
		TEST(known_texts_are_texts),
		TEST(users),
		TEST(durations),
		TEST(timelines),
		TEST(facts_are_cut_between_characters),
		TEST(tags_are_one_fact),
		TEST(tags_are_cut),
		TEST(the_first_tags_count),
		TEST(names_that_are_too_long),
		TEST(of_doubled_names_the_last_counts),
		TEST(more_is_refused_than_is_named),
		TEST(what_is_refused_is_in_the_body),
		TEST(the_refused_of_a_sender),
		TEST(a_secret_in_a_name_is_in_no_sentence),
		TEST(the_digest_is_of_the_content),
		TEST(without_an_id_it_is_made_of_the_digest),
		TEST(ids_of_the_document_and_beside_it),
		TEST(what_can_be_an_id),
		TEST(what_is_no_report),
		TEST(a_body_has_a_maximum),
		TEST(memory_has_a_maximum),
		TEST(nesting_as_deep_as_a_tree_has_it),
		TEST(nesting_too_deep),
		TEST(what_was_mended_is_named),
		TEST(rows_of_known_attributes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
