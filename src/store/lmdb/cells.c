/* Cells: rows of columns of bytes.
 *
 * Key of DB_CELLS: table u8 | hash of the row key, 128 bits | column as encoded. Value: crc u32 |
 * flags u8 | stamp i64 | expires i64 | version u64 | payload, or (blob u64, length u64) where the
 * payload is long: then its bytes lie in DB_BLOBS under (blob, part). Of a deleted cell `expires`
 * is when it was deleted. DB_CELL_ROWS says which row key belongs to a hash, so that keys may be
 * longer than LMDB's. */
#include <stdatomic.h>

#include "base/cursor.h"
#include "base/hash.h"
#include "store/lmdb/engine.h"

enum {
	CELL_DELETED = 1,
	CELL_IN_BLOB = 2,
	CELL_HEADER_BYTES = RECORD_HEADER_BYTES + 1 + 8 + 8 + 8,
	INLINE_MAX_BYTES = 1900,
	/* Of log cells, which are read and removed once: a page of their own costs less than a
	 * second place. */
	LOG_INLINE_MAX_BYTES = PAGE_VALUE_MAX_BYTES - CELL_HEADER_BYTES,
	BLOB_PART_BYTES = PAGE_VALUE_MAX_BYTES - RECORD_HEADER_BYTES,
	SWEEP_STEPS = 2000,
	TOKEN_HEADER_BYTES = 8 + 16,
};

struct cell_key {
	size_t len;
	uint8_t bytes[CELL_KEY_MAX_BYTES];
};

/* A cell as stored. */
struct cell {
	unsigned flags;
	int64_t stamp_us, expires_ms;
	uint64_t version;
	struct slice inlined;
	uint64_t blob, blob_len;
};

static void row_key(enum table table, struct slice key, uint8_t to[CELL_ROW_KEY_BYTES])
{
	struct hash128 hash = hash128(key.data, key.len, 0);
	to[0] = (uint8_t)table;
	be64_put(to + 1, hash.high);
	be64_put(to + 9, hash.low);
}

static void make_key(enum table table, struct slice key, struct slice column, struct cell_key *out)
{
	ASSERT(column.len <= STORE_COLUMN_MAX_BYTES + 1);
	row_key(table, key, out->bytes);
	if (column.len)
		memcpy(out->bytes + CELL_ROW_KEY_BYTES, column.data, column.len);
	out->len = CELL_ROW_KEY_BYTES + column.len;
}

static struct slice key_slice(const struct cell_key *key)
{
	return (struct slice){(const char *)key->bytes, key->len};
}

int cells_add(struct store_write *write, const struct store_cell_write *cell)
{
	struct store_stage *stage = write->last_stage;
	struct cell_node *node = arena_alloc(&write->arena, sizeof(*node));
	if (!node)
		return ERR_LIMIT;
	*node = (struct cell_node){.cell = *cell};
	node->cell.key = arena_copy(&write->arena, cell->key);
	node->cell.column = arena_copy(&write->arena, cell->column);
	node->cell.to = arena_copy(&write->arena, cell->to);
	node->cell.value = arena_copy(&write->arena, cell->value);
	if (!node->cell.key.data || !node->cell.column.data || !node->cell.to.data ||
	    !node->cell.value.data)
		return ERR_LIMIT;
	if (stage->last_cell)
		stage->last_cell->next = node;
	else
		stage->first_cell = node;
	stage->last_cell = node;
	stage->grows =
		stage->grows || (cell->action != CELL_DELETE && cell->action != CELL_LOG_REMOVE);
	return 0;
}

static int cell_parse(struct slice key, struct slice value, struct cell *cell)
{
	struct slice payload;
	int err = record_open(key, value, &payload);
	if (err)
		return err;
	struct cursor c = cursor_of(payload.data, payload.len);
	*cell = (struct cell){.flags = cursor_u8(&c)};
	cell->stamp_us = (int64_t)cursor_u64(&c);
	cell->expires_ms = (int64_t)cursor_u64(&c);
	cell->version = cursor_u64(&c);
	if (cell->flags & CELL_IN_BLOB) {
		cell->blob = cursor_u64(&c);
		cell->blob_len = cursor_u64(&c);
	} else {
		cell->inlined.len = cursor_left(&c);
		cell->inlined.data = (const char *)cursor_take(&c, cell->inlined.len);
	}
	return c.bad || cell->blob_len > STORE_VALUE_MAX_BYTES ? ERR_DAMAGED : 0;
}

