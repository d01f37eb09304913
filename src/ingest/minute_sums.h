/* Counts of things that happened, added up by series and minute of their time, into tagged metrics:
 * for senders that say how many there were since they spoke last, as Sentry's clients do.
 *
 * Sums are kept here, and written a second after something was added, as a sample that replaces the
 * one before. Several processes, and this one after a restart, may count for the same minute: each
 * run writes at a millisecond of its own in the first ten seconds of the minute, drawn by chance,
 * so that none replaces the sample of another one. How many there were in a minute is the sum of
 * its samples. Of 10,000 pairs of runs that count the same minute one draws the same millisecond:
 * then the later run replaces the sample of the other one.
 *
 * Sums have a maximum. At it all are forgotten once they are written, and the next ones are written
 * at the next millisecond. So nothing is lost by that, however late a count comes.
 *
 * Whoever adds is not told when it is durable: what came since the last write, about a second, is
 * lost by a kill. A write that fails is tried again with the next one; what ingest refuses (names,
 * a time out of its range, the catalog's limits) is gone, and counted there.
 *
 * Threads: everything here belongs to the thread of ingest. */
#ifndef INGEST_MINUTE_SUMS_H
#define INGEST_MINUTE_SUMS_H

#include "base/clock.h"
#include "ingest/ingest.h"

enum {
	MINUTE_TAGS_MAX = 3,
	MINUTE_COUNTS_MAX = 1000,      /* of one sender's request; more are left out and counted */
	MINUTE_COUNT_MAX = 1000000000, /* one that is more is none */
	MINUTE_UNKNOWN = -1,
};

struct minute_count {
	struct slice metric;
	struct tag tags[MINUTE_TAGS_MAX]; /* by key */
	size_t tag_count;
	int64_t ms; /* when it was; MINUTE_UNKNOWN: now */
	uint64_t count;
	struct minute_count *next;
};

/* What a request counts, in an arena. Zeroed: nothing. */
struct minute_counts {
	struct minute_count *first;
	size_t count;
};

/* A copy; its texts too. What is beyond the maximum, or 0, or finds no room is left out. */
void minute_counts_add(struct minute_counts *counts, const struct minute_count *count,
		       struct arena *arena);

struct minute_sums;

struct minute_sums_options {
	struct ingest *ingest;
	struct clock *clock;
	uint64_t seed;       /* of hashes, and of the first millisecond; 0: the system's */
	size_t sums_max;     /* 0: 10,000 */
	int64_t interval_ms; /* between writes; 0: a second */
};

struct minute_sums *minute_sums_new(const struct minute_sums_options *options);
/* It must be idle. */
void minute_sums_free(struct minute_sums *sums);

void minute_sums_add(struct minute_sums *sums, struct slice tenant,
		     const struct minute_counts *counts);
/* Writes what is due. To be called a few times a second. */
void minute_sums_tick(struct minute_sums *sums);
/* Writes what is left, once. */
void minute_sums_stop(struct minute_sums *sums);
/* No write is under way. */
bool minute_sums_idle(const struct minute_sums *sums);

#endif
