/* A rebuild: marks are made again of all raw data (remark.h), or of a part, because somebody asks
 * for it; and what follows from that. A rebuild of everything makes lost marks good, and lets
 * backfill (backfill.h) begin. */
#ifndef ROLLUP_REBUILD_H
#define ROLLUP_REBUILD_H

#include "rollup/remark.h"

struct rollup_rebuild {
	struct slice tenant, metric; /* empty: all */
	/* Slots; INT64_MIN and INT64_MAX: all. After rollup_rebuild_check, those that are marked.
	 */
	int64_t from_ms, to_ms;
	bool only_count; /* change nothing */
	bool everything; /* set by rollup_rebuild_check: nothing is left out */
};

/* Chooses whole slots that still have all of their raw data. ERR_INVALID with a sentence: there are
 * none in that time. */
int rollup_rebuild_check(const struct rollup_site *site, struct rollup_rebuild *rebuild,
			 struct errbuf *e) MUST_CHECK;

/* Waits for the store, on the thread of the queue. The store's error, or ERR_CANCELLED; *result is
 * what was done by then, and stays. */
int rollup_rebuild_run(const struct rollup_site *site, struct task_queue *queue,
		       const struct rollup_rebuild *rebuild,
		       struct remark_result *result) MUST_CHECK;

#endif