static bool cell_visible(const struct cell *cell, int64_t now_ms)
{
	return !(cell->flags & CELL_DELETED) &&
	       (cell->expires_ms == 0 || cell->expires_ms > now_ms);
}

static struct slice blob_key(uint8_t to[12], uint64_t blob, uint32_t part)
{
	be64_put(to, blob);
	be32_put(to + 8, part);
	return (struct slice){(const char *)to, 12};
}

static int blob_read(struct engine *engine, MDB_txn *txn, const struct cell *cell, char *to)
{
	uint8_t bytes[12];
	uint64_t at = 0;
	for (uint32_t part = 0; at < cell->blob_len; part++) {
		struct slice key = blob_key(bytes, cell->blob, part), value, payload;
		int err = env_get(txn, engine->env.dbi[DB_BLOBS], key, &value);
		if (!err)
			err = record_open(key, value, &payload);
		if (err)
			return err == ERR_NOT_FOUND ? ERR_DAMAGED : err;
		if (payload.len == 0 || payload.len > cell->blob_len - at)
			return ERR_DAMAGED;
		memcpy(to + at, payload.data, payload.len);
		at += payload.len;
	}
	return 0;
}

static int blob_write(struct engine *engine, MDB_txn *txn, uint64_t blob, struct slice value)
{
	uint8_t bytes[12], part_bytes[PAGE_VALUE_MAX_BYTES];
	for (uint32_t part = 0; value.len; part++) {
		size_t n = value.len < BLOB_PART_BYTES ? value.len : BLOB_PART_BYTES;
		struct slice key = blob_key(bytes, blob, part);
		memcpy(part_bytes + RECORD_HEADER_BYTES, value.data, n);
		record_seal(key, part_bytes, n + RECORD_HEADER_BYTES);
		int err =
			env_put(txn, engine->env.dbi[DB_BLOBS], key,
				(struct slice){(const char *)part_bytes, n + RECORD_HEADER_BYTES});
		if (err)
			return err;
		value.data += n;
		value.len -= n;
	}
	return 0;
}

static int blob_delete(struct engine *engine, MDB_txn *txn, const struct cell *cell)
{
	uint8_t bytes[12];
	if (!(cell->flags & CELL_IN_BLOB))
		return 0;
	uint64_t parts = (cell->blob_len + BLOB_PART_BYTES - 1) / BLOB_PART_BYTES;
	for (uint32_t part = 0; part < parts; part++) {
		int err = env_delete(txn, engine->env.dbi[DB_BLOBS],
				     blob_key(bytes, cell->blob, part));
		if (err)
			return err;
	}
	return 0;
}

