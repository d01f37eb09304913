/* What is swept leaves the disk in slices, once, and at no cost of what stays; whatever breaks off
 * is gone on with. The index of what is due (sweep_index.h) agrees with what is stored: verify says
 * where it does not, repair makes it again, compaction keeps it.
 *
 * The clock is virtual: it stands unless a test moves it. That something was swept is seen in the
 * store's own count of what it holds; no event tells of it. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/stats.h"
#include "contract.h"
#include "lmdb_dir.h"
#include "store/lmdb/sweep_index.h"

enum {
	TRIES_MAX = 30000, /* of 1 ms each; only a failure takes them all */
	LARGE = 60000,     /* cells of 200 bytes: some slices of 4 MiB */
	LARGE_BYTES = 200,
	PER_BATCH = 5000,
};

static struct lmdb_dir dir;

static struct lmdb_options options_of(struct clock *clock)
{
	return (struct lmdb_options){
		.path = dir.path,
		.map_bytes = UINT64_C(1) << 30,
		.not_durable = true,
		.clock = clock,
	};
}

static struct store *open_again(struct clock *clock)
{
	struct errbuf e = {""};
	struct store *store = NULL;
	const struct lmdb_options options = options_of(clock);
	if (lmdb_open(&options, &store, &e))
		fail_msg("%s", e.text);
	return store;
}

static struct store *open_new(UNUSED void *context, struct clock *clock)
{
	lmdb_dir_make(&dir);
	return open_again(clock);
}

static struct store *reopen(UNUSED void *context, struct store *store, struct clock *clock)
{
	store_close(store);
	return open_again(clock);
}

static void settle(UNUSED void *context, struct store *store)
{
	assert_int_equal(lmdb_settle(store), 0);
}

static void close_and_remove(UNUSED void *context, struct store *store)
{
	store_close(store);
	lmdb_dir_remove(&dir);
}

static const struct contract_engine engine = {.name = "sweep",
					      .open = open_new,
					      .reopen = reopen,
					      .settle = settle,
					      .close = close_and_remove};

#define ROW PARTS(TEXT("row"))

static struct store_table_stats held(struct rig *rig)
{
	return rig_stats(rig).tables[TABLE_DEVICES];
}

static void wait_until_cells(struct rig *rig, uint64_t count)
{
	for (int tries = 0; held(rig).samples != count; tries++) {
		if (tries == TRIES_MAX)
			fail_msg("%llu cells are there, not %llu",
				 (unsigned long long)held(rig).samples, (unsigned long long)count);
		usleep(1000);
	}
}

static void put_large(struct rig *rig, const struct store_parts *key)
{
	static char bytes[LARGE_BYTES];
	for (int n = 0; n < LARGE;) {
		struct store_write *write = rig_write_new(rig);
		for (int i = 0; i < PER_BATCH; i++, n++) {
			char column[16];
			snprintf(column, sizeof(column), "%06d", n);
			assert_int_equal(store_cell_put(write, TABLE_DEVICES, key,
							PARTS(slice_of(column)),
							(struct slice){bytes, sizeof(bytes)}, 5, 0),
					 0);
		}
		rig_commit(rig, write);
	}
}

static size_t seen(struct rig *rig)
{
	struct store_cell_scan scan = {.table = TABLE_DEVICES, .key = *ROW};
	return rig_scan(rig, &scan, 0).count;
}

/* ---- Rows that are deleted ------------------------------------------------------------------- */

static void a_large_row_goes_in_slices(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, &engine);
	put_large(&rig, ROW);
	rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("new")), TEXT("v"), 6, 0);
	int64_t commits = stat_get(STAT_store_commits), swept = stat_get(STAT_store_swept_cells);
	rig_row_delete(&rig, TABLE_DEVICES, ROW, 5);
	assert_int_equal(seen(&rig), 1);
	wait_until_cells(&rig, 1);
	assert_true(stat_get(STAT_store_commits) - commits >= LARGE * LARGE_BYTES / (4 << 20));
	assert_int_equal(stat_get(STAT_store_swept_cells) - swept, LARGE);
	assert_int_equal(held(&rig).rows, 1);
	rig_verify(&rig);
	rig_close(&rig);
}

