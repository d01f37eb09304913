/* Rows of one counter and level in memory, and what the store has of them. Private to rate/. */
#ifndef RATE_ROWS_H
#define RATE_ROWS_H

#include "rate/rate.h"

struct row_list {
	struct counter_row *rows;
	size_t count, cap;
};

void row_list_add(struct row_list *list, const struct counter_row *row);

/* The fields of a row in base_rates and rate_aggregations: val, is_valid or count, covered_ms,
 * flags, unplaced. And of its extremes in stat_aggregations: min, max, min_ts, max_ts.
 *
 * Four of five are the same nearly everywhere, so what is usual is not stored: a field that a
 * stored row lacks is as row_usual says. */
enum { ROW_FIELDS = 5, ROW_EXTREMES_FIELDS = 4 };

/* A row of the level that was measured all the time. A bin is touched by two deltas, unless polls
 * fall on its very edge. How many samples lie in a period depends on the base frequency, which may
 * change: it is always stored, unless it is 0. */
struct counter_row row_usual(const struct counter_config *config, size_t level);
/* Of `count` rows of one level and time, which will lie together, the fields to be stored, and
 * their values, as store_append_fields takes them. A field is left out where it is the usual one in
 * all of them. That does not clear what is stored: a row that may be there with other values is
 * written `whole`. */
unsigned rows_fields(const struct counter_config *config, const struct counter_row *const *rows,
		     size_t count, bool whole, struct value *values);
void row_extremes_fields(const struct counter_row *row, struct value fields[ROW_EXTREMES_FIELDS]);

/* A stored row, of base_rates or rate_aggregations; `usual` is that of its level. */
struct counter_row row_of_points(const struct store_points *points, size_t i,
				 const struct counter_row *usual);

/* Puts stored extremes to their rows; both ascend. Extremes whose row is not there are of a write
 * that is just under way. */
void row_list_extremes(struct row_list *list, const struct store_points *points);

/* Makes the store have exactly this row of a counter, or none at its place. */
int row_store(struct store_write *write, const struct counter_config *config,
	      enum retention_class retention, uint64_t handle, const struct counter_row *row,
	      bool none) MUST_CHECK;

bool rows_equal(const struct counter_row *a, const struct counter_row *b);

#endif
