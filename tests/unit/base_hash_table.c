/* The table against a plain array: hashes that belong in the same few places, so that most are
 * found by probing, over the end of the slots, too. And arrays that grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/grow.h"
#include "base/hash_table.h"
#include "base/random.h"

enum { KEYS = 200 };

struct entry {
	struct hash128 hash;
	uint64_t number;
};

/* Of 64 slots those at the end, of 256 four groups. Key 0 has the hash that marks empty slots. */
static struct hash128 hash_of_key(size_t key)
{
	return key ? (struct hash128){61 + (key % 5) + 64 * (key % 4), key} : (struct hash128){0};
}

static void expect_entries(const struct hash_table *table, const uint64_t *numbers)
{
	size_t count = 0, seen = 0;
	for (size_t key = 0; key < KEYS; key++) {
		const struct entry *entry = hash_table_find(table, hash_of_key(key));
		assert_int_equal(entry ? entry->number : 0, numbers[key]);
		count += numbers[key] != 0;
	}
	for (size_t at = 0; at < table->slot_count; at++)
		seen += hash_table_at(table, at) != NULL;
	assert_int_equal(table->count, count);
	assert_int_equal(seen, count);
}

static void entries_come_and_go(UNUSED void **state)
{
	static uint64_t numbers[KEYS];
	struct hash_table table = {0};
	struct random random;
	random_init(&random, 5);
	expect_entries(&table, numbers);
	hash_table_remove(&table, hash_of_key(1));
	for (uint64_t step = 1; step <= 3000; step++) {
		size_t key = random_below(&random, step < 1000 ? 30 : KEYS);
		bool added;
		if (random_below(&random, 3) == 0) {
			hash_table_remove(&table, hash_of_key(key));
			numbers[key] = 0;
		} else {
			struct entry *entry =
				hash_table_add(&table, hash_of_key(key), sizeof(*entry), &added);
			assert_int_equal(added, numbers[key] == 0);
			assert_int_equal(entry->number, numbers[key]);
			entry->number = numbers[key] = step;
		}
		expect_entries(&table, numbers);
	}
	hash_table_release(&table);
	assert_null(hash_table_find(&table, hash_of_key(7)));
}

static void a_list_grows_to_twice_its_room(UNUSED void **state)
{
	uint64_t *list = NULL;
	size_t room = 0;
	for (size_t i = 0; i < 10000; i++) {
		size_t before = room;
		GROW(list, room, i + 1);
		assert_true(room > i && (room == before || room >= 2 * before));
		list[i] = i;
	}
	for (size_t i = 0; i < 10000; i++)
		assert_int_equal(list[i], i);
	GROW(list, room, 1000000);
	assert_int_equal(room, 1000000);
	assert_int_equal(list[9999], 9999);
	mem_free(list);
}

static void a_list_in_an_arena_stays_when_the_arena_is_full(UNUSED void **state)
{
	struct arena arena;
	uint64_t *list = NULL;
	size_t room = 0, count = 0;
	arena_init(&arena, 4096);
	while (GROW_IN_ARENA(&arena, list, room, count + 1)) {
		list[count] = count;
		count++;
	}
	/* 64 and 128 and 256 of 8 bytes do not leave room for 512. */
	assert_int_equal(count, 256);
	assert_int_equal(room, 256);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(list[i], i);
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_come_and_go),
		cmocka_unit_test(a_list_grows_to_twice_its_room),
		cmocka_unit_test(a_list_in_an_arena_stays_when_the_arena_is_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
