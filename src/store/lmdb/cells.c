/* Cells: rows of columns of bytes. Here is what changes them, in the writer's transaction; what is
 * stored of one is cell.h. */
#include <stdatomic.h>

#include "base/cursor.h"
#include "store/lmdb/sweep_index.h"

enum {
	INLINE_MAX_BYTES = 1900,
	/* For log cells, which are read and removed once: a page of their own costs less than a
	 * second place. */
	LOG_INLINE_MAX_BYTES = PAGE_VALUE_MAX_BYTES - CELL_HEADER_MIN_BYTES,
};

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
		stage->grows || (cell->action != CELL_DELETE && cell->action != CELL_ROW_DELETE &&
				 cell->action != CELL_LOG_REMOVE);
	return 0;
}

/* Makes the row unless it is there; *gone_us: up to which stamp it was deleted, else INT64_MIN. */
static int cells_put_row(struct engine *engine, MDB_txn *txn, const struct store_cell_write *cell,
			 int64_t *gone_us)
{
	uint8_t bytes[CELL_ROW_KEY_BYTES];
	struct slice key = {(const char *)bytes, CELL_ROW_KEY_BYTES}, there;
	struct cell_row row = {.key = cell->key};
	*gone_us = INT64_MIN;
	cell_row_key(cell->table, cell->key, bytes);
	int err = env_get(txn, engine->env.dbi[DB_CELL_ROWS], key, &there);
	if (err == ERR_NOT_FOUND)
		return cell_row_put(txn, engine->env.dbi[DB_CELL_ROWS], bytes, &row);
	/* A value as long as the key alone, as nearly all are, is not looked at. */
	if (err || there.len == RECORD_HEADER_BYTES + cell->key.len)
		return err;
	err = cell_row_parse(key, there, &row);
	if (!err && row.is_deleted)
		*gone_us = row.stamp_us;
	return err;
}

/* When it may be swept; NULL for no cell. */
static int cells_index(struct engine *engine, MDB_txn *txn, const struct cell_key *key,
		       const struct cell *before, const struct cell *after)
{
	enum table table = (enum table)key->bytes[0];
	return sweep_index_move_cell(&engine->env, txn, cell_key_slice(key),
				     before ? sweep_cell_minute(table, before) : SWEEP_NEVER,
				     after ? sweep_cell_minute(table, after) : SWEEP_NEVER);
}

/* Into a row that is there, in the place of the one that is stored, or NULL. */
static int cells_put_into(struct engine *engine, MDB_txn *txn, const struct store_cell_write *write,
			  const struct cell_key *key, const struct cell *stored, struct cell *cell,
			  struct slice value)
{
	uint8_t bytes[PAGE_VALUE_MAX_BYTES];
	size_t inline_max_bytes =
		write->action == CELL_LOG_PUT ? LOG_INLINE_MAX_BYTES : INLINE_MAX_BYTES;
	cell->inlined = value;
	if (value.len > inline_max_bytes) {
		cell->flags |= CELL_IN_BLOB;
		cell->blob = engine->next_version++;
		cell->blob_len = value.len;
		int err = cell_blob_write(engine, txn, cell->blob, value);
		if (err)
			return err;
	}
	size_t len = cell_encode(cell_key_slice(key), cell, bytes);
	int err = env_put(txn, engine->env.dbi[DB_CELLS], cell_key_slice(key),
			  (struct slice){(const char *)bytes, len});
	return err ? err : cells_index(engine, txn, key, stored, cell);
}

static int cells_put(struct engine *engine, MDB_txn *txn, const struct store_cell_write *write,
		     const struct cell_key *key, const struct cell *stored, struct cell *cell,
		     struct slice value)
{
	int64_t gone_us;
	int err = cells_put_row(engine, txn, write, &gone_us);
	return err ? err : cells_put_into(engine, txn, write, key, stored, cell, value);
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
	int err = cell_blob_read(engine, txn, stored, bytes);
	*order = slice_compare((struct slice){bytes, stored->blob_len}, value);
	mem_free(bytes);
	return err;
}

