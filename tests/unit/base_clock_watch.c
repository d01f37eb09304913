/* When a clock is believed: on a virtual one, whose wall and steady time the test moves apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock_watch.h"

#define SECOND_US INT64_C(1000000)
#define MINUTE_US (60 * SECOND_US)
#define HOUR_US   (60 * MINUTE_US)
#define DAY_US    (24 * HOUR_US)
#define T0_US     (INT64_C(1700000000) * SECOND_US)

static struct clock_virtual wall;
static struct clock_watch watch;

static int set_up(UNUSED void **state)
{
	clock_virtual_init(&wall, T0_US);
	clock_watch_init(&watch, &wall.clock);
	return 0;
}

static int tear_down(UNUSED void **state)
{
	clock_watch_release(&watch);
	return 0;
}

static bool doubted(void)
{
	return clock_is_doubted(&watch.clock);
}

/* Looked at once in a minute, as the store does more often. */
static void pass(int64_t us)
{
	for (int64_t left_us = us; left_us > 0; left_us -= MINUTE_US) {
		clock_virtual_advance(&wall, left_us < MINUTE_US ? left_us : MINUTE_US);
		(void)doubted();
	}
}

static void restart(int64_t off_us)
{
	struct clock_mark mark;
	clock_watch_mark(&watch, &mark);
	clock_watch_release(&watch);
	clock_virtual_init(&wall, wall.wall_us + off_us);
	clock_watch_init(&watch, &wall.clock);
	clock_watch_resume(&watch, &mark);
}

static void time_that_passes_is_believed(UNUSED void **state)
{
	clock_virtual_advance(&wall, 400 * DAY_US);
	assert_false(doubted());
	assert_int_equal(clock_age_ms(&watch.clock), (T0_US + 400 * DAY_US) / 1000);
}

/* 500 ppm, as the kernel slews at most: 43 s a day. */
static void a_slewed_clock_is_believed(UNUSED void **state)
{
	for (int i = 0; i < 30 * 1440; i++) {
		clock_virtual_advance(&wall, MINUTE_US);
		wall.wall_us += 30000;
		assert_false(doubted());
	}
}

static void a_jump_that_is_taken_back(UNUSED void **state)
{
	pass(HOUR_US);
	wall.wall_us += 400 * DAY_US;
	assert_true(doubted());
	clock_virtual_advance(&wall, 3 * SECOND_US);
	assert_true(doubted());
	assert_int_equal(clock_age_ms(&watch.clock), (T0_US + HOUR_US + 3 * SECOND_US) / 1000);
	assert_int_equal(clock_sure_ms(&watch.clock), (T0_US + HOUR_US + 3 * SECOND_US) / 1000);
	wall.wall_us -= 400 * DAY_US;
	assert_false(doubted());
	assert_int_equal(clock_age_ms(&watch.clock), (T0_US + HOUR_US + 3 * SECOND_US) / 1000);
}

/* Nothing is older than by either reckoning. */
static void a_jump_back(UNUSED void **state)
{
	pass(HOUR_US);
	wall.wall_us -= 400 * DAY_US;
	assert_true(doubted());
	assert_int_equal(clock_age_ms(&watch.clock), (T0_US + HOUR_US - 400 * DAY_US) / 1000);
	assert_int_equal(clock_sure_ms(&watch.clock), (T0_US + HOUR_US) / 1000);
	wall.wall_us += 400 * DAY_US;
	assert_false(doubted());
}

static void small_steps_are_believed_and_add_up(UNUSED void **state)
{
	pass(HOUR_US);
	wall.wall_us += 300 * SECOND_US;
	assert_false(doubted());
	wall.wall_us += SECOND_US;
	assert_true(doubted());
	wall.wall_us -= 301 * SECOND_US;
	assert_false(doubted());
	wall.wall_us -= 300 * SECOND_US;
	assert_false(doubted());
	wall.wall_us -= SECOND_US;
	assert_true(doubted());
}

/* It follows by a hundredth of what passes: 300 s in 30,000 s, so the same step may come again. */
static void what_was_stepped_is_followed(UNUSED void **state)
{
	pass(HOUR_US);
	for (int i = 0; i < 3; i++) {
		wall.wall_us += 300 * SECOND_US;
		assert_false(doubted());
		pass(30000 * SECOND_US);
	}
	wall.wall_us += 300 * SECOND_US;
	pass(15000 * SECOND_US);
	wall.wall_us += 160 * SECOND_US;
	assert_true(doubted());
}

