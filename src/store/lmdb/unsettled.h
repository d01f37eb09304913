/* The set of groups that have extents of more than one flush and wait to be settled (settle.c).
 * Private; the writer's. */
#ifndef STORE_LMDB_UNSETTLED_H
#define STORE_LMDB_UNSETTLED_H

#include "base/hash_table.h"
#include "store/lmdb/group.h"

/* A group that has extents of more than one flush, when it got the last, and where they end. */
struct unsettled {
	struct hash128 hash;
	struct group_id id;
	int64_t touched_us;
	int64_t end_ms; /* no block of it ends later; INT64_MAX: nobody knows */
};

struct unsettled_set {
	struct hash_table table; /* of struct unsettled */
	/* None lies in a segment that ends earlier; of what changes its place in the set nobody
	 * looks: then it is INT64_MIN. */
	int64_t least_end_ms;
};

/* In a group that is there, only the time changes. Nobody knows where another group ends. */
void unsettled_add(struct unsettled_set *set, const struct group_id *id, int64_t at_us);
/* Blocks were added, and after that none of the group ends later. */
void unsettled_add_known(struct unsettled_set *set, const struct group_id *id, int64_t at_us,
			 int64_t end_ms);
/* Where its blocks end: INT64_MAX for a group that is not there, too. */
int64_t unsettled_end_ms(const struct unsettled_set *set, const struct group_id *id);
/* Another group may take its place in the table. */
void unsettled_remove(struct unsettled_set *set, const struct group_id *id);

#endif
