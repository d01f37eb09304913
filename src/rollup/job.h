/* Passes: series that are marked and quiet get their roll-ups.
 *
 * A pass looks at every slot that has marks, oldest first within a page, and works on the slots of
 * the partitions that it is given. A mark is ready when nothing has touched its series in that slot
 * for the quiet time and, if the slot is the present one, when the slot has been over for as long.
 * A mark that is not ready holds up no other: its neighbours in the same row or cell are worked on.
 * When a slot has been closed for the quiet time, all raw samples that it will ever get are
 * durable: it is rolled up even if late samples still touch it, and its mark stays until they end.
 *
 * For each batch of series of one slot: find their handles, read their raw samples, make the rows
 * of all granularities, each from the finer one, and write the rows, the aggregators that the
 * metrics have gained, and the marks as finished. Rows are put, so doing it twice changes nothing.
 * A batch that breaks off is still marked and done again. A sample that comes between the read and
 * the write has made a mark of its own, which stays. Rows that were not written within the quiet
 * time after their read are not written at all: another job, which has the lease by then, may have
 * written newer rows.
 *
 * If data cannot be read (a damaged block), the series are tried one by one. A damaged series is
 * counted, logged and stays marked; the others are done.
 *
 * A pass waits for the store, on the thread that calls it. Some threads work on slots at once, the
 * slot workers (slot_worker.h), and end with the pass. */
#ifndef ROLLUP_JOB_H
#define ROLLUP_JOB_H

#include "lease/partition.h"
#include "rollup/site.h"

struct rollup_job;

/* How slot workers run at once: loop/job.h has jobs_run_all. */
typedef void rollup_run_all(const char *name, void (*run)(struct task_queue *queue, void *owner),
			    void *const *owners, size_t count);

/* The site is the caller's, and has one granularity at least. run_all NULL: jobs_run_all. */
struct rollup_job *rollup_job_new(const struct rollup_site *site, rollup_run_all *run_all);
void rollup_job_free(struct rollup_job *job);

/* What a pass has done and found. A series counts once for each of its slots. */
struct rollup_pass {
	uint64_t slots, series; /* that were marked */
	uint64_t waiting;       /* of the series: more samples may come, they stay marked */
	uint64_t rolled_up;     /* of the series */
	uint64_t expired;       /* of the series: their raw samples have gone */
	uint64_t failed;        /* of the series: the next pass tries again */
	uint64_t unread;        /* marks besides that cannot be read: left as they are */
	uint64_t rows;          /* written, of all granularities */
	/* The oldest slot that had marks at the end of the pass, INT64_MAX: none. It is the oldest
	 * of all partitions only if all partitions are owned. */
	int64_t oldest_slot_s;
	/* The same of open slots, without damaged series. Queries of closed slots read rows alone,
	 * and a damaged series may wait for ever. */
	int64_t oldest_open_slot_s;
	int64_t next_ready_ms;  /* when the first mark that waits will be ready, INT64_MAX: none */
	int64_t ready_since_ms; /* since when the first mark that is left has been ready, INT64_MAX:
				 * none is left */
	int err;                /* the first error of the store, 0: none */
};

/* A pass over the partitions in *own. Everything that was handed to the store before asof_ms is
 * durable: marks are judged by that time. Nothing is begun at until_ms (wall clock) or later, nor
 * has any row a stamp of then; and no slot is begun when the queue, on which the pass waits, has
 * been stopped. */
struct rollup_pass rollup_job_run(struct rollup_job *job, struct task_queue *queue,
				  const struct partitions *own, int64_t asof_ms, int64_t until_ms);

#endif
