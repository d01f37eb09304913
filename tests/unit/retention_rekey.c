/* What lies in another class than rules say goes there, in two steps, and nothing else does. */
#include "retention_harness.h"

#include "base/fault.h"
#include "retention/rekey.h"

static void apply(struct classed *c, enum store_rekey_step step, const char *metric)
{
	uint64_t failed = 0;
	classed_write(c);
	c->err = retention_rekey_step(
		&(struct retention_rekey_options){.scope = classed_scope(c, "t", metric),
						  .asof_ms = HARNESS_NOW_MS},
		step, &failed);
	assert_int_equal(failed, 0);
}

static uint64_t samples_in(struct classed *c, uint64_t handle, enum table table,
			   enum retention_class retention)
{
	struct store_read *read = store_read_new(c->h.store, 1 << 20);
	struct store_request *request = store_read_add(read, STORE_SHARES);
	request->shares =
		(struct store_shares){.table = table,
				      .period_ms = table == TABLE_DATA_DOWNSAMPLED ? HOUR_MS : 0,
				      .handles = &handle,
				      .handle_count = 1};
	harness_read(&c->h, read);
	uint64_t samples = request->shares.list[retention].samples;
	store_read_free(read);
	return samples;
}

/* 150 series are three lists of the store. Raw samples belong for ever, those of debug two days;
 * rows of an hour 365 days. */
static void all_goes_where_it_belongs(void **state)
{
	(void)state;
	static const char *const items[] = {"t/debug/raw:2d"};
	struct classed c;
	uint64_t cpu[150];
	struct value row[8] = {[2] = value_i64(1), [5] = value_i64(1)};
	classed_open(&c, items, 1);
	for (int i = 0; i < 150; i++) {
		cpu[i] = classed_series(&c, "t", "cpu", i);
		for (int day = 0; day < 5; day++)
			classed_put(&c, cpu[i], day ? RETENTION_7_DAYS : RETENTION_EVER,
				    HARNESS_NOW_MS - day * DAY_MS + i);
		assert_int_equal(store_append(c.write,
					      &(struct store_target){TABLE_DATA_DOWNSAMPLED,
								     i % 2 ? RETENTION_EVER
									   : RETENTION_400_DAYS,
								     HOUR_MS},
					      HARNESS_NOW_MS - HOUR_MS, &cpu[i], 1, row),
				 0);
	}
	uint64_t debug = classed_series(&c, "t", "debug", 0);
	classed_put(&c, debug, RETENTION_EVER, HARNESS_NOW_MS - 3 * DAY_MS);
	classed_put(&c, debug, RETENTION_EVER, HARNESS_NOW_MS - DAY_MS);
	classed_put(&c, debug, RETENTION_EVER, HARNESS_NOW_MS + DAY_MS / 2);
	apply(&c, STORE_REKEY_COPY, "");
	assert_int_equal(samples_in(&c, cpu[149], TABLE_DATA_RAW, RETENTION_EVER), 5);
	apply(&c, STORE_REKEY_CLEAR, "");
	for (int i = 0; i < 150; i++) {
		assert_int_equal(samples_in(&c, cpu[i], TABLE_DATA_RAW, RETENTION_EVER), 5);
		assert_int_equal(samples_in(&c, cpu[i], TABLE_DATA_RAW, RETENTION_7_DAYS), 0);
		assert_int_equal(samples_in(&c, cpu[i], TABLE_DATA_DOWNSAMPLED, RETENTION_400_DAYS),
				 2);
		assert_int_equal(samples_in(&c, cpu[i], TABLE_DATA_DOWNSAMPLED, RETENTION_EVER), 0);
	}
	assert_int_equal(samples_in(&c, debug, TABLE_DATA_RAW, RETENTION_EVER), 0);
	assert_int_equal(samples_in(&c, debug, TABLE_DATA_RAW, RETENTION_2_DAYS), 2);
	classed_close(&c);
}

/* They were kept for 14 days when they were written, and are now for as long as rows of an hour. */
static void late_samples_go_where_they_are_written_now(void **state)
{
	(void)state;
	struct classed c;
	struct value one = value_i64(1);
	classed_open(&c, NULL, 0);
	uint64_t x = classed_series(&c, "t", "x", 0);
	for (int day = 1; day < 4; day++)
		assert_int_equal(
			store_append(c.write,
				     &(struct store_target){TABLE_DATA_LATE, RETENTION_35_DAYS},
				     HARNESS_NOW_MS - day * DAY_MS, &x, 1, &one),
			0);
	apply(&c, STORE_REKEY_COPY, "");
	apply(&c, STORE_REKEY_CLEAR, "");
	assert_int_equal(samples_in(&c, x, TABLE_DATA_LATE, RETENTION_35_DAYS), 0);
	assert_int_equal(samples_in(&c, x, TABLE_DATA_LATE, RETENTION_400_DAYS), 3);
	classed_close(&c);
}

