/* Cells as the contract shows them: one, a row of them, the rows of a table. */
#include "base/grow.h"
#include "base/hash.h"
#include "store/lmdb/cell.h"

enum {
	TOKEN_HEADER_BYTES = 8 + 16,
	/* Of a row that was deleted and is not swept yet: it is given if the first of them do not
	 * tell whether any is left. */
	ENUMERATE_CELLS_MAX = 1000,
};

/* ERR_DAMAGED also for a number that has not eight bytes: nobody above looks at how many there are.
 */
static int cells_read_parts(struct slice bytes, const struct part_def *defs, size_t count,
			    struct arena *arena, struct store_parts *parts)
{
	int err = store_parts_decode(bytes, count, arena, parts);
	for (size_t i = 0; i < count && !err; i++) {
		if (defs[i].type == PART_U64 && parts->part[i].len != sizeof(uint64_t))
			err = ERR_DAMAGED;
	}
	return err;
}

/* The cell as the contract shows it; ERR_LIMIT when the arena is full. */
static int cells_read_show(struct engine *engine, MDB_txn *txn, enum table table,
			   struct slice column, const struct cell *cell, struct arena *arena,
			   struct store_cell *out)
{
	struct slice copy = arena_copy(arena, column);
	*out = (struct store_cell){.expires_ms = cell->expires_ms};
	if (schema[table].cell_kind == CELL_STAMPED)
		out->stamp_us = cell->stamp_us;
	if (schema[table].cell_kind == CELL_CONDITIONAL)
		out->version = cell->version;
	int err = copy.data ? cell_value_copy(engine, txn, cell, arena, &out->value) : ERR_LIMIT;
	if (!err && !out->value.data)
		err = ERR_LIMIT;
	if (!err)
		err = cells_read_parts(copy, schema[table].column, schema[table].column_count,
				       arena, &out->column);
	return err;
}

/* The columns of series_sets are not stored; they follow from the registry. */
static int get_series_set(struct engine *engine, MDB_txn *txn, struct store_read *read,
			  struct store_cell_get *get, struct slice column)
{
	struct series_set_cell *cells;
	size_t count;
	int err = registry_series_sets(&engine->registry, txn, get->key.part[0], get->key.part[1],
				       &read->arena, &cells, &count);
	for (size_t i = 0; i < count && !err; i++) {
		if (slice_equal(cells[i].column, column)) {
			get->found = true;
			get->cell = (struct store_cell){.column = get->column, .value = SLICE("")};
		}
	}
	return err;
}

/* A stored cell, unless it has expired or gone with its row. */
static int get_stored(struct engine *engine, MDB_txn *txn, struct store_read *read,
		      struct store_cell_get *get, struct slice row, struct slice column)
{
	struct cell_key key;
	struct slice value;
	struct cell cell;
	int64_t gone_us;
	cell_key_make(get->table, row, column, &key);
	int err = env_get(txn, engine->env.dbi[DB_CELLS], cell_key_slice(&key), &value);
	if (!err)
		err = cell_parse(cell_key_slice(&key), value, &cell);
	if (err || !cell_visible(&cell, read->now_ms))
		return err;
	err = cell_row_gone_us(engine, txn, get->table, row, &gone_us);
	if (err || cell.stamp_us <= gone_us)
		return err == ERR_NOT_FOUND ? ERR_DAMAGED : err;
	get->found = true;
	return cells_read_show(engine, txn, get->table, column, &cell, &read->arena, &get->cell);
}

