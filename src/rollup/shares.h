/* What of the series of a walk's group lies in which class of the store: a count of their raw
 * samples and of their rows of each granularity.
 *
 * Each of these is a place: 0 the raw samples, then the granularities from the finest on.
 *
 * The walk is the caller's, and stays for as long as this does. The thread of its executor. */
#ifndef ROLLUP_SHARES_H
#define ROLLUP_SHARES_H

#include "rollup/grain.h"
#include "rollup/series_walk.h"

enum { SHARES_PLACES_MAX = 1 + ROLLUP_GRAINS_MAX };

struct shares;

struct shares_options {
	struct series_walk *walk;
	const struct rollup_grains *grains; /* the caller's */
	/* Of the group's series at `series`, and a place: one share for each class. Once for each,
	 * in any order of places; what is pointed to is gone after that. */
	void (*take)(void *owner, size_t series, size_t place, const struct store_share *shares);
	/* All are taken, or `err`, of the store. Where the read cannot even be submitted, the walk
	 * is over instead. */
	void (*done)(void *owner, int err);
	void *owner;
};

struct shares *shares_new(const struct shares_options *options);
/* Not while it counts. */
void shares_free(struct shares *shares);
/* Counts the group that the walk has now; `done` of this or of the walk follows. */
void shares_count(struct shares *shares);

static inline size_t shares_places(const struct rollup_grains *grains)
{
	return 1 + grains->count;
}

static inline enum table shares_table(size_t place)
{
	return place ? TABLE_DATA_DOWNSAMPLED : TABLE_DATA_RAW;
}

static inline int64_t shares_period_ms(const struct rollup_grains *grains, size_t place)
{
	return place ? grains->list[place - 1].width_ms : 0;
}

#endif
