/* What clients of OpenTSDB ask, over a real connection, of the data of the document's worked
 * example: hosts h-1 (linux, prod), h-2 (windows, prod), h-3 (linux, dev), h-4 (linux, prod). */
#include "api_harness.h"

#include <math.h>

static void test_constants(void **state)
{
	(void)state;
	struct client c = {0};
	expect("/api/aggregators", 200,
	       "[\"avg\",\"count\",\"max\",\"mimmax\",\"mimmin\",\"min\",\"none\",\"sum\","
	       "\"zimsum\"]");
	ask(&c, "/api/config/filters");
	assert_int_equal(c.status, 200);
	assert_memory_equal(c.body, "{\"literal_or\":{\"examples\":\"host=literal_or(web01|web02) ",
			    54);
	assert_non_null(strstr(c.body, "},\"not_literal_or\":{\"examples\":"));
	assert_non_null(strstr(c.body, "},\"regexp\":{\"examples\":"));
	assert_non_null(strstr(c.body, "},\"wildcard\":{\"examples\":"));
	mem_free(c.answer);
	refuse("/api/aggregators?q=a", 400, "unknown parameter \\\"q\\\"");
	refuse("/api/config/filters?q=a", 400, "unknown parameter \\\"q\\\"");
}

static void test_suggest(void **state)
{
	(void)state;
	put_example();
	open_series("t-1", "cpu_user", "core=0,host=h-0");
	open_series("t-1", "mem_free", "");
#define SUGGEST "/api/suggest?tenant=t-1&type="
	expect(SUGGEST "metrics", 200, "[\"cpu_idle\",\"cpu_user\",\"mem_free\"]");
	expect(SUGGEST "metrics&q=cpu&max=25", 200, "[\"cpu_idle\",\"cpu_user\"]");
	expect(SUGGEST "metrics&q=", 200, "[\"cpu_idle\",\"cpu_user\",\"mem_free\"]");
	expect(SUGGEST "metrics&q=pu", 200, "[]");
	/* Of all metrics, each once, in order. */
	expect(SUGGEST "tagk", 200, "[\"core\",\"deployment\",\"host\",\"os\"]");
	expect(SUGGEST "tagk&q=d", 200, "[\"deployment\"]");
	expect(SUGGEST "tagv", 200,
	       "[\"0\",\"dev\",\"h-0\",\"h-1\",\"h-2\",\"h-3\",\"h-4\",\"linux\",\"prod\","
	       "\"windows\"]");
	expect(SUGGEST "tagv&q=h-", 200, "[\"h-0\",\"h-1\",\"h-2\",\"h-3\",\"h-4\"]");
	/* Tenants see nothing of each other. */
	expect("/api/suggest?tenant=t-2&type=tagv", 200, "[\"h-1\",\"linux\",\"prod\"]");
	expect("/api/suggest?tenant=t-3&type=tagv", 200, "[]");
	expect("/api/suggest?type=tagk", 200, "[]");
	struct client c = {.headers = "X-Tenant: t-2\r\n"};
	ask(&c, "/api/suggest?type=tagk");
	assert_string_equal(c.body, "[\"deployment\",\"host\",\"os\"]");
	mem_free(c.answer);
}

/* The first ones by name, whichever metric has them, and it says that there are more. */
static void test_suggest_max(void **state)
{
	(void)state;
	static const char *const asked[][2] = {
		{SUGGEST "metrics&max=1", "[\"cpu_idle\"]"},
		{SUGGEST "tagk&max=2", "[\"core\",\"deployment\"]"},
		{SUGGEST "tagv&max=3", "[\"0\",\"dev\",\"h-0\"]"},
		{SUGGEST "tagv&q=h-&max=4", "[\"h-0\",\"h-1\",\"h-2\",\"h-3\"]"},
	};
	put_example();
	open_series("t-1", "cpu_user", "core=0,host=h-0");
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		struct client c = {0};
		ask(&c, asked[i][0]);
		assert_string_equal(c.body, asked[i][1]);
		assert_non_null(strstr(c.answer, "X-Granary-Cut: limit\r\n"));
		mem_free(c.answer);
	}
	struct client c = {0};
	ask(&c, SUGGEST "tagk&max=4"); /* all of them */
	assert_string_equal(c.body, "[\"core\",\"deployment\",\"host\",\"os\"]");
	assert_null(strstr(c.answer, "X-Granary-Cut"));
	mem_free(c.answer);
}

static void test_suggest_bad(void **state)
{
	(void)state;
	refuse("/api/suggest", 400, "type is missing: metrics, tagk or tagv");
	refuse("/api/suggest?type=tags", 400, "type \\\"tags\\\" is none of metrics, tagk, tagv");
	refuse("/api/suggest?type=", 400, "type \\\"\\\" is none of metrics, tagk, tagv");
	refuse("/api/suggest?type=tagk&max=0", 400, "max \\\"0\\\" is not a number from 1 on");
	refuse("/api/suggest?type=tagk&max=-1", 400, "max \\\"-1\\\" is not a number from 1 on");
	refuse("/api/suggest?type=tagk&type=tagv", 400, "type is given twice");
	refuse("/api/suggest?type=tagk&metric=m", 400, "unknown parameter \\\"metric\\\"");
	refuse("/api/suggest?type=tagk&tenant=a%20b", 400,
	       "tenant \\\"a b\\\" is not 1 to 64 of A-Za-z0-9_.-");
}

#define FOUND(deployment, host, os)                                                                \
	"{\"metric\":\"cpu_idle\",\"tags\":{\"deployment\":\"" deployment "\",\"host\":\"" host    \
	"\",\"os\":\"" os "\"}}"
#define LOOKUP "/api/search/lookup?tenant=t-1&m="

static void look_up(const char *path, const char *tags, const char *limit, const char *results,
		    const char *total)
{
	char body[2048];
	snprintf(body, sizeof(body),
		 "{\"type\":\"LOOKUP\",\"metric\":\"cpu_idle\",\"tags\":[%s],\"limit\":%s,"
		 "\"results\":[%s],\"time\":0,\"startIndex\":0,\"totalResults\":%s}",
		 tags, limit, results, total);
	expect(path, 200, body);
}

#define KV(key, value) "{\"key\":\"" key "\",\"value\":\"" value "\"}"

