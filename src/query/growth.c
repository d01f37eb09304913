/* How much counters grow in windows, also where they begin again at zero.
 *
 * What counts is the growth from each value to the next, in the window of the later one; a value
 * below the one before it has grown from zero. The first value between start and end has none. A
 * bucket of a granularity says how much its own samples grew; one that was made as a gauge's does
 * not, and what is known of it is the step from its first value to its last. The step to a bucket
 * is that from the last value of the one before it to its first. So the windows of a time together
 * have all the growth from its first value to its last, whatever answered them.
 *
 * Values that are not finite are passed over. A window has a point where it has a value. A rate is
 * by the seconds of the window that lie between start and end.
 *
 * A job reads the parts of the plan one after the other, since the growth needs the order of time.
 */
#include <math.h>

#include "query/private.h"

enum { GROWTH_FIELDS = 1 << ROLLUP_INCREASE | 1 << ROLLUP_FIRST | 1 << ROLLUP_LAST };

struct grown {
	bool any; /* it has a value */
	struct rollup_total growth;
};

/* ---- Values ---------------------------------------------------------------------------------- */

static bool growth_is_finite(struct value value)
{
	return value.type != VALUE_NONE && isfinite(value_as_f64(value));
}

/* From one value to the next; type NONE before the first. */
static void add_step(struct grown *to, struct value *before, struct value next)
{
	if (before->type != VALUE_NONE)
		rollup_total_step(&to->growth, *before, next);
	to->any = true;
	*before = next;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Asks for the time of the stage in the job's part of the plan, or in the next part that has any;
 * false: there is none. */
static bool growth_ask_part(struct query_run *run, struct query_job *job)
{
	const struct query_stage *stage = &run->stage;
	for (; job->part < run->plan.count; job->part++) {
		const struct query_part *part = &run->plan.parts[job->part];
		int64_t from_ms = part->from_ms > stage->from_ms ? part->from_ms : stage->from_ms;
		int64_t to_ms = part->to_ms < stage->to_ms ? part->to_ms : stage->to_ms;
		if (part->granularity == QUERY_PART_NONE || from_ms >= to_ms)
			continue;
		job_ask_points(job, part->granularity, GROWTH_FIELDS, from_ms, to_ms);
		return true;
	}
	return false;
}

static void growth_part(struct query_run *run, struct query_job *job)
{
	struct query_stage *stage = &run->stage;
	size_t count = run_part_series(run, stage->windows);
	job_set_series(job, stage->series_next, count);
	stage->series_next += count;
	job->part = 0;
	job->token.len = 0;
	job->grown = job_clear_array(job->grown, &job->grown_room, count * stage->windows,
				     sizeof(*job->grown));
	/* A stage lies between start and end, where something is answered. */
	if (!growth_ask_part(run, job))
		job_ask_points(job, QUERY_PART_RAW, 0, stage->from_ms, stage->from_ms);
}

static void growth_fold_raw(struct grown *grown, struct value *before,
			    const struct store_points *points, size_t i)
{
	struct value value = {points->bits[0][i], (enum value_type)points->types[0][i]};
	if (growth_is_finite(value))
		add_step(grown, before, value);
}

static void growth_fold_row(struct grown *grown, struct value *before,
			    const struct store_points *rows, size_t i)
{
	struct value first = bucket_field(rows, i, ROLLUP_FIRST),
		     last = bucket_field(rows, i, ROLLUP_LAST);
	struct value increase = bucket_field(rows, i, ROLLUP_INCREASE);
	if (!growth_is_finite(first) || !growth_is_finite(last))
		return;
	add_step(grown, before, first);
	*before = last;
	/* A gauge's: it was made when the metric was not configured as a counter. */
	if (increase.type == VALUE_NONE)
		rollup_total_step(&grown->growth, first, last);
	else if (growth_is_finite(increase))
		rollup_total_value(&grown->growth, increase);
}

static void growth_fold_series(struct query_job *job, size_t i)
{
	struct query_run *run = job->run;
	const struct store_points *points = &job->main->range.points[i];
	bool raw = run->plan.parts[job->part].granularity < 0;
	struct value *before = &run->before[job->series[i]];
	struct windows_walk walk = windows_walk(run);
	for (size_t p = 0; p < points->count; p++) {
		size_t window = windows_walk_to(&walk, points->ts_ms[p]);
		struct grown *grown = &job->grown[i * run->stage.windows + window];
		if (raw)
			growth_fold_raw(grown, before, points, p);
		else
			growth_fold_row(grown, before, points, p);
	}
}

/* ---- What comes of it ------------------------------------------------------------------------ */

static double window_seconds(const struct query_run *run, size_t window)
{
	size_t number = window_number(run, run->stage.from_ms) + window;
	int64_t begin_ms = window_begin_ms(run, number), end_ms = window_begin_ms(run, number + 1);
	begin_ms = begin_ms > run->start_ms ? begin_ms : run->start_ms;
	end_ms = end_ms < run->end_ms ? end_ms : run->end_ms;
	return (double)(end_ms - begin_ms) / 1e3;
}

static void growth_put_window(struct query_job *job, size_t i, size_t window)
{
	struct query_run *run = job->run;
	const struct grown *grown = &job->grown[i * run->stage.windows + window];
	size_t at = windows_place(run, job->series[i], window);
	if (!grown->any)
		return;
	run_found_value(run, job->series[i]);
	struct value value = rollup_total_number(&grown->growth);
	if (run->query.spec.fn == FN_RATE)
		value = value_f64(value_as_f64(value) / window_seconds(run, window));
	if (run->query.spec.agg)
		cell_add(&run->cells[at], run->query.spec.agg, value);
	else
		run->values[at] = value;
}

static bool growth_arrived(struct query_run *run, struct query_job *job)
{
	for (size_t i = 0; i < job->count; i++)
		growth_fold_series(job, i);
	bool more = job->main->more;
	job->token = job->main->token;
	store_read_reset(job->read);
	if (!more) {
		job->part++;
		job->token.len = 0;
	}
	if (growth_ask_part(run, job))
		return true;
	for (size_t i = 0; i < job->count; i++) {
		for (size_t w = 0; w < run->stage.windows; w++)
			growth_put_window(job, i, w);
	}
	return false;
}

const struct query_reader reader_growth = {windows_stage, growth_part, growth_arrived,
					   windows_next};
