/* Persisting on the real store: what lies in it after messages of esmond's went through a queue. */
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

static void look(void *owner)
{
	struct until *until = owner;
	if (until->holds(until->owner))
		loop_stop(loop);
}

static void wait_until(bool (*holds)(void *owner), void *owner)
{
	struct until until = {holds, owner, NULL};
	until.timer = loop_timer_new(loop, look, &until);
	loop_timer_start(until.timer, 0, 2);
	loop_run(loop);
	loop_timer_close(until.timer);
}

static void stop_loop(void *owner)
{
	(void)owner;
	loop_stop(loop);
}

static bool nothing_pending(void *owner)
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

static int64_t counted(enum stat_id stat)
{
	return stat_get(stat) - stat_before[stat];
}

/* ---- The rig --------------------------------------------------------------------------------- */

static void persist_begin(void)
{
	persist = persist_new(&options);
}

static void persist_end(void)
{
	persist_stop(persist, stop_loop, NULL);
	loop_run(loop);
	persist_free(persist);
	persist = NULL;
}

static void open_queues(void)
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

static int setup(void **state)
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

static int teardown(void **state)
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

static void was_put(struct queue_put *put, int err)
{
	assert_int_equal(err, 0);
	*(bool *)put->owner = true;
}

static bool is_true(void *owner)
{
	return *(bool *)owner;
}

static void put_bytes(const char *queue_name, const char *device, struct slice bytes)
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
static void put(const char *oidset, const char *oid, int64_t ts_s, const char *data)
{
	struct errbuf e = {""};
	struct arena arena;
	struct poll_builder builder;
	struct buf out;
	char json[4096];
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

static void put_octets(int64_t ts_s, const char *interface, uint64_t value)
{
	char data[256];
	snprintf(data, sizeof(data), "[[[\"ifHCInOctets\",\"%s\"],%llu]]", interface,
		 (unsigned long long)value);
	put("FastPollHC", "ifHCInOctets", ts_s, data);
}

/* ---- Looking --------------------------------------------------------------------------------- */

static void read_done(struct store_read *read, int err)
{
	assert_int_equal(err, 0);
	*(bool *)read->owner = true;
}

static struct store_read *read_new(void)
{
	struct store_read *read = store_read_new(store, 16 << 20);
	read->executor = loop_executor(loop);
	read->done = read_done;
	read->now_ms = clock_wall_ms(clock_real());
	return read;
}

static void read_run(struct store_read *read)
{
	bool done = false;
	read->owner = &done;
	assert_int_equal(store_read_submit(read), 0);
	wait_until(is_true, &done);
}

static uint64_t find(const char *metric, const char *tags)
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
static void read_text(enum table table, int64_t period_ms, unsigned field, const char *metric,
		      const char *tags, char text[TEXT_BYTES])
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
		to += snprintf(to, TEXT_BYTES - (size_t)(to - text), "%s%lld=%llu", i ? " " : "",
			       (long long)(points->ts_ms[i] / 1000 - T0_S),
			       (unsigned long long)v.bits);
	}
	store_read_free(read);
}

static void expect(enum table table, int64_t period_ms, unsigned field, const char *metric,
		   const char *tags, const char *wanted)
{
	char text[TEXT_BYTES];
	read_text(table, period_ms, field, metric, tags, text);
	assert_string_equal(text, wanted);
}

static bool some_looks(void *owner)
{
	return ++*(int *)owner == 10;
}

/* What rates are made of by and by. */
static void expect_bins(unsigned field, const char *metric, const char *wanted)
{
	char text[TEXT_BYTES] = "";
	for (int tries = 0; tries < 1000 && strcmp(text, wanted) != 0; tries++) {
		int looks = 0;
		wait_until(some_looks, &looks);
		read_text(TABLE_BASE_RATES, 30000, field, metric, XE, text);
	}
	assert_string_equal(text, wanted);
}

/* Of a row of texts the one at this time. */
static void expect_text(const char *row_key, int64_t ts_s, const char *wanted)
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
	assert_true(request->cell_get.found);
	assert_int_equal(request->cell_get.cell.value.len, strlen(wanted));
	assert_memory_equal(request->cell_get.cell.value.data, wanted, strlen(wanted));
	store_read_free(read);
}

