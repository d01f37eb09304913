/* Messages that are set aside: what stays when writes fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/exec.h"
#include "naive.h"
#include "queue/aside.h"
#include "store/wait.h"

struct rig {
	struct clock_virtual clock;
	struct store *store;
	struct task_queue queue;
	struct queue_aside aside;
};

static void rig_open(struct rig *rig)
{
	struct errbuf e;
	clock_virtual_init(&rig->clock, INT64_C(1790000000000000));
	rig->store = naive_open(&rig->clock.clock);
	task_queue_init(&rig->queue);
	assert_int_equal(
		queue_aside_open(&rig->aside, SLICE("q"), rig->store, &rig->clock.clock, &e), 0);
}

static void rig_close(struct rig *rig)
{
	store_close(rig->store);
	task_queue_release(&rig->queue);
}

static void add(struct rig *rig, bool stored)
{
	const struct queue_aside_message message = {
		.reason = SLICE("why"), .bytes = SLICE("bytes"), .whole_bytes = strlen("bytes")};
	struct store_write *write = store_write_new(rig->store, 1 << 20);
	uint64_t sequence = rig->aside.next;
	assert_int_equal(queue_aside_add(&rig->aside, &message, write), 0);
	if (stored)
		assert_int_equal(store_write_wait(write, &rig->queue), 0);
	else
		queue_aside_take_back(&rig->aside, sequence);
	store_write_free(write);
}

static int count_one(const struct store_cell *cell, void *owner)
{
	(void)cell;
	++*(size_t *)owner;
	return 0;
}

static size_t count_stored(struct rig *rig)
{
	const struct store_parts key = {{SLICE("q")}};
	struct errbuf e;
	size_t count = 0;
	assert_int_equal(store_row_wait(rig->store, &rig->queue, clock_wall_ms(&rig->clock.clock),
					TABLE_QUEUE_ASIDE, &key, count_one, &count, &e),
			 0);
	return count;
}

/* As while the store is full: each try took the place of one that lay there. */
static void writes_that_fail_drive_nothing_out(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig);
	for (int i = 0; i < 15; i++)
		add(&rig, true);
	for (int i = 0; i < 2 * ASIDE_MESSAGES_MAX; i++)
		add(&rig, false);
	assert_int_equal(rig.aside.count, 15);
	add(&rig, true);
	assert_int_equal(rig.aside.count, 16);
	assert_int_equal(rig.aside.dropped, 0);
	assert_int_equal(count_stored(&rig), 16);
	rig_close(&rig);
}

/* The first that is ever set aside, too. */
static void nothing_is_there_after_writes_that_failed(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig);
	add(&rig, false);
	assert_int_equal(rig.aside.count, 0);
	assert_true(rig.aside.first == rig.aside.next);
	add(&rig, true);
	assert_int_equal(rig.aside.count, 1);
	assert_int_equal(count_stored(&rig), 1);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_that_fail_drive_nothing_out),
		cmocka_unit_test(nothing_is_there_after_writes_that_failed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
