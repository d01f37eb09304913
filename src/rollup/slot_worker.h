/* Private: rolls up the marks of one slot in some partitions, part by part and batch by batch. The
 * series of a batch are those that lie together in the store: of one set of tags after the other,
 * whatever partitions they are in.
 *
 * A part's marks are finished together when the rows of all its batches are durable. A slot worker
 * waits for the store, and belongs to one thread at a time. */
#ifndef ROLLUP_SLOT_WORKER_H
#define ROLLUP_SLOT_WORKER_H

#include "rollup/job.h"

struct slot_worker;

struct slot_worker *slot_worker_new(const struct rollup_site *site);
void slot_worker_free(struct slot_worker *worker);

struct slot_worker_result {
	uint64_t series, rolled_up, expired, failed, rows;
	uint64_t unread;  /* marks that are none, for all that can be read of them */
	uint64_t waiting; /* marks that stay since more may come; some are rolled up all the same */
	int64_t next_ready_ms;  /* INT64_MAX: nothing waits */
	int64_t ready_since_ms; /* when the first of what was ready became so; INT64_MAX: none was
				 */
	bool cut;               /* it ended at until_ms, before it was through */
};

/* `slots`: one slot in up to MARKS_READING_MAX partitions. asof_ms: see rollup_job_run; seen_ms:
 * what was ready at this time has been rolled up, 0: of nothing that is known. No batch is begun at
 * until_ms or later, nor with such a stamp where others share the store. After an error of the
 * store *result is what was done by then. */
int slot_worker_run(struct slot_worker *worker, struct task_queue *queue,
		    const struct mark_slot *slots, size_t count, int64_t asof_ms, int64_t seen_ms,
		    int64_t until_ms, struct slot_worker_result *result) MUST_CHECK;

#endif
