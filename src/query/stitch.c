/* Points as they are stored, where raw data does not go back far enough: before it stand the rows
 * of granularities. A stage is some series, all parts of their time read at once; of those that do
 * not fit, the rest is read again in the next stage. One series that does not fit by itself is
 * given part by part, in slices by the store's token. */
#include "query/private.h"

enum { USUAL_PERIOD_MS = 10000 }; /* from one raw sample to the next */

/* The parts that are answered. */
static const struct query_part *stitch_next_part(const struct query_run *run, size_t *at)
{
	while (*at < run->plan.count && run->plan.parts[*at].granularity == QUERY_PART_NONE)
		++*at;
	return *at < run->plan.count ? &run->plan.parts[(*at)++] : NULL;
}

/* So many that what they have probably fits into one read. */
static size_t series_max(const struct query_run *run)
{
	const struct query_options *options = &run->engine->options;
	double each = 1;
	for (size_t i = 0; i < run->plan.count; i++) {
		const struct query_part *part = &run->plan.parts[i];
		int64_t width_ms =
			part->granularity < 0
				? USUAL_PERIOD_MS
				: options->granularities->list[part->granularity].width_ms;
		if (part->granularity != QUERY_PART_NONE)
			each += (double)(part->to_ms - part->from_ms) / (double)width_ms;
	}
	double count = (double)options->slice_points / each;
	return count < 1 ? 1 : count < PART_SERIES ? (size_t)count : PART_SERIES;
}

static bool stitch_stage(struct query_run *run)
{
	struct query_stage *stage = &run->stage;
	stage->series_next = 0;
	stage->series_count = 1;
	if (run->part_open)
		return true;
	stage->row += stage->row_count;
	stage->row_count = run->find.count - stage->row;
	if (stage->row_count > series_max(run))
		stage->row_count = series_max(run);
	return stage->row_count != 0;
}

/* Asks for all parts; for a series that is answered part by part, for its present one. */
static void stitch_part(struct query_run *run, struct query_job *job)
{
	struct query_stage *stage = &run->stage;
	const struct query_part *part;
	stage->series_next = 1;
	job->count = stage->row_count;
	for (size_t i = 0; i < job->count; i++)
		job->handles[i] = run->find.series[stage->row + i].handle;
	job->ask_count = 0;
	if (!run->part_open) {
		job->token.len = 0;
		job->part = 0;
		job->held = false;
	}
	for (size_t at = job->part; (part = stitch_next_part(run, &at)) != NULL;) {
		job_ask_points(job, part->granularity, BUCKET_VALUE_FIELDS, part->from_ms,
			       part->to_ms);
		job->asks[job->ask_count++] = (struct job_ask){
			.request = job->main, .granularity = part->granularity, .first = at - 1};
		if (run->part_open)
			return;
	}
}

/* How many series from the first on have all their points: the one that a slice ended in may have
 * more. */
static size_t whole_series(const struct query_job *job)
{
	size_t whole = job->count;
	for (size_t i = 0; i < job->ask_count; i++) {
		const struct store_request *request = job->asks[i].request;
		size_t last = job->count - 1;
		if (!request->more)
			continue;
		while (last && !request->range.points[last].count)
			last--;
		whole = last < whole ? last : whole;
	}
	return whole;
}

/* The series is given part by part: the first request that has more is where it goes on. What later
 * ones hold is not given now. */
static void open_part(struct query_run *run, struct query_job *job)
{
	size_t at = 0;
	while (at + 1 < job->ask_count && !job->asks[at].request->more)
		at++;
	size_t next = job->asks[at].first + !job->asks[at].request->more;
	run->part_open = stitch_next_part(run, &next) != NULL;
	job->part = job->asks[at].first + !job->asks[at].request->more;
	job->token = job->asks[at].request->token;
	if (!job->asks[at].request->more)
		job->token.len = 0;
	job->ask_count = at + 1;
}

/* For the points that are answered. Held points of a series that is not whole are read again. */
static void join_late(struct query_run *run, struct query_job *job, bool whole)
{
	job_join_begin(job);
	for (size_t i = 0; i < job->ask_count; i++) {
		const struct job_ask *ask = &job->asks[i];
		job->held = job->held && !whole;
		if (part_has_late(run, &run->plan.parts[ask->first]))
			job_join_late(job, ask->request);
	}
}

static bool stitch_arrived(struct query_run *run, struct query_job *job)
{
	if (run->part_open) {
		open_part(run, job);
		join_late(run, job, false);
		return false;
	}
	size_t whole = whole_series(job);
	run->stage.row_count = whole ? whole : 1;
	if (whole || job->count == 1) {
		if (!whole)
			open_part(run, job);
		join_late(run, job, whole != 0);
		return false;
	}
	/* Tokens are of the series that they were given for: it is read once more by itself. */
	store_read_reset(job->read);
	stitch_part(run, job);
	return true;
}

/* Values of rows that say nothing are left out. */
static size_t put_rows(struct query_run *run, const struct store_points *rows, size_t *offset,
		       size_t points_max)
{
	size_t count = 0;
	for (; *offset < rows->count && count < points_max; ++*offset) {
		struct value value = bucket_value(rows, *offset);
		if (value.type == VALUE_NONE)
			continue;
		run->ts_ms[count] = rows->ts_ms[*offset];
		run->bits[count] = value.bits;
		run->types[count++] = (uint8_t)value.type;
	}
	return count;
}

static size_t stitch_next_points(struct query_run *run, const struct job_ask *ask,
				 size_t points_max, struct query_chunk *chunk)
{
	const struct store_points *points = &ask->request->range.points[run->next_row];
	size_t row = run->stage.row + run->next_row, left = points->count - run->offset;
	if (ask->granularity >= 0) {
		size_t count = put_rows(run, points, &run->offset, points_max);
		*chunk = run_chunk(run, row, count);
		return count;
	}
	*chunk = (struct query_chunk){
		.series_index = row,
		.count = left < points_max ? left : points_max,
		.ts_ms = points->ts_ms + run->offset,
		.bits = points->bits[0] + run->offset,
		.types = points->types[0] + run->offset,
	};
	run->offset += chunk->count;
	return chunk->count;
}

static bool stitch_next(struct query_run *run, size_t points_max, struct query_chunk *chunk)
{
	const struct query_job *job = run->jobs[0];
	if (points_max > CHUNK_POINTS)
		points_max = CHUNK_POINTS;
	for (; run->next_row < run->stage.row_count; run->next_row++, run->next_ask = 0) {
		for (; run->next_ask < job->ask_count; run->next_ask++, run->offset = 0) {
			const struct job_ask *ask = &job->asks[run->next_ask];
			const struct store_points *points =
				&ask->request->range.points[run->next_row];
			if (run->offset < points->count &&
			    stitch_next_points(run, ask, points_max, chunk))
				return true;
		}
	}
	return false;
}

const struct query_reader reader_stitch = {stitch_stage, stitch_part, stitch_arrived, stitch_next};
