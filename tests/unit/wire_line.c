/* Line protocol: what is taken, what is refused and where, and that the fast search and the plain
 * one agree. Expected values are worked by hand from the format's description. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../tools/missing.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"
#include "wire/line.h"
#include "wire/number.h"

static struct line_fields fields;
static char buffer[(1 << 20) + LINE_PADDING_BYTES];

static void begin_bytes(struct line_reader *reader, const char *text, size_t len,
			enum line_precision precision)
{
	assert_true(len + LINE_PADDING_BYTES <= sizeof(buffer));
	memcpy(buffer, text, len);
	memset(buffer + len, '7', LINE_PADDING_BYTES); /* digits: a reader that runs on is seen */
	line_reader_init(reader, buffer, len, 1, precision);
}

static void begin(struct line_reader *reader, const char *text)
{
	begin_bytes(reader, text, strlen(text), LINE_NS);
}

static void expect_text(struct slice got, const char *want)
{
	if (got.len != strlen(want) || memcmp(got.data, want, got.len) != 0)
		fail_msg("\"%.*s\" is not \"%s\"", (int)got.len, got.data, want);
}

static void want_value(const char *text, struct value want)
{
	char line[512];
	snprintf(line, sizeof(line), "m f=%s 1\n", text);
	struct line_reader reader;
	struct slice key;
	begin(&reader, line);
	assert_int_equal(line_next(&reader, &key), LINE_OK);
	if (line_fields(&reader, NULL, &fields) != LINE_OK)
		fail_msg("%s: %s", text, reader.bad.reason);
	assert_int_equal(fields.count, 1);
	if (!value_identical(fields.values[0], want))
		fail_msg("%s: type %d, bits %llx", text, fields.values[0].type,
			 (unsigned long long)fields.values[0].bits);
	assert_int_equal(fields.fault_count, 0);
	assert_int_equal(line_next(&reader, &key), LINE_DONE);
}

static void values_of_each_type(void **state)
{
	(void)state;
	want_value("0i", value_i64(0));
	want_value("-0i", value_i64(0));
	want_value("58i", value_i64(58));
	want_value("1234567i", value_i64(1234567));
	want_value("12345678i", value_i64(12345678));
	want_value("123456789i", value_i64(123456789));
	want_value("-123456789012345678i", value_i64(-123456789012345678));
	want_value("9223372036854775807i", value_i64(INT64_MAX));
	want_value("-9223372036854775808i", value_i64(INT64_MIN));
	want_value("00000000000000000000000000000000000000012i", value_i64(12));
	want_value("+1i", value_i64(1));
	want_value("+9223372036854775807i", value_i64(INT64_MAX));
	want_value("7u", value_u64(7));
	want_value("+7u", value_u64(7));
	want_value("-0u", value_u64(0));
	want_value("18446744073709551615u", value_u64(UINT64_MAX));
	want_value("9223372036854775808u", value_u64(UINT64_C(1) << 63));
	want_value("1", value_f64(1));
	want_value("-0", value_f64(-0.0));
	want_value("9007199254740993", value_f64(9007199254740992.0));
	want_value("18446744073709551616", value_f64(18446744073709551616.0));
	want_value("1.5", value_f64(1.5));
	want_value("-2.25", value_f64(-2.25));
	want_value("+2.25", value_f64(2.25));
	want_value("+7", value_f64(7));
	want_value("+18446744073709551616", value_f64(18446744073709551616.0));
	want_value(".5", value_f64(0.5));
	want_value("1.", value_f64(1));
	want_value("0.1", value_f64(0.1));
	want_value("100.1234567", value_f64(100.1234567));
	want_value("400000001.1234567", value_f64(400000001.1234567));
	want_value("100.12345678", value_f64(100.12345678));
	want_value("98.76543209876543", value_f64(98.76543209876543));
	want_value("1e3", value_f64(1000));
	want_value("1E+3", value_f64(1000));
	want_value("1.0e-4", value_f64(0.0001));
	want_value("-1.7976931348623157e308", value_f64(-1.7976931348623157e308));
	want_value("4.9e-324", value_f64(4.9e-324));
	want_value("1e-999", value_f64(0.0));
}

static void booleans_are_one_and_zero(void **state)
{
	(void)state;
	static const char *const yes[] = {"t", "T", "true", "True", "TRUE"};
	static const char *const no[] = {"f", "F", "false", "False", "FALSE"};
	for (size_t i = 0; i < 5; i++) {
		want_value(yes[i], value_f64(1.0));
		want_value(no[i], value_f64(0.0));
	}
}

static void expect_fault(const char *text, enum line_fault_kind kind, uint32_t column)
{
	char line[1024];
	snprintf(line, sizeof(line), "m a=1i,f=%s,z=2i 1\n", text);
	struct line_reader reader;
	struct slice key;
	begin(&reader, line);
	assert_int_equal(line_next(&reader, &key), LINE_OK);
	if (line_fields(&reader, NULL, &fields) != LINE_OK)
		fail_msg("%s: %s", text, reader.bad.reason);
	assert_int_equal(fields.count, 3);
	assert_int_equal(fields.values[0].bits, 1);
	assert_int_equal(fields.values[1].type, VALUE_NONE);
	assert_int_equal(fields.values[2].bits, 2);
	assert_int_equal(fields.fault_count, 1);
	assert_int_equal(fields.faults[0].field, 1);
	assert_int_equal(fields.faults[0].kind, kind);
	assert_int_equal(fields.faults[0].at - reader.start + 1, column);
	assert_int_equal(fields.ts_ms, 0);
	assert_int_equal(line_next(&reader, &key), LINE_DONE);
}

