/* Sweeping: what has expired or been deleted leaves the disk, in slices of the writer's
 * transactions, as the index says (sweep_index.h). A store of before the index has that made first,
 * in slices too.
 *
 * A row that was deleted is swept twice: as soon as it is, its cells go, as far as the deletion
 * covers them; a day later the deletion itself, which until then keeps late cells out. The second
 * time looks for cells once more, so that none can come back whatever became of the first.
 *
 * A pass goes over all that is due, table by table. It ends before what is not due yet, so it looks
 * at one entry more of each table. What cannot be read stays, for verify to name, and the pass goes
 * on behind it. A slice that is undone is done again: the pass begins anew. */
#include "base/stats.h"
#include "store/lmdb/sweep_index.h"

/* One slice. */
struct sweeping {
	struct engine *engine;
	MDB_txn *txn;
	MDB_cursor *index, *cells;
	uint32_t minute; /* what is due then, or was before */
	struct removal_slice slice;
};

enum sweep_outcome {
	SWEEP_DONE, /* nothing is left of what the entry points to, and the entry goes */
	SWEEP_LEFT, /* the slice is spent, and the next one goes on with it */
	SWEEP_KEPT, /* it cannot be done */
};

/* The cell that the cursor stands at. */
static int sweep_remove_cell(struct sweeping *s, const struct cell *cell)
{
	int err = cell_blob_delete(s->engine, s->txn, cell);
	stat_add(STAT_store_swept_cells, 1);
	return err ? err : env_error(mdb_cursor_del(s->cells, 0));
}

/* What is not there, or has another time by now, is no longer the entry's. */
static int sweep_cell(struct sweeping *s, const struct sweep_entry *entry,
		      enum sweep_outcome *outcome)
{
	enum table table = (enum table)entry->key.bytes[0];
	struct slice key = cell_key_slice(&entry->key), value;
	struct cell cell;
	int err = env_seek(s->cells, &key, &value);
	if (err || !slice_equal(key, cell_key_slice(&entry->key)))
		return err == ERR_NOT_FOUND ? 0 : err;
	if (cell_parse(key, value, &cell) || !env_may_free(s->txn, key, value)) {
		*outcome = SWEEP_KEPT;
		return 0;
	}
	if (sweep_cell_minute(table, &cell) != entry->minute)
		return 0;
	removal_charge(&s->slice, cell_stored_bytes(key.len, &cell));
	err = sweep_remove_cell(s, &cell);
	return err ? err : cell_row_drop_if_empty(s->engine, s->txn, s->cells, entry->key.bytes);
}

/* Removes the cells that the deletion covers, from where the pass is. Searches again after each:
 * what the cursor stood on has gone. */
