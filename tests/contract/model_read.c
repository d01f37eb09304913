#include <math.h>

#include "model.h"

enum { REQUESTS_MAX = 4, LINES_MAX = 1 << 20 };

/* What one request gave, slices put together: a line of text for each result, in their order, or
 * summaries. */
struct answer {
	char **lines;
	size_t count, cap;
	struct store_summary *summaries;
	size_t windows;
};

struct reader {
	struct side *side;
	struct store_read *read;
	struct store_request *requests[REQUESTS_MAX];
	struct store_request asked[REQUESTS_MAX]; /* the same, as they were filled in */
	struct answer answers[REQUESTS_MAX];
	size_t request_count;
	int err;
};

enum { PENDING = 1 };

static void read_done(struct store_read *read, int err)
{
	((struct reader *)read->owner)->err = err;
}

static void add_line(struct model *model, struct answer *answer, char *line)
{
	ASSERT(line);
	if (answer->count == answer->cap) {
		answer->cap = answer->cap ? answer->cap * 2 : 64;
		answer->lines = mem_resize_array(answer->lines, answer->cap, sizeof(char *));
	}
	answer->lines[answer->count++] = line;
	ASSERT(answer->count < LINES_MAX && model);
}

/* ---- Results as text ----------------------------------------------------------------------- */

static char *hex(struct model *model, struct slice bytes)
{
	if (bytes.len > 64)
		return arena_printf(&model->arena, "%zu bytes %02x..%02x", bytes.len,
				    (uint8_t)bytes.data[0], (uint8_t)bytes.data[bytes.len - 1]);
	char *text = arena_zalloc(&model->arena, bytes.len * 2 + 1);
	for (size_t i = 0; i < bytes.len; i++)
		snprintf(text + 2 * i, 3, "%02x", (uint8_t)bytes.data[i]);
	return text;
}

static char *parts_text(struct model *model, const struct store_parts *parts, size_t count)
{
	char *text = "";
	for (size_t i = 0; i < count; i++)
		text = arena_printf(&model->arena, "%s[%s]", text, hex(model, parts->part[i]));
	return text;
}

static char *point_text(struct model *model, const struct store_points *points, size_t i,
			enum table table)
{
	char *text = arena_printf(&model->arena, "%lld", (long long)points->ts_ms[i]);
	for (size_t f = 0; f < schema[table].field_count; f++) {
		if (!points->bits[f])
			continue;
		bool none = points->types[f][i] == VALUE_NONE;
		text = arena_printf(&model->arena, "%s %d:%llx", text, points->types[f][i],
				    none ? 0ull : (unsigned long long)points->bits[f][i]);
	}
	return text;
}

/* The number of the series that has this handle, or that there is none. */
static int series_of(const struct side *side, uint64_t handle)
{
	for (int i = 0; i < MODEL_SERIES; i++) {
		if (handle && side->handles[i] == handle)
			return i;
	}
	return -1;
}

static void take_points(struct model *model, struct answer *answer,
			const struct store_points *points, size_t handle_count, enum table table)
{
	for (size_t h = 0; h < handle_count; h++) {
		for (size_t i = 0; i < points[h].count; i++)
			add_line(model, answer,
				 arena_printf(&model->arena, "handle %zu: %s", h,
					      point_text(model, &points[h], i, table)));
	}
}

static char *cell_text(struct model *model, enum table table, const struct store_cell *cell)
{
	bool stamped = schema[table].cell_kind == CELL_STAMPED;
	return arena_printf(&model->arena, "%s = %s, stamp %lld, expires %lld, %s",
			    parts_text(model, &cell->column, schema[table].column_count),
			    hex(model, cell->value), stamped ? (long long)cell->stamp_us : 0ll,
			    (long long)cell->expires_ms, cell->version ? "versioned" : "plain");
}

static char *series_text(struct model *model, const struct side *side,
			 const struct store_series *series)
{
	if (!series->handle)
		return arena_printf(&model->arena, "unknown");
	return arena_printf(&model->arena, "%d %.*s %.*s %.*s", series_of(side, series->handle),
			    (int)series->tenant.len, series->tenant.data, (int)series->metric.len,
			    series->metric.data, (int)series->tags_text.len,
			    series->tags_text.data);
}

