/* Which data answers which part of the time, worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "query/plan.h"

#define MINUTE INT64_C(60000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* What the document keeps, slots of an hour; now is minute 1,000,010 of time 0. */
static const struct granularities granularities = {
	.slot_ms = HOUR, .count = 2, .list = {{5 * MINUTE, 14 * DAY}, {HOUR, 365 * DAY}}};
#define NOW (1000010 * MINUTE)

static struct plan_terms terms;
static struct query_plan plan;

static int begin(void **state)
{
	(void)state;
	terms = (struct plan_terms){.end_ms = NOW,
				    .now_ms = NOW,
				    .granularities = &granularities,
				    .raw_retention_ms = 2 * DAY,
				    .rolled_before_ms = 999960 * MINUTE,
				    .fn = FN_MAX,
				    .window_ms = HOUR};
	return 0;
}

/* `from-to:granularity` in minutes, from start on, separated by blanks; a window that was chosen in
 * front. */
static void expect(int64_t start_ms, const char *wanted)
{
	char text[1000];
	int len = 0;
	terms.start_ms = start_ms;
	plan_make(&terms, &plan);
	if (!terms.window_ms && plan.window_ms)
		len = snprintf(text, sizeof(text), "%lldm %s, ",
			       (long long)(plan.window_ms / MINUTE), query_fn_name(plan.fn));
	for (size_t i = 0; i < plan.count; i++) {
		const struct query_part *part = &plan.parts[i];
		const char *by = part->granularity == QUERY_PART_NONE  ? "none"
				 : part->granularity == QUERY_PART_RAW ? "raw"
				 : part->granularity == 0              ? "5m"
								       : "1h";
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%lld-%lld:%s",
				i ? " " : "", (long long)(part->from_ms / MINUTE),
				(long long)(part->to_ms / MINUTE), by);
	}
	text[len] = 0;
	assert_string_equal(text, wanted);
}

/* Raw data begins at 997130, of 5 min at 979850, of 1 h at 474410. Hours are multiples of 60:
 * 999960 is one, 1000010 is not. */
static void test_windows(void **state)
{
	(void)state;
	expect(NOW - 3 * HOUR, "999830-999840:5m 999840-999960:1h 999960-1000010:raw");
	expect(999837 * MINUTE, "999837-999840:raw 999840-999960:1h 999960-1000010:raw");
	expect(999840 * MINUTE, "999840-999960:1h 999960-1000010:raw");
	/* No raw data of its front any more: buckets of 5 min, whole ones. */
	expect(990002 * MINUTE, "990002-990060:5m 990060-999960:1h 999960-1000010:raw");
	/* Nor of 5 min: an hour counts where it begins. */
	expect(900001 * MINUTE, "900001-999960:1h 999960-1000010:raw");
	/* Nor at all. */
	expect(400000 * MINUTE, "400000-474410:none 474410-999960:1h 999960-1000010:raw");
	terms.window_ms = 10 * MINUTE;
	expect(990000 * MINUTE, "990000-999960:5m 999960-1000010:raw");
	expect(400000 * MINUTE, "400000-979850:none 979850-999960:5m 999960-1000010:raw");
	terms.window_ms = 7 * MINUTE;
	expect(990000 * MINUTE, "990000-997130:none 997130-1000010:raw");
	terms.window_ms = 0;
	terms.fn = FN_LAST;
	expect(990000 * MINUTE, "990000-997130:none 997130-1000010:raw");
}

static void test_ends(void **state)
{
	(void)state;
	/* All of it rolled up: the last hour is cut by the end, and raw data says where. */
	terms.end_ms = 999871 * MINUTE;
	expect(999780 * MINUTE, "999780-999840:1h 999840-999870:5m 999870-999871:raw");
	/* Where there is none, the last bucket counts whole. */
	terms.end_ms = 990071 * MINUTE;
	expect(990000 * MINUTE, "990000-990060:1h 990060-990071:5m");
	terms.end_ms = 900061 * MINUTE;
	expect(900000 * MINUTE, "900000-900061:1h");
	terms.end_ms = 900000 * MINUTE;
	expect(900000 * MINUTE, "");
}