static void believed_when_it_has_stood_for_a_day(UNUSED void **state)
{
	wall.wall_us += 400 * DAY_US;
	assert_true(doubted());
	pass(DAY_US - SECOND_US);
	assert_true(doubted());
	pass(SECOND_US);
	assert_false(doubted());
	assert_int_equal(clock_age_ms(&watch.clock), (T0_US + 401 * DAY_US) / 1000);
	wall.wall_us -= 400 * DAY_US;
	assert_true(doubted());
}

static void another_jump_begins_the_day_once_more(UNUSED void **state)
{
	wall.wall_us += 400 * DAY_US;
	pass(20 * HOUR_US);
	wall.wall_us += HOUR_US;
	pass(23 * HOUR_US);
	assert_true(doubted());
	pass(2 * HOUR_US);
	assert_false(doubted());
}

static void accepted(UNUSED void **state)
{
	pass(HOUR_US);
	wall.wall_us -= 400 * DAY_US;
	assert_true(doubted());
	clock_accept(&watch.clock);
	assert_false(doubted());
	assert_int_equal(clock_sure_ms(&watch.clock), (T0_US + HOUR_US - 400 * DAY_US) / 1000);
	wall.wall_us += 400 * DAY_US;
	assert_true(doubted());
}

static void a_stop_of_up_to_a_day_is_believed(UNUSED void **state)
{
	pass(HOUR_US);
	restart(DAY_US);
	assert_false(doubted());
	restart(DAY_US + SECOND_US);
	assert_true(doubted());
	clock_accept(&watch.clock);
	restart(-300 * SECOND_US);
	assert_false(doubted());
	clock_accept(&watch.clock);
	restart(-301 * SECOND_US);
	assert_true(doubted());
}

static void a_restart_keeps_the_doubt_and_the_time_stood(UNUSED void **state)
{
	pass(HOUR_US);
	wall.wall_us += 400 * DAY_US;
	pass(20 * HOUR_US); /* the last 19 h 59 min after the first look */
	restart(MINUTE_US);
	assert_true(doubted());
	assert_int_equal(clock_sure_ms(&watch.clock), (T0_US + 21 * HOUR_US) / 1000);
	pass(4 * HOUR_US);
	assert_true(doubted());
	pass(2 * MINUTE_US);
	assert_false(doubted());
}

static void a_restart_elsewhere_begins_the_day_once_more(UNUSED void **state)
{
	pass(HOUR_US);
	wall.wall_us += 400 * DAY_US;
	pass(20 * HOUR_US);
	restart(2 * DAY_US);
	pass(23 * HOUR_US);
	assert_true(doubted());
	pass(HOUR_US);
	assert_false(doubted());
}

static void a_restart_of_a_clock_that_was_set_right(UNUSED void **state)
{
	pass(HOUR_US);
	wall.wall_us += 400 * DAY_US;
	pass(HOUR_US);
	restart(-400 * DAY_US + HOUR_US);
	assert_false(doubted());
}

/* A machine without a battery goes on where it went down, and asks another clock some minutes
 * later. */
static void a_step_soon_after_the_start_is_part_of_the_stop(UNUSED void **state)
{
	pass(HOUR_US);
	restart(SECOND_US);
	pass(9 * MINUTE_US);
	wall.wall_us += 16 * HOUR_US;
	assert_false(doubted());
	wall.wall_us += 8 * HOUR_US;
	assert_true(doubted());
}

static void a_step_long_after_the_start_is_a_jump(UNUSED void **state)
{
	pass(HOUR_US);
	restart(SECOND_US);
	pass(11 * MINUTE_US);
	wall.wall_us += 16 * HOUR_US;
	assert_true(doubted());
}

/* The laptop's lid: the monotonic clock stands still, the steady one does not. */
static int64_t slept_us(struct clock *clock)
{
	return clock->mono_us(clock) + 8 * HOUR_US;
}

static void sleep_is_no_jump(UNUSED void **state)
{
	pass(HOUR_US);
	wall.wall_us += 8 * HOUR_US;
	wall.clock.steady_us = slept_us;
	assert_false(doubted());
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(time_that_passes_is_believed),
		CASE(a_slewed_clock_is_believed),
		CASE(a_jump_that_is_taken_back),
		CASE(a_jump_back),
		CASE(small_steps_are_believed_and_add_up),
		CASE(what_was_stepped_is_followed),
		CASE(believed_when_it_has_stood_for_a_day),
		CASE(another_jump_begins_the_day_once_more),
		CASE(accepted),
		CASE(a_stop_of_up_to_a_day_is_believed),
		CASE(a_restart_keeps_the_doubt_and_the_time_stood),
		CASE(a_restart_elsewhere_begins_the_day_once_more),
		CASE(a_restart_of_a_clock_that_was_set_right),
		CASE(a_step_soon_after_the_start_is_part_of_the_stop),
		CASE(a_step_long_after_the_start_is_a_jump),
		CASE(sleep_is_no_jump),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