static void take_rows(struct model *model, const struct reader *reader, struct answer *answer,
		      const struct store_enumerate *e)
{
	for (size_t i = 0; i < e->count; i++) {
		const struct store_row *row = &e->rows[i];
		char *line;
		if (schema[e->table].kind == TABLE_CELLS)
			line = parts_text(model, &row->key, schema[e->table].key_count);
		else
			line = arena_printf(&model->arena, "series %d period %lld",
					    series_of(reader->side, row->handle),
					    (long long)row->period_ms);
		add_line(model, answer, line);
	}
}

static void take_summaries(struct model *model, struct answer *answer,
			   const struct store_aggregate *a, size_t from_handle)
{
	answer->windows = a->window_count;
	size_t all = a->window_count * a->handle_count;
	if (!answer->summaries)
		answer->summaries =
			arena_zalloc(&model->arena, (all + 1) * sizeof(*answer->summaries));
	for (size_t h = from_handle; h < a->next_handle; h++)
		store_windows_spread(&a->windows[h], a->window_count,
				     answer->summaries + h * a->window_count);
}

/* What this slice gave; how many points, cells, rows and series. */
static size_t take(struct model *model, const struct reader *reader, size_t index,
		   size_t from_handle)
{
	const struct store_request *r = reader->requests[index];
	struct answer *answer = (struct answer *)(uintptr_t)&reader->answers[index];
	size_t before = answer->count;
	switch (r->op) {
	case STORE_RANGE:
		take_points(model, answer, r->range.points, r->range.handle_count, r->range.table);
		break;
	case STORE_LAST_BEFORE:
		take_points(model, answer, r->last_before.points, r->last_before.handle_count,
			    r->last_before.table);
		break;
	case STORE_AGGREGATE:
		take_summaries(model, answer, &r->aggregate, from_handle);
		break;
	case STORE_CELL_GET:
		if (r->cell_get.found)
			add_line(model, answer,
				 cell_text(model, r->cell_get.table, &r->cell_get.cell));
		return 0;
	case STORE_CELL_SCAN:
		for (size_t i = 0; i < r->cell_scan.count; i++)
			add_line(model, answer,
				 cell_text(model, r->cell_scan.table, &r->cell_scan.cells[i]));
		break;
	case STORE_ENUMERATE:
		take_rows(model, reader, answer, &r->enumerate);
		break;
	case STORE_SERIES_LIST:
		for (size_t i = 0; i < r->series_list.count; i++)
			add_line(model, answer,
				 series_text(model, reader->side, &r->series_list.series[i]));
		break;
	case STORE_SERIES_DESCRIBE:
		for (size_t i = 0; i < r->series_describe.count; i++)
			add_line(model, answer,
				 series_text(model, reader->side, &r->series_describe.series[i]));
		return 0;
	default:
		break;
	}
	return answer->count - before;
}

/* ---- Requests ------------------------------------------------------------------------------ */

static uint64_t *pick_handles(struct model *model, const struct side *side, size_t *count)
{
	uint64_t *handles = arena_zalloc(&model->arena, MODEL_SERIES * sizeof(*handles));
	*count = chance(model, 10) ? MODEL_SERIES : pick(model, 6);
	for (size_t i = 0; i < *count; i++)
		handles[i] = side->handles[pick(model, MODEL_SERIES)];
	return handles;
}

static void pick_range(struct model *model, size_t place, int64_t *start_ms, int64_t *end_ms)
{
	*start_ms = chance(model, 30) ? INT64_MIN : model_pick_ts(model, place);
	*end_ms = chance(model, 30) ? INT64_MAX : model_pick_ts(model, place);
	if (*start_ms > *end_ms) {
		int64_t other = *start_ms;
		*start_ms = *end_ms;
		*end_ms = other;
	}
}

