/* The embedded engine where the contract has nothing to say: what it refuses to open, no room, a
 * commit that fails, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "base/fault.h"
#include "base/random.h"
#include "base/stats.h"
#include "lmdb_dir.h"
#include "store/lmdb/env.h"
#include "store/lmdb/journal.h"
#include "store/lmdb/ranges.h"
#include "store/lmdb/tenant_shapes.h"

#define T0 INT64_C(1600000000000)

struct rig {
	struct lmdb_dir dir;
	struct task_queue queue;
	struct store *store;
	struct lmdb_options options;
	int err;      /* of the last completion */
	int dead_err; /* what on_dead was told */
	uint64_t handle;
	enum retention_class retention;
};

static void write_done(struct store_write *write, int err)
{
	((struct rig *)write->owner)->err = err;
}

static void read_done(struct store_read *read, int err)
{
	((struct rig *)read->owner)->err = err;
}

static void told_dead(void *context, int err)
{
	((struct rig *)context)->dead_err = err;
}

static int set_up(void **state)
{
	struct rig *rig = mem_zalloc(sizeof(*rig));
	lmdb_dir_make(&rig->dir);
	task_queue_init(&rig->queue);
	rig->options = (struct lmdb_options){.path = rig->dir.path,
					     .not_durable = true,
					     .map_bytes = 64 << 20,
					     .on_dead = told_dead,
					     .context = rig};
	rig->retention = RETENTION_EVER;
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;
	fault_disarm_all();
	store_close(rig->store);
	task_queue_release(&rig->queue);
	lmdb_dir_remove(&rig->dir);
	mem_free(rig);
	return 0;
}

static int open_store(struct rig *rig, struct errbuf *e)
{
	return lmdb_open(&rig->options, &rig->store, e);
}

static void close_store(struct rig *rig)
{
	store_close(rig->store);
	rig->store = NULL;
}

static struct store_read *new_read(struct rig *rig)
{
	struct store_read *read = store_read_new(rig->store, 64 << 20);
	read->executor = &rig->queue.executor;
	read->done = read_done;
	read->owner = rig;
	read->now_ms = T0;
	return read;
}

static int run_read(struct rig *rig, struct store_read *read)
{
	assert_int_equal(store_read_submit(read), 0);
	task_queue_wait(&rig->queue);
	return rig->err;
}

static void open_series(struct rig *rig)
{
	struct slice metric = SLICE("m");
	struct store_read *read = new_read(rig);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	request->series_open =
		(struct store_series_open){.tenant = SLICE("t"), .metrics = &metric, .count = 1};
	assert_int_equal(run_read(rig, read), 0);
	rig->handle = request->series_open.handles[0];
	store_read_free(read);
}

static void open_with_series(struct rig *rig)
{
	struct errbuf e = {""};
	if (open_store(rig, &e))
		fail_msg("%s", e.text);
	open_series(rig);
}

/* Samples number from .. to: sample i at T0 + i s with value i. What the submission or the
 * completion says. */
static int put(struct rig *rig, int64_t from, int64_t to)
{
	struct store_write *write = store_write_new(rig->store, 32 << 20);
	write->executor = &rig->queue.executor;
	write->done = write_done;
	write->owner = rig;
	for (int64_t i = from; i < to; i++) {
		/* A third is a double without pattern, so that blocks do not shrink to nothing. */
		struct value value = value_f64((double)i / 3);
		assert_int_equal(
			store_append(write, &(struct store_target){TABLE_DATA_RAW, rig->retention},
				     T0 + 1000 * i, &rig->handle, 1, &value),
			0);
	}
	int err = store_write_submit(write);
	if (!err) {
		task_queue_wait(&rig->queue);
		err = rig->err;
	}
	store_write_free(write);
	return err;
}

