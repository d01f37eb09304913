/* A store with one device, on the naive engine or on LMDB: raw data in, jobs, rates out. */
#ifndef TESTS_UNIT_RATE_HARNESS_H
#define TESTS_UNIT_RATE_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"
#include "lmdb_dir.h"
#include "naive.h"
#include "rate/job.h"
#include "rate/read.h"
#include "rate/recompute.h"
#include "store/lmdb/lmdb.h"

enum { RIG_COLUMNS = 2, RIG_ROWS_MAX = 4000 };

struct rig {
	bool on_lmdb;
	struct lmdb_dir dir;
	struct store *store;
	struct task_queue queue;
	struct rate_table table;
	struct rate_row *rows; /* in the order of ids */
	uint64_t (*handles)[RIG_COLUMNS];
	size_t row_count;
	int64_t newest_ms;
	bool done;
	int err;
	struct rate_job *job;
	struct rate_read *read;
};

static const struct rate_column rig_columns[RIG_COLUMNS] = {
	{{"ifHCInOctets", 12}, 64, true},
	{{"ifInOctets", 10}, 32, true},
};

static inline void rig_wait(struct rig *rig)
{
	while (!rig->done)
		task_queue_wait(&rig->queue);
	rig->done = false;
}

static inline void rig_read_done(struct store_read *read, int err)
{
	struct rig *rig = read->owner;
	rig->done = true;
	rig->err = err;
}

static inline void rig_write_done(struct store_write *write, int err)
{
	struct rig *rig = write->owner;
	rig->done = true;
	rig->err = err;
}

static inline struct store_read *rig_new_read(struct rig *rig)
{
	struct store_read *read = store_read_new(rig->store, 64 << 20);
	read->executor = &rig->queue.executor;
	read->done = rig_read_done;
	read->owner = rig;
	read->now_ms = clock_wall_ms(clock_real());
	return read;
}

static inline struct store_write *rig_new_write(struct rig *rig)
{
	struct store_write *write = store_write_new(rig->store, 64 << 20);
	write->executor = &rig->queue.executor;
	write->done = rig_write_done;
	write->owner = rig;
	return write;
}

static inline void rig_submit(struct rig *rig, struct store_write *write)
{
	assert_int_equal(store_write_submit(write), 0);
	rig_wait(rig);
	assert_int_equal(rig->err, 0);
	store_write_free(write);
}

static inline void rig_open_series(struct rig *rig, struct tags tags, const struct slice *metrics,
				   size_t count, uint64_t *handles)
{
	struct store_read *read = rig_new_read(rig);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);

	assert_non_null(request);
	request->series_open = (struct store_series_open){
		.tenant = SLICE("snmp"), .tags = tags, .metrics = metrics, .count = count};
	assert_int_equal(store_read_submit(read), 0);
	rig_wait(rig);
	assert_int_equal(rig->err, 0);
	memcpy(handles, request->series_open.handles, count * sizeof(*handles));
	store_read_free(read);
}

static inline void rig_open_row(struct rig *rig, size_t number, struct rate_row *row,
				uint64_t *handles)
{
	struct slice metrics[] = {rig_columns[0].name, rig_columns[1].name,
				  SLICE("ifCounterDiscontinuityTime"), SLICE("ifHighSpeed")};
	uint64_t all[ARRAY_LEN(metrics)];
	char name[32];
	struct buf text;
	int len = snprintf(name, sizeof(name), "xe-0/0/%zu", number);
	struct tag tags[] = {{SLICE("device"), SLICE("router_a")},
			     {SLICE("interface"), {name, (size_t)len}},
			     {SLICE("oidset"), SLICE("FastPollHC")}};

	rig_open_series(rig, (struct tags){tags, 3}, metrics, ARRAY_LEN(metrics), all);
	buf_init(&text, 4096);
	assert_int_equal(tags_encode((struct tags){tags, 3}, &text), 0);
	memcpy(handles, all, RIG_COLUMNS * sizeof(*handles));
	*row = (struct rate_row){.id = rate_row_id(buf_slice(&text)),
				 .handles = handles,
				 .discontinuity = all[RIG_COLUMNS],
				 .speed = all[RIG_COLUMNS + 1]};
	buf_release(&text);
}

/* The first `count` interfaces; again after each reopening, since handles are of one process. */
static inline void rig_open_table(struct rig *rig, size_t count)
{
	struct tag tags[] = {{SLICE("device"), SLICE("router_a")},
			     {SLICE("oidset"), SLICE("FastPollHC")}};
	struct slice uptime = SLICE("sysUpTime");

	assert_true(count <= RIG_ROWS_MAX);
	for (size_t i = 0; i < count; i++)
		rig_open_row(rig, i, &rig->rows[i], rig->handles[i]);
	rate_rows_sort(rig->rows, count);
	rig->row_count = count;
	rig->table = (struct rate_table){.device = SLICE("router_a"),
					 .oidset = SLICE("FastPollHC"),
					 .config = {30000, 2, {3600000, 86400000}},
					 .columns = rig_columns,
					 .column_count = RIG_COLUMNS,
					 .rows = rig->rows,
					 .row_count = count};
	rig_open_series(rig, (struct tags){tags, 2}, &uptime, 1, &rig->table.uptime);
}

