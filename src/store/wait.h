/* Waiting for the store: a batch is submitted, and the call returns when it has ended.
 *
 * For threads that may stand still: jobs (loop/job.h), a start before anything else runs, commands.
 * Never on a loop, whose other work would stand still as well.
 *
 * The batch ends on `queue`, which is the calling thread's; its executor, `done` and `owner` are
 * set here. When the queue has been stopped nothing is submitted any more, and a read that is under
 * way is cancelled: both give ERR_CANCELLED. A write that is under way is waited for, so that its
 * caller knows what became of it. */
#ifndef STORE_WAIT_H
#define STORE_WAIT_H

#include "base/exec.h"
#include "store/store.h"

/* What store_read_submit refuses, or what the read ended with. */
int store_read_wait(struct store_read *read, struct task_queue *queue) MUST_CHECK;

/* What store_write_submit refuses, or what the write ended with. */
int store_write_wait(struct store_write *write, struct task_queue *queue) MUST_CHECK;

/* The same; a write whose outcome is not known is submitted again, a few times at most. What it has
 * conditions of may be refused by what its own first submission left: then each outcome says what
 * is there. */
int store_write_wait_known(struct store_write *write, struct task_queue *queue) MUST_CHECK;

/* Puts one conditional cell, which has this version now (0: which is not there), or deletes it: a
 * value of NULL data. ERR_EXISTS: it has
 * another one; ERR_UNKNOWN: nobody knows whether it was put; or the store's error. */
int store_put_if_wait(struct store *store, struct task_queue *queue, enum table table,
		      const struct store_parts *key, const struct store_parts *column,
		      uint64_t version, struct slice value) MUST_CHECK;

/* Gives each cell of a row to `each`, in the order of columns, as of now_ms (wall clock), some MB
 * at a time; stops at the first error of `each`. An error of the store has its sentence in `e`. */
int store_row_wait(struct store *store, struct task_queue *queue, int64_t now_ms, enum table table,
		   const struct store_parts *key,
		   int (*each)(const struct store_cell *cell, void *owner), void *owner,
		   struct errbuf *e) MUST_CHECK;

/* The same of the cells that a scan asks for: between two columns, backward, or a number of them.
 */
int store_cells_wait(struct store *store, struct task_queue *queue, int64_t now_ms,
		     const struct store_cell_scan *scan,
		     int (*each)(const struct store_cell *cell, void *owner), void *owner,
		     struct errbuf *e) MUST_CHECK;

/* Gives each row of a table to `each`, in any order (struct store_row), likewise. `each` may wait.
 */
int store_rows_wait(struct store *store, struct task_queue *queue, int64_t now_ms, enum table table,
		    int (*each)(const struct store_row *row, void *owner), void *owner,
		    struct errbuf *e) MUST_CHECK;

#endif