static void text_and_infinities_leave_the_other_fields(void **state)
{
	(void)state;
	expect_fault("\"\"", LINE_FAULT_TEXT, 10);
	expect_fault("\"a b,c=d\"", LINE_FAULT_TEXT, 10);
	expect_fault("\"say \\\"hi\\\"\"", LINE_FAULT_TEXT, 10);
	expect_fault("\"ends in a backslash \\\\\"", LINE_FAULT_TEXT, 10);
	expect_fault("\"\\\\\\\"\"", LINE_FAULT_TEXT, 10);
	expect_fault("\"\\n is two bytes\"", LINE_FAULT_TEXT, 10);
	expect_fault("\"two\nlines\"", LINE_FAULT_TEXT, 10);
	expect_fault("NaN", LINE_FAULT_NOT_FINITE, 10);
	expect_fault("nan", LINE_FAULT_NOT_FINITE, 10);
	expect_fault("inf", LINE_FAULT_NOT_FINITE, 10);
	expect_fault("+Inf", LINE_FAULT_NOT_FINITE, 10);
	expect_fault("-INFINITY", LINE_FAULT_NOT_FINITE, 10);
	expect_fault("1e309", LINE_FAULT_NOT_FINITE, 10);
	expect_fault("-1e999", LINE_FAULT_NOT_FINITE, 10);
}

static void integers_out_of_range_leave_the_other_fields(void **state)
{
	(void)state;
	expect_fault("9223372036854775808i", LINE_FAULT_OUT_OF_RANGE, 10);
	expect_fault("+9223372036854775808i", LINE_FAULT_OUT_OF_RANGE, 10);
	expect_fault("-9223372036854775809i", LINE_FAULT_OUT_OF_RANGE, 10);
	expect_fault("18446744073709551616u", LINE_FAULT_OUT_OF_RANGE, 10);
	expect_fault("99999999999999999999999999i", LINE_FAULT_OUT_OF_RANGE, 10);
	expect_fault("-1u", LINE_FAULT_OUT_OF_RANGE, 10);
	expect_fault("-99999999999999999999999999u", LINE_FAULT_OUT_OF_RANGE, 10);
}

static void expect_bad(const char *text, uint64_t line, uint32_t column, const char *reason)
{
	struct line_reader reader;
	struct slice key;
	char whole[2048];
	snprintf(whole, sizeof(whole), "%s\nm good=1i 5000000\n", text);
	begin(&reader, whole);
	enum line_result result = line_next(&reader, &key);
	if (result == LINE_OK)
		result = line_fields(&reader, NULL, &fields);
	if (result == LINE_CUT) {
		line_skip(&reader);
		result = LINE_BAD;
	}
	if (result != LINE_BAD)
		fail_msg("%s: was taken", text);
	if (reader.bad.line != line || reader.bad.column != column ||
	    strcmp(reader.bad.reason, reason) != 0)
		fail_msg("%s: line %llu, column %u: %s", text, (unsigned long long)reader.bad.line,
			 reader.bad.column, reader.bad.reason);
	/* The next line is whole. */
	assert_int_equal(line_next(&reader, &key), LINE_OK);
	assert_int_equal(line_fields(&reader, NULL, &fields), LINE_OK);
	assert_int_equal(fields.ts_ms, 5);
	assert_int_equal(line_next(&reader, &key), LINE_DONE);
}

