/* The queue between what gathers (pollers) and what persists (workers): the one contract of all
 * drivers.
 *
 *  - Bounded: a put that does not fit is refused at once, and nothing waits for room.
 *  - Order: messages of one key are given in the order in which they were put. A key belongs to one
 *    of QUEUE_SHARDS shards by its hash, a shard to one worker by its number.
 *  - Acknowledged: a message is given until a worker says that it is stored. With `local` the
 *    removal is part of the very write that stores what the message held, so that it is neither
 *    lost nor stored twice. With `memcached` it follows that write.
 *  - What a poller has just gathered may be held in memory while a worker keeps up, and is then
 *    never written; what waits for more than QUEUE_HELD_MS is. Only `local` holds.
 *  - After a restart, or when another worker takes the place of one that hangs, what was not
 *    acknowledged is given again. A worker that was replaced can no longer submit.
 *  - A message that cannot be read is put aside with the reason (aside.h), within a bound; it can
 * be given back (retry.h).
 *  - A message that another configuration could read is parked: it stays where it is, within a
 *    bound of its own, and is given again after the next start, before all that came later. Only
 *    `local` parks.
 *
 * Drivers: local/ (durable, in the store), memcached/ (esmond's). Both pass tests/contract.
 *
 * Threads. A put may come from any thread and is completed on its executor. A worker belongs to the
 * thread that runs its executor: receive, acknowledge, submit and finish are called there, and
 * `received` runs there. New, replace, stats from any thread. One lock a queue guards its books;
 * the store's own locks are taken under it, never the other way round. */
#ifndef QUEUE_QUEUE_H
#define QUEUE_QUEUE_H

#include <pthread.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "queue/aside.h"
#include "queue/parked.h"
#include "store/store.h"

enum {
	QUEUE_NAME_MAX_BYTES = 64,
	QUEUE_KEY_MAX_BYTES = 255,
	/* With the key and the header a value of the store. */
	QUEUE_MESSAGE_MAX_BYTES = STORE_VALUE_MAX_BYTES - 1024,
	QUEUE_SHARDS = 64, /* by which messages lie on disk: never changed */
	QUEUE_WORKERS_MAX = QUEUE_SHARDS,
	QUEUE_HELD_MS = 1000,
};

struct queue;
struct queue_worker;

/* ---- Putting -------------------------------------------------------------------------------- */

/* The caller's, until `done` has run on the executor; key and bytes only until queue_put returns.
 */
struct queue_put {
	struct slice key, bytes;
	bool again; /* it lay aside: what is no message of this queue is taken as it is */
	/* It may be held in memory until a worker has stored it, for QUEUE_HELD_MS or a little
	 * longer; a kill loses it meanwhile. queue_offer has it taken. */
	bool held;
	struct executor *executor;
	void (*done)(struct queue_put *put, int err);
	void *owner;

	unsigned shard; /* of the key; set by queue_put */
};

/* The message is copied. `done` says 0 when the message is durable (memcached: is there), or what
 * it held. ERR_FULL:
 * as many messages or bytes wait as may, or the store is full. ERR_BUSY: the store's queue is full.
 * ERR_LIMIT: the message is too long for this queue. ERR_CANCELLED: the queue is closing. In each
 * case, returned at once, `done` is not called and the message is still the caller's. */
int queue_put(struct queue *queue, struct queue_put *put) MUST_CHECK;
/* Workers that wait may take what is held: to be called when some messages have been put, so that
 * they are taken together. From any thread. */
void queue_offer(struct queue *queue);
/* To be called every second or so, from any thread: what has been held for too long is written, and
 * offered. */
void queue_tick(struct queue *queue);

/* ---- Taking --------------------------------------------------------------------------------- */

struct queue_message {
	struct slice key, bytes;
	unsigned shard;
	uint64_t sequence; /* rising within the shard */
	int64_t put_ms;    /* when it was put; 0: not known */
	/* The driver could not make a message of what it found: to be put aside with this reason.
	 */
	const char *malformed;
};

/* Messages of all the worker's shards, by shard, in it by sequence. They lie in the driver's memory
 * until queue_finish. */
struct queue_batch {
	struct queue_worker *worker;
	const struct queue_message *messages;
	size_t count;
};

/* Runs on the worker's executor. err 0: the batch, of one message at least. ERR_CANCELLED: the
 * worker was cancelled or replaced. Else nothing could be read for now, and why: after a while,
 * call queue_receive again. */
typedef void queue_received(struct queue_worker *worker, struct queue_batch *batch, int err);

struct queue_worker_options {
	unsigned index; /* below the queue's workers */
	struct executor *executor;
	queue_received *received;
	void *owner;
};

/* Takes the place of the worker with this index, if there is one: from here on that one is stale.
 */
struct queue_worker *queue_worker_new(struct queue *queue,
				      const struct queue_worker_options *options);
void *queue_worker_owner(const struct queue_worker *worker);
/* From any thread: a receive that waits ends with ERR_CANCELLED, and so does every later one. */
void queue_worker_cancel(struct queue_worker *worker);
/* On its thread, with no receive under way and no batch out. */
void queue_worker_free(struct queue_worker *worker);

/* Asks for a batch; `received` follows when there is one. One at a time, and not while one is
 * out. */
void queue_receive(struct queue_worker *worker);

/* Adds to a write that the messages are stored by it. ERR_LIMIT: the write is full. */
int queue_acknowledge(struct queue_batch *batch, struct store_write *write) MUST_CHECK;
/* Adds to the same write that one of the batch's messages is put aside. */
int queue_put_aside(struct queue_batch *batch, const struct queue_message *message,
		    const char *reason, struct store_write *write) MUST_CHECK;
