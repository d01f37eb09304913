/* Of the model of roll-ups: what is to be there when all is at rest. */
#include "rollup_model.h"

#include "marks/watermark_cells.h"
#include "retention/late.h"
#include "rollup/aggregate_row.h"

static void on_own_read(struct store_read *read, int err)
{
	ASSERT(!err);
	*(bool *)read->owner = true;
}

static void own_read(struct model *m, struct store_read *read)
{
	bool over = false;
	read->executor = &m->own.executor;
	read->done = on_own_read;
	read->owner = &over;
	read->now_ms = now_ms(m);
	int err = store_read_submit(read);
	ASSERT(!err);
	while (!over)
		task_step(&m->own);
}

size_t marked_rows(struct model *m)
{
	struct store_read *read = store_read_new(m->landed, 16 << 20);
	struct store_request *request = store_read_add(read, STORE_ENUMERATE);
	/* Marks that no slot is told of are of writes that failed. */
	request->enumerate.table = m->far ? TABLE_MARK_SLOTS : TABLE_MARKS;
	own_read(m, read);
	size_t count = request->enumerate.count;
	store_read_free(read);
	return count;
}

static const struct store_points *points_of(struct model *m, struct store_read *read,
					    enum table table, int64_t period_ms,
					    const uint64_t *handle)
{
	struct store_request *request = store_read_add(read, STORE_RANGE);
	request->range = (struct store_range){.table = table,
					      .period_ms = period_ms,
					      .handles = handle,
					      .handle_count = 1,
					      .start_ms = STORE_TS_MIN,
					      .end_ms = STORE_TS_MAX};
	own_read(m, read);
	ASSERT(!request->more);
	return &request->range.points[0];
}

static struct value value_at(const struct store_points *points, size_t field, size_t i)
{
	return (struct value){points->bits[field][i], (enum value_type)points->types[field][i]};
}

/* Sums of some thousand multiples of 0.5 are exact. */
struct want {
	struct value min, max, first, last;
	double sum, increase;
	uint64_t count;
};

static void want_value(struct want *want, struct value value)
{
	double number = value_as_f64(value), last = value_as_f64(want->last);
	if (!want->count || value_compare(value, want->min) < 0)
		want->min = value;
	if (!want->count || value_compare(value, want->max) > 0)
		want->max = value;
	if (!want->count)
		want->first = value;
	else
		want->increase += number < last ? number : number - last;
	want->last = value;
	want->sum += number;
	want->count++;
}

/* `whole`: it says what came first and last. */
static bool row_is(const struct store_points *rows, size_t i, const struct want *want, bool counter,
		   bool whole)
{
	struct value none = {0, VALUE_NONE};
	const struct value values[ROLLUP_FIELDS] = {
		[ROLLUP_MIN] = counter ? none : want->min,
		[ROLLUP_MAX] = counter ? none : want->max,
		[ROLLUP_SUM] = value_f64(want->sum),
		[ROLLUP_COUNT] = counter ? none : value_u64(want->count),
		[ROLLUP_AVG] = none,
		[ROLLUP_INCREASE] = counter && whole ? value_f64(want->increase) : none,
		[ROLLUP_FIRST] = whole ? want->first : none,
		[ROLLUP_LAST] = whole ? want->last : none,
	};
	for (size_t f = 0; f < ROLLUP_FIELDS; f++) {
		if (!value_equal(value_at(rows, f, i), values[f]))
			return false;
	}
	return true;
}

/* Samples of a series in the order of time, up to where they have been looked at. */
struct samples {
	const struct store_points *points;
	size_t at;
};

static int64_t next_bucket(const struct samples *samples, int64_t width_ms)
{
	return samples->at < samples->points->count
		       ? samples->points->ts_ms[samples->at] / width_ms * width_ms
		       : INT64_MAX;
}

static struct want want_bucket(struct samples *samples, int64_t from_ms, int64_t width_ms)
{
	struct want want = {0};
	while (next_bucket(samples, width_ms) == from_ms)
		want_value(&want, value_at(samples->points, 0, samples->at++));
	return want;
}

/* One series in one granularity. */
struct checked {
	const char *name;
	unsigned series;
	const struct store_points *rows;
	size_t row;
	int64_t width_ms;
	bool counter;
};

