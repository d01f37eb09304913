/* Numbers as text. Expected texts and bits are those of IEEE 754's definition, of Python's repr()
 * and float(), or worked by hand beside the case. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/random.h"
#include "wire/number.h"

static uint64_t bits_of(double d)
{
	uint64_t bits;
	memcpy(&bits, &d, sizeof(bits));
	return bits;
}

static double of_bits(uint64_t bits)
{
	double d;
	memcpy(&d, &bits, sizeof(d));
	return d;
}

static int parse_i64(const char *text, int64_t *out)
{
	return number_parse_i64(text, text + strlen(text), out);
}

static int parse_u64(const char *text, uint64_t *out)
{
	return number_parse_u64(text, text + strlen(text), out);
}

static int parse_f64(const char *text, double *out)
{
	return number_parse_f64(text, text + strlen(text), out);
}

/* ---- Integers ------------------------------------------------------------------------------- */

static void integers_are_exact_to_their_ends(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t number;
	} good[] = {
		{"0", 0},
		{"-0", 0},
		{"+7", 7},
		{"58", 58},
		{"9223372036854775807", INT64_MAX},
		{"-9223372036854775808", INT64_MIN},
		{"-9223372036854775807", -INT64_MAX},
		{"999999999999999999", 999999999999999999},
		{"00000000000000000000000000000012", 12},
		{"-000000000000000000009223372036854775808", INT64_MIN},
	};
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		int64_t out = 1;
		assert_int_equal(parse_i64(good[i].text, &out), 0);
		assert_int_equal(out, good[i].number);
	}
	uint64_t u;
	assert_int_equal(parse_u64("18446744073709551615", &u), 0);
	assert_true(u == UINT64_MAX);
	assert_int_equal(parse_u64("018446744073709551615", &u), 0);
	assert_true(u == UINT64_MAX);
}

static void integers_beyond_64_bits_are_refused(void **state)
{
	(void)state;
	int64_t i;
	uint64_t u;
	static const char *const beyond[] = {"9223372036854775808", "-9223372036854775809",
					     "18446744073709551616", "99999999999999999999",
					     "100000000000000000000000000000000000"};
	for (size_t n = 0; n < ARRAY_LEN(beyond); n++)
		assert_int_equal(parse_i64(beyond[n], &i), ERR_LIMIT);
	assert_int_equal(parse_u64("18446744073709551616", &u), ERR_LIMIT);
	/* 10 * 2^64 + 5: wraps around to 5 where overflow is looked for only once. */
	assert_int_equal(parse_u64("184467440737095516165", &u), ERR_LIMIT);
}

static void what_is_no_integer_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"",
					  "-",
					  "+",
					  "+-1",
					  "-+1",
					  "--1",
					  " 1",
					  "1 ",
					  "1.0",
					  "1e3",
					  "0x1",
					  "1a",
					  "a",
					  "1_000",
					  "1,0",
					  "\xb2",
					  "99999999999999999999x"};
	for (size_t n = 0; n < ARRAY_LEN(bad); n++) {
		int64_t i;
		uint64_t u;
		assert_int_equal(parse_i64(bad[n], &i), ERR_INVALID);
		assert_int_equal(parse_u64(bad[n], &u), ERR_INVALID);
	}
	uint64_t u;
	assert_int_equal(parse_u64("-1", &u), ERR_INVALID);
}

/* The byte behind the slice is a digit that must not be read as part of it. */
static void nothing_behind_the_end_is_read(void **state)
{
	(void)state;
	static const char text[] = "123456789012345678901234567890";
	for (size_t len = 1; len <= 18; len++) {
		int64_t i = 0;
		double d;
		assert_int_equal(number_parse_i64(text, text + len, &i), 0);
		char printed[NUMBER_PRINT_MAX_BYTES];
		assert_int_equal(number_print_i64(printed, i), len);
		assert_memory_equal(printed, text, len);
		assert_int_equal(number_parse_f64(text, text + len, &d), 0);
		if (len <= 15)
			assert_true(d == (double)i);
	}
}

/* ---- Doubles -------------------------------------------------------------------------------- */

