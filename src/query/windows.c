/* Points computed over windows by the store. Windows lie on multiples of their width; the one that
 * `start` falls into is cut at the front and asked for by itself, as the store's windows begin
 * where a request does. A slice is many series with few windows or one series with some of its
 * many. */
#include "query/private.h"

static size_t windows_between(int64_t from_ms, int64_t to_ms, int64_t window_ms)
{
	return (size_t)((to_ms - from_ms + window_ms - 1) / window_ms);
}

static void add_request(struct query_run *run, struct store_request **request, int64_t from_ms,
			int64_t to_ms, int64_t window_ms)
{
	*request = store_read_add(run->read, STORE_AGGREGATE);
	(*request)->aggregate = (struct store_aggregate){
		.table = TABLE_DATA_RAW,
		.handles = run->handles,
		.handle_count = run->batch_count,
		.start_ms = from_ms,
		.end_ms = to_ms,
		.window_ms = window_ms,
	};
}

/* The next windows of the one series at hand, or all of the next series. */
static bool windows_advance(struct query_run *run)
{
	struct query_windows *w = &run->windows;
	int64_t window_ms = run->query.spec.window_ms;
	size_t all = windows_between(w->head_end_ms, run->end_ms, window_ms);
	if (run->batch_count && w->to_ms < run->end_ms) {
		w->from_ms = w->to_ms;
		w->with_head = false;
	} else {
		size_t series = SLICE_WINDOWS / (all ? all : 1);
		if (!run_next_batch(run, series < BATCH_SERIES ? series : BATCH_SERIES))
			return false;
		w->from_ms = w->head_end_ms;
		w->with_head = run->start_ms < w->head_end_ms;
	}
	size_t left = windows_between(w->from_ms, run->end_ms, window_ms);
	w->per_series = left < SLICE_WINDOWS ? left : SLICE_WINDOWS;
	w->to_ms = left == w->per_series ? run->end_ms
					 : w->from_ms + (int64_t)w->per_series * window_ms;
	return true;
}

static bool windows_next(struct query_run *run)
{
	struct query_windows *w = &run->windows;
	if (!windows_advance(run))
		return false;
	w->head = w->main = NULL;
	w->head_have = w->main_have = 0;
	if (w->with_head)
		add_request(run, &w->head, run->start_ms, w->head_end_ms,
			    w->head_end_ms - run->start_ms);
	if (w->per_series)
		add_request(run, &w->main, w->from_ms, w->to_ms, run->query.spec.window_ms);
	return true;
}

/* What is new of one request; true: it has more. */
static bool copy_new(const struct store_request *request, size_t *have, struct store_summary *to)
{
	if (!request)
		return false;
	const struct store_aggregate *answer = &request->aggregate;
	size_t each = answer->window_count, fresh = answer->next_handle - *have;
	memcpy(to + *have * each, answer->summaries + *have * each, fresh * each * sizeof(*to));
	*have += fresh;
	return request->more;
}

static bool windows_arrived(struct query_run *run)
{
	struct query_windows *w = &run->windows;
	bool more = false;
	if (w->head_have < run->batch_count)
		more = copy_new(w->head, &w->head_have, w->heads);
	if (w->main_have < run->batch_count)
		more = copy_new(w->main, &w->main_have, w->mains) || more;
	return more;
}

static struct value value_of(const struct store_summary *summary, enum query_fn fn)
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
		return value_f64(summary->sum / (double)summary->count);
	case FN_COUNT:
		return value_u64(summary->count);
	case FN_NONE:
		break;
	}
	return (struct value){0};
}

/* Appends the point of a window, if it has one; how many that is. */
static size_t put_point(struct query_run *run, size_t at, int64_t ts_ms,
			const struct store_summary *summary)
{
	if (!summary->count)
		return 0;
	struct value value = value_of(summary, run->query.spec.fn);
	if (value.type == VALUE_NONE)
		return 0;
	run->ts_ms[at] = ts_ms;
	run->bits[at] = value.bits;
	run->types[at] = (uint8_t)value.type;
	return 1;
}

/* The points of the series at hand from run->offset on; the head, if there is one, is number 0. */
static size_t put_series(struct query_run *run, size_t points_max)
{
	const struct query_windows *w = &run->windows;
	int64_t window_ms = run->query.spec.window_ms;
	size_t count = 0, s = run->next_series, head = w->with_head;
	size_t end = w->per_series + head;
	for (; run->offset < end && count < points_max; run->offset++) {
		if (run->offset < head) {
			int64_t begin_ms = floor_to(run->start_ms, window_ms);
			count += put_point(run, count, begin_ms, &w->heads[s]);
			continue;
		}
		size_t n = run->offset - head;
		count += put_point(run, count, w->from_ms + (int64_t)n * window_ms,
				   &w->mains[s * w->per_series + n]);
	}
	return count;
}

static bool windows_take(struct query_run *run, size_t points_max, struct query_chunk *chunk)
{
	if (points_max > WINDOW_POINTS)
		points_max = WINDOW_POINTS;
	for (; run->next_series < run->batch_count; run->next_series++, run->offset = 0) {
		size_t count = put_series(run, points_max);
		if (!count)
			continue;
		*chunk = (struct query_chunk){
			.series_index = run->batch + run->next_series,
			.count = count,
			.ts_ms = run->ts_ms,
			.bits = run->bits,
			.types = run->types,
		};
		return true;
	}
	return false;
}

const struct query_reader reader_windows = {windows_next, windows_arrived, windows_take};
