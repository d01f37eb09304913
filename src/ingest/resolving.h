/* Private to ingest/: points whose series are being resolved, for resolving.c and marks.c. */
#ifndef INGEST_RESOLVING_H
#define INGEST_RESOLVING_H

#include "ingest/private.h"

struct ingest_marked;

/* Metrics that share tenant and tags, asked for together. In the round's arena. */
struct group {
	struct hash128 key, same;   /* of the cache entry; of what makes two groups one */
	struct field_names *fields; /* a reference, or NULL */
	bool no_cache;
	uint16_t key_count;        /* handles of the cache entry */
	const uint16_t *positions; /* of the metrics in it; NULL: they are all of it */
	struct slice tenant;
	struct tags tags;
	const struct slice *metrics;
	uint64_t *handles;
	size_t count;
	uint8_t level;         /* of all of them (raw_retention.h), unless there are: */
	const uint8_t *levels; /* by metric */
	size_t index;          /* in the opening, if there is one */
	struct group *next;
};

struct pending {
	struct pending *next;
	struct group *group;     /* NULL: known */
	const uint64_t *handles; /* known ones; else of the group */
	uint8_t level;           /* of these, as of a group */
	const struct value *values;
	size_t count;
	int64_t ts_ms;
	struct ingest_place place;
	bool one_by_one;
	struct slice source;
};

struct resolving {
	struct request *request;
	struct arena arena;
	struct catalog_open open;
	struct group *groups, **last_group;
	size_t group_count;
	bool needs_catalog;   /* not all handles are known: some series are here but to be marked */
	bool opened;          /* by it; else `open` is empty */
	struct group **table; /* by `same`; a power of two, at most half full */
	size_t table_size;
	struct pending *points, **last_point;
	struct resolving *next; /* of one flight */
	bool busy, over;        /* its points are being appended; finished meanwhile */
	int64_t judged_ms;      /* when the first of its points was found to need no mark, or any */
	struct ingest_marked *marked; /* what it marks, for when that is durable */
	int64_t marked_ms;
	uint64_t losses; /* of marks, by then */
};

/* How many metrics the entry of a group has. */
static inline size_t resolving_key_count(const struct group *group)
{
	return group->positions ? group->key_count : group->count;
}

/* The group's entry of the cache, or NULL. Valid until the cache changes. */
struct cache_entry *resolving_entry(const struct resolving *resolving, const struct group *group);

#endif
