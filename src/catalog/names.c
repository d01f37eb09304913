#include "catalog/private.h"

uint64_t name_seed(struct slice tenant)
{
	return hash64(tenant.data, tenant.len, 0);
}

struct hash128 name_hash(uint64_t seed, struct slice metric)
{
	struct hash128 hash = hash128(metric.data, metric.len, seed);
	hash.low |= (hash.low | hash.high) == 0; /* zero marks an empty slot */
	return hash;
}

static struct hash128 *find_slot(const struct name_set *set, struct hash128 hash)
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

bool name_set_has(const struct name_set *set, struct hash128 hash)
{
	if (!set->slot_count)
		return false;
	const struct hash128 *slot = find_slot(set, hash);
	return (slot->low | slot->high) != 0;
}

static void grow(struct name_set *set)
{
	struct name_set grown = {.slot_count = set->slot_count ? set->slot_count * 2 : 64};
	grown.slots = mem_zalloc(grown.slot_count * sizeof(*grown.slots));
	for (size_t i = 0; i < set->slot_count; i++) {
		if ((set->slots[i].low | set->slots[i].high) != 0)
			*find_slot(&grown, set->slots[i]) = set->slots[i];
	}
	grown.count = set->count;
	mem_free(set->slots);
	*set = grown;
}

bool name_set_add(struct name_set *set, struct hash128 hash, size_t max)
{
	if (name_set_has(set, hash))
		return false;
	if (set->count == max)
		name_set_release(set);
	if (set->count * 3 >= set->slot_count * 2)
		grow(set);
	*find_slot(set, hash) = hash;
	set->count++;
	return true;
}

void name_set_release(struct name_set *set)
{
	mem_free(set->slots);
	*set = (struct name_set){0};
}