static void only_what_is_asked_for_goes(void **state)
{
	(void)state;
	struct classed c;
	classed_open(&c, NULL, 0);
	uint64_t x = classed_series(&c, "t", "x", 0), y = classed_series(&c, "t", "y", 0);
	classed_put(&c, x, RETENTION_7_DAYS, HARNESS_NOW_MS);
	classed_put(&c, y, RETENTION_7_DAYS, HARNESS_NOW_MS);
	apply(&c, STORE_REKEY_COPY, "y");
	apply(&c, STORE_REKEY_CLEAR, "y");
	assert_int_equal(samples_in(&c, x, TABLE_DATA_RAW, RETENTION_7_DAYS), 1);
	assert_int_equal(samples_in(&c, y, TABLE_DATA_RAW, RETENTION_7_DAYS), 0);
	assert_int_equal(samples_in(&c, y, TABLE_DATA_RAW, RETENTION_EVER), 1);
	classed_close(&c);
}

/* It breaks off in the middle of the second step; nothing is lost, and another run does the rest.
 */
static void what_breaks_off_is_done_by_another_run(void **state)
{
	(void)state;
	static const char *const items[] = {"t/cpu/raw:2d"};
	struct classed c;
	uint64_t handles[130], left = 0;
	classed_open(&c, items, 1);
	for (int i = 0; i < 130; i++) {
		handles[i] = classed_series(&c, "t", "cpu", i);
		classed_put(&c, handles[i], RETENTION_7_DAYS, HARNESS_NOW_MS);
	}
	apply(&c, STORE_REKEY_COPY, "");
	fault_arm("retention_rekey", FAULT_ERROR, 2, 1);
	apply(&c, STORE_REKEY_CLEAR, "");
	fault_disarm_all();
	assert_int_equal(c.err, ERR_FAULT);
	for (int i = 0; i < 130; i++)
		left += samples_in(&c, handles[i], TABLE_DATA_RAW, RETENTION_7_DAYS);
	assert_in_range(left, 1, 129);
	apply(&c, STORE_REKEY_COPY, "");
	apply(&c, STORE_REKEY_CLEAR, "");
	assert_int_equal(c.err, 0);
	for (int i = 0; i < 130; i++) {
		assert_int_equal(samples_in(&c, handles[i], TABLE_DATA_RAW, RETENTION_7_DAYS), 0);
		assert_int_equal(samples_in(&c, handles[i], TABLE_DATA_RAW, RETENTION_2_DAYS), 1);
	}
	classed_close(&c);
}

/* One sample lies in the class of 7 days and belongs for ever. */
static void both_steps_are_made_if_there_is_anything(void **state)
{
	(void)state;
	struct classed c;
	struct retention_usage survey;
	uint64_t failed = 0;
	classed_open(&c, NULL, 0);
	uint64_t x = classed_series(&c, "t", "x", 0);
	classed_put(&c, x, RETENTION_7_DAYS, HARNESS_NOW_MS);
	classed_write(&c);
	const struct retention_rekey_options options = {
		.scope = classed_scope(&c, "t", ""), .asof_ms = HARNESS_NOW_MS, .reads_ms = 1};
	for (int moves = 1; moves >= 0; moves--) {
		assert_int_equal(
			retention_usage(&(struct retention_usage_options){options.scope, 10},
					&survey),
			0);
		assert_int_equal(retention_usage_moves(&survey), moves);
		assert_int_equal(retention_rekey(&options, &survey, &failed), 0);
		retention_usage_release(&survey);
		assert_int_equal(samples_in(&c, x, TABLE_DATA_RAW, RETENTION_7_DAYS), 0);
		assert_int_equal(samples_in(&c, x, TABLE_DATA_RAW, RETENTION_EVER), 1);
	}
	assert_int_equal(failed, 0);
	classed_close(&c);
}

/* What was copied is there, and another run does the rest. */
static void a_stop_ends_the_wait_between_the_steps(void **state)
{
	(void)state;
	struct classed c;
	struct retention_usage survey = {.moves[0][0][1].series = 1};
	uint64_t failed = 0;
	classed_open(&c, NULL, 0);
	uint64_t x = classed_series(&c, "t", "x", 0);
	classed_put(&c, x, RETENTION_7_DAYS, HARNESS_NOW_MS);
	classed_write(&c);
	struct retention_rekey_options options = {.scope = classed_scope(&c, "t", ""),
						  .asof_ms = HARNESS_NOW_MS,
						  .reads_ms = INT64_C(1000) * DAY_MS};
	assert_int_equal(retention_rekey_step(&options, STORE_REKEY_COPY, &failed), 0);
	struct task_queue queue;
	task_queue_init(&queue);
	task_queue_stop(&queue);
	options.scope.queue = &queue;
	assert_int_equal(retention_rekey(&options, &survey, &failed), ERR_CANCELLED);
	task_queue_release(&queue);
	assert_int_equal(samples_in(&c, x, TABLE_DATA_RAW, RETENTION_EVER), 1);
	classed_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_goes_where_it_belongs),
		cmocka_unit_test(late_samples_go_where_they_are_written_now),
		cmocka_unit_test(only_what_is_asked_for_goes),
		cmocka_unit_test(what_breaks_off_is_done_by_another_run),
		cmocka_unit_test(both_steps_are_made_if_there_is_anything),
		cmocka_unit_test(a_stop_ends_the_wait_between_the_steps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
