#include "store/lmdb/unsettled.h"

static struct hash128 unsettled_hash(const struct group_id *id)
{
	_Static_assert(sizeof(*id) == 32, "without padding");
	return hash128(id, sizeof(*id), 0);
}

static struct unsettled *unsettled_put(struct unsettled_set *set, const struct group_id *id,
				       int64_t at_us)
{
	bool added;
	struct unsettled *entry =
		hash_table_add(&set->table, unsettled_hash(id), sizeof(*entry), &added);
	if (added) {
		int64_t end_ms = segment_end_ms(&id->segment);
		entry->id = *id;
		entry->end_ms = INT64_MAX;
		set->least_end_ms = end_ms < set->least_end_ms ? end_ms : set->least_end_ms;
	}
	entry->touched_us = at_us;
	return entry;
}

void unsettled_add(struct unsettled_set *set, const struct group_id *id, int64_t at_us)
{
	unsettled_put(set, id, at_us);
}

void unsettled_add_known(struct unsettled_set *set, const struct group_id *id, int64_t at_us,
			 int64_t end_ms)
{
	unsettled_put(set, id, at_us)->end_ms = end_ms;
}

int64_t unsettled_end_ms(const struct unsettled_set *set, const struct group_id *id)
{
	const struct unsettled *entry = hash_table_find(&set->table, unsettled_hash(id));
	return entry ? entry->end_ms : INT64_MAX;
}

void unsettled_remove(struct unsettled_set *set, const struct group_id *id)
{
	set->least_end_ms = INT64_MIN;
	hash_table_remove(&set->table, unsettled_hash(id));
}