/* The cell's value in the arena; NULL data: no room. */
static int cell_value(struct engine *engine, MDB_txn *txn, const struct cell *cell,
		      struct arena *arena, struct slice *value)
{
	if (!(cell->flags & CELL_IN_BLOB)) {
		*value = arena_copy(arena, cell->inlined);
		return 0;
	}
	char *bytes = arena_alloc(arena, cell->blob_len + 1);
	*value = (struct slice){bytes, bytes ? cell->blob_len : 0};
	return bytes ? blob_read(engine, txn, cell, bytes) : 0;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static int put_row(struct engine *engine, MDB_txn *txn, const struct store_cell_write *cell)
{
	uint8_t bytes[CELL_ROW_KEY_BYTES], value[PAGE_VALUE_MAX_BYTES];
	row_key(cell->table, cell->key, bytes);
	struct slice key = {(const char *)bytes, CELL_ROW_KEY_BYTES}, there;
	int err = env_get(txn, engine->env.dbi[DB_CELL_ROWS], key, &there);
	if (err != ERR_NOT_FOUND)
		return err;
	memcpy(value + RECORD_HEADER_BYTES, cell->key.data, cell->key.len);
	record_seal(key, value, RECORD_HEADER_BYTES + cell->key.len);
	return env_put(txn, engine->env.dbi[DB_CELL_ROWS], key,
		       (struct slice){(const char *)value, RECORD_HEADER_BYTES + cell->key.len});
}

static int put_cell(struct engine *engine, MDB_txn *txn, const struct store_cell_write *write,
		    const struct cell_key *key, struct cell *cell, struct slice value)
{
	uint8_t bytes[PAGE_VALUE_MAX_BYTES];
	size_t inline_max_bytes =
		write->action == CELL_LOG_PUT ? LOG_INLINE_MAX_BYTES : INLINE_MAX_BYTES;
	uint8_t *p = bytes + RECORD_HEADER_BYTES;
	int err = put_row(engine, txn, write);
	if (err)
		return err;
	if (value.len > inline_max_bytes) {
		cell->flags |= CELL_IN_BLOB;
		cell->blob = engine->next_version++;
		cell->blob_len = value.len;
		err = blob_write(engine, txn, cell->blob, value);
		if (err)
			return err;
	}
	*p++ = (uint8_t)cell->flags;
	memcpy(p, &cell->stamp_us, 8);
	memcpy(p + 8, &cell->expires_ms, 8);
	memcpy(p + 16, &cell->version, 8);
	p += 24;
	if (cell->flags & CELL_IN_BLOB) {
		memcpy(p, &cell->blob, 8);
		memcpy(p + 8, &cell->blob_len, 8);
		p += 16;
	} else if (value.len) {
		memcpy(p, value.data, value.len);
		p += value.len;
	}
	size_t len = (size_t)(p - bytes);
	record_seal(key_slice(key), bytes, len);
	return env_put(txn, engine->env.dbi[DB_CELLS], key_slice(key),
		       (struct slice){(const char *)bytes, len});
}

/* Byte order of a stored value and a given one, by parts where it is a blob. */
static int compare_values(struct engine *engine, MDB_txn *txn, const struct cell *stored,
			  struct slice value, int *order)
{
	if (!(stored->flags & CELL_IN_BLOB)) {
		*order = slice_compare(stored->inlined, value);
		return 0;
	}
	char *bytes = mem_alloc(stored->blob_len);
	int err = blob_read(engine, txn, stored, bytes);
	*order = slice_compare((struct slice){bytes, stored->blob_len}, value);
	mem_free(bytes);
	return err;
}

static int64_t expiry_rank(int64_t expires_ms)
{
	return expires_ms ? expires_ms : INT64_MAX;
}

/* Whether a stamped write wins over what is there: by stamp, then value, then expiry. */
static int stamped_wins(struct engine *engine, MDB_txn *txn, const struct cell *stored,
			const struct store_cell_write *write, bool *wins)
{
	*wins = write->stamp_us > stored->stamp_us;
	if (write->stamp_us != stored->stamp_us)
		return 0;
	bool was_deleted = stored->flags & CELL_DELETED, deletes = write->action == CELL_DELETE;
	*wins = was_deleted && !deletes;
	if (was_deleted || deletes)
		return 0;
	int order;
	int err = compare_values(engine, txn, stored, write->value, &order);
	*wins = order < 0 ||
		(order == 0 && expiry_rank(write->expires_ms) > expiry_rank(stored->expires_ms));
	return err;
}

static int apply_stamped(struct engine *engine, MDB_txn *txn, const struct store_cell_write *write,
			 const struct cell_key *key, const struct cell *stored)
{
	if (stored) {
		bool wins;
		int err = stamped_wins(engine, txn, stored, write, &wins);
		if (err || !wins)
			return err;
		err = blob_delete(engine, txn, stored);
		if (err)
			return err;
	}
	int64_t high = engine->stamp_us;
	while (write->stamp_us > high &&
	       !atomic_compare_exchange_weak(&engine->stamp_us, &high, write->stamp_us)) {
	}
	struct cell cell = {.stamp_us = write->stamp_us, .expires_ms = write->expires_ms};
	if (write->action == CELL_DELETE) {
		cell.flags = CELL_DELETED;
		cell.expires_ms = clock_wall_ms(engine->options.clock);
	}
	return put_cell(engine, txn, write, key, &cell, write->value);
}

static int drop_row_if_empty(struct engine *engine, MDB_txn *txn, MDB_cursor *cursor,
			     const uint8_t row[CELL_ROW_KEY_BYTES])
{
	struct slice key = {(const char *)row, CELL_ROW_KEY_BYTES}, value;
	int err = env_seek(cursor, &key, &value);
	if (err && err != ERR_NOT_FOUND)
		return err;
	if (!err && key.len >= CELL_ROW_KEY_BYTES && memcmp(key.data, row, CELL_ROW_KEY_BYTES) == 0)
		return 0;
	return env_delete(txn, engine->env.dbi[DB_CELL_ROWS],
			  (struct slice){(const char *)row, CELL_ROW_KEY_BYTES});
}

static int delete_conditional(struct engine *engine, MDB_txn *txn, const struct cell_key *key)
{
	MDB_cursor *cursor;
	int err = env_delete(txn, engine->env.dbi[DB_CELLS], key_slice(key));
	if (!err)
		err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_CELLS], &cursor));
	if (err)
		return err;
	err = drop_row_if_empty(engine, txn, cursor, key->bytes);
	mdb_cursor_close(cursor);
	return err;
}

