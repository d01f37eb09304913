/* Sealing: what came of a stream as chunks goes into blocks of up to CHUNK_DATA_MAX_BYTES, which
 * are chunks themselves, packed more closely. Done by the stream's owner, in a job.
 *
 * Order of events: what is known of the stream is read; bytes that are held and in no block are
 * read in their order, whatever the chunks were that they came in, and go into blocks, cut between
 * records; the blocks are written. A record that is not whole yet stays in chunks, so that it is in
 * one block when it is. When all are durable, it is noted which bytes are in blocks.
 * Only then, when that note has been read back, the chunks go whose bytes all are in blocks.
 *
 * With a block its heads are written (tables.h): when its chunks were received, the times of its
 * lines and what goes from the last one to the next block, and a filter of its words. A block has
 * one zone, since the times of its lines are read in it: where that changes another begins.
 *
 * A chunk is acknowledged without being unpacked. One that cannot be is taken away, counted, and
 * leaves a hole.
 *
 * Killed between any two of these it leaves blocks that nobody knows of, and that are written
 * again, or chunks beside their blocks, which go the next time. An owner that was taken for dead
 * and goes on writes blocks with the bytes that others have written; its note has a lower stamp and
 * is not seen, so that it takes no chunks away. */
#ifndef STREAM_SEAL_H
#define STREAM_SEAL_H

#include "stream/known.h"

struct stream_seal_rules {
	int level; /* of zstd */
	bool all;  /* also what does not fill a block */
	/* A record of which a part has not come waits for that, also then, unless what is there was
	 * received before. */
	int64_t open_before_ms;
	int64_t until_ms;     /* of the owner's lease, by the wall clock */
	int64_t write_max_ms; /* how long a write may take */
};

struct stream_seal_result {
	uint64_t blocks, data_bytes, stored_bytes;
	/* Chunks that did not unpack to what they said. They have gone, too, and left holes: what
	 * is known of the stream elsewhere is to be read anew. */
	uint64_t unreadable;
	struct chunk_place last_unreadable;
	/* Of chunks that are left. */
	uint64_t left_data_bytes, left_stored_bytes;
};

/* ERR_CANCELLED: the job is to end, or the lease ends too soon; ERR_DAMAGED; or the store's error,
 * with a sentence. *result says what was done also then. */
int stream_seal(const struct stream_site *site, struct task_queue *queue,
		const struct stream_id *id, const struct stream_seal_rules *rules,
		struct stream_seal_result *result, struct errbuf *e) MUST_CHECK;

#endif
