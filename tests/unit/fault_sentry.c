/* Events of Sentry's clients as reports. Expected bodies are written by hand, from the documents of
 * the clients' protocol and from what doc/faults.md says of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fault/report.h"

enum { KEY = 77, BODY_MAX_BYTES = 1 << 16 };

static struct arena arena;
static struct fault_report report;

static int start(void **state)
{
	(void)state;
	arena_init(&arena, 8 << 20);
	return 0;
}

static int end(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static void read_event_as(const char *text, const struct fault_masks *masks, struct slice id)
{
	struct fault_report_options options = {KEY, masks, BODY_MAX_BYTES};
	struct errbuf e = {""};
	struct json *document;
	if (json_parse_lax(slice_of(text), &arena, &document, &e) ||
	    fault_report_read(document, FAULT_OF_SENTRY, id, &options, &arena, &report, &e))
		fail_msg("%s: %s", text, e.text);
}

static void read_event_with(const char *text, const struct fault_masks *masks)
{
	read_event_as(text, masks, SLICE("e1"));
}

static void read_event(const char *text)
{
	read_event_with(text, &fault_masks_preset);
}

static void read_event_without_id(const char *text)
{
	read_event_as(text, &fault_masks_preset, (struct slice){NULL, 0});
}

static void expect_body(const char *expected)
{
	if (!slice_equal(report.body, slice_of(expected)))
		fail_msg("%.*s\nand not\n%s", (int)report.body.len, report.body.data, expected);
}

static void expect_fact(enum fault_text fact, const char *expected)
{
	struct slice found = report.facts.texts[fact];
	if (!slice_equal(found, slice_of(expected)))
		fail_msg("%.*s and not %s", (int)found.len, found.data, expected);
}

static void an_event_is_kept_and_known(void **state)
{
	(void)state;
	read_event("{\"exception\":{\"values\":[{\"type\":\"A\",\"value\":\"inner\"},"
		   "{\"type\":\"B\",\"value\":\"outer\"}]},\"transaction\":\"/login\","
		   "\"server_name\":\"web-1\",\"level\":\"error\",\"release\":\"1.2\","
		   "\"environment\":\"prod\",\"timestamp\":1700000000.5,"
		   "\"user\":{\"id\":7,\"email\":\"a@b\"},"
		   "\"request\":{\"url\":\"http://a/b\",\"method\":\"GET\"}}");
	expect_body("{\"HTTP.method\":\"GET\",\"URL\":\"http://a/b\",\"context\":\"/login\","
		    "\"environment\":\"prod\",\"exception\":\"B\","
		    "\"exceptions\":[{\"type\":\"A\",\"value\":\"inner\"},"
		    "{\"type\":\"B\",\"value\":\"outer\"}],\"host\":\"web-1\","
		    "\"level\":\"error\",\"release\":\"1.2\",\"reported.date\":1700000000.5,"
		    "\"request\":{\"method\":\"GET\",\"url\":\"http://a/b\"},"
		    "\"server_name\":\"web-1\",\"timestamp\":1700000000.5,"
		    "\"transaction\":\"/login\",\"user\":{\"email\":\"a@b\",\"id\":7},"
		    "\"userid\":\"7\",\"username\":\"a@b\",\"value\":\"outer\"}");
	expect_fact(FAULT_CONTEXT, "/login");
	expect_fact(FAULT_EXCEPTION, "B");
	expect_fact(FAULT_HOST, "web-1");
	expect_fact(FAULT_LEVEL, "error");
	expect_fact(FAULT_RELEASE, "1.2");
	expect_fact(FAULT_ENVIRONMENT, "prod");
	expect_fact(FAULT_USER, "7");
	assert_int_equal(report.facts.duration_us, -1);
	assert_int_equal(report.refused_count, 0);
}

static void shapes_of_exceptions(void **state)
{
	(void)state;
	static const struct {
		const char *event, *body;
	} cases[] = {
		{"{\"exception\":[{\"type\":\"A\"}]}",
		 "{\"exception\":\"A\",\"exceptions\":[{\"type\":\"A\"}]}"},
		{"{\"exception\":{\"type\":\"A\"}}",
		 "{\"exception\":\"A\",\"exceptions\":{\"type\":\"A\"}}"},
		{"{\"exception\":{\"values\":[null,{\"type\":\"A\"},null],\"x\":1}}",
		 "{\"exception\":\"A\",\"exceptions\":{\"values\":[null,{\"type\":\"A\"},null],"
		 "\"x\":1}}"},
		{"{\"exception\":{\"values\":[]}}", "{\"exceptions\":[]}"},
		{"{\"exception\":null}", "{\"exceptions\":null}"},
		{"{\"exception\":{\"values\":[{\"type\":{\"no\":1}}]}}",
		 "{\"exceptions\":[{\"type\":{\"no\":1}}]}"},
		{"{\"sentry.interfaces.Exception\":[{\"type\":\"A\",\"value\":\"v\"}]}",
		 "{\"exception\":\"A\",\"sentry.interfaces.Exception\":[{\"type\":\"A\",\"value\":"
		 "\"v\"}],\"value\":\"v\"}"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		read_event(cases[i].event);
		expect_body(cases[i].body);
	}
}

static void shapes_of_messages(void **state)
{
	(void)state;
	static const struct {
		const char *event, *body;
	} cases[] = {
		{"{\"message\":\"m\"}", "{\"message\":\"m\",\"value\":\"m\"}"},
		{"{\"message\":{\"formatted\":\"f\"}}",
		 "{\"message\":{\"formatted\":\"f\"},\"value\":\"f\"}"},
		{"{\"logentry\":{\"message\":\"a %s\",\"params\":[1]}}",
		 "{\"logentry\":{\"message\":\"a %s\",\"params\":[1]},\"value\":\"a %s\"}"},
		{"{\"logentry\":{\"formatted\":\"a 1\",\"message\":\"a %s\"},\"message\":\"\"}",
		 "{\"logentry\":{\"formatted\":\"a 1\",\"message\":\"a %s\"},\"message\":\"\","
		 "\"value\":\"a 1\"}"},
		{"{\"sentry.interfaces.Message\":{\"message\":\"m\"}}",
		 "{\"sentry.interfaces.Message\":{\"message\":\"m\"},\"value\":\"m\"}"},
		{"{\"culprit\":\"a.b\"}", "{\"context\":\"a.b\",\"culprit\":\"a.b\"}"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		read_event(cases[i].event);
		expect_body(cases[i].body);
	}
}

static void breadcrumbs_are_the_timeline(void **state)
{
	(void)state;
	const char *timeline = "\"timeline\":[[0,0,\"http\",\"\"],[250,250,\"query\",\"SELECT 1\"],"
			       "[250,250,\"\",\"late\"],[1500,1500,\"ui\",\"x\"]]}";
	const char *crumbs = "[{\"category\":\"http\",\"timestamp\":1700000000},"
			     "{\"category\":\"query\",\"message\":\"SELECT 1\","
			     "\"timestamp\":1700000000.25},{\"message\":\"late\"},"
			     "{\"message\":\"x\",\"timestamp\":\"2023-11-14T22:13:21.500000Z\","
			     "\"type\":\"ui\"},5]";
	char text[1024], body[1024];
	snprintf(text, sizeof(text), "{\"breadcrumbs\":%s}", crumbs);
	snprintf(body, sizeof(body), "{\"breadcrumbs\":%s,%s", crumbs, timeline);
	read_event(text);
	expect_body(body);
	assert_int_equal(report.facts.statements, 1);
	snprintf(text, sizeof(text), "{\"breadcrumbs\":{\"values\":%s}}", crumbs);
	snprintf(body, sizeof(body), "{\"breadcrumbs\":{\"values\":%s},%s", crumbs, timeline);
	read_event(text);
	expect_body(body);
	read_event("{\"breadcrumbs\":\"none\"}");
	expect_body("{\"breadcrumbs\":\"none\",\"refused\":[\"breadcrumbs: it is no list, and is "
		    "kept as it "
		    "is\"]}");
	read_event("{\"exception\":5,\"tags\":\"a\",\"user\":[],\"request\":[1],\"spans\":1,"
		   "\"timestamp\":\"never\",\"start_timestamp\":true,\"breadcrumbs\":null}");
	static const char *const refused[] = {"exceptions", "tags",      "spans",
					      "request",    "timestamp", "start_timestamp"};
	assert_int_equal(report.refused_count, ARRAY_LEN(refused));
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		assert_memory_equal(report.refused[i].data, refused[i], strlen(refused[i]));
	read_event("{\"exception\":\"E\",\"tags\":{},\"user\":{},\"request\":null,\"spans\":[],"
		   "\"timestamp\":1.5}");
	assert_int_equal(report.refused_count, 0);
	/* A time without a zone is in UTC. */
	read_event("{\"breadcrumbs\":[{\"timestamp\":\"2023-11-14T22:13:20\"},"
		   "{\"timestamp\":1700000000.5}]}");
	expect_body("{\"breadcrumbs\":[{\"timestamp\":\"2023-11-14T22:13:20\"},"
		    "{\"timestamp\":1700000000.5}],\"timeline\":[[0,0,\"\",\"\"],"
		    "[500,500,\"\",\"\"]]}");
}

