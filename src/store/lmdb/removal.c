/* Batches that do nothing but remove from logs, in slices: each commit takes some of the cells, and
 * the batch is done when the last of them is durable. So the batches behind it wait for a slice and
 * no more, however much there is to remove.
 *
 * Until then it stands at the head of the queue. What is put behind it goes on, but for a batch
 * that has cells of a log row that is being removed from: that one would lose what it puts, so it
 * waits, and with it all that came later. A slice that is undone, or a process that ends in
 * between, leaves cells that were to go; whoever asked asks again.
 *
 * All removals of a transaction share its one slice. The first cell of a slice always goes. */
#include "store/lmdb/engine.h"

enum {
	SLICE_US = 20000,
	SLICE_BYTES = 4 << 20,
	STEPS_PER_LOOK = 64, /* at the clock */
	COMPARISONS_MAX = 100000,
};

void removal_begin(struct removal_slice *slice, struct engine *engine)
{
	*slice = (struct removal_slice){.engine = engine};
}

void removal_start(struct removal_slice *slice)
{
	if (!slice->until_us)
		slice->until_us = engine_now_us(slice->engine) + SLICE_US;
}

void removal_charge(struct removal_slice *slice, size_t bytes)
{
	slice->bytes += bytes;
	slice->steps++;
	if (slice->steps % STEPS_PER_LOOK == 0)
		slice->spent |= engine_now_us(slice->engine) >= slice->until_us;
	slice->spent |= slice->bytes >= SLICE_BYTES;
}

bool removal_alone(const struct store_write *write)
{
	const struct store_stage *stage = write->stages;
	if (!stage || stage->next || !stage->first_cell || stage->first_chunk || stage->forgets ||
	    stage->rekeying)
		return false;
	for (const struct cell_node *c = stage->first_cell; c; c = c->next)
		if (c->cell.action != CELL_LOG_REMOVE)
			return false;
	return true;
}

int removal_put(struct removal_slice *slice, MDB_txn *txn, struct store_stage *stage)
{
	struct cell_node *node = stage->removed_to ? stage->removed_to : stage->first_cell;
	int err = 0;
	/* What upkeep took of this cycle before is not the removal's. */
	removal_start(slice);
	while (node && !err && !slice->spent) {
		bool left;
		err = cells_remove(slice->engine, txn, &node->cell, slice, &left);
		removal_charge(slice, 0);
		if (!left)
			node = node->next;
	}
	stage->removing = node;
	return err;
}

bool removal_is_left(const struct store_write *write)
{
	return write->stages && write->stages->removing;
}

bool removal_goes_on(const struct store_write *write)
{
	return write->stages && write->stages->removed_to;
}

void removal_committed(struct store_write *write)
{
	if (write->stages)
		write->stages->removed_to = write->stages->removing;
}

void removal_ended(struct store_write *write)
{
	if (write->stages)
		write->stages->removed_to = write->stages->removing = NULL;
}

static bool removal_same_row(const struct store_cell_write *a, const struct store_cell_write *b)
{
	return a->table == b->table && slice_equal(a->key, b->key);
}

bool removal_meets(const struct store_write *left, const struct store_write *write)
{
	size_t comparisons = 0;
	for (const struct store_stage *s = write->stages; s; s = s->next) {
		for (const struct cell_node *c = s->first_cell; c; c = c->next) {
			if (schema[c->cell.table].cell_kind != CELL_LOG)
				continue;
			for (const struct cell_node *r = left->stages->removing; r; r = r->next)
				if (removal_same_row(&c->cell, &r->cell) ||
				    ++comparisons > COMPARISONS_MAX)
					return true;
		}
	}
	return false;
}
