/* Rebuilds what is stored of a table's rates from raw data, and reports what differed.
 *
 * Only closed rows are looked at, and only where raw data is there to say what they should be: rows
 * that begin before a counter's first raw sample stay as they are, since they may come from raw
 * data that has expired. What is open belongs to the checkpoint and is not touched.
 *
 * Works off one interface after the other, a slice of time after the other, each with a write of
 * its own; broken off, it has done some of its work and can be run again.
 *
 * A plain function that waits for the store, for a job. */
#ifndef RATE_RECOMPUTE_H
#define RATE_RECOMPUTE_H

#include "rate/rate.h"

enum { RATE_DIFFERENCES_MAX = 100 };

struct rate_difference {
	size_t row, column; /* of the table */
	bool was, is;       /* stored; computed */
	struct counter_row stored, computed;
};

struct rate_recompute_options {
	struct store *store;
	struct task_queue *queue; /* on which it waits */
	const struct rate_table *table;
	int64_t from_ms, to_ms;   /* rows that begin in from <= start < to, of each level */
	int64_t until_ms, now_ms; /* as for a job */
	enum retention_class retention[COUNTER_LEVELS_MAX];
	bool only_report; /* write nothing */
};

struct rate_recompute_result {
	uint64_t compared; /* rows that were computed, or stored and should not be */
	uint64_t differed; /* of them: stored otherwise */
	uint64_t missing;  /* of them: not stored */
	uint64_t extra;    /* of them: stored, and raw data knows nothing of it */
	struct rate_difference list[RATE_DIFFERENCES_MAX]; /* the first of these */
	size_t list_count;
};

/* ERR_CANCELLED: the queue was stopped. ERR_INVALID, ERR_LIMIT: the table; or an error of the
 * store; `e` has a sentence. `result` has what was done until then. */
int rate_recompute(const struct rate_recompute_options *options,
		   struct rate_recompute_result *result, struct errbuf *e) MUST_CHECK;

#endif
