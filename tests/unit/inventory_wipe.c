#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "inventory/inventory.h"
#include "naive.h"

#define T0_MS INT64_C(1600000000000)

static struct clock_virtual clock_;
static struct task_queue queue;
static struct store *store;

static int setup(void **state)
{
	(void)state;
	clock_virtual_init(&clock_, T0_MS * 1000);
	task_queue_init(&queue);
	store = naive_open(&clock_.clock);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	store_close(store);
	task_queue_release(&queue);
	return 0;
}

static int done_err;

static void pump(void)
{
	while (task_queue_run(&queue))
		;
}

static void read_done(struct store_read *read, int err)
{
	(void)read;
	done_err = err;
}

static void write_done(struct store_write *write, int err)
{
	(void)write;
	done_err = err;
}

/* A series with these tags, and one value of it in each of two tables. */
static uint64_t put_series(const char *tenant, const char *metric, struct tag *list, size_t count)
{
	struct store_read *read = store_read_new(store, 1 << 20);
	struct slice name = slice_of(metric);
	struct value values[5] = {value_u64(1), value_u64(1), value_u64(1), value_u64(0),
				  value_u64(0)};
	uint64_t handle = 0;
	struct errbuf e;
	assert_int_equal(tags_sort_and_check(list, count, &e), 0);
	read->executor = &queue.executor;
	read->done = read_done;
	read->now_ms = T0_MS;
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	request->series_open = (struct store_series_open){.tenant = slice_of(tenant),
							  .tags = {list, count},
							  .metrics = &name,
							  .count = 1,
							  .handles = &handle};
	assert_int_equal(store_read_submit(read), 0);
	pump();
	assert_int_equal(done_err, 0);
	handle = request->series_open.handles[0];
	store_read_free(read);
	struct store_write *write = store_write_new(store, 1 << 20);
	write->executor = &queue.executor;
	write->done = write_done;
	assert_int_equal(store_append(write,
				      &(struct store_target){TABLE_RAW_DATA, RETENTION_EVER, 30000},
				      T0_MS, &handle, 1, values),
			 0);
	assert_int_equal(
		store_append(write, &(struct store_target){TABLE_BASE_RATES, RETENTION_EVER, 30000},
			     T0_MS, &handle, 1, values),
		0);
	/* Of another period, as an earlier configuration may have had. */
	assert_int_equal(
		store_append(write, &(struct store_target){TABLE_BASE_RATES, RETENTION_EVER, 60000},
			     T0_MS, &handle, 1, values),
		0);
	assert_int_equal(store_write_submit(write), 0);
	pump();
	assert_int_equal(done_err, 0);
	store_write_free(write);
	return handle;
}

static size_t points_of(enum table table, int64_t period_ms, uint64_t handle)
{
	struct store_read *read = store_read_new(store, 1 << 20);
	read->executor = &queue.executor;
	read->done = read_done;
	read->now_ms = T0_MS;
	struct store_request *request = store_read_add(read, STORE_RANGE);
	request->range = (struct store_range){.table = table,
					      .period_ms = period_ms,
					      .handles = &handle,
					      .handle_count = 1,
					      .start_ms = STORE_TS_MIN,
					      .end_ms = STORE_TS_MAX};
	assert_int_equal(store_read_submit(read), 0);
	pump();
	assert_int_equal(done_err, 0);
	size_t count = request->range.points[0].count;
	store_read_free(read);
	return count;
}

static bool is_registered(uint64_t handle)
{
	struct store_read *read = store_read_new(store, 1 << 20);
	read->executor = &queue.executor;
	read->done = read_done;
	read->now_ms = T0_MS;
	struct store_request *request = store_read_add(read, STORE_SERIES_DESCRIBE);
	request->series_describe = (struct store_series_describe){.handles = &handle, .count = 1};
	assert_int_equal(store_read_submit(read), 0);
	pump();
	bool there = request->series_describe.series[0].handle != 0;
	store_read_free(read);
	return there;
}

