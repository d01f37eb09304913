#include "rollup/aggregate_row.h"

#include <math.h>

_Static_assert((int)ROLLUP_FIELDS == (int)TABLE_FIELDS_MAX, "a row has every field of the table");

/* An integer while it is one and fits. */
static struct value aggregate_number(__int128 integers, bool inexact, double total)
{
	if (inexact || integers < INT64_MIN || integers > (__int128)UINT64_MAX)
		return value_f64(total);
	return integers <= INT64_MAX ? value_i64((int64_t)integers) : value_u64((uint64_t)integers);
}

bool rollup_is_counter(const char *const *suffixes, size_t count, struct slice metric)
{
	for (size_t i = 0; i < count; i++) {
		if (slice_ends_with(metric, slice_of(suffixes[i])))
			return true;
	}
	return false;
}

/* ---- Gauges ---------------------------------------------------------------------------------- */

void rollup_summary_add(struct store_summary *to, const struct store_summary *later)
{
	if (!later->count)
		return;
	if (!to->count) {
		*to = *later;
		return;
	}
	to->count += later->count;
	to->integers += later->integers;
	to->doubles += later->doubles;
	to->scaled += later->scaled;
	to->sum = (double)to->integers + store_sum(to->doubles, to->scaled);
	if (value_compare(later->min, to->min) < 0)
		to->min = later->min;
	/* NONE, of NaNs alone, sorts above everything. */
	if (to->max.type == VALUE_NONE ||
	    (later->max.type != VALUE_NONE && value_compare(later->max, to->max) > 0))
		to->max = later->max;
	to->last = later->last;
	to->last_ts_ms = later->last_ts_ms;
}

static bool aggregate_all_integers(const struct store_summary *s)
{
	return s->doubles == 0 && s->scaled == 0 && s->min.type != VALUE_F64 &&
	       s->max.type != VALUE_F64 && s->min.type != VALUE_NONE;
}

void rollup_gauge_row(const struct store_summary *s, struct value row[ROLLUP_FIELDS])
{
	ASSERT(s->count);
	memset(row, 0, ROLLUP_FIELDS * sizeof(*row));
	row[ROLLUP_MIN] = s->min;
	row[ROLLUP_MAX] = s->max;
	row[ROLLUP_SUM] = aggregate_number(s->integers, !aggregate_all_integers(s), s->sum);
	row[ROLLUP_COUNT] = value_u64(s->count);
	if (UNLIKELY(!isfinite(s->sum)))
		row[ROLLUP_AVG] = value_f64(store_mean(s->sum, s->scaled, s->count));
	row[ROLLUP_FIRST] = s->first;
	row[ROLLUP_LAST] = s->last;
}

/* ---- Counters -------------------------------------------------------------------------------- */

static __int128 aggregate_integer_of(struct value value)
{
	return value.type == VALUE_I64 ? (__int128)(int64_t)value.bits : (__int128)value.bits;
}

void rollup_total_value(struct rollup_total *total, struct value value)
{
	if (value.type == VALUE_F64) {
		total->doubles += value_as_f64(value);
		total->inexact = true;
	} else {
		total->integers += aggregate_integer_of(value);
	}
}

static void aggregate_total_add(struct rollup_total *total, const struct rollup_total *other)
{
	total->integers += other->integers;
	total->doubles += other->doubles;
	total->inexact |= other->inexact;
}

void rollup_total_step(struct rollup_total *increase, struct value from, struct value to)
{
	if (value_compare(to, from) < 0) {
		rollup_total_value(increase, to);
	} else if (from.type == VALUE_F64 || to.type == VALUE_F64) {
		increase->doubles += value_as_f64(to) - value_as_f64(from);
		increase->inexact = true;
	} else {
		increase->integers += aggregate_integer_of(to) - aggregate_integer_of(from);
	}
}

void rollup_growth_sample(struct rollup_growth *growth, struct value value)
{
	rollup_total_value(&growth->sum, value);
	if (growth->count++)
		rollup_total_step(&growth->increase, growth->last, value);
	else
		growth->first = value;
	growth->last = value;
}

void rollup_growth_add(struct rollup_growth *growth, const struct rollup_growth *later)
{
	if (!later->count)
		return;
	if (!growth->count) {
		*growth = *later;
		return;
	}
	rollup_total_step(&growth->increase, growth->last, later->first);
	aggregate_total_add(&growth->increase, &later->increase);
	aggregate_total_add(&growth->sum, &later->sum);
	growth->last = later->last;
	growth->count += later->count;
}

struct value rollup_total_number(const struct rollup_total *total)
{
	return aggregate_number(total->integers, total->inexact,
				(double)total->integers + total->doubles);
}

void rollup_counter_row(const struct rollup_growth *growth, struct value row[ROLLUP_FIELDS])
{
	ASSERT(growth->count);
	memset(row, 0, ROLLUP_FIELDS * sizeof(*row));
	row[ROLLUP_SUM] = rollup_total_number(&growth->sum);
	row[ROLLUP_INCREASE] = rollup_total_number(&growth->increase);
	row[ROLLUP_FIRST] = growth->first;
	row[ROLLUP_LAST] = growth->last;
}