static void test_lookup(void **state)
{
	(void)state;
	put_example();
	look_up(LOOKUP "cpu_idle", "", "25",
		FOUND("dev", "h-3", "linux") "," FOUND("prod", "h-1", "linux") "," FOUND(
			"prod", "h-2", "windows") "," FOUND("prod", "h-4", "linux"),
		"4");
	look_up(LOOKUP "cpu_idle{}&limit=1", "", "1", FOUND("dev", "h-3", "linux"), "4");
	/* All must hold. */
	look_up(LOOKUP "cpu_idle{host=*,os=linux,deployment=prod}",
		KV("host", "*") "," KV("os", "linux") "," KV("deployment", "prod"), "25",
		FOUND("prod", "h-1", "linux") "," FOUND("prod", "h-4", "linux"), "2");
	look_up(LOOKUP "cpu_idle{host=h-1|h-3}", KV("host", "h-1|h-3"), "25",
		FOUND("dev", "h-3", "linux") "," FOUND("prod", "h-1", "linux"), "2");
	/* A value of whatever tag; it counts against the limit only where it is meant. */
	look_up(LOOKUP "cpu_idle{*=windows}&limit=1", KV("*", "windows"), "1",
		FOUND("prod", "h-2", "windows"), "1");
	look_up(LOOKUP "cpu_idle{host=*,*=w*}", KV("host", "*") "," KV("*", "w*"), "25",
		FOUND("prod", "h-2", "windows"), "1");
	look_up(LOOKUP "cpu_idle{*=dev,*=windows}", KV("*", "dev") "," KV("*", "windows"), "25", "",
		"0");
	look_up(LOOKUP "cpu_idle{owner=*}", KV("owner", "*"), "25", "", "0");
	look_up("/api/search/lookup?tenant=t-2&m=cpu_idle{host=*}", KV("host", "*"), "25",
		FOUND("prod", "h-1", "linux"), "1");
	look_up("/api/search/lookup?m=cpu_idle", "", "25", "", "0");
}

static void test_lookup_bad(void **state)
{
	(void)state;
	refuse("/api/search/lookup", 400, "m is missing: a metric, or metric{tag=value}");
	refuse(LOOKUP, 400, "m names no metric");
	refuse(LOOKUP "{host=a}", 400, "m names no metric");
	refuse(LOOKUP "a{host=a", 400, "m \\\"a{host=a\\\" does not end with }");
	refuse(LOOKUP "a{", 400, "m \\\"a{\\\" does not end with }");
	refuse(LOOKUP "a{host}", 400, "m: \\\"host\\\" is not of the form key=value");
	refuse(LOOKUP "a{=b}", 400, "m: a tag's key is empty");
	refuse(LOOKUP "a&limit=0", 400, "limit \\\"0\\\" is not a number from 1 on");
	refuse(LOOKUP "a&query=b", 400, "unknown parameter \\\"query\\\"");
}

/* ---- POST /api/query ------------------------------------------------------------------------ */

/* The line's end that closes the headers of the client is the last of the body, a blank of JSON. */
static void post(struct client *c, const char *path, const char *json)
{
	static char headers[4000];
	int n = snprintf(headers, sizeof(headers),
			 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
			 strlen(json) + 2, json);
	assert_true(n > 0 && (size_t)n < sizeof(headers));
	*c = (struct client){.verb = "POST", .headers = headers};
	ask(c, path);
}

static void expect_post(const char *path, const char *json, int status, const char *body)
{
	struct client c;
	post(&c, path, json);
	if (c.status != status || strcmp(c.body, body) != 0)
		fail_msg("%s\n%s\ninstead of\n%s", json, c.answer, body);
	mem_free(c.answer);
}

#define POST(json, body) expect_post("/api/query?tenant=t-1", json, 200, body)
/* 2020-08-24T15:00:00Z to 17:00:00Z */
#define ALL         "\"start\":1598281200,\"end\":1598288400"
#define QUERY(what) "{" ALL ",\"queries\":[{\"metric\":\"cpu_idle\"," what "}]}"
#define FILTER(t, k, f, by)                                                                        \
	"{\"type\":\"" t "\",\"tagk\":\"" k "\",\"filter\":\"" f "\",\"groupBy\":" by "}"
#define GROUP(tags, keys, dps)                                                                     \
	"{\"metric\":\"cpu_idle\",\"dps\":{" dps "},\"tags\":{" tags "},\"aggregateTags\":[" keys  \
	"],\"aggregatedTags\":[" keys "]}"
#define TAGS(d, h, o) "\"deployment\":\"" d "\",\"host\":\"" h "\",\"os\":\"" o "\""

/* The four series at 1598286845: 436 (h-1), 111 (h-2), 222 (h-3), 477 (h-4); h-1 also before. */
static void test_query(void **state)
{
	(void)state;
	put_example();
	POST(QUERY("\"aggregator\":\"none\",\"filters\":[" FILTER("literal_or", "host", "h-4|h-9",
								  "false") "]"),
	     "[" GROUP(TAGS("prod", "h-4", "linux"), "", "\"1598286845\":477.0") "]");
	/* All filters hold; of the tags those are said that all series share. */
	POST(QUERY("\"aggregator\":\"sum\",\"filters\":[" FILTER(
		     "wildcard", "host", "h-*",
		     "false") "," FILTER("literal_or", "os", "linux",
					 "false") "," FILTER("literal_or", "deployment", "prod",
							     "false") "]"),
	     "[" GROUP("\"deployment\":\"prod\",\"os\":\"linux\"", "\"host\"",
		       "\"1598284275\":186.0,\"1598286234\":828.0,\"1598286238\":842.0,"
		       "\"1598286412\":832.0,\"1598286845\":913.0") "]");
}

