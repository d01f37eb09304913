/* A counter that falls: whether it wrapped or began again, and what is counted then. Expected
 * values are those of the predecessor's own tests, or worked by hand beside the case. */
#include "rate_counter_harness.h"

/* ---- Speeds ---------------------------------------------------------------------------------- */

static enum counter_outcome feed_speed(struct run *run, int64_t ts_ms, uint64_t value,
				       uint32_t speed_mbit)
{
	struct counter_sample s = {.ts_ms = ts_ms,
				   .value = value,
				   .has_uptime = true,
				   .uptime_ticks = (uint32_t)(1000000 + ts_ms / 10),
				   .uptime_ts_ms = ts_ms,
				   .speed_mbit = speed_mbit};

	return counter_feed(&run->def, &run->counter, &s, &run->out);
}

/* 20 Tbit/s are 2.5e12 octets a second, 75e12 in 30 s; 16 / 30 and 14 / 30 of them. Whoever claims
 * more says nothing, and is held to 110e9: 3.3e12 in 30 s. */
static void no_speed_is_believed_beyond_a_bound(void **state)
{
	struct run *run = new_run(30000, 64);

	(void)state;
	feed_speed(run, 14000, 0, 20000000);
	assert_int_equal(feed_speed(run, 44000, 75000000000000, 20000000), COUNTER_COUNTED);
	assert_int_equal(feed_speed(run, 74000, 150000000000001, 20000000), COUNTER_LOST);
	close_all(run);
	assert_bin(run, 0, 40000000000000, 1);
	assert_bin(run, 30000, 35000000000000, 1);
	assert_bin(run, 60000, 0, 0);
	feed_speed(run, 104000, 0, 20000001);
	feed_speed(run, 134000, 0, 20000001);
	assert_int_equal(feed_speed(run, 164000, 3300000000000, UINT32_MAX), COUNTER_COUNTED);
	assert_int_equal(feed_speed(run, 194000, 6600000000001, UINT32_MAX), COUNTER_LOST);
	mem_free(run);
}

/* 1e8 a second over 30 s, from 2^32 - 1e9 past the largest value to 2e9: 10 Mbit/s with a quarter
 * more carry 46,875,000 in that time. The speeds of the two polls decide, the larger of them, and
 * nothing that was said before. */
static void a_wrap_is_judged_by_the_speeds_of_its_own_polls(void **state)
{
	static const struct {
		uint32_t before, from, to;
		bool octets;
		enum counter_outcome outcome;
	} cases[] = {
		{10, 10000, 10000, true, COUNTER_WRAPPED}, {10000, 10, 10, true, COUNTER_LOST},
		{10, 10000, 10, true, COUNTER_WRAPPED},    {10, 10, 10000, true, COUNTER_WRAPPED},
		{10000, 10, 0, true, COUNTER_LOST},        {10000, 0, 10, true, COUNTER_LOST},
		{10, 0, 0, true, COUNTER_WRAPPED},         {10, UINT32_MAX, 10, true, COUNTER_LOST},
		{10, 10, 10, false, COUNTER_WRAPPED},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run *run = new_run(30000, 32);
		run->def.octets = cases[i].octets;
		feed_speed(run, 0, 3294967295, cases[i].before);
		feed_speed(run, 30000, 3294967296, cases[i].from);
		assert_int_equal(feed_speed(run, 60000, 2000000000, cases[i].to), cases[i].outcome);
		assert_int_equal(run->out.delta,
				 cases[i].outcome == COUNTER_WRAPPED ? 3000000000 : 0);
		mem_free(run);
	}
}

/* A step that another counter left fits only one that had the same speed before. */
static void a_step_of_another_speed_is_not_taken(void **state)
{
	struct run *fast = new_run(30000, 32), *slow = new_run(30000, 32);
	struct counter_sample s = {.ts_ms = 60000,
				   .value = 2000000000,
				   .has_uptime = true,
				   .uptime_ticks = 1006000,
				   .uptime_ts_ms = 60000,
				   .speed_mbit = 10};
	struct counter_step step = {.span_ms = 0};

	(void)state;
	feed_speed(fast, 30000, 3294967296, 10000);
	feed_speed(slow, 30000, 3294967296, 10);
	assert_int_equal(
		counter_feed_together(&fast->def, &fast->counter, &s, NULL, &step, &fast->out),
		COUNTER_WRAPPED);
	assert_int_equal(
		counter_feed_together(&slow->def, &slow->counter, &s, NULL, &step, &slow->out),
		COUNTER_LOST);
	mem_free(fast);
	mem_free(slow);
}

