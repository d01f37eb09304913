/* Points as they are stored: a batch of series after the other, each in slices by the store's
 * token, in which a series ends before the next begins. */
#include "query/private.h"

static bool raw_next(struct query_run *run)
{
	if (!run->batch_open) {
		run->token.len = 0;
		if (!run_next_batch(run, BATCH_SERIES))
			return false;
	}
	run->range = store_read_add(run->read, STORE_RANGE);
	run->range->token = run->token;
	run->range->range = (struct store_range){
		.table = TABLE_DATA_RAW,
		.handles = run->handles,
		.handle_count = run->batch_count,
		.start_ms = run->start_ms,
		.end_ms = run->end_ms,
	};
	return true;
}

static bool raw_arrived(struct query_run *run)
{
	run->batch_open = run->range->more;
	run->token = run->range->token;
	return false;
}

static bool raw_take(struct query_run *run, size_t points_max, struct query_chunk *chunk)
{
	const struct store_points *points = run->range->range.points;
	while (run->next_series < run->batch_count &&
	       run->offset == points[run->next_series].count) {
		run->next_series++;
		run->offset = 0;
	}
	if (run->next_series == run->batch_count)
		return false;
	points += run->next_series;
	size_t left = points->count - run->offset;
	*chunk = (struct query_chunk){
		.series_index = run->batch + run->next_series,
		.count = left < points_max ? left : points_max,
		.ts_ms = points->ts_ms + run->offset,
		.bits = points->bits[0] + run->offset,
		.types = points->types[0] + run->offset,
	};
	run->offset += chunk->count;
	return true;
}

const struct query_reader reader_raw = {raw_next, raw_arrived, raw_take};
