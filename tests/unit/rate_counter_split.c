/* How a counter's growth is split over bins, and what of a gap can be placed. Expected values are
 * those of the reference's worked examples (E), or worked by hand beside the case. */
#include "rate_counter_harness.h"

struct expected_bin {
	int64_t start_ms;
	uint64_t val;
};

static void assert_split(int64_t base_ms, int64_t t0, uint64_t v0, int64_t t1, uint64_t v1,
			 const struct expected_bin *bins, size_t count)
{
	struct run *run = new_run(base_ms, 64);

	assert_int_equal(feed(run, t0, v0), COUNTER_FIRST);
	assert_int_equal(feed(run, t1, v1), COUNTER_COUNTED);
	assert_int_equal(run->out.delta, v1 - v0);
	close_all(run);
	assert_int_equal(rows_of(run, 0), count);
	for (size_t i = 0; i < count; i++)
		assert_bin(run, bins[i].start_ms, bins[i].val, 1);
	mem_free(run);
}

#define SPLIT(base, t0, v0, t1, v1, ...)                                                           \
	assert_split(base, t0, v0, t1, v1, (const struct expected_bin[]){__VA_ARGS__},             \
		     sizeof((const struct expected_bin[]){__VA_ARGS__}) /                          \
			     sizeof(struct expected_bin))

static void deltas_are_split_as_the_reference_works_out(void **state)
{
	(void)state;
	SPLIT(30000, 0, 0, 30000, 100, {0, 100}, {30000, 0});
	SPLIT(30000, 31000, 100, 62000, 213, {30000, 106}, {60000, 7});
	SPLIT(30000, 90000, 100, 121000, 200, {90000, 97}, {120000, 3});
	SPLIT(30000, 1386369693000, 141368641534364, 1386369719000, 141368891281597,
	      {1386369690000, 249747233});
	SPLIT(30000, 14000, 100, 44000, 400, {0, 160}, {30000, 140});
	SPLIT(30000, 14000, 0, 89000, 1000, {0, 213}, {30000, 400}, {60000, 387});
}

