/* When a touch may be left out: what the header says, worked out in seconds. Slots of an hour, a
 * quiet time of 100 s, so a fifth is 20 s. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rollup/touches.h"

#define HOUR_MS INT64_C(3600000)
#define SLOT_MS (100 * HOUR_MS) /* where a slot begins */
#define SLOT_S  (SLOT_MS / 1000)

static void open_at(struct rollup_touches *t, int64_t now_ms)
{
	rollup_touches_init(t, HOUR_MS, 100000);
	rollup_touches_at(t, now_ms);
}

static bool touched(struct rollup_touches *t, uint64_t series, uint32_t known, int64_t ts_ms,
		    int64_t now_ms)
{
	rollup_touches_at(t, now_ms);
	bool is = rollup_touched(t, series, known, ts_ms, now_ms);
	/* The short way says no more than the long one. */
	assert_true(is || !rollup_touched_again(t, known, ts_ms, now_ms));
	return is;
}

static void one_touch_is_enough_until_the_slot_ends(void **state)
{
	(void)state;
	struct rollup_touches t;
	open_at(&t, SLOT_MS + 1);
	assert_false(touched(&t, 7, 0, SLOT_MS, SLOT_MS + 1));
	uint32_t known = rollup_touches_remember(&t, 7, 0, SLOT_S, SLOT_MS + 1);
	assert_true(known);
	assert_true(touched(&t, 7, known, SLOT_MS, SLOT_MS + 1));
	assert_true(touched(&t, 7, known, SLOT_MS + HOUR_MS - 1, SLOT_MS + HOUR_MS - 1));
	assert_false(touched(&t, 7, known, SLOT_MS - 1, SLOT_MS + HOUR_MS - 1));
	assert_false(touched(&t, 7, known, SLOT_MS + HOUR_MS, SLOT_MS + HOUR_MS - 1));
	/* It has ended: that touch says nothing any more. */
	assert_false(touched(&t, 7, known, SLOT_MS, SLOT_MS + HOUR_MS));
	rollup_touches_release(&t);
}

static void afterwards_one_is_enough_for_a_fifth_of_the_quiet_time(void **state)
{
	(void)state;
	struct rollup_touches t;
	int64_t now_ms = SLOT_MS + 2 * HOUR_MS;
	open_at(&t, now_ms);
	/* In the last moment before the end, and at the end. */
	assert_int_not_equal(rollup_touches_remember(&t, 7, 5, SLOT_S + 3600, now_ms - 1), 5);
	assert_int_equal(rollup_touches_remember(&t, 7, 5, SLOT_S, now_ms), 5);
	assert_true(touched(&t, 7, 5, SLOT_MS, now_ms));
	assert_true(touched(&t, 7, 5, SLOT_MS + HOUR_MS - 1, now_ms + 20000));
	assert_false(touched(&t, 7, 5, SLOT_MS, now_ms + 20001));
	assert_false(touched(&t, 8, 5, SLOT_MS, now_ms));
	assert_false(touched(&t, 7, 5, SLOT_MS - HOUR_MS, now_ms));
	rollup_touches_release(&t);
}

/* A clock that ran an hour fast: by it the slot had ended, been quiet and been rolled up. Its
 * touch of before still stood, and what came after the clock was set right was never rolled up. */
static void what_was_touched_before_the_clock_was_set_back_is_forgotten(void **state)
{
	(void)state;
	struct rollup_touches t;
	open_at(&t, SLOT_MS + HOUR_MS - 5000);
	uint32_t known = rollup_touches_remember(&t, 7, 0, SLOT_S, SLOT_MS + HOUR_MS - 5000);
	assert_true(touched(&t, 7, known, SLOT_MS, SLOT_MS + HOUR_MS - 1));
	rollup_touches_at(&t, SLOT_MS + HOUR_MS + 600000);
	assert_int_equal(rollup_touches_remember(&t, 9, 0, SLOT_S, SLOT_MS + HOUR_MS + 600000), 0);
	assert_false(touched(&t, 7, known, SLOT_MS, SLOT_MS + 600000));
	assert_false(touched(&t, 9, 0, SLOT_MS, SLOT_MS + 600000));
	/* Nor is a touch taken for one that was under way then. */
	assert_int_equal(rollup_touches_remember(&t, 7, 3, SLOT_S, SLOT_MS + HOUR_MS + 600000), 3);
	known = rollup_touches_remember(&t, 7, 0, SLOT_S, SLOT_MS + 600000);
	assert_true(touched(&t, 7, known, SLOT_MS, SLOT_MS + 600000));
	/* By less than a fifth of the quiet time nothing is forgotten. */
	assert_true(touched(&t, 7, known, SLOT_MS, SLOT_MS + 590000));
	rollup_touches_release(&t);
}

/* 100 s less the fifth and 5 s of difference. */
static void a_write_has_what_is_left_of_the_quiet_time(void **state)
{
	(void)state;
	struct errbuf e = {""};
	assert_int_equal(rollup_write_max_ms(100000, 0), 80000);
	assert_int_equal(rollup_write_max_ms(100000, 5000), 75000);
	assert_int_equal(rollup_quiet_check(100000, 75000, 5000, &e), 0);
	assert_int_equal(rollup_quiet_check(99999, 75000, 5000, &e), ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_touch_is_enough_until_the_slot_ends),
		cmocka_unit_test(afterwards_one_is_enough_for_a_fifth_of_the_quiet_time),
		cmocka_unit_test(what_was_touched_before_the_clock_was_set_back_is_forgotten),
		cmocka_unit_test(a_write_has_what_is_left_of_the_quiet_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