/* A slice that failed is done again, and those that were done before it are not. */
static void a_slice_that_fails_is_done_again(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, &engine);
	put_large(&rig, ROW);
	fault_arm("store.commit", FAULT_ERROR, 3, 1); /* the deletion, a slice, this one */
	rig_row_delete(&rig, TABLE_DEVICES, ROW, 5);
	wait_until_cells(&rig, 0);
	fault_disarm_all();
	assert_int_equal(seen(&rig), 0);
	rig_verify(&rig);
	rig_close(&rig);
}

static void put_and_delete(struct rig *rig)
{
	put_large(rig, ROW);
	fault_arm("store.committed", FAULT_KILL, 3, 1);
	rig_row_delete(rig, TABLE_DEVICES, ROW, 5);
	wait_until_cells(rig, 0);
}

/* The child is killed after the second slice; no thread of the engine lives across the fork. */
static void a_kill_between_two_slices(UNUSED void **state)
{
	struct rig rig;
	int status;
	rig_open(&rig, &engine);
	store_close(rig.store);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		rig.store = open_again(&rig.clock.clock);
		put_and_delete(&rig);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	/* To look does not sweep. */
	struct lmdb_options look = options_of(&rig.clock.clock);
	struct errbuf e = {""};
	look.inspect = true;
	assert_int_equal(lmdb_open(&look, &rig.store, &e), 0);
	assert_in_range(held(&rig).samples, 1, LARGE - 1);
	assert_int_equal(seen(&rig), 0);
	assert_int_equal(rig_enumerate(&rig, TABLE_DEVICES, 0, 0).count, held(&rig).samples > 1000);
	rig_verify(&rig);
	rig_reopen(&rig);
	rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("000001")), TEXT("late"), 5, 0);
	assert_int_equal(seen(&rig), 0);
	wait_until_cells(&rig, 0);
	rig_verify(&rig);
	rig_close(&rig);
}

/* The deletion is forgotten a day later, at the end of its minute, and with it a row without cells.
 */
static void a_deletion_is_forgotten(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, &engine);
	rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("a")), TEXT("v"), 5, 0);
	rig_cell_put(&rig, TABLE_DEVICES, PARTS(TEXT("b")), PARTS(TEXT("a")), TEXT("v"), 6, 0);
	rig_row_delete(&rig, TABLE_DEVICES, ROW, 5);
	rig_row_delete(&rig, TABLE_DEVICES, PARTS(TEXT("b")), 5);
	rig_row_delete(&rig, TABLE_DEVICES, PARTS(TEXT("c")), 5);
	rig_settle(&rig);
	assert_int_equal(held(&rig).rows, 3);
	assert_int_equal(held(&rig).samples, 1);
	rig_advance_ms(&rig, STORE_TOMBSTONE_MS);
	rig_settle(&rig);
	assert_int_equal(held(&rig).rows, 3);
	rig_advance_ms(&rig, 60000);
	rig_settle(&rig);
	assert_int_equal(held(&rig).rows, 1);
	assert_int_equal(held(&rig).samples, 1);
	rig_verify(&rig);
	rig_close(&rig);
}

/* ---- Cells that expire or are deleted ---------------------------------------------------------
 */

/* `count` cells of a row, with that expiry. The key's second part is for the tables that have one.
 */
static void put_many(struct rig *rig, enum table table, const char *key, int count,
		     int64_t expires_ms)
{
	for (int n = 0; n < count;) {
		struct store_write *write = rig_write_new(rig);
		for (int i = 0; i < PER_BATCH && n < count; i++, n++) {
			char column[16];
			snprintf(column, sizeof(column), "%06d", n);
			assert_int_equal(
				store_cell_put(write, table, PARTS(slice_of(key), TEXT("")),
					       PARTS(slice_of(column)), TEXT("v"), 5, expires_ms),
				0);
		}
		rig_commit(rig, write);
	}
}

/* 100,000 cells that stay, half of which expire some time, and 10 that are due, in two tables: the
 * sweep looks at those 10, and once in each of the two tables at what comes next. */
