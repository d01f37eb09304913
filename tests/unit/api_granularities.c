/* /api/query over roll-ups: how they are asked for, and what the answer says of them. Now is
 * 2020-08-24T16:40:00Z; raw data is kept for 2 h, 5 min for a day, 1 h for ever. */
#include "api_harness.h"
#include "retention/retention.h"

static const struct granularities granularities = {
	.slot_ms = 3600000, .count = 2, .list = {{300000, 86400000}, {3600000, 0}}};

static const struct retention_rules two_hours = {.levels_ms = {7200000}};

static bool is_counter(UNUSED void *owner, struct slice metric)
{
	return slice_equal(metric, SLICE("reads"));
}

static int begin_with_granularities(void **state)
{
	int err = setup(state);
	options.retention = &two_hours;
	options.granularities = &granularities;
	options.is_counter = is_counter;
	begin_again();
	return err;
}

static void put_row(uint64_t handle, int64_t width_ms, int64_t ts_ms, const struct value row[8])
{
	struct store_write *write = write_new();
	assert_int_equal(store_append(write,
				      &(struct store_target){TABLE_DATA_DOWNSAMPLED, RETENTION_EVER,
							     width_ms},
				      ts_ms, &handle, 1, row),
			 0);
	write_out(write);
}

/* The document's example of an hour: 1.2, 1.5, 1.1, 3.4 from 10:01:23 to 10:47:01, and the first of
 * them by 5 min; then a value of 16:10. */
#define AT_10  INT64_C(1598263200000) /* 2020-08-24T10:00:00Z */
#define AT_16  (AT_10 + 6 * 3600000)
#define SERIES "[{\"tenant\":\"default\",\"metricName\":\"m\",\"tags\":{},\"values\":{"

static void put_hour(void)
{
	uint64_t h = open_series("default", "m", "");
	struct value hour[8] = {value_f64(1.1), value_f64(3.4), value_f64(7.2), value_i64(4)};
	struct value five[8] = {value_f64(1.2), value_f64(1.2), value_f64(1.2), value_i64(1)};
	put_row(h, 3600000, AT_10, hour);
	put_row(h, 300000, AT_10, five);
	put(h, AT_16 + 600000, value_f64(9));
}

/* The answer's header of that name begins with `wanted`, up to the line's end. */
static void expect_granularity(const char *path, const char *wanted, const char *body)
{
	struct client c = {0};
	char line[300];
	ask(&c, path);
	snprintf(line, sizeof(line), "\r\nX-Granary-Grain: %s\r\n", wanted);
	if (c.status != 200 || !strstr(c.answer, line))
		fail_msg("%s: %s", path, c.answer);
	assert_string_equal(c.body, body);
	mem_free(c.answer);
}

static void test_stored(void **state)
{
	(void)state;
	put_hour();
#define ASK "/api/query?metricName=m&start=2020-08-24T10:00:00Z"
	expect_granularity(ASK "&aggregator=min&granularity=1h", "1h",
			   SERIES "\"2020-08-24T10:00:00Z\":1.1}}]");
	expect_granularity(ASK "&aggregator=max&granularity=PT1H", "1h",
			   SERIES "\"2020-08-24T10:00:00Z\":3.4}}]");
	expect_granularity(ASK "&aggregator=sum&granularity=60m", "1h",
			   SERIES "\"2020-08-24T10:00:00Z\":7.2}}]");
	expect_granularity(ASK "&aggregator=avg&granularity=1h", "1h",
			   SERIES "\"2020-08-24T10:00:00Z\":1.8}}]");
	expect_granularity(ASK "&aggregator=count&granularity=1h", "1h",
			   SERIES "\"2020-08-24T10:00:00Z\":4}}]");
	expect_granularity(ASK "&aggregator=avg&granularity=5m", "5m",
			   SERIES "\"2020-08-24T10:00:00Z\":1.2}}]");
	expect_granularity(ASK "&aggregator=increase&granularity=5m", "5m", "[]");
	/* The finest that goes back so far. */
	expect_granularity(ASK "&aggregator=avg", "5m", SERIES "\"2020-08-24T10:00:00Z\":1.2}}]");
	expect_granularity("/api/query?metricName=m&start=2d-ago&aggregator=avg", "1h",
			   SERIES "\"2020-08-24T10:00:00Z\":1.8}}]");
	/* Or has not more points: 7 of hours from 10:00 to 16:40, 81 of 5 min. */
	expect_granularity(ASK "&aggregator=avg&points=80", "1h",
			   SERIES "\"2020-08-24T10:00:00Z\":1.8}}]");
	refuse(ASK "&aggregator=avg&points=6", 400,
	       "points: the coarsest granularity that goes back as far, 1h, has 7 buckets in this "
	       "time; fn instead of aggregator puts them together");
	/* From 1970 on there are 444,000 hours, and one row: rows are what an answer may have. */
	options.points_max = 1;
	begin_again();
	expect_granularity("/api/query?metricName=m&start=0&aggregator=min&granularity=1h", "1h",
			   SERIES "\"2020-08-24T10:00:00Z\":1.1}}]");
	expect_granularity("/api/query?metricName=m&start=0&aggregator=min&granularity=1h&agg=max",
			   "1h", SERIES "\"2020-08-24T10:00:00Z\":1.1}}]");
	struct client c = {0};
	ask(&c, "/api/query?metricName=m&start=0&aggregator=min&granularity=1h&fill=null");
	assert_int_equal(c.status, 422);
	assert_non_null(strstr(c.body, "(query.points_max)"));
	mem_free(c.answer);
	options.points_max = 0;
	begin_again();
	/* A bucket that begins before start is not asked for. */
	expect_granularity("/api/query?metricName=m&start=2020-08-24T10:00:01Z&aggregator=min"
			   "&granularity=1h",
			   "1h", "[]");
}