static int sweep_row_cells(struct sweeping *s, const uint8_t row[CELL_ROW_KEY_BYTES],
			   int64_t gone_us)
{
	struct sweep_pass *pass = &s->engine->sweep;
	struct slice key = {(const char *)pass->cell, pass->cell_len}, value;
	if (!cell_is_of_row(key, row))
		key = (struct slice){(const char *)row, CELL_ROW_KEY_BYTES};
	int err = env_seek(s->cells, &key, &value);
	while (!err && cell_is_of_row(key, row)) {
		struct cell cell;
		memmove(pass->cell, key.data, key.len);
		pass->cell_len = key.len;
		if (s->slice.spent)
			return 0;
		bool goes = !cell_parse(key, value, &cell) && cell.stamp_us <= gone_us &&
			    env_may_free(s->txn, key, value);
		removal_charge(&s->slice, goes ? cell_stored_bytes(key.len, &cell) : 0);
		if (!goes) {
			err = env_next(s->cells, &key, &value);
			continue;
		}
		err = sweep_remove_cell(s, &cell);
		key = (struct slice){(const char *)pass->cell, pass->cell_len};
		if (!err)
			err = sweep_index_move_cell(&s->engine->env, s->txn, key,
						    sweep_cell_minute((enum table)row[0], &cell),
						    SWEEP_NEVER);
		if (!err)
			err = env_seek(s->cells, &key, &value);
	}
	pass->cell_len = 0;
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* The row is as if it had never been deleted; without cells it goes. */
static int sweep_forget_deletion(struct sweeping *s, const uint8_t row[CELL_ROW_KEY_BYTES],
				 const struct cell_row *deleted)
{
	char copy[PAGE_VALUE_MAX_BYTES]; /* what is read moves when its page is written */
	MDB_dbi rows = s->engine->env.dbi[DB_CELL_ROWS];
	struct cell_row as = {.key = {copy, deleted->key.len}};
	bool is_empty;
	int err = cell_row_is_empty(s->cells, row, &is_empty);
	if (err)
		return err;
	if (is_empty)
		return env_delete(s->txn, rows,
				  (struct slice){(const char *)row, CELL_ROW_KEY_BYTES});
	memcpy(copy, deleted->key.data, deleted->key.len);
	return cell_row_put(s->txn, rows, row, &as);
}

static int sweep_row(struct sweeping *s, const struct sweep_entry *entry,
		     enum sweep_outcome *outcome)
{
	struct slice key = cell_key_slice(&entry->key), value;
	struct cell_row row;
	int err = env_get(s->txn, s->engine->env.dbi[DB_CELL_ROWS], key, &value);
	if (err)
		return err == ERR_NOT_FOUND ? 0 : err;
	if (cell_row_parse(key, value, &row)) {
		*outcome = SWEEP_KEPT;
		return 0;
	}
	if (!sweep_row_is_due(&row, entry->minute))
		return 0;
	err = sweep_row_cells(s, entry->key.bytes, row.stamp_us);
	if (!err && s->engine->sweep.cell_len)
		*outcome = SWEEP_LEFT;
	else if (!err && entry->minute != SWEEP_NOW)
		err = sweep_forget_deletion(s, entry->key.bytes, &row);
	return err;
}

static void sweep_go_on_at(struct sweep_pass *pass, struct slice key)
{
	pass->key_len = key.len;
	memmove(pass->key, key.data, key.len);
}

/* Behind all entries of the table, of rows or of cells. */
static int sweep_next_table(struct sweep_pass *pass, uint8_t table)
{
	pass->key[0] = (uint8_t)(table + 1);
	pass->key_len = 1;
	return pass->key[0] ? 0 : ERR_NOT_FOUND;
}

/* Of the entry at which the index's cursor stands. ERR_NOT_FOUND: the pass is over. */
static int sweep_step(struct sweeping *s, struct slice key)
{
	struct sweep_pass *pass = &s->engine->sweep;
	enum sweep_outcome outcome = SWEEP_DONE;
	struct sweep_entry entry;
	struct slice value;
	stat_add(STAT_store_sweep_looked, 1);
	removal_charge(&s->slice, 0);
	bool is_whole = !sweep_index_parse(key, &entry);
	if (is_whole && entry.minute > s->minute)
		return sweep_next_table(pass, (uint8_t)key.data[0]);
	sweep_go_on_at(pass, key);
	if (!is_whole)
		outcome = SWEEP_KEPT;
	int err = 0;
	if (is_whole)
		err = entry.is_row ? sweep_row(s, &entry, &outcome)
				   : sweep_cell(s, &entry, &outcome);
	if (err || outcome == SWEEP_LEFT)
		return err;
	if (outcome == SWEEP_DONE)
		return env_delete(s->txn, s->engine->env.dbi[DB_SWEEP_INDEX],
				  (struct slice){(const char *)pass->key, pass->key_len});
	err = env_next(s->index, &key, &value);
	if (!err)
		sweep_go_on_at(pass, key);
	return err;
}

static int sweep_slice(struct sweeping *s)
{
	struct sweep_pass *pass = &s->engine->sweep;
	int err = 0;
	removal_begin(&s->slice, s->engine);
	removal_start(&s->slice);
	while (!err && !s->slice.spent) {
		struct slice key = {(const char *)pass->key, pass->key_len}, value;
		if (!key.len)
			key = SLICE("\0");
		err = env_seek(s->index, &key, &value);
		if (!err)
			err = sweep_step(s, key);
	}
	if (err)
		*pass = (struct sweep_pass){.is_running = false};
	return err == ERR_NOT_FOUND ? 0 : err;
}

int sweep_due(struct engine *engine, MDB_txn *txn, uint32_t minute)
{
	struct sweeping s = {.engine = engine, .txn = txn, .minute = minute};
	int err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_SWEEP_INDEX], &s.index));
	if (!err)
		err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_CELLS], &s.cells));
	if (!err)
		err = sweep_slice(&s);
	if (s.cells)
		mdb_cursor_close(s.cells);
	if (s.index)
		mdb_cursor_close(s.index);
	return err;
}

/* ---- The cells of before the index ----------------------------------------------------------- */

/* A longer key, or a cell that cannot be read, is for verify to name. */
static int fill_cell(struct sweeping *s, struct slice key, struct slice value)
{
	struct cell cell;
	if (key.len < CELL_ROW_KEY_BYTES || key.len > CELL_KEY_MAX_BYTES ||
	    cell_parse(key, value, &cell))
		return 0;
	return sweep_index_move_cell(&s->engine->env, s->txn, key, SWEEP_NEVER,
				     sweep_cell_minute((enum table)key.data[0], &cell));
}

/* A slice from `at` on, which is left at what comes next; ERR_NOT_FOUND: there is nothing more. */
static int fill_slice(struct sweeping *s, struct cell_key *at)
{
	struct slice key = cell_key_slice(at), value;
	removal_begin(&s->slice, s->engine);
	removal_start(&s->slice);
	if (!key.len)
		key = SLICE("\0");
	int err = env_seek(s->cells, &key, &value);
	while (!err && !s->slice.spent) {
		removal_charge(&s->slice, key.len + value.len);
		err = fill_cell(s, key, value);
		if (!err)
			err = env_next(s->cells, &key, &value);
	}
	at->len = key.len < sizeof(at->bytes) ? key.len : sizeof(at->bytes);
	if (!err)
		memcpy(at->bytes, key.data, at->len);
	return err;
}

/* What is noted is what has been committed: so it is looked at again in the next transaction. */
int sweep_index_fill(struct engine *engine, MDB_txn *txn, bool *more)
{
	struct sweeping s = {.engine = engine, .txn = txn};
	struct cell_key at;
	if (engine->is_indexed)
		return 0;
	int err = sweep_index_note_read(&engine->env, txn, &engine->is_indexed, &at);
	if (err || engine->is_indexed)
		return err;
	err = env_error(mdb_cursor_open(txn, engine->env.dbi[DB_CELLS], &s.cells));
	if (err)
		return err;
	err = fill_slice(&s, &at);
	mdb_cursor_close(s.cells);
	*more = true;
	if (err && err != ERR_NOT_FOUND)
		return err;
	return sweep_index_note_put(&engine->env, txn, err ? NULL : &at);
}