/* How many samples there are, each of which must be the one that was put; or an error. */
static int64_t count(struct rig *rig)
{
	struct store_read *read = new_read(rig);
	struct store_request *request = store_read_add(read, STORE_RANGE);
	request->range = (struct store_range){.table = TABLE_DATA_RAW,
					      .handles = &rig->handle,
					      .handle_count = 1,
					      .start_ms = T0,
					      .end_ms = INT64_MAX};
	int64_t counted = run_read(rig, read);
	const struct store_points *points = request->range.points;
	for (size_t i = 0; counted >= 0 && i < points->count; i++) {
		double expected = (double)((points->ts_ms[i] - T0) / 1000) / 3;
		struct value actual = {points->bits[0][i], (enum value_type)points->types[0][i]};
		assert_true(value_identical(actual, value_f64(expected)));
	}
	if (counted >= 0)
		counted = (int64_t)points->count;
	store_read_free(read);
	return counted;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void second_process_is_named(void **state)
{
	struct rig *rig = *state;
	struct errbuf e = {""};
	struct store *second = NULL;
	char pid[32];
	assert_int_equal(open_store(rig, &e), 0);
	assert_int_equal(lmdb_open(&rig->options, &second, &e), ERR_LOCKED);
	snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
	assert_non_null(strstr(e.text, pid));
}

static void nothing_there_is_said(void **state)
{
	struct rig *rig = *state;
	struct errbuf e = {""};
	rig->options.must_exist = true;
	assert_int_equal(open_store(rig, &e), ERR_NOT_FOUND);
	assert_non_null(strstr(e.text, rig->dir.path));
}

static void looking_makes_no_directory(void **state)
{
	struct rig *rig = *state;
	struct errbuf e = {""};
	char path[300];
	struct stat st;
	snprintf(path, sizeof(path), "%s/not/there", rig->dir.path);
	for (int i = 0; i < 2; i++) {
		struct lmdb_options options = {
			.path = path, .inspect = i == 0, .must_exist = i == 1};
		assert_int_equal(lmdb_open(&options, &rig->store, &e), ERR_NOT_FOUND);
		assert_non_null(strstr(e.text, "no store in "));
		assert_int_not_equal(stat(path, &st), 0);
	}
	snprintf(path, sizeof(path), "%s/file", rig->dir.path);
	assert_int_equal(files_real()->replace(files_real(), path, SLICE("x"), 0600), 0);
	struct lmdb_options options = {.path = path, .inspect = true};
	assert_int_equal(lmdb_open(&options, &rig->store, &e), -ENOTDIR);
	assert_non_null(strstr(e.text, "file is not a directory"));
	assert_int_equal(files_real()->remove(files_real(), path), 0);
	rig->store = NULL;
}

/* Changes the environment behind the engine's back, as another program would. */
static void with_env(struct rig *rig, void (*change)(struct env *env, MDB_txn *txn))
{
	struct lmdb_options options = rig->options;
	struct errbuf e;
	struct env env;
	MDB_txn *txn;
	options.clock = clock_real();
	options.files = files_real();
	assert_int_equal(env_open(&env, &options, &e), 0);
	assert_int_equal(mdb_txn_begin(env.mdb, NULL, 0, &txn), 0);
	change(&env, txn);
	assert_int_equal(mdb_txn_commit(txn), 0);
	env_close(&env);
}

static void raise_version(struct env *env, MDB_txn *txn)
{
	uint32_t version = FORMAT_VERSION + 1;
	assert_int_equal(env_put(txn, env->dbi[DB_META], SLICE("format"),
				 (struct slice){(const char *)&version, sizeof(version)}),
			 0);
}

static void lower_version(struct env *env, MDB_txn *txn)
{
	uint32_t version = 1;
	assert_int_equal(env_put(txn, env->dbi[DB_META], SLICE("format"),
				 (struct slice){(const char *)&version, sizeof(version)}),
			 0);
}

static void assert_present_version(struct env *env, MDB_txn *txn)
{
	struct slice value;
	assert_int_equal(env_get(txn, env->dbi[DB_META], SLICE("format"), &value), 0);
	assert_int_equal(value.len, 4);
	assert_memory_equal(value.data, "\4\0\0\0", 4);
}

static void an_earlier_format_is_raised(void **state)
{
	struct rig *rig = *state;
	struct errbuf e = {""};
	assert_int_equal(open_store(rig, &e), 0);
	close_store(rig);
	with_env(rig, lower_version);
	assert_int_equal(open_store(rig, &e), 0);
	close_store(rig);
	with_env(rig, assert_present_version);
}

static void newer_format_is_refused(void **state)
{
	struct rig *rig = *state;
	struct errbuf e = {""};
	assert_int_equal(open_store(rig, &e), 0);
	close_store(rig);
	with_env(rig, raise_version);
	assert_int_equal(open_store(rig, &e), ERR_VERSION);
	assert_non_null(strstr(e.text, "format 5"));
	rig->store = NULL;
}

static void shortened_file_is_refused(void **state)
{
	struct rig *rig = *state;
	struct errbuf e = {""};
	char file[300];
	struct stat st;
	open_with_series(rig);
	assert_int_equal(put(rig, 0, 1000), 0);
	close_store(rig);
	snprintf(file, sizeof(file), "%s/data.mdb", rig->dir.path);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(truncate(file, st.st_size - 4096), 0);
	assert_int_equal(open_store(rig, &e), ERR_DAMAGED);
	assert_non_null(strstr(e.text, "data.mdb is damaged"));
	rig->store = NULL;
}

/* Forward a year, back to before the start: nothing is lost, nothing ends, and it goes on. */
static void the_clock_jumps(void **state)
{
	struct rig *rig = *state;
	struct errbuf e = {""};
	static struct clock_virtual clock; /* the store has it until it is closed behind this */
	clock_virtual_init(&clock, T0 * 1000);
	rig->options.clock = &clock.clock;
	open_with_series(rig);
	static const int64_t jumps_us[] = {INT64_C(31536000000000), -INT64_C(63072000000000), 1};
	for (size_t i = 0; i < ARRAY_LEN(jumps_us); i++) {
		assert_int_equal(put(rig, (int64_t)i * 100, (int64_t)i * 100 + 100), 0);
		clock.wall_us += jumps_us[i];
		clock_virtual_advance(&clock, 2000000);
	}
	assert_int_equal(count(rig), 300);
	close_store(rig);
	assert_int_equal(open_store(rig, &e), 0);
	assert_int_equal(count(rig), 300);
}

/* ---- Commits that fail ------------------------------------------------------------------------
 */

static void full_store_refuses_and_recovers(void **state)
{
	enum { STEP = 2000 };
	struct rig *rig = *state;
	rig->options.map_bytes = 2 << 20;
	open_with_series(rig);
	int64_t there = 0;
	int err = 0;
	while (!err) {
		err = put(rig, there, there + STEP);
		there += err ? 0 : STEP;
		assert_true(there < 10000000);
	}
	assert_int_equal(err, ERR_FULL);
	assert_true(there > 0);
	assert_int_equal(count(rig), there);
	/* Extents take less than the journal: once that is sealed there is room, by itself. The
	 * store looks every second; there is no event to wait for. */
	for (int tries = 0; err == ERR_FULL && tries < 2000; tries++) {
		usleep(10000);
		err = put(rig, there, there + 1);
	}
	assert_int_equal(err, 0);
	assert_int_equal(count(rig), there + 1);
}

static void failed_commit_ends_the_store(void **state)
{
	struct rig *rig = *state;
	open_with_series(rig);
	assert_int_equal(put(rig, 0, 100), 0);
	fault_arm("store.sync", FAULT_ERROR, 1, 1);
	assert_int_equal(put(rig, 100, 200), ERR_UNKNOWN);
	fault_disarm_all();
	assert_int_equal(put(rig, 100, 200), ERR_READ_ONLY);
	assert_true(rig->dead_err < 0);
	assert_int_equal(count(rig), 100);
	close_store(rig);
	open_with_series(rig);
	/* Unknown means just that: all of it or nothing. */
	assert_true(count(rig) == 100 || count(rig) == 200);
	assert_int_equal(put(rig, 100, 200), 0);
	assert_int_equal(count(rig), 200);
}

/* ---- Damage -----------------------------------------------------------------------------------
 */

static enum db flip_db;

/* Flips one bit in the middle of the last value of a database. */
static void flip_bit(struct env *env, MDB_txn *txn)
{
	struct slice key, value;
	uint8_t key_copy[512], copy[PAGE_VALUE_MAX_BYTES];
	assert_int_equal(env_last(txn, env->dbi[flip_db], &key, &value), 0);
	memcpy(key_copy, key.data, key.len);
	memcpy(copy, value.data, value.len);
	copy[value.len / 2] ^= 4;
	assert_int_equal(env_put(txn, env->dbi[flip_db],
				 (struct slice){(const char *)key_copy, key.len},
				 (struct slice){(const char *)copy, value.len}),
			 0);
}

/* How many, the sentence of the first into found_sentence. */
static char found_sentence[200];

static uint64_t problems(struct rig *rig)
{
	found_sentence[0] = 0;
	struct store_read *read = new_read(rig);
	struct store_request *request = store_read_add(read, STORE_VERIFY);
	do {
		assert_int_equal(run_read(rig, read), 0);
		if (request->verify.sentence_count && !found_sentence[0])
			snprintf(found_sentence, sizeof(found_sentence), "%s",
				 request->verify.sentences[0]);
	} while (request->more);
	uint64_t found = request->verify.problems;
	store_read_free(read);
	return found;
}

static void damaged_extent_is_an_error_never_a_number(void **state)
{
	struct rig *rig = *state;
	open_with_series(rig);
	assert_int_equal(put(rig, 0, 1000), 0);
	assert_int_equal(lmdb_settle(rig->store), 0);
	assert_int_equal(problems(rig), 0);
	close_store(rig);
	flip_db = DB_EXTENTS;
	with_env(rig, flip_bit);
	open_with_series(rig);
	assert_int_equal(count(rig), ERR_DAMAGED);
	assert_int_equal(problems(rig), 1);
	/* And what comes later is taken and kept, beside the damage. */
	assert_int_equal(put(rig, 500, 2000), 0);
	assert_int_equal(lmdb_settle(rig->store), 0);
	assert_int_equal(count(rig), ERR_DAMAGED);
	assert_int_equal(problems(rig), 1);
	assert_int_equal(put(rig, 100000, 100100), 0);
}

/* The journal still holds records of the damaged group: the start goes on beside it. */
static void replay_goes_on_beside_damage(void **state)
{
	struct rig *rig = *state;
	open_with_series(rig);
	assert_int_equal(put(rig, 0, 1000), 0);
	assert_int_equal(lmdb_settle(rig->store), 0);
	assert_int_equal(put(rig, 1000, 1010), 0);
	close_store(rig);
	flip_db = DB_EXTENTS;
	with_env(rig, flip_bit);
	open_with_series(rig);
	assert_int_equal(count(rig), ERR_DAMAGED);
	assert_int_equal(problems(rig), 1);
	assert_int_equal(put(rig, 2000, 2010), 0);
}

static uint64_t extent_page;
static int64_t extent_count;

/* The page of an extent in the middle that has one of its own: LMDB's header of 16 bytes, which
 * begins with the page's number, is in front of the value. */
static void find_extent_page(struct env *env, MDB_txn *txn)
{
	struct slice key = SLICE("\0"), value;
	MDB_cursor *cursor;
	assert_int_equal(mdb_cursor_open(txn, env->dbi[DB_EXTENTS], &cursor), 0);
	int err = env_seek(cursor, &key, &value);
	extent_page = 0;
	for (extent_count = 0; !err; extent_count++) {
		if (value.len > 2100 && (extent_count < 5 || !extent_page))
			memcpy(&extent_page, value.data - 16, sizeof(extent_page));
		err = env_next(cursor, &key, &value);
	}
	mdb_cursor_close(cursor);
	assert_int_not_equal(extent_page, 0);
}

/* The header says that the page is two: what it holds can be read, but not freed. */
static void damage_extent_page(struct rig *rig)
{
	char path[300];
	uint32_t pages;
	with_env(rig, find_extent_page);
	snprintf(path, sizeof(path), "%s/data.mdb", rig->dir.path);
	FILE *file = fopen(path, "r+");
	assert_non_null(file);
	assert_int_equal(fseek(file, (long)extent_page * 4096 + 12, SEEK_SET), 0);
	assert_int_equal(fread(&pages, sizeof(pages), 1, file), 1);
	assert_int_equal(pages, 1);
	pages = 2;
	assert_int_equal(fseek(file, (long)extent_page * 4096 + 12, SEEK_SET), 0);
	assert_int_equal(fwrite(&pages, sizeof(pages), 1, file), 1);
	assert_int_equal(fclose(file), 0);
}

/* Upkeep that cannot rewrite a group whole leaves it as it is. */
static void a_page_that_cannot_be_freed_costs_nothing(void **state)
{
	struct rig *rig = *state;
	open_with_series(rig);
	assert_int_equal(put(rig, 0, 20000), 0);
	assert_int_equal(lmdb_settle(rig->store), 0);
	assert_int_equal(count(rig), 20000);
	close_store(rig);
	damage_extent_page(rig);
	open_with_series(rig);
	assert_int_equal(problems(rig), 1);
	assert_int_equal(count(rig), 20000);
	assert_int_equal(put(rig, 500, 501), 0); /* late: merged by writing the group again */
	assert_int_equal(lmdb_settle(rig->store), 0);
	assert_int_equal(count(rig), 20000);
	assert_true(problems(rig) >= 1);
}

static void such_a_page_does_not_stop_expiry(void **state)
{
	struct rig *rig = *state;
	static struct clock_virtual clock;
	clock_virtual_init(&clock, T0 * 1000);
	rig->options.clock = &clock.clock;
	rig->retention = RETENTION_2_DAYS;
	open_with_series(rig);
	assert_int_equal(put(rig, 0, 20000), 0);
	assert_int_equal(lmdb_settle(rig->store), 0);
	close_store(rig);
	damage_extent_page(rig);
	open_with_series(rig);
	int64_t before = stat_get(STAT_store_expired_extents);
	clock_virtual_advance(&clock, INT64_C(5) * 86400 * 1000000);
	assert_int_equal(lmdb_settle(rig->store), 0);
	assert_int_equal(stat_get(STAT_store_expired_extents) - before, extent_count - 1);
	assert_int_equal(problems(rig), 1);
	rig->options.clock = NULL;
	close_store(rig);
}

static void full_store_registers_nothing(void **state)
{
	struct rig *rig = *state;
	struct slice metric = SLICE("another");
	rig->options.map_bytes = 2 << 20;
	open_with_series(rig);
	int err = 0;
	for (int64_t there = 0; !err; there += 2000)
		err = put(rig, there, there + 2000);
	assert_int_equal(err, ERR_FULL);
	struct store_read *read = new_read(rig);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	request->series_open =
		(struct store_series_open){.tenant = SLICE("t"), .metrics = &metric, .count = 1};
	/* It may have made room by itself meanwhile; registered or refused, never in between. */
	err = run_read(rig, read);
	assert_true(err == ERR_FULL ? request->series_open.handles[0] == 0
				    : err == 0 && request->series_open.handles[0] != 0);
	store_read_free(read);
}

static void damaged_journal_is_refused(void **state)
{
	struct rig *rig = *state;
	struct errbuf e = {""};
	open_with_series(rig);
	assert_int_equal(put(rig, 0, 1000), 0);
	close_store(rig);
	flip_db = DB_JOURNAL;
	with_env(rig, flip_bit);
	assert_int_equal(open_store(rig, &e), ERR_DAMAGED);
	assert_non_null(strstr(e.text, rig->dir.path));
	assert_non_null(strstr(e.text, "journal"));
	/* Each directory once. */
	assert_null(strstr(strstr(e.text, rig->dir.path) + 1, rig->dir.path));
	rig->store = NULL;
}

/* The name of the page in the sentence of the start that was refused. */
static void expect_named_by_both(struct rig *rig, const char *why)
{
	struct errbuf e = {""};
	char page[17] = "", named[100];
	assert_int_equal(open_store(rig, &e), ERR_DAMAGED);
	const char *at = strstr(e.text, ": page ");
	assert_non_null(at);
	memcpy(page, at + 7, 16);
	assert_int_equal(strspn(page, "0123456789abcdef"), 16);
	assert_non_null(strstr(at, why));
	rig->options.inspect = true;
	assert_int_equal(open_store(rig, &e), 0);
	assert_int_equal(problems(rig), 1);
	snprintf(named, sizeof(named), "journal: %s: ", page);
	assert_memory_equal(found_sentence, named, strlen(named));
	assert_string_equal(found_sentence + strlen(named), why);
	rig->options.inspect = false;
}

/* Samples 0 to 999, then 1000 to 1009 in a page of their own, which breaks. */
static void a_damaged_journal_can_be_looked_at(void **state)
{
	struct rig *rig = *state;
	open_with_series(rig);
	uint64_t handle = rig->handle;
	assert_int_equal(put(rig, 0, 1000), 0);
	assert_int_equal(put(rig, 1000, 1010), 0);
	close_store(rig);
	flip_db = DB_JOURNAL;
	with_env(rig, flip_bit);
	expect_named_by_both(rig, "the checksum or the header is wrong");
	rig->handle = handle;
	assert_int_equal(count(rig), 1000);
	assert_int_equal(put(rig, 2000, 2010), ERR_READ_ONLY);
	assert_int_equal(lmdb_settle(rig->store), ERR_READ_ONLY);
	close_store(rig);
	/* Looking changed nothing. */
	expect_named_by_both(rig, "the checksum or the header is wrong");
}

/* A page that is sound in itself, of a shape that was never registered. */
static void add_unknown_row(struct env *env, MDB_txn *txn)
{
	const struct store_target sheet = {TABLE_DATA_RAW, RETENTION_EVER, 0};
	struct journal_page page;
	struct record_chunk *chunk = NULL;
	struct arena arena;
	struct value value = value_f64(1);
	uint8_t key[8];
	size_t left, len;
	arena_init(&arena, 1 << 16);
	assert_int_equal(
		record_put_row(&arena, &chunk, &sheet, handle_of(77, 0, 0), 1, 1, T0, &value), 0);
	const uint8_t *at = chunk->bytes;
	left = chunk->used;
	const uint8_t *record = record_next(&at, &left, &len);
	journal_page_init(&page, 1000000, T0);
	assert_true(journal_page_add(&page, record, len));
	journal_page_finish(&page, key);
	assert_int_equal(env_put(txn, env->dbi[DB_JOURNAL],
				 (struct slice){(const char *)key, sizeof(key)},
				 (struct slice){(const char *)page.bytes, page.used}),
			 0);
	arena_release(&arena);
}

static void a_journal_of_unknown_shapes_can_be_looked_at(void **state)
{
	struct rig *rig = *state;
	open_with_series(rig);
	assert_int_equal(put(rig, 0, 10), 0);
	close_store(rig);
	with_env(rig, add_unknown_row);
	expect_named_by_both(rig, "a record's shape is not registered");
	assert_non_null(strstr(found_sentence, "00000000000f4240"));
}

static void open_of_tenant(struct rig *rig, struct slice tenant, const char *metric)
{
	struct slice metrics = slice_of(metric);
	struct store_read *read = new_read(rig);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	request->series_open =
		(struct store_series_open){.tenant = tenant, .metrics = &metrics, .count = 1};
	assert_int_equal(run_read(rig, read), 0);
	assert_int_equal(request->series_open.created, 1);
	store_read_free(read);
}

/* The tenant's series, in slices of two; how many shapes were looked at for them. */
static size_t list_of_tenant(struct rig *rig, struct slice tenant, int64_t *looked_at)
{
	size_t count = 0;
	struct store_token token = {.len = 0};
	int64_t before = stat_get(STAT_store_listed_shapes);
	for (bool more = true; more;) {
		struct store_read *read = new_read(rig);
		struct store_request *request = store_read_add(read, STORE_SERIES_LIST);
		request->series_list.tenant = tenant;
		request->series_list.limit = 2;
		request->token = token;
		assert_int_equal(run_read(rig, read), 0);
		for (size_t i = 0; i < request->series_list.count; i++)
			assert_true(slice_equal(request->series_list.series[i].tenant, tenant));
		count += request->series_list.count;
		more = request->more;
		token = request->token;
		store_read_free(read);
	}
	*looked_at = stat_get(STAT_store_listed_shapes) - before;
	return count;
}

/* The series of each new tenant are counted before its first one is registered: that passed over
 * the shapes of all tenants. Those of before a start are known as well. */
static void a_new_tenant_costs_no_look_at_the_others(void **state)
{
	struct rig *rig = *state;
	struct errbuf e;
	char name[16];
	int64_t looked_at;
	assert_int_equal(open_store(rig, &e), 0);
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		assert_int_equal(list_of_tenant(rig, slice_of(name), &looked_at), 0);
		assert_int_equal(looked_at, 0);
		open_of_tenant(rig, slice_of(name), "m");
	}
	for (int i = 1; i < 5; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		open_of_tenant(rig, SLICE("t7"), name);
	}
	for (int start = 0; start < 2; start++) {
		assert_int_equal(list_of_tenant(rig, SLICE("t7"), &looked_at), 5);
		/* Where a slice ends the next one looks once more. */
		assert_in_range(looked_at, 5, 7);
		assert_int_equal(list_of_tenant(rig, SLICE("t8"), &looked_at), 1);
		assert_int_equal(looked_at, 1);
		assert_int_equal(list_of_tenant(rig, SLICE("t200"), &looked_at), 0);
		assert_int_equal(looked_at, 0);
		close_store(rig);
		assert_int_equal(open_store(rig, &e), 0);
	}
}

