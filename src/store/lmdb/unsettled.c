#include "store/lmdb/unsettled.h"

static size_t unsettled_slot(const struct unsettled_set *set, const struct group_id *id)
{
	size_t at = segment_hash(&id->segment, id->shape, id->group) & (set->cap - 1);
	while (set->used[at] && !group_same(&set->slots[at].id, id))
		at = (at + 1) & (set->cap - 1);
	return at;
}

static void unsettled_grow(struct unsettled_set *set)
{
	struct unsettled_set old = *set;
	set->least_end_ms = INT64_MIN;
	set->cap = old.cap ? old.cap * 2 : 256;
	set->slots = mem_alloc_array(set->cap, sizeof(*set->slots));
	set->used = mem_zalloc(set->cap * sizeof(*set->used));
	for (size_t i = 0; i < old.cap; i++) {
		if (!old.used[i])
			continue;
		size_t at = unsettled_slot(set, &old.slots[i].id);
		set->slots[at] = old.slots[i];
		set->used[at] = true;
	}
	mem_free(old.slots);
	mem_free(old.used);
}

static struct unsettled *add(struct unsettled_set *set, const struct group_id *id, int64_t at_us)
{
	if (set->count * 2 >= set->cap)
		unsettled_grow(set);
	size_t at = unsettled_slot(set, id);
	if (!set->used[at]) {
		int64_t end_ms = segment_end_ms(&id->segment);
		set->slots[at] = (struct unsettled){.id = *id, .end_ms = INT64_MAX};
		set->least_end_ms = end_ms < set->least_end_ms ? end_ms : set->least_end_ms;
	}
	set->count += !set->used[at];
	set->used[at] = true;
	set->slots[at].touched_us = at_us;
	return &set->slots[at];
}

void unsettled_add(struct unsettled_set *set, const struct group_id *id, int64_t at_us)
{
	add(set, id, at_us);
}

void unsettled_add_known(struct unsettled_set *set, const struct group_id *id, int64_t at_us,
			 int64_t end_ms)
{
	add(set, id, at_us)->end_ms = end_ms;
}

int64_t unsettled_end_ms(const struct unsettled_set *set, const struct group_id *id)
{
	if (!set->cap)
		return INT64_MAX;
	size_t at = unsettled_slot(set, id);
	return set->used[at] ? set->slots[at].end_ms : INT64_MAX;
}

/* Backward-shift deletion keeps every probe sequence whole. */
void unsettled_remove(struct unsettled_set *set, const struct group_id *id)
{
	if (set->cap == 0)
		return;
	size_t hole = unsettled_slot(set, id);
	if (!set->used[hole])
		return;
	set->used[hole] = false;
	set->count--;
	set->least_end_ms = INT64_MIN;
	for (size_t at = (hole + 1) & (set->cap - 1); set->used[at];
	     at = (at + 1) & (set->cap - 1)) {
		struct unsettled moved = set->slots[at];
		set->used[at] = false;
		size_t to = unsettled_slot(set, &moved.id);
		set->slots[to] = moved;
		set->used[to] = true;
	}
}
