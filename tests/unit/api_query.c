/* /api/query over a real connection: the worked example of the document, the shapes, what is
 * refused, long answers to fast, slow and vanishing clients. */
#include "api_harness.h"

#define H1                                                                                         \
	"{\"tenant\":\"t-1\",\"metricName\":\"cpu_idle\",\"tags\":{\"deployment\":\"prod\","       \
	"\"host\":\"h-1\",\"os\":\"linux\"},\"values\":{"
#define H4                                                                                         \
	"{\"tenant\":\"t-1\",\"metricName\":\"cpu_idle\",\"tags\":{\"deployment\":\"prod\","       \
	"\"host\":\"h-4\",\"os\":\"linux\"},\"values\":{"
#define H4_VALUES "\"2020-08-24T16:34:05Z\":477.0}}"
#define H1_VALUES                                                                                  \
	"\"2020-08-24T15:51:15Z\":186.0,\"2020-08-24T16:23:54Z\":828.0,\"2020-08-24T16:23:58Z\":"  \
	"842.0,\"2020-08-24T16:26:52Z\":832.0,\"2020-08-24T16:34:05Z\":436.0}}"
#define ANSWER "[" H1 H1_VALUES "," H4 H4_VALUES "]"
#define ASK    "/api/query?tenant=t-1&metricName=cpu_idle"

static void test_document(void **state)
{
	(void)state;
	put_example();
	expect(ASK "&tag=os=linux&tag=deployment=prod&start=2020-08-24T00:00:00Z&"
		   "end=2020-08-25T00:00:00Z",
	       200, ANSWER);
	expect(ASK "&tag=os%3Dlinux,deployment%3Dprod&start=1598284275&end=1598286846", 200,
	       ANSWER);
	expect(ASK "&tag=host=h-1|h-4&start=1598284275000", 200, ANSWER);
	expect(ASK "&tag=host=h-*&tag=deployment=prod,os=lin*&start=2h-ago", 200, ANSWER);
	/* start counts, end does not. */
	expect(ASK "&tag=host=h-1&start=2020-08-24T16:23:58Z&end=2020-08-24T16:34:05Z", 200,
	       "[" H1 "\"2020-08-24T16:23:58Z\":842.0,\"2020-08-24T16:26:52Z\":832.0}}]");
	/* A series without points in the time is left out; nothing at all is an empty array. */
	expect(ASK "&tag=os=linux,deployment=prod&start=2020-08-24T16:34:05Z", 200,
	       "[" H1 "\"2020-08-24T16:34:05Z\":436.0}}," H4 H4_VALUES "]");
	expect(ASK "&tag=host=h-9&start=2h-ago", 200, "[]");
	expect(ASK "&start=1m-ago", 200, "[]");
	expect("/api/query?tenant=t-3&metricName=cpu_idle&start=2h-ago", 200, "[]");
	expect(ASK "x&start=2h-ago", 200, "[]");
	expect(ASK "&tag=host=h-4&start=2h-ago&fn=max&window=1h", 200,
	       "[" H4 "\"2020-08-24T16:00:00Z\":477.0}}]");
	expect(ASK "&tag=host=h-1&start=2h-ago&fn=count&window=1h&format=csv", 200,
	       "time,tenant,metric,deployment,host,os,value\n"
	       "2020-08-24T15:00:00Z,t-1,cpu_idle,prod,h-1,linux,1\n"
	       "2020-08-24T16:00:00Z,t-1,cpu_idle,prod,h-1,linux,4\n");
	expect(ASK "&tag=host=h-4&start=2h-ago&aggregator=raw", 200, "[" H4 H4_VALUES "]");
}

#define ROW(tags, values)                                                                          \
	"{\"tenant\":\"t-1\",\"metricName\":\"cpu_idle\",\"tags\":{" tags "},\"values\":{" values  \
	"}}"
#define AT_1634 "\"2020-08-24T16:34:05Z\":"

