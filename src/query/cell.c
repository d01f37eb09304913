/* Values put together: over the series of a group, at one time. */
#include <math.h>

#include "query/private.h"

/* Equal numbers in two forms have a fixed order, so that it does not matter which came first. */
static int cell_compare(struct value a, struct value b)
{
	int order = value_compare(a, b);
	if (order || a.type != b.type)
		return order ? order : (int)a.type - (int)b.type;
	return (a.bits > b.bits) - (a.bits < b.bits);
}

static void cell_fold_min_max(struct query_cell *cell, struct value value)
{
	if (value.type == VALUE_F64 && isnan(value_as_f64(value)))
		return;
	if (cell->min.type == VALUE_NONE || cell_compare(value, cell->min) < 0)
		cell->min = value;
	if (cell->max.type == VALUE_NONE || cell_compare(value, cell->max) > 0)
		cell->max = value;
}

void cell_add(struct query_cell *cell, enum query_agg agg, struct value value)
{
	cell->count++;
	cell->weight++;
	if (agg == AGG_MIN || agg == AGG_MAX) {
		cell_fold_min_max(cell, value);
	} else if (value.type == VALUE_F64) {
		wide_add(&cell->doubles, value_as_f64(value));
		cell->any_double = true;
	} else {
		cell->integers += value.type == VALUE_I64 ? (__int128)(int64_t)value.bits
							  : (__int128)value.bits;
	}
}

void cell_add_sum(struct query_cell *cell, const struct store_summary *summary, uint64_t weight)
{
	cell->count++;
	cell->weight += weight;
	cell->integers += summary->integers;
	if (isfinite(summary->doubles))
		wide_add(&cell->doubles, summary->doubles);
	else
		wide_add_scaled(&cell->doubles, summary->scaled);
	cell->any_double = true;
}

void cell_add_zeros(struct query_cell *cell, enum query_agg agg, uint64_t count)
{
	if (!count)
		return;
	cell->count += count;
	cell->weight += count;
	if (agg == AGG_MIN || agg == AGG_MAX)
		cell_fold_min_max(cell, value_i64(0));
}

/* An integer while it is one and fits. */
static struct value cell_sum_of(const struct query_cell *cell)
{
	__int128 n = cell->integers;
	double scaled;
	if (cell->any_double || n < INT64_MIN || n > (__int128)UINT64_MAX)
		return value_f64(wide_total(&cell->doubles, n, &scaled));
	return n <= INT64_MAX ? value_i64((int64_t)n) : value_u64((uint64_t)n);
}

struct value cell_value(const struct query_cell *cell, enum query_agg agg)
{
	double scaled, sum;
	if (!cell->count)
		return (struct value){0};
	switch (agg) {
	case AGG_MIN:
		return cell->min;
	case AGG_MAX:
		return cell->max;
	case AGG_SUM:
		return cell_sum_of(cell);
	case AGG_AVG:
		sum = wide_total(&cell->doubles, cell->integers, &scaled);
		return value_f64(store_mean(sum, scaled, cell->weight));
	case AGG_COUNT:
		return value_u64(cell->count);
	case AGG_NONE:
		break;
	}
	return (struct value){0};
}

struct value summary_value(const struct store_summary *summary, enum query_fn fn)
{
	switch (fn) {
	case FN_MIN:
		return summary->min;
	case FN_MAX:
		return summary->max;
	case FN_FIRST:
		return summary->first;
	case FN_LAST:
		return summary->last;
	case FN_SUM:
		return value_f64(summary->sum);
	case FN_AVG:
		return value_f64(store_mean(summary->sum, summary->scaled, summary->count));
	case FN_COUNT:
		return value_u64(summary->count);
	case FN_INCREASE:
	case FN_RATE:
	case FN_NONE:
		break;
	}
	return (struct value){0};
}
