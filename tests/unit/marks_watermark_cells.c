/* What processes that share a store tell each other of what is rolled up: slots of an hour, a quiet
 * time of five minutes, four partitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "marks/watermark_cells.h"
#include "naive.h"
#include "store/wait.h"

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)
#define HOUR_S    3600

/* Hours since 1970, and minutes behind them. */
#define AT(hour, minute) ((hour)*HOUR_MS + (minute)*MINUTE_MS)

enum { PARTITIONS = 4 };

static struct clock_virtual virtual_clock;
static struct store *store;
static struct task_queue queue;
static struct watermark *one, *two; /* of two processes */

static int begin(UNUSED void **state)
{
	clock_virtual_init(&virtual_clock, AT(100, 0) * 1000);
	store = naive_open(&virtual_clock.clock);
	task_queue_init(&queue);
	one = watermark_new(HOUR_MS, 5 * MINUTE_MS, true);
	two = watermark_new(HOUR_MS, 5 * MINUTE_MS, true);
	return 0;
}

static int end(UNUSED void **state)
{
	watermark_free(one);
	watermark_free(two);
	store_close(store);
	task_queue_release(&queue);
	return 0;
}

static void set_clock(int64_t now_ms)
{
	clock_virtual_advance(&virtual_clock,
			      now_ms * 1000 - virtual_clock.clock.wall_us(&virtual_clock.clock));
}

static void touch(struct watermark *watermark, const char *writer, int64_t now_ms, int64_t hour,
		  const char *metric)
{
	struct mark_touch touched = {.slot = {hour * HOUR_S, 3},
				     .tenant = SLICE("a"),
				     .series_set = {slice_of(metric), SLICE(",h=a")}};
	struct store_write *write = store_write_new(store, 1 << 20);
	set_clock(now_ms);
	assert_int_equal(
		watermark_cells_put_late(watermark, write, slice_of(writer), now_ms, &touched, 1),
		0);
	assert_int_equal(store_write_wait(write, &queue), 0);
	store_write_free(write);
}

/* A pass over some partitions; `left`: a mark of that hour could not be worked on, 0 none. */
static void pass(struct watermark *watermark, const char *writer, const char *partitions,
		 int64_t asof_ms, int64_t left)
{
	struct partitions own;
	struct errbuf e;
	assert_int_equal(partitions_parse(slice_of(partitions), PARTITIONS, &own, &e), 0);
	set_clock(asof_ms);
	watermark_begin(watermark, asof_ms, 0);
	if (left)
		watermark_found_any(watermark, left * HOUR_S);
	const struct watermark_rolled rolled = {.writer = slice_of(writer),
						.partitions = &own,
						.asof_ms = asof_ms,
						.before_s = watermark_end_own(watermark)};
	assert_int_equal(
		watermark_cells_exchange(watermark, store, &queue, &rolled, PARTITIONS, asof_ms),
		0);
}

/* As a third process finds it. */
static int64_t before_ms(const char *metric)
{
	struct watermark *third = watermark_new(HOUR_MS, 5 * MINUTE_MS, true);
	struct store_read *read = store_read_new(store, 1 << 20);
	struct watermark_asked *asked;
	assert_int_equal(watermark_cells_ask(read, SLICE("a"), slice_of(metric), &asked), 0);
	read->now_ms = virtual_clock.clock.wall_us(&virtual_clock.clock) / 1000;
	assert_int_equal(store_read_wait(read, &queue), 0);
	int64_t found_ms = watermark_cells_before_ms(third, asked, PARTITIONS);
	store_read_free(read);
	watermark_free(third);
	return found_ms;
}

#define assert_before(metric, hour) assert_int_equal(before_ms(metric), (hour)*HOUR_MS)

static void put_cell(const char *kind, const char *tenant, const char *metric, const char *writer,
		     const char *value)
{
	struct store_parts row = {{slice_of(kind), slice_of(tenant), slice_of(metric)}};
	struct store_parts column = {{slice_of(writer)}};
	struct store_write *write = store_write_new(store, 1 << 20);
	assert_int_equal(store_cell_put(write, TABLE_WATERMARKS, &row, &column, slice_of(value),
					store_stamp(store), 0),
			 0);
	assert_int_equal(store_write_wait(write, &queue), 0);
	store_write_free(write);
}

static void the_least_of_all_partitions_counts(UNUSED void **state)
{
	assert_before("m", 0);
	pass(one, "one", "0-2", AT(100, 30), 0);
	assert_before("m", 0); /* partition 3 is nobody's */
	pass(two, "two", "3", AT(90, 30), 0);
	assert_before("m", 90);
	pass(two, "two", "3", AT(100, 3), 0); /* hour 99 has been over for 3 minutes */
	assert_before("m", 99);
	pass(two, "two", "3", AT(100, 5), 0);
	assert_before("m", 100);
}

static void a_mark_that_is_left_holds_its_partitions_back(UNUSED void **state)
{
	pass(one, "one", "0-2", AT(100, 30), 0);
	pass(two, "two", "3", AT(100, 30), 42);
	assert_before("m", 42);
	pass(two, "two", "3", AT(100, 31), 0);
	assert_before("m", 100);
}

