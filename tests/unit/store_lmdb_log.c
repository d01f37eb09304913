/* Rows that are filled and emptied for hours do not make the file grow: pages counted after the
 * first times are as many as after the last. */
#include <sched.h>

#include "base/cursor.h"
#include "base/fault.h"
#include "base/random.h"
#include "base/stats.h"
#include "contract.h"
#include "lmdb_dir.h"
#include "store/lmdb/lmdb.h"

enum {
	SHARDS = 8,
	PEAK = 1500,      /* messages that wait at most */
	WARM_CYCLES = 4,  /* after these, every page that is needed has been used */
	MORE_CYCLES = 30, /* 45,000 messages of 2 KB: 90 MB through a file of 6 */
	BATCH = 25,
};

static struct lmdb_dir dir;

static struct store *open_again(struct clock *clock)
{
	struct errbuf e = {""};
	struct store *store = NULL;
	const struct lmdb_options options = {
		.path = dir.path,
		.map_bytes = UINT64_C(1) << 30,
		.not_durable = true,
		.clock = clock,
	};
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

static void close_and_remove(UNUSED void *context, struct store *store)
{
	store_close(store);
	lmdb_dir_remove(&dir);
}

static const struct contract_engine engine = {
	.name = "log", .open = open_new, .reopen = reopen, .close = close_and_remove};

struct shards {
	struct rig *rig;
	struct random random;
	uint64_t first[SHARDS], next[SHARDS]; /* first <= n < next wait */
	uint64_t waiting;
};

struct row {
	uint8_t shard[8], column[8];
	struct store_parts key, at;
};

static void row_of(struct row *row, uint64_t shard, uint64_t n)
{
	be64_put(row->shard, shard);
	be64_put(row->column, n);
	row->key = (struct store_parts){{TEXT("q"), {(char *)row->shard, 8}}};
	row->at = (struct store_parts){{{(char *)row->column, 8}}};
}

/* From a few bytes to three pages, most of them of one. */
static struct slice message(struct shards *s)
{
	static char bytes[12000];
	size_t max = random_below(&s->random, 10) ? 4000 : sizeof(bytes);
	return (struct slice){bytes, random_below(&s->random, max)};
}

static void put_some(struct shards *s)
{
	struct store_write *write = rig_write_new(s->rig);
	for (int i = 0; i < BATCH; i++) {
		uint64_t shard = random_below(&s->random, SHARDS);
		struct row row;
		row_of(&row, shard, s->next[shard]++);
		assert_int_equal(store_log_put(write, TABLE_QUEUE, &row.key, &row.at, message(s)),
				 0);
		s->waiting++;
	}
	rig_commit(s->rig, write);
}

static void take_some(struct shards *s)
{
	const struct store_parts begin = {{{0}}};
	struct store_write *write = rig_write_new(s->rig);
	for (uint64_t shard = 0; shard < SHARDS; shard++) {
		uint64_t there = s->next[shard] - s->first[shard];
		uint64_t taken = there < BATCH / 4 ? there : BATCH / 4;
		struct row row;
		s->first[shard] += taken;
		s->waiting -= taken;
		row_of(&row, shard, s->first[shard]);
		assert_int_equal(store_log_remove(write, TABLE_QUEUE, &row.key, &begin, &row.at),
				 0);
	}
	rig_commit(s->rig, write);
}

/* Up to the peak, with what is taken meanwhile, then down to nothing. */
static void fill_and_empty(struct shards *s)
{
	while (s->waiting < PEAK) {
		put_some(s);
		if (random_below(&s->random, 3) == 0)
			take_some(s);
	}
	while (s->waiting)
		take_some(s);
}

static void what_passes_through_leaves_no_pages(UNUSED void **state)
{
	struct rig rig;
	rig_open(&rig, &engine);
	struct shards s = {.rig = &rig};
	random_init(&s.random, 1);
	for (int i = 0; i < WARM_CYCLES; i++)
		fill_and_empty(&s);
	uint64_t warm_bytes = rig_stats(&rig).file_bytes;
	for (int i = 0; i < MORE_CYCLES; i++)
		fill_and_empty(&s);
	struct store_stats stats = rig_stats(&rig);
	assert_int_equal(stats.tables[TABLE_QUEUE].samples, 0);
	assert_int_equal(stats.blob_bytes, 0);
	/* A fluctuation of the peaks is allowed; growth by cycle would be a multiple. */
	if (stats.file_bytes > warm_bytes + warm_bytes / 4)
		fail_msg("%llu bytes have become %llu", (unsigned long long)warm_bytes,
			 (unsigned long long)stats.file_bytes);
	print_message("%llu bytes, at last %llu\n", (unsigned long long)warm_bytes,
		      (unsigned long long)stats.file_bytes);
	rig_verify(&rig);
	rig_close(&rig);
}

/* ---- A large removal ------------------------------------------------------------------------- */

enum { CELLS = 100000, CELL_BYTES = 100, PER_BATCH = 5000 };

static void fill_row(struct rig *rig, uint64_t shard)
{
	static char bytes[CELL_BYTES];
	for (uint64_t n = 0; n < CELLS;) {
		struct store_write *write = rig_write_new(rig);
		for (int i = 0; i < PER_BATCH; i++, n++) {
			struct row row;
			row_of(&row, shard, n);
			assert_int_equal(store_log_put(write, TABLE_QUEUE, &row.key, &row.at,
						       (struct slice){bytes, sizeof(bytes)}),
					 0);
		}
		rig_commit(rig, write);
	}
}

static struct store_write *removal_of(struct rig *rig, uint64_t shard)
{
	const struct store_parts ends = {{{0}}};
	struct store_write *write = rig_write_new(rig);
	struct row row;
	row_of(&row, shard, 0);
	assert_int_equal(store_log_remove(write, TABLE_QUEUE, &row.key, &ends, &ends), 0);
	return write;
}

/* The same cells, each by a range of its own. */
static struct store_write *removal_one_by_one(struct rig *rig, uint64_t shard)
{
	struct store_write *write = rig_write_new(rig);
	for (uint64_t n = 0; n < CELLS; n++) {
		struct row from, to;
		row_of(&from, shard, n);
		row_of(&to, shard, n + 1);
		assert_int_equal(store_log_remove(write, TABLE_QUEUE, &from.key, &from.at, &to.at),
				 0);
	}
	return write;
}

static struct store_write *forgetting_of(struct rig *rig, uint64_t handle)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_series_forget(write, &handle, 1), 0);
	return write;
}

