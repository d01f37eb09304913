/* What polls devices and keeps what they answer: the poller, the queues, the workers that persist.
 * One part of the server, put together and taken apart here. The loop's thread. */
#ifndef CMD_POLLING_H
#define CMD_POLLING_H

#include "base/base.h"

struct catalog;
struct conf;
struct inventory_conf;
struct inventory_keeper;
struct loop;
struct persist;
struct polling;
struct query_home;
struct queue;
struct store;

struct polling_options {
	const struct conf *conf; /* both outlive it */
	struct inventory_conf *inventory_conf;
	struct store *store;
	struct catalog *catalog;
	struct loop *loop;
};

struct polling *polling_new(const struct polling_options *options);
/* Opens the queues, and begins with the devices that the keeper has, which outlives it. On an error
 * nothing is open. */
int polling_open(struct polling *polling, struct inventory_keeper *keeper,
		 struct errbuf *e) MUST_CHECK;
/* Polls nothing more and finishes what is being persisted. What waits in the queues stays there. */
void polling_stop(struct polling *polling);
/* It has. */
bool polling_over(const struct polling *polling);
void polling_free(struct polling *polling); /* over */

/* Once it is open. */
struct queue *const *polling_queues(const struct polling *polling);
struct persist *polling_persist(const struct polling *polling);
struct poller *polling_poller(const struct polling *polling);

/* For query_options: series of polled values lie in raw_data, under the frequency of their OIDSet.
 * `owner` is the struct polling. */
void polling_home_of(void *owner, struct slice tenant, struct slice tags_text,
		     struct query_home *home);

#endif
