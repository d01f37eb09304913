/* What lies in another class than rules say goes there, in two steps, and nothing else does. */
#include "ingest_harness.h"

#include "base/fault.h"
#include "rollup/apply.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS  (24 * HOUR_MS)

struct applied {
	struct harness h;
	struct rollup_grains grains;
	struct retention_rules rules;
	struct store_write *write;
	bool done;
	int err;
};

static void on_done(void *owner, int err)
{
	struct applied *a = owner;
	a->done = true;
	a->err = err;
}

static void begin(struct applied *a, const char *const *items, size_t count)
{
	struct errbuf e;
	*a = (struct applied){.err = 0};
	a->grains = (struct rollup_grains){
		.slot_ms = HOUR_MS, .count = 1, .list = {{HOUR_MS, 365 * DAY_MS}}};
	assert_int_equal(retention_parse(items, count, &a->grains, 0, &a->rules, &e), 0);
	harness_open(&a->h, NULL);
	a->write = store_write_new(a->h.store, 16 << 20);
}

static void end(struct applied *a)
{
	store_write_free(a->write);
	harness_close(&a->h);
}

static uint64_t open_series(struct applied *a, const char *metric, int host)
{
	char name[16];
	struct slice metrics = slice_of(metric);
	snprintf(name, sizeof(name), "%d", host);
	struct tag tag = {SLICE("h"), slice_of(name)};
	struct store_read *read = store_read_new(a->h.store, 1 << 20);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	request->series_open = (struct store_series_open){
		.tenant = SLICE("t"), .tags = {&tag, 1}, .metrics = &metrics, .count = 1};
	harness_read(&a->h, read);
	uint64_t handle = request->series_open.handles[0];
	store_read_free(read);
	return handle;
}

static void put(struct applied *a, uint64_t handle, enum retention_class retention, int64_t ts_ms)
{
	struct value one = value_i64(1);
	assert_int_equal(
		store_append(a->write, TABLE_DATA_RAW, 0, retention, ts_ms, &handle, 1, &one), 0);
}

static void apply(struct applied *a, enum store_rekey_step step, const char *metric)
{
	harness_write(&a->h, a->write);
	store_write_reset(a->write);
	a->done = false;
	struct retention_apply *apply = retention_apply_start(&(struct retention_apply_options){
		.store = a->h.store,
		.clock = &a->h.clock.clock,
		.executor = &a->h.queue.executor,
		.grains = &a->grains,
		.rules = &a->rules,
		.tenant = SLICE("t"),
		.metric = slice_of(metric),
		.step = step,
		.asof_ms = HARNESS_NOW_MS,
		.done = on_done,
		.owner = a,
	});
	assert_false(a->done);
	harness_pump(&a->h);
	assert_true(a->done);
	assert_int_equal(retention_apply_failed(apply), 0);
	retention_apply_free(apply);
}

