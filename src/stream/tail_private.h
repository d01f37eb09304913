/* Private to the tail: a reader, and what a worker does with a chunk. */
#ifndef STREAM_TAIL_PRIVATE_H
#define STREAM_TAIL_PRIVATE_H

#include <stdatomic.h>

#include "base/hash_table.h"
#include "loop/pool.h"
#include "stream/tail.h"

enum {
	TAIL_ARENA_MAX_BYTES = 1 << 20, /* of what a reader asks for */
	TAIL_STREAMS_MAX = 1000,        /* that a reader knows; those quiet for longest go */
	TAIL_RANGES_MAX = 100,          /* of a stream, that were told or missed */
	/* Lines of a reader whose end has not come, all together. A longer line is told as several.
	 */
	TAIL_OPEN_MAX_BYTES = 256 << 10,
	/* Lines that are told together. */
	TAIL_BATCH_LINES = 4096,
	TAIL_BATCH_BYTES = 256 << 10,
};

/* The executor's; what follows `refs` does not change. */
struct tail_chunk {
	size_t refs;         /* of rings, and of readers at work */
	struct hash128 hash; /* of the address */
	struct slice address, frame;
	size_t bytes; /* of memory */
	uint64_t data_bytes;
	int64_t received_ms;
};

/* What a reader knows of a stream. */
struct tail_stream {
	uint64_t used;       /* greater: later */
	bool without_rule;   /* that is told */
	bool begun;          /* `at` is known */
	uint64_t at;         /* what is below was told, or is missed */
	struct offsets seen; /* which of these bytes have come */
	struct line_carry carry;
	struct buf open; /* the line before `at` whose end has not come */
	int64_t open_received_ms;
};

/* A chunk of a reader. While it works, all of it is the worker's but for `cancelled`. */
struct tail_work {
	struct line_query query;
	struct tail_chunk *chunk; /* NULL: none */
	bool begun;               /* lines of it were told */
	bool done;                /* all were */
	_Atomic bool cancelled;   /* by any thread: nobody waits for it any more */
	/* Result; valid until it is cleared. */
	struct line_found *lines;
	size_t count, line_room;
	uint64_t missed_bytes;
	struct line_without without_rule;
	struct arena texts;
	/* private */
	struct hash_table streams;
	uint64_t used;
	size_t open_bytes; /* of all lines whose end has not come */
	struct line_clock clock;
};

void tail_work_init(struct tail_work *work);
void tail_work_release(struct tail_work *work);
void tail_work_clear(struct tail_work *work);
/* Finds lines of the chunk until it is at its end, or there are enough. */
void tail_work_run(struct tail_work *work);

struct tail_reader {
	struct stream_tail *tail;
	struct stream_tail_rules rules;
	struct arena arena; /* of what they say */
	bool open;
	bool working; /* a worker has it */
	struct tail_work work;
	struct task task;
	size_t taken;          /* of the lines of `work` */
	uint64_t missed_bytes; /* that its owner is to be told of, before the next chunk */
	struct tail_chunk *ring[STREAM_TAIL_RING_CHUNKS];
	size_t ring_first, ring_count, ring_bytes;
	struct tail_reader *next, **place;
};

struct stream_tail {
	struct executor *executor;
	uint64_t seed;
	struct pool *pool;
	struct tail_reader *readers; /* also those that are closed and at work */
	size_t reader_count;         /* that are open */
	size_t held_bytes;           /* of memory, by all chunks */
};

#endif