/* Something of long ago waits to be rolled up: what is raw comes from there, the rest from buckets
 * all the same, up to the first edge behind where raw data begins. */
static void test_late(void **state)
{
	(void)state;
	terms.rolled_before_ms = 990000 * MINUTE;
	expect(980000 * MINUTE, "980000-980040:5m 980040-997140:1h 997140-1000010:raw");
	terms.raw_retention_ms = 0;
	expect(980000 * MINUTE, "980000-980040:5m 980040-990000:1h 990000-1000010:raw");
}

/* Late points are kept apart, after a quiet time of 5 min: raw data counts from the first open slot
 * on, which begins at 997140 or later. That is where windows and points go over to buckets, if
 * these serve. */
static void test_late_points_are_kept(void **state)
{
	(void)state;
	terms.late_quiet_ms = 5 * MINUTE;
	terms.window_ms = 20 * MINUTE;
	terms.rolled_before_ms = 990000 * MINUTE;
	expect(997100 * MINUTE, "997100-997140:5m 997140-1000010:raw");
	terms.rolled_since_ms[0] = 997139 * MINUTE;
	expect(997100 * MINUTE, "997100-997140:5m 997140-1000010:raw");
	terms.rolled_since_ms[0] = 997141 * MINUTE;
	expect(997100 * MINUTE, "997100-997130:5m 997130-1000010:raw");
	terms.rolled_since_ms[0] = 0;
	terms.now_ms = NOW + 5 * MINUTE;
	expect(997180 * MINUTE, "997180-997200:5m 997200-1000010:raw");
	terms.now_ms = NOW;
	terms.window_ms = 7 * MINUTE;
	expect(997100 * MINUTE, "997100-997130:none 997130-1000010:raw");
	terms.fn = FN_NONE;
	terms.window_ms = 0;
	expect(997100 * MINUTE, "997100-997140:5m 997140-1000010:raw");
	terms.fn = FN_LAST;
	expect(997100 * MINUTE, "997100-997130:none 997130-1000010:raw");
}

/* Granularities that were configured at 999000: of what was written before there are no buckets, or
 * not all, but there is raw data; what raw data has left behind comes from buckets all the same. */
static void test_configured_later(void **state)
{
	(void)state;
	terms.rolled_since_ms[1] = 999000 * MINUTE;
	expect(998000 * MINUTE, "998000-999000:5m 999000-999960:1h 999960-1000010:raw");
	terms.rolled_since_ms[0] = 999000 * MINUTE;
	expect(998000 * MINUTE, "998000-999000:raw 999000-999960:1h 999960-1000010:raw");
	expect(980000 * MINUTE,
	       "980000-997130:5m 997130-999000:raw 999000-999960:1h 999960-1000010:raw");
	/* The bucket in which raw data begins counts whole, and raw data from its end on. */
	terms.now_ms = NOW + MINUTE;
	expect(980000 * MINUTE,
	       "980000-997135:5m 997135-999000:raw 999000-999960:1h 999960-1000010:raw");
	terms.now_ms = NOW;
	terms.rolled_since_ms[0] = terms.rolled_since_ms[1] = 990000 * MINUTE;
	expect(980040 * MINUTE, "980040-999960:1h 999960-1000010:raw");
}

static void test_counters(void **state)
{
	(void)state;
	terms.counter = true;
	terms.window_ms = 5 * MINUTE;
	expect(990000 * MINUTE, "990000-997130:none 997130-1000010:raw");
	terms.fn = FN_RATE;
	expect(990000 * MINUTE, "990000-999960:5m 999960-1000010:raw");
	terms.counter = false;
	expect(990000 * MINUTE, "990000-997130:none 997130-1000010:raw");
}

/* The finest that is left; parts join at edges of the coarser. */
static void test_points_as_stored(void **state)
{
	(void)state;
	terms.fn = FN_NONE;
	terms.window_ms = 0;
	expect(998000 * MINUTE, "998000-1000010:raw");
	expect(990000 * MINUTE, "990000-997130:5m 997130-1000010:raw");
	expect(900000 * MINUTE, "900000-979860:1h 979860-997130:5m 997130-1000010:raw");
	expect(400000 * MINUTE,
	       "400000-474410:none 474410-979860:1h 979860-997130:5m 997130-1000010:raw");
	terms.end_ms = 900600 * MINUTE;
	expect(900000 * MINUTE, "900000-900600:1h");
	terms.granularities = NULL;
	expect(900000 * MINUTE, "900000-900600:none");
	terms.raw_retention_ms = 0;
	expect(900000 * MINUTE, "900000-900600:raw");
}

