/* Private to seal.c: the sealing of one run. */
#ifndef FAULT_SEAL_RUN_H
#define FAULT_SEAL_RUN_H

#include "fault/book_private.h"
#include "fault/segment.h"

struct seal_run {
	struct fault_place place; /* its first */
	bool ended;               /* its writer has: it need not be full */
};

/* Writes the segment of a run, and when that is durable the cell that says so, which it returns.
 * Without the lock. ERR_DAMAGED, ERR_VERSION, ERR_LIMIT: the arrivals cannot be sealed;
 * ERR_TIMEOUT: the owner's time is over; the store's error; with a sentence. */
int seal_run(struct fault_book *book, struct task_queue *queue, const struct seal_run *run,
	     int64_t until_ms, struct fault_run_cell *cell, struct errbuf *e) MUST_CHECK;

#endif
