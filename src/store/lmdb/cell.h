/* A cell as it is stored: its key, its record, its blob; and its row. Private to store/lmdb.
 *
 * Key of DB_CELLS: table u8 | hash of the row key, 128 bits | column as encoded. Value: crc u32 |
 * flags u8 | fields | payload, or (blob u64, length u64) where the payload is long: then its bytes
 * lie in DB_BLOBS under (blob, part). The fields are stamp i64, expires i64, version u64, each if a
 * flag says so; one that is not there is 0. Without CELL_SHORT, as earlier programs wrote it, all
 * are there. Of a deleted cell `expires` is when it was deleted.
 *
 * DB_CELL_ROWS says which row key belongs to a hash, so that keys may be longer than LMDB's, and
 * whether the row was deleted. Key: table u8 | hash. Value: crc u32 | row key | of one that was
 * deleted: stamp i64 | when i64 (ms). */
#ifndef STORE_LMDB_CELL_H
#define STORE_LMDB_CELL_H

#include "store/lmdb/engine.h"

enum {
	CELL_DELETED = 1,
	CELL_IN_BLOB = 2,
	/* On disk alone. */
	CELL_SHORT = 4,
	CELL_HAS_STAMP = 8,
	CELL_HAS_EXPIRY = 16,
	CELL_HAS_VERSION = 32,
	CELL_HEADER_MIN_BYTES = RECORD_HEADER_BYTES + 1,
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

void cell_row_key(enum table table, struct slice key, uint8_t to[CELL_ROW_KEY_BYTES]);
void cell_key_make(enum table table, struct slice key, struct slice column, struct cell_key *out);

static inline struct slice cell_key_slice(const struct cell_key *key)
{
	return (struct slice){(const char *)key->bytes, key->len};
}

/* Whether an entry of DB_CELLS is one of the row. */
static inline bool cell_is_of_row(struct slice key, const uint8_t row[CELL_ROW_KEY_BYTES])
{
	return key.len >= CELL_ROW_KEY_BYTES && memcmp(key.data, row, CELL_ROW_KEY_BYTES) == 0;
}

/* The value of a cell, with its checksum: how long it is. A payload that is not in a blob is
 * `inlined`. */
size_t cell_encode(struct slice key, const struct cell *cell,
		   uint8_t to[PAGE_VALUE_MAX_BYTES]) MUST_CHECK;
/* ERR_DAMAGED. What is inlined stays where `value` is. */
int cell_parse(struct slice key, struct slice value, struct cell *cell) MUST_CHECK;

static inline bool cell_visible(const struct cell *cell, int64_t now_ms)
{
	return !(cell->flags & CELL_DELETED) &&
	       (cell->expires_ms == 0 || cell->expires_ms > now_ms);
}

int cell_blob_read(struct engine *engine, MDB_txn *txn, const struct cell *cell,
		   char *to) MUST_CHECK;
int cell_blob_write(struct engine *engine, MDB_txn *txn, uint64_t blob,
		    struct slice value) MUST_CHECK;
/* Nothing where the cell has none. */
int cell_blob_delete(struct engine *engine, MDB_txn *txn, const struct cell *cell) MUST_CHECK;

/* About, with what its page and key cost. */
static inline size_t cell_stored_bytes(size_t key_bytes, const struct cell *cell)
{
	size_t value = cell->flags & CELL_IN_BLOB ? cell->blob_len : cell->inlined.len;
	return 2 * RECORD_HEADER_BYTES + key_bytes + value;
}

/* A row as stored. */
struct cell_row {
	struct slice key;
	bool is_deleted;
	int64_t stamp_us; /* of the deletion: cells with it, or a lower one, are gone */
	int64_t deleted_ms;
};

/* ERR_DAMAGED. The row's key stays where `value` is. */
int cell_row_parse(struct slice key, struct slice value, struct cell_row *row) MUST_CHECK;
int cell_row_put(MDB_txn *txn, MDB_dbi dbi, const uint8_t row[CELL_ROW_KEY_BYTES],
		 const struct cell_row *as) MUST_CHECK;
/* The stamp up to which the cells of a row are gone; INT64_MIN, which no cell has: the row was not
 * deleted. ERR_NOT_FOUND: there is no such row, so that a cell of it is damage. */
int cell_row_gone_us(struct engine *engine, MDB_txn *txn, enum table table, struct slice row_key,
		     int64_t *gone_us) MUST_CHECK;
/* Whether it has no cells. */
int cell_row_is_empty(MDB_cursor *cells, const uint8_t row[CELL_ROW_KEY_BYTES],
		      bool *is_empty) MUST_CHECK;
/* Removes it if it has no cells and was not deleted. */
int cell_row_drop_if_empty(struct engine *engine, MDB_txn *txn, MDB_cursor *cells,
			   const uint8_t row[CELL_ROW_KEY_BYTES]) MUST_CHECK;

/* The cell's value in the arena; NULL data: no room. */
int cell_value_copy(struct engine *engine, MDB_txn *txn, const struct cell *cell,
		    struct arena *arena, struct slice *value) MUST_CHECK;

#endif
