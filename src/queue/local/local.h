/* The durable queue in the store.
 *
 * A message is a log cell (store.h): row = queue and shard, column = its number in the shard.
 * Value:
 *
 *	put i64 (ms) | key length u8 | key | message
 *
 * Numbers are given under the queue's lock, in the order in which the store takes the writes, so
 * the row has the order of the puts. `durable` follows the puts that are complete without a gap;
 * workers read what lies below it, from `first`, the lowest number that is not acknowledged.
 * Nothing that is durable stays in memory: what waits for hours costs no more than what waits for
 * milliseconds, and a restart begins where a worker would go on anyway.
 *
 * A message that may be held has its number and waits in memory for its worker, which receives it
 * after all that is stored of its shard. If the worker acknowledges it soon, it never is in the
 * store. If the worker needs too long or is cancelled, or more is held than may be, the message is
 * written like any other, also while a batch has it: then the acknowledgement removes it.
 *
 * A parked message stays in the row: a worker goes on after it, and removes what lies around it. At
 * the next open it is found there and delivered first, with the number that it always had.
 *
 * Bounds: messages and bytes that wait, and as many again that are parked. The store has its own
 * beside them. */
#ifndef QUEUE_LOCAL_LOCAL_H
#define QUEUE_LOCAL_LOCAL_H

#include "queue/queue.h"

struct queue_local_options {
	struct slice name;
	unsigned workers;
	uint64_t messages_max;    /* that wait, or are parked; 0 = 1,000,000 */
	uint64_t bytes_max;       /* likewise; 0 = 1 GiB */
	size_t take_messages_max; /* of one batch; 0 = 512 */
	size_t take_bytes_max;    /* likewise, but never less than one message; 0 = 8 MiB */
	struct store *store;
	struct clock *clock;
};

/* Finds what waits; blocks until that is counted. ERR_INVALID: name or workers; or the store's
 * error. */
int queue_local_open(const struct queue_local_options *options, struct queue **queue,
		     struct errbuf *e) MUST_CHECK;

#endif
