/* Heads: what was committed and is not yet sealed, in memory; and which segments exist. Private.
 *
 * A head holds rows of one band in one segment of one sheet, in the order in which they were
 * accepted; a later row wins over an earlier one of the same time, column by column. Rows lie as
 * their records wrote them (row_codec.h), with the time and the columns in front: so taking one in
 * is a copy, and a head of small numbers is small.
 *
 * Threads: the writer alone changes anything, under the write lock; readers copy under the read
 * lock. The writer reads without it. */
#ifndef STORE_LMDB_HEADS_H
#define STORE_LMDB_HEADS_H

#include "store/lmdb/codec/block.h"
#include "store/lmdb/journal.h"

/* The fields stand by use: a new row touches little after the first cache line. There are very
 * many heads, so that each field is as narrow as it can be; with what malloc adds one is two cache
 * lines. */
struct head {
	struct head *next_in_bucket;
	int64_t period_ms; /* of its sheet, as table and retention are */
	int64_t segment;
	uint32_t shape, ordinal;
	uint8_t *data;
	uint32_t used, cap; /* bytes of data */
	uint32_t rows;      /* a row whose parts came one after the other counts once */
	uint32_t parts;
	int64_t last_ts_ms; /* of the last part */
	int64_t max_ts_ms;
	uint64_t last_sequence;
	uint32_t touched; /* when the last row came, monotonic: head_touched_us */
	uint16_t columns : 15;
	bool unordered : 1; /* a part is older than the one before it */
	uint8_t table : 4;
	uint8_t retention : 4;
	uint8_t : 0; /* the writer's own, changed without the lock: apart from what readers see */
	bool queued : 1; /* its group has been asked to be sealed */
	bool taken : 1;  /* sealed in the transaction that is not yet committed */
	/* No block of its band ends later; INT64_MAX: nobody knows. It holds as long as the head is
	 * there, since what is sealed of the band is sealed with it. */
	int64_t blocks_end_ms;
	uint64_t first_sequence;
	struct head *older, *newer; /* in order of first_sequence */
};

/* A segment of a sheet: all that one key prefix of the extents begins with. */
struct segment_id {
	struct store_target sheet;
	int64_t segment;
};

/* Memory that a head has left. */
struct spare {
	struct spare *next;
};
enum { SPARE_SIZES = 128, SPARE_MAX_BYTES = 1 << 20 };

struct heads {
	pthread_rwlock_t lock;
	/* Chained through the heads themselves, not a table of base/: each row that is written
	 * looks here, and what it will need is fetched ahead of time (heads_foresee). */
	struct head **buckets;
	size_t bucket_count, count;
	uint64_t bytes;
	struct head *oldest, *newest;
	/* Rises when a head goes or loses samples: a reader whose snapshot is older than that needs
	 * a new one. */
	uint64_t epoch;
	/* Segments with extents or heads, ordered by table, period, class, segment. */
	struct segment_id *directory;
	size_t directory_count, directory_cap;
	/* The writer's: by size, in steps of 16 bytes. */
	struct spare *spare[SPARE_SIZES];
	size_t spare_bytes;
	/* The writer's: no head that is not queued lies in a segment that ends earlier. */
	int64_t least_end_ms;
	/* The writer's: where the last row fell, so that the next needs no division. */
	struct segment_id last;
	int64_t last_begin_ms, last_end_ms;
};

void heads_init(struct heads *heads);
void heads_release(struct heads *heads);

/* More rows than 5120 values, and than 64, or than 2048 are not worth keeping in memory: the head
 * is to be sealed. */
static inline bool head_is_full(const struct head *head)
{
	return head->rows >= 2048 || (head->rows >= 64 && (head->rows + 1) * head->columns > 5120);
}

static inline struct segment_id head_segment(const struct head *head)
{
	struct store_target sheet = {(enum table)head->table, (enum retention_class)head->retention,
				     head->period_ms};
	return (struct segment_id){sheet, head->segment};
}

/* To the second, about. */
enum { HEAD_TOUCHED_SHIFT = 20 };
static inline int64_t head_touched_us(const struct head *head)
{
	return (int64_t)head->touched << HEAD_TOUCHED_SHIFT;
}

/* INT64_MAX for one without parts. Where parts came out of order it looks at all of them. */
int64_t head_min_ts_ms(const struct head *head);

/* With what two allocations cost. */
enum { HEAD_ALLOCATIONS_BYTES = 2 * 16 };
static inline size_t head_bytes(const struct head *head)
{
	return sizeof(*head) + head->cap + HEAD_ALLOCATIONS_BYTES;
}

