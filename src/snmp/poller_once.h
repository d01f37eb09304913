/* One poll of one OIDSet at one device, now: what the poller would store of it. For people who
 * look, on a loop of their own; blocks until it is over. */
#ifndef SNMP_POLLER_ONCE_H
#define SNMP_POLLER_ONCE_H

#include "base/base.h"
#include "base/clock.h"
#include "inventory/inventory.h"

struct poller_once {
	struct clock *clock;
	struct slice host; /* a name or an address */
	uint16_t port;
	const struct credentials *credentials;
	const struct oidset *oidset;
	unsigned tries, timeout_max_ms; /* as in struct poller_options */
	/* Each message of the poll: doc/format-poll.md. */
	void (*message)(void *owner, struct slice message);
	void *owner;
};

/* An error with a sentence: no address, no answer, or what the device refused. A device that has
 * nothing of the OIDSet gives no message. */
int poller_once(const struct poller_once *once, struct errbuf *e) MUST_CHECK;

#endif