static void test_groups(void **state)
{
	(void)state;
	put_example();
	/* Of 16:00 the maxima are 842, 111, 222 and 477; 17:00 is the end, which counts. */
	POST(QUERY("\"aggregator\":\"sum\",\"downsample\":\"1h-max\",\"filters\":[" FILTER(
		     "wildcard", "os", "*", "true") "]"),
	     "[" GROUP("\"os\":\"linux\"", "\"deployment\",\"host\"",
		       "\"1598281200\":186.0,\"1598284800\":1541.0") "," GROUP(TAGS("prod", "h-2",
										    "windows"),
									       "",
									       "\"1598284800\":111."
									       "0") "]");
	POST(QUERY("\"aggregator\":\"sum\",\"downsample\":\"1h-max-null\",\"tags\":{\"os\":"
		   "\"windows\"}"),
	     "[" GROUP(TAGS("prod", "h-2", "windows"), "",
		       "\"1598281200\":null,\"1598284800\":111.0,\"1598288400\":null") "]");
	POST(QUERY("\"aggregator\":\"sum\",\"downsample\":\"1h-max-nan\",\"tags\":{\"os\":"
		   "\"windows\"}"),
	     "[" GROUP(TAGS("prod", "h-2", "windows"), "",
		       "\"1598281200\":null,\"1598284800\":111.0,\"1598288400\":null") "]");
	/* (842 + 111 + 222 + 477) / 4; with zeros 186 / 4 at 15:00, else only h-1 counts there. */
	POST(QUERY("\"aggregator\":\"avg\",\"downsample\":\"1h-max\""),
	     "[" GROUP("", "\"deployment\",\"host\",\"os\"",
		       "\"1598281200\":186.0,\"1598284800\":413.0") "]");
	POST(QUERY("\"aggregator\":\"avg\",\"downsample\":\"1h-max-zero\""),
	     "[" GROUP("", "\"deployment\",\"host\",\"os\"",
		       "\"1598281200\":46.5,\"1598284800\":413.0,\"1598288400\":0") "]");
	POST(QUERY("\"aggregator\":\"count\",\"downsample\":\"1h-max\""),
	     "[" GROUP("", "\"deployment\",\"host\",\"os\"",
		       "\"1598281200\":1,\"1598284800\":4") "]");
	POST(QUERY("\"aggregator\":\"mimmin\",\"downsample\":\"1h-zimsum-zero\""),
	     "[" GROUP("", "\"deployment\",\"host\",\"os\"",
		       "\"1598281200\":0,\"1598284800\":111.0,\"1598288400\":0") "]");
	/* All seven samples of 16:00: 2938 + 111 + 222 + 477 = 3748. */
	POST(QUERY("\"aggregator\":\"avg\",\"downsample\":\"1h-avg-none\""),
	     "[" GROUP("", "\"deployment\",\"host\",\"os\"",
		       "\"1598281200\":186.0,\"1598284800\":535.4285714285714") "]");
	/* A tag that some lack is in neither list; who lacks it is a group. */
	put(open_series("t-1", "cpu_idle", "host=h-5"), 1598286845000, value_i64(5));
	POST(QUERY("\"aggregator\":\"count\",\"downsample\":\"1d-last\""),
	     "[" GROUP("", "\"host\"", "\"1598227200\":5") "]");
	POST(QUERY("\"aggregator\":\"count\",\"downsample\":\"1d-last\",\"filters\":[" FILTER(
		     "not_literal_or", "os", "linux", "true") "]"),
	     "[" GROUP("\"host\":\"h-5\"", "", "\"1598227200\":1") "," GROUP(
		     TAGS("prod", "h-2", "windows"), "", "\"1598227200\":1") "]");
}

/* Who is found, as how many there are and one name. */
static void expect_hosts(const char *filters, const char *hosts)
{
	char json[1024];
	struct client c;
	snprintf(json, sizeof(json), QUERY("\"aggregator\":\"none\",%s"), filters);
	post(&c, "/api/query?tenant=t-1", json);
	assert_int_equal(c.status, 200);
	char found[64] = "";
	size_t count = 0;
	for (const char *at = c.body; (at = strstr(at, "\"host\":\"h-")) != NULL; at += 10)
		found[count++] = at[10];
	if (strcmp(found, hosts) != 0)
		fail_msg("%s: %s instead of %s", filters, found, hosts);
	mem_free(c.answer);
}

#define ONE(t, k, f) "\"filters\":[" FILTER(t, k, f, "false") "]"
#define TWO(t, k, f, u, l, g)                                                                      \
	"\"filters\":[" FILTER(t, k, f, "false") "," FILTER(u, l, g, "false") "]"

static void test_filters(void **state)
{
	(void)state;
	put_example(); /* in the order of their tags: h-3 (dev), h-1, h-2, h-4 */
	put(open_series("t-1", "cpu_idle", "host=h-5"), 1598286845000, value_i64(5));
	expect_hosts("\"filters\":[]", "31245");
	expect_hosts("\"filters\":null,\"tags\":{}", "31245");
	expect_hosts(ONE("literal_or", "host", "h-1"), "1");
	expect_hosts(ONE("literal_or", "host", "h-1|h-3|h-9"), "31");
	expect_hosts(ONE("literal_or", "host", "h-*"), ""); /* no star here */
	expect_hosts(ONE("literal_or", "host", "H-1"), "");
	expect_hosts(ONE("not_literal_or", "host", "h-1|h-3"), "245");
	expect_hosts(ONE("not_literal_or", "os", "linux"), "25");
	expect_hosts(ONE("wildcard", "os", "*"), "3124");
	expect_hosts(ONE("wildcard", "os", "w*ow*"), "2");
	expect_hosts(ONE("wildcard", "os", "lin"), "");
	expect_hosts(ONE("regexp", "host", "[13]"), "31");
	expect_hosts(ONE("regexp", "host", "^h"), "31245");
	expect_hosts(ONE("regexp", "host", "^1"), "");
	expect_hosts(ONE("regexp", "os", "^(linux|windows)$"), "3124");
	expect_hosts(ONE("regexp", "os", "^(linu|window)$"), "");
	/* All hold, also of one tag. */
	expect_hosts(TWO("literal_or", "os", "linux", "literal_or", "deployment", "prod"), "14");
	expect_hosts(TWO("literal_or", "host", "h-1", "literal_or", "host", "h-2"), "");
	expect_hosts(TWO("wildcard", "host", "*", "not_literal_or", "host", "h-1"), "3245");
	expect_hosts(TWO("regexp", "host", "[123]", "regexp", "host", "[345]"), "3");
	expect_hosts(TWO("not_literal_or", "host", "h-1", "not_literal_or", "host", "h-2"), "345");
	/* A map of tags. */
	expect_hosts("\"tags\":{\"os\":\"linux\",\"deployment\":\"*\"}", "314");
	expect_hosts("\"tags\":{\"host\":\"h-1|h-2\"}", "12");
	expect_hosts("\"tags\":{\"host\":\"not_literal_or(h-1|h-2)\"}", "345");
	expect_hosts("\"tags\":{\"host\":\"regexp([12])\"}," ONE("literal_or", "os", "linux"), "1");
	/* No other tags. */
	expect_hosts("\"explicitTags\":true", "");
	expect_hosts("\"explicitTags\":true," ONE("wildcard", "host", "*"), "5");
	expect_hosts("\"explicitTags\":\"true\",\"tags\":{\"host\":\"*\",\"os\":\"*\","
		     "\"deployment\":\"prod\"}",
		     "124");
	/* Other tenants see nothing of it. */
	expect_post("/api/query", QUERY("\"aggregator\":\"none\""), 200, "[]");
	expect_post("/api/query?tenant=t-2", QUERY("\"aggregator\":\"none\""), 200,
		    "[" GROUP(TAGS("prod", "h-1", "linux"), "", "\"1598286845\":999.0") "]");
}

