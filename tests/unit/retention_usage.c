/* A survey of retention: what is counted of which metric, by the class that it lies in. */
#include "retention_harness.h"

#include "retention/late.h"
#include "retention/usage.h"

/* A gauge's row has six fields. */
static void put_row_at(struct classed *c, uint64_t handle, enum retention_class retention,
		       int64_t ts_ms)
{
	struct value row[8] = {[0] = value_i64(1), [1] = value_i64(1), [2] = value_i64(1),
			       [3] = value_i64(1), [6] = value_i64(1), [7] = value_i64(1)};
	assert_int_equal(
		store_append(c->write,
			     &(struct store_target){TABLE_DATA_DOWNSAMPLED, retention, HOUR_MS},
			     ts_ms, &handle, 1, row),
		0);
}

static void put_row(struct classed *c, uint64_t handle, enum retention_class retention)
{
	put_row_at(c, handle, retention, 0);
}

/* Until the caller releases it. */
static struct retention_usage *survey(struct classed *c, const char *tenant, const char *metric,
				      size_t lines_max)
{
	static struct retention_usage survey;
	classed_write(c);
	struct retention_usage_options options = {.scope = classed_scope(c, tenant, metric),
						  .lines_max = lines_max};
	c->rules.levels_ms[0] = 5 * DAY_MS;
	c->err = retention_usage(&options, &survey);
	return &survey;
}

static void check_amount(const struct retention_amount *amount, uint64_t series, uint64_t samples)
{
	assert_int_equal(amount->series, series);
	assert_int_equal(amount->samples, samples);
}

/* 1,100 series are three lists of the store. Of each cpu there is a sample in the class of 35 days,
 * of the first ten another one in that of 7, to which 5 days belong; rows of an hour lie where they
 * belong, in the class of 400 days, but of the first, which lies in that of 7. */
static void metrics_are_summed_by_class(void **state)
{
	(void)state;
	static const char *const items[] = {"t/debug/*:1d"};
	struct classed c;
	classed_open(&c, items, 1);
	for (int i = 0; i < 1100; i++) {
		uint64_t handle = classed_series(&c, "t", "cpu", i);
		classed_put(&c, handle, RETENTION_35_DAYS, HARNESS_NOW_MS - 3 * DAY_MS + i);
		if (i < 10)
			classed_put(&c, handle, RETENTION_7_DAYS, HARNESS_NOW_MS);
		put_row(&c, handle, i ? RETENTION_EVER : RETENTION_400_DAYS);
	}
	classed_put(&c, classed_series(&c, "t", "debug", 0), RETENTION_2_DAYS, HARNESS_NOW_MS);
	classed_put(&c, classed_series(&c, "u", "debug", 0), RETENTION_2_DAYS, HARNESS_NOW_MS);
	(void)classed_series(&c, "t", "empty", 0);
	struct retention_usage *result = survey(&c, "", "", 100);
	assert_int_equal(c.err, 0);
	assert_int_equal(result->series, 1103);
	assert_int_equal(result->line_count, 4);
	assert_false(result->cut);

	const struct retention_line *raw = &result->lines[0], *hours = &result->lines[1];
	assert_true(slice_equal(raw->metric, SLICE("cpu")) && raw->granularity == RETENTION_RAW);
	assert_true(raw->keep_ms == 5 * DAY_MS && raw->rule == 0);
	assert_int_equal(raw->retention, RETENTION_7_DAYS);
	check_amount(&raw->amounts[RETENTION_35_DAYS], 1100, 1100);
	assert_true(raw->amounts[RETENTION_35_DAYS].oldest_ms == HARNESS_NOW_MS - 3 * DAY_MS);
	check_amount(&raw->amounts[RETENTION_7_DAYS], 10, 10);
	check_amount(&raw->amounts[RETENTION_EVER], 0, 0);
	assert_int_equal(hours->granularity, 0);
	assert_int_equal(hours->retention, RETENTION_400_DAYS);
	check_amount(&hours->amounts[RETENTION_EVER], 1099, 1099 * 6);

	const struct retention_line *debug = &result->lines[2];
	assert_true(slice_equal(debug->metric, SLICE("debug")) && debug->rule == 1);
	assert_true(debug->keep_ms == DAY_MS);
	assert_int_equal(debug->retention, RETENTION_2_DAYS);
	assert_true(slice_equal(result->lines[3].tenant, SLICE("u")));
	assert_int_equal(result->lines[3].retention, RETENTION_7_DAYS);

	check_amount(&result->moves[0][RETENTION_35_DAYS][RETENTION_7_DAYS], 1100, 1100);
	check_amount(&result->moves[0][RETENTION_2_DAYS][RETENTION_7_DAYS], 1, 1);
	check_amount(&result->moves[0][RETENTION_2_DAYS][RETENTION_2_DAYS], 0, 0);
	check_amount(&result->moves[1][RETENTION_EVER][RETENTION_400_DAYS], 1099, 1099 * 6);
	retention_usage_release(result);
	classed_close(&c);
}