static int apply_conditional(struct engine *engine, MDB_txn *txn, struct store_write *batch,
			     const struct store_cell_write *write, const struct cell_key *key,
			     const struct cell *stored)
{
	struct store_write_cond *outcome = write->outcome;
	int64_t now_ms = clock_wall_ms(engine->options.clock);
	bool there = stored && cell_visible(stored, now_ms);
	uint64_t version = there ? stored->version : 0;
	*outcome = (struct store_write_cond){.applied = version == write->version};
	if (!outcome->applied) {
		outcome->version = version;
		return there ? cell_value(engine, txn, stored, &batch->arena, &outcome->value) : 0;
	}
	int err = stored ? blob_delete(engine, txn, stored) : 0;
	if (err)
		return err;
	if (write->action == CELL_DELETE_IF)
		return delete_conditional(engine, txn, key);
	struct cell cell = {.version = engine->next_version++, .expires_ms = write->expires_ms};
	outcome->version = cell.version;
	outcome->value = write->value;
	return put_cell(engine, txn, write, key, &cell, write->value);
}

/* Inserts the element into the sorted list (u16 length, text); *grew false if it was there. */
static int set_insert(struct slice set, struct slice element, struct buf *out, bool *grew)
{
	struct cursor c = cursor_of(set.data, set.len);
	uint16_t len16 = (uint16_t)element.len;
	size_t count = 0;
	bool placed = false;
	*grew = true;
	while (cursor_left(&c)) {
		struct slice old;
		old.len = cursor_u16(&c);
		old.data = (const char *)cursor_take(&c, old.len);
		if (c.bad)
			return ERR_DAMAGED;
		int order = slice_compare(element, old);
		if (order == 0)
			*grew = false;
		if (order < 0 && !placed) {
			placed = true;
			buf_append(out, &len16, 2);
			buf_append(out, element.data, element.len);
		}
		uint16_t old16 = (uint16_t)old.len;
		buf_append(out, &old16, 2);
		buf_append(out, old.data, old.len);
		count++;
	}
	if (!placed) {
		buf_append(out, &len16, 2);
		buf_append(out, element.data, element.len);
	}
	return *grew && count >= STORE_SET_ELEMENTS_MAX ? ERR_LIMIT : 0;
}

static int apply_set(struct engine *engine, MDB_txn *txn, const struct store_cell_write *write,
		     const struct cell_key *key, const struct cell *stored)
{
	struct buf set;
	char *old = NULL;
	struct slice before = {NULL, 0};
	int err = 0;
	if (stored && stored->flags & CELL_IN_BLOB) {
		old = mem_alloc(stored->blob_len);
		err = blob_read(engine, txn, stored, old);
		before = (struct slice){old, stored->blob_len};
	} else if (stored) {
		before = stored->inlined;
	}
	buf_init(&set, (STORE_SET_ELEMENTS_MAX + 1) * (STORE_SET_ELEMENT_MAX_BYTES + 2));
	bool grew = false;
	if (!err)
		err = set_insert(before, write->value, &set, &grew);
	if (!err && grew && stored)
		err = blob_delete(engine, txn, stored);
	struct cell cell = {0};
	if (!err && grew)
		err = put_cell(engine, txn, write, key, &cell, buf_slice(&set));
	buf_release(&set);
	mem_free(old);
	return err;
}

static int apply_log_put(struct engine *engine, MDB_txn *txn, const struct store_cell_write *write,
			 const struct cell_key *key, const struct cell *stored)
{
	struct cell cell = {0};
	int err = stored ? blob_delete(engine, txn, stored) : 0;
	return err ? err : put_cell(engine, txn, write, key, &cell, write->value);
}

/* The first cell of the row at or behind `at`, if it lies before `to`: its key there, a copy, and
 * what it is. ERR_NOT_FOUND: there is none. */
