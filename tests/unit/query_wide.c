/* Sums of doubles in any order: worked out by hand, and against integers of 128 bits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "query/private.h"

static double total(const double *list, size_t count, __int128 integers, double *scaled)
{
	struct wide_sum sum = {0};
	for (size_t i = 0; i < count; i++)
		wide_add(&sum, list[i]);
	return wide_total(&sum, integers, scaled);
}

/* Each order of the list comes to the bits of `wanted`. */
static void assert_total(double wanted, double *list, size_t count, size_t fixed)
{
	double scaled;
	if (fixed == count) {
		double got = total(list, count, 0, &scaled);
		assert_true(value_f64(got).bits == value_f64(wanted).bits);
		if (isfinite(got) && fabs(got) >= 0x1p-900)
			assert_true(scaled == got * 0x1p-64);
	}
	for (size_t i = fixed; i < count; i++) {
		double first = list[i];
		list[i] = list[fixed];
		list[fixed] = first;
		assert_total(wanted, list, count, fixed + 1);
		list[fixed] = list[i];
		list[i] = first;
	}
}
#define ASSERT_TOTAL(wanted, ...)                                                                  \
	assert_total((wanted), (double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / 8, 0)

static void test_any_order(void **state)
{
	(void)state;
	const double most = 0x1.fffffffffffffp1023, least = 0x1p-1074;
	ASSERT_TOTAL(0, -0.0);
	ASSERT_TOTAL(0, -0.0, 0.0);
	ASSERT_TOTAL(0.1, 0.1);
	ASSERT_TOTAL(-0.1, -0.1);
	ASSERT_TOTAL(1, 1, 0x1p54, -0x1p54);
	ASSERT_TOTAL(-1, -1, 0x1p100, -0x1p100);
	ASSERT_TOTAL(-0x1p-16, 0x1p100, 0x1p-16, -0x1p-15, -0x1p100);
	ASSERT_TOTAL(0, 0.1, -0.1, 0.7, -0.7);
	/* Ties go to the even one, the least bit beside them decides. */
	ASSERT_TOTAL(0x1p53, 0x1p53, 1);
	ASSERT_TOTAL(0x1p53 + 4, 0x1p53, 3);
	ASSERT_TOTAL(0x1p53 + 2, 0x1p53, 1, 0x1p-60);
	ASSERT_TOTAL(-0x1p53 - 2, -0x1p53, -1, -0x1p-60);
	ASSERT_TOTAL(0x1p53, 0x1p53, 1, -0x1p-60);
	/* The ends of the doubles. */
	ASSERT_TOTAL(least, least);
	ASSERT_TOTAL(0, least, -least);
	ASSERT_TOTAL(3 * least, least, least, least);
	ASSERT_TOTAL(0x1p-1022, 0x1p-1022 - least, least);
	ASSERT_TOTAL(0x1p-1022 - least, 0x1p-1022, -least);
	ASSERT_TOTAL(most, most, least, -least);
	ASSERT_TOTAL(most, most, most, -most);
	ASSERT_TOTAL(INFINITY, most, most);
	ASSERT_TOTAL(-INFINITY, -most, -most, 1);
	ASSERT_TOTAL(INFINITY, 1, INFINITY, -most);
	ASSERT_TOTAL(NAN, 1, INFINITY, -INFINITY);
	ASSERT_TOTAL(NAN, NAN, -NAN, 2);
}

static void test_scaled_and_integers(void **state)
{
	(void)state;
	const double half = 0x1p1023;
	struct wide_sum sum = {0};
	double scaled;
	/* 2^1023 + 2^1023, and 2^64 2^960 more: 3 2^1024 / 2 in all. */
	wide_add(&sum, half);
	wide_add(&sum, half);
	assert_true(wide_total(&sum, 0, &scaled) == INFINITY && scaled == 0x1p960);
	wide_add_scaled(&sum, 0x1p959);
	assert_true(wide_total(&sum, -7, &scaled) == INFINITY && scaled == 0x1.8p960);
	wide_add_scaled(&sum, -0x1p960);
	assert_true(wide_total(&sum, INT64_MAX, &scaled) == half && scaled == 0x1p959);
	assert_true(total(NULL, 0, 0, &scaled) == 0 && scaled == 0);
	assert_true(total(NULL, 0, INT64_MIN, &scaled) == -0x1p63 && scaled == -0.5);
	/* Rounded once: 2^53 + 1 is none, nor 2^53 + 1/2 + 1/2, but with 1 more it is. */
	assert_true(total((double[]){0.5, 0.5}, 2, INT64_C(1) << 53, &scaled) == 0x1p53);
	assert_true(total((double[]){0.5, 1.5}, 2, INT64_C(1) << 53, &scaled) == 0x1p53 + 2);
	assert_true(total((double[]){-0x1p100, 0.25}, 2, (__int128)1 << 100, &scaled) == 0.25);
	assert_true(total((double[]){0x1p100}, 1, -((__int128)1 << 100) - 3, &scaled) == -3);
}

/* Multiples of 2^-40 below 2^60 in magnitude: the sum is one of 128 bits. Shuffled, the same. */
static void test_against_integers(void **state)
{
	(void)state;
	enum { COUNT = 400 };
	struct random random;
	random_init(&random, 815);
	for (int round = 0; round < 300; round++) {
		double list[COUNT], scaled;
		__int128 exact = 0;
		for (size_t i = 0; i < COUNT; i++) {
			__int128 n =
				(int64_t)(random_next(&random) >> random_below(&random, 64)) >> 11;
			unsigned up = (unsigned)random_below(&random, 47);
			n = random_below(&random, 2) ? n : -n;
			exact += n * ((__int128)1 << up);
			list[i] = ldexp((double)(int64_t)n, (int)up - 40);
		}
		double wanted = (double)exact * 0x1p-40;
		assert_true(total(list, COUNT, 0, &scaled) == wanted);
		for (size_t i = COUNT; i-- > 1;) {
			size_t other = (size_t)random_below(&random, i + 1);
			double d = list[i];
			list[i] = list[other];
			list[other] = d;
		}
		assert_true(total(list, COUNT, 0, &scaled) == wanted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_scaled_and_integers),
		cmocka_unit_test(test_against_integers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
