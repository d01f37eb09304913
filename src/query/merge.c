/* Points as they are stored, put together over the series of a group where their times are equal,
 * or lie in one tick. A stage is one group over some time: as long as its different times fit,
 * which is found out by reading; when they do not, the stage ends earlier and the rest is
 * read again. */
#include "query/private.h"

/* The part of the plan that a time lies in. */
static const struct query_part *part_at(const struct query_run *run, int64_t ms)
{
	const struct query_part *part = run->plan.parts;
	while (ms >= part->to_ms)
		part++;
	return part;
}

/* The time that a point counts at. */
static int64_t cell_ms(const struct query_run *run, int64_t ms)
{
	int64_t tick_ms = run->query.spec.tick_ms;
	return tick_ms ? floor_to(ms, tick_ms) : ms;
}

/* Where a stage ends that has a time at least: no tick is in two stages. */
static int64_t stage_end(const struct query_run *run, int64_t ms)
{
	int64_t tick_ms = run->query.spec.tick_ms;
	return smaller_of(tick_ms ? ceil_to(ms, tick_ms) : ms, run->end_ms);
}

/* All of a stage is answered by the same. */
static void end_with_part(struct query_run *run)
{
	struct query_stage *stage = &run->stage;
	int64_t to_ms = part_at(run, stage->from_ms)->to_ms;
	stage->to_ms = stage->to_ms < to_ms ? stage->to_ms : to_ms;
}

static bool merge_stage(struct query_run *run)
{
	struct query_stage *stage = &run->stage;
	if (stage->row_count && stage->to_ms < run->end_ms) {
		int64_t span_ms = stage->to_ms - stage->from_ms;
		/* Grows again where there is less. */
		if (run->merged_count < CELLS_MAX / 4)
			span_ms *= 2;
		stage->from_ms = stage->to_ms;
		stage->to_ms = run->end_ms - stage->from_ms > span_ms
				       ? stage_end(run, stage->from_ms + span_ms)
				       : run->end_ms;
		end_with_part(run);
	} else {
		stage->row += stage->row_count;
		stage->row_count = stage->row < run->row_count;
		if (!stage->row_count)
			return false;
		stage->from_ms = run->start_ms;
		stage->to_ms = run->end_ms;
		end_with_part(run);
		run_order_series(run);
	}
	stage->series_next = 0;
	run->merged_count = 0;
	return true;
}

static void ask_stage(struct query_job *job)
{
	int64_t from_ms = job->run->stage.from_ms;
	int granularity = part_at(job->run, from_ms)->granularity;
	/* Nothing is known of a part without data: asking for none is the same. */
	job_ask_points(job, granularity, BUCKET_VALUE_FIELDS, from_ms,
		       granularity == QUERY_PART_NONE ? from_ms : job->end_ms);
}

static void merge_part(struct query_run *run, struct query_job *job)
{
	struct query_stage *stage = &run->stage;
	size_t count = run_part_series(run, 1);
	job_set_series(job, stage->series_next, count);
	stage->series_next += count;
	job->token.len = 0;
	job->held = false;
	job->end_ms = stage->to_ms;
	ask_stage(job);
}

/* The mean of a bucket weighs as much as its samples. */
static void merge_add_point(struct query_run *run, struct query_cell *cell,
			    const struct store_points *points, size_t i)
{
	enum query_agg agg = run->query.spec.agg;
	if (part_at(run, run->stage.from_ms)->granularity < 0) {
		cell_add(cell, agg,
			 (struct value){points->bits[0][i], (enum value_type)points->types[0][i]});
		return;
	}
	struct store_summary summary;
	struct value value = bucket_value(points, i);
	if (agg == AGG_AVG && bucket_summary(points, i, &summary) && summary.count)
		cell_add_sum(cell, &summary, summary.count);
	else if (value.type != VALUE_NONE)
		cell_add(cell, agg, value);
}

/* From cell `at` and point `i` on, one is inserted after the other. */
static void merge_rest(struct query_run *run, size_t at, const struct store_points *points,
		       size_t i, size_t count)
{
	size_t most = run->merged_count + count - i, out = at;
	if (run->merged_cap < most) {
		run->merged_cap = most + most / 2;
		run->merged = mem_resize_array(run->merged, run->merged_cap, sizeof(*run->merged));
		run->spare = mem_resize_array(run->spare, run->merged_cap, sizeof(*run->spare));
	}
	const struct timed_cell *old = run->merged;
	struct timed_cell *to = run->spare;
	memcpy(to, old, at * sizeof(*to));
	while (at < run->merged_count || i < count) {
		int64_t ts_ms = i < count ? cell_ms(run, points->ts_ms[i]) : INT64_MAX;
		bool is_old = i == count || (at < run->merged_count && old[at].ts_ms <= ts_ms);
		if (is_old)
			to[out] = old[at++];
		else
			to[out] = (struct timed_cell){.ts_ms = ts_ms};
		while (i < count && cell_ms(run, points->ts_ms[i]) == to[out].ts_ms)
			merge_add_point(run, &to[out].cell, points, i++);
		out++;
	}
	run->spare = run->merged;
	run->merged = to;
	run->merged_count = out;
}

/* Most series have the times of those before them. */
static void merge_points(struct query_run *run, size_t series, const struct store_points *points)
{
	size_t count = points->count, at = 0, i = 0;
	while (count && points->ts_ms[count - 1] >= run->stage.to_ms)
		count--;
	if (count)
		run_found_value(run, series);
	for (; i < count; i++) {
		int64_t ts_ms = cell_ms(run, points->ts_ms[i]);
		while (at < run->merged_count && run->merged[at].ts_ms < ts_ms)
			at++;
		if (at == run->merged_count || run->merged[at].ts_ms != ts_ms)
			break;
		merge_add_point(run, &run->merged[at].cell, points, i);
	}
	if (i < count)
		merge_rest(run, at, points, i, count);
	if (run->merged_count > CELLS_MAX) {
		run->merged_count = CELLS_MAX / 2;
		run->stage.to_ms = run->merged[run->merged_count].ts_ms;
	}
}

static bool merge_arrived(struct query_run *run, struct query_job *job)
{
	const struct store_range *range = &job->main->range;
	job_join_begin(job);
	if (part_has_late(run, part_at(run, run->stage.from_ms)))
		job_join_late(job, job->main);
	for (size_t i = 0; i < job->count; i++)
		merge_points(run, job->series[i], &range->points[i]);
	if (!job->main->more)
		return false;
	job->token = job->main->token;
	store_read_reset(job->read);
	ask_stage(job);
	return true;
}

static bool merge_next(struct query_run *run, size_t points_max, struct query_chunk *chunk)
{
	size_t count = 0;
	if (points_max > CHUNK_POINTS)
		points_max = CHUNK_POINTS;
	for (; run->offset < run->merged_count && count < points_max; run->offset++) {
		const struct timed_cell *cell = &run->merged[run->offset];
		struct value value = cell_value(&cell->cell, run->query.spec.agg);
		if (value.type == VALUE_NONE)
			continue;
		run->ts_ms[count] = cell->ts_ms;
		run->bits[count] = value.bits;
		run->types[count++] = (uint8_t)value.type;
	}
	if (count)
		*chunk = run_chunk(run, run->stage.row, count);
	return count != 0;
}

const struct query_reader reader_merge = {merge_stage, merge_part, merge_arrived, merge_next};
