/* Heads: what was committed and is not yet sealed, in memory; and which segments exist. Private.
 *
 * A head holds rows of one band in one segment of one sheet, in the order in which they were
 * accepted; a later row wins over an earlier one of the same time, column by column. Rows lie side
 * by side (time, values, types), because a line of many fields arrives as one.
 *
 * Threads: the writer alone changes anything, under the write lock; readers copy under the read
 * lock. The writer reads without it. */
#ifndef STORE_LMDB_HEADS_H
#define STORE_LMDB_HEADS_H

#include "store/lmdb/block.h"
#include "store/lmdb/journal.h"

struct head {
	struct head *next_in_bucket;
	struct head *older, *newer; /* in order of first_sequence */
	struct sheet sheet;
	int64_t segment;
	uint32_t shape, ordinal;
	uint32_t rows, cap;
	uint16_t columns;
	bool sorted;        /* rows ascend strictly */
	bool queued;        /* its group has been asked to be sealed */
	bool taken;         /* sealed in the transaction that is not yet committed */
	int64_t touched_us; /* monotonic, of the last row */
	uint64_t first_sequence, last_sequence;
	int64_t min_ts_ms, max_ts_ms;
	uint8_t *data;
};

/* A segment of a sheet: all that one key prefix of the extents begins with. */
struct segment_id {
	struct sheet sheet;
	int64_t segment;
};

struct heads {
	pthread_rwlock_t lock;
	struct head **buckets;
	size_t bucket_count, count;
	uint64_t bytes;
	struct head *oldest, *newest;
	/* Rises when a head goes: a reader whose snapshot is older than that needs a new one. */
	uint64_t epoch;
	/* Segments with extents or heads, ordered by table, period, class, segment. */
	struct segment_id *directory;
	size_t directory_count, directory_cap;
};

void heads_init(struct heads *heads);
void heads_release(struct heads *heads);

static inline size_t head_stride(unsigned columns)
{
	return 8 + 8 * (size_t)columns + (columns + 7) / 8 * 8;
}

/* More rows than this are not worth keeping in memory: the head is to be sealed. */
static inline uint32_t head_rows_full(unsigned columns)
{
	uint32_t rows = 5120 / columns;
	return rows < 64 ? 64 : rows > 2048 ? 2048 : rows;
}

static inline int64_t segment_of(enum table table, int64_t period_ms, int64_t ts_ms)
{
	return floor_div(ts_ms, schema_segment_ms(table, period_ms));
}

int segment_order(const struct segment_id *a, const struct segment_id *b);
/* Of a segment and two numbers within it (shape and ordinal, shape and group): for hash tables. */
size_t segment_hash(const struct segment_id *segment, uint32_t shape, uint32_t number);

/* ---- The writer's; those that change something hold the write lock ------------------------- */

/* The head of a band, or NULL. Also for readers under the read lock. */
struct head *heads_find(struct heads *heads, const struct segment_id *segment, uint32_t shape,
			uint32_t ordinal);
/* Adds a row; `band_columns` is that of the shape. Returns the head. */
struct head *heads_apply_row(struct heads *heads, const struct record *record,
			     unsigned band_columns, uint64_t sequence, int64_t now_us);
/* Removes what a deletion names from every head of the series. */
void heads_apply_delete(struct heads *heads, const struct record *record);
void heads_remove(struct heads *heads, struct head *head);
void heads_add_segment(struct heads *heads, const struct segment_id *segment);
void heads_remove_segment(struct heads *heads, const struct segment_id *segment);

/* ---- Runs: sorted samples of one column range, as everything above the heads reads them ----- */

struct run {
	size_t count, cap;
	unsigned fields;
	uint64_t sequence; /* the highest contained: of two runs the higher wins */
	int64_t *ts_ms;
	uint64_t *bits[BLOCK_COLUMNS_MAX];
	uint8_t *types[BLOCK_COLUMNS_MAX];
};

void run_init(struct run *run, unsigned fields);
void run_release(struct run *run);
void run_reserve(struct run *run, size_t rows);
/* Sorts by time and leaves one row per time: the later row wins, column by column. Rows without any
 * value go. */
void run_sort(struct run *run);
/* Merges `newer` over `older` into `out` (both sorted). */
void run_merge(const struct run *older, const struct run *newer, struct run *out);

/* Copies start <= ts < end of columns first .. first + run->fields; appends to `run`, unsorted.
 * Readers hold the read lock. */
void head_copy(const struct head *head, unsigned first_column, int64_t start_ms, int64_t end_ms,
	       struct run *run);

/* Takes the read lock: the directory's segments of a table and period that overlap start..end, by
 * class and segment ascending, into `out` (at most max); the count of all. */
size_t heads_segments(struct heads *heads, enum table table, int64_t period_ms, int64_t start_ms,
		      int64_t end_ms, struct segment_id *out, size_t max);

#endif
