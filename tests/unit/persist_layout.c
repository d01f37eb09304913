/* What a worker remembers of places: it says what it was told, however unlike the places of a row
 * are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "base/stats.h"
#include "persist/layouts.h"

enum { ROWS = 3, COLUMNS = 5, BAND = 1 << 8 };

static struct layout layout;
static int64_t bytes_before;

static int setup(void **state)
{
	(void)state;
	bytes_before = stat_get(STAT_persist_memory_bytes);
	layout = (struct layout){.row_count = ROWS, .column_count = COLUMNS};
	layout_make_places(&layout);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	layout_free_places(&layout);
	assert_int_equal(stat_get(STAT_persist_memory_bytes), bytes_before);
	return 0;
}

static void expect_newest(size_t row, size_t column, int64_t ts_ms, struct value value)
{
	struct newest newest = layout_newest(&layout, row, column);
	assert_int_equal(newest.ts_ms, ts_ms);
	assert_true(value_equal(newest.value, value));
}

static void test_nothing_is_known_at_first(void **state)
{
	(void)state;
	for (size_t r = 0; r < ROWS; r++) {
		assert_int_equal(layout.rows[r].id, 0);
		assert_false(layout.refused[r]);
		for (size_t c = 0; c < COLUMNS; c++) {
			assert_int_equal(layout_handle(&layout, r, c), 0);
			assert_false(layout_is_open(&layout, r, c));
			assert_int_equal(layout_newest(&layout, r, c).ts_ms, INT64_MIN);
		}
	}
}

/* Handles of one band, which differ by their column alone, take a byte each. */
static void test_handles_of_a_band(void **state)
{
	(void)state;
	for (size_t r = 0; r < ROWS; r++)
		for (size_t c = 0; c < COLUMNS; c += 2) /* the others have none */
			layout_open(&layout, r, c, (UINT64_C(7) << 40) + (9 + r) * BAND + c / 2);
	assert_null(layout.handles);
	for (size_t r = 0; r < ROWS; r++)
		for (size_t c = 0; c < COLUMNS; c++)
			assert_int_equal(layout_handle(&layout, r, c),
					 c % 2 ? 0 : (UINT64_C(7) << 40) + (9 + r) * BAND + c / 2);
}

/* The second was opened later than its neighbours, in a band of another shape. */
static void test_a_handle_of_another_band(void **state)
{
	(void)state;
	layout_open(&layout, 1, 0, 5 * BAND);
	layout_open(&layout, 1, 2, 5 * BAND + 1);
	layout_open(&layout, 2, 4, 6 * BAND + 63);
	layout_open(&layout, 1, 1, 4 * BAND + 3);
	layout_open(&layout, 1, 3, 5 * BAND + 2);
	assert_int_equal(layout_handle(&layout, 1, 0), 5 * BAND);
	assert_int_equal(layout_handle(&layout, 1, 1), 4 * BAND + 3);
	assert_int_equal(layout_handle(&layout, 1, 2), 5 * BAND + 1);
	assert_int_equal(layout_handle(&layout, 1, 3), 5 * BAND + 2);
	assert_int_equal(layout_handle(&layout, 1, 4), 0);
	assert_int_equal(layout_handle(&layout, 2, 4), 6 * BAND + 63);
	assert_int_equal(layout_handle(&layout, 0, 0), 0);
}

/* Whatever a store gives as handles: the offset that means "none", and the ends. */
static void test_handles_at_the_ends(void **state)
{
	(void)state;
	layout_open(&layout, 0, 0, 0); /* refused: stays closed */
	assert_int_equal(layout_handle(&layout, 0, 0), 0);
	layout_open(&layout, 0, 0, BAND - 1);
	layout_open(&layout, 0, 1, 1);
	layout_open(&layout, 1, 0, UINT64_MAX);
	layout_open(&layout, 1, 1, UINT64_MAX - 1);
	assert_int_equal(layout_handle(&layout, 0, 0), 255);
	assert_int_equal(layout_handle(&layout, 0, 1), 1);
	assert_true(layout_handle(&layout, 1, 0) == UINT64_MAX);
	assert_true(layout_handle(&layout, 1, 1) == UINT64_MAX - 1);
}

