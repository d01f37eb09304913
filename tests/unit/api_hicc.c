/* /hicc/v1/metrics: rows as series, names, notes. Times by `date -u`, averages worked by hand. */
#include "api_harness.h"

#include "board/keys.h"
#include "board/rows.h"
#include "conf/conf.h"
#include "store/wait.h"

#define SERIES "/hicc/v1/metrics/series/"
/* 2020-08-24T16:30:00Z, ten minutes before the tests' now. */
#define T_MS   INT64_C(1598286600000)
#define DAY_MS INT64_C(86400000)

static struct granularities no_granularities;
static struct row_site rows;
static struct conf *conf;

static int setup_rows(void **state)
{
	int err = setup(state);
	conf = conf_new();
	rows = (struct row_site){.store = store,
				 .clock = &clock_.clock,
				 .retention = &retention_for_ever,
				 .granularities = &no_granularities};
	api.rows = &rows;
	api.conf = conf;
	return err;
}

static int teardown_rows(void **state)
{
	int err = teardown(state);
	conf_free(conf);
	return err;
}

static void put_at(const char *metric, const char *tags, int64_t ts_ms, double value)
{
	put(open_series("t", metric, tags), ts_ms, value_f64(value));
}

static void put_text(const char *metric, const char *source, int64_t ts_ms, const char *text)
{
	const struct row row = {SLICE("t"), slice_of(metric), slice_of(source)};
	struct store_write *write = write_new();
	struct errbuf e;
	assert_int_equal(
		row_text_put(&rows, write, &row, ts_ms, slice_of(text), store_stamp(store), &e), 0);
	write_out(write);
}

static void add_note(const char *metric, const char *source, int64_t ts_ms, const char *text)
{
	const struct row row = {SLICE("t"), slice_of(metric), slice_of(source)};
	struct task_queue queue;
	struct row_note_id id;
	struct errbuf e;
	task_queue_init(&queue);
	assert_int_equal(
		row_note_add(&rows, &queue, &row, ts_ms, slice_of(text), ROW_NOTES_MAX, &id, &e),
		0);
	task_queue_release(&queue);
}

static void rows_are_series(void **state)
{
	(void)state;
	put_at("SystemMetrics.cpu.user", "core=0,host=h1", T_MS + 1000, 10);
	put_at("SystemMetrics.cpu.user", "core=0,host=h1", T_MS + 4999, 20);
	put_at("SystemMetrics.cpu.user", "core=0,host=h1", T_MS + 5000, 5);
	put_at("SystemMetrics.cpu.user", "core=0,host=h1", T_MS - 3600000, 7);
	put_at("SystemMetrics.cpu.user", "core=1,host=h1", T_MS, 1);
	put_at("SystemMetrics.cpu.user", "core=0,host=h2", T_MS, 2);
	put_at("SystemMetrics.cpu.user", "host=h1", T_MS, 3);
	put_at("SystemMetrics.cpu.user", "cluster=c,host=h3", T_MS, 4);
	expect(SERIES "SystemMetrics.cpu.user.0/h1?tenant=t", 200,
	       "{\"name\":\"SystemMetrics.cpu.user.0:h1\",\"data\":[[1598286600000,15.0],"
	       "[1598286605000,5.0]]}");
	expect(SERIES "SystemMetrics.cpu.user/h1/?tenant=t", 200,
	       "{\"name\":\"SystemMetrics.cpu.user:h1\",\"data\":[[1598286600000,3.0]]}");
	expect(SERIES "SystemMetrics.cpu.user/h3?tenant=t", 200,
	       "{\"name\":\"SystemMetrics.cpu.user:h3\",\"data\":[[1598286600000,4.0]]}");
	/* From within a step, and up to before a sample. */
	expect(SERIES "SystemMetrics.cpu.user.0/h1?tenant=t&start=20200824163002&"
		      "end=20200824163005",
	       200, "{\"name\":\"SystemMetrics.cpu.user.0:h1\",\"data\":[[1598286602000,20.0]]}");
	expect(SERIES "SystemMetrics.cpu.user.0/h1?tenant=t&start=20200824163005&end="
		      "20200824163005",
	       200, "{\"name\":\"SystemMetrics.cpu.user.0:h1\",\"data\":[]}");
	expect(SERIES "SystemMetrics.cpu.user.7/h1?tenant=t", 200,
	       "{\"name\":\"SystemMetrics.cpu.user.7:h1\",\"data\":[]}");
	expect(SERIES "SystemMetrics.cpu.user.0/h9?tenant=t", 200,
	       "{\"name\":\"SystemMetrics.cpu.user.0:h9\",\"data\":[]}");
}

/* A metric that is called so goes before one whose tag says so; of two series with one name in a
 * row averages are made together. */
