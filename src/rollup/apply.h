/* Re-keying what is stored in another class than it would be written to now: one step of two
 * (store_rekey). Who wants both runs the first, waits until no read from before it was over runs
 * any more, and runs the second.
 *
 *     LISTS some series ----> COUNTS what of them lies where
 *         ^                        |
 *         +-- MOVES what lies elsewhere, a segment of time after the other
 *
 * Each slice is a commit of its own, so whatever breaks off is done as far as it came; run once
 * more it does the rest. What is damaged stays where it is and is counted.
 *
 * The thread of the executor. */
#ifndef ROLLUP_APPLY_H
#define ROLLUP_APPLY_H

#include "rollup/shares.h"

struct retention_apply;

struct retention_apply_options {
	struct retention_scope scope;
	enum store_rekey_step step;
	int64_t asof_ms; /* what had not expired by then is kept: when the first step began */
	/* `err`: of the store, or ERR_CANCELLED. */
	void (*done)(void *owner, int err);
	void *owner;
};

/* `done` follows, never from within. */
struct retention_apply *retention_apply_start(const struct retention_apply_options *options);
/* From within `done` or later. */
void retention_apply_free(struct retention_apply *apply);
/* Begins nothing further. */
void retention_apply_cancel(struct retention_apply *apply);
/* Slices that were left since something in them is damaged. */
uint64_t retention_apply_failed(const struct retention_apply *apply);

#endif
