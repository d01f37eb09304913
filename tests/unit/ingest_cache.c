/* The cache of handles against a plain list, its bounds, and the shapes it holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "ingest/cache.h"
#include "ingest/field_names.h"

enum { KEYS = 20000, HANDLES = 5 };

static struct hash128 key_of(uint64_t i)
{
	return hash128(&i, sizeof(i), 42);
}

static void handles_of(uint64_t i, bool list, uint64_t *handles)
{
	for (size_t h = 0; h < HANDLES; h++)
		handles[h] = i * 100 + (list ? h * h : h) + 1;
}

static void expect_handles(struct cache *cache, uint64_t i, bool list)
{
	uint64_t want[HANDLES], got[HANDLES];
	const struct cache_entry *entry = cache_find(cache, key_of(i));
	assert_non_null(entry);
	assert_int_equal(entry->count, HANDLES);
	handles_of(i, list, want);
	cache_handles(entry, got);
	assert_memory_equal(got, want, sizeof(want));
	for (size_t h = 0; h < HANDLES; h++)
		assert_int_equal(cache_handle(entry, h), want[h]);
}

static void what_was_put_is_found_through_all_splits(void **state)
{
	(void)state;
	struct cache *cache = cache_new(64 << 20);
	uint64_t handles[HANDLES];
	for (uint64_t i = 0; i < KEYS; i++) {
		handles_of(i, i % 3 == 0, handles);
		cache_put(cache, key_of(i), NULL, handles, NULL, HANDLES);
		assert_null(cache_find(cache, key_of(i + 1)));
		if (i % 1000 == 999) {
			for (uint64_t j = 0; j <= i; j += 7)
				expect_handles(cache, j, j % 3 == 0);
		}
	}
	for (uint64_t i = 0; i < KEYS; i++)
		expect_handles(cache, i, i % 3 == 0);
	struct cache_usage usage = cache_usage(cache);
	assert_int_equal(usage.entries, KEYS);
	/* 32 bytes in segments at least 40 % full, and 56 more for every third. */
	assert_in_range(usage.bytes, KEYS * 32, KEYS * (32 * 10 / 4 + 20));
	cache_clear(cache);
	assert_null(cache_find(cache, key_of(0)));
	assert_int_equal(cache_usage(cache).entries, 0);
	cache_free(cache);
}

static void a_full_cache_forgets_what_is_not_used(void **state)
{
	(void)state;
	enum { MAX_BYTES = 200000 };
	struct cache *cache = cache_new(MAX_BYTES);
	uint64_t handles[HANDLES];
	for (uint64_t i = 0; i < KEYS; i++) {
		handles_of(i, i % 2, handles);
		cache_put(cache, key_of(i), NULL, handles, NULL, HANDLES);
		/* A hundred keys that are asked for all the time. */
		for (uint64_t j = 0; j < 100 && j <= i; j++)
			expect_handles(cache, j, j % 2);
		assert_true(cache_usage(cache).bytes <= MAX_BYTES);
	}
	expect_handles(cache, KEYS - 1, (KEYS - 1) % 2);
	size_t found = 0;
	for (uint64_t i = 0; i < KEYS; i++)
		found += cache_find(cache, key_of(i)) != NULL;
	assert_int_equal(found, cache_usage(cache).entries);
	assert_in_range(found, 1500, KEYS / 2);
	cache_free(cache);
}

/* Evictions close gaps: nothing that stays may get lost by them. */
static void evictions_lose_nothing_else(void **state)
{
	(void)state;
	struct cache *cache = cache_new(20000); /* one segment */
	struct random random;
	random_init(&random, 5);
	size_t before = 0;
	for (int resolving = 0; resolving < 50000; resolving++) {
		uint64_t handle = 1 + random_below(&random, 3000);
		cache_put(cache, key_of(handle), NULL, &handle, NULL, 1);
		const struct cache_entry *entry = cache_find(cache, key_of(handle));
		assert_non_null(entry);
		assert_int_equal(entry->first, handle);
		if (resolving % 500)
			continue;
		size_t found = 0;
		for (uint64_t i = 1; i <= 3000; i++)
			found += cache_find(cache, key_of(i)) != NULL;
		assert_int_equal(found, cache_usage(cache).entries);
		before = found;
	}
	assert_true(before > 300);
	cache_free(cache);
}

