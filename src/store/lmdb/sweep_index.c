#include "store/lmdb/sweep_index.h"

#include "base/cursor.h"

enum { MINUTE_MS = 60000 };

_Static_assert(TABLE_COUNT <= 64, "tables are bits of a number, and numbers below SWEEP_ROW");

struct sweep_key {
	uint8_t bytes[SWEEP_HEAD_BYTES + CELL_KEY_MAX_BYTES];
};

static struct slice sweep_cell_key(struct sweep_key *key, struct slice cell_key, uint32_t minute)
{
	ASSERT(cell_key.len >= CELL_ROW_KEY_BYTES && cell_key.len <= CELL_KEY_MAX_BYTES);
	key->bytes[0] = (uint8_t)cell_key.data[0];
	be32_put(key->bytes + 1, minute);
	memcpy(key->bytes + SWEEP_HEAD_BYTES, cell_key.data + 1, cell_key.len - 1);
	return (struct slice){(const char *)key->bytes, SWEEP_HEAD_BYTES + cell_key.len - 1};
}

static struct slice sweep_row_key(struct sweep_key *key, const uint8_t row[CELL_ROW_KEY_BYTES],
				  uint32_t minute)
{
	struct slice of_cell = {(const char *)row, CELL_ROW_KEY_BYTES};
	struct slice made = sweep_cell_key(key, of_cell, minute);
	key->bytes[0] |= SWEEP_ROW;
	return made;
}

int sweep_index_parse(struct slice key, struct sweep_entry *entry)
{
	const uint8_t *bytes = (const uint8_t *)key.data;
	if (key.len < SWEEP_HEAD_BYTES + CELL_ROW_KEY_BYTES - 1 ||
	    key.len > SWEEP_HEAD_BYTES + CELL_KEY_MAX_BYTES - 1)
		return ERR_DAMAGED;
	entry->is_row = bytes[0] & SWEEP_ROW;
	entry->minute = be32_get(bytes + 1);
	entry->key.len = key.len - SWEEP_HEAD_BYTES + 1;
	entry->key.bytes[0] = bytes[0] & ~SWEEP_ROW;
	memcpy(entry->key.bytes + 1, bytes + SWEEP_HEAD_BYTES, entry->key.len - 1);
	bool has_column = entry->key.len > CELL_ROW_KEY_BYTES;
	if (entry->key.bytes[0] >= TABLE_COUNT || (entry->is_row && has_column) ||
	    (!entry->is_row && entry->minute == SWEEP_NEVER))
		return ERR_DAMAGED;
	return 0;
}

/* The last one of all does not come. */
uint32_t sweep_minute(int64_t wall_ms)
{
	int64_t minute = floor_div(wall_ms, MINUTE_MS);
	return minute < 0 ? 0 : minute >= UINT32_MAX ? UINT32_MAX - 1 : (uint32_t)minute;
}

/* The first that begins when `ms` and the time of grace are over. */
static uint32_t sweep_minute_after(int64_t ms, int64_t grace_ms)
{
	return ms > INT64_MAX - grace_ms ? UINT32_MAX : sweep_minute(ms + grace_ms) + 1;
}

/* A stamped cell goes on winning over lower stamps; any other may still be read by a query that
 * began before. Of a deleted one `expires_ms` is when it was. */
uint32_t sweep_cell_minute(enum table table, const struct cell *cell)
{
	bool is_stamped = schema[table].cell_kind == CELL_STAMPED;
	if (!cell->expires_ms)
		return SWEEP_NEVER;
	return sweep_minute_after(cell->expires_ms,
				  is_stamped ? STORE_TOMBSTONE_MS : STORE_QUERY_DEADLINE_MAX_MS);
}

uint32_t sweep_row_minute(const struct cell_row *row)
{
	return sweep_minute_after(row->deleted_ms, STORE_TOMBSTONE_MS);
}

bool sweep_row_is_due(const struct cell_row *row, uint32_t minute)
{
	return row->is_deleted && (minute == SWEEP_NOW || minute == sweep_row_minute(row));
}

