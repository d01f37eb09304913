/* Rows of data_downsampled, one by one: a bucket of a series each. */
#include <math.h>

#include "query/private.h"

/* A count is a whole number, however it was stored. */
static uint64_t count_of(const struct store_points *rows, size_t row)
{
	struct value count = bucket_field(rows, row, ROLLUP_COUNT);
	if (count.type == VALUE_I64 || count.type == VALUE_U64)
		return count.bits;
	return count.type == VALUE_F64 && value_as_f64(count) > 0 ? (uint64_t)value_as_f64(count)
								  : 0;
}

/* A sum that no double holds is as many times the mean, 2^-64 of which is one. */
static void buckets_fold_beyond_doubles(struct store_summary *summary, double sum,
					struct value mean)
{
	double each = mean.type == VALUE_NONE ? sum : value_as_f64(mean);
	summary->scaled = each * 0x1p-64 * (double)summary->count;
	summary->sum = summary->doubles = store_sum(sum, summary->scaled);
}

/* An integer, or a double that is one. */
static void buckets_fold_sum(struct store_summary *summary, struct value sum)
{
	summary->sum = value_as_f64(sum);
	if (sum.type == VALUE_F64) {
		summary->doubles = summary->sum;
		summary->scaled = summary->sum * 0x1p-64;
	} else {
		summary->integers =
			sum.type == VALUE_I64 ? (__int128)(int64_t)sum.bits : (__int128)sum.bits;
	}
}

bool bucket_summary(const struct store_points *rows, size_t row, struct store_summary *summary)
{
	struct value sum = bucket_field(rows, row, ROLLUP_SUM);
	*summary = (struct store_summary){.count = count_of(rows, row)};
	if (sum.type == VALUE_NONE)
		return false;
	buckets_fold_sum(summary, sum);
	if (UNLIKELY(!isfinite(summary->sum)))
		buckets_fold_beyond_doubles(summary, summary->sum,
					    bucket_field(rows, row, ROLLUP_AVG));
	return true;
}

bool bucket_samples(const struct store_points *rows, size_t row, enum query_fn fn,
		    enum rollup_field field, struct store_summary *samples)
{
	struct value value = bucket_field(rows, row, field);
	if (value.type == VALUE_NONE)
		return false;
	if (field == ROLLUP_SUM) {
		bool any = bucket_summary(rows, row, samples);
		/* A counter's sum does not say of how many samples it is. */
		if (fn == FN_SUM && !samples->count)
			samples->count = 1;
		return any;
	}
	*samples = (struct store_summary){.count = 1,
					  .min = value,
					  .max = value,
					  .first = value,
					  .last = value,
					  .first_ts_ms = rows->ts_ms[row],
					  .last_ts_ms = rows->ts_ms[row]};
	if (field == ROLLUP_COUNT)
		samples->count = count_of(rows, row);
	if (field == ROLLUP_INCREASE)
		buckets_fold_sum(samples, value);
	return true;
}

struct value bucket_value(const struct store_points *rows, size_t row)
{
	struct store_summary summary;
	struct value mean = bucket_field(rows, row, ROLLUP_AVG);
	if (mean.type != VALUE_NONE)
		return mean;
	if (bucket_summary(rows, row, &summary) && summary.count)
		return summary_value(&summary, FN_AVG);
	return bucket_field(rows, row, ROLLUP_LAST);
}
