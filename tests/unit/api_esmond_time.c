/* Days and months of reports, what is summed in them, and percentiles. Times are from
 * `TZ=... date -d ... +%s`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "api/esmond/sums.h"
#include "api/esmond/zone.h"
#include "wire/zones.h"
#include "base/file.h"
#include "base/random.h"

static struct zones *zones;

static int setup(void **state)
{
	(void)state;
	zones = zones_new(files_real(), ZONES_FOLDER);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	zones_free(zones);
	return 0;
}

static const struct zone *zone_of(const char *name)
{
	const struct zone *zone;
	struct errbuf e;
	if (zones_get(zones, slice_of(name), &zone, &e))
		fail_msg("%s", e.text);
	return zone;
}

/* ---- Spans ----------------------------------------------------------------------------------- */

static int64_t edges[V2_SPANS_MAX + 1], days[V2_SPANS_MAX + 1];

static void expect_spans(const char *zone, enum v2_span span, int64_t begin_s, int64_t end_s,
			 const int64_t *expected, const char *const *texts, size_t count)
{
	size_t got;
	assert_int_equal(v2_spans(zone_of(zone), span, begin_s, end_s, edges, days, &got), 0);
	assert_int_equal(got, count);
	for (size_t i = 0; i <= count; i++)
		assert_int_equal(edges[i], expected[i]);
	for (size_t i = 0; i < count; i++) {
		char text[V2_SPAN_TEXT_BYTES];
		v2_span_text(span, days[i], text);
		assert_string_equal(text, texts[i]);
	}
}

static void test_spans(void **state)
{
	(void)state;
	/* The months from February to April 2024 in Berlin: the clocks change in between. */
	static const int64_t months[] = {1706742000, 1709247600, 1711922400, 1714514400};
	static const char *const months_texts[] = {"2024-02", "2024-03", "2024-04"};
	expect_spans("Europe/Berlin", SPAN_MONTH, 1706742000, 1714514399, months, months_texts, 3);
	expect_spans("Europe/Berlin", SPAN_MONTH, 1708000000, 1712000000, months, months_texts, 3);
	/* The last second belongs to what is asked, the next one is another month. */
	expect_spans("Europe/Berlin", SPAN_MONTH, 1706742000, 1706742000, months, months_texts, 1);
	expect_spans("Europe/Berlin", SPAN_MONTH, 1706742000, 1709247599, months, months_texts, 1);
	expect_spans("Europe/Berlin", SPAN_MONTH, 1706742000, 1709247600, months, months_texts, 2);
	/* Days of 23 and 24 hours, then one of 25. */
	static const int64_t spring[] = {1711839600, 1711922400, 1712008800};
	static const char *const spring_texts[] = {"2024-03-31", "2024-04-01"};
	expect_spans("Europe/Berlin", SPAN_DAY, 1711839600, 1711922400, spring, spring_texts, 2);
	static const int64_t autumn[] = {1729980000, 1730070000};
	static const char *const autumn_texts[] = {"2024-10-27"};
	expect_spans("Europe/Berlin", SPAN_DAY, 1730000000, 1730000000, autumn, autumn_texts, 1);
	/* Over New Year, and a quarter of an hour off everybody else. */
	static const int64_t year[] = {1703960100, 1704046500, 1704132900};
	static const char *const year_texts[] = {"2023-12-31", "2024-01-01"};
	expect_spans("Asia/Kathmandu", SPAN_DAY, 1703960100, 1704046500, year, year_texts, 2);
	/* Samoa had no 30 December 2011. */
	static const int64_t apia[] = {1325152800, 1325239200, 1325325600};
	static const char *const apia_texts[] = {"2011-12-29", "2011-12-31"};
	expect_spans("Pacific/Apia", SPAN_DAY, 1325152800, 1325239200, apia, apia_texts, 2);
}

static void test_spans_bounded(void **state)
{
	(void)state;
	size_t count;
	int64_t begin_s = 0, full = INT64_C(86400) * V2_SPANS_MAX;
	assert_int_equal(v2_spans(&zone_utc, SPAN_DAY, begin_s, full - 1, edges, days, &count), 0);
	assert_int_equal(count, V2_SPANS_MAX);
	assert_int_equal(edges[count], full);
	assert_int_equal(v2_spans(&zone_utc, SPAN_DAY, begin_s, full, edges, days, &count),
			 ERR_LIMIT);
}

