/* Percent-encoding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/percent.h"

static void test_percent_decoding(void **state)
{
	static const struct {
		const char *text, *plain, *form; /* NULL: refused */
	} cases[] = {
		{"", "", ""},
		{"abc", "abc", "abc"},
		{"a+b", "a+b", "a b"},
		{"%41%7a", "Az", "Az"},
		{"%2B+", "++", "+ "},
		{"%2525", "%25", "%25"}, /* once */
		{"%C3%a9", "\xc3\xa9", "\xc3\xa9"},
		{"%ff", "\xff", "\xff"},
		{"%09%90", "\t\x90", "\t\x90"},
		{"%", NULL, NULL},
		{"a%4", NULL, NULL},
		{"%g0", NULL, NULL},
		{"%0g", NULL, NULL},
		{"%-1", NULL, NULL},
		{"% 1", NULL, NULL},
		{"%00", NULL, NULL},
		{"%u0041", NULL, NULL},
	};
	struct arena arena;
	(void)state;
	arena_init(&arena, 1000);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice out, text = slice_of(cases[i].text);
		int err = percent_decode(text, false, &arena, &out);
		assert_int_equal(err, cases[i].plain ? 0 : ERR_INVALID);
		if (!err)
			assert_true(slice_equal(out, slice_of(cases[i].plain)));
		err = percent_decode(text, true, &arena, &out);
		assert_int_equal(err, cases[i].form ? 0 : ERR_INVALID);
		if (!err)
			assert_true(slice_equal(out, slice_of(cases[i].form)));
	}
	arena_release(&arena);
}

static void test_a_full_arena_is_an_error(void **state)
{
	struct arena arena;
	struct slice out;
	(void)state;
	arena_init(&arena, 2);
	assert_int_equal(percent_decode(SLICE("%41%41%41"), false, &arena, &out), ERR_LIMIT);
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percent_decoding),
		cmocka_unit_test(test_a_full_arena_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
