/* Up to which time a metric is rolled up, as queries ask it: from the slot on that is returned
 * samples may be there that no row says anything of.
 *
 * Two sources, so that the answer is never older than the last sample that can be read:
 *
 *  - touches of this process (track.h), before their samples can be read, if their slot has ended;
 *  - marks that wait while a pass of the job goes by (job.h), of whatever process they are. So
 *    marks of earlier runs count as soon as one pass has seen all there are; until then nothing is
 *    rolled up, for all that is known.
 *
 * Slots that have not been over for the quiet time count as behind without being told. What was
 * touched goes when the touch is as old as the quiet time when a pass begins: by then its mark is
 * durable, and the pass finds it or finishes it. What was found goes when a pass that saw all there
 * is does not find it again. A pass that broke off takes nothing away.
 *
 * By tenant and metric, so that late points of one do not slow down questions for others; of what
 * is beyond WATERMARK_MAX metrics the oldest slot stands for all.
 *
 * Threads: any; a lock of its own, under which nothing else is taken. */
#ifndef MARKS_WATERMARK_H
#define MARKS_WATERMARK_H

#include "marks/marks.h"

enum { WATERMARK_MAX = 1 << 12 };

struct watermark;

struct watermark *watermark_new(int64_t slot_ms, int64_t quiet_ms);
void watermark_free(struct watermark *watermark);

/* Everything of an earlier time is rolled up, in ms; 0: nothing, for all that is known. `metric` is
 * as series-sets have it. */
int64_t watermark_before_ms(struct watermark *watermark, struct slice tenant, struct slice metric);

/* Touches at now_ms, by the wall clock; before their samples can be read. */
void watermark_touch(struct watermark *watermark, int64_t now_ms, const struct mark_touch *touches,
		     size_t count);

/* ---- A pass ---------------------------------------------------------------------------------- */

/* See rollup_job_start. What lies in slots before closed_s nobody reads but in rows: they do not
 * count. */
void watermark_begin(struct watermark *watermark, int64_t asof_ms, int64_t closed_s);
/* Marks of a slot, of which those count that wait: what cannot be made of the others is in no
 * answer, and does not put off what is. */
void watermark_found(struct watermark *watermark, int64_t slot_s, const struct mark *marks,
		     size_t count);
/* There may be further ones of the slot, of whomever. */
void watermark_found_any(struct watermark *watermark, int64_t slot_s);
/* `all`: the pass saw all marks there are. */
void watermark_end(struct watermark *watermark, int64_t now_ms, bool all);
/* From now on others roll up, too: nothing is known, until a pass sees all there is. */
void watermark_forget(struct watermark *watermark);

#endif