static void pick_range_request(struct model *model, const struct side *side,
			       struct store_range *range)
{
	size_t place = model_pick_place(model);
	range->table = model_places[place].table;
	range->period_ms = model_places[place].period_ms;
	range->handles = pick_handles(model, side, &range->handle_count);
	pick_range(model, place, &range->start_ms, &range->end_ms);
	if (chance(model, 40))
		range->fields =
			(unsigned)pick(model, UINT64_C(1) << schema[range->table].field_count);
	range->backward = chance(model, 40);
	range->limit = chance(model, 60) ? 0 : 1 + pick(model, 20);
	model_trace(model, "range %s %lld, %zu series, %lld to %lld, fields %x%s, limit %zu",
		    schema[range->table].name, (long long)range->period_ms, range->handle_count,
		    (long long)range->start_ms, (long long)range->end_ms, range->fields,
		    range->backward ? ", backward" : "", range->limit);
}

static void pick_last_before(struct model *model, const struct side *side,
			     struct store_last_before *last)
{
	size_t place = model_pick_place(model);
	last->table = model_places[place].table;
	last->period_ms = model_places[place].period_ms;
	last->handles = pick_handles(model, side, &last->handle_count);
	last->before_ms = model_pick_ts(model, place) + chance(model, 20);
	/* Most samples lie on a grid of 10 s: so it looks back just as far as one, or not quite. */
	if (chance(model, 70))
		last->look_back_ms =
			10000 * (1 + (int64_t)pick(model, 3)) - (int64_t)pick(model, 2);
	model_trace(model, "last before %lld, %s %lld, looking back %lld",
		    (long long)last->before_ms, schema[last->table].name,
		    (long long)last->period_ms, (long long)last->look_back_ms);
}

static void pick_aggregate(struct model *model, const struct side *side, struct store_aggregate *a)
{
	size_t place = model_pick_place(model);
	a->table = model_places[place].table;
	a->period_ms = model_places[place].period_ms;
	a->handles = pick_handles(model, side, &a->handle_count);
	a->field = (unsigned)pick(model, schema[a->table].field_count);
	pick_range(model, place, &a->start_ms, &a->end_ms);
	uint64_t span = (uint64_t)a->end_ms - (uint64_t)a->start_ms;
	uint64_t windows = 1 + pick(model, 40);
	a->window_ms = (int64_t)(span / windows / 2 + pick(model, span / windows / 2 + 1) + 1);
	if (a->window_ms <= 0)
		a->window_ms = INT64_MAX;
	model_trace(model, "aggregate %s %lld field %u, %zu series, %lld to %lld by %lld",
		    schema[a->table].name, (long long)a->period_ms, a->field, a->handle_count,
		    (long long)a->start_ms, (long long)a->end_ms, (long long)a->window_ms);
}

static enum table pick_cells(struct model *model)
{
	static const enum table tables[] = {
		TABLE_DEVICES, TABLE_CHUKWA,       TABLE_REPORT_ARRIVALS,
		TABLE_LEASES,  TABLE_METRIC_NAMES, TABLE_SERIES_SETS,
		TABLE_QUEUE};
	return tables[pick(model, ARRAY_LEN(tables))];
}

static struct store_parts pick_key(struct model *model, enum table table)
{
	if (table != TABLE_SERIES_SETS)
		return model_key(table, pick(model, MODEL_KEYS));
	size_t series = pick(model, MODEL_SERIES);
	return (struct store_parts){{slice_of(model_groups[model_group_of(series)].tenant),
				     slice_of(model_metric(series))}};
}

static struct store_parts pick_column(struct model *model, enum table table)
{
	static const struct slice tags[][3] = {
		{TEXT("host"), TEXT("a"), TEXT("cpu_user,host=a")},
		{TEXT("host"), TEXT("b"), TEXT("cpu_user,host=b")},
		{TEXT("dc"), TEXT("x"), TEXT("mem,dc=x,host=c")},
		{TEXT("a,b"), TEXT("c=d"), TEXT("")},
	};
	if (table != TABLE_SERIES_SETS)
		return model_column(table, pick(model, MODEL_COLUMNS));
	struct store_parts column = {0};
	memcpy(column.part, tags[pick(model, ARRAY_LEN(tags))], sizeof(tags[0]));
	return column;
}