static void bad_lines_have_a_place_and_a_reason(void **state)
{
	(void)state;
	expect_bad("m", 1, 2, "a blank and fields are missing");
	expect_bad("m,t=1\r", 1, 6, "a blank and fields are missing");
	expect_bad("m\\ ", 1, 4, "a blank and fields are missing");
	expect_bad("m ", 1, 3, "fields are missing");
	expect_bad("m   \r", 1, 5, "fields are missing");
	expect_bad("  m  ", 1, 6, "fields are missing");
	expect_bad("m f", 1, 4, "a field has no value");
	expect_bad("m f\r", 1, 4, "a field has no value");
	expect_bad("m f,g=1", 1, 4, "a field has no value");
	expect_bad("m f 1", 1, 4, "a field has no value");
	expect_bad("m =1", 1, 3, "a field has no name");
	expect_bad("m f=1,=2", 1, 7, "a field has no name");
	expect_bad("m f=1, g=2", 1, 7, "a field is missing");
	expect_bad("m f=1,", 1, 7, "a field is missing");
	expect_bad("m f=1,\r", 1, 7, "a field is missing");
	expect_bad("m ,f=1", 1, 3, "a field is missing");
	expect_bad("m f=", 1, 5, "this is not a value");
	expect_bad("m f=,g=1", 1, 5, "this is not a value");
	expect_bad("m f= 1", 1, 5, "this is not a value");
	expect_bad("m f=x", 1, 5, "this is not a value");
	expect_bad("m f=-", 1, 5, "this is not a number");
	expect_bad("m f=-i", 1, 5, "this is not a number");
	expect_bad("m f=+i", 1, 5, "this is not a number");
	expect_bad("m f=++1i", 1, 5, "this is not a number");
	expect_bad("m f=+-1i", 1, 5, "this is not a number");
	expect_bad("m f=9223372036854775808i5", 1, 25, "something follows the value");
	expect_bad("m f=.", 1, 5, "this is not a number");
	expect_bad("m f=1e", 1, 5, "this is not a number");
	expect_bad("m f=1.2.3", 1, 5, "this is not a number");
	expect_bad("m f=1-2", 1, 5, "this is not a number");
	expect_bad("m f=1.5i", 1, 8, "something follows the value");
	expect_bad("m f=1ii", 1, 7, "something follows the value");
	expect_bad("m f=1I", 1, 6, "something follows the value");
	expect_bad("m f=0x10", 1, 6, "something follows the value");
	expect_bad("m f=tru", 1, 6, "something follows the value");
	expect_bad("m f=tRUE", 1, 6, "something follows the value");
	expect_bad("m f=truei", 1, 9, "something follows the value");
	expect_bad("m f=\"a\"b", 1, 8, "something follows the value");
	expect_bad("m f=1\r2", 1, 6, "something follows the value");
	expect_bad("m f=1\t2", 1, 6, "something follows the value");
	expect_bad("m f=1 x", 1, 7, "the time is not an integer");
	expect_bad("m f=1 -", 1, 7, "the time is not an integer");
	expect_bad("m f=1 +5", 1, 7, "the time is not an integer");
	expect_bad("m f=1 \"2\"", 1, 7, "the time is not an integer");
	expect_bad("m f=1 1.5", 1, 8, "something follows the time");
	expect_bad("m f=1 1 2", 1, 9, "something follows the time");
	expect_bad("m f=1 1i", 1, 8, "something follows the time");
	expect_bad("m f=1 9223372036854775808", 1, 7, "the time does not fit 64 bits");
	expect_bad("m f=1 -9223372036854775809", 1, 7, "the time does not fit 64 bits");
	expect_bad("m f=1 99999999999999999999999999", 1, 7, "the time does not fit 64 bits");
	expect_bad("m f=\"not closed", 1, 5, "a text that begins here is not closed");
	expect_bad("m f=\"not closed\\\"", 1, 5, "a text that begins here is not closed");
	expect_bad("m f=\"two\nlines\",g=x", 2, 10, "this is not a value");
}

static void keys_are_raw_and_names_are_unescaped(void **state)
{
	(void)state;
	static const struct {
		const char *key, *measurement;
		struct {
			const char *key, *value;
		} tags[3];
	} cases[] = {
		{"cpu", "cpu", {{0}}},
		{"cpu,host=a", "cpu", {{"host", "a"}}},
		{"c\\ p\\,u,b=2,a=1", "c p,u", {{"b", "2"}, {"a", "1"}}},
		{"m=x,t=1", "m=x", {{"t", "1"}}},
		{"m\\=x,t=1", "m=x", {{"t", "1"}}},
		{"m,a\\=b=c\\=d", "m", {{"a=b", "c=d"}}},
		{"m,a=C:\\\\dir\\\\", "m", {{"a", "C:\\\\dir\\\\"}}},
		{"m,a=b\\c", "m", {{"a", "b\\c"}}},
		{"m,\"a\"=\"b", "m", {{"\"a\"", "\"b"}}},
		{"m,\xc3\xa4=\xe2\x82\xac,z=#", "m", {{"\xc3\xa4", "\xe2\x82\xac"}, {"z", "#"}}},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char scratch[256];
		struct slice measurement;
		struct tag tags[LINE_TAGS_MAX];
		size_t count;
		const char *at, *reason;
		assert_int_equal(line_tags(slice_of(cases[i].key), scratch, &measurement, tags,
					   &count, &at, &reason),
				 LINE_OK);
		expect_text(measurement, cases[i].measurement);
		size_t want = 0;
		for (; want < 3 && cases[i].tags[want].key; want++) {
			assert_true(want < count);
			expect_text(tags[want].key, cases[i].tags[want].key);
			expect_text(tags[want].value, cases[i].tags[want].value);
		}
		assert_int_equal(count, want);
	}
}

