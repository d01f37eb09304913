/* Hashes of records that came last, compared with a list of all that came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "stream/recent.h"

enum { COUNT = 3 * RECENT_HALF_MAX };

static void the_last_are_known(void **state)
{
	static uint64_t hashes[COUNT];
	struct recent recent = {.young = {.table = {.slots = NULL}}};
	struct random random;
	(void)state;
	random_init(&random, 1);
	for (size_t i = 0; i < COUNT; i++) {
		hashes[i] = random_next(&random);
		assert_false(recent_has(&recent, hashes[i]));
		recent_add(&recent, hashes[i]);
		assert_true(recent_has(&recent, hashes[i]));
	}
	for (size_t i = COUNT - RECENT_HALF_MAX; i < COUNT; i++)
		assert_true(recent_has(&recent, hashes[i]));
	for (size_t i = 0; i < COUNT - 2 * RECENT_HALF_MAX; i++)
		assert_false(recent_has(&recent, hashes[i]));
	/* Two sets, at most two thirds full, with as many slots as a power of two: 65,536 of 16
	 * bytes. */
	assert_int_equal(recent_bytes(&recent), 2 * 65536 * 16);
	recent_release(&recent);
	assert_int_equal(recent_bytes(&recent), 0);
	assert_false(recent_has(&recent, hashes[COUNT - 1]));
}

/* One that came long ago, and again just now, stays known. */
static void what_comes_again_is_young(void **state)
{
	struct recent recent = {.young = {.table = {.slots = NULL}}};
	(void)state;
	for (uint64_t i = 0; i < 8 * RECENT_HALF_MAX; i++) {
		recent_add(&recent, i << 32 | 5);
		if (i % 1000 == 0)
			recent_add(&recent, 0);
		assert_true(recent_has(&recent, 0));
	}
	recent_release(&recent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_are_known),
		cmocka_unit_test(what_comes_again_is_young),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
