/* /api/query and /api/metadata over a real connection: the worked example of the document, the
 * shapes, what is refused, long answers to fast, slow and vanishing clients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/routes.h"
#include "base/buf.h"
#include "base/stats.h"
#include "catalog/catalog.h"
#include "loop/loop.h"
#include "naive.h"
#include "query/query.h"

/* 2020-08-24T16:40:00Z: when the example is asked. */
#define NOW_MS INT64_C(1598287200000)

static struct loop *loop;
static struct clock_virtual clock_;
static struct store *store;
static struct catalog *catalog;
static struct http_server *server;
static struct api api;
static struct query_options options;
static struct http_limits limits;
static uint16_t port;

static void stop_loop(void *owner)
{
	(void)owner;
	loop_stop(loop);
}

static void begin(void)
{
	struct loop_address address;
	struct errbuf e;
	api.queries = query_engine_new(&options);
	server = http_server_new(loop, clock_real(), &limits, api_routes, api_route_count, &api);
	assert_int_equal(loop_address_parse(SLICE("127.0.0.1:0"), &address, &e), 0);
	assert_int_equal(http_server_listen(server, &address, &e), 0);
	port = http_server_address(server).port;
}

static int setup(void **state)
{
	(void)state;
	struct catalog_options catalog_options = catalog_options_default();
	loop = loop_new();
	clock_virtual_init(&clock_, NOW_MS * 1000);
	store = naive_open(&clock_.clock);
	catalog = catalog_new(store, &clock_.clock, loop_executor(loop), &catalog_options);
	api = (struct api){
		.loop = loop, .clock = &clock_.clock, .store = store, .catalog = catalog};
	options = (struct query_options){
		.store = store,
		.catalog = catalog,
		.clock = &clock_.clock,
		.executor = loop_executor(loop),
		.loop = loop,
	};
	limits = http_limits_default;
	begin();
	return 0;
}

static void end(void)
{
	http_server_stop(server, 0, stop_loop, NULL);
	loop_run(loop);
	http_server_free(server);
	while (!query_engine_idle(api.queries)) { /* reads that were dropped come back */
		loop_stop(loop);
		loop_run(loop);
	}
	query_engine_free(api.queries);
}

static void begin_again(void)
{
	end();
	begin();
}

static int teardown(void **state)
{
	(void)state;
	end();
	catalog_close(catalog, stop_loop, NULL);
	loop_run(loop);
	store_close(store);
	loop_free(loop);
	return 0;
}

/* ---- Data ---------------------------------------------------------------------------------- */

static void opened(struct catalog_open *open)
{
	(void)open;
	loop_stop(loop);
}

static void written(struct store_write *write, int err)
{
	(void)write;
	assert_int_equal(err, 0);
	loop_stop(loop);
}

static struct store_write *write_new(void)
{
	struct store_write *write = store_write_new(store, 16 << 20);
	write->executor = loop_executor(loop);
	write->done = written;
	return write;
}

static void write_out(struct store_write *write)
{
	assert_int_equal(store_write_submit(write), 0);
	loop_run(loop);
	store_write_free(write);
}

static uint64_t open_series(const char *tenant, const char *metric, const char *tags)
{
	struct arena arena;
	struct slice name = slice_of(metric);
	uint64_t handle = 0;
	arena_init(&arena, 1 << 20);
	struct catalog_group group = {
		.tenant = slice_of(tenant),
		.metrics = &name,
		.count = 1,
		.handles = &handle,
	};
	assert_int_equal(tags_decode(slice_of(tags), &arena, &group.tags), 0);
	struct catalog_open open = {
		.catalog = catalog,
		.executor = loop_executor(loop),
		.done = opened,
		.groups = &group,
		.count = 1,
	};
	assert_int_equal(catalog_open_start(&open), 0);
	loop_run(loop);
	assert_int_equal(group.err, 0);
	struct store_write *write = write_new();
	assert_int_equal(catalog_open_add_names(&open, write), 0);
	write_out(write);
	catalog_open_finish(&open, 0);
	arena_release(&arena);
	return handle;
}

static void put(uint64_t handle, int64_t ts_ms, struct value value)
{
	struct store_write *write = write_new();
	assert_int_equal(
		store_append(write, TABLE_DATA_RAW, 0, RETENTION_EVER, ts_ms, &handle, 1, &value),
		0);
	write_out(write);
}

