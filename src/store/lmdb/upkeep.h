/* The parts of upkeep, which maintain.c puts in order. Private to them: all run in the writer's
 * thread, and those that are given a transaction inside it.
 *
 * A part that changes what is in memory along with the transaction has a pair x_committed and
 * x_aborted, the one to make it final, the other to put it back. */
#ifndef STORE_LMDB_UPKEEP_H
#define STORE_LMDB_UPKEEP_H

#include "store/lmdb/engine.h"

/* The bounds of one slice. */
enum { SLICE_BYTES = 8 << 20 };
struct slice_budget {
	struct clock *clock;
	int64_t until_us;
	uint64_t bytes;
};

static inline bool spent(const struct slice_budget *budget)
{
	return budget->bytes >= SLICE_BYTES ||
	       budget->clock->mono_us(budget->clock) >= budget->until_us;
}

static inline bool settles_all(const struct engine *engine)
{
	return engine->settle_wanted && !engine->settle_closed_only;
}

/* seal.c */
struct sealing {
	struct head *heads[GROUP_BANDS_MAX];
	uint32_t ordinal_in_group[GROUP_BANDS_MAX];
	size_t count;
};
void seal_scan(struct engine *engine);
int seal_requested(struct engine *engine, MDB_txn *txn, struct slice_budget *budget) MUST_CHECK;
int seal_oldest(struct engine *engine, MDB_txn *txn, struct slice_budget *budget) MUST_CHECK;
void seal_committed(struct engine *engine);
void seal_aborted(struct engine *engine);
void seal_collect(struct engine *engine, const struct group_id *id, bool all,
		  struct sealing *sealing);
int seal_write(struct engine *engine, MDB_txn *txn, const struct group_id *id,
	       const struct sealing *sealing, bool rewrite, uint32_t flush, uint64_t *bytes,
	       bool *changed) MUST_CHECK;
void seal_take(struct engine *engine, struct head *head);

/* settle.c */
bool segment_closed(const struct segment_id *id, int64_t now_ms);
int settle_find(struct engine *engine, MDB_txn *txn, bool *more) MUST_CHECK;
int settle_quiet(struct engine *engine, MDB_txn *txn, struct slice_budget *budget) MUST_CHECK;
void settle_committed(struct engine *engine);
void settle_aborted(struct engine *engine);

/* journal_list.c */
int journal_list_cut(struct engine *engine, MDB_txn *txn, bool *more) MUST_CHECK;
void journal_list_committed(struct engine *engine);
void journal_list_aborted(struct engine *engine);

/* expire.c */
int expire(struct engine *engine, MDB_txn *txn, bool *more) MUST_CHECK;
int expire_cells(struct engine *engine, MDB_txn *txn, bool *more) MUST_CHECK;
void expire_committed(struct engine *engine);
void expire_aborted(struct engine *engine);

/* room.c */
void room_look(struct engine *engine);

#endif