static void expect_raw(const char *tags, const char *wanted)
{
	wait_until(nothing_pending, NULL);
	expect(TABLE_RAW_DATA, 30000, 0, "ifHCInOctets", tags, wanted);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void test_raw_data_is_what_was_polled(void **state)
{
	(void)state;
	put("FastPollHC", "ifHCInOctets", T0_S + 31,
	    "[[[\"ifHCInOctets\",\"xe-0/2/0\"],16150333739148],"
	    "[[\"ifHCInOctets\",\"ge-0/0/1\"],18446744073709551615]]");
	put("FastPollHC", "sysUpTime", T0_S + 31, "[[[\"sysUpTime\"],4294967295]]");
	expect_raw(XE, "31=16150333739148");
	expect_raw(GE, "31=18446744073709551615");
	expect(TABLE_RAW_DATA, 30000, 0, "sysUpTime", "device=router_a,oidset=FastPollHC",
	       "31=4294967295");
	assert_int_equal(counted(STAT_persist_polls), 2);
	assert_int_equal(counted(STAT_persist_stored), 3);
}

/* The four that esmond made 250 of: its state went back to the late one. */
static void test_order_is_that_of_time(void **state)
{
	(void)state;
	put_octets(T0_S, "xe-0/2/0", 100);
	put_octets(T0_S + 30, "xe-0/2/0", 200);
	put_octets(T0_S + 15, "xe-0/2/0", 150);
	put_octets(T0_S + 60, "xe-0/2/0", 300);
	expect_raw(XE, "0=100 30=200 60=300");
	assert_int_equal(counted(STAT_persist_refused_order), 1);
	put_octets(T0_S + 60, "xe-0/2/0", 300); /* the same again */
	put_octets(T0_S + 60, "xe-0/2/0", 301); /* another at that time */
	expect_raw(XE, "0=100 30=200 60=300");
	assert_int_equal(counted(STAT_persist_repeated), 1);
	assert_int_equal(counted(STAT_persist_refused_order), 2);
}

/* What is remembered is what the store says, however the worker came to it. */
static void test_order_after_a_restart(void **state)
{
	(void)state;
	put_octets(T0_S + 30, "xe-0/2/0", 200);
	wait_until(nothing_pending, NULL);
	persist_end();
	persist_begin();
	put_octets(T0_S + 30, "xe-0/2/0", 200);
	put_octets(T0_S + 29, "xe-0/2/0", 199);
	put_octets(T0_S + 31, "xe-0/2/0", 201);
	expect_raw(XE, "30=200 31=201");
	assert_int_equal(counted(STAT_persist_repeated), 1);
	assert_int_equal(counted(STAT_persist_refused_order), 1);
}

/* Interfaces come and go, and the others keep their order. */
static void test_names_change(void **state)
{
	(void)state;
	put_octets(T0_S, "xe-0/2/0", 1);
	put("FastPollHC", "ifHCInOctets", T0_S + 30,
	    "[[[\"ifHCInOctets\",\"ge-0/0/1\"],5],[[\"ifHCInOctets\",\"xe-0/2/0\"],2]]");
	put_octets(T0_S + 15, "xe-0/2/0", 9);
	put_octets(T0_S + 60, "xe-0/2/0", 3);
	put_octets(T0_S + 60, "ge-0/0/1", 6);
	expect_raw(XE, "0=1 30=2 60=3");
	expect_raw(GE, "30=5 60=6");
	assert_int_equal(counted(STAT_persist_refused_order), 1);
}

static void test_values_that_are_none(void **state)
{
	(void)state;
	put("FastPoll", "ifInOctets", T0_S, "[[[\"ifInOctets\",\"a\"],4294967295]]");
	put("FastPoll", "ifInOctets", T0_S + 1, "[[[\"ifInOctets\",\"a\"],4294967296]]");
	put("FastPoll", "ifInOctets", T0_S + 2, "[[[\"ifInOctets\",\"a\"],-1]]");
	put("FastPoll", "ifInOctets", T0_S + 3, "[[[\"ifInOctets\",\"a\"],1.5]]");
	put("FastPoll", "ifInOctets", T0_S + 4, "[[[\"ifInOctets\",\"a\"],null]]");
	put("FastPoll", "ifInOctets", T0_S + 5, "[[[\"ifInOctets\",\"a\"],\"up\"]]");
	put("FastPoll", "noSuchOid", T0_S + 6, "[[[\"noSuchOid\",\"a\"],1]]");
	put("FastPoll", "ifInOctets", T0_S + 7, "[[[\"ifInOctets\",\"a\"],7.0]]");
	put("FastPoll", "ifInOctets", T0_S + 8, "[[[\"ifInOctets\",\"\"],8]]");
	wait_until(nothing_pending, NULL);
	expect(TABLE_RAW_DATA, 30000, 0, "ifInOctets",
	       "device=router_a,interface=a,oidset=FastPoll", "0=4294967295 7=7");
	expect_text("snmp:router_a:FastPoll:ifInOctets:a:30000", T0_S + 5, "\"up\"");
	assert_int_equal(counted(STAT_persist_refused_value), 3);
	assert_int_equal(counted(STAT_persist_refused_name), 1);
	assert_int_equal(counted(STAT_persist_refused_series), 1);
	assert_int_equal(counted(STAT_persist_aside), 0);
}

/* A message that is none is set aside; those beside it are stored. */
static void test_malformed_messages(void **state)
{
	(void)state;
	const char *queue = inventory_conf_oidset(conf, SLICE("FastPollHC"))->queue->name.data;
	struct queue_stats stats;
	put_octets(T0_S, "xe-0/2/0", 1);
	put_bytes(queue, "router_a", SLICE("no poll at all"));
	put("IfRefPoll", "", T0_S, "{\"ifAlias\":[[\"ifAlias.1\",\"x\"]]}");
	put_octets(T0_S + 30, "xe-0/2/0", 2);
	expect_raw(XE, "0=1 30=2");
	assert_int_equal(counted(STAT_persist_aside), 1);
	for (size_t i = 0; i < conf->queue_count; i++) {
		queue_stats(queues[i], &stats);
		assert_int_equal(stats.aside, slice_equal(conf->queues[i]->name, slice_of(queue)));
	}
}

static void rows_read(struct inventory_rows_read *read, int err)
{
	assert_int_equal(err, 0);
	*(bool *)read->owner = true;
}

/* `name begin end|open, ...` in seconds from T0, of all versions. */
static void expect_interfaces(const char *wanted)
{
	bool done = false;
	struct arena arena;
	char text[1024] = "";
	arena_init(&arena, 1 << 20);
	struct inventory_rows_read read = {
		.store = store,
		.executor = loop_executor(loop),
		.clock = clock_real(),
		.arena = &arena,
		.kind = OIDSET_INTERFACES,
		.device = SLICE("router_a"),
		.begin_ms = 0,
		.end_ms = INVENTORY_FOREVER_MS,
		.done = rows_read,
		.owner = &done,
	};
	wait_until(nothing_pending, NULL);
	assert_int_equal(inventory_rows_read_start(&read), 0);
	wait_until(is_true, &done);
	for (size_t i = 0; i < read.count; i++) {
		const struct inventory_row *row = &read.rows[i];
		char end[32] = "open";
		if (row->end_ms != INVENTORY_FOREVER_MS)
			snprintf(end, sizeof(end), "%lld", (long long)(row->end_ms / 1000 - T0_S));
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.*s %lld %s",
			 i ? ", " : "", (int)row->name.len, row->name.data,
			 (long long)(row->begin_ms / 1000 - T0_S), end);
	}
	assert_string_equal(text, wanted);
	arena_release(&arena);
}