/* ---- Worked cases with time ------------------------------------------------------------------ */

static void a_counter_that_falls_loses_one_interval(void **state)
{
	static const struct {
		int64_t s;
		uint64_t value;
	} polls[] = {
		{1384371885, 3983656138}, {1384371914, 3984242432}, {1384371945, 3985220546},
		{1384371974, 3892978381}, {1384372005, 3893271099}, {1384372034, 3893650623},
	};
	static const struct {
		int64_t s;
		uint64_t val;
		uint32_t is_valid;
	} bins[] = {
		{1384371870, 303256, 1}, {1384371900, 787871, 2}, {1384371930, 473281, 1},
		{1384371960, 151080, 1}, {1384371990, 337944, 2}, {1384372020, 183218, 1},
	};
	struct run *run = new_run(30000, 32);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(polls); i++)
		assert_int_equal(feed(run, polls[i].s * 1000, polls[i].value),
				 i == 0   ? COUNTER_FIRST
				 : i == 3 ? COUNTER_LOST
					  : COUNTER_COUNTED);
	close_all(run);
	assert_int_equal(rows_of(run, 0), 6);
	for (size_t i = 0; i < ARRAY_LEN(bins); i++)
		assert_bin(run, bins[i].s * 1000, bins[i].val, bins[i].is_valid);
	assert_int_equal(row_at(run, 0, 1384371930000)->flags, COUNTER_RESET);
	assert_int_equal(row_at(run, 0, 1384371960000)->flags, COUNTER_RESET);
	assert_int_equal(row_at(run, 0, 1384371930000)->covered_ms, 15000);
	assert_int_equal(row_at(run, 0, 1384371960000)->covered_ms, 16000);
	assert_int_equal(row_at(run, 0, 1384371900000)->flags, 0);
	/* the hour of 1384369200 */
	assert_int_equal(row_at(run, 1, 1384369200000)->val, 2236650);
	assert_int_equal(row_at(run, 1, 1384369200000)->count, 4);
	assert_int_equal(row_at(run, 1, 1384369200000)->covered_ms, 120000);
	assert_int_equal(row_at(run, 1, 1384369200000)->flags, COUNTER_RESET);
	mem_free(run);
}

static void counters_wrap_while_the_device_is_up(void **state)
{
	static const struct {
		unsigned width_bits;
		uint64_t last;
	} cases[] = {{32, 4294963596}, {64, UINT64_C(18446744073709547916)}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run *run = new_run(30000, cases[i].width_bits);
		feed_up(run, 0, cases[i].last, 100000);
		assert_int_equal(feed_up(run, 30000, 37, 103000), COUNTER_WRAPPED);
		assert_int_equal(run->out.delta, 3737);
		close_all(run);
		assert_bin(run, 0, 3737, 1);
		assert_int_equal(row_at(run, 0, 0)->flags, COUNTER_WRAP);
		mem_free(run);
	}
}

/* 59 s and 1 s of 60: 60.97 and 1.03 of 62. */
static void a_restarted_device_books_its_new_value(void **state)
{
	struct run *run = new_run(60000, 32);

	(void)state;
	feed_up(run, 61000, 100, 9000000);
	assert_int_equal(feed_up(run, 121000, 62, 4000), COUNTER_RESTARTED);
	assert_int_equal(run->out.delta, 62);
	close_all(run);
	assert_bin(run, 60000, 61, 1);
	assert_bin(run, 120000, 1, 1);
	assert_int_equal(row_at(run, 0, 60000)->flags, COUNTER_RESET);
	mem_free(run);
}

/* ---- Wrap or reset? -------------------------------------------------------------------------- */

