/* Points of an answer from rows of a counter. Values are those of the document's formulas, worked
 * beside each case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/esmond/points.h"

static struct counter_row bin(int64_t start_s, uint64_t val, uint32_t is_valid)
{
	return (struct counter_row){
		.start_ms = start_s * 1000, .val = val, .count = is_valid, .covered_ms = 30000};
}

static struct counter_row hour(int64_t start_s, uint64_t val, uint32_t count)
{
	struct counter_row row = bin(start_s, val, count);
	row.level = 1;
	return row;
}

static struct v2_data_params params_of(int64_t begin, int64_t end, enum v2_cf cf)
{
	return (struct v2_data_params){.range = {.begin = begin, .end = end, .unit_ms = 1000},
				       .cf = cf};
}

/* All at once, and again in every size of piece: the text must be the same. */
static void expect(const struct v2_data_params *params, int64_t row_ms,
		   const struct counter_row *rows, size_t count, const char *text)
{
	for (size_t max = 1; max < 8; max++) {
		struct v2_points points;
		struct buf out;
		size_t used = 0;
		buf_init(&out, 1 << 20);
		v2_points_init(&points, params, 30000, row_ms);
		while (!v2_points_put(&points, rows, count, &used, INT64_MAX, max, &out))
			;
		if (!slice_equal(buf_slice(&out), slice_of(text)))
			fail_msg("%.*s\nnot %s", (int)out.len, out.data ? out.data : "", text);
		buf_release(&out);
	}
}

static void test_grid(void **state)
{
	(void)state;
	struct v2_range range = {.begin = 1343956800, .end = 1343957400, .unit_ms = 1000};
	/* Ten minutes of 30 s with both ends: 21. */
	assert_int_equal(v2_grid_of(&range, 30000).count, 21);
	range.begin++;
	range.end--;
	assert_int_equal(v2_grid_of(&range, 30000).count, 19);
	assert_int_equal(v2_grid_of(&range, 30000).first_ms, 1343956830000);
	assert_int_equal(v2_grid_of(&range, 30000).last_ms, 1343957370000);
	range = (struct v2_range){.begin = 31, .end = 59, .unit_ms = 1000};
	assert_int_equal(v2_grid_of(&range, 30000).count, 0);
	range = (struct v2_range){.begin = -31, .end = 1, .unit_ms = 1000};
	assert_int_equal(v2_grid_of(&range, 30000).first_ms, -30000);
	assert_int_equal(v2_grid_of(&range, 30000).count, 2);
	range = (struct v2_range){.begin = 60000, .end = 60000, .unit_ms = 1};
	assert_int_equal(v2_grid_of(&range, 30000).count, 1);
}

static void test_fill(void **state)
{
	(void)state;
	/* 31,100 -> 62,213 of the document: 106 and 7. A bin that is there but not valid is null; a
	 * measured zero is 0. */
	const struct counter_row rows[] = {bin(0, 99, 1), bin(30, 106, 1), bin(60, 7, 1),
					   bin(90, 0, 0), bin(120, 0, 1),  bin(180, 5, 1)};
	struct v2_data_params params = params_of(1, 179, CF_AVERAGE);
	expect(&params, 30000, rows, 6,
	       "{\"ts\":30,\"val\":3.533333333333333},{\"ts\":60,\"val\":0.23333333333333334},"
	       "{\"ts\":90,\"val\":null},{\"ts\":120,\"val\":0.0},{\"ts\":150,\"val\":null}");
	params.cf = CF_DELTA;
	expect(&params, 30000, rows, 6,
	       "{\"ts\":30,\"val\":106},{\"ts\":60,\"val\":7},{\"ts\":90,\"val\":null},"
	       "{\"ts\":120,\"val\":0},{\"ts\":150,\"val\":null}");
	params = params_of(30, 60, CF_AVERAGE);
	expect(&params, 30000, NULL, 0, "{\"ts\":30,\"val\":null},{\"ts\":60,\"val\":null}");
	params = params_of(31, 59, CF_AVERAGE);
	expect(&params, 30000, rows, 6, "");
	/* Times in ms. */
	params = params_of(30000, 30000, CF_AVERAGE);
	params.range.unit_ms = 1;
	expect(&params, 30000, rows, 6, "{\"ts\":30000,\"val\":3.533333333333333}");
	/* Before 1970, and rows that are not on the grid are not on it. */
	const struct counter_row odd[] = {bin(-30, 30, 1), bin(-7, 30, 1)};
	params = params_of(-30, 0, CF_AVERAGE);
	expect(&params, 30000, odd, 2, "{\"ts\":-30,\"val\":1.0},{\"ts\":0,\"val\":null}");
}