static struct store_write *put_into(struct rig *rig, uint64_t shard)
{
	struct store_write *write = rig_write_new(rig);
	struct row row;
	row_of(&row, shard, CELLS / 2);
	assert_int_equal(store_log_put(write, TABLE_QUEUE, &row.key, &row.at, TEXT("x")), 0);
	return write;
}

struct ended {
	int place, *count, err;
};

static void note_end(struct store_write *write, int err)
{
	struct ended *ended = write->owner;
	ended->err = err;
	ended->place = ++*ended->count;
}

static void submit(struct store_write *write, struct ended *ended, int *count)
{
	*ended = (struct ended){.count = count};
	write->done = note_end;
	write->owner = ended;
	assert_int_equal(store_write_submit(write), 0);
}

/* The writer does nothing before all batches are submitted. */
static _Atomic bool all_submitted;

static void until_all_are_submitted(UNUSED const char *name)
{
	while (!all_submitted)
		sched_yield();
}

static uint64_t cells_there(struct rig *rig)
{
	return rig_stats(rig).tables[TABLE_QUEUE].samples;
}

/* 100,000 cells of 100 bytes are some slices of 4 MiB. What is put elsewhere, or forgets a series,
 * goes before, and what is put into the row waits, so that it stays; what comes behind that waits
 * too. */
static void removal_holds_up_nobody(struct store_write *(*removal_new)(struct rig *rig,
								       uint64_t shard))
{
	enum { REMOVAL, FORGETTING, ELSEWHERE, SAME_ROW, BEHIND, WRITES };
	struct rig rig;
	struct ended ends[WRITES];
	int count = 0;
	rig_open(&rig, &engine);
	fill_row(&rig, 1);
	uint64_t handle = rig_series(&rig, "m", "host=a");
	int64_t commits = stat_get(STAT_store_commits);
	struct store_write *writes[WRITES] = {
		[REMOVAL] = removal_new(&rig, 1), [FORGETTING] = forgetting_of(&rig, handle),
		[ELSEWHERE] = put_into(&rig, 2),  [SAME_ROW] = put_into(&rig, 1),
		[BEHIND] = put_into(&rig, 3),
	};
	all_submitted = false;
	fault_set_pause(until_all_are_submitted);
	for (size_t i = 0; i < WRITES; i++)
		submit(writes[i], &ends[i], &count);
	all_submitted = true;
	while (count < WRITES)
		task_queue_wait(&rig.queue);
	fault_set_pause(NULL);
	for (size_t i = 0; i < WRITES; i++) {
		assert_int_equal(ends[i].err, 0);
		store_write_free(writes[i]);
	}
	assert_true(ends[FORGETTING].place < ends[REMOVAL].place);
	assert_true(ends[ELSEWHERE].place < ends[REMOVAL].place);
	assert_true(ends[REMOVAL].place < ends[SAME_ROW].place);
	assert_true(ends[SAME_ROW].place < ends[BEHIND].place);
	assert_true(stat_get(STAT_store_commits) - commits >= CELLS * CELL_BYTES / (4 << 20));
	assert_int_equal(cells_there(&rig), 3);
	rig_verify(&rig);
	rig_close(&rig);
}

static void a_large_removal_holds_up_nobody(UNUSED void **state)
{
	removal_holds_up_nobody(removal_of);
}

static void many_small_removals_hold_up_nobody(UNUSED void **state)
{
	removal_holds_up_nobody(removal_one_by_one);
}

/* The second slice fails: some of it is gone, and the same removal again mends it. Then one that is
 * under way when the store is closed: it is finished. */
static void a_removal_that_breaks_off_is_repeated(UNUSED void **state)
{
	struct rig rig;
	struct ended end;
	int count = 0;
	rig_open(&rig, &engine);
	fill_row(&rig, 1);
	struct store_write *write = removal_of(&rig, 1);
	fault_arm("store.batch", FAULT_ERROR, 2, 1);
	submit(write, &end, &count);
	while (!count)
		task_queue_wait(&rig.queue);
	fault_disarm_all();
	assert_int_equal(end.err, ERR_FAULT);
	assert_in_range(cells_there(&rig), CELLS / 10, CELLS - 100);
	rig_verify(&rig);
	store_write_free(write);
	write = removal_of(&rig, 1);
	submit(write, &end, &count);
	rig_reopen(&rig);
	while (count < 2)
		task_queue_wait(&rig.queue);
	assert_int_equal(end.err, 0);
	store_write_free(write);
	assert_int_equal(cells_there(&rig), 0);
	assert_int_equal(rig_enumerate(&rig, TABLE_QUEUE, 0, 0).count, 0);
	rig_verify(&rig);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_passes_through_leaves_no_pages),
		cmocka_unit_test(a_large_removal_holds_up_nobody),
		cmocka_unit_test(many_small_removals_hold_up_nobody),
		cmocka_unit_test(a_removal_that_breaks_off_is_repeated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
