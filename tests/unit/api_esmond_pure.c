/* What /v2 computes without store or connection: names, look-ups, parameters, pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "api/esmond/lookup.h"
#include "api/esmond/name.h"
#include "api/esmond/page.h"
#include "api/esmond/params.h"
#include "base/mem.h"
#include "wire/json.h"

#define NOW_MS INT64_C(1400003600500)

static struct arena arena;
static struct http_request request;
static struct http_param params[32];
static struct http_header host = {{"Host", 4}, {"h", 1}};

static int setup(void **state)
{
	(void)state;
	arena_init(&arena, 4 << 20);
	request = (struct http_request){.params = params, .headers = &host, .header_count = 1};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

/* `a=1&b=2`, without any encoding. */
static void ask(const char *query)
{
	static char text[512];
	snprintf(text, sizeof(text), "%s", query);
	request.param_count = 0;
	for (char *at = text; *at;) {
		size_t len = strcspn(at, "&"), name = strcspn(at, "=");
		params[request.param_count++] =
			(struct http_param){{at, name}, {at + name + 1, len - name - 1}};
		at += len + (at[len] == '&');
	}
}

/* ---- Names ----------------------------------------------------------------------------------- */

static void check_name(const char *name, const char *coded)
{
	struct slice back;
	struct buf out;
	buf_init(&out, 1000);
	v2_name_encode(slice_of(name), &out);
	if (!slice_equal(buf_slice(&out), slice_of(coded)))
		fail_msg("%s becomes %.*s", name, (int)out.len, out.data);
	assert_int_equal(v2_name_decode(buf_slice(&out), &arena, &back), 0);
	assert_true(slice_equal(back, slice_of(name)));
	buf_release(&out);
}

static void check_decoded(const char *text, const char *name)
{
	struct slice back;
	assert_int_equal(v2_name_decode(slice_of(text), &arena, &back), 0);
	if (!slice_equal(back, slice_of(name)))
		fail_msg("%s is read as %.*s", text, (int)back.len, back.data);
}

static void test_names(void **state)
{
	(void)state;
	check_name("xe-0/2/0", "xe-0@2F2@2F0");
	check_name("rtr_a.example-net", "rtr_a.example-net");
	check_name("XYZ", "X@59Z");
	check_name("a b@c", "a@20b@40c");
	check_name("\xc3\xa9", "@C3@A9");
	check_name("", "");
	check_name("@2F", "@402F");
	check_decoded("xe-0@2f2@2F0", "xe-0/2/0");
	check_decoded("XYZ", "XYZ");
	check_decoded("xe-0/2/0", "xe-0/2/0");
	check_decoded("a@", "a@");
	check_decoded("a@2", "a@2");
	check_decoded("a@2G", "a@2G");
	check_decoded("@@40", "@@");
	check_decoded("@00", "@00");
}

/* ---- Look-ups -------------------------------------------------------------------------------- */

static const char *const fields[] = {"device", "device__name", "ifAlias", NULL};

static bool match(const char *query, const char *device, const char *alias)
{
	struct v2_lookups lookups = {0};
	struct slice values[] = {SLICE("7"), slice_of(device), {NULL, 0}};
	struct errbuf e;
	uint64_t work = 0;
	if (alias)
		values[2] = slice_of(alias);
	ask(query);
	if (v2_params_lookups(&request, NULL, fields, &arena, &lookups, &e))
		fail_msg("%s: %s", query, e.text);
	return v2_lookups_match(&lookups, values, &work);
}