/* Against a plain list: 5000 shapes of 700 tenants, of whom some have very many. */
static void shapes_of_tenants_are_found_in_order(void **state)
{
	(void)state;
	enum { SHAPES = 5000, TENANTS = 700 };
	static uint32_t tenant_of[SHAPES + 2];
	struct tenant_shapes shapes = {0};
	struct random random;
	char name[16];
	random_init(&random, 31);
	for (uint32_t id = 1; id <= SHAPES; id++) {
		uint64_t one = random_below(&random, TENANTS);
		tenant_of[id] = (uint32_t)random_below(&random, one + 1);
		snprintf(name, sizeof(name), "t%u", tenant_of[id]);
		tenant_shapes_add(&shapes, slice_of(name), id);
	}
	for (uint32_t tenant = 0; tenant < TENANTS; tenant++) {
		snprintf(name, sizeof(name), "t%u", tenant);
		uint32_t id = 0;
		do {
			uint32_t next = id + 1;
			while (next <= SHAPES && tenant_of[next] != tenant)
				next++;
			id = tenant_shapes_next(&shapes, slice_of(name), id + 1);
			assert_int_equal(id, next <= SHAPES ? next : 0);
		} while (id);
	}
	assert_int_equal(tenant_shapes_next(&shapes, SLICE("nobody"), 0), 0);
	assert_true(tenant_shapes_bytes(&shapes) >= SHAPES * sizeof(uint32_t));
	tenant_shapes_release(&shapes);
}