/* The example's four series at 16:34:05: 436, 111 (windows), 222 (dev), 477. */
static void test_several_in_one(void **state)
{
	(void)state;
	put_example();
	expect(ASK "&start=2020-08-24T16:30:00Z&agg=sum", 200, "[" ROW("", AT_1634 "1246.0") "]");
	expect(ASK "&start=2020-08-24T16:30:00Z&agg=max&by=os", 200,
	       "[" ROW("\"os\":\"linux\"", AT_1634 "477.0") "," ROW("\"os\":\"windows\"",
								    AT_1634 "111.0") "]");
	expect(ASK "&start=2020-08-24T16:30:00Z&agg=count&by=os&by=deployment&tag=os=linux", 200,
	       "[" ROW("\"deployment\":\"dev\",\"os\":\"linux\"", AT_1634
		       "1") "," ROW("\"deployment\":\"prod\",\"os\":\"linux\"", AT_1634 "2") "]");
	expect(ASK "&start=2020-08-24T16:30:00Z&agg=avg&by=os&format=csv", 200,
	       "time,tenant,metric,os,value\n"
	       "2020-08-24T16:34:05Z,t-1,cpu_idle,linux,378.3333333333333\n"
	       "2020-08-24T16:34:05Z,t-1,cpu_idle,windows,111.0\n");
	/* 16:00: h-1 has 828, 842, 832, 436 and h-4 477: 3415 / 5. */
	expect(ASK "&start=2020-08-24T16:00:00Z&tag=os=linux,deployment=prod&fn=avg&window=1h"
		   "&agg=avg",
	       200, "[" ROW("", "\"2020-08-24T16:00:00Z\":683.0") "]");
	expect(ASK "&start=2020-08-24T15:00:00Z&tag=host=h-1&fn=last", 200,
	       "[" H1 AT_1634 "436.0}}]");
	expect(ASK "&start=1m-ago&agg=sum&by=os", 200, "[]");
}

/* The clock stands still. */
#define FROM_1630                                                                                  \
	"\"metricExists\":true,\"grains\":[{\"start\":\"2020-08-24T16:30:00Z\",\"end\":\"2020-08-" \
	"24T16:40:00.001Z\","                                                                      \
	"\"grain\":\"raw\"}],"
#define NO_MS "\"catalogMs\":0.000,\"storeMs\":0.000,\"readersMs\":0.000,\"encodingMs\":0.000}"

static void test_explain(void **state)
{
	(void)state;
	put_example();
	expect(ASK "&start=2020-08-24T16:30:00Z&agg=max&by=os&explain=1", 200,
	       "{\"result\":[" ROW("\"os\":\"linux\"", AT_1634 "477.0") "," ROW(
		       "\"os\":\"windows\"", AT_1634
		       "111.0") "],\"explain\":{\"series\":4,\"rows\":2,\"points\":2,"
				"\"reads\":2,\"extents\":0,\"blocksDecoded\":0,"
				"\"blocksSummarised\":0,\"blocksSkipped\":0,"
				"\"samplesDecoded\":4,\"samplesEstimated\":0," FROM_1630 NO_MS "}");
	expect(ASK "&start=2020-08-24T16:30:00Z&tag=host=h-9&explain=1", 200,
	       "{\"result\":[],\"explain\":{\"series\":0,\"rows\":0,\"points\":0,\"reads\":0,"
	       "\"extents\":0,\"blocksDecoded\":0,\"blocksSummarised\":0,\"blocksSkipped\":0,"
	       "\"samplesDecoded\":0,\"samplesEstimated\":0," FROM_1630 NO_MS "}");
	struct client c = {0};
	ask(&c,
	    ASK "&start=2020-08-24T16:30:00Z&tag=host=h-1&fn=max&window=1h&format=csv&explain=1");
	assert_non_null(strstr(c.body, ",h-1,linux,436.0\n# explain: {\"series\":1,\"rows\":1,"
				       "\"points\":1,\"reads\":1,"));
	mem_free(c.answer);
	expect(ASK "&start=2020-08-24T16:30:00Z&tag=host=h-9&explain=0", 200, "[]");
}

