/* Queries and reads on the embedded engine's own readers: what is small goes before what is large,
 * and what nobody waits for any more is not read to its end.
 *
 * The one reader looks at the clock before each piece of its work. The clock here is the test's: it
 * holds the reader at a given look until the test lets it go on, so that who comes first does not
 * depend on how fast anything is. */
#include <pthread.h>

#include "base/stats.h"
#include "catalog/catalog.h"
#include "contract.h"
#include "lmdb_dir.h"
#include "query/query.h"
#include "store/lmdb/lmdb.h"

enum {
	SERIES = 300,
	BLOCK_POINTS = 100,
	/* Series that a reader may take up at once, and finishes before it looks again. */
	PIECE_MAX = 64,
};

/* ---- The clock that holds ----------------------------------------------------------------------
 */

static struct {
	struct clock clock;
	struct clock *base;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	size_t looks, hold_at; /* looks of the reader; 0: it is not held */
	bool held;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int64_t gate_wall_us(UNUSED struct clock *clock)
{
	return gate.base->wall_us(gate.base);
}

/* The engine calls its readers store-N; its writer, store-writer, is none. */
static bool is_reader(void)
{
	char name[16] = "";
	return !pthread_getname_np(pthread_self(), name, sizeof(name)) &&
	       strncmp(name, "store-", 6) == 0 && name[6] >= '0' && name[6] <= '9';
}

static int64_t gate_mono_us(UNUSED struct clock *clock)
{
	if (is_reader()) {
		pthread_mutex_lock(&gate.lock);
		gate.held = ++gate.looks == gate.hold_at;
		pthread_cond_broadcast(&gate.changed);
		while (gate.held)
			pthread_cond_wait(&gate.changed, &gate.lock);
		pthread_mutex_unlock(&gate.lock);
	}
	return gate.base->mono_us(gate.base);
}

/* The reader will be held at that look from now on, counted from 1. */
static void gate_set(size_t hold_at)
{
	pthread_mutex_lock(&gate.lock);
	gate.looks = 0;
	gate.hold_at = hold_at;
	pthread_mutex_unlock(&gate.lock);
}

/* Only a failure takes all of the time: a reader that never looks so often. */
static void gate_wait(void)
{
	struct timespec until;
	int err = 0;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	pthread_mutex_lock(&gate.lock);
	while (!gate.held && !err)
		err = pthread_cond_timedwait(&gate.changed, &gate.lock, &until);
	size_t looks = gate.looks;
	pthread_mutex_unlock(&gate.lock);
	if (err)
		fail_msg("the reader looked at the clock just %zu times", looks);
}

static void gate_open(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.held = false;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

static size_t gate_looks(void)
{
	pthread_mutex_lock(&gate.lock);
	size_t looks = gate.looks;
	pthread_mutex_unlock(&gate.lock);
	return looks;
}

/* ---- The store, catalog and queries ------------------------------------------------------------
 */

struct asked {
	struct query *query;
	uint64_t points;
	double sum;
	size_t reads_of_large; /* of the small one: when it ended; SIZE_MAX: that had ended, too */
};

static struct lmdb_dir dir;
static struct rig rig;
static struct catalog *catalog;
static struct query_engine *engine;
static uint64_t handles[SERIES];
static struct asked large, small;

static struct store *open_store(UNUSED void *context, struct clock *clock)
{
	struct errbuf e = {""};
	struct store *store = NULL;
	gate.base = clock;
	gate.clock = (struct clock){gate_wall_us, gate_mono_us};
	lmdb_dir_make(&dir);
	struct lmdb_options options = {.path = dir.path,
				       .map_bytes = UINT64_C(1) << 30,
				       .read_threads = 1,
				       .not_durable = true,
				       .clock = &gate.clock};
	if (lmdb_open(&options, &store, &e))
		fail_msg("%s", e.text);
	return store;
}

static void settle_store(UNUSED void *context, struct store *store)
{
	assert_int_equal(lmdb_settle(store), 0);
}

static void close_store(UNUSED void *context, struct store *store)
{
	store_close(store);
	lmdb_dir_remove(&dir);
}

static const struct contract_engine one_reader = {
	.name = "one reader", .open = open_store, .settle = settle_store, .close = close_store};

/* Series i has BLOCK_POINTS samples of value i, one each second from T0 on: one block. Their tags
 * differ, so each lies by itself. */
static void fill(void)
{
	struct store_write *write = rig_write_new(&rig);
	for (int i = 0; i < SERIES; i++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "n=%04d", i);
		handles[i] = rig_series(&rig, "m", tags);
		struct value value = value_i64(i);
		for (int p = 0; p < BLOCK_POINTS; p++)
			assert_int_equal(
				store_append(write,
					     &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
					     T0 + p * SECOND_MS, &handles[i], 1, &value),
				0);
	}
	rig_commit(&rig, write);
	rig_settle(&rig);
}

static int set_up(UNUSED void **state)
{
	gate_set(0);
	rig_open(&rig, &one_reader);
	fill();
	struct catalog_options catalog_options = catalog_options_default();
	catalog = catalog_new(rig.store, &rig.clock.clock, &rig.queue.executor, &catalog_options);
	engine = query_engine_new(&(struct query_options){.store = rig.store,
							  .catalog = catalog,
							  .clock = &rig.clock.clock,
							  .executor = &rig.queue.executor,
							  .parallel_max = 2});
	return 0;
}

static void forget(struct asked *a)
{
	query_free(a->query);
	*a = (struct asked){0};
}

static void set_true(void *flag)
{
	*(bool *)flag = true;
}

static int tear_down(UNUSED void **state)
{
	bool is_closed = false;
	/* After a failure they are still there. */
	gate_set(0);
	gate_open();
	forget(&large);
	forget(&small);
	while (!query_engine_idle(engine))
		task_queue_wait(&rig.queue);
	query_engine_free(engine);
	catalog_close(catalog, set_true, &is_closed);
	while (!is_closed)
		task_queue_wait(&rig.queue);
	rig_close(&rig);
	return 0;
}

/* ---- Queries -----------------------------------------------------------------------------------
 */

static void take_all(void *owner)
{
	struct asked *a = owner;
	struct query_chunk chunk;
	while (query_next(a->query, 1000, &chunk)) {
		a->points += chunk.count;
		for (size_t i = 0; i < chunk.count; i++)
			a->sum += value_as_f64(
				(struct value){chunk.bits[i], (enum value_type)chunk.types[i]});
	}
	if (a == &small && a->query->ended && large.query)
		a->reads_of_large = large.query->ended ? SIZE_MAX : large.query->reads;
}

/* The sums of windows of 100 ms, for which every block has to be decoded: 1,000 for each series, so
 * that a part is about 32 of them. */
static struct query_spec *ask(struct asked *a, const char *selectors)
{
	struct errbuf e;
	*a = (struct asked){.query = query_new(engine, take_all, a)};
	struct query_spec *spec = &a->query->spec;
	struct catalog_selector *list =
		arena_alloc(&a->query->arena, CATALOG_SELECTORS_MAX * sizeof(*list));
	*spec = (struct query_spec){.tenant = SLICE("t"),
				    .metric = SLICE("m"),
				    .selectors = list,
				    .start_ms = T0,
				    .end_ms = T0 + BLOCK_POINTS * SECOND_MS,
				    .fn = FN_SUM,
				    .window_ms = 100};
	assert_int_equal(catalog_selectors_parse(slice_of(selectors), &a->query->arena, list,
						 &spec->selector_count, &e),
			 0);
	return spec;
}

static void start(struct asked *a)
{
	assert_int_equal(query_start(a->query), 0);
}

static void wait_until_ended(struct asked *a)
{
	while (!a->query->ended)
		task_queue_wait(&rig.queue);
	assert_int_equal(a->query->err, 0);
}

static void wait_until_asked(struct asked *a)
{
	while (!a->query->reads)
		task_queue_wait(&rig.queue);
}

/* The catalog's index is built by a read, too. */
static void build_index(void)
{
	ask(&small, "n=0001");
	start(&small);
	wait_until_ended(&small);
	assert_true(small.sum == BLOCK_POINTS * 1.0);
	forget(&small);
}

/* With one reader, held in the first part of the large query, everything else stands in line behind
 * it. The small one has to wait for the parts that were asked for before it came, at most two, but
 * for none that are asked for later. */
static void small_goes_before_the_rest_of_large(UNUSED void **state)
{
	build_index();
	gate_set(3);
	ask(&large, "n=*");
	start(&large);
	wait_until_asked(&large);
	gate_wait();
	ask(&small, "n=0007");
	start(&small);
	wait_until_asked(&small);
	size_t before = large.query->reads;
	assert_in_range(before, 1, 2);
	gate_open();
	wait_until_ended(&small);
	/* As each of those two was answered another one was asked for: behind the small one. */
	assert_in_range(small.reads_of_large, before, 2 * before);
	assert_true(small.sum == BLOCK_POINTS * 7.0);
	assert_int_equal(small.query->reads, 1);
	wait_until_ended(&large);
	assert_true(large.query->reads > 4);
	assert_true(large.sum == BLOCK_POINTS * (SERIES * (SERIES - 1) / 2.0));
}

/* Freed while the reader is in the middle of it: the reader finishes the series at hand and looks
 * at the clock hardly any more. Left alone it would look at it for each of the series. */
static void nobody_waits_and_nothing_is_read(UNUSED void **state)
{
	enum { AT = SERIES / 3 };
	build_index();
	gate_set(0);
	ask(&large, "n=*")->fn = FN_NONE;
	start(&large);
	wait_until_ended(&large);
	assert_int_equal(large.points, SERIES * BLOCK_POINTS);
	assert_true(gate_looks() > SERIES);
	forget(&large);

	int64_t cancelled = stat_get(STAT_query_reads_cancelled);
	gate_set(AT);
	ask(&large, "n=*")->fn = FN_NONE;
	start(&large);
	wait_until_asked(&large);
	gate_wait();
	size_t in_flight = large.query->reads;
	forget(&large);
	assert_int_equal(stat_get(STAT_query_reads_cancelled) - cancelled, in_flight);
	gate_open();
	while (!query_engine_idle(engine))
		task_queue_wait(&rig.queue);
	/* A read looks three times for itself, whatever it reads. */
	assert_in_range(gate_looks(), AT, AT + 3 * in_flight);
}

/* ---- Reads of the store ------------------------------------------------------------------------
 */

static void add_range(struct store_read *read)
{
	store_read_add(read, STORE_RANGE)->range =
		(struct store_range){.table = TABLE_DATA_RAW,
				     .handles = handles,
				     .handle_count = SERIES,
				     .start_ms = T0,
				     .end_ms = T0 + BLOCK_POINTS * SECOND_MS};
}

static void add_last_before(struct store_read *read)
{
	store_read_add(read, STORE_LAST_BEFORE)->last_before =
		(struct store_last_before){.table = TABLE_DATA_RAW,
					   .handles = handles,
					   .handle_count = SERIES,
					   .before_ms = T0 + BLOCK_POINTS / 2 * SECOND_MS};
}

static void add_aggregate(struct store_read *read)
{
	store_read_add(read, STORE_AGGREGATE)->aggregate =
		(struct store_aggregate){.table = TABLE_DATA_RAW,
					 .handles = handles,
					 .handle_count = SERIES,
					 .start_ms = T0,
					 .end_ms = T0 + BLOCK_POINTS * SECOND_MS,
					 .window_ms = 3000};
}

static void ended(struct store_read *read, int err)
{
	*(int *)read->owner = err;
}

/* Cancelled or not, held at a look in the middle; gives how many blocks were decoded, and how many
 * of these after it was held. */
static uint64_t decoded(void (*add)(struct store_read *read), bool cancel, uint64_t *after)
{
	enum { PENDING = 1 };
	int result = PENDING;
	struct store_read *read = store_read_new(rig.store, 64 << 20);
	read->executor = &rig.queue.executor;
	read->done = ended;
	read->owner = &result;
	read->now_ms = rig_now_ms(&rig);
	add(read);
	gate_set(6); /* three for itself, three for series */
	assert_int_equal(store_read_submit(read), 0);
	gate_wait();
	*after = read->work.blocks_decoded;
	if (cancel)
		store_read_cancel(read);
	gate_open();
	while (result == PENDING)
		task_queue_wait(&rig.queue);
	assert_int_equal(result, cancel ? ERR_CANCELLED : 0);
	uint64_t count = read->work.blocks_decoded;
	*after = count - *after;
	store_read_free(read);
	return count;
}

static void cancelled_read_stops_decoding(UNUSED void **state)
{
	void (*const adders[])(struct store_read *) = {add_range, add_last_before, add_aggregate};
	for (size_t i = 0; i < ARRAY_LEN(adders); i++) {
		uint64_t after;
		/* One block for each series: the samples of one day, fewer than a block takes. */
		assert_int_equal(decoded(adders[i], false, &after), SERIES);
		assert_true(after > PIECE_MAX);
		uint64_t count = decoded(adders[i], true, &after);
		assert_in_range(after, 0, PIECE_MAX);
		assert_in_range(count, 1, SERIES - 1);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(small_goes_before_the_rest_of_large),
		TEST(nobody_waits_and_nothing_is_read),
		TEST(cancelled_read_stops_decoding),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
