/* Private: who makes rates of which device and OIDSet. A worker makes those of what it stores, a
 * job recomputes, or catches up; of one device and OIDSet never two at a time (rate/rate.h). So
 * whoever is about to make rates takes a claim first.
 *
 * Threads: any. One lock, under which nothing is called. */
#ifndef PERSIST_CLAIMS_H
#define PERSIST_CLAIMS_H

#include <pthread.h>

#include "base/hash_set.h"

/* Embedded in whoever takes it. */
struct claim {
	struct hash128 source;
	const void *worker; /* that takes it; NULL: a job */
	struct claim *next; /* the list's */
};

struct claims {
	pthread_mutex_t lock; /* guards all below */
	struct claim *first;  /* those that are taken */
	struct hash_set seen; /* sources that workers have heard of since the start */
};

void claims_init(struct claims *claims);
void claims_release(struct claims *claims);

/* A device and the name under which an OIDSet is stored. */
struct hash128 claims_source(struct slice device, struct slice oidset);

/* False: another has it. */
bool claims_take(struct claims *claims, struct claim *claim);
/* Also of one that was dropped. */
void claims_give_back(struct claims *claims, const struct claim *claim);
/* What a worker that hangs has taken is free for others. */
void claims_drop(struct claims *claims, const void *worker);

/* A worker has heard of the source. */
void claims_see(struct claims *claims, struct hash128 source);
bool claims_seen(struct claims *claims, struct hash128 source);

#endif
