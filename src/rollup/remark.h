/* Marks made again from raw data and late points, where tracking was lost: whatever has any is
 * rolled up once more, which changes nothing where it was rolled up already.
 *
 * Of some series at a time the next sample is looked for, so that stretches without data cost
 * nothing; from there on samples are counted by slots, and slots that have some are marked. Memory
 * is that of some series and slots. Series whose data is damaged are read one by one, left out and
 * counted. What was marked before an error or an end stays; running it again completes it. */
#ifndef ROLLUP_REMARK_H
#define ROLLUP_REMARK_H

#include "rollup/site.h"

struct remark_options {
	const struct rollup_site *site; /* the caller's */
	struct task_queue *queue;       /* of the thread, which waits */
	struct slice tenant, metric;    /* empty: all */
	/* Slots that begin in from <= begin < to; from 1970 on. Of each series only those that are
	 * open still (slot_open_from_ms). */
	int64_t from_ms, to_ms;
	bool with_late;  /* also slots of late points (late.h), whether open or not */
	bool only_count; /* write nothing */
};

struct remark_result {
	uint64_t series; /* looked at */
	uint64_t marked; /* of these series */
	uint64_t marks;  /* series and slot */
	uint64_t slots;
	uint64_t failed;                      /* of these series: their data is damaged */
	int64_t oldest_slot_s, newest_slot_s; /* of those marked; if there are any */
};

/* The store's error, or ERR_CANCELLED; *result is what was done by then. */
int remark(const struct remark_options *options, struct remark_result *result) MUST_CHECK;

#endif
