/* Private: the books of a queue in memcached, by whose they are.
 *
 * One thread of the queue's own talks with memcached (memcached.c); it sends what was put
 * (putting.c) and reads ahead (reading.c). The others put, take and acknowledge, and meet it in
 * what queue.lock guards. The thread alone writes what of that it reads without the lock. */
#ifndef QUEUE_MEMCACHED_PRIVATE_H
#define QUEUE_MEMCACHED_PRIVATE_H

#include "base/mem.h"
#include "model/poll.h"
#include "queue/memcached/memcached.h"
#include "queue/memcached/server.h"

struct memcached_item;
struct memcached_put;

/* Puts on their way to memcached. */
struct putting {
	/* never changed */
	struct slice *uncorrelated; /* names of options.uncorrelated_count OIDSets */

	/* guarded by queue.lock */
	struct memcached_put *first, *last;
	size_t items; /* of them that are not sent */
	size_t under_way;
};

/* What was read ahead: the window, by number, and of what is not done the shards. */
struct memcached_reading {
	/* guarded by queue.lock */
	struct memcached_item *first, *last;
	size_t count, size_bytes;
	struct memcached_shard {
		struct memcached_item *first, *last;
	} shards[QUEUE_SHARDS];
	uint64_t epoch; /* of memcached's life */
	uint64_t next;  /* the item to be read next */
	uint64_t missing;

	/* the thread's */
	uint64_t forget_upto;  /* all up to this are stored: last_read is to become it */
	int64_t hole_since_ms; /* 0: there is none */
	uint64_t hole_upto;    /* all up to this were numbered when the hole was seen */
	struct arena arena;
	struct poll_builder builder;
	struct buf bytes;
};

struct memcached {
	struct queue queue;
	struct queue_memcached_options options;
	char *address;
	struct server *server;
	pthread_t thread;
	pthread_cond_t something; /* to do: for the thread */

	/* guarded by queue.lock */
	bool stopping, to_do;
	uint64_t last_added; /* as last seen */
	uint64_t last_read;  /* likewise */
	uint64_t restarts;

	/* the thread's */
	bool known; /* the counters have been seen */
	bool reachable;

	struct putting putting;
	struct memcached_reading reading;
};

static inline struct memcached *memcached_of(struct queue *queue)
{
	return CONTAINER_OF(queue, struct memcached, queue);
}

static inline int64_t memcached_now_ms(const struct memcached *m)
{
	return clock_mono_ms(m->queue.clock);
}

/* With the lock held. */
static inline void memcached_wake(struct memcached *m)
{
	m->to_do = true;
	pthread_cond_signal(&m->something);
}

/* Numbered, as far as is known, and not yet read ahead. */
static inline uint64_t memcached_unread(const struct memcached *m)
{
	return m->last_added >= m->reading.next ? m->last_added - m->reading.next + 1 : 0;
}

static inline uint64_t memcached_pending(const struct memcached *m)
{
	return m->queue.messages + memcached_unread(m);
}

/* Bytes of their own memory. */
static inline struct slice memcached_copy(struct slice bytes)
{
	char *copy = mem_alloc(bytes.len + 1);
	if (bytes.len)
		memcpy(copy, bytes.data, bytes.len);
	return (struct slice){copy, bytes.len};
}

static inline void memcached_free_copy(struct slice slice)
{
	mem_free((void *)(uintptr_t)slice.data);
}

/* ---- Putting -------------------------------------------------------------------------------- */

void putting_init(struct memcached *m, const struct slice *uncorrelated);
void putting_release(struct memcached *m);
/* As queue_ops has it. */
int putting_put(struct queue *queue, struct queue_put *put);
/* Both on the thread: sends all there is; ends those that have waited too long. */
int putting_send(struct memcached *m) MUST_CHECK;
void putting_expire(struct memcached *m);
/* With the lock held: numbers that memcached gave mean nothing any more. */
void putting_forget_numbers(struct memcached *m);

/* ---- Reading -------------------------------------------------------------------------------- */

void reading_init(struct memcached *m);
void reading_release(struct memcached *m);
/* Both as queue_ops has it. */
bool reading_fetch(struct queue_worker *worker);
void memcached_read_finish(struct queue_batch *batch, bool stored);
/* With the lock held, on the thread: memcached began again, and `lost` were not read. */
void reading_begin_again(struct memcached *m, uint64_t lost);
/* On the thread: reads what is there, as far as the window has room. *some: a part at least. */
int reading_go_on(struct memcached *m, bool *some) MUST_CHECK;
/* On the thread: has memcached forget what is stored. */
int reading_forget(struct memcached *m) MUST_CHECK;

#endif
