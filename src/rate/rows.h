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
 * flags, unplaced. And of its extremes in stat_aggregations: min, max, min_ts, max_ts. */
enum { ROW_FIELDS = 5, ROW_EXTREMES_FIELDS = 4 };

void row_fields(const struct counter_row *row, struct value fields[ROW_FIELDS]);
void row_extremes_fields(const struct counter_row *row, struct value fields[ROW_EXTREMES_FIELDS]);

/* A stored row, of base_rates or rate_aggregations. */
struct counter_row row_of_points(const struct store_points *points, size_t i, size_t level);

/* Puts stored extremes to their rows; both ascend. Extremes whose row is not there are of a write
 * that is just under way. */
void row_list_extremes(struct row_list *list, const struct store_points *points);

/* Makes the store have exactly this row of a counter, or none at its place. */
int row_store(struct store_write *write, const struct counter_config *config,
	      enum retention_class retention, uint64_t handle, const struct counter_row *row,
	      bool none) MUST_CHECK;

bool rows_equal(const struct counter_row *a, const struct counter_row *b);

#endif