static void a_sweep_costs_what_it_removes(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, &engine);
	put_many(&rig, TABLE_DEVICES, "stays", 50000, 0);
	put_many(&rig, TABLE_DEVICES, "stays longer", 25000, T0 + 30 * (int64_t)DAY_MS);
	put_many(&rig, TABLE_SUMMARIES, "stays longer", 25000, T0 + 30 * (int64_t)DAY_MS);
	put_many(&rig, TABLE_DEVICES, "goes", 5, T0 + HOUR_MS);
	for (int i = 0; i < 5; i++) {
		const char column[] = {(char)('a' + i), 0};
		rig_cell_delete(&rig, TABLE_SUMMARIES, PARTS(TEXT("deleted"), TEXT("")),
				PARTS(slice_of(column)), 6);
	}
	rig_settle(&rig);
	int64_t looked = stat_get(STAT_store_sweep_looked);
	int64_t swept = stat_get(STAT_store_swept_cells);
	rig_advance_ms(&rig, DAY_MS + HOUR_MS + 60000);
	wait_until_cells(&rig, 75000);
	while (rig_stats(&rig).tables[TABLE_SUMMARIES].samples != 25000)
		usleep(1000);
	assert_int_equal(stat_get(STAT_store_swept_cells) - swept, 10);
	assert_int_equal(held(&rig).rows, 2);
	rig_verify(&rig);
	/* One pass, and of another one the beginning at most. */
	looked = stat_get(STAT_store_sweep_looked) - looked;
	assert_in_range(looked, 10, 10 + 2 + 2);
	rig_close(&rig);
}

/* Counts of cells that are stored, swept up to the minute. */
static void expect_held(struct rig *rig, uint64_t oops, uint64_t leases)
{
	rig_settle(rig);
	struct store_stats stats = rig_stats(rig);
	assert_int_equal(stats.tables[TABLE_DEVICES].samples, oops);
	assert_int_equal(stats.tables[TABLE_LEASES].samples, leases);
	rig_verify(rig);
}

/* The time of grace of a stamped cell is a day, of any other the longest query; then the minute
 * ends. T0 is 20 seconds into a minute. */
static void what_is_due_goes_in_its_minute(UNUSED void **state)
{
	static char long_value[20000];
	struct rig rig;
	rig_open(&rig, &engine);
	rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("expires")), TEXT("v"), 5, T0 + 40000);
	rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("long")),
		     (struct slice){long_value, sizeof(long_value)}, 5, T0 + 39999);
	rig_cell_delete(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("deleted")), 5);
	rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("never")), TEXT("v"), 5, INT64_MAX);
	struct store_write_cond lease =
		rig_put_if(&rig, PARTS(TEXT("k")), PARTS(TEXT("a")), 0, "v", T0 + 100000);
	assert_true(lease.applied);
	rig_put_if(&rig, PARTS(TEXT("k")), PARTS(TEXT("b")), 0, "v", T0 + 100000);
	expect_held(&rig, 4, 2);
	/* One lease is renewed, then for good; the other one ends and is taken away. */
	lease = rig_put_if(&rig, PARTS(TEXT("k")), PARTS(TEXT("a")), lease.version, "v",
			   T0 + HOUR_MS);
	rig_advance_ms(&rig, 100000 + STORE_QUERY_DEADLINE_MAX_MS);
	expect_held(&rig, 4, 2);
	rig_advance_ms(&rig, 60000);
	expect_held(&rig, 4, 1);
	lease = rig_put_if(&rig, PARTS(TEXT("k")), PARTS(TEXT("a")), lease.version, "v", 0);
	assert_true(lease.applied);
	rig_advance_ms(&rig, DAY_MS - 100000 - STORE_QUERY_DEADLINE_MAX_MS - 60000 + 39999);
	expect_held(&rig, 4, 1);
	rig_advance_ms(&rig, 1);
	expect_held(&rig, 2, 1);
	rig_advance_ms(&rig, 60000);
	expect_held(&rig, 1, 1);
	assert_int_equal(rig_stats(&rig).blob_bytes, 0);
	/* One that stays, and one that expires, are taken away at once. */
	assert_true(rig_delete_if(&rig, PARTS(TEXT("k")), PARTS(TEXT("a")), lease.version).applied);
	lease = rig_put_if(&rig, PARTS(TEXT("k")), PARTS(TEXT("c")), 0, "v",
			   T0 + 2 * (int64_t)DAY_MS);
	assert_true(rig_delete_if(&rig, PARTS(TEXT("k")), PARTS(TEXT("c")), lease.version).applied);
	expect_held(&rig, 1, 0);
	rig_close(&rig);
}