static void expect_note(const char *path, const char *wanted)
{
	struct client c = {0};
	char line[300];
	ask(&c, path);
	snprintf(line, sizeof(line), "\r\nX-Granary-Note: %s\r\n", wanted ? wanted : "");
	if (c.status != 200 || !strstr(c.answer, wanted ? line : "\r\n") ||
	    (!wanted && strstr(c.answer, "X-Granary-Note")))
		fail_msg("%s: %s", path, c.answer);
	mem_free(c.answer);
}

/* It is 16:40, and the slot from 16:00 on has not ended. */
static void test_notes(void **state)
{
	(void)state;
	put_hour();
	open_series("default", "reads", "");
	expect_note(ASK, NULL);
	expect_note(ASK "&tag=host=h-9", NULL);
	expect_note(ASK "&fn=max&window=1h", NULL);
	expect_note(ASK "&end=2020-08-24T16:00:00Z&aggregator=min&granularity=1h", NULL);
	expect_note(ASK "&aggregator=min&granularity=1h",
		    "not-rolled-up: roll-ups may still lack samples from 2020-08-24T16:00:00Z on");
	expect_note("/api/query?metricName=m&start=16m-ago&aggregator=min",
		    "not-rolled-up: roll-ups may still lack samples from 2020-08-24T16:24:00Z on");
	expect_note(ASK "&end=2020-08-24T16:00:00Z&aggregator=increase",
		    "not-kept: the metric is no counter, so its roll-ups have no increase");
	expect_note("/api/query?metricName=reads&start=1h-ago&aggregator=min",
		    "not-kept: the metric is a counter, whose roll-ups have sum and increase, but "
		    "no min, max, avg and count");
	expect_note("/api/query?metricName=nosuch&start=1h-ago",
		    "unknown-metric: the tenant has no series of this metric");
	expect_note("/api/query?metricName=m&tenant=other&start=1h-ago&format=csv",
		    "unknown-metric: the tenant has no series of this metric");
	struct client c = {0};
	ask(&c, "/api/query?metricName=nosuch&start=1h-ago&explain=1");
	assert_non_null(strstr(c.body, "\"metricExists\":false,\"note\":\"unknown-metric: "));
	mem_free(c.answer);
}

