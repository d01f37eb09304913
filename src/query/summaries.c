/* What windows hold, by the store's summaries. Windows lie on multiples of their width; the first
 * of a part of the time may be cut at the front and is then asked for by itself, as the store's
 * windows begin where a request does.
 *
 * A row of roll-ups has a field for each function, so its summary is made of those of the fields it
 * needs: a sum is the sum of the sums, a mean that by the sum of the counts. Where more than one
 * request tells of a window - of several fields, of raw data and a granularity - they are put
 * together before the value is made of it.
 *
 * Where each bucket is a window, its rows are read instead of summaries of one row each.
 *
 * A bucket whose sum is beyond all doubles has its mean beside it. When a window's sum turns out
 * not to be finite, its rows are read one by one. */
#include <math.h>

#include "query/private.h"

enum { TURN_SLICES = 2 }; /* in one answer of the store: 131,072 rows, some ms to go through */

/* The fields that `fn` needs of roll-ups; of a mean two. */
static size_t fields_of(enum query_fn fn, enum rollup_field fields[2])
{
	static const enum rollup_field first[] = {
		[FN_MIN] = ROLLUP_MIN,   [FN_MAX] = ROLLUP_MAX,          [FN_SUM] = ROLLUP_SUM,
		[FN_AVG] = ROLLUP_SUM,   [FN_COUNT] = ROLLUP_COUNT,      [FN_FIRST] = ROLLUP_FIRST,
		[FN_LAST] = ROLLUP_LAST, [FN_INCREASE] = ROLLUP_INCREASE};
	fields[0] = first[fn];
	fields[1] = ROLLUP_COUNT;
	return fn == FN_AVG ? 2 : 1;
}

static bool summaries_is_sum(enum query_fn fn)
{
	return fn == FN_SUM || fn == FN_AVG;
}

/* Whether the buckets of a part are read one by one: where each is a window there is nothing to
 * summarise. */
static bool by_rows(const struct query_run *run, const struct query_part *part, bool redo)
{
	return part->granularity >= 0 &&
	       (redo || run->engine->options.granularities->list[part->granularity].width_ms ==
				run->query.spec.window_ms);
}

/* How many requests tell of each window of a part, or rows where these are asked for; of a sum the
 * rows may, too. */
static unsigned told_by(const struct query_run *run, const struct query_part *part)
{
	bool one = part->granularity < 0 || by_rows(run, part, false) ||
		   !summaries_is_sum(run->query.spec.fn);
	if (by_rows(run, part, false) && part_has_late(run, part))
		one = false;
	return one ? 1 : 2;
}

/* ---- Stages ---------------------------------------------------------------------------------- */

/* What of a part lies in the stage; false: nothing, or nothing answers it. */
static bool clip(const struct query_run *run, const struct query_part *part, int64_t *from_ms,
		 int64_t *to_ms)
{
	const struct query_stage *stage = &run->stage;
	*from_ms = part->from_ms > stage->from_ms ? part->from_ms : stage->from_ms;
	*to_ms = part->to_ms < stage->to_ms ? part->to_ms : stage->to_ms;
	return part->granularity != QUERY_PART_NONE && *from_ms < *to_ms;
}

/* Windows of the stage that more than one request tells of get numbers from 0 on, the others -1. */
static void number_shared(struct query_run *run)
{
	size_t first = window_number(run, run->stage.from_ms);
	int64_t from_ms, to_ms;
	memset(run->shared, 0, run->stage.windows * sizeof(*run->shared));
	for (size_t i = 0; i < run->plan.count; i++) {
		const struct query_part *part = &run->plan.parts[i];
		if (!clip(run, part, &from_ms, &to_ms))
			continue;
		for (size_t w = window_number(run, from_ms); w <= window_number(run, to_ms - 1);
		     w++)
			run->shared[w - first] += (int32_t)told_by(run, part);
	}
	run->shared_count = 0;
	for (size_t w = 0; w < run->stage.windows; w++)
		run->shared[w] = run->shared[w] > 1 ? (int32_t)run->shared_count++ : -1;
}

