/* When a touch may be left out: what the header says, worked out in seconds. Slots of an hour, a
 * quiet time of 100 s, so a fifth is 20 s. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "marks/recent.h"

#define HOUR_MS INT64_C(3600000)
#define SLOT_MS (100 * HOUR_MS) /* where a slot begins */
#define SLOT_S  (SLOT_MS / 1000)

static void open_at(struct recent_touches *t, int64_t now_ms)
{
	recent_touches_init(t, HOUR_MS, 100000);
	recent_touches_at(t, now_ms);
}

static bool touched(struct recent_touches *t, uint64_t series, uint32_t known, int64_t ts_ms,
		    int64_t now_ms)
{
	recent_touches_at(t, now_ms);
	bool is = recent_touches_has(t, series, known, ts_ms, now_ms);
	/* The short way says no more than the long one. */
	assert_true(is || !recent_touches_has_again(t, known, ts_ms, now_ms));
	return is;
}

static void one_touch_is_enough_until_the_slot_ends(void **state)
{
	(void)state;
	struct recent_touches t;
	open_at(&t, SLOT_MS + 1);
	assert_false(touched(&t, 7, 0, SLOT_MS, SLOT_MS + 1));
	uint32_t known = recent_touches_remember(&t, 7, 0, SLOT_S, SLOT_MS + 1);
	assert_true(known);
	assert_true(touched(&t, 7, known, SLOT_MS, SLOT_MS + 1));
	assert_true(touched(&t, 7, known, SLOT_MS + HOUR_MS - 1, SLOT_MS + HOUR_MS - 1));
	assert_false(touched(&t, 7, known, SLOT_MS - 1, SLOT_MS + HOUR_MS - 1));
	assert_false(touched(&t, 7, known, SLOT_MS + HOUR_MS, SLOT_MS + HOUR_MS - 1));
	/* It has ended: that touch says nothing any more. */
	assert_false(touched(&t, 7, known, SLOT_MS, SLOT_MS + HOUR_MS));
	recent_touches_release(&t);
}

static void afterwards_one_is_enough_for_a_fifth_of_the_quiet_time(void **state)
{
	(void)state;
	struct recent_touches t;
	int64_t now_ms = SLOT_MS + 2 * HOUR_MS;
	open_at(&t, now_ms);
	uint32_t known = recent_touches_remember(&t, 7, 0, SLOT_S, now_ms);
	assert_true(touched(&t, 7, known, SLOT_MS, now_ms));
	assert_false(touched(&t, 8, 0, SLOT_MS, now_ms));
	assert_false(touched(&t, 7, known, SLOT_MS - HOUR_MS, now_ms));
	assert_false(touched(&t, 7, known, SLOT_MS + HOUR_MS, now_ms));
	assert_true(touched(&t, 7, known, SLOT_MS + HOUR_MS - 1, now_ms + 20000));
	assert_false(touched(&t, 7, known, SLOT_MS, now_ms + 20001));
	assert_false(touched(&t, 7, known, SLOT_MS, now_ms + 40001));
	recent_touches_release(&t);
}

/* The touch of 19 s after a span began is good for 20 s all the same, by the table. */
static void a_touch_is_good_for_longer_than_its_span(void **state)
{
	(void)state;
	struct recent_touches t;
	int64_t now_ms = SLOT_MS + 2 * HOUR_MS;
	open_at(&t, now_ms);
	recent_touches_at(&t, now_ms + 19000);
	uint32_t known = recent_touches_remember(&t, 7, 0, SLOT_S, now_ms + 19000);
	assert_true(touched(&t, 7, known, SLOT_MS, now_ms + 39000));
	assert_false(touched(&t, 7, known, SLOT_MS, now_ms + 39001));
	/* One that became durable in the next span says nothing of all of that. */
	assert_int_equal(recent_touches_remember(&t, 9, 5, SLOT_S, now_ms + 19000), 5);
	assert_true(touched(&t, 9, 5, SLOT_MS, now_ms + 39000));
	recent_touches_release(&t);
}

/* The table has room for 16,384; who knows what it was given needs none. */
static void as_many_series_as_there_are_are_remembered(void **state)
{
	enum { MANY = 100000 };
	static uint32_t known[MANY];
	(void)state;
	struct recent_touches t;
	int64_t now_ms = SLOT_MS + 2 * HOUR_MS;
	open_at(&t, now_ms);
	for (uint64_t i = 0; i < MANY; i++)
		known[i] = recent_touches_remember(&t, i, 0, SLOT_S, now_ms);
	for (uint64_t i = 0; i < MANY; i++)
		assert_true(touched(&t, i, known[i], SLOT_MS, now_ms + 1));
	recent_touches_release(&t);
}

