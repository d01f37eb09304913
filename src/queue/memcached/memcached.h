/* esmond's queue in memcached (doc/queue.md): fed by an esmond poller or by puts of ours, read by
 * our workers; what ours puts an esmond persister could read, but not at the same time.
 *
 * One thread talks with memcached and blocks; it alone knows the connection. It sends what was put
 * (each column of a poll is an item of its own, as esmond has one OID a message), reads items ahead
 * into a bounded window, and forgets them in memcached when they are stored: first `last_read`
 * moves, then the items go. So a crash of ours loses nothing. What memcached itself loses - it was
 * restarted, or threw items away - is found out and counted. */
#ifndef QUEUE_MEMCACHED_MEMCACHED_H
#define QUEUE_MEMCACHED_MEMCACHED_H

#include "queue/queue.h"

struct queue_memcached_options {
	struct slice name;
	struct slice server; /* HOST:PORT */
	unsigned workers;
	/* OIDSets whose polls are written as one uncorrelated message. */
	const struct slice *uncorrelated;
	size_t uncorrelated_count;
	uint64_t messages_max;    /* items that wait, there and here; 0 = 50,000 */
	size_t take_messages_max; /* of one batch; 0 = 512 */
	size_t window_max;        /* items read ahead; 0 = 4,096 */
	int poll_ms;              /* how often memcached is asked when nothing is there; 0 = 200 */
	int hole_wait_ms;         /* how long a number without an item is waited for; 0 = 1,000 */
	int put_timeout_ms;  /* after which a put that memcached does not take fails; 0 = 10,000 */
	struct store *store; /* for what lies aside */
	struct clock *clock;
};

/* A memcached that cannot be reached is no error: it is tried again and again. ERR_INVALID: name,
 * workers or address. */
int queue_memcached_open(const struct queue_memcached_options *options, struct queue **queue,
			 struct errbuf *e) MUST_CHECK;

#endif
