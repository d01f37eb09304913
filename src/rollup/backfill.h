/* Roll-ups that have become those of all raw data.
 *
 * Nobody made roll-ups of what was written before a granularity was configured, and those of a
 * metric may be those of a gauge though it has become a counter, or the other way round; so queries
 * take raw data of that time (since.h). A rebuild of everything (rebuild.h) makes the marks; when
 * it is over
 *
 *  1. that is noted in the cells of since.h, so that a restart does not forget it;
 *  2. a pass of the job has to begin and be over, which finds the marks that earlier runs made:
 *     until then queries would take rows that are not there;
 *  3. where raw data is not kept for ever, that pass has to leave none of these marks, and then the
 *     raw data of slots that were closed has to be gone: they were not marked, or their marks went
 *     since it was too late for them;
 *  4. `since` becomes 0 and `recount` empty, in the store and then for queries: whatever raw data
 *     there is, roll-ups are made of it or it is marked.
 *
 * The thread of the executor, which is that of the queries. */
#ifndef ROLLUP_BACKFILL_H
#define ROLLUP_BACKFILL_H

#include "base/clock.h"
#include "retention/granularity.h"
#include "retention/retention.h"
#include "rollup/rollup.h"
#include "store/store.h"

struct backfill;

struct backfill_options {
	struct store *store;
	struct clock *clock;
	struct executor *executor;
	const struct granularities *granularities; /* one at least */
	int64_t quiet_ms, raw_retention_ms;
	const struct retention_rules *retention_rules; /* NULL: none */
	/* By granularity, as rollup_since_open gave it: the caller's, is changed here. */
	int64_t *since_ms;
	/* As rollup_recount_open made it, likewise. */
	struct buf *recount;
	struct rollup_progress (*progress)(void *owner);
	void *owner;
};

/* Goes on with what was noted. */
struct backfill *backfill_new(const struct backfill_options *options);
/* While idle. */
void backfill_free(struct backfill *complete);

/* Whether marks of all series in from <= begin < to stand for all raw data of which there may be no
 * roll-ups. */
bool backfill_is_all(const struct backfill *complete, int64_t from_ms, int64_t to_ms);
/* They have been made, and none of them is missing. */
void backfill_rebuilt(struct backfill *complete);

/* Looks what has come of it; every second or so, and not while it is to become idle. */
void backfill_tick(struct backfill *complete);
bool backfill_idle(const struct backfill *complete);

#endif
