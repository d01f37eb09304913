/* Slots: aligned to the clock, spread, not moved by restarts; and the ring behind the polls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "snmp/poller_ring.h"
#include "snmp/poller_schedule.h"

enum { ENTRIES = 3000, INTERVAL_MS = 30000 };

static void slots_are_multiples_of_the_interval_plus_the_phase(UNUSED void **state)
{
	struct schedule_entry e = {.interval_ms = 30000, .phase_ms = 7000};
	/* 33 * 30000 + 7000 = 997000, the next one 30 s later. */
	assert_int_equal(schedule_slot_after(&e, 1000000), 1027000);
	assert_int_equal(schedule_slot_after(&e, 1026999), 1027000);
	assert_int_equal(schedule_slot_after(&e, 1027000), 1057000);
	assert_int_equal(schedule_slot_after(&e, 996999), 997000);
	e.phase_ms = 0;
	assert_int_equal(schedule_slot_after(&e, 0), 30000);
	/* Before 1970, where clocks are that are not set. */
	assert_int_equal(schedule_slot_after(&e, -1), 0);
}

/* 3,000 devices in tenths of the interval: 300 each, give or take 5 standard deviations (82). */
static void devices_are_spread_over_the_interval(UNUSED void **state)
{
	unsigned tenths[10] = {0};
	for (int i = 0; i < ENTRIES; i++) {
		char name[32];
		int len = snprintf(name, sizeof(name), "router-%d", i);
		struct slice device = {name, (size_t)len};
		int64_t phase = schedule_phase(device, SLICE("FastPollHC"), INTERVAL_MS);
		assert_true(phase >= 0 && phase < INTERVAL_MS);
		assert_int_equal(phase, schedule_phase(device, SLICE("FastPollHC"), INTERVAL_MS));
		tenths[phase / (INTERVAL_MS / 10)]++;
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(tenths[i], 218, 382);
	/* Every 200 ms, or a tenth of a shorter interval. */
	assert_int_equal(schedule_phase(SLICE("a"), SLICE("FastPollHC"), INTERVAL_MS) % 200, 0);
	assert_int_equal(schedule_phase(SLICE("a"), SLICE("FastPollHC"), 1000) % 100, 0);
	assert_int_equal(schedule_phase(SLICE("a"), SLICE("FastPollHC"), 1), 0);
	/* Of one device, OIDSets lie apart, and names that run together too. */
	assert_int_not_equal(schedule_phase(SLICE("a"), SLICE("FastPollHC"), INTERVAL_MS),
			     schedule_phase(SLICE("a"), SLICE("Errors"), INTERVAL_MS));
	assert_int_not_equal(schedule_phase(SLICE("ab"), SLICE("c"), 1000000007),
			     schedule_phase(SLICE("a"), SLICE("bc"), 1000000007));
}

static void each_entry_has_its_turn_in_every_slot(UNUSED void **state)
{
	struct schedule schedule;
	static struct schedule_entry entries[ENTRIES];
	static unsigned turns[ENTRIES];
	struct random random;
	int64_t missed;
	random_init(&random, 1);
	schedule_init(&schedule);
	for (int i = 0; i < ENTRIES; i++) {
		entries[i] = (struct schedule_entry){.interval_ms = 11000 + (i % 3) * 1000};
		entries[i].phase_ms =
			(int64_t)random_below(&random, (uint64_t)entries[i].interval_ms);
		schedule_add(&schedule, &entries[i], 0);
	}
	/* 132 s hold 12, 11 and 10 whole intervals. */
	for (int64_t now = 0; now <= 132000; now = schedule_next_ms(&schedule)) {
		struct schedule_entry *e = schedule_next_due(&schedule, now, &missed);
		if (!e)
			continue;
		assert_int_equal(missed, 0);
		assert_int_equal((now - e->phase_ms) % e->interval_ms, 0);
		assert_int_equal(e->due_ms, now + e->interval_ms);
		turns[e - entries]++;
	}
	for (int i = 0; i < ENTRIES; i++) {
		/* Phase 0 has its first turn after one interval. */
		unsigned whole = (unsigned)(132000 / entries[i].interval_ms);
		assert_in_range(turns[i], whole, whole + 1);
	}
	for (int i = 0; i < ENTRIES; i++)
		schedule_remove(&schedule, &entries[(i * 7) % ENTRIES]);
	assert_int_equal(schedule.count, 0);
	assert_true(schedule_next_ms(&schedule) == INT64_MAX);
	assert_null(schedule_next_due(&schedule, INT64_MAX / 2, &missed));
	schedule_release(&schedule);
}

static void slots_that_have_passed_are_counted_not_made_up_for(UNUSED void **state)
{
	struct schedule schedule;
	struct schedule_entry e = {.interval_ms = 30000, .phase_ms = 7000};
	int64_t missed;
	schedule_init(&schedule);
	schedule_add(&schedule, &e, 0);
	assert_int_equal(schedule_next_ms(&schedule), 7000);
	assert_null(schedule_next_due(&schedule, 6999, &missed));
	/* Late, but within the slot: it has its turn, and the next one is where it was. */
	assert_ptr_equal(schedule_next_due(&schedule, 36999, &missed), &e);
	assert_int_equal(missed, 0);
	assert_int_equal(e.due_ms, 37000);
	/* Three slots went by: 37, 67, 97 s. */
	assert_ptr_equal(schedule_next_due(&schedule, 127000, &missed), &e);
	assert_int_equal(missed, 3);
	assert_int_equal(e.due_ms, 157000);
	/* The clock is set back by a minute. */
	schedule_restart(&schedule, 67000);
	assert_int_equal(schedule_next_ms(&schedule), 97000);
	schedule_release(&schedule);
}

static size_t push(struct ring *ring, size_t len)
{
	char bytes[1000] = {0};
	return ring_push(ring, NULL, SLICE("d"), (struct slice){bytes, len});
}

static void the_ring_drops_the_oldest(UNUSED void **state)
{
	struct ring ring;
	ring_init(&ring, 3, 10000);
	for (size_t i = 1; i <= 3; i++)
		assert_int_equal(push(&ring, i), 0);
	assert_int_equal(push(&ring, 4), 1);
	assert_int_equal(ring.messages, 3);
	assert_int_equal(ring.first->bytes.len, 2);
	assert_int_equal(ring.last->bytes.len, 4);
	assert_int_equal(slice_compare(ring.first->device, SLICE("d")), 0);
	ring_release(&ring);
	assert_int_equal(ring.bytes, 0);
	/* By bytes: a large one pushes out as many as it takes; one that never fits goes alone. */
	ring_init(&ring, 100, 3 * (sizeof(struct ring_message) + 1 + 100));
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(push(&ring, 100), 0);
	assert_int_equal(push(&ring, 101), 2);
	assert_int_equal(push(&ring, 1000), 1);
	assert_int_equal(ring.messages, 2);
	assert_int_equal(ring.last->bytes.len, 101);
	ring_release(&ring);
	assert_null(ring.first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_are_multiples_of_the_interval_plus_the_phase),
		cmocka_unit_test(devices_are_spread_over_the_interval),
		cmocka_unit_test(each_entry_has_its_turn_in_every_slot),
		cmocka_unit_test(slots_that_have_passed_are_counted_not_made_up_for),
		cmocka_unit_test(the_ring_drops_the_oldest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
