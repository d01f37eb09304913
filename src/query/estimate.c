/* How much a query would look at, before it does: some of its series are asked for some of its time
 * as it will ask for all. What the store then looked at, by the number of series and the time, is
 * the estimate. It takes some ms, and is good where series are alike and go on all the time. Where
 * one holds more than the others, or all lies between the pieces that were tried, it is too low:
 * then the query ends when it has really looked at too much (query.c, end_too_much). */
#include "query/private.h"

enum {
	SAMPLE_SERIES = 8,
	SAMPLE_PIECES = 8, /* of the time, each at most: */
	SAMPLE_PIECE_MS = 86400000,
	/* A series is taken to have at most so many samples a second until it is asked. */
	SAMPLES_PER_SECOND = 10,
};

/* The time that raw data answers, in all, and the longest part of it, which is tried: roll-ups are
 * few. */
static int64_t raw_ms(const struct query_run *run, struct query_part *longest)
{
	int64_t all_ms = 0;
	*longest = (struct query_part){0};
	for (size_t i = 0; i < run->plan.count; i++) {
		const struct query_part *part = &run->plan.parts[i];
		if (part->granularity != QUERY_PART_RAW)
			continue;
		all_ms += part->to_ms - part->from_ms;
		if (part->to_ms - part->from_ms > longest->to_ms - longest->from_ms)
			*longest = *part;
	}
	return all_ms;
}

bool estimate_needed(const struct query_run *run)
{
	struct query_part longest;
	double seconds = (double)raw_ms(run, &longest) / 1000;
	return run->query.spec.fn != FN_LAST || run->query.spec.window_ms
		       ? (double)run->find.count * seconds * SAMPLES_PER_SECOND >
				 (double)run->engine->options.samples_max
		       : false;
}

static bool estimate_stage(struct query_run *run)
{
	struct query_stage *stage = &run->stage;
	if (stage->row_count)
		return false;
	stage->row_count = 1;
	stage->series_count = 1;
	return true;
}

/* How long a piece is. Those of windows are so many whole ones. */
static int64_t piece_ms(const struct query_run *run, int64_t all_ms)
{
	int64_t window_ms = run->query.spec.window_ms;
	int64_t piece = all_ms / SAMPLE_PIECES;
	if (piece > SAMPLE_PIECE_MS)
		piece = SAMPLE_PIECE_MS;
	if (window_ms && piece > window_ms)
		piece -= piece % window_ms;
	return piece > 0 ? piece : 1;
}

static void estimate_add_piece(struct query_run *run, struct query_job *job, int64_t from_ms,
			       int64_t to_ms)
{
	int64_t window_ms = run->query.spec.window_ms;
	/* Where every sample is a window the store has to look at each, as for what has none. */
	bool fits = window_ms && (to_ms - from_ms) / window_ms < PART_WINDOWS / SAMPLE_SERIES;
	job_ask_windows(job, QUERY_PART_RAW, ROLLUP_MIN, from_ms, to_ms,
			fits ? window_ms : to_ms - from_ms);
}

static void estimate_part(struct query_run *run, struct query_job *job)
{
	run->stage.series_next = 1;
	size_t all = run->find.count;
	job->count = all < SAMPLE_SERIES ? all : SAMPLE_SERIES;
	for (size_t i = 0; i < job->count; i++)
		job->handles[i] = run->find.series[i * all / job->count].handle;
	struct query_part longest;
	raw_ms(run, &longest);
	int64_t all_ms = longest.to_ms - longest.from_ms, piece = piece_ms(run, all_ms);
	for (int64_t i = 0; i < SAMPLE_PIECES && i * piece < all_ms; i++) {
		int64_t from_ms = longest.from_ms + i * (all_ms / SAMPLE_PIECES);
		int64_t left_ms = longest.to_ms - from_ms;
		estimate_add_piece(run, job, from_ms,
				   from_ms + (piece < left_ms ? piece : left_ms));
	}
}

/* Raw points are all looked at; of windows those that no block's summary answers. */
static uint64_t looked_at(const struct query_run *run, const struct query_job *job)
{
	const struct store_read_work *work = &job->read->work;
	if (!run_reads_points(run))
		return work->rows_decoded + work->blocks_summarised;
	uint64_t samples = 0;
	for (const struct store_request *q = job->read->requests; q; q = q->next) {
		const struct store_aggregate *in = &q->aggregate;
		for (size_t h = 0; h < in->next_handle; h++) {
			for (size_t i = 0; i < in->windows[h].count; i++)
				samples += in->windows[h].list[i].count;
		}
	}
	return samples;
}

static bool estimate_arrived(struct query_run *run, struct query_job *job)
{
	for (const struct store_request *q = job->read->requests; q; q = q->next)
		run->sampled_ms += (double)(q->aggregate.end_ms - q->aggregate.start_ms) *
				   (double)q->aggregate.next_handle;
	run->sampled = looked_at(run, job);
	return false;
}

static bool estimate_next(struct query_run *run, size_t points_max, struct query_chunk *chunk)
{
	(void)run, (void)points_max, (void)chunk;
	return false;
}

int estimate_check(struct query_run *run)
{
	struct query *query = &run->query;
	uint64_t max = run->engine->options.samples_max;
	double each = run->sampled_ms > 0 ? (double)run->sampled / run->sampled_ms : 0;
	struct query_part longest;
	each *= (double)raw_ms(run, &longest);
	query->estimate = (uint64_t)(each * (double)run->find.count);
	if (query->estimate <= max)
		return 0;
	return errbuf_set(&query->error, ERR_LIMIT,
			  "the query would look at about %llu samples (%zu series of about %llu "
			  "each); at most %llu (query.samples_max): ask for fewer series, less "
			  "time or wider windows",
			  (unsigned long long)query->estimate, run->find.count,
			  (unsigned long long)each, (unsigned long long)max);
}

const struct query_reader reader_estimate = {estimate_stage, estimate_part, estimate_arrived,
					     estimate_next};