struct fall {
	const char *what;
	unsigned width_bits;
	uint32_t speed_mbit;
	uint64_t last, now;
	uint32_t up_last, up_now; /* 0: unknown */
	uint32_t discontinuity_last, discontinuity_now;
	int64_t span_ms;
	enum counter_outcome outcome;
	uint64_t delta;
};

static const struct fall falls[] = {
	{"uptime unknown", 32, 0, 4294963596, 37, 0, 0, 0, 0, 30000, COUNTER_LOST, 0},
	{"unknown before", 32, 0, 4294963596, 37, 0, 3000, 0, 0, 30000, COUNTER_LOST, 0},
	{"unknown now", 32, 0, 4294963596, 37, 3000, 0, 0, 0, 30000, COUNTER_LOST, 0},
	{"uptime stands still", 32, 0, 4294963596, 37, 3000, 3000, 0, 0, 30000, COUNTER_LOST, 0},
	{"up", 32, 0, 4294963596, 37, 100000, 103000, 0, 0, 30000, COUNTER_WRAPPED, 3737},
	{"64 bits do not hold it", 64, 0, 4294963596, 37, 100000, 103000, 0, 0, 30000, COUNTER_LOST,
	 0},
	{"a value beyond 32 bits", 32, 0, 4294967296, 37, 100000, 103000, 0, 0, 30000, COUNTER_LOST,
	 0},
	/* 1 Mbit/s is 125,000 octets a second, with a quarter more 156,250: 4,687,500 in 30 s. */
	{"the line cannot", 32, 1, 4290279796, 1, 100000, 103000, 0, 0, 30000, COUNTER_LOST, 0},
	{"the line just can", 32, 1, 4290279797, 1, 100000, 103000, 0, 0, 30000, COUNTER_WRAPPED,
	 4687500},
	{"a discontinuity", 32, 0, 4294963596, 37, 100000, 103000, 0, 50000, 30000, COUNTER_LOST,
	 0},
	{"an old discontinuity", 32, 0, 4294963596, 37, 100000, 103000, 77, 77, 30000,
	 COUNTER_WRAPPED, 3737},
	/* sysUpTime goes from 4294966296 over its edge to 2000 within 30 s. */
	{"uptime wraps too", 32, 0, 4294963596, 37, 4294966296, 2000, 0, 0, 30000, COUNTER_WRAPPED,
	 3737},
	/* The same two, but 10 minutes apart: it did not run for 30 s only. */
	{"uptime fell near its edge", 32, 0, 4294963596, 37, 4294966296, 2000, 0, 0, 600000,
	 COUNTER_RESTARTED, 37},
	/* 2^32 - 2^28 = 4026531840 is 15/16 of the range */
	{"a small step back", 32, 0, 4000000000, 3999999999, 100000, 103000, 0, 0, 30000,
	 COUNTER_LOST, 0},
	{"a sixteenth back", 32, 0, 268435455, 0, 100000, 103000, 0, 0, 30000, COUNTER_LOST, 0},
	{"more than a sixteenth", 32, 0, 268435456, 0, 100000, 103000, 0, 0, 60000, COUNTER_WRAPPED,
	 4026531840},
	{"restart, value possible", 64, 1, 100, 62, 9000000, 2000, 0, 0, 30000, COUNTER_RESTARTED,
	 62},
	{"restart, too much for the line", 64, 1, 100000000, 4687501, 9000000, 2000, 0, 0, 30000,
	 COUNTER_LOST, 0},
	{"restart, all that the line has", 64, 1, 100000000, 4687500, 9000000, 2000, 0, 0, 30000,
	 COUNTER_RESTARTED, 4687500},
	/* An hour's gap, but up for 20 s (and a minute of doubt): 12,500,000 at most. */
	{"restart after a gap", 64, 1, 100000000, 12500001, 9000000, 2000, 0, 0, 3600000,
	 COUNTER_LOST, 0},
	{"restart after a gap, possible", 64, 1, 100000000, 12500000, 9000000, 2000, 0, 0, 3600000,
	 COUNTER_RESTARTED, 12500000},
	{"restart with a discontinuity", 64, 0, 100, 62, 9000000, 2000, 7, 1, 30000,
	 COUNTER_RESTARTED, 62},
	/* Up for three days, polled five days ago when it was up for an hour: it restarted. */
	{"restart that passed its old uptime", 64, 0, 100, 62, 360000, 25920000, 0, 0, 432000000,
	 COUNTER_RESTARTED, 62},
	/* Its clock steps back by a minute after months: nothing is known. */
	{"the agent's clock steps back", 32, 0, 4294963596, 37, 900000000, 899994000, 0, 0, 30000,
	 COUNTER_LOST, 0},
	/* After more than 497 days uptime says nothing. */
	{"a gap of 500 days", 32, 0, 4294963596, 37, 100000, 103000, 0, 0, 43200000000,
	 COUNTER_LOST, 0},
	/* Not falling: */
	{"an agent that restarts", 64, 0, 1000, 1500, 9000000, 2000, 0, 0, 30000, COUNTER_RESTARTED,
	 500},
	{"a discontinuity upwards", 64, 0, 1000, 1500, 9000000, 9003000, 0, 9001000, 30000,
	 COUNTER_LOST, 0},
	{"more than the speed it claims", 64, 1, 1000, 9001000, 9000000, 9003000, 0, 0, 30000,
	 COUNTER_COUNTED, 9000000},
	/* 110e9 per second are 3.3e12 in 30 s. */
	{"a jump that nothing can carry", 64, 1, 0, 3300000000001, 9000000, 9003000, 0, 0, 30000,
	 COUNTER_LOST, 0},
	{"as fast as there is", 64, 1, 0, 3300000000000, 9000000, 9003000, 0, 0, 30000,
	 COUNTER_COUNTED, 3300000000000},
	{"an agent that shows 20 s at once", 64, 0, 0, 2000000000000, 9000000, 9000100, 0, 0, 1000,
	 COUNTER_COUNTED, 2000000000000},
	{"nothing", 64, 0, 5, 5, 9000000, 9003000, 0, 0, 30000, COUNTER_COUNTED, 0},
};

