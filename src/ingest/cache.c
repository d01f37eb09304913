#include "ingest/cache.h"

#include "base/mem.h"
#include "ingest/field_names.h"

enum {
	SEGMENT_ENTRIES = 512,
	SEGMENT_FULL = SEGMENT_ENTRIES / 8 * 7,
	DEPTH_MAX = 28, /* of the directory: 2^28 segments are more than any maximum allows */
	EVICT_STEPS_MAX = 2 * SEGMENT_ENTRIES,
};

struct cache_segment {
	unsigned depth; /* bits of the hash that all its keys share */
	unsigned used;
	unsigned hand;
	struct cache_entry entries[SEGMENT_ENTRIES];
};

_Static_assert(sizeof(struct cache_entry) == 32, "two to a cache line");

struct cache {
	size_t max_bytes, bytes, entries;
	unsigned depth;
	struct cache_segment *
		*segments; /* 2^depth, by the upper bits of `low`; neighbours may be one */
};

static size_t cache_list_bytes(const struct cache_entry *entry)
{
	size_t each = sizeof(uint64_t) + (entry->level == CACHE_LEVELS);
	return entry->is_list ? entry->count * each + 16 : 0;
}

static struct cache_segment *cache_segment_new(struct cache *cache, unsigned depth)
{
	struct cache_segment *segment = mem_zalloc(sizeof(*segment));
	segment->depth = depth;
	cache->bytes += sizeof(*segment);
	return segment;
}

static void cache_entry_drop(struct cache *cache, struct cache_entry *entry)
{
	cache->bytes -= cache_list_bytes(entry);
	cache->entries--;
	if (entry->is_list)
		mem_free(entry->list);
	if (entry->fields)
		cache->bytes -= field_names_unref(entry->fields);
	entry->count = 0;
}

static size_t cache_directory_index(const struct cache *cache, uint64_t low)
{
	return cache->depth ? low >> (64 - cache->depth) : 0;
}

static void cache_start(struct cache *cache)
{
	cache->depth = 0;
	cache->bytes = sizeof(*cache) + sizeof(*cache->segments);
	cache->segments = mem_alloc_array(1, sizeof(*cache->segments));
	cache->segments[0] = cache_segment_new(cache, 0);
}

static void cache_stop(struct cache *cache)
{
	size_t count = (size_t)1 << cache->depth;
	for (size_t i = 0; i < count;) {
		struct cache_segment *segment = cache->segments[i];
		for (size_t e = 0; e < SEGMENT_ENTRIES; e++) {
			if (segment->entries[e].count)
				cache_entry_drop(cache, &segment->entries[e]);
		}
		i += (size_t)1 << (cache->depth - segment->depth);
		mem_free(segment);
	}
	mem_free(cache->segments);
}

struct cache *cache_new(size_t max_bytes)
{
	struct cache *cache = mem_zalloc(sizeof(*cache));
	cache->max_bytes = max_bytes;
	cache_start(cache);
	return cache;
}

void cache_free(struct cache *cache)
{
	cache_stop(cache);
	mem_free(cache);
}

void cache_clear(struct cache *cache)
{
	cache_stop(cache);
	cache_start(cache);
}

struct cache_usage cache_usage(const struct cache *cache)
{
	return (struct cache_usage){cache->entries, cache->bytes};
}

/* The place of the key, or the free one where it would be put. */
static struct cache_entry *cache_place(struct cache_segment *segment, uint64_t low, uint16_t high)
{
	for (size_t i = low % SEGMENT_ENTRIES;; i = (i + 1) % SEGMENT_ENTRIES) {
		struct cache_entry *entry = &segment->entries[i];
		if (!entry->count || (entry->low == low && entry->high == high))
			return entry;
	}
}

struct cache_entry *cache_find(struct cache *cache, struct hash128 key)
{
	struct cache_segment *segment = cache->segments[cache_directory_index(cache, key.low)];
	struct cache_entry *entry = cache_place(segment, key.low, (uint16_t)key.high);
	if (!entry->count)
		return NULL;
	if (!entry->used)
		entry->used = 1;
	return entry;
}

void cache_prefetch(const struct cache *cache, struct hash128 key)
{
	const struct cache_segment *segment =
		cache->segments[cache_directory_index(cache, key.low)];
	__builtin_prefetch(&segment->entries[key.low % SEGMENT_ENTRIES]);
}

/* ---- Growing -------------------------------------------------------------------------------- */

static void cache_double_directory(struct cache *cache)
{
	size_t count = (size_t)1 << cache->depth;
	struct cache_segment **wider = mem_alloc_array(count * 2, sizeof(struct cache_segment *));
	for (size_t i = 0; i < count; i++)
		wider[2 * i] = wider[2 * i + 1] = cache->segments[i];
	mem_free(cache->segments);
	cache->segments = wider;
	cache->bytes += count * sizeof(struct cache_segment *);
	cache->depth++;
}

/* Moves the upper half of a segment's keys to a new one. */
static void cache_split(struct cache *cache, struct cache_segment *segment, uint64_t low)
{
	if (segment->depth == cache->depth)
		cache_double_directory(cache);
	struct cache_entry *old = mem_alloc_array(SEGMENT_ENTRIES, sizeof(*old));
	memcpy(old, segment->entries, sizeof(segment->entries));
	memset(segment->entries, 0, sizeof(segment->entries));
	segment->used = 0;
	segment->depth++;
	struct cache_segment *upper = cache_segment_new(cache, segment->depth);
	for (size_t i = 0; i < SEGMENT_ENTRIES; i++) {
		if (!old[i].count)
			continue;
		struct cache_segment *to =
			old[i].low >> (64 - segment->depth) & 1 ? upper : segment;
		*cache_place(to, old[i].low, old[i].high) = old[i];
		to->used++;
	}
	mem_free(old);
	/* The slots of both halves, 2^(directory - depth) each, begin at the shared bits. */
	size_t span = (size_t)1 << (cache->depth - segment->depth);
	size_t first = cache_directory_index(cache, low) & ~(2 * span - 1);
	for (size_t i = 0; i < span; i++)
		cache->segments[first + span + i] = upper;
}

