/* Lines of samples that other programs write: VictoriaMetrics' export, promtool's dump, and our
 * CSV. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/buf.h"
#include "base/mem.h"
#include "wire/prom_dump.h"
#include "wire/sample_csv.h"
#include "wire/vm_line.h"

static struct arena arena;

static int begin(void **state)
{
	(void)state;
	arena_init(&arena, 1 << 20);
	return 0;
}

static int end(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

/* `metric|key=value|key=value`, as they were sent. */
static void expect_names(struct slice metric, struct tags tags, const char *wanted)
{
	struct buf text;
	buf_init(&text, 1 << 16);
	buf_append(&text, metric.data, metric.len);
	for (size_t i = 0; i < tags.count; i++)
		buf_printf(&text, "|%.*s=%.*s", (int)tags.list[i].key.len, tags.list[i].key.data,
			   (int)tags.list[i].value.len, tags.list[i].value.data);
	buf_append_char(&text, 0);
	assert_string_equal(text.data, wanted);
	buf_release(&text);
}

/* ---- VictoriaMetrics ---------------------------------------------------------------------------
 */

static void test_vm_line(void **state)
{
	(void)state;
	static const struct {
		int64_t ts_ms;
		struct value value;
	} wanted[] = {
		{-1, {0x4029000000000000, VALUE_F64}}, /* 12.5 */
		{1600000000000, {0x4000000000000000, VALUE_F64}},
		{0, {0x43dccccccccccccd, VALUE_F64}}, /* by Python */
		{INT64_MAX, {0x7ff0000000000000, VALUE_F64}},
		{3, {0xfff0000000000000, VALUE_F64}},
	};
	struct vm_line line;
	struct value value;
	int64_t ts_ms;
	assert_int_equal(
		vm_line_read(
			&line,
			SLICE(" {\"a\":[{}],\"timestamps\":[-1,1600000000000,0,"
			      "9223372036854775807,3,4],\"metric\":{\"k 1\":\"v\\u00e9\","
			      "\"__name__\":\"c\\\"pu\"},\"values\":[12.5,2,8301034833169298000,"
			      "\"Infinity\",\"-Infinity\",null]} "),
			&arena),
		0);
	expect_names(line.metric, line.tags, "c\"pu|k 1=vé");
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		assert_int_equal(vm_line_next(&line, &ts_ms, &value), 0);
		assert_int_equal(ts_ms, wanted[i].ts_ms);
		assert_true(value_identical(value, wanted[i].value));
	}
	assert_int_equal(vm_line_next(&line, &ts_ms, &value), 0);
	assert_true(ts_ms == 4 && value.type == VALUE_F64 && isnan(value_as_f64(value)));
	assert_int_equal(vm_line_next(&line, &ts_ms, &value), ERR_NOT_FOUND);
}

static void test_bad_vm_lines(void **state)
{
	(void)state;
#define NAMED "{\"metric\":{\"__name__\":\"m\"},"
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{"[]", "the line is not an object"},
		{"{\"metric\":{},\"values\":[],\"timestamps\":[]}", "metric has no __name__"},
		{"{\"values\":[],\"timestamps\":[]}", "metric has no __name__"},
		{"{\"metric\":{\"__name__\":\"\"},\"values\":[],\"timestamps\":[]}",
		 "metric has no __name__"},
		{"{\"metric\":[]}", "metric is not an object"},
		{"{\"metric\":{\"a\":1}}", "a label of metric is not a text"},
		{NAMED "\"values\":[]}", "values or timestamps are missing"},
		{NAMED "\"values\":1,\"timestamps\":[]}", "values or timestamps are not an array"},
		{NAMED "\"values\":[1],\"timestamps\":[]}",
		 "values and timestamps are not equally many"},
		{NAMED "\"values\":[],\"timestamps\":[1]}",
		 "values and timestamps are not equally many"},
		{NAMED "\"values\":[\"1\"],\"timestamps\":[1]}", NULL},
		{NAMED "\"values\":[\"x\"],\"timestamps\":[1]}", "a value is not a number"},
		{NAMED "\"values\":[[1]],\"timestamps\":[1]}", "a value is not a number"},
		{NAMED "\"values\":[1],\"timestamps\":[1.5]}",
		 "a timestamp is not a whole number of ms"},
		{NAMED "\"values\":[1],\"timestamps\":[\"1\"]}",
		 "a timestamp is not a whole number of ms"},
		{NAMED "\"values\":[1],\"timestamps\":[1]}x", ""},
		{NAMED "\"values\":[1", ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct vm_line line;
		struct value value;
		int64_t ts_ms;
		int err = vm_line_read(&line, slice_of(cases[i].text), &arena);
		while (!err)
			err = vm_line_next(&line, &ts_ms, &value);
		assert_int_equal(err, cases[i].reason ? ERR_INVALID : ERR_NOT_FOUND);
		if (cases[i].reason && cases[i].reason[0])
			assert_string_equal(line.reason, cases[i].reason);
	}
}