static void names_that_several_series_have(void **state)
{
	(void)state;
	put_at("m.0", "host=h", T_MS, 1);
	put_at("m", "core=0,host=h", T_MS, 2);
	put_at("n", "a=x,host=h", T_MS, 1);
	put_at("n", "b=x,host=h", T_MS, 2);
	expect(SERIES "m.0/h?tenant=t", 200, "{\"name\":\"m.0:h\",\"data\":[[1598286600000,1.0]]}");
	expect(SERIES "n.x/h?tenant=t", 200, "{\"name\":\"n.x:h\",\"data\":[[1598286600000,1.5]]}");
}

static void names_with_slashes(void **state)
{
	(void)state;
	put_at("SystemMetrics.disk.Total", "host=a/b,mount=/var/\xc3\xa4 1%", T_MS, 1);
	expect(SERIES "SystemMetrics.disk.Total.%2Fvar%2F%C3%A4%201%25/a%2Fb?tenant=t", 200,
	       "{\"name\":\"SystemMetrics.disk.Total./var/\xc3\xa4 1%:a/b\","
	       "\"data\":[[1598286600000,1.0]]}");
}

/* 2019-12-31T23:59:58Z is 1577836798. */
static void ranges_over_new_year_and_many_days(void **state)
{
	(void)state;
	put_at("m", "host=h", 1577836798000, 1);
	put_at("m", "host=h", 1577836802000, 2);
	put_text("m", "h", 1577836799999, "old");
	put_text("m", "h", 1577836800000, "new");
	expect(SERIES "m/h?tenant=t&start=20191231235000&end=20200101001000", 200,
	       "{\"name\":\"m:h\",\"data\":[[1577836795000,1.0],[1577836799999,\"old\"],"
	       "[1577836800000,2.0],[1577836800000,\"new\"]]}");
	/* Steps of 5 min, 2 h and a day; each of the latter is a whole day. */
	expect(SERIES "m/h?tenant=t&start=20191231120000&end=20200101120000", 200,
	       "{\"name\":\"m:h\",\"data\":[[1577836500000,1.0],[1577836799999,\"old\"],"
	       "[1577836800000,2.0],[1577836800000,\"new\"]]}");
	put_at("m", "host=h", 1577836798000 - 3600000, 3);
	put_at("m", "host=h", 1577836798000 - 7200000, 4);
	put_at("m", "host=h", 1577836802000 + 3 * DAY_MS, 8);
	put_at("m", "host=h", 1577836802000 + 30 * DAY_MS, 9);
	expect(SERIES "m/h?tenant=t&start=20191216000000&end=20200115000000", 200,
	       "{\"name\":\"m:h\",\"data\":[[1577822400000,4.0],[1577829600000,2.0],"
	       "[1577836799999,\"old\"],[1577836800000,2.0],[1577836800000,\"new\"],"
	       "[1578096000000,8.0]]}");
	expect(SERIES "m/h?tenant=t&start=20191201000000&end=20200301000000", 200,
	       "{\"name\":\"m:h\",\"data\":[[1577750400000,2.6666666666666665],"
	       "[1577836799999,\"old\"],[1577836800000,2.0],[1577836800000,\"new\"],"
	       "[1578096000000,8.0],[1580428800000,9.0]]}");
}

static void texts_and_notes_are_with_the_numbers(void **state)
{
	(void)state;
	put_at("app.state", "host=h", T_MS, 1);
	put_at("app.state", "host=h", T_MS + 10000, 2);
	put_text("app.state", "h", T_MS + 7000, "down \"hard\"");
	put_text("app.state", "h", T_MS + 60000, "up");
	put_text("app.state", "other", T_MS, "not this");
	put_text("app.state", "h", T_MS - 3600000, "nor this");
	add_note("app.state", "h", T_MS + 2, "note");
	add_note("app", "h", T_MS + 1, "tags");
	add_note("app", "other", T_MS + 1, "not this");
	expect(SERIES "app.state/h?tenant=t", 200,
	       "{\"name\":\"app.state:h\",\"data\":[[1598286600000,1.0],"
	       "[1598286607000,\"down \\\"hard\\\"\"],[1598286610000,2.0],[1598286660000,\"up\"]],"
	       "\"notes\":[{\"id\":\"1598286600001-d57ac45256849d9b"
	       "\",\"time\":1598286600001,\"metric\":\"app\",\"text\":\"tags\"},"
	       "{\"id\":\"1598286600002-aad653ca3ee66963"
	       "\",\"time\":1598286600002,\"metric\":\"app.state\",\"text\":\"note\"}]}");
	/* Texts alone. */
	expect(SERIES "app.state/other?tenant=t", 200,
	       "{\"name\":\"app.state:other\",\"data\":[[1598286600000,\"not this\"]],"
	       "\"notes\":[{\"id\":\"1598286600001-8ddc9c7ce4aaff32"
	       "\",\"time\":1598286600001,\"metric\":\"app\",\"text\":\"not this\"}]}");
}

