/* How a door that is no request's stops: it does what is left to do until nothing is, or gives up
 * when its grace is over; then, once and by a task, so that the owner may free the door, it says
 * so.
 *
 * Private to ingest/; the loop's thread. */
#ifndef INGEST_LISTENER_STOP_H
#define INGEST_LISTENER_STOP_H

#include "loop/loop.h"

struct stopping {
	bool begun;
	struct loop *loop;
	struct loop_timer *grace;
	void (*done)(void *owner);
	void *owner;
	struct task told;
};

/* `give_up(door)` is called after `grace_ms`, unless it has ended before. */
void stopping_begin(struct stopping *stopping, struct loop *loop, int64_t grace_ms,
		    loop_timer_fn *give_up, void *door, void (*done)(void *owner), void *owner);
/* Nothing is left to do; of several calls the first counts. */
void stopping_end(struct stopping *stopping);
/* Whether or not it was begun; after the end only, if it was. */
void stopping_release(struct stopping *stopping);

#endif
