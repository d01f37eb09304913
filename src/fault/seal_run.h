/* Private to seal.c and collect.c: the sealing of one run. */
#ifndef FAULT_SEAL_RUN_H
#define FAULT_SEAL_RUN_H

#include "fault/book_private.h"
#include "fault/sealed.h"

struct seal_run {
	struct fault_place place; /* its first */
	bool ended;               /* its writer has: it need not be full */
	/* It is sealed, and is sealed again without some: as it was read, and by place in its
	 * segment which of its reports go. NULL: it is sealed for the first time. */
	const struct fault_run *from;
	const bool *gone;
	/* Of that: adds to the write of the cell that names the segment, which is durable and was
	 * read back, what is to happen before that, as a stage of its own. An error leaves the run
	 * as it is. */
	int (*before_cell)(void *owner, struct store_write *write);
	void *owner;
};

/* Writes the segment of a run, and when that is durable the cell that says so, which it returns. A
 * run that is sealed again is read back before that. Without the lock. ERR_DAMAGED, ERR_VERSION,
 * ERR_LIMIT: the arrivals cannot be sealed; ERR_TIMEOUT: the owner's time is over; the store's
 * error; with a sentence. */
int seal_run(struct fault_book *book, struct task_queue *queue, const struct seal_run *run,
	     int64_t until_ms, struct fault_run_cell *cell, struct errbuf *e) MUST_CHECK;

/* Reads all that a segment has. */
int seal_read_back(struct fault_book *book, struct task_queue *queue, struct fault_place place,
		   const struct fault_run_cell *cell, struct errbuf *e) MUST_CHECK;

/* Sends a write under a stamp, unless filling it in ended with an error, and frees it. Stamp and
 * sending are within the owner's time. */
int seal_send_write(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
		    int64_t stamp_us, struct store_write *write, int err,
		    struct errbuf *e) MUST_CHECK;

#endif
