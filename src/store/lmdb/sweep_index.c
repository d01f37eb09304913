#include "store/lmdb/sweep_index.h"

#include "base/cursor.h"

enum { MINUTE_MS = 60000 };

_Static_assert(TABLE_COUNT <= 64, "tables are bits of a number, and numbers below SWEEP_ROW");

struct sweep_key {
	uint8_t bytes[SWEEP_HEAD_BYTES + CELL_KEY_MAX_BYTES];
	size_t len;
};

static struct slice sweep_row_key(struct sweep_key *key, const uint8_t row[CELL_ROW_KEY_BYTES],
				  uint32_t minute)
{
	key->bytes[0] = row[0] | SWEEP_ROW;
	be32_put(key->bytes + 1, minute);
	memcpy(key->bytes + SWEEP_HEAD_BYTES, row + 1, CELL_ROW_KEY_BYTES - 1);
	key->len = SWEEP_HEAD_BYTES + CELL_ROW_KEY_BYTES - 1;
	return (struct slice){(const char *)key->bytes, key->len};
}

int sweep_index_parse(struct slice key, struct sweep_entry *entry)
{
	const uint8_t *bytes = (const uint8_t *)key.data;
	if (key.len != SWEEP_HEAD_BYTES + CELL_ROW_KEY_BYTES - 1)
		return ERR_DAMAGED;
	entry->is_row = bytes[0] & SWEEP_ROW;
	entry->minute = be32_get(bytes + 1);
	entry->row[0] = bytes[0] & ~SWEEP_ROW;
	memcpy(entry->row + 1, bytes + SWEEP_HEAD_BYTES, CELL_ROW_KEY_BYTES - 1);
	return entry->is_row && entry->row[0] < TABLE_COUNT ? 0 : ERR_DAMAGED;
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

uint32_t sweep_row_minute(const struct cell_row *row)
{
	return sweep_minute_after(row->deleted_ms, STORE_TOMBSTONE_MS);
}

bool sweep_row_is_due(const struct cell_row *row, uint32_t minute)
{
	return row->is_deleted && (minute == SWEEP_NOW || minute == sweep_row_minute(row));
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
