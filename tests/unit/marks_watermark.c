/* What queries are told of which metrics are behind: slots of an hour, a quiet time of five
 * minutes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "marks/watermark.h"

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS   (60 * MINUTE_MS)
#define HOUR_S    3600

/* Hours since 1970, and minutes behind them. */
#define AT(hour, minute) ((hour)*HOUR_MS + (minute)*MINUTE_MS)

static struct watermark *watermark;

static void touch(int64_t now_ms, int64_t hour, const char *tenant, const char *metric)
{
	struct mark_touch one = {.slot = {hour * HOUR_S, 3},
				 .tenant = slice_of(tenant),
				 .series_set = {slice_of(metric), SLICE(",h=a")}};
	watermark_touch(watermark, now_ms, &one, 1);
}

static void find(int64_t hour, const char *tenant, const char *metric)
{
	struct mark marks[2] = {
		{.tenant = SLICE("a"), .series_set = {SLICE("done"), {0}}, .finished = true},
		{.tenant = slice_of(tenant), .series_set = {slice_of(metric), {0}}, .waits = true}};
	watermark_found(watermark, hour * HOUR_S, marks, 2);
}

/* A pass that finds nothing. */
static void pass(int64_t asof_ms)
{
	watermark_begin(watermark, asof_ms, 0);
	watermark_end(watermark, asof_ms + MINUTE_MS, true);
}

#define assert_before(tenant, metric, hour)                                                        \
	assert_int_equal(watermark_before_ms(watermark, slice_of(tenant), slice_of(metric)),       \
			 (hour)*HOUR_MS)

static int begin(void **state)
{
	(void)state;
	watermark = watermark_new(HOUR_MS, 5 * MINUTE_MS, false);
	return 0;
}

static int end(void **state)
{
	(void)state;
	watermark_free(watermark);
	return 0;
}

static void nothing_is_known_before_a_pass_has_seen_all(void **state)
{
	(void)state;
	assert_before("a", "m", 0);
	watermark_begin(watermark, AT(100, 30), 0);
	watermark_end(watermark, AT(100, 31), false);
	assert_before("a", "m", 0);
	pass(AT(100, 32));
	assert_before("a", "m", 100);
}

static void a_slot_counts_when_it_has_been_over_for_the_quiet_time(void **state)
{
	(void)state;
	pass(AT(100, 5) - 1);
	assert_before("a", "m", 99);
	pass(AT(100, 5));
	assert_before("a", "m", 100);
}

static void a_touch_counts_at_once_and_for_its_metric_alone(void **state)
{
	(void)state;
	pass(AT(100, 30));
	touch(AT(100, 31), 42, "a", "mm");
	assert_before("a", "mm", 42);
	assert_before("a", "m", 100);
	assert_before("am", "m", 100);
	assert_before("b", "mm", 100);
	touch(AT(100, 31), 50, "a", "mm");
	assert_before("a", "mm", 42);
	touch(AT(100, 31), 41, "a", "mm");
	assert_before("a", "mm", 41);
}

/* Before the first pass is over all is taken for behind; the touch has to be known after it. */
static void a_touch_during_a_pass_survives_it(void **state)
{
	(void)state;
	watermark_begin(watermark, AT(100, 30), 0);
	touch(AT(100, 30) + 1, 42, "a", "m");
	watermark_end(watermark, AT(100, 31), true);
	assert_before("a", "m", 42);
}

/* Its mark may be on its way while the pass lists; only what is as old as the quiet time is
 * durable. */
static void a_touch_shortly_before_a_pass_survives_it(void **state)
{
	(void)state;
	pass(AT(100, 30));
	touch(AT(100, 30), 42, "a", "m");
	pass(AT(100, 35) - 1);
	assert_before("a", "m", 42);
	pass(AT(100, 35));
	assert_before("a", "m", 100);
}

static void a_touch_that_is_repeated_stays_as_long(void **state)
{
	(void)state;
	pass(AT(100, 30));
	touch(AT(100, 30), 42, "a", "m");
	touch(AT(100, 34), 42, "a", "m");
	pass(AT(100, 36));
	touch(AT(100, 37), 42, "a", "m");
	pass(AT(100, 41));
	assert_before("a", "m", 42);
	pass(AT(100, 42));
	assert_before("a", "m", 100);
}

/* Somebody whose clock is 57 hours late writes every minute. */
static void touches_without_a_pause_move_on(void **state)
{
	(void)state;
	for (int64_t minute = 0; minute < 180; minute++) {
		pass(AT(100, minute));
		touch(AT(100, minute), 43 + minute / 60, "a", "m");
	}
	assert_before("a", "m", 45);
}

static void a_pass_that_broke_off_takes_nothing_away(void **state)
{
	(void)state;
	pass(AT(100, 30));
	touch(AT(100, 30), 42, "a", "m");
	watermark_begin(watermark, AT(100, 50), 0);
	find(41, "a", "n");
	watermark_end(watermark, AT(100, 51), false);
	assert_before("a", "m", 42);
	assert_before("a", "n", 41);
	assert_before("a", "o", 100);
	watermark_begin(watermark, AT(100, 55), 0);
	watermark_end(watermark, AT(100, 56), false);
	assert_before("a", "n", 41);
	pass(AT(101, 0));
	assert_before("a", "m", 100);
	assert_before("a", "n", 100);
}

