/* Bins to hours and days, and the order in which samples are taken. Expected values are those of
 * the predecessor's own tests, or worked by hand beside the case. */
#include "rate_counter_harness.h"

#include "rate_alu.h"

/* ---- Worked cases with time ------------------------------------------------------------------ */

static void two_hours_of_a_router_add_up(void **state)
{
	struct run *run = new_run(30000, 64);
	uint64_t growth = 0;
	double largest = 0;
	int64_t largest_ms = 0;
	uint32_t count = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(alu_polls); i++) {
		feed(run, alu_polls[i].s * 1000, alu_polls[i].value);
		growth += run->out.delta;
	}
	close_all(run);
	assert_int_equal(growth, 8656);
	assert_int_equal(sum_of(run, 0, false), 8656);
	assert_int_equal(sum_of(run, 1, false), 8656);
	assert_int_equal(sum_of(run, 2, false), 8656);
	for (size_t i = 0; i < run->out.count; i++) {
		const struct counter_row *row = &run->rows[i];
		if (row->level != 1)
			continue;
		count += row->count;
		assert_true(row->has_rate && row->min == 0);
		if (row->max > largest) {
			largest = row->max;
			largest_ms = row->max_ts_ms;
		}
	}
	assert_int_equal(count, 117);
	assert_true(largest == 736 * 1000.0 / 31000);
	assert_int_equal(largest_ms, 1343957211000);
	mem_free(run);
}

/* ---- Order ----------------------------------------------------------------------------------- */

/* The predecessor stores 250 for these, since a late sample moves it back. */
static void late_samples_are_refused_and_equal_ones_acknowledged(void **state)
{
	struct run *run = new_run(30000, 64);

	(void)state;
	feed(run, 0, 100);
	feed(run, 30000, 200);
	assert_int_equal(feed(run, 15000, 150), COUNTER_REFUSED);
	assert_int_equal(feed(run, 30000, 200), COUNTER_REPEATED);
	assert_int_equal(feed(run, 30000, 201), COUNTER_REFUSED);
	assert_int_equal(feed(run, 0, 100), COUNTER_REFUSED);
	assert_int_equal(feed(run, COUNTER_TS_MAX + 1, 300), COUNTER_REFUSED);
	assert_int_equal(feed(run, INT64_MIN, 300), COUNTER_REFUSED);
	assert_int_equal(feed(run, 60000, 300), COUNTER_COUNTED);
	close_all(run);
	assert_bin(run, 0, 100, 1);
	assert_bin(run, 30000, 100, 2);
	assert_bin(run, 60000, 0, 1);
	assert_int_equal(rows_of(run, 0), 3);
	mem_free(run);
}

static void one_sample_gives_no_rate(void **state)
{
	struct run *run = new_run(30000, 64);

	(void)state;
	close_all(run); /* not even one */
	assert_int_equal(feed(run, 31000, 5), COUNTER_FIRST);
	close_all(run);
	assert_int_equal(run->out.count, 0);
	mem_free(run);
}

/* ---- Periods --------------------------------------------------------------------------------- */

/* Both averages of an hour are made of these: 12000 / (4 * 30) is the document's, 12000 / 124 that
 * of the time. */
static void an_hour_knows_its_deltas_and_their_time(void **state)
{
	struct run *run = new_run(30000, 64);
	const struct counter_row *hour;

	(void)state;
	for (int i = 0; i <= 4; i++)
		feed(run, 7200000 + i * 31000, (uint64_t)i * 3000);
	close_all(run);
	hour = row_at(run, 1, 7200000);
	assert_int_equal(hour->val, 12000);
	assert_int_equal(hour->count, 4);
	assert_int_equal(hour->covered_ms, 124000);
	mem_free(run);
}

/* 3590 s ... 3620 s: 10 s and 20 s of 300. The bins of the first hour have 100 of it, and the delta
 * is counted in the hour of its sample. */