/* ---- A client on a thread of its own -------------------------------------------------------- */

struct client {
	const char *verb; /* NULL: GET */
	const char *path, *headers;
	pthread_t thread;
	size_t read_max;    /* goes away after so many bytes; 0: reads to the end */
	useconds_t rest_us; /* between two reads of 4 KB */
	char *answer;
	size_t len;
	int status;
	const char *body; /* raw: chunks are as sent */
};

/* 0: the kernel's own size for what was not read yet. */
static int dial_with(int receive_bytes)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (receive_bytes)
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes,
					    sizeof(receive_bytes)),
				 0);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static int dial(void)
{
	return dial_with(0);
}

static void *run_client(void *context)
{
	struct client *c = context;
	char request[4096];
	int fd = dial();
	int n = snprintf(request, sizeof(request),
			 "%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n",
			 c->verb ? c->verb : "GET", c->path, c->headers ? c->headers : "");
	assert_int_equal(write(fd, request, (size_t)n), n);
	size_t room = 1 << 16;
	c->answer = mem_alloc(room);
	for (;;) {
		if (c->len + 4097 > room)
			c->answer = mem_resize(c->answer, room *= 2);
		ssize_t got = read(fd, c->answer + c->len, 4096);
		if (got <= 0)
			break;
		c->len += (size_t)got;
		if (c->read_max && c->len >= c->read_max)
			break;
		if (c->rest_us)
			usleep(c->rest_us);
	}
	c->answer[c->len] = 0;
	close(fd);
	loop_stop(loop);
	return NULL;
}

static void ask(struct client *c, const char *path)
{
	c->path = path;
	assert_int_equal(pthread_create(&c->thread, NULL, run_client, c), 0);
	loop_run(loop);
	pthread_join(c->thread, NULL);
	assert_memory_equal(c->answer, "HTTP/1.1 ", 9);
	c->status = (int)strtol(c->answer + 9, NULL, 10);
	c->body = strstr(c->answer, "\r\n\r\n");
	assert_non_null(c->body);
	c->body += 4;
}

static void expect(const char *path, int status, const char *body)
{
	struct client c = {0};
	ask(&c, path);
	if (c.status != status)
		fail_msg("%s: %s", path, c.answer);
	assert_string_equal(c.body, body);
	mem_free(c.answer);
}

static void refuse(const char *path, int status, const char *sentence)
{
	char body[1024];
	snprintf(body, sizeof(body), "{\"error\":{\"code\":%d,\"message\":\"%s\"}}\n", status,
		 sentence);
	expect(path, status, body);
}

/* The chunks of a streamed body put together. */
static char *unchunk(const char *body)
{
	char *plain = mem_alloc(strlen(body) + 1), *to = plain;
	for (;;) {
		char *at;
		size_t len = strtoul(body, &at, 16);
		assert_true(at != body && at[0] == '\r');
		if (!len)
			break;
		memcpy(to, at + 2, len);
		to += len;
		body = at + 2 + len + 2;
	}
	*to = 0;
	return plain;
}

/* ---- The worked example ---------------------------------------------------------------------- */

/* 2020-08-24T15:51:15Z is 1598284275 (date -d). The values that the document prints are at these
 * seconds; the others' are there to be left out. */
static void put_example(void)
{
	static const struct {
		const char *tags;
		int64_t s;
		double value;
	} points[] = {
		{"deployment=prod,host=h-1,os=linux", 1598284275, 186},
		{"deployment=prod,host=h-1,os=linux", 1598286234, 828},
		{"deployment=prod,host=h-1,os=linux", 1598286238, 842},
		{"deployment=prod,host=h-1,os=linux", 1598286412, 832},
		{"deployment=prod,host=h-1,os=linux", 1598286845, 436},
		{"deployment=prod,host=h-2,os=windows", 1598286845, 111},
		{"deployment=dev,host=h-3,os=linux", 1598286845, 222},
		{"deployment=prod,host=h-4,os=linux", 1598286845, 477},
	};
	for (size_t i = 0; i < ARRAY_LEN(points); i++)
		put(open_series("t-1", "cpu_idle", points[i].tags), points[i].s * 1000,
		    value_f64(points[i].value));
	put(open_series("t-2", "cpu_idle", points[0].tags), 1598286845000, value_f64(999));
}

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
#define NO_MS "\"catalogMs\":0.000,\"storeMs\":0.000,\"readersMs\":0.000,\"encodingMs\":0.000}"

