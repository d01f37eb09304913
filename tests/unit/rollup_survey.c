/* A survey of retention: what is counted of which metric, by the class that it lies in. */
#include "ingest_harness.h"

#include "rollup/survey.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS  (24 * HOUR_MS)

struct surveyed {
	struct harness h;
	struct rollup_grains grains;
	struct retention_rules rules;
	struct store_write *write;
	size_t limit;
	bool done;
	int err;
};

static void on_done(void *owner, int err)
{
	struct surveyed *s = owner;
	s->done = true;
	s->err = err;
}

static void begin(struct surveyed *s, const char *const *items, size_t count)
{
	struct errbuf e;
	*s = (struct surveyed){.limit = 100};
	s->grains = (struct rollup_grains){
		.slot_ms = HOUR_MS, .count = 1, .list = {{HOUR_MS, 365 * DAY_MS}}};
	assert_int_equal(retention_parse(items, count, &s->grains, 0, &s->rules, &e), 0);
	harness_open(&s->h, NULL);
	s->write = store_write_new(s->h.store, 16 << 20);
}

static void end(struct surveyed *s)
{
	store_write_free(s->write);
	harness_close(&s->h);
}

static uint64_t open_series(struct surveyed *s, const char *tenant, const char *metric, int host)
{
	char name[16];
	struct slice metrics = slice_of(metric);
	snprintf(name, sizeof(name), "%d", host);
	struct tag tag = {SLICE("h"), slice_of(name)};
	struct store_read *read = store_read_new(s->h.store, 1 << 20);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	request->series_open = (struct store_series_open){
		.tenant = slice_of(tenant), .tags = {&tag, 1}, .metrics = &metrics, .count = 1};
	harness_read(&s->h, read);
	uint64_t handle = request->series_open.handles[0];
	store_read_free(read);
	return handle;
}

static void put(struct surveyed *s, uint64_t handle, enum retention_class retention, int64_t ts_ms)
{
	struct value one = value_i64(1);
	assert_int_equal(
		store_append(s->write, TABLE_DATA_RAW, 0, retention, ts_ms, &handle, 1, &one), 0);
}

/* A gauge's row has six fields. */
static void put_row(struct surveyed *s, uint64_t handle, enum retention_class retention)
{
	struct value row[8] = {[0] = value_i64(1), [1] = value_i64(1), [2] = value_i64(1),
			       [3] = value_i64(1), [6] = value_i64(1), [7] = value_i64(1)};
	assert_int_equal(store_append(s->write, TABLE_DATA_DOWNSAMPLED, HOUR_MS, retention, 0,
				      &handle, 1, row),
			 0);
}

static struct retention_survey *survey(struct surveyed *s, const char *tenant, const char *metric)
{
	harness_write(&s->h, s->write);
	store_write_reset(s->write);
	s->done = false;
	struct retention_survey *survey = retention_survey_start(&(struct retention_survey_options){
		.store = s->h.store,
		.clock = &s->h.clock.clock,
		.executor = &s->h.queue.executor,
		.grains = &s->grains,
		.raw_retention_ms = 5 * DAY_MS,
		.rules = &s->rules,
		.tenant = slice_of(tenant),
		.metric = slice_of(metric),
		.lines_max = s->limit,
		.done = on_done,
		.owner = s,
	});
	assert_false(s->done);
	harness_pump(&s->h);
	assert_true(s->done);
	return survey;
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
	struct surveyed s;
	begin(&s, items, 1);
	for (int i = 0; i < 1100; i++) {
		uint64_t handle = open_series(&s, "t", "cpu", i);
		put(&s, handle, RETENTION_35_DAYS, HARNESS_NOW_MS - 3 * DAY_MS + i);
		if (i < 10)
			put(&s, handle, RETENTION_7_DAYS, HARNESS_NOW_MS);
		put_row(&s, handle, i ? RETENTION_EVER : RETENTION_400_DAYS);
	}
	put(&s, open_series(&s, "t", "debug", 0), RETENTION_2_DAYS, HARNESS_NOW_MS);
	put(&s, open_series(&s, "u", "debug", 0), RETENTION_2_DAYS, HARNESS_NOW_MS);
	(void)open_series(&s, "t", "empty", 0);
	struct retention_survey *done = survey(&s, "", "");
	const struct retention_survey_result *result = retention_survey_result(done);
	assert_int_equal(s.err, 0);
	assert_int_equal(result->series, 1103);
	assert_int_equal(result->line_count, 4);
	assert_false(result->cut);

	const struct retention_line *raw = &result->lines[0], *hours = &result->lines[1];
	assert_true(slice_equal(raw->metric, SLICE("cpu")) && raw->grain == RETENTION_RAW);
	assert_true(raw->keep_ms == 5 * DAY_MS && raw->rule == 0);
	assert_int_equal(raw->retention, RETENTION_7_DAYS);
	check_amount(&raw->amounts[RETENTION_35_DAYS], 1100, 1100);
	assert_true(raw->amounts[RETENTION_35_DAYS].oldest_ms == HARNESS_NOW_MS - 3 * DAY_MS);
	check_amount(&raw->amounts[RETENTION_7_DAYS], 10, 10);
	check_amount(&raw->amounts[RETENTION_EVER], 0, 0);
	assert_int_equal(hours->grain, 0);
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
	retention_survey_free(done);
	end(&s);
}

/* Only the list is cut. */
static void sums_are_of_all_where_lines_are_cut(void **state)
{
	(void)state;
	struct surveyed s;
	begin(&s, NULL, 0);
	s.limit = 1;
	for (int i = 0; i < 3; i++) {
		char metric[] = {'m', (char)('0' + i), 0};
		put(&s, open_series(&s, "t", metric, 0), RETENTION_EVER, HARNESS_NOW_MS);
	}
	struct retention_survey *done = survey(&s, "", "");
	const struct retention_survey_result *result = retention_survey_result(done);
	assert_int_equal(result->line_count, 1);
	assert_true(result->cut);
	check_amount(&result->moves[0][RETENTION_EVER][RETENTION_7_DAYS], 3, 3);
	retention_survey_free(done);
	done = survey(&s, "t", "m1");
	assert_false(retention_survey_result(done)->cut);
	assert_int_equal(retention_survey_result(done)->series, 1);
	retention_survey_free(done);
	done = survey(&s, "u", "");
	assert_int_equal(retention_survey_result(done)->series, 0);
	retention_survey_free(done);
	end(&s);
}

static void errors_of_the_store_end_it(void **state)
{
	(void)state;
	struct surveyed s;
	begin(&s, NULL, 0);
	put(&s, open_series(&s, "t", "m", 0), RETENTION_EVER, HARNESS_NOW_MS);
	harness_write(&s.h, s.write);
	store_write_reset(s.write);
	naive_refuse_reads(s.h.store, ERR_BUSY, 1);
	struct retention_survey *done = survey(&s, "", "");
	assert_int_equal(s.err, ERR_BUSY);
	retention_survey_free(done);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metrics_are_summed_by_class),
		cmocka_unit_test(sums_are_of_all_where_lines_are_cut),
		cmocka_unit_test(errors_of_the_store_end_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
