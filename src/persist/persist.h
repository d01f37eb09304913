/* Persisting (E: espersistd): what polls say is taken from the queues and kept.
 *
 * Each queue of the configuration has a number of workers, each a thread with a loop of its own and
 * a persister of the queue's kind. All polls of a device go to one worker, in their order. A worker
 * takes a batch, has its persister put it into a write, adds to the same write that these polls are
 * done, and goes on when it is durable: a crash at any moment leaves a poll either waiting or
 * stored.
 *
 * The manager, on the main loop, looks every second whether each worker still moves. One that does
 * not for hang_timeout_ms, while the manager looked, is replaced: its polls are given to a new one,
 * and what the old one may still write is the same once more, since what is done is done once.
 * Threads and not processes, because they share the store, the catalog and the inventory, and
 * because whatever could corrupt a worker's memory would end a process that serves them all the
 * same way.
 *
 * Rates are made by the workers, and by jobs that recompute or catch up. What these share is who
 * makes those of which device (claims.h, under a lock of its own).
 *
 * What cannot be a poll, or not one of that OIDSet, is set aside in its queue with the reason. What
 * is a poll of an OIDSet that the configuration does not have, or not for such a queue, is parked
 * where it is (queue.h): a configuration that was edited wrongly loses nothing. */
#ifndef PERSIST_PERSIST_H
#define PERSIST_PERSIST_H

#include "catalog/catalog.h"
#include "inventory/inventory.h"
#include "loop/loop.h"
#include "store/store.h"

struct persist;
struct queue;

struct persist_options {
	struct store *store;
	struct catalog *catalog;
	struct clock *clock;
	struct loop *loop; /* the manager's */
	const struct inventory_conf *conf;
	/* By place in conf->queues; opened, and closed by the caller after this. */
	struct queue *const *queues;
	int64_t retention_ms;
	int64_t future_max_ms;   /* how far ahead of the clock polls may lie; ten minutes at most */
	int64_t derive_every_ms; /* how often bins are made of raw data */
	int64_t hang_timeout_ms;
	size_t counters_max; /* whose last values are remembered, of all workers */
};

struct persist *persist_new(const struct persist_options *options);
/* From now on this is options.retention_ms. */
void persist_set_retention(struct persist *persist, int64_t retention_ms);
/* No recomputation may be at work. Finishes what is; then calls `stopped`, on the loop. */
void persist_stop(struct persist *persist, void (*stopped)(void *owner), void *owner);
void persist_free(struct persist *persist); /* stopped; NULL is allowed */

/* When the worker that has not moved for longest last moved, monotonic ms; INT64_MAX: there is
 * none. One that took the place of another has not moved before it has done so by itself: where
 * each that comes hangs, this stands. Not while it stops. */
int64_t persist_moved_ms(const struct persist *persist);

/* Whether the workers would take a value of that time. ERR_INVALID with a sentence. */
int persist_check_time(const struct persist *persist, int64_t ts_ms, struct errbuf *e) MUST_CHECK;

#endif
