/* Tracking: which slots of which series have data that is not rolled up yet. The one contract of
 * all drivers.
 *
 * A slot is a time rounded down to a multiple of the slot's width, in seconds since 1970. Who
 * writes data of a slot marks it first, by a touch (series, slot); who rolls up lists the slots
 * of its partitions that have marks, reads the marks of one, works, and takes away just what it
 * read. A touch that comes meanwhile is another mark and stays, so no late point is lost.
 *
 * Drivers: the store itself (track_store.h).
 *
 * Threads: a track may be used on any. A marking belongs to the thread of its executor; a listing
 * and a reading wait (store/wait.h), and belong to the thread whose queue they are given: a queue
 * that was stopped gives ERR_CANCELLED. */
#ifndef MARKS_MARKS_H
#define MARKS_MARKS_H

#include "base/base.h"
#include "base/exec.h"
#include "model/series.h"
#include "store/store.h"

enum {
	MARKS_READING_MAX = 256, /* partitions of one reading */
	MARKS_UNREAD_NAME_BYTES = 160,
};

struct mark_slot {
	int64_t slot_s;
	uint32_t partition;
};

/* By time, those of one time by partition: below 0, 0, above 0. */
static inline int mark_slot_compare(const struct mark_slot *a, const struct mark_slot *b)
{
	if (a->slot_s != b->slot_s)
		return a->slot_s < b->slot_s ? -1 : 1;
	return (a->partition > b->partition) - (a->partition < b->partition);
}

/* The slot of a time at or after 1970. */
static inline int64_t slot_begin_s(int64_t ts_ms, int64_t slot_ms)
{
	return ts_ms / slot_ms * (slot_ms / 1000);
}

/* Where the first open slot begins: the first one all of whose raw data will still be there when a
 * mark that is made now has been worked on. Of earlier ones nothing more is taken. raw_ms is how
 * long raw data is kept, 0 for ever. */
int64_t slot_open_from_ms(int64_t now_ms, int64_t raw_ms, int64_t slot_ms, int64_t quiet_ms);

/* When all that came for the slot while it was open is durable, whatever has touched it since; then
 * as much time as that took is left for the work. INT64_MAX: it never closes. */
static inline int64_t slot_settled_ms(int64_t slot_s, int64_t raw_ms, int64_t quiet_ms)
{
	return raw_ms ? slot_s * 1000 + raw_ms - quiet_ms : INT64_MAX;
}

/* When nothing more is expected of a series of the slot that was touched then: the quiet time after
 * the slot's end or after the touch, whichever is later. A touch may lie in the future by as much
 * as clocks differ, which is less than the quiet time; one that lies further is from before the
 * clock was set back and says nothing. */
int64_t slot_ready_ms(int64_t slot_s, int64_t touched_ms, int64_t slot_ms, int64_t quiet_ms,
		      int64_t now_ms);

struct marks;

/* Nothing of it may be left. */
void marks_close(struct marks *marks);

enum { MARKS_WHY_BYTES = 200 };

struct marks_state {
	bool degraded; /* what keeps the marks cannot be used; the store keeps them for now */
	char why[MARKS_WHY_BYTES]; /* why it cannot, or could not the last time */
	/* Marks were lost, at lost_ms (wall clock) the last time, and are not all made anew. */
	bool incomplete;
	uint64_t losses;
	int64_t lost_ms;
};

struct watermark;

/* It is told of all touches from now on (behind.h); it outlives the track. Before there are any. */
void marks_tell(struct marks *marks, struct watermark *watermark);

/* All of these on any thread. */
struct marks_state marks_state(struct marks *marks);
/* How often marks were lost: whoever remembers touches that were made when this was another number
 * has to forget them. */
uint64_t marks_losses(const struct marks *marks);
/* Of all raw data that is still there marks have been made anew since `losses` was that; when it is
 * that still, nothing is incomplete any more. */
void marks_restored(struct marks *marks, uint64_t losses);

/* ---- Marking ------------------------------------------------------------------------------- */

struct mark_touch {
	struct mark_slot slot;
	struct slice tenant;
	/* One behind the other, series of the same tags take less. */
	struct series_set series_set;
	/* Samples of it were deleted, so rows of buckets that have none any more are to go. Rows
	 * are never taken away for less: of a bucket whose samples are not there for any other
	 * reason the row is all that is left. */
	bool deleted;
};