static void handles_are_filled_in_later(void **state)
{
	(void)state;
	struct cache *cache = cache_new(1 << 20);
	uint64_t handles[3] = {7, 0, 9}, got[3];
	cache_put(cache, key_of(1), NULL, handles, NULL, 3);
	cache_put(cache, key_of(1), NULL, (uint64_t[]){0, 8, 0}, NULL, 3);
	const struct cache_entry *entry = cache_find(cache, key_of(1));
	cache_handles(entry, got);
	assert_memory_equal(got, ((uint64_t[]){7, 8, 9}), sizeof(got));
	assert_false(entry->is_list); /* consecutive by now */
	cache_put(cache, key_of(1), NULL, (uint64_t[]){5, 0}, NULL, 2);
	entry = cache_find(cache, key_of(1));
	assert_int_equal(entry->count, 2);
	assert_int_equal(cache_handle(entry, 1), 0);
	assert_int_equal(cache_usage(cache).entries, 1);
	cache_free(cache);
}

/* Handles of one list of metrics mean nothing in another of the same length. */
/* Of one level it costs nothing; of several each handle has its own, wherever it came from. */
static void levels_stand_beside_handles(UNUSED void **state)
{
	static const uint8_t one[] = {3, 3, 3}, several[] = {0, 3, 14};
	struct cache *cache = cache_new(1 << 20);
	cache_put(cache, key_of(1), NULL, (uint64_t[]){5, 6, 7}, one, 3);
	const struct cache_entry *entry = cache_find(cache, key_of(1));
	assert_int_equal(entry->level, 3);
	assert_false(entry->is_list);
	assert_int_equal(cache_level(entry, 2), 3);
	size_t bytes = cache_usage(cache).bytes;
	cache_put(cache, key_of(1), NULL, (uint64_t[]){5, 6, 0}, several, 3);
	entry = cache_find(cache, key_of(1));
	assert_int_equal(entry->level, CACHE_LEVELS);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(cache_level(entry, i), several[i]);
		assert_int_equal(cache_handle(entry, i), 5 + i);
	}
	assert_true(cache_usage(cache).bytes >= bytes + 3 * 9);
	cache_put(cache, key_of(1), NULL, (uint64_t[]){5, 6, 7}, NULL, 3);
	entry = cache_find(cache, key_of(1));
	assert_int_equal(cache_level(entry, 1), 0);
	assert_int_equal(cache_usage(cache).bytes, bytes);
	cache_free(cache);
}

static void another_shape_keeps_no_handles(void **state)
{
	(void)state;
	struct field_sets *field_sets = field_sets_new(1);
	struct cache *cache = cache_new(1 << 20);
	struct slice names[] = {SLICE("a"), SLICE("b")}, others[] = {SLICE("c"), SLICE("d")};
	struct errbuf e;
	size_t field;
	struct field_names *fields = field_names_get(field_sets, SLICE("m"), names, 2, &field, &e);
	struct field_names *other = field_names_get(field_sets, SLICE("m"), others, 2, &field, &e);
	cache_put(cache, key_of(1), fields, (uint64_t[]){7, 8}, NULL, 2);
	cache_put(cache, key_of(1), other, (uint64_t[]){0, 9}, NULL, 2);
	const struct cache_entry *entry = cache_find(cache, key_of(1));
	assert_ptr_equal(entry->fields, other);
	assert_int_equal(cache_handle(entry, 0), 0);
	assert_int_equal(cache_handle(entry, 1), 9);
	field_names_release(fields);
	field_names_release(other);
	assert_int_equal(field_sets_count(field_sets), 1);
	cache_free(cache);
	field_sets_free(field_sets);
}