/* Only the list is cut. */
/* A row of late points lies a millisecond behind its bucket: nobody has to know. */
static void the_oldest_of_a_late_row_is_its_bucket(void **state)
{
	(void)state;
	struct classed c;
	classed_open(&c, NULL, 0);
	uint64_t handle = classed_series(&c, "t", "cpu", 0);
	put_row_at(&c, handle, RETENTION_EVER, 7200000 + LATE_ROW_BEHIND_MS);
	classed_put(&c, handle, RETENTION_7_DAYS, HARNESS_NOW_MS / 1000 * 1000 + 1);
	struct retention_usage *result = survey(&c, "", "", 100);
	assert_true(result->lines[1].amounts[RETENTION_EVER].oldest_ms == 7200000);
	assert_true(result->lines[0].amounts[RETENTION_7_DAYS].oldest_ms ==
		    HARNESS_NOW_MS / 1000 * 1000 + 1);
	retention_usage_release(result);
	classed_close(&c);
}

static void sums_are_of_all_where_lines_are_cut(void **state)
{
	(void)state;
	struct classed c;
	classed_open(&c, NULL, 0);
	for (int i = 0; i < 3; i++) {
		char metric[] = {'m', (char)('0' + i), 0};
		classed_put(&c, classed_series(&c, "t", metric, 0), RETENTION_EVER, HARNESS_NOW_MS);
	}
	struct retention_usage *result = survey(&c, "", "", 1);
	assert_int_equal(result->line_count, 1);
	assert_true(result->cut);
	check_amount(&result->moves[0][RETENTION_EVER][RETENTION_7_DAYS], 3, 3);
	retention_usage_release(result);
	result = survey(&c, "t", "m1", 1);
	assert_false(result->cut);
	assert_int_equal(result->series, 1);
	retention_usage_release(result);
	result = survey(&c, "u", "", 1);
	assert_int_equal(result->series, 0);
	retention_usage_release(result);
	classed_close(&c);
}

static void errors_of_the_store_end_it(void **state)
{
	(void)state;
	struct classed c;
	classed_open(&c, NULL, 0);
	classed_put(&c, classed_series(&c, "t", "m", 0), RETENTION_EVER, HARNESS_NOW_MS);
	classed_write(&c);
	naive_refuse_reads(c.h.store, ERR_BUSY, 1);
	struct retention_usage *result = survey(&c, "", "", 100);
	assert_int_equal(c.err, ERR_BUSY);
	retention_usage_release(result);
	classed_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metrics_are_summed_by_class),
		cmocka_unit_test(the_oldest_of_a_late_row_is_its_bucket),
		cmocka_unit_test(sums_are_of_all_where_lines_are_cut),
		cmocka_unit_test(errors_of_the_store_end_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
