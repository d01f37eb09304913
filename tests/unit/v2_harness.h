/* /v2 over a real connection, for its tests: the API's harness with an inventory, and what a poller
 * would have left in the store. */
#ifndef TESTS_UNIT_V2_HARNESS_H
#define TESTS_UNIT_V2_HARNESS_H

#include "base/base.h"

static struct store *open_either_store(void);
#define OPEN_STORE() open_either_store()

#include "api_harness.h"

#include "base/cursor.h"
#include "base/file.h"
#include "conf/conf.h"
#include "inventory/inventory.h"
#include "lmdb_dir.h"
#include "store/lmdb/lmdb.h"
#include "wire/zones.h"

/* 2020-08-24T16:00:00Z: a full hour, and a whole number of days of any length. */
#define HOUR_S INT64_C(1598284800)

static struct inventory_conf *inventory_conf;
static struct conf *conf;

/* The tests run twice: on the naive engine, and on the real one. */
static bool on_lmdb;
static struct lmdb_dir dir;

static struct store *open_either_store(void)
{
	struct store *opened;
	struct errbuf e;
	if (!on_lmdb)
		return naive_open(&clock_.clock);
	lmdb_dir_make(&dir);
	struct lmdb_options lmdb = {.path = dir.path,
				    .map_bytes = UINT64_C(1) << 30,
				    .not_durable = true,
				    .clock = &clock_.clock};
	if (lmdb_open(&lmdb, &opened, &e))
		fail_msg("%s", e.text);
	return opened;
}

static inline int read_secrets(struct files *files, const char *path, size_t max_bytes,
			       struct buf *out)
{
	(void)files;
	(void)path;
	(void)max_bytes;
	return buf_append_text(out, "lab: {version: 2c, community: public}\n");
}

static inline int mode_of_secrets(struct files *files, const char *path, unsigned *mode)
{
	(void)files;
	(void)path;
	*mode = 0600;
	return 0;
}

static inline void open_inventory(const char *yaml)
{
	static struct files fake = {.read = read_secrets, .mode = mode_of_secrets};
	struct inventory_options inventory_options = {
		.store = store, .clock = &clock_.clock, .executor = loop_executor(loop)};
	struct errbuf e;
	conf = conf_new();
	if (conf_read_yaml(conf, "g.yml", slice_of(yaml), &e) ||
	    inventory_conf_read(conf, &fake, &inventory_conf, &e))
		fail_msg("%s", e.text);
	inventory_options.conf = inventory_conf;
	assert_int_equal(inventory_keeper_open(&inventory_options, &api.inventory, &e), 0);
	api.conf = conf;
}

static inline void close_inventory(void)
{
	inventory_keeper_free(api.inventory);
	inventory_conf_release(inventory_conf);
	conf_free(conf);
	api.inventory = NULL;
	api.conf = NULL;
}

static inline int v2_setup(void **state)
{
	setup(state);
	open_inventory("snmp: {secrets_file: s.yml}\n");
	api.zones = zones_new(files_real(), ZONES_FOLDER);
	return 0;
}

static inline int v2_teardown(void **state)
{
	end();
	while (api.calls) { /* of clients that have gone */
		loop_stop(loop);
		loop_run(loop);
	}
	close_inventory();
	zones_free(api.zones);
	catalog_close(catalog, stop_loop, NULL);
	loop_run(loop);
	store_close(store);
	loop_free(loop);
	if (on_lmdb)
		lmdb_dir_remove(&dir);
	(void)state;
	return 0;
}

/* ---- Devices --------------------------------------------------------------------------------- */

static inline void device_added(struct inventory_change *change, int err)
{
	if (err)
		fail_msg("%s", change->error.text);
	loop_stop(loop);
}

/* `oidsets` are separated by blanks. */
static inline void add_device_of(const char *name, const char *oidsets, int64_t begin_s,
				 int64_t end_ms)
{
	struct slice list[16];
	struct device_spec spec = device_spec_preset();
	struct inventory_change change = {
		.op = INVENTORY_ADD, .specs = &spec, .count = 1, .done = device_added};
	spec.name = slice_of(name);
	spec.address = SLICE("127.0.0.1");
	spec.credentials = SLICE("lab");
	spec.begin_ms = begin_s * 1000;
	spec.end_ms = end_ms;
	spec.oidsets = list;
	while (*oidsets) {
		size_t len = strcspn(oidsets, " ");
		list[spec.oidset_count++] = (struct slice){oidsets, len};
		oidsets += len + (oidsets[len] == ' ');
	}
	assert_int_equal(inventory_keeper_change(api.inventory, &change), 0);
	loop_run(loop);
}

/* From 2020-01-01 on, for ever. */
static inline void add_device(const char *name, const char *oidsets)
{
	add_device_of(name, oidsets, 1577836800, INVENTORY_FOREVER_MS);
}

static inline void rows_updated(struct inventory_rows_update *update, int err)
{
	(void)update;
	assert_int_equal(err, 0);
	loop_stop(loop);
}