static void a_transaction_that_was_slow(void **state)
{
	(void)state;
	read_event("{\"type\":\"transaction\",\"transaction\":\"/a\","
		   "\"start_timestamp\":1700000000,\"timestamp\":1700000007.5,"
		   "\"spans\":[{\"op\":\"db\",\"description\":\"SELECT 1\","
		   "\"start_timestamp\":1700000001,\"timestamp\":1700000003.25}]}");
	expect_body("{\"context\":\"/a\",\"duration\":7500,\"exception\":\"SoftRequestTimeout\","
		    "\"reported.date\":1700000007.5,"
		    "\"spans\":[{\"description\":\"SELECT 1\",\"op\":\"db\","
		    "\"start_timestamp\":1700000001,\"timestamp\":1700000003.25}],"
		    "\"start_timestamp\":1700000000,"
		    "\"timeline\":[[1000,3250,\"db\",\"SELECT 1\"]],"
		    "\"timestamp\":1700000007.5,\"transaction\":\"/a\",\"type\":\"transaction\"}");
	assert_int_equal(report.facts.duration_us, 7500000);
	assert_int_equal(report.facts.statements, 1);
	expect_fact(FAULT_EXCEPTION, "SoftRequestTimeout");
}

static void what_is_hidden_in_an_event_is_hidden_in_the_report(void **state)
{
	(void)state;
	static const char *const words[] = {"=user", "=userid"};
	const struct fault_masks masks = {words, 1}, masks_of_the_report = {words + 1, 1};
	read_event("{\"request\":{\"url\":\"http://a/?token=4711\",\"cookies\":{\"a\":\"b\"}},"
		   "\"exception\":{\"values\":[{\"type\":\"A\",\"value\":\"password=x9\"}]}}");
	expect_body("{\"URL\":\"http://a/?token=<hidden>\",\"exception\":\"A\","
		    "\"exceptions\":[{\"type\":\"A\",\"value\":\"password=<hidden>\"}],"
		    "\"request\":{\"cookies\":{\"a\":\"<hidden>\"},"
		    "\"url\":\"http://a/?token=<hidden>\"},"
		    "\"value\":\"password=<hidden>\"}");
	read_event_with("{\"user\":{\"id\":\"7\"}}", &masks);
	expect_body("{\"user\":{\"id\":\"<hidden>\"},\"userid\":\"<hidden>\"}");
	read_event_with("{\"user\":{\"id\":\"7\"}}", &masks_of_the_report);
	expect_body("{\"user\":{\"id\":\"7\"},\"userid\":\"<hidden>\"}");
}