static void test_lookups(void **state)
{
	(void)state;
	assert_true(match("", "rtr_a", "x"));
	assert_true(match("device__name=rtr_a", "rtr_a", "x"));
	assert_false(match("device__name=rtr", "rtr_a", "x"));
	assert_true(match("device=7", "rtr_a", "x"));
	assert_true(match("device__name__exact=rtr_a", "rtr_a", "x"));
	assert_false(match("device__name=RTR_A", "rtr_a", "x"));
	assert_true(match("device__name__iexact=RTR_A", "rtr_a", "x"));
	assert_true(match("ifAlias__contains=cloud", "d", "intercloud x"));
	assert_false(match("ifAlias__contains=Cloud", "d", "intercloud x"));
	assert_true(match("ifAlias__icontains=Cloud", "d", "interCLOUD"));
	assert_true(match("ifAlias__startswith=inter", "d", "intercloud"));
	assert_false(match("ifAlias__startswith=cloud", "d", "intercloud"));
	assert_true(match("ifAlias__istartswith=INTER", "d", "intercloud"));
	assert_true(match("ifAlias__endswith=cloud", "d", "intercloud"));
	assert_false(match("ifAlias__endswith=intercloudx", "d", "intercloud"));
	assert_true(match("ifAlias__iendswith=CLOUD", "d", "intercloud"));
	assert_true(match("ifAlias__regex=^in.*[0-9]$", "d", "in 5"));
	assert_false(match("ifAlias__regex=^IN", "d", "in 5"));
	assert_true(match("ifAlias__iregex=^IN", "d", "in 5"));
	/* All must hold; an absent value is empty. */
	assert_false(match("ifAlias__contains=a&device__name=x", "y", "a"));
	assert_true(match("ifAlias=", "d", NULL));
	assert_true(match("ifAlias__regex=^$", "d", NULL));
	assert_false(match("ifAlias__contains=a", "d", NULL));
	assert_true(match("ifAlias__contains=", "d", "x"));
}

static void refuse_lookup(const char *query, const char *sentence)
{
	struct v2_lookups lookups = {0};
	struct errbuf e = {""};
	ask(query);
	assert_int_not_equal(v2_params_lookups(&request, NULL, fields, &arena, &lookups, &e), 0);
	if (!strstr(e.text, sentence))
		fail_msg("%s: %s", query, e.text);
}

static void test_lookups_refused(void **state)
{
	(void)state;
	refuse_lookup("ifAlias__like=a", "ifAlias__like: unknown look-up \"like\"");
	refuse_lookup("ifAlias__=a", "unknown look-up \"\"");
	refuse_lookup("ifAliass=a", "unknown parameter \"ifAliass\"");
	refuse_lookup("ifAlias_contains=a", "unknown parameter \"ifAlias_contains\"");
	refuse_lookup("ifAlias__regex=(", "ifAlias__regex: the expression \"(\"");
	refuse_lookup("ifAlias=a&ifAlias=b", "ifAlias is given twice");
	refuse_lookup("device__names=a", "unknown look-up \"names\"");
	refuse_lookup("format=xml", "format \"xml\" is not json");
}

/* ---- Times and data ---------------------------------------------------------------------------
 */

static struct v2_range range_of(const char *query, int64_t unit_ms)
{
	struct v2_range range;
	struct errbuf e;
	ask(query);
	if (v2_params_range(&request, unit_ms, NOW_MS, &range, &e))
		fail_msg("%s: %s", query, e.text);
	return range;
}

