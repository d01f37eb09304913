/* Messages that stay in their queue though a worker has seen them: the present configuration does
 * not know what they are, and the next may. This counts them; where they lie is the driver's. Used
 * under the lock of the queue. */
#ifndef QUEUE_PARKED_H
#define QUEUE_PARKED_H

#include "base/base.h"
#include "base/hash_set.h"
#include "base/log.h"

enum { PARKED_REASONS_MAX = 64 }; /* that are told of */

struct queue_parked {
	uint64_t messages, bytes; /* that are parked */
	uint64_t refused;         /* for which there was no room */
	struct log_rate lines;    /* about those */
	struct hash_set reasons;  /* that were told */
};

void queue_parked_init(struct queue_parked *parked);
void queue_parked_release(struct queue_parked *parked);

void queue_parked_add(struct queue_parked *parked, uint64_t bytes);
/* True: this reason was not given before, and there are not too many of them. */
bool queue_parked_is_news(struct queue_parked *parked, const char *reason);
/* Counts one that found no room. True: it is time to say so. */
bool queue_parked_refused(struct queue_parked *parked, int64_t now_ms);

#endif