/* h-1 from 16:23:54 on: 828, 4 s later 842, 174 s later 832, 433 s later 436. */
#define RATE(options)                                                                              \
	"{\"start\":1598286234,\"queries\":[{\"metric\":\"cpu_idle\",\"aggregator\":\"sum\","      \
	"\"tags\":{\"host\":\"h-1\"},\"rate\":true" options "}]}"
#define RATES(dps) "[" GROUP(TAGS("prod", "h-1", "linux"), "", dps) "]"

static void test_rates(void **state)
{
	(void)state;
	put_example();
	POST(RATE(""), RATES("\"1598286238\":3.5,\"1598286412\":-0.05747126436781609,"
			     "\"1598286845\":-0.9145496535796767"));
	POST(RATE(",\"rateOptions\":{\"counter\":true}"),
	     RATES("\"1598286238\":3.5,\"1598286412\":4.781609195402299,"
		   "\"1598286845\":1.0069284064665127"));
	POST(RATE(",\"rateOptions\":{\"counter\":true,\"counterMax\":0,\"resetValue\":0}"),
	     RATES("\"1598286238\":3.5,\"1598286412\":4.781609195402299,"
		   "\"1598286845\":1.0069284064665127"));
	POST(RATE(",\"rateOptions\":{\"counter\":true,\"dropResets\":true}"),
	     RATES("\"1598286238\":3.5"));
	/* 850 - 842 + 832 = 840 in 174 s, 850 - 832 + 436 = 454 in 433 s. */
	POST(RATE(",\"rateOptions\":{\"counter\":true,\"counterMax\":850}"),
	     RATES("\"1598286238\":3.5,\"1598286412\":4.827586206896552,"
		   "\"1598286845\":1.048498845265589"));
	POST(RATE(",\"rateOptions\":{\"counter\":true,\"counterMax\":850,\"resetValue\":4.8}"),
	     RATES("\"1598286238\":3.5,\"1598286412\":0.0,\"1598286845\":1.048498845265589"));
	POST(RATE(",\"rateOptions\":{\"counter\":false,\"counterMax\":null,\"resetValue\":null}"),
	     RATES("\"1598286238\":3.5,\"1598286412\":-0.05747126436781609,"
		   "\"1598286845\":-0.9145496535796767"));
	/* One point has no rate. */
	POST("{\"start\":1598286845,\"queries\":[{\"metric\":\"cpu_idle\",\"aggregator\":\"sum\","
	     "\"rate\":true}]}",
	     "[]");
}

/* Rates of each series are added by groups whose series lie apart in the order of tags. */
static void test_rates_of_groups(void **state)
{
	(void)state;
	static const struct {
		const char *tags;
		int64_t values[3]; /* at 0, 10 and 20 s */
	} series[] = {
		{"a=1,z=x", {10, 20, 5}},
		{"a=2,z=y", {0, 1000, 3000}},
		{"a=3,z=x", {100, 110, 120}},
	};
	for (size_t i = 0; i < ARRAY_LEN(series); i++) {
		uint64_t handle = open_series("t-1", "c", series[i].tags);
		for (int64_t k = 0; k < 3; k++)
			put(handle, 1598286000000 + k * 10000, value_i64(series[i].values[k]));
	}
#define OF_C(what)                                                                                 \
	"{\"start\":1598286000,\"end\":1598286020,\"queries\":[{\"metric\":\"c\",\"rate\":true,"   \
	"\"rateOptions\":{\"counter\":true}," what "}]}"
	POST(OF_C("\"aggregator\":\"sum\",\"filters\":[" FILTER("wildcard", "z", "*", "true") "]"),
	     "[{\"metric\":\"c\",\"dps\":{\"1598286010\":2.0,\"1598286020\":1.5},"
	     "\"tags\":{\"z\":\"x\"},\"aggregateTags\":[\"a\"],\"aggregatedTags\":[\"a\"]},"
	     "{\"metric\":\"c\",\"dps\":{\"1598286010\":100.0,\"1598286020\":200.0},"
	     "\"tags\":{\"a\":\"2\",\"z\":\"y\"},\"aggregateTags\":[],\"aggregatedTags\":[]}]");
	POST(OF_C("\"aggregator\":\"max\",\"downsample\":\"10s-last-zero\""),
	     "[{\"metric\":\"c\",\"dps\":{\"1598286000\":0,\"1598286010\":100.0,"
	     "\"1598286020\":200.0},\"tags\":{},\"aggregateTags\":[\"a\",\"z\"],"
	     "\"aggregatedTags\":[\"a\",\"z\"]}]");
	/* Without putting anything together. */
	struct client c;
	post(&c, "/api/query?tenant=t-1", OF_C("\"aggregator\":\"none\""));
	assert_non_null(strstr(c.body, "\"dps\":{\"1598286010\":1.0,\"1598286020\":0.5}"));
	assert_non_null(strstr(c.body, "\"dps\":{\"1598286010\":100.0,\"1598286020\":200.0}"));
	assert_non_null(strstr(c.body, "\"dps\":{\"1598286010\":1.0,\"1598286020\":1.0}"));
	mem_free(c.answer);
}