static void test_values(void **state)
{
	(void)state;
	uint64_t h = open_series("default", "m", "q=a\"b\\,c");
	put(h, NOW_MS - 5, value_u64(UINT64_MAX));
	put(h, NOW_MS - 4, value_i64(INT64_MIN));
	put(h, NOW_MS - 3, value_f64(__builtin_nan("")));
	put(h, NOW_MS - 2, value_f64(-__builtin_inf()));
	put(h, NOW_MS - 1, value_f64(-0.0));
	put(open_series("default", "m", ""), -1, value_f64(1e300));
	expect("/api/query?metricName=m&start=1s-ago", 200,
	       "[{\"tenant\":\"default\",\"metricName\":\"m\",\"tags\":{\"q\":\"a\\\"b,c\"},"
	       "\"values\":{\"2020-08-24T16:39:59.995Z\":18446744073709551615,"
	       "\"2020-08-24T16:39:59.996Z\":-9223372036854775808,"
	       "\"2020-08-24T16:39:59.997Z\":null,\"2020-08-24T16:39:59.998Z\":null,"
	       "\"2020-08-24T16:39:59.999Z\":-0.0}}]");
	expect("/api/query?metricName=m&start=-1000&end=0&format=json", 200,
	       "[{\"tenant\":\"default\",\"metricName\":\"m\",\"tags\":{},\"values\":{"
	       "\"1969-12-31T23:59:59.999Z\":1e+300}}]");
	expect("/api/query?metricName=m&start=-1000&end=2020-08-24T16:39:59.998Z&format=csv", 200,
	       "time,tenant,metric,q,value\n"
	       "1969-12-31T23:59:59.999Z,default,m,,1e+300\n"
	       "2020-08-24T16:39:59.995Z,default,m,\"a\"\"b,c\",18446744073709551615\n"
	       "2020-08-24T16:39:59.996Z,default,m,\"a\"\"b,c\",-9223372036854775808\n"
	       "2020-08-24T16:39:59.997Z,default,m,\"a\"\"b,c\",NaN\n");
	expect("/api/query?metricName=m&start=1s-ago&end=1s-ago", 200, "[]");
	expect("/api/query?metricName=none&start=1s-ago&format=csv", 200,
	       "time,tenant,metric,value\n");
}

static void test_what_was_written_now_is_answered(void **state)
{
	(void)state;
	uint64_t h = open_series("default", "m", "");
	put(h, NOW_MS, value_u64(7));
	put(h, NOW_MS + 1, value_u64(8));
	expect("/api/query?metricName=m&start=1s-ago", 200,
	       "[{\"tenant\":\"default\",\"metricName\":\"m\",\"tags\":{},\"values\":{"
	       "\"2020-08-24T16:40:00Z\":7}}]");
	expect("/api/query?metricName=m&start=1s-ago&end=now", 200, "[]");
}

static void test_tenant(void **state)
{
	(void)state;
	put(open_series("t", "m", ""), NOW_MS - 1, value_f64(1));
	struct client c = {.headers = "X-Tenant: t\r\n"};
	ask(&c, "/api/query?metricName=m&start=1s-ago");
	assert_non_null(strstr(c.body, "\"tenant\":\"t\""));
	mem_free(c.answer);
	c = (struct client){.headers = "X-Tenant: t\r\n"};
	ask(&c, "/api/query?metricName=m&start=1s-ago&tenant=u");
	assert_int_equal(c.status, 400);
	assert_non_null(strstr(c.body, "tenant is \\\"u\\\" but the header X-Tenant is \\\"t\\\""));
	mem_free(c.answer);
	refuse("/api/query?metricName=m&start=1s-ago&tenant=a%2Fb", 400,
	       "tenant \\\"a/b\\\" is not 1 to 64 of A-Za-z0-9_.-");
}