static void bad_keys_have_a_place_and_a_reason(void **state)
{
	(void)state;
	static const struct {
		const char *key;
		size_t offset;
		const char *reason;
	} cases[] = {
		{",a=b", 0, "the measurement is missing"},
		{"m,", 2, "a tag has no name"},
		{"m,=b", 2, "a tag has no name"},
		{"m,,a=b", 2, "a tag has no name"},
		{"m,a", 3, "a tag has no value"},
		{"m,a=", 4, "a tag has no value"},
		{"m,a=,b=c", 4, "a tag has no value"},
		{"m,a=b,c", 7, "a tag has no value"},
		{"m,a,b=c", 3, "a tag has no value"},
		{"m,a=b=c", 5, "a = in the value of a tag has no backslash"},
		{"m,a=b\\\\,c=d", 9, "a = in the value of a tag has no backslash"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char scratch[64];
		struct slice measurement;
		struct tag tags[LINE_TAGS_MAX];
		size_t count;
		const char *at, *reason;
		assert_int_equal(line_tags(slice_of(cases[i].key), scratch, &measurement, tags,
					   &count, &at, &reason),
				 LINE_BAD);
		assert_string_equal(reason, cases[i].reason);
		assert_int_equal(at - cases[i].key, cases[i].offset);
	}
}

static void tags_are_found_by_their_names(void **state)
{
	(void)state;
	static const struct {
		const char *key, *name;
		size_t nth, offset;
	} cases[] = {
		{"m,a=1,b=2", "a", 0, 2},
		{"m,a=1,b=2", "b", 0, 6},
		{"m,a=1,b=2", "c", 0, 9},
		{"m,a=1,a=2", "a", 1, 6},
		{"m,a=1,a=2", "a", 2, 9},
		{"m,ab=1,a=2", "a", 0, 7},
		{"m,a=1,ab=2", "ab", 0, 6},
		{"m\\,a=1,a=2", "a", 0, 7},
		{"m,x=1\\,a=2,a=3", "a", 0, 11},
		{"m,a\\=b=1,a=2", "a", 0, 9},
		{"m,x=1,a\\=b=2", "a=b", 0, 6},
		{"m,a\\x=1", "a\\x", 0, 2},
		{"m,a=b=c,d=e", "d", 0, 8},
		{"m", "m", 0, 1},
		{"m,a=1", "", 0, 5},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *key = cases[i].key;
		const char *at =
			line_tag_place(slice_of(key), slice_of(cases[i].name), cases[i].nth);
		if (at != key + cases[i].offset)
			fail_msg("%s, %s: at %td", key, cases[i].name, at - key);
	}
}

static void too_many_tags_are_bad(void **state)
{
	(void)state;
	for (size_t n = LINE_TAGS_MAX; n <= LINE_TAGS_MAX + 1; n++) {
		char key[2048] = "m", scratch[2048];
		size_t len = 1;
		for (size_t i = 0; i < n; i++)
			len += (size_t)snprintf(key + len, sizeof(key) - len, ",k%zu=v", i);
		struct slice measurement;
		struct tag tags[LINE_TAGS_MAX];
		size_t count;
		const char *at, *reason;
		assert_int_equal(line_tags((struct slice){key, len}, scratch, &measurement, tags,
					   &count, &at, &reason),
				 n == LINE_TAGS_MAX ? LINE_OK : LINE_BAD);
	}
}

static void lines_are_counted_over_comments_blanks_and_texts(void **state)
{
	(void)state;
	struct line_reader reader;
	struct slice key;
	begin(&reader, "\n"
		       "# a comment, f=1 2\n"
		       "   \r\n"
		       "\ta f=1\n" /* a tab is no blank: it belongs to the name */
		       "   # indented\n"
		       "  b,t=1   f=\"x\ny\",g=2   7  \r\n"
		       "c f=3\n"
		       "#\n");
	static const struct {
		const char *key;
		uint64_t line;
		size_t count;
	} want[] = {{"\ta", 4, 1}, {"b,t=1", 6, 2}, {"c", 8, 1}};
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(line_next(&reader, &key), LINE_OK);
		expect_text(key, want[i].key);
		assert_int_equal(reader.line, want[i].line);
		assert_int_equal(line_fields(&reader, NULL, &fields), LINE_OK);
		assert_int_equal(fields.count, want[i].count);
	}
	assert_int_equal(line_next(&reader, &key), LINE_DONE);
}

static void escaped_blanks_do_not_end_a_key(void **state)
{
	(void)state;
	struct line_reader reader;
	struct slice key;
	begin(&reader, "a\\ b\\\\ c,t=\\ ,u=x\\y f\\ g\\=\\,=1\n");
	assert_int_equal(line_next(&reader, &key), LINE_OK);
	expect_text(key, "a\\ b\\\\ c,t=\\ ,u=x\\y");
	assert_int_equal(line_fields(&reader, NULL, &fields), LINE_OK);
	expect_text(fields.names[0], "f\\ g\\=\\,");
	char to[32];
	size_t n = line_unescape(fields.names[0], to);
	expect_text((struct slice){to, n}, "f g=,");
	n = line_unescape(SLICE("a\\\\b\\"), to);
	expect_text((struct slice){to, n}, "a\\\\b\\");
}

static void expect_time(const char *text, const char *unit, bool good, int64_t want)
{
	enum line_precision precision;
	assert_int_equal(line_precision_parse(slice_of(unit), &precision), 0);
	char line[128];
	int len = snprintf(line, sizeof(line), "m f=1 %s\n", text);
	struct line_reader reader;
	struct slice key;
	begin_bytes(&reader, line, (size_t)len, precision);
	assert_int_equal(line_next(&reader, &key), LINE_OK);
	assert_int_equal(line_fields(&reader, NULL, &fields), good ? LINE_OK : LINE_BAD);
	if (!good)
		return;
	assert_true(fields.has_time);
	if (fields.ts_ms != want)
		fail_msg("%s %s: %lld", text, unit, (long long)fields.ts_ms);
}

