/* Roll-ups: coarse rows of tagged metrics, made when a slot of time is quiet and kept for years.
 *
 *     ingest  --marks, then data-->  store  <--marks, data--  a thread here  --rows-->  store
 *
 * What is written is marked by slot and series (track.h, touches.h). A thread of its own looks
 * every while, and when something becomes ready, takes the leases of its partitions, and does a
 * pass of the job: slots that are quiet are read, computed and written (job.h, row.h). A query asks
 * up to which time its metric is rolled up (rollup_before_ms, behind.h) and which granularities
 * there are (granularity.h).
 *
 * Failure modes. A crash at any point leaves marks, which are worked on again; rows are put, so
 * twice is once. A lease that ends during a pass ends the pass. A store that refuses is asked again
 * at the next look.
 *
 * Threads: a job (loop/job.h) does all of it. rollup_new, rollup_stop, rollup_is_over and
 * rollup_free belong to the thread of the executor; rollup_before_ms and
 * rollup_state may be called on any. */
#ifndef ROLLUP_ROLLUP_H
#define ROLLUP_ROLLUP_H

#include "base/exec.h"
#include "lease/partition.h"
#include "rollup/backfill.h"
#include "rollup/job.h"

struct rollup;

struct rollup_options {
	const struct rollup_site *site; /* the caller's; it has one granularity at least */
	struct backfill *backfill;      /* the caller's */
	struct executor *executor;      /* likewise */
	struct partitions own;          /* one at least */
	bool share;                     /* those of `own` with others that share */
	int64_t every_ms, lease_ms;
	struct slice name; /* of this process among those that roll up; the caller's */
};

struct rollup *rollup_new(const struct rollup_options *options);
/* Ends a pass after what is being worked on, gives the leases back; then it is over. */
void rollup_stop(struct rollup *rollup);
bool rollup_is_over(const struct rollup *rollup);
/* When it is over. */
void rollup_free(struct rollup *rollup);

/* Everything of the metric and of an earlier time is rolled up in all granularities, so far as this
 * process has written it or the last pass has seen its mark; 0 before the first, while marks are
 * lost, and where other processes have partitions, too, of which nothing is known. The metric's
 * plain name. */
int64_t rollup_before_ms(struct rollup *rollup, struct slice tenant, struct slice metric);

struct rollup_state {
	struct rollup_pass pass; /* the last */
	int64_t pass_ms;         /* wall clock, when it was over; 0: none was */
	struct partitions held;
	bool running;
	int err;                   /* of taking the leases: 0 none */
	char why[MARKS_WHY_BYTES]; /* pass.err in words */
};
struct rollup_state rollup_state(struct rollup *rollup);

#endif