static void test_refused(void **state)
{
	(void)state;
	refuse("/api/query?start=1h-ago", 400, "metricName is missing");
	refuse("/api/query?metricName=&start=1h-ago", 400,
	       "metric \\\"\\\" is empty (1 to 256 bytes)");
	refuse("/api/query?metricName=m", 400, "start is missing");
	refuse("/api/query?metricName=m&start=1h-ago&start=2h-ago", 400, "start is given twice");
	refuse("/api/query?metricName=m&start=1h-ago&tags=a=b", 400,
	       "unknown parameter \\\"tags\\\"");
	refuse("/api/query?metricName=m&start=1h-ago&tag=host", 400,
	       "tag: \\\"host\\\" is not of the form key=value");
	refuse("/api/query?metricName=m&start=1h-ago&tag=host=", 400,
	       "tag: a tag's value is empty");
	refuse("/api/query?metricName=m&start=2&end=1", 400,
	       "start \\\"2\\\" lies after end \\\"1\\\"");
	refuse("/api/query?metricName=m&start=2020-08-25T00:00:00Z", 400,
	       "start \\\"2020-08-25T00:00:00Z\\\" lies after end, which is now");
	refuse("/api/query?metricName=m&start=1h-ago&format=xml", 400,
	       "format \\\"xml\\\" is neither json nor csv");
	refuse("/api/query?metricName=m&start=1h-ago&fn=max", 400,
	       "fn is given without window or points");
	refuse("/api/query?metricName=m&start=1h-ago&window=1h", 400, "window is given without fn");
	refuse("/api/query?metricName=m&start=1h-ago&fn=median&window=1h", 400,
	       "fn \\\"median\\\" is none of min, max, sum, avg, count, first, last, increase, "
	       "rate");
	refuse("/api/query?metricName=m&start=1h-ago&fn=max&window=0s", 400, "window is zero");
	refuse("/api/query?metricName=m&start=1h-ago&agg=last", 400,
	       "agg \\\"last\\\" is none of min, max, sum, avg, count");
	refuse("/api/query?metricName=m&start=1h-ago&by=host", 400,
	       "by goes only with agg, which says how the series of a group become one");
	refuse("/api/query?metricName=m&start=1h-ago&agg=sum&by=", 400,
	       "by: a tag key has 1 to 256 bytes");
	refuse("/api/query?metricName=m&start=1h-ago&agg=sum&by=host&by=os&by=host", 400,
	       "by \\\"host\\\" is given twice");
	refuse("/api/query?metricName=m&start=1h-ago&agg=sum&by=a&by=b&by=c&by=d&by=e&by=f&by=g"
	       "&by=h&by=i&by=j&by=k&by=l&by=m&by=n&by=o&by=p&by=q",
	       400, "by is given more than 16 times");
	refuse("/api/query?metricName=m&start=1h-ago&agg=sum&agg=sum", 400, "agg is given twice");
	refuse("/api/query?metricName=m&start=1h-ago&agg=sum&fn=last", 400,
	       "fn=last with agg needs a window");
	refuse("/api/query?metricName=m&start=1h-ago&agg=sum&window=1h", 400,
	       "window is given without fn");
	refuse("/api/query?metricName=m&start=1h-ago&explain=yes", 400,
	       "explain \\\"yes\\\" is neither 0 nor 1");
	refuse("/api/query?metricName=m&start=1h-ago&fn=max&window=1h&aggregator=max"
	       "&granularity=1h",
	       400,
	       "fn and window compute from whatever there is, aggregator and granularity read "
	       "what is stored: give one or the other");
	refuse("/api/query?metricName=m&start=1h-ago&aggregator=max&granularity=1h", 422,
	       "no roll-ups are stored (rollup.granularities); fn=max with a window computes from "
	       "raw data");
	refuse("/api/query?metricName=m&start=1h-ago&aggregator=mean", 400,
	       "aggregator \\\"mean\\\" is none of raw, min, max, sum, avg, count, increase");
	refuse("/api/query?metricName=m&start=1h-ago&granularity=1h", 400,
	       "granularity needs an aggregator other than raw");
	struct client c = {0};
	ask(&c, "/api/query?metricName=m&start=yesterday");
	assert_int_equal(c.status, 400);
	assert_non_null(strstr(c.body, "\"start: \\\"yesterday\\\" is no "));
	mem_free(c.answer);
	c = (struct client){0};
	ask(&c, "/api/query?metricName=m&start=1h-ago&fn=max&window=soon");
	assert_int_equal(c.status, 400);
	assert_non_null(strstr(c.body, "\"window: \\\"soon\\\" is no "));
	mem_free(c.answer);
}