static void times_are_cut_to_ms_towards_the_past(void **state)
{
	(void)state;
	expect_time("1465839830100400200", "", true, 1465839830100);
	expect_time("1465839830100999999", "ns", true, 1465839830100);
	expect_time("1465839830100999", "n", true, 1465839830);
	expect_time("-1", "ns", true, -1);
	expect_time("-1000000", "ns", true, -1);
	expect_time("-1000001", "ns", true, -2);
	expect_time("0", "ns", true, 0);
	expect_time("9223372036854775807", "ns", true, 9223372036854);
	expect_time("-9223372036854775808", "ns", true, -9223372036855);
	expect_time("1999", "us", true, 1);
	expect_time("-1", "u", true, -1);
	expect_time("9223372036854775807", "ms", true, INT64_MAX);
	expect_time("1465839830", "s", true, 1465839830000);
	expect_time("9223372036854775", "s", true, 9223372036854775000);
	expect_time("9223372036854776", "s", false, 0);
	expect_time("2", "m", true, 120000);
	expect_time("153722867280913", "m", false, 0);
	expect_time("-3", "h", true, -10800000);
	expect_time("2562047788016", "h", false, 0);
	expect_time("000000000000000000000000000000001", "s", true, 1000);
	enum line_precision precision;
	assert_int_equal(line_precision_parse(SLICE("sec"), &precision), ERR_INVALID);
	assert_int_equal(line_precision_parse(SLICE("NS"), &precision), ERR_INVALID);
}

/* Names as a caller keeps them. */
static struct line_names names_of(const char *const *list, size_t count)
{
	static uint64_t words[256];
	static uint16_t lengths[64];
	size_t at = 0;
	memset(words, 0, sizeof(words));
	for (size_t i = 0; i < count; i++) {
		lengths[i] = (uint16_t)(strlen(list[i]) + 1);
		memcpy(words + at, list[i], lengths[i] - 1u);
		((char *)(words + at))[lengths[i] - 1] = '=';
		at += (lengths[i] + 7u) / 8;
	}
	return (struct line_names){count, words, lengths};
}

static void expect_fields(const char *text, const struct line_names *expected, bool as_expected,
			  const char *const *names, size_t count)
{
	struct line_reader reader;
	struct slice key;
	begin(&reader, text);
	assert_int_equal(line_next(&reader, &key), LINE_OK);
	assert_int_equal(line_fields(&reader, expected, &fields), LINE_OK);
	assert_int_equal(fields.count, count);
	assert_int_equal(fields.expected, as_expected);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(fields.values[i].bits, i + 1);
		if (!as_expected)
			expect_text(fields.names[i], names[i]);
	}
}

static void expected_names_change_nothing_but_the_speed(void **state)
{
	(void)state;
	static const char *const names[] = {"a", "sevensy", "eight__8", "sixteen_letters_", "z"};
	static const char *const longer[] = {"a", "sevensy", "eight__8", "sixteen_letters_",
					     "z", "y"};
	static const char *const other[] = {"a", "sevensy", "eight__9", "sixteen_letters_", "z"};
	static const char *const later[] = {"a", "sevensy", "eight__8", "sixteen_letters_", "zz"};
	static const char *const swapped[] = {"sevensy", "a"};
	struct line_names expected = names_of(names, 5);
	const char *same = "m a=1i,sevensy=2i,eight__8=3i,sixteen_letters_=4i,z=5i 1\n";
	expect_fields(same, &expected, true, names, 5);
	expect_fields(same, NULL, false, names, 5);
	expect_fields("m a=1i,sevensy=2i,eight__8=3i,sixteen_letters_=4i,z=5i\n", &expected, true,
		      names, 5);
	expect_fields("m a=1i,sevensy=2i,eight__8=3i,sixteen_letters_=4i,z=5i,y=6i 1\n", &expected,
		      false, longer, 6);
	expect_fields("m a=1i,sevensy=2i,eight__8=3i,sixteen_letters_=4i 1\n", &expected, false,
		      names, 4);
	expect_fields("m a=1i 1\n", &expected, false, names, 1);
	expect_fields("m a=1i,sevensy=2i,eight__9=3i,sixteen_letters_=4i,z=5i 1\n", &expected,
		      false, other, 5);
	expect_fields("m a=1i,sevensy=2i,eight__8=3i,sixteen_letters_=4i,zz=5i 1\n", &expected,
		      false, later, 5);
	expect_fields("m sevensy=1i,a=2i 1\n", &expected, false, swapped, 2);
	/* A name that was closed by an escape is not the same name. */
	static const char *const escaped[] = {"a\\=x"};
	expect_fields("m a\\=x=1i 1\n", &expected, false, escaped, 1);
}

