/* Viewers of the news of tenants: reports are told to them as they come to count.
 *
 * One job asks the books for all viewers: of each tenant that has some, when something was written
 * there or a second has passed; one tenant after the other, so that one whose book is at work holds
 * up the others. What it finds it posts to the thread of the executor, once for all viewers of the
 * tenant. A viewer begins with what was received since the report that it saw last.
 *
 * Threads: the functions here belong to the thread of the executor, and so do viewers. Both threads
 * use the list of tenants, and of each the viewers that begin and the number of all; a lock guards
 * these. */
#ifndef FAULT_LIVE_H
#define FAULT_LIVE_H

#include "fault/book.h"
#include "fault/message_live.h"
#include "loop/job.h"

struct fault;
struct fault_live;

enum { FAULT_REPLAY_MAX = 1000 }; /* reports from before a viewer came */

struct fault_told {
	/* Valid during the call. Those from before are the viewer's; of others it looks itself. */
	const struct fault_listed *reports;
	size_t count;
	/* What a viewer has made of each, for the next one; data NULL: nothing yet. Its bytes go to
	 * the arena. */
	struct slice *made;
	const struct fault_merges *merges; /* reports have the roots of their groups by these */
	struct arena *arena;
	uint64_t missed; /* that many more came before them and are not told; about */
	bool cut;        /* more were received since the last that the viewer saw */
	bool begins;     /* reports from before; from now on it is told what comes */
	/* With `begins`: the newest report of the tenant, of whatever kind. date_us 0: none. */
	struct fault_order newest;
};

/* Whoever wants to be told. It begins with the first four filled in. */
struct fault_viewer {
	/* There may be nothing to tell. The viewer may leave within. */
	void (*show)(struct fault_viewer *viewer, const struct fault_told *told);
	bool has_seen; /* only then it is told of what was received after `seen` */
	struct fault_order seen;
	const struct slice *texts; /* FAULT_TEXTS, as of a list; they are copied */
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
/* Something was written, or messages were made. */
void fault_live_wake(struct fault_live *live);
struct message_live *fault_live_messages(struct fault_live *live);

/* The tenant's name is copied. */
void fault_live_watch(struct fault_live *live, struct fault_viewer *viewer, struct slice tenant);
/* It is told nothing any more. Allowed for one that does not watch. */
void fault_live_leave(struct fault_viewer *viewer);

#endif