/* How many summaries the store gives of a series, or a row for as many. */
static size_t summaries_each(const struct query_run *run)
{
	size_t count = run->shared_count;
	int64_t from_ms, to_ms;
	for (size_t i = 0; i < run->plan.count; i++) {
		const struct query_part *part = &run->plan.parts[i];
		if (!by_rows(run, part, false) && clip(run, part, &from_ms, &to_ms))
			count += window_number(run, to_ms - 1) - window_number(run, from_ms) + 1;
	}
	return count;
}

static bool summaries_stage(struct query_run *run)
{
	if (!windows_stage(run))
		return false;
	number_shared(run);
	return true;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* Adds what is asked to the job's read, from the token on. */
static void put_ask(struct query_job *job, struct job_ask *ask, const struct store_token *token)
{
	enum query_fn fn = job->run->query.spec.fn;
	job->token = *token;
	if (ask->window_ms) {
		ask->request = job_ask_windows(job, ask->granularity, ask->field, ask->from_ms,
					       ask->to_ms, ask->window_ms);
		ask->request->token = *token;
	} else {
		job_ask_points(job, ask->granularity,
			       summaries_is_sum(fn) ? BUCKET_SUM_FIELDS : 1u << ask->field,
			       ask->from_ms, ask->to_ms);
		ask->request = job->main;
	}
}

static void add_ask(struct query_job *job, int granularity, enum rollup_field field,
		    int64_t from_ms, int64_t to_ms, int64_t window_ms)
{
	static const struct store_token beginning;
	const struct query_run *run = job->run;
	ASSERT(job->ask_count < ASKS_MAX);
	struct job_ask *ask = &job->asks[job->ask_count++];
	*ask = (struct job_ask){
		.first = window_number(run, from_ms) - window_number(run, run->stage.from_ms),
		.granularity = granularity,
		.field = field,
		.from_ms = from_ms,
		.to_ms = to_ms,
		.window_ms = window_ms,
	};
	put_ask(job, ask, &beginning);
}

/* What there is more of is asked again, so that what was taken leaves the memory. */
static void summaries_ask_again(struct query_job *job)
{
	struct store_token *tokens = mem_alloc_array(job->ask_count, sizeof(*tokens));
	size_t left = 0;
	for (size_t i = 0; i < job->ask_count; i++) {
		if (job->asks[i].have == job->count)
			continue;
		tokens[left] = job->asks[i].request->token;
		job->asks[left++] = job->asks[i];
	}
	job->ask_count = left;
	store_read_reset(job->read);
	for (size_t i = 0; i < left; i++)
		put_ask(job, &job->asks[i], &tokens[i]);
	mem_free(tokens);
}

static void ask_field(struct query_job *job, int granularity, enum rollup_field field,
		      int64_t from_ms, int64_t to_ms)
{
	int64_t window_ms = job->run->query.spec.window_ms;
	int64_t whole_ms = floor_to(from_ms + window_ms - 1, window_ms);
	whole_ms = whole_ms < to_ms ? whole_ms : to_ms;
	if (from_ms < whole_ms)
		add_ask(job, granularity, field, from_ms, whole_ms, whole_ms - from_ms);
	if (whole_ms < to_ms)
		add_ask(job, granularity, field, whole_ms, to_ms, window_ms);
}

static void summaries_ask_part(struct query_job *job, const struct query_part *part)
{
	const struct query_run *run = job->run;
	enum rollup_field fields[2];
	int64_t from_ms, to_ms;
	size_t count = fields_of(run->query.spec.fn, fields);
	if (!clip(run, part, &from_ms, &to_ms))
		return;
	if (by_rows(run, part, job->redo)) {
		add_ask(job, part->granularity, fields[0], from_ms, to_ms, 0);
		return;
	}
	for (size_t i = 0; i < (part->granularity < 0 ? 1 : count); i++)
		ask_field(job, part->granularity, fields[i], from_ms, to_ms);
}

static void ask_all(struct query_job *job)
{
	job->ask_count = 0;
	for (size_t i = 0; i < job->run->plan.count; i++)
		summaries_ask_part(job, &job->run->plan.parts[i]);
}

static void summaries_part(struct query_run *run, struct query_job *job)
{
	struct query_stage *stage = &run->stage;
	size_t count = run_part_series(run, summaries_each(run));
	job_set_series(job, stage->series_next, count);
	stage->series_next += count;
	job->redo = job->beyond = false;
	job->read->points_max =
		run_is_raw(run) ? 0 : TURN_SLICES * run->engine->options.slice_points;
	ask_all(job);
	job->made_count = count * run->shared_count;
	job->made =
		job_clear_array(job->made, &job->made_room, job->made_count, sizeof(*job->made));
}

/* ---- What arrives ------------------------------------------------------------------------------
 */

static void summaries_fold_one_summary(struct query_run *run, size_t at,
				       const struct store_summary *summary)
{
	const struct query_spec *spec = &run->query.spec;
	/* The stored increases of buckets. */
	enum query_fn fn = spec->fn == FN_INCREASE ? FN_SUM : spec->fn;
	if (!summary->count)
		return;
	if (spec->agg == AGG_AVG && fn == FN_AVG) {
		cell_add_sum(&run->cells[at], summary, summary->count);
		return;
	}
	if ((spec->agg == AGG_SUM || spec->agg == AGG_AVG) && fn == FN_SUM) {
		cell_add_sum(&run->cells[at], summary, 1);
		return;
	}
	struct value value = summary_value(summary, fn);
	if (spec->agg == AGG_NONE)
		run->values[at] = value;
	else if (value.type != VALUE_NONE)
		cell_add(&run->cells[at], spec->agg, value);
}

/* The summary of the samples of some rows, from the summary of one field of the rows. */
static struct store_summary of_samples(const struct job_ask *ask, enum query_fn fn,
				       const struct store_summary *rows)
{
	struct store_summary samples = *rows;
	if (ask->granularity < 0)
		return samples;
	if (ask->field == ROLLUP_COUNT)
		return (struct store_summary){.count = (uint64_t)rows->integers};
	if (fn == FN_AVG)
		samples.count = 0;
	return samples;
}

/* In any order: what is asked in slices comes in none. */
static void merge_summary(struct store_summary *into, const struct store_summary *from)
{
	bool earlier = into->first.type == VALUE_NONE || from->first_ts_ms < into->first_ts_ms;
	bool later = into->last.type == VALUE_NONE || from->last_ts_ms > into->last_ts_ms;
	into->count += from->count;
	into->integers += from->integers;
	into->doubles += from->doubles;
	into->scaled += from->scaled;
	into->sum = store_sum((double)into->integers + into->doubles, into->scaled);
	if (from->first.type != VALUE_NONE && earlier) {
		into->first = from->first;
		into->first_ts_ms = from->first_ts_ms;
	}
	if (from->last.type != VALUE_NONE && later) {
		into->last = from->last;
		into->last_ts_ms = from->last_ts_ms;
	}
	if (from->min.type != VALUE_NONE &&
	    (into->min.type == VALUE_NONE || value_compare(from->min, into->min) < 0))
		into->min = from->min;
	if (from->max.type != VALUE_NONE &&
	    (into->max.type == VALUE_NONE || value_compare(from->max, into->max) > 0))
		into->max = from->max;
}

/* What is known of a window, of samples. The second time only what was put together is. */
static void summaries_fold_samples(struct query_job *job, size_t series, size_t window,
				   const struct store_summary *samples)
{
	struct query_run *run = job->run;
	int32_t shared = run->shared[window];
	run_found_value(run, job->series[series]);
	if (shared >= 0)
		merge_summary(&job->made[series * run->shared_count + (size_t)shared], samples);
	else if (!job->redo)
		summaries_fold_one_summary(run, windows_place(run, job->series[series], window),
					   samples);
}

static void summaries_fold_one(struct query_job *job, const struct job_ask *ask, size_t series,
			       size_t window, const struct store_summary *rows)
{
	job->beyond = job->beyond ||
		      (ask->granularity >= 0 && ask->field == ROLLUP_SUM && !isfinite(rows->sum));
	struct store_summary samples = of_samples(ask, job->run->query.spec.fn, rows);
	summaries_fold_samples(job, series, window, &samples);
}

/* The buckets of one series. */
static void summaries_fold_buckets(struct query_job *job, const struct job_ask *ask, size_t series)
{
	const struct query_run *run = job->run;
	const struct store_points *rows = &ask->request->range.points[series];
	struct windows_walk walk = windows_walk(run);
	struct store_summary samples;
	for (size_t i = 0; i < rows->count; i++) {
		size_t window = windows_walk_to(&walk, rows->ts_ms[i]);
		if (bucket_samples(rows, i, run->query.spec.fn, ask->field, &samples))
			summaries_fold_samples(job, series, window, &samples);
	}
}

/* Where a bucket's field is the value of its window. */
static bool summaries_is_plain(const struct query_job *job)
{
	enum query_fn fn = job->run->query.spec.fn;
	return !job->run->shared_count &&
	       (fn == FN_MIN || fn == FN_MAX || fn == FN_FIRST || fn == FN_LAST);
}

static void summaries_fold_plain(struct query_job *job, const struct job_ask *ask, size_t series)
{
	struct query_run *run = job->run;
	const struct store_points *rows = &ask->request->range.points[series];
	size_t place = windows_place(run, job->series[series], 0);
	enum query_agg agg = run->query.spec.agg;
	struct windows_walk walk = windows_walk(run);
	for (size_t i = 0; i < rows->count; i++) {
		size_t at = place + windows_walk_to(&walk, rows->ts_ms[i]);
		struct value value = bucket_field(rows, i, ask->field);
		if (value.type == VALUE_NONE)
			continue;
		run_found_value(run, job->series[series]);
		if (agg)
			cell_add(&run->cells[at], agg, value);
		else
			run->values[at] = value;
	}
}

static bool summaries_fold_rows(struct query_job *job, struct job_ask *ask)
{
	if (ask->have == job->count)
		return false;
	for (size_t i = 0; i < job->count; i++) {
		if (summaries_is_plain(job))
			summaries_fold_plain(job, ask, i);
		else
			summaries_fold_buckets(job, ask, i);
	}
	ask->have = ask->request->more ? 0 : job->count;
	return ask->request->more;
}

/* What is new of one request; true: there is more. */
static bool summaries_fold_new(struct query_job *job, struct job_ask *ask)
{
	if (!ask->window_ms)
		return summaries_fold_rows(job, ask);
	const struct store_aggregate *answer = &ask->request->aggregate;
	if (ask->have == job->count)
		return false;
	for (; ask->have < answer->next_handle; ask->have++) {
		const struct store_windows *from = &answer->windows[ask->have];
		for (size_t i = 0; i < from->count; i++)
			summaries_fold_one(job, ask, ask->have, ask->first + from->numbers[i],
					   &from->list[i]);
	}
	return ask->request->more;
}

static void summaries_fold_made(struct query_job *job)
{
	struct query_run *run = job->run;
	for (size_t i = 0; i < job->count; i++) {
		const struct store_summary *made = job->made + i * run->shared_count;
		for (size_t w = 0; w < run->stage.windows; w++) {
			if (run->shared[w] >= 0)
				summaries_fold_one_summary(
					run, windows_place(run, job->series[i], w), made++);
		}
	}
}

static bool summaries_arrived(UNUSED struct query_run *run, struct query_job *job)
{
	bool more = false;
	for (size_t i = 0; i < job->ask_count; i++)
		more = summaries_fold_new(job, &job->asks[i]) || more;
	if (more)
		summaries_ask_again(job);
	if (more || !job->made_count)
		return more;
	if (job->beyond && !job->redo) {
		job->made = job_clear_array(job->made, &job->made_room, job->made_count,
					    sizeof(*job->made));
		store_read_reset(job->read);
		job->redo = true;
		ask_all(job);
		return true;
	}
	summaries_fold_made(job);
	return false;
}

const struct query_reader reader_windows = {summaries_stage, summaries_part, summaries_arrived,
					    windows_next};
