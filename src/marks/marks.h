/* Marks: which slots of which series have samples that are not rolled up yet. This is the one
 * contract of all drivers: mark, list, read, finish.
 *
 * A slot is a time rounded down to a multiple of the slot's width, in seconds since 1970. Whoever
 * writes samples of a slot marks it first, by a touch (series, slot). Whoever rolls up lists the
 * slots of its partitions that have marks, reads the marks of one slot, works, and finishes exactly
 * the marks that it read. A touch that comes meanwhile is another mark and stays, so no late sample
 * is lost.
 *
 * Drivers: the store itself (marks/store.h) and Redis (marks/redis/redis.h).
 *
 * Threads: struct marks may be used on any. Marking does not wait; its end comes on the executor
 * that it was given. Listing, reading and finishing wait (store/wait.h) on the calling thread's
 * queue; a queue that was stopped gives ERR_CANCELLED. */
#ifndef MARKS_MARKS_H
#define MARKS_MARKS_H

#include "base/base.h"
#include "base/exec.h"
#include "lease/partition.h"
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

struct marks_marking {
	struct executor *executor;          /* of `done` */
	void (*done)(void *owner, int err); /* after an error some touches may be marked */
	void *owner;
	int64_t now_ms;                   /* this process's wall clock */
	const struct mark_touch *touches; /* sorted; the caller's, who keeps them until `done` */
	size_t count;                     /* at least 1 */
};

/* Marks by themselves, with every driver: their samples are written when the marks are durable.
 * `marking` is copied; `done` is never called from within. ERR_BUSY as of the store: `done` is not
 * called. */
int marks_mark(struct marks *marks, const struct marks_marking *marking) MUST_CHECK;
/* The same, and waits for the end; `count` may be 0. */
int marks_mark_wait(struct marks *marks, struct task_queue *queue, int64_t now_ms,
		    const struct mark_touch *touches, size_t count) MUST_CHECK;

/* ---- Listing ------------------------------------------------------------------------------- */

/* The slots that have marks, page by page in any order. A slot that has marks throughout the
 * listing is never missed; one that has none any more may be listed. It begins with {.marks =
 * marks} and ends with marks_listing_release. */
struct marks_listing {
	struct marks *marks;
	const struct partitions *own; /* the caller's: no others are wanted; NULL: all are */
	/* With `own`, in a store that is shared: of writes that failed there may be marks besides,
	 * which nobody waits for; they are not looked for. */
	bool only_told;
	/* The last page. */
	struct mark_slot *slots;
	size_t count;
	bool over; /* there are no further pages */
	/* Where the next page begins; the drivers'. */
	struct store_token token;
	uint64_t cursor;
	bool store_over;
	size_t room;
};

/* The next page, empty after an error: the store's, or ERR_RETRY: Redis could not be asked. */
int marks_list(struct marks_listing *listing, struct task_queue *queue, int64_t now_ms) MUST_CHECK;
void marks_listing_release(struct marks_listing *listing);

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
	/* And before marks_finish: */
	bool finished; /* it was rolled up */
	bool unseen;   /* it was not, and its first touch is asked for again */
};

struct marks_store_reading;
struct redis_reading;

/* The marks of one slot in some partitions, each series once, part by part of some MB. It begins
 * with
 * {.marks = marks, .slots = slots, .slot_count = count} and ends with marks_reading_release. A mark
 * that is damaged, or of a later version, is left as it is and counted. */
struct marks_reading {
	struct marks *marks;
	const struct mark_slot
		*slots; /* one slot in up to MARKS_READING_MAX partitions; they stay */
	size_t slot_count;
	/* When all marks of the slot are finished, and the last was made before this time (wall
	 * clock), the slot is listed no more. 0: it goes on being listed. */
	int64_t settled_ms;
	/* The last part. */
	struct mark *part;
	size_t count;
	size_t unread;                             /* marks that cannot be read */
	char unread_name[MARKS_UNREAD_NAME_BYTES]; /* the first of these in words */
	bool over;                                 /* there are no further parts */
	/* The drivers'; NULL: not begun. */
	bool store_over;
	struct marks_store_reading *of_store;
	struct redis_reading *of_redis;
};

/* The next part, empty after an error. Errors as of a listing. */
int marks_read(struct marks_reading *reading, struct task_queue *queue, int64_t now_ms) MUST_CHECK;
/* Removes the marks of the last part that are finished and that nothing has touched since they were
 * read. Their rows are durable. After an error some marks may be left. */
int marks_finish(struct marks_reading *reading, struct task_queue *queue) MUST_CHECK;
void marks_reading_release(struct marks_reading *reading);

#endif