static int first_to_remove(MDB_cursor *cursor, const struct store_cell_write *write,
			   struct cell_key *at, struct cell *cell)
{
	struct slice key = key_slice(at), value;
	int err = env_seek(cursor, &key, &value);
	if (err)
		return err;
	if (key.len < CELL_ROW_KEY_BYTES || key.len > sizeof(at->bytes) ||
	    memcmp(key.data, at->bytes, CELL_ROW_KEY_BYTES) != 0)
		return ERR_NOT_FOUND;
	struct slice column = {key.data + CELL_ROW_KEY_BYTES, key.len - CELL_ROW_KEY_BYTES};
	if (!write->to_end && slice_compare(column, write->to) >= 0)
		return ERR_NOT_FOUND;
	at->len = key.len;
	memcpy(at->bytes, key.data, key.len);
	return cell_parse(key_slice(at), value, cell);
}

/* Searches anew after each: what the cursor stood on has gone. */
static int apply_log_remove(struct engine *engine, MDB_txn *txn,
			    const struct store_cell_write *write)
{
	struct cell_key at;
	struct cell cell;
	MDB_cursor *cursor;
	bool removed = false;
	make_key(write->table, write->key, write->column, &at);
	int err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_CELLS], &cursor));
	if (err)
		return err;
	while (!(err = first_to_remove(cursor, write, &at, &cell))) {
		err = blob_delete(engine, txn, &cell);
		if (!err)
			err = env_error(mdb_cursor_del(cursor, 0));
		if (err)
			break;
		removed = true;
	}
	if (err == ERR_NOT_FOUND)
		err = removed ? drop_row_if_empty(engine, txn, cursor, at.bytes) : 0;
	mdb_cursor_close(cursor);
	return err;
}