static void test_months_parsed(void **state)
{
	(void)state;
	static const char *const bad[] = {"",        "2024-13",  "2024-00", "2024-1", "2024/01",
					  "0000-01", "2024-01-", "20240-1", "-024-01"};
	int64_t first;
	assert_int_equal(v2_month_parse(SLICE("2024-03"), &first), 0);
	assert_int_equal(first, 19783); /* date -d 2024-03-01 +%s is 1709251200 */
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(v2_month_parse(slice_of(bad[i]), &first), ERR_INVALID);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

static void test_sums(void **state)
{
	(void)state;
	static const int64_t windows[] = {0, 100, 200, 1000};
	struct v2_sum sums[3] = {{0}};
	struct v2_sums all = {.edges_ms = windows, .count = 3, .sums = sums};
	static const struct v2_bin bins[] = {
		{-30, 30, 1000, 7, 30, 0}, /* before everything */
		{0, 30, 10, 1, 30, 0},     /* within */
		/* 90 to 120: a third and two thirds of 10; 3 and 7; of 20 ms covered 6 and 14 */
		{90, 30, 10, 5, 20, 4},
		/* 150 to 1150: 50, 800 of 1,000 lie within; of 999: 49, and 849 - 49 */
		{150, 1000, 999, 2, 0, 1},
		{1000, 30, 50, 3, 30, 2}, /* behind */
	};
	for (size_t i = 0; i < ARRAY_LEN(bins); i++)
		v2_sums_add(&all, &bins[i]);
	assert_int_equal(sums[0].val, 13);
	assert_int_equal(sums[0].unplaced, 6);
	assert_int_equal(sums[0].covered_ms, 36);
	assert_int_equal(sums[0].flags, 4);
	assert_int_equal(sums[1].val, 56);
	assert_int_equal(sums[1].unplaced, 2);
	assert_int_equal(sums[1].covered_ms, 14);
	assert_int_equal(sums[1].flags, 5);
	assert_int_equal(sums[2].val, 800);
	assert_int_equal(sums[2].unplaced, 0);
	assert_int_equal(sums[2].flags, 1);
	assert_int_equal(v2_sum_of(UINT64_MAX, 1), UINT64_MAX);
	assert_int_equal(v2_sum_of(1, 2), 3);
}

/* Whatever the widths, the windows have what the bins had, to the unit. */
static void test_sums_lose_nothing(void **state)
{
	(void)state;
	struct random random;
	random_init(&random, 42);
	for (int turn = 0; turn < 300; turn++) {
		int64_t windows[41] = {0};
		struct v2_sum sums[40] = {{0}};
		struct v2_sums all = {.edges_ms = windows, .count = 40, .sums = sums};
		for (size_t i = 1; i <= 40; i++)
			windows[i] = windows[i - 1] + 1 + (int64_t)random_below(&random, 50000);
		int64_t width = 1 + (int64_t)random_below(&random, 90000);
		uint64_t val = 0, unplaced = 0;
		int64_t covered = 0;
		for (int64_t at = 0; at + width <= windows[40]; at += width) {
			struct v2_bin bin = {
				at,    width, random_next(&random) >> 20, random_below(&random, 9),
				width, 0};
			val += bin.val;
			unplaced += bin.unplaced;
			covered += width;
			v2_sums_add(&all, &bin);
		}
		for (size_t i = 0; i < 40; i++) {
			val -= sums[i].val;
			unplaced -= sums[i].unplaced;
			covered -= sums[i].covered_ms;
		}
		assert_int_equal(val, 0);
		assert_int_equal(unplaced, 0);
		assert_int_equal(covered, 0);
	}
}

/* ---- Percentiles ----------------------------------------------------------------------------- */

static double of_first(size_t count, uint32_t milli)
{
	static double values[10000];
	for (size_t i = 0; i < count; i++) /* n ... 1: not sorted */
		values[i] = (double)(count - i);
	return v2_percentile(values, count, milli);
}

static void test_percentiles(void **state)
{
	(void)state;
	/* Of 1 ... n the value is the rank. */
	assert_true(of_first(100, 95000) == 95);
	assert_true(of_first(20, 95000) == 19);
	assert_true(of_first(19, 95000) == 19); /* 18.05 */
	assert_true(of_first(8640, 95000) == 8208);
	assert_true(of_first(8928, 95000) == 8482); /* 31 days: 8,481.6 */
	assert_true(of_first(1, 95000) == 1);
	assert_true(of_first(10, 100000) == 10);
	assert_true(of_first(10, 1) == 1);
	assert_true(of_first(10, 50000) == 5);
	assert_true(of_first(1000, 99900) == 999);
	assert_true(of_first(1001, 99900) == 1000); /* 999.999 */
	assert_true(isnan(v2_percentile(NULL, 0, 95000)));
}

static void test_percentiles_parsed(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",        "0",      "0.0",   "100.1",    "101",
		"-5",      "95.",    ".5",    "9a",       "1e1",
		"95.1234", "0.0001", "9.9.9", "00000095", "99999999999999999999"};
	uint32_t milli;
	assert_int_equal(v2_percentile_parse(SLICE("95"), &milli), 0);
	assert_int_equal(milli, 95000);
	assert_int_equal(v2_percentile_parse(SLICE("99.9"), &milli), 0);
	assert_int_equal(milli, 99900);
	assert_int_equal(v2_percentile_parse(SLICE("0.001"), &milli), 0);
	assert_int_equal(milli, 1);
	assert_int_equal(v2_percentile_parse(SLICE("100"), &milli), 0);
	assert_int_equal(milli, 100000);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(v2_percentile_parse(slice_of(bad[i]), &milli), ERR_INVALID);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_spans),
		TEST(test_spans_bounded),
		TEST(test_months_parsed),
		TEST(test_sums),
		TEST(test_sums_lose_nothing),
		TEST(test_percentiles),
		TEST(test_percentiles_parsed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