static void doubles_are_rounded_correctly(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t bits;
	} cases[] = {
		{"0", 0},
		{"-0", UINT64_C(1) << 63},
		{"-0.0e5", UINT64_C(1) << 63},
		{"1", 0x3ff0000000000000},
		{"-1.5", 0xbff8000000000000},
		{"1.", 0x3ff0000000000000},
		{".5", 0x3fe0000000000000},
		{"+.5e0", 0x3fe0000000000000},
		{"0.1", 0x3fb999999999999a},
		/* 2^53 + 1 lies half-way between its neighbours: to the even one. */
		{"9007199254740993", 0x4340000000000000},
		{"9007199254740993.00000000000000000000000000000000000000000000000000000001",
		 0x4340000000000001},
		{"9007199254740995", 0x4340000000000002},
		/* The largest, and what lies just below half a unit above it. */
		{"1.7976931348623157e308", 0x7fefffffffffffff},
		{"1.7976931348623158e308", 0x7fefffffffffffff},
		/* The smallest normal, the largest subnormal, the smallest. */
		{"2.2250738585072014e-308", 0x0010000000000000},
		{"2.2250738585072011e-308", 0x000fffffffffffff},
		{"5e-324", 1},
		{"4.9406564584124654e-324", 1},
		/* 2^-1075 is 2.47032822920623272...e-324: half-way to the smallest. */
		{"2.4703282292062327e-324", 0},
		{"2.4703282292062328e-324", 1},
		{"1e-400", 0},
		{"-1e-99999999999999999999", UINT64_C(1) << 63},
		{"0e99999999999999999999", 0},
		{"1e23", 0x44b52d02c7e14af6},
		{"8.5e22", 0x44b1ffdbf6b2b2eb},
		{"1e22", 0x4480f0cf064dd592},
		{"123456789012345678901234567890", 0x45f8ee90ff6c373e},
		{"0.000000000000000000000000000000000000001", 0x37d5c72fb1552d83},
		{"10000000000000000000000000000000000000000e-40", 0x3ff0000000000000},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double out;
		assert_int_equal(parse_f64(cases[i].text, &out), 0);
		if (bits_of(out) != cases[i].bits)
			fail_msg("%s gave %a", cases[i].text, out);
	}
}

static void doubles_that_are_none_are_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",    "-",        "+",     ".",     "-.",  "e5", ".e5", "1e",  "1e+",
		"1e-", "1ee5",     "1.2.3", "1e5.0", "--1", " 1", "1 ",  "inf", "nan",
		"NaN", "infinity", "0x10",  "0x1p3", "1,5", "1f", "1_0"};
	double out;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(parse_f64(bad[i], &out), ERR_INVALID);
	assert_int_equal(parse_f64("1.8e308", &out), ERR_LIMIT);
	assert_true(isinf(out) && out > 0);
	assert_int_equal(parse_f64("-1e400", &out), ERR_LIMIT);
	assert_true(isinf(out) && out < 0);
}

static void long_numbers_are_read_up_to_the_limit(void **state)
{
	(void)state;
	char text[NUMBER_TEXT_MAX_BYTES + 1];
	double out;
	/* 0.999...9 rounds to 1. */
	memset(text, '9', sizeof(text));
	memcpy(text, "0.", 2);
	assert_int_equal(number_parse_f64(text, text + NUMBER_TEXT_MAX_BYTES, &out), 0);
	assert_true(out == 1);
	assert_int_equal(number_parse_f64(text, text + sizeof(text), &out), ERR_LIMIT);
	/* Half a unit above 1, decided by the last digit: 1 + 2^-53 has 53 decimals. */
	memset(text, '0', sizeof(text));
	static const char half[] = "1.00000000000000011102230246251565404236316680908203125";
	memcpy(text, half, sizeof(half) - 1);
	assert_int_equal(number_parse_f64(text, text + NUMBER_TEXT_MAX_BYTES, &out), 0);
	assert_true(out == 1);
	text[NUMBER_TEXT_MAX_BYTES - 1] = '1';
	assert_int_equal(number_parse_f64(text, text + NUMBER_TEXT_MAX_BYTES, &out), 0);
	assert_true(out == 1 + DBL_EPSILON);
}

/* ---- As JSON -------------------------------------------------------------------------------- */

static struct value json_number(const char *text)
{
	struct value out = {0};
	assert_int_equal(number_parse_json(slice_of(text), &out), 0);
	return out;
}