/* Against a plain array, in which ranges are counted by their beginnings. */
static void check_ranges(const struct ranges *ranges, const bool *has, size_t n)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(ranges_has(ranges, i), has[i]);
		count += has[i] && (i == 0 || !has[i - 1]);
	}
	assert_int_equal(ranges->count, count);
	/* Leaves of a page, any two neighbours of which have 128 ranges at least. */
	assert_true(ranges_bytes(ranges) <= (count / 64 + 2) * (4096 + 2 * sizeof(void *)));
}

/* All numbers, each once and some twice: at random, ascending, descending, and in both directions
 * first every second one, which is the most ranges there can be. */
static void ranges_are_those_of_an_array(void **state)
{
	(void)state;
	enum { NUMBERS = 20011, ORDERS = 5 }; /* a prime: every step comes by all numbers */
	static const size_t steps[ORDERS] = {7919, 1, NUMBERS - 1, 2, NUMBERS - 2};
	static bool has[NUMBERS];
	for (size_t order = 0; order < ORDERS; order++) {
		struct ranges ranges = {0};
		memset(has, 0, sizeof(has));
		assert_false(ranges_has(&ranges, 0));
		for (size_t i = 0, number = 0; i < NUMBERS; i++) {
			assert_true(ranges_add(&ranges, number));
			assert_false(ranges_add(&ranges, number));
			has[number] = true;
			number = (number + steps[order]) % NUMBERS;
			if (i % (NUMBERS / 8) == 0)
				check_ranges(&ranges, has, NUMBERS);
		}
		assert_int_equal(ranges.count, 1);
		assert_false(ranges_has(&ranges, NUMBERS));
		assert_true(ranges_add(&ranges, UINT64_MAX));
		assert_true(ranges_has(&ranges, UINT64_MAX));
		assert_int_equal(ranges.count, 2);
		assert_true(ranges_bytes(&ranges) <= 2 * 4096);
		ranges_release(&ranges);
	}
}

