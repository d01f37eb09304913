/* Points as they are stored: a batch of series after the other, each in slices by the store's
 * token, in which a series ends before the next begins. A stage is a slice. */
#include "query/private.h"

static bool raw_stage(struct query_run *run)
{
	struct query_stage *stage = &run->stage;
	stage->series_next = 0; /* the part of this stage has not been asked for */
	stage->series_count = 1;
	if (run->part_open)
		return true;
	stage->row += stage->row_count;
	stage->row_count = run->find.count - stage->row;
	if (stage->row_count > PART_SERIES)
		stage->row_count = PART_SERIES;
	return stage->row_count != 0;
}

static void raw_part(struct query_run *run, struct query_job *job)
{
	struct query_stage *stage = &run->stage;
	stage->series_next = 1;
	job->count = stage->row_count;
	for (size_t i = 0; i < job->count; i++)
		job->handles[i] = run->find.series[stage->row + i].handle;
	if (!run->part_open)
		job->token.len = 0;
	job_ask_points(job, QUERY_PART_RAW, 0, run->start_ms, run->end_ms);
}

static bool raw_arrived(struct query_run *run, struct query_job *job)
{
	run->part_open = job->main->more;
	job->token = job->main->token;
	return false;
}

static bool raw_next(struct query_run *run, size_t points_max, struct query_chunk *chunk)
{
	const struct store_points *points = run->jobs[0]->main->range.points;
	size_t count = run->stage.row_count;
	while (run->next_row < count && run->offset == points[run->next_row].count) {
		run->next_row++;
		run->offset = 0;
	}
	if (run->next_row == count)
		return false;
	points += run->next_row;
	size_t left = points->count - run->offset;
	*chunk = (struct query_chunk){
		.series_index = run->stage.row + run->next_row,
		.count = left < points_max ? left : points_max,
		.ts_ms = points->ts_ms + run->offset,
		.bits = points->bits[0] + run->offset,
		.types = points->types[0] + run->offset,
	};
	run->offset += chunk->count;
	return true;
}

const struct query_reader reader_raw = {raw_stage, raw_part, raw_arrived, raw_next};
