/* Rates of the counters that one device has of one OIDSet: raw data in the store becomes bins,
 * hours and days in the store.
 *
 * Everything here is one function, of a checkpoint and the raw data after it. The job (job.h) runs
 * it and writes what it gives: rows first, then the new checkpoint, so that a crash between the two
 * repeats what is the same. A reader (read.h) runs it to the end and writes nothing. Recomputing
 * (recompute.h) runs it from older raw data and compares.
 *
 * A table is rows (an interface each) of columns (an OID each); every place that is used is a
 * counter and a series of its own. Rows are cut into runs of some hundred counters, in the order of
 * their ids; each run has a checkpoint cell of its own, so that a device of any size is worked off
 * in bounded memory. The table that a caller gives may be any part of what the device has.
 *
 * Threads: a job, a read or a recomputation belongs to the thread of its executor. For one device
 * and OIDSet at most one job or recomputation may run at a time; readers at any time. */
#ifndef RATE_RATE_H
#define RATE_RATE_H

#include "rate/counter.h"
#include "store/store.h"

enum {
	RATE_COLUMNS_MAX = 64,
	RATE_RUN_COUNTERS = 512, /* of one checkpoint cell, about */
};

/* Of a row's id. */
#define RATE_ID_MAX UINT64_C(0x7fffffffffffffff)

/* An OID. */
struct rate_column {
	struct slice name;
	unsigned width_bits; /* 32 or 64 */
	bool octets;         /* it counts those, so that the line's speed bounds it */
};

/* An interface, or whatever else the OIDSet's rows are. */
struct rate_row {
	uint64_t id;             /* rate_row_id */
	const uint64_t *handles; /* by column; 0: it has none */
	uint64_t discontinuity;  /* handle of its ifCounterDiscontinuityTime; 0: none */
	uint64_t speed;          /* handle of its ifHighSpeed; 0: none */
};

struct rate_table {
	struct slice device, oidset;
	struct counter_config config;
	const struct rate_column *columns;
	size_t column_count;
	const struct rate_row *rows; /* ids ascending, none twice: rate_rows_sort */
	size_t row_count;
	uint64_t uptime; /* handle of the device's sysUpTime; 0: none */
};

/* The name of a row that is the same in every process: of its tags, as tags_encode writes them. */
uint64_t rate_row_id(struct slice tags_text);
void rate_rows_sort(struct rate_row *rows, size_t count);
/* ERR_INVALID or ERR_LIMIT with a sentence. */
int rate_table_check(const struct rate_table *table, struct errbuf *e) MUST_CHECK;

/* Where the rows of a level lie in the store. */
enum table rate_level_table(size_t level);

#endif
