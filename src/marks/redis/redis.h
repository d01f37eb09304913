/* Marks in Redis, with the keys of the Ceres document (doc/rollups.md), and in the store where
 * Redis is not reached (marks/marks.h). Of each partition and slot there are:
 *
 *  - ingesting:<partition>:<slot>: empty, expires when all of the slot is quiet
 *  - pending:<partition>:<slot>: a set of <tenant>:<series-set>
 *  - touches:<partition>:<slot>: a hash of such a member to its last touch, <ms>-<stamp>
 *
 * and once granary:epoch: whose marks these are, and since when none was lost.
 *
 * The first two are the document's. By the third a mark is taken away only if nothing has touched
 * it since it was read, in one script; and each series is quiet by itself. A member without a touch
 * is of another program: it is quiet when `ingesting` has gone.
 *
 * Redis away. Marks are then kept in the store, and those that were on their way are made there as
 * well; listings and readings always go over the store's first, so nobody has to give them back. A
 * listing or reading ends with an error after them.
 *
 * Redis emptied or restarted: see epoch.h. Marks that were there are lost; marks_state says
 * so until they are made again.
 *
 * Threads: the connection has its own; everything else as in marks/marks.h. */
#ifndef MARKS_REDIS_REDIS_H
#define MARKS_REDIS_REDIS_H

#include "base/clock.h"
#include "marks/marks.h"
#include "marks/redis/url.h"

struct marks_redis_options {
	struct store *store;
	struct clock *clock;
	struct redis_url url;
	char separator;      /* ':' or '|' */
	struct slice writer; /* names this process in marks of the store; the caller's */
	int64_t slot_ms, quiet_ms;
	int64_t late_ms; /* of marks in the store (marks/store.h) */
	/* What is older may be late (retention/late.h): its marks are made in the store, since they
	 * could not be made again from raw data. 0: late points are not kept. */
	int64_t late_after_ms;
};

/* Blocks until Redis is reached or was not, some seconds at most; that it was not is no error. The
 * store's error, with a sentence. */
int marks_redis_open(const struct marks_redis_options *options, struct marks **marks,
		     struct errbuf *e) MUST_CHECK;

/* From now on this is options.late_after_ms. Any thread. */
void marks_redis_set_late_after(struct marks *marks, int64_t late_after_ms);

/* For a store that was copied from another: no Redis holds marks of the copy. If the store has had
 * marks in one, it is another store from now on (epoch.h): the Redis of the first is left alone,
 * and with an empty one all marks are made again from raw data. With a sentence. */
int marks_redis_void(struct store *store, struct task_queue *queue, struct errbuf *e) MUST_CHECK;

#endif
