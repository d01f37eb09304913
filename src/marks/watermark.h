/* The watermark: up to which time a metric is rolled up. Queries take raw samples from there on,
 * since no row may know of them.
 *
 * It has two sources, so that it is never later than the last sample that can be read:
 *
 *  - touches of this process (marks.h), before their samples can be read, if their slot has ended;
 *  - marks that wait while a pass goes by (rollup/job.h), of whatever process. So marks of earlier
 *    runs count as soon as one pass has seen all marks; until then nothing counts as rolled up.
 *
 * Slots that have not been over for the quiet time count as not rolled up without being told. A
 * touch is dropped when it is as old as the quiet time at the beginning of a pass: its mark is
 * durable by then, and the pass finds the mark or finishes it. A mark is dropped when a pass that
 * saw all marks does not find it again. A pass that broke off drops nothing.
 *
 * It is kept by tenant and metric, so that late samples of one metric do not slow down queries of
 * others. Metrics beyond WATERMARK_MAX share one watermark, that of their oldest slot.
 *
 * Where several processes share the store each of them knows its own touches and the marks of its
 * own partitions, and no others. There they tell each other what they know (watermark_cells.h).
 *
 * Threads: any; a lock of its own, under which nothing else is taken. */
#ifndef MARKS_WATERMARK_H
#define MARKS_WATERMARK_H

#include "marks/marks.h"

enum { WATERMARK_MAX = 1 << 12 };

struct watermark;

/* `shared`: other processes write the same store. */
struct watermark *watermark_new(int64_t slot_ms, int64_t quiet_ms, bool shared);
void watermark_free(struct watermark *watermark);

/* All samples of earlier times are rolled up, as far as is known; 0: none. In ms. `metric` is as
 * series-sets have it. */
int64_t watermark_before_ms(struct watermark *watermark, struct slice tenant, struct slice metric);

/* Touches at now_ms, by the wall clock; before their samples can be read. */
void watermark_touch(struct watermark *watermark, int64_t now_ms, const struct mark_touch *touches,
		     size_t count);
/* The same, and gives the touches of each of these metrics to `put` (NULL: to nobody), at least
 * once, under the lock: the two lots that still count. A metric without room has an empty tenant
 * and an empty name. Returns the first error of `put`. */
struct watermark_touched {
	int64_t slot_s; /* the oldest of some touches; INT64_MAX: there is none */
	int64_t at_ms;  /* the last of them */
};
enum { WATERMARK_LOTS = 2 };
typedef int watermark_put(void *owner, struct slice tenant, struct slice metric,
			  const struct watermark_touched lots[WATERMARK_LOTS]);
int watermark_touch_each(struct watermark *watermark, int64_t now_ms,
			 const struct mark_touch *touches, size_t count, watermark_put *put,
			 void *owner) MUST_CHECK;

/* ---- A pass ---------------------------------------------------------------------------------- */

/* See rollup_job_run. Slots before closed_s do not count: nobody reads their raw samples. */
void watermark_begin(struct watermark *watermark, int64_t asof_ms, int64_t closed_s);
/* Marks of a slot. Those count that wait for more samples. A mark whose series is damaged does not
 * count: no answer has its samples, and it must not hold back the others. */
void watermark_found(struct watermark *watermark, int64_t slot_s, const struct mark *marks,
		     size_t count);
/* The slot may have further marks, of any metric. */
void watermark_found_any(struct watermark *watermark, int64_t slot_s);
/* `all`: the pass saw all marks. */
void watermark_end(struct watermark *watermark, int64_t now_ms, bool all);
/* Other processes roll up, too, from now on: nothing is known until a pass sees all marks. */
void watermark_forget(struct watermark *watermark);

/* ---- Where the store is shared, instead of watermark_end --------------------------------------
 */

/* Ends a pass that saw all marks of its partitions: slots before this one, in s, are rolled up but
 * for the marks of touches that are no older than the quiet time. */
int64_t watermark_end_own(struct watermark *watermark);
/* Every partition has seen a pass that began at asof_ms or later, and slots before before_s are
 * rolled up in all: touches that are older by the quiet time count no more. */
void watermark_learn(struct watermark *watermark, int64_t now_ms, int64_t asof_ms,
		     int64_t before_s);
/* A cell of the table `watermarks` cannot be read: a line in the log, a few of them a minute.
 * `what`: what comes of it. */
void watermark_warn_unread(struct watermark *watermark, const struct store_parts *row,
			   struct slice writer, const char *what);
/* Whether a touch counts that some process told of, after passes that began at asof_ms. */
bool watermark_counts(const struct watermark *watermark, const struct watermark_touched *touched,
		      int64_t asof_ms);

#endif