static void faults_among_expected_names_are_kept(void **state)
{
	(void)state;
	static const char *const names[] = {"a", "b", "c"};
	struct line_names expected = names_of(names, 3);
	struct line_reader reader;
	struct slice key;
	begin(&reader, "m a=\"x\",b=NaN,c=3i\n");
	assert_int_equal(line_next(&reader, &key), LINE_OK);
	assert_int_equal(line_fields(&reader, &expected, &fields), LINE_OK);
	assert_true(fields.expected);
	assert_false(fields.has_time);
	assert_int_equal(fields.fault_count, 2);
	assert_int_equal(fields.faults[1].field, 1);
	begin(&reader, "m a=1i,b=x,c=3i\n");
	assert_int_equal(line_next(&reader, &key), LINE_OK);
	assert_int_equal(line_fields(&reader, &expected, &fields), LINE_BAD);
	assert_int_equal(reader.bad.column, 10);
}

static void a_text_that_is_not_closed_is_cut(void **state)
{
	(void)state;
	struct line_reader reader;
	struct slice key;
	begin(&reader, "a f=1i 1\nm f=\"one\ntwo\n");
	assert_int_equal(line_next(&reader, &key), LINE_OK);
	assert_int_equal(line_fields(&reader, NULL, &fields), LINE_OK);
	assert_int_equal(line_next(&reader, &key), LINE_OK);
	assert_int_equal(line_fields(&reader, NULL, &fields), LINE_CUT);
	assert_int_equal(reader.start - buffer, 9);
	line_skip(&reader);
	assert_int_equal(reader.bad.line, 2);
	assert_int_equal(reader.bad.column, 5);
	/* What looked like text may have been lines. */
	assert_int_equal(line_next(&reader, &key), LINE_BAD);
	assert_int_equal(reader.bad.line, 3);
	assert_int_equal(line_next(&reader, &key), LINE_DONE);
}

/* A line of exactly `bytes`, its newline included, filled up in the place that `pattern` names. */
static enum line_result read_long(size_t bytes, char pattern, struct line_reader *reader)
{
	static char text[LINE_MAX_BYTES * 2];
	size_t fill = 0, len = 0;
	const char *before = "m,t=", *after = " f=1 1\n";
	if (pattern == 'f') {
		before = "m ";
		after = "=1 1\n";
	} else if (pattern == 's') {
		before = "m f=\"";
		after = "\" 1\n";
	} else if (pattern == ' ') {
		before = "m f=1";
		after = "1\n";
	}
	fill = bytes - strlen(before) - strlen(after);
	len = (size_t)snprintf(text, sizeof(text), "%s", before);
	memset(text + len, pattern, fill);
	len += fill;
	len += (size_t)snprintf(text + len, sizeof(text) - len, "%sn good=1 2\n", after);
	begin_bytes(reader, text, len, LINE_NS);
	struct slice key;
	enum line_result result = line_next(reader, &key);
	return result == LINE_OK ? line_fields(reader, NULL, &fields) : result;
}

static void lines_up_to_the_limit_are_taken(void **state)
{
	(void)state;
	for (const char *pattern = "xfs "; *pattern; pattern++) {
		struct line_reader reader;
		struct slice key;
		assert_int_equal(read_long(LINE_MAX_BYTES, *pattern, &reader), LINE_OK);
		assert_int_equal(read_long(LINE_MAX_BYTES + 1, *pattern, &reader), LINE_BAD);
		assert_true(reader.bad.too_long);
		assert_int_equal(reader.bad.line, 1);
		assert_int_equal(line_next(&reader, &key), LINE_OK);
		expect_text(key, "n");
		assert_int_equal(reader.line, 2);
	}
}

static void fields_and_digits_have_a_limit(void **state)
{
	(void)state;
	for (size_t n = LINE_FIELDS_MAX; n <= LINE_FIELDS_MAX + 1; n++) {
		char text[8192] = "m ";
		size_t len = 2;
		for (size_t i = 0; i < n; i++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "f%zu=1,", i);
		text[len - 1] = '\n';
		struct line_reader reader;
		struct slice key;
		begin_bytes(&reader, text, len, LINE_NS);
		assert_int_equal(line_next(&reader, &key), LINE_OK);
		assert_int_equal(line_fields(&reader, NULL, &fields),
				 n == LINE_FIELDS_MAX ? LINE_OK : LINE_BAD);
		if (n > LINE_FIELDS_MAX)
			assert_true(reader.bad.too_long);
	}
	for (size_t n = LINE_NUMBER_MAX_BYTES; n <= LINE_NUMBER_MAX_BYTES + 1; n++) {
		char text[1024] = "m f=";
		memset(text + 4, '0', n);
		memcpy(text + 4 + n, "\n", 2);
		struct line_reader reader;
		struct slice key;
		begin(&reader, text);
		assert_int_equal(line_next(&reader, &key), LINE_OK);
		assert_int_equal(line_fields(&reader, NULL, &fields),
				 n == LINE_NUMBER_MAX_BYTES ? LINE_OK : LINE_BAD);
	}
}

