/* The network as the poller sees it: sessions with devices, walks, names of hosts. The poller's
 * logic is written against this, so that tests run it on a virtual clock with devices of their own;
 * poller_net.c puts it on the client and the resolver. */
#ifndef SNMP_POLLER_IO_H
#define SNMP_POLLER_IO_H

#include "base/base.h"
#include "loop/loop.h"
#include "snmp/client.h"
#include "snmp/correlate_plan.h"

struct poller_session;
struct poller_walk;

/* Called from the loop, never from inside of a call into the io. */
struct poller_walk_events {
	/* One reply, in the order of arrival; its cells live as long as the call. */
	void (*reply)(void *owner, const struct snmp_reply *reply);
	/* The last event. `why`: a sentence where err is not 0. `cut`: the walk came to its end but
	 * for the column of this name, which the device refuses or repeats; NULL: all of it. */
	void (*done)(void *owner, int err, const char *why, const struct oid_def *cut);
	/* A reply is about to be given: what `reply` touches may be fetched. */
	void (*foresee)(const void *owner);
};

/* `address` is NULL where there is none, and `why` says so. */
typedef void poller_resolved_fn(void *owner, const struct loop_address *address, const char *why);

struct poller_io {
	/* One for each device: its requests in flight are bounded together. ERR_INVALID with a
	 * sentence: these credentials cannot be used. */
	int (*session_new)(struct poller_io *io, const struct loop_address *address,
			   const struct credentials *credentials, struct poller_session **session,
			   struct errbuf *e);
	/* No walk is under way. */
	void (*session_free)(struct poller_io *io, struct poller_session *session);
	/* All columns of the plan. `probe`: one try without repetition, to see whether the device
	 * is there. Walks of a session, probes among them, know nothing of each other: each goes on
	 * to its own end. After an error there is no walk and no event. */
	int (*walk)(struct poller_io *io, struct poller_session *session,
		    const struct correlate_plan *plan, bool probe,
		    const struct poller_walk_events *events, void *owner,
		    struct poller_walk **walk);
	/* No event follows. */
	void (*cancel)(struct poller_io *io, struct poller_walk *walk);
	/* Looks up a name; `resolved` is called once, also after an error. ERR_BUSY: later. */
	int (*resolve)(struct poller_io *io, struct slice host, uint16_t port,
		       poller_resolved_fn *resolved, void *owner);
};

#endif
