/* A set of numbers that are mostly neighbours, as ranges: what was forgotten of series that came
 * one after the other takes 16 bytes, however many they were. Private to store/lmdb.
 *
 * Numbers are added and never taken out, so ranges meet and become one. There are never more ranges
 * than numbers between them that are not in the set, plus one.
 *
 * Ranges lie in order, in leaves that are found by halving. Two neighbours among the leaves are
 * together more than half as full as one leaf may be. Not for several threads at once. Zeroed:
 * empty. */
#ifndef STORE_LMDB_RANGES_H
#define STORE_LMDB_RANGES_H

#include "base/base.h"

struct ranges_leaf;

struct ranges {
	struct ranges_leaf **leaves;
	size_t leaf_count, leaf_cap;
	size_t count; /* of ranges */
};

/* Whether it was not in the set before. */
bool ranges_add(struct ranges *ranges, uint64_t number);
bool ranges_has(const struct ranges *ranges, uint64_t number);
size_t ranges_bytes(const struct ranges *ranges);
void ranges_release(struct ranges *ranges);

#endif
