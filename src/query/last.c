/* The newest point of each series, at its own time. */
#include "query/private.h"

static bool last_stage(struct query_run *run)
{
	struct query_stage *stage = &run->stage;
	stage->row += stage->row_count;
	stage->row_count = run->find.count - stage->row;
	if (stage->row_count > STAGE_POINTS)
		stage->row_count = STAGE_POINTS;
	if (!stage->row_count)
		return false;
	stage->from_ms = run->start_ms;
	stage->to_ms = run->end_ms;
	stage->series_next = 0;
	run_order_series(run);
	memset(run->values, 0, stage->row_count * sizeof(*run->values));
	return true;
}

static void last_part(struct query_run *run, struct query_job *job)
{
	struct query_stage *stage = &run->stage;
	size_t count = run_part_series(run, 1);
	job_set_series(job, stage->series_next, count);
	stage->series_next += count;
	job->main_have = 0;
	job->main = store_read_add(job->read, STORE_LAST_BEFORE);
	job->main->last_before = (struct store_last_before){
		.table = run->home.table,
		.period_ms = run->home.period_ms,
		.handles = job->handles,
		.handle_count = job->count,
		.before_ms = run->end_ms,
		.look_back_ms = run->end_ms - run->start_ms,
	};
}

static bool last_arrived(struct query_run *run, struct query_job *job)
{
	const struct store_points *points = job->main->last_before.points;
	for (size_t i = 0; i < job->count; i++) {
		size_t row = job->series[i] - run->stage.row;
		if (!points[i].count)
			continue;
		run->values[row] = (struct value){points[i].bits[0][0],
						  (enum value_type)points[i].types[0][0]};
		run->times[row] = points[i].ts_ms[0];
	}
	return job->main->more;
}

static bool last_next(struct query_run *run, size_t points_max, struct query_chunk *chunk)
{
	(void)points_max;
	for (; run->next_row < run->stage.row_count; run->next_row++) {
		struct value value = run->values[run->next_row];
		if (value.type == VALUE_NONE)
			continue;
		run->ts_ms[0] = run->times[run->next_row];
		run->bits[0] = value.bits;
		run->types[0] = (uint8_t)value.type;
		*chunk = run_chunk(run, run->stage.row + run->next_row, 1);
		run->next_row++;
		return true;
	}
	return false;
}

const struct query_reader reader_last = {last_stage, last_part, last_arrived, last_next};
