/* Conditional cells: leases, first-one-wins. */
#include "contract.h"

#define KEY    PARTS(TEXT("rollup"))
#define COLUMN PARTS(TEXT("partition 7"))

static void expect_lease(struct rig *rig, const char *value, uint64_t version)
{
	struct store_cell cell;
	bool found = rig_cell_get(rig, TABLE_LEASES, KEY, COLUMN, &cell);
	assert_int_equal(found, value != NULL);
	if (!found)
		return;
	assert_slice(cell.value, slice_of(value));
	assert_int_equal(cell.version, version);
}

static void assert_outcome(struct store_write_cond outcome, bool applied, const char *value)
{
	assert_int_equal(outcome.applied, applied);
	if (value) {
		assert_int_not_equal(outcome.version, 0);
		assert_non_null(outcome.value.data);
		assert_slice(outcome.value, slice_of(value));
	} else {
		assert_int_equal(outcome.version, 0);
		assert_null(outcome.value.data);
	}
}

static void first_one_wins(struct rig *rig)
{
	expect_lease(rig, NULL, 0);
	struct store_write_cond a = rig_put_if(rig, KEY, COLUMN, 0, "a", 0);
	assert_outcome(a, true, "a");
	expect_lease(rig, "a", a.version);
	struct store_write_cond b = rig_put_if(rig, KEY, COLUMN, 0, "b", 0);
	assert_outcome(b, false, "a");
	assert_int_equal(b.version, a.version);
	b = rig_put_if(rig, KEY, COLUMN, a.version + 1, "b", 0);
	assert_outcome(b, false, "a");
	b = rig_put_if(rig, KEY, COLUMN, a.version, "b", 0);
	assert_outcome(b, true, "b");
	assert_int_not_equal(b.version, a.version);
	assert_outcome(rig_put_if(rig, KEY, COLUMN, a.version, "c", 0), false, "b");
	rig_reopen(rig);
	rig_settle(rig);
	expect_lease(rig, "b", b.version);
	assert_outcome(rig_put_if(rig, KEY, COLUMN, b.version, "", 0), true, "");
}

static void deletion_needs_the_version(struct rig *rig)
{
	struct store_write_cond a = rig_put_if(rig, KEY, COLUMN, 0, "a", 0);
	assert_outcome(rig_delete_if(rig, KEY, COLUMN, a.version + 1), false, "a");
	assert_outcome(rig_delete_if(rig, KEY, COLUMN, a.version), true, NULL);
	expect_lease(rig, NULL, 0);
	assert_outcome(rig_delete_if(rig, KEY, COLUMN, a.version), false, NULL);
	assert_outcome(rig_put_if(rig, KEY, COLUMN, a.version, "b", 0), false, NULL);
}

static void version_is_never_used_twice(struct rig *rig)
{
	uint64_t seen[12];
	size_t count = 0;
	for (int round = 0; round < 3; round++) {
		struct store_write_cond a = rig_put_if(rig, KEY, COLUMN, 0, "same", 0);
		assert_true(a.applied);
		seen[count++] = a.version;
		struct store_write_cond b = rig_put_if(rig, KEY, COLUMN, a.version, "same", 0);
		assert_true(b.applied);
		seen[count++] = b.version;
		assert_true(rig_delete_if(rig, KEY, COLUMN, b.version).applied);
		rig_settle(rig);
		rig_reopen(rig);
	}
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(seen[i], seen[j]);
	}
}

static void expired_lease_is_free(struct rig *rig)
{
	struct store_write_cond a = rig_put_if(rig, KEY, COLUMN, 0, "a", T0 + 1000);
	assert_outcome(a, true, "a");
	rig_advance_ms(rig, 999);
	assert_outcome(rig_put_if(rig, KEY, COLUMN, 0, "b", 0), false, "a");
	rig_advance_ms(rig, 1);
	expect_lease(rig, NULL, 0);
	/* Too late to renew, and free for all. */
	assert_outcome(rig_put_if(rig, KEY, COLUMN, a.version, "a", 0), false, NULL);
	struct store_write_cond b = rig_put_if(rig, KEY, COLUMN, 0, "b", T0 + 5000);
	assert_outcome(b, true, "b");
	assert_int_not_equal(b.version, a.version);
	/* Renewed in time. */
	struct store_write_cond c = rig_put_if(rig, KEY, COLUMN, b.version, "b", T0 + 9000);
	assert_outcome(c, true, "b");
	rig_advance_ms(rig, 6000);
	expect_lease(rig, "b", c.version);
}

static void refused_condition_leaves_the_rest(struct rig *rig)
{
	struct store_cell cell;
	struct store_write_cond *lost, *won;
	uint64_t version = rig_put_if(rig, KEY, COLUMN, 0, "a", 0).version;
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(
		store_cell_put_if(write, TABLE_LEASES, KEY, COLUMN, 0, TEXT("b"), 0, &lost), 0);
	assert_int_equal(store_cell_put(write, TABLE_DEVICES, KEY, COLUMN, TEXT("v"), 1, 0), 0);
	assert_int_equal(store_cell_put_if(write, TABLE_LEASES, KEY, PARTS(TEXT("other")), 0,
					   TEXT("b"), 0, &won),
			 0);
	assert_int_equal(rig_write(rig, write), 0);
	assert_int_equal(write->stages_kept, 1);
	assert_outcome(*lost, false, "a");
	assert_outcome(*won, true, "b");
	store_write_free(write);
	assert_true(rig_cell_get(rig, TABLE_DEVICES, KEY, COLUMN, &cell));
	expect_lease(rig, "a", version);
}

