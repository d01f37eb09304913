/* Leases of partitions: two holders on one store, on a virtual clock. */
#include "ingest_harness.h"

#include "rollup/leases.h"

#define LEASE_MS 30000

struct holder {
	struct rollup_leases *leases;
	struct rollup_partitions held;
	int err;
	bool done;
};

struct rig {
	struct clock_virtual clock;
	struct task_queue queue;
	struct store *store;
};

static void on_done(void *owner, int err, const struct rollup_partitions *held, int64_t until_ms)
{
	struct holder *holder = owner;
	(void)until_ms;
	holder->done = true;
	holder->err = err;
	holder->held = *held;
}

static void rig_open(struct rig *rig)
{
	clock_virtual_init(&rig->clock, HARNESS_NOW_MS * 1000);
	task_queue_init(&rig->queue);
	rig->store = naive_open(&rig->clock.clock);
}

static void rig_close(struct rig *rig)
{
	store_close(rig->store);
	task_queue_release(&rig->queue);
}

static void holder_open(struct rig *rig, struct holder *holder, const char *name)
{
	*holder = (struct holder){0};
	holder->leases =
		rollup_leases_new(&(struct rollup_leases_options){.store = rig->store,
								  .clock = &rig->clock.clock,
								  .executor = &rig->queue.executor,
								  .holder = slice_of(name),
								  .lease_ms = LEASE_MS,
								  .done = on_done,
								  .owner = holder});
}

static void pump(struct rig *rig, struct holder *holder)
{
	holder->done = false;
	while (!holder->done)
		task_queue_wait(&rig->queue);
}

/* Which of 0 to 3 it has after it has asked for `wanted`. */
static unsigned take(struct rig *rig, struct holder *holder, const char *wanted)
{
	struct rollup_partitions set;
	struct errbuf e;
	assert_int_equal(rollup_partitions_parse(slice_of(wanted), 8, &set, &e), 0);
	assert_int_equal(rollup_leases_take(holder->leases, &set), 0);
	pump(rig, holder);
	assert_int_equal(holder->held.count, (size_t)__builtin_popcountll(holder->held.bits[0]));
	return (unsigned)holder->held.bits[0];
}

static void pass(struct rig *rig, int64_t ms)
{
	clock_virtual_advance(&rig->clock, ms * 1000);
}

static void one_has_what_the_other_does_not(void **state)
{
	(void)state;
	struct rig rig;
	struct holder a, b;
	rig_open(&rig);
	holder_open(&rig, &a, "a");
	holder_open(&rig, &b, "b");
	assert_int_equal(take(&rig, &a, "0-1"), 3);
	assert_int_equal(take(&rig, &b, "0-3"), 12);
	pass(&rig, LEASE_MS - 1);
	assert_int_equal(take(&rig, &b, "0-3"), 12);
	/* Renewed in the last moment: it goes on from there. */
	assert_int_equal(take(&rig, &a, "0-1"), 3);
	pass(&rig, LEASE_MS - 1);
	assert_int_equal(take(&rig, &b, "0-3"), 12);
	/* One that is gone is followed when its lease ends. */
	pass(&rig, 1);
	assert_int_equal(take(&rig, &b, "0-3"), 15);
	assert_int_equal(take(&rig, &a, "0-1"), 0);
	rollup_leases_free(a.leases);
	rollup_leases_free(b.leases);
	rig_close(&rig);
}

static void who_was_started_again_has_its_leases_at_once(void **state)
{
	(void)state;
	struct rig rig;
	struct holder a, b;
	rig_open(&rig);
	holder_open(&rig, &a, "a");
	assert_int_equal(take(&rig, &a, "0-1"), 3);
	rollup_leases_free(a.leases);
	holder_open(&rig, &a, "a");
	holder_open(&rig, &b, "ab");
	assert_int_equal(take(&rig, &b, "0-1"), 0);
	assert_int_equal(take(&rig, &a, "0-2"), 7);
	rollup_leases_free(a.leases);
	rollup_leases_free(b.leases);
	rig_close(&rig);
}

static void what_is_given_back_is_free_at_once(void **state)
{
	(void)state;
	struct rig rig;
	struct holder a, b;
	rig_open(&rig);
	holder_open(&rig, &a, "a");
	holder_open(&rig, &b, "b");
	assert_true(rollup_leases_give(a.leases) != 0);
	assert_int_equal(take(&rig, &a, "0-3"), 15);
	assert_int_equal(rollup_leases_give(a.leases), 0);
	pump(&rig, &a);
	assert_int_equal(a.held.count, 0);
	assert_int_equal(take(&rig, &b, "0-3"), 15);
	/* What others have by now is not given back for them. */
	assert_true(rollup_leases_give(a.leases) != 0);
	rollup_leases_free(a.leases);
	rollup_leases_free(b.leases);
	rig_close(&rig);
}

/* It was found out then, and only asked for again a pass later. */
static void a_lease_of_ones_own_that_has_ended_is_taken_anew(void **state)
{
	(void)state;
	struct rig rig;
	struct holder a;
	rig_open(&rig);
	holder_open(&rig, &a, "a");
	assert_int_equal(take(&rig, &a, "0-3"), 15);
	pass(&rig, LEASE_MS);
	assert_int_equal(take(&rig, &a, "0-3"), 15);
	rollup_leases_free(a.leases);
	rig_close(&rig);
}

static void a_write_that_fails_or_is_refused_is_tried_again(void **state)
{
	(void)state;
	struct rig rig;
	struct holder a;
	struct rollup_partitions set;
	struct errbuf e;
	rig_open(&rig);
	holder_open(&rig, &a, "a");
	assert_int_equal(rollup_partitions_parse(SLICE("0-3"), 8, &set, &e), 0);
	naive_refuse_writes(rig.store, ERR_BUSY, 1);
	assert_int_equal(rollup_leases_take(a.leases, &set), ERR_BUSY);
	naive_fail_writes(rig.store, ERR_UNKNOWN, 1);
	assert_int_equal(rollup_leases_take(a.leases, &set), 0);
	pump(&rig, &a);
	assert_int_equal(a.err, ERR_UNKNOWN);
	assert_int_equal(take(&rig, &a, "0-3"), 15);
	assert_int_equal(a.err, 0);
	rollup_leases_free(a.leases);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_has_what_the_other_does_not),
		cmocka_unit_test(who_was_started_again_has_its_leases_at_once),
		cmocka_unit_test(what_is_given_back_is_free_at_once),
		cmocka_unit_test(a_lease_of_ones_own_that_has_ended_is_taken_anew),
		cmocka_unit_test(a_write_that_fails_or_is_refused_is_tried_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
