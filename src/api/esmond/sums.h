/* The growth of a counter by windows of time, for reports: what its bins say, put into days, months
 * or intervals of five minutes. Pure.
 *
 * A bin belongs to the window that it lies in. One that lies across an edge (where the base
 * frequency does not divide the window) is divided by time, in whole units, so that the windows
 * together have exactly what the bins had; the same bin is divided the same way whoever asks. What
 * could not be placed over a gap belongs to the window in which the gap begins. */
#ifndef API_ESMOND_SUMS_H
#define API_ESMOND_SUMS_H

#include "base/base.h"

struct v2_sum {
	uint64_t val;      /* growth in bins; UINT64_MAX: that or more */
	uint64_t unplaced; /* growth over gaps that begin here */
	int64_t covered_ms;
	unsigned flags; /* enum counter_flag of all bins */
};

/* Windows lie between edges_ms[i] and edges_ms[i + 1], ascending. */
struct v2_sums {
	const int64_t *edges_ms;
	size_t count;
	struct v2_sum *sums; /* zero at first */
	size_t at;           /* of the last bin: they come in order */
};

struct v2_bin {
	int64_t start_ms, width_ms;
	uint64_t val, unplaced;
	int64_t covered_ms;
	unsigned flags;
};

/* Bins must come in the order of their time. What lies outside all windows is passed over. */
void v2_sums_add(struct v2_sums *sums, const struct v2_bin *bin);

/* a + b, at most UINT64_MAX. */
static inline uint64_t v2_sum_of(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* ---- Percentiles ------------------------------------------------------------------------------
 */

/* The percentile of `count` values by nearest rank: of the values in ascending order the one of
 * number ceil(p / 100 * count), from 1. Of the 8,640 intervals of five minutes of 30 days the 95th
 * is number 8,208: the 432 above it are free. `milli` is p in thousandths, 1 to 100,000; the ranks
 * are computed in integers. Sorts the values. NaN: there are none. */
double v2_percentile(double *values, size_t count, uint32_t milli);

/* `95`, `99.9`: from 0.001 to 100, at most three digits behind the point. */
int v2_percentile_parse(struct slice text, uint32_t *milli) MUST_CHECK;

#endif