/* Kept for two days, then for thirty: of what is older than five days raw data may be gone. Where
 * roll-ups say nothing of that time, what is left of it is shown. */
static void test_raw_data_that_was_kept_for_less(void **state)
{
	(void)state;
	terms.raw_retention_ms = 30 * DAY;
	terms.raw_whole_ms = 5 * DAY;
	terms.fn = FN_NONE;
	terms.window_ms = 0;
	expect(990000 * MINUTE, "990000-992810:5m 992810-1000010:raw");
	terms.fn = FN_MAX;
	terms.window_ms = 20 * MINUTE;
	terms.rolled_before_ms = 990000 * MINUTE;
	expect(991000 * MINUTE, "991000-992810:5m 992810-1000010:raw");
	terms.window_ms = 7 * MINUTE;
	expect(991000 * MINUTE, "991000-1000010:raw");
	terms.window_ms = 20 * MINUTE;
	terms.rolled_since_ms[0] = 999000 * MINUTE;
	expect(991000 * MINUTE, "991000-1000010:raw");
}

static void test_points_wanted(void **state)
{
	(void)state;
	terms.fn = FN_NONE;
	terms.window_ms = 0;
	terms.points = 100;
	/* 180 minutes: windows of 2 are 90 and, as 999830 is even, no more. */
	expect(NOW - 3 * HOUR, "2m avg, 999830-1000010:raw");
	/* A year: 8,760 h by 100 are 88 h; that is 7 days, of hours. */
	terms.counter = true;
	expect(NOW - 364 * DAY, "10080m last, 475850-999960:1h 999960-1000010:raw");
	/* What only hours have gets no windows below. */
	terms.counter = false;
	terms.fn = FN_MAX;
	terms.points = 1000000;
	terms.end_ms = 900600 * MINUTE;
	expect(900000 * MINUTE, "60m max, 900000-900600:1h");
	/* 2 points of more than four weeks each. */
	terms.points = 2;
	terms.end_ms = NOW;
	expect(NOW - 364 * DAY, "645120m max, 475850-999960:1h 999960-1000010:raw");
}

static void test_stored(void **state)
{
	(void)state;
	terms.stored = true;
	expect(990002 * MINUTE, "990002-1000010:1h");
	terms.window_ms = 5 * MINUTE;
	expect(970000 * MINUTE, "970000-979850:none 979850-1000010:5m");
	terms.window_ms = 0;
	expect(990000 * MINUTE, "5m max, 990000-1000010:5m");
	expect(970000 * MINUTE, "60m max, 970000-1000010:1h");
	expect(400000 * MINUTE, "60m max, 400000-474410:none 474410-1000010:1h");
	terms.points = 200; /* 10,010 minutes are 2,002 of 5 */
	expect(990000 * MINUTE, "60m max, 990000-1000010:1h");
	assert_int_equal(plan.buckets_over, 0);
	/* 990000 and 167 hours later are such beginnings, 1000020 is not reached. */
	terms.points = 167;
	expect(990000 * MINUTE, "60m max, 990000-1000010:1h");
	assert_int_equal(plan.buckets_over, 0);
	terms.points = 166;
	expect(990000 * MINUTE, "60m max, 990000-1000010:1h");
	assert_int_equal(plan.buckets_over, 167);
	/* The hour of 990000 began before. */
	expect(990001 * MINUTE, "60m max, 990001-1000010:1h");
	assert_int_equal(plan.buckets_over, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, begin)
	const struct CMUnitTest tests[] = {
		TEST(test_windows),
		TEST(test_ends),
		TEST(test_late),
		TEST(test_configured_later),
		TEST(test_counters),
		TEST(test_points_as_stored),
		TEST(test_points_wanted),
		TEST(test_stored),
		TEST(test_late_points_are_kept),
		TEST(test_raw_data_that_was_kept_for_less),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
