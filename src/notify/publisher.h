/* Publishes messages to a broker of AMQP, one after another, on a job's thread, since a connection
 * blocks (broker/broker.h). It connects when there is a message, and leaves when there has been
 * none for some seconds. What waits while it cannot connect fails with the message that it was to
 * connect for.
 *
 * Threads: the functions here belong to the thread of the executor. Private to notify/. */
#ifndef NOTIFY_PUBLISHER_H
#define NOTIFY_PUBLISHER_H

#include "base/exec.h"
#include "broker/broker.h"

struct publisher;

/* The address is the caller's. ERR_LIMIT: too many jobs run. */
int publisher_start(const struct amqp_address *address, struct executor *executor,
		    struct publisher **publisher) MUST_CHECK;
/* What is not published by now fails; only a connection that is being made is waited for. */
void publisher_stop(struct publisher *publisher);
bool publisher_is_over(const struct publisher *publisher);
/* When it is over. */
void publisher_free(struct publisher *publisher);

/* The caller's, but not between publisher_publish and `done`. The caller fills in the fields up to
 * the blank line. */
struct publication {
	struct broker_publication content;
	struct publisher *publisher;
	void (*done)(struct publication *publication); /* on the publisher's thread */

	int64_t begun_ms; /* monotonic */
	struct task task;
	bool taken;
	struct errbuf why; /* it is not taken */
};
void publisher_publish(struct publication *publication);

#endif
