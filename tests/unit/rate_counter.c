/* Counters to bins. Expected values are those of the reference's worked examples (E), of the
 * predecessor's own tests, or worked by hand beside the case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cursor.h"
#include "base/mem.h"
#include "rate/counter.h"
#include "rate_alu.h"

enum { ROWS_MAX = 8192 };

struct run {
	struct counter_config config;
	struct counter_def def;
	struct counter counter;
	struct counter_out out;
	struct counter_row rows[ROWS_MAX];
};

static struct run *new_run(int64_t base_ms, unsigned width_bits)
{
	struct run *run = mem_zalloc(sizeof(*run));

	run->config = (struct counter_config){base_ms, 2, {3600000, 86400000}};
	run->def = (struct counter_def){&run->config, width_bits, true};
	run->out = (struct counter_out){.rows = run->rows, .max = ROWS_MAX};
	return run;
}

static enum counter_outcome feed(struct run *run, int64_t ts_ms, uint64_t value)
{
	struct counter_sample s = {.ts_ms = ts_ms, .value = value};

	return counter_feed(&run->def, &run->counter, &s, &run->out);
}

static enum counter_outcome feed_up(struct run *run, int64_t ts_ms, uint64_t value, uint32_t ticks)
{
	struct counter_sample s = {.ts_ms = ts_ms,
				   .value = value,
				   .has_uptime = true,
				   .uptime_ticks = ticks,
				   .uptime_ts_ms = ts_ms};

	return counter_feed(&run->def, &run->counter, &s, &run->out);
}

/* The state stays as it is; what is open stands behind what was closed. */
static void close_all(struct run *run)
{
	counter_emit_open(&run->config, &run->counter, &run->out);
}

static const struct counter_row *row_at(const struct run *run, unsigned level, int64_t start_ms)
{
	const struct counter_row *found = NULL;

	for (size_t i = 0; i < run->out.count; i++) {
		const struct counter_row *row = &run->rows[i];
		if (row->level == level && row->start_ms == start_ms) {
			assert_null(found);
			found = row;
		}
	}
	return found;
}

static size_t rows_of(const struct run *run, unsigned level)
{
	size_t n = 0;

	for (size_t i = 0; i < run->out.count; i++)
		n += run->rows[i].level == level;
	return n;
}

static void assert_bin(const struct run *run, int64_t start_ms, uint64_t val, uint32_t is_valid)
{
	const struct counter_row *row = row_at(run, 0, start_ms);

	assert_non_null(row);
	assert_int_equal(row->val, val);
	assert_int_equal(row->count, is_valid);
}

static uint64_t sum_of(const struct run *run, unsigned level, bool unplaced)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < run->out.count; i++)
		if (run->rows[i].level == level)
			sum += unplaced ? run->rows[i].unplaced : run->rows[i].val;
	return sum;
}

/* ---- The worked examples of the reference ---------------------------------------------------- */

struct expected_bin {
	int64_t start_ms;
	uint64_t val;
};

static void assert_split(int64_t base_ms, int64_t t0, uint64_t v0, int64_t t1, uint64_t v1,
			 const struct expected_bin *bins, size_t count)
{
	struct run *run = new_run(base_ms, 64);

	assert_int_equal(feed(run, t0, v0), COUNTER_FIRST);
	assert_int_equal(feed(run, t1, v1), COUNTER_COUNTED);
	assert_int_equal(run->out.delta, v1 - v0);
	close_all(run);
	assert_int_equal(rows_of(run, 0), count);
	for (size_t i = 0; i < count; i++)
		assert_bin(run, bins[i].start_ms, bins[i].val, 1);
	mem_free(run);
}

#define SPLIT(base, t0, v0, t1, v1, ...)                                                           \
	assert_split(base, t0, v0, t1, v1, (const struct expected_bin[]){__VA_ARGS__},             \
		     sizeof((const struct expected_bin[]){__VA_ARGS__}) /                          \
			     sizeof(struct expected_bin))

static void deltas_are_split_as_the_reference_works_out(void **state)
{
	(void)state;
	SPLIT(30000, 0, 0, 30000, 100, {0, 100}, {30000, 0});
	SPLIT(30000, 31000, 100, 62000, 213, {30000, 106}, {60000, 7});
	SPLIT(30000, 90000, 100, 121000, 200, {90000, 97}, {120000, 3});
	SPLIT(30000, 1386369693000, 141368641534364, 1386369719000, 141368891281597,
	      {1386369690000, 249747233});
	SPLIT(30000, 14000, 100, 44000, 400, {0, 160}, {30000, 140});
	SPLIT(30000, 14000, 0, 89000, 1000, {0, 213}, {30000, 400}, {60000, 387});
}

