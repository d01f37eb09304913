/* Roll-ups: coarse rows of tagged metrics, made when a slot of time is quiet and kept for years.
 *
 *     ingest  --marks, then data-->  store  <--marks, data--  a job here  --rows-->  store
 *
 * Every sample's slot and series are marked before it is written (marks/marks.h, marks/recent.h). A
 * job looks every while, and when something becomes ready: it takes the leases of its partitions
 * and does a pass (job.h), which reads, computes and writes the rows of quiet slots (batch/,
 * aggregate_row.h). A query asks up to which time its metric is rolled up (rollup_site_before_ms,
 * marks/watermark.h) and which granularities there are.
 *
 * Failure modes. A crash at any point leaves marks, which are worked on again; rows are put, so
 * doing it twice changes nothing. A pass ends before its leases end. A store that refuses is asked
 * again at the next look.
 *
 * Threads: a job (loop/job.h) does all of it. rollup_new, rollup_stop, rollup_is_over and
 * rollup_free belong to the thread of the executor; rollup_state may be called on any. */
#ifndef ROLLUP_ROLLUP_H
#define ROLLUP_ROLLUP_H

#include "base/exec.h"
#include "rollup/job.h"

struct rollup;

/* Whether there is something to do: partitions to roll up or, where others share the store, the
 * session of this process to be kept. */
bool rollup_is_wanted(const struct rollup_site *site);
/* The site is open, and the caller's; the job is wanted. */
struct rollup *rollup_new(const struct rollup_site *site, struct executor *executor);
/* Ends a pass after the slots that are at work and gives the leases back; then it is over. */
void rollup_stop(struct rollup *rollup);
bool rollup_is_over(const struct rollup *rollup);
/* When it is over. */
void rollup_free(struct rollup *rollup);

struct rollup_state {
	struct rollup_pass pass; /* the last */
	int64_t pass_ms;         /* wall clock, when the last pass ended; 0: none has */
	struct partitions held;
	bool running;
	int err;                   /* of taking the leases: 0 none */
	char why[MARKS_WHY_BYTES]; /* pass.err in words */
};
struct rollup_state rollup_state(struct rollup *rollup);

#endif
