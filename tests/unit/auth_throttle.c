/* How long nobody may guess a password: what follows from five wrong ones, a first wait of 10 s
 * that doubles up to 15 minutes, and an hour after which all is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "auth/throttle.h"
#include "base/mem.h"

#define SECOND INT64_C(1000)
#define HOUR   (3600 * SECOND)

static struct throttle throttle;

static int start(UNUSED void **state)
{
	throttle_init(&throttle);
	return 0;
}

static struct loop_address address_of(unsigned number)
{
	return (struct loop_address){
		.bytes = {10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number}};
}

static int64_t try(const char *account, unsigned from, int64_t now_ms)
{
	struct loop_address address = address_of(from);
	return throttle_try(&throttle, slice_of(account), &address, now_ms);
}

static void good(const char *account, unsigned from, int64_t now_ms)
{
	struct loop_address address = address_of(from);
	throttle_good(&throttle, slice_of(account), &address, now_ms);
}

/* Each wrong one from another address, so that the account alone counts. */
static void five_wrong(const char *account, unsigned from, int64_t now_ms)
{
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(try(account, from + i, now_ms), 0);
}

static void an_account_waits_twice_as_long_each_time(UNUSED void **state)
{
	static const int64_t waits_s[] = {10, 20, 40, 80, 160, 320, 640, 900, 900};
	int64_t now_ms = 5 * HOUR;
	five_wrong("ann", 1, now_ms);
	for (unsigned i = 0; i < ARRAY_LEN(waits_s); i++) {
		assert_int_equal(try("ann", 50 + i, now_ms), waits_s[i] * SECOND);
		assert_int_equal(try("ann", 50 + i, now_ms + waits_s[i] * SECOND - 1), 1);
		now_ms += waits_s[i] * SECOND;
		assert_int_equal(try("ann", 100 + i, now_ms), 0);
	}
	assert_int_equal(try("ben", 200, now_ms), 0);
}

static void an_address_waits_whatever_the_account(UNUSED void **state)
{
	static const char *const names[] = {"a", "b", "c", "d", "e"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_int_equal(try(names[i], 7, 0), 0);
	assert_int_equal(try("f", 7, 0), 10 * SECOND);
	assert_int_equal(try("f", 8, 0), 0);
}

/* Of IPv6 a client has 64 bits to choose from. */
static void a_network_of_ipv6_is_one_address(UNUSED void **state)
{
	struct loop_address address = {.v6 = true, .bytes = {0x20, 0x01, 0x0d, 0xb8}};
	for (uint8_t i = 0; i < 5; i++) {
		const char name[] = {'a', (char)('a' + i), 0};
		address.bytes[15] = i;
		assert_int_equal(throttle_try(&throttle, slice_of(name), &address, 0), 0);
	}
	address.bytes[8] = 99;
	assert_int_equal(throttle_try(&throttle, SLICE("x"), &address, 0), 10 * SECOND);
	address.bytes[7] = 1;
	assert_int_equal(throttle_try(&throttle, SLICE("x"), &address, 0), 0);
}

static void a_good_one_begins_anew(UNUSED void **state)
{
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++)
			assert_int_equal(try("ann", 1, 0), 0);
		good("ann", 1, 0);
	}
	assert_int_equal(try("ann", 1, 0), 0);
}

static void an_hour_later_it_is_forgotten(UNUSED void **state)
{
	for (int i = 0; i < 4; i++)
		assert_int_equal(try("ann", 1, 0), 0);
	assert_int_equal(try("ann", 1, HOUR), 0); /* the first again */
	for (int i = 0; i < 4; i++)
		assert_int_equal(try("ann", 1, HOUR), 0);
	assert_int_equal(try("ann", 1, HOUR), 10 * SECOND);
	for (int i = 0; i < 4; i++)
		assert_int_equal(try("ben", 2, 0), 0);
	assert_int_equal(try("ben", 2, HOUR - 1), 0); /* the fifth */
	assert_int_equal(try("ben", 2, HOUR - 1), 10 * SECOND);
}

/* Somebody guesses for ann, from everywhere, for days. */
static void an_owner_is_not_shut_out(UNUSED void **state)
{
	unsigned from = 1000;
	good("ann", 1, 0);
	for (int64_t now_ms = 0; now_ms < 48 * HOUR; now_ms += 15 * 60 * SECOND) {
		for (int i = 0; i < 6; i++)
			(void)try("ann", from++, now_ms);
		assert_true(try("ann", from++, now_ms) > 0);
		assert_int_equal(try("ann", 1, now_ms), 0);
		good("ann", 1, now_ms);
	}
	/* But not free to guess, either, nor for another account. */
	for (int i = 0; i < 5; i++)
		assert_int_equal(try("ann", 1, 60 * HOUR), 0);
	assert_int_equal(try("ann", 1, 60 * HOUR), 10 * SECOND);
	good("ben", 1, 61 * HOUR);
	five_wrong("cat", 20, 61 * HOUR);
	assert_int_equal(try("cat", 1, 61 * HOUR), 10 * SECOND);
}

/* Whoever is held up stays so however many others come. */
static void a_full_table_forgets_who_is_not_held_up(UNUSED void **state)
{
	char name[24];
	for (int i = 0; i < 5; i++)
		assert_int_equal(try("ann", 1, 0), 0);
	for (unsigned i = 0; i < 4 * THROTTLE_ROWS; i++) {
		snprintf(name, sizeof(name), "user%u", i);
		assert_int_equal(try(name, 1000 + i, 1), 0);
	}
	assert_int_equal(try("ann", 2, 1), 10 * SECOND - 1);
	assert_int_equal(try("ben", 1, 1), 10 * SECOND - 1);
}

int main(void)
{
#define IN_WORLD(test) cmocka_unit_test_setup(test, start)
	const struct CMUnitTest tests[] = {
		IN_WORLD(an_account_waits_twice_as_long_each_time),
		IN_WORLD(an_address_waits_whatever_the_account),
		IN_WORLD(a_network_of_ipv6_is_one_address),
		IN_WORLD(a_good_one_begins_anew),
		IN_WORLD(an_hour_later_it_is_forgotten),
		IN_WORLD(an_owner_is_not_shut_out),
		IN_WORLD(a_full_table_forgets_who_is_not_held_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
