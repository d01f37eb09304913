/* What the writer does beside committing: sealing heads, settling closed segments, cutting the
 * journal, dropping what expired, looking for room. All of it in slices, inside the transactions of
 * the group commits, so that no batch waits for more than a slice.
 *
 * Sealing takes all that a head holds. If nothing of its band lies on disk in that span of time,
 * its blocks go into new extents of the group; else the whole group is read, merged and written
 * anew. Either way the heads stay visible until the transaction is committed (maintain_committed).
 *
 * A group that got several flushes is settled when its segment is closed and it has been quiet: its
 * extents are read and written as one, in long blocks. */
#include "store/lmdb/upkeep.h"

enum {
	SLICE_US = 20000,
};

bool maintain_due(struct engine *engine)
{
	int64_t now = engine_now_us(engine);
	return engine->settle_wanted || engine->seals.count || !engine->found_unsettled ||
	       now >= engine->room_due_us || engine->is_expiring || engine->is_sweeping;
}

int maintain(struct engine *engine, MDB_txn *txn, bool *more)
{
	struct slice_budget budget = {.clock = engine->options.clock,
				      .until_us = engine_now_us(engine) + SLICE_US};
	*more = false;
	engine->cut_count = 0;
	room_look(engine);
	seal_scan(engine);
	if (engine->heads.bytes / 3 > engine->options.head_max_bytes / 2 ||
	    engine->journal_bytes / 3 > engine->options.journal_max_bytes / 2)
		budget.until_us = INT64_MAX; /* writers wait rather than memory growing */
	int err = settle_find(engine, txn, more);
	if (!err)
		err = journal_list_cut(engine, txn, more);
	if (!err)
		err = expire(engine, txn, more);
	if (!err)
		err = expire_cells(engine, txn, more);
	if (!err && !engine->is_expiring)
		err = seal_requested(engine, txn, &budget);
	if (!err && !engine->is_expiring)
		err = seal_oldest(engine, txn, &budget);
	if (!err && !engine->is_expiring)
		err = settle_quiet(engine, txn, &budget);
	*more = *more || engine->seals.count || spent(&budget) || engine->sealed_count;
	return err;
}

void maintain_committed(struct engine *engine)
{
	expire_committed(engine);
	seal_committed(engine);
	journal_list_committed(engine);
	settle_committed(engine);
}

void maintain_aborted(struct engine *engine)
{
	journal_list_aborted(engine);
	expire_aborted(engine);
	seal_aborted(engine);
	settle_aborted(engine);
}
