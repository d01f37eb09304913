/* Reading the bytes of an incarnation, in their order, out of blocks and chunks alike. For threads
 * that may wait. */
#ifndef STREAM_CHUNK_READER_H
#define STREAM_CHUNK_READER_H

#include "stream/known.h"

/* Bytes that lie together, and what was said of them. */
struct stream_piece {
	uint64_t begin;
	int64_t received_ms;
	struct slice data; /* len 0: nothing more follows */
	/* Where records end: offsets within the data. NULL where the fields say lines. */
	const uint32_t *ends;
	size_t end_count;
	struct chunk_fields fields; /* of the chunk or block that they lie in */
	struct chunk_place block;   /* that they lie in; length 0: it is a chunk */
	bool continues;             /* the first record began before the piece */
};

struct chunk_reader {
	const struct stream_site *site;
	struct task_queue *queue;
	const struct stream_id *id;
	const struct offsets *sealed, *held; /* what was known of it; the caller's */
	uint64_t at, end;
	struct errbuf *e;
	/* After ERR_DAMAGED: the chunk, not in a block, that cannot be unpacked; length 0: it is
	 * not that. */
	struct chunk_place unreadable;

	/* private */
	struct buf unpacked;
	struct chunk_place unpacked_place; /* length 0: none is unpacked */
	struct chunk_data data;            /* of it */
	struct arena cells, ends, cut_ends;
	struct reader_cell *list;
	size_t next, count, room;
	bool found;
	size_t seen;    /* cells of the last scan */
	bool of_blocks; /* the cells of the list are blocks */
};

/* Reads those of the offsets from <= offset < to that are held. `sealed`: which of them were in
 * blocks when that was read, as far as it is known. What the arguments point to stays until it is
 * released; what is held may grow. Whoever sets `at` and `end` later reads other bytes: fast, where
 * they lie behind the last. */
void chunk_reader_init(struct chunk_reader *reader, const struct stream_site *site,
		       struct task_queue *queue, const struct stream_id *id,
		       const struct offsets *sealed, const struct offsets *held, uint64_t from,
		       uint64_t to, struct errbuf *e);
void chunk_reader_release(struct chunk_reader *reader);
/* The next piece, which lies in the reader until the next call; where it does not begin where the
 * one before has ended there is a hole. ERR_DAMAGED: what is held is not there, or cannot be
 * unpacked; or the store's error; with a sentence. */
int chunk_reader_next(struct chunk_reader *reader, struct stream_piece *piece) MUST_CHECK;
/* The same; a chunk that cannot be unpacked is a hole already, which its owner has only not seen
 * yet (seal.h). */
int chunk_reader_next_readable(struct chunk_reader *reader, struct stream_piece *piece) MUST_CHECK;

/* After ERR_DAMAGED, where bytes of a block are not there or cannot be read: moves behind them;
 * they are *lost. Else they are none, and nothing is moved. */
int chunk_reader_skip_lost(struct chunk_reader *reader, struct offset_range *lost) MUST_CHECK;

/* Reads one block. Its data lies in `unpacked`, which is cleared before; the ends of its records
 * and the zone lie in the arena; the fields have no other texts, and no incarnation. *received_ms:
 * when its first chunk was received. ERR_NOT_FOUND: it has gone; ERR_DAMAGED or ERR_VERSION: it
 * cannot be read; ERR_LIMIT: the arena is full; or the store's error, with a sentence. */
int chunk_block_read(const struct stream_site *site, struct task_queue *queue,
		     const struct stream_id *id, const struct chunk_place *place,
		     struct buf *unpacked, struct arena *arena, struct chunk_fields *fields,
		     struct chunk_data *data, int64_t *received_ms, struct errbuf *e) MUST_CHECK;

#endif
