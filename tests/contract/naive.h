/* The store contract done the plainest way: in memory, sorted arrays and linear searches, one lock.
 * It is the yardstick of the model test, and a store for unit tests of whatever stands on one.
 *
 * A batch is worked off inside store_write_submit or store_read_submit; its completion is posted to
 * the executor. Nothing reaches a disk; store_close forgets everything. */
#ifndef TESTS_CONTRACT_NAIVE_H
#define TESTS_CONTRACT_NAIVE_H

#include "base/clock.h"
#include "store/store.h"

struct store *naive_open(struct clock *clock);

/* As if closed and opened again: the data stays, all handles are dead. */
void naive_reopen(struct store *store);

/* Removes what has been expired for longer than the longest query. */
void naive_settle(struct store *store);

/* The next `times` batches that are submitted are refused with `err` (ERR_BUSY, ERR_FULL,
 * ERR_READ_ONLY) and stay the caller's. */
void naive_refuse_writes(struct store *store, int err, unsigned times);
/* The next `times` batches complete with `err`, and nothing of them is kept. */
void naive_fail_writes(struct store *store, int err, unsigned times);
/* The same behind so many that complete as ever. */
void naive_fail_writes_after(struct store *store, unsigned good, int err, unsigned times);
/* Likewise they complete with ERR_UNKNOWN, and all of them is kept. */
void naive_lose_outcomes(struct store *store, unsigned good, unsigned times);
void naive_refuse_reads(struct store *store, int err, unsigned times);
/* Reads of samples and cells that came without a deadline. */
uint64_t naive_endless_reads(struct store *store);
/* Reads of the samples of this series end with ERR_DAMAGED; 0: of none. */
void naive_damage(struct store *store, uint64_t handle);

/* Mistakes to plant, by which the model test shows that it would see them. */
enum naive_bug {
	NAIVE_BUG_NONE,
	NAIVE_BUG_RANGE_END,        /* end is taken as inclusive */
	NAIVE_BUG_RANGE_START,      /* start is taken as exclusive */
	NAIVE_BUG_LOST_OVERWRITE,   /* the first write of a sample wins */
	NAIVE_BUG_WHOLE_OVERWRITE,  /* NONE erases what the field held */
	NAIVE_BUG_LIMIT_PER_SLICE,  /* a limit begins again with each slice */
	NAIVE_BUG_TOKEN_REPEATS,    /* the point at the token is given twice */
	NAIVE_BUG_DELETE_END,       /* a deletion takes the sample at its end too */
	NAIVE_BUG_EXPIRY_EDGE,      /* a sample just as old as its retention is gone */
	NAIVE_BUG_WALL_FOR_NOW,     /* reads take the clock for the query's now */
	NAIVE_BUG_NAN_IS_MIN,       /* NaN may be min and max */
	NAIVE_BUG_SUM_ROUNDS,       /* integers are summed as doubles */
	NAIVE_BUG_COMPARE_ROUNDS,   /* integers are compared as doubles */
	NAIVE_BUG_EQUAL_STAMP_LATE, /* of equal stamps the later write wins */
	NAIVE_BUG_DELETE_FORGETS,   /* a deleted cell leaves no stamp behind */
	NAIVE_BUG_ROW_SPARES_EQUAL, /* a deleted row keeps cells of the same stamp */
	NAIVE_BUG_ROW_FORGETS,      /* a deleted row takes late cells */
	NAIVE_BUG_VERSION_REUSED,   /* a cell that was deleted begins at version 1 again */
	NAIVE_BUG_EXPIRED_LEASE,    /* an expired conditional cell still counts as there */
	NAIVE_BUG_SCAN_TO,          /* the end of a scan is inclusive */
	NAIVE_BUG_SET_UNORDERED,    /* elements in the order of arrival */
	NAIVE_BUG_NAN_PAYLOAD,      /* every NaN is stored as the same one */
	NAIVE_BUG_LOOK_BACK_EDGE,   /* before - look_back itself is left out */
	NAIVE_BUG_FORGET_ALL,       /* forgets series that have data */
	NAIVE_BUG_LOG_REMOVE_TO,    /* a removal takes the column at its end too */
	NAIVE_BUG_LOG_PUT_ONCE,     /* a log cell that is put again keeps its value */
	NAIVE_BUG_REOPEN_LOSES,     /* reopening loses the newest sample of a row */
	NAIVE_BUG_COUNT
};
void naive_plant(struct store *store, enum naive_bug bug);
const char *naive_bug_name(enum naive_bug bug);

#endif
