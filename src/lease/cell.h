/* Private: the removal of cells of the table `leases` that say whose they are by their value. */
#ifndef LEASE_CELL_H
#define LEASE_CELL_H

#include "base/exec.h"
#include "store/store.h"

/* Removes a cell by the version that it is known to have. If it is there with another version and
 * says that it is still the holder's, as when the outcome of a write was lost, it goes by that one.
 * A cell that says something else is another's by now, and stays; one that has gone is no fault.
 * `write` is reset. ERR_RETRY: somebody else writes the holder's cell; or the store's error. */
int lease_cell_remove(struct store_write *write, struct task_queue *queue,
		      const struct store_parts *row, const struct store_parts *column,
		      uint64_t version, struct slice holder) MUST_CHECK;

#endif
