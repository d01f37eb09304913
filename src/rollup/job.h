/* The job: what is marked and quiet becomes roll-ups.
 *
 * One pass looks at every slot that has marks, oldest first within a page, and works on those of
 * the partitions it is given. A mark is ready when nothing has touched its series in that slot for
 * the quiet time and, of a slot that overlaps now, when the slot has ended for as long. One that is
 * not ready holds up nobody else: what is ready beside it in its row, even in its cell, is done.
 * When its slot has been closed for the quiet time, all raw data of it that will ever come is
 * durable: it is rolled up even if late points touch it still, and stays until these end.
 *
 * Per batch of series of one slot: their handles, one read of their raw data, the rows of all
 * granularities, each from the finer one, then one write of the rows, of the aggregators that the
 * metrics have gained, and of the marks as finished. Rows are put, so doing something twice changes
 * nothing; whatever breaks off in between is marked still and done again. A sample that comes
 * between the read and the write has made a mark of its own, which stays. Rows that were not
 * written within the quiet time after their read are not written at all: another job, which has the
 * lease by then, may have written newer ones.
 *
 * What cannot be read (a damaged block) is tried series by series, counted, logged, and left
 * marked; the rest goes on.
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

/* What a pass came to. */
struct rollup_pass {
	uint64_t slots, series; /* that were found marked; a series once per slot */
	uint64_t waiting;       /* of these series, something may come still: they stay marked */
	uint64_t rolled_up;     /* of these series */
	uint64_t expired;       /* of these series: too late for their raw data */
	uint64_t failed;        /* of these series: tried again by the next pass */
	uint64_t unread;        /* marks beside these that cannot be read: left as they are */
	uint64_t rows;          /* written, all granularities */
	/* The oldest slot that had marks when the pass was over, INT64_MAX: none. Only of all
	 * partitions if all are owned. */
	int64_t oldest_slot_s;
	/* The same of slots that late points do not go to: of earlier times only rows are read. Nor
	 * of damaged series: what waits for these may wait for ever. */
	int64_t oldest_open_slot_s;
	int64_t next_ready_ms; /* when the first of what waits will be, INT64_MAX: nothing does */
	/* When the first of what was ready and is not done became ready, INT64_MAX: all was done.
	 */
	int64_t ready_since_ms;
	int err; /* the first error of the store, 0 none */
};

/* A pass over the partitions in *own. Everything that was handed to the store before asof_ms is
 * durable: a mark is ready by the time that it was then. No slot is begun at until_ms (wall clock)
 * or later, nor when the queue, on which it waits, has been stopped. */
struct rollup_pass rollup_job_run(struct rollup_job *job, struct task_queue *queue,
				  const struct partitions *own, int64_t asof_ms, int64_t until_ms);

#endif
