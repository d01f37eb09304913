/* What polls devices and keeps what they answer: the poller, the queues, the workers that persist.
 * One part of the server, put together and taken apart here. The loop's thread. */
#ifndef CMD_SERVE_POLLING_H
#define CMD_SERVE_POLLING_H

#include "base/base.h"

struct catalog;
struct conf;
struct inventory_conf;
struct inventory_keeper;
struct loop;
struct persist;
struct serve_polling;
struct query_home;
struct queue;
struct store;

struct serve_polling_options {
	const struct conf *conf; /* both outlive it */
	struct inventory_conf *inventory_conf;
	struct store *store;
	struct catalog *catalog;
	struct loop *loop;
};

struct serve_polling *serve_polling_new(const struct serve_polling_options *options);
/* Opens the queues, and begins with the devices that the keeper has, which outlives it. On an error
 * nothing is open. */
int serve_polling_open(struct serve_polling *polling, struct inventory_keeper *keeper,
		       struct errbuf *e) MUST_CHECK;
/* Polls nothing more and finishes what is being persisted. What waits in the queues stays there. */
void serve_polling_stop(struct serve_polling *polling);
/* It has. */
bool serve_polling_over(const struct serve_polling *polling);
void serve_polling_free(struct serve_polling *polling); /* over */
/* How long polled values are kept from now on where their OIDSet does not say; 0: for ever. */
void serve_polling_set_retention(struct serve_polling *polling, int64_t retention_ms);

/* Once it is open. */
struct queue *const *serve_polling_queues(const struct serve_polling *polling);
struct persist *serve_polling_persist(const struct serve_polling *polling);
struct poller *serve_polling_poller(const struct serve_polling *polling);

/* For query_options: series of polled values lie in raw_data, under the frequency of their OIDSet.
 * `owner` is the struct serve_polling. */
void serve_polling_home_of(void *owner, struct slice tenant, struct slice tags_text,
			   struct query_home *home);

#endif