static void long_answers_are_streams(void **state)
{
	(void)state;
	struct store_write *write = write_new();
	uint64_t handle = open_series("t", "m", "host=h");
	/* 30 days in steps of 2 h are 360, so an hour of texts is what makes it long. */
	const struct row row = {SLICE("t"), SLICE("m"), SLICE("h")};
	struct errbuf e;
	for (int i = 0; i < 10001; i++)
		assert_int_equal(
			row_text_put(&rows, write, &row, T_MS + i * 2, SLICE("text"), 1, &e), 0);
	write_out(write);
	put(handle, T_MS, value_f64(1));
	struct client c = {0};
	ask(&c, SERIES "m/h?tenant=t");
	assert_int_equal(c.status, 200);
	assert_non_null(strstr(c.answer, "X-Granary-Cut: texts"));
	char *plain = unchunk(c.body);
	size_t texts = 0;
	for (const char *at = plain; (at = strstr(at, "\"text\"")); at++)
		texts++;
	assert_int_equal(texts, 10000);
	assert_non_null(strstr(plain, "[1598286619998,\"text\"]]}"));
	mem_free(plain);
	mem_free(c.answer);
}

static void tenants(void **state)
{
	(void)state;
	struct client c = {.headers = "X-Tenant: t\r\n"};
	put_at("m", "host=h", T_MS, 1);
	put(open_series("host", "m", "host=h"), T_MS, value_f64(2));
	expect(SERIES "m/h", 200, "{\"name\":\"m:h\",\"data\":[[1598286600000,2.0]]}");
	ask(&c, SERIES "m/h");
	assert_string_equal(c.body, "{\"name\":\"m:h\",\"data\":[[1598286600000,1.0]]}");
	mem_free(c.answer);
	refuse(SERIES "m/h?tenant=a%20b", 400, "tenant \\\"a b\\\" is not 1 to 64 of A-Za-z0-9_.-");
}

static void what_is_wrong_is_said(void **state)
{
	(void)state;
	refuse(SERIES "m/h?start=20200824163005&end=20200824163004", 400,
	       "start \\\"20200824163005\\\" lies after end \\\"20200824163004\\\"");
	refuse(SERIES "m/h?start=20200824164001", 400,
	       "start \\\"20200824164001\\\" lies after end, which is now");
	refuse(SERIES "m/h?start=20100101000000&end=20200824163004", 400,
	       "start lies more than 3660 days before end");
	refuse(SERIES "m/h?start=20200230000000", 400,
	       "start: \\\"20200230000000\\\" is no time yyyyMMddHHmmss");
	refuse(SERIES "m/h?from=1", 400, "unknown parameter \\\"from\\\"");
	refuse(SERIES "m", 404, "there is nothing at /hicc/v1/metrics/series/m");
	refuse(SERIES "m/", 404, "there is nothing at /hicc/v1/metrics/series/m/");
	refuse(SERIES "/h", 404, "there is nothing at /hicc/v1/metrics/series//h");
	refuse(SERIES "m/h/x", 404, "there is nothing at /hicc/v1/metrics/series/m/h/x");
	refuse("/hicc/v1/metrics/source/", 404, "there is nothing at /hicc/v1/metrics/source/");
	refuse("/hicc/v1/metrics/schema/a/b", 404,
	       "there is nothing at /hicc/v1/metrics/schema/a/b");
}

static void names_are_listed(void **state)
{
	(void)state;
	struct task_queue queue;
	task_queue_init(&queue);
	struct board_keys *keys = board_keys_new(&(struct board_keys_options){
		.store = store, .clock = &clock_.clock, .executor = &queue.executor});
	struct tag tags[] = {{SLICE("core"), SLICE("0")}, {SLICE("host"), SLICE("h1")}};
	board_keys_note_series(keys, SLICE("t"), SLICE("SystemMetrics"),
			       SLICE("SystemMetrics.cpu.user"), (struct tags){tags, 2},
			       SLICE("gauge"), SLICE("%"));
	board_keys_note(keys, SLICE("t"), SLICE("a/b"),
			&(struct board_key){.type = BOARD_METRIC, .name = SLICE("m")});
	board_keys_write(keys, &queue);
	board_keys_free(keys);
	task_queue_release(&queue);
	expect("/hicc/v1/metrics/schema?tenant=t", 200, "[\"SystemMetrics\",\"a/b\"]");
	expect("/hicc/v1/metrics/schema/?tenant=t", 200, "[\"SystemMetrics\",\"a/b\"]");
	expect("/hicc/v1/metrics/schema", 200, "[]");
	expect("/hicc/v1/metrics/schema/SystemMetrics?tenant=t", 200,
	       "[\"SystemMetrics.cpu.user.0\"]");
	expect("/hicc/v1/metrics/schema/SystemMetrics?tenant=t&details=true", 200,
	       "[{\"name\":\"SystemMetrics.cpu.user.0\",\"sig\":\"72a4f802ab23\",\"unit\":\"%\","
	       "\"kind\":\"gauge\"}]");
	expect("/hicc/v1/metrics/source/SystemMetrics?tenant=t", 200, "[\"h1\"]");
	expect("/hicc/v1/metrics/schema/a%2Fb?tenant=t", 200, "[\"m\"]");
	expect("/hicc/v1/metrics/source/a%2Fb?tenant=t", 200, "[]");
	expect("/hicc/v1/metrics/schema/none?tenant=t", 200, "[]");
}