static void assert_parts(uint64_t growth, int64_t span_ms, uint32_t offset_ms, int64_t width_ms,
			 const uint64_t *parts, size_t count)
{
	struct counter_pieces p;

	counter_split(growth, span_ms, offset_ms, width_ms, &p);
	assert_int_equal(p.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(p.growth[i], parts[i]);
}

/* 92 s are beyond three intervals of 30 s, so this example is of the split alone. And 2^64 - 1 is
 * 15 * 1229782938247303441: 16 and 14 of 30 s are 8 and 7 of these. */
static void the_split_takes_five_bins_and_all_of_64_bits(void **state)
{
	(void)state;
	assert_parts(100, 92000, 29000, 30000, (const uint64_t[]){0, 33, 33, 33, 1}, 5);
	assert_parts(UINT64_MAX, 30000, 14000, 30000,
		     (const uint64_t[]){9838263505978427528U, 8608480567731124087U}, 2);
	/* 1, 2 and 1 of 4 s of 2^64 - 1: 2^62 - 1/4 twice and 2^63 - 1/2, all rounded up: one too
	 * many, which the first gives */
	assert_parts(
		UINT64_MAX, 4000, 1000, 2000,
		(const uint64_t[]){(UINT64_C(1) << 62) - 1, UINT64_C(1) << 63, UINT64_C(1) << 62},
		3);
}

/* 1 s, 31 s, 31 s, 29 s of 92 s: 1.09, 33.70, 33.70, 31.52 of 100, rounded 1, 34, 34, 32: one too
 * many, taken from the least time. 1 s, 30 s, 30 s, 29 s of 90 s: 1.11, 33.33, 33.33, 32.22,
 * rounded 1, 33, 33, 32: one is missing, given to the first of the longest. */
static void what_rounding_gave_too_much_is_taken_from_the_least_time(void **state)
{
	(void)state;
	SPLIT(31000, 61000, 100, 153000, 200, {31000, 0}, {62000, 34}, {93000, 34}, {124000, 32});
	SPLIT(30000, 89000, 100, 179000, 200, {60000, 1}, {90000, 34}, {120000, 33}, {150000, 32});
}

/* Of 2: 0.04, 0.35, 0.35, 0.26 of the time, 0.08, 0.7, 0.7, 0.52: rounded 0, 1, 1, 1, one too many.
 * The first bin has the least time and nothing to give; the next is the last bin. */
static void no_bin_is_made_negative(void **state)
{
	(void)state;
	SPLIT(350, 310, 10, 1310, 12, {0, 0}, {350, 1}, {700, 1}, {1050, 0});
}

/* 1 over two equal halves: both are rounded up, the first of equals gives. 2 over 3 s and 1 s, 1.5
 * and 0.5: 2 and 1, and the lesser time gives. */
static void halves_are_rounded_away_from_zero_and_settled(void **state)
{
	(void)state;
	SPLIT(30000, 15000, 0, 45000, 1, {0, 0}, {30000, 1});
	SPLIT(30000, 27000, 0, 31000, 2, {0, 2}, {30000, 0});
	SPLIT(30000, 29000, 0, 33000, 2, {0, 0}, {30000, 2});
}

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

static void a_gap_keeps_what_it_cannot_place(void **state)
{
	const int64_t end = 1343953820000, bin = 1343953800000;
	struct run *run = new_run(30000, 64);

	(void)state;
	feed(run, end - 120000, 0);
	assert_int_equal(feed(run, end, 1000), COUNTER_COUNTED);
	assert_true(run->out.gap);
	close_all(run);
	assert_bin(run, bin, 166, 1);
	assert_int_equal(row_at(run, 0, bin)->covered_ms, 20000);
	assert_int_equal(row_at(run, 0, bin)->flags, COUNTER_GAP);
	/* The first sample's bin and the three that follow. */
	for (int64_t t = bin - 120000; t < bin; t += 30000) {
		assert_bin(run, t, 0, 0);
		assert_int_equal(row_at(run, 0, t)->flags, COUNTER_GAP);
		assert_int_equal(row_at(run, 0, t)->covered_ms, 0);
	}
	assert_int_equal(rows_of(run, 0), 5);
	assert_int_equal(sum_of(run, 0, true), 834);
	assert_int_equal(row_at(run, 0, bin - 90000)->unplaced, 834);
	/* 1343952000 is the hour: it counts the delta, but its rate is of no one time. */
	assert_int_equal(rows_of(run, 1), 1);
	assert_int_equal(row_at(run, 1, 1343952000000)->val, 166);
	assert_int_equal(row_at(run, 1, 1343952000000)->unplaced, 834);
	assert_int_equal(row_at(run, 1, 1343952000000)->count, 1);
	assert_false(row_at(run, 1, 1343952000000)->has_rate);
	mem_free(run);
}

/* 90 s are three intervals and are spread; a ms more is a gap. */
static void a_gap_begins_one_past_three_intervals(void **state)
{
	struct run *run = new_run(30000, 64);

	(void)state;
	feed(run, 0, 0);
	feed(run, 90000, 900);
	assert_false(run->out.gap);
	feed(run, 180001, 1800);
	assert_true(run->out.gap);
	close_all(run);
	assert_bin(run, 0, 300, 1);
	assert_bin(run, 30000, 300, 1);
	assert_bin(run, 60000, 300, 1);
	assert_bin(run, 90000, 0, 1); /* touched at its edge; then the gap begins */
	assert_int_equal(row_at(run, 0, 90000)->flags, COUNTER_GAP);
	assert_bin(run, 120000, 0, 0);
	assert_bin(run, 150000, 0, 0);
	assert_bin(run, 180000, 0, 1); /* 1 ms of 90,001: 900 / 90001, cut off */
	assert_int_equal(row_at(run, 0, 120000)->unplaced, 900);
	mem_free(run);
}

static void a_gap_of_a_month_gives_six_and_few_rows(void **state)
{
	const int64_t month = INT64_C(30) * 86400000, begin = 1343953760000;
	struct run *run = new_run(30000, 64);

	(void)state;
	feed(run, begin, 7);
	assert_int_equal(feed(run, begin + month + 60000, 864007), COUNTER_COUNTED);
	close_all(run);
	assert_bin(run, 1343953800000 + month, 6, 1);
	assert_int_equal(sum_of(run, 0, false), 6);
	assert_int_equal(sum_of(run, 0, true), 863994);
	assert_int_equal(rows_of(run, 0), 1 + COUNTER_GAP_ROWS_MAX + 1);
	assert_bin(run, 1343953740000 + COUNTER_GAP_ROWS_MAX * INT64_C(30000), 0, 0);
	assert_null(row_at(run, 0, 1343953740000 + (COUNTER_GAP_ROWS_MAX + 1) * INT64_C(30000)));
	/* 30 days and an hour's edge between: hours are bounded likewise, days are all there. */
	assert_int_equal(rows_of(run, 1), 1 + COUNTER_GAP_ROWS_MAX + 1);
	assert_int_equal(rows_of(run, 2), 31);
	assert_int_equal(sum_of(run, 1, false) + sum_of(run, 1, true), 864000);
	assert_int_equal(sum_of(run, 2, false) + sum_of(run, 2, true), 864000);
	mem_free(run);
}

static void a_gap_over_all_of_time_ends(void **state)
{
	struct run *run = new_run(1, 64);

	(void)state;
	feed(run, -COUNTER_TS_MAX, 0);
	assert_int_equal(feed(run, COUNTER_TS_MAX, UINT64_MAX / 2), COUNTER_COUNTED);
	assert_true(run->out.count <= counter_rows_max(&run->config));
	close_all(run);
	for (unsigned level = 0; level < 3; level++)
		assert_int_equal(sum_of(run, level, false) + sum_of(run, level, true),
				 UINT64_MAX / 2);
	mem_free(run);
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

static void two_hours_of_a_router_add_up(void **state)
{
	struct run *run = new_run(30000, 64);
	uint64_t growth = 0;
	double largest = 0;
	int64_t largest_ms = 0;
	uint32_t count = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(alu_polls); i++) {
		feed(run, alu_polls[i].s * 1000, alu_polls[i].value);
		growth += run->out.delta;
	}
	close_all(run);
	assert_int_equal(growth, 8656);
	assert_int_equal(sum_of(run, 0, false), 8656);
	assert_int_equal(sum_of(run, 1, false), 8656);
	assert_int_equal(sum_of(run, 2, false), 8656);
	for (size_t i = 0; i < run->out.count; i++) {
		const struct counter_row *row = &run->rows[i];
		if (row->level != 1)
			continue;
		count += row->count;
		assert_true(row->has_rate && row->min == 0);
		if (row->max > largest) {
			largest = row->max;
			largest_ms = row->max_ts_ms;
		}
	}
	assert_int_equal(count, 117);
	assert_true(largest == 736 * 1000.0 / 31000);
	assert_int_equal(largest_ms, 1343957211000);
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

/* ---- Order ----------------------------------------------------------------------------------- */

/* The predecessor stores 250 for these, since a late sample moves it back. */
static void late_samples_are_refused_and_equal_ones_acknowledged(void **state)
{
	struct run *run = new_run(30000, 64);

	(void)state;
	feed(run, 0, 100);
	feed(run, 30000, 200);
	assert_int_equal(feed(run, 15000, 150), COUNTER_REFUSED);
	assert_int_equal(feed(run, 30000, 200), COUNTER_REPEATED);
	assert_int_equal(feed(run, 30000, 201), COUNTER_REFUSED);
	assert_int_equal(feed(run, 0, 100), COUNTER_REFUSED);
	assert_int_equal(feed(run, COUNTER_TS_MAX + 1, 300), COUNTER_REFUSED);
	assert_int_equal(feed(run, INT64_MIN, 300), COUNTER_REFUSED);
	assert_int_equal(feed(run, 60000, 300), COUNTER_COUNTED);
	close_all(run);
	assert_bin(run, 0, 100, 1);
	assert_bin(run, 30000, 100, 2);
	assert_bin(run, 60000, 0, 1);
	assert_int_equal(rows_of(run, 0), 3);
	mem_free(run);
}

static void one_sample_gives_no_rate(void **state)
{
	struct run *run = new_run(30000, 64);

	(void)state;
	close_all(run); /* not even one */
	assert_int_equal(feed(run, 31000, 5), COUNTER_FIRST);
	close_all(run);
	assert_int_equal(run->out.count, 0);
	mem_free(run);
}

/* ---- Periods --------------------------------------------------------------------------------- */

/* Both averages of an hour are made of these: 12000 / (4 * 30) is the document's, 12000 / 124 that
 * of the time. */
static void an_hour_knows_its_deltas_and_their_time(void **state)
{
	struct run *run = new_run(30000, 64);
	const struct counter_row *hour;

	(void)state;
	for (int i = 0; i <= 4; i++)
		feed(run, 7200000 + i * 31000, (uint64_t)i * 3000);
	close_all(run);
	hour = row_at(run, 1, 7200000);
	assert_int_equal(hour->val, 12000);
	assert_int_equal(hour->count, 4);
	assert_int_equal(hour->covered_ms, 124000);
	mem_free(run);
}

/* 3590 s ... 3620 s: 10 s and 20 s of 300. The bins of the first hour have 100 of it, and the delta
 * is counted in the hour of its sample. */
static void an_hour_is_the_sum_of_its_bins(void **state)
{
	struct run *run = new_run(30000, 64);

	(void)state;
	feed(run, 3590000, 0);
	feed(run, 3620000, 300);
	close_all(run);
	assert_int_equal(row_at(run, 1, 0)->val, 100);
	assert_int_equal(row_at(run, 1, 0)->count, 0);
	assert_int_equal(row_at(run, 1, 0)->covered_ms, 10000);
	assert_false(row_at(run, 1, 0)->has_rate);
	assert_int_equal(row_at(run, 1, 3600000)->val, 200);
	assert_int_equal(row_at(run, 1, 3600000)->count, 1);
	assert_true(row_at(run, 1, 3600000)->min == 10.0 && row_at(run, 1, 3600000)->max == 10.0);
	assert_int_equal(row_at(run, 1, 3600000)->min_ts_ms, 3620000);
	assert_int_equal(row_at(run, 2, 0)->val, 300);
	mem_free(run);
}

/* 11 s do not divide 30 s: 20 s ... 31 s are 10 s and 1 s of 22. By bins of 11 s (11 ... 22 ... 33)
 * it would be 4 and 18, and nobody could say what of the 18 belongs before 30 s. */
static void a_period_that_the_base_does_not_divide_splits_at_its_own_edges(void **state)
{
	struct run *run = new_run(11000, 64);

	(void)state;
	run->config = (struct counter_config){11000, 3, {30000, 3600000, 86400000}};
	feed(run, 20000, 0);
	feed(run, 31000, 22);
	close_all(run);
	assert_bin(run, 11000, 4, 1);
	assert_bin(run, 22000, 18, 1);
	assert_int_equal(row_at(run, 1, 0)->val, 20);
	assert_int_equal(row_at(run, 1, 0)->count, 0);
	assert_int_equal(row_at(run, 1, 30000)->val, 2);
	assert_int_equal(row_at(run, 1, 30000)->count, 1);
	assert_int_equal(row_at(run, 2, 0)->val, 22);
	mem_free(run);
}

static void the_first_of_equal_extremes_stays(void **state)
{
	struct run *run = new_run(30000, 64);
	static const uint64_t values[] = {0, 30, 90, 120, 180, 180 + 45};
	const struct counter_row *hour;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		feed(run, (int64_t)i * 30000, values[i]);
	close_all(run);
	hour = row_at(run, 1, 0);
	assert_true(hour->min == 1.0 && hour->max == 2.0);
	assert_int_equal(hour->min_ts_ms, 30000);
	assert_int_equal(hour->max_ts_ms, 60000);
	mem_free(run);
}

static void times_before_1970_fall_into_their_bins(void **state)
{
	struct run *run = new_run(30000, 64);

	(void)state;
	feed(run, -31000, 0);
	feed(run, -1000, 30);
	close_all(run);
	assert_bin(run, -60000, 1, 1);
	assert_bin(run, -30000, 29, 1);
	assert_int_equal(row_at(run, 1, -3600000)->val, 30);
	mem_free(run);
}

static void configurations_have_bounds(void **state)
{
	static const struct counter_config good[] = {
		{30000, 2, {3600000, 86400000}},
		{11000, 3, {30000, 3600000, 86400000}},
		{1, 0, {0}},
		{COUNTER_PERIOD_MAX_MS, 1, {COUNTER_PERIOD_MAX_MS}},
	};
	static const struct counter_config bad[] = {
		{0, 0, {0}},
		{-1, 0, {0}},
		{COUNTER_PERIOD_MAX_MS + 1, 0, {0}},
		{30000, 5, {0}},
		{30000, 1, {29999}},
		{30000, 1, {COUNTER_PERIOD_MAX_MS + 1}},
		{30000, 2, {3600000, 3600000}},
	};
	struct errbuf e = {{0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(counter_config_check(&good[i], &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(counter_config_check(&bad[i], &e), ERR_INVALID);
}

/* ---- The state as bytes ---------------------------------------------------------------------- */

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
		cmocka_unit_test(deltas_are_split_as_the_reference_works_out),
		cmocka_unit_test(the_split_takes_five_bins_and_all_of_64_bits),
		cmocka_unit_test(what_rounding_gave_too_much_is_taken_from_the_least_time),
		cmocka_unit_test(no_bin_is_made_negative),
		cmocka_unit_test(halves_are_rounded_away_from_zero_and_settled),
		cmocka_unit_test(no_speed_is_believed_beyond_a_bound),
		cmocka_unit_test(a_wrap_is_judged_by_the_speeds_of_its_own_polls),
		cmocka_unit_test(a_step_of_another_speed_is_not_taken),
		cmocka_unit_test(a_gap_keeps_what_it_cannot_place),
		cmocka_unit_test(a_gap_begins_one_past_three_intervals),
		cmocka_unit_test(a_gap_of_a_month_gives_six_and_few_rows),
		cmocka_unit_test(a_gap_over_all_of_time_ends),
		cmocka_unit_test(a_counter_that_falls_loses_one_interval),
		cmocka_unit_test(two_hours_of_a_router_add_up),
		cmocka_unit_test(counters_wrap_while_the_device_is_up),
		cmocka_unit_test(a_restarted_device_books_its_new_value),
		cmocka_unit_test(wraps_and_resets_are_told_apart),
		cmocka_unit_test(late_samples_are_refused_and_equal_ones_acknowledged),
		cmocka_unit_test(one_sample_gives_no_rate),
		cmocka_unit_test(an_hour_knows_its_deltas_and_their_time),
		cmocka_unit_test(an_hour_is_the_sum_of_its_bins),
		cmocka_unit_test(a_period_that_the_base_does_not_divide_splits_at_its_own_edges),
		cmocka_unit_test(the_first_of_equal_extremes_stays),
		cmocka_unit_test(times_before_1970_fall_into_their_bins),
		cmocka_unit_test(configurations_have_bounds),
		cmocka_unit_test(states_come_back_and_every_cut_is_refused),
		cmocka_unit_test(states_that_are_kept_together_come_back),
		cmocka_unit_test(states_of_others_are_refused),
		cmocka_unit_test(a_state_of_version_2_has_no_speed),
		cmocka_unit_test(damaged_states_do_no_harm),
	};
	return cmocka_run_group_tests_name("rate_counter", tests, NULL, NULL);
}
