/* Lines of OpenTSDB's telnet protocol; the expected values are read off the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/put_line.h"

static enum put_line_fault parse(const char *text, struct put_line *line, size_t *column,
				 struct errbuf *e)
{
	struct slice words = slice_of(text);
	const char *at = NULL;
	enum put_line_fault fault = put_line_parse(words, line, &at, e);
	*column = fault ? (size_t)(at - text) + 1 : 0;
	return fault;
}

static void assert_slice(struct slice slice, const char *text)
{
	assert_int_equal(slice.len, strlen(text));
	assert_memory_equal(slice.data, text, slice.len);
}

static void a_line_as_the_document_has_it(void **state)
{
	struct put_line line;
	struct errbuf e;
	size_t column;
	(void)state;
	assert_int_equal(
		parse(" sys.cpu.user 1356998400 42.5 host=webserver01 cpu=0", &line, &column, &e),
		PUT_LINE_GOOD);
	assert_slice(line.metric, "sys.cpu.user");
	assert_int_equal(line.ts_ms, 1356998400000);
	assert_true(value_identical(line.value, value_f64(42.5)));
	assert_int_equal(line.tag_count, 2);
	assert_slice(line.tags[0].key, "host");
	assert_slice(line.tags[0].value, "webserver01");
	assert_slice(line.tags[1].key, "cpu");
	assert_slice(line.tags[1].value, "0");
}

static void times_are_seconds_or_ms(void **state)
{
	static const struct {
		const char *text;
		int64_t ts_ms;
	} cases[] = {
		{"m 0 1", 0},
		{"m 1 1", 1000},
		{"m 999999999999 1", 999999999999000}, /* 12 digits are seconds */
		{"m 1356998400123 1", 1356998400123},  /* 13 are ms */
		{"m 1356998400.123 1", 1356998400123},
		{"m 1356998400.9999 1", 1356998400999},
		{"m 1356998400123.9 1", 1356998400123},
	};
	struct put_line line;
	struct errbuf e;
	size_t column;
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(parse(cases[i].text, &line, &column, &e), PUT_LINE_GOOD);
		assert_int_equal(line.ts_ms, cases[i].ts_ms);
	}
}

static void values_keep_what_a_double_cannot(void **state)
{
	const struct {
		const char *text;
		struct value value;
	} cases[] = {
		{"m 1 7", value_f64(7)},
		{"m 1 -0", value_f64(-0.0)},
		{"m 1 +7", value_f64(7)},
		{"m 1 .5", value_f64(0.5)},
		{"m 1 5.", value_f64(5)},
		{"m 1 1e3", value_f64(1000)},
		{"m 1 9007199254740992", value_f64(9007199254740992.0)},
		{"m 1 9007199254740993", value_i64(9007199254740993)},
		{"m 1 -9007199254740993", value_i64(-9007199254740993)},
		{"m 1 18446744073709551615", value_u64(UINT64_MAX)},
	};
	struct put_line line;
	struct errbuf e;
	size_t column;
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(parse(cases[i].text, &line, &column, &e), PUT_LINE_GOOD);
		assert_true(value_identical(line.value, cases[i].value));
	}
}

static void faults_have_a_place(void **state)
{
	static const struct {
		const char *text;
		enum put_line_fault fault;
		size_t column;
	} cases[] = {
		{"", PUT_LINE_SYNTAX, 1},
		{"  \t ", PUT_LINE_SYNTAX, 5},
		{"m", PUT_LINE_SYNTAX, 2},
		{"m 1", PUT_LINE_SYNTAX, 4},
		{"m 1 ", PUT_LINE_SYNTAX, 5},
		{"m now 1", PUT_LINE_TIME, 3},
		{"m 1x 1", PUT_LINE_TIME, 3},
		{"m 1 one", PUT_LINE_NOT_NUMBER, 5},
		{"m 1 1,5", PUT_LINE_NOT_NUMBER, 5},
		{"m 1 0x1F", PUT_LINE_NOT_NUMBER, 5},
		{"m 1 nano", PUT_LINE_NOT_NUMBER, 5},
		{"m 1 in", PUT_LINE_NOT_NUMBER, 5},
		{"m 1 --1", PUT_LINE_NOT_NUMBER, 5},
		{"m 1 -", PUT_LINE_NOT_NUMBER, 5},
		{"m 1 NaN", PUT_LINE_NOT_FINITE, 5},
		{"m 1 -inf", PUT_LINE_NOT_FINITE, 5},
		{"m 1 Infinity", PUT_LINE_NOT_FINITE, 5},
		{"m 1 1e400", PUT_LINE_NOT_FINITE, 5},
		{"m 1 1 a", PUT_LINE_SYNTAX, 7},
		{"m 1 1 a=1 =b", PUT_LINE_SYNTAX, 11},
		{"m 1 1 a=1 b=", PUT_LINE_SYNTAX, 11},
		{"m 1 1 =", PUT_LINE_SYNTAX, 7},
	};
	struct put_line line;
	size_t column;
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct errbuf e = {""};
		assert_int_equal(parse(cases[i].text, &line, &column, &e), cases[i].fault);
		assert_int_equal(column, cases[i].column);
		assert_true(e.text[0]);
	}
}

static void tags_have_a_maximum(void **state)
{
	struct put_line line;
	struct errbuf e;
	char text[1000] = "m 1 1";
	size_t column, len = strlen(text);
	(void)state;
	for (int i = 0; i < PUT_LINE_TAGS_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " k%d=v", i);
	assert_int_equal(parse(text, &line, &column, &e), PUT_LINE_GOOD);
	assert_int_equal(line.tag_count, PUT_LINE_TAGS_MAX);
	snprintf(text + len, sizeof(text) - len, " one=more");
	assert_int_equal(parse(text, &line, &column, &e), PUT_LINE_TOO_MANY);
	assert_int_equal(column, len + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_as_the_document_has_it),
		cmocka_unit_test(times_are_seconds_or_ms),
		cmocka_unit_test(values_keep_what_a_double_cannot),
		cmocka_unit_test(faults_have_a_place),
		cmocka_unit_test(tags_have_a_maximum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
