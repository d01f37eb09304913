/* The door of what clients of Loki push (wire/loki_push.h): from a body to chunks that are to be
 * appended (stream/collector.h). Its route stands in api/stream/push.c.
 *
 * Each entry is a record of its stream: its time, the line, its metadata, a newline. The names of a
 * stream are made of its labels (doc/streams.md), and all labels are tags of its chunks. What is
 * wrong with one entry or stream is said of it, the others are good.
 *
 * Packs, which is for a worker and never for a loop. No I/O, no globals. */
#ifndef INGEST_LOKI_H
#define INGEST_LOKI_H

#include "ingest/chunks.h"

enum {
	LOKI_ENTRIES_MAX = 500000, /* of a body */
	LOKI_NAMED_MAX = 20,       /* of what is wrong; the rest is counted */
};

/* Once for each batch. Body, tenant and collector stay as long as the batch. Of equal entries of
 * one stream the first is taken. ERR_INVALID with a sentence: nothing of the body can be read;
 * ERR_LIMIT: it has more than LOKI_ENTRIES_MAX entries, or takes too much memory. */
int loki_batch_read(struct chunks_batch *batch, struct slice body, struct slice tenant,
		    const struct collector *collector, struct errbuf *e) MUST_CHECK;

#endif