static void test_averages(void **state)
{
	(void)state;
	int64_t m_ts;
	/* 37515 / 30; of two deltas it is still one base interval */
	struct counter_row row = bin(0, 37515, 2);
	assert_true(
		value_identical(v2_value_of(CF_AVERAGE, 30000, &row, &m_ts), value_f64(1250.5)));
	/* The document's hour: 1234 / (38 * 30) */
	row = hour(0, 1234, 38);
	assert_true(value_identical(v2_value_of(CF_AVERAGE, 30000, &row, &m_ts),
				    value_f64(1234.0 / 1140.0)));
	/* SC13: 2236650 from 4 deltas is 18638.75; 12000 in 4 deltas over 124 s is 100 by the
	 * formula and 96.77 of the time covered. */
	row = hour(0, 2236650, 4);
	assert_true(
		value_identical(v2_value_of(CF_AVERAGE, 30000, &row, &m_ts), value_f64(18638.75)));
	row = hour(0, 12000, 4);
	row.covered_ms = 124000;
	assert_true(value_identical(v2_value_of(CF_AVERAGE, 30000, &row, &m_ts), value_f64(100)));
	assert_true(value_identical(v2_value_of(CF_EXACT, 30000, &row, &m_ts),
				    value_f64(12000.0 / 124.0)));
	assert_int_equal(m_ts, INT64_MIN);
	row.covered_ms = 0;
	assert_int_equal(v2_value_of(CF_EXACT, 30000, &row, &m_ts).type, VALUE_NONE);
	/* Growth is exact beyond what doubles hold. */
	row = bin(0, UINT64_C(9007199254740993), 1);
	assert_true(value_identical(v2_value_of(CF_RAW, 30000, &row, &m_ts),
				    value_u64(UINT64_C(9007199254740993))));
	row.count = 0;
	row.covered_ms = 0;
	assert_int_equal(v2_value_of(CF_RAW, 30000, &row, &m_ts).type, VALUE_NONE);
	/* A minute that one delta spans: its growth is there, though no sample lies in it. */
	row = hour(0, 600, 0);
	row.covered_ms = 60000;
	assert_true(value_identical(v2_value_of(CF_DELTA, 30000, &row, &m_ts), value_u64(600)));
	assert_true(value_identical(v2_value_of(CF_EXACT, 30000, &row, &m_ts), value_f64(10)));
	assert_true(value_identical(v2_value_of(CF_AVERAGE, 30000, &row, &m_ts), value_f64(10)));
	assert_int_equal(v2_value_of(CF_MAX, 30000, &row, &m_ts).type, VALUE_NONE);
}

static void test_extremes(void **state)
{
	(void)state;
	struct counter_row rows[] = {hour(0, 12000, 4), hour(7200, 500, 1)};
	struct v2_data_params params = params_of(0, 7200, CF_MAX);
	rows[0].has_rate = true;
	rows[0].min = 10;
	rows[0].max = 50000.5;
	rows[0].min_ts_ms = 31000;
	rows[0].max_ts_ms = 1812345;
	/* The time stays beside nulls; a row without a rate is one. */
	expect(&params, 3600000, rows, 2,
	       "{\"ts\":0,\"val\":50000.5,\"m_ts\":1812},{\"ts\":3600,\"val\":null},"
	       "{\"ts\":7200,\"val\":null}");
	params.cf = CF_MIN;
	params.range.end = 0;
	expect(&params, 3600000, rows, 2, "{\"ts\":0,\"val\":10.0,\"m_ts\":31}");
	params = params_of(0, 0, CF_MAX);
	params.range.unit_ms = 1;
	expect(&params, 3600000, rows, 2, "{\"ts\":0,\"val\":50000.5,\"m_ts\":1812345}");
}

