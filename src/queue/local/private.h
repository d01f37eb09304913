/* Private: the books of a queue in the store. putting.c fills them, receiving.c empties them; all
 * are guarded by queue.lock. */
#ifndef QUEUE_LOCAL_PRIVATE_H
#define QUEUE_LOCAL_PRIVATE_H

#include "base/mem.h"
#include "base/stats.h"
#include "queue/local/local.h"

enum { LOCAL_HEADER_BYTES = 8 + 1 };

/* A message whose put is not over. It stays in the list of its shard until those before it have
 * settled. */
struct local_pending {
	struct local_pending *next;         /* of the shard, by number */
	struct local_pending *next_written; /* by the same write */
	struct local_queue *local;
	struct queue_put *put; /* not to be touched once it is over */
	unsigned shard;
	uint64_t sequence;
	struct slice value; /* memory of its own */
	int64_t put_ms;     /* monotonic */
	enum {
		PENDING_HELD,       /* in memory alone */
		PENDING_ON_ITS_WAY, /* to the store */
		PENDING_SETTLED,    /* there; or acknowledged, or lost */
	} state;
	unsigned leaving;    /* how many batches said that it is stored while it was held */
	unsigned references; /* of the list, of the put until it is over, of batches */
	struct task over;
	int err; /* of the put, when it is over */
};

/* first <= durable <= next; but what was held may be acknowledged while it is on its way. */
struct local_shard {
	uint64_t first;                        /* the lowest that is not acknowledged */
	uint64_t durable;                      /* all below are stored, or their put is over */
	uint64_t next;                         /* the number of the next put */
	uint64_t messages, bytes;              /* that wait, those that are pending among them */
	struct local_pending *puts, *last_put; /* by number; none below `durable` */
};

struct local_queue {
	struct queue queue;
	uint64_t messages_max, bytes_max;
	size_t take_messages_max, take_bytes_max;
	size_t put_count; /* that are not over */
	size_t held_messages, held_bytes;
	struct local_shard shards[QUEUE_SHARDS];
};

/* The names of a row and of a column, and where they lie. */
struct local_place {
	uint8_t shard[8], column[8];
	struct store_parts row, at;
};

static inline struct local_queue *local_of(struct queue *queue)
{
	return CONTAINER_OF(queue, struct local_queue, queue);
}

void local_place_of(const struct queue *queue, unsigned shard, uint64_t sequence,
		    struct local_place *place);
void local_count_wait(struct local_queue *local, struct local_shard *shard, int64_t messages,
		      int64_t bytes);

/* ---- putting.c ------------------------------------------------------------------------------- */

int local_put(struct queue *queue, struct queue_put *put);
/* Writes what is held for QUEUE_HELD_MS. */
void local_tick(struct queue *queue);
/* Nobody takes from the shards of this worker: writes all that is held of them. */
void local_leave(struct queue *queue, unsigned worker);
/* Its message, to a write. */
int local_pending_add(const struct local_pending *pending, struct store_write *write) MUST_CHECK;
/* A held message is acknowledged: its put is over. */
void local_pending_acknowledge(struct local_pending *pending);
void local_pending_release(struct local_pending *pending);

/* ---- receiving.c ----------------------------------------------------------------------------- */

bool local_fetch(struct queue_worker *worker);
int local_acknowledge(struct queue_batch *batch, struct store_write *write);
int local_park(struct queue_batch *batch, const struct queue_message *message);
void local_finish(struct queue_batch *batch, bool stored);

#endif
