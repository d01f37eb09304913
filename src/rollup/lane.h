/* Private: works through the marks of one slot in some partitions, part by part and batch by batch.
 * The series of a batch are those that lie together in the store: of one set of tags after the
 * other, whatever partitions they are in.
 *
 *     begin: READS ----> ROLLS (a batch after the other) ----> FINISHES ----> READS the next part
 *                                                                            or done
 *
 * A part's marks are finished together when the rows of all its batches are durable. The thread of
 * the executor. */
#ifndef ROLLUP_LANE_H
#define ROLLUP_LANE_H

#include "rollup/job.h"

struct rollup_lane;
typedef void rollup_lane_done(struct rollup_lane *lane, int err);

struct rollup_lane *rollup_lane_new(const struct rollup_job_options *options,
				    rollup_lane_done *done, void *owner);
/* Not while it works. */
void rollup_lane_free(struct rollup_lane *lane);
void *rollup_lane_owner(const struct rollup_lane *lane);

/* `slots`: one slot in up to ROLLUP_READING_MAX partitions. `done` comes, never from within.
 * asof_ms: see rollup_job_start; seen_ms: what was ready at this time has been rolled up, 0: of
 * nothing that is known. */
void rollup_lane_start(struct rollup_lane *lane, const struct rollup_slot *slots, size_t count,
		       int64_t asof_ms, int64_t seen_ms);

/* Of the last slot. */
struct rollup_lane_result {
	uint64_t series, rolled_up, expired, failed, rows;
	uint64_t unread;  /* marks that are none, for all that can be read of them */
	uint64_t waiting; /* marks that stay since more may come; some are rolled up all the same */
	int64_t next_ready_ms;  /* INT64_MAX: nothing waits */
	int64_t ready_since_ms; /* when the first of what was ready became so; INT64_MAX: none was
				 */
};
struct rollup_lane_result rollup_lane_result(const struct rollup_lane *lane);

#endif
