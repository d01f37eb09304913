/* Samples of the naive engine: ranges, the newest before a time, windows. */
#include <math.h>

#include "naive_read.h"

/* ---- Ranges -------------------------------------------------------------------------------- */

/* Where a range goes on: the handle, how many of its points were given, and the last of them. */
struct range_token {
	size_t handle;
	size_t given;
	int64_t last_ts_ms;
};

static unsigned asked_fields(const struct store_range *range)
{
	return range->fields ? range->fields : (1u << schema[range->table].field_count) - 1;
}

static bool point_wanted(const struct budget *budget, const struct store_range *range,
			 const struct naive_point *point)
{
	enum naive_bug bug = budget->naive->bug;
	if (point->ts_ms < range->start_ms ||
	    (bug == NAIVE_BUG_RANGE_START && point->ts_ms == range->start_ms))
		return false;
	if (point->ts_ms > range->end_ms ||
	    (point->ts_ms == range->end_ms && bug != NAIVE_BUG_RANGE_END))
		return false;
	for (size_t f = 0; f < schema[range->table].field_count; f++) {
		if (asked_fields(range) >> f & 1 &&
		    naive_sample_visible(budget->naive, point, f, query_now(budget)))
			return true;
	}
	return false;
}

static bool point_given(const struct budget *budget, const struct store_range *range,
			const struct range_token *token, const struct naive_point *point)
{
	if (token->given == 0)
		return false;
	if (budget->naive->bug == NAIVE_BUG_TOKEN_REPEATS && point->ts_ms == token->last_ts_ms)
		return false;
	return range->backward ? point->ts_ms >= token->last_ts_ms
			       : point->ts_ms <= token->last_ts_ms;
}

/* The wanted points that were not given, in the order asked for; the caller frees them. */
static const struct naive_point **select_points(const struct budget *budget,
						const struct store_range *range,
						const struct range_token *token,
						const struct naive_row *row, size_t *count)
{
	size_t row_count = row ? row->count : 0;
	const struct naive_point **chosen = mem_alloc_array(row_count, sizeof(*chosen));
	*count = 0;
	for (size_t i = 0; i < row_count; i++) {
		const struct naive_point *point =
			&row->points[range->backward ? row_count - 1 - i : i];
		if (point_wanted(budget, range, point) && !point_given(budget, range, token, point))
			chosen[(*count)++] = point;
	}
	if (range->limit && budget->naive->bug == NAIVE_BUG_LIMIT_PER_SLICE)
		*count = smaller(*count, range->limit);
	else if (range->limit)
		*count = smaller(*count, range->limit - token->given);
	return chosen;
}

static void copy_field(struct budget *budget, const struct naive_point **chosen,
		       struct store_points *points, size_t field)
{
	uint64_t *bits = alloc_array(budget->read, points->count, sizeof(*bits));
	uint8_t *types = alloc_array(budget->read, points->count, sizeof(*types));
	ASSERT(bits && types);
	for (size_t i = 0; i < points->count; i++) {
		if (!naive_sample_visible(budget->naive, chosen[i], field, query_now(budget)))
			continue;
		bits[i] = chosen[i]->values[field].bits;
		types[i] = (uint8_t)chosen[i]->values[field].type;
	}
	points->bits[field] = bits;
	points->types[field] = types;
}

/* How many points have room in what is left of the read's memory. */
static size_t points_that_fit(const struct store_read *read, const struct store_range *range)
{
	size_t fields = (size_t)__builtin_popcount(asked_fields(range));
	size_t point_bytes = sizeof(int64_t) + fields * (sizeof(uint64_t) + sizeof(uint8_t));
	size_t padding_bytes = 16 * (1 + 2 * fields);
	size_t left_bytes = read->arena.max_bytes - read->arena.used_bytes;
	return left_bytes < padding_bytes ? 0 : (left_bytes - padding_bytes) / point_bytes;
}

/* The first `count` of the chosen as columns. */
static void copy_points(struct budget *budget, const struct store_range *range,
			const struct naive_point **chosen, size_t count,
			struct store_points *points)
{
	int64_t *ts_ms = alloc_array(budget->read, count, sizeof(*ts_ms));
	ASSERT(ts_ms);
	for (size_t i = 0; i < count; i++)
		ts_ms[i] = chosen[i]->ts_ms;
	*points = (struct store_points){.count = count, .ts_ms = ts_ms};
	for (size_t f = 0; f < schema[range->table].field_count; f++) {
		if (asked_fields(range) >> f & 1)
			copy_field(budget, chosen, points, f);
	}
}

