/* Persisting on the real store, for its tests: messages of esmond's go through a queue, and what
 * then lies in the store is read as text. */
#ifndef TESTS_UNIT_PERSIST_HARNESS_H
#define TESTS_UNIT_PERSIST_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/cursor.h"
#include "base/fault.h"
#include "base/stats.h"
#include "conf/conf.h"
#include "persist/persist.h"
#include "queue/local/local.h"
#include "stored_bin.h"
#include "store/lmdb/lmdb.h"
#include "wire/esmond_message.h"

/* 2014-05-13T17:00:00Z, which lies on a bin, an hour and no day. */
#define T0_S INT64_C(1400000400)

static char folder[64];
static struct loop *loop;
static struct store *store;
static struct catalog *catalog;
static struct inventory_conf *conf;
static struct queue **queues;
static struct persist *persist;
static struct persist_options options;
static int64_t stat_before[STAT_COUNT];

/* ---- Waiting --------------------------------------------------------------------------------- */

struct until {
	bool (*holds)(void *owner);
	void *owner;
	struct loop_timer *timer;
};

static inline void look(void *owner)
{
	struct until *until = owner;
	if (until->holds(until->owner))
		loop_stop(loop);
}

static inline void wait_until(bool (*holds)(void *owner), void *owner)
{
	struct until until = {holds, owner, NULL};
	until.timer = loop_timer_new(loop, look, &until);
	loop_timer_start(until.timer, 0, 2);
	loop_run(loop);
	loop_timer_close(until.timer);
}

static inline void stop_loop(void *owner)
{
	(void)owner;
	loop_stop(loop);
}

static inline bool nothing_pending(void *owner)
{
	(void)owner;
	for (size_t i = 0; i < conf->queue_count; i++) {
		struct queue_stats stats;
		queue_stats(queues[i], &stats);
		if (stats.pending)
			return false;
	}
	return true;
}

static inline int64_t counted(enum stat_id stat)
{
	return stat_get(stat) - stat_before[stat];
}

/* ---- The rig --------------------------------------------------------------------------------- */

static inline void persist_begin(void)
{
	persist = persist_new(&options);
}

static inline void persist_end(void)
{
	persist_stop(persist, stop_loop, NULL);
	loop_run(loop);
	persist_free(persist);
	persist = NULL;
}

static inline void open_queues(void)
{
	struct errbuf e;
	queues = mem_zalloc(conf->queue_count * sizeof(*queues));
	for (size_t i = 0; i < conf->queue_count; i++) {
		const struct queue_local_options queue = {
			.name = conf->queues[i]->name,
			.workers = conf->queues[i]->workers,
			.store = store,
			.clock = clock_real(),
		};
		assert_int_equal(queue_local_open(&queue, &queues[i], &e), 0);
	}
}

static inline int setup(void **state)
{
	(void)state;
	struct errbuf e = {""};
	struct conf *c = conf_new();
	struct catalog_options catalog_options = catalog_options_default();
	for (int i = 0; i < STAT_COUNT; i++)
		stat_before[i] = stat_get((enum stat_id)i);
	snprintf(folder, sizeof(folder), "/tmp/granary-persist-XXXXXX");
	assert_non_null(mkdtemp(folder));
	loop = loop_new();
	const struct lmdb_options lmdb = {.path = folder, .map_bytes = 1 << 30};
	assert_int_equal(lmdb_open(&lmdb, &store, &e), 0);
	catalog = catalog_new(store, clock_real(), loop_executor(loop), &catalog_options);
	assert_int_equal(inventory_conf_read(c, files_real(), &conf, &e), 0);
	conf_free(c);
	open_queues();
	options = (struct persist_options){
		.store = store,
		.catalog = catalog,
		.clock = clock_real(),
		.loop = loop,
		.conf = conf,
		.queues = queues,
		.future_max_ms = 86400000,
		.derive_every_ms = 1000,
		.hang_timeout_ms = 60000,
		.counters_max = 1000000,
	};
	persist_begin();
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	char command[128];
	if (persist)
		persist_end();
	for (size_t i = 0; i < conf->queue_count; i++)
		queue_close(queues[i]);
	mem_free(queues);
	catalog_close(catalog, stop_loop, NULL);
	loop_run(loop);
	store_close(store);
	inventory_conf_release(conf);
	loop_free(loop);
	fault_disarm_all();
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	return 0;
}

/* ---- Putting --------------------------------------------------------------------------------- */

static inline void was_put(struct queue_put *put, int err)
{
	assert_int_equal(err, 0);
	*(bool *)put->owner = true;
}

static inline bool is_true(void *owner)
{
	return *(bool *)owner;
}

static inline void put_bytes(const char *queue_name, const char *device, struct slice bytes)
{
	bool done = false;
	struct queue_put put = {
		.key = slice_of(device),
		.bytes = bytes,
		.executor = loop_executor(loop),
		.done = was_put,
		.owner = &done,
	};
	for (size_t i = 0; i < conf->queue_count; i++) {
		if (slice_equal(conf->queues[i]->name, slice_of(queue_name)))
			assert_int_equal(queue_put(queues[i], &put), 0);
	}
	wait_until(is_true, &done);
}