/* Whether a stamped write wins over what is there: by stamp; of equal stamps as store.h says. */
static int stamped_wins(struct engine *engine, MDB_txn *txn, const struct cell *stored,
			const struct store_cell_write *write, bool *wins)
{
	*wins = write->stamp_us > stored->stamp_us;
	if (write->stamp_us != stored->stamp_us)
		return 0;
	bool was_deleted = stored->flags & CELL_DELETED, deletes = write->action == CELL_DELETE;
	*wins = deletes && !was_deleted;
	if (was_deleted || deletes)
		return 0;
	*wins = write->expires_ms > stored->expires_ms;
	if (write->expires_ms != stored->expires_ms)
		return 0;
	int order;
	int err = compare_values(engine, txn, stored, write->value, &order);
	*wins = order < 0;
	return err;
}

/* By a clock that was set back it would be swept as soon as that is right again, and lower stamps
 * would win then. */
static int64_t deleted_at_ms(struct engine *engine)
{
	struct clock_judgement now;
	clock_judge(engine->options.clock, &now);
	return floor_div(now.sure_us > now.wall_us ? now.sure_us : now.wall_us, 1000);
}

/* Stamps that are taken from now on are above it. */
static void cells_see_stamp(struct engine *engine, int64_t stamp_us)
{
	int64_t high = engine->stamp_us;
	while (stamp_us > high &&
	       !atomic_compare_exchange_weak(&engine->stamp_us, &high, stamp_us)) {
	}
}

static int apply_stamped(struct engine *engine, MDB_txn *txn, const struct store_cell_write *write,
			 const struct cell_key *key, const struct cell *stored)
{
	int64_t gone_us;
	bool wins = true;
	int err = stored ? stamped_wins(engine, txn, stored, write, &wins) : 0;
	if (err || !wins)
		return err;
	err = cells_put_row(engine, txn, write, &gone_us);
	if (err || write->stamp_us <= gone_us)
		return err;
	err = stored ? cell_blob_delete(engine, txn, stored) : 0;
	if (err)
		return err;
	cells_see_stamp(engine, write->stamp_us);
	struct cell cell = {.stamp_us = write->stamp_us, .expires_ms = write->expires_ms};
	if (write->action == CELL_DELETE) {
		cell.flags = CELL_DELETED;
		cell.expires_ms = deleted_at_ms(engine);
	}
	return cells_put_into(engine, txn, write, key, stored, &cell, write->value);
}

/* Its cells stay where they are, unseen, for the sweep to remove (cells_sweep.c). */
static int apply_row_delete(struct engine *engine, MDB_txn *txn,
			    const struct store_cell_write *write)
{
	uint8_t bytes[CELL_ROW_KEY_BYTES];
	struct slice key = {(const char *)bytes, CELL_ROW_KEY_BYTES}, value;
	struct cell_row row = {0};
	cell_row_key(write->table, write->key, bytes);
	int err = env_get(txn, engine->env.dbi[DB_CELL_ROWS], key, &value);
	if (!err)
		err = cell_row_parse(key, value, &row);
	if (err && err != ERR_NOT_FOUND)
		return err;
	if (row.is_deleted && row.stamp_us >= write->stamp_us)
		return 0;
	err = row.is_deleted
		      ? sweep_index_delete_row(&engine->env, txn, bytes, sweep_row_minute(&row))
		      : 0;
	if (err)
		return err;
	cells_see_stamp(engine, write->stamp_us);
	row = (struct cell_row){write->key, true, write->stamp_us, deleted_at_ms(engine)};
	err = cell_row_put(txn, engine->env.dbi[DB_CELL_ROWS], bytes, &row);
	if (!err)
		err = sweep_index_put_row(&engine->env, txn, bytes, SWEEP_NOW);
	if (!err)
		err = sweep_index_put_row(&engine->env, txn, bytes, sweep_row_minute(&row));
	/* Readers who can see the row look for it from now on. */
	engine->deleted_rows |= UINT64_C(1) << write->table;
	engine->sweep = (struct sweep_pass){.is_running = true};
	return err;
}