static void names_of_other_dialects_mean_nothing_here(void **state)
{
	(void)state;
	read_event("{\"type\":\"default\",\"topic\":\"t\",\"req_vars\":{\"a\":\"b\"},"
		   "\"context\":\"mine\",\"transaction\":\"/a\"}");
	expect_body("{\"context\":\"mine\",\"req_vars\":{\"a\":\"b\"},\"topic\":\"t\","
		    "\"transaction\":\"/a\",\"type\":\"default\"}");
	assert_int_equal(report.refused_count, 0);
}

/* Fuzzing found that the door relied on an id of its own making. */
static void a_member_called_id_is_not_the_id(void **state)
{
	(void)state;
	read_event("{\"id\":\"OOPS-1\",\"date\":5}");
	assert_true(slice_equal(report.id, SLICE("e1")));
	expect_body("{\"reported.date\":5,\"reported.id\":\"OOPS-1\"}");
	read_event_as("{\"id\":\"OOPS-1\"}", &fault_masks_preset, (struct slice){NULL, 0});
	assert_false(report.id_given);
	assert_int_equal(report.id.len, 37);
	expect_body("{\"reported.id\":\"OOPS-1\"}");
	assert_int_equal(report.refused_count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

/* They were one report: an event_id was no content, even if it was not the id. */
static void events_with_other_ids_that_cannot_be_one_are_several(void **state)
{
	(void)state;
	read_event_without_id("{\"event_id\":\"q/1\",\"message\":\"m\"}");
	struct hash128 first = report.digest;
	assert_int_equal(report.refused_count, 1);
	assert_memory_equal(report.refused[0].data, "event_id: ", 10);
	read_event_without_id("{\"message\":\"m\",\"event_id\":\"q/1\"}");
	assert_true(report.digest.low == first.low && report.digest.high == first.high);
	read_event_without_id("{\"event_id\":\"q/2\",\"message\":\"m\"}");
	assert_false(report.digest.low == first.low && report.digest.high == first.high);
	read_event_without_id("{\"message\":\"m\"}");
	assert_int_equal(report.refused_count, 0);
}

/* Few members and many are sorted in two ways; names are compared by their first eight bytes. */
static void members_are_sorted(void **state)
{
	(void)state;
	read_event("{\"m\":{\"abcdefgh2\":1,\"abcdefgh1\":2,\"b\":3,\"abcdefgh\":4,\"abc\":5}}");
	expect_body("{\"m\":{\"abc\":5,\"abcdefgh\":4,\"abcdefgh1\":2,\"abcdefgh2\":1,\"b\":3}}");
	for (int count = 15; count <= 18; count++) {
		char text[600], expected[600];
		size_t len = 0, expected_len = 0;
		for (int i = 0; i < count; i++) {
			const char *before = i ? "," : "{\"m\":{";
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"%s\"abcdefgh%02d\":1", before, count - i);
			expected_len += (size_t)snprintf(expected + expected_len,
							 sizeof(expected) - expected_len,
							 "%s\"abcdefgh%02d\":1", before, i + 1);
		}
		memcpy(text + len, "}}", 3);
		memcpy(expected + expected_len, "}}", 3);
		read_event(text);
		expect_body(expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_event_is_kept_and_known),
		TEST(shapes_of_exceptions),
		TEST(shapes_of_messages),
		TEST(breadcrumbs_are_the_timeline),
		TEST(a_transaction_that_was_slow),
		TEST(what_is_hidden_in_an_event_is_hidden_in_the_report),
		TEST(names_of_other_dialects_mean_nothing_here),
		TEST(a_member_called_id_is_not_the_id),
		TEST(events_with_other_ids_that_cannot_be_one_are_several),
		TEST(members_are_sorted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
