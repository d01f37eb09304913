#include "lease/cell.h"

#include "store/wait.h"

static int lease_cell_remove_once(struct store_write *write, struct task_queue *queue,
				  const struct store_parts *row, const struct store_parts *column,
				  uint64_t version, struct store_write_cond **outcome)
{
	store_write_reset(write);
	int err = store_cell_delete_if(write, TABLE_LEASES, row, column, version, outcome);
	return err ? err : store_write_wait_known(write, queue);
}

/* What is left to be removed. */
static bool lease_cell_stays(const struct store_write_cond *outcome, struct slice holder)
{
	return !outcome->applied && outcome->version && slice_equal(outcome->value, holder);
}

int lease_cell_remove(struct store_write *write, struct task_queue *queue,
		      const struct store_parts *row, const struct store_parts *column,
		      uint64_t version, struct slice holder)
{
	struct store_write_cond *outcome;
	int err = lease_cell_remove_once(write, queue, row, column, version, &outcome);
	if (!err && lease_cell_stays(outcome, holder))
		err = lease_cell_remove_once(write, queue, row, column, outcome->version, &outcome);
	if (!err && lease_cell_stays(outcome, holder))
		err = ERR_RETRY;
	return err;
}