/* The client sends what follows the headers as the body. */
static void post(const char *path, const char *json, int status, const char *body)
{
	char headers[512];
	snprintf(headers, sizeof(headers),
		 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(json),
		 json);
	struct client c = {.verb = "POST", .headers = headers};
	ask(&c, path);
	assert_int_equal(c.status, status);
	assert_string_equal(c.body, body);
	mem_free(c.answer);
}

#define NOTES    "/hicc/v1/metrics/notes/"
#define X        "1598286600000-9dd4e461268c8034"
#define X_OBJECT "{\"id\":\"" X "\",\"time\":1598286600000,\"metric\":\"m\",\"text\":\"x\"}"

static void notes_come_and_go(void **state)
{
	(void)state;
	struct client c = {.verb = "DELETE"};
	expect(NOTES "m/h?tenant=t", 200, "{\"notes\":[]}");
	post(NOTES "m/h?tenant=t", "{\"text\":\"x\",\"time\":1598286600000}", 201, X_OBJECT);
	post(NOTES "m/h?tenant=t", "{\"text\":\"x\",\"time\":\"20200824163000\"}", 201, X_OBJECT);
	expect(NOTES "m/h?tenant=t", 200, "{\"notes\":[" X_OBJECT "]}");
	expect(NOTES "m/h?tenant=t&end=20200824163000", 200, "{\"notes\":[]}");
	expect(NOTES "m/other?tenant=t", 200, "{\"notes\":[]}");
	expect(NOTES "m/h", 200, "{\"notes\":[]}");
	/* Now. */
	post(NOTES "m/h?tenant=t", "{\"text\":\"x\"}", 201,
	     "{\"id\":\"1598287200000-9dd4e461268c8034\",\"time\":1598287200000,\"metric\":\"m\","
	     "\"text\":\"x\"}");
	ask(&c, NOTES "m/h/" X "?tenant=t");
	assert_string_equal(c.body, "{\"id\":\"" X "\"}");
	mem_free(c.answer);
	c = (struct client){.verb = "DELETE"};
	ask(&c, NOTES "m/h/" X "?tenant=t");
	assert_int_equal(c.status, 404);
	mem_free(c.answer);
	expect(NOTES "m/h?tenant=t&end=20200824164000", 200, "{\"notes\":[]}");
#define BAD(sentence_) "{\"error\":{\"code\":400,\"message\":\"" sentence_ "\"}}\n"
	post(NOTES "m/h", "{}", 400, BAD("the note: \\\"text\\\" is missing"));
	post(NOTES "m/h", "[", 400,
	     BAD("the note: line 1, column 2: the text ends where a value should stand"));
	post(NOTES "m/h", "{\"text\":\"\"}", 400, BAD("the text is empty"));
	post(NOTES "m/h", "{\"text\":\"x\",\"time\":\"soon\"}", 400,
	     BAD("the note: time: \\\"soon\\\" is no time: it is neither a number nor a date"));
	post(NOTES "m/h", "{\"text\":\"x\",\"time\":-1}", 400,
	     BAD("the time -1 ms is none of 1970-01-01 to 2149-06-06"));
	post(NOTES "m/h", "{\"text\":\"x\",\"color\":\"red\"}", 400,
	     BAD("the note: unknown member \\\"color\\\""));
}

#define ROWS(f) cmocka_unit_test_setup_teardown(f, setup_rows, teardown_rows)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROWS(rows_are_series),
		ROWS(names_that_several_series_have),
		ROWS(names_with_slashes),
		ROWS(ranges_over_new_year_and_many_days),
		ROWS(texts_and_notes_are_with_the_numbers),
		ROWS(long_answers_are_streams),
		ROWS(tenants),
		ROWS(what_is_wrong_is_said),
		ROWS(names_are_listed),
		ROWS(notes_come_and_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
