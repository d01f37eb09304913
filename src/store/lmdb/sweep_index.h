/* The index of what is to be swept (DB_SWEEP_INDEX): cells that expire or are deleted, and rows
 * that are, by table, and then by the minute from which they may go. So a sweep looks at what is
 * due and at nothing else, and what neither expires nor is deleted costs nothing. Private to
 * store/lmdb.
 *
 * Key: table u8, SWEEP_ROW higher for a row | minute u32, since 1970 | hash of the row key, 128
 * bits | of a cell, the column. No value. An entry is put and removed in the transaction of what it
 * points to, so it always points to something that is due at that minute.
 *
 * A store of before format 3 has no such index. Its cells are walked once, in slices, and a note in
 * DB_META says how far that has come, or that it is done. */
#ifndef STORE_LMDB_SWEEP_INDEX_H
#define STORE_LMDB_SWEEP_INDEX_H

#include "store/lmdb/cell.h"

enum {
	SWEEP_ROW = 128,
	SWEEP_NOW = 0,   /* the minute of a row whose cells are to be removed */
	SWEEP_NEVER = 0, /* and of a cell that neither expires nor was deleted: not in the index */
	SWEEP_HEAD_BYTES = 1 + 4,
};

struct sweep_entry {
	bool is_row;
	uint32_t minute;
	struct cell_key key; /* of the cell; of a row without a column */
};

/* ERR_DAMAGED */
int sweep_index_parse(struct slice key, struct sweep_entry *entry) MUST_CHECK;

/* The minute that `wall_ms` lies in. */
uint32_t sweep_minute(int64_t wall_ms);
/* When a cell may go: when nothing depends on it any more. */
uint32_t sweep_cell_minute(enum table table, const struct cell *cell);
/* When the deletion of a row may be forgotten. */
uint32_t sweep_row_minute(const struct cell_row *row);
/* Whether an entry of that minute is of the deletion that the row has. */
bool sweep_row_is_due(const struct cell_row *row, uint32_t minute);

/* A cell that is put, changed or removed: when it could go before, and when it can from now on. */
int sweep_index_move_cell(const struct env *env, MDB_txn *txn, struct slice cell_key, uint32_t from,
			  uint32_t to) MUST_CHECK;
bool sweep_index_has_cell(const struct env *env, MDB_txn *txn, struct slice cell_key,
			  uint32_t minute);
/* Twice is once. */
int sweep_index_put_row(const struct env *env, MDB_txn *txn, const uint8_t row[CELL_ROW_KEY_BYTES],
			uint32_t minute) MUST_CHECK;
/* 0 also if it was not there. */
int sweep_index_delete_row(const struct env *env, MDB_txn *txn,
			   const uint8_t row[CELL_ROW_KEY_BYTES], uint32_t minute) MUST_CHECK;
bool sweep_index_has_row(const struct env *env, MDB_txn *txn, const uint8_t row[CELL_ROW_KEY_BYTES],
			 uint32_t minute);

/* The note: whether all cells are in the index that have to be. Unless they are, what comes next,
 * in `key`; nothing: the first. */
int sweep_index_note_read(const struct env *env, MDB_txn *txn, bool *is_whole,
			  struct cell_key *key) MUST_CHECK;
/* NULL: they are. */
int sweep_index_note_put(const struct env *env, MDB_txn *txn,
			 const struct cell_key *key) MUST_CHECK;

/* Tables that have rows which were deleted, a bit each; where the index cannot be read, all. */
uint64_t sweep_index_tables(const struct env *env, MDB_txn *txn);

#endif
