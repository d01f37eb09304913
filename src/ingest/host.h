/* The metrics of this machine, from Linux's /proc, into the tenant `host`.
 *
 * A round reads /proc (on a worker, since a large machine's /proc/stat takes milliseconds),
 * compares it with the round before and hands the values to ingest: one call for the machine, for
 * each core, disk and interface, and for this process. The first round only remembers. Kinds and
 * units go into the catalog with the first values, and names into the group `SystemMetrics`.
 *
 * Threads: everything here belongs to the loop's thread. While a round runs no other begins: a
 * round that would is left out and counted. */
#ifndef INGEST_HOST_H
#define INGEST_HOST_H

#include "base/clock.h"
#include "base/file.h"
#include "ingest/ingest.h"
#include "loop/loop.h"
#include "loop/pool.h"

struct host_options {
	struct ingest *ingest;
	struct store *store;
	struct board_keys *keys; /* get the names of metrics; NULL: nobody does */
	struct clock *clock;
	struct files *files;
	struct loop *loop; /* for the timer; NULL: the owner calls host_collect */
	struct executor *executor;
	struct pool *pool; /* reads /proc; NULL: on the caller's thread */
	int64_t interval_ms;
	const char *hostname; /* copied */
	/* Names that are left out; a star at the end stands for any rest. The caller's. */
	const char *const *ignore_interfaces, *const *ignore_disks;
	size_t ignore_interface_count, ignore_disk_count;
};

struct host;

/* ERR_NOT_FOUND where there is no /proc: Linux only. */
int host_open(const struct host_options *options, struct host **host, struct errbuf *e) MUST_CHECK;

/* One round. */
void host_collect(struct host *host);

/* Takes no more rounds; calls `closed` on the executor when the last one is over. */
void host_close(struct host *host, void (*closed)(void *owner), void *owner);

#endif
