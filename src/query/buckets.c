/* Rows of data_downsampled, one by one: a bucket of a series each. */
#include <math.h>

#include "query/private.h"

struct value bucket_field(const struct store_points *rows, size_t row, enum rollup_field field)
{
	return (struct value){rows->bits[field][row], (enum value_type)rows->types[field][row]};
}

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
static void beyond_doubles(struct store_summary *summary, double sum, struct value mean)
{
	double each = mean.type == VALUE_NONE ? sum : value_as_f64(mean);
	summary->scaled = each * 0x1p-64 * (double)summary->count;
	summary->sum = summary->doubles = store_sum(sum, summary->scaled);
}

bool bucket_summary(const struct store_points *rows, size_t row, struct store_summary *summary)
{
	struct value sum = bucket_field(rows, row, ROLLUP_SUM);
	*summary = (struct store_summary){.count = count_of(rows, row)};
	if (sum.type == VALUE_NONE || !summary->count)
		return false;
	summary->sum = value_as_f64(sum);
	if (sum.type == VALUE_F64 && isfinite(summary->sum)) {
		summary->doubles = summary->sum;
		summary->scaled = summary->sum * 0x1p-64;
	} else if (sum.type == VALUE_F64) {
		beyond_doubles(summary, summary->sum, bucket_field(rows, row, ROLLUP_AVG));
	} else {
		summary->integers =
			sum.type == VALUE_I64 ? (__int128)(int64_t)sum.bits : (__int128)sum.bits;
	}
	return true;
}

struct value bucket_value(const struct store_points *rows, size_t row)
{
	struct store_summary summary;
	struct value mean = bucket_field(rows, row, ROLLUP_AVG);
	if (mean.type != VALUE_NONE)
		return mean;
	if (bucket_summary(rows, row, &summary))
		return summary_value(&summary, FN_AVG);
	return bucket_field(rows, row, ROLLUP_LAST);
}
