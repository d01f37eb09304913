/* Private: the roll-ups of some series in one slot, read, computed and written.
 *
 * Raw data is read of those series whose raw data of the slot is all there. Late points (late.h)
 * are read where some can have come for the slot, and then which rows there are: what a row of late
 * points says depends on them. Rows that are to go are looked for only where samples were deleted:
 * of buckets that have none any more. Series that lie together are read together; where something
 * of them is damaged they are read one by one.
 *
 * It waits for the store, on the thread of the queue that it is given. */
#ifndef ROLLUP_BATCH_BATCH_H
#define ROLLUP_BATCH_BATCH_H

#include "rollup/job.h"

struct rollup_batch;

struct rollup_batch *rollup_batch_new(const struct rollup_site *site);
void rollup_batch_free(struct rollup_batch *batch);

/* Whether late points may have come for the slot. */
bool rollup_batch_has_late(const struct rollup_site *site, int64_t slot_s);

/* How many series one batch may have. */
size_t rollup_batch_max(const struct granularities *granularities);
/* A mark that is to be rolled up. */
struct rollup_batch_mark {
	struct mark *mark;
	bool stays; /* it is not finished by that: late points come still */
	bool lost;  /* raw data of it there was, and it has begun to expire */
};

struct rollup_batch_result {
	uint64_t rows, failed;
	uint64_t expired; /* of these series nothing is left to make rows of */
	uint64_t halved;  /* of these only late points are, raw data was lost */
};

/* Rolls up these marks of one slot, at most rollup_batch_max many. `stamp_us`: of the rows, taken
 * before the call, since the samples are read in it. 0: what could be computed of
 * each series is durable, and its mark says `finished`, or else its data is damaged or the mark
 * stays. Otherwise the store's error; nothing is finished. */
int rollup_batch_run(struct rollup_batch *batch, struct task_queue *queue, int64_t slot_s,
		     int64_t stamp_us, const struct rollup_batch_mark *marks, size_t count,
		     struct rollup_batch_result *result) MUST_CHECK;

#endif
