#include "base/hash_table.h"

#include "base/mem.h"

enum { SLOTS_MIN = 64 };

/* Zero marks an empty slot. */
static struct hash128 hash_table_never_zero(struct hash128 hash)
{
	hash.low |= (hash.low | hash.high) == 0;
	return hash;
}

static struct hash128 *hash_table_slot_at(const struct hash_table *table, size_t at)
{
	return (struct hash128 *)(void *)((char *)table->slots + at * table->slot_bytes);
}

static bool hash_table_is_empty(const struct hash128 *slot)
{
	return (slot->low | slot->high) == 0;
}

/* The place of the hash, or where it would be. */
static size_t hash_table_place_of(const struct hash_table *table, struct hash128 hash)
{
	size_t mask = table->slot_count - 1;
	for (size_t at = hash.low & mask;; at = (at + 1) & mask) {
		const struct hash128 *slot = hash_table_slot_at(table, at);
		if (hash_table_is_empty(slot) || (slot->low == hash.low && slot->high == hash.high))
			return at;
	}
}

void *hash_table_at(const struct hash_table *table, size_t at)
{
	ASSERT(at < table->slot_count);
	struct hash128 *slot = hash_table_slot_at(table, at);
	return hash_table_is_empty(slot) ? NULL : slot;
}

void *hash_table_find(const struct hash_table *table, struct hash128 hash)
{
	return table->slot_count
		       ? hash_table_at(table,
				       hash_table_place_of(table, hash_table_never_zero(hash)))
		       : NULL;
}

static void hash_table_make_room(struct hash_table *table)
{
	struct hash_table grown = *table;
	grown.slot_count = table->slot_count ? table->slot_count * 2 : SLOTS_MIN;
	grown.slots = mem_zalloc(grown.slot_count * grown.slot_bytes);
	for (size_t at = 0; at < table->slot_count; at++) {
		const struct hash128 *slot = hash_table_at(table, at);
		if (slot)
			memcpy(hash_table_slot_at(&grown, hash_table_place_of(&grown, *slot)), slot,
			       grown.slot_bytes);
	}
	mem_free(table->slots);
	*table = grown;
}

void *hash_table_add(struct hash_table *table, struct hash128 hash, size_t slot_bytes, bool *added)
{
	struct hash128 *slot = hash_table_find(table, hash);
	ASSERT(slot_bytes >= sizeof(*slot) && (!table->slots || table->slot_bytes == slot_bytes));
	*added = !slot;
	if (slot)
		return slot;
	table->slot_bytes = slot_bytes;
	if (table->count * 3 >= table->slot_count * 2)
		hash_table_make_room(table);
	slot = hash_table_slot_at(table, hash_table_place_of(table, hash_table_never_zero(hash)));
	*slot = hash_table_never_zero(hash);
	table->count++;
	return slot;
}

/* Slots after the hole that would be closer to their home move up, so that every probe still ends
 * at what it looks for. */
void hash_table_remove(struct hash_table *table, struct hash128 hash)
{
	size_t mask = table->slot_count - 1;
	if (!hash_table_find(table, hash))
		return;
	size_t hole = hash_table_place_of(table, hash_table_never_zero(hash));
	for (size_t at = (hole + 1) & mask; !hash_table_is_empty(hash_table_slot_at(table, at));
	     at = (at + 1) & mask) {
		size_t home = hash_table_slot_at(table, at)->low & mask;
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		memcpy(hash_table_slot_at(table, hole), hash_table_slot_at(table, at),
		       table->slot_bytes);
		hole = at;
	}
	memset(hash_table_slot_at(table, hole), 0, table->slot_bytes);
	table->count--;
}

void hash_table_release(struct hash_table *table)
{
	mem_free(table->slots);
	*table = (struct hash_table){0};
}
