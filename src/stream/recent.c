#include "stream/recent.h"

static struct hash128 recent_key(uint64_t hash)
{
	return (struct hash128){hash, 0};
}

bool recent_has(const struct recent *recent, uint64_t hash)
{
	return hash_set_has(&recent->young, recent_key(hash)) ||
	       hash_set_has(&recent->old, recent_key(hash));
}

void recent_add(struct recent *recent, uint64_t hash)
{
	if (hash_set_has(&recent->young, recent_key(hash)))
		return;
	if (recent->young.table.count == RECENT_HALF_MAX) {
		hash_set_release(&recent->old);
		recent->old = recent->young;
		recent->young = (struct hash_set){.table = {.slots = NULL}};
	}
	(void)hash_set_add(&recent->young, recent_key(hash), RECENT_HALF_MAX);
}

size_t recent_bytes(const struct recent *recent)
{
	return (recent->young.table.slot_count + recent->old.table.slot_count) *
	       sizeof(struct hash128);
}

void recent_release(struct recent *recent)
{
	hash_set_release(&recent->young);
	hash_set_release(&recent->old);
}
