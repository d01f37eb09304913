/* Queues that have messages in the store, and that nobody opens any more: a queue that was renamed
 * or left out of the configuration. What waits in them is kept until they have their names again;
 * whoever runs the server is told. */
#ifndef QUEUE_LOCAL_UNREAD_H
#define QUEUE_LOCAL_UNREAD_H

#include "base/clock.h"
#include "base/exec.h"
#include "store/store.h"

/* Embedded in its owner; goes on by itself. */
struct queue_unread {
	struct store *store;
	struct clock *clock;
	struct executor *executor;
	/* Whether somebody reads the queue of this name. */
	bool (*is_read)(void *owner, struct slice name);
	void *owner;

	/* private */
	struct store_read *read;
	struct store_request *request;
};

/* Logs each such queue once. */
void queue_unread_look(struct queue_unread *unread);
static inline bool queue_unread_busy(const struct queue_unread *unread)
{
	return unread->read != NULL;
}

#endif