/* One handle: true when all its points were given. */
static bool range_handle(struct budget *budget, const struct store_range *range,
			 const struct naive_row *row, struct range_token *token,
			 struct store_points *points)
{
	size_t chosen_count;
	const struct naive_point **chosen = select_points(budget, range, token, row, &chosen_count);
	size_t count = smaller(chosen_count, budget->points);
	count = smaller(count, points_that_fit(budget->read, range));
	if (count) {
		copy_points(budget, range, chosen, count, points);
		token->given += count;
		token->last_ts_ms = chosen[count - 1]->ts_ms;
	}
	budget->points -= count;
	budget->read->work.points += count;
	budget->read->work.rows_decoded += count;
	mem_free(chosen);
	return count == chosen_count;
}

int naive_range(struct budget *budget, struct store_request *request,
		const struct store_range *range, struct store_points **result)
{
	struct range_token token;
	token_get(request, &token, sizeof(token));
	struct store_points *points =
		alloc_array(budget->read, range->handle_count, sizeof(*points));
	if (!points)
		return ERR_LIMIT;
	*result = points;
	for (bool any = false; token.handle < range->handle_count; token.handle++) {
		struct naive_series *series =
			naive_series_of(budget->naive, range->handles[token.handle]);
		struct naive_row *row = naive_row_of(series, range->table, range->period_ms);
		bool whole = range_handle(budget, range, row, &token, &points[token.handle]);
		any |= points[token.handle].count > 0;
		if (!whole) {
			token_set(request, &token, sizeof(token));
			return any || budget->points == 0 ? 0 : ERR_LIMIT;
		}
		token.given = 0;
	}
	return 0;
}

static int64_t subtract_clipped(int64_t a, int64_t b)
{
	int64_t difference;
	return __builtin_sub_overflow(a, b, &difference) ? INT64_MIN : difference;
}

/* The newest sample before a time is a backward range of one. */
int naive_last_before(struct budget *budget, struct store_request *request)
{
	struct store_last_before *last = &request->last_before;
	struct store_range range = {
		.table = last->table,
		.period_ms = last->period_ms,
		.handles = last->handles,
		.handle_count = last->handle_count,
		.start_ms = last->look_back_ms
				    ? subtract_clipped(last->before_ms, last->look_back_ms)
				    : INT64_MIN,
		.end_ms = last->before_ms,
		.backward = true,
		.limit = 1,
	};
	if (budget->naive->bug == NAIVE_BUG_LOOK_BACK_EDGE && last->look_back_ms)
		range.start_ms++;
	return naive_range(budget, request, &range, &last->points);
}

/* ---- Aggregates ---------------------------------------------------------------------------- */

/* The sum of a window: of integers exactly, of the rest as they come, and once more in a type that
 * reaches further. */
struct sum {
	__int128 integers;
	double others;
	long double wide;
};

static int compare(const struct naive *naive, struct value a, struct value b)
{
	if (naive->bug != NAIVE_BUG_COMPARE_ROUNDS)
		return value_compare(a, b);
	double x = value_as_f64(a), y = value_as_f64(b);
	return (x > y) - (x < y);
}

static void add_value(const struct naive *naive, struct store_summary *summary, struct sum *sum,
		      int64_t ts_ms, struct value value)
{
	if (summary->count++ == 0) {
		summary->first = value;
		summary->first_ts_ms = ts_ms;
	}
	summary->last = value;
	summary->last_ts_ms = ts_ms;
	if (value.type == VALUE_F64 || naive->bug == NAIVE_BUG_SUM_ROUNDS) {
		sum->others += value_as_f64(value);
		sum->wide += value_as_f64(value);
	} else {
		sum->integers += value.type == VALUE_I64 ? (__int128)(int64_t)value.bits
							 : (__int128)value.bits;
	}
	if (value.type == VALUE_F64 && isnan(value_as_f64(value)) &&
	    naive->bug != NAIVE_BUG_NAN_IS_MIN)
		return;
	if (summary->min.type == VALUE_NONE || compare(naive, value, summary->min) < 0)
		summary->min = value;
	if (summary->max.type == VALUE_NONE || compare(naive, value, summary->max) > 0)
		summary->max = value;
}

