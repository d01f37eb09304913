#include <math.h>

#include "base/hash.h"
#include "naive_private.h"

/* What one submission may still give. */
struct budget {
	struct naive *naive;
	struct store_read *read;
	size_t points;
};

/* Tokens are the bytes of a struct; what is unset is zero, so that len 0 is the beginning. */
static void token_get(const struct store_request *request, void *state, size_t size_bytes)
{
	memset(state, 0, size_bytes);
	if (request->token.len == size_bytes)
		memcpy(state, request->token.bytes, size_bytes);
}

static void token_set(struct store_request *request, const void *state, size_t size_bytes)
{
	request->more = true;
	request->token.len = size_bytes;
	memcpy(request->token.bytes, state, size_bytes);
}

static void *alloc_array(struct store_read *read, size_t count, size_t size_bytes)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size_bytes, &bytes))
		return NULL;
	return arena_zalloc(&read->arena, bytes);
}

/* An array of as many as fit into half of what is free, at most *count, at least one: what its
 * elements point to needs room too. */
static void *alloc_some(struct store_read *read, size_t *count, size_t size_bytes)
{
	size_t half_bytes = (read->arena.max_bytes - read->arena.used_bytes) / 2;
	while (*count > 1 && *count > half_bytes / size_bytes)
		*count /= 2;
	return alloc_array(read, *count, size_bytes);
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- Ranges -------------------------------------------------------------------------------- */

/* Where a range goes on: the handle, how many of its points were given, and the last of them. */
struct range_token {
	size_t handle;
	size_t given;
	int64_t last_ts_ms;
};

static int64_t query_now(const struct budget *budget)
{
	if (budget->naive->bug == NAIVE_BUG_WALL_FOR_NOW)
		return clock_wall_ms(budget->naive->clock);
	return budget->read->now_ms;
}

static unsigned asked_fields(const struct store_range *range)
{
	return range->fields ? range->fields : (1u << schema[range->table].field_count) - 1;
}

static bool point_wanted(const struct budget *budget, const struct store_range *range,
			 const struct naive_point *point)
{
	enum naive_bug bug = budget->naive->bug;
	if (point->ts_ms < range->start_ms ||
	    (bug == NAIVE_BUG_RANGE_START && point->ts_ms == range->start_ms))
		return false;
	if (point->ts_ms > range->end_ms ||
	    (point->ts_ms == range->end_ms && bug != NAIVE_BUG_RANGE_END))
		return false;
	for (size_t f = 0; f < schema[range->table].field_count; f++) {
		if (asked_fields(range) >> f & 1 &&
		    naive_sample_visible(budget->naive, point, f, query_now(budget)))
			return true;
	}
	return false;
}

static bool point_given(const struct budget *budget, const struct store_range *range,
			const struct range_token *token, const struct naive_point *point)
{
	if (token->given == 0)
		return false;
	if (budget->naive->bug == NAIVE_BUG_TOKEN_REPEATS && point->ts_ms == token->last_ts_ms)
		return false;
	return range->backward ? point->ts_ms >= token->last_ts_ms
			       : point->ts_ms <= token->last_ts_ms;
}

/* The wanted points that were not given, in the order asked for; the caller frees them. */
static const struct naive_point **select_points(const struct budget *budget,
						const struct store_range *range,
						const struct range_token *token,
						const struct naive_row *row, size_t *count)
{
	size_t row_count = row ? row->count : 0;
	const struct naive_point **chosen = mem_alloc_array(row_count, sizeof(*chosen));
	*count = 0;
	for (size_t i = 0; i < row_count; i++) {
		const struct naive_point *point =
			&row->points[range->backward ? row_count - 1 - i : i];
		if (point_wanted(budget, range, point) && !point_given(budget, range, token, point))
			chosen[(*count)++] = point;
	}
	if (range->limit && budget->naive->bug == NAIVE_BUG_LIMIT_PER_SLICE)
		*count = smaller(*count, range->limit);
	else if (range->limit)
		*count = smaller(*count, range->limit - token->given);
	return chosen;
}

static void copy_field(struct budget *budget, const struct naive_point **chosen,
		       struct store_points *points, size_t field)
{
	uint64_t *bits = alloc_array(budget->read, points->count, sizeof(*bits));
	uint8_t *types = alloc_array(budget->read, points->count, sizeof(*types));
	ASSERT(bits && types);
	for (size_t i = 0; i < points->count; i++) {
		if (!naive_sample_visible(budget->naive, chosen[i], field, query_now(budget)))
			continue;
		bits[i] = chosen[i]->values[field].bits;
		types[i] = (uint8_t)chosen[i]->values[field].type;
	}
	points->bits[field] = bits;
	points->types[field] = types;
}

/* How many points have room in what is left of the read's memory. */
static size_t points_that_fit(const struct store_read *read, const struct store_range *range)
{
	size_t fields = (size_t)__builtin_popcount(asked_fields(range));
	size_t point_bytes = sizeof(int64_t) + fields * (sizeof(uint64_t) + sizeof(uint8_t));
	size_t padding_bytes = 16 * (1 + 2 * fields);
	size_t left_bytes = read->arena.max_bytes - read->arena.used_bytes;
	return left_bytes < padding_bytes ? 0 : (left_bytes - padding_bytes) / point_bytes;
}

/* The first `count` of the chosen as columns. */
static void copy_points(struct budget *budget, const struct store_range *range,
			const struct naive_point **chosen, size_t count,
			struct store_points *points)
{
	int64_t *ts_ms = alloc_array(budget->read, count, sizeof(*ts_ms));
	ASSERT(ts_ms);
	for (size_t i = 0; i < count; i++)
		ts_ms[i] = chosen[i]->ts_ms;
	*points = (struct store_points){.count = count, .ts_ms = ts_ms};
	for (size_t f = 0; f < schema[range->table].field_count; f++) {
		if (asked_fields(range) >> f & 1)
			copy_field(budget, chosen, points, f);
	}
}

/* One handle: true when all its points were given. */
static bool range_handle(struct budget *budget, const struct store_range *range,
			 const struct naive_row *row, struct range_token *token,
			 struct store_points *points)
{
	size_t chosen_count;
	const struct naive_point **chosen = select_points(budget, range, token, row, &chosen_count);
	size_t count = smaller(chosen_count, budget->points);
	count = smaller(count, points_that_fit(budget->read, range));
	if (count) {
		copy_points(budget, range, chosen, count, points);
		token->given += count;
		token->last_ts_ms = chosen[count - 1]->ts_ms;
	}
	budget->points -= count;
	budget->read->work.points += count;
	mem_free(chosen);
	return count == chosen_count;
}

static int run_range(struct budget *budget, struct store_request *request,
		     const struct store_range *range, struct store_points **result)
{
	struct range_token token;
	token_get(request, &token, sizeof(token));
	struct store_points *points =
		alloc_array(budget->read, range->handle_count, sizeof(*points));
	if (!points)
		return ERR_LIMIT;
	*result = points;
	for (bool any = false; token.handle < range->handle_count; token.handle++) {
		struct naive_series *series =
			naive_series_of(budget->naive, range->handles[token.handle]);
		struct naive_row *row = naive_row_of(series, range->table, range->period_ms);
		bool whole = range_handle(budget, range, row, &token, &points[token.handle]);
		any |= points[token.handle].count > 0;
		if (!whole) {
			token_set(request, &token, sizeof(token));
			return any || budget->points == 0 ? 0 : ERR_LIMIT;
		}
		token.given = 0;
	}
	return 0;
}

static int64_t subtract_clipped(int64_t a, int64_t b)
{
	int64_t difference;
	return __builtin_sub_overflow(a, b, &difference) ? INT64_MIN : difference;
}

/* The newest sample before a time is a backward range of one. */
static int run_last_before(struct budget *budget, struct store_request *request)
{
	struct store_last_before *last = &request->last_before;
	struct store_range range = {
		.table = last->table,
		.period_ms = last->period_ms,
		.handles = last->handles,
		.handle_count = last->handle_count,
		.start_ms = last->look_back_ms
				    ? subtract_clipped(last->before_ms, last->look_back_ms)
				    : INT64_MIN,
		.end_ms = last->before_ms,
		.backward = true,
		.limit = 1,
	};
	if (budget->naive->bug == NAIVE_BUG_LOOK_BACK_EDGE && last->look_back_ms)
		range.start_ms++;
	return run_range(budget, request, &range, &last->points);
}

/* ---- Aggregates ---------------------------------------------------------------------------- */

/* The sum of a window: of integers exactly, of the rest as they come, and once more in a type that
 * reaches further. */
struct sum {
	__int128 integers;
	double others;
	long double wide;
};

static int compare(const struct naive *naive, struct value a, struct value b)
{
	if (naive->bug != NAIVE_BUG_COMPARE_ROUNDS)
		return value_compare(a, b);
	double x = value_as_f64(a), y = value_as_f64(b);
	return (x > y) - (x < y);
}

static void add_value(const struct naive *naive, struct store_summary *summary, struct sum *sum,
		      int64_t ts_ms, struct value value)
{
	if (summary->count++ == 0) {
		summary->first = value;
		summary->first_ts_ms = ts_ms;
	}
	summary->last = value;
	summary->last_ts_ms = ts_ms;
	if (value.type == VALUE_F64 || naive->bug == NAIVE_BUG_SUM_ROUNDS) {
		sum->others += value_as_f64(value);
		sum->wide += value_as_f64(value);
	} else {
		sum->integers += value.type == VALUE_I64 ? (__int128)(int64_t)value.bits
							 : (__int128)value.bits;
	}
	if (value.type == VALUE_F64 && isnan(value_as_f64(value)) &&
	    naive->bug != NAIVE_BUG_NAN_IS_MIN)
		return;
	if (summary->min.type == VALUE_NONE || compare(naive, value, summary->min) < 0)
		summary->min = value;
	if (summary->max.type == VALUE_NONE || compare(naive, value, summary->max) > 0)
		summary->max = value;
}

static void aggregate_row(const struct budget *budget, const struct store_aggregate *aggregate,
			  const struct naive_row *row, struct store_summary *summaries)
{
	struct store_range range = {
		.table = aggregate->table,
		.start_ms = aggregate->start_ms,
		.end_ms = aggregate->end_ms,
		.fields = 1u << aggregate->field,
	};
	struct sum *sums = mem_zalloc(aggregate->window_count * sizeof(*sums));
	for (size_t i = 0; row && i < row->count; i++) {
		const struct naive_point *point = &row->points[i];
		if (!point_wanted(budget, &range, point))
			continue;
		uint64_t since = (uint64_t)point->ts_ms - (uint64_t)aggregate->start_ms;
		size_t w = (size_t)(since / (uint64_t)aggregate->window_ms);
		/* Only a planted bug lets a point at the end in. */
		w = smaller(w, aggregate->window_count - 1);
		add_value(budget->naive, &summaries[w], &sums[w], point->ts_ms,
			  point->values[aggregate->field]);
		budget->read->work.rows_decoded++;
	}
	for (size_t w = 0; w < aggregate->window_count; w++) {
		const struct sum *sum = &sums[w];
		double others = isfinite(sum->others) ? sum->others : (double)sum->wide;
		summaries[w].sum = (double)sum->integers + others;
		summaries[w].scaled = (double)(((long double)sum->integers + sum->wide) * 0x1p-64L);
	}
	mem_free(sums);
}

static int run_aggregate(struct budget *budget, struct store_request *request)
{
	struct store_aggregate *aggregate = &request->aggregate;
	size_t windows = aggregate->window_count, handle, first;
	token_get(request, &handle, sizeof(handle));
	first = handle;
	aggregate->summaries = alloc_array(budget->read, windows * aggregate->handle_count,
					   sizeof(*aggregate->summaries));
	if (!aggregate->summaries)
		return ERR_LIMIT;
	for (; windows && handle < aggregate->handle_count; handle++) {
		if (handle > first && budget->points < windows)
			break;
		struct naive_series *series =
			naive_series_of(budget->naive, aggregate->handles[handle]);
		struct naive_row *row =
			naive_row_of(series, aggregate->table, aggregate->period_ms);
		aggregate_row(budget, aggregate, row, &aggregate->summaries[handle * windows]);
		budget->points -= smaller(windows, budget->points);
	}
	aggregate->next_handle = windows ? handle : aggregate->handle_count;
	if (aggregate->next_handle < aggregate->handle_count)
		token_set(request, &handle, sizeof(handle));
	return 0;
}

/* ---- Cells --------------------------------------------------------------------------------- */

/* The columns of series_sets come from the registry; so that both kinds are scanned by one
 * function, the row of either is made up as an array of these. */
static int compare_cells(const void *a, const void *b)
{
	return slice_compare(((const struct naive_cell *)a)->column,
			     ((const struct naive_cell *)b)->column);
}

static void set_cells_of(struct naive_cells *row, const struct naive_series *series)
{
	struct arena arena;
	struct tags tags;
	struct buf text;
	arena_init(&arena, 1 << 20);
	buf_init(&text, 2 * (TAGS_TEXT_MAX_BYTES + METRIC_MAX_BYTES));
	ASSERT(tags_decode(series->tags_text, &arena, &tags) == 0);
	ASSERT(series_set_encode(series->metric, tags, &text) == 0);
	for (size_t i = 0; i < tags.count; i++) {
		struct store_parts parts = {
			{tags.list[i].key, tags.list[i].value, buf_slice(&text)}};
		struct buf column;
		buf_init(&column, 1 << 20);
		ASSERT(store_parts_encode(&parts, 3, &column) == 0);
		row->cells = mem_resize_array(row->cells, row->count + 1, sizeof(*row->cells));
		row->cells[row->count++] = (struct naive_cell){
			.column = naive_copy(buf_slice(&column)),
			.value = SLICE(""),
			.deleted = !series->alive,
		};
		buf_release(&column);
	}
	buf_release(&text);
	arena_release(&arena);
}

/* The row of series_sets under that key, made for the occasion; cells of forgotten series are in it
 * as deleted ones, so that a token finds its place. */
static struct naive_cells *series_sets_row(const struct naive *naive, const struct store_parts *key)
{
	struct naive_cells *row = mem_zalloc(sizeof(*row));
	for (size_t i = 0; i < naive->series_count; i++) {
		const struct naive_series *series = &naive->series[i];
		if (slice_equal(series->tenant, key->part[0]) &&
		    slice_equal(series->metric, key->part[1]))
			set_cells_of(row, series);
	}
	if (row->count)
		qsort(row->cells, row->count, sizeof(*row->cells), compare_cells);
	return row;
}

static void free_series_sets_row(struct naive_cells *row)
{
	for (size_t i = 0; i < row->count; i++)
		mem_free((void *)(uintptr_t)row->cells[i].column.data);
	mem_free(row->cells);
	mem_free(row);
}

static struct slice encode(const struct store_parts *parts, size_t count)
{
	struct buf buf;
	buf_init(&buf, 1 << 20);
	ASSERT(store_parts_encode(parts, count, &buf) == 0);
	struct slice copy = naive_copy(buf_slice(&buf));
	buf_release(&buf);
	return copy;
}

static struct naive_cells *stored_row(const struct naive *naive, enum table table,
				      const struct store_parts *key)
{
	struct slice encoded = encode(key, schema[table].key_count);
	struct naive_cells *found = NULL;
	for (size_t i = 0; i < naive->tables[table].count; i++) {
		if (slice_equal(naive->tables[table].rows[i].key, encoded))
			found = &naive->tables[table].rows[i];
	}
	mem_free((void *)(uintptr_t)encoded.data);
	return found;
}

static struct naive_cells *row_for_read(const struct naive *naive, enum table table,
					const struct store_parts *key)
{
	if (table == TABLE_SERIES_SETS)
		return series_sets_row(naive, key);
	return stored_row(naive, table, key);
}

static void row_done(enum table table, struct naive_cells *row)
{
	if (table == TABLE_SERIES_SETS)
		free_series_sets_row(row);
}

/* False where the arena is full. */
static bool copy_cell(struct store_read *read, enum table table, const struct naive_cell *from,
		      struct store_cell *to)
{
	struct slice column = arena_copy(&read->arena, from->column);
	struct slice value = arena_copy(&read->arena, from->value);
	if (!column.data || !value.data)
		return false;
	*to = (struct store_cell){.value = value, .expires_ms = from->expires_ms};
	if (schema[table].cell_kind == CELL_STAMPED)
		to->stamp_us = from->stamp_us;
	if (schema[table].cell_kind == CELL_CONDITIONAL)
		to->version = from->version;
	return store_parts_decode(column, schema[table].column_count, &read->arena, &to->column) ==
	       0;
}

static int run_cell_get(struct budget *budget, struct store_request *request)
{
	struct store_cell_get *get = &request->cell_get;
	struct naive_cells *row = row_for_read(budget->naive, get->table, &get->key);
	struct slice column = encode(&get->column, schema[get->table].column_count);
	int err = 0;
	get->found = false;
	for (size_t i = 0; row && i < row->count; i++) {
		if (!slice_equal(row->cells[i].column, column) ||
		    !naive_cell_visible(&row->cells[i], query_now(budget)))
			continue;
		get->found = copy_cell(budget->read, get->table, &row->cells[i], &get->cell);
		err = get->found ? 0 : ERR_LIMIT;
	}
	mem_free((void *)(uintptr_t)column.data);
	row_done(get->table, row);
	return err;
}

/* How many cells were given, and the hash of the last one's column, since columns of series_sets
 * are longer than a token. That cell is still there, if only as deleted. */
struct scan_token {
	size_t given;
	struct hash128 last;
};

static struct slice column_of_hash(const struct naive_cells *row, struct hash128 hash)
{
	for (size_t i = 0; row && i < row->count; i++) {
		struct slice column = row->cells[i].column;
		struct hash128 h = hash128(column.data, column.len, 0);
		if (h.low == hash.low && h.high == hash.high)
			return column;
	}
	return (struct slice){0};
}

struct bounds {
	struct slice from, to;
	bool has_to;
	struct slice last; /* given last by an earlier slice; or NULL */
	bool backward;
};

static bool cell_wanted(const struct budget *budget, const struct bounds *bounds,
			const struct naive_cell *cell)
{
	int from = slice_compare(cell->column, bounds->from);
	int to = slice_compare(cell->column, bounds->to);
	int last = slice_compare(cell->column, bounds->last);
	if (!naive_cell_visible(cell, query_now(budget)) || from < 0)
		return false;
	if (bounds->has_to && (to > 0 || (to == 0 && budget->naive->bug != NAIVE_BUG_SCAN_TO)))
		return false;
	return !bounds->last.data || (bounds->backward ? last < 0 : last > 0);
}

/* Copies what is wanted, up to `room` cells and the arena's end; *at is left behind the last one
 * that was taken. True when nothing wanted is left. */
static bool copy_cells(struct budget *budget, struct store_cell_scan *scan,
		       const struct bounds *bounds, const struct naive_cells *row, size_t room,
		       struct slice *last)
{
	for (size_t i = 0; row && i < row->count; i++) {
		const struct naive_cell *cell =
			&row->cells[scan->backward ? row->count - 1 - i : i];
		if (!cell_wanted(budget, bounds, cell))
			continue;
		if (scan->count == room ||
		    !copy_cell(budget->read, scan->table, cell, &scan->cells[scan->count]))
			return false;
		scan->count++;
		*last = cell->column;
	}
	return true;
}

static int scan_row(struct budget *budget, struct store_request *request,
		    const struct bounds *bounds, const struct naive_cells *row,
		    struct scan_token *token)
{
	struct store_cell_scan *scan = &request->cell_scan;
	size_t room = smaller(budget->points, row ? row->count : 0);
	bool limited = scan->limit && scan->limit - token->given <= room;
	if (limited)
		room = scan->limit - token->given;
	if (limited && budget->naive->bug == NAIVE_BUG_LIMIT_PER_SLICE)
		room = smaller(budget->points, scan->limit);
	scan->count = 0;
	scan->cells = alloc_some(budget->read, &room, sizeof(*scan->cells));
	if (!scan->cells)
		return ERR_LIMIT;
	struct slice last = bounds->last;
	bool whole = copy_cells(budget, scan, bounds, row, room, &last);
	budget->points -= scan->count;
	token->given += scan->count;
	if (whole || (scan->limit && token->given == scan->limit))
		return 0;
	if (scan->count == 0 && budget->points > 0)
		return ERR_LIMIT;
	token->last = hash128(last.data, last.len, 0);
	token_set(request, token, sizeof(*token));
	return 0;
}

static int run_cell_scan(struct budget *budget, struct store_request *request)
{
	struct store_cell_scan *scan = &request->cell_scan;
	size_t parts = schema[scan->table].column_count;
	struct scan_token token;
	token_get(request, &token, sizeof(token));
	struct naive_cells *row = row_for_read(budget->naive, scan->table, &scan->key);
	struct bounds bounds = {
		.from = encode(&scan->from, parts),
		.to = encode(&scan->to, parts),
		.has_to = scan->to.part[0].data != NULL,
		.backward = scan->backward,
	};
	if (token.given)
		bounds.last = column_of_hash(row, token.last);
	int err = scan_row(budget, request, &bounds, row, &token);
	mem_free((void *)(uintptr_t)bounds.from.data);
	mem_free((void *)(uintptr_t)bounds.to.data);
	row_done(scan->table, row);
	return err;
}

/* ---- Rows and series ----------------------------------------------------------------------- */

/* Room for the results of one slice of a request with a limit of its own. */
static size_t slice_room(const struct budget *budget, size_t limit, size_t most)
{
	size_t room = smaller(budget->points, most);
	return limit ? smaller(room, limit) : room;
}

struct row_token {
	size_t series, row;
};

static bool row_visible(const struct budget *budget, const struct naive_row *row)
{
	for (size_t i = 0; i < row->count; i++) {
		for (size_t f = 0; f < TABLE_FIELDS_MAX; f++) {
			if (naive_sample_visible(budget->naive, &row->points[i], f,
						 query_now(budget)))
				return true;
		}
	}
	return false;
}

static size_t all_rows(const struct naive *naive)
{
	size_t count = 0;
	for (size_t i = 0; i < naive->series_count; i++)
		count += naive->series[i].row_count;
	return count;
}

static int enumerate_samples(struct budget *budget, struct store_request *request)
{
	struct store_enumerate *e = &request->enumerate;
	struct naive *naive = budget->naive;
	struct row_token at;
	token_get(request, &at, sizeof(at));
	size_t room = slice_room(budget, e->limit, all_rows(naive));
	e->rows = alloc_some(budget->read, &room, sizeof(*e->rows));
	if (!e->rows)
		return ERR_LIMIT;
	for (; at.series < naive->series_count; at.series++, at.row = 0) {
		const struct naive_series *series = &naive->series[at.series];
		for (; at.row < series->row_count; at.row++) {
			const struct naive_row *row = &series->rows[at.row];
			if (row->table != e->table || !row_visible(budget, row))
				continue;
			if (e->count == room) {
				token_set(request, &at, sizeof(at));
				return room || budget->points == 0 ? 0 : ERR_LIMIT;
			}
			e->rows[e->count++] = (struct store_row){
				.handle = naive_handle(naive, at.series),
				.period_ms = row->period_ms,
			};
			budget->points--;
		}
	}
	return 0;
}

static bool has_visible_cell(const struct budget *budget, const struct naive_cells *row)
{
	for (size_t i = 0; i < row->count; i++) {
		if (naive_cell_visible(&row->cells[i], query_now(budget)))
			return true;
	}
	return false;
}

/* A row of series_sets is given with the first living series that has it. */
static bool first_of_metric(const struct naive *naive, size_t index)
{
	const struct naive_series *series = &naive->series[index];
	if (!series->alive || series->tags_text.len == 0)
		return false;
	for (size_t i = 0; i < index; i++) {
		const struct naive_series *other = &naive->series[i];
		if (other->alive && other->tags_text.len &&
		    slice_equal(other->tenant, series->tenant) &&
		    slice_equal(other->metric, series->metric))
			return false;
	}
	return true;
}

/* The key of the row with that number, or of none: false. */
static bool numbered_row(const struct budget *budget, enum table table, size_t index,
			 struct store_parts *key, struct slice *encoded)
{
	const struct naive *naive = budget->naive;
	if (table == TABLE_SERIES_SETS) {
		*key = (struct store_parts){
			{naive->series[index].tenant, naive->series[index].metric}};
		return first_of_metric(naive, index);
	}
	*encoded = naive->tables[table].rows[index].key;
	return has_visible_cell(budget, &naive->tables[table].rows[index]);
}

/* Copies the key of a row, which came as parts or encoded. */
static bool copy_key(struct store_read *read, enum table table, struct store_parts key,
		     struct slice encoded, struct store_parts *to)
{
	if (encoded.data) {
		struct slice copy = arena_copy(&read->arena, encoded);
		return copy.data &&
		       store_parts_decode(copy, schema[table].key_count, &read->arena, to) == 0;
	}
	for (size_t i = 0; i < schema[table].key_count; i++) {
		to->part[i] = arena_copy(&read->arena, key.part[i]);
		if (!to->part[i].data)
			return false;
	}
	return true;
}

static int enumerate_cells(struct budget *budget, struct store_request *request)
{
	struct store_enumerate *e = &request->enumerate;
	size_t at, count = e->table == TABLE_SERIES_SETS ? budget->naive->series_count
							 : budget->naive->tables[e->table].count;
	token_get(request, &at, sizeof(at));
	size_t room = slice_room(budget, e->limit, count);
	e->rows = alloc_some(budget->read, &room, sizeof(*e->rows));
	if (!e->rows)
		return ERR_LIMIT;
	for (; at < count; at++) {
		struct store_parts key;
		struct slice encoded = {0};
		if (!numbered_row(budget, e->table, at, &key, &encoded))
			continue;
		if (e->count == room ||
		    !copy_key(budget->read, e->table, key, encoded, &e->rows[e->count].key)) {
			token_set(request, &at, sizeof(at));
			return e->count || budget->points == 0 ? 0 : ERR_LIMIT;
		}
		e->count++;
		budget->points--;
	}
	return 0;
}

static int run_enumerate(struct budget *budget, struct store_request *request)
{
	request->enumerate.count = 0;
	if (schema[request->enumerate.table].kind == TABLE_SAMPLES)
		return enumerate_samples(budget, request);
	return enumerate_cells(budget, request);
}

static uint64_t find_series(const struct naive *naive, struct slice tenant, struct slice metric,
			    struct slice tags_text)
{
	for (size_t i = 0; i < naive->series_count; i++) {
		const struct naive_series *series = &naive->series[i];
		if (series->alive && slice_equal(series->tags_text, tags_text) &&
		    slice_equal(series->metric, metric) && slice_equal(series->tenant, tenant))
			return naive_handle(naive, i);
	}
	return 0;
}

static uint64_t register_series(struct naive *naive, struct slice tenant, struct slice metric,
				struct slice tags_text)
{
	size_t index = naive->series_count++;
	naive->series =
		mem_resize_array(naive->series, naive->series_count, sizeof(*naive->series));
	naive->series[index] = (struct naive_series){
		.alive = true,
		.tenant = naive_copy(tenant),
		.metric = naive_copy(metric),
		.tags_text = naive_copy(tags_text),
		.first_seen_ms = clock_wall_ms(naive->clock),
	};
	return naive_handle(naive, index);
}

static int run_series_open(struct budget *budget, struct store_request *request)
{
	struct store_series_open *open = &request->series_open;
	struct buf text;
	open->created = 0;
	open->handles = alloc_array(budget->read, open->count, sizeof(*open->handles));
	if (!open->handles)
		return ERR_LIMIT;
	buf_init(&text, 2 * TAGS_TEXT_MAX_BYTES);
	ASSERT(tags_encode(open->tags, &text) == 0);
	for (size_t i = 0; i < open->count; i++) {
		open->handles[i] = find_series(budget->naive, open->tenant, open->metrics[i],
					       buf_slice(&text));
		if (open->handles[i] || open->find_only)
			continue;
		open->handles[i] = register_series(budget->naive, open->tenant, open->metrics[i],
						   buf_slice(&text));
		open->created++;
	}
	buf_release(&text);
	return 0;
}

static bool copy_series(struct budget *budget, size_t index, struct store_series *to)
{
	const struct naive_series *series = &budget->naive->series[index];
	struct arena *arena = &budget->read->arena;
	*to = (struct store_series){
		.tenant = arena_copy(arena, series->tenant),
		.metric = arena_copy(arena, series->metric),
		.tags_text = arena_copy(arena, series->tags_text),
		.first_seen_ms = series->first_seen_ms,
	};
	if (!to->tenant.data || !to->metric.data || !to->tags_text.data)
		return false;
	to->handle = naive_handle(budget->naive, index);
	return true;
}

static bool series_wanted(const struct store_series_list *list, const struct naive_series *series)
{
	return series->alive &&
	       (list->tenant.len == 0 || slice_equal(list->tenant, series->tenant)) &&
	       (list->metric.len == 0 || slice_equal(list->metric, series->metric));
}

static int run_series_list(struct budget *budget, struct store_request *request)
{
	struct store_series_list *list = &request->series_list;
	size_t at, count = budget->naive->series_count;
	token_get(request, &at, sizeof(at));
	size_t room = slice_room(budget, list->limit, count);
	list->count = 0;
	list->series = alloc_some(budget->read, &room, sizeof(*list->series));
	if (!list->series)
		return ERR_LIMIT;
	for (; at < count; at++) {
		if (!series_wanted(list, &budget->naive->series[at]))
			continue;
		if (list->count == room || !copy_series(budget, at, &list->series[list->count])) {
			token_set(request, &at, sizeof(at));
			return list->count || budget->points == 0 ? 0 : ERR_LIMIT;
		}
		list->count++;
		budget->points--;
	}
	return 0;
}

static int run_series_describe(struct budget *budget, struct store_request *request)
{
	struct store_series_describe *describe = &request->series_describe;
	describe->series = alloc_array(budget->read, describe->count, sizeof(*describe->series));
	if (!describe->series)
		return ERR_LIMIT;
	for (size_t i = 0; i < describe->count; i++) {
		struct naive_series *series = naive_series_of(budget->naive, describe->handles[i]);
		if (series && !copy_series(budget, (size_t)(series - budget->naive->series),
					   &describe->series[i]))
			return ERR_LIMIT;
	}
	return 0;
}

/* ---- Stats --------------------------------------------------------------------------------- */

static uint64_t row_values(const struct naive_row *row)
{
	uint64_t values = 0;
	for (size_t i = 0; i < row->count; i++) {
		for (size_t f = 0; f < TABLE_FIELDS_MAX; f++)
			values += row->points[i].values[f].type != VALUE_NONE;
	}
	return values;
}

static void count_samples(const struct naive *naive, struct store_table_stats *tables)
{
	for (size_t s = 0; s < naive->series_count; s++) {
		for (size_t r = 0; r < naive->series[s].row_count; r++) {
			const struct naive_row *row = &naive->series[s].rows[r];
			tables[row->table].rows += row->count > 0;
			tables[row->table].samples += row_values(row);
		}
	}
}

static void count_cells(const struct budget *budget, struct store_table_stats *tables)
{
	for (size_t t = 0; t < TABLE_COUNT; t++) {
		const struct naive_table *table = &budget->naive->tables[t];
		for (size_t r = 0; r < table->count; r++) {
			uint64_t cells = 0;
			for (size_t c = 0; c < table->rows[r].count; c++)
				cells += naive_cell_visible(&table->rows[r].cells[c],
							    budget->read->now_ms);
			tables[t].rows += cells > 0;
			tables[t].samples += cells;
		}
	}
}

static int run_stats(struct budget *budget, struct store_request *request)
{
	count_samples(budget->naive, request->stats.tables);
	count_cells(budget, request->stats.tables);
	for (size_t i = 0; i < budget->naive->series_count; i++)
		request->stats.series += budget->naive->series[i].alive;
	return 0;
}

/* ---- Submission ---------------------------------------------------------------------------- */

static int run_request(struct budget *budget, struct store_request *request)
{
	switch (request->op) {
	case STORE_RANGE:
		return run_range(budget, request, &request->range, &request->range.points);
	case STORE_LAST_BEFORE:
		return run_last_before(budget, request);
	case STORE_AGGREGATE:
		return run_aggregate(budget, request);
	case STORE_CELL_GET:
		return run_cell_get(budget, request);
	case STORE_CELL_SCAN:
		return run_cell_scan(budget, request);
	case STORE_ENUMERATE:
		return run_enumerate(budget, request);
	case STORE_SERIES_OPEN:
		return run_series_open(budget, request);
	case STORE_SERIES_LIST:
		return run_series_list(budget, request);
	case STORE_SERIES_DESCRIBE:
		return run_series_describe(budget, request);
	case STORE_STATS:
		return run_stats(budget, request);
	case STORE_VERIFY:
		request->verify.checked += all_rows(budget->naive);
		request->verify.sentence_count = 0;
		return 0;
	}
	return ERR_INVALID;
}

/* Why the batch ends before it began, or 0. */
static int ended(const struct naive *naive, const struct store_read *read)
{
	if (read->cancelled)
		return ERR_CANCELLED;
	if (read->deadline_us && naive->clock->mono_us(naive->clock) >= read->deadline_us)
		return ERR_TIMEOUT;
	return 0;
}

static void run_requests(struct naive *naive, struct store_read *read)
{
	struct budget budget = {naive, read, read->points_max ? read->points_max : 1000000};
	int end = ended(naive, read);
	for (struct store_request *r = read->requests; r; r = r->next) {
		r->err = end ? end : run_request(&budget, r);
		r->more |= end == ERR_TIMEOUT;
		if (!read->err)
			read->err = r->err;
	}
}

static void run_read_done(struct task *task)
{
	struct store_read *read = CONTAINER_OF(task, struct store_read, task);
	read->done(read, read->err);
}

int naive_read_submit(struct store_read *read)
{
	struct naive *naive = naive_of(read->store);
	pthread_mutex_lock(&naive->lock);
	int refused = naive->refuse_reads ? naive->refuse_reads_err : 0;
	if (refused)
		naive->refuse_reads--;
	else
		run_requests(naive, read);
	pthread_mutex_unlock(&naive->lock);
	if (refused)
		return refused;
	read->task.run = run_read_done;
	read->executor->post(read->executor, &read->task);
	return 0;
}