/* 2,048 slots have numbers in a span; another one that has the place of one of them has none. */
static void slots_that_share_a_place_are_told_apart(void **state)
{
	(void)state;
	struct recent_touches t;
	const int64_t apart_ms = RECENT_SPAN_SLOTS * HOUR_MS;
	int64_t now_ms = SLOT_MS + 2 * apart_ms;
	open_at(&t, now_ms);
	uint32_t first = recent_touches_remember(&t, 7, 0, SLOT_S, now_ms);
	uint32_t second = recent_touches_remember(&t, 7, 0, SLOT_S + apart_ms / 1000, now_ms);
	assert_true(first && !second);
	assert_false(touched(&t, 8, first, SLOT_MS + apart_ms, now_ms));
	assert_true(touched(&t, 8, first, SLOT_MS, now_ms));
	assert_false(touched(&t, 8, second, SLOT_MS + apart_ms, now_ms));
	assert_true(touched(&t, 7, second, SLOT_MS + apart_ms, now_ms));
	recent_touches_release(&t);
}

/* Live data goes on while what is old is filled in. */
static void a_touch_of_the_present_is_not_given_up_for_one_of_the_past(void **state)
{
	(void)state;
	struct recent_touches t;
	int64_t now_ms = SLOT_MS + 2 * HOUR_MS;
	open_at(&t, now_ms);
	uint32_t known = recent_touches_remember(&t, 7, 0, SLOT_S + 2 * 3600, now_ms);
	assert_int_equal(recent_touches_remember(&t, 7, known, SLOT_S, now_ms), known);
	assert_true(touched(&t, 7, known, now_ms, now_ms));
	assert_true(touched(&t, 7, known, SLOT_MS, now_ms));
	recent_touches_release(&t);
}

/* Spans are counted up to 2^20 (two years at the preset quiet time). */
static void when_spans_cannot_be_counted_any_more_the_table_is_left(void **state)
{
	(void)state;
	struct recent_touches t;
	int64_t now_ms = SLOT_MS + 2 * HOUR_MS;
	open_at(&t, now_ms);
	uint32_t known = 0;
	for (uint32_t i = 0; i < (1 << 20) + 10; i++) {
		now_ms += 20000;
		recent_touches_at(&t, now_ms);
		assert_false(touched(&t, 7, known, SLOT_MS, now_ms + 1));
		known = recent_touches_remember(&t, 7, known, SLOT_S, now_ms);
		assert_true(touched(&t, 7, known, SLOT_MS, now_ms + 1));
		now_ms += 1;
	}
	recent_touches_release(&t);
}

/* A clock that ran an hour fast: by it the slot had ended, been quiet and been rolled up. Its
 * touch of before still stood, and what came after the clock was set right was never rolled up. */
static void what_was_touched_before_the_clock_was_set_back_is_forgotten(void **state)
{
	(void)state;
	struct recent_touches t;
	open_at(&t, SLOT_MS + HOUR_MS - 5000);
	uint32_t known = recent_touches_remember(&t, 7, 0, SLOT_S, SLOT_MS + HOUR_MS - 5000);
	assert_true(touched(&t, 7, known, SLOT_MS, SLOT_MS + HOUR_MS - 1));
	recent_touches_at(&t, SLOT_MS + HOUR_MS + 600000);
	uint32_t late = recent_touches_remember(&t, 9, 0, SLOT_S, SLOT_MS + HOUR_MS + 600000);
	assert_true(touched(&t, 9, late, SLOT_MS, SLOT_MS + HOUR_MS + 600000));
	assert_false(touched(&t, 7, known, SLOT_MS, SLOT_MS + 600000));
	assert_false(touched(&t, 9, late, SLOT_MS, SLOT_MS + 600000));
	/* Nor is a touch taken for one that was under way then. */
	assert_int_equal(recent_touches_remember(&t, 7, 3, SLOT_S, SLOT_MS + HOUR_MS + 600000), 3);
	known = recent_touches_remember(&t, 7, 0, SLOT_S, SLOT_MS + 600000);
	assert_true(touched(&t, 7, known, SLOT_MS, SLOT_MS + 600000));
	/* By less than a fifth of the quiet time nothing is forgotten. */
	assert_true(touched(&t, 7, known, SLOT_MS, SLOT_MS + 590000));
	recent_touches_release(&t);
}

/* 100 s less the fifth and 5 s of difference. */
static void a_write_has_what_is_left_of_the_quiet_time(void **state)
{
	(void)state;
	struct errbuf e = {""};
	assert_int_equal(recent_touches_write_max_ms(100000, 0), 80000);
	assert_int_equal(recent_touches_write_max_ms(100000, 5000), 75000);
	assert_int_equal(quiet_time_check(100000, 75000, 5000, &e), 0);
	assert_int_equal(quiet_time_check(99999, 75000, 5000, &e), ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_touch_is_enough_until_the_slot_ends),
		cmocka_unit_test(afterwards_one_is_enough_for_a_fifth_of_the_quiet_time),
		cmocka_unit_test(a_touch_is_good_for_longer_than_its_span),
		cmocka_unit_test(as_many_series_as_there_are_are_remembered),
		cmocka_unit_test(slots_that_share_a_place_are_told_apart),
		cmocka_unit_test(a_touch_of_the_present_is_not_given_up_for_one_of_the_past),
		cmocka_unit_test(when_spans_cannot_be_counted_any_more_the_table_is_left),
		cmocka_unit_test(what_was_touched_before_the_clock_was_set_back_is_forgotten),
		cmocka_unit_test(a_write_has_what_is_left_of_the_quiet_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