/* What is put over a cell takes its place in the index. */
static void what_is_overwritten_goes_by_its_last_expiry(UNUSED void **state)
{
	static const int64_t expiries[] = {0, T0 + HOUR_MS, T0 + 2 * HOUR_MS, T0 + HOUR_MS};
	struct rig rig;
	rig_open(&rig, &engine);
	for (size_t from = 0; from < ARRAY_LEN(expiries); from++) {
		for (size_t to = 0; to < ARRAY_LEN(expiries); to++) {
			char column[] = {(char)('a' + from), (char)('a' + to), 0};
			rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(slice_of(column)), TEXT("v"),
				     5, expiries[from]);
			rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(slice_of(column)), TEXT("v"),
				     6, expiries[to]);
			rig_verify(&rig);
		}
	}
	rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("again")), TEXT("v"), 5, 0);
	rig_cell_delete(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("again")), 6);
	rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("again")), TEXT("v"), 7, 0);
	expect_held(&rig, 17, 0);
	rig_advance_ms(&rig, DAY_MS + HOUR_MS + 60000);
	expect_held(&rig, 9, 0);
	rig_advance_ms(&rig, HOUR_MS);
	expect_held(&rig, 5, 0);
	/* A row's deletion takes its cells out of the index. */
	rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("later")), TEXT("v"), 8,
		     T0 + 100 * HOUR_MS);
	rig_row_delete(&rig, TABLE_DEVICES, ROW, 8);
	expect_held(&rig, 0, 0);
	rig_close(&rig);
}

/* ---- Verify, repair, compaction -------------------------------------------------------------- */

static void change_file(struct rig *rig, void (*change)(struct env *env, MDB_txn *txn))
{
	struct lmdb_options options = options_of(&rig->clock.clock);
	struct errbuf e = {""};
	struct env env;
	MDB_txn *txn;
	store_close(rig->store);
	options.files = files_real();
	if (env_open(&env, &options, &e))
		fail_msg("%s", e.text);
	assert_int_equal(mdb_txn_begin(env.mdb, NULL, 0, &txn), 0);
	change(&env, txn);
	assert_int_equal(mdb_txn_commit(txn), 0);
	env_close(&env);
	struct lmdb_options look = options_of(&rig->clock.clock);
	look.inspect = true;
	if (lmdb_open(&look, &rig->store, &e))
		fail_msg("%s", e.text);
}

/* Of the one thing that verify finds. */
static void expect_problem(struct rig *rig, const char *what)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = store_read_add(read, STORE_VERIFY);
	char text[512] = "";
	do {
		assert_int_equal(rig_read(rig, read), 0);
		for (size_t i = 0; i < request->verify.sentence_count; i++)
			snprintf(text, sizeof(text), "%s", request->verify.sentences[i]);
	} while (request->more);
	assert_int_equal(request->verify.problems, 1);
	if (!strstr(text, what))
		fail_msg("%s", text);
	store_read_free(read);
}

static void row_bytes(uint8_t to[CELL_ROW_KEY_BYTES], const char *key)
{
	cell_row_key(TABLE_DEVICES, slice_of(key), to);
}

static const struct cell_row deleted_now = {.is_deleted = true, .stamp_us = 5, .deleted_ms = T0};

static void take_row_out(struct env *env, MDB_txn *txn)
{
	uint8_t row[CELL_ROW_KEY_BYTES];
	row_bytes(row, "row");
	uint32_t minute = sweep_row_minute(&deleted_now);
	assert_true(sweep_index_has_row(env, txn, row, minute));
	assert_int_equal(sweep_index_delete_row(env, txn, row, minute), 0);
}

