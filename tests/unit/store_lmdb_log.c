/* Rows that are filled and emptied for hours do not make the file grow: pages counted after the
 * first times are as many as after the last. */
#include "base/cursor.h"
#include "base/random.h"
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_passes_through_leaves_no_pages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
