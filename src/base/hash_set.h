/* A set of 128-bit hashes: a hash table whose slots are nothing else. Zeroed: empty. */
#ifndef BASE_HASH_SET_H
#define BASE_HASH_SET_H

#include "base/hash_table.h"

struct hash_set {
	struct hash_table table;
};

static inline bool hash_set_has(const struct hash_set *set, struct hash128 hash)
{
	return hash_table_find(&set->table, hash) != NULL;
}

static inline void hash_set_release(struct hash_set *set)
{
	hash_table_release(&set->table);
}

/* False if it was there. A set of `max` hashes is emptied first. */
static inline bool hash_set_add(struct hash_set *set, struct hash128 hash, size_t max)
{
	bool added;
	if (set->table.count == max && !hash_set_has(set, hash))
		hash_set_release(set);
	hash_table_add(&set->table, hash, sizeof(hash), &added);
	return added;
}

#endif