static void aggregate_row(const struct budget *budget, const struct store_aggregate *aggregate,
			  const struct naive_row *row, struct store_summary *summaries)
{
	struct store_range range = {
		.table = aggregate->table,
		.start_ms = aggregate->start_ms,
		.end_ms = aggregate->end_ms,
		.fields = 1u << aggregate->field,
	};
	struct sum *sums = mem_zalloc(aggregate->window_count * sizeof(*sums));
	for (size_t i = 0; row && i < row->count; i++) {
		const struct naive_point *point = &row->points[i];
		if (!point_wanted(budget, &range, point))
			continue;
		uint64_t since = (uint64_t)point->ts_ms - (uint64_t)aggregate->start_ms;
		size_t w = (size_t)(since / (uint64_t)aggregate->window_ms);
		/* Only a planted bug lets a point at the end in. */
		w = smaller(w, aggregate->window_count - 1);
		add_value(budget->naive, &summaries[w], &sums[w], point->ts_ms,
			  point->values[aggregate->field]);
		budget->read->work.rows_decoded++;
	}
	for (size_t w = 0; w < aggregate->window_count; w++) {
		const struct sum *sum = &sums[w];
		double others = isfinite(sum->others) ? sum->others : (double)sum->wide;
		summaries[w].integers = sum->integers;
		summaries[w].doubles = others;
		summaries[w].sum = (double)sum->integers + others;
		summaries[w].scaled = (double)(sum->wide * 0x1p-64L);
	}
	mem_free(sums);
}

/* Those with samples come first. */
static struct store_windows pack(struct store_summary *all, uint32_t *numbers, size_t windows)
{
	struct store_windows packed = {.numbers = numbers, .list = all};
	for (size_t w = 0; w < windows; w++) {
		if (!all[w].count)
			continue;
		numbers[packed.count] = (uint32_t)w;
		all[packed.count++] = all[w];
	}
	return packed;
}

int naive_aggregate(struct budget *budget, struct store_request *request)
{
	struct store_aggregate *aggregate = &request->aggregate;
	size_t windows = aggregate->window_count, handle, first;
	token_get(request, &handle, sizeof(handle));
	first = handle;
	aggregate->windows =
		alloc_array(budget->read, aggregate->handle_count + 1, sizeof(*aggregate->windows));
	struct store_summary *all =
		alloc_array(budget->read, windows * aggregate->handle_count, sizeof(*all));
	uint32_t *numbers =
		alloc_array(budget->read, windows * aggregate->handle_count, sizeof(*numbers));
	if (!aggregate->windows || !all || !numbers)
		return ERR_LIMIT;
	for (; windows && handle < aggregate->handle_count; handle++) {
		if (handle > first && budget->points < windows)
			break;
		struct naive_series *series =
			naive_series_of(budget->naive, aggregate->handles[handle]);
		struct naive_row *row =
			naive_row_of(series, aggregate->table, aggregate->period_ms);
		aggregate_row(budget, aggregate, row, &all[handle * windows]);
		aggregate->windows[handle] =
			pack(&all[handle * windows], &numbers[handle * windows], windows);
		budget->points -= smaller(windows, budget->points);
	}
	aggregate->next_handle = windows ? handle : aggregate->handle_count;
	if (aggregate->next_handle < aggregate->handle_count)
		token_set(request, &handle, sizeof(handle));
	return 0;
}

/* ---- Shares ---------------------------------------------------------------------------------- */

static void share_row(const struct budget *budget, const struct naive_row *row,
		      struct store_share *shares)
{
	for (size_t i = 0; row && i < row->count; i++) {
		const struct naive_point *point = &row->points[i];
		for (size_t f = 0; f < schema[row->table].field_count; f++) {
			struct store_share *share = &shares[point->retention[f]];
			if (point->values[f].type == VALUE_NONE ||
			    !naive_sample_visible(budget->naive, point, f, query_now(budget)))
				continue;
			if (share->samples++ == 0)
				share->oldest_ms = point->ts_ms;
			share->bytes += sizeof(uint64_t);
		}
	}
}

int naive_shares(struct budget *budget, struct store_request *request)
{
	struct store_shares *shares = &request->shares;
	size_t handle, first;
	token_get(request, &handle, sizeof(handle));
	first = handle;
	shares->list = alloc_array(budget->read, RETENTION_CLASSES * shares->handle_count + 1,
				   sizeof(*shares->list));
	if (!shares->list)
		return ERR_LIMIT;
	for (; handle < shares->handle_count; handle++) {
		if (handle > first && budget->points < RETENTION_CLASSES)
			break;
		struct naive_series *series =
			naive_series_of(budget->naive, shares->handles[handle]);
		share_row(budget, naive_row_of(series, shares->table, shares->period_ms),
			  &shares->list[handle * RETENTION_CLASSES]);
		budget->points -= smaller(RETENTION_CLASSES, budget->points);
	}
	shares->next_handle = handle;
	if (handle < shares->handle_count)
		token_set(request, &handle, sizeof(handle));
	return 0;
}