static void point_to_nothing(struct env *env, MDB_txn *txn)
{
	uint8_t row[CELL_ROW_KEY_BYTES];
	row_bytes(row, "no such row");
	assert_int_equal(sweep_index_put_row(env, txn, row, SWEEP_NOW), 0);
}

static void point_to_another_time(struct env *env, MDB_txn *txn)
{
	uint8_t row[CELL_ROW_KEY_BYTES];
	row_bytes(row, "row");
	uint32_t minute = sweep_row_minute(&deleted_now);
	assert_int_equal(sweep_index_put_row(env, txn, row, minute + 1), 0);
}

static struct slice cell_bytes(struct cell_key *key)
{
	cell_key_make(TABLE_DEVICES, SLICE("row"), SLICE("a"), key);
	return cell_key_slice(key);
}

/* Of the cell that the tests put: it expires in an hour. */
static uint32_t cell_minute(void)
{
	const struct cell cell = {.stamp_us = 5, .expires_ms = T0 + HOUR_MS};
	return sweep_cell_minute(TABLE_DEVICES, &cell);
}

static void take_cell_out(struct env *env, MDB_txn *txn)
{
	struct cell_key key;
	assert_true(sweep_index_has_cell(env, txn, cell_bytes(&key), cell_minute()));
	assert_int_equal(
		sweep_index_move_cell(env, txn, cell_bytes(&key), cell_minute(), SWEEP_NEVER), 0);
}

static void point_to_no_cell(struct env *env, MDB_txn *txn)
{
	struct cell_key key;
	cell_key_make(TABLE_DEVICES, SLICE("row"), SLICE("b"), &key);
	assert_int_equal(sweep_index_move_cell(env, txn, cell_key_slice(&key), SWEEP_NEVER, 7), 0);
}

static void point_to_a_cell_of_another_time(struct env *env, MDB_txn *txn)
{
	struct cell_key key;
	assert_int_equal(
		sweep_index_move_cell(env, txn, cell_bytes(&key), SWEEP_NEVER, cell_minute() + 1),
		0);
}

static void the_index_is_compared_with_what_it_is_of(UNUSED void **state)
{
	static const struct {
		void (*change)(struct env *env, MDB_txn *txn);
		const char *problem;
	} cases[] = {
		{take_row_out, "cell_rows: "},
		{take_row_out, "its deletion is not in the index"},
		{point_to_nothing, "sweep_index: "},
		{point_to_nothing, "it points to nothing"},
		{point_to_another_time, "is due at another time"},
		{take_cell_out, "cells: "},
		{take_cell_out, "it is not in the index"},
		{point_to_no_cell, "it points to nothing"},
		{point_to_a_cell_of_another_time, "is due at another time"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rig rig;
		rig_open(&rig, &engine);
		rig_row_delete(&rig, TABLE_DEVICES, ROW, 5);
		rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("a")), TEXT("v"), 6,
			     T0 + HOUR_MS);
		rig_settle(&rig);
		rig_verify(&rig);
		change_file(&rig, cases[i].change);
		expect_problem(&rig, cases[i].problem);
		rig_reopen(&rig);
		rig_close(&rig);
	}
}

static void nothing_is_lost(UNUSED void *context, const struct lmdb_lost *lost)
{
	fail_msg("%s is lost: %s", lost->what, lost->why);
}

/* The copy has rows that are deleted as such, whether the index of the old one said so or not. */
static void repair_makes_the_index_again(UNUSED void **state)
{
	struct rig rig;
	struct errbuf e = {""};
	struct lmdb_repaired done;
	char copy[sizeof(dir.path) + 8];
	rig_open(&rig, &engine);
	rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("a")), TEXT("v"), 6, T0 + HOUR_MS);
	rig_row_delete(&rig, TABLE_DEVICES, ROW, 5);
	rig_settle(&rig);
	change_file(&rig, take_row_out);
	change_file(&rig, take_cell_out);
	store_close(rig.store);
	snprintf(copy, sizeof(copy), "%s/copy", dir.path);
	const struct lmdb_options old = options_of(&rig.clock.clock);
	if (lmdb_repair(&old, copy, nothing_is_lost, NULL, &done, &e))
		fail_msg("%s", e.text);
	struct lmdb_options options = options_of(&rig.clock.clock);
	options.path = copy;
	assert_int_equal(lmdb_open(&options, &rig.store, &e), 0);
	rig_verify(&rig);
	rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("b")), TEXT("late"), 5, 0);
	assert_int_equal(seen(&rig), 1);
	rig_settle(&rig);
	rig_verify(&rig);
	rig_advance_ms(&rig, 2 * STORE_TOMBSTONE_MS);
	rig_settle(&rig);
	assert_int_equal(held(&rig).samples, 0);
	assert_int_equal(held(&rig).rows, 0);
	rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("b")), TEXT("a day after it"), 5, 0);
	assert_int_equal(seen(&rig), 1);
	rig_close(&rig);
}

