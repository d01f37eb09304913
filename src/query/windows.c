/* Stages of windows, and the points that are made of them; what they hold comes by summaries.c or
 * growth.c. A stage is many rows with few windows, or one row with some of its many. */
#include "query/private.h"

size_t window_number(const struct query_run *run, int64_t ms)
{
	int64_t window_ms = run->query.spec.window_ms;
	return (size_t)(floor_div(ms, window_ms) - floor_div(run->start_ms, window_ms));
}

int64_t window_begin_ms(const struct query_run *run, size_t number)
{
	int64_t window_ms = run->query.spec.window_ms;
	return (floor_div(run->start_ms, window_ms) + (int64_t)number) * window_ms;
}

static size_t row_total(const struct query_run *run)
{
	return run->query.spec.agg ? run->row_count : run->find.count;
}

/* How many windows of one row a stage may have: what the memory and a turn of the readers allow. */
static size_t windows_max(const struct query_run *run)
{
	size_t max = run->query.spec.agg ? STAGE_CELLS : STAGE_POINTS;
	return max < PART_WINDOWS ? max : PART_WINDOWS;
}

bool windows_stage(struct query_run *run)
{
	struct query_stage *stage = &run->stage;
	size_t max = run->query.spec.agg ? STAGE_CELLS : STAGE_POINTS;
	if (stage->row_count && stage->to_ms < run->end_ms) {
		stage->from_ms = stage->to_ms; /* the present row goes on */
	} else {
		size_t all = window_number(run, run->end_ms - 1) + 1;
		stage->row += stage->row_count;
		stage->row_count = all < max ? max / all : 1;
		stage->from_ms = run->start_ms;
		if (stage->row_count > row_total(run) - stage->row)
			stage->row_count = row_total(run) - stage->row;
		if (!stage->row_count)
			return false;
		run_order_series(run);
	}
	size_t first = window_number(run, stage->from_ms);
	stage->windows = window_number(run, run->end_ms - 1) - first + 1;
	stage->to_ms = run->end_ms;
	if (stage->windows > windows_max(run)) {
		stage->windows = windows_max(run);
		stage->to_ms = window_begin_ms(run, first + stage->windows);
	}
	stage->series_next = 0;
	size_t cells = stage->row_count * stage->windows;
	if (run->query.spec.agg)
		memset(run->cells, 0, cells * sizeof(*run->cells));
	else
		memset(run->values, 0, cells * sizeof(*run->values));
	return true;
}

size_t windows_place(const struct query_run *run, uint32_t series, size_t window)
{
	size_t row = run->query.spec.agg ? run->series_row[series] : series;
	return (row - run->stage.row) * run->stage.windows + window;
}

struct windows_walk windows_walk(const struct query_run *run)
{
	return (struct windows_walk){.run = run,
				     .window_ms = run->query.spec.window_ms,
				     .next_ms = INT64_MIN,
				     .first = window_number(run, run->stage.from_ms)};
}

/* Most lie in the same window as the one before, or in the next, which is found without a division.
 */
size_t windows_walk_to(struct windows_walk *walk, int64_t ts_ms)
{
	if (ts_ms < walk->next_ms)
		return walk->window;
	if (ts_ms - walk->window_ms < walk->next_ms) {
		walk->window++;
		walk->next_ms += walk->window_ms;
	} else {
		walk->window = window_number(walk->run, ts_ms) - walk->first;
		walk->next_ms = floor_to(ts_ms, walk->window_ms) + walk->window_ms;
	}
	return walk->window;
}

/* ---- Points ---------------------------------------------------------------------------------- */

/* The point of a window of the row that is given; type NONE: it has none. */
static struct value window_value(const struct query_run *run, size_t window)
{
	size_t at = run->next_row * run->stage.windows + window;
	enum query_agg agg = run->query.spec.agg;
	return agg ? cell_value(&run->cells[at], agg) : run->values[at];
}

static void windows_put_point(struct query_run *run, size_t at, size_t window, struct value value)
{
	run->ts_ms[at] = window_begin_ms(run, window);
	run->bits[at] = value.bits;
	run->types[at] = (uint8_t)value.type;
}

/* Gaps before a value are filled when it is there: a row without any has no points. Windows are
 * counted from the run's start, so that a row goes on in the next stage. */
static size_t windows_next_points(struct query_run *run, size_t points_max)
{
	const struct query_stage *stage = &run->stage;
	enum query_fill fill = run->query.spec.fill;
	struct value gap = fill == FILL_ZERO ? value_i64(0) : (struct value){0};
	size_t first = window_number(run, stage->from_ms), count = 0;
	while (run->offset < stage->windows && count < points_max) {
		struct value value = window_value(run, run->offset);
		bool filled = fill && (value.type != VALUE_NONE || run->row_has_points);
		if (filled && run->windows_done < first + run->offset) {
			windows_put_point(run, count++, run->windows_done++, gap);
			continue;
		}
		if (filled || value.type != VALUE_NONE) {
			windows_put_point(run, count++, first + run->offset,
					  value.type == VALUE_NONE ? gap : value);
			run->windows_done = first + run->offset + 1;
			run->row_has_points = true;
		}
		run->offset++;
	}
	return count;
}

bool windows_next(struct query_run *run, size_t points_max, struct query_chunk *chunk)
{
	const struct query_stage *stage = &run->stage;
	if (points_max > CHUNK_POINTS)
		points_max = CHUNK_POINTS;
	while (run->next_row < stage->row_count) {
		size_t count = windows_next_points(run, points_max),
		       row = stage->row + run->next_row;
		bool over = run->offset == stage->windows;
		if (over) {
			run->next_row++;
			run->offset = 0;
		}
		if (over && stage->to_ms == run->end_ms) {
			run->windows_done = 0;
			run->row_has_points = false;
		}
		if (!count)
			continue;
		*chunk = run_chunk(run, row, count);
		return true;
	}
	return false;
}
