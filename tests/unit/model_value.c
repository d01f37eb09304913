/* The order of numbers across types, exact at the edges where doubles round. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/value.h"

#define F(x) value_f64(x)
#define I(x) value_i64(x)
#define U(x) value_u64(x)

/* Strictly ascending; those of one line are equal. */
static void every_pair_compares_as_the_list_says(UNUSED void **state)
{
	static const uint64_t payload = UINT64_C(0x7ff8deadbeefcafe);
	const struct {
		int rank;
		struct value value;
	} list[] = {
		{0, F(-INFINITY)},
		{1, F(-0x1.fffffffffffffp1023)},
		{2, F(-0x1.0000000000001p63)}, /* the double below -2^63 */
		{3, I(INT64_MIN)},
		{3, F(-0x1p63)},
		{4, I(INT64_MIN + 1)},
		{5, I(-INT64_C(9007199254740993))},
		{6, F(-9007199254740992.0)},
		{6, I(-INT64_C(9007199254740992))},
		{7, F(-1.5)},
		{8, I(-1)},
		{8, F(-1)},
		{9, F(-0.5)},
		{10, F(-5e-324)},
		{11, I(0)},
		{11, U(0)},
		{11, F(0.0)},
		{11, F(-0.0)},
		{12, F(5e-324)},
		{13, F(0.5)},
		{14, I(3)},
		{14, U(3)},
		{14, F(3)},
		{15, F(3.0000000000000004)},
		{16, F(9007199254740992.0)},
		{16, I(INT64_C(9007199254740992))},
		{17, I(INT64_C(9007199254740993))},
		{17, U(UINT64_C(9007199254740993))},
		{18, F(9007199254740994.0)},
		{19, I(INT64_MAX)},
		{19, U(INT64_MAX)},
		{20, U(UINT64_C(1) << 63)},
		{20, F(0x1p63)},
		{21, U(UINT64_MAX)},
		{22, F(0x1p64)},
		{23, F(1e300)},
		{24, F(INFINITY)},
		{25, F(NAN)},
		{25, (struct value){payload, VALUE_F64}},
	};
	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		for (size_t j = 0; j < ARRAY_LEN(list); j++) {
			int order = value_compare(list[i].value, list[j].value);
			int expected =
				(list[i].rank > list[j].rank) - (list[i].rank < list[j].rank);
			assert_int_equal((order > 0) - (order < 0), expected);
			assert_int_equal(value_equal(list[i].value, list[j].value), expected == 0);
		}
	}
}

static void none_equals_only_itself(UNUSED void **state)
{
	const struct value none = {0, VALUE_NONE};
	assert_true(value_equal(none, none));
	assert_false(value_equal(none, F(0)));
	assert_false(value_equal(F(NAN), none));
	assert_false(value_equal(none, F(NAN)));
	assert_true(value_compare(none, F(INFINITY)) > 0);
	assert_true(value_compare(I(0), none) < 0);
}

static void identical_is_bits_and_type(UNUSED void **state)
{
	assert_true(value_identical(F(NAN), F(NAN)));
	assert_false(value_identical(F(0.0), F(-0.0)));
	assert_false(value_identical(I(3), U(3)));
	assert_false(value_identical(I(0), F(0)));
}

static void as_double_rounds_to_nearest(UNUSED void **state)
{
	assert_true(value_as_f64(I(INT64_C(9007199254740993))) == 9007199254740992.0);
	assert_true(value_as_f64(U(UINT64_MAX)) == 0x1p64);
	assert_true(value_as_f64(I(INT64_MIN)) == -0x1p63);
	assert_true(isnan(value_as_f64((struct value){0, VALUE_NONE})));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_compares_as_the_list_says),
		cmocka_unit_test(none_equals_only_itself),
		cmocka_unit_test(identical_is_bits_and_type),
		cmocka_unit_test(as_double_rounds_to_nearest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