/* The next row, if there is to be one. */
static bool check_row(struct model *m, struct checked *c, int64_t ts_ms, const struct want *want,
		      bool whole)
{
	if (!want->count)
		return true;
	if (c->row >= c->rows->count || c->rows->ts_ms[c->row] != ts_ms)
		return differ(m, "%s: the row of %lld, width %lld, is missing", c->name,
			      (long long)(ts_ms - BEGIN_MS), (long long)c->width_ms);
	if (!row_is(c->rows, c->row, want, c->counter, whole))
		return differ(m,
			      "%s: the row of %lld, width %lld, is not what the samples make: sum "
			      "%g, should be %g",
			      c->name, (long long)(ts_ms - BEGIN_MS), (long long)c->width_ms,
			      value_as_f64(value_at(c->rows, ROLLUP_SUM, c->row)), want->sum);
	c->row++;
	return true;
}

static bool is_doubtful(const struct model *m, const struct checked *c, int64_t from_ms)
{
	for (size_t i = 0; i < m->doubtful_count; i++) {
		const struct point *point = &m->doubtful[i];
		if (point->series == c->series && point->ts_ms >= from_ms &&
		    point->ts_ms < from_ms + c->width_ms)
			return true;
	}
	return false;
}

/* Leaves out rows of buckets that nothing certain is known of, up to a time. */
static void skip_doubtful(struct model *m, struct checked *c, int64_t to_ms)
{
	while (m->far && c->row < c->rows->count && c->rows->ts_ms[c->row] < to_ms &&
	       is_doubtful(m, c, floor_to(c->rows->ts_ms[c->row], c->width_ms)))
		c->row++;
}

static bool check_rows(struct model *m, struct checked *c, struct samples raw, struct samples late)
{
	for (;;) {
		int64_t ts_ms = next_bucket(&raw, c->width_ms);
		int64_t late_ms = next_bucket(&late, c->width_ms);
		ts_ms = late_ms < ts_ms ? late_ms : ts_ms;
		skip_doubtful(m, c, ts_ms);
		if (ts_ms == INT64_MAX)
			return c->row == c->rows->count ||
			       differ(m, "%s (series %u) has a row of nothing, of %lld, width %lld",
				      c->name, c->series,
				      (long long)(c->rows->ts_ms[c->row] - BEGIN_MS),
				      (long long)c->width_ms);
		struct want of_raw = want_bucket(&raw, ts_ms, c->width_ms);
		struct want of_late = want_bucket(&late, ts_ms, c->width_ms);
		if (m->far && is_doubtful(m, c, ts_ms)) {
			skip_doubtful(m, c, ts_ms + c->width_ms);
			continue;
		}
		if (!check_row(m, c, ts_ms, &of_raw, true) ||
		    !check_row(m, c, ts_ms + LATE_ROW_BEHIND_MS, &of_late, !of_raw.count))
			return false;
	}
}

static bool has_sample(const struct store_points *points, int64_t ts_ms)
{
	size_t low = 0, high = points->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (points->ts_ms[middle] < ts_ms)
			low = middle + 1;
		else
			high = middle;
	}
	return low < points->count && points->ts_ms[low] == ts_ms;
}

static bool check_accepted(struct model *m, const char *name, unsigned series,
			   const struct store_points *raw, const struct store_points *late)
{
	for (size_t i = 0; i < m->accepted_count; i++) {
		int64_t ts_ms = m->accepted[i].ts_ms;
		if (m->accepted[i].series == series && !has_sample(raw, ts_ms) &&
		    !has_sample(late, ts_ms))
			return differ(m, "%s: the sample of %lld, which was taken, is not there",
				      name, (long long)(ts_ms - BEGIN_MS));
	}
	return true;
}

static uint64_t find_handle(struct model *m, struct store_read *read, unsigned series)
{
	char name[64], value[8];
	bool tenant = series / FIELDS / HOSTS / MEASUREMENTS;
	snprintf(value, sizeof(value), "%u", series / FIELDS % HOSTS);
	metric_name(series, name);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	struct tag tag = {SLICE("h"), slice_of(value)};
	struct slice metric = slice_of(name);
	request->series_open =
		(struct store_series_open){.tenant = tenant ? SLICE("u") : SLICE("default"),
					   .tags = {&tag, 1},
					   .metrics = &metric,
					   .count = 1,
					   .find_only = true};
	own_read(m, read);
	return request->series_open.handles[0];
}

