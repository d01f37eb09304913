/* Upkeep: what the writer does beside committing batches, a slice of it in the transaction of each
 * group commit, so that no batch waits for more than a slice. Here it is put in order; what is done
 * stands in a file for each part:
 *
 *   space.c          is there room for more, and what does the store take up
 *   doubt.c         is the clock believed, so that something may expire
 *   settle.c        groups of several flushes, written once more as one
 *   journal_list.c  the journal's pages, cut where all their records are sealed
 *   expire.c        segments and cells whose time is over
 *   seal.c          heads, written to extents
 *
 * The writer calls maintain() before it puts a cycle's batches, then maintain_committed() or
 * maintain_aborted(). What lies on disk changes with the transaction by itself; what lies in memory
 * (heads, the ring of journal pages, the set of unsettled groups) follows only there. */
#include "store/lmdb/upkeep/upkeep.h"

enum {
	SLICE_US = 20000,
	GIVE_BACK_BYTES = 2 << 20,
	GIVE_BACK_INTERVAL_US = 10000000,
};

/* Whether a cycle is worth running though no batch waits. */
bool maintain_due(struct engine *engine)
{
	int64_t now = engine_now_us(engine);
	return engine->settle_wanted || engine->cut_waits || engine->seals.count ||
	       !engine->found_unsettled || now >= engine->room_due_us || engine->is_expiring ||
	       !engine->is_indexed || engine->sweep.is_running;
}

/* In order of need. What the oldest heads leave in the journal is cut with whatever is committed
 * next: that need not be at once. */
static int write_some(struct engine *engine, MDB_txn *txn, struct slice_budget *budget, bool *more)
{
	int err = seal_requested(engine, txn, budget);
	size_t before = engine->sealed_count;
	if (!err)
		err = seal_oldest(engine, txn, budget);
	size_t oldest = engine->sealed_count - before;
	engine->cut_waits = oldest > 0;
	if (!err)
		err = settle_quiet(engine, txn, budget);
	*more = *more || engine->seals.count || engine->sealed_count > oldest ||
		budget_spent(budget);
	return err;
}

/* Half as much again as there may be: slices do not keep up with the writers. */
static bool overrun(const struct engine *engine)
{
	return engine->heads.bytes / 3 > engine->options.head_max_bytes / 2 ||
	       engine->journal_bytes / 3 > engine->options.journal_max_bytes / 2;
}

int maintain(struct engine *engine, MDB_txn *txn, bool *more)
{
	struct slice_budget budget = {.clock = engine->options.clock,
				      .until_us = engine_now_us(engine) + SLICE_US};
	if (overrun(engine))
		budget.until_us = INT64_MAX; /* writers wait rather than memory growing */
	*more = false;
	room_update(engine);
	int err = doubt_update(engine, txn);
	seal_scan(engine);
	/* The journal is cut by what was sealed and committed before, and expired segments go whole
	 * before anything of theirs is written. */
	if (!err)
		err = settle_find(engine, txn, more);
	if (!err)
		err = journal_list_cut(engine, txn, more);
	if (!err)
		err = expire(engine, txn, more);
	if (!err)
		err = expire_cells(engine, txn, more);
	if (!err && !engine->is_expiring)
		err = write_some(engine, txn, &budget, more);
	return err;
}

/* Heads grow for hours and are sealed within seconds: their memory lies all over the heaps, where
 * nothing gives it back by itself. Where much comes the next heads need it at once, and all that
 * went back costs page faults, so it goes back now and then only. A cycle comes every second. */
static void give_back(struct engine *engine)
{
	uint64_t bytes = engine->heads.bytes;
	if (bytes > engine->heads_most_bytes) {
		engine->heads_most_bytes = bytes;
	} else if (engine->heads_most_bytes - bytes >= GIVE_BACK_BYTES &&
		   bytes <= engine->heads_most_bytes / 4 * 3 &&
		   engine_now_us(engine) >= engine->give_back_due_us) {
		mem_give_back();
		engine->heads_most_bytes = bytes;
		engine->give_back_due_us = engine_now_us(engine) + GIVE_BACK_INTERVAL_US;
	}
}

void maintain_committed(struct engine *engine)
{
	/* Settling last: it asks whether anything is left. */
	doubt_committed(engine);
	expire_committed(engine);
	seal_committed(engine);
	journal_list_committed(engine);
	settle_committed(engine);
	give_back(engine);
}

void maintain_aborted(struct engine *engine)
{
	doubt_aborted(engine);
	journal_list_aborted(engine);
	expire_aborted(engine);
	seal_aborted(engine);
	settle_aborted(engine);
}