/* ---- Limits and long answers ----------------------------------------------------------------- */

static void test_limits(void **state)
{
	(void)state;
	put_example();
	options.series_max = 2;
	options.range_max_ms = 7200000;
	options.points_max = 3;
	begin_again();
	refuse(ASK "&tag=deployment=prod&start=1h-ago", 422,
	       "3 series match; at most 2 are read at once (query.series_max)");
	refuse(ASK "&tag=host=h-1&start=3h-ago", 422,
	       "the time from start to end is longer than 2 hours (query.range_max)");
	struct client c = {0};
	ask(&c, ASK "&tag=host=h-1&start=2h-ago");
	assert_int_equal(c.status, 200);
	assert_non_null(strstr(c.answer, "X-Granary-Cut: points\r\n"));
	assert_string_equal(c.body,
			    "[" H1 "\"2020-08-24T15:51:15Z\":186.0,\"2020-08-24T16:23:54Z\":"
			    "828.0,\"2020-08-24T16:23:58Z\":842.0},\"truncated\":true}]");
	mem_free(c.answer);
	c = (struct client){0};
	ask(&c, ASK "&tag=host=h-1&start=2h-ago&format=csv");
	assert_non_null(strstr(c.body, ",842.0\n# truncated: more was found than 3 points"));
	mem_free(c.answer);
	naive_refuse_reads(store, ERR_BUSY, 1);
	c = (struct client){0};
	ask(&c, ASK "&tag=host=h-1&start=1h-ago");
	assert_int_equal(c.status, 503);
	assert_non_null(strstr(c.answer, "Retry-After: 1\r\n"));
	mem_free(c.answer);
}

enum { LONG_POINTS = 60000 };

static void put_long(void)
{
	uint64_t h = open_series("default", "long", "host=a");
	struct store_write *write = write_new();
	for (int i = 0; i < LONG_POINTS; i++) {
		struct value value = value_f64(i);
		assert_int_equal(
			store_append(write, &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
				     NOW_MS - LONG_POINTS + i, &h, 1, &value),
			0);
	}
	write_out(write);
}

/* Every point once, in order: the n-th pair of the values ends with `:n.0`. */
static void check_long(const char *body, int points)
{
	const char *p = strstr(body, "\"values\":{");
	assert_non_null(p);
	p += 10;
	for (int i = 0; i < points; i++) {
		char pair[16];
		const char *z = memchr(p, 'Z', 40);
		assert_non_null(z);
		int n = snprintf(pair, sizeof(pair), "%d.0", i);
		assert_memory_equal(z + 3, pair, (size_t)n);
		p = z + 3 + n;
		assert_true(*p == (i + 1 < points ? ',' : '}'));
	}
}

static void check_end(const char *text, const char *end)
{
	assert_true(strlen(text) >= strlen(end));
	assert_string_equal(text + strlen(text) - strlen(end), end);
}

#define ASK_LONG "/api/query?metricName=long&start=1h-ago"

