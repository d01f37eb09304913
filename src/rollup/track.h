/* Tracking: which slots of which series have data that is not rolled up yet.
 *
 * A slot is a time rounded down to a multiple of the slot's width, in seconds since 1970. Who
 * writes data of a slot marks it first, by a touch (series, slot); who rolls up lists the slots
 * of its partitions that have marks, reads the marks of one, works, and takes away just what it
 * read. A touch that comes meanwhile is another mark and stays, so no late point is lost.
 *
 * Marks lie in the table `marks`: the row is (partition, slot), the column (stamp, writer), the
 * value a list of series: one cell for all that a batch touched of that slot. A cell is never
 * changed by its writer. Who rolls up removes it, or leaves those of its series in it that are not
 * done. So a row holds what is waiting and nothing else, and no removed mark is ever passed over
 * again.
 *
 *     value   version u8 = 1, or 2 where samples were deleted, time of the touch in ms i64 (LE),
 *             then per series:
 *             tenant length u8, tenant, series-set length u16 (LE), series-set
 *
 * Threads: touches are added on any thread; a listing and a reading belong to the thread of their
 * executor. */
#ifndef ROLLUP_TRACK_H
#define ROLLUP_TRACK_H

#include "base/base.h"
#include "base/exec.h"
#include "store/store.h"

enum {
	ROLLUP_CELL_MAX_BYTES = 32 << 10,
	ROLLUP_READING_MAX = 256, /* partitions of one reading */
};

struct rollup_slot {
	int64_t slot_s;
	uint32_t partition;
};

/* By time, those of one time by partition: below 0, 0, above 0. */
static inline int rollup_slot_compare(const struct rollup_slot *a, const struct rollup_slot *b)
{
	if (a->slot_s != b->slot_s)
		return a->slot_s < b->slot_s ? -1 : 1;
	return (a->partition > b->partition) - (a->partition < b->partition);
}

/* The slot of a time at or after 1970. */
static inline int64_t rollup_slot_s(int64_t ts_ms, int64_t slot_ms)
{
	return ts_ms / slot_ms * (slot_ms / 1000);
}

/* Where the first open slot begins: the first one all of whose raw data will still be there when a
 * mark that is made now has been worked on. Of earlier ones nothing more is taken. raw_ms is how
 * long raw data is kept, 0 for ever. */
int64_t rollup_open_from_ms(int64_t now_ms, int64_t raw_ms, int64_t slot_ms, int64_t quiet_ms);

/* When nothing more is expected of a series of the slot that was touched then: the quiet time after
 * the slot's end or after the touch, whichever is later. A touch may lie in the future by as much
 * as clocks differ, which is less than the quiet time; one that lies further is from before the
 * clock was set back and says nothing. */
int64_t rollup_ready_ms(int64_t slot_s, int64_t touched_ms, int64_t slot_ms, int64_t quiet_ms,
			int64_t now_ms);

/* ---- Marking ------------------------------------------------------------------------------- */

struct rollup_touch {
	struct rollup_slot slot;
	struct slice tenant, series_set; /* as series_set_encode writes it */
	/* Samples of it were deleted, so rows of buckets that have none any more are to go. Rows
	 * are never taken away for less: of a bucket whose samples are not there for any other
	 * reason the row is all that is left. */
	bool deleted;
};

/* Puts touches in the order in which rollup_touches_add wants them: by slot and partition, and in
 * these those of deletions last. */
void rollup_touches_sort(struct rollup_touch *touches, size_t count);

/* Adds marks for touches[*added] and on to `write`, before the samples that they stand for or in a
 * stage before theirs, and counts *added up. ERR_LIMIT: the write is full; submit it and go on
 * with another. `writer` names this process, now_ms is its wall clock. */
int rollup_touches_add(struct store_write *write, struct slice writer, int64_t now_ms,
		       const struct rollup_touch *touches, size_t count, size_t *added) MUST_CHECK;

/* ---- Listing ------------------------------------------------------------------------------- */

struct rollup_listing;
typedef void rollup_listing_done(void *owner, int err);

/* The slots that have marks, in any order; while others mark, those that had some throughout are
 * never missed. */
struct rollup_listing *rollup_listing_new(struct store *store, struct executor *executor,
					  rollup_listing_done *done, void *owner);
/* Not while it runs. */
void rollup_listing_free(struct rollup_listing *listing);
/* The first page, or the one behind the last. ERR_BUSY as of the store; then `done` is not called.
 */
int rollup_listing_begin(struct rollup_listing *listing, int64_t now_ms) MUST_CHECK;
int rollup_listing_next(struct rollup_listing *listing, int64_t now_ms) MUST_CHECK;
/* Of the last page; until the next call. *more: there are further ones. */
const struct rollup_slot *rollup_listing_page(const struct rollup_listing *listing, size_t *count,
					      bool *more);

/* ---- Reading ------------------------------------------------------------------------------- */

struct rollup_mark {
	struct slice tenant, series_set;
	int64_t stamp_us;   /* of the last touch */
	int64_t touched_ms; /* when that was, by its writer's wall clock */
	bool deleted;       /* by any of its touches */
	bool finished;      /* set by who rolled it up, before rollup_reading_finish */
};

struct rollup_reading;
typedef void rollup_reading_done(void *owner, int err);

/* The marks of one slot in some partitions, each series once, some MB at a time. */
struct rollup_reading *rollup_reading_new(struct store *store, struct executor *executor,
					  rollup_reading_done *done, void *owner);
/* Not while it runs. */
void rollup_reading_free(struct rollup_reading *reading);
/* The first part, or the one behind the last. `slots` are one slot in up to ROLLUP_READING_MAX
 * partitions. ERR_BUSY as of the store; then `done` is not called. A cell that is damaged or of a
 * later program is left as it is and counted. */
int rollup_reading_begin(struct rollup_reading *reading, const struct rollup_slot *slots,
			 size_t count, int64_t now_ms) MUST_CHECK;
int rollup_reading_next(struct rollup_reading *reading, int64_t now_ms) MUST_CHECK;
/* Of the last part; until the next call. */
struct rollup_mark *rollup_reading_marks(struct rollup_reading *reading, size_t *count, bool *more);
/* Cells of the last part that could not be read. */
size_t rollup_reading_unread(const struct rollup_reading *reading);
/* Takes away the marks of this part that are finished, with the touches that were read: adds that
 * to `write`, to the stage of what was computed or a later one. *from is 0 at first; ERR_LIMIT: the
 * write is full, submit it and go on with another. */
int rollup_reading_finish(struct rollup_reading *reading, struct store_write *write,
			  size_t *from) MUST_CHECK;

#endif