static void test_explain(void **state)
{
	(void)state;
	put_example();
	expect(ASK "&start=2020-08-24T16:30:00Z&agg=max&by=os&explain=1", 200,
	       "{\"result\":[" ROW("\"os\":\"linux\"", AT_1634 "477.0") "," ROW(
		       "\"os\":\"windows\"",
		       AT_1634 "111.0") "],\"explain\":{\"series\":4,\"rows\":2,\"points\":2,"
					"\"reads\":2,\"extents\":0,\"blocksDecoded\":0,"
					"\"blocksSummarised\":0,\"blocksSkipped\":0,"
					"\"samplesDecoded\":4,\"samplesEstimated\":0," NO_MS "}");
	expect(ASK "&start=2020-08-24T16:30:00Z&tag=host=h-9&explain=1", 200,
	       "{\"result\":[],\"explain\":{\"series\":0,\"rows\":0,\"points\":0,\"reads\":0,"
	       "\"extents\":0,\"blocksDecoded\":0,\"blocksSummarised\":0,\"blocksSkipped\":0,"
	       "\"samplesDecoded\":0,\"samplesEstimated\":0," NO_MS "}");
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
	       "metricName: metric \\\"\\\" is empty (1 to 256 bytes)");
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
	refuse("/api/query?metricName=m&start=1h-ago&fn=max", 400, "fn is given without window");
	refuse("/api/query?metricName=m&start=1h-ago&window=1h", 400, "window is given without fn");
	refuse("/api/query?metricName=m&start=1h-ago&fn=median&window=1h", 400,
	       "fn \\\"median\\\" is none of min, max, sum, avg, count, first, last");
	refuse("/api/query?metricName=m&start=1h-ago&fn=max&window=0s", 400, "window is zero");
	refuse("/api/query?metricName=m&start=1h-ago&agg=last", 400,
	       "agg \\\"last\\\" is none of min, max, sum, avg, count");
	refuse("/api/query?metricName=m&start=1h-ago&by=host", 400, "by is given without agg");
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
	       "fn and window compute from raw data, aggregator and granularity read what is "
	       "stored: give one or the other");
	refuse("/api/query?metricName=m&start=1h-ago&aggregator=max&granularity=1h", 422,
	       "no roll-ups are stored; fn=max with a window computes from raw data");
	refuse("/api/query?metricName=m&start=1h-ago&aggregator=mean", 400,
	       "aggregator \\\"mean\\\" is none of raw, min, max, sum, avg, count");
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
	       "3 series match; at most 2 are read at once");
	refuse(ASK "&tag=host=h-1&start=3h-ago", 422,
	       "the time from start to end is longer than 2 hours");
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
		assert_int_equal(store_append(write, TABLE_DATA_RAW, 0, RETENTION_EVER,
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
	static const char request[] = "GET " ASK_LONG " HTTP/1.1\r\nHost: a\r\n\r\n";
	uint64_t h = open_series("default", "long", "host=a");
	for (int part = 0; part < 8; part++) {
		struct store_write *write = write_new();
		for (int i = part * DEAF_POINTS / 8; i < (part + 1) * DEAF_POINTS / 8; i++) {
			struct value value = value_f64(i);
			assert_int_equal(store_append(write, TABLE_DATA_RAW, 0, RETENTION_EVER,
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

/* ---- Metadata -------------------------------------------------------------------------------- */

static void test_metadata(void **state)
{
	(void)state;
	put_example();
	open_series("t-1", "mem_free", "");
	expect("/api/metadata/tenants", 200, "[\"t-1\",\"t-2\"]");
	expect("/api/metadata/tenants?prefix=t-2", 200, "[\"t-2\"]");
	expect("/api/metadata/metricNames?tenant=t-1", 200, "[\"cpu_idle\",\"mem_free\"]");
	expect("/api/metadata/metricNames?tenant=t-1&prefix=m", 200, "[\"mem_free\"]");
	expect("/api/metadata/metricNames?tenant=t-2", 200, "[\"cpu_idle\"]");
	expect("/api/metadata/metricNames", 200, "[]");
	expect("/api/metadata/tagKeys?tenant=t-1&metricName=cpu_idle", 200,
	       "[\"deployment\",\"host\",\"os\"]");
	expect("/api/metadata/tagKeys?tenant=t-1&metricName=mem_free", 200, "[]");
	expect("/api/metadata/tagValues?tenant=t-1&metricName=cpu_idle&tagKey=os", 200,
	       "[\"linux\",\"windows\"]");
	expect("/api/metadata/tagValues?tenant=t-2&metricName=cpu_idle&tagKey=os", 200,
	       "[\"linux\"]");
	expect("/api/metadata/tagValues?tenant=t-1&metricName=cpu_idle&tagKey=nil", 200, "[]");
	struct client c = {0};
	ask(&c, "/api/metadata/tagValues?tenant=t-1&metricName=cpu_idle&tagKey=host&limit=3");
	assert_string_equal(c.body, "[\"h-1\",\"h-2\",\"h-3\"]");
	assert_non_null(strstr(c.answer, "X-Granary-Cut: limit\r\n"));
	mem_free(c.answer);
	refuse("/api/metadata/tagKeys?tenant=t-1", 400, "metricName is missing");
	refuse("/api/metadata/tagValues?tenant=t-1&metricName=cpu_idle", 400, "tagKey is missing");
	refuse("/api/metadata/tenants?limit=0", 400,
	       "limit \\\"0\\\" is not a number from 1 to 100000");
	refuse("/api/metadata/tenants?limit=x", 400,
	       "limit \\\"x\\\" is not a number from 1 to 100000");
	refuse("/api/metadata/tenants?tenant=x", 400, "unknown parameter \\\"tenant\\\"");
}

static void test_metadata_series(void **state)
{
	(void)state;
	put_example();
	struct store_write *write = write_new();
	struct catalog_info info = {KIND_GAUGE, SLICE("%"), TABLE_DATA_RAW, 10000};
	assert_int_equal(catalog_info_put(store, write, SLICE("t-1"), SLICE("cpu_idle"), &info), 0);
	write_out(write);
	expect("/api/metadata/series?tenant=t-1&metricName=cpu_idle&tag=host=h-4", 200,
	       "[{\"seriesSet\":\"cpu_idle,deployment=prod,host=h-4,os=linux\",\"tenant\":\"t-1\","
	       "\"metricName\":\"cpu_idle\",\"tags\":{\"deployment\":\"prod\",\"host\":\"h-4\","
	       "\"os\":\"linux\"},\"kind\":\"gauge\",\"unit\":\"%\",\"table\":\"data_raw\","
	       "\"baseFrequencyMs\":10000,\"firstSeen\":\"2020-08-24T16:34:05Z\","
	       "\"lastSeen\":\"2020-08-24T16:34:05Z\"}]");
	open_series("t-1", "a,b", "c=d\\=e");
	expect("/api/metadata/series?tenant=t-1&metricName=a,b", 200,
	       "[{\"seriesSet\":\"a\\\\,b,c=d\\\\=e\",\"tenant\":\"t-1\",\"metricName\":\"a,b\","
	       "\"tags\":{\"c\":\"d=e\"},\"kind\":\"unknown\",\"unit\":\"\",\"table\":\"data_raw\","
	       "\"baseFrequencyMs\":0,\"firstSeen\":\"2020-08-24T16:40:00Z\",\"lastSeen\":null}]");
	expect("/api/metadata/series?tenant=t-1&metricName=none", 200, "[]");
	refuse("/api/metadata/series?tenant=t-1", 400, "metricName is missing");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_document),
		TEST(test_values),
		TEST(test_tenant),
		TEST(test_refused),
		TEST(test_limits),
		TEST(test_long),
		TEST(test_slow_client),
		TEST(test_vanishing_client),
		TEST(test_metadata),
		TEST(test_metadata_series),
		TEST(test_head_reads_nothing),
		TEST(test_several_in_one),
		TEST(test_explain),
		TEST(test_deaf_client),
		TEST(test_client_that_is_cut_during_a_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