static void test_ranges(void **state)
{
	(void)state;
	struct v2_range range = range_of("", 1000);
	assert_int_equal(range.begin, 1400000000);
	assert_int_equal(range.end, 1400003600);
	range = range_of("", 1);
	assert_int_equal(range.begin, 1400000000500);
	assert_int_equal(range.end, NOW_MS);
	range = range_of("begin=1400000001.9", 1000);
	assert_int_equal(range.begin, 1400000001);
	assert_int_equal(range.end, 1400003600);
	range = range_of("end=1300000000", 1000);
	assert_int_equal(range.begin, 1299996400);
	range = range_of("begin=-5.5&end=0", 1000);
	assert_int_equal(range.begin, -5);
	assert_int_equal(range.end, 0);
	range = range_of("begin=5&end=5", 1);
	assert_int_equal(range.begin, 5);
	range = range_of("begin=1.4e9", 1000);
	assert_int_equal(range.begin, 1400000000);
	range = range_of("end=253402300799", 1000);
	assert_int_equal(range.end, INT64_C(253402300799));
	/* Dates and durations, in either unit; 2020-08-24T16:34:05Z is 1598286845. */
	range = range_of("begin=2020-08-24T16:34:05.789Z&end=2020-08-24T16:34:06Z", 1000);
	assert_int_equal(range.begin, 1598286845);
	assert_int_equal(range.end, 1598286846);
	range = range_of("begin=2020-08-24T16:34:05.789Z&end=9999-12-31T23:59:59.999Z", 1);
	assert_int_equal(range.begin, INT64_C(1598286845789));
	assert_int_equal(range.end, INT64_C(253402300799999));
	range = range_of("begin=2h-ago&end=90s-ago", 1);
	assert_int_equal(range.begin, NOW_MS - 7200000);
	assert_int_equal(range.end, NOW_MS - 90000);
	range = range_of("begin=2h-ago&end=now", 1000);
	assert_int_equal(range.begin, NOW_MS / 1000 - 7200);
	assert_int_equal(range.end, NOW_MS / 1000);
}

static void refuse_data(const char *query, const char *sentence)
{
	struct v2_data_params data;
	struct errbuf e = {""};
	ask(query);
	assert_int_equal(v2_params_data(&request, 1000, NOW_MS, &data, &e), ERR_INVALID);
	assert_string_equal(e.text, sentence);
}

static void test_data_refused(void **state)
{
	(void)state;
	refuse_data("begin=x", "begin \"x\" is not a time: seconds since 1970, "
			       "2020-08-24T16:34:05Z, or 1h-ago");
	refuse_data("begin=", "begin \"\" is not a time: seconds since 1970, "
			      "2020-08-24T16:34:05Z, or 1h-ago");
	refuse_data("begin=nan", "begin \"nan\" is not a time: seconds since 1970, "
				 "2020-08-24T16:34:05Z, or 1h-ago");
	refuse_data("end=253402300800", "end \"253402300800\" is not a time: seconds since 1970, "
					"2020-08-24T16:34:05Z, or 1h-ago");
	refuse_data("end=1e400", "end \"1e400\" is not a time: seconds since 1970, "
				 "2020-08-24T16:34:05Z, or 1h-ago");
	refuse_data("begin=2&end=1", "begin 2 lies after end 1");
	refuse_data("begin=1400003601",
		    "begin 1400003601 lies after end, which is now, 1400003600");
	refuse_data("agg=0", "agg \"0\" is not a number of seconds");
	refuse_data("agg=30.5", "agg \"30.5\" is not a number of seconds");
	refuse_data("agg=99999999999", "agg \"99999999999\" is not a number of seconds");
	refuse_data("cf=avg", "cf \"avg\" is none of average, exact, min, max, raw, delta");
	refuse_data("calc=x", "calc \"x\" is not a number of seconds");
	refuse_data("calc_func=max", "calc_func is given without calc");
	refuse_data("nulls=zero", "nulls is given without calc");
	refuse_data("calc=300&calc_func=sum", "calc_func \"sum\" is none of average, min, max");
	refuse_data("calc=300&nulls=0", "nulls \"0\" is neither skip nor zero");
}

