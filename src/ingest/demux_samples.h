/* Where samples of streams go (stream/demux_pass.h): into the tagged metrics of the stream's
 * tenant, as any others.
 *
 * A sample that is refused for good, as by a limit of the catalog or as too old, is counted and
 * said in the log; the others are stored. Units go into the catalog with the first sample of a
 * metric, and its name into the group of its datatype (board/keys.h). Texts and tags of chunks go
 * into rows (board/rows.h).
 *
 * Threads: the sink is for one job. */
#ifndef INGEST_DEMUX_SAMPLES_H
#define INGEST_DEMUX_SAMPLES_H

#include "base/hash_set.h"
#include "base/log.h"
#include "board/keys.h"
#include "board/rows.h"
#include "ingest/ingest.h"
#include "stream/demux_pass.h"

struct demux_samples {
	struct demux_sink sink;
	struct ingest *ingest;
	struct store *store;
	struct clock *clock;
	struct executor *executor;   /* of ingest */
	struct board_keys *keys;     /* NULL: names are not listed by datatype */
	const struct row_site *rows; /* NULL: texts are not kept */

	/* private */
	struct hash_set described; /* metrics whose units are in the catalog */
	struct log_rate lines;
};

/* What it points to outlives it. */
void demux_samples_init(struct demux_samples *samples, struct ingest *ingest, struct store *store,
			struct clock *clock, struct executor *executor, struct board_keys *keys,
			const struct row_site *rows);
void demux_samples_release(struct demux_samples *samples);

#endif
