/* Partitions: how the series are shared out among those who roll them up.
 *
 * Any thread; no state. */
#ifndef ROLLUP_PARTITION_H
#define ROLLUP_PARTITION_H

#include "base/base.h"
#include "model/series.h"

struct buf;

enum { ROLLUP_PARTITIONS_MAX = 4096 };

/* Guava's Hashing.consistentHash (Lamping and Veach, A Fast, Minimal Memory, Consistent Hash
 * Algorithm, 2014): of 0 to buckets - 1, at least 1. */
uint32_t rollup_consistent_hash(uint64_t state, uint32_t buckets);

/* The document's: the consistent hash of the 32-bit Murmur 3 of the tenant and, behind it, the
 * series-set. `partitions` is at least 1. */
uint32_t rollup_partition(struct slice tenant, struct series_set series_set, uint32_t partitions);

struct rollup_partitions {
	uint64_t bits[ROLLUP_PARTITIONS_MAX / 64];
	size_t count;
};

static inline bool rollup_partitions_has(const struct rollup_partitions *set, uint32_t partition)
{
	return set->bits[partition / 64] >> (partition % 64) & 1;
}

static inline void rollup_partitions_add(struct rollup_partitions *set, uint32_t partition)
{
	set->count += !rollup_partitions_has(set, partition);
	set->bits[partition / 64] |= UINT64_C(1) << (partition % 64);
}

static inline void rollup_partitions_remove(struct rollup_partitions *set, uint32_t partition)
{
	set->count -= rollup_partitions_has(set, partition);
	set->bits[partition / 64] &= ~(UINT64_C(1) << (partition % 64));
}

/* `0,5-8,12`; empty: none. Each at most once and below `partitions`. */
int rollup_partitions_parse(struct slice text, uint32_t partitions, struct rollup_partitions *set,
			    struct errbuf *e) MUST_CHECK;
/* The inverse, runs of two and more as such. */
void rollup_partitions_print(const struct rollup_partitions *set, struct buf *out);

#endif
