#include "marks/set.h"

#include "base/hash.h"
#include "base/mem.h"

enum { TABLE_FIRST = 1024, MARKS_FIRST = 256 };

void mark_set_release(struct mark_set *set)
{
	mem_free(set->marks);
	mem_free(set->table);
}

void mark_set_clear(struct mark_set *set)
{
	set->count = 0;
	if (set->table_size)
		memset(set->table, 0, set->table_size * sizeof(*set->table));
}

static bool mark_set_is_mark_of(const struct mark *mark, struct slice tenant,
				struct series_set series_set)
{
	return slice_equal(mark->tenant, tenant) && series_set_equal(mark->series_set, series_set);
}

static uint64_t mark_set_hash_of(struct slice tenant, struct series_set series_set)
{
	uint64_t hash = hash64(tenant.data, tenant.len, 0);
	hash = hash64(series_set.tags.data, series_set.tags.len, hash);
	return hash64(series_set.metric.data, series_set.metric.len, hash);
}

/* Where the mark stands in the table, or the empty place where it would. */
static uint32_t *mark_set_place_of(struct mark_set *set, struct slice tenant,
				   struct series_set series_set)
{
	size_t at = mark_set_hash_of(tenant, series_set) & (set->table_size - 1);
	while (set->table[at] &&
	       !mark_set_is_mark_of(&set->marks[set->table[at] - 1], tenant, series_set))
		at = (at + 1) & (set->table_size - 1);
	return &set->table[at];
}

static void mark_set_grow_table(struct mark_set *set)
{
	mem_free(set->table);
	set->table_size = set->table_size ? set->table_size * 2 : TABLE_FIRST;
	set->table = mem_zalloc(set->table_size * sizeof(*set->table));
	for (size_t i = 0; i < set->count; i++)
		*mark_set_place_of(set, set->marks[i].tenant, set->marks[i].series_set) =
			(uint32_t)i + 1;
}

uint32_t mark_set_enter(struct mark_set *set, struct slice tenant, struct series_set series_set)
{
	if (set->count * 2 >= set->table_size)
		mark_set_grow_table(set);
	uint32_t *place = mark_set_place_of(set, tenant, series_set);
	if (*place)
		return *place - 1;
	if (set->count == set->room) {
		set->room = set->room ? set->room * 2 : MARKS_FIRST;
		set->marks = mem_resize_array(set->marks, set->room, sizeof(*set->marks));
	}
	set->marks[set->count++] =
		(struct mark){.tenant = tenant, .series_set = series_set, .first_ms = INT64_MAX};
	*place = (uint32_t)set->count;
	return *place - 1;
}
