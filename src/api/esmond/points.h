/* The points of an answer of /v2: rows of a counter as values on the grid of their period, in JSON.
 * Pure.
 *
 * The grid is every multiple of the period from begin to end, both included; what nobody measured
 * is null: there is no row, or a row of which no delta is part (document E's is_valid 0). A
 * measured zero is 0. A point of a minimum or maximum has the time of that delta (`m_ts`).
 *
 * `calc` puts the points of each longer step into one: their average, smallest or largest; nulls
 * count for nothing, or in an average as zeros if that is asked for. A step of nothing but nulls is
 * null either way. */
#ifndef API_ESMOND_POINTS_H
#define API_ESMOND_POINTS_H

#include "api/esmond/params.h"
#include "api/esmond/samples.h"
#include "base/buf.h"
#include "model/value.h"
#include "rate/counter.h"

enum { V2_POINT_MAX_BYTES = 120 };

struct v2_grid {
	int64_t first_ms, last_ms, step_ms;
	uint64_t count; /* 0: no multiple lies between begin and end */
};

struct v2_grid v2_grid_of(const struct v2_range *range, int64_t step_ms);

/* VALUE_NONE: null. *m_ts_ms is set where it has one. */
struct value v2_value_of(enum v2_cf cf, int64_t base_ms, const struct counter_row *row,
			 int64_t *m_ts_ms);

struct v2_points {
	enum v2_cf cf;
	int64_t base_ms, row_ms, unit_ms;
	struct v2_grid grid; /* of the answer */
	enum v2_calc_func calc;
	bool nulls_are_zero;
	int64_t snap_ms; /* samples' times are put down to multiples of it; 0: as they are */

	/* private */
	int64_t next_ms; /* the slot of the next row */
	bool any;
	uint64_t step_values, step_nulls;
	double step_sum;
	struct value step_best;
	int64_t step_m_ts_ms;
};

/* `row_ms` is the period of the rows. With calc, it divides params->calc_ms. */
void v2_points_init(struct v2_points *points, const struct v2_data_params *params, int64_t base_ms,
		    int64_t row_ms);
/* The rows that it takes: from <= start < to. */
int64_t v2_points_from_ms(const struct v2_points *points);
int64_t v2_points_to_ms(const struct v2_points *points);

/* Appends the points whose rows begin before `until_ms`, all of which are given (ascending; *used
 * of them are taken already, and moves on), at most about `max` slots of them. False: there are
 * more, call again. */
bool v2_points_put(struct v2_points *points, const struct counter_row *rows, size_t count,
		   size_t *used, int64_t until_ms, size_t max, struct buf *out) MUST_CHECK;

/* Samples as they came; nothing is filled in. */
void v2_points_put_raw(struct v2_points *points, const struct v2_sample *samples, size_t count,
		       struct buf *out);

#endif
