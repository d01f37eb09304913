#include "store/lmdb/cell.h"

#include "base/cursor.h"
#include "base/hash.h"

enum {
	BLOB_PART_BYTES = PAGE_VALUE_MAX_BYTES - RECORD_HEADER_BYTES,
	DELETION_BYTES = 8 + 8,
};

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

static uint8_t *put_field(uint8_t *to, uint64_t field)
{
	if (!field)
		return to;
	memcpy(to, &field, 8);
	return to + 8;
}

size_t cell_encode(struct slice key, const struct cell *cell, uint8_t to[PAGE_VALUE_MAX_BYTES])
{
	unsigned fields = (cell->stamp_us ? CELL_HAS_STAMP : 0) |
			  (cell->expires_ms ? CELL_HAS_EXPIRY : 0) |
			  (cell->version ? CELL_HAS_VERSION : 0);
	uint8_t *p = to + RECORD_HEADER_BYTES;
	*p++ = (uint8_t)(cell->flags | CELL_SHORT | fields);
	p = put_field(p, (uint64_t)cell->stamp_us);
	p = put_field(p, (uint64_t)cell->expires_ms);
	p = put_field(p, cell->version);
	if (cell->flags & CELL_IN_BLOB) {
		memcpy(p, &cell->blob, 8);
		memcpy(p + 8, &cell->blob_len, 8);
		p += 16;
	} else if (cell->inlined.len) {
		ASSERT(cell->inlined.len <= (size_t)(to + PAGE_VALUE_MAX_BYTES - p));
		memcpy(p, cell->inlined.data, cell->inlined.len);
		p += cell->inlined.len;
	}
	size_t len = (size_t)(p - to);
	record_seal(key, to, len);
	return len;
}

static uint64_t read_field(struct cursor *c, unsigned flags, unsigned flag)
{
	return flags & CELL_SHORT && !(flags & flag) ? 0 : cursor_u64(c);
}

int cell_parse(struct slice key, struct slice value, struct cell *cell)
{
	struct slice payload;
	int err = record_open(key, value, &payload);
	if (err)
		return err;
	struct cursor c = cursor_of(payload.data, payload.len);
	unsigned flags = cursor_u8(&c);
	*cell = (struct cell){.flags = flags & (CELL_DELETED | CELL_IN_BLOB)};
	cell->stamp_us = (int64_t)read_field(&c, flags, CELL_HAS_STAMP);
	cell->expires_ms = (int64_t)read_field(&c, flags, CELL_HAS_EXPIRY);
	cell->version = read_field(&c, flags, CELL_HAS_VERSION);
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

/* ---- Rows ------------------------------------------------------------------------------------ */

static bool cell_row_is_named(struct slice key, struct slice row_key)
{
	uint8_t named[CELL_ROW_KEY_BYTES];
	cell_row_key((enum table)key.data[0], row_key, named);
	return key.len == sizeof(named) && memcmp(key.data, named, sizeof(named)) == 0;
}

int cell_row_parse(struct slice key, struct slice value, struct cell_row *row)
{
	struct slice payload;
	int err = record_open(key, value, &payload);
	if (err || !key.len)
		return ERR_DAMAGED;
	*row = (struct cell_row){.key = payload};
	if (cell_row_is_named(key, payload))
		return 0;
	if (payload.len < DELETION_BYTES)
		return ERR_DAMAGED;
	row->key.len -= DELETION_BYTES;
	row->is_deleted = true;
	memcpy(&row->stamp_us, payload.data + row->key.len, 8);
	memcpy(&row->deleted_ms, payload.data + row->key.len + 8, 8);
	return cell_row_is_named(key, row->key) ? 0 : ERR_DAMAGED;
}

int cell_row_put(MDB_txn *txn, MDB_dbi dbi, const uint8_t row[CELL_ROW_KEY_BYTES],
		 const struct cell_row *as)
{
	uint8_t bytes[PAGE_VALUE_MAX_BYTES], *p = bytes + RECORD_HEADER_BYTES;
	struct slice key = {(const char *)row, CELL_ROW_KEY_BYTES};
	ASSERT(as->key.len <= sizeof(bytes) - RECORD_HEADER_BYTES - DELETION_BYTES);
	memcpy(p, as->key.data, as->key.len);
	p += as->key.len;
	if (as->is_deleted) {
		memcpy(p, &as->stamp_us, 8);
		memcpy(p + 8, &as->deleted_ms, 8);
		p += DELETION_BYTES;
	}
	record_seal(key, bytes, (size_t)(p - bytes));
	return env_put(txn, dbi, key, (struct slice){(const char *)bytes, (size_t)(p - bytes)});
}

/* A value as long as the key alone, as nearly all are, is not looked at. */
int cell_row_gone_us(struct engine *engine, MDB_txn *txn, enum table table, struct slice row_key,
		     int64_t *gone_us)
{
	uint8_t bytes[CELL_ROW_KEY_BYTES];
	struct slice key = {(const char *)bytes, sizeof(bytes)}, value;
	struct cell_row row;
	*gone_us = INT64_MIN;
	if (!(engine->deleted_rows >> table & 1))
		return 0;
	cell_row_key(table, row_key, bytes);
	int err = env_get(txn, engine->env.dbi[DB_CELL_ROWS], key, &value);
	if (err || value.len == RECORD_HEADER_BYTES + row_key.len)
		return err;
	err = cell_row_parse(key, value, &row);
	if (!err && row.is_deleted)
		*gone_us = row.stamp_us;
	return err;
}

int cell_row_is_empty(MDB_cursor *cells, const uint8_t row[CELL_ROW_KEY_BYTES], bool *is_empty)
{
	struct slice key = {(const char *)row, CELL_ROW_KEY_BYTES}, value;
	int err = env_seek(cells, &key, &value);
	*is_empty = err || !cell_is_of_row(key, row);
	return err == ERR_NOT_FOUND ? 0 : err;
}

int cell_row_drop_if_empty(struct engine *engine, MDB_txn *txn, MDB_cursor *cells,
			   const uint8_t row[CELL_ROW_KEY_BYTES])
{
	struct slice key = {(const char *)row, CELL_ROW_KEY_BYTES}, value;
	struct cell_row there;
	bool is_empty;
	int err = cell_row_is_empty(cells, row, &is_empty);
	if (err || !is_empty)
		return err;
	err = env_get(txn, engine->env.dbi[DB_CELL_ROWS], key, &value);
	if (!err && !cell_row_parse(key, value, &there) && there.is_deleted)
		return 0;
	return err && err != ERR_NOT_FOUND ? err
					   : env_delete(txn, engine->env.dbi[DB_CELL_ROWS], key);
}