static void wraps_and_resets_are_told_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(falls); i++) {
		const struct fall *f = &falls[i];
		struct run *run = new_run(30000, f->width_bits);
		struct counter_sample s = {.value = f->last,
					   .has_uptime = f->up_last != 0,
					   .uptime_ticks = f->up_last,
					   .has_discontinuity = true,
					   .discontinuity_ticks = f->discontinuity_last,
					   .speed_mbit = f->speed_mbit};
		counter_feed(&run->def, &run->counter, &s, &run->out);
		s = (struct counter_sample){.ts_ms = f->span_ms,
					    .value = f->now,
					    .has_uptime = f->up_now != 0,
					    .uptime_ticks = f->up_now,
					    .uptime_ts_ms = f->span_ms,
					    .has_discontinuity = true,
					    .discontinuity_ticks = f->discontinuity_now,
					    .speed_mbit = f->speed_mbit};
		enum counter_outcome outcome =
			counter_feed(&run->def, &run->counter, &s, &run->out);
		if (outcome != f->outcome || run->out.delta != f->delta)
			fail_msg("%s: outcome %d, delta %llu", f->what, outcome,
				 (unsigned long long)run->out.delta);
		/* Whatever it was, the next interval counts. */
		s.ts_ms += 30000;
		s.uptime_ts_ms += 30000;
		s.uptime_ticks += 3000;
		s.value += 11;
		assert_int_equal(counter_feed(&run->def, &run->counter, &s, &run->out),
				 COUNTER_COUNTED);
		assert_int_equal(run->out.delta, 11);
		close_all(run);
		assert_int_equal(sum_of(run, 0, false) + sum_of(run, 0, true), f->delta + 11);
		mem_free(run);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_speed_is_believed_beyond_a_bound),
		cmocka_unit_test(a_wrap_is_judged_by_the_speeds_of_its_own_polls),
		cmocka_unit_test(a_step_of_another_speed_is_not_taken),
		cmocka_unit_test(a_counter_that_falls_loses_one_interval),
		cmocka_unit_test(counters_wrap_while_the_device_is_up),
		cmocka_unit_test(a_restarted_device_books_its_new_value),
		cmocka_unit_test(wraps_and_resets_are_told_apart),
	};
	return cmocka_run_group_tests_name("rate_counter_wrap", tests, NULL, NULL);
}
