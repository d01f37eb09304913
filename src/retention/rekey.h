/* Retention applied to what is stored already: what lies in another class of the store than its
 * rule says is re-keyed (store_rekey), in two steps:
 *
 *     SURVEYS ----> COPIES ----> WAITS until reads from before are over ----> CLEARS
 *
 * A step lists some series, counts what of them lies where, and moves what lies elsewhere, a
 * segment of time after the other. Each slice is a commit of its own, so whatever breaks off is
 * done as far as it came; run once more it does the rest. What is damaged stays where it is and is
 * counted.
 *
 * It waits for the store, on the thread of the scope's queue. */
#ifndef RETENTION_REKEY_H
#define RETENTION_REKEY_H

#include "retention/usage.h"

struct retention_rekey_options {
	struct retention_scope scope;
	int64_t asof_ms;  /* what had not expired by then is kept */
	int64_t reads_ms; /* so long a read may take: the wait between the two steps */
};

/* One of the steps. *failed: slices that were left since something in them is damaged, counted up.
 * Or the store's error, ERR_CANCELLED. */
int retention_rekey_step(const struct retention_rekey_options *options, enum store_rekey_step step,
			 uint64_t *failed) MUST_CHECK;

/* Both steps, if the survey of it has found anything to move. */
int retention_rekey(const struct retention_rekey_options *options,
		    const struct retention_usage *survey, uint64_t *failed) MUST_CHECK;

#endif