static void json_integers_stay_integers_only_where_a_double_fails(void **state)
{
	(void)state;
	assert_true(value_identical(json_number("0"), value_f64(0)));
	assert_true(value_identical(json_number("-0"), value_f64(-0.0)));
	assert_true(value_identical(json_number("477"), value_f64(477)));
	assert_true(value_identical(json_number("9007199254740992"), value_f64(0x1p53)));
	assert_true(value_identical(json_number("9007199254740993"),
				    value_i64(INT64_C(9007199254740993))));
	assert_true(value_identical(json_number("-9007199254740993"),
				    value_i64(-INT64_C(9007199254740993))));
	assert_true(value_identical(json_number("9007199254740994"), value_f64(0x1p53 + 2)));
	assert_true(value_identical(json_number("9223372036854775807"), value_i64(INT64_MAX)));
	assert_true(value_identical(json_number("9223372036854775808"), value_f64(0x1p63)));
	assert_true(value_identical(json_number("-9223372036854775808"), value_f64(-0x1p63)));
	assert_true(value_identical(json_number("9223372036854775809"),
				    value_u64(UINT64_C(9223372036854775809))));
	assert_true(value_identical(json_number("18446744073709551615"), value_u64(UINT64_MAX)));
	assert_true(value_identical(json_number("18446744073709551616"), value_f64(0x1p64)));
	/* Beyond 64 bits nothing is exact: the nearest double. */
	assert_true(value_identical(json_number("-9223372036854775809"), value_f64(-0x1p63)));
	assert_true(value_identical(json_number("18446744073709551617"), value_f64(0x1p64)));
	/* Not an integer literal. */
	assert_true(value_identical(json_number("9007199254740993.0"), value_f64(0x1p53)));
	assert_true(value_identical(json_number("9007199254740993e0"), value_f64(0x1p53)));
}

static void json_numbers_follow_the_grammar(void **state)
{
	(void)state;
	static const char *const bad[] = {"",         "-",         "+1",  "01",    "-01", "00",
					  "1.",       ".5",        "-.5", "1.e5",  "1e",  "1e+",
					  "1E-",      "0x1",       "1 ",  " 1",    "1a",  "NaN",
					  "Infinity", "-Infinity", "--1", "1.2.3", "0e",  "1e1.5"};
	struct value out;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(number_parse_json(slice_of(bad[i]), &out), ERR_INVALID);
	assert_int_equal(number_parse_json((struct slice){NULL, 0}, &out), ERR_INVALID);
	assert_int_equal(number_parse_json(SLICE("1e400"), &out), ERR_LIMIT);
	assert_true(value_identical(json_number("0e0"), value_f64(0)));
	assert_true(value_identical(json_number("0.0"), value_f64(0)));
	assert_true(value_identical(json_number("1E+2"), value_f64(100)));
	assert_true(value_identical(json_number("-1.5e-1"), value_f64(-0.15)));
}

static void a_scan_stops_where_the_number_does(void **state)
{
	(void)state;
	static const char text[] = "12.5e1,7";
	const char *reason;
	struct value out;
	assert_ptr_equal(number_scan_json(text, text + 8, &out, &reason), text + 6);
	assert_true(value_identical(out, value_f64(125)));
	assert_ptr_equal(number_scan_json(text, text + 2, &out, &reason), text + 2);
	assert_true(value_identical(out, value_f64(12)));
	/* Cut within its exponent it is none. */
	assert_null(number_scan_json(text, text + 5, &out, &reason));
	assert_null(number_scan_json(text, text + 3, &out, &reason));
	assert_string_equal(reason, "number with a point but no digit beside it");
}

/* ---- Printing ------------------------------------------------------------------------------- */

static void check_print(double number, const char *text)
{
	char printed[NUMBER_PRINT_MAX_BYTES];
	size_t len = number_print_f64(printed, number);
	if (len != strlen(text) || memcmp(printed, text, len) != 0)
		fail_msg("%a was written %.*s, not %s", number, (int)len, printed, text);
}