static int delete_conditional(struct engine *engine, MDB_txn *txn, const struct cell_key *key,
			      const struct cell *stored)
{
	MDB_cursor *cursor;
	int err = env_delete(txn, engine->env.dbi[DB_CELLS], cell_key_slice(key));
	if (!err)
		err = cells_index(engine, txn, key, stored, NULL);
	if (!err)
		err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_CELLS], &cursor));
	if (err)
		return err;
	err = cell_row_drop_if_empty(engine, txn, cursor, key->bytes);
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
		return there ? cell_value_copy(engine, txn, stored, &batch->arena, &outcome->value)
			     : 0;
	}
	int err = stored ? cell_blob_delete(engine, txn, stored) : 0;
	if (err)
		return err;
	if (write->action == CELL_DELETE_IF)
		return delete_conditional(engine, txn, key, stored);
	struct cell cell = {.version = engine->next_version++, .expires_ms = write->expires_ms};
	outcome->version = cell.version;
	outcome->value = write->value;
	return cells_put(engine, txn, write, key, stored, &cell, write->value);
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
		err = cell_blob_read(engine, txn, stored, old);
		before = (struct slice){old, stored->blob_len};
	} else if (stored) {
		before = stored->inlined;
	}
	buf_init(&set, (STORE_SET_ELEMENTS_MAX + 1) * (STORE_SET_ELEMENT_MAX_BYTES + 2));
	bool grew = false;
	if (!err)
		err = set_insert(before, write->value, &set, &grew);
	if (!err && grew && stored)
		err = cell_blob_delete(engine, txn, stored);
	struct cell cell = {0};
	if (!err && grew)
		err = cells_put(engine, txn, write, key, stored, &cell, buf_slice(&set));
	buf_release(&set);
	mem_free(old);
	return err;
}

static int apply_log_put(struct engine *engine, MDB_txn *txn, const struct store_cell_write *write,
			 const struct cell_key *key, const struct cell *stored)
{
	struct cell cell = {0};
	int err = stored ? cell_blob_delete(engine, txn, stored) : 0;
	return err ? err : cells_put(engine, txn, write, key, stored, &cell, write->value);
}

/* The first cell of the row at or after `at`, if it lies before `to`: its key there, a copy, and
 * what it is. ERR_NOT_FOUND: there is none. */
static int first_to_remove(MDB_cursor *cursor, const struct store_cell_write *write,
			   struct cell_key *at, struct cell *cell)
{
	struct slice key = cell_key_slice(at), value;
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
	return cell_parse(cell_key_slice(at), value, cell);
}

/* Searches again after each: what the cursor stood on has gone. It stops only before a cell that is
 * left, so whoever finds none has removed the last one. */
int cells_remove(struct engine *engine, MDB_txn *txn, const struct store_cell_write *write,
		 struct removal_slice *slice, bool *left)
{
	struct cell_key at;
	struct cell cell;
	MDB_cursor *cursor;
	bool removed = false;
	*left = false;
	cell_key_make(write->table, write->key, write->column, &at);
	int err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_CELLS], &cursor));
	if (err)
		return err;
	while (!(err = first_to_remove(cursor, write, &at, &cell))) {
		size_t bytes = cell_stored_bytes(at.len, &cell);
		*left = slice && slice->spent;
		if (*left)
			break;
		err = cell_blob_delete(engine, txn, &cell);
		if (!err)
			err = env_error(mdb_cursor_del(cursor, 0));
		if (err)
			break;
		removed = true;
		if (slice)
			removal_charge(slice, bytes);
	}
	if (err == ERR_NOT_FOUND)
		err = removed ? cell_row_drop_if_empty(engine, txn, cursor, at.bytes) : 0;
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
	bool left;
	if (write->action == CELL_LOG_REMOVE)
		return cells_remove(engine, txn, write, NULL, &left);
	if (write->action == CELL_ROW_DELETE)
		return apply_row_delete(engine, txn, write);
	cell_key_make(write->table, write->key, write->column, &key);
	int err = env_get(txn, engine->env.dbi[DB_CELLS], cell_key_slice(&key), &value);
	bool found = !err;
	if (found && value.len > sizeof(copy))
		return ERR_DAMAGED;
	if (found) {
		memcpy(copy, value.data, value.len);
		err = cell_parse(cell_key_slice(&key),
				 (struct slice){(const char *)copy, value.len}, &cell);
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
	case CELL_ROW_DELETE:
		break; /* above */
	case CELL_ADD:
		err = apply_set(engine, txn, write, &key, found ? &cell : NULL);
		*refused = *refused || err == ERR_LIMIT;
		return err == ERR_LIMIT ? 0 : err;
	}
	return ERR_INVALID;
}