int cells_get(struct engine *engine, MDB_txn *txn, struct store_read *read,
	      struct store_cell_get *get)
{
	struct buf row, column;
	const struct table_def *def = &schema[get->table];
	get->found = false;
	buf_init(&row, STORE_KEY_MAX_BYTES);
	buf_init(&column, 4 * TAGS_TEXT_MAX_BYTES);
	int err = store_parts_encode(&get->key, def->key_count, &row);
	if (!err)
		err = store_parts_encode(&get->column, def->column_count, &column);
	if (!err && def->cell_kind == CELL_SERIES)
		err = get_series_set(engine, txn, read, get, buf_slice(&column));
	else if (!err)
		err = get_stored(engine, txn, read, get, buf_slice(&row), buf_slice(&column));
	buf_release(&row);
	buf_release(&column);
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* One scan while it runs. Bounds are encoded columns. Token: cells
 * given so far u64 | hash of the last column given, 128 bits | that column, or what fits of it
 * (only columns of series_sets may be longer). */
struct cells_read_scan {
	struct engine *engine;
	MDB_txn *txn;
	struct store_read *read;
	struct store_request *request;
	struct buf from, to, row;
	uint64_t given; /* over all slices */
	size_t cap;
	size_t *budget;
	bool stopped;
	bool open_end;   /* `to` is the row's end */
	bool has_row;    /* else a cell that is met is damage */
	int64_t gone_us; /* cells with this stamp, or a lower one, went with their row */
};

static void cells_read_put_token(struct store_token *token, uint64_t given, struct slice column)
{
	struct hash128 hash = hash128(column.data, column.len, 0);
	size_t prefix = STORE_TOKEN_MAX_BYTES - TOKEN_HEADER_BYTES;
	if (prefix > column.len)
		prefix = column.len;
	memcpy(token->bytes, &given, 8);
	memcpy(token->bytes + 8, &hash, 16);
	memcpy(token->bytes + TOKEN_HEADER_BYTES, column.data, prefix);
	token->len = TOKEN_HEADER_BYTES + prefix;
}

static int scan_add(struct cells_read_scan *scan, struct slice column, const struct cell *cell)
{
	struct store_cell_scan *out = &scan->request->cell_scan;
	if (*scan->budget == 0) {
		scan->stopped = true;
		return 0;
	}
	if (!GROW_IN_ARENA(&scan->read->arena, out->cells, scan->cap, out->count + 1))
		return ERR_LIMIT;
	int err = cells_read_show(scan->engine, scan->txn, out->table, column, cell,
				  &scan->read->arena, &out->cells[out->count]);
	if (err)
		return err;
	out->count++;
	scan->given++;
	--*scan->budget;
	cells_read_put_token(&scan->request->token, scan->given, column);
	return 0;
}

static bool scan_done(const struct cells_read_scan *scan)
{
	const struct store_cell_scan *out = &scan->request->cell_scan;
	return scan->stopped || (out->limit && scan->given >= out->limit);
}

/* Steps over the stored cells of the row between the bounds. */
static int scan_stored(struct cells_read_scan *scan)
{
	const struct store_cell_scan *in = &scan->request->cell_scan;
	struct cell_key bound;
	uint8_t row[CELL_ROW_KEY_BYTES];
	MDB_cursor *cursor;
	MDB_val k, v;
	int err = cell_row_gone_us(scan->engine, scan->txn, in->table, buf_slice(&scan->row),
				   &scan->gone_us);
	scan->has_row = !err;
	if (!err || err == ERR_NOT_FOUND)
		err = env_error(
			mdb_cursor_open(scan->txn, scan->engine->env.dbi[DB_CELLS], &cursor));
	if (err)
		return err;
	cell_row_key(in->table, buf_slice(&scan->row), row);
	struct slice from = buf_slice(&scan->from), to = buf_slice(&scan->to);
	bool open_end = scan->open_end;
	cell_key_make(in->table, buf_slice(&scan->row), in->backward ? to : from, &bound);
	if (in->backward && open_end) { /* the row after this one */
		size_t i = CELL_ROW_KEY_BYTES;
		while (i-- > 0 && ++bound.bytes[i] == 0) {
		}
	}
	k = val_of(cell_key_slice(&bound));
	int got = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
	if (in->backward)
		got = mdb_cursor_get(cursor, &k, &v, got ? MDB_LAST : MDB_PREV);
	for (; !got && !scan_done(scan);
	     got = mdb_cursor_get(cursor, &k, &v, in->backward ? MDB_PREV : MDB_NEXT)) {
		struct slice key = slice_of_val(k);
		if (!cell_is_of_row(key, row))
			break;
		struct slice column = {key.data + CELL_ROW_KEY_BYTES, key.len - CELL_ROW_KEY_BYTES};
		if (slice_compare(column, from) < 0 ||
		    (!open_end && slice_compare(column, to) >= 0))
			break;
		struct cell cell;
		err = scan->has_row ? cell_parse(key, slice_of_val(v), &cell) : ERR_DAMAGED;
		if (!err && cell_visible(&cell, scan->read->now_ms) &&
		    cell.stamp_us > scan->gone_us)
			err = scan_add(scan, column, &cell);
		if (err)
			break;
	}
	mdb_cursor_close(cursor);
	if (!err && got && got != MDB_NOTFOUND)
		err = env_error(got);
	return err;
}

/* Where a list of all columns goes on: after the last one given or, if that has gone, at the first
 * (backward: last) that could follow it. Counted in the direction of the scan. */
static size_t series_sets_resume(const struct cells_read_scan *scan,
				 const struct series_set_cell *cells, size_t count)
{
	const struct store_token *token = &scan->request->token;
	bool backward = scan->request->cell_scan.backward;
	if (token->len == 0)
		return 0;
	struct slice prefix = {(const char *)token->bytes + TOKEN_HEADER_BYTES,
			       token->len - TOKEN_HEADER_BYTES};
	size_t follows = count;
	for (size_t n = 0; n < count; n++) {
		struct slice column = cells[backward ? count - 1 - n : n].column;
		struct hash128 hash = hash128(column.data, column.len, 0);
		if (memcmp(&hash, token->bytes + 8, 16) == 0)
			return n + 1;
		if (column.len > prefix.len)
			column.len = prefix.len;
		int order = slice_compare(column, prefix);
		if (follows == count && (backward ? order <= 0 : order >= 0))
			follows = n;
	}
	return follows;
}

static int scan_series_sets(struct cells_read_scan *scan)
{
	const struct store_cell_scan *in = &scan->request->cell_scan;
	struct series_set_cell *cells;
	size_t count;
	int err = registry_series_sets(&scan->engine->registry, scan->txn, in->key.part[0],
				       in->key.part[1], &scan->read->arena, &cells, &count);
	if (err)
		return err;
	struct slice from = buf_slice(&scan->from), to = buf_slice(&scan->to);
	struct cell cell = {.inlined = SLICE("")};
	size_t n = series_sets_resume(scan, cells, count);
	for (; n < count && !err && !scan_done(scan); n++) {
		struct slice column = cells[in->backward ? count - 1 - n : n].column;
		if (slice_compare(column, from) >= 0 && (!to.len || slice_compare(column, to) < 0))
			err = scan_add(scan, column, &cell);
	}
	return err;
}

/* Narrows the bounds to what lies after the last column given. */
static int scan_resume(struct cells_read_scan *scan, bool by_column)
{
	struct store_token *token = &scan->request->token;
	if (token->len == 0)
		return 0;
	if (token->len < TOKEN_HEADER_BYTES)
		return ERR_INVALID;
	memcpy(&scan->given, token->bytes, 8);
	if (!by_column)
		return 0;
	bool backward = scan->request->cell_scan.backward;
	struct buf *bound = backward ? &scan->to : &scan->from;
	if (backward)
		scan->open_end = false;
	buf_clear(bound);
	int err = buf_append(bound, token->bytes + TOKEN_HEADER_BYTES,
			     token->len - TOKEN_HEADER_BYTES);
	/* The column after it in byte order. */
	if (!err && !backward)
		err = buf_append_char(bound, 0);
	return err;
}

int cells_scan(struct engine *engine, MDB_txn *txn, struct store_read *read,
	       struct store_request *request, size_t *budget)
{
	struct store_cell_scan *in = &request->cell_scan;
	const struct table_def *def = &schema[in->table];
	struct cells_read_scan scan = {.engine = engine,
				       .txn = txn,
				       .read = read,
				       .request = request,
				       .open_end = !in->to.part[0].data,
				       .budget = budget};
	in->cells = NULL;
	in->count = 0;
	request->more = false;
	buf_init(&scan.from, 4 * TAGS_TEXT_MAX_BYTES);
	buf_init(&scan.to, 4 * TAGS_TEXT_MAX_BYTES);
	buf_init(&scan.row, STORE_KEY_MAX_BYTES);
	int err = store_parts_encode(&in->key, def->key_count, &scan.row);
	if (!err)
		err = store_parts_encode(&in->from, def->column_count, &scan.from);
	if (!err)
		err = store_parts_encode(&in->to, def->column_count, &scan.to);
	if (!err)
		err = scan_resume(&scan, def->cell_kind != CELL_SERIES);
	if (!err)
		err = def->cell_kind == CELL_SERIES ? scan_series_sets(&scan) : scan_stored(&scan);
	if (err == ERR_LIMIT && in->count) {
		scan.stopped = true;
		err = 0;
	}
	request->more = !err && scan.stopped;
	buf_release(&scan.from);
	buf_release(&scan.to);
	buf_release(&scan.row);
	return err;
}

static int enumerate_add(struct store_request *request, struct arena *arena, struct slice key,
			 size_t *cap)
{
	struct store_enumerate *out = &request->enumerate;
	if (!GROW_IN_ARENA(arena, out->rows, *cap, out->count + 1))
		return ERR_LIMIT;
	struct slice copy = arena_copy(arena, key);
	struct store_row row = {0};
	const struct table_def *def = &schema[out->table];
	int err = copy.data ? cells_read_parts(copy, def->key, def->key_count, arena, &row.key)
			    : ERR_LIMIT;
	if (!err)
		out->rows[out->count++] = row;
	return err;
}

/* Whether a cell of a row that was deleted may be there all the same. */
static int enumerate_has_cells(struct engine *engine, MDB_txn *txn, const uint8_t *row,
			       int64_t gone_us, int64_t now_ms, bool *has)
{
	struct slice key = {(const char *)row, CELL_ROW_KEY_BYTES}, value;
	MDB_cursor *cursor;
	*has = false;
	int err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_CELLS], &cursor));
	if (err)
		return err;
	err = env_seek(cursor, &key, &value);
	for (int n = 0; !err && !*has && cell_is_of_row(key, row); n++) {
		struct cell cell;
		*has = n == ENUMERATE_CELLS_MAX || cell_parse(key, value, &cell) ||
		       (cell_visible(&cell, now_ms) && cell.stamp_us > gone_us);
		err = env_next(cursor, &key, &value);
	}
	mdb_cursor_close(cursor);
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* The key of the row; *given false: it was deleted. It counts for the budget all the same. */
static int enumerate_row(struct engine *engine, MDB_txn *txn, struct store_read *read,
			 enum table table, struct slice key, struct slice value,
			 struct slice *row_key, bool *given)
{
	struct cell_row row = {0};
	*given = true;
	if (!(engine->deleted_rows >> table & 1))
		return record_open(key, value, row_key);
	int err = cell_row_parse(key, value, &row);
	*row_key = row.key;
	if (err || !row.is_deleted)
		return err;
	return enumerate_has_cells(engine, txn, (const uint8_t *)key.data, row.stamp_us,
				   read->now_ms, given);
}

