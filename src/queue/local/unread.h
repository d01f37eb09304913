/* Queues that have messages in the store, and that nobody opens any more: a queue that was renamed
 * or left out of the configuration. What waits in them is kept until they have their names again;
 * whoever runs the server is told. */
#ifndef QUEUE_LOCAL_UNREAD_H
#define QUEUE_LOCAL_UNREAD_H

#include "base/clock.h"
#include "store/store.h"

/* Logs each such queue once; blocks until they have been looked for. `is_read`: whether somebody
 * reads the queue of this name. */
void queue_unread_report(struct store *store, struct clock *clock,
			 bool (*is_read)(void *owner, struct slice name), void *owner);

#endif
