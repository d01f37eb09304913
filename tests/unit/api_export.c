/* /api/export over a real connection: the three shapes, the order, pages and their tokens. The
 * lines that are wanted are written by hand. */
#include "api_harness.h"

#define ASK "/api/export?tenant=t-1"
#define H1  "cpu_idle,deployment=prod,host=h-1,os=linux value="

/* Answers leave in chunks. */
static char *ask_page(struct client *c, const char *path)
{
	ask(c, path);
	if (c->status != 200)
		fail_msg("%s: %s", path, c->answer);
	return unchunk(c->body);
}

static void expect_page(const char *path, const char *wanted)
{
	struct client c = {0};
	char *text = ask_page(&c, path);
	assert_string_equal(text, wanted);
	mem_free(text);
	mem_free(c.answer);
}

#define TITLE "# granary precision=ms\n"

static void test_lines(void **state)
{
	(void)state;
	put_example();
	put(open_series("t-1", "cpu", "host=z"), -5, value_i64(-7));
	/* The metric cpu stands before cpu_idle; deployment=dev before deployment=prod. */
	expect_page(ASK, TITLE
		    "cpu,host=z value=-7i -5\n"
		    "cpu_idle,deployment=dev,host=h-3,os=linux value=222.0 1598286845000\n" H1
		    "186.0 1598284275000\n" H1 "828.0 1598286234000\n" H1 "842.0 1598286238000\n" H1
		    "832.0 1598286412000\n" H1 "436.0 1598286845000\n"
		    "cpu_idle,deployment=prod,host=h-2,os=windows value=111.0 1598286845000\n"
		    "cpu_idle,deployment=prod,host=h-4,os=linux value=477.0 1598286845000\n");
	/* start counts, end does not. */
	expect_page(ASK "&metricName=cpu_idle&tag=host=h-1&start=1598286234&end=1598286845",
		    TITLE H1 "828.0 1598286234000\n" H1 "842.0 1598286238000\n" H1
			     "832.0 1598286412000\n");
	expect_page(ASK "&metricName=cpu", TITLE "cpu,host=z value=-7i -5\n");
	expect_page(ASK "&tag=host=z", TITLE "cpu,host=z value=-7i -5\n");
	expect_page(ASK "&tag=host=nobody", TITLE);
	expect_page(ASK "&metricName=nothing", TITLE);
	expect_page("/api/export?tenant=nobody", TITLE);
}

static void put_values(void)
{
	uint64_t h = open_series("default", "m", "");
	put(h, INT64_MIN + 1, value_u64(UINT64_MAX));
	put(h, -1, value_i64(INT64_MIN));
	put(h, 0, value_f64(-0.0));
	put(h, 1, value_f64(5e-324));
	put(h, 2, value_f64(0.1));
	put(h, 3, value_f64(1e300));
	put(h, 4, value_f64(__builtin_nan("")));
	put(h, 5, value_f64(-__builtin_inf()));
	put(h, INT64_MAX - 1, value_u64(0));
}

static void test_values(void **state)
{
	(void)state;
	put_values();
	expect_page("/api/export", TITLE "m value=18446744073709551615u -9223372036854775807\n"
					 "m value=-9223372036854775808i -1\n"
					 "m value=-0.0 0\n"
					 "m value=5e-324 1\n"
					 "m value=0.1 2\n"
					 "m value=1e+300 3\n"
					 "m value=NaN 4\n"
					 "m value=-Inf 5\n"
					 "m value=0u 9223372036854775806\n");
	expect_page("/api/export?format=json",
		    "{\"metric\":{\"__name__\":\"m\"},\"values\":[18446744073709551615,"
		    "-9223372036854775808,-0.0,5e-324,0.1,1e+300,null,\"-Infinity\",0],"
		    "\"timestamps\":[-9223372036854775807,-1,0,1,2,3,4,5,9223372036854775806]}\n");
	expect_page("/api/export?format=csv", "metric,tags,time_ms,type,value\n"
					      "m,,-9223372036854775807,u64,18446744073709551615\n"
					      "m,,-1,i64,-9223372036854775808\n"
					      "m,,0,f64,-0.0\n"
					      "m,,1,f64,5e-324\n"
					      "m,,2,f64,0.1\n"
					      "m,,3,f64,1e+300\n"
					      "m,,4,f64,NaN\n"
					      "m,,5,f64,-Inf\n"
					      "m,,9223372036854775806,u64,0\n");
}