/* ---- promtool ----------------------------------------------------------------------------------
 */

static void test_prom_dump(void **state)
{
	(void)state;
	static const struct {
		const char *line, *names;
		int64_t ts_ms;
		double value;
	} cases[] = {
		{"{__name__=\"up\", job=\"a\"} 1 1600000000000", "up|job=a", 1600000000000, 1},
		{"{__name__=\"m\"} 1e+06 -5", "m", -5, 1e6},
		{"{__name__=\"m\"} +Inf 0", "m", 0, INFINITY},
		{"{__name__=\"m\"} -Inf 0", "m", 0, -INFINITY},
		{"{a=\"x, y=\\\"} 1 2\", __name__=\"m\", b=\"\"} 0.1 7", "m|a=x, y=\"} 1 2|b=", 7,
		 0.1},
		{"{__name__=\"m\", a=\"\\\\\\t\\u00e9\\xc3\\xa9\\U0001d11e'\"} 2 3", "m|a=\\\téé𝄞'",
		 3, 2},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice names, metric;
		struct value value;
		struct tags tags;
		const char *reason;
		int64_t ts_ms;
		assert_int_equal(
			prom_dump_split(slice_of(cases[i].line), &names, &ts_ms, &value, &reason),
			0);
		assert_int_equal(ts_ms, cases[i].ts_ms);
		assert_true(value_identical(value, value_f64(cases[i].value)));
		assert_int_equal(prom_dump_names(names, &arena, &metric, &tags, &reason), 0);
		expect_names(metric, tags, cases[i].names);
	}
}