static void test_planned(void **state)
{
	(void)state;
	put_hour();
	expect_granularity(ASK "&fn=max&window=1h", "1h until 2020-08-24T16:00:00Z, raw",
			   SERIES "\"2020-08-24T10:00:00Z\":3.4,\"2020-08-24T16:00:00Z\":9.0}}]");
	expect_granularity(ASK "&fn=avg&points=8", "1h until 2020-08-24T16:00:00Z, raw",
			   SERIES "\"2020-08-24T10:00:00Z\":1.8,\"2020-08-24T16:00:00Z\":9.0}}]");
	/* Raw data, and before it what is finest. */
	expect_granularity(ASK, "5m until 2020-08-24T14:40:00Z, raw",
			   SERIES "\"2020-08-24T10:00:00Z\":1.2,\"2020-08-24T16:10:00Z\":9.0}}]");
	expect_granularity("/api/query?metricName=m&start=2020-08-24T10:00:00Z&fn=max&window=7m",
			   "none until 2020-08-24T14:40:00Z, raw",
			   SERIES "\"2020-08-24T16:07:00Z\":9.0}}]");
	expect_granularity("/api/query?metricName=m&start=2020-08-23T10:00:00Z&fn=max&window=5m",
			   "none until 2020-08-23T16:40:00Z, 5m until 2020-08-24T16:00:00Z, raw",
			   SERIES "\"2020-08-24T10:00:00Z\":1.2,\"2020-08-24T16:10:00Z\":9.0}}]");
}

static void test_explained(void **state)
{
	(void)state;
	struct client c = {0};
	put_hour();
	ask(&c, ASK "&points=10&explain=1");
	assert_non_null(strstr(
		c.body, "\"fn\":\"avg\",\"window\":\"1h\",\"grains\":["
			"{\"start\":\"2020-08-24T10:00:00Z\",\"end\":\"2020-08-24T16:00:00Z\","
			"\"grain\":\"1h\"},"
			"{\"start\":\"2020-08-24T16:00:00Z\",\"end\":\"2020-08-24T16:40:00.001Z\","
			"\"grain\":\"raw\"}],"));
	mem_free(c.answer);
	c = (struct client){0};
	ask(&c, ASK "&fn=max&window=1h&end=2020-08-24T16:00:00Z&format=csv&explain=1");
	assert_non_null(strstr(c.body, "\n# explain: {"));
	assert_non_null(strstr(c.body, "\"grain\":\"1h\"}],"));
	mem_free(c.answer);
}

/* 10 to 15, then 18 of 5 min after; a reset to 2 in between, to 7 at last. */
static void test_counter(void **state)
{
	(void)state;
	uint64_t h = open_series("default", "reads", "");
	struct value a[8] = {
		[2] = value_i64(25), [5] = value_i64(5), [6] = value_i64(10), [7] = value_i64(15)};
	struct value b[8] = {
		[2] = value_i64(27), [5] = value_i64(7), [6] = value_i64(18), [7] = value_i64(7)};
	put_row(h, 300000, AT_10, a);
	put_row(h, 300000, AT_10 + 300000, b);
#define READS                                                                                      \
	"[{\"tenant\":\"default\",\"metricName\":\"reads\",\"tags\":{},\"values\":{"               \
	"\"2020-08-24T10:00:00Z\":"
#define ASK_READS "/api/query?metricName=reads&start=2020-08-24T10:00:00Z&end=2020-08-24T10:10:00Z"
	/* 5 and 7, and 3 from 15 to 18; in 600 s. */
	expect(ASK_READS "&fn=increase&window=10m", 200, READS "15}}]");
	expect(ASK_READS "&fn=rate&window=10m", 200, READS "0.025}}]");
	expect(ASK_READS "&aggregator=increase&granularity=5m", 200,
	       READS "5.0,\"2020-08-24T10:05:00Z\":7.0}}]");
	expect(ASK_READS "&fn=increase&window=5m", 200, READS "5,\"2020-08-24T10:05:00Z\":10}}]");
	expect(ASK_READS, 200, READS "15,\"2020-08-24T10:05:00Z\":7}}]");
}

static void test_gaps(void **state)
{
	(void)state;
	put_hour();
#define ASK_GAPS ASK "&end=2020-08-24T12:00:00Z&fn=max&window=1h"
	expect(ASK_GAPS "&fill=null", 200,
	       SERIES "\"2020-08-24T10:00:00Z\":3.4,\"2020-08-24T11:00:00Z\":null}}]");
	expect(ASK_GAPS "&fill=zero", 200,
	       SERIES "\"2020-08-24T10:00:00Z\":3.4,\"2020-08-24T11:00:00Z\":0}}]");
	expect(ASK_GAPS "&fill=none", 200, SERIES "\"2020-08-24T10:00:00Z\":3.4}}]");
	expect(ASK_GAPS "&fill=null&format=csv", 200,
	       "time,tenant,metric,value\n2020-08-24T10:00:00Z,default,m,3.4\n"
	       "2020-08-24T11:00:00Z,default,m,\n");
}

