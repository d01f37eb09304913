/* Ranges of offsets, compared with an array of bytes that says of each offset whether it is there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "stream/offsets.h"

enum { OFFSETS = 200 };

static size_t count_runs(const bool *there)
{
	size_t runs = 0;
	for (size_t i = 0; i < OFFSETS; i++)
		runs += there[i] && (!i || !there[i - 1]);
	return runs;
}

static void check_all(const struct offsets *offsets, const bool *there)
{
	assert_int_equal(offsets->count, count_runs(there));
	for (size_t at = 0; at < OFFSETS; at++) {
		struct offset_range range = offsets_at(offsets, at);
		size_t begin = at, end = at;
		while (there[at] && begin && there[begin - 1])
			begin--;
		while (there[at] && end < OFFSETS && there[end])
			end++;
		assert_int_equal(range.begin, there[at] ? begin : 0);
		assert_int_equal(range.end, there[at] ? end : 0);
	}
}

static void check_ranges(const struct offsets *offsets, bool *there, size_t begin, size_t end)
{
	bool all = true, any = false;
	bool with[OFFSETS];
	memcpy(with, there, sizeof(with));
	for (size_t i = begin; i < end; i++) {
		all = all && there[i];
		any = any || there[i];
		with[i] = true;
	}
	assert_int_equal(offsets_cover(offsets, begin, end), all);
	assert_int_equal(offsets_meet(offsets, begin, end), any);
	assert_int_equal(offsets_count_with(offsets, begin, end), count_runs(with));
}

static void they_are_as_an_array_of_bytes(void **state)
{
	struct random random;
	(void)state;
	random_init(&random, 7);
	for (int round = 0; round < 300; round++) {
		struct offsets offsets = {.list = NULL};
		bool there[OFFSETS] = {false};
		for (int step = 0; step < 40; step++) {
			size_t begin = random_below(&random, OFFSETS - 1);
			size_t end = begin + 1 + random_below(&random, step % 3 ? 4 : 30);
			end = end > OFFSETS ? OFFSETS : end;
			check_ranges(&offsets, there, begin, end);
			offsets_add(&offsets, begin, end);
			memset(there + begin, true, end - begin);
			check_all(&offsets, there);
		}
		offsets_release(&offsets);
	}
}

static void what_is_cut_is_gone(void **state)
{
	(void)state;
	for (uint64_t below = 0; below <= 100; below++) {
		struct offsets offsets = {.list = NULL};
		for (uint64_t at = 10; at < 100; at += 20)
			offsets_add(&offsets, at, at + 10);
		offsets_cut(&offsets, below);
		for (uint64_t at = 0; at < 110; at++) {
			bool there = at >= 10 && at < 100 && at / 10 % 2 && at >= below;
			assert_int_equal(offsets_at(&offsets, at).end != 0, there);
		}
		offsets_release(&offsets);
	}
}

static void what_is_removed_is_gone(void **state)
{
	(void)state;
	for (uint64_t begin = 0; begin < 110; begin++) {
		for (uint64_t end = begin + 1; end <= 111; end++) {
			struct offsets offsets = {.list = NULL};
			bool there[OFFSETS] = {false};
			for (uint64_t at = 10; at < 100; at += 20)
				offsets_add(&offsets, at, at + 10);
			for (uint64_t at = 10; at < 100; at++)
				there[at] = at / 10 % 2 && (at < begin || at >= end);
			offsets_remove(&offsets, begin, end);
			check_all(&offsets, there);
			offsets_release(&offsets);
		}
	}
}

static void add_by_lot(struct random *random, struct offsets *offsets, bool *there)
{
	for (uint64_t ranges = random_below(random, 30); ranges; ranges--) {
		size_t begin = random_below(random, OFFSETS - 1);
		size_t end = begin + 1 + random_below(random, ranges % 5 ? 4 : 40);
		end = end > OFFSETS ? OFFSETS : end;
		offsets_add(offsets, begin, end);
		memset(there + begin, true, end - begin);
	}
}

static void what_is_subtracted_is_not_left(void **state)
{
	struct random random;
	(void)state;
	random_init(&random, 8);
	for (int round = 0; round < 3000; round++) {
		struct offsets all = {.list = NULL}, without = {.list = NULL},
			       left = {.list = NULL};
		bool there[OFFSETS] = {false}, gone[OFFSETS] = {false};
		add_by_lot(&random, &all, there);
		add_by_lot(&random, &without, gone);
		offsets_subtract(&all, &without, &left);
		for (size_t i = 0; i < OFFSETS; i++)
			there[i] = there[i] && !gone[i];
		check_all(&left, there);
		offsets_release(&all);
		offsets_release(&without);
		offsets_release(&left);
	}
}

static void the_ends_of_numbers_are_no_trap(void **state)
{
	struct offsets offsets = {.list = NULL}, other = {.list = NULL};
	(void)state;
	offsets_add(&offsets, 0, 1);
	offsets_add(&offsets, INT64_MAX - 1, INT64_MAX);
	assert_true(offsets_cover(&offsets, INT64_MAX - 1, INT64_MAX));
	assert_false(offsets_meet(&offsets, 1, INT64_MAX - 1));
	assert_int_equal(offsets_at(&offsets, INT64_MAX).end, 0);
	offsets_move(&other, &offsets);
	assert_int_equal(offsets.count, 0);
	offsets_add(&other, 1, INT64_MAX - 1);
	assert_int_equal(other.count, 1);
	assert_true(offsets_cover(&other, 0, INT64_MAX));
	offsets_release(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_are_as_an_array_of_bytes),
		cmocka_unit_test(what_is_cut_is_gone),
		cmocka_unit_test(what_is_removed_is_gone),
		cmocka_unit_test(what_is_subtracted_is_not_left),
		cmocka_unit_test(the_ends_of_numbers_are_no_trap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
