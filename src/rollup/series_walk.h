/* A walk over the stored series of a tenant, of a metric, or of all: a group of them at a time, so
 * that memory is bounded by the group. Whatever looks at all that is stored is built on it.
 *
 *     LISTS a group ----> `group`: the owner reads and writes what it wants of these
 *         ^                  |
 *         +------------------+ series_walk_next
 *
 * It is over with one `done`, and nothing comes of it after that: when there are no more series,
 * when the store has refused a list or a read, or at the first of these after it was cancelled.
 * Where the owner meets an error of its own, it stops calling series_walk_next and is over then.
 *
 * A series that comes while the walk goes may be in it or not.
 *
 * The walk is its owner's, and so is a read that is made here. The thread of the executor. */
#ifndef ROLLUP_SERIES_WALK_H
#define ROLLUP_SERIES_WALK_H

#include "base/clock.h"
#include "base/exec.h"
#include "model/series.h"
#include "store/store.h"

struct series_walk;

struct series_walk_options {
	struct store *store;
	struct clock *clock;
	struct executor *executor;
	struct slice tenant, metric; /* empty: all; copied */
	size_t group_max;            /* series */
	size_t read_max_bytes;       /* of a list, and of each read that is made here */
	void (*group)(void *owner);  /* there is one, of one series at least */
	/* `err`: 0 when there are no more, else of the store, or ERR_CANCELLED. */
	void (*done)(void *owner, int err);
	void *owner;
};

/* Valid from `group` on, until series_walk_next. */
struct series_group {
	const struct store_series *series;
	const uint64_t *handles; /* of these */
	size_t count;
};

/* `group` or `done` follows, never from within. */
struct series_walk *series_walk_start(const struct series_walk_options *options);
/* From within `done` or later; where the owner is over by itself, while no list is under way. */
void series_walk_free(struct series_walk *walk);
/* Reads nothing further. */
void series_walk_cancel(struct series_walk *walk);
bool series_walk_cancelled(const struct series_walk *walk);

struct series_group series_walk_group(const struct series_walk *walk);
/* The series-set of one of them, of which these are the tags, in `arena`. ERR_LIMIT: it has no
 * room.
 */
int series_walk_name(const struct store_series *series, struct tags tags, struct arena *arena,
		     struct series_set *to) MUST_CHECK;
/* The next group; `group` follows, never from within; `done` may come from within. */
void series_walk_next(struct series_walk *walk);

/* Those series of a group that are read together: all from `from` on, or fewer. Where something of
 * them is damaged they are read again one by one, so that only what is damaged is left out.
 * Zeroed, it stands before a group. */
struct series_part {
	size_t from, to;
	bool one_by_one;
};

/* The next of a group of `count`; false: there are no more. */
static inline bool series_part_next(struct series_part *part, size_t count)
{
	part->from = part->to;
	part->to = part->one_by_one && part->from < count ? part->from + 1 : count;
	return part->from < count;
}

static inline size_t series_part_count(const struct series_part *part)
{
	return part->to - part->from;
}

/* Something of it is damaged: the next are the same, one by one. False: it is a single one. */
static inline bool series_part_again(struct series_part *part)
{
	if (series_part_count(part) == 1)
		return false;
	part->one_by_one = true;
	part->to = part->from;
	return true;
}

/* A read of the same store, for any number of turns. It is freed before the store is. */
struct store_read *series_walk_read_new(const struct series_walk *walk, store_read_done *done,
					void *owner);
/* Submits it as of now. Where that cannot be, the walk is over: `done` comes from within. */
void series_walk_submit(struct series_walk *walk, struct store_read *read);

#endif
