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
	const uint16_t *positions; /* of the metrics in the entry; NULL: they are all of it */
	struct slice tenant;
	struct tags tags;
	const struct slice *metrics;
	uint64_t *handles;
	size_t count;
	uint8_t level;         /* of all metrics (raw_retention.h), where `levels` is NULL */
	const uint8_t *levels; /* of each metric */
	size_t index;          /* in the round */
	const struct catalog_group *opened; /* NULL: the catalog was not asked for it */
	struct group *next;
};

struct resolving_point {
	struct resolving_point *next;
	struct group *group;     /* NULL: the series are known */
	const uint64_t *handles; /* of known series; else the group has them */
	uint8_t level;           /* of these, as in struct group */
	bool has_target;         /* the rules have changed since: they go to `target` */
	struct store_target target;
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
	bool needs_catalog;   /* a handle is missing; false: the series only need marks */
	bool opened;          /* the catalog was asked; else `open` is empty */
	struct group **table; /* by `same`; a power of two, at most half full */
	size_t table_size;
	struct resolving_point *points, **last_point;
	struct resolving *next; /* of the same pending write */
	bool busy;              /* its points are being appended */
	bool over;              /* its write ended while they were */
	int64_t judged_ms;      /* when the marks for the first of its points were decided on */
	struct ingest_marked *marked; /* its marks, remembered when they are durable */
	int64_t marked_ms;
	uint64_t losses; /* marks_losses() at marked_ms */
};

/* How many metrics the entry of a group has. */
static inline size_t resolving_key_count(const struct group *group)
{
	return group->positions ? group->key_count : group->count;
}

/* The group's entry of the cache, or NULL. Valid until the cache changes. */
struct cache_entry *resolving_entry(const struct resolving *resolving, const struct group *group);

#endif