/* Another alias, another version; a walk that saw nothing says nothing. */
static void test_interfaces_have_versions(void **state)
{
	(void)state;
	put("IfRefPoll", "", T0_S,
	    "{\"ifName\":[[\"ifName.1\",\"xe-0/2/0\"]],\"ifAlias\":[[\"ifAlias.1\",\"test "
	    "one\"]]}");
	expect_interfaces("xe-0/2/0 0 open");
	put("IfRefPoll", "", T0_S + 60,
	    "{\"ifName\":[[\"ifName.1\",\"xe-0/2/0\"]],\"ifAlias\":[[\"ifAlias.1\",\"test "
	    "one\"]]}");
	put("IfRefPoll", "", T0_S + 120,
	    "{\"ifName\":[[\"ifName.1\",\"xe-0/2/0\"]],\"ifAlias\":[[\"ifAlias.1\",\"test "
	    "two\"]]}");
	put("IfRefPoll", "", T0_S + 180, "{\"ifName\":[],\"ifAlias\":[]}");
	expect_interfaces("xe-0/2/0 0 120, xe-0/2/0 120 open");
	assert_int_equal(counted(STAT_persist_row_polls), 4);
}

/* 31 s: 100, 62 s: 213 gives the bin at 30 s 106 and the one at 60 s 7 (reference 2.3); a third one
 * closes the latter. */