/* As marks of an earlier run, which nobody here has touched. */
static void what_waits_stays_behind(void **state)
{
	(void)state;
	watermark_begin(watermark, AT(100, 30), 0);
	find(60, "a", "m");
	find(42, "a", "m");
	find(61, "a", "m");
	watermark_end(watermark, AT(100, 31), true);
	assert_before("a", "m", 42);
	assert_before("a", "done", 100);
	watermark_begin(watermark, AT(100, 32), 0);
	find(60, "a", "m");
	assert_before("a", "m", 42);
	watermark_end(watermark, AT(100, 33), true);
	assert_before("a", "m", 60);
}

static void a_slot_that_was_not_seen_counts_for_all(void **state)
{
	(void)state;
	watermark_begin(watermark, AT(100, 30), 0);
	watermark_found_any(watermark, 42 * HOUR_S);
	watermark_end(watermark, AT(100, 31), true);
	assert_before("a", "m", 42);
	pass(AT(100, 32));
	assert_before("a", "m", 100);
}

/* One that is touched while its slot is not over: of that slot nobody takes rows before it has been
 * over for the quiet time. */
static void a_slot_that_has_not_ended_is_behind_anyway(void **state)
{
	(void)state;
	pass(AT(100, 59));
	touch(AT(101, 0) - 1, 100, "a", "m");
	assert_before("a", "m", 100);
	pass(AT(101, 5) - 1);
	assert_before("a", "m", 100);
	pass(AT(101, 5));
	assert_before("a", "m", 101);
}

/* By the clock slot 100 has not ended, but its rows are taken. */
static void a_clock_that_was_set_back(void **state)
{
	(void)state;
	pass(AT(101, 30));
	touch(AT(101, 30), 30, "a", "old");
	touch(AT(100, 10), 100, "a", "m");
	assert_before("a", "m", 100);
	pass(AT(100, 11));
	assert_before("a", "m", 100);
	assert_before("a", "old", 30);
	pass(AT(100, 16));
	assert_before("a", "old", 30);
	pass(AT(100, 17));
	assert_before("a", "old", 100);
	pass(AT(101, 5));
	assert_before("a", "m", 101);
}

static void closed_slots_do_not_count(void **state)
{
	(void)state;
	watermark_begin(watermark, AT(100, 30), 50 * HOUR_S);
	find(49, "a", "m");
	watermark_found_any(watermark, 49 * HOUR_S);
	watermark_end(watermark, AT(100, 31), true);
	touch(AT(100, 32), 49, "a", "m");
	assert_before("a", "m", 100);
	touch(AT(100, 32), 50, "a", "m");
	assert_before("a", "m", 50);
}

static void while_others_roll_up_nothing_is_known(void **state)
{
	(void)state;
	pass(AT(100, 30));
	watermark_forget(watermark);
	assert_before("a", "m", 0);
	pass(AT(100, 32));
	assert_before("a", "m", 100);
}

/* There is room for so many; the oldest of the others stands for everything. */
static void more_metrics_than_there_is_room_for(void **state)
{
	char name[32];
	(void)state;
	pass(AT(100, 30));
	for (int i = 0; i < WATERMARK_MAX; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		touch(AT(100, 30), 60 + i % 7, "a", name);
	}
	assert_before("a", "m9", 62);
	assert_before("a", "other", 100);
	touch(AT(100, 30), 64, "a", "one more");
	touch(AT(100, 30), 63, "a", "and one");
	touch(AT(100, 30), 50, "a", "m8");
	assert_before("a", "m8", 50);
	assert_before("a", "m9", 62);
	assert_before("a", "m12", 63);
	assert_before("a", "one more", 63);
	assert_before("a", "other", 63);
	pass(AT(100, 40));
	touch(AT(100, 41), 64, "a", "one more");
	assert_before("a", "one more", 64);
	assert_before("a", "other", 100);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_known_before_a_pass_has_seen_all),
		TEST(a_slot_counts_when_it_has_been_over_for_the_quiet_time),
		TEST(a_touch_counts_at_once_and_for_its_metric_alone),
		TEST(a_touch_during_a_pass_survives_it),
		TEST(a_touch_shortly_before_a_pass_survives_it),
		TEST(a_touch_that_is_repeated_stays_as_long),
		TEST(touches_without_a_pause_move_on),
		TEST(a_pass_that_broke_off_takes_nothing_away),
		TEST(what_waits_stays_behind),
		TEST(a_slot_that_was_not_seen_counts_for_all),
		TEST(a_slot_that_has_not_ended_is_behind_anyway),
		TEST(a_clock_that_was_set_back),
		TEST(closed_slots_do_not_count),
		TEST(while_others_roll_up_nothing_is_known),
		TEST(more_metrics_than_there_is_room_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