static void test_data(void **state)
{
	(void)state;
	struct v2_data_params data;
	struct errbuf e;
	ask("");
	assert_int_equal(v2_params_data(&request, 1000, NOW_MS, &data, &e), 0);
	assert_false(data.has_agg || data.has_cf);
	assert_int_equal(data.cf, CF_AVERAGE);
	assert_int_equal(data.calc, CALC_NONE);
	ask("agg=3600&cf=max&calc=7200&calc_func=min&nulls=zero");
	assert_int_equal(v2_params_data(&request, 1000, NOW_MS, &data, &e), 0);
	assert_true(data.has_agg && data.has_cf && data.nulls_are_zero);
	assert_int_equal(data.agg_ms, 3600000);
	assert_int_equal(data.cf, CF_MAX);
	assert_int_equal(data.calc, CALC_MIN);
	assert_int_equal(data.calc_ms, 7200000);
	ask("calc=300");
	assert_int_equal(v2_params_data(&request, 1000, NOW_MS, &data, &e), 0);
	assert_int_equal(data.calc, CALC_AVERAGE);
	assert_false(data.nulls_are_zero);
}

/* ---- Pages ------------------------------------------------------------------------------------
 */

static void expect_page(const char *query, uint64_t total, const char *meta)
{
	struct json_writer json;
	struct v2_page page;
	struct errbuf e;
	struct buf out;
	char list[1000];
	ask(query);
	request.target = SLICE("/v2/interface/?whatever");
	request.path = SLICE("/v2/interface/");
	if (v2_page_read(&request, &page, &e))
		fail_msg("%s", e.text);
	buf_init(&out, 10000);
	json_writer_init(&json, &out);
	v2_page_begin(&json);
	v2_page_end(&request, &page, total, &json);
	snprintf(list, sizeof(list), "{\"children\":[],\"meta\":%s}", meta);
	if (!slice_equal(buf_slice(&out), slice_of(list)))
		fail_msg("%.*s", (int)out.len, out.data);
	buf_release(&out);
}

static void test_pages(void **state)
{
	(void)state;
	expect_page("", 20,
		    "{\"limit\":20,\"offset\":0,\"total_count\":20,\"next\":null,"
		    "\"previous\":null}");
	expect_page("", 21,
		    "{\"limit\":20,\"offset\":0,\"total_count\":21,"
		    "\"next\":\"http://h/v2/interface/?limit=20&offset=20\",\"previous\":null}");
	expect_page("limit=0", 5000,
		    "{\"limit\":0,\"offset\":0,\"total_count\":5000,\"next\":null,"
		    "\"previous\":null}");
	expect_page("limit=10&offset=15&ifAlias__contains=a b&/=", 26,
		    "{\"limit\":10,\"offset\":15,\"total_count\":26,"
		    "\"next\":\"http://h/v2/interface/"
		    "?limit=10&offset=25&ifAlias__contains=a%20b&%2F=\","
		    "\"previous\":\"http://h/v2/interface/"
		    "?limit=10&offset=5&ifAlias__contains=a%20b&%2F=\"}");
	expect_page("limit=10&offset=5", 15,
		    "{\"limit\":10,\"offset\":5,\"total_count\":15,\"next\":null,"
		    "\"previous\":\"http://h/v2/interface/?limit=10&offset=0\"}");
	expect_page("offset=100", 15,
		    "{\"limit\":20,\"offset\":100,\"total_count\":15,\"next\":null,"
		    "\"previous\":\"http://h/v2/interface/?limit=20&offset=80\"}");
	struct v2_page page;
	struct errbuf e;
	ask("limit=-1");
	assert_int_equal(v2_page_read(&request, &page, &e), ERR_INVALID);
	ask("offset=x");
	assert_int_equal(v2_page_read(&request, &page, &e), ERR_INVALID);
	ask("limit=99999999999999999999");
	assert_int_equal(v2_page_read(&request, &page, &e), ERR_INVALID);
	page = (struct v2_page){2, 3};
	assert_false(v2_page_has(&page, 2));
	assert_true(v2_page_has(&page, 3));
	assert_true(v2_page_has(&page, 4));
	assert_false(v2_page_has(&page, 5));
	page.limit = 0;
	assert_true(v2_page_has(&page, 5));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names),  TEST(test_lookups), TEST(test_lookups_refused),
		TEST(test_ranges), TEST(test_data),    TEST(test_data_refused),
		TEST(test_pages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
