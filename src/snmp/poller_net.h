/* The poller's network for real: sessions and walks of snmp/client.h on one loop, names of hosts by
 * the system's resolver on threads of their own. Everything but poller_net_open on the loop's
 * thread. */
#ifndef SNMP_POLLER_NET_H
#define SNMP_POLLER_NET_H

#include "base/base.h"
#include "base/clock.h"
#include "snmp/poller_io.h"

struct poller_net;

struct poller_net_options {
	struct loop *loop;
	struct clock *clock;
	unsigned in_flight_max;        /* requests; 0: the client's default */
	unsigned device_in_flight_max; /* likewise, of one device */
	unsigned tries;                /* of one request, at least 1 */
	unsigned timeout_max_ms;       /* 0: the client's default */
};

int poller_net_open(const struct poller_net_options *options, struct poller_net **net,
		    struct errbuf *e) MUST_CHECK;
struct poller_io *poller_net_io(struct poller_net *net);
/* No more look-ups; waits for those under way, which may take the resolver's time-out. What they
 * found comes by tasks of the loop. */
void poller_net_stop_resolving(struct poller_net *net);
/* After that, its tasks, and all sessions. */
void poller_net_close(struct poller_net *net);

#endif
