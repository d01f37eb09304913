/* The set of names that are known to be stored: what was added stays until the set is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "catalog/private.h"

static struct hash128 name(const char *tenant, int number)
{
	char text[16];
	snprintf(text, sizeof(text), "m%d", number);
	return metric_hash(name_seed(slice_of(tenant)), slice_of(text));
}

static void names_stay_while_the_set_grows(UNUSED void **state)
{
	enum { COUNT = 5000 };
	struct hash_set set = {0};
	assert_false(hash_set_has(&set, name("t", 0)));
	for (int i = 0; i < COUNT; i++) {
		assert_true(hash_set_add(&set, name("t", i), COUNT));
		assert_false(hash_set_add(&set, name("t", i), COUNT));
	}
	for (int i = 0; i < COUNT; i++) {
		assert_true(hash_set_has(&set, name("t", i)));
		assert_false(hash_set_has(&set, name("other", i)));
	}
	assert_false(hash_set_has(&set, name("t", COUNT)));
	assert_int_equal(set.table.count, COUNT);
	hash_set_release(&set);
}

static void a_full_set_begins_again(UNUSED void **state)
{
	struct hash_set set = {0};
	for (int i = 0; i < 3; i++)
		assert_true(hash_set_add(&set, name("t", i), 3));
	assert_false(hash_set_add(&set, name("t", 1), 3)); /* is there: nothing is emptied */
	assert_int_equal(set.table.count, 3);
	assert_true(hash_set_add(&set, name("t", 3), 3));
	assert_int_equal(set.table.count, 1);
	assert_true(hash_set_has(&set, name("t", 3)));
	assert_false(hash_set_has(&set, name("t", 1)));
	hash_set_release(&set);
}

/* Zero marks an empty slot, so no name has it; a set with one name near it finds just that. */
static void the_smallest_hash_is_a_name(UNUSED void **state)
{
	struct hash_set set = {0};
	struct hash128 smallest = {.low = 1}, high = {.high = 1};
	assert_true(hash_set_add(&set, smallest, 10));
	assert_false(hash_set_has(&set, high));
	assert_true(hash_set_add(&set, high, 10));
	assert_true(hash_set_has(&set, smallest) && hash_set_has(&set, high));
	hash_set_release(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_stay_while_the_set_grows),
		cmocka_unit_test(a_full_set_begins_again),
		cmocka_unit_test(the_smallest_hash_is_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