static void assert_parts(uint64_t growth, int64_t span_ms, uint32_t offset_ms, int64_t width_ms,
			 const uint64_t *parts, size_t count)
{
	struct counter_pieces p;

	counter_split(growth, span_ms, offset_ms, width_ms, &p);
	assert_int_equal(p.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(p.growth[i], parts[i]);
}

/* 92 s are beyond three intervals of 30 s, so this example is of the split alone. And 2^64 - 1 is
 * 15 * 1229782938247303441: 16 and 14 of 30 s are 8 and 7 of these. */
static void the_split_takes_five_bins_and_all_of_64_bits(void **state)
{
	(void)state;
	assert_parts(100, 92000, 29000, 30000, (const uint64_t[]){0, 33, 33, 33, 1}, 5);
	assert_parts(UINT64_MAX, 30000, 14000, 30000,
		     (const uint64_t[]){9838263505978427528U, 8608480567731124087U}, 2);
	/* 1, 2 and 1 of 4 s of 2^64 - 1: 2^62 - 1/4 twice and 2^63 - 1/2, all rounded up: one too
	 * many, which the first gives */
	assert_parts(
		UINT64_MAX, 4000, 1000, 2000,
		(const uint64_t[]){(UINT64_C(1) << 62) - 1, UINT64_C(1) << 63, UINT64_C(1) << 62},
		3);
}

/* 1 s, 31 s, 31 s, 29 s of 92 s: 1.09, 33.70, 33.70, 31.52 of 100, rounded 1, 34, 34, 32: one too
 * many, taken from the least time. 1 s, 30 s, 30 s, 29 s of 90 s: 1.11, 33.33, 33.33, 32.22,
 * rounded 1, 33, 33, 32: one is missing, given to the first of the longest. */
static void what_rounding_gave_too_much_is_taken_from_the_least_time(void **state)
{
	(void)state;
	SPLIT(31000, 61000, 100, 153000, 200, {31000, 0}, {62000, 34}, {93000, 34}, {124000, 32});
	SPLIT(30000, 89000, 100, 179000, 200, {60000, 1}, {90000, 34}, {120000, 33}, {150000, 32});
}

/* Of 2: 0.04, 0.35, 0.35, 0.26 of the time, 0.08, 0.7, 0.7, 0.52: rounded 0, 1, 1, 1, one too many.
 * The first bin has the least time and nothing to give; the next is the last bin. */
static void no_bin_is_made_negative(void **state)
{
	(void)state;
	SPLIT(350, 310, 10, 1310, 12, {0, 0}, {350, 1}, {700, 1}, {1050, 0});
}

/* 1 over two equal halves: both are rounded up, the first of equals gives. 2 over 3 s and 1 s, 1.5
 * and 0.5: 2 and 1, and the lesser time gives. */
static void halves_are_rounded_away_from_zero_and_settled(void **state)
{
	(void)state;
	SPLIT(30000, 15000, 0, 45000, 1, {0, 0}, {30000, 1});
	SPLIT(30000, 27000, 0, 31000, 2, {0, 2}, {30000, 0});
	SPLIT(30000, 29000, 0, 33000, 2, {0, 0}, {30000, 2});
}

/* ---- Gaps ------------------------------------------------------------------------------------ */

static void a_gap_keeps_what_it_cannot_place(void **state)
{
	const int64_t end = 1343953820000, bin = 1343953800000;
	struct run *run = new_run(30000, 64);

	(void)state;
	feed(run, end - 120000, 0);
	assert_int_equal(feed(run, end, 1000), COUNTER_COUNTED);
	assert_true(run->out.gap);
	close_all(run);
	assert_bin(run, bin, 166, 1);
	assert_int_equal(row_at(run, 0, bin)->covered_ms, 20000);
	assert_int_equal(row_at(run, 0, bin)->flags, COUNTER_GAP);
	/* The first sample's bin and the three that follow. */
	for (int64_t t = bin - 120000; t < bin; t += 30000) {
		assert_bin(run, t, 0, 0);
		assert_int_equal(row_at(run, 0, t)->flags, COUNTER_GAP);
		assert_int_equal(row_at(run, 0, t)->covered_ms, 0);
	}
	assert_int_equal(rows_of(run, 0), 5);
	assert_int_equal(sum_of(run, 0, true), 834);
	assert_int_equal(row_at(run, 0, bin - 90000)->unplaced, 834);
	/* 1343952000 is the hour: it counts the delta, but its rate is of no one time. */
	assert_int_equal(rows_of(run, 1), 1);
	assert_int_equal(row_at(run, 1, 1343952000000)->val, 166);
	assert_int_equal(row_at(run, 1, 1343952000000)->unplaced, 834);
	assert_int_equal(row_at(run, 1, 1343952000000)->count, 1);
	assert_false(row_at(run, 1, 1343952000000)->has_rate);
	mem_free(run);
}

/* 90 s are three intervals and are spread; a ms more is a gap. */
static void a_gap_begins_one_past_three_intervals(void **state)
{
	struct run *run = new_run(30000, 64);

	(void)state;
	feed(run, 0, 0);
	feed(run, 90000, 900);
	assert_false(run->out.gap);
	feed(run, 180001, 1800);
	assert_true(run->out.gap);
	close_all(run);
	assert_bin(run, 0, 300, 1);
	assert_bin(run, 30000, 300, 1);
	assert_bin(run, 60000, 300, 1);
	assert_bin(run, 90000, 0, 1); /* touched at its edge; then the gap begins */
	assert_int_equal(row_at(run, 0, 90000)->flags, COUNTER_GAP);
	assert_bin(run, 120000, 0, 0);
	assert_bin(run, 150000, 0, 0);
	assert_bin(run, 180000, 0, 1); /* 1 ms of 90,001: 900 / 90001, cut off */
	assert_int_equal(row_at(run, 0, 120000)->unplaced, 900);
	mem_free(run);
}

static void a_gap_of_a_month_gives_six_and_few_rows(void **state)
{
	const int64_t month = INT64_C(30) * 86400000, begin = 1343953760000;
	struct run *run = new_run(30000, 64);

	(void)state;
	feed(run, begin, 7);
	assert_int_equal(feed(run, begin + month + 60000, 864007), COUNTER_COUNTED);
	close_all(run);
	assert_bin(run, 1343953800000 + month, 6, 1);
	assert_int_equal(sum_of(run, 0, false), 6);
	assert_int_equal(sum_of(run, 0, true), 863994);
	assert_int_equal(rows_of(run, 0), 1 + COUNTER_GAP_ROWS_MAX + 1);
	assert_bin(run, 1343953740000 + COUNTER_GAP_ROWS_MAX * INT64_C(30000), 0, 0);
	assert_null(row_at(run, 0, 1343953740000 + (COUNTER_GAP_ROWS_MAX + 1) * INT64_C(30000)));
	/* 30 days and an hour's edge between: hours are bounded likewise, days are all there. */
	assert_int_equal(rows_of(run, 1), 1 + COUNTER_GAP_ROWS_MAX + 1);
	assert_int_equal(rows_of(run, 2), 31);
	assert_int_equal(sum_of(run, 1, false) + sum_of(run, 1, true), 864000);
	assert_int_equal(sum_of(run, 2, false) + sum_of(run, 2, true), 864000);
	mem_free(run);
}

static void a_gap_over_all_of_time_ends(void **state)
{
	struct run *run = new_run(1, 64);

	(void)state;
	feed(run, -COUNTER_TS_MAX, 0);
	assert_int_equal(feed(run, COUNTER_TS_MAX, UINT64_MAX / 2), COUNTER_COUNTED);
	assert_true(run->out.count <= counter_rows_max(&run->config));
	close_all(run);
	for (unsigned level = 0; level < 3; level++)
		assert_int_equal(sum_of(run, level, false) + sum_of(run, level, true),
				 UINT64_MAX / 2);
	mem_free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deltas_are_split_as_the_reference_works_out),
		cmocka_unit_test(the_split_takes_five_bins_and_all_of_64_bits),
		cmocka_unit_test(what_rounding_gave_too_much_is_taken_from_the_least_time),
		cmocka_unit_test(no_bin_is_made_negative),
		cmocka_unit_test(halves_are_rounded_away_from_zero_and_settled),
		cmocka_unit_test(a_gap_keeps_what_it_cannot_place),
		cmocka_unit_test(a_gap_begins_one_past_three_intervals),
		cmocka_unit_test(a_gap_of_a_month_gives_six_and_few_rows),
		cmocka_unit_test(a_gap_over_all_of_time_ends),
	};
	return cmocka_run_group_tests_name("rate_counter_split", tests, NULL, NULL);
}