/* Puts touches in the order in which all below wants them: by slot and partition, and in
 * these those of deletions last. */
void mark_touches_sort(struct mark_touch *touches, size_t count);

/* Whether that is where marks are best made: as part of a write, before the samples that they stand
 * for. */
bool marks_in_writes(const struct marks *marks);
/* Adds marks for touches[*added] and on to `write`, before their samples or in a stage before
 * theirs, and counts *added up. ERR_LIMIT: the write is full; submit it and go on with another.
 * now_ms is this process's wall clock. Any track can do that, for all that there is to mark. */
int marks_touches_add(struct marks *marks, struct store_write *write, int64_t now_ms,
		      const struct mark_touch *touches, size_t count, size_t *added) MUST_CHECK;

/* Marks by themselves, of any track: the samples are written when they are durable. */
struct marks_marking;
typedef void marks_marking_done(void *owner, int err);

struct marks_marking *marks_marking_new(struct marks *marks, struct executor *executor,
					marks_marking_done *done, void *owner);
/* Not while it runs. */
void marks_marking_free(struct marks_marking *marking);
/* The touches are the caller's and stay until `done`, which is never called from within. ERR_BUSY
 * as of the store; then it is not called at all. After an error some may be marked. */
int marks_marking_begin(struct marks_marking *marking, int64_t now_ms,
			const struct mark_touch *touches, size_t count) MUST_CHECK;

/* The same, waited for. */
int marks_mark_wait(struct marks *marks, struct task_queue *queue, int64_t now_ms,
		    const struct mark_touch *touches, size_t count) MUST_CHECK;

/* ---- Listing ------------------------------------------------------------------------------- */

struct marks_listing;

/* The slots that have marks, in any order; while others mark, those that had some throughout are
 * never missed. */
struct marks_listing *marks_listing_new(struct marks *marks);
void marks_listing_free(struct marks_listing *listing);
/* The first page, or the one after the last. The store's error, or ERR_RETRY: Redis could not be
 * asked. */
int marks_listing_begin(struct marks_listing *listing, struct task_queue *queue,
			int64_t now_ms) MUST_CHECK;
int marks_listing_next(struct marks_listing *listing, struct task_queue *queue,
		       int64_t now_ms) MUST_CHECK;
/* Of the last page; until the next call. *more: there are further ones. */
const struct mark_slot *marks_listing_page(const struct marks_listing *listing, size_t *count,
					   bool *more);

/* ---- Reading ------------------------------------------------------------------------------- */

struct mark {
	struct slice tenant;
	struct series_set series_set;
	int64_t stamp_us;   /* of the last touch; the driver's */
	int64_t touched_ms; /* when that was, by its writer's wall clock */
	int64_t first_ms;   /* the same of the first of its touches that is there still */
	bool deleted;       /* by any of its touches */
	bool waits;         /* set by who rolls up: more of it may come */
	/* Likewise, before marks_reading_finish: */
	bool finished; /* it was rolled up */
	bool unseen;   /* it was not, and its first touch is asked for again */
};

struct marks_reading;

/* The marks of one slot in some partitions, each series once, some MB at a time. */
struct marks_reading *marks_reading_new(struct marks *marks);
void marks_reading_free(struct marks_reading *reading);
/* The first part, or the one after the last. `slots` are one slot in up to MARKS_READING_MAX
 * partitions. Errors as of a listing. What is damaged or of a later program is left as it is and
 * counted. */
int marks_reading_begin(struct marks_reading *reading, struct task_queue *queue,
			const struct mark_slot *slots, size_t count, int64_t now_ms) MUST_CHECK;
int marks_reading_next(struct marks_reading *reading, struct task_queue *queue,
		       int64_t now_ms) MUST_CHECK;
/* Of the last part; until the next call. */
struct mark *marks_reading_marks(struct marks_reading *reading, size_t *count, bool *more);
/* What of the last part could not be read, and which the first of it is: words. */
size_t marks_reading_unread(const struct marks_reading *reading);
const char *marks_reading_unread_name(const struct marks_reading *reading);
/* Takes away the marks of this part that are finished, as far as nothing has touched them since
 * they were read. What was computed of them is durable. After an error some may be left. */
int marks_reading_finish(struct marks_reading *reading, struct task_queue *queue) MUST_CHECK;

#endif
