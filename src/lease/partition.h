/* Partitions: how the series are shared out among those who roll them up.
 *
 * Any thread; no state. */
#ifndef LEASE_PARTITION_H
#define LEASE_PARTITION_H

#include "base/base.h"
#include "model/series.h"

struct buf;

enum { PARTITIONS_MAX = 4096 };

/* Guava's Hashing.consistentHash (Lamping and Veach, A Fast, Minimal Memory, Consistent Hash
 * Algorithm, 2014): of 0 to buckets - 1, at least 1. */
uint32_t consistent_hash(uint64_t state, uint32_t buckets);

/* The partition of a series as document C (Ceres) has it: the consistent hash of the 32-bit Murmur
 * 3 of the tenant followed by the series-set. `partitions` is at least 1. */
uint32_t partition_of(struct slice tenant, struct series_set series_set, uint32_t partitions);

struct partitions {
	uint64_t bits[PARTITIONS_MAX / 64];
	size_t count;
};

static inline bool partitions_has(const struct partitions *set, uint32_t partition)
{
	return set->bits[partition / 64] >> (partition % 64) & 1;
}

static inline void partitions_add(struct partitions *set, uint32_t partition)
{
	set->count += !partitions_has(set, partition);
	set->bits[partition / 64] |= UINT64_C(1) << (partition % 64);
}

static inline void partitions_remove(struct partitions *set, uint32_t partition)
{
	set->count -= partitions_has(set, partition);
	set->bits[partition / 64] &= ~(UINT64_C(1) << (partition % 64));
}

/* `0,5-8,12`; empty: none. Each at most once and below `partitions`. */
int partitions_parse(struct slice text, uint32_t partitions, struct partitions *set,
		     struct errbuf *e) MUST_CHECK;
/* The inverse; two neighbours and more as a range. */
void partitions_print(const struct partitions *set, struct buf *out);

#endif
