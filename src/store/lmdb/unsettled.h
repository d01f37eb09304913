/* The set of groups that have extents of more than one flush and wait to be settled (settle.c).
 * Private; the writer's. */
#ifndef STORE_LMDB_UNSETTLED_H
#define STORE_LMDB_UNSETTLED_H

#include "store/lmdb/group.h"

/* A group that has extents of more than one flush, and when it got the last. */
struct unsettled {
	struct group_id id;
	int64_t touched_us;
};

/* A set of groups, by linear probing. */
struct unsettled_set {
	struct unsettled *slots;
	bool *used;
	size_t count, cap;
};

/* Of a group that is there, only the time changes. */
void unsettled_add(struct unsettled_set *set, const struct group_id *id, int64_t at_us);
/* Another group may take its slot. */
void unsettled_remove(struct unsettled_set *set, const struct group_id *id);

#endif
