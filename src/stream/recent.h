/* Hashes of the records that were appended to a stream last, so that a record that comes again is
 * known: of the last RECENT_HALF_MAX records at least, and of twice as many at most.
 *
 * They are in two sets: the younger one is filled, and then takes the place of the older one. Pure;
 * one thread at a time. Zeroed: empty. */
#ifndef STREAM_RECENT_H
#define STREAM_RECENT_H

#include "base/hash_set.h"

enum { RECENT_HALF_MAX = 32768 };

struct recent {
	struct hash_set young, old;
};

bool recent_has(const struct recent *recent, uint64_t hash);
void recent_add(struct recent *recent, uint64_t hash);
size_t recent_bytes(const struct recent *recent);
void recent_release(struct recent *recent);

#endif