/* Names with all that means something to one of the shapes. */
static void test_names(void **state)
{
	(void)state;
	put(open_series("default", "a b,c=d", "k\\=1=v\\,2 3\"\\\\x"), 1, value_i64(1));
	expect_page("/api/export", TITLE "a\\ b\\,c=d,k\\=1=v\\,2\\ 3\"\\x value=1i 1\n");
	expect_page("/api/export?format=json",
		    "{\"metric\":{\"__name__\":\"a b,c=d\",\"k=1\":\"v,2 3\\\"\\\\x\"},"
		    "\"values\":[1],\"timestamps\":[1]}\n");
	expect_page("/api/export?format=csv", "metric,tags,time_ms,type,value\n"
					      "\"a b,c=d\",\"k\\=1=v\\,2 3\"\"\\\\x\",1,i64,1\n");
}

/* The value of a header; NULL: there is none. To be freed. */
static char *header_of(const struct client *c, const char *name)
{
	const char *at = strstr(c->answer, name);
	if (!at || at > c->body)
		return NULL;
	at += strlen(name);
	return mem_copy_text((struct slice){at, (size_t)(strstr(at, "\r\n") - at)});
}

static void test_names_without_a_form(void **state)
{
	(void)state;
	struct client c = {0};
	put(open_series("default", "#m", ""), 1, value_i64(1));
	put(open_series("default", "m", "k=ends in \\\\"), 2, value_i64(2));
	put(open_series("default", "m", "k\\\\=v"), 3, value_i64(3));
	put(open_series("default", "m\\", "k=v"), 4, value_i64(4));
	put(open_series("default", "n", "__name__=v"), 5, value_i64(5));
	char *text = ask_page(&c, "/api/export");
	assert_string_equal(text, TITLE "n,__name__=v value=5i 5\n");
	char *left_out = header_of(&c, "X-Granary-Left-Out: ");
	assert_string_equal(left_out, "4");
	mem_free(left_out);
	mem_free(c.answer);
	c = (struct client){0};
	mem_free(text);
	text = ask_page(&c, "/api/export?format=json&start=1970-01-01T00:00:00.004Z&end=1");
	assert_string_equal(text, "{\"metric\":{\"__name__\":\"m\\\\\",\"k\":\"v\"},"
				  "\"values\":[4],\"timestamps\":[4]}\n");
	left_out = header_of(&c, "X-Granary-Left-Out: ");
	assert_string_equal(left_out, "1");
	mem_free(left_out);
	mem_free(text);
	mem_free(c.answer);
	expect_page("/api/export?format=csv&start=1970-01-01T00:00:00.003Z",
		    "metric,tags,time_ms,type,value\n"
		    "m,k\\\\=v,3,i64,3\n"
		    "m\\,k=v,4,i64,4\n"
		    "n,__name__=v,5,i64,5\n");
}

/* All pages, one after the other; how many there were. */
static size_t export_all(const char *path, struct buf *out)
{
	char *token = NULL;
	size_t pages = 0;
	do {
		struct client c = {0};
		char next[4096];
		struct buf escaped;
		buf_init(&escaped, sizeof(next));
		for (const char *p = token; p && *p; p++)
			buf_printf(&escaped, "%%%02x", (uint8_t)*p);
		snprintf(next, sizeof(next), "%s%s%.*s", path, token ? "&token=" : "",
			 (int)escaped.len, escaped.len ? escaped.data : "");
		char *text = ask_page(&c, next);
		buf_append_text(out, text);
		mem_free(text);
		mem_free(token);
		token = header_of(&c, "X-Granary-Next: ");
		mem_free(c.answer);
		buf_release(&escaped);
		pages++;
	} while (token);
	buf_append_char(out, 0);
	return pages;
}

