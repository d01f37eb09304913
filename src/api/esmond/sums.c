#include "api/esmond/sums.h"

#include <math.h>
#include <stdlib.h>

/* How much of `whole`, which is spread evenly over `width`, lies before `to`, in whole units: the
 * difference of two of these is a share, and all shares are the whole. */
static uint64_t share_before(uint64_t whole, int64_t to, int64_t width)
{
	if (to <= 0)
		return 0;
	if (to >= width)
		return whole;
	return (uint64_t)((unsigned __int128)whole * (uint64_t)to / (uint64_t)width);
}

static void add_share(struct v2_sum *sum, const struct v2_bin *bin, int64_t from, int64_t to)
{
	uint64_t covered = (uint64_t)bin->covered_ms;
	sum->val = v2_sum_of(sum->val, share_before(bin->val, to, bin->width_ms) -
					       share_before(bin->val, from, bin->width_ms));
	sum->covered_ms += (int64_t)(share_before(covered, to, bin->width_ms) -
				     share_before(covered, from, bin->width_ms));
	sum->flags |= bin->flags;
}

void v2_sums_add(struct v2_sums *sums, const struct v2_bin *bin)
{
	ASSERT(bin->width_ms > 0 && sums->at <= sums->count);
	int64_t end_ms = bin->start_ms + bin->width_ms;
	while (sums->at < sums->count && sums->edges_ms[sums->at + 1] <= bin->start_ms)
		sums->at++;
	for (size_t i = sums->at; i < sums->count && sums->edges_ms[i] < end_ms; i++) {
		int64_t from = sums->edges_ms[i] - bin->start_ms;
		add_share(&sums->sums[i], bin, from, sums->edges_ms[i + 1] - bin->start_ms);
		if (from <= 0)
			sums->sums[i].unplaced = v2_sum_of(sums->sums[i].unplaced, bin->unplaced);
	}
}

static int by_size(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;
	return (left > right) - (left < right);
}

double v2_percentile(double *values, size_t count, uint32_t milli)
{
	ASSERT(milli >= 1 && milli <= 100000);
	if (!count)
		return NAN;
	qsort(values, count, sizeof(*values), by_size);
	uint64_t rank = ((uint64_t)count * milli + 99999) / 100000;
	ASSERT(rank >= 1 && rank <= count);
	return values[rank - 1];
}

int v2_percentile_parse(struct slice text, uint32_t *milli)
{
	uint64_t number = 0;
	unsigned before = 0, behind = 0;
	bool point = false;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '.' && !point) {
			point = true;
			continue;
		}
		if (text.data[i] < '0' || text.data[i] > '9' || before + behind == 6)
			return ERR_INVALID;
		number = number * 10 + (uint64_t)(text.data[i] - '0');
		before += !point;
		behind += point;
	}
	if (!before || behind > 3 || (point && !behind))
		return ERR_INVALID;
	for (; behind < 3; behind++)
		number *= 10;
	if (number < 1 || number > 100000)
		return ERR_INVALID;
	*milli = (uint32_t)number;
	return 0;
}