static void nothing_is_nothing(void **state)
{
	(void)state;
	struct line_reader reader;
	struct slice key;
	begin(&reader, "");
	assert_int_equal(line_next(&reader, &key), LINE_DONE);
	begin(&reader, "\n\r\n\n");
	assert_int_equal(line_next(&reader, &key), LINE_DONE);
	begin_bytes(&reader, "\0 \0=1\n", 6, LINE_NS);
	assert_int_equal(line_next(&reader, &key), LINE_OK);
	assert_int_equal(key.len, 1);
	assert_int_equal(line_fields(&reader, NULL, &fields), LINE_OK);
}

/* Every byte value at every offset of a block, in each set: against the definition. */
static void the_fast_search_finds_what_the_plain_one_finds(void **state)
{
	(void)state;
	if (!line_has_avx2())
		missing("this machine has no AVX2");
	static const char *const members[] = {" \\\n", ",= \\\n", "\"\\"};
	char text[96 + LINE_PADDING_BYTES];
	for (unsigned set = 0; set < 3; set++) {
		for (unsigned byte = 0; byte < 256; byte++) {
			for (size_t at = 0; at < 96; at++) {
				memset(text, 'a', sizeof(text));
				text[at] = (char)byte;
				bool member = byte && strchr(members[set], (int)byte);
				const char *want = text + (member ? at : 96);
				assert_ptr_equal(line_scan_plain(text, text + 96, set), want);
				assert_ptr_equal(line_scan_avx2(text, text + 96, set), want);
			}
		}
	}
	struct random random;
	random_init(&random, 7);
	for (size_t round = 0; round < 20000; round++) {
		static const char alphabet[] = "ab,= \\\n\"\x80\xac\x2d\x4c";
		for (size_t i = 0; i < sizeof(text); i++)
			text[i] = alphabet[random_below(&random, sizeof(alphabet))];
		size_t from = random_below(&random, 97),
		       to = from + random_below(&random, 97 - from);
		for (unsigned set = 0; set < 3; set++)
			assert_ptr_equal(line_scan_avx2(text + from, text + to, set),
					 line_scan_plain(text + from, text + to, set));
	}
}

/* Everything a reader tells about a text, as one hash. */
static uint64_t told(const char *text, size_t len, const struct line_names *expected)
{
	struct line_reader reader;
	struct slice key;
	struct buf out;
	buf_init(&out, 16 << 20);
	begin_bytes(&reader, text, len, LINE_NS);
	enum line_result result;
	while ((result = line_next(&reader, &key)) != LINE_DONE) {
		if (result == LINE_OK) {
			buf_append(&out, key.data, key.len);
			result = line_fields(&reader, expected, &fields);
		}
		buf_printf(&out, "%d %lu", result, (unsigned long)reader.line);
		if (result == LINE_CUT)
			line_skip(&reader);
		if (result != LINE_OK) {
			buf_printf(&out, "%lu %u %s", (unsigned long)reader.bad.line,
				   reader.bad.column, reader.bad.reason);
			continue;
		}
		buf_printf(&out, "%d %ld", fields.has_time,
			   fields.has_time ? (long)fields.ts_ms : 0);
		for (size_t i = 0; i < fields.count; i++) {
			buf_printf(&out, "%d %lx", fields.values[i].type,
				   (unsigned long)fields.values[i].bits);
			if (!fields.expected)
				buf_append(&out, fields.names[i].data, fields.names[i].len);
		}
	}
	uint64_t hash = hash64(out.data, out.len, 0);
	assert_false(out.failed);
	buf_release(&out);
	return hash;
}

/* Lines that are nearly right: pieces of lines put together at random. */
static size_t mix(struct random *random, char *text, size_t max)
{
	static const char *const pieces[] = {"cpu",
					     ",host=a",
					     " ",
					     "usage=1i",
					     "usage_user=58i",
					     ",",
					     "=",
					     "\\",
					     "\"",
					     "\n",
					     "\r\n",
					     "#",
					     "1.5",
					     "-",
					     "e9",
					     "t",
					     "NaN",
					     "123456789012345678901",
					     "\\ ",
					     "\\,",
					     "\\=",
					     "\\\"",
					     "0123456",
					     "i",
					     "m,a=b f=1,g=\"x\" 7\n"};
	size_t len = 0;
	while (len < max - 64 && random_below(random, 80)) {
		const char *piece = pieces[random_below(random, ARRAY_LEN(pieces))];
		memcpy(text + len, piece, strlen(piece));
		len += strlen(piece);
	}
	text[len++] = '\n';
	return len;
}

static void both_searches_tell_the_same_about_lines(void **state)
{
	(void)state;
	if (!line_has_avx2())
		missing("this machine has no AVX2");
	static const char *const names[] = {"usage", "f"};
	struct line_names expected = names_of(names, 2);
	struct random random;
	random_init(&random, 11);
	for (size_t round = 0; round < 50000; round++) {
		char text[4096];
		size_t len = mix(&random, text, sizeof(text));
		const struct line_names *with = round & 1 ? &expected : NULL;
		uint64_t fast = told(text, len, with);
		line_use_avx2(false);
		uint64_t plain = told(text, len, with);
		line_use_avx2(true);
		if (fast != plain)
			fail_msg("%.*s", (int)len, text);
	}
}

/* ---- Writing -------------------------------------------------------------------------------- */