static void test_bad_prom_dump(void **state)
{
	(void)state;
	static const struct {
		const char *line, *reason;
	} cases[] = {
		{"", "the line is not {labels} value time"},
		{"up 1 2", "the line is not {labels} value time"},
		{"{} 1", "the value is not a number"},
		{"{__name__=\"m\"} 1 2.5", "the time is not a whole number of ms"},
		{"{__name__=\"m\"} 1 9223372036854775808", "the time is not a whole number of ms"},
		{"{__name__=\"m\"} 0x1 2", "the value is not a number"},
		{"{__name__=\"m\"}  2", "the value is not a number"},
		{"{} 1 2", "there is no label __name__"},
		{"{__name__=\"\"} 1 2", "there is no label __name__"},
		{"{a=\"b\"} 1 2", "there is no label __name__"},
		{"{a} 1 2", "a label is not name=\"value\""},
		{"{=\"b\"} 1 2", "a label is not name=\"value\""},
		{"{a=\"b} 1 2", "a label is not name=\"value\""},
		{"{a=\"b\\\"} 1 2", "a label is not name=\"value\""},
		{"{a=\"\\q\"} 1 2", "a label is not name=\"value\""},
		{"{a=\"\\u12\"} 1 2", "a label is not name=\"value\""},
		{"{a=\"\\ud800\"} 1 2", "a label is not name=\"value\""},
		{"{a=\"\\U00110000\"} 1 2", "a label is not name=\"value\""},
		{"{a=\"b\",c=\"d\"} 1 2", "a comma and a blank are missing"},
		{"{a=\"b\"c=\"d\"} 1 2", "a comma and a blank are missing"},
		{"{a=\"b\",} 1 2", "a comma and a blank are missing"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice names, metric;
		struct value value;
		struct tags tags;
		const char *reason = NULL;
		int64_t ts_ms;
		int err = prom_dump_split(slice_of(cases[i].line), &names, &ts_ms, &value, &reason);
		err = err ? err : prom_dump_names(names, &arena, &metric, &tags, &reason);
		assert_int_equal(err, ERR_INVALID);
		assert_string_equal(reason, cases[i].reason);
	}
}

/* ---- CSV ---------------------------------------------------------------------------------------
 */

static void test_csv(void **state)
{
	(void)state;
	static const struct {
		const char *line, *names;
		int64_t ts_ms;
		struct value value;
	} cases[] = {
		{"m,,-5,f64,1.5", "m", -5, {0x3ff8000000000000, VALUE_F64}},
		{"m,k=v,5,i64,-9223372036854775808", "m|k=v", 5, {UINT64_C(1) << 63, VALUE_I64}},
		{"\"a,b\",\"k=v,l=\"\"w\"\"\",5,u64,18446744073709551615",
		 "a,b|k=v|l=\"w\"",
		 5,
		 {UINT64_MAX, VALUE_U64}},
		{"\"\"\"\",\"a\\,b=c\\\\d\",0,f64,+Inf",
		 "\"|a,b=c\\d",
		 0,
		 {0x7ff0000000000000, VALUE_F64}},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice names, metric;
		struct value value;
		struct tags tags;
		const char *reason;
		int64_t ts_ms;
		assert_int_equal(
			sample_csv_split(slice_of(cases[i].line), &names, &ts_ms, &value, &reason),
			0);
		assert_int_equal(ts_ms, cases[i].ts_ms);
		assert_true(value_identical(value, cases[i].value));
		assert_int_equal(sample_csv_names(names, &arena, &metric, &tags, &reason), 0);
		expect_names(metric, tags, cases[i].names);
	}
}

static void test_bad_csv(void **state)
{
	(void)state;
#define VALUE "the value is not one of type f64, i64 or u64"
#define TWO   "metric and tags are not two fields of CSV"
	static const struct {
		const char *line, *reason;
	} cases[] = {
		{"", "the line is not " SAMPLE_CSV_TITLE},
		{"1,f64,2", "time_ms is not a whole number"},
		{"m,,x,f64,2", "time_ms is not a whole number"},
		{"m,,1,f32,2", VALUE},
		{"m,,1,i64,2.0", VALUE},
		{"m,,1,i64,9223372036854775808", VALUE},
		{"m,,1,u64,-1", VALUE},
		{"m,,1,f64,", VALUE},
		{"m,1,f64,2", TWO},
		{"m,a=b,c=d,1,f64,2", TWO},
		{"\"m,a=b,1,f64,2", TWO},
		{"\"m\"x,a=b,1,f64,2", TWO},
		{",a=b,1,f64,2", "the metric is missing"},
		{"m,a,1,f64,2", "the tags are not k=v,k=v in the order of keys"},
		{"m,\"b=1,a=1\",1,f64,2", "the tags are not k=v,k=v in the order of keys"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice names, metric;
		struct value value;
		struct tags tags;
		const char *reason = NULL;
		int64_t ts_ms;
		int err =
			sample_csv_split(slice_of(cases[i].line), &names, &ts_ms, &value, &reason);
		err = err ? err : sample_csv_names(names, &arena, &metric, &tags, &reason);
		assert_int_equal(err, ERR_INVALID);
		assert_string_equal(reason, cases[i].reason);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_vm_line),       TEST(test_bad_vm_lines), TEST(test_prom_dump),
		TEST(test_bad_prom_dump), TEST(test_csv),          TEST(test_bad_csv),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
