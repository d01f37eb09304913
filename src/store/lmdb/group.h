/* Row groups on disk: the extents of neighbouring bands in one segment. Private.
 *
 * Everything that is read from or written to DB_EXTENTS goes through here. Within one segment of
 * one sheet the blocks of one strip (a band's columns, up to 32 at a time) never overlap in time:
 * what comes late is merged by writing the whole group again. */
#ifndef STORE_LMDB_GROUP_H
#define STORE_LMDB_GROUP_H

#include "store/lmdb/codec/extent.h"
#include "store/lmdb/heads.h"

enum {
	GROUP_PREFIX_BYTES = 1 + 1 + 8 + 8 + 4 + 4,
	EXTENT_KEY_BYTES = GROUP_PREFIX_BYTES + 8 + 4 + 2,
	SEGMENT_PREFIX_BYTES = 1 + 1 + 8 + 8,
	SETTLED_FLUSH = 0,
};

struct group_id {
	struct segment_id segment;
	uint32_t shape, group;
};

static inline bool group_same(const struct group_id *a, const struct group_id *b)
{
	return a->shape == b->shape && a->group == b->group &&
	       segment_order(&a->segment, &b->segment) == 0;
}

void group_prefix(const struct group_id *id, uint8_t to[GROUP_PREFIX_BYTES]);
/* ERR_DAMAGED for a key that group_store did not write. */
int group_parse_key(struct slice key, struct group_id *id, int64_t *first_ts_ms,
		    uint32_t *flush) MUST_CHECK;

/* How many columns lie in one strip of a table: a multiple of its fields. */
static inline unsigned strip_columns(enum table table)
{
	unsigned fields = (unsigned)schema[table].field_count;
	return BLOCK_COLUMNS_MAX / fields * fields;
}

/* A block found in a snapshot; points into the map. */
struct block_ref {
	struct block block;
};

struct block_refs {
	struct block_ref *list;
	size_t count, cap;
	uint64_t extents; /* opened on the way */
};

/* Collects the blocks of one band that hold `column` and overlap start..end, by time. `cursor` is
 * on DB_EXTENTS. Appends. */
int group_find(MDB_cursor *cursor, const struct group_id *id, uint32_t ordinal_in_group,
	       unsigned column, int64_t start_ms, int64_t end_ms,
	       struct block_refs *refs) MUST_CHECK;
/* Keeps them in order of time. */
void block_refs_add(struct block_refs *refs, const struct block *block);
void block_refs_release(struct block_refs *refs);
/* So that of two blocks that overlap, as they do beside damage, the later wins. */
void block_refs_by_sequence(struct block_refs *refs);

/* Calls `see` with every block of the group, in order of key; stops on its error. *extents grows by
 * those opened. */
int group_each(MDB_cursor *cursor, const struct group_id *id,
	       int (*see)(const struct block *block, void *context), void *context,
	       uint64_t *extents) MUST_CHECK;

/* Appends the rows of a block, columns first .. first + samples->fields of its strip, within
 * start..end; rows without any of these values are left out. */
int block_append(const struct block *block, unsigned first, int64_t start_ms, int64_t end_ms,
		 struct samples *samples) MUST_CHECK;

/* A strip in memory while its group is written. */
struct strip {
	uint32_t ordinal_in_group;
	unsigned first_column;
	struct samples samples;
};

/* Zeroed it is empty. All `cap` of the list keep their memory for the next group. */
struct strips {
	struct strip *list;
	size_t count, cap;
};

/* The strip, made empty (with `columns` columns) if it is not there. */
struct strip *strips_get(struct strips *strips, uint32_t ordinal_in_group, unsigned first_column,
			 unsigned columns);
/* Empties them, and frees their memory if it is much. */
void strips_reset(struct strips *strips);
void strips_release(struct strips *strips);

/* Adds all that a head holds. */
void strips_add_head(struct strips *strips, const struct head *head, uint32_t ordinal_in_group);
/* Adds rows of a band of so many columns. */
void strips_add_rows(struct strips *strips, enum table table, unsigned columns,
		     const struct record_rows *rows, uint32_t ordinal_in_group);
/* Adds all blocks of the group, in order of their sequence. */
int strips_load(struct strips *strips, MDB_txn *txn, MDB_dbi extents,
		const struct group_id *id) MUST_CHECK;

/* What one pass over a group finds about its bands, by ordinal in the group. */
enum { GROUP_BANDS_MAX = 64 };
struct band_span {
	int64_t min_ts_ms, max_ts_ms; /* in: asked about; min > max: not asked */
	bool overlaps;                /* a block lies in min..max */
	uint64_t highest;             /* sequence of the band's blocks; 0: it has none */
	int64_t end_ms;               /* where they end, if that is later than it was */
};
int group_spans(MDB_txn *txn, MDB_dbi extents, const struct group_id *id,
		struct band_span spans[GROUP_BANDS_MAX]) MUST_CHECK;

/* Deletes all extents of the group. All are looked at first: an error that leaves *changed as it
 * was has deleted none of them; after any other the transaction must be aborted. */
int group_clear(MDB_txn *txn, MDB_dbi extents, const struct group_id *id, bool *changed) MUST_CHECK;
/* Encodes the strips (sorted here) into new extents. SETTLED_FLUSH marks the group settled: then it
 * must have been cleared. *bytes grows by what was written. */
int group_store(MDB_txn *txn, MDB_dbi extents, const struct group_id *id, struct strips *strips,
		uint32_t flush, uint64_t *bytes) MUST_CHECK;

#endif
