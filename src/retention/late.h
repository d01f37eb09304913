/* Late points: what comes for a slot that is closed, since its raw data is about to go or is gone
 * (slot_open_from_ms). Where they are kept at all,
 *
 *  - they go to the table data_late, never to data_raw, for as long as the longest granularity is
 *    kept, and mark their slot as all others do;
 *  - the job makes rows of all of them that a slot has, so a point that comes twice counts once;
 *  - these rows stand in data_downsampled beside those of the buckets, LATE_ROW_BEHIND_MS later,
 *    which no bucket begins at. What is made of raw data is never changed by them, nor they by it.
 *
 * A reader puts both together. Smallest, largest, sum and count of a window come by themselves,
 * whatever rows lie in it. `first`, `last` and `increase` a row of late points has only where its
 * bucket has no row: else those of the bucket hold, since nobody knows any more what came before
 * what. A counter's growth loses nothing by it: it goes on from the last sample of one bucket to
 * the first of the next, and what late ones say lies on the way.
 *
 * Rows are made of all late points of a slot or not at all: where some may have gone, which were
 * kept for less time once than they would be now, nothing more is taken.
 *
 * Any thread; no state. */
#ifndef RETENTION_LATE_H
#define RETENTION_LATE_H

#include "base/base.h"

enum { LATE_ROW_BEHIND_MS = 1 };

struct late_samples {
	/* Late points were older than this when they came, at least; 0: none were ever kept. */
	int64_t after_ms;
	int64_t kept_ms; /* all that are not older than this are there still; 0: of any age */
};

/* Whether a row is one of late points: buckets begin with whole seconds. */
static inline bool late_row_is(int64_t ts_ms)
{
	return ts_ms % 1000 == LATE_ROW_BEHIND_MS;
}

/* When the bucket of a row begins. */
static inline int64_t late_bucket_ms(int64_t ts_ms)
{
	return late_row_is(ts_ms) ? ts_ms - LATE_ROW_BEHIND_MS : ts_ms;
}

/* after_ms of a configuration: the least that the end of closed slots (slot_open_from_ms) can lie
 * behind now. */
static inline int64_t late_samples_after_ms(int64_t raw_ms, int64_t slot_ms, int64_t quiet_ms)
{
	int64_t after_ms = raw_ms - 2 * quiet_ms - slot_ms;
	return after_ms > 1 ? after_ms : 1;
}

#endif