static void test_long(void **state)
{
	(void)state;
	put_long();
	struct client c = {0};
	ask(&c, ASK_LONG);
	assert_non_null(strstr(c.answer, "Transfer-Encoding: chunked"));
	char *plain = unchunk(c.body);
	check_long(plain, LONG_POINTS);
	assert_string_equal(plain + strlen(plain) - 3, "}}]");
	mem_free(plain);
	mem_free(c.answer);
	/* Cut: a flag in the answer and a trailer behind it. */
	options.points_max = 50000;
	options.slice_points = 1000;
	begin_again();
	c = (struct client){0};
	ask(&c, ASK_LONG);
	plain = unchunk(c.body);
	check_long(plain, 50000);
	check_end(plain, "},\"truncated\":true}]");
	check_end(c.answer, "\r\n0\r\nX-Granary-Cut: points\r\n\r\n");
	mem_free(plain);
	mem_free(c.answer);
	c = (struct client){0};
	ask(&c, ASK_LONG "&format=csv");
	plain = unchunk(c.body);
	assert_non_null(strstr(plain, ",default,long,a,49999.0\n# truncated"));
	mem_free(plain);
	mem_free(c.answer);
}

/* The server may keep 64 KB for a client that reads slowly; the answer is 2 MB. */
static void test_slow_client(void **state)
{
	(void)state;
	put_long();
	limits.unsent_max_bytes = 512 << 10;
	begin_again();
	struct client c = {.rest_us = 500};
	ask(&c, ASK_LONG);
	char *plain = unchunk(c.body);
	check_long(plain, LONG_POINTS);
	mem_free(plain);
	mem_free(c.answer);
}

static void test_vanishing_client(void **state)
{
	(void)state;
	put_long();
	options.slice_points = 5000;
	begin_again();
	for (size_t read_max = 1; read_max < 2000000; read_max = read_max * 7 + 100) {
		struct client c = {.read_max = read_max};
		ask(&c, ASK_LONG);
		mem_free(c.answer);
		begin_again(); /* ends only when nothing is left of the request */
	}
}

static struct store_engine counting;
static const struct store_engine *counted;
static size_t reads;

static int count_read(struct store_read *read)
{
	reads++;
	return counted->read_submit(read);
}

static void count_reads(void)
{
	counted = store->engine;
	counting = *counted;
	counting.read_submit = count_read;
	store->engine = &counting;
	reads = 0;
}

/* What HEAD asks for is known before the store is asked. */
static void test_head_reads_nothing(void **state)
{
	static const struct {
		const char *path;
		int status;
	} cases[] = {
		{ASK_LONG, 200},
		{"/api/query?tenant=t-1&metricName=none&start=0&format=csv", 200},
		{"/api/query?tenant=t-1&metricName=none&start=whenever", 400},
		{"/api/query?tenant=t-1", 400},
		{"/api/verify", 200},
		{"/api/stats", 200},
	};
	(void)state;
	put_long();
	count_reads();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct client c = {.verb = "HEAD"};
		ask(&c, cases[i].path);
		assert_int_equal(c.status, cases[i].status);
		assert_string_equal(c.body, "");
		bool csv = strstr(cases[i].path, "csv");
		assert_non_null(strstr(c.answer, csv ? "\r\nContent-Type: text/csv"
						     : "\r\nContent-Type: application/json"));
		mem_free(c.answer);
	}
	assert_int_equal(reads, 0);
	expect("/api/query?tenant=t-1&metricName=none&start=0", 200, "[]");
	assert_true(reads > 0);
	store->engine = counted;
}

enum {
	DEAF_POINTS = 100000,
	DEAF_SLICE = 4000,
	DEAF_READS = DEAF_POINTS / DEAF_SLICE,
	HELD_READ = 10,
};

/* An answer of 3 MB in 25 slices, for a client that will read nothing of it: asked, not waited
 * for. What the kernel keeps for the client is little. */
