/* The parts of upkeep, which maintain.c puts in order. Private to them: all run in the writer's
 * thread, and those that are given a transaction inside it.
 *
 * A part that changes what is in memory along with the transaction has a pair x_committed and
 * x_aborted, the one to make it final, the other to put it back. */
#ifndef STORE_LMDB_UPKEEP_UPKEEP_H
#define STORE_LMDB_UPKEEP_UPKEEP_H

#include "store/lmdb/engine.h"

/* The bounds of one slice. */
enum { SLICE_BYTES = 8 << 20 };
struct slice_budget {
	struct clock *clock;
	int64_t until_us;
	uint64_t bytes;
};

static inline bool budget_spent(const struct slice_budget *budget)
{
	return budget->bytes >= SLICE_BYTES ||
	       budget->clock->mono_us(budget->clock) >= budget->until_us;
}

/* Somebody waits for everything to be settled, open segments too. */
static inline bool settles_all(const struct engine *engine)
{
	return engine->settle_wanted && !engine->settle_closed_only;
}

/* ---- seal.c ---------------------------------------------------------------------------------- */

/* Asks for the heads of closed segments that have been quiet to be sealed. */
void seal_scan(struct engine *engine);
/* Seals what has been asked for, as far as the budget goes. */
int seal_requested(struct engine *engine, MDB_txn *txn, struct slice_budget *budget) MUST_CHECK;
/* Seals the heads that hold the journal, oldest first, while it or the heads are too many. */
int seal_oldest(struct engine *engine, MDB_txn *txn, struct slice_budget *budget) MUST_CHECK;
/* The heads that were sealed go; */
void seal_committed(struct engine *engine);
/* or stay, and are asked for again. */
void seal_aborted(struct engine *engine);

/* Heads of one group that are sealed together, and with them rows that never were in heads. */
struct sealing {
	struct head *heads[GROUP_BANDS_MAX];
	uint32_t ordinal_in_group[GROUP_BANDS_MAX];
	size_t count;
	const struct record_run *runs; /* later than the heads */
	size_t run_count;
	uint64_t sequence; /* of the runs */
};
/* Those that are not yet sealed; unless `all`, without small ones. */
void seal_collect(struct engine *engine, const struct group_id *id, bool all,
		  struct sealing *sealing);
/* Writes them beside what the group has on disk, or merged with it, and takes the heads. */
int seal_put(struct engine *engine, MDB_txn *txn, const struct group_id *id,
	     const struct sealing *sealing, uint64_t *bytes) MUST_CHECK;
/* Writes what the heads hold; with `rewrite` merged with all that the group has on disk. An error
 * with *changed false left the group as it was, so that one may go on; else the transaction has to
 * be aborted. */
int seal_write(struct engine *engine, MDB_txn *txn, const struct group_id *id,
	       const struct sealing *sealing, bool rewrite, uint32_t flush, uint64_t *bytes,
	       bool *changed) MUST_CHECK;
/* The heads are written: they go with the commit. */
void seal_mark_heads(struct engine *engine, const struct sealing *sealing, bool rewritten);

/* ---- settle.c -------------------------------------------------------------------------------- */

/* A segment is closed so long after its end, for late samples. */
enum { SEGMENT_LATE_MS = 3600000 };
/* Whether it lies wholly in the past, and nothing late is expected any more. */
bool segment_closed(const struct segment_id *id, int64_t now_ms);
/* Since when a head or group must not have been touched for upkeep to take it. */
int64_t quiet_since_us(const struct engine *engine, int64_t now_us);
/* Finds the groups that were left unsettled before the start, a slice of the keys at a time. */
int settle_find(struct engine *engine, MDB_txn *txn, bool *more) MUST_CHECK;
/* Settles groups that are due, as far as the budget goes. */
int settle_quiet(struct engine *engine, MDB_txn *txn, struct slice_budget *budget) MUST_CHECK;
/* The group has nothing to settle, by this transaction; if that is aborted, it waits as before. */
void settle_leave(struct engine *engine, const struct group_id *id);
/* Tells whoever waits (lmdb_settle) when nothing is left. */
void settle_committed(struct engine *engine);
void settle_aborted(struct engine *engine);

/* ---- journal_list.c -------------------------------------------------------------------------- */

/* Whether the oldest page has only records that are sealed. */
bool journal_list_can_cut(const struct engine *engine);
/* Drops pages whose records are all sealed. What this transaction seals counts from the next on. */
int journal_list_cut(struct engine *engine, MDB_txn *txn, bool *more) MUST_CHECK;
void journal_list_committed(struct engine *engine);
void journal_list_aborted(struct engine *engine);

/* ---- expire.c -------------------------------------------------------------------------------- */

/* Wholly, and for as long as a query may last. */
bool segment_expired(const struct segment_id *id, int64_t now_ms);
/* Whether it is to go by now: never while the clock is doubted. */
bool expires_now(struct engine *engine, const struct segment_id *id);
/* Deletes some of the first segment that has expired. */
int expire(struct engine *engine, MDB_txn *txn, bool *more) MUST_CHECK;
/* Goes on with the sweep of cells that expire() has begun. */
int expire_cells(struct engine *engine, MDB_txn *txn, bool *more) MUST_CHECK;
/* A segment of which nothing is left goes from memory. */
void expire_committed(struct engine *engine);
void expire_aborted(struct engine *engine);

/* ---- doubt.c --------------------------------------------------------------------------------- */

/* Looks at the clock, says what has come of it, and keeps that for the next start. */
int doubt_update(struct engine *engine, MDB_txn *txn) MUST_CHECK;
void doubt_committed(struct engine *engine);
void doubt_aborted(struct engine *engine);

/* ---- space.c --------------------------------------------------------------------------------- */

/* Whether there is room for more: sets `full`, and the gauges. */
void room_update(struct engine *engine);

#endif