static void field_sets_live_as_long_as_somebody_has_them(void **state)
{
	(void)state;
	struct field_sets *field_sets = field_sets_new(1);
	struct cache *cache = cache_new(1 << 20);
	struct slice names[] = {SLICE("usage\\ user"), SLICE("value"), SLICE("x")};
	struct errbuf e;
	size_t field;
	struct field_names *fields =
		field_names_get(field_sets, SLICE("c\\,pu"), names, 3, &field, &e);
	assert_non_null(fields);
	assert_true(slice_equal(fields->metrics[0], SLICE("c,pu_usage user")));
	assert_true(slice_equal(fields->metrics[1], SLICE("c,pu")));
	assert_true(slice_equal(fields->metrics[2], SLICE("c,pu_x")));
	assert_false(fields->repeats);
	struct field_names *again =
		field_names_get(field_sets, SLICE("c\\,pu"), names, 3, &field, &e);
	assert_ptr_equal(again, fields);
	field_names_release(again);
	struct field_names *fewer =
		field_names_get(field_sets, SLICE("c\\,pu"), names, 2, &field, &e);
	assert_ptr_not_equal(fewer, fields);
	field_names_release(fewer);
	assert_int_equal(field_sets_count(field_sets), 1);
	size_t empty = cache_usage(cache).bytes;
	uint64_t handles[3] = {1, 2, 3};
	cache_put(cache, key_of(1), fields, handles, NULL, 3);
	cache_put(cache, key_of(2), fields, handles, NULL, 3);
	assert_int_equal(cache_usage(cache).bytes, empty + fields->bytes);
	field_names_release(fields);
	assert_int_equal(field_sets_count(field_sets), 1);
	cache_clear(cache);
	assert_int_equal(field_sets_count(field_sets), 0);
	assert_int_equal(cache_usage(cache).bytes, empty);
	cache_free(cache);
	field_sets_free(field_sets);
}

static void field_sets_with_repeats_and_bad_names(void **state)
{
	(void)state;
	struct field_sets *field_sets = field_sets_new(1);
	struct errbuf e;
	size_t field = 99;
	char text[600];
	memset(text, 'n', sizeof(text));
	struct slice twice[] = {SLICE("a\\=b"), SLICE("c"), SLICE("a\\=b")};
	struct field_names *fields = field_names_get(field_sets, SLICE("m"), twice, 3, &field, &e);
	assert_true(fields->repeats);
	field_names_release(fields);
	struct slice bad[] = {SLICE("ok"), SLICE("b\x01"), SLICE("x")};
	assert_null(field_names_get(field_sets, SLICE("m"), bad, 3, &field, &e));
	assert_int_equal(field, 1);
	for (size_t len = 253; len <= 600; len += len == 253 ? 1 : 346) {
		struct slice names[] = {SLICE("a"), {text, len}};
		fields = field_names_get(field_sets, SLICE("mm"), names, 2, &field, &e);
		/* 256 bytes with the measurement and the underscore. */
		assert_true((fields != NULL) == (len == 253));
		if (fields)
			field_names_release(fields);
		else
			assert_int_equal(field, 1);
	}
	for (size_t i = 0; i < 300; i++) {
		struct slice name = {text, 1 + i % 200};
		struct field_names *kept =
			field_names_get(field_sets, SLICE("m"), &name, 1, &field, &e);
		assert_non_null(kept);
	}
	assert_int_equal(field_sets_count(field_sets), 200);
	for (size_t i = 0; i < 300; i++) {
		struct slice name = {text, 1 + i % 200};
		struct field_names *kept =
			field_names_get(field_sets, SLICE("m"), &name, 1, &field, &e);
		field_names_release(kept);
		field_names_release(kept);
	}
	assert_int_equal(field_sets_count(field_sets), 0);
	field_sets_free(field_sets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_put_is_found_through_all_splits),
		cmocka_unit_test(a_full_cache_forgets_what_is_not_used),
		cmocka_unit_test(evictions_lose_nothing_else),
		cmocka_unit_test(handles_are_filled_in_later),
		cmocka_unit_test(levels_stand_beside_handles),
		cmocka_unit_test(another_shape_keeps_no_handles),
		cmocka_unit_test(field_sets_live_as_long_as_somebody_has_them),
		cmocka_unit_test(field_sets_with_repeats_and_bad_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
