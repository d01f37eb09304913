/* Private: who rolls up which partitions. A lease is a conditional cell (`leases`, kind "rollup",
 * name the partition's number) whose value is its holder's name, for a while.
 *
 * Those that are wanted are taken and renewed together, in one write. Whoever shares (`any`) is
 * listed in the same way (kind "rollup-member", name the holder's) and renews what it has; then it
 * looks who else is listed, and takes what is free up to its share, or gives back what is beyond
 * it: the share is the partitions that no stranger has, by the members, rounded up. So shares are
 * even some looks after somebody came or went, and what one that died had is taken over when its
 * leases end.
 *
 * Once they are taken, whatever was handed to the store before is durable, which the job relies on.
 *
 * It waits for the store, on the thread of the queue that it is given. */
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

/* Takes and renews, and gives back: *held says which of those that are wanted are held until at
 * least *until_ms, by the wall clock. The wanted ones are always the same. Or the store's error. */
int leases_take(struct leases *leases, struct task_queue *queue, const struct partitions *wanted,
		struct partitions *held, int64_t *until_ms) MUST_CHECK;
/* Gives back all that are held, so that others need not wait. */
int leases_give(struct leases *leases, struct task_queue *queue) MUST_CHECK;

#endif