static void check(uint64_t handle, bool there)
{
	assert_int_equal(points_of(TABLE_RAW_DATA, 30000, handle), there);
	assert_int_equal(points_of(TABLE_BASE_RATES, 30000, handle), there);
	assert_int_equal(points_of(TABLE_BASE_RATES, 60000, handle), there);
	assert_int_equal(is_registered(handle), there);
}

static void updated(struct inventory_rows_update *update, int err)
{
	(void)update;
	done_err = err;
}

static void put_row(const char *device)
{
	struct inventory_row row = {.name = SLICE("xe0"),
				    .begin_ms = T0_MS,
				    .end_ms = INVENTORY_FOREVER_MS,
				    .attributes = SLICE("{}")};
	struct inventory_rows_update update = {.store = store,
					       .executor = &queue.executor,
					       .clock = &clock_.clock,
					       .kind = OIDSET_INTERFACES,
					       .device = slice_of(device),
					       .rows = &row,
					       .count = 1,
					       .ts_ms = T0_MS,
					       .done = updated};
	update.write = store_write_new(store, 1 << 20);
	update.write->executor = &queue.executor;
	update.write->done = write_done;
	assert_int_equal(inventory_rows_update_start(&update), 0);
	pump();
	assert_int_equal(store_write_submit(update.write), 0);
	pump();
	store_write_free(update.write);
}

static void rows_read(struct inventory_rows_read *read, int err)
{
	(void)read;
	done_err = err;
}

static size_t rows_of(const char *device)
{
	struct arena arena;
	arena_init(&arena, 1 << 20);
	struct inventory_rows_read read = {.store = store,
					   .executor = &queue.executor,
					   .clock = &clock_.clock,
					   .arena = &arena,
					   .kind = OIDSET_INTERFACES,
					   .device = slice_of(device),
					   .end_ms = INVENTORY_FOREVER_MS,
					   .done = rows_read};
	assert_int_equal(inventory_rows_read_start(&read), 0);
	pump();
	arena_release(&arena);
	return read.count;
}

static uint64_t wipe(const char *device)
{
	const struct device_wipe_options options = {.store = store,
						    .clock = &clock_.clock,
						    .queue = &queue,
						    .device = slice_of(device)};
	uint64_t series;
	struct errbuf e;
	assert_int_equal(device_wipe(&options, &series, &e), 0);
	return series;
}

static void put_cell(enum table table, const char *first, const char *second, const char *column)
{
	struct store_write *write = store_write_new(store, 1 << 20);
	struct store_parts key = {.part = {slice_of(first)}}, at = {.part = {{column, 8}}};
	if (second)
		key.part[1] = slice_of(second);
	write->executor = &queue.executor;
	write->done = write_done;
	assert_int_equal(store_cell_put(write, table, &key, &at, SLICE("x"), 1, 0), 0);
	assert_int_equal(store_write_submit(write), 0);
	pump();
	assert_int_equal(done_err, 0);
	store_write_free(write);
}

static size_t cells_of(enum table table, const char *first, const char *second)
{
	struct store_read *read = store_read_new(store, 1 << 20);
	read->executor = &queue.executor;
	read->done = read_done;
	read->now_ms = T0_MS;
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	request->cell_scan.table = table;
	request->cell_scan.key.part[0] = slice_of(first);
	if (second)
		request->cell_scan.key.part[1] = slice_of(second);
	assert_int_equal(store_read_submit(read), 0);
	pump();
	assert_int_equal(done_err, 0);
	size_t count = request->cell_scan.count;
	store_read_free(read);
	return count;
}