/* At the resolution of seconds an average is one of all values, in whatever order they come. */
static void test_averages_of_a_second(void **state)
{
	(void)state;
	uint64_t a = open_series("t-1", "s", "h=a"), b = open_series("t-1", "s", "h=b");
	put(a, 1598286000000, value_i64(10));
	put(b, 1598286000000, value_i64(20));
	put(b, 1598286000070, value_i64(60));
	put(a, 1598286001000, value_i64(30));
	put(b, 1598286001000, value_i64(50));
#define SECONDS(what)                                                                              \
	"{\"start\":1598286000,\"end\":\"1598286001999\",\"queries\":[{"                           \
	"\"metric\":\"s\"," what "}]}"
#define OF_S(dps)                                                                                  \
	"[{\"metric\":\"s\",\"dps\":{" dps                                                         \
	"},\"tags\":{},\"aggregateTags\":[\"h\"],\"aggregatedTags\":[\"h\"]}]"
	/* (10 + 20 + 60) / 3, and (30 + 50) / 2 */
	POST(SECONDS("\"aggregator\":\"avg\""), OF_S("\"1598286000\":30.0,\"1598286001\":40.0"));
	POST(SECONDS("\"aggregator\":\"count\""), OF_S("\"1598286000\":3,\"1598286001\":2"));
	POST(SECONDS("\"aggregator\":\"sum\""), OF_S("\"1598286000\":90,\"1598286001\":80"));
	POST(SECONDS("\"aggregator\":\"min\""), OF_S("\"1598286000\":10,\"1598286001\":30"));
	POST(SECONDS("\"aggregator\":\"max\""), OF_S("\"1598286000\":60,\"1598286001\":50"));
	/* Windows that are parts of the second: all samples again. */
	POST(SECONDS("\"aggregator\":\"avg\",\"downsample\":\"50ms-avg\""),
	     OF_S("\"1598286000\":30.0,\"1598286001\":40.0"));
	POST(SECONDS("\"aggregator\":\"avg\",\"downsample\":\"50ms-avg-null\""),
	     OF_S("\"1598286000\":30.0,\"1598286001\":40.0"));
	/* Of maxima in windows of 50 ms: 10, 20 and 60; 30 and 50. */
	POST(SECONDS("\"aggregator\":\"avg\",\"downsample\":\"50ms-max\""),
	     OF_S("\"1598286000\":30.0,\"1598286001\":40.0"));
	/* Of windows that are no parts of it, [0.9, 1.2) in second 0: the means 10, 40, 30, 50. */
	POST(SECONDS("\"aggregator\":\"avg\",\"downsample\":\"300ms-avg\""),
	     OF_S("\"1598286000\":32.5"));
	/* Rates of one second: 40 in 70 ms; (50 - 60) in 930 ms and (30 - 10) in 1 s. */
	struct client c;
	post(&c, "/api/query?tenant=t-1", SECONDS("\"aggregator\":\"avg\",\"rate\":true"));
	double first = 0, second = 0;
	assert_int_equal(sscanf(c.body,
				"[{\"metric\":\"s\",\"dps\":{\"1598286000\":%lf,"
				"\"1598286001\":%lf}",
				&first, &second),
			 2);
	assert_true(fabs(first - 40 / 0.07) < 1e-9);
	assert_true(fabs(second - (20.0 - 10 / 0.93) / 2) < 1e-9);
	mem_free(c.answer);
}

/* count is how many values were measured; what fills a gap is none of them. */
static void test_count_does_not_count_zeros(void **state)
{
	(void)state;
	uint64_t a = open_series("t-1", "s", "h=a"), b = open_series("t-1", "s", "h=b");
	put(a, 1598286000000, value_i64(10));
	put(b, 1598286000000, value_i64(20));
	put(b, 1598286020000, value_i64(60));
#define COUNTED(what)                                                                              \
	"{\"start\":1598286000,\"end\":1598286029,\"queries\":[{\"metric\":\"s\",\"aggregator\":"  \
	"\"count\"," what "}]}"
	POST(COUNTED("\"downsample\":\"10s-sum-zero\""),
	     OF_S("\"1598286000\":2,\"1598286010\":0,\"1598286020\":1"));
	POST(COUNTED("\"downsample\":\"10s-sum-null\""),
	     OF_S("\"1598286000\":2,\"1598286010\":null,\"1598286020\":1"));
	POST(COUNTED("\"rate\":true,\"downsample\":\"10s-sum-zero\""),
	     OF_S("\"1598286000\":0,\"1598286010\":0,\"1598286020\":1"));
	/* As GET says it. */
	expect("/api/query?tenant=t-1&metricName=s&start=1598286000&end=1598286030&fn=sum&window="
	       "10s&agg=count&fill=zero",
	       200,
	       "[{\"tenant\":\"t-1\",\"metricName\":\"s\",\"tags\":{},\"values\":{"
	       "\"2020-08-24T16:20:00Z\":2,\"2020-08-24T16:20:10Z\":0,"
	       "\"2020-08-24T16:20:20Z\":1}}]");
}

/* A host that is dead has tags, but none that count: clients look in `tags` for the others'. */
static void test_tags_of_what_has_data(void **state)
{
	(void)state;
	static const char *const asked[] = {
		"\"aggregator\":\"sum\"",
		"\"aggregator\":\"sum\",\"downsample\":\"10s-avg\"",
		"\"aggregator\":\"avg\",\"downsample\":\"10s-avg-zero\"",
		"\"aggregator\":\"sum\",\"downsample\":\"1s-max\"",
	};
	put(open_series("t-1", "s", "dc=x,h=dead"), 1598280000000, value_i64(1));
	uint64_t live = open_series("t-1", "s", "dc=x,h=live");
	uint64_t late = open_series("t-1", "s", "dc=x,h=late");
	put(live, 1598286000000, value_i64(2));
	put(late, 1598286120000, value_i64(3));
	struct client c;
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		for (int both = 0; both < 2; both++) {
			char json[256];
			snprintf(json, sizeof(json),
				 "{\"start\":1598286000,\"end\":%d,\"queries\":[{\"metric\":\"s\",%"
				 "s}"
				 "]}",
				 both ? 1598286120 : 1598286119, asked[i]);
			post(&c, "/api/query?tenant=t-1", json);
			if (!strstr(c.body,
				    both ? "\"tags\":{\"dc\":\"x\"},\"aggregateTags\":[\"h\"]"
					 : "\"tags\":{\"dc\":\"x\",\"h\":\"live\"},"
					   "\"aggregateTags\":[]"))
				fail_msg("%s: %s", json, c.body);
			mem_free(c.answer);
		}
	}
	/* Rates are of series with two values. */
	put(live, 1598286010000, value_i64(4));
	post(&c, "/api/query?tenant=t-1",
	     "{\"start\":1598286000,\"end\":1598286119,\"queries\":[{\"metric\":\"s\","
	     "\"aggregator\":\"sum\",\"rate\":true}]}");
	assert_non_null(strstr(c.body, "\"tags\":{\"dc\":\"x\",\"h\":\"live\"}"));
	mem_free(c.answer);
}

