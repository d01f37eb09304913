#include "stream/recent.h"

#include "base/mem.h"

enum { RECENT_SLOTS_MIN = 16 };

/* 0 stands for a free slot. */
static uint64_t recent_key(uint64_t hash)
{
	return hash ? hash : 1;
}

/* The slot with a key, or the free one where it belongs. There is one: at most half are taken. */
static size_t recent_find(const struct recent_half *half, uint64_t key)
{
	size_t at = key & (half->slot_count - 1);
	while (half->slots[at] && half->slots[at] != key)
		at = (at + 1) & (half->slot_count - 1);
	return at;
}

static bool recent_half_has(const struct recent_half *half, uint64_t key)
{
	return half->slot_count && half->slots[recent_find(half, key)];
}

static void recent_half_grow(struct recent_half *half)
{
	struct recent_half grown = {.count = half->count};
	grown.slot_count = half->slot_count ? 2 * half->slot_count : RECENT_SLOTS_MIN;
	grown.slots = mem_zalloc(grown.slot_count * sizeof(*grown.slots));
	for (size_t i = 0; i < half->slot_count; i++)
		if (half->slots[i])
			grown.slots[recent_find(&grown, half->slots[i])] = half->slots[i];
	mem_free(half->slots);
	*half = grown;
}

bool recent_has(const struct recent *recent, uint64_t hash)
{
	uint64_t key = recent_key(hash);
	return recent_half_has(&recent->young, key) || recent_half_has(&recent->old, key);
}

void recent_add(struct recent *recent, uint64_t hash)
{
	struct recent_half *young = &recent->young;
	uint64_t key = recent_key(hash);
	if (recent_half_has(young, key))
		return;
	if (young->count == RECENT_HALF_MAX) {
		mem_free(recent->old.slots);
		recent->old = *young;
		*young = (struct recent_half){.slots = NULL};
	}
	if (2 * (young->count + 1) > young->slot_count)
		recent_half_grow(young);
	young->slots[recent_find(young, key)] = key;
	young->count++;
}

size_t recent_bytes(const struct recent *recent)
{
	return (recent->young.slot_count + recent->old.slot_count) * sizeof(*recent->old.slots);
}

void recent_release(struct recent *recent)
{
	mem_free(recent->young.slots);
	mem_free(recent->old.slots);
	*recent = (struct recent){.young = {.slots = NULL}};
}
