/* The watermark where several processes share a store: what each tells the others.
 *
 * Two kinds of cells (table `watermarks`, written by each process in a column of its own):
 *
 *  - "rolled": which partitions a pass of the process went over, when the pass began, and up to
 *    which slot it left no mark but those that wait for more samples of late touches. It is written
 *    after the rows of the pass are durable.
 *  - "late", by tenant and metric: the oldest slot that had ended when the process touched it, and
 *    when. It is written with the marks, so before their samples. Metrics that have no room in the
 *    process's memory share the kind "any".
 *
 * A late cell counts until every partition has seen a pass that began at least the quiet time
 * after the touch: by then its marks were found. A sample that was acknowledged is therefore in a
 * row, or in a slot that has not been over for long, or told of by a late cell.
 *
 * A statement of rolled-up partitions holds for a day, and a late cell stays for two: a partition
 * that nobody has rolled up for a day counts as not rolled up at all.
 *
 * Threads: as watermark.h. Cells that cannot be read are named in the log: such a statement tells
 * nothing, and where such a late cell is nothing counts as rolled up. */
#ifndef MARKS_WATERMARK_CELLS_H
#define MARKS_WATERMARK_CELLS_H

#include "marks/watermark.h"

/* Adds the late cells of those touches whose slots have ended; `touches` are of one slot. Errors as
 * of store_cell_put. In any case the watermark has been told of them. */
int watermark_cells_put_late(struct watermark *watermark, struct store_write *write,
			     struct slice writer, int64_t now_ms, const struct mark_touch *touches,
			     size_t count) MUST_CHECK;

/* What a pass that is over tells. */
struct watermark_rolled {
	struct slice writer;
	const struct partitions *partitions;
	int64_t asof_ms;  /* the wall clock when the pass began */
	int64_t before_s; /* slots before this one are rolled up */
};

/* Tells the others, if `rolled` is not NULL, then learns what all have told: touches that all have
 * seen count no more. `partition_count` partitions there are. Waits, as store/wait.h does. */
int watermark_cells_exchange(struct watermark *watermark, struct store *store,
			     struct task_queue *queue, const struct watermark_rolled *rolled,
			     uint32_t partition_count, int64_t now_ms) MUST_CHECK;

/* The requests of a read that asks how far a metric is rolled up. */
struct watermark_asked {
	struct store_request *rolled, *any, *late;
};

/* Adds the requests to a read, in whose arena *asked lies. `metric` is as series-sets have it.
 * ERR_LIMIT: the read has no room. */
int watermark_cells_ask(struct store_read *read, struct slice tenant, struct slice metric,
			struct watermark_asked **asked) MUST_CHECK;
/* When the read is done: as watermark_before_ms, of samples that any process has written. */
int64_t watermark_cells_before_ms(struct watermark *watermark, const struct watermark_asked *asked,
				  uint32_t partition_count);

#endif