static void test_calc(void **state)
{
	(void)state;
	/* Rates 1, 2, null | null, null, null | 4, null, 8 of steps of 90 s */
	const struct counter_row rows[] = {bin(0, 30, 1), bin(30, 60, 1), bin(60, 7, 0),
					   bin(180, 120, 1), bin(240, 240, 1)};
	struct v2_data_params params = params_of(0, 180, CF_AVERAGE);
	params.calc = CALC_AVERAGE;
	params.calc_ms = 90000;
	expect(&params, 30000, rows, 5,
	       "{\"ts\":0,\"val\":1.5},{\"ts\":90,\"val\":null},{\"ts\":180,\"val\":6.0}");
	params.nulls_are_zero = true;
	expect(&params, 30000, rows, 5,
	       "{\"ts\":0,\"val\":1.0},{\"ts\":90,\"val\":null},{\"ts\":180,\"val\":4.0}");
	params.calc = CALC_MAX;
	expect(&params, 30000, rows, 5,
	       "{\"ts\":0,\"val\":2.0},{\"ts\":90,\"val\":null},{\"ts\":180,\"val\":8.0}");
	params.calc = CALC_MIN;
	expect(&params, 30000, rows, 5,
	       "{\"ts\":0,\"val\":1.0},{\"ts\":90,\"val\":null},{\"ts\":180,\"val\":4.0}");
	/* Steps are whole, and lie on their own grid. */
	params = params_of(1, 179, CF_AVERAGE);
	params.calc = CALC_AVERAGE;
	params.calc_ms = 90000;
	expect(&params, 30000, rows, 5, "{\"ts\":90,\"val\":null}");
}

static void test_raw(void **state)
{
	(void)state;
	const struct v2_sample samples[] = {
		{.ts_ms = 1400000407123, .value = value_u64(UINT64_MAX)},
		{.ts_ms = 1400000438000, .value = value_f64(1.5)},
		{.ts_ms = 1400000468999, .json = SLICE("\"n/a\"")},
		{.ts_ms = 1400000469000, .json = SLICE("[null]")},
		{.ts_ms = 1400000500000, .value = value_u64(0)},
	};
	struct v2_data_params params = params_of(0, 0, CF_RAW);
	struct v2_points points;
	struct buf out;
	buf_init(&out, 1 << 20);
	v2_points_init(&points, &params, 30000, 30000);
	v2_points_put_raw(&points, samples, 5, &out);
	assert_true(slice_equal(buf_slice(&out),
				SLICE("{\"ts\":1400000407,\"val\":18446744073709551615},"
				      "{\"ts\":1400000438,\"val\":1.5},"
				      "{\"ts\":1400000468,\"val\":\"n/a\"},"
				      "{\"ts\":1400000469,\"val\":[null]},"
				      "{\"ts\":1400000500,\"val\":0}")));
	/* A text may be the first. */
	buf_clear(&out);
	v2_points_init(&points, &params, 30000, 30000);
	v2_points_put_raw(&points, samples + 2, 1, &out);
	assert_true(slice_equal(buf_slice(&out), SLICE("{\"ts\":1400000468,\"val\":\"n/a\"}")));
	params.range.unit_ms = 1;
	buf_clear(&out);
	v2_points_init(&points, &params, 30000, 30000);
	v2_points_put_raw(&points, samples, 1, &out);
	assert_true(slice_equal(buf_slice(&out),
				SLICE("{\"ts\":1400000407123,\"val\":18446744073709551615}")));
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grid),     cmocka_unit_test(test_fill),
		cmocka_unit_test(test_averages), cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_calc),     cmocka_unit_test(test_raw),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