int cells_apply(struct engine *engine, MDB_txn *txn, struct store_write *batch,
		const struct store_cell_write *write, bool *refused)
{
	struct cell_key key;
	struct slice value;
	struct cell cell;
	/* A copy: what is read moves when its page is written. */
	uint8_t copy[PAGE_VALUE_MAX_BYTES];
	if (write->action == CELL_LOG_REMOVE)
		return apply_log_remove(engine, txn, write);
	make_key(write->table, write->key, write->column, &key);
	int err = env_get(txn, engine->env.dbi[DB_CELLS], key_slice(&key), &value);
	bool found = !err;
	if (found && value.len > sizeof(copy))
		return ERR_DAMAGED;
	if (found) {
		memcpy(copy, value.data, value.len);
		err = cell_parse(key_slice(&key), (struct slice){(const char *)copy, value.len},
				 &cell);
	}
	if (err && err != ERR_NOT_FOUND)
		return err;
	switch (write->action) {
	case CELL_PUT:
	case CELL_DELETE:
		return apply_stamped(engine, txn, write, &key, found ? &cell : NULL);
	case CELL_PUT_IF:
	case CELL_DELETE_IF:
		return apply_conditional(engine, txn, batch, write, &key, found ? &cell : NULL);
	case CELL_LOG_PUT:
		return apply_log_put(engine, txn, write, &key, found ? &cell : NULL);
	case CELL_LOG_REMOVE:
		break; /* above */
	case CELL_ADD:
		err = apply_set(engine, txn, write, &key, found ? &cell : NULL);
		*refused = *refused || err == ERR_LIMIT;
		return err == ERR_LIMIT ? 0 : err;
	}
	return ERR_INVALID;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* The cell as the contract shows it; ERR_LIMIT when the arena is full. */
static int show(struct engine *engine, MDB_txn *txn, enum table table, struct slice column,
		const struct cell *cell, struct arena *arena, struct store_cell *out)
{
	struct slice copy = arena_copy(arena, column);
	*out = (struct store_cell){.expires_ms = cell->expires_ms};
	if (schema[table].cell_kind == CELL_STAMPED)
		out->stamp_us = cell->stamp_us;
	if (schema[table].cell_kind == CELL_CONDITIONAL)
		out->version = cell->version;
	int err = copy.data ? cell_value(engine, txn, cell, arena, &out->value) : ERR_LIMIT;
	if (!err && !out->value.data)
		err = ERR_LIMIT;
	if (!err)
		err = store_parts_decode(copy, schema[table].column_count, arena, &out->column);
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

int cells_get(struct engine *engine, MDB_txn *txn, struct store_read *read,
	      struct store_cell_get *get)
{
	struct buf row, column;
	struct cell_key key;
	struct slice value;
	struct cell cell;
	const struct table_def *def = &schema[get->table];
	get->found = false;
	buf_init(&row, STORE_KEY_MAX_BYTES);
	buf_init(&column, 4 * TAGS_TEXT_MAX_BYTES);
	int err = store_parts_encode(&get->key, def->key_count, &row);
	if (!err)
		err = store_parts_encode(&get->column, def->column_count, &column);
	if (!err && def->cell_kind == CELL_SERIES) {
		err = get_series_set(engine, txn, read, get, buf_slice(&column));
	} else if (!err) {
		make_key(get->table, buf_slice(&row), buf_slice(&column), &key);
		err = env_get(txn, engine->env.dbi[DB_CELLS], key_slice(&key), &value);
		if (!err)
			err = cell_parse(key_slice(&key), value, &cell);
		if (!err && cell_visible(&cell, read->now_ms)) {
			get->found = true;
			err = show(engine, txn, get->table, buf_slice(&column), &cell, &read->arena,
				   &get->cell);
		}
	}
	buf_release(&row);
	buf_release(&column);
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* One scan while it runs. Bounds are encoded columns. Token: cells
 * given so far u64 | hash of the last column given, 128 bits | that column, or what fits of it
 * (only columns of series_sets may be longer). */
struct scan {
	struct engine *engine;
	MDB_txn *txn;
	struct store_read *read;
	struct store_request *request;
	struct buf from, to, row;
	uint64_t given; /* over all slices */
	size_t cap;
	size_t *budget;
	bool stopped;
	bool open_end; /* `to` is the row's end */
};

static void put_token(struct store_token *token, uint64_t given, struct slice column)
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

static int scan_add(struct scan *scan, struct slice column, const struct cell *cell)
{
	struct store_cell_scan *out = &scan->request->cell_scan;
	if (*scan->budget == 0) {
		scan->stopped = true;
		return 0;
	}
	if (out->count == scan->cap) {
		size_t cap = scan->cap ? scan->cap * 2 : 64;
		struct store_cell *grown = arena_alloc(&scan->read->arena, cap * sizeof(*grown));
		if (!grown)
			return ERR_LIMIT;
		if (out->count)
			memcpy(grown, out->cells, out->count * sizeof(*grown));
		out->cells = grown;
		scan->cap = cap;
	}
	int err = show(scan->engine, scan->txn, out->table, column, cell, &scan->read->arena,
		       &out->cells[out->count]);
	if (err)
		return err;
	out->count++;
	scan->given++;
	--*scan->budget;
	put_token(&scan->request->token, scan->given, column);
	return 0;
}

static bool scan_done(const struct scan *scan)
{
	const struct store_cell_scan *out = &scan->request->cell_scan;
	return scan->stopped || (out->limit && scan->given >= out->limit);
}

/* Steps over the stored cells of the row between the bounds. */
static int scan_stored(struct scan *scan)
{
	const struct store_cell_scan *in = &scan->request->cell_scan;
	struct cell_key bound;
	uint8_t row[CELL_ROW_KEY_BYTES];
	MDB_cursor *cursor;
	MDB_val k, v;
	int err = env_error(mdb_cursor_open(scan->txn, scan->engine->env.dbi[DB_CELLS], &cursor));
	if (err)
		return err;
	row_key(in->table, buf_slice(&scan->row), row);
	struct slice from = buf_slice(&scan->from), to = buf_slice(&scan->to);
	bool open_end = scan->open_end;
	make_key(in->table, buf_slice(&scan->row), in->backward ? to : from, &bound);
	if (in->backward && open_end) { /* the row after this one */
		size_t i = CELL_ROW_KEY_BYTES;
		while (i-- > 0 && ++bound.bytes[i] == 0) {
		}
	}
	k = val_of(key_slice(&bound));
	int got = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
	if (in->backward)
		got = mdb_cursor_get(cursor, &k, &v, got ? MDB_LAST : MDB_PREV);
	for (; !got && !scan_done(scan);
	     got = mdb_cursor_get(cursor, &k, &v, in->backward ? MDB_PREV : MDB_NEXT)) {
		struct slice key = slice_of_val(k);
		if (key.len < CELL_ROW_KEY_BYTES || memcmp(key.data, row, CELL_ROW_KEY_BYTES) != 0)
			break;
		struct slice column = {key.data + CELL_ROW_KEY_BYTES, key.len - CELL_ROW_KEY_BYTES};
		if (slice_compare(column, from) < 0 ||
		    (!open_end && slice_compare(column, to) >= 0))
			break;
		struct cell cell;
		err = cell_parse(key, slice_of_val(v), &cell);
		if (!err && cell_visible(&cell, scan->read->now_ms))
			err = scan_add(scan, column, &cell);
		if (err)
			break;
	}
	mdb_cursor_close(cursor);
	if (!err && got && got != MDB_NOTFOUND)
		err = env_error(got);
	return err;
}

/* Where a list of all columns goes on: behind the last one given or, if that has gone, at the first
 * (backward: last) that could follow it. Counted in the direction of the scan. */
static size_t series_sets_resume(const struct scan *scan, const struct series_set_cell *cells,
				 size_t count)
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

static int scan_series_sets(struct scan *scan)
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

/* Narrows the bounds to what lies behind the last column given. */
static int scan_resume(struct scan *scan, bool by_column)
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
	struct scan scan = {.engine = engine,
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
	if (out->count == *cap) {
		size_t more = *cap ? *cap * 2 : 64;
		struct store_row *grown = arena_alloc(arena, more * sizeof(*grown));
		if (!grown)
			return ERR_LIMIT;
		if (out->count)
			memcpy(grown, out->rows, out->count * sizeof(*grown));
		out->rows = grown;
		*cap = more;
	}
	struct slice copy = arena_copy(arena, key);
	struct store_row row = {0};
	int err = copy.data
			  ? store_parts_decode(copy, schema[out->table].key_count, arena, &row.key)
			  : ERR_LIMIT;
	if (!err)
		out->rows[out->count++] = row;
	return err;
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
		len = request->token.len + 1; /* just behind it */
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
		err = record_open(key, value, &payload);
		if (!err)
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

/* ---- Sweeping -------------------------------------------------------------------------------- */

/* When nothing depends on the cell any more: long deleted, or long expired. */
static bool sweepable(const struct cell *cell, enum table table, int64_t now_ms)
{
	int64_t grace_ms = STORE_QUERY_DEADLINE_MAX_MS;
	if (schema[table].cell_kind == CELL_STAMPED)
		grace_ms = STORE_TOMBSTONE_MS;
	return cell->expires_ms && cell->expires_ms < now_ms - grace_ms;
}

static int drop_cell(struct engine *engine, MDB_txn *txn, MDB_cursor *cursor,
		     const struct cell *cell, const uint8_t *key)
{
	int err = blob_delete(engine, txn, cell);
	if (!err)
		err = env_error(mdb_cursor_del(cursor, 0));
	return err ? err : drop_row_if_empty(engine, txn, cursor, key);
}

int cells_sweep(struct engine *engine, MDB_txn *txn, uint8_t at[CELL_KEY_MAX_BYTES], size_t *at_len)
{
	MDB_cursor *cursor;
	int64_t now_ms = clock_wall_ms(engine->options.clock);
	struct slice key = {(const char *)at, *at_len}, value;
	if (!key.len)
		key = SLICE("\0");
	int err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_CELLS], &cursor));
	if (err)
		return err;
	err = env_seek(cursor, &key, &value);
	for (int step = 0; !err && step < SWEEP_STEPS; step++) {
		struct cell cell;
		/* A longer key, or a cell that cannot be read, is for verify to name. */
		bool whole = key.len <= CELL_KEY_MAX_BYTES && !cell_parse(key, value, &cell);
		if (!whole || !sweepable(&cell, (enum table)key.data[0], now_ms)) {
			err = env_next(cursor, &key, &value);
			continue;
		}
		*at_len = key.len;
		memcpy(at, key.data, key.len);
		err = drop_cell(engine, txn, cursor, &cell, at);
		key = (struct slice){(const char *)at, *at_len};
		if (!err)
			err = env_seek(cursor, &key, &value);
	}
	if (!err) {
		*at_len = key.len < CELL_KEY_MAX_BYTES ? key.len : CELL_KEY_MAX_BYTES;
		memcpy(at, key.data, *at_len);
	}
	mdb_cursor_close(cursor);
	if (err == ERR_NOT_FOUND)
		*at_len = 0;
	return err == ERR_NOT_FOUND ? 0 : err;
}
