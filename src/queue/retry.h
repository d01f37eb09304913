/* Messages that were put aside, given back to their queue: after a configuration was mended, or by
 * a program that can read more. The oldest first, as many as lay there at the beginning; what is
 * put aside once more meanwhile is not tried again.
 *
 * Each is put into the queue first, and leaves the place aside when it is durable there. Whatever
 * ends this in between loses nothing: at worst a message is in both places and comes twice, and the
 * persister's order of time takes the second as said already.
 *
 * A plain function that waits, for a job. */
#ifndef QUEUE_RETRY_H
#define QUEUE_RETRY_H

#include "queue/queue.h"

enum { RETRY_SLICE_MAX = 64 }; /* messages that are on their way together */

struct queue_retry_result {
	size_t given; /* are in the queue again */
	size_t kept;  /* stay aside: not all of their bytes are there, or too many */
};

/* 0: all were looked at. ERR_EXISTS: another of this queue is at work. ERR_FULL: the queue has no
 * room for more. ERR_CANCELLED: `tasks` was stopped; what was on its way then has arrived. Or the
 * error of the queue or the store. `result` has what was done until then, `e` a sentence. */
int queue_retry(struct queue *queue, struct task_queue *tasks, struct queue_retry_result *result,
		struct errbuf *e) MUST_CHECK;

#endif
