/* One counter for tests: samples are fed to it, and what it closes or has open is looked at as
 * rows.
 */
#ifndef TESTS_UNIT_RATE_COUNTER_HARNESS_H
#define TESTS_UNIT_RATE_COUNTER_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "rate/counter.h"

enum { ROWS_MAX = 8192 };

struct run {
	struct counter_config config;
	struct counter_def def;
	struct counter counter;
	struct counter_out out;
	struct counter_row rows[ROWS_MAX];
};

static inline struct run *new_run(int64_t base_ms, unsigned width_bits)
{
	struct run *run = mem_zalloc(sizeof(*run));

	run->config = (struct counter_config){base_ms, 2, {3600000, 86400000}};
	run->def = (struct counter_def){&run->config, width_bits, true};
	run->out = (struct counter_out){.rows = run->rows, .max = ROWS_MAX};
	return run;
}

static inline enum counter_outcome feed(struct run *run, int64_t ts_ms, uint64_t value)
{
	struct counter_sample s = {.ts_ms = ts_ms, .value = value};

	return counter_feed(&run->def, &run->counter, &s, &run->out);
}

static inline enum counter_outcome feed_up(struct run *run, int64_t ts_ms, uint64_t value,
					   uint32_t ticks)
{
	struct counter_sample s = {.ts_ms = ts_ms,
				   .value = value,
				   .has_uptime = true,
				   .uptime_ticks = ticks,
				   .uptime_ts_ms = ts_ms};

	return counter_feed(&run->def, &run->counter, &s, &run->out);
}

/* The state stays as it is; what is open stands behind what was closed. */
static inline void close_all(struct run *run)
{
	counter_emit_open(&run->config, &run->counter, &run->out);
}

static inline const struct counter_row *row_at(const struct run *run, unsigned level,
					       int64_t start_ms)
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

static inline size_t rows_of(const struct run *run, unsigned level)
{
	size_t n = 0;

	for (size_t i = 0; i < run->out.count; i++)
		n += run->rows[i].level == level;
	return n;
}

static inline void assert_bin(const struct run *run, int64_t start_ms, uint64_t val,
			      uint32_t is_valid)
{
	const struct counter_row *row = row_at(run, 0, start_ms);

	assert_non_null(row);
	assert_int_equal(row->val, val);
	assert_int_equal(row->count, is_valid);
}

static inline uint64_t sum_of(const struct run *run, unsigned level, bool unplaced)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < run->out.count; i++)
		if (run->rows[i].level == level)
			sum += unplaced ? run->rows[i].unplaced : run->rows[i].val;
	return sum;
}

#endif
