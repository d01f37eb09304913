/* A walk over the stored series of a tenant, of a metric, or of all: a group of them at a time, so
 * that memory is bounded by the group. Whatever looks at all that is stored is built on it.
 *
 * A series that comes while the walk goes may be in it or not.
 *
 * Each call waits for the store (store/wait.h) on the queue of the walk, so all of it belongs to
 * the thread of that queue. ERR_CANCELLED: the queue was stopped. */
#ifndef STORE_SERIES_WALK_H
#define STORE_SERIES_WALK_H

#include "base/clock.h"
#include "base/exec.h"
#include "model/series.h"
#include "store/store.h"

struct series_walk;

struct series_walk_options {
	struct store *store;
	struct clock *clock;
	struct task_queue *queue;
	struct slice tenant, metric; /* empty: all; they stay for as long as the walk */
	size_t group_max;            /* series */
	size_t list_max_bytes;       /* of memory, for a list of series */
};

/* Valid until the next series_walk_next. */
struct series_group {
	const struct store_series *series;
	const uint64_t *handles; /* of these */
	size_t count;
};

struct series_walk *series_walk_new(const struct series_walk_options *options);
void series_walk_free(struct series_walk *walk);

/* The next group; its count is 0 when there are no more series. Or the store's error. */
int series_walk_next(struct series_walk *walk, struct series_group *group) MUST_CHECK;

/* Reads from the same store, as of now (clock_age_ms). Or the store's error. */
int series_walk_read(const struct series_walk *walk, struct store_read *read) MUST_CHECK;

/* Where there is something next: *ts_ms is the time of the first sample that any series of the
 * range has, INT64_MAX if there is none. So stretches without data cost nothing. `read` is reset.
 */
int series_walk_next_sample(const struct series_walk *walk, struct store_read *read,
			    const struct store_range *range, int64_t *ts_ms) MUST_CHECK;

/* The series-set of one of them, of which these are the tags, in `arena`. ERR_LIMIT: it has no
 * room.
 */
int series_walk_name(const struct store_series *series, struct tags tags, struct arena *arena,
		     struct series_set *to) MUST_CHECK;

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

#endif