/* Checkpoints and texts go by the device in their row's key, not by what looks like it. */
static void cells_of_the_device_go(void **state)
{
	(void)state;
	put_cell(TABLE_RATE_CHECKPOINTS, "r:1", "Fast", "00000001");
	put_cell(TABLE_RATE_CHECKPOINTS, "r:1", "Fast", "00000002");
	put_cell(TABLE_RATE_CHECKPOINTS, "r:1", "Slow", "00000001");
	put_cell(TABLE_RATE_CHECKPOINTS, "r", "Fast", "00000001");
	put_cell(TABLE_RAW_TEXT, "snmp:r\\:1:Fast:ifAlias:a:30000", NULL, "00000001");
	put_cell(TABLE_RAW_TEXT, "snmp:r\\:1:Fast:ifAlias:b:30000", NULL, "00000001");
	put_cell(TABLE_RAW_TEXT, "snmp:r:1:Fast:ifAlias:30000", NULL, "00000001");
	assert_int_equal(wipe("r:1"), 0);
	assert_int_equal(cells_of(TABLE_RATE_CHECKPOINTS, "r:1", "Fast"), 0);
	assert_int_equal(cells_of(TABLE_RATE_CHECKPOINTS, "r:1", "Slow"), 0);
	assert_int_equal(cells_of(TABLE_RATE_CHECKPOINTS, "r", "Fast"), 1);
	assert_int_equal(cells_of(TABLE_RAW_TEXT, "snmp:r\\:1:Fast:ifAlias:a:30000", NULL), 0);
	assert_int_equal(cells_of(TABLE_RAW_TEXT, "snmp:r\\:1:Fast:ifAlias:b:30000", NULL), 0);
	assert_int_equal(cells_of(TABLE_RAW_TEXT, "snmp:r:1:Fast:ifAlias:30000", NULL), 1);
}

#define TAGS(...)                                                                                  \
	(struct tag[])                                                                             \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static void only_what_is_of_the_device_goes(void **state)
{
	(void)state;
	uint64_t mine = put_series(
		"snmp", "ifHCInOctets",
		TAGS({SLICE("device"), SLICE("rtr_a")}, {SLICE("interface"), SLICE("xe0")}), 2);
	uint64_t scalar =
		put_series("snmp", "sysUpTime", TAGS({SLICE("device"), SLICE("rtr_a")}), 1);
	/* Names that begin alike, the name as another tag's value, and inside of one. */
	uint64_t others[] = {
		put_series("snmp", "ifHCInOctets", TAGS({SLICE("device"), SLICE("rtr_a2")}), 1),
		put_series("snmp", "ifHCInOctets", TAGS({SLICE("device"), SLICE("xrtr_a")}), 1),
		put_series("snmp", "ifHCInOctets",
			   TAGS({SLICE("adevice"), SLICE("rtr_a")}, {SLICE("device"), SLICE("b")}),
			   2),
		put_series("snmp", "ifHCInOctets",
			   TAGS({SLICE("device"), SLICE("b")},
				{SLICE("interface"), SLICE("x,device=rtr_a")}),
			   2),
		put_series("host", "ifHCInOctets", TAGS({SLICE("device"), SLICE("rtr_a")}), 1),
	};
	put_row("rtr_a");
	put_row("rtr_a2");
	assert_int_equal(wipe("rtr_a"), 2);
	check(mine, false);
	check(scalar, false);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		check(others[i], true);
	assert_int_equal(rows_of("rtr_a"), 0);
	assert_int_equal(rows_of("rtr_a2"), 1);
	/* Once more, and of a device that never was. */
	assert_int_equal(wipe("rtr_a"), 0);
	assert_int_equal(wipe("nobody"), 0);
}

static void names_are_escaped_in_a_series(void **state)
{
	(void)state;
	uint64_t mine = put_series("snmp", "m", TAGS({SLICE("device"), SLICE("a,b=c\\d")}), 1);
	uint64_t other = put_series("snmp", "m", TAGS({SLICE("device"), SLICE("a")}), 1);
	/* The backslash ends the value before, and hides no comma. */
	uint64_t behind = put_series(
		"snmp", "m", TAGS({SLICE("a"), SLICE("x\\")}, {SLICE("device"), SLICE("q")}), 2);
	uint64_t within = put_series(
		"snmp", "m",
		TAGS({SLICE("a"), SLICE("x\\,device=q")}, {SLICE("device"), SLICE("r")}), 2);
	assert_int_equal(wipe("a,b=c\\d"), 1);
	check(mine, false);
	check(other, true);
	assert_int_equal(wipe("q"), 1);
	check(behind, false);
	check(within, true);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_what_is_of_the_device_goes),
		TEST(names_are_escaped_in_a_series),
		TEST(cells_of_the_device_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
