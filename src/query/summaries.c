/* What windows hold, by the store's summaries. Windows lie on multiples of their width; the first
 * of a part of the time may be cut at the front and is then asked for by itself, as the store's
 * windows begin where a request does.
 *
 * A row of roll-ups has a field for each function, so its summary is made of those of the fields it
 * needs: a sum is the sum of the sums, a mean that by the sum of the counts. Where more than one
 * request tells of a window - of several fields, of raw data and a granularity - they are put
 * together before the value is made of it.
 *
 * A bucket whose sum is beyond all doubles has its mean beside it. When a window's sum turns out
 * not to be finite, its rows are read one by one. */
#include <math.h>

#include "query/private.h"

/* The rows that `fn` needs of roll-ups; of a mean two. */
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

/* ---- Asking ---------------------------------------------------------------------------------- */

static void add_ask(struct query_job *job, int grain, enum rollup_field field, int64_t from_ms,
		    int64_t to_ms, int64_t window_ms)
{
	const struct query_run *run = job->run;
	ASSERT(job->ask_count < ASKS_MAX);
	job->asks[job->ask_count++] = (struct job_ask){
		.request = job_ask_windows(job, grain, field, from_ms, to_ms, window_ms),
		.first = window_number(run, from_ms) - window_number(run, run->stage.from_ms),
		.grain = grain,
		.field = field,
	};
}

static void ask_field(struct query_job *job, int grain, enum rollup_field field, int64_t from_ms,
		      int64_t to_ms)
{
	int64_t window_ms = job->run->query.spec.window_ms;
	int64_t whole_ms = floor_to(from_ms + window_ms - 1, window_ms);
	whole_ms = whole_ms < to_ms ? whole_ms : to_ms;
	if (from_ms < whole_ms)
		add_ask(job, grain, field, from_ms, whole_ms, whole_ms - from_ms);
	if (whole_ms < to_ms)
		add_ask(job, grain, field, whole_ms, to_ms, window_ms);
}

/* Whether several requests may tell of a window, or something is to be looked at once more. */
static bool is_made(const struct query_run *run)
{
	enum query_fn fn = run->query.spec.fn;
	size_t served = 0;
	for (size_t i = 0; i < run->plan.count; i++)
		served += run->plan.parts[i].grain != QUERY_PART_NONE;
	return served > 1 || (!run_is_raw(run) && (fn == FN_AVG || fn == FN_SUM));
}

static void ask_rows(struct query_job *job, int grain, int64_t from_ms, int64_t to_ms)
{
	ASSERT(job->ask_count < ASKS_MAX);
	job->token.len = 0;
	job_ask_points(job, grain, ROW_SUM_FIELDS, from_ms, to_ms);
	job->asks[job->ask_count++] =
		(struct job_ask){.request = job->main, .grain = grain, .rows = true};
}

static void ask_part(struct query_job *job, const struct query_part *part)
{
	const struct query_stage *stage = &job->run->stage;
	int64_t from_ms = part->from_ms > stage->from_ms ? part->from_ms : stage->from_ms;
	int64_t to_ms = part->to_ms < stage->to_ms ? part->to_ms : stage->to_ms;
	enum rollup_field fields[2];
	size_t count = part->grain < 0 ? 1 : fields_of(job->run->query.spec.fn, fields);
	if (part->grain == QUERY_PART_NONE || from_ms >= to_ms)
		return;
	if (job->by_rows && part->grain >= 0) {
		ask_rows(job, part->grain, from_ms, to_ms);
		return;
	}
	for (size_t i = 0; i < count; i++)
		ask_field(job, part->grain, part->grain < 0 ? ROLLUP_MIN : fields[i], from_ms,
			  to_ms);
}

static void ask_all(struct query_job *job)
{
	job->ask_count = 0;
	for (size_t i = 0; i < job->run->plan.count; i++)
		ask_part(job, &job->run->plan.parts[i]);
}

static void windows_part(struct query_run *run, struct query_job *job)
{
	struct query_stage *stage = &run->stage;
	size_t count = run_part_series(run, stage->windows);
	job_take_series(job, stage->series_next, count);
	stage->series_next += count;
	job->by_rows = job->beyond = false;
	ask_all(job);
	mem_free(job->made);
	job->made = is_made(run) ? mem_zalloc(count * stage->windows * sizeof(*job->made)) : NULL;
}

