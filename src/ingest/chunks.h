/* The door of chunks of streams (document K, Chukwa): from the bytes of a body to what can be
 * submitted (stream/collector.h). Its routes stand in api/stream/take.c.
 *
 * A body is frames of version 2, one behind the other, or a post of version 1 as Chukwa's agents
 * send it. Frames are only looked at: they are stored as they are. What is of version 1 is packed,
 * which is for a worker (loop/pool.h) and never for a loop.
 *
 * What is wrong with one chunk is said of it, and the others are good. No I/O, no globals. */
#ifndef INGEST_CHUNKS_H
#define INGEST_CHUNKS_H

#include "stream/collector.h"

/* A chunk of a body, or bytes of it that are none. */
struct chunks_item {
	const char *sentence; /* why it is not to be submitted; NULL: it is */
	bool damaged;         /* its bytes were passed over */
	uint64_t sequence_id, data_bytes;
	/* Its place among the chunks; of version 1 a long one is several. */
	size_t first, count;
};

struct chunks_batch {
	struct arena arena; /* has what all others point to, but for frames of version 2 */
	struct chunks_item *items;
	size_t item_count, item_room;
	struct stream_chunk *chunks;
	size_t chunk_count, chunk_room;
	size_t unnamed; /* entries that are not to be submitted and have no item (ingest/loki.h) */
	size_t read_bytes; /* of the body, in front of the chunk that is read */
};

void chunks_batch_init(struct chunks_batch *batch);
void chunks_batch_release(struct chunks_batch *batch);

/* A new item behind the others; good until the next one is made. */
struct chunks_item *chunks_batch_add_item(struct chunks_batch *batch);
/* Another chunk, of the last item. */
void chunks_batch_add(struct chunks_batch *batch, const struct stream_chunk *chunk);
/* Whether a tenant may have a stream of these names. ERR_INVALID with a sentence. */
int chunks_batch_check(struct slice tenant, const struct stream_names *names,
		       struct errbuf *why) MUST_CHECK;

/* Whether it takes no time to read: it has frames. A post of version 1 begins with a zero, since
 * its number of chunks does. */
bool chunks_are_frames(struct slice body);

/* Once for each batch. Chunks that name no tenant are of `tenant`. Body and tenant stay as long as
 * the batch. ERR_INVALID, with a sentence: nothing of the body can be read; ERR_LIMIT: it has more
 * than STREAM_CHUNKS_MAX chunks, or takes too much memory. */
int chunks_batch_read(struct chunks_batch *batch, struct slice body, struct slice tenant,
		      struct errbuf *e) MUST_CHECK;

#endif