static void doubles_are_written_as_python_does(void **state)
{
	(void)state;
	check_print(0, "0.0");
	check_print(-0.0, "-0.0");
	check_print(477, "477.0");
	check_print(-12.5, "-12.5");
	check_print(0.1, "0.1");
	check_print(0.3, "0.3");
	check_print(0.1 + 0.2, "0.30000000000000004");
	check_print(1.0 / 3, "0.3333333333333333");
	check_print(100, "100.0");
	check_print(1e15, "1000000000000000.0");
	check_print(9007199254740992, "9007199254740992.0");
	check_print(9007199254740994, "9007199254740994.0");
	check_print(9999999999999998, "9999999999999998.0");
	check_print(1e16, "1e+16");
	check_print(12345678901234567890.0, "1.2345678901234567e+19");
	check_print(1e22, "1e+22");
	check_print(1e23, "1e+23");
	check_print(0.0001, "0.0001");
	check_print(0.00012345, "0.00012345");
	check_print(0.00001, "1e-05");
	check_print(1.5e-7, "1.5e-07");
	check_print(1e300, "1e+300");
	check_print(-1.2345e-300, "-1.2345e-300");
	check_print(DBL_MAX, "1.7976931348623157e+308");
	check_print(DBL_MIN, "2.2250738585072014e-308");
	check_print(of_bits(0x000fffffffffffff), "2.225073858507201e-308");
	check_print(of_bits(1), "5e-324");
	check_print(-of_bits(2), "-1e-323");
	check_print(0x1p-1, "0.5");
	check_print(0x1p63, "9.223372036854776e+18");
	check_print(0x1p-1022 + 0x1p-1074, "2.225073858507202e-308");
	check_print(5e-5, "5e-05");
	check_print(123456.789, "123456.789");
	check_print(NAN, "NaN");
	check_print(INFINITY, "+Inf");
	check_print(-INFINITY, "-Inf");
}

static void integers_are_written_whole(void **state)
{
	(void)state;
	static const struct {
		int64_t number;
		const char *text;
	} cases[] = {{0, "0"},
		     {7, "7"},
		     {-7, "-7"},
		     {10, "10"},
		     {99, "99"},
		     {100, "100"},
		     {-101, "-101"},
		     {123456789, "123456789"},
		     {INT64_MAX, "9223372036854775807"},
		     {INT64_MIN, "-9223372036854775808"}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char printed[NUMBER_PRINT_MAX_BYTES];
		size_t len = number_print(printed, value_i64(cases[i].number));
		assert_int_equal(len, strlen(cases[i].text));
		assert_memory_equal(printed, cases[i].text, len);
	}
	char printed[NUMBER_PRINT_MAX_BYTES];
	assert_int_equal(number_print(printed, value_u64(UINT64_MAX)), 20);
	assert_memory_equal(printed, "18446744073709551615", 20);
	assert_int_equal(number_print(printed, (struct value){0}), 0);
}

static double random_double(struct random *random)
{
	double d;
	switch (random_below(random, 4)) {
	case 0:
		do
			d = of_bits(random_next(random));
		while (!isfinite(d));
		return d;
	case 1: /* a few decimals */
		return (double)random_below(random, 10000000) / 1000;
	case 2: /* around powers of two, where the neighbours lie unevenly */
		return ldexp(1, (int)random_below(random, 2000) - 1000) +
		       of_bits(random_below(random, 3));
	default: /* subnormal */
		return of_bits(random_next(random) >> (12 + random_below(random, 50)));
	}
}

/* The C library reads and writes correctly rounded: the text must read back to the same bits there,
 * and no text with a digit less may. */
static void shortest_and_exact_beside_the_c_library(void **state)
{
	(void)state;
	struct random random;
	random_init(&random, 20200824);
	for (int i = 0; i < 200000; i++) {
		double number = random_double(&random), again;
		char text[NUMBER_PRINT_MAX_BYTES + 1], shorter[64];
		size_t len = number_print_f64(text, number);
		assert_true(len <= NUMBER_PRINT_MAX_BYTES - 4);
		text[len] = 0;
		assert_true(bits_of(strtod(text, NULL)) == bits_of(number));
		assert_int_equal(number_parse_f64(text, text + len, &again), 0);
		assert_true(bits_of(again) == bits_of(number));
		int digits = 0;
		bool zeros = true; /* in front */
		int trailing = 0;
		for (size_t k = 0; k < len && text[k] != 'e'; k++) {
			if (!number_is_digit(text[k]) || (zeros && text[k] == '0'))
				continue;
			zeros = false;
			digits++;
			trailing = text[k] == '0' ? trailing + 1 : 0;
		}
		digits -= trailing;
		if (digits < 2)
			continue;
		snprintf(shorter, sizeof(shorter), "%.*e", digits - 2, number);
		assert_true(bits_of(strtod(shorter, NULL)) != bits_of(number));
	}
}

