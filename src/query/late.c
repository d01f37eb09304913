/* Rows of late points (retention/late.h). Windows need nothing of this: a row lies in the window of
 * its bucket. Where buckets are points of their own, the two rows of one become one. */
#include "retention/late.h"

#include <math.h>

#include "query/private.h"

bool part_has_late(const struct query_run *run, const struct query_part *part)
{
	int64_t after_ms = run->engine->options.late_after_ms;
	return after_ms && part->granularity >= 0 && part->from_ms < run->now_ms - after_ms;
}

/* ---- Two rows -------------------------------------------------------------------------------- */

/* One row by itself, as others are read. */
struct late_view {
	struct store_points points;
	uint64_t bits[ROLLUP_FIELDS];
	uint8_t types[ROLLUP_FIELDS];
};

static const struct store_points *view_of(struct late_view *view, const struct late_row *row)
{
	view->points = (struct store_points){.count = 1, .ts_ms = &row->ts_ms};
	for (size_t f = 0; f < ROLLUP_FIELDS; f++) {
		view->bits[f] = row->fields[f].bits;
		view->types[f] = (uint8_t)row->fields[f].type;
		view->points.bits[f] = &view->bits[f];
		view->points.types[f] = &view->types[f];
	}
	return &view->points;
}

static struct late_row late_row_at(const struct store_points *rows, size_t i)
{
	struct late_row row = {.ts_ms = rows->ts_ms[i] - late_row_is(rows->ts_ms[i])};
	for (size_t f = 0; f < ROLLUP_FIELDS; f++) {
		if (rows->bits[f])
			row.fields[f] = bucket_field(rows, i, (enum rollup_field)f);
	}
	return row;
}

static struct value late_sum_of(struct value a, struct value b)
{
	struct rollup_total total = {0};
	if (a.type != VALUE_NONE)
		rollup_total_value(&total, a);
	if (b.type != VALUE_NONE)
		rollup_total_value(&total, b);
	return a.type == VALUE_NONE && b.type == VALUE_NONE ? a : rollup_total_number(&total);
}

/* The mean of both, which is kept where their sum is beyond all doubles. */
static struct value late_mean_of(const struct late_row *a, const struct late_row *b)
{
	struct late_view views[2];
	struct store_summary x, y;
	if (!bucket_summary(view_of(&views[0], a), 0, &x) ||
	    !bucket_summary(view_of(&views[1], b), 0, &y) || !(x.count + y.count))
		return (struct value){0};
	double scaled = x.scaled + y.scaled;
	return value_f64(store_mean(store_sum(x.sum + y.sum, scaled), scaled, x.count + y.count));
}

/* Only one of the two says what came last. */
static void join_row(struct late_row *row, const struct late_row *late)
{
	struct value sum = late_sum_of(row->fields[ROLLUP_SUM], late->fields[ROLLUP_SUM]);
	struct value none = {0};
	bool beyond = sum.type == VALUE_F64 && !isfinite(value_as_f64(sum));
	row->fields[ROLLUP_AVG] = beyond ? late_mean_of(row, late) : none;
	row->fields[ROLLUP_SUM] = sum;
	row->fields[ROLLUP_COUNT] =
		late_sum_of(row->fields[ROLLUP_COUNT], late->fields[ROLLUP_COUNT]);
	if (row->fields[ROLLUP_LAST].type == VALUE_NONE)
		row->fields[ROLLUP_LAST] = late->fields[ROLLUP_LAST];
}

/* ---- The rows of a series -------------------------------------------------------------------- */

/* Rows that are put together; the fields as in *from. */
struct joining {
	struct store_points *to;
	int64_t *ts_ms;
	uint64_t *bits[ROLLUP_FIELDS];
	uint8_t *types[ROLLUP_FIELDS];
};

static void *late_alloc(struct query_job *job, size_t bytes)
{
	void *memory = arena_alloc(&job->joined, bytes);
	ASSERT(memory); /* it holds whatever a read can give, and a row */
	return memory;
}

static void begin_joining(struct query_job *job, struct joining *joining, size_t rows_max,
			  struct store_points *to)
{
	*joining = (struct joining){.to = to};
	*to = (struct store_points){0};
	to->ts_ms = joining->ts_ms = late_alloc(job, rows_max * sizeof(*joining->ts_ms));
	for (size_t f = 0; f < ROLLUP_FIELDS; f++) {
		if (!(BUCKET_VALUE_FIELDS >> f & 1))
			continue;
		to->bits[f] = joining->bits[f] =
			late_alloc(job, rows_max * sizeof(*joining->bits[f]));
		to->types[f] = joining->types[f] =
			late_alloc(job, rows_max * sizeof(*joining->types[f]));
	}
}

static void late_put_row(struct joining *joining, const struct late_row *row)
{
	size_t at = joining->to->count++;
	joining->ts_ms[at] = row->ts_ms;
	for (size_t f = 0; f < ROLLUP_FIELDS; f++) {
		if (!joining->bits[f])
			continue;
		joining->bits[f][at] = row->fields[f].bits;
		joining->types[f][at] = (uint8_t)row->fields[f].type;
	}
}

static bool any_late(const struct store_points *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		if (late_row_is(rows->ts_ms[i]))
			return true;
	}
	return false;
}

/* With the row that is held, if there is one, in front. */
static void join_series(struct query_job *job, struct store_points *rows, bool held)
{
	const struct store_points from = *rows;
	struct joining joining;
	struct late_row row = job->held_row;
	bool begun = held;
	if (!held && !any_late(rows))
		return;
	begin_joining(job, &joining, from.count + 1, rows);
	for (size_t i = 0; i < from.count; i++) {
		struct late_row next = late_row_at(&from, i);
		if (begun && next.ts_ms == row.ts_ms) {
			join_row(&row, &next);
			continue;
		}
		if (begun)
			late_put_row(&joining, &row);
		row = next;
		begun = true;
	}
	late_put_row(&joining, &row);
}

/* The next row may be its late one. */
static void hold_last(struct query_job *job, struct store_points *points, size_t count)
{
	size_t i = count;
	while (i && !points[i - 1].count)
		i--;
	if (!i)
		return;
	job->held = true;
	job->held_series = i - 1;
	job->held_row = late_row_at(&points[i - 1], --points[i - 1].count);
}

void job_join_begin(struct query_job *job)
{
	if (!job->joined.max_bytes)
		arena_init(&job->joined, READ_MAX_BYTES * 2);
	arena_reset(&job->joined);
}

void job_join_late(struct query_job *job, struct store_request *request)
{
	struct store_range *range = &request->range;
	bool held = job->held;
	job->held = false;
	for (size_t i = 0; i < range->handle_count; i++)
		join_series(job, &range->points[i], held && i == job->held_series);
	if (request->more)
		hold_last(job, range->points, range->handle_count);
}
