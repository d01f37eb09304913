/* Viewers of the news of tenants: reports are told to them as they come to count.
 *
 * One job asks the books for all viewers: of each tenant that has some, when something was written
 * there or a second has passed. What it finds it posts to the thread of the executor, once for all
 * viewers of the tenant. A viewer begins with what was received since the report that it saw last.
 *
 * Threads: all but what the job does belong to the thread of the executor. */
#ifndef FAULT_LIVE_H
#define FAULT_LIVE_H

#include "fault/book.h"
#include "loop/job.h"

struct fault;
struct fault_live;

enum { FAULT_REPLAY_MAX = 1000 }; /* reports from before a viewer came */

struct fault_told {
	const struct fault_listed *reports; /* valid during the call */
	size_t count;
	uint64_t missed; /* that many more came before them and are not told; about */
	bool cut;        /* more were received since the last that the viewer saw */
};

/* Whoever wants to be told. It begins with the first three filled in. */
struct fault_viewer {
	/* The first call says that from now on it is told; others may have nothing to tell. The
	 * viewer may leave within. */
	void (*show)(struct fault_viewer *viewer, const struct fault_told *told);
	bool has_seen; /* only then it is told of what was received after `seen` */
	struct fault_order seen;
	/* private */
	struct live_feed *feed; /* NULL: it does not watch */
	struct live_start *start;
	uint64_t next; /* of news */
	struct fault_viewer *following, **place;
};

struct fault_live *fault_live_new(struct fault *fault);
/* Its job is over, and nobody watches. */
void fault_live_free(struct fault_live *live);
/* The job; `done` comes when it is over. */
void fault_live_start(struct fault_live *live, struct executor *executor);
void fault_live_stop(struct fault_live *live);
bool fault_live_is_over(const struct fault_live *live);
/* Several times a second. */
void fault_live_tick(struct fault_live *live);
/* Something was written. */
void fault_live_wake(struct fault_live *live);

/* The tenant's name is copied. */
void fault_live_watch(struct fault_live *live, struct fault_viewer *viewer, struct slice tenant);
/* It is told nothing any more. Allowed for one that does not watch. */
void fault_live_leave(struct fault_viewer *viewer);

#endif
