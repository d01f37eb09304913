/* A cell as it is stored: its key, its record, its blob. Private to cells.c and cells_read.c.
 *
 * Key of DB_CELLS: table u8 | hash of the row key, 128 bits | column as encoded. Value: crc u32 |
 * flags u8 | stamp i64 | expires i64 | version u64 | payload, or (blob u64, length u64) where the
 * payload is long: then its bytes lie in DB_BLOBS under (blob, part). Of a deleted cell `expires`
 * is when it was deleted. DB_CELL_ROWS says which row key belongs to a hash, so that keys may be
 * longer than LMDB's. */
#ifndef STORE_LMDB_CELL_H
#define STORE_LMDB_CELL_H

#include "store/lmdb/engine.h"

enum {
	CELL_DELETED = 1,
	CELL_IN_BLOB = 2,
	CELL_HEADER_BYTES = RECORD_HEADER_BYTES + 1 + 8 + 8 + 8,
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

/* The cell's value in the arena; NULL data: no room. */
int cell_value_copy(struct engine *engine, MDB_txn *txn, const struct cell *cell,
		    struct arena *arena, struct slice *value) MUST_CHECK;

#endif
