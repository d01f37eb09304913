#include "store/lmdb/cell.h"

#include "base/cursor.h"
#include "base/hash.h"

enum { BLOB_PART_BYTES = PAGE_VALUE_MAX_BYTES - RECORD_HEADER_BYTES };

void cell_row_key(enum table table, struct slice key, uint8_t to[CELL_ROW_KEY_BYTES])
{
	struct hash128 hash = hash128(key.data, key.len, 0);
	to[0] = (uint8_t)table;
	be64_put(to + 1, hash.high);
	be64_put(to + 9, hash.low);
}

void cell_key_make(enum table table, struct slice key, struct slice column, struct cell_key *out)
{
	ASSERT(column.len <= STORE_COLUMN_MAX_BYTES + 1);
	cell_row_key(table, key, out->bytes);
	if (column.len)
		memcpy(out->bytes + CELL_ROW_KEY_BYTES, column.data, column.len);
	out->len = CELL_ROW_KEY_BYTES + column.len;
}

int cell_parse(struct slice key, struct slice value, struct cell *cell)
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

static struct slice blob_key(uint8_t to[12], uint64_t blob, uint32_t part)
{
	be64_put(to, blob);
	be32_put(to + 8, part);
	return (struct slice){(const char *)to, 12};
}

int cell_blob_read(struct engine *engine, MDB_txn *txn, const struct cell *cell, char *to)
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

int cell_blob_write(struct engine *engine, MDB_txn *txn, uint64_t blob, struct slice value)
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

int cell_blob_delete(struct engine *engine, MDB_txn *txn, const struct cell *cell)
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

int cell_value_copy(struct engine *engine, MDB_txn *txn, const struct cell *cell,
		    struct arena *arena, struct slice *value)
{
	if (!(cell->flags & CELL_IN_BLOB)) {
		*value = arena_copy(arena, cell->inlined);
		return 0;
	}
	char *bytes = arena_alloc(arena, cell->blob_len + 1);
	*value = (struct slice){bytes, bytes ? cell->blob_len : 0};
	return bytes ? cell_blob_read(engine, txn, cell, bytes) : 0;
}
