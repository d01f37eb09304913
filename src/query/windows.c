/* Points computed over windows by the store. Windows lie on multiples of their width; the one that
 * `start` falls into may be cut at the front and is then asked for by itself, as the store's
 * windows begin where a request does. A stage is many rows with few windows, or one row with some
 * of its many. */
#include "query/private.h"

/* The window that a time lies in, counted from the one that `start` lies in. */
static size_t window_number(const struct query_run *run, int64_t ms)
{
	int64_t window_ms = run->query.spec.window_ms;
	return (size_t)(floor_div(ms, window_ms) - floor_div(run->start_ms, window_ms));
}

static int64_t window_begin_ms(const struct query_run *run, size_t number)
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

static bool windows_stage(struct query_run *run)
{
	struct query_stage *stage = &run->stage;
	size_t max = run->query.spec.agg ? STAGE_CELLS : STAGE_POINTS;
	if (stage->row_count && stage->to_ms < run->end_ms) {
		stage->from_ms = stage->to_ms; /* the row at hand goes on */
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

static void windows_part(struct query_run *run, struct query_job *job)
{
	struct query_stage *stage = &run->stage;
	int64_t window_ms = run->query.spec.window_ms;
	size_t count = run_part_series(run, stage->windows);
	job_take_series(job, stage->series_next, count);
	stage->series_next += count;
	int64_t whole_ms = floor_to(stage->from_ms + window_ms - 1, window_ms);
	whole_ms = whole_ms < stage->to_ms ? whole_ms : stage->to_ms;
	job->head = job->main = NULL;
	job->head_have = job->main_have = 0;
	if (stage->from_ms < whole_ms)
		job->head =
			job_ask_windows(job, stage->from_ms, whole_ms, whole_ms - stage->from_ms);
	if (whole_ms < stage->to_ms)
		job->main = job_ask_windows(job, whole_ms, stage->to_ms, window_ms);
}

/* The row of the stage that a series belongs to. */
static size_t row_of(const struct query_run *run, uint32_t series)
{
	if (!run->query.spec.agg)
		return series - run->stage.row;
	return run->series_row[series] - run->stage.row;
}

static void take_summary(struct query_run *run, size_t at, const struct store_summary *summary)
{
	const struct query_spec *spec = &run->query.spec;
	if (!summary->count)
		return;
	if (spec->agg == AGG_AVG && spec->fn == FN_AVG) {
		cell_add_sum(&run->cells[at], summary, summary->count);
		return;
	}
	if ((spec->agg == AGG_SUM || spec->agg == AGG_AVG) && spec->fn == FN_SUM) {
		cell_add_sum(&run->cells[at], summary, 1);
		return;
	}
	struct value value = summary_value(summary, spec->fn);
	if (spec->agg == AGG_NONE)
		run->values[at] = value;
	else if (value.type != VALUE_NONE)
		cell_add(&run->cells[at], spec->agg, value);
}

/* What is new of one request, whose first window is number `first` of the stage; true: there is
 * more. */
static bool take_new(struct query_run *run, const struct query_job *job,
		     const struct store_request *request, size_t *have, size_t first)
{
	if (!request || *have == job->count)
		return false;
	const struct store_aggregate *answer = &request->aggregate;
	for (; *have < answer->next_handle; ++*have) {
		size_t at = row_of(run, job->series[*have]) * run->stage.windows + first;
		const struct store_summary *from = answer->summaries + *have * answer->window_count;
		for (size_t w = 0; w < answer->window_count; w++)
			take_summary(run, at + w, &from[w]);
	}
	return request->more;
}

static bool windows_arrived(struct query_run *run, struct query_job *job)
{
	bool more = take_new(run, job, job->head, &job->head_have, 0);
	return take_new(run, job, job->main, &job->main_have, job->head != NULL) || more;
}

static bool windows_take(struct query_run *run, size_t points_max, struct query_chunk *chunk)
{
	const struct query_stage *stage = &run->stage;
	enum query_agg agg = run->query.spec.agg;
	if (points_max > CHUNK_POINTS)
		points_max = CHUNK_POINTS;
	size_t first = window_number(run, stage->from_ms);
	for (; run->next_row < stage->row_count; run->next_row++, run->offset = 0) {
		size_t count = 0;
		for (; run->offset < stage->windows && count < points_max; run->offset++) {
			size_t at = run->next_row * stage->windows + run->offset;
			struct value value =
				agg ? cell_value(&run->cells[at], agg) : run->values[at];
			if (value.type == VALUE_NONE)
				continue;
			run->ts_ms[count] = window_begin_ms(run, first + run->offset);
			run->bits[count] = value.bits;
			run->types[count++] = (uint8_t)value.type;
		}
		if (!count)
			continue;
		*chunk = run_chunk(run, stage->row + run->next_row, count);
		return true;
	}
	return false;
}

const struct query_reader reader_windows = {windows_stage, windows_part, windows_arrived,
					    windows_take};