bool check_series(struct model *m, unsigned series)
{
	unsigned field = series % FIELDS;
	char name[64];
	bool counter = field == FIELDS - 1;
	metric_name(series, name);
	struct store_read *read = store_read_new(m->landed, 256 << 20);
	uint64_t handle = find_handle(m, read, series);
	const struct store_points *raw = points_of(m, read, TABLE_DATA_RAW, 0, &handle);
	const struct store_points *late = points_of(m, read, TABLE_DATA_LATE, 0, &handle);
	bool right = check_accepted(m, name, series, raw, late);
	m->late_seen += late->count;
	for (size_t g = 0; g < m->granularities.count && right; g++) {
		int64_t width_ms = m->granularities.list[g].width_ms;
		struct checked c = {
			.name = name,
			.series = series,
			.rows = points_of(m, read, TABLE_DATA_DOWNSAMPLED, width_ms, &handle),
			.width_ms = width_ms,
			.counter = counter};
		right = check_rows(m, &c, (struct samples){raw, 0}, (struct samples){late, 0});
	}
	store_read_free(read);
	return right;
}

/* ---- Queries --------------------------------------------------------------------------------- */

static int64_t rolled_before_ms(struct model *m, struct store_read *read, unsigned series)
{
	char name[64];
	bool tenant = series / FIELDS / HOSTS / MEASUREMENTS;
	struct watermark_asked *asked;
	metric_name(series, name);
	int err = watermark_cells_ask(read, tenant ? SLICE("u") : SLICE("default"), slice_of(name),
				      &asked);
	ASSERT(!err);
	own_read(m, read);
	return watermark_cells_before_ms(m->deleter.p.watermark, asked, PARTITIONS);
}

static bool may_be_deleted(const struct model *m, const struct point *point)
{
	const struct deleter *d = &m->deleter;
	return (d->wanted || d->works) && point->series % FIELDS == d->series % FIELDS &&
	       (d->whole || (point->ts_ms >= d->from_ms && point->ts_ms < d->to_ms));
}

/* How many times of the bucket have a sample that was taken. */
static uint64_t count_taken(const struct model *m, unsigned series, int64_t from_ms,
			    int64_t width_ms)
{
	int64_t seen[POINTS_MAX];
	uint64_t count = 0;
	for (size_t i = 0; i < m->accepted_count && count < POINTS_MAX; i++) {
		const struct point *point = &m->accepted[i];
		bool is_new =
			point->series == series && floor_to(point->ts_ms, width_ms) == from_ms;
		for (size_t k = 0; k < count && is_new; k++)
			is_new = seen[k] != point->ts_ms;
		if (is_new)
			seen[count++] = point->ts_ms;
	}
	return count;
}

static uint64_t count_of_row(const struct store_points *rows, int64_t ts_ms)
{
	for (size_t i = 0; i < rows->count; i++) {
		struct value count = value_at(rows, ROLLUP_COUNT, i);
		if (rows->ts_ms[i] == ts_ms && count.type != VALUE_NONE)
			return (uint64_t)value_as_f64(count);
	}
	return 0;
}

static bool query_has(struct model *m, struct store_read *read, const struct point *point)
{
	int64_t width_ms = m->granularities.list[0].width_ms;
	int64_t from_ms = floor_to(point->ts_ms, width_ms);
	int64_t before_ms = rolled_before_ms(m, read, point->series);
	uint64_t handle = find_handle(m, read, point->series);
	if (point->ts_ms >= before_ms)
		return has_sample(points_of(m, read, TABLE_DATA_RAW, 0, &handle), point->ts_ms) ||
		       differ(m, "a query of %lld lacks a sample: raw data, from %lld on",
			      (long long)(point->ts_ms - BEGIN_MS),
			      (long long)(before_ms - BEGIN_MS));
	uint64_t count = count_of_row(points_of(m, read, TABLE_DATA_DOWNSAMPLED, width_ms, &handle),
				      from_ms);
	uint64_t taken = count_taken(m, point->series, from_ms, width_ms);
	m->from_rows++;
	return count >= taken ||
	       differ(m,
		      "a query of %lld lacks a sample: the row has %llu of %llu, rolled up before "
		      "%lld",
		      (long long)(point->ts_ms - BEGIN_MS), (unsigned long long)count,
		      (unsigned long long)taken, (long long)(before_ms - BEGIN_MS));
}

bool check_query(struct model *m)
{
	size_t last = m->accepted_count < 300 ? m->accepted_count : 300;
	if (!last || m->late)
		return true;
	const struct point *point = &m->accepted[m->accepted_count - 1 - pick(m, last)];
	if (point->series % FIELDS == FIELDS - 1 || may_be_deleted(m, point))
		return true; /* rows of counters have no count */
	struct store_read *read = store_read_new(m->landed, 256 << 20);
	bool right = query_has(m, read, point);
	store_read_free(read);
	return right;
}
