/* Leases: who rolls up which partitions. A lease is a conditional cell (`leases`, kind "rollup",
 * name the partition's number) that expires; its value is the holder's name.
 *
 * All wanted leases are taken and renewed in one write. A process that shares (`any`) is listed in
 * the same way (kind "rollup-member", name the holder's). It renews the leases that it has; then it
 * looks who else is listed, and takes free leases up to its share or gives back those beyond it.
 * The share is the partitions that no stranger holds, divided by the members, rounded up. So shares
 * are even some looks after a process came or went, and the leases of a process that died are taken
 * over when they end.
 *
 * When leases_take returns, everything that was handed to the store before it is durable. The job
 * relies on that.
 *
 * Leases wait for the store, on the thread of the queue that they are given. */
#ifndef LEASE_LEASE_H
#define LEASE_LEASE_H

#include "base/clock.h"
#include "lease/partition.h"
#include "store/store.h"

struct leases;

struct leases_options {
	struct store *store;
	struct clock *clock;
	struct slice holder; /* the caller's */
	int64_t lease_ms;
	bool share; /* take no more than others that share */
};

struct leases *leases_new(const struct leases_options *options);
void leases_free(struct leases *leases);

/* Takes, renews and gives back. *held: the wanted leases that are held until *until_ms at least, by
 * the wall clock. `wanted` is the same in every call. Or the store's error. */
int leases_take(struct leases *leases, struct task_queue *queue, const struct partitions *wanted,
		struct partitions *held, int64_t *until_ms) MUST_CHECK;
/* Gives back all leases, so that others need not wait for their end. */
int leases_give(struct leases *leases, struct task_queue *queue) MUST_CHECK;

#endif
