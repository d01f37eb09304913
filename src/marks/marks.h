/* Marks: which slots of which series have samples that are not rolled up yet. This is the one
 * contract of all drivers: mark, list, read, finish.
 *
 * A slot is a time rounded down to a multiple of the slot's width, in seconds since 1970. Whoever
 * writes samples of a slot marks it first, by a touch (series, slot). Whoever rolls up lists the
 * slots of its partitions that have marks, reads the marks of one slot, works, and finishes exactly
 * the marks that it read. A touch that comes meanwhile is another mark and stays, so no late sample
 * is lost.
 *
 * Drivers: the store itself (marks/store.h) and Redis (redis/redis.h).
 *
 * Threads: struct marks may be used on any. A marking belongs to the thread of its executor. A
 * listing and a reading wait (store/wait.h) and belong to the thread whose queue they are given; a
 * queue that was stopped gives ERR_CANCELLED. */
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

/* Where the first open slot begins: the first slot all of whose raw samples will still be there
 * when a mark that is made now has been worked on. Earlier slots are closed and take nothing more.
 * raw_ms is how long raw samples are kept, 0 for ever. */
int64_t slot_open_from_ms(int64_t now_ms, int64_t raw_ms, int64_t slot_ms, int64_t quiet_ms);

/* When all samples that came for the slot while it was open are durable, whatever has touched it
 * since. From then on a quiet time is left for the work. INT64_MAX: the slot never closes. */
static inline int64_t slot_settled_ms(int64_t slot_s, int64_t raw_ms, int64_t quiet_ms)
{
	return raw_ms ? slot_s * 1000 + raw_ms - quiet_ms : INT64_MAX;
}

/* When no more samples are expected of a series of the slot: the quiet time after the slot's end or
 * after touched_ms, whichever is later. A touch may lie in the future by as much as clocks differ,
 * which is less than the quiet time. A touch further in the future was made before the clock was
 * set back and does not count. */
int64_t slot_ready_ms(int64_t slot_s, int64_t touched_ms, int64_t slot_ms, int64_t quiet_ms,
		      int64_t now_ms);

struct marks;

/* No marking, listing or reading of it may be left. */
void marks_close(struct marks *marks);

enum { MARKS_WHY_BYTES = 200 };

struct marks_state {
	bool degraded;             /* Redis cannot be used; the store keeps the marks for now */
	char why[MARKS_WHY_BYTES]; /* why Redis cannot be used, or could not the last time */
	/* Marks were lost, at lost_ms (wall clock) the last time, and not all are made again. */
	bool incomplete;
	uint64_t losses;
	int64_t lost_ms;
};

struct watermark;

/* The watermark is told of all touches from now on; it outlives the marks. Before the first touch.
 */
void marks_tell(struct marks *marks, struct watermark *watermark);

/* These three may be called on any thread. */
struct marks_state marks_state(struct marks *marks);
/* How often marks were lost. Whoever remembers touches has to forget them when this number changes.
 */
uint64_t marks_losses(const struct marks *marks);
/* All raw samples that are still there have been marked since marks_losses was `losses`. If it
 * still is, nothing is incomplete any more. */
void marks_restored(struct marks *marks, uint64_t losses);

/* ---- Marking ------------------------------------------------------------------------------- */

struct mark_touch {
	struct mark_slot slot;
	struct slice tenant;
	/* Series of the same tags take less room when they follow each other. */
	struct series_set series_set;
	/* Samples of the series were deleted in this slot, so rows of buckets without samples are
	 * to go. Rows go for no other reason: a bucket may have lost its samples because they
	 * expired, and then its row is all that is left. */
	bool deleted;
};

/* Sorts touches as the functions below want them: by slot and partition, and in each of these the
 * touches of deletions last. */
void mark_touches_sort(struct mark_touch *touches, size_t count);

