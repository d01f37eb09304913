/* Which stored data answers which part of a query's time: raw data, or the roll-ups of a
 * granularity.
 *
 * Windows. A granularity serves them if their width is a multiple of its own: then each bucket lies
 * in one window. The coarsest granularity that serves them answers all whole buckets that it still
 * has and that are rolled up; the edges are left to the next finer one, and at last to raw data. So
 * parts join at edges of buckets, and no sample is counted twice. Where raw data is gone, buckets
 * stand for their time though some of their samples may not be rolled up yet, and a bucket that
 * `start` or `end` cuts counts whole where it begins.
 *
 * Points as they are stored: raw data as far back as it goes, before it the finest granularity that
 * goes further, and so on.
 *
 * Time that no data serves is a part of its own.
 *
 * Pure. */
#ifndef QUERY_PLAN_H
#define QUERY_PLAN_H

#include "query/query.h"
#include "retention/granularity.h"

/* Times of queries are cut to this, 36 million years either way: sums with them are safe. */
#define PLAN_TIME_MAX_MS (INT64_C(1) << 60)

struct plan_terms {
	int64_t start_ms, end_ms, now_ms;          /* start <= end */
	const struct granularities *granularities; /* NULL: none */
	int64_t raw_retention_ms;                  /* 0: for ever */
	int64_t raw_whole_ms; /* what is older may be gone sooner, after a raise; 0: not so */
	/* Not 0: late points are kept (retention/late.h), and this is the quiet time. Raw data of a
	 * slot that is closed does not have them: it counts as gone. */
	int64_t late_quiet_ms;
	int64_t rolled_before_ms; /* all data before it is rolled up, but what is */
	/* before this, by granularity: there raw data, where it is kept, knows more */
	int64_t rolled_since_ms[GRANULARITIES_MAX];
	bool counter; /* the metric's roll-ups are those of a counter */
	enum query_fn fn;
	int64_t window_ms; /* 0 with fn: to be chosen, or FN_LAST of all */
	bool stored;       /* roll-ups of the width window_ms, or chosen, and nothing else */
	uint64_t points;   /* at most so many windows; 0: any number */
};

struct query_plan {
	enum query_fn fn;
	int64_t window_ms;
	uint64_t buckets_over; /* of `stored`: so many are more than `points`; 0: they are not */
	size_t count;          /* the parts, side by side from start to end; 0: start is end */
	struct query_part parts[QUERY_PARTS_MAX];
};

void plan_make(const struct plan_terms *terms, struct query_plan *plan);

/* How many windows the time from start to end touches. */
uint64_t plan_windows(int64_t start_ms, int64_t end_ms, int64_t window_ms);

#endif