struct interface {
	const char *name, *alias;
};

/* What a complete poll of a device's rows at a time says there is. */
static inline void poll_rows(const char *device, enum oidset_kind kind, int64_t ts_s,
			     const struct inventory_row *rows, size_t count)
{
	struct store_write *write = write_new();
	struct inventory_rows_update update = {
		.store = store,
		.executor = loop_executor(loop),
		.clock = &clock_.clock,
		.write = write,
		.kind = kind,
		.device = slice_of(device),
		.rows = rows,
		.count = count,
		.complete = true,
		.ts_ms = ts_s * 1000,
		.done = rows_updated,
	};
	assert_int_equal(inventory_rows_update_start(&update), 0);
	loop_run(loop);
	write_out(write);
}

static inline void poll_interfaces(const char *device, int64_t ts_s, const struct interface *list,
				   size_t count)
{
	static char texts[16][256];
	struct inventory_row rows[16];
	for (size_t i = 0; i < count; i++) {
		snprintf(texts[i], sizeof(texts[i]),
			 "{\"ifIndex\":%zu,\"ifDescr\":\"d%zu\",\"ifName\":\"%s\","
			 "\"ifAlias\":\"%s\",\"ifHighSpeed\":10000}",
			 i + 1, i + 1, list[i].name, list[i].alias);
		rows[i] = (struct inventory_row){.name = slice_of(list[i].name),
						 .begin_ms = ts_s * 1000,
						 .end_ms = INVENTORY_FOREVER_MS,
						 .attributes = slice_of(texts[i])};
	}
	poll_rows(device, OIDSET_INTERFACES, ts_s, rows, count);
}

/* ---- Samples --------------------------------------------------------------------------------- */

/* Of a counter of an interface; NULL: of the device. The tags are written by hand, so names must
 * not need escapes. */
static inline uint64_t open_counter(const char *device, const char *oidset, const char *oid,
				    const char *interface)
{
	char tags[256];
	snprintf(tags, sizeof(tags), "device=%s%s%s,oidset=%s", device,
		 interface ? ",interface=" : "", interface ? interface : "", oidset);
	return open_series("snmp", oid, tags);
}

static inline void put_raw(uint64_t handle, int64_t period_s, int64_t ts_ms, uint64_t number)
{
	struct store_write *write = write_new();
	struct value value = value_u64(number);
	assert_int_equal(store_append(write,
				      &(struct store_target){TABLE_RAW_DATA, RETENTION_EVER,
							     period_s * 1000},
				      ts_ms, &handle, 1, &value),
			 0);
	write_out(write);
}

/* What was polled and is no number, as JSON under the row key of E. */
static inline void put_text(const char *row_key, int64_t ts_ms, const char *json)
{
	struct store_write *write = write_new();
	struct store_parts key = {.part = {slice_of(row_key)}};
	uint8_t bytes[8];
	be64_put(bytes, (uint64_t)ts_ms);
	struct store_parts column = {.part = {{(const char *)bytes, sizeof(bytes)}}};
	assert_int_equal(store_cell_put(write, TABLE_RAW_TEXT, &key, &column, slice_of(json),
					store_stamp(store), 0),
			 0);
	write_out(write);
}

/* `count` polls, `step_s` apart, each `growth` above the one before. */
static inline void put_steady(uint64_t handle, int64_t period_s, int64_t first_s, int64_t step_s,
			      size_t count, uint64_t first, uint64_t growth)
{
	struct store_write *write = write_new();
	for (size_t i = 0; i < count; i++) {
		struct value value = value_u64(first + i * growth);
		assert_int_equal(store_append(write,
					      &(struct store_target){TABLE_RAW_DATA, RETENTION_EVER,
								     period_s * 1000},
					      (first_s + (int64_t)i * step_s) * 1000, &handle, 1,
					      &value),
				 0);
	}
	write_out(write);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static inline void send_json(const char *verb, const char *path, const char *body, int status,
			     const char *expected)
{
	static char headers[3500];
	struct client c = {.verb = verb, .headers = headers};
	snprintf(headers, sizeof(headers),
		 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
		 body);
	ask(&c, path);
	if (c.status != status || strcmp(c.body, expected) != 0)
		fail_msg("%s: %s", path, c.answer);
	mem_free(c.answer);
}

/* The answer with its `'` for `"`, which reads better here. */
static inline void expect_like(const char *path, int status, const char *like)
{
	char *text = mem_copy_text(slice_of(like));
	for (char *at = text; (at = strchr(at, '\'')); at++)
		*at = '"';
	expect(path, status, text);
	mem_free(text);
}

#define V2_RUN(tests)                                                                              \
	do {                                                                                       \
		int failed = cmocka_run_group_tests_name("naive", tests, NULL, NULL);              \
		on_lmdb = true;                                                                    \
		return failed + cmocka_run_group_tests_name("lmdb", tests, NULL, NULL);            \
	} while (0)

#define V2_TEST(f) cmocka_unit_test_setup_teardown(f, v2_setup, v2_teardown)

#endif
