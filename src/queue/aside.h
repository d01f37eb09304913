/* Messages that no persister could read: set aside in the store with the reason, the oldest going
 * when there are too many, to be looked at by people, and to be tried again (retry.h). Used under
 * the lock of the queue. */
#ifndef QUEUE_ASIDE_H
#define QUEUE_ASIDE_H

#include "base/base.h"
#include "base/clock.h"
#include "store/store.h"

enum {
	ASIDE_MESSAGES_MAX = 1000,      /* of one queue */
	ASIDE_BYTES_MAX = 1 << 20,      /* of one message; the rest of it is not kept */
	ASIDE_ALL_BYTES_MAX = 16 << 20, /* of one queue */
	ASIDE_REASON_MAX_BYTES = 500,
};

struct queue_aside {
	struct slice queue;   /* its name; the owner's */
	uint64_t first, next; /* what lies there: first <= sequence < next, with holes */
	uint64_t count, bytes;
	uint64_t dropped;                   /* since it was opened: for lack of room */
	uint32_t sizes[ASIDE_MESSAGES_MAX]; /* of sequence % ASIDE_MESSAGES_MAX; 0: a hole */
};

/* One of them, as it is shown. */
struct queue_aside_message {
	uint64_t sequence;
	int64_t at_ms; /* when it was set aside */
	struct slice key, reason;
	struct slice bytes;   /* up to ASIDE_BYTES_MAX of it */
	uint64_t whole_bytes; /* how many it had */
};

/* Finds out what lies there; blocks. */
int queue_aside_open(struct queue_aside *aside, struct slice queue, struct store *store,
		     struct clock *clock, struct errbuf *e) MUST_CHECK;
/* Adds one to the write, and takes away what then is too many. ERR_LIMIT: the write is full. */
int queue_aside_add(struct queue_aside *aside, const struct queue_aside_message *message,
		    struct store_write *write) MUST_CHECK;
/* The write with the one that was added last, which is `sequence`, has failed. */
void queue_aside_take_back(struct queue_aside *aside, uint64_t sequence);
/* Adds to the write that one is taken away; the lock is not needed. When it is durable it is said,
 * with the lock. */
int queue_aside_remove(const struct queue_aside *aside, uint64_t sequence,
		       struct store_write *write) MUST_CHECK;
void queue_aside_removed(struct queue_aside *aside, uint64_t sequence);

/* A scan of what lies aside in the queue of that name, newest first; add it to a read, run it, and
 * decode each cell that it gives. The name must outlive it. */
void queue_aside_scan(struct slice queue, struct store_cell_scan *scan);
/* Those of from <= sequence < to, the oldest first. ERR_LIMIT: no room in the arena. The lock is
 * not needed. */
int queue_aside_scan_from(const struct queue_aside *aside, uint64_t from, uint64_t to,
			  struct arena *arena, struct store_cell_scan *scan) MUST_CHECK;
/* ERR_DAMAGED for bytes that were not written here. The slices point into the cell. */
int queue_aside_decode(const struct store_cell *cell,
		       struct queue_aside_message *message) MUST_CHECK;

#endif
