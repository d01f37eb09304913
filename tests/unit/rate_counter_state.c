/* The state of counters as bytes: it comes back whole, and what is damaged or of another version is
 * refused or does no harm. */
#include "rate_counter_harness.h"

#include "base/cursor.h"

enum { STATE_BYTES = 512, STATE_ROOM = 4096 };

static size_t state_bytes(struct run *run, uint8_t *to)
{
	const struct counter *counter = &run->counter;
	struct buf out;
	size_t len;

	buf_init(&out, STATE_ROOM);
	assert_int_equal(counter_encode(&run->config, &counter, 1, &out), 0);
	len = out.len;
	assert_true(len <= STATE_BYTES);
	memcpy(to, out.data, len);
	buf_release(&out);
	return len;
}

static void fill_for_state(struct run *run)
{
	feed_up(run, 1000, 5, 100);
	feed_up(run, 31000, 95, 3100);
	feed_up(run, 62000, 600, 6200);
}

static int decode(const struct run *run, const uint8_t *bytes, size_t len, struct counter *counter)
{
	struct cursor from = cursor_of(bytes, len);
	int err = counter_decode(&run->config, &from, &counter, 1);

	return err == 0 && cursor_left(&from) ? ERR_DAMAGED : err;
}

static void states_come_back_and_every_cut_is_refused(void **state)
{
	struct run *run = new_run(30000, 64);
	uint8_t bytes[STATE_BYTES], exact[STATE_BYTES];
	struct counter back;
	size_t len;

	(void)state;
	fill_for_state(run);
	len = state_bytes(run, bytes);
	assert_int_equal(decode(run, bytes, len, &back), 0);
	run->counter = back;
	assert_int_equal(state_bytes(run, exact), len);
	assert_memory_equal(exact, bytes, len);
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(decode(run, bytes, cut, &back), ERR_DAMAGED);
	assert_true(len <= 128);
	mem_free(run);
}

/* Ten counters of an interface, one of them with a state of another time, one that fell behind with
 * nothing but its value: each comes back as it was, and together they take little more than what
 * differs. */
static void states_that_are_kept_together_come_back(void **state)
{
	enum { COUNTERS = 10 };
	struct run *run = new_run(30000, 64);
	struct counter before[COUNTERS], after[COUNTERS], *to[COUNTERS];
	const struct counter *from[COUNTERS];
	struct buf out, again;

	(void)state;
	buf_init(&out, 1 << 16);
	buf_init(&again, 1 << 16);
	for (size_t i = 0; i < COUNTERS; i++) {
		run->counter = (struct counter){0};
		feed_up(run, 1000, 5 + i, 100);
		if (i != 3)
			feed_up(run, i == 7 ? 45000 : 31000, 9500 + 70000 * i, 3100);
		run->counter.last.speed_mbit = i == 5 ? 40000 : 10000;
		before[i] = run->counter;
		from[i] = &before[i];
		to[i] = &after[i];
	}
	assert_int_equal(counter_encode(&run->config, from, COUNTERS, &out), 0);
	for (size_t len = 0; len <= out.len; len++) {
		struct cursor cursor = cursor_of(out.data, len);
		memset(after, 0xaa, sizeof(after));
		assert_int_equal(counter_decode(&run->config, &cursor, to, COUNTERS),
				 len < out.len ? ERR_DAMAGED : 0);
	}
	for (size_t i = 0; i < COUNTERS; i++) {
		assert_int_equal(after[i].last.ts_ms, before[i].last.ts_ms);
		assert_int_equal(after[i].value, before[i].value);
		assert_int_equal(after[i].last.speed_mbit, i == 5 ? 40000 : 10000);
		assert_int_equal(after[i].open[2].val, before[i].open[2].val);
		assert_int_equal(after[i].last.offset_ms[0], before[i].last.offset_ms[0]);
		assert_true(after[i].extremes[1].max == before[i].extremes[1].max);
		from[i] = &after[i];
	}
	assert_int_equal(counter_encode(&run->config, from, COUNTERS, &again), 0);
	assert_int_equal(again.len, out.len);
	assert_memory_equal(again.data, out.data, out.len);
	assert_true(out.len <= 80 * COUNTERS);
	buf_release(&out);
	buf_release(&again);
	mem_free(run);
}

static void states_of_others_are_refused(void **state)
{
	struct run *run = new_run(30000, 64);
	uint8_t bytes[STATE_BYTES];
	struct counter back;
	size_t len;

	(void)state;
	fill_for_state(run);
	len = state_bytes(run, bytes);
	run->config.period_count = 1;
	assert_int_equal(decode(run, bytes, len, &back), ERR_DAMAGED);
	run->config.period_count = 2;
	bytes[0]++;
	assert_int_equal(decode(run, bytes, len, &back), ERR_VERSION);
	bytes[0] = 0;
	assert_int_equal(decode(run, bytes, len, &back), ERR_DAMAGED);
	mem_free(run);
}

/* As version 2 had it, where no speed stood between the discontinuity time and the first bin: that
 * of an unknown one is a zero byte, behind version and periods (2), what is there (2), 62000 (4),
 * 600 (3), 6200 (3) and two zeros. */
static void a_state_of_version_2_has_no_speed(void **state)
{
	enum { SPEED_AT = 2 + 2 + 4 + 3 + 3 + 1 + 1 };
	struct run *run = new_run(30000, 64);
	uint8_t bytes[STATE_BYTES], old[STATE_BYTES], again[STATE_BYTES];
	struct counter back;
	size_t len;

	(void)state;
	fill_for_state(run);
	len = state_bytes(run, bytes);
	assert_int_equal(bytes[SPEED_AT], 0);
	memcpy(old, bytes, SPEED_AT);
	memcpy(old + SPEED_AT, bytes + SPEED_AT + 1, len - SPEED_AT - 1);
	old[0] = 2;
	memset(&back, 0xaa, sizeof(back));
	assert_int_equal(decode(run, old, len - 1, &back), 0);
	assert_int_equal(back.last.speed_mbit, 0);
	run->counter = back;
	assert_int_equal(state_bytes(run, again), len);
	assert_memory_equal(again, bytes, len);
	for (size_t cut = 0; cut < len - 1; cut++)
		assert_int_equal(decode(run, old, cut, &back), ERR_DAMAGED);
	old[0] = 1;
	assert_int_equal(decode(run, old, len - 1, &back), ERR_DAMAGED);
	mem_free(run);
}

/* Whatever a flipped bit makes of a state: refused, or a state that can be fed and written. */
static void damaged_states_do_no_harm(void **state)
{
	struct run *run = new_run(30000, 64);
	uint8_t bytes[STATE_BYTES];
	size_t len;

	(void)state;
	fill_for_state(run);
	len = state_bytes(run, bytes);
	for (size_t bit = 0; bit < len * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (decode(run, bytes, len, &run->counter) == 0) {
			uint8_t again[STATE_BYTES];
			run->out.count = 0;
			feed_up(run, 93000, 700, 9300);
			feed_up(run, 100000000, 800, 10000000);
			close_all(run);
			state_bytes(run, again);
		}
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	mem_free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_come_back_and_every_cut_is_refused),
		cmocka_unit_test(states_that_are_kept_together_come_back),
		cmocka_unit_test(states_of_others_are_refused),
		cmocka_unit_test(a_state_of_version_2_has_no_speed),
		cmocka_unit_test(damaged_states_do_no_harm),
	};
	return cmocka_run_group_tests_name("rate_counter_state", tests, NULL, NULL);
}