/* Leaves a message of the batch where it is: queue_acknowledge passes it over, and it no longer
 * counts as one that waits. The reason, a sentence, is logged once. ERR_FULL: as many are parked as
 * may be, by what is known when it is asked: what other workers are about to park is not counted.
 * ERR_INVALID: this driver parks nothing. ERR_CANCELLED: another worker has taken this one's place.
 */
int queue_park(struct queue_batch *batch, const struct queue_message *message,
	       const char *reason) MUST_CHECK;
/* Submits such a write; ERR_CANCELLED if another worker has taken this one's place. */
int queue_submit(struct queue_batch *batch, struct store_write *write) MUST_CHECK;
/* Gives the batch back: `stored` after the write's done said 0. Otherwise its messages will be
 * given again, from the first on. */
void queue_finish(struct queue_batch *batch, bool stored);

/* ---- Looking -------------------------------------------------------------------------------- */

struct queue_stats {
	/* Counted from when the queue was opened, or, of memcached, from when that was started. */
	uint64_t added; /* put and taken in; what was there when the queue was opened counts */
	uint64_t done;  /* acknowledged, or counted missing */
	uint64_t pending, pending_bytes; /* memcached: the bytes of those read ahead */
	uint64_t refused;                /* puts, for lack of room */
	uint64_t redelivered;            /* given again */
	uint64_t missing;                /* memcached: numbered, but not there */
	uint64_t restarts;               /* memcached: times it had forgotten everything */
	uint64_t aside;                  /* messages that lie aside now */
	uint64_t aside_dropped;          /* that lay there and had to go */
	uint64_t parked, parked_bytes;   /* counted by none of the above but `added` */
	uint64_t unparked;               /* that would have been, had there been room */
};

void queue_stats(struct queue *queue, struct queue_stats *stats);
struct slice queue_name(const struct queue *queue);

/* A line of `granary queue`, as esmond's espersistq has them: what was added and done since
 * `before`, the difference, and the number of the last message added. */
struct queue_line {
	uint64_t pending, new, done, max;
	int64_t delta;
};

struct queue_line queue_line(const struct queue_stats *before, const struct queue_stats *now);

/* ---- Life ----------------------------------------------------------------------------------- */

/* All puts must be done and all workers free. May block for a moment, and for some seconds where a
 * memcached does not answer. */
void queue_close(struct queue *queue);

/* What a driver is, and what queue.c keeps for it. */
struct queue_ops {
	int (*put)(struct queue *queue, struct queue_put *put);
	/* With the lock held. Begins to make a batch if there is something to be taken: true. */
	bool (*fetch)(struct queue_worker *worker);
	int (*acknowledge)(struct queue_batch *batch, struct store_write *write);
	/* With the lock held. NULL: it parks nothing. */
	int (*park)(struct queue_batch *batch, const struct queue_message *message);
	/* With the lock held; frees the batch. */
	void (*finish)(struct queue_batch *batch, bool stored);
	/* With the lock held. NULL: it holds nothing. The second: the worker of this number, which
	 * is gone or cancelled, has no successor. */
	void (*tick)(struct queue *queue);
	void (*leave)(struct queue *queue, unsigned worker);
	void (*stats)(struct queue *queue, struct queue_stats *stats);
	void (*close)(struct queue *queue);
};

struct queue {
	const struct queue_ops *ops;
	char name[QUEUE_NAME_MAX_BYTES + 1];
	struct store *store;
	struct clock *clock;
	pthread_mutex_t lock; /* guards all below, and the driver's books */
	unsigned worker_count;
	struct queue_worker *workers[QUEUE_WORKERS_MAX];
	struct queue_aside aside;
	bool retries; /* one is at work */
	struct queue_parked parked;
	uint64_t added, done, refused, redelivered; /* as in queue_stats */
	uint64_t messages, bytes;                   /* that wait */
};

struct queue_worker {
	struct queue *queue;
	struct queue_worker_options options;
	bool stale, cancelled;
	enum { WORKER_IDLE, WORKER_WAITS, WORKER_FETCHES, WORKER_HAS } state;
	struct task task; /* gives what `fetched` and `err` say */
	struct queue_batch *fetched;
	int err;
};

/* For drivers. The name is 1 to QUEUE_NAME_MAX_BYTES, the count 1 to QUEUE_WORKERS_MAX: ERR_INVALID
 * otherwise. Reads what lies aside; blocks. */
int queue_init(struct queue *queue, const struct queue_ops *ops, struct slice name,
	       unsigned worker_count, struct store *store, struct clock *clock,
	       struct errbuf *e) MUST_CHECK;
void queue_release(struct queue *queue);
unsigned queue_shard(struct slice key);
static inline struct queue_worker *queue_worker_of(const struct queue *queue, unsigned shard)
{
	return queue->workers[shard % queue->worker_count];
}
/* With the lock held: whether somebody takes what is put into this shard. */
static inline bool queue_takes(const struct queue *queue, unsigned shard)
{
	const struct queue_worker *worker = queue_worker_of(queue, shard);
	return worker && !worker->cancelled;
}
/* With the lock held: something has come for this shard. */
void queue_wake(struct queue *queue, unsigned shard);
/* With the lock held: what a fetch that had begun has led to. With neither batch nor error the
 * worker waits again. Gives it to `received` by a task. */
void queue_fetched(struct queue_worker *worker, struct queue_batch *batch, int err);

#endif