/* Whether marks are best made as part of the write that has their samples. */
bool marks_in_writes(const struct marks *marks);
/* Adds marks for touches[*added] and those after it to `write`, and counts *added up. They have to
 * stand before their samples, or in an earlier stage. ERR_LIMIT: the write is full; submit it and
 * continue with another one. now_ms is this process's wall clock. Every driver can do this. */
int marks_touches_add(struct marks *marks, struct store_write *write, int64_t now_ms,
		      const struct mark_touch *touches, size_t count, size_t *added) MUST_CHECK;

/* Marks by themselves, with every driver: their samples are written when the marks are durable. */
struct marks_marking;
typedef void marks_marking_done(void *owner, int err);

struct marks_marking *marks_marking_new(struct marks *marks, struct executor *executor,
					marks_marking_done *done, void *owner);
/* Not while the marking runs. */
void marks_marking_free(struct marks_marking *marking);
/* The touches are the caller's and stay until `done`, which is never called from within. ERR_BUSY
 * as of the store: `done` is not called. After an error some touches may be marked. */
int marks_marking_begin(struct marks_marking *marking, int64_t now_ms,
			const struct mark_touch *touches, size_t count) MUST_CHECK;

/* The same, and waits for the end. */
int marks_mark_wait(struct marks *marks, struct task_queue *queue, int64_t now_ms,
		    const struct mark_touch *touches, size_t count) MUST_CHECK;

/* ---- Listing ------------------------------------------------------------------------------- */

struct marks_listing;

/* The slots that have marks, in any order. A slot that has marks throughout the listing is never
 * missed. */
struct marks_listing *marks_listing_new(struct marks *marks);
void marks_listing_free(struct marks_listing *listing);
/* The first page, or the one after the last. The store's error, or ERR_RETRY: Redis could not be
 * asked. */
int marks_listing_begin(struct marks_listing *listing, struct task_queue *queue,
			int64_t now_ms) MUST_CHECK;
int marks_listing_next(struct marks_listing *listing, struct task_queue *queue,
		       int64_t now_ms) MUST_CHECK;
/* The slots of the last page, until the next call. *more: there are further pages. */
const struct mark_slot *marks_listing_page(const struct marks_listing *listing, size_t *count,
					   bool *more);

/* ---- Reading ------------------------------------------------------------------------------- */

struct mark {
	struct slice tenant;
	struct series_set series_set;
	int64_t stamp_us;   /* of the last touch; the driver's */
	int64_t touched_ms; /* when the last touch was made, by its writer's wall clock */
	int64_t first_ms;   /* when the first touch that is still there was made */
	bool deleted;       /* one of its touches says so */
	/* Set by whoever rolls up: */
	bool waits; /* more samples may come */
	/* And before marks_reading_finish: */
	bool finished; /* it was rolled up */
	bool unseen;   /* it was not, and its first touch is asked for again */
};

struct marks_reading;

/* The marks of one slot in some partitions, each series once, some MB at a time. */
struct marks_reading *marks_reading_new(struct marks *marks);
void marks_reading_free(struct marks_reading *reading);
/* The first part, or the one after the last. `slots` are one slot in up to MARKS_READING_MAX
 * partitions. Errors as of a listing. A mark that is damaged, or of a later version, is left as it
 * is and counted. */
int marks_reading_begin(struct marks_reading *reading, struct task_queue *queue,
			const struct mark_slot *slots, size_t count, int64_t now_ms) MUST_CHECK;
int marks_reading_next(struct marks_reading *reading, struct task_queue *queue,
		       int64_t now_ms) MUST_CHECK;
/* The marks of the last part, until the next call. */
struct mark *marks_reading_marks(struct marks_reading *reading, size_t *count, bool *more);
/* How many marks of the last part could not be read, and the first of them in words. */
size_t marks_reading_unread(const struct marks_reading *reading);
const char *marks_reading_unread_name(const struct marks_reading *reading);
/* Removes the marks of this part that are finished and that nothing has touched since they were
 * read. Their rows are durable. After an error some marks may be left. */
int marks_reading_finish(struct marks_reading *reading, struct task_queue *queue) MUST_CHECK;

#endif