/* ---- Forgetting ----------------------------------------------------------------------------- */

/* Closes the gap, so that a search that stops at a free place still finds what lies after it. */
static void cache_remove_at(struct cache *cache, struct cache_segment *segment, size_t gap)
{
	cache_entry_drop(cache, &segment->entries[gap]);
	segment->used--;
	for (size_t i = (gap + 1) % SEGMENT_ENTRIES; segment->entries[i].count;
	     i = (i + 1) % SEGMENT_ENTRIES) {
		size_t home = segment->entries[i].low % SEGMENT_ENTRIES;
		size_t from_home = (i - home) % SEGMENT_ENTRIES;
		size_t from_gap = (i - gap) % SEGMENT_ENTRIES;
		if (from_home < from_gap)
			continue;
		segment->entries[gap] = segment->entries[i];
		segment->entries[i].count = 0;
		gap = i;
	}
}

static void cache_evict(struct cache *cache, struct cache_segment *segment)
{
	for (size_t step = 0; step < EVICT_STEPS_MAX && segment->used; step++) {
		size_t i = segment->hand++ % SEGMENT_ENTRIES;
		struct cache_entry *entry = &segment->entries[i];
		if (!entry->count)
			continue;
		if (entry->used) {
			entry->used = 0;
			continue;
		}
		cache_remove_at(cache, segment, i);
		return;
	}
}

/* Room for one more entry of `extra_bytes` besides its place. */
static struct cache_segment *cache_make_room(struct cache *cache, uint64_t low, size_t extra_bytes)
{
	for (;;) {
		struct cache_segment *segment = cache->segments[cache_directory_index(cache, low)];
		bool full = segment->used >= SEGMENT_FULL;
		size_t grown = cache->bytes + extra_bytes +
			       (full ? sizeof(*segment) + (sizeof(void *) << cache->depth) : 0);
		if (grown <= cache->max_bytes && full && segment->depth < DEPTH_MAX) {
			cache_split(cache, segment, low);
			continue;
		}
		while (segment->used && (segment->used >= SEGMENT_FULL ||
					 cache->bytes + extra_bytes > cache->max_bytes))
			cache_evict(cache, segment);
		return segment;
	}
}

/* ---- Entering ------------------------------------------------------------------------------- */

static bool cache_consecutive(const uint64_t *handles, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (handles[i] == 0 || handles[i] != handles[0] + i)
			return false;
	}
	return true;
}

static bool cache_differ(const uint8_t *levels, size_t count)
{
	for (size_t i = 1; levels && i < count; i++) {
		if (levels[i] != levels[0])
			return true;
	}
	return false;
}

/* Handles of the old entry that the new one lacks; with room for levels, if there are several. */
static uint64_t *cache_merged(const struct cache_entry *old, const uint64_t *handles, size_t count,
			      bool several)
{
	uint64_t *list = mem_alloc_array(count, sizeof(*list) + several);
	memcpy(list, handles, count * sizeof(*list));
	for (size_t i = 0; old && old->count == count && i < count; i++) {
		if (!list[i])
			list[i] = cache_handle(old, i);
	}
	return list;
}

static bool cache_has_all(const struct cache_entry *entry, const uint64_t *handles, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (entry->count != count || cache_handle(entry, i) != handles[i])
			return false;
	}
	return true;
}

void cache_put(struct cache *cache, struct hash128 key, struct field_names *fields,
	       const uint64_t *handles, const uint8_t *levels, size_t count)
{
	ASSERT(count && count <= CACHE_HANDLES_MAX);
	struct cache_segment *segment = cache->segments[cache_directory_index(cache, key.low)];
	struct cache_entry *entry = cache_place(segment, key.low, (uint16_t)key.high);
	bool same = entry->count && entry->fields == fields;
	bool several = cache_differ(levels, count);
	uint64_t *list = cache_merged(same ? entry : NULL, handles, count, several);
	uint32_t slot = same && cache_has_all(entry, list, count) ? entry->slot : 0;
	if (fields)
		cache->bytes += field_names_ref(fields);
	if (entry->count)
		cache_remove_at(cache, segment, (size_t)(entry - segment->entries));
	struct cache_entry fresh = {.low = key.low,
				    .high = (uint16_t)key.high,
				    .slot = slot,
				    .fields = fields,
				    .count = count & CACHE_HANDLES_MAX,
				    .level = (levels ? levels[0] : 0u) & CACHE_LEVELS};
	if (several) {
		memcpy(list + count, levels, count);
		fresh.level = CACHE_LEVELS;
	}
	if (fresh.level != CACHE_LEVELS && cache_consecutive(list, count)) {
		fresh.first = list[0];
		mem_free(list);
	} else {
		fresh.list = list;
		fresh.is_list = true;
	}
	segment = cache_make_room(cache, key.low, cache_list_bytes(&fresh));
	*cache_place(segment, key.low, (uint16_t)key.high) = fresh;
	segment->used++;
	cache->entries++;
	cache->bytes += cache_list_bytes(&fresh);
}