/* Token: the hash of the last row given. */
int cells_enumerate(struct engine *engine, MDB_txn *txn, struct store_read *read,
		    struct store_request *request, size_t *budget)
{
	struct store_enumerate *out = &request->enumerate;
	uint8_t bytes[CELL_ROW_KEY_BYTES + 1] = {(uint8_t)out->table};
	size_t len = 1, cap = 0;
	MDB_cursor *cursor;
	if (request->token.len > CELL_ROW_KEY_BYTES)
		return ERR_INVALID;
	if (request->token.len) {
		memcpy(bytes, request->token.bytes, request->token.len);
		len = request->token.len + 1; /* just after it */
	}
	int err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_CELL_ROWS], &cursor));
	if (err)
		return err;
	struct slice key = {(const char *)bytes, len}, value, payload;
	out->rows = NULL;
	out->count = 0;
	request->more = false;
	err = env_seek(cursor, &key, &value);
	while (!err && key.len == CELL_ROW_KEY_BYTES &&
	       (uint8_t)key.data[0] == (uint8_t)out->table) {
		if (*budget == 0 || (out->limit && out->count >= out->limit)) {
			request->more = true;
			break;
		}
		bool given;
		err = enumerate_row(engine, txn, read, out->table, key, value, &payload, &given);
		if (!err && given)
			err = enumerate_add(request, &read->arena, payload, &cap);
		if (err == ERR_LIMIT && out->count) {
			request->more = true;
			err = 0;
			break;
		}
		if (err)
			break;
		--*budget;
		request->token.len = CELL_ROW_KEY_BYTES;
		memcpy(request->token.bytes, key.data, CELL_ROW_KEY_BYTES);
		err = env_next(cursor, &key, &value);
	}
	mdb_cursor_close(cursor);
	return err == ERR_NOT_FOUND ? 0 : err;
}