/* A bound of 0 to all parts. */
static struct store_parts pick_bound(struct model *model, enum table table)
{
	struct store_parts bound = pick_column(model, table);
	for (size_t p = pick(model, schema[table].column_count + 1); p < schema[table].column_count;
	     p++)
		bound.part[p] = (struct slice){0};
	return bound;
}

static void pick_scan(struct model *model, struct store_cell_scan *scan)
{
	scan->table = pick_cells(model);
	scan->key = pick_key(model, scan->table);
	scan->from = pick_bound(model, scan->table);
	scan->to = pick_bound(model, scan->table);
	scan->backward = chance(model, 40);
	scan->limit = chance(model, 60) ? 0 : 1 + pick(model, 5);
	model_trace(model, "scan %s %s, %s to %s%s, limit %zu", schema[scan->table].name,
		    parts_text(model, &scan->key, schema[scan->table].key_count),
		    parts_text(model, &scan->from, schema[scan->table].column_count),
		    parts_text(model, &scan->to, schema[scan->table].column_count),
		    scan->backward ? ", backward" : "", scan->limit);
}

static enum store_op pick_op(struct model *model)
{
	static const enum store_op ops[] = {
		STORE_RANGE,       STORE_RANGE,          STORE_RANGE,     STORE_RANGE,
		STORE_LAST_BEFORE, STORE_AGGREGATE,      STORE_AGGREGATE, STORE_AGGREGATE,
		STORE_CELL_GET,    STORE_CELL_SCAN,      STORE_CELL_SCAN, STORE_ENUMERATE,
		STORE_SERIES_LIST, STORE_SERIES_DESCRIBE};
	return ops[pick(model, ARRAY_LEN(ops))];
}

static void fill_request(struct model *model, const struct side *side, struct store_request *r)
{
	static const enum table enumerated[] = {
		TABLE_DATA_RAW, TABLE_BASE_RATES,      TABLE_RAW_DATA,    TABLE_DEVICES,
		TABLE_LEASES,   TABLE_REPORT_ARRIVALS, TABLE_SERIES_SETS, TABLE_QUEUE};
	switch (r->op) {
	case STORE_RANGE:
		pick_range_request(model, side, &r->range);
		break;
	case STORE_LAST_BEFORE:
		pick_last_before(model, side, &r->last_before);
		break;
	case STORE_AGGREGATE:
		pick_aggregate(model, side, &r->aggregate);
		break;
	case STORE_CELL_GET:
		r->cell_get.table = pick_cells(model);
		r->cell_get.key = pick_key(model, r->cell_get.table);
		r->cell_get.column = pick_column(model, r->cell_get.table);
		break;
	case STORE_CELL_SCAN:
		pick_scan(model, &r->cell_scan);
		break;
	case STORE_ENUMERATE:
		r->enumerate.table = enumerated[pick(model, ARRAY_LEN(enumerated))];
		r->enumerate.limit = pick(model, 6);
		model_trace(model, "enumerate %s", schema[r->enumerate.table].name);
		break;
	case STORE_SERIES_LIST:
		r->series_list.tenant = chance(model, 50) ? TEXT("t") : TEXT("");
		r->series_list.metric = chance(model, 50) ? TEXT("cpu_user") : TEXT("");
		r->series_list.limit = pick(model, 6);
		break;
	default:
		r->series_describe.handles = pick_handles(model, side, &r->series_describe.count);
		break;
	}
}

/* ---- Running ------------------------------------------------------------------------------- */

static void new_read(struct model *model, struct reader *reader, struct side *side, int64_t now_ms)
{
	*reader = (struct reader){.side = side};
	reader->read = store_read_new(side->store, 64 << 20);
	reader->read->executor = &side->queue.executor;
	reader->read->done = read_done;
	reader->read->now_ms = now_ms;
	(void)model;
}