/* 17 significant digits, and texts that lie close to the middle between two doubles. */
static void reading_agrees_with_the_c_library(void **state)
{
	(void)state;
	struct random random;
	random_init(&random, 54);
	for (int i = 0; i < 200000; i++) {
		char text[96];
		double number = random_double(&random), out;
		int len;
		if (i % 2)
			len = snprintf(text, sizeof(text), "%.*e", (int)random_below(&random, 24),
				       number);
		else
			len = snprintf(text, sizeof(text), "%llu%llu.%llue%d",
				       (unsigned long long)random_next(&random),
				       (unsigned long long)random_below(&random, 100000),
				       (unsigned long long)random_next(&random),
				       (int)random_below(&random, 680) - 370);
		double expected = strtod(text, NULL);
		int err = number_parse_f64(text, text + len, &out);
		assert_int_equal(err, isinf(expected) ? ERR_LIMIT : 0);
		if (bits_of(out) != bits_of(expected))
			fail_msg("%s gave %a, not %a", text, out, expected);
	}
}

static void appending_stops_at_the_buffers_maximum(void **state)
{
	(void)state;
	struct buf buf;
	buf_init(&buf, 100);
	assert_int_equal(number_append(&buf, value_f64(1.5)), 0);
	assert_int_equal(number_append(&buf, value_u64(20)), 0);
	assert_int_equal(buf.len, 5);
	assert_memory_equal(buf.data, "1.520", 5);
	while (number_append(&buf, value_i64(INT64_MIN)) == 0)
		;
	assert_true(buf.failed && buf.len <= 100);
	buf_release(&buf);
}

static void hexadecimal_digits_are_of_either_case(void **state)
{
	(void)state;
	static const char digits[] = "0123456789abcdefABCDEF";
	for (int c = 0; c < 256; c++) {
		const char *at = c ? strchr(digits, c) : NULL;
		int want = !at ? -1 : (int)(at - digits) - (at - digits > 15 ? 6 : 0);
		assert_int_equal(number_hex_digit((char)c), want);
	}
}

static void sixteen_hexadecimal_digits_are_a_number(void **state)
{
	(void)state;
	static const char *const none[] = {"",
					   "0123456789abcde",
					   "0123456789abcdef0",
					   "0x23456789abcdef",
					   "0123456789abcdeg",
					   " 123456789abcdef",
					   "+123456789abcdef"};
	static const char good[] = "fedcba9876543210", mixed[] = "0000000000aBcDeF";
	uint64_t number = 7;
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		assert_int_equal(number_parse_hex64(none[i], none[i] + strlen(none[i]), &number),
				 ERR_INVALID);
	assert_int_equal(number, 7);
	assert_int_equal(number_parse_hex64(good, good + 16, &number), 0);
	assert_true(number == 18364758544493064720U);
	assert_int_equal(number_parse_hex64(mixed, mixed + 16, &number), 0);
	assert_int_equal(number, 11259375);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_are_exact_to_their_ends),
		cmocka_unit_test(integers_beyond_64_bits_are_refused),
		cmocka_unit_test(what_is_no_integer_is_refused),
		cmocka_unit_test(nothing_behind_the_end_is_read),
		cmocka_unit_test(doubles_are_rounded_correctly),
		cmocka_unit_test(doubles_that_are_none_are_refused),
		cmocka_unit_test(long_numbers_are_read_up_to_the_limit),
		cmocka_unit_test(json_integers_stay_integers_only_where_a_double_fails),
		cmocka_unit_test(json_numbers_follow_the_grammar),
		cmocka_unit_test(a_scan_stops_where_the_number_does),
		cmocka_unit_test(doubles_are_written_as_python_does),
		cmocka_unit_test(integers_are_written_whole),
		cmocka_unit_test(shortest_and_exact_beside_the_c_library),
		cmocka_unit_test(reading_agrees_with_the_c_library),
		cmocka_unit_test(appending_stops_at_the_buffers_maximum),
		cmocka_unit_test(hexadecimal_digits_are_of_either_case),
		cmocka_unit_test(sixteen_hexadecimal_digits_are_a_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
