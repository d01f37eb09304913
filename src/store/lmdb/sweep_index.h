/* The index of what is to be swept (DB_SWEEP_INDEX): by table, and then by the minute from which it
 * may go. So a sweep looks at what is due and at nothing else. Private to store/lmdb.
 *
 * Key: table u8, SWEEP_ROW higher for a row | minute u32, since 1970 | hash of the row key, 128
 * bits. No value. An entry is put and removed in the transaction of what it points to, so it always
 * points to something that is due at that minute. */
#ifndef STORE_LMDB_SWEEP_INDEX_H
#define STORE_LMDB_SWEEP_INDEX_H

#include "store/lmdb/cell.h"

enum {
	SWEEP_ROW = 128,
	SWEEP_NOW = 0, /* the minute of a row whose cells are to be removed */
	SWEEP_HEAD_BYTES = 1 + 4,
};

struct sweep_entry {
	bool is_row;
	uint32_t minute;
	uint8_t row[CELL_ROW_KEY_BYTES];
};

/* ERR_DAMAGED */
int sweep_index_parse(struct slice key, struct sweep_entry *entry) MUST_CHECK;

/* The minute that `wall_ms` lies in. */
uint32_t sweep_minute(int64_t wall_ms);
/* When the deletion of a row may be forgotten. */
uint32_t sweep_row_minute(const struct cell_row *row);
/* Whether an entry of that minute is of the deletion that the row has. */
bool sweep_row_is_due(const struct cell_row *row, uint32_t minute);

/* Twice is once. */
int sweep_index_put_row(const struct env *env, MDB_txn *txn, const uint8_t row[CELL_ROW_KEY_BYTES],
			uint32_t minute) MUST_CHECK;
/* 0 also if it was not there. */
int sweep_index_delete_row(const struct env *env, MDB_txn *txn,
			   const uint8_t row[CELL_ROW_KEY_BYTES], uint32_t minute) MUST_CHECK;
bool sweep_index_has_row(const struct env *env, MDB_txn *txn, const uint8_t row[CELL_ROW_KEY_BYTES],
			 uint32_t minute);

/* Tables that have rows which were deleted, a bit each; where the index cannot be read, all. */
uint64_t sweep_index_tables(const struct env *env, MDB_txn *txn);

#endif