/* ---- What arrives ------------------------------------------------------------------------------
 */

static void take_summary(struct query_run *run, size_t at, const struct store_summary *summary)
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

/* What a summary of one field of rows says of the samples behind them. */
static struct store_summary of_samples(const struct job_ask *ask, enum query_fn fn,
				       const struct store_summary *rows)
{
	struct store_summary samples = *rows;
	if (ask->grain < 0)
		return samples;
	if (ask->field == ROLLUP_COUNT)
		return (struct store_summary){.count = (uint64_t)rows->integers};
	if (fn == FN_AVG)
		samples.count = 0;
	return samples;
}

/* The second holds later samples. */
static void merge_summary(struct store_summary *into, const struct store_summary *from)
{
	bool has_first = into->first.type != VALUE_NONE;
	into->count += from->count;
	into->integers += from->integers;
	into->doubles += from->doubles;
	into->scaled += from->scaled;
	into->sum = store_sum((double)into->integers + into->doubles, into->scaled);
	if (!has_first)
		into->first = from->first;
	if (from->last.type != VALUE_NONE)
		into->last = from->last;
	if (from->min.type != VALUE_NONE &&
	    (into->min.type == VALUE_NONE || value_compare(from->min, into->min) < 0))
		into->min = from->min;
	if (from->max.type != VALUE_NONE &&
	    (into->max.type == VALUE_NONE || value_compare(from->max, into->max) > 0))
		into->max = from->max;
}

static void take_one(struct query_job *job, const struct job_ask *ask, size_t series, size_t window,
		     const struct store_summary *rows)
{
	struct query_run *run = job->run;
	if (!rows->count)
		return;
	job->beyond = job->beyond ||
		      (ask->grain >= 0 && ask->field == ROLLUP_SUM && !isfinite(rows->sum));
	struct store_summary samples = of_samples(ask, run->query.spec.fn, rows);
	if (job->made)
		merge_summary(&job->made[series * run->stage.windows + window], &samples);
	else
		take_summary(run, windows_place(run, job->series[series], window), &samples);
}

static bool take_rows(struct query_job *job, struct job_ask *ask)
{
	const struct query_run *run = job->run;
	size_t first = window_number(run, run->stage.from_ms);
	if (ask->have == job->count)
		return false;
	for (size_t i = 0; i < job->count; i++) {
		const struct store_points *rows = &ask->request->range.points[i];
		for (size_t p = 0; p < rows->count; p++) {
			size_t window = window_number(run, rows->ts_ms[p]) - first;
			struct store_summary summary;
			if (bucket_summary(rows, p, &summary))
				merge_summary(&job->made[i * run->stage.windows + window],
					      &summary);
		}
	}
	ask->have = ask->request->more ? 0 : job->count;
	return ask->request->more;
}

/* What is new of one request; true: there is more. */
static bool take_new(struct query_job *job, struct job_ask *ask)
{
	if (ask->rows)
		return take_rows(job, ask);
	const struct store_aggregate *answer = &ask->request->aggregate;
	if (ask->have == job->count)
		return false;
	for (; ask->have < answer->next_handle; ask->have++) {
		const struct store_summary *from =
			answer->summaries + ask->have * answer->window_count;
		for (size_t w = 0; w < answer->window_count; w++)
			take_one(job, ask, ask->have, ask->first + w, &from[w]);
	}
	return ask->request->more;
}

static void take_made(struct query_job *job)
{
	struct query_run *run = job->run;
	for (size_t i = 0; i < job->count; i++) {
		for (size_t w = 0; w < run->stage.windows; w++)
			take_summary(run, windows_place(run, job->series[i], w),
				     &job->made[i * run->stage.windows + w]);
	}
}

static bool windows_arrived(struct query_run *run, struct query_job *job)
{
	bool more = false;
	for (size_t i = 0; i < job->ask_count; i++)
		more = take_new(job, &job->asks[i]) || more;
	if (more || !job->made)
		return more;
	if (job->beyond && !job->by_rows) {
		memset(job->made, 0, job->count * run->stage.windows * sizeof(*job->made));
		store_read_reset(job->read);
		job->by_rows = true;
		ask_all(job);
		return true;
	}
	take_made(job);
	return false;
}

const struct query_reader reader_windows = {windows_stage, windows_part, windows_arrived,
					    windows_take};