/* Values that are there. */
uint64_t head_samples(const struct head *head);

static inline int64_t segment_of(enum table table, int64_t period_ms, int64_t ts_ms)
{
	return floor_div(ts_ms, schema_segment_ms(table, period_ms));
}

/* Where it ends; INT64_MAX for the last one. */
int64_t segment_end_ms(const struct segment_id *segment);
int segment_order(const struct segment_id *a, const struct segment_id *b);
/* The hash of a segment and two numbers within it (shape and ordinal, shape and group). */
size_t segment_hash(const struct segment_id *segment, uint32_t shape, uint32_t number);

/* ---- The writer's; those that change something hold the write lock ------------------------- */

/* The head of a band, or NULL. Also for readers under the read lock. */
struct head *heads_find(struct heads *heads, const struct segment_id *segment, uint32_t shape,
			uint32_t ordinal);
/* A record on its way in. */
struct incoming {
	struct record record;
	uint64_t sequence;
	size_t hash;
};
enum { INCOMING_MAX = 16 }; /* looked at together: about what a core fetches at once */
/* Sets the hashes of rows and has the memory fetched that taking them in will touch: with very many
 * heads that is most of the work. Needs no lock. */
void heads_foresee(struct heads *heads, struct incoming *rows, size_t count);
/* Adds a row, whose shape is registered. Returns the head. */
struct head *heads_apply_row(struct heads *heads, struct registry *registry,
			     const struct incoming *row, int64_t now_us);
/* Removes what a deletion names from every head of the series. */
void heads_apply_delete(struct heads *heads, const struct record *record);
void heads_remove(struct heads *heads, struct head *head);
void heads_add_segment(struct heads *heads, const struct segment_id *segment);
bool heads_has_segment(const struct heads *heads, const struct segment_id *segment);
void heads_remove_segment(struct heads *heads, const struct segment_id *segment);

/* ---- Samples of one column range, sorted, as everything above the heads reads them ----------- */

struct samples {
	size_t count, cap;
	unsigned fields, arrays; /* in use; those that there is memory of */
	uint64_t sequence;       /* the highest contained: of two the samples with the higher win */
	int64_t *ts_ms;
	uint64_t *bits[BLOCK_COLUMNS_MAX];
	uint8_t *types[BLOCK_COLUMNS_MAX];
};

void samples_init(struct samples *samples, unsigned fields);
void samples_release(struct samples *samples);
/* Makes it empty for so many fields and keeps its memory; zeroed samples are empty. */
void samples_reuse(struct samples *samples, unsigned fields);
void samples_reserve(struct samples *samples, size_t rows);
/* The memory it has. */
static inline size_t samples_bytes(const struct samples *samples)
{
	return samples->cap * (sizeof(*samples->ts_ms) + samples->arrays * (sizeof(uint64_t) + 1));
}
/* Sorts by time and leaves one row per time: the later row wins, column by column. Rows without any
 * value go. */
void samples_sort(struct samples *samples);
/* A quick look: true only if none of the rows is without any value. */
bool samples_is_full(const struct samples *samples, size_t from, size_t count);
/* Merges `newer` over `older` into `out` (both sorted). */
void samples_merge(const struct samples *older, const struct samples *newer, struct samples *out);

/* Copies start <= ts < end of columns first .. first + samples->fields; appends to `samples`,
 * unsorted. Readers hold the read lock. */
void head_copy(const struct head *head, unsigned first_column, int64_t start_ms, int64_t end_ms,
	       struct samples *samples);

/* Appends all it holds, unsorted: columns s * width .. + each[s]->fields to each[s]. */
void head_copy_strips(const struct head *head, unsigned width, struct samples *const *each,
		      unsigned count);

/* Records of one band with their prefixes, as a batch has them: `count` rows, those in columns too.
 */
struct record_rows {
	const uint8_t *at;
	size_t bytes, count;
	uint64_t sequence;
};
/* The same of such rows. */
void rows_copy_strips(const struct record_rows *rows, unsigned width, struct samples *const *each,
		      unsigned count);

/* Takes the read lock: the directory's segments of a table and period that overlap start..end, by
 * class and segment ascending, into `out` (at most max); the count of all. */
size_t heads_segments(struct heads *heads, enum table table, int64_t period_ms, int64_t start_ms,
		      int64_t end_ms, struct segment_id *out, size_t max);

#endif
