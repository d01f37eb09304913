/* Rebuilds what is stored of a table's rates from raw data, and reports what differed.
 *
 * Only closed rows are looked at, and only where raw data is there to say what they should be: rows
 * that begin before a counter's first raw sample stay as they are, since they may come from raw
 * data that has expired. What is open belongs to the checkpoint and is not touched.
 *
 * Works off one interface after the other, a slice of time after the other, each with a write of
 * its own; broken off, it has done some of its work and can be run again. */
#ifndef RATE_RECOMPUTE_H
#define RATE_RECOMPUTE_H

#include "rate/rate.h"

enum { RATE_DIFFERENCES_MAX = 100 };

struct rate_difference {
	size_t row, column; /* of the table */
	bool was, is;       /* stored; computed */
	struct counter_row stored, computed;
};

struct rate_recompute;
/* As rate_job_done. */
typedef void rate_recompute_done(struct rate_recompute *recompute, int err);

struct rate_recompute_options {
	const struct rate_table *table; /* the caller's, until done */
	int64_t from_ms, to_ms;         /* rows that begin in from <= start < to, of each level */
	int64_t until_ms, now_ms;       /* as for a job */
	enum retention_class retention[COUNTER_LEVELS_MAX];
	bool only_report; /* write nothing */
	/* Looked at between slices; set by any thread: it ends with ERR_CANCELLED. May be NULL. */
	const _Atomic bool *cancelled;
	rate_recompute_done *done;
	void *owner;
};

struct rate_recompute_result {
	uint64_t compared; /* rows that were computed, or stored and should not be */
	uint64_t differed; /* of them: stored otherwise */
	uint64_t missing;  /* of them: not stored */
	uint64_t extra;    /* of them: stored, and raw data knows nothing of it */
	struct rate_difference list[RATE_DIFFERENCES_MAX]; /* the first of these */
	size_t list_count;
};

struct rate_recompute *rate_recompute_new(struct store *store, struct executor *executor);
void rate_recompute_free(struct rate_recompute *recompute);
int rate_recompute_start(struct rate_recompute *recompute,
			 const struct rate_recompute_options *options) MUST_CHECK;

void *rate_recompute_owner(const struct rate_recompute *recompute);
const char *rate_recompute_error(const struct rate_recompute *recompute);
const struct rate_recompute_result *rate_recompute_result(const struct rate_recompute *recompute);

#endif