static int submit(struct reader *reader)
{
	reader->err = PENDING;
	reader->read->owner = reader;
	int err;
	while ((err = store_read_submit(reader->read)) == ERR_BUSY)
		task_queue_wait(&reader->side->queue);
	while (!err && reader->err == PENDING)
		task_queue_wait(&reader->side->queue);
	return err ? err : reader->err;
}

/* Every second slice goes on in a read that was reset, with the token alone: what the requests
 * pointed to was the read's. */
static bool again(struct reader *reader, size_t slice)
{
	struct store_request kept[REQUESTS_MAX];
	bool more = false;
	for (size_t i = 0; i < reader->request_count; i++) {
		if (reader->requests[i])
			kept[i] = *reader->requests[i];
		if (reader->requests[i] && !kept[i].more)
			reader->requests[i] = NULL;
		more |= reader->requests[i] != NULL;
	}
	if (!more || slice % 2)
		return more;
	store_read_reset(reader->read);
	for (size_t i = 0; i < reader->request_count; i++) {
		if (!reader->requests[i])
			continue;
		struct store_request *r = store_read_add(reader->read, kept[i].op);
		ASSERT(r);
		*r = reader->asked[i];
		r->next = NULL;
		r->token = kept[i].token;
		if (r->op == STORE_AGGREGATE)
			r->aggregate.next_handle = kept[i].aggregate.next_handle;
		reader->requests[i] = r;
	}
	return true;
}

/* From which handle the slice that comes gives summaries. */
static size_t first_handle(const struct store_request *r)
{
	return r && r->op == STORE_AGGREGATE && r->token.len ? r->aggregate.next_handle : 0;
}

static bool run_reader(struct model *model, struct reader *reader, bool settles)
{
	for (size_t slice = 0;; slice++) {
		size_t first[REQUESTS_MAX], given = 0;
		for (size_t i = 0; i < reader->request_count; i++)
			first[i] = first_handle(reader->requests[i]);
		int err = submit(reader);
		if (err)
			return model_differ(model, "%s: a read: %s", reader->side->name,
					    err_text(err));
		for (size_t i = 0; i < reader->request_count; i++) {
			if (reader->requests[i])
				given += take(model, reader, i, first[i]);
		}
		if (reader->read->points_max && given > reader->read->points_max)
			return model_differ(model, "%s gives %zu where %zu is the most",
					    reader->side->name, given, reader->read->points_max);
		if (!again(reader, slice))
			return true;
		if (slice > 100000)
			return model_differ(model, "%s: a read without end", reader->side->name);
		if (settles && slice == 1)
			model->engine->settle(model->engine->context, reader->side->store);
	}
}

static void build_read(struct model *model, struct reader *reader, struct side *side)
{
	static const size_t bounds[] = {0, 0, 0, 1, 2, 5, 17, 100};
	int64_t now_ms = clock_wall_ms(&model->clock.clock);
	if (chance(model, 30))
		now_ms -= (int64_t)pick(model, STORE_QUERY_DEADLINE_MAX_MS);
	new_read(model, reader, side, now_ms);
	reader->read->points_max = bounds[pick(model, ARRAY_LEN(bounds))];
	reader->request_count = 1 + pick(model, REQUESTS_MAX);
	model_trace(model, "read of %zu requests, now %lld, at most %zu", reader->request_count,
		    (long long)now_ms, reader->read->points_max);
	for (size_t i = 0; i < reader->request_count; i++) {
		reader->requests[i] = store_read_add(reader->read, pick_op(model));
		fill_request(model, side, reader->requests[i]);
		reader->asked[i] = *reader->requests[i];
	}
}

static void free_reader(struct reader *reader)
{
	for (size_t i = 0; i < REQUESTS_MAX; i++)
		mem_free(reader->answers[i].lines);
	store_read_free(reader->read);
}

/* ---- Comparing ----------------------------------------------------------------------------- */