static void test_values_of_one_time(void **state)
{
	static const uint16_t columns[] = {0, 2, 4};
	const struct value first[] = {value_u64(1), value_f64(0.5), value_i64(-3)};
	const struct value second[] = {value_u64(UINT64_MAX), value_f64(0.25), value_i64(4)};
	(void)state;
	layout_keep(&layout, 1, 1000, columns, 3, first);
	layout_keep(&layout, 1, 2000, columns, 3, second);
	assert_null(layout.ts_ms);
	expect_newest(1, 0, 2000, second[0]);
	expect_newest(1, 2, 2000, second[1]);
	expect_newest(1, 4, 2000, second[2]);
	assert_int_equal(layout_newest(&layout, 1, 1).ts_ms, INT64_MIN);
	assert_int_equal(layout_newest(&layout, 0, 0).ts_ms, INT64_MIN);
}

/* A device gives one of two columns no more: its newest value keeps its time. */
static void test_a_column_stays_behind(void **state)
{
	static const uint16_t both[] = {1, 3}, one[] = {3}, other[] = {1};
	const struct value values[] = {value_u64(10), value_u64(20), value_u64(30)};
	(void)state;
	layout_keep(&layout, 0, 500, other, 1, values + 2);
	layout_keep(&layout, 2, 1000, both, 2, values);
	layout_keep(&layout, 2, 2000, one, 1, values + 2);
	expect_newest(2, 1, 1000, value_u64(10));
	expect_newest(2, 3, 2000, value_u64(30));
	expect_newest(0, 1, 500, value_u64(30));
	layout_keep(&layout, 2, 3000, other, 1, values + 1);
	expect_newest(2, 1, 3000, value_u64(20));
	expect_newest(2, 3, 2000, value_u64(30));
}

/* As they are restored: one by one, each with its own time. Those of one time take none. */
static void test_restored_one_by_one(void **state)
{
	(void)state;
	for (uint16_t c = 0; c < COLUMNS; c++) {
		struct value value = value_u64(c);
		layout_keep(&layout, 0, 9000, &c, 1, &value);
	}
	assert_null(layout.ts_ms);
	for (uint16_t c = 0; c < COLUMNS; c++) {
		struct value value = value_i64(c);
		layout_keep(&layout, 1, 100 - c, &c, 1, &value);
	}
	for (uint16_t c = 0; c < COLUMNS; c++) {
		expect_newest(0, c, 9000, value_u64(c));
		expect_newest(1, c, 100 - c, value_i64(c));
	}
}

/* Against a table that keeps everything apart. */
static void test_at_random(void **state)
{
	struct newest model[ROWS][COLUMNS];
	uint64_t handles[ROWS][COLUMNS] = {{0}};
	struct random random;
	(void)state;
	random_init(&random, 4);
	for (size_t r = 0; r < ROWS; r++)
		for (size_t c = 0; c < COLUMNS; c++)
			model[r][c] = (struct newest){.ts_ms = INT64_MIN};
	for (int step = 0; step < 2000; step++) {
		size_t row = random_next(&random) % ROWS, count = 0;
		uint64_t mask = random_next(&random) % (1 << COLUMNS);
		uint16_t columns[COLUMNS];
		struct value values[COLUMNS];
		/* Sometimes the same time as before. */
		int64_t ts_ms = 1000 + step / 3;
		for (uint16_t c = 0; c < COLUMNS; c++) {
			if (step < 300 && !(mask >> c & 1))
				continue;
			values[count] = value_u64(random_next(&random));
			model[row][c] = (struct newest){ts_ms, values[count]};
			columns[count++] = c;
		}
		if (count)
			layout_keep(&layout, row, ts_ms, columns, count, values);
		size_t column = random_next(&random) % COLUMNS;
		handles[row][column] = 1 + random_next(&random) % (step < 100 ? 200 : 2000);
		layout_open(&layout, row, column, handles[row][column]);
		for (size_t r = 0; r < ROWS; r++) {
			for (size_t c = 0; c < COLUMNS; c++) {
				assert_int_equal(layout_handle(&layout, r, c), handles[r][c]);
				expect_newest(r, c, model[r][c].ts_ms, model[r][c].value);
			}
		}
	}
}

int main(void)
{
#define PLACES(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		PLACES(test_nothing_is_known_at_first), PLACES(test_handles_of_a_band),
		PLACES(test_a_handle_of_another_band),  PLACES(test_handles_at_the_ends),
		PLACES(test_values_of_one_time),        PLACES(test_a_column_stays_behind),
		PLACES(test_restored_one_by_one),       PLACES(test_at_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