static void compaction_keeps_the_index(UNUSED void **state)
{
	struct rig rig;
	struct errbuf e = {""};
	struct lmdb_compaction done;
	rig_open(&rig, &engine);
	rig_row_delete(&rig, TABLE_DEVICES, ROW, 5);
	store_close(rig.store);
	const struct lmdb_options options = options_of(&rig.clock.clock);
	if (lmdb_compact(&options, false, &done, &e))
		fail_msg("%s", e.text);
	rig.store = open_again(&rig.clock.clock);
	rig_verify(&rig);
	rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("a")), TEXT("late"), 5, 0);
	assert_int_equal(seen(&rig), 0);
	rig_close(&rig);
}

/* ---- A store of before the index --------------------------------------------------------------
 */

/* As format 2 had it: every field of a header is there. */
static size_t old_form(struct slice key, const struct cell *cell, uint8_t to[PAGE_VALUE_MAX_BYTES])
{
	uint8_t *p = to + RECORD_HEADER_BYTES;
	*p++ = (uint8_t)cell->flags;
	memcpy(p, &cell->stamp_us, 8);
	memcpy(p + 8, &cell->expires_ms, 8);
	memcpy(p + 16, &cell->version, 8);
	memcpy(p + 24, &cell->blob, 8);
	memcpy(p + 32, &cell->blob_len, 8);
	p += cell->flags & CELL_IN_BLOB ? 40 : 24;
	if (cell->inlined.len)
		memcpy(p, cell->inlined.data, cell->inlined.len);
	p += cell->inlined.len;
	record_seal(key, to, (size_t)(p - to));
	return (size_t)(p - to);
}

static void make_cells_old(struct env *env, MDB_txn *txn)
{
	struct cell_key at = {.len = 1};
	for (;;) {
		MDB_cursor *cursor;
		uint8_t bytes[PAGE_VALUE_MAX_BYTES];
		struct slice key = cell_key_slice(&at), value;
		struct cell cell;
		assert_int_equal(mdb_cursor_open(txn, env->dbi[DB_CELLS], &cursor), 0);
		int err = env_seek(cursor, &key, &value);
		mdb_cursor_close(cursor);
		if (err)
			break;
		assert_int_equal(cell_parse(key, value, &cell), 0);
		memcpy(at.bytes, key.data, key.len);
		at.len = key.len;
		size_t len = old_form(key, &cell, bytes);
		assert_int_equal(env_put(txn, env->dbi[DB_CELLS], cell_key_slice(&at),
					 (struct slice){(const char *)bytes, len}),
				 0);
		at.bytes[at.len++] = 0; /* just behind it */
	}
}

/* No such database either, and no note of it. */
static void make_old(struct env *env, MDB_txn *txn)
{
	const uint32_t version = 2;
	make_cells_old(env, txn);
	assert_int_equal(mdb_drop(txn, env->dbi[DB_SWEEP_INDEX], 1), 0);
	assert_int_equal(env_delete(txn, env->dbi[DB_META], SLICE(ENV_SWEEP_INDEX)), 0);
	assert_int_equal(env_put(txn, env->dbi[DB_META], SLICE("format"),
				 (struct slice){(const char *)&version, sizeof(version)}),
			 0);
}

static bool is_indexed(struct env *env)
{
	struct cell_key at;
	MDB_txn *txn;
	bool is_whole;
	assert_int_equal(mdb_txn_begin(env->mdb, NULL, MDB_RDONLY, &txn), 0);
	assert_int_equal(sweep_index_note_read(env, txn, &is_whole, &at), 0);
	mdb_txn_abort(txn);
	return is_whole;
}