static int ask_deaf(void)
{
	static const char request[] = "GET " ASK_LONG " HTTP/1.1\r\nHost: localhost\r\n\r\n";
	uint64_t h = open_series("default", "long", "host=a");
	for (int part = 0; part < 8; part++) {
		struct store_write *write = write_new();
		for (int i = part * DEAF_POINTS / 8; i < (part + 1) * DEAF_POINTS / 8; i++) {
			struct value value = value_f64(i);
			assert_int_equal(
				store_append(write,
					     &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
					     NOW_MS - DEAF_POINTS + i, &h, 1, &value),
				0);
		}
		write_out(write);
	}
	options.slice_points = DEAF_SLICE;
	begin_again();
	count_reads();
	int fd = dial_with(4096), len = (int)sizeof(request) - 1;
	assert_int_equal(write(fd, request, (size_t)len), len);
	return fd;
}

/* Nothing is left of the request, and nothing of it was taken for an answer. */
static void end_deaf(int fd, int64_t points)
{
	begin_again(); /* ends only when nothing is left */
	close(fd);
	store->engine = counted;
	assert_int_equal(stat_get(STAT_query_points), points);
	assert_int_equal(stat_get(STAT_queries_running), 0);
	assert_int_equal(stat_get(STAT_query_reads_running), 0);
}

static void run_until(loop_timer_fn *check)
{
	struct loop_timer *timer = loop_timer_new(loop, check, NULL);
	loop_timer_start(timer, 10, 10);
	loop_run(loop);
	loop_timer_close(timer);
}

static int64_t cut_before;

static void stop_when_cut(void *owner)
{
	(void)owner;
	if (stat_get(STAT_http_timeouts_write) > cut_before)
		loop_stop(loop);
}

/* While it does not read, the store is not asked for more; then it is cut. */
static void test_deaf_client(void **state)
{
	(void)state;
	limits.unsent_max_bytes = 128 << 10;
	limits.write_timeout_ms = 200;
	cut_before = stat_get(STAT_http_timeouts_write);
	int64_t points = stat_get(STAT_query_points);
	int fd = ask_deaf();
	run_until(stop_when_cut);
	assert_true(reads > 0 && reads < DEAF_READS);
	end_deaf(fd, points);
	assert_int_equal(stat_get(STAT_http_timeouts_write), cut_before + 1);
}

static struct store_read *held;
static unsigned patience;

static int hold_the_last_read(struct store_read *read)
{
	if (++reads < HELD_READ)
		return counted->read_submit(read);
	held = read;
	return 0;
}

static void stop_when_cancelled(void *owner)
{
	(void)owner;
	if ((held && held->cancelled) || !--patience)
		loop_stop(loop);
}

/* When it is cut while the store is at work for it, the store is told to stop. Here the server
 * keeps all that the client does not read, and the tenth read is not answered before it is
 * cancelled. */
static void test_client_that_is_cut_during_a_read(void **state)
{
	(void)state;
	limits.unsent_max_bytes = 64 << 20;
	limits.write_timeout_ms = 1000; /* within which ten reads are made */
	int64_t points = stat_get(STAT_query_points);
	int64_t cancelled = stat_get(STAT_query_reads_cancelled);
	held = NULL;
	patience = 2000;
	int fd = ask_deaf();
	counting.read_submit = hold_the_last_read;
	run_until(stop_when_cancelled);
	assert_non_null(held);
	bool was_cancelled = held->cancelled;
	assert_int_equal(counted->read_submit(held), 0);
	end_deaf(fd, points);
	assert_true(was_cancelled);
	assert_int_equal(stat_get(STAT_query_reads_cancelled), cancelled + 1);
	assert_int_equal(reads, HELD_READ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_document),
		TEST(test_values),
		TEST(test_what_was_written_now_is_answered),
		TEST(test_tenant),
		TEST(test_refused),
		TEST(test_limits),
		TEST(test_long),
		TEST(test_slow_client),
		TEST(test_vanishing_client),
		TEST(test_head_reads_nothing),
		TEST(test_several_in_one),
		TEST(test_explain),
		TEST(test_deaf_client),
		TEST(test_client_that_is_cut_during_a_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