/* A message of esmond's: `data` is its list. */
static inline void put(const char *oidset, const char *oid, int64_t ts_s, const char *data)
{
	struct errbuf e = {""};
	struct arena arena;
	struct poll_builder builder;
	struct buf out;
	static char json[64 << 10];
	snprintf(json, sizeof(json),
		 "{\"oidset_name\":\"%s\",\"device_name\":\"router_a\",\"oid_name\":\"%s\","
		 "\"timestamp\":%lld.5,\"data\":%s,\"metadata\":{}}",
		 oidset, oid, (long long)ts_s, data);
	arena_init(&arena, 1 << 20);
	buf_init(&out, 1 << 20);
	poll_builder_init(&builder);
	if (esmond_message_read(slice_of(json), &arena, &builder, &e))
		fail_msg("%s", e.text);
	assert_int_equal(poll_encode(&builder, 0, true, &out, &e), 0);
	const struct oidset *set = inventory_conf_oidset(conf, slice_of(oidset));
	assert_non_null(set);
	put_bytes(set->queue->name.data, "router_a", buf_slice(&out));
	poll_builder_release(&builder);
	buf_release(&out);
	arena_release(&arena);
}

static inline void put_octets(int64_t ts_s, const char *interface, uint64_t value)
{
	char data[256];
	snprintf(data, sizeof(data), "[[[\"ifHCInOctets\",\"%s\"],%llu]]", interface,
		 (unsigned long long)value);
	put("FastPollHC", "ifHCInOctets", ts_s, data);
}

/* ---- Looking --------------------------------------------------------------------------------- */

static inline void read_done(struct store_read *read, int err)
{
	assert_int_equal(err, 0);
	*(bool *)read->owner = true;
}

static inline struct store_read *read_new(void)
{
	struct store_read *read = store_read_new(store, 16 << 20);
	read->executor = loop_executor(loop);
	read->done = read_done;
	read->now_ms = clock_wall_ms(clock_real());
	return read;
}

static inline void read_run(struct store_read *read)
{
	bool done = false;
	read->owner = &done;
	assert_int_equal(store_read_submit(read), 0);
	wait_until(is_true, &done);
}

static inline uint64_t find(const char *metric, const char *tags)
{
	struct store_read *read = read_new();
	struct slice name = slice_of(metric);
	struct store_request *open = store_read_add(read, STORE_SERIES_OPEN);
	open->series_open = (struct store_series_open){
		.tenant = SLICE("snmp"), .metrics = &name, .count = 1, .find_only = true};
	assert_int_equal(tags_decode(slice_of(tags), &read->arena, &open->series_open.tags), 0);
	read_run(read);
	uint64_t handle = open->series_open.handles[0];
	store_read_free(read);
	return handle;
}

#define XE "device=router_a,interface=xe-0/2/0,oidset=FastPollHC"
#define GE "device=router_a,interface=ge-0/0/1,oidset=FastPollHC"

enum { TEXT_BYTES = 4096 };

/* `seconds=value ...` of one field, the seconds from T0 on. */
static inline void read_text(enum table table, int64_t period_ms, unsigned field,
			     const char *metric, const char *tags, char text[TEXT_BYTES])
{
	struct store_read *read = read_new();
	uint64_t handle = find(metric, tags);
	char *to = text;
	*text = 0;
	struct store_request *request = store_read_add(read, STORE_RANGE);
	assert_int_not_equal(handle, 0);
	request->range = (struct store_range){
		.table = table,
		.period_ms = period_ms,
		.handles = &handle,
		.handle_count = 1,
		.start_ms = 0,
		.end_ms = STORE_TS_MAX,
	};
	read_run(read);
	const struct store_points *points = &request->range.points[0];
	for (size_t i = 0; i < points->count; i++) {
		struct value v = {points->bits[field][i], (enum value_type)points->types[field][i]};
		v = stored_bin_number(table, period_ms, field, v);
		to += snprintf(to, TEXT_BYTES - (size_t)(to - text), "%s%lld=%llu", i ? " " : "",
			       (long long)(points->ts_ms[i] / 1000 - T0_S),
			       (unsigned long long)v.bits);
	}
	store_read_free(read);
}

static inline void expect(enum table table, int64_t period_ms, unsigned field, const char *metric,
			  const char *tags, const char *wanted)
{
	char text[TEXT_BYTES];
	read_text(table, period_ms, field, metric, tags, text);
	assert_string_equal(text, wanted);
}

static inline bool some_looks(void *owner)
{
	return ++*(int *)owner == 10;
}

/* What rates are made of by and by. */
static inline void expect_bins(unsigned field, const char *metric, const char *wanted)
{
	char text[TEXT_BYTES] = "";
	wait_until(nothing_pending, NULL);
	for (int tries = 0; tries < 1000 && strcmp(text, wanted) != 0; tries++) {
		int looks = 0;
		wait_until(some_looks, &looks);
		read_text(TABLE_BASE_RATES, 30000, field, metric, XE, text);
	}
	assert_string_equal(text, wanted);
}

/* Of a row of texts the one at this time; NULL: there is none. */
static inline void expect_text(const char *row_key, int64_t ts_s, const char *wanted)
{
	struct store_read *read = read_new();
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	uint8_t column[8];
	be64_put(column, (uint64_t)ts_s * 1000);
	request->cell_get = (struct store_cell_get){
		.table = TABLE_RAW_TEXT,
		.key = {.part = {slice_of(row_key)}},
		.column = {.part = {{(const char *)column, sizeof(column)}}},
	};
	read_run(read);
	assert_int_equal(request->cell_get.found, wanted != NULL);
	if (wanted) {
		assert_int_equal(request->cell_get.cell.value.len, strlen(wanted));
		assert_memory_equal(request->cell_get.cell.value.data, wanted, strlen(wanted));
	}
	store_read_free(read);
}

static inline void expect_no_text(const char *row_key, int64_t ts_s)
{
	expect_text(row_key, ts_s, NULL);
}

static inline void expect_raw(const char *tags, const char *wanted)
{
	wait_until(nothing_pending, NULL);
	expect(TABLE_RAW_DATA, 30000, 0, "ifHCInOctets", tags, wanted);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