static inline void rig_open_store(struct rig *rig)
{
	struct lmdb_options options = {
		.path = rig->dir.path, .map_bytes = UINT64_C(1) << 30, .not_durable = true};
	struct errbuf e = {""};

	if (!rig->on_lmdb)
		rig->store = naive_open(clock_real());
	else if (lmdb_open(&options, &rig->store, &e))
		fail_msg("%s", e.text);
}

static inline struct rig *rig_new(bool on_lmdb, size_t rows)
{
	struct rig *rig = mem_zalloc(sizeof(*rig));

	rig->on_lmdb = on_lmdb;
	if (on_lmdb)
		lmdb_dir_make(&rig->dir);
	task_queue_init(&rig->queue);
	rig->rows = mem_alloc_array(RIG_ROWS_MAX, sizeof(*rig->rows));
	rig->handles = mem_alloc_array(RIG_ROWS_MAX, sizeof(*rig->handles));
	rig->newest_ms = INT64_MIN;
	rig_open_store(rig);
	rig_open_table(rig, rows);
	rig->job = rate_job_new(rig->store, &rig->queue.executor);
	rig->read = rate_read_new(rig->store, &rig->queue.executor);
	return rig;
}

static inline void rig_reopen(struct rig *rig)
{
	rate_job_free(rig->job);
	rate_read_free(rig->read);
	if (rig->on_lmdb) {
		store_close(rig->store);
		rig_open_store(rig);
	} else {
		naive_reopen(rig->store);
	}
	rig_open_table(rig, rig->row_count);
	rig->job = rate_job_new(rig->store, &rig->queue.executor);
	rig->read = rate_read_new(rig->store, &rig->queue.executor);
}

static inline void rig_free(struct rig *rig)
{
	rate_job_free(rig->job);
	rate_read_free(rig->read);
	store_close(rig->store);
	if (rig->on_lmdb)
		lmdb_dir_remove(&rig->dir);
	task_queue_release(&rig->queue);
	mem_free(rig->rows);
	mem_free(rig->handles);
	mem_free(rig);
}

static inline void rig_put(struct rig *rig, struct store_write *write, uint64_t handle,
			   int64_t ts_ms, uint64_t value)
{
	struct value v = value_u64(value);

	assert_int_equal(store_append(write,
				      &(struct store_target){TABLE_RAW_DATA, RETENTION_EVER, 30000},
				      ts_ms, &handle, 1, &v),
			 0);
	if (ts_ms > rig->newest_ms)
		rig->newest_ms = ts_ms;
}

static inline void rig_job_done(struct rate_job *job, int err)
{
	struct rig *rig = rate_job_owner(job);
	rig->done = true;
	rig->err = err;
}

static inline struct rate_job_options rig_job_options(struct rig *rig, int64_t until_ms)
{
	return (struct rate_job_options){
		.table = &rig->table,
		.until_ms = until_ms,
		.now_ms = clock_wall_ms(clock_real()),
		.retention = {RETENTION_EVER, RETENTION_EVER, RETENTION_EVER},
		.done = rig_job_done,
		.owner = rig};
}

/* What the job may take: everything before the newest, as its owner says. */
static inline int rig_job_until(struct rig *rig, int64_t until_ms)
{
	struct rate_job_options options = rig_job_options(rig, until_ms);
	int err = rate_job_start(rig->job, &options);

	if (err)
		return err;
	rig_wait(rig);
	return rig->err;
}

static inline struct rate_recompute_result rig_recompute(struct rig *rig, int64_t from_ms,
							 int64_t to_ms, bool only_report)
{
	const struct rate_recompute_options options = {
		.store = rig->store,
		.queue = &rig->queue,
		.table = &rig->table,
		.from_ms = from_ms,
		.to_ms = to_ms,
		.until_ms = rig->newest_ms,
		.now_ms = clock_wall_ms(clock_real()),
		.retention = {RETENTION_EVER, RETENTION_EVER, RETENTION_EVER},
		.only_report = only_report,
	};
	struct rate_recompute_result result;
	struct errbuf e;

	if (rate_recompute(&options, &result, &e))
		fail_msg("%s", e.text);
	return result;
}

static inline void rig_rates_done(struct rate_read *read, int err)
{
	struct rig *rig = rate_read_owner(read);
	rig->done = true;
	rig->err = err;
}

static inline int rig_read_table(struct rig *rig, const struct rate_table *table, size_t level,
				 int64_t from_ms, int64_t to_ms)
{
	struct rate_read_options options = {.table = table,
					    .level = level,
					    .from_ms = from_ms,
					    .to_ms = to_ms,
					    .now_ms = clock_wall_ms(clock_real()),
					    .rows_max = 10000000,
					    .done = rig_rates_done,
					    .owner = rig};
	int err = rate_read_start(rig->read, &options);

	if (err)
		return err;
	rig_wait(rig);
	return rig->err;
}

#endif
