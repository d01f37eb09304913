/* Taking chunks in: each becomes durable in chunk_tail, or is found to be there already.
 *
 * Twice is once. The collector knows which bytes of each incarnation of a stream are held. A chunk
 * that overlaps them is compared with them. If all of its bytes are there it is not stored again.
 * If some are there, the same, the chunk is stored as it is; the overlap is cut when the chunk goes
 * into a block. If a byte is another one, the stream has begun anew, and its sender is told: the
 * sender makes a new incarnation. For a sender that knows of no incarnations (version 1) the
 * collector makes the new one, and the chunk goes there. So it does where the chunk begins below
 * what is kept, since bytes that have gone cannot be compared.
 *
 * Order of events, of one submission: its chunks are taken in rounds, so that no two chunks of a
 * stream in a round overlap. The examiner, a thread that may wait, reads what the round needs to
 * know of streams, and the bytes to compare. Then new streams and chunks are written in one batch.
 * When that is durable the next round begins; after the last one the submission is done. While a
 * stream is in a submission no other submission with it begins.
 *
 * A write that failed, or whose outcome is not known, is not sent again: whoever sent the chunks
 * sends them again, and what is known of their streams is read anew before that.
 *
 * A sender that does not know the offsets of its bytes appends records (struct stream_append). The
 * collector has made an incarnation for them, and gives them the offsets behind all that it knows
 * to be held there. It leaves records out that it knows to be held there. A process that has the
 * store alone goes on with the same incarnation after a restart. A process that shares the store
 * makes new incarnations after each start: if two processes appended to one, they would put
 * different bytes at the same offsets, and one of the two would never be read. For the same reason
 * the collector leaves an incarnation when the outcome of a write to it is not known: the write may
 * land after any look at what is there.
 *
 * What another process takes of a stream is seen when the stream is read anew. Until then bytes may
 * be stored twice, which does no harm.
 *
 * Threads: all of it belongs to the thread of the executor, but for what says otherwise. The
 * examiner has the streams of a submission until it gives them back. */
#ifndef STREAM_COLLECTOR_H
#define STREAM_COLLECTOR_H

#include "base/exec.h"
#include "stream/site.h"
#include "stream/tables.h"

enum stream_outcome {
	STREAM_WAITS,      /* private: it is not known yet */
	STREAM_TAKEN,      /* it is durable */
	STREAM_HELD,       /* it was there */
	STREAM_OTHER,      /* at `other_at` the incarnation has another byte */
	STREAM_MANY,       /* the tenant has as many streams as it may have */
	STREAM_MANY_NEW,   /* of these too many were new in this minute */
	STREAM_MANY_HOLES, /* the incarnation has as many holes as it may have */
	STREAM_MANY_TENANTS,
	STREAM_TOO_FAST,   /* the tenant has sent as many bytes as it may */
	STREAM_TAIL_FULL,  /* too much waits to be put into blocks */
	STREAM_UNREADABLE, /* its own bytes do not unpack to what they say */
	STREAM_FAILED,     /* `err` says why */
};

/* Whole records, to be appended. */
struct stream_append {
	struct chunk_unplaced frame;
	/* By collector_hash_record. No two records of one stream in a submission are the same. */
	uint64_t *hashes;
	size_t count;        /* of records; result: of those that were not held */
	size_t repeated;     /* result: of those that were */
	struct arena *arena; /* has the frame; the collector's while it has the submission */
};

struct stream_chunk {
	/* What is submitted; stays until the submission is done. The names were checked. */
	struct stream_id id; /* incarnation 0: its sender knows of none */
	struct chunk_frame frame;
	/* NULL: the sender says where the bytes lie. Else there is no frame until the chunk has its
	 * place, and the id has no incarnation. */
	struct stream_append *append;

	/* Result. */
	enum stream_outcome outcome;
	int err;
	uint64_t other_at;
	uint64_t incarnation;     /* that has it */
	struct offset_range held; /* what that holds around it; not said of a held append */

	/* The collector's. */
	struct collector_stream *stream;
	struct collector_incarnation *place;
	bool asked; /* it is in this round */
};

enum { STREAM_CHUNKS_MAX = 10000 }; /* of one submission */

struct stream_submission {
	struct stream_chunk *chunks;
	size_t count;
	void (*done)(struct stream_submission *submission);
	void *owner; /* the caller's */

	/* The collector's. */
	struct collector *collector;
	struct store_write *write;
	struct task task;
	int err; /* of the examiner */
	int64_t received_ms;
	size_t bytes;      /* of its frames */
	size_t begin, end; /* the chunks of the round are from here to before there */
	struct stream_submission *next;
};

struct collector;

struct collector_options {
	const struct stream_site *site; /* the caller's */
	struct executor *executor;
	uint64_t seed; /* of incarnations */
	/* A chunk of a stream is durable. May be NULL. */
	void (*written)(void *owner, const struct stream_id *id, const struct chunk_frame *frame,
			int64_t received_ms);
	/* Has somebody call collector_examine_now for this submission, where waiting is allowed. 0,
	 * or an error: nobody will. NULL: a thread of the collector's own does. */
	int (*examine)(void *owner, struct stream_submission *submission);
	void *owner;
};

struct collector *collector_new(const struct collector_options *options);
/* When it is idle. */
void collector_free(struct collector *collector);
bool collector_is_idle(const struct collector *collector);
/* What the examiner is asked for ends soon, with ERR_CANCELLED. */
void collector_stop(struct collector *collector);

/* `done` comes in any case, maybe from within this call. ERR_BUSY: too much waits already, and
 * nothing was begun; ERR_LIMIT: more than STREAM_CHUNKS_MAX. */
int collector_submit(struct collector *collector, struct stream_submission *submission) MUST_CHECK;

/* The hash by which a record, with the newline behind it, is known when it comes again. Any thread.
 */
uint64_t collector_hash_record(const struct collector *collector, struct slice record);

/* Waits on the queue, which is the calling thread's; no other thread has the streams of the
 * submission meanwhile. */
void collector_examine_now(struct stream_submission *submission, struct task_queue *queue);

/* What is known of a stream may be wrong, since the store has less of it: it is read anew. */
void collector_doubt(struct collector *collector, const struct stream_id *id);

/* The collector counts the bytes of chunk_tail that it has written, as stored. Whoever finds others
 * there adds them; whoever takes some away subtracts them. Any thread; the next one, too. */
void collector_adjust_tail(struct collector *collector, int64_t bytes);
uint64_t collector_tail_bytes(const struct collector *collector);

#endif