/* What fills a gap does not replace what was measured in the same second. */
static void test_a_gap_replaces_no_value(void **state)
{
	(void)state;
	put(open_series("t-1", "m", ""), 1598286845100, value_i64(7));
#define HALF(fill)                                                                                 \
	"{\"start\":1598286844,\"end\":1598286846,\"queries\":[{\"metric\":\"m\",\"aggregator\":"  \
	"\"none\",\"downsample\":\"100ms-last" fill "\"}]}"
#define ONE_M(dps)                                                                                 \
	"[{\"metric\":\"m\",\"dps\":{" dps                                                         \
	"},\"tags\":{},\"aggregateTags\":[],\"aggregatedTags\":[]}]"
	POST(HALF(""), ONE_M("\"1598286845\":7"));
	POST(HALF("-null"), ONE_M("\"1598286844\":null,\"1598286845\":7,\"1598286846\":null"));
	POST(HALF("-zero"), ONE_M("\"1598286844\":0,\"1598286845\":7,\"1598286846\":0"));
}

static void test_shapes(void **state)
{
	(void)state;
	put_example();
	uint64_t handle = open_series("t-1", "m", "");
	put(handle, 1598286845100, value_i64(1));
	put(handle, 1598286845900, value_i64(2));
#define OF_M(body, what)                                                                           \
	"{" body ",\"queries\":[{\"metric\":\"m\",\"aggregator\":\"sum\"" what "}]}"
#define M(rest, dps)                                                                               \
	"{\"metric\":\"m\"" rest ",\"dps\":" dps                                                   \
	",\"tags\":{},\"aggregateTags\":[],\"aggregatedTags\":[]}"
	/* Now is 16:40. What lies in one second is put together, as series are. */
	POST(OF_M("\"start\":\"1h-ago\"", ""), "[" M("", "{\"1598286845\":3}") "]");
	POST(OF_M("\"start\":\"1h-ago\",\"msResolution\":true", ""),
	     "[" M("", "{\"1598286845100\":1,\"1598286845900\":2}") "]");
	expect_post("/api/query?tenant=t-1&arrays", OF_M("\"start\":\"1h-ago\"", ""), 200,
		    "[" M("", "[[1598286845,3]]") "]");
	expect_post("/api/query?tenant=t-1&arrays=true",
		    OF_M("\"start\":\"1h-ago\",\"msResolution\":true", ""), 200,
		    "[" M("", "[[1598286845100,1],[1598286845900,2]]") "]");
	POST(OF_M("\"showQuery\":true,\"start\":\"1h-ago\"", ",\"index\":7"),
	     "[" M(",\"query\":{\"index\":0,\"metric\":\"m\",\"aggregator\":\"sum\"}",
		   "{\"1598286845\":3}") "]");
	/* Forms of a time; both ends count. */
	POST(OF_M("\"start\":1598286845100,\"end\":1598286845100", ""),
	     "[" M("", "{\"1598286845\":1}") "]");
	POST(OF_M("\"start\":\"2020/08/24-16:34:05\",\"end\":\"2020/08/24 16:35\"", ""),
	     "[" M("", "{\"1598286845\":3}") "]");
	POST(OF_M("\"start\":\"2020/08/24\",\"end\":\"2020-08-24T18:34:06+02:00\"", ""),
	     "[" M("", "{\"1598286845\":3}") "]");
	POST(OF_M("\"start\":\"2020/08/25\",\"end\":\"2020/08/25\"", ""), "[]");
	POST(OF_M("\"start\":\"1m-ago\",\"end\":null", ""), "[]");
	/* Several, in their order; one without points has no place. */
	POST("{\"start\":\"1h-ago\",\"showQuery\":true,\"queries\":["
	     "{\"metric\":\"m\",\"aggregator\":\"max\"},{\"metric\":\"nil\",\"aggregator\":\"sum\"}"
	     ","
	     "{\"metric\":\"m\",\"aggregator\":\"min\"}]}",
	     "[" M(",\"query\":{\"index\":0,\"metric\":\"m\",\"aggregator\":\"max\"}",
		   "{\"1598286845\":2}") "," M(",\"query\":{\"index\":2,\"metric\":\"m\","
					       "\"aggregator\":\"min\"}",
					       "{\"1598286845\":1}") "]");
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void refuse_post(const char *json, int status, const char *sentence)
{
	char body[1024];
	snprintf(body, sizeof(body), "{\"error\":{\"code\":%d,\"message\":\"%s\"}}\n", status,
		 sentence);
	expect_post("/api/query?tenant=t-1", json, status, body);
}

#define BAD(what, sentence)      refuse_post(QUERY(what), 400, "queries[0]: " sentence)
#define BAD_BODY(json, sentence) refuse_post(json, 400, sentence)
#define SUM                      "\"aggregator\":\"sum\","

static void test_bad_queries(void **state)
{
	(void)state;
	BAD("\"x\":1", "unknown member \\\"x\\\"");
	BAD("\"tsuids\":[\"01\"]", "tsuids is not supported");
	BAD("\"rate\":false", "\\\"aggregator\\\" is missing");
	BAD("\"aggregator\":\"p95\"",
	    "aggregator \\\"p95\\\" is none of avg, count, max, mimmax, mimmin, min, none, sum, "
	    "zimsum");
	BAD(SUM "\"downsample\":\"5m\"",
	    "downsample \\\"5m\\\": \\\"\\\" is none of min, max, sum, avg, count, first, last");
	BAD(SUM "\"downsample\":\"-5m-avg\"",
	    "downsample \\\"-5m-avg\\\": it does not begin with an interval");
	BAD(SUM "\"downsample\":\"0m-avg\"", "downsample \\\"0m-avg\\\": the interval is zero");
	BAD(SUM "\"downsample\":\"5m-avg-linear\"",
	    "downsample \\\"5m-avg-linear\\\": fill policy \\\"linear\\\" is none of none, nan, "
	    "null, zero");
	BAD(SUM "\"downsample\":\"5m-avg-nan-x\"",
	    "downsample \\\"5m-avg-nan-x\\\": it has more than three parts");
	BAD(SUM "\"rate\":1", "rate is neither true nor false");
	BAD(SUM "\"rateOptions\":[]", "rateOptions is no object");
	BAD(SUM "\"rateOptions\":{\"max\":1}", "rateOptions: unknown member \\\"max\\\"");
	BAD(SUM "\"rateOptions\":{\"counterMax\":-1}",
	    "rateOptions: counterMax is no number, or below 0");
	BAD(SUM "\"rateOptions\":{\"counterMax\":\"9\"}",
	    "rateOptions: counterMax is no number, or below 0");
	BAD(SUM "\"rateOptions\":{\"resetValue\":-1}", "rateOptions: resetValue is below 0");
	BAD(SUM "\"filters\":{}", "filters is no list");
	BAD(SUM "\"filters\":[1]", "filters[0]: not an object");
	BAD(SUM "\"filters\":[{\"type\":\"regexp\",\"tagk\":\"a\"}]",
	    "filters[0]: \\\"filter\\\" is missing");
	BAD(SUM "\"filters\":[{\"tag\":\"a\"}]", "filters[0]: unknown member \\\"tag\\\"");
	BAD(SUM ONE("iwildcard", "a", "b"),
	    "filters[0]: type \\\"iwildcard\\\" is none of literal_or, not_literal_or, regexp, "
	    "wildcard");
	BAD(SUM ONE("literal_or", "", "b"), "filters[0]: a tag key has 1 to 256 bytes");
	BAD(SUM ONE("literal_or", "a", ""), "filters[0]: filter \\\"\\\" has an empty value");
	BAD(SUM ONE("not_literal_or", "a", "b|"),
	    "filters[0]: filter \\\"b|\\\" has an empty value");
	BAD(SUM ONE("wildcard", "a", ""), "filters[0]: filter is empty");
	BAD(SUM ONE("regexp", "a", ""), "filters[0]: filter is empty");
	BAD(SUM "\"tags\":{\"host\":1}", "tags \\\"host\\\": not a text");
	BAD(SUM "\"tags\":[]", "tags is no object");
	BAD(SUM "\"tags\":{\"host\":\"not_key()\"}",
	    "tags \\\"host\\\": type \\\"not_key\\\" is none of literal_or, not_literal_or, "
	    "regexp, wildcard");
	struct client c;
	post(&c, "/api/query", QUERY(SUM ONE("regexp", "a", "(b")));
	assert_int_equal(c.status, 400);
	assert_non_null(strstr(c.body, "queries[0]: filters[0]: filter \\\"(b\\\": "));
	mem_free(c.answer);
	post(&c, "/api/query", QUERY(SUM "\"downsample\":\"0all-avg\""));
	assert_int_equal(c.status, 400);
	assert_non_null(strstr(c.body, "queries[0]: downsample \\\"0all-avg\\\": "));
	mem_free(c.answer);
}

static void test_bad_bodies(void **state)
{
	(void)state;
	BAD_BODY("[]", "the body is no object");
	BAD_BODY("{}", "start is missing");
	BAD_BODY("{\"start\":0}", "\\\"queries\\\" is missing");
	BAD_BODY("{\"start\":0,\"queries\":[]}", "queries has 0 of 1 to 32 queries");
	BAD_BODY("{\"start\":0,\"queries\":[1]}", "queries[0]: not an object");
	BAD_BODY("{\"start\":0,\"queries\":[{\"aggregator\":\"sum\"}]}",
		 "queries[0]: \\\"metric\\\" is missing");
	BAD_BODY("{\"start\":true,\"queries\":[]}", "start: neither a number nor a text");
	BAD_BODY("{\"start\":2,\"end\":1,\"queries\":[]}",
		 "start \\\"2\\\" lies after end \\\"1\\\"");
	BAD_BODY("{\"start\":9999999999,\"queries\":[]}",
		 "start \\\"9999999999\\\" lies after end, which is now");
	BAD_BODY("{\"start\":0,\"timezone\":\"Europe/Berlin\"}", "timezone is not supported");
	BAD_BODY("{\"start\":0,\"delete\":true}", "delete is not supported");
	BAD_BODY("{\"start\":0,\"quieries\":[]}", "unknown member \\\"quieries\\\"");
	BAD_BODY("{\"start\":0,\"msResolution\":1,\"queries\":[]}",
		 "msResolution is neither true nor false");
	expect_post("/api/query?tenant=snmp", QUERY(SUM ONE("wildcard", "alias", "up*")), 400,
		    "{\"error\":{\"code\":400,\"message\":\"alias is no tag of counters; GET "
		    "/api/query finds them by it\"}}\n");
	/* What asks for nothing is taken. */
	POST("{\"start\":0,\"timezone\":\"UTC\",\"delete\":false,\"useCalendar\":null,\"queries\":"
	     "[{\"metric\":\"m\",\"aggregator\":\"sum\",\"downsample\":\"\",\"tsuids\":[]}]}",
	     "[]");
	static const char *const bad[] = {"", "{", "{\"start\":0,}", "nul", "{\"start\":NaN}"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct client c;
		post(&c, "/api/query", bad[i]);
		assert_int_equal(c.status, 400);
		assert_memory_equal(c.body, "{\"error\":{\"code\":400,\"message\":\"line ", 37);
		mem_free(c.answer);
	}
	expect_post("/api/query?m=x", "{}", 400,
		    "{\"error\":{\"code\":400,\"message\":\"unknown parameter \\\"m\\\"\"}}\n");
	expect_post("/api/query?arrays=1", "{}", 400,
		    "{\"error\":{\"code\":400,\"message\":\"arrays \\\"1\\\" is neither true nor "
		    "false\"}}\n");
}

/* All queries of an answer share its points: 8 in all, of which h-1 has 5. */
static void test_limits(void **state)
{
	(void)state;
	put_example();
	options.points_max = 8;
	begin_again();
	struct client c;
#define H(host) "{\"metric\":\"cpu_idle\",\"aggregator\":\"none\",\"tags\":{\"host\":\"" host "\"}}"
	post(&c, "/api/query?tenant=t-1",
	     "{" ALL ",\"queries\":[" H("h-1") "," H("h-4") "," H("h-2|h-3") "]}");
	assert_int_equal(c.status, 200);
	assert_null(strstr(c.answer, "X-Granary-Cut")); /* exactly as many */
	mem_free(c.answer);
	post(&c, "/api/query?tenant=t-1",
	     "{" ALL ",\"queries\":[" H("h-1") "," H("h-1") "," H("h-2") "]}");
	assert_int_equal(c.status, 200);
	assert_non_null(strstr(c.answer, "X-Granary-Cut: points\r\n"));
	assert_non_null(strstr(c.body, "\"1598286238\":842.0},\"tags\":{"));
	assert_non_null(strstr(c.body, "\"aggregatedTags\":[],\"truncated\":true}]"));
	mem_free(c.answer);
	/* A part of a sum is no sum: of rates, five points of h-1 and one each of the others. */
	options.points_max = 7;
	begin_again();
	refuse_post(QUERY(SUM "\"rate\":true"), 422,
		    "the query reached its limit of points (query.points_max) in the middle of a "
		    "group; take a wider "
		    "downsample, less time or fewer series");
	/* 3 windows of 4 series. */
	refuse_post(QUERY("\"aggregator\":\"none\",\"downsample\":\"1h-avg\""), 422,
		    "4 series in 3 windows are more than the 7 points of an answer "
		    "(query.points_max); take a wider "
		    "window, less time or fewer series");
	options.points_max = 0;
	options.series_max = 3;
	begin_again();
	refuse_post("{" ALL ",\"queries\":[" H("h-1") "," H("*") "]}", 422,
		    "queries[1]: 4 series match; at most 3 are read at once (query.series_max)");
}

/* Forty expressions of about 500 steps each over texts of 1,000 characters: 20 million steps for a
 * series, so that the third is too much. */
static void test_filters_are_bounded(void **state)
{
	(void)state;
	char tags[1100], json[3600];
	struct client c;
	size_t len = (size_t)snprintf(json, sizeof(json),
				      "{\"start\":0,\"queries\":[{\"metric\":\"w\",\"aggregator\":"
				      "\"sum\",\"filters\":[");
	for (int i = 0; i < 40; i++)
		len += (size_t)snprintf(json + len, sizeof(json) - len,
					"%s{\"type\":\"regexp\",\"tagk\":\"a\",\"filter\":"
					"\"(a?a?){125}$\"}",
					i ? "," : "");
	snprintf(json + len, sizeof(json) - len, "]}]}");
	for (int i = 0; i < 3; i++) {
		memset(tags, 'a', 1002);
		tags[1] = '=';
		snprintf(tags + 1002, sizeof(tags) - 1002, ",b=%d", i);
		put(open_series("t-1", "w", tags), 1598286845000, value_i64(1));
		post(&c, "/api/query?tenant=t-1", json);
		assert_int_equal(c.status, i < 2 ? 200 : 422);
		assert_non_null(strstr(c.body, i < 2 ? "\"dps\":{\"1598286845\":"
						     : "the filters take too long"));
		mem_free(c.answer);
	}
}

enum { LONG_POINTS = 60000 };

/* A point each ms; of a second, the last one counts where nothing is put together. */
static void put_long(void)
{
	uint64_t h = open_series("t-1", "long", "host=a");
	struct store_write *write = write_new();
	for (int i = 0; i < LONG_POINTS; i++) {
		struct value value = value_i64(i);
		assert_int_equal(
			store_append(write, &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
				     NOW_MS - LONG_POINTS + i, &h, 1, &value),
			0);
	}
	write_out(write);
}

#define LONG(more)                                                                                 \
	"{\"start\":\"1h-ago\"" more ",\"queries\":[{\"metric\":\"long\",\"aggregator\":\"none\"}" \
	"]}"

/* Every point once, in order. */
static void check_long(const char *plain)
{
	const char *p = strstr(plain, "\"dps\":{");
	assert_non_null(p);
	p += 7;
	for (int i = 0; i < LONG_POINTS; i++) {
		char pair[64];
		int n = snprintf(pair, sizeof(pair), "\"%lld\":%d",
				 (long long)NOW_MS - LONG_POINTS + i, i);
		assert_memory_equal(p, pair, (size_t)n);
		p += n + 1;
	}
	assert_string_equal(p - 1, "},\"tags\":{\"host\":\"a\"},\"aggregateTags\":[],"
				   "\"aggregatedTags\":[]}]");
}

static void test_long_answers(void **state)
{
	(void)state;
	struct client c;
	put_long();
	limits.unsent_max_bytes = 512 << 10;
	begin_again();
	post(&c, "/api/query?tenant=t-1", LONG(",\"msResolution\":true"));
	assert_non_null(strstr(c.answer, "Transfer-Encoding: chunked"));
	char *plain = unchunk(c.body);
	check_long(plain);
	mem_free(plain);
	mem_free(c.answer);
	/* To a slow client, from whom the server keeps half a MB at most. */
	static char headers[512];
	snprintf(headers, sizeof(headers), "Content-Length: %zu\r\n\r\n%s",
		 strlen(LONG(",\"msResolution\":true")) + 2, LONG(",\"msResolution\":true"));
	c = (struct client){.verb = "POST", .headers = headers, .rest_us = 500};
	ask(&c, "/api/query?tenant=t-1");
	plain = unchunk(c.body);
	check_long(plain);
	mem_free(plain);
	mem_free(c.answer);
	/* The 60 seconds end at ms 999 of each: NOW is a whole one. */
	post(&c, "/api/query?tenant=t-1", LONG(""));
	assert_non_null(strstr(c.body, "\"dps\":{\"1598287140\":999,\"1598287141\":1999,"));
	assert_non_null(strstr(c.body, "\"1598287199\":59999},\"tags\""));
	mem_free(c.answer);
}

/* Nothing is left of a request whose client goes, wherever that is. */
static void test_vanishing_client(void **state)
{
	(void)state;
	static char headers[512];
	put_long();
	options.slice_points = 5000;
	begin_again();
	snprintf(headers, sizeof(headers), "Content-Length: %zu\r\n\r\n%s",
		 strlen(LONG(",\"msResolution\":true")) + 2, LONG(",\"msResolution\":true"));
	for (size_t read_max = 1; read_max < 1000000; read_max = read_max * 7 + 100) {
		struct client c = {.verb = "POST", .headers = headers, .read_max = read_max};
		ask(&c, "/api/query?tenant=t-1");
		mem_free(c.answer);
		begin_again(); /* ends only when nothing is left of the request */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_constants),
		TEST(test_suggest),
		TEST(test_suggest_max),
		TEST(test_suggest_bad),
		TEST(test_lookup),
		TEST(test_lookup_bad),
		TEST(test_query),
		TEST(test_groups),
		TEST(test_filters),
		TEST(test_rates),
		TEST(test_rates_of_groups),
		TEST(test_averages_of_a_second),
		TEST(test_count_does_not_count_zeros),
		TEST(test_tags_of_what_has_data),
		TEST(test_a_gap_replaces_no_value),
		TEST(test_shapes),
		TEST(test_bad_queries),
		TEST(test_bad_bodies),
		TEST(test_limits),
		TEST(test_filters_are_bounded),
		TEST(test_long_answers),
		TEST(test_vanishing_client),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