/* Who had a partition tells of it still; the pass that began last counts. */
static void of_two_that_tell_of_a_partition_the_later_pass_counts(UNUSED void **state)
{
	pass(one, "one", "0-3", AT(100, 30), 0);
	pass(two, "two", "2-3", AT(100, 31), 42);
	assert_before("m", 42);
	pass(one, "one", "0-3", AT(100, 32), 0);
	assert_before("m", 100);
}

static void a_late_touch_counts_for_its_metric_until_all_have_seen_it(UNUSED void **state)
{
	pass(one, "one", "0-2", AT(100, 30), 0);
	pass(two, "two", "3", AT(100, 30), 0);
	touch(one, "one", AT(100, 31), 42, "mm");
	assert_before("mm", 42);
	assert_before("m", 100);
	pass(one, "one", "0-2", AT(100, 36), 0);
	assert_before("mm", 42); /* partition 3 has not seen it */
	pass(two, "two", "3", AT(100, 36) - 1, 0);
	assert_before("mm", 42); /* it may have been on its way */
	pass(two, "two", "3", AT(100, 36), 0);
	assert_before("mm", 100);
}

static void touches_of_two_processes_stand_side_by_side(UNUSED void **state)
{
	pass(one, "one", "0-3", AT(100, 30), 0);
	touch(one, "one", AT(100, 31), 50, "m");
	touch(two, "two", AT(100, 32), 42, "m");
	touch(one, "one", AT(100, 33), 60, "m");
	assert_before("m", 42);
	pass(one, "one", "0-3", AT(100, 37), 0); /* has seen that of two */
	assert_before("m", 50);
	pass(one, "one", "0-3", AT(100, 38), 0);
	assert_before("m", 100);
}

/* Hour 42 was touched once; what is touched again and again must not keep it. */
static void what_goes_on_late_moves_on(UNUSED void **state)
{
	touch(one, "one", AT(100, 10), 42, "m");
	for (int minute = 11; minute < 30; minute++) {
		touch(one, "one", AT(100, minute), 98, "m");
		pass(one, "one", "0-3", AT(100, minute), 0);
	}
	assert_before("m", 98);
}

static void a_slot_that_has_not_ended_is_not_told_of(UNUSED void **state)
{
	touch(one, "one", AT(100, 31), 100, "m");
	pass(one, "one", "0-3", AT(100, 32), 0);
	assert_before("m", 100);
}

static void what_nobody_has_rolled_up_for_a_day_is_not_rolled_up(UNUSED void **state)
{
	pass(one, "one", "0-3", AT(100, 30), 0);
	set_clock(AT(100, 30) + DAY_MS - 1);
	assert_before("m", 100);
	set_clock(AT(100, 30) + DAY_MS);
	assert_before("m", 0);
}

static void cells_that_cannot_be_read_disturb_nothing_else(UNUSED void **state)
{
	pass(one, "one", "0-3", AT(100, 30), 0);
	put_cell("rolled", "", "", "noise", "\x07");
	put_cell("rolled", "", "", "noise2",
		 "\x01"
		 "12345678"
		 "12345678"
		 "x-y");
	assert_before("m", 100);
	put_cell("late", "a", "m", "noise", "\x01");
	assert_before("m", 0);
	assert_before("mm", 100);
}

/* Beyond WATERMARK_MAX metrics all share a cell. */
static void metrics_without_room_hold_back_all(UNUSED void **state)
{
	char name[24];
	pass(one, "one", "0-3", AT(100, 30), 0);
	for (int i = 0; i < WATERMARK_MAX; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		touch(one, "one", AT(100, 31), 60, name);
	}
	assert_before("other", 100);
	touch(one, "one", AT(100, 31), 42, "one too many");
	assert_before("other", 42);
	assert_before("m7", 42);
	pass(one, "one", "0-3", AT(100, 36), 0);
	assert_before("other", 100);
	assert_before("m7", 100);
}

static void a_metric_that_is_no_text_holds_back_all(UNUSED void **state)
{
	pass(one, "one", "0-3", AT(100, 30), 0);
	touch(one, "one", AT(100, 31), 42, "\xff");
	assert_before("other", 42);
	assert_before("\xff", 42);
	pass(one, "one", "0-3", AT(100, 36), 0);
	assert_before("\xff", 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_least_of_all_partitions_counts, begin, end),
		cmocka_unit_test_setup_teardown(a_mark_that_is_left_holds_its_partitions_back,
						begin, end),
		cmocka_unit_test_setup_teardown(
			of_two_that_tell_of_a_partition_the_later_pass_counts, begin, end),
		cmocka_unit_test_setup_teardown(
			a_late_touch_counts_for_its_metric_until_all_have_seen_it, begin, end),
		cmocka_unit_test_setup_teardown(touches_of_two_processes_stand_side_by_side, begin,
						end),
		cmocka_unit_test_setup_teardown(what_goes_on_late_moves_on, begin, end),
		cmocka_unit_test_setup_teardown(a_slot_that_has_not_ended_is_not_told_of, begin,
						end),
		cmocka_unit_test_setup_teardown(
			what_nobody_has_rolled_up_for_a_day_is_not_rolled_up, begin, end),
		cmocka_unit_test_setup_teardown(cells_that_cannot_be_read_disturb_nothing_else,
						begin, end),
		cmocka_unit_test_setup_teardown(metrics_without_room_hold_back_all, begin, end),
		cmocka_unit_test_setup_teardown(a_metric_that_is_no_text_holds_back_all, begin,
						end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
