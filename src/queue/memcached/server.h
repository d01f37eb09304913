/* The talk with memcached: esmond's keys and nothing else. Blocks, within a timeout; one thread.
 *
 * `_mcpq__<queue>_last_added`, `_mcpq__<queue>_last_read`: counters as decimal text;
 * `_mcpq__<queue>_<n>`: item n, from 1. */
#ifndef QUEUE_MEMCACHED_SERVER_H
#define QUEUE_MEMCACHED_SERVER_H

#include "base/base.h"

enum {
	SERVER_ITEMS_MAX = 64,                 /* of one server_get */
	SERVER_ITEM_MAX_BYTES = 1048576 - 512, /* with its key, within memcached's 1 MB */
	SERVER_TIMEOUT_MS = 2000,
};

struct server;

struct memcached_counters {
	bool found; /* both of them */
	uint64_t last_added, last_read;
};

/* `address` as HOST:PORT. ERR_INVALID: it is not. Nothing is connected yet. */
int server_open(struct slice address, const char *queue, struct server **server,
		struct errbuf *e) MUST_CHECK;
void server_close(struct server *server);

/* All below: ERR_RETRY when memcached cannot be reached or says no; the outcome of what was sent is
 * then not known. */
int server_counters(struct server *server, struct memcached_counters *counters) MUST_CHECK;
/* Makes those that are missing, with 0. */
int server_make_counters(struct server *server) MUST_CHECK;
/* ERR_NOT_FOUND: the counter is not there. */
int server_next_number(struct server *server, uint64_t *number) MUST_CHECK;
int server_add_read(struct server *server, uint64_t by, uint64_t *last_read) MUST_CHECK;
int server_set(struct server *server, uint64_t number, struct slice item) MUST_CHECK;
/* Gives those of `count` items from `from` on that are there to `each`, in any order. */
int server_get(struct server *server, uint64_t from, size_t count,
	       void (*each)(void *owner, uint64_t number, struct slice item),
	       void *owner) MUST_CHECK;
/* An item that is not there is no error. */
int server_delete(struct server *server, uint64_t number) MUST_CHECK;

#endif
