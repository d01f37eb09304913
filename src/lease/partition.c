#include "lease/partition.h"

#include "base/buf.h"
#include "base/hash.h"
#include "wire/number.h"

/* With Java's arithmetic, as there: the sum of ints wraps, so once in 2^31 a draw is negative and
 * ends the search. */
uint32_t consistent_hash(uint64_t state, uint32_t buckets)
{
	uint32_t candidate = 0;
	for (;;) {
		state = state * UINT64_C(2862933555777941757) + 1;
		double draw = (double)(int32_t)((uint32_t)(state >> 33) + 1) / 0x1p31;
		double next = ((double)candidate + 1) / draw;
		if (next < 0 || next >= (double)buckets)
			return candidate;
		candidate = (uint32_t)next;
	}
}

uint32_t partition_of(struct slice tenant, struct series_set series_set, uint32_t partitions)
{
	struct murmur3_32 hash;
	if (partitions == 1)
		return 0;
	murmur3_32_init(&hash, 0);
	murmur3_32_add(&hash, tenant.data, tenant.len);
	murmur3_32_add(&hash, series_set.metric.data, series_set.metric.len);
	murmur3_32_add(&hash, series_set.tags.data, series_set.tags.len);
	return consistent_hash(murmur3_32_end(&hash), partitions);
}

static bool partition_take_number(struct slice *rest, uint32_t *number)
{
	size_t digits = 0;
	uint32_t n = 0;
	while (digits < rest->len && digits < 6 && number_is_digit(rest->data[digits]))
		n = n * 10 + (uint32_t)(rest->data[digits++] - '0');
	*rest = (struct slice){rest->data + digits, rest->len - digits};
	*number = n;
	return digits > 0;
}

static bool partition_take_char(struct slice *rest, char c)
{
	if (!rest->len || rest->data[0] != c)
		return false;
	*rest = (struct slice){rest->data + 1, rest->len - 1};
	return true;
}

static int partition_add_range(struct partitions *set, uint32_t first, uint32_t last,
			       uint32_t partitions, struct errbuf *e)
{
	if (last < first)
		return errbuf_set(e, ERR_INVALID, "%u-%u: the first is above the last", first,
				  last);
	if (last >= partitions)
		return errbuf_set(e, ERR_INVALID, "%u is no partition: there are %u, from 0", last,
				  partitions);
	for (uint32_t p = first; p <= last; p++) {
		if (partitions_has(set, p))
			return errbuf_set(e, ERR_INVALID, "%u stands twice", p);
		partitions_add(set, p);
	}
	return 0;
}

int partitions_parse(struct slice text, uint32_t partitions, struct partitions *set,
		     struct errbuf *e)
{
	struct slice rest = text;
	memset(set, 0, sizeof(*set));
	while (rest.len) {
		uint32_t first, last;
		bool good = partition_take_number(&rest, &first);
		last = first;
		if (good && partition_take_char(&rest, '-'))
			good = partition_take_number(&rest, &last);
		if (good && rest.len)
			good = partition_take_char(&rest, ',') && rest.len;
		if (!good)
			return errbuf_set(e, ERR_INVALID,
					  "\"" SHOWN "\" is no list of partitions such as 0,5-8,12",
					  SHOWN_OF(text));
		int err = partition_add_range(set, first, last, partitions, e);
		if (err)
			return err;
	}
	return 0;
}

void partitions_print(const struct partitions *set, struct buf *out)
{
	const char *separator = "";
	for (uint32_t p = 0; p < PARTITIONS_MAX; p++) {
		uint32_t last = p;
		if (!partitions_has(set, p))
			continue;
		while (last + 1 < PARTITIONS_MAX && partitions_has(set, last + 1))
			last++;
		buf_printf(out, "%s%u", separator, p);
		if (last > p)
			buf_printf(out, "-%u", last);
		separator = ",";
		p = last;
	}
}