/* 2020-08-24T10:00:00Z is 1598263200, 16:00 is 21,600 s later. */
static void test_opentsdb(void **state)
{
	(void)state;
	static const char body[] =
		"{\"start\":1598263200,\"queries\":[{\"metric\":\"m\",\"aggregator\":\"sum\","
		"\"downsample\":\"1h-avg\"}]}";
	struct client c = {.verb = "POST"};
	char headers[400];
	put_hour();
	snprintf(headers, sizeof(headers), "Content-Length: %zu\r\n\r\n%s", sizeof(body) - 1, body);
	c.headers = headers;
	ask(&c, "/api/query");
	assert_int_equal(c.status, 200);
	assert_non_null(
		strstr(c.answer, "\r\nX-Granary-Grain: 1h until 2020-08-24T16:00:00Z, raw\r\n"));
	assert_non_null(strstr(c.body, "\"dps\":{\"1598263200\":1.8,\"1598284800\":9.0}"));
	mem_free(c.answer);
}

/* Only the first of them was told. Raw data is there for 2 h, from 14:40; before that no
 * granularity has windows of 7 min. */
static void granularities_of_each_query_of_a_body(void **state)
{
	(void)state;
	static const char body[] =
		"{\"start\":1598263200,\"queries\":[{\"metric\":\"m\",\"aggregator\":\"sum\","
		"\"downsample\":\"1h-avg\"},{\"metric\":\"nothing\",\"aggregator\":\"sum\"},"
		"{\"metric\":\"m\",\"aggregator\":\"sum\",\"downsample\":\"7m-avg\"}]}";
	struct client c = {.verb = "POST"};
	char headers[700];
	put_hour();
	snprintf(headers, sizeof(headers), "Content-Length: %zu\r\n\r\n%s", sizeof(body) - 1, body);
	c.headers = headers;
	ask(&c, "/api/query");
	assert_int_equal(c.status, 200);
	if (!strstr(c.answer,
		    "\r\nX-Granary-Grain: 1h until 2020-08-24T16:00:00Z, raw; "
		    "5m until 2020-08-24T14:40:00Z, raw; none until 2020-08-24T14:40:00Z, raw\r\n"))
		fail_msg("%s", c.answer);
	mem_free(c.answer);
}

static void test_refused(void **state)
{
	(void)state;
#define M "/api/query?metricName=m&start=1h-ago"
	refuse(M "&aggregator=max&granularity=7m", 400,
	       "granularity \\\"7m\\\" is none of those that are stored: 5m, 1h");
	refuse(M "&aggregator=first&granularity=1h", 400,
	       "aggregator \\\"first\\\" is none of raw, min, max, sum, avg, count, increase");
	refuse(M "&aggregator=max&granularity=1h&points=10", 400,
	       "points chooses a granularity: give one or the other");
	refuse(M "&fn=max&window=1h&points=10", 400,
	       "points chooses the window: give one or the other");
	refuse(M "&points=1", 400, "points \\\"1\\\" is not a number from 2 to 1000000");
	refuse(M "&fill=null", 400, "fill is of windows, and there are none");
	refuse(M "&fn=max&window=1h&fill=linear", 400,
	       "fill \\\"linear\\\" is none of none, null, zero");
	struct client c = {0};
	ask(&c, M "&aggregator=max&granularity=1mo");
	assert_int_equal(c.status, 400);
	assert_non_null(strstr(c.body, "\"granularity: "));
	mem_free(c.answer);
}

int main(void)
{
#define GRANULARITIES(f) cmocka_unit_test_setup_teardown(f, begin_with_granularities, teardown)
	const struct CMUnitTest tests[] = {
		GRANULARITIES(test_stored),   GRANULARITIES(test_notes),
		GRANULARITIES(test_planned),  GRANULARITIES(test_explained),
		GRANULARITIES(test_counter),  GRANULARITIES(test_gaps),
		GRANULARITIES(test_opentsdb), GRANULARITIES(granularities_of_each_query_of_a_body),
		GRANULARITIES(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
