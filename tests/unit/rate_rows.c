/* What of a bin is stored, and what a stored one means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rate/rows.h"

enum { BASE_MS = 30000, HOUR_MS = 3600000 };

static const struct counter_config config = {
	.base_ms = BASE_MS, .period_count = 1, .periods_ms = {HOUR_MS}};

/* What is stored of all rows: field by field, `-` for those that are left out. */
static void expect_fields(const struct counter_row *const *rows, size_t count, bool whole,
			  const char *wanted)
{
	struct value values[3 * ROW_FIELDS];
	unsigned fields = rows_fields(&config, rows, count, whole, values);
	const struct value *value = values;
	char text[200] = "", *to = text;
	for (size_t i = 0; i < count * ROW_FIELDS; i++) {
		const char *space = !i ? "" : i % ROW_FIELDS ? " " : ", ";
		size_t room = sizeof(text) - (size_t)(to - text);
		if (fields >> i % ROW_FIELDS & 1) {
			assert_int_equal(value->type, VALUE_U64);
			to += snprintf(to, room, "%s%llu", space,
				       (unsigned long long)value++->bits);
		} else {
			to += snprintf(to, room, "%s-", space);
		}
	}
	assert_string_equal(text, wanted);
}

static void test_what_is_usual_is_left_out(void **state)
{
	(void)state;
	const struct counter_row a = {.val = 7, .count = 2, .covered_ms = BASE_MS};
	const struct counter_row b = {.val = 8, .count = 2, .covered_ms = BASE_MS};
	const struct counter_row *both[] = {&a, &b};
	expect_fields(both, 2, false, "7 - - - -, 8 - - - -");
	expect_fields(both, 2, true, "7 2 30000 0 0, 8 2 30000 0 0");
}

/* They lie together, and a field that is there of one costs no more for all. */
static void test_what_is_unusual_in_one_is_stored_of_all(void **state)
{
	(void)state;
	const struct counter_row a = {.val = 7, .count = 1, .covered_ms = BASE_MS};
	const struct counter_row b = {
		.val = 8, .count = 2, .covered_ms = BASE_MS, .flags = COUNTER_WRAP};
	const struct counter_row c = {
		.val = 0, .count = 2, .covered_ms = 12, .unplaced = UINT64_MAX};
	const struct counter_row *rows[] = {&a, &b, &c};
	expect_fields(rows, 2, false, "7 1 - 0 -, 8 2 - 4 -");
	expect_fields(rows + 1, 2, false, "8 - 30000 4 0, 0 - 12 0 18446744073709551615");
}

/* Of how many samples a whole hour is depends on the base frequency of its time. */
static void test_the_count_of_a_period_is_stored(void **state)
{
	(void)state;
	const struct counter_row hour = {.level = 1, .val = 1, .count = 120, .covered_ms = HOUR_MS};
	const struct counter_row spanned = {.level = 1, .val = 1, .covered_ms = HOUR_MS};
	const struct counter_row *rows[] = {&hour, &spanned};
	expect_fields(rows, 1, false, "1 120 - - -");
	expect_fields(rows + 1, 1, false, "1 - - - -");
}

/* Of points that have all fields, the values that `given` has a bit of. */
static struct counter_row stored(unsigned given, size_t level)
{
	static const int64_t ts_ms[] = {BASE_MS};
	static const uint64_t bits[ROW_FIELDS] = {5, 6, 7, 1, 9};
	static const uint8_t is[] = {VALUE_U64}, none[] = {VALUE_NONE};
	struct store_points p = {.count = 1, .ts_ms = ts_ms};
	for (size_t f = 0; f < ROW_FIELDS; f++) {
		p.bits[f] = &bits[f];
		p.types[f] = given >> f & 1 ? is : none;
	}
	struct counter_row usual = row_usual(&config, level);
	return row_of_points(&p, 0, &usual);
}

static void test_what_a_stored_row_lacks_is_as_usual(void **state)
{
	(void)state;
	const struct counter_row bin = {
		.start_ms = BASE_MS, .val = 5, .count = 2, .covered_ms = BASE_MS};
	const struct counter_row all = {.start_ms = BASE_MS,
					.val = 5,
					.count = 6,
					.covered_ms = 7,
					.flags = COUNTER_GAP,
					.unplaced = 9};
	const struct counter_row hour = {.start_ms = BASE_MS, .val = 5, .covered_ms = HOUR_MS};
	struct counter_row row = stored(1, 0);
	assert_true(rows_equal(&row, &bin));
	row = stored(0x1f, 0);
	assert_true(rows_equal(&row, &all));
	row = stored(1, 1);
	assert_true(rows_equal(&row, &hour));
	assert_int_equal(row.level, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_usual_is_left_out),
		cmocka_unit_test(test_what_is_unusual_in_one_is_stored_of_all),
		cmocka_unit_test(test_the_count_of_a_period_is_stored),
		cmocka_unit_test(test_what_a_stored_row_lacks_is_as_usual),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