static void fill_and_die(struct rig *rig)
{
	fault_arm("store.committed", FAULT_KILL, 2, 1);
	rig->store = open_again(&rig->clock.clock);
	rig_settle(rig);
}

/* It is filled in slices, goes on after a kill, and is whole then. What is due goes, and what is
 * changed meanwhile is in it once. */
static void a_store_of_before_the_index(UNUSED void **state)
{
	struct rig rig;
	int status;
	rig_open(&rig, &engine);
	put_large(&rig, ROW);
	put_many(&rig, TABLE_DEVICES, "expires", 30000, T0 + HOUR_MS);
	put_many(&rig, TABLE_SUMMARIES, "expires", 7, T0 + 30 * (int64_t)DAY_MS);
	rig_cell_delete(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("000007")), 6);
	static char bytes[20000];
	struct store_cell cell;
	rig_cell_put(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("000008")),
		     (struct slice){bytes, sizeof(bytes)}, 6, T0 + 30 * (int64_t)DAY_MS);
	change_file(&rig, make_old);
	/* To look at it needs none. */
	rig_verify(&rig);
	assert_true(rig_cell_get(&rig, TABLE_DEVICES, ROW, PARTS(TEXT("000008")), &cell));
	assert_slice(cell.value, (struct slice){bytes, sizeof(bytes)});
	assert_int_equal(cell.stamp_us, 6);
	assert_int_equal(cell.expires_ms, T0 + 30 * (int64_t)DAY_MS);
	assert_int_equal(held(&rig).samples, LARGE + 30000);
	store_close(rig.store);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		fill_and_die(&rig);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	struct lmdb_options options = options_of(&rig.clock.clock);
	struct errbuf e = {""};
	struct env env;
	options.files = files_real();
	assert_int_equal(env_open(&env, &options, &e), 0);
	assert_false(is_indexed(&env));
	env_close(&env);
	rig.store = open_again(&rig.clock.clock);
	rig_cell_put(&rig, TABLE_SUMMARIES, PARTS(TEXT("expires"), TEXT("")), PARTS(TEXT("000000")),
		     TEXT("v"), 6, 0);
	rig_cell_put(&rig, TABLE_DEVICES, PARTS(TEXT("expires")), PARTS(TEXT("000000")), TEXT("v"),
		     6, T0 + 30 * (int64_t)DAY_MS);
	rig_settle(&rig);
	rig_verify(&rig);
	rig_advance_ms(&rig, DAY_MS + HOUR_MS + 60000);
	rig_settle(&rig);
	assert_int_equal(held(&rig).samples, LARGE - 1 + 1);
	assert_int_equal(rig_stats(&rig).tables[TABLE_SUMMARIES].samples, 7);
	rig_verify(&rig);
	rig_advance_ms(&rig, 30 * (int64_t)DAY_MS);
	rig_settle(&rig);
	assert_int_equal(held(&rig).samples, LARGE - 2);
	assert_int_equal(rig_stats(&rig).blob_bytes, 0);
	assert_int_equal(rig_stats(&rig).tables[TABLE_SUMMARIES].samples, 1);
	rig_verify(&rig);
	store_close(rig.store);
	assert_int_equal(env_open(&env, &options, &e), 0);
	assert_true(is_indexed(&env));
	env_close(&env);
	rig.store = open_again(&rig.clock.clock);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_row_goes_in_slices),
		cmocka_unit_test(a_slice_that_fails_is_done_again),
		cmocka_unit_test(a_kill_between_two_slices),
		cmocka_unit_test(a_deletion_is_forgotten),
		cmocka_unit_test(a_sweep_costs_what_it_removes),
		cmocka_unit_test(what_is_due_goes_in_its_minute),
		cmocka_unit_test(what_is_overwritten_goes_by_its_last_expiry),
		cmocka_unit_test(the_index_is_compared_with_what_it_is_of),
		cmocka_unit_test(repair_makes_the_index_again),
		cmocka_unit_test(compaction_keeps_the_index),
		cmocka_unit_test(a_store_of_before_the_index),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
