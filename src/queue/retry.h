/* Messages that were put aside, given back to their queue: after a configuration was mended, or by
 * a program that can read more. The oldest first, as many as lay there at the beginning; what is
 * put aside once more meanwhile is not tried again.
 *
 * Each is put into the queue first, and leaves the place aside when it is durable there. Whatever
 * ends this in between loses nothing: at worst a message is in both places and comes twice, and the
 * persister's order of time takes the second as said already.
 *
 * Threads: all of it runs on the executor. */
#ifndef QUEUE_RETRY_H
#define QUEUE_RETRY_H

#include "queue/queue.h"

enum { RETRY_SLICE_MAX = 64 }; /* messages that are on their way together */

/* Embedded in its owner, zeroed but for the first part; goes on by itself until `done`. */
struct queue_retry {
	struct queue *queue;
	struct executor *executor;
	/* What ended it: ERR_FULL: the queue has no room for more. ERR_CANCELLED; or the error of
	 * the queue or the store. 0: all were looked at. */
	void (*done)(struct queue_retry *retry, int err);
	void *owner;
	bool cancelled; /* by the owner: it ends as soon as what is on its way has arrived */

	/* Result. */
	size_t given;        /* are in the queue again */
	size_t kept;         /* stay aside: not all of their bytes are there, or too many */
	struct errbuf error; /* with an err, a sentence */

	/* private */
	struct store_read *read;
	struct store_request *request;
	struct store_write *write;
	uint64_t next, until;
	struct retried {
		struct queue_put put;
		uint64_t sequence;
		bool arrived;
	} messages[RETRY_SLICE_MAX];
	size_t count, waiting;
	int err;
};

/* ERR_BUSY: another of this queue is at work. Otherwise `done` follows, perhaps from within, and
 * the queue must not be closed before. */
int queue_retry_start(struct queue_retry *retry) MUST_CHECK;

#endif