static uint64_t samples_in(struct applied *a, uint64_t handle, enum table table,
			   enum retention_class retention)
{
	struct store_read *read = store_read_new(a->h.store, 1 << 20);
	struct store_request *request = store_read_add(read, STORE_SHARES);
	request->shares = (struct store_shares){.table = table,
						.period_ms = table == TABLE_DATA_RAW ? 0 : HOUR_MS,
						.handles = &handle,
						.handle_count = 1};
	harness_read(&a->h, read);
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
	struct applied a;
	uint64_t cpu[150];
	struct value row[8] = {[2] = value_i64(1), [5] = value_i64(1)};
	begin(&a, items, 1);
	for (int i = 0; i < 150; i++) {
		cpu[i] = open_series(&a, "cpu", i);
		for (int day = 0; day < 5; day++)
			put(&a, cpu[i], day ? RETENTION_7_DAYS : RETENTION_EVER,
			    HARNESS_NOW_MS - day * DAY_MS + i);
		assert_int_equal(store_append(a.write, TABLE_DATA_DOWNSAMPLED, HOUR_MS,
					      i % 2 ? RETENTION_EVER : RETENTION_400_DAYS,
					      HARNESS_NOW_MS - HOUR_MS, &cpu[i], 1, row),
				 0);
	}
	uint64_t debug = open_series(&a, "debug", 0);
	put(&a, debug, RETENTION_EVER, HARNESS_NOW_MS - 3 * DAY_MS);
	put(&a, debug, RETENTION_EVER, HARNESS_NOW_MS - DAY_MS);
	put(&a, debug, RETENTION_EVER, HARNESS_NOW_MS + DAY_MS / 2);
	apply(&a, STORE_REKEY_COPY, "");
	assert_int_equal(samples_in(&a, cpu[149], TABLE_DATA_RAW, RETENTION_EVER), 5);
	apply(&a, STORE_REKEY_CLEAR, "");
	for (int i = 0; i < 150; i++) {
		assert_int_equal(samples_in(&a, cpu[i], TABLE_DATA_RAW, RETENTION_EVER), 5);
		assert_int_equal(samples_in(&a, cpu[i], TABLE_DATA_RAW, RETENTION_7_DAYS), 0);
		assert_int_equal(samples_in(&a, cpu[i], TABLE_DATA_DOWNSAMPLED, RETENTION_400_DAYS),
				 2);
		assert_int_equal(samples_in(&a, cpu[i], TABLE_DATA_DOWNSAMPLED, RETENTION_EVER), 0);
	}
	assert_int_equal(samples_in(&a, debug, TABLE_DATA_RAW, RETENTION_EVER), 0);
	assert_int_equal(samples_in(&a, debug, TABLE_DATA_RAW, RETENTION_2_DAYS), 2);
	end(&a);
}

static void only_what_is_asked_for_goes(void **state)
{
	(void)state;
	struct applied a;
	begin(&a, NULL, 0);
	uint64_t x = open_series(&a, "x", 0), y = open_series(&a, "y", 0);
	put(&a, x, RETENTION_7_DAYS, HARNESS_NOW_MS);
	put(&a, y, RETENTION_7_DAYS, HARNESS_NOW_MS);
	apply(&a, STORE_REKEY_COPY, "y");
	apply(&a, STORE_REKEY_CLEAR, "y");
	assert_int_equal(samples_in(&a, x, TABLE_DATA_RAW, RETENTION_7_DAYS), 1);
	assert_int_equal(samples_in(&a, y, TABLE_DATA_RAW, RETENTION_7_DAYS), 0);
	assert_int_equal(samples_in(&a, y, TABLE_DATA_RAW, RETENTION_EVER), 1);
	end(&a);
}

/* It breaks off in the middle of the second step; nothing is lost, and another run does the rest.
 */
static void what_breaks_off_is_done_by_another_run(void **state)
{
	(void)state;
	static const char *const items[] = {"t/cpu/raw:2d"};
	struct applied a;
	uint64_t handles[130], left = 0;
	begin(&a, items, 1);
	for (int i = 0; i < 130; i++) {
		handles[i] = open_series(&a, "cpu", i);
		put(&a, handles[i], RETENTION_7_DAYS, HARNESS_NOW_MS);
	}
	apply(&a, STORE_REKEY_COPY, "");
	fault_arm("retention_apply", FAULT_ERROR, 2, 1);
	apply(&a, STORE_REKEY_CLEAR, "");
	fault_disarm_all();
	assert_int_equal(a.err, ERR_FAULT);
	for (int i = 0; i < 130; i++)
		left += samples_in(&a, handles[i], TABLE_DATA_RAW, RETENTION_7_DAYS);
	assert_in_range(left, 1, 129);
	apply(&a, STORE_REKEY_COPY, "");
	apply(&a, STORE_REKEY_CLEAR, "");
	assert_int_equal(a.err, 0);
	for (int i = 0; i < 130; i++) {
		assert_int_equal(samples_in(&a, handles[i], TABLE_DATA_RAW, RETENTION_7_DAYS), 0);
		assert_int_equal(samples_in(&a, handles[i], TABLE_DATA_RAW, RETENTION_2_DAYS), 1);
	}
	end(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_goes_where_it_belongs),
		cmocka_unit_test(only_what_is_asked_for_goes),
		cmocka_unit_test(what_breaks_off_is_done_by_another_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
