/* Readers of lines as they come: each is told of the lines of all chunks that become durable while
 * it is there, of the streams and with the words that it asks for.
 *
 *     collector --written--> ring of each reader --a chunk--> worker --lines--> its owner
 *
 * The bytes of a chunk are copied once for all readers. A reader's ring has at most
 * STREAM_TAIL_RING_CHUNKS chunks and STREAM_TAIL_RING_BYTES; all rings together have at most
 * STREAM_TAIL_ALL_BYTES. What finds no room takes the place of the oldest chunk of that ring, or of
 * the fullest one, and its bytes count as missed. A worker has one chunk of a reader at a time. It
 * unpacks it, finds its lines and their times, and compares them; it stops after some lines, and
 * goes on when the owner has taken these.
 *
 * A reader is told the lines of a stream in the order of their offsets, each once. It is told a
 * line when the end of the line has come. A line whose beginning came before the reader, or was
 * missed, begins with the first byte that the reader has. Bytes that fill a hole below a line that
 * was told count as missed.
 *
 * Times are those of line_clock.h. After a hole, and at the beginning, it is not known which time
 * goes to the next line: one that says none has the time at which it was received.
 *
 * Chunks that another process takes are not told.
 *
 * Threads: the functions here belong to the thread of the executor. A worker has of a reader what
 * its struct says, from when it is asked until its task has come back. */
#ifndef STREAM_TAIL_H
#define STREAM_TAIL_H

#include "base/exec.h"
#include "stream/line_scan.h"

enum {
	STREAM_TAIL_RING_CHUNKS = 1000,
	STREAM_TAIL_RING_BYTES = 8 << 20, /* of memory: about as they are stored */
	STREAM_TAIL_ALL_BYTES = 64 << 20,
};

struct stream_tail;
struct tail_reader;

struct stream_tail_rules {
	struct slice tenant;
	struct stream_names names;   /* NULL data: any */
	uint64_t incarnation;        /* 0: any */
	struct slice q;              /* as of line_query.h */
	struct slice content;        /* a regular expression that lines fit; NULL data: none */
	struct datatypes *datatypes; /* by which fields are read; the reader shares them */
	/* There may be something to take. Also when there is nothing, several times a second. The
	 * reader may be closed within. */
	void (*ready)(void *owner);
	void *owner;
};

/* One of these. */
struct stream_news {
	const struct line_found *line;    /* valid until the next call; NULL: what follows */
	uint64_t missed_bytes;            /* before the next line, of streams that are asked for,
					     whatever their lines have */
	struct line_without without_rule; /* more streams */
};

struct stream_tail *stream_tail_new(struct executor *executor, uint64_t seed);
void stream_tail_free(struct stream_tail *tail); /* over */
/* No reader is there, and no worker has one. */
bool stream_tail_is_over(const struct stream_tail *tail);
void stream_tail_tick(struct stream_tail *tail); /* several times a second */

/* A chunk is durable. Without readers this is one comparison. */
void stream_tail_written(struct stream_tail *tail, const struct stream_id *id,
			 const struct chunk_frame *frame, int64_t received_ms);

/* Texts of the rules are copied. ERR_INVALID, with a sentence. */
int stream_tail_open(struct stream_tail *tail, const struct stream_tail_rules *rules,
		     struct tail_reader **reader, struct errbuf *e) MUST_CHECK;
/* NULL is allowed. */
void stream_tail_close(struct tail_reader **reader);
/* Takes what comes next. False: nothing is there yet, and `ready` will be called. */
bool stream_tail_next(struct tail_reader *reader, struct stream_news *news) MUST_CHECK;

#endif