static void expect_all(const char *path, const char *wanted, size_t pages)
{
	struct buf out;
	buf_init(&out, 64 << 20);
	size_t were = export_all(path, &out);
	assert_string_equal(out.data, wanted);
	assert_int_equal(were, pages);
	buf_release(&out);
}

static void test_pages(void **state)
{
	(void)state;
	struct buf whole;
	put_example();
	put(open_series("t-1", "cpu_idle", "deployment=a b "), 7, value_u64(7));
	put(open_series("t-1", "cpu ,=", ""), 8, value_u64(8));
	buf_init(&whole, 1 << 20);
	assert_int_equal(export_all(ASK "&format=csv", &whole), 1);
	/* Ten samples: a last page that is full cannot know that nothing follows. */
	expect_all(ASK "&format=csv&limit=1", whole.data, 11);
	expect_all(ASK "&format=csv&limit=3", whole.data, 4);
	expect_all(ASK "&format=csv&limit=10", whole.data, 2);
	expect_all(ASK "&format=csv&limit=11", whole.data, 1);
	buf_release(&whole);
	expect_all(
		ASK "&format=json&limit=2&tag=host=h-1",
		"{\"metric\":{\"__name__\":\"cpu_idle\",\"deployment\":\"prod\",\"host\":\"h-1\","
		"\"os\":\"linux\"},\"values\":[186.0,828.0],"
		"\"timestamps\":[1598284275000,1598286234000]}\n"
		"{\"metric\":{\"__name__\":\"cpu_idle\",\"deployment\":\"prod\",\"host\":\"h-1\","
		"\"os\":\"linux\"},\"values\":[842.0,832.0],"
		"\"timestamps\":[1598286238000,1598286412000]}\n"
		"{\"metric\":{\"__name__\":\"cpu_idle\",\"deployment\":\"prod\",\"host\":\"h-1\","
		"\"os\":\"linux\"},\"values\":[436.0],\"timestamps\":[1598286845000]}\n",
		3);
}

/* A token whose series, and whose metric, is not there goes on with those behind it. */
static void test_token_of_nothing(void **state)
{
	(void)state;
	put_example();
	expect_page(ASK "&token=0%20cpu_idle,deployment=prod,host=h-3;&start=1598286845",
		    "cpu_idle,deployment=prod,host=h-4,os=linux value=477.0 1598286845000\n");
	expect_page(ASK "&token=0%20a;&tag=host=h-4",
		    "cpu_idle,deployment=prod,host=h-4,os=linux value=477.0 1598286845000\n");
	expect_page(ASK "&token=1598286845001%20cpu_idle,deployment=prod,host=h-4,os=linux;", "");
	expect_page(ASK "&token=0%20cpu_idlf;", "");
	/* The time of a token is of its series alone. */
	expect_page(ASK "&token=9999999999999%20cpu_idle,deployment=prod,host=h-3;",
		    "cpu_idle,deployment=prod,host=h-4,os=linux value=477.0 1598286845000\n");
	/* What begins before `start` begins there. */
	expect_page(ASK "&token=0%20cpu_idle,deployment=prod,host=h-4,os=linux;&start=1598286846",
		    "");
}

