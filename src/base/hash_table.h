/* A hash table with open addressing. Its slots are structs that begin with a struct hash128, which
 * stands for what was hashed: two names with one hash do not occur, so nothing is compared beside
 * it. Not for names that a stranger chooses, where a false match would do harm: the hash is no
 * cryptographic one. A slot whose hash is zero is empty. Not for several threads at once. Zeroed:
 * empty. */
#ifndef BASE_HASH_TABLE_H
#define BASE_HASH_TABLE_H

#include "base/hash.h"

struct hash_table {
	void *slots;
	size_t slot_bytes, slot_count, count; /* slot_count: a power of two, or 0 */
};

/* The slot with this hash, or NULL. Slots move when one is added or removed. */
void *hash_table_find(const struct hash_table *table, struct hash128 hash);
/* The slot with this hash; where there was none a new one, zero behind the hash: *added. All slots
 * of a table have one size. */
void *hash_table_add(struct hash_table *table, struct hash128 hash, size_t slot_bytes, bool *added);
/* Another slot may move to its place. Slots move to earlier places only, or over the end, from the
 * first places to the last. */
void hash_table_remove(struct hash_table *table, struct hash128 hash);
/* The slot at a place below slot_count; NULL: it is empty. */
void *hash_table_at(const struct hash_table *table, size_t at);
void hash_table_release(struct hash_table *table);

#endif