static void expect_key(const char *measurement, const char *key, const char *value,
		       const char *wanted)
{
	struct tag tag = {slice_of(key), slice_of(value)}, back[LINE_TAGS_MAX];
	struct buf out;
	char scratch[256];
	struct slice name;
	size_t count;
	const char *at, *reason;
	buf_init(&out, 256);
	int err = line_append_key(slice_of(measurement), (struct tags){&tag, 1}, &out);
	if (!wanted) {
		assert_int_equal(err, ERR_INVALID);
		assert_int_equal(out.len, 0);
		return;
	}
	assert_int_equal(err, 0);
	buf_append_char(&out, 0);
	assert_string_equal(out.data, wanted);
	struct slice text = {out.data, out.len - 1};
	assert_int_equal(line_tags(text, scratch, &name, back, &count, &at, &reason), LINE_OK);
	assert_int_equal(count, 1);
	assert_true(slice_equal(name, slice_of(measurement)));
	assert_true(slice_equal(back[0].key, tag.key) && slice_equal(back[0].value, tag.value));
	buf_release(&out);
}

static void keys_are_written(void **state)
{
	(void)state;
	expect_key("m", "k", "v", "m,k=v");
	expect_key("a b,c=d", "k", "v", "a\\ b\\,c=d,k=v");
	expect_key("a\\=b", "k", "v", "a\\\\=b,k=v");
	expect_key("a\\ b\\,c\\d", "k", "v", "a\\\\ b\\\\,c\\d,k=v");
	expect_key("m", "k 1,=", " v=\"#", "m,k\\ 1\\,\\==\\ v\\=\"#");
	expect_key("m#", "#", "\\\\v", "m#,#=\\\\v");
	expect_key("#m", "k", "v", NULL);
	expect_key("m\\", "k", "v", NULL);
	expect_key("m", "k\\", "v", NULL);
	expect_key("m", "k", "v\\", NULL);
	expect_key("", "k", "v", NULL);
}

/* A newline would make the rest of the name a line of its own. */
static void no_name_ends_a_line(void **state)
{
	(void)state;
	struct buf out;
	buf_init(&out, 256);
	for (int c = 0; c <= 0x7f; c++) {
		char name[] = {'a', (char)c, 'b'};
		struct slice odd = {name, sizeof(name)}, plain = SLICE("x");
		const struct tag tags[] = {{odd, plain}, {plain, odd}};
		int wanted = c < 0x20 || c == 0x7f ? ERR_INVALID : 0;
		const char *reason = "a name or the value of a tag holds a control character";
		assert_int_equal(line_append_key(odd, (struct tags){NULL, 0}, &out), wanted);
		for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
			struct tags one = {&tags[i], 1};
			buf_clear(&out);
			assert_int_equal(line_append_key(plain, one, &out), wanted);
			assert_int_equal(memchr(out.len ? out.data : "", c, out.len) != NULL,
					 !wanted);
			if (wanted)
				assert_string_equal(line_key_fault(plain, one), reason);
			else
				assert_null(line_key_fault(plain, one));
		}
	}
	buf_release(&out);
}

static void expect_printed(struct value value, const char *wanted)
{
	char text[NUMBER_PRINT_MAX_BYTES + 1];
	size_t len = line_print_value(text, value);
	assert_true(slice_equal((struct slice){text, len}, slice_of(wanted)));
}

static void values_are_written(void **state)
{
	(void)state;
	expect_printed(value_i64(INT64_MIN), "-9223372036854775808i");
	expect_printed(value_u64(UINT64_MAX), "18446744073709551615u");
	expect_printed(value_f64(12), "12.0");
	expect_printed(value_f64(-1e-300), "-1e-300");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_written),
		cmocka_unit_test(no_name_ends_a_line),
		cmocka_unit_test(values_are_written),
		cmocka_unit_test(values_of_each_type),
		cmocka_unit_test(booleans_are_one_and_zero),
		cmocka_unit_test(text_and_infinities_leave_the_other_fields),
		cmocka_unit_test(integers_out_of_range_leave_the_other_fields),
		cmocka_unit_test(bad_lines_have_a_place_and_a_reason),
		cmocka_unit_test(keys_are_raw_and_names_are_unescaped),
		cmocka_unit_test(bad_keys_have_a_place_and_a_reason),
		cmocka_unit_test(tags_are_found_by_their_names),
		cmocka_unit_test(too_many_tags_are_bad),
		cmocka_unit_test(lines_are_counted_over_comments_blanks_and_texts),
		cmocka_unit_test(escaped_blanks_do_not_end_a_key),
		cmocka_unit_test(times_are_cut_to_ms_towards_the_past),
		cmocka_unit_test(expected_names_change_nothing_but_the_speed),
		cmocka_unit_test(faults_among_expected_names_are_kept),
		cmocka_unit_test(a_text_that_is_not_closed_is_cut),
		cmocka_unit_test(lines_up_to_the_limit_are_taken),
		cmocka_unit_test(fields_and_digits_have_a_limit),
		cmocka_unit_test(nothing_is_nothing),
		cmocka_unit_test(the_fast_search_finds_what_the_plain_one_finds),
		cmocka_unit_test(both_searches_tell_the_same_about_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