/* More series than a page looks at, and more metrics than are listed at once. */
static void test_many(void **state)
{
	(void)state;
	enum { SERIES = 5000, METRICS = 1100 };
	struct buf wanted;
	char name[64], tags[64];
	buf_init(&wanted, 1 << 20);
	for (int i = 0; i < METRICS; i++) {
		snprintf(name, sizeof(name), "m%04d", i);
		put(open_series("t-1", name, i % 600 == 599 ? "k=wanted" : "k=other"), i,
		    value_i64(i));
	}
	expect_all(ASK "&tag=k=wanted", TITLE "m0599,k=wanted value=599i 599\n", 3);
	for (int i = SERIES - 1; i >= 0; i--) {
		snprintf(tags, sizeof(tags), "k=%d", 10000 + i);
		put(open_series("t-1", "n", tags), i, value_i64(i));
	}
	buf_append_text(&wanted, TITLE);
	for (int i = 0; i < SERIES; i++)
		buf_printf(&wanted, "n,k=%d value=%di %d\n", 10000 + i, i, i);
	buf_append_char(&wanted, 0);
	expect_all(ASK "&metricName=n", wanted.data, 2);
	buf_release(&wanted);
}

/* 300,000 lines of 55 to 65 bytes are 18 MB: two pages of 8 MB and some. */
static void test_long_pages(void **state)
{
	(void)state;
	enum { SAMPLES = 300000 };
	uint64_t h = open_series("t-1", "a.metric.with.a.name", "host=some.machine.example");
	struct store_write *write = write_new();
	struct buf wanted, out;
	buf_init(&wanted, 64 << 20);
	buf_init(&out, 64 << 20);
	buf_append_text(&wanted, TITLE);
	for (int64_t i = 0; i < SAMPLES; i++) {
		struct value value = value_i64(i);
		struct store_target target = {TABLE_DATA_RAW, RETENTION_EVER};
		int err = store_append(write, &target, i, &h, 1, &value);
		if (err == ERR_LIMIT) {
			write_out(write);
			write = write_new();
			err = store_append(write, &target, i, &h, 1, &value);
		}
		assert_int_equal(err, 0);
		buf_printf(&wanted,
			   "a.metric.with.a.name,host=some.machine.example value=%lldi %lld\n",
			   (long long)i, (long long)i);
	}
	write_out(write);
	buf_append_char(&wanted, 0);
	assert_int_equal(export_all(ASK, &out), 3);
	assert_true(strcmp(out.data, wanted.data) == 0);
	buf_clear(&out);
	assert_int_equal(export_all(ASK "&format=json", &out), 1);
	size_t lines = 0;
	for (const char *p = out.data; (p = strchr(p, '\n')); p++)
		lines++;
	assert_int_equal(lines, 37); /* of 8,192 samples: 36.6 */
	buf_release(&wanted);
	buf_release(&out);
}

static void test_refused(void **state)
{
	(void)state;
	static const char *const tokens[] = {"",
					     "x",
					     "0%20m",
					     "0m;",
					     "%20m;",
					     "0%20;",
					     "1%202;%20",
					     "0%20m,;",
					     "0%20m,k;",
					     "0%20m,k=;",
					     "9223372036854775808%20m;"};
	for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
		struct client c = {0};
		char path[256];
		snprintf(path, sizeof(path), ASK "&token=%s", tokens[i]);
		ask(&c, path);
		if (c.status != 400 ||
		    !strstr(c.body, "is none that X-Granary-Next of an export had"))
			fail_msg("%s: %s", path, c.answer);
		mem_free(c.answer);
	}
	refuse(ASK "&start=2&end=1", 400, "start lies behind end");
	refuse(ASK "&format=xml", 400, "format \\\"xml\\\" is none of lines, json, csv");
	refuse(ASK "&limit=0", 400, "limit \\\"0\\\" is not a number from 1 to 1000000");
	refuse(ASK "&metricname=m", 400, "unknown parameter \\\"metricname\\\"");
	refuse(ASK "&tag=x", 400, "tag: \\\"x\\\" is not of the form key=value");
	struct client c = {.verb = "HEAD"};
	ask(&c, ASK);
	assert_int_equal(c.status, 200);
	mem_free(c.answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_lines),   TEST(test_values),
		TEST(test_names),   TEST(test_names_without_a_form),
		TEST(test_pages),   TEST(test_token_of_nothing),
		TEST(test_many),    TEST(test_long_pages),
		TEST(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
