/* The messages that wait between the poller and the queue while the queue is busy: bounded in
 * messages and bytes; what does not fit any more pushes out the oldest, which is counted. One
 * thread. */
#ifndef SNMP_POLLER_RING_H
#define SNMP_POLLER_RING_H

#include "base/base.h"

struct oidset;

struct ring_message {
	struct ring_message *next;
	const struct oidset *oidset;
	struct slice device, bytes; /* after this struct */
};

struct ring {
	struct ring_message *first, *last;
	size_t messages, bytes;
	size_t messages_max, bytes_max;
};

void ring_init(struct ring *ring, size_t messages_max, size_t bytes_max);
void ring_release(struct ring *ring);
/* Copies it; how many older ones had to go, or 1 if it alone is too large. */
size_t ring_push(struct ring *ring, const struct oidset *oidset, struct slice device,
		 struct slice bytes);
/* Drops the oldest, which there is. */
void ring_pop(struct ring *ring);

#endif