static void test_bins_follow(void **state)
{
	(void)state;
	put_octets(T0_S + 31, "xe-0/2/0", 100);
	put_octets(T0_S + 62, "xe-0/2/0", 213);
	put_octets(T0_S + 120, "xe-0/2/0", 213);
	put_octets(T0_S + 150, "xe-0/2/0", 213);
	expect_bins(0, "ifHCInOctets", "30=106 60=7 90=0");
	expect_bins(1, "ifHCInOctets", "30=1 60=2 90=1");
}

static void add_row(struct poll_builder *builder, const char *interface, int64_t ts_s,
		    size_t column, uint64_t value)
{
	struct errbuf e;
	struct slice path = slice_of(interface);
	assert_int_equal(poll_add_row(builder, &path, 1, ts_s * 1000, &e), 0);
	poll_set(builder, builder->row_count - 1, column, value_u64(value));
}

/* As a poller gives them when the replies with its values came at different times. */
static void put_in_two_rows(int64_t ts_s, uint64_t in, uint64_t out)
{
	struct errbuf e;
	struct poll_builder b;
	struct buf bytes;
	poll_builder_init(&b);
	buf_init(&bytes, 1 << 20);
	assert_int_equal(poll_begin(&b, SLICE("router_a"), SLICE("FastPollHC"), ts_s * 1000, &e),
			 0);
	assert_int_equal(poll_add_column(&b, SLICE("ifHCInOctets"), &e), 0);
	assert_int_equal(poll_add_column(&b, SLICE("ifHCOutOctets"), &e), 0);
	add_row(&b, "xe-0/2/0", ts_s, 0, in);
	add_row(&b, "xe-0/2/0", ts_s + 1, 1, out);
	assert_int_equal(poll_encode(&b, 0, true, &bytes, &e), 0);
	put_bytes(inventory_conf_oidset(conf, SLICE("FastPollHC"))->queue->name.data, "router_a",
		  buf_slice(&bytes));
	poll_builder_release(&b);
	buf_release(&bytes);
}

/* In: 10 in the bin from 0 s, 20 in that from 30 s. Out is read a second later: of 60 in 30 s two
 * lie in the bin after. */
static void test_rows_of_one_path_are_one_interface(void **state)
{
	(void)state;
	put_in_two_rows(T0_S, 100, 100);
	put_in_two_rows(T0_S + 30, 110, 160);
	put_in_two_rows(T0_S + 60, 130, 220);
	put_in_two_rows(T0_S + 90, 130, 220);
	put_in_two_rows(T0_S + 120, 130, 220);
	expect_bins(0, "ifHCInOctets", "0=10 30=20 60=0");
	expect_bins(0, "ifHCOutOctets", "0=58 30=60 60=2");
}

/* esmond's shape, a message for each OID: a counter that begins anew with its device
 * (reference 2.5: what it has since then is its growth), whatever else comes between its values. */
