/* The poller: takes devices and their OIDSets from the inventory and gives what they answered to a
 * sink, as messages of doc/format-poll.md. How polls are scheduled and rows named: doc/polling.md.
 *
 *  - Each OIDSet of each device is polled in slots of its own, aligned to the clock.
 *  - Polls go to the sink together: one that comes alone at once, else what POLLER_GATHER_MS gave,
 *    or sooner POLLER_GATHER_BYTES. A kill loses what waits here, as it loses a poll under way.
 *  - Polling never waits for the sink: what it does not take waits in a bounded ring, and when that
 *    is full the oldest message is dropped and counted.
 *  - Devices come and go with poller_set_inventory; nothing is restarted.
 *
 * Threads. The poller has one of its own; the sink is called there. The functions here are for any
 * thread, poller_open and poller_close for that of their owner. */
#ifndef SNMP_POLLER_H
#define SNMP_POLLER_H

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "inventory/inventory.h"

struct poller;

struct poller_sink {
	/* On the poller's thread; does not block. 0: taken (and copied). ERR_BUSY, ERR_FULL: not
	 * now; it is offered again. Another error: never; it is dropped and counted. */
	int (*put)(void *owner, const struct oidset *oidset, struct slice device,
		   struct slice message);
	/* NULL: nobody wants to know. That was all for now; after one put at least. */
	void (*end)(void *owner);
	void *owner;
};

struct poller_options {
	struct clock *clock;
	/* Polls the devices of this poller; empty: those that name none. Outlives it. */
	struct slice name;
	struct poller_sink sink;
	size_t ring_messages_max, ring_bytes_max; /* 0: POLLER_RING_* */
	/* How long names of interfaces are relied on where the device vouches for them; how long
	 * the address of a host name is. 0: POLLER_NAMES_MS, POLLER_RESOLVE_MS. */
	int64_t names_ms, resolve_ms;
	/* Requests in flight, of all devices and of one; tries of each; the longest wait for a
	 * reply. 0: the client's default; for tries POLLER_TRIES. */
	unsigned in_flight_max, device_in_flight_max, tries, timeout_max_ms;
	struct executor *executor; /* where poller_close ends */
};

enum {
	POLLER_RING_MESSAGES = 100000,
	POLLER_RING_BYTES = 64 << 20,
	POLLER_NAMES_MS = 600000,
	POLLER_RESOLVE_MS = 300000,
	POLLER_TRIES = 4,
	POLLER_SINK_RETRY_MS = 50,
	POLLER_GATHER_MS = 200,
	POLLER_GATHER_BYTES = 512 << 10,
};

/* Starts the thread; nothing is polled before the first inventory. An error with a sentence where
 * no socket can be had. */
int poller_open(const struct poller_options *options, struct poller **poller,
		struct errbuf *e) MUST_CHECK;
/* Sets what is polled from now on; acquires a reference of its own. To be called by the inventory's
 * listener. Where its configuration is another one than before, messages that wait still come to
 * the sink, with OIDSets that may be gone. */
void poller_set_inventory(struct poller *poller, const struct inventory *inventory);
/* Polls a device now, whatever its slots; nothing where there is none of that name. */
void poller_poll_now(struct poller *poller, struct slice device);
/* Polls no more; what waits is offered to the sink once more. Then the thread ends and `closed` is
 * called on the executor; the poller is gone. May take as long as the system's resolver does. */
void poller_close(struct poller *poller, void (*closed)(void *owner), void *owner);

#endif
