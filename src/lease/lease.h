/* Leases: who does a kind of work on which partitions: rolls up series, counts tenants' fault
 * reports. A lease is a claim (session.h): a conditional cell (`leases`, the kind of work, name the
 * partition's number) whose value is the holder's name. It has
 * no end of its own, but that of the holder's session. (Earlier programs wrote such cells with an
 * end and without a session: nobody alive has them.)
 *
 * The session is renewed each time. A process that has all that it wants, and does not share, looks
 * no further. The others look who is there and who has what. They take what is free or claimed by
 * the dead. A process that shares (`any`) says so in its session; it takes no more than its share,
 * and gives back what is beyond that. The share is the partitions that no stranger holds, divided
 * by the members, rounded up. So shares are even some looks after a process came or went, and what
 * a process had that died is taken over when its session has ended.
 *
 * On a store whose writes are serial: when leases_take returns, everything that was handed to the
 * store before it is durable.
 *
 * Leases wait for the store, on the thread of the queue that they are given. */
#ifndef LEASE_LEASE_H
#define LEASE_LEASE_H

#include "lease/partition.h"
#include "lease/session.h"

struct leases;

struct leases_options {
	struct lease_session *session; /* the caller's; its roles say the same */
	const char *kind;              /* a constant: "rollup", "fault" */
	bool share;                    /* take no more than others that share */
	enum session_role sharing;     /* the role of sessions that share; 0: SESSION_SHARES */
};

struct leases *leases_new(const struct leases_options *options);
void leases_free(struct leases *leases);

/* Takes, renews and gives back. *held: the wanted leases that are held until *until_ms, by the wall
 * clock, and no longer. `wanted` is the same in every call. Or the store's error; then none is
 * held.
 */
int leases_take(struct leases *leases, struct task_queue *queue, const struct partitions *wanted,
		struct partitions *held, int64_t *until_ms) MUST_CHECK;
/* Gives back all leases, so that others need not wait for the session's end. */
int leases_give(struct leases *leases, struct task_queue *queue) MUST_CHECK;

#endif