static void an_hour_is_the_sum_of_its_bins(void **state)
{
	struct run *run = new_run(30000, 64);

	(void)state;
	feed(run, 3590000, 0);
	feed(run, 3620000, 300);
	close_all(run);
	assert_int_equal(row_at(run, 1, 0)->val, 100);
	assert_int_equal(row_at(run, 1, 0)->count, 0);
	assert_int_equal(row_at(run, 1, 0)->covered_ms, 10000);
	assert_false(row_at(run, 1, 0)->has_rate);
	assert_int_equal(row_at(run, 1, 3600000)->val, 200);
	assert_int_equal(row_at(run, 1, 3600000)->count, 1);
	assert_true(row_at(run, 1, 3600000)->min == 10.0 && row_at(run, 1, 3600000)->max == 10.0);
	assert_int_equal(row_at(run, 1, 3600000)->min_ts_ms, 3620000);
	assert_int_equal(row_at(run, 2, 0)->val, 300);
	mem_free(run);
}

/* 11 s do not divide 30 s: 20 s ... 31 s are 10 s and 1 s of 22. By bins of 11 s (11 ... 22 ... 33)
 * it would be 4 and 18, and nobody could say what of the 18 belongs before 30 s. */
static void a_period_that_the_base_does_not_divide_splits_at_its_own_edges(void **state)
{
	struct run *run = new_run(11000, 64);

	(void)state;
	run->config = (struct counter_config){11000, 3, {30000, 3600000, 86400000}};
	feed(run, 20000, 0);
	feed(run, 31000, 22);
	close_all(run);
	assert_bin(run, 11000, 4, 1);
	assert_bin(run, 22000, 18, 1);
	assert_int_equal(row_at(run, 1, 0)->val, 20);
	assert_int_equal(row_at(run, 1, 0)->count, 0);
	assert_int_equal(row_at(run, 1, 30000)->val, 2);
	assert_int_equal(row_at(run, 1, 30000)->count, 1);
	assert_int_equal(row_at(run, 2, 0)->val, 22);
	mem_free(run);
}

static void the_first_of_equal_extremes_stays(void **state)
{
	struct run *run = new_run(30000, 64);
	static const uint64_t values[] = {0, 30, 90, 120, 180, 180 + 45};
	const struct counter_row *hour;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		feed(run, (int64_t)i * 30000, values[i]);
	close_all(run);
	hour = row_at(run, 1, 0);
	assert_true(hour->min == 1.0 && hour->max == 2.0);
	assert_int_equal(hour->min_ts_ms, 30000);
	assert_int_equal(hour->max_ts_ms, 60000);
	mem_free(run);
}

static void times_before_1970_fall_into_their_bins(void **state)
{
	struct run *run = new_run(30000, 64);

	(void)state;
	feed(run, -31000, 0);
	feed(run, -1000, 30);
	close_all(run);
	assert_bin(run, -60000, 1, 1);
	assert_bin(run, -30000, 29, 1);
	assert_int_equal(row_at(run, 1, -3600000)->val, 30);
	mem_free(run);
}

static void configurations_have_bounds(void **state)
{
	static const struct counter_config good[] = {
		{30000, 2, {3600000, 86400000}},
		{11000, 3, {30000, 3600000, 86400000}},
		{1, 0, {0}},
		{COUNTER_PERIOD_MAX_MS, 1, {COUNTER_PERIOD_MAX_MS}},
	};
	static const struct counter_config bad[] = {
		{0, 0, {0}},
		{-1, 0, {0}},
		{COUNTER_PERIOD_MAX_MS + 1, 0, {0}},
		{30000, 5, {0}},
		{30000, 1, {29999}},
		{30000, 1, {COUNTER_PERIOD_MAX_MS + 1}},
		{30000, 2, {3600000, 3600000}},
	};
	struct errbuf e = {{0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(counter_config_check(&good[i], &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(counter_config_check(&bad[i], &e), ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_hours_of_a_router_add_up),
		cmocka_unit_test(late_samples_are_refused_and_equal_ones_acknowledged),
		cmocka_unit_test(one_sample_gives_no_rate),
		cmocka_unit_test(an_hour_knows_its_deltas_and_their_time),
		cmocka_unit_test(an_hour_is_the_sum_of_its_bins),
		cmocka_unit_test(a_period_that_the_base_does_not_divide_splits_at_its_own_edges),
		cmocka_unit_test(the_first_of_equal_extremes_stays),
		cmocka_unit_test(times_before_1970_fall_into_their_bins),
		cmocka_unit_test(configurations_have_bounds),
	};
	return cmocka_run_group_tests_name("rate_counter_periods", tests, NULL, NULL);
}
