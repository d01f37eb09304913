/* Rows of roll-ups, worked out by hand: integers beyond doubles, sums beyond integers and doubles,
 * counters that begin again, and coarse rows from fine ones. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rollup/aggregate_row.h"

static const struct value none = {0, VALUE_NONE};

static void expect(struct value got, struct value want)
{
	assert_int_equal(got.type, want.type);
	assert_int_equal(got.bits, want.bits);
}

static struct rollup_growth growth_of(const struct value *values, size_t count)
{
	struct rollup_growth growth = {0};
	for (size_t i = 0; i < count; i++)
		rollup_growth_sample(&growth, values[i]);
	return growth;
}

static void expect_counter(const struct rollup_growth *growth, struct value sum,
			   struct value increase)
{
	struct value row[ROLLUP_FIELDS];
	rollup_counter_row(growth, row);
	expect(row[ROLLUP_SUM], sum);
	expect(row[ROLLUP_INCREASE], increase);
	expect(row[ROLLUP_MIN], none);
	expect(row[ROLLUP_COUNT], none);
	expect(row[ROLLUP_AVG], none);
}

/* 2^64 - 2 and 2^64 - 1: a double knows no difference, the counter grew by one. Their sum is beyond
 * 64 bits. */
static void a_counter_near_its_end_is_exact(void **state)
{
	(void)state;
	const struct value values[] = {value_u64(UINT64_MAX - 1), value_u64(UINT64_MAX)};
	struct rollup_growth growth = growth_of(values, 1);
	expect_counter(&growth, value_u64(UINT64_MAX - 1), value_i64(0));
	growth = growth_of(values, 2);
	expect_counter(&growth, value_f64(0x1p65), value_i64(1));
	/* From -2^63 to 2^64 - 1 is more than any integer here; 2^63 more than a signed one. */
	const struct value far[] = {value_i64(INT64_MIN), value_u64(UINT64_MAX)};
	growth = growth_of(far, 2);
	expect_counter(&growth, value_i64(INT64_MAX), value_f64(0x1.8p64));
	const struct value to_zero[] = {value_i64(INT64_MIN), value_i64(0)};
	growth = growth_of(to_zero, 2);
	expect_counter(&growth, value_i64(INT64_MIN), value_u64(UINT64_C(1) << 63));
}

/* 5, 9, 2, 3.5: grew by 4, began again with 2, grew by 1.5. */
static void types_may_change_and_a_fall_is_a_new_beginning(void **state)
{
	(void)state;
	const struct value values[] = {value_u64(5), value_i64(9), value_i64(2), value_f64(3.5)};
	struct rollup_growth growth = growth_of(values, 4);
	expect_counter(&growth, value_f64(19.5), value_f64(7.5));
}

/* However the samples are cut into buckets, and empty buckets between. */
static void coarse_growth_from_fine_is_that_of_the_samples(void **state)
{
	(void)state;
	const struct value values[] = {value_u64(10), value_u64(25), value_u64(5), value_u64(11),
				       value_u64(20), value_u64(0),  value_u64(7)};
	/* 15, 5, 6, 9, 0, 7 */
	for (size_t cut = 0; cut <= 7; cut++) {
		struct rollup_growth coarse = {0}, empty = {0};
		struct rollup_growth first = growth_of(values, cut);
		struct rollup_growth second = growth_of(values + cut, 7 - cut);
		rollup_growth_add(&coarse, &empty);
		rollup_growth_add(&coarse, &first);
		rollup_growth_add(&coarse, &empty);
		rollup_growth_add(&coarse, &second);
		expect_counter(&coarse, value_i64(78), value_i64(42));
		expect(coarse.first, value_u64(10));
		expect(coarse.last, value_u64(7));
	}
}

static struct store_summary of_integer(int64_t value)
{
	return (struct store_summary){.count = 1,
				      .integers = value,
				      .sum = (double)value,
				      .min = value_i64(value),
				      .max = value_i64(value),
				      .first = value_i64(value),
				      .last = value_i64(value)};
}

static struct store_summary of_double(double value)
{
	return (struct store_summary){.count = 1,
				      .sum = value,
				      .doubles = value,
				      .scaled = value * 0x1p-64,
				      .min = value_f64(value),
				      .max = value_f64(value),
				      .first = value_f64(value),
				      .last = value_f64(value)};
}

/* 2^53 + 1 twice, and -1: a sum of doubles would round. */
static void sums_of_integers_are_exact(void **state)
{
	(void)state;
	struct value row[ROLLUP_FIELDS];
	struct store_summary sum = {0}, one = of_integer((INT64_C(1) << 53) + 1);
	struct store_summary minus = of_integer(-1);
	rollup_summary_add(&sum, &one);
	rollup_summary_add(&sum, &one);
	rollup_summary_add(&sum, &minus);
	rollup_gauge_row(&sum, row);
	expect(row[ROLLUP_SUM], value_i64((INT64_C(1) << 54) + 1));
	expect(row[ROLLUP_MIN], value_i64(-1));
	expect(row[ROLLUP_MAX], value_i64((INT64_C(1) << 53) + 1));
	expect(row[ROLLUP_COUNT], value_u64(3));
	expect(row[ROLLUP_AVG], none);
	expect(row[ROLLUP_INCREASE], none);
	expect(row[ROLLUP_LAST], value_i64(-1));
	/* -2^63 twice fits no integer. */
	struct store_summary least = of_integer(INT64_MIN);
	rollup_summary_add(&least, &least);
	rollup_gauge_row(&least, row);
	expect(row[ROLLUP_SUM], value_f64(-0x1p64));
}

/* The mean of twice the largest double is that double; a third of its opposite brings the sum back.
 */
static void a_sum_beyond_doubles_has_its_mean_and_comes_back(void **state)
{
	(void)state;
	struct value row[ROLLUP_FIELDS];
	struct store_summary sum = of_double(DBL_MAX), more = of_double(DBL_MAX);
	struct store_summary less = of_double(-DBL_MAX);
	rollup_summary_add(&sum, &more);
	rollup_gauge_row(&sum, row);
	expect(row[ROLLUP_SUM], value_f64(INFINITY));
	expect(row[ROLLUP_AVG], value_f64(DBL_MAX));
	rollup_summary_add(&sum, &less);
	rollup_gauge_row(&sum, row);
	expect(row[ROLLUP_SUM], value_f64(DBL_MAX));
	expect(row[ROLLUP_AVG], none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_counter_near_its_end_is_exact),
		cmocka_unit_test(types_may_change_and_a_fall_is_a_new_beginning),
		cmocka_unit_test(coarse_growth_from_fine_is_that_of_the_samples),
		cmocka_unit_test(sums_of_integers_are_exact),
		cmocka_unit_test(a_sum_beyond_doubles_has_its_mean_and_comes_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
