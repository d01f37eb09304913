/* A walk over series that counts what of them lies in which class of the store: of their raw
 * samples and of their rows of each granularity.
 *
 * What is counted of a series is a place: 0 its raw samples, then the granularities from the finest
 * on, then its late samples. Numbers are the store's (struct store_share): about, and without what
 * has expired.
 *
 * It waits as the walk does (series_walk.h), and belongs to the thread of its queue. */
#ifndef RETENTION_USAGE_WALK_H
#define RETENTION_USAGE_WALK_H

#include "retention/retention.h"
#include "store/series_walk.h"

enum { USAGE_WALK_PLACES_MAX = 2 + GRANULARITIES_MAX };

/* Which series are looked at, and how long they are to be kept. */
struct retention_scope {
	struct store *store;
	struct clock *clock;
	struct task_queue *queue;                  /* of the thread that looks */
	const struct granularities *granularities; /* the caller's */
	int64_t late_retention_ms;                 /* as those that write late samples have it */
	const struct retention_rules *rules;       /* the caller's */
	struct slice tenant, metric;               /* empty: all; the caller's */
};

struct usage_walk_options {
	struct retention_scope scope;
	size_t group_max, read_max_bytes; /* of memory, for a list and for what is counted */
	/* Of a series, which is the group's at `i`, and a place: one share for each class. Once for
	 * each, in any order; what is pointed to is gone after that. */
	void (*take)(void *owner, size_t i, const struct store_series *series, size_t place,
		     const struct store_share *shares);
	void *owner;
};

struct usage_walk;

struct usage_walk *usage_walk_new(const struct usage_walk_options *options);
void usage_walk_free(struct usage_walk *shares);
/* The next group, of which all was given to `take`; its count is 0 when there are no more series.
 * Or the store's error. */
int usage_walk_next(struct usage_walk *shares, struct series_group *group) MUST_CHECK;

size_t usage_walk_places(const struct usage_walk *shares);
enum table usage_walk_table(const struct usage_walk *shares, size_t place);
int64_t usage_walk_period_ms(const struct usage_walk *shares, size_t place);

struct usage_walk_kept {
	uint8_t rule; /* a place of a retention_fit */
	int64_t keep_ms;
	enum retention_class retention; /* in which it is written now */
};
/* For how long what lies at a place of a metric's series is to be kept. */
struct usage_walk_kept usage_walk_kept(struct usage_walk *shares, struct slice tenant,
				       struct slice metric, size_t place);

#endif
