/* Reading rates: what is stored, and what is not yet, computed from the checkpoints and the raw
 * data after them. Nothing is written. */
#ifndef RATE_READ_H
#define RATE_READ_H

#include "rate/rate.h"

/* Raw data of the future, beyond what clocks may differ by, is not looked at. */
#define RATE_READ_AHEAD_MS INT64_C(86400000)

struct rate_read;
/* `err` 0: the rows are there. ERR_LIMIT: there are more than rows_max. Else the store's error;
 * rate_read_error says it in a sentence. */
typedef void rate_read_done(struct rate_read *read, int err);

struct rate_read_options {
	const struct rate_table *table; /* the rows and columns that are wanted; the caller's, until
					   done */
	size_t level;                   /* 0: bins; 1 ...: the period of that number */
	int64_t from_ms, to_ms;         /* rows that begin in from <= start < to */
	int64_t now_ms;                 /* wall clock */
	int64_t deadline_us;            /* monotonic, of each read; 0: the store's own */
	size_t rows_max;                /* of all counters together */
	rate_read_done *done;
	void *owner;
};

/* Rows of one counter, ascending. A slot that is still open is among them as it is now. */
struct rate_series {
	const struct counter_row *rows;
	size_t count;
};

struct rate_read *rate_read_new(struct store *store, struct executor *executor);
/* Not while it runs. */
void rate_read_free(struct rate_read *read);

/* As rate_job_start. Can be started again after done; results live until then. */
int rate_read_start(struct rate_read *read, const struct rate_read_options *options) MUST_CHECK;

void *rate_read_owner(const struct rate_read *read);
const char *rate_read_error(const struct rate_read *read);
struct rate_series rate_read_series(const struct rate_read *read, size_t row, size_t column);

#endif