/* The second leaf has one range, and its neighbours are too full to take it in: then it joins the
 * range before it. */
static void a_leaf_whose_last_range_goes(void **state)
{
	(void)state;
	struct ranges ranges = {0};
	bool has[600] = {false};
	for (size_t number = 0; number <= 510; number += 2)
		has[number] = ranges_add(&ranges, number);
	has[509] = ranges_add(&ranges, 509);
	check_ranges(&ranges, has, ARRAY_LEN(has));
	assert_false(ranges_add(&ranges, 510));
	ranges_release(&ranges);
}

/* As handles of series that came one after the other go: about in order, and once more some. */
static void ranges_about_in_order(void **state)
{
	(void)state;
	enum { NUMBERS = 20000, ROUNDS = 300, NEAR = 64 };
	static bool has[NUMBERS + NEAR];
	uint64_t random = 1;
	for (size_t round = 0; round < ROUNDS; round++) {
		struct ranges ranges = {0};
		memset(has, 0, sizeof(has));
		for (size_t i = 0; i < NUMBERS; i++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			size_t number = i + (random >> 33) % (1 + round % NEAR);
			assert_int_equal(ranges_add(&ranges, number), !has[number]);
			has[number] = true;
		}
		check_ranges(&ranges, has, ARRAY_LEN(has));
		ranges_release(&ranges);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Of a cell whose value is longer than one page takes, and of a short one. */
static void put_cells(struct rig *rig)
{
	static const char text[20000] = "";
	struct store_write *write = store_write_new(rig->store, 32 << 20);
	write->executor = &rig->queue.executor;
	write->done = write_done;
	write->owner = rig;
	for (size_t i = 0; i < 50; i++) {
		struct store_parts key = {
			{SLICE("tenant"), SLICE("\0\0\0\0\0\0\0\1"), SLICE("\0\0\0\0\0\0\0\2")}};
		uint8_t id[8];
		be64_put(id, i);
		struct store_parts column = {{{(const char *)id, sizeof(id)}}};
		struct slice value = {text, i % 2 ? sizeof(text) : 10};
		assert_int_equal(
			store_cell_put(write, TABLE_REPORT_ARRIVALS, &key, &column, value, 1000, 0),
			0);
	}
	assert_int_equal(store_write_submit(write), 0);
	task_queue_wait(&rig->queue);
	assert_int_equal(rig->err, 0);
	store_write_free(write);
}

static void the_bytes_of_the_file_add_up(void **state)
{
	struct rig *rig = *state;
	struct stat st;
	char file[300];
	open_with_series(rig);
	assert_int_equal(put(rig, 0, 3000), 0);
	put_cells(rig);
	assert_int_equal(lmdb_settle(rig->store), 0);
	assert_int_equal(put(rig, 3000, 3100), 0);
	struct store_read *read = new_read(rig);
	struct store_request *request = store_read_add(read, STORE_STATS);
	assert_int_equal(run_read(rig, read), 0);
	assert_false(request->more);
	const struct store_stats *stats = request->stats;
	uint64_t sum = stats->registry_bytes + stats->journal_page_bytes + stats->blob_bytes +
		       stats->other_bytes + stats->free_bytes;
	for (int t = 0; t < TABLE_COUNT; t++) {
		const struct store_table_stats *table = &stats->tables[t];
		sum += table->payload_bytes + table->header_bytes + table->key_bytes +
		       table->page_bytes;
	}
	snprintf(file, sizeof(file), "%s/data.mdb", rig->dir.path);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(stats->file_bytes, st.st_size);
	assert_int_equal(sum, st.st_size);
	/* 25 values of 20,000 bytes, in pages of 4,096 */
	assert_in_range(stats->blob_bytes, 25 * 20000, 25 * 20000 * 11 / 10);
	assert_int_equal(stats->tables[TABLE_REPORT_ARRIVALS].samples, 50);
	store_read_free(read);
}

/* A column of a number that has three bytes, which store.c would refuse, goes to the engine at
 * once; what reads numbers would read eight. */
static void a_number_that_is_cut_short_is_damage(void **state)
{
	struct rig *rig = *state;
	struct errbuf e;
	assert_int_equal(open_store(rig, &e), 0);
	struct store_write *write = store_write_new(rig->store, 1 << 20);
	write->executor = &rig->queue.executor;
	write->done = write_done;
	write->owner = rig;
	struct store_cell_write cell = {.action = CELL_PUT,
					.table = TABLE_RAW_TEXT,
					.key = SLICE("row"),
					.column = SLICE("\0\0\1"),
					.value = SLICE("text"),
					.stamp_us = 1};
	assert_int_equal(rig->store->engine->add_cell(write, &cell), 0);
	write->stage_count = 1;
	assert_int_equal(store_write_submit(write), 0);
	task_queue_wait(&rig->queue);
	assert_int_equal(rig->err, 0);
	store_write_free(write);
	struct store_read *read = new_read(rig);
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	request->cell_scan =
		(struct store_cell_scan){.table = TABLE_RAW_TEXT, .key = {{SLICE("row")}}};
	assert_int_equal(run_read(rig, read), ERR_DAMAGED);
	store_read_free(read);
}

/* What an older version stored goes to the engine at once, past store.c. */
static void put_past_the_checks(struct rig *rig, const struct store_cell_write *cell)
{
	struct store_write *write = store_write_new(rig->store, 8 << 20);
	write->executor = &rig->queue.executor;
	write->done = write_done;
	write->owner = rig;
	assert_int_equal(rig->store->engine->add_cell(write, cell), 0);
	write->stage_count = 1;
	assert_int_equal(store_write_submit(write), 0);
	task_queue_wait(&rig->queue);
	assert_int_equal(rig->err, 0);
	store_write_free(write);
}

static struct store_cell_get get_device(struct rig *rig, struct slice key, struct slice column)
{
	struct store_read *read = new_read(rig);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	request->cell_get = (struct store_cell_get){
		.table = TABLE_DEVICES, .key = {{key}}, .column = {{column}}};
	assert_int_equal(run_read(rig, read), 0);
	struct store_cell_get get = request->cell_get;
	store_read_free(read);
	return get;
}

/* Before, a value was as long as 16 MiB, and a text could be any bytes. */
static void what_is_refused_now_and_was_stored_is_read_and_removed(void **state)
{
	static const char text[] = "caf\xe9";
	static char bytes[3 << 20];
	struct rig *rig = *state;
	struct errbuf e;
	assert_int_equal(open_store(rig, &e), 0);
	struct store_cell_write cell = {.action = CELL_PUT,
					.table = TABLE_DEVICES,
					.key = slice_of(text),
					.column = slice_of(text),
					.value = {bytes, sizeof(bytes)},
					.stamp_us = 1};
	put_past_the_checks(rig, &cell);
	struct store_cell_get get = get_device(rig, slice_of(text), slice_of(text));
	assert_true(get.found);
	assert_int_equal(get.cell.value.len, sizeof(bytes));
	struct store_write *write = store_write_new(rig->store, 8 << 20);
	const struct store_parts parts = {{slice_of(text)}};
	write->executor = &rig->queue.executor;
	write->done = write_done;
	write->owner = rig;
	assert_int_equal(store_cell_put(write, TABLE_DEVICES, &parts, &parts, SLICE("v"), 2, 0),
			 ERR_INVALID);
	assert_int_equal(store_cell_delete(write, TABLE_DEVICES, &parts, &parts, 2), 0);
	assert_int_equal(store_write_submit(write), 0);
	task_queue_wait(&rig->queue);
	assert_int_equal(rig->err, 0);
	store_write_free(write);
	assert_false(get_device(rig, slice_of(text), slice_of(text)).found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_new_tenant_costs_no_look_at_the_others),
		cmocka_unit_test(shapes_of_tenants_are_found_in_order),
		cmocka_unit_test(ranges_are_those_of_an_array),
		cmocka_unit_test(a_leaf_whose_last_range_goes),
		cmocka_unit_test(ranges_about_in_order),
		CASE(second_process_is_named),
		CASE(nothing_there_is_said),
		CASE(looking_makes_no_directory),
		CASE(an_earlier_format_is_raised),
		CASE(newer_format_is_refused),
		CASE(shortened_file_is_refused),
		CASE(the_clock_jumps),
		CASE(full_store_refuses_and_recovers),
		CASE(failed_commit_ends_the_store),
		CASE(damaged_extent_is_an_error_never_a_number),
		CASE(replay_goes_on_beside_damage),
		CASE(a_page_that_cannot_be_freed_costs_nothing),
		CASE(such_a_page_does_not_stop_expiry),
		CASE(full_store_registers_nothing),
		CASE(damaged_journal_is_refused),
		CASE(the_bytes_of_the_file_add_up),
		CASE(a_number_that_is_cut_short_is_damage),
		CASE(what_is_refused_now_and_was_stored_is_read_and_removed),
		CASE(a_damaged_journal_can_be_looked_at),
		CASE(a_journal_of_unknown_shapes_can_be_looked_at),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
