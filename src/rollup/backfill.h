/* Backfill: roll-ups that have become those of all raw data.
 *
 * Nobody made roll-ups of what was written before a granularity was configured, and those of a
 * metric may be those of a gauge though it has become a counter, or the other way round; so queries
 * take raw data of that time (stored_settings.h). A rebuild of everything (remark.h) makes the
 * marks. Then
 *
 *  1. the rebuild is noted in the stored settings, so that a restart does not forget it;
 *  2. a pass has to begin and end, which finds the marks that earlier runs made: until then queries
 *     would take rows that are not there;
 *  3. where raw data is not kept for ever, that pass has to leave none of these marks, and then the
 *     raw data of slots that were closed has to be gone: these slots were not marked, or their
 *     marks went because it was too late for them;
 *  4. since_ms becomes 0 and `recount` is over, in the store and then for queries: whatever raw
 * data there is, roll-ups are made of it or it is marked.
 *
 * What is refused by the store is tried again after the next pass.
 *
 * Where several processes share the store, each that rolls up does all of this from 2. on, whoever
 * made the marks: it reads the notes after each of its passes. There the pass has to leave no such
 * mark in any partition, also where raw data is kept for ever, since queries of other processes
 * need not know of the marks. The end is a condition on the cells as they were noted, so it is
 * harmless that several come to it; all others follow (stored_settings_follow).
 *
 * Threads: any. backfill_rebuilt, backfill_end_pass and backfill_look wait for the store. */
#ifndef ROLLUP_BACKFILL_H
#define ROLLUP_BACKFILL_H

#include "rollup/site.h"

struct backfill;

/* The site is the caller's; its settings change. */
struct backfill *backfill_new(struct rollup_site *site);
void backfill_free(struct backfill *backfill);

/* Whether marks of all series in from <= begin < to stand for all raw data of which there may be no
 * roll-ups. */
bool backfill_is_all(const struct backfill *backfill, int64_t from_ms, int64_t to_ms);
/* These marks have been made, and none of them is missing. */
void backfill_rebuilt(struct backfill *backfill, struct task_queue *queue);

/* A pass begins. */
void backfill_begin_pass(struct backfill *backfill);
/* That pass is over. before_ms: it left no mark of an earlier time; 0: it cannot tell. Reads first
 * what an earlier process noted. */
void backfill_end_pass(struct backfill *backfill, struct task_queue *queue, int64_t before_ms);
/* Between passes, and where there are none: looks what other processes have noted or brought to an
 * end, and notes what is not noted yet. */
void backfill_look(struct backfill *backfill, struct task_queue *queue);

#endif
