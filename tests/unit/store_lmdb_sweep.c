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
	return rig_stats(rig).tables[TABLE_OOPS];
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
			assert_int_equal(store_cell_put(write, TABLE_OOPS, key,
							PARTS(slice_of(column)),
							(struct slice){bytes, sizeof(bytes)}, 5, 0),
					 0);
		}
		rig_commit(rig, write);
	}
}

static size_t seen(struct rig *rig)
{
	struct store_cell_scan scan = {.table = TABLE_OOPS, .key = *ROW};
	return rig_scan(rig, &scan, 0).count;
}

/* ---- Rows that are deleted ------------------------------------------------------------------- */

static void a_large_row_goes_in_slices(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, &engine);
	put_large(&rig, ROW);
	rig_cell_put(&rig, TABLE_OOPS, ROW, PARTS(TEXT("new")), TEXT("v"), 6, 0);
	int64_t commits = stat_get(STAT_store_commits), swept = stat_get(STAT_store_swept_cells);
	rig_row_delete(&rig, TABLE_OOPS, ROW, 5);
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
	rig_row_delete(&rig, TABLE_OOPS, ROW, 5);
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
	rig_row_delete(rig, TABLE_OOPS, ROW, 5);
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
	assert_int_equal(rig_enumerate(&rig, TABLE_OOPS, 0, 0).count, held(&rig).samples > 1000);
	rig_verify(&rig);
	rig_reopen(&rig);
	rig_cell_put(&rig, TABLE_OOPS, ROW, PARTS(TEXT("000001")), TEXT("late"), 5, 0);
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
	rig_cell_put(&rig, TABLE_OOPS, ROW, PARTS(TEXT("a")), TEXT("v"), 5, 0);
	rig_cell_put(&rig, TABLE_OOPS, PARTS(TEXT("b")), PARTS(TEXT("a")), TEXT("v"), 6, 0);
	rig_row_delete(&rig, TABLE_OOPS, ROW, 5);
	rig_row_delete(&rig, TABLE_OOPS, PARTS(TEXT("b")), 5);
	rig_row_delete(&rig, TABLE_OOPS, PARTS(TEXT("c")), 5);
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
	cell_row_key(TABLE_OOPS, slice_of(key), to);
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

static void rows_and_index_are_compared(UNUSED void **state)
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
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rig rig;
		rig_open(&rig, &engine);
		rig_row_delete(&rig, TABLE_OOPS, ROW, 5);
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
	rig_cell_put(&rig, TABLE_OOPS, ROW, PARTS(TEXT("a")), TEXT("v"), 6, 0);
	rig_row_delete(&rig, TABLE_OOPS, ROW, 5);
	rig_settle(&rig);
	change_file(&rig, take_row_out);
	store_close(rig.store);
	snprintf(copy, sizeof(copy), "%s/copy", dir.path);
	const struct lmdb_options old = options_of(&rig.clock.clock);
	if (lmdb_repair(&old, copy, nothing_is_lost, NULL, &done, &e))
		fail_msg("%s", e.text);
	struct lmdb_options options = options_of(&rig.clock.clock);
	options.path = copy;
	assert_int_equal(lmdb_open(&options, &rig.store, &e), 0);
	rig_verify(&rig);
	rig_cell_put(&rig, TABLE_OOPS, ROW, PARTS(TEXT("b")), TEXT("late"), 5, 0);
	assert_int_equal(seen(&rig), 1);
	rig_settle(&rig);
	rig_verify(&rig);
	rig_advance_ms(&rig, 2 * STORE_TOMBSTONE_MS);
	rig_settle(&rig);
	rig_cell_put(&rig, TABLE_OOPS, ROW, PARTS(TEXT("b")), TEXT("a day after it"), 5, 0);
	assert_int_equal(seen(&rig), 2);
	rig_close(&rig);
}

static void compaction_keeps_the_index(UNUSED void **state)
{
	struct rig rig;
	struct errbuf e = {""};
	struct lmdb_compaction done;
	rig_open(&rig, &engine);
	rig_row_delete(&rig, TABLE_OOPS, ROW, 5);
	store_close(rig.store);
	const struct lmdb_options options = options_of(&rig.clock.clock);
	if (lmdb_compact(&options, false, &done, &e))
		fail_msg("%s", e.text);
	rig.store = open_again(&rig.clock.clock);
	rig_verify(&rig);
	rig_cell_put(&rig, TABLE_OOPS, ROW, PARTS(TEXT("a")), TEXT("late"), 5, 0);
	assert_int_equal(seen(&rig), 0);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_row_goes_in_slices),
		cmocka_unit_test(a_slice_that_fails_is_done_again),
		cmocka_unit_test(a_kill_between_two_slices),
		cmocka_unit_test(a_deletion_is_forgotten),
		cmocka_unit_test(rows_and_index_are_compared),
		cmocka_unit_test(repair_makes_the_index_again),
		cmocka_unit_test(compaction_keeps_the_index),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
