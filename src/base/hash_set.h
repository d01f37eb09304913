/* A set of 128-bit hashes, which stand for what was hashed: two names with one hash do not occur.
 * Not for several threads at once. Zeroed: empty. */
#ifndef BASE_HASH_SET_H
#define BASE_HASH_SET_H

#include "base/hash.h"

struct hash_set {
	struct hash128 *slots; /* open addressing; low and high 0: empty */
	size_t slot_count, count;
};

bool hash_set_has(const struct hash_set *set, struct hash128 hash);
/* False if it was there. A set of `max` hashes is emptied first. */
bool hash_set_add(struct hash_set *set, struct hash128 hash, size_t max);
void hash_set_release(struct hash_set *set);

#endif
