/* A survey of retention: how much of which metric is stored in which class of the store, and which
 * rule says for how long it is to be kept.
 *
 * Numbers are the store's (struct store_share): about, and without what has expired. What was
 * written before a rule was another lies in another class than what is written now; the sums tell
 * how much, by from and to.
 *
 * It waits for the store (usage_walk.h). */
#ifndef RETENTION_USAGE_H
#define RETENTION_USAGE_H

#include "retention/usage_walk.h"

enum { RETENTION_USAGE_LINES_MAX = 10000 };

struct retention_usage_options {
	struct retention_scope scope;
	size_t lines_max; /* at most RETENTION_USAGE_LINES_MAX */
};

/* How much lies in one class. */
struct retention_amount {
	uint64_t series, samples, bytes;
	int64_t oldest_ms; /* if there are any */
};

/* Raw samples, a granularity or late samples of one metric, of which something is stored. */
struct retention_line {
	struct slice tenant, metric;
	int granularity; /* a place, or RETENTION_RAW; their count: late samples */
	uint8_t rule;    /* a place of a retention_fit */
	int64_t keep_ms;
	enum retention_class retention; /* in which it is written now */
	struct retention_amount amounts[RETENTION_CLASSES];
};

struct retention_usage {
	uint64_t series;
	/* By tenant, metric and granularity, in that order. */
	struct retention_line *lines;
	size_t line_count;
	bool cut; /* there would be more; the sums below are of all */
	/* Raw samples, then the granularities, then late samples: from which class to which. */
	struct retention_amount moves[2 + GRANULARITIES_MAX][RETENTION_CLASSES][RETENTION_CLASSES];
	struct arena names;
};

/* Fills *survey, which is released in any case. The store's error: it is of a part. */
int retention_usage(const struct retention_usage_options *options,
		    struct retention_usage *survey) MUST_CHECK;
void retention_usage_release(struct retention_usage *survey);
/* Something lies in another class than it would be written to now. */
bool retention_usage_moves(const struct retention_usage *survey);

#endif
