/* The lines of a range of a stream's bytes, run by run, whatever blocks and chunks they lie in. A
 * record that a piece of the stream does not end is held back, and stands in the next run whole.
 *
 * For threads that may wait. */
#ifndef STREAM_LINE_RUNS_H
#define STREAM_LINE_RUNS_H

#include "stream/known.h"

/* Lines that lie together; all of it stays until the next run. */
struct line_run {
	uint64_t begin; /* the offset of the records' data */
	struct line_records records;
	struct receipt_walk receipts; /* at its beginning; by offsets in the data */
	struct slice tags;            /* of the chunk that ends it; of a block: of its first one */
	struct slice zone;
	bool begins;    /* bytes in front of it are not held, or not of the range */
	bool continues; /* its first record began before it */
	/* Its only record has no end. */
	bool open;
	bool cut; /* of one that is open: bytes lie behind it that cannot be joined to it */
	/* So many bytes of a block, from `begin` on, are not there or cannot be read: the run has
	 * no records. 0: the run has all its bytes. */
	uint64_t lost;
};

/* Gives the lines of the bytes from <= offset < to that are held to `see`, in their order. Chunks
 * that cannot be unpacked are holes. Ends when `see` returns something else than 0, and returns
 * that. ERR_DAMAGED: what is held and in no block is not there, or cannot be read; ERR_LIMIT; or
 * the store's error, with a sentence. */
int line_runs_read(const struct stream_site *site, struct task_queue *queue,
		   const struct stream_id *id, const struct stream_known *known, uint64_t from,
		   uint64_t to, int (*see)(const struct line_run *run, void *owner), void *owner,
		   struct errbuf *e) MUST_CHECK;

#endif