static void test_oids_in_messages_of_their_own(void **state)
{
	(void)state;
	static const uint64_t uptimes[] = {100000, 103000, 106000, 1700, 4700, 7700};
	static const uint64_t values[] = {1000, 2000, 3000, 50, 1050, 1050};
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		char uptime[64], out[128];
		int64_t ts_s = T0_S + 30 * (int64_t)i;
		snprintf(uptime, sizeof(uptime), "[[[\"sysUpTime\"],%llu]]",
			 (unsigned long long)uptimes[i]);
		snprintf(out, sizeof(out), "[[[\"ifHCOutOctets\",\"xe-0/2/0\"],%llu]]",
			 (unsigned long long)values[i]);
		put("FastPollHC", "sysUpTime", ts_s, uptime);
		put_octets(ts_s, "xe-0/2/0", values[i]);
		put("FastPollHC", "ifHCOutOctets", ts_s, out);
	}
	expect_bins(0, "ifHCInOctets", "0=1000 30=1000 60=50 90=1000");
	expect_bins(0, "ifHCOutOctets", "0=1000 30=1000 60=50 90=1000");
}

/* Of two interfaces the catalog takes one; what it does not take is refused and holds up nothing.
 */
static void test_a_limit_of_the_catalog(void **state)
{
	(void)state;
	struct catalog_options one = catalog_options_default();
	one.series_per_tenant_max = 1;
	persist_end();
	catalog_close(catalog, stop_loop, NULL);
	loop_run(loop);
	catalog = options.catalog = catalog_new(store, clock_real(), loop_executor(loop), &one);
	persist_begin();
	put_octets(T0_S, "xe-0/2/0", 1);
	put_octets(T0_S, "ge-0/0/1", 1); /* all that it has is refused */
	put_octets(T0_S + 30, "ge-0/0/1", 2);
	put_octets(T0_S + 30, "xe-0/2/0", 2);
	expect_raw(XE, "0=1 30=2");
	assert_int_equal(find("ifHCInOctets", GE), 0);
	assert_int_equal(counted(STAT_persist_refused_series), 2);
}

static void wiped(struct device_wipe *wipe, int err)
{
	assert_int_equal(err, 0);
	*(bool *)wipe->owner = true;
}

/* What is polled of a device whose data was deleted begins anew, also at times that were there. */
static void test_a_device_that_was_wiped(void **state)
{
	(void)state;
	bool done = false;
	struct device_wipe wipe = {
		.store = store,
		.executor = loop_executor(loop),
		.clock = clock_real(),
		.device = SLICE("router_a"),
		.done = wiped,
		.owner = &done,
	};
	put_octets(T0_S, "xe-0/2/0", 1);
	put_octets(T0_S + 30, "xe-0/2/0", 2);
	expect_raw(XE, "0=1 30=2");
	device_wipe_start(&wipe);
	wait_until(is_true, &done);
	put_octets(T0_S + 30, "xe-0/2/0", 3);
	put_octets(T0_S + 60, "xe-0/2/0", 4);
	expect_raw(XE, "30=3 60=4");
}

static bool was_replaced(void *owner)
{
	(void)owner;
	return counted(STAT_persist_replaced) > 0;
}

/* The first worker that looks at its clock hangs; its polls are another's then. */
static void test_a_worker_that_hangs(void **state)
{
	(void)state;
	persist_end();
	options.hang_timeout_ms = 2500;
	fault_arm("persist_hang", FAULT_ERROR, 1, 1000);
	persist_begin();
	wait_until(was_replaced, NULL);
	fault_disarm_all();
	put_octets(T0_S, "xe-0/2/0", 1);
	put_octets(T0_S + 30, "xe-0/2/0", 2);
	expect_raw(XE, "0=1 30=2");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_raw_data_is_what_was_polled),
		TEST(test_order_is_that_of_time),
		TEST(test_order_after_a_restart),
		TEST(test_names_change),
		TEST(test_values_that_are_none),
		TEST(test_malformed_messages),
		TEST(test_interfaces_have_versions),
		TEST(test_bins_follow),
		TEST(test_rows_of_one_path_are_one_interface),
		TEST(test_oids_in_messages_of_their_own),
		TEST(test_a_limit_of_the_catalog),
		TEST(test_a_device_that_was_wiped),
		TEST(test_a_worker_that_hangs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