/* Several conditions on one cell in one batch see each other, in their order. */
static void conditions_of_one_batch_follow_each_other(struct rig *rig)
{
	struct store_write_cond *first, *second, *third;
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(
		store_cell_put_if(write, TABLE_LEASES, KEY, COLUMN, 0, TEXT("a"), 0, &first), 0);
	assert_int_equal(
		store_cell_put_if(write, TABLE_LEASES, KEY, COLUMN, 0, TEXT("b"), 0, &second), 0);
	store_write_next_stage(write);
	assert_int_equal(
		store_cell_put_if(write, TABLE_LEASES, KEY, COLUMN, 0, TEXT("c"), 0, &third), 0);
	assert_int_equal(rig_write(rig, write), 0);
	assert_int_equal(write->stages_kept, 2);
	assert_outcome(*first, true, "a");
	assert_outcome(*second, false, "a");
	assert_outcome(*third, false, "a");
	store_write_free(write);
}

static void leases_are_scanned(struct rig *rig)
{
	for (int i = 0; i < 5; i++) {
		char name[16];
		snprintf(name, sizeof(name), "p%d", i);
		struct store_write_cond a =
			rig_put_if(rig, KEY, PARTS(slice_of(name)), 0, name, i < 2 ? T0 + 10 : 0);
		if (i == 4)
			rig_delete_if(rig, KEY, PARTS(slice_of(name)), a.version);
	}
	struct store_cell_scan scan = {.table = TABLE_LEASES, .key = *KEY};
	assert_int_equal(rig_scan(rig, &scan, 1).count, 4);
	rig_advance_ms(rig, 10);
	struct cells cells = rig_scan(rig, &scan, 1);
	assert_int_equal(cells.count, 2);
	assert_slice(cells.list[0].value, TEXT("p2"));
	assert_int_not_equal(cells.list[0].version, 0);
	assert_slice(cells.list[1].value, TEXT("p3"));
}

/* ---- Contention ---------------------------------------------------------------------------- */

enum { WRITERS = 4, ROUNDS = 50 };

struct writer {
	struct store *store;
	int number;
	pthread_barrier_t *barrier;
	uint64_t version; /* what the cell's version is, before each round */
	bool won[ROUNDS];
	uint64_t seen[ROUNDS]; /* the version after the round, as this writer was told */
	bool failed;
};

struct waiting {
	bool finished;
	int err;
};

static void finished(struct store_write *write, int err)
{
	struct waiting *waiting = write->owner;
	*waiting = (struct waiting){true, err};
}

static struct store_write_cond contend(struct writer *writer, struct task_queue *queue)
{
	struct waiting waiting = {0};
	struct store_write_cond *outcome, copy = {0};
	struct store_write *write = store_write_new(writer->store, 65536);
	char value[16];
	snprintf(value, sizeof(value), "%d", writer->number);
	write->executor = &queue->executor;
	write->done = finished;
	write->owner = &waiting;
	if (store_cell_put_if(write, TABLE_LEASES, KEY, COLUMN, writer->version, slice_of(value), 0,
			      &outcome) ||
	    store_write_submit(write)) {
		writer->failed = true;
	} else {
		while (!waiting.finished)
			task_queue_wait(queue);
		writer->failed |= waiting.err != 0;
		copy = *outcome;
	}
	store_write_free(write);
	return copy;
}

static void *compete(void *argument)
{
	struct writer *writer = argument;
	struct task_queue queue;
	task_queue_init(&queue);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(writer->barrier);
		struct store_write_cond outcome = contend(writer, &queue);
		writer->won[round] = outcome.applied;
		writer->seen[round] = writer->version = outcome.version;
	}
	task_queue_release(&queue);
	return NULL;
}

/* All begin a round knowing the same version; exactly one gets it, and all are told the same. */
static void exactly_one_wins_each_round(struct rig *rig)
{
	pthread_barrier_t barrier;
	pthread_t threads[WRITERS];
	struct writer *writers = arena_zalloc(&rig->keep, WRITERS * sizeof(*writers));
	pthread_barrier_init(&barrier, NULL, WRITERS);
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){.store = rig->store, .number = i, .barrier = &barrier};
		assert_int_equal(pthread_create(&threads[i], NULL, compete, &writers[i]), 0);
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
	for (int round = 0; round < ROUNDS; round++) {
		int winners = 0;
		for (int i = 0; i < WRITERS; i++) {
			assert_false(writers[i].failed);
			winners += writers[i].won[round];
			assert_int_equal(writers[i].seen[round], writers[0].seen[round]);
		}
		assert_int_equal(winners, 1);
	}
}

const struct contract_case cases_conditional[] = {
	CASE(first_one_wins),
	CASE(deletion_needs_the_version),
	CASE(version_is_never_used_twice),
	CASE(expired_lease_is_free),
	CASE(refused_condition_leaves_the_rest),
	CASE(conditions_of_one_batch_follow_each_other),
	CASE(leases_are_scanned),
	CASE(exactly_one_wins_each_round),
	{0},
};
