#include "base/hash_set.h"

#include "base/mem.h"

/* Zero marks an empty slot. */
static struct hash128 never_zero(struct hash128 hash)
{
	hash.low |= (hash.low | hash.high) == 0;
	return hash;
}

static struct hash128 *find_slot(const struct hash_set *set, struct hash128 hash)
{
	size_t mask = set->slot_count - 1;
	for (size_t at = hash.low & mask;; at = (at + 1) & mask) {
		struct hash128 *slot = &set->slots[at];
		if ((slot->low | slot->high) == 0)
			return slot;
		if (slot->low == hash.low && slot->high == hash.high)
			return slot;
	}
}

bool hash_set_has(const struct hash_set *set, struct hash128 hash)
{
	if (!set->slot_count)
		return false;
	const struct hash128 *slot = find_slot(set, never_zero(hash));
	return (slot->low | slot->high) != 0;
}

static void hash_set_grow(struct hash_set *set)
{
	struct hash_set grown = {.slot_count = set->slot_count ? set->slot_count * 2 : 64};
	grown.slots = mem_zalloc(grown.slot_count * sizeof(*grown.slots));
	for (size_t i = 0; i < set->slot_count; i++) {
		if ((set->slots[i].low | set->slots[i].high) != 0)
			*find_slot(&grown, set->slots[i]) = set->slots[i];
	}
	grown.count = set->count;
	mem_free(set->slots);
	*set = grown;
}

bool hash_set_add(struct hash_set *set, struct hash128 hash, size_t max)
{
	if (hash_set_has(set, hash))
		return false;
	if (set->count == max)
		hash_set_release(set);
	if (set->count * 3 >= set->slot_count * 2)
		hash_set_grow(set);
	*find_slot(set, never_zero(hash)) = never_zero(hash);
	set->count++;
	return true;
}

void hash_set_release(struct hash_set *set)
{
	mem_free(set->slots);
	*set = (struct hash_set){0};
}
