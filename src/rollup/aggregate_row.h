/* Rows of roll-ups: what is computed of the values of one bucket, and of finer buckets together.
 *
 * A gauge's row has min, max, sum, count, first and last. Its average is sum / count; only where
 * the sum is beyond all doubles is it stored itself. So a coarser row is made from finer ones
 * without an average of averages.
 *
 * A counter's row has sum, increase, first and last. The increase is what the counter grew between
 * the bucket's own samples; one that falls has begun again, from zero. From one bucket to the next
 * it is the step between the last sample here and the first one there, so that growth over any
 * range of buckets is their increases and the steps between them.
 *
 * Integers stay exact as long as a 64-bit integer holds the result.
 *
 * Pure; any thread. */
#ifndef ROLLUP_AGGREGATE_ROW_H
#define ROLLUP_AGGREGATE_ROW_H

#include "model/value.h"
#include "store/store.h"

/* Fields of TABLE_DATA_DOWNSAMPLED. */
enum rollup_field {
	ROLLUP_MIN,
	ROLLUP_MAX,
	ROLLUP_SUM,
	ROLLUP_COUNT,
	ROLLUP_AVG,
	ROLLUP_INCREASE,
	ROLLUP_FIRST,
	ROLLUP_LAST,
	ROLLUP_FIELDS
};

/* Whether a metric's name has one of these ends: it is a counter then. */
bool rollup_is_counter(const char *const *suffixes, size_t count, struct slice metric);

/* Adds what came after: both summaries of one series, `later` of later times. Of nothing (count 0)
 * nothing is added. */
void rollup_summary_add(struct store_summary *to, const struct store_summary *later);

/* The row; `summary` is of one value at least. Fields that a gauge's row does not have are NONE. */
void rollup_gauge_row(const struct store_summary *summary, struct value row[ROLLUP_FIELDS]);

/* A sum of values of any types, exact of integers. */
struct rollup_total {
	__int128 integers;
	double doubles;
	bool inexact; /* some were doubles */
};

void rollup_total_value(struct rollup_total *total, struct value value);
/* Adds what a counter grew from one sample to the next: of one that fell from zero. */
void rollup_total_step(struct rollup_total *total, struct value from, struct value to);
/* An integer while it is one and fits. */
struct value rollup_total_number(const struct rollup_total *total);

/* A counter over some time; zeroed: of no sample. */
struct rollup_growth {
	struct rollup_total sum, increase;
	struct value first, last;
	uint64_t count;
};

void rollup_growth_sample(struct rollup_growth *growth, struct value value);
/* Adds what came after; of no sample nothing is added. */
void rollup_growth_add(struct rollup_growth *growth, const struct rollup_growth *later);
/* The row; of one sample at least. */
void rollup_counter_row(const struct rollup_growth *growth, struct value row[ROLLUP_FIELDS]);

#endif