int sweep_index_move_cell(const struct env *env, MDB_txn *txn, struct slice cell_key, uint32_t from,
			  uint32_t to)
{
	struct sweep_key key;
	MDB_dbi dbi = env->dbi[DB_SWEEP_INDEX];
	if (from == to)
		return 0;
	int err = from ? env_delete(txn, dbi, sweep_cell_key(&key, cell_key, from)) : 0;
	if (!err && to)
		err = env_put(txn, dbi, sweep_cell_key(&key, cell_key, to), SLICE(""));
	return err;
}

bool sweep_index_has_cell(const struct env *env, MDB_txn *txn, struct slice cell_key,
			  uint32_t minute)
{
	struct sweep_key key;
	struct slice value;
	return env_get(txn, env->dbi[DB_SWEEP_INDEX], sweep_cell_key(&key, cell_key, minute),
		       &value) == 0;
}

int sweep_index_put_row(const struct env *env, MDB_txn *txn, const uint8_t row[CELL_ROW_KEY_BYTES],
			uint32_t minute)
{
	struct sweep_key key;
	return env_put(txn, env->dbi[DB_SWEEP_INDEX], sweep_row_key(&key, row, minute), SLICE(""));
}

int sweep_index_delete_row(const struct env *env, MDB_txn *txn,
			   const uint8_t row[CELL_ROW_KEY_BYTES], uint32_t minute)
{
	struct sweep_key key;
	return env_delete(txn, env->dbi[DB_SWEEP_INDEX], sweep_row_key(&key, row, minute));
}

bool sweep_index_has_row(const struct env *env, MDB_txn *txn, const uint8_t row[CELL_ROW_KEY_BYTES],
			 uint32_t minute)
{
	struct sweep_key key;
	struct slice value;
	return env_get(txn, env->dbi[DB_SWEEP_INDEX], sweep_row_key(&key, row, minute), &value) ==
	       0;
}

/* The note: 1 u8, or 0 u8 and the key of the cell that comes next. */
int sweep_index_note_read(const struct env *env, MDB_txn *txn, bool *is_whole, struct cell_key *key)
{
	struct slice name = SLICE(ENV_SWEEP_INDEX), value, payload;
	int err = env_get(txn, env->dbi[DB_META], name, &value);
	*is_whole = false;
	key->len = 0;
	if (!err)
		err = record_open(name, value, &payload);
	if (err) /* not begun, or what was noted is lost: then it begins again */
		return err == ERR_NOT_FOUND || err == ERR_DAMAGED ? 0 : err;
	*is_whole = payload.len && payload.data[0];
	if (payload.len > 1 && payload.len - 1 <= sizeof(key->bytes)) {
		key->len = payload.len - 1;
		memcpy(key->bytes, payload.data + 1, key->len);
	}
	return 0;
}

int sweep_index_note_put(const struct env *env, MDB_txn *txn, const struct cell_key *key)
{
	char bytes[1 + CELL_KEY_MAX_BYTES] = {!key};
	size_t len = key ? key->len : 0;
	if (len)
		memcpy(bytes + 1, key->bytes, len);
	return env_put_record(txn, env->dbi[DB_META], SLICE(ENV_SWEEP_INDEX),
			      (struct slice){bytes, 1 + len});
}

/* Each table's first entry of a row, if there is one. */
uint64_t sweep_index_tables(const struct env *env, MDB_txn *txn)
{
	MDB_cursor *cursor;
	uint64_t tables = 0;
	int err = 0;
	if (!env_has(env, DB_SWEEP_INDEX))
		return 0;
	if (mdb_cursor_open(txn, env->dbi[DB_SWEEP_INDEX], &cursor))
		return UINT64_MAX;
	for (unsigned table = 0; table < TABLE_COUNT && !err; table++) {
		const char first = (char)(table | SWEEP_ROW);
		struct slice key = {&first, 1}, value;
		err = env_seek(cursor, &key, &value);
		if (!err && key.data[0] == first)
			tables |= UINT64_C(1) << table;
	}
	mdb_cursor_close(cursor);
	return err && err != ERR_NOT_FOUND ? UINT64_MAX : tables;
}
