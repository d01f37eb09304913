/* What becomes of a query's points after the engine: rates of each series, series put together
 * that became rates first, windows without a point filled, points of one second made one. Of the
 * points of groups, one after the other:
 *
 *     combine_begin                                a group
 *     for each of its series:                      by_order has them together (query.h)
 *         combine_series
 *         for each of its chunks: combine_add      and with agg AGG_NONE combine_next
 *     combine_end
 *     while combine_next gives points
 *
 * Rates. A point has the growth per second since the one before it, so the first of a series has
 * none. A counter that falls has passed counter_max, where that is known and no value lies above
 * it, else it began again at zero; or, with drop_resets, that point is left out. A rate of such a
 * point beyond reset_value (not 0) is 0. What is not finite is passed over.
 *
 * With agg the points of one time become one; a group has at most COMBINE_TIMES_MAX times. Where
 * windows are narrower than a tick, or there are none, those of one tick become one at once, so
 * that each of them counts alike.
 *
 * Gaps. A window within the time that has no point gets one, if the group has any: FILL_NULL
 * without a value, FILL_ZERO 0, and with agg a series that has none there counts as 0, but for
 * AGG_COUNT, which counts what was measured. What fills a gap never takes the place of a point of
 * its tick.
 *
 * Pure but for its memory; one thread. */
#ifndef QUERY_COMBINE_H
#define QUERY_COMBINE_H

#include "query/query.h"

enum { COMBINE_TIMES_MAX = 65536, COMBINE_CHUNK_MAX = 2048 };

struct combine_spec {
	bool rate, counter, drop_resets, has_max;
	struct value counter_max; /* not negative */
	double reset_value;
	enum query_agg agg;
	enum query_fill fill; /* with windows only */
	int64_t window_ms, start_ms, end_ms;
	/* Points of one such span become one at its beginning: the last, or what `same` makes of
	 * them. 0: all points stay. */
	int64_t tick_ms;
	enum query_agg same;
};

struct combine_point {
	int64_t ts_ms;
	struct value value; /* type NONE: null */
	bool fills;         /* a gap: nothing was measured */
};

struct combine;

struct combine *combine_new(const struct combine_spec *spec);
void combine_free(struct combine *combine);

void combine_begin(struct combine *combine);
void combine_series(struct combine *combine);
/* At most COMBINE_CHUNK_MAX points, when all that could be taken was. ERR_LIMIT: the group has too
 * many times. Adds what it cost, in points, to *work. */
int combine_add(struct combine *combine, const struct query_chunk *chunk, size_t *work) MUST_CHECK;
void combine_end(struct combine *combine);
/* The next points, at most `max`; gives how many. */
size_t combine_next(struct combine *combine, struct combine_point *points, size_t max);

#endif
