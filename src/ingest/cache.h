/* The series that the doors know already: from the hash of a key to the handles of its series, so
 * that a line whose key was seen before costs one look-up.
 *
 * A key stands for tenant, tags and a list of metrics (a shape, for line protocol). 80 bits of a
 * seeded hash are taken for the key itself. A handle may be 0: a metric of the list that has not
 * been needed yet (a field that was text so far).
 *
 * Entries lie in segments of 512, open addressing, and segments are found by the upper bits of the
 * hash: a full segment is split, so that growing never stops the loop for long (extendible hashing:
 * Fagin and others, 1979). At the maximum of bytes the segment forgets, by a clock, what was not
 * used since the hand last passed. An entry costs 32 bytes if its handles are consecutive numbers,
 * which they are where the store registered them together, else 8 more for each handle, and one
 * where they differ in how long their samples are kept.
 *
 * Private to ingest/; the loop's thread. */
#ifndef INGEST_CACHE_H
#define INGEST_CACHE_H

#include "base/base.h"
#include "base/hash.h"
#include "retention/retention.h"

struct field_names;
struct cache;

struct cache_entry {
	uint64_t low;
	uint32_t slot;        /* in which they are marked, see marks/recent.h; 0: in none */
	uint16_t high;        /* as much of it as has room in half a cache line */
	uint16_t count : 10;  /* of handles; 0: the place is free */
	uint16_t level : 4;   /* of all its metrics (retention/retention.h), or CACHE_LEVELS */
	uint16_t is_list : 1; /* of the handles */
	uint16_t used : 1;    /* since the hand last passed */
	union {
		uint64_t first; /* handles are first, first + 1, ... */
		uint64_t *list; /* is_list */
	};
	struct field_names *fields; /* may be NULL; the entry holds a reference */
};

enum {
	CACHE_HANDLES_MAX = (1 << 10) - 1,
	CACHE_LEVELS = 15, /* several levels: the entry is a list, and they stand after it */
};
_Static_assert((int)RETENTION_LEVELS_MAX <= (int)CACHE_LEVELS, "each has a number of its own");

struct cache *cache_new(size_t max_bytes);
void cache_free(struct cache *cache);
/* Forgets everything. */
void cache_clear(struct cache *cache);

/* NULL if it is not there. Valid until the next call that changes the cache. */
struct cache_entry *cache_find(struct cache *cache, struct hash128 key);

/* Has the memory fetched that cache_find will look at. */
void cache_prefetch(const struct cache *cache, struct hash128 key);

/* The handle at `i`. */
static inline uint64_t cache_handle(const struct cache_entry *entry, size_t i)
{
	return entry->is_list ? entry->list[i] : entry->first + i;
}

/* How long raw samples of the metric at `i` are kept. */
static inline uint8_t cache_level(const struct cache_entry *entry, size_t i)
{
	if (LIKELY(entry->level != CACHE_LEVELS))
		return entry->level;
	return ((const uint8_t *)(entry->list + entry->count))[i];
}

/* Writes all handles to `handles`. */
static inline void cache_handles(const struct cache_entry *entry, uint64_t *handles)
{
	if (UNLIKELY(entry->is_list)) {
		memcpy(handles, entry->list, entry->count * sizeof(*handles));
		return;
	}
	for (size_t i = 0; i < entry->count; i++)
		handles[i] = entry->first + i;
}

/* Enters or replaces an entry. If the replaced entry has the same shape and count, it keeps the
 * handles that are 0 in the new one, and its slot too, unless a handle is new.
 * handles: `count`, 1 to CACHE_HANDLES_MAX, not all 0. levels: one for each handle; NULL: all are
 * 0. The entry holds a reference to `shape`. */
void cache_put(struct cache *cache, struct hash128 key, struct field_names *fields,
	       const uint64_t *handles, const uint8_t *levels, size_t count);

struct cache_usage {
	size_t entries, bytes;
};
struct cache_usage cache_usage(const struct cache *cache);

#endif
