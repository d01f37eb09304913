/* Reading one counter of /v2: its samples, or the rows of one period, piece by piece in the order
 * of time. What is stored and what is still open (raw data behind the last checkpoint) come as one.
 *
 * Embedded in its owner. `got` is called once for each piece, never from within v2_fetch_start or
 * v2_fetch_next, and not after v2_fetch_release. Threads: the loop's. */
#ifndef API_ESMOND_FETCH_H
#define API_ESMOND_FETCH_H

#include "api/esmond/answer.h"
#include "api/esmond/samples.h"
#include "catalog/catalog.h"
#include "model/counter_key.h"
#include "rate/counter.h"

struct v2_fetch_work;

/* Which counter. Everything pointed to outlives the fetch. */
struct v2_target {
	struct slice device;
	const struct oidset *oidset;
	const struct oid_def *oid;
	struct slice path[COUNTER_KEY_PATH_MAX];
	size_t path_count; /* as many as the OIDSet has tags, or 0 of a scalar */
};

struct v2_fetch {
	/* The caller fills these in. */
	struct v2_answer *answer;
	struct v2_target target;
	bool raw;               /* samples, else rows */
	int64_t period_ms;      /* of the rows: the OIDSet's frequency or one of its aggregates */
	int64_t from_ms, to_ms; /* from <= time < to */
	void (*got)(struct v2_fetch *fetch);

	/* Results, until the next call. */
	int err;
	struct errbuf error;
	bool found; /* there is such a counter */
	bool more;  /* v2_fetch_next has another piece */
	size_t count;
	const struct counter_row *rows;
	const struct v2_sample *samples; /* raw: numbers, and what else was polled */
	int64_t until_ms;                /* what lies before it has been given */

	/* private */
	struct v2_fetch_work *work;
};

void v2_fetch_start(struct v2_fetch *fetch);
/* Only while `more`. */
void v2_fetch_next(struct v2_fetch *fetch);
/* At any time, also before the start (of zeroes). */
void v2_fetch_release(struct v2_fetch *fetch);

#endif
