/* A read of the store that is waited for: while a queue is opened, before anything else runs. */
#ifndef QUEUE_WAIT_H
#define QUEUE_WAIT_H

#include "base/clock.h"
#include "base/exec.h"
#include "store/store.h"

/* Gives each cell of a row to `each`, ascending; stops at its first error. */
int queue_read_row(struct store *store, struct clock *clock, enum table table,
		   const struct store_parts *key,
		   int (*each)(const struct store_cell *cell, void *owner), void *owner,
		   struct errbuf *e) MUST_CHECK;

#endif
