/* What Sentry's clients count. The first items are the examples of Sentry's specification
 * (develop.sentry.dev/sdk/telemetry/sessions/, .../client-reports/); what they count is worked out
 * by hand from doc/faults.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "ingest/sentry_counts.h"

static struct arena arena;

static int start(void **state)
{
	(void)state;
	arena_init(&arena, 1 << 20);
	return 0;
}

static int end(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

/* A line each, `metric,k=v,... ms=count`, the last one first. */
static void expect(const char *type, const char *item, const char *want)
{
	struct minute_counts counts = {0};
	struct json *root;
	struct buf text;
	assert_int_equal(json_parse_lax(slice_of(item), &arena, &root, NULL), 0);
	sentry_counts_read(slice_of(type), root, &counts, &arena);
	buf_init(&text, 1 << 16);
	for (const struct minute_count *c = counts.first; c; c = c->next) {
		buf_printf(&text, "%.*s", (int)c->metric.len, c->metric.data);
		for (size_t i = 0; i < c->tag_count; i++)
			buf_printf(&text, ",%.*s=%.*s", (int)c->tags[i].key.len,
				   c->tags[i].key.data, (int)c->tags[i].value.len,
				   c->tags[i].value.data);
		buf_printf(&text, " %lld=%llu\n", (long long)c->ms, (unsigned long long)c->count);
	}
	buf_append_char(&text, 0);
	assert_string_equal(text.data, want);
	buf_release(&text);
}

#define SESSION(rest)                                                                              \
	"{\"sid\":\"7c7b6585-f901-4351-bf8d-02711b721929\",\"did\":\"optional distinct user id\"," \
	"\"timestamp\":\"2020-02-07T15:17:00Z\",\"started\":\"2020-02-07T14:16:00Z\"," rest        \
	",\"attrs\":{\"release\":\"my-project@1.0.0\",\"environment\":\"environment name\"}}"
#define TAGS "faults_sessions,environment=environment name,release=my-project@1.0.0,status="

static void sessions_one_by_one(void **state)
{
	(void)state;
	expect("session",
	       SESSION("\"init\":true,\"duration\":60,\"status\":\"exited\",\"errors\":0"),
	       TAGS "exited 1581084960000=1\n" TAGS "ok 1581084960000=1\n");
	expect("session", SESSION("\"init\":true,\"status\":\"ok\",\"errors\":3"),
	       TAGS "ok 1581084960000=1\n");
	expect("session", SESSION("\"init\":false,\"status\":\"ok\",\"errors\":3"), "");
	expect("session", SESSION("\"errors\":1"), "");
	expect("session", SESSION("\"status\":\"exited\",\"errors\":1"),
	       TAGS "errored 1581084960000=1\n");
	expect("session", SESSION("\"status\":\"crashed\",\"errors\":1"),
	       TAGS "crashed 1581084960000=1\n");
	expect("session", SESSION("\"status\":\"abnormal\""), TAGS "abnormal 1581084960000=1\n");
	expect("session", SESSION("\"status\":\"degraded\",\"init\":1"), "");
}

static void many_sessions_at_once(void **state)
{
	(void)state;
	expect("sessions",
	       "{\"aggregates\":[{\"started\":\"2020-02-07T14:16:00Z\",\"exited\":123},"
	       "{\"started\":\"2020-02-07T14:17:00Z\",\"did\":\"foo@bar.com\",\"exited\":12,"
	       "\"errored\":3,\"crashed\":-1,\"abnormal\":1.5}],"
	       "\"attrs\":{\"release\":\"my-project@1.0.0\",\"environment\":\"environment name\"}}",
	       TAGS "ok 1581085020000=15\n" TAGS "errored 1581085020000=3\n" TAGS
		    "exited 1581085020000=12\n" TAGS "ok 1581084960000=123\n" TAGS
		    "exited 1581084960000=123\n");
	expect("sessions", "{\"aggregates\":[{\"crashed\":2,\"abnormal\":1000000001},5]}",
	       "faults_sessions,status=ok -1=2\nfaults_sessions,status=crashed -1=2\n");
}

static void what_clients_threw_away(void **state)
{
	(void)state;
	expect("client_report",
	       "{\"timestamp\":\"2020-02-07T14:16:00Z\",\"discarded_events\":["
	       "{\"reason\":\"queue_overflow\",\"category\":\"error\",\"quantity\":23},"
	       "{\"reason\":\"queue_overflow\",\"category\":\"transaction\",\"quantity\":1321},"
	       "{\"reason\":\"\",\"category\":7,\"quantity\":1},"
	       "{\"reason\":\"sample_rate\",\"quantity\":0},null]}",
	       "faults_discarded 1581084960000=1\n"
	       "faults_discarded,category=transaction,reason=queue_overflow 1581084960000=1321\n"
	       "faults_discarded,category=error,reason=queue_overflow 1581084960000=23\n");
	/* Seconds, as node has them. */
	expect("client_report",
	       "{\"timestamp\":1581084960.5,\"discarded_events\":[{\"quantity\":1}]}",
	       "faults_discarded 1581084960500=1\n");
}

static void what_counts_nothing(void **state)
{
	static const char *const items[] = {
		"{}",
		"[]",
		"5",
		"null",
		"{\"aggregates\":5,\"discarded_events\":{},\"status\":[],\"init\":\"true\"}",
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(items); i++) {
		expect("session", items[i], "");
		expect("sessions", items[i], "");
		expect("client_report", items[i], "");
	}
	expect("event", SESSION("\"init\":true"), "");
}

static void times_that_are_none(void **state)
{
	static const char *const times[] = {"-1", "1e300", "\"soon\"", "null", "\"1e11\"", "[]"};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		expect("session", arena_printf(&arena, "{\"init\":true,\"started\":%s}", times[i]),
		       "faults_sessions,status=ok -1=1\n");
}

static void counts_of_a_request_have_a_maximum(void **state)
{
	struct minute_counts counts = {0};
	const struct minute_count one = {.metric = SLICE("m"), .count = 1};
	(void)state;
	for (size_t i = 0; i < MINUTE_COUNTS_MAX + 5; i++)
		minute_counts_add(&counts, &one, &arena);
	assert_int_equal(counts.count, MINUTE_COUNTS_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sessions_one_by_one),     TEST(many_sessions_at_once),
		TEST(what_clients_threw_away), TEST(what_counts_nothing),
		TEST(times_that_are_none),     TEST(counts_of_a_request_have_a_maximum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