static bool same_lines(struct model *model, const char *what, const struct answer *a,
		       const struct answer *b)
{
	for (size_t i = 0; i < a->count || i < b->count; i++) {
		const char *x = i < a->count ? a->lines[i] : "nothing";
		const char *y = i < b->count ? b->lines[i] : "nothing";
		if (strcmp(x, y) != 0)
			return model_differ(model,
					    "%s: result %zu (of %zu, expected %zu)\n  is       "
					    "%s\n  expected %s",
					    what, i, a->count, b->count, x, y);
	}
	return true;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_unique(struct answer *answer)
{
	size_t kept = 0;
	if (answer->count)
		qsort(answer->lines, answer->count, sizeof(char *), compare_lines);
	for (size_t i = 0; i < answer->count; i++) {
		if (kept == 0 || strcmp(answer->lines[kept - 1], answer->lines[i]) != 0)
			answer->lines[kept++] = answer->lines[i];
	}
	answer->count = kept;
}

static bool has_line(const struct answer *answer, const char *line)
{
	for (size_t i = 0; i < answer->count; i++) {
		if (strcmp(answer->lines[i], line) == 0)
			return true;
	}
	return false;
}

/* Every line that a row of this table may ever have had. */
static struct answer possible_rows(struct model *model, enum table table)
{
	struct answer rows = {0};
	for (size_t s = 0; s < MODEL_SERIES; s++) {
		struct store_parts key = {{slice_of(model_groups[model_group_of(s)].tenant),
					   slice_of(model_metric(s))}};
		if (table == TABLE_SERIES_SETS && model->ever_registered[s])
			add_line(model, &rows, parts_text(model, &key, 2));
		for (size_t p = 0; p < MODEL_PLACES; p++) {
			if (model_places[p].table == table && model->ever[s][p])
				add_line(model, &rows,
					 arena_printf(&model->arena, "series %zu period %lld", s,
						      (long long)model_places[p].period_ms));
		}
	}
	for (size_t k = 0; table != TABLE_SERIES_SETS && k < MODEL_KEYS; k++) {
		if (!model->ever_cells[table][k])
			continue;
		struct store_parts key = model_key(table, k);
		add_line(model, &rows, parts_text(model, &key, schema[table].key_count));
	}
	return rows;
}

/* All that the reference has, and nothing that never was. */
static bool same_rows(struct model *model, enum table table, const struct answer *a,
		      const struct answer *b)
{
	struct answer possible = possible_rows(model, table);
	bool same = true;
	for (size_t i = 0; same && i < b->count; i++) {
		if (!has_line(a, b->lines[i]))
			same = model_differ(model, "enumerate %s: missed %s", schema[table].name,
					    b->lines[i]);
	}
	for (size_t i = 0; same && i < a->count; i++) {
		if (!has_line(&possible, a->lines[i]))
			same = model_differ(model, "enumerate %s: %s, which never was",
					    schema[table].name, a->lines[i]);
	}
	mem_free(possible.lines);
	return same;
}

static double magnitude(struct value v)
{
	double d = fabs(value_as_f64(v));
	return isfinite(d) ? d : 0;
}

/* Of integers exact; else the order of addition may show in the last digits. */
static bool same_sum(const struct store_summary *a, const struct store_summary *b, bool integers)
{
	if (integers)
		return a->integers == b->integers && a->sum == b->sum;
	if (isnan(a->sum) || isnan(b->sum))
		return isnan(a->sum) == isnan(b->sum);
	if (isinf(a->sum) || isinf(b->sum))
		return a->sum == b->sum;
	double most = fmax(magnitude(b->min), magnitude(b->max)) * (double)b->count;
	return fabs(a->sum - b->sum) <= most * 1e-12;
}

static bool same_summary(const struct store_summary *a, const struct store_summary *b,
			 bool integers)
{
	if (a->count != b->count)
		return false;
	if (a->count == 0)
		return true;
	return value_identical(a->first, b->first) && value_identical(a->last, b->last) &&
	       a->first_ts_ms == b->first_ts_ms && a->last_ts_ms == b->last_ts_ms &&
	       value_equal(a->min, b->min) && value_equal(a->max, b->max) &&
	       same_sum(a, b, integers);
}

static char *summary_text(struct model *model, const struct store_summary *s)
{
	return arena_printf(
		&model->arena,
		"count %llu, sum %.17g, min %d:%llx, max %d:%llx, first %d:%llx at "
		"%lld, last %d:%llx at %lld",
		(unsigned long long)s->count, s->sum, (int)s->min.type,
		(unsigned long long)s->min.bits, (int)s->max.type, (unsigned long long)s->max.bits,
		(int)s->first.type, (unsigned long long)s->first.bits, (long long)s->first_ts_ms,
		(int)s->last.type, (unsigned long long)s->last.bits, (long long)s->last_ts_ms);
}

static bool same_aggregate(struct model *model, const struct answer *a, const struct answer *b,
			   const struct store_aggregate *asked)
{
	if (a->windows != b->windows)
		return model_differ(model, "aggregate: %zu windows, expected %zu", a->windows,
				    b->windows);
	bool whole = schema[asked->table].fields[asked->field].type != FIELD_REAL;
	for (size_t i = 0; i < a->windows * asked->handle_count; i++) {
		int series = series_of(&model->subject, asked->handles[i / a->windows]);
		bool integers = series >= 0 && model_integers_only((size_t)series) && whole;
		if (!same_summary(&a->summaries[i], &b->summaries[i], integers))
			return model_differ(model,
					    "aggregate: series %zu, window %zu\n  is       %s\n"
					    "  expected %s",
					    i / a->windows, i % a->windows,
					    summary_text(model, &a->summaries[i]),
					    summary_text(model, &b->summaries[i]));
	}
	return true;
}

static bool same_answer(struct model *model, const struct store_request *asked, struct answer *a,
			struct answer *b)
{
	static const char *const names[] = {[STORE_RANGE] = "range",
					    [STORE_LAST_BEFORE] = "last before",
					    [STORE_CELL_GET] = "get",
					    [STORE_CELL_SCAN] = "scan",
					    [STORE_SERIES_LIST] = "list series",
					    [STORE_SERIES_DESCRIBE] = "describe"};
	if (asked->op == STORE_AGGREGATE)
		return same_aggregate(model, a, b, &asked->aggregate);
	if (asked->op == STORE_ENUMERATE || asked->op == STORE_SERIES_LIST) {
		sort_unique(a);
		sort_unique(b);
	}
	if (asked->op == STORE_ENUMERATE)
		return same_rows(model, asked->enumerate.table, a, b);
	return same_lines(model, names[asked->op], a, b);
}

bool model_read_step(struct model *model)
{
	struct reader subject, reference;
	bool settles = chance(model, 10), trace = model->trace;
	struct random start = model->random;
	build_read(model, &subject, &model->subject);
	model->random = start;
	model->trace = false;
	build_read(model, &reference, &model->reference);
	model->trace = trace;
	bool same = run_reader(model, &subject, settles) && run_reader(model, &reference, false);
	for (size_t i = 0; same && i < subject.request_count; i++)
		same = same_answer(model, &subject.asked[i], &subject.answers[i],
				   &reference.answers[i]);
	free_reader(&subject);
	free_reader(&reference);
	return same;
}

/* ---- Series -------------------------------------------------------------------------------- */

static bool open_on(struct model *model, struct side *side, size_t g, bool find_only,
		    uint64_t *handles, size_t *created)
{
	const struct model_group *group = &model_groups[g];
	struct slice metrics[MODEL_SERIES];
	struct reader reader;
	for (size_t i = 0; i < group->count; i++)
		metrics[i] = slice_of(model_metric(group->first + i));
	new_read(model, &reader, side, clock_wall_ms(&model->clock.clock));
	struct store_request *r = store_read_add(reader.read, STORE_SERIES_OPEN);
	r->series_open = (struct store_series_open){
		.tenant = slice_of(group->tenant),
		.metrics = metrics,
		.count = group->count,
		.find_only = find_only,
	};
	ASSERT(tags_decode(slice_of(group->tags), &model->arena, &r->series_open.tags) == 0);
	int err = submit(&reader);
	if (!err) {
		memcpy(handles, r->series_open.handles, group->count * sizeof(*handles));
		*created = r->series_open.created;
	}
	free_reader(&reader);
	return err ? model_differ(model, "%s: open: %s", side->name, err_text(err)) : true;
}

bool model_open_group(struct model *model, size_t g, bool find_only)
{
	const struct model_group *group = &model_groups[g];
	uint64_t a[MODEL_SERIES], b[MODEL_SERIES];
	size_t a_created, b_created;
	model_trace(model, "%s group %zu", find_only ? "find" : "open", g);
	if (!open_on(model, &model->subject, g, find_only, a, &a_created) ||
	    !open_on(model, &model->reference, g, find_only, b, &b_created))
		return false;
	if (a_created != b_created)
		return model_differ(model, "open: %zu new series, expected %zu", a_created,
				    b_created);
	for (size_t i = 0; i < group->count; i++) {
		size_t series = group->first + i;
		if (!a[i] != !b[i])
			return model_differ(model, "series %zu is %s", series,
					    a[i] ? "there" : "not there");
		model->subject.handles[series] = a[i];
		model->reference.handles[series] = b[i];
		model->ever_registered[series] |= b[i] != 0;
	}
	return true;
}

/* A series without samples may be gone; one with samples may not, and none may come back. */
bool model_reopened(struct model *model)
{
	bool registered[MODEL_SERIES];
	uint64_t a[MODEL_SERIES], b[MODEL_SERIES];
	size_t created;
	for (size_t i = 0; i < MODEL_SERIES; i++)
		registered[i] = model->reference.handles[i] != 0;
	for (size_t g = 0; g < MODEL_GROUPS; g++) {
		const struct model_group *group = &model_groups[g];
		bool any = false;
		if (!open_on(model, &model->subject, g, true, a, &created) ||
		    !open_on(model, &model->reference, g, true, b, &created))
			return false;
		for (size_t i = 0; i < group->count; i++) {
			size_t s = group->first + i;
			any |= registered[s];
			model->subject.handles[s] = a[i];
			model->reference.handles[s] = b[i];
			if (a[i] && !registered[s])
				return model_differ(model, "series %zu came back", s);
			if (!a[i] && b[i] &&
			    model_count_samples(model, s, clock_wall_ms(&model->clock.clock)))
				return model_differ(model, "series %zu is lost", s);
		}
		/* So that both have the same again. Those that were forgotten come back as well. */
		if (any && (!open_on(model, &model->subject, g, false, a, &created) ||
			    !open_on(model, &model->reference, g, false, b, &created)))
			return false;
		for (size_t i = 0; any && i < group->count; i++) {
			model->subject.handles[group->first + i] = a[i];
			model->reference.handles[group->first + i] = b[i];
			model->ever_registered[group->first + i] = true;
		}
	}
	return true;
}

size_t model_count_samples(struct model *model, size_t series, int64_t now_ms)
{
	struct reader reader;
	size_t samples = 0;
	new_read(model, &reader, &model->reference, now_ms);
	for (size_t p = 0; p < MODEL_PLACES; p++) {
		struct store_request *r = store_read_add(reader.read, STORE_RANGE);
		r->range = (struct store_range){
			.table = model_places[p].table,
			.period_ms = model_places[p].period_ms,
			.handles = &model->reference.handles[series],
			.handle_count = 1,
			.start_ms = INT64_MIN,
			.end_ms = INT64_MAX,
		};
	}
	ASSERT(submit(&reader) == 0);
	for (struct store_request *r = reader.read->requests; r; r = r->next)
		samples += r->range.points->count;
	free_reader(&reader);
	return samples;
}

bool model_verify(struct model *model)
{
	struct reader reader;
	model_trace(model, "verify");
	new_read(model, &reader, &model->subject, clock_wall_ms(&model->clock.clock));
	struct store_request *r = store_read_add(reader.read, STORE_VERIFY);
	int err;
	do {
		err = submit(&reader);
		if (!err && r->verify.sentence_count)
			model_differ(model, "verify: %s", r->verify.sentences[0]);
	} while (!err && r->more);
	if (err || r->verify.problems)
		model_differ(model, "verify: %s, %llu problems", err_text(err),
			     (unsigned long long)r->verify.problems);
	free_reader(&reader);
	return !model->failure[0];
}
