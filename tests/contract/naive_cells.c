/* Cells of the naive engine: one, or those of a row. */
#include "base/hash.h"
#include "naive_read.h"

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

int naive_cell_get(struct budget *budget, struct store_request *request)
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

int naive_cell_scan(struct budget *budget, struct store_request *request)
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
