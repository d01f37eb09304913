/* Steps of a timeline in the shapes of O and of python-oops (its documents, section 2.1). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "fault/timeline.h"

struct step_case {
	const char *text;
	bool good;
	double start_ms, length_ms;
	const char *category, *detail;
	bool database;
};

static bool same_number(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static void check_step(const struct step_case *expected)
{
	struct arena arena;
	struct json *item;
	struct fault_step step;
	struct errbuf e;
	arena_init(&arena, 1 << 20);
	assert_int_equal(json_parse(slice_of(expected->text), &arena, &item, &e), 0);
	bool good = fault_step_read(item, &step);
	if (good != expected->good)
		fail_msg("%s", expected->text);
	if (good && (!same_number(step.start_ms, expected->start_ms) ||
		     !same_number(step.length_ms, expected->length_ms) ||
		     !slice_equal(step.category, slice_of(expected->category)) ||
		     !slice_equal(step.detail, slice_of(expected->detail)) ||
		     step.database != expected->database))
		fail_msg("%s: %g %g %.*s %.*s %d", expected->text, step.start_ms, step.length_ms,
			 (int)step.category.len, step.category.data, (int)step.detail.len,
			 step.detail.data, step.database);
	arena_release(&arena);
}

static void steps_of_both_shapes(void **state)
{
	static const struct step_case cases[] = {
		{"{\"start\":\"0\",\"length\":\"34\",\"database\":\"main\","
		 "\"statment\":\"SELECT ...\",\"callstack\":\"....\"}",
		 true, 0, 34, "main", "SELECT ...", true},
		{"{\"start\":1.5,\"length\":2,\"database\":\"main\",\"statement\":\"x\"}", true,
		 1.5, 2, "main", "x", true},
		{"{\"statement\":\"x\",\"statment\":\"y\"}", true, NAN, NAN, "", "x", true},
		{"{\"start\":5}", true, 5, NAN, "", "", false},
		{"{\"start\":\"soon\",\"length\":null}", true, NAN, NAN, "", "", false},
		{"{\"database\":null,\"start\":1}", true, 1, NAN, "", "", false},
		{"[0,34,\"SQL-main\",\"SELECT 1\"]", true, 0, 34, "SQL-main", "SELECT 1", true},
		{"[1.5,2,\"sql\",\"x\",\"callstack\"]", true, 1.5, 0.5, "sql", "x", true},
		{"[1,2,\"http\",\"GET /\",null,6,7]", true, 1, 1, "http", "GET /", false},
		{"[\"10\",\"30\",\"db.sql.query\",\"x\"]", true, 10, 20, "db.sql.query", "x", true},
		{"[1,2,\"db\",\"x\"]", true, 1, 1, "db", "x", true},
		{"[1,2,\"main\",\"SELECT 1\"]", true, 1, 1, "main", "SELECT 1", true},
		{"[1,2,null,\"UPDATE a SET b=1\"]", true, 1, 1, "", "UPDATE a SET b=1", true},
		{"[1,2,\"http\",\"DELETE /a\"]", true, 1, 1, "http", "DELETE /a", false},
		{"[1,2,\"ui\",\"select a page\"]", true, 1, 1, "ui", "select a page", false},
		{"[1,2,\"dbus\",\"call\"]", true, 1, 1, "dbus", "call", false},
		{"[1,2,\"SQL-main\"]", true, 1, 1, "SQL-main", "", true},
		{"[1,2]", true, 1, 1, "", "", false},
		{"[1]", true, 1, NAN, "", "", false},
		{"[5,2,\"x\",\"y\"]", true, 5, -3, "x", "y", false},
		{"[1,null,\"x\",{\"a\":1}]", true, 1, NAN, "x", "", false},
		{"[]", false, 0, 0, "", "", false},
		{"[\"x\",2]", false, 0, 0, "", "", false},
		{"[null,2,\"x\",\"y\"]", false, 0, 0, "", "", false},
		{"[1,2,3,\"x\"]", false, 0, 0, "", "", false},
		{"{}", false, 0, 0, "", "", false},
		{"{\"a\":1}", false, 0, 0, "", "", false},
		{"{\"statement\":[1]}", false, 0, 0, "", "", false},
		{"{\"database\":7,\"statement\":\"x\"}", false, 0, 0, "", "", false},
		{"\"SELECT 1\"", false, 0, 0, "", "", false},
		{"7", false, 0, 0, "", "", false},
		{"null", false, 0, 0, "", "", false},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_step(&cases[i]);
}

static void statements_are_counted(void **state)
{
	static const struct {
		const char *text;
		int64_t statements;
		size_t bad;
	} cases[] = {
		{"[]", -1, 0},
		{"{}", -1, 0},
		{"\"x\"", -1, 0},
		{"[1,{},[]]", -1, 3},
		{"[[1,2,\"http\",\"x\"]]", 0, 0},
		{"[[1,2,\"sql\",\"x\"],7,{\"database\":\"a\",\"statment\":\"b\"},[3]]", 2, 1},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct arena arena;
		struct json *timeline;
		struct errbuf e;
		size_t bad;
		arena_init(&arena, 1 << 20);
		assert_int_equal(json_parse(slice_of(cases[i].text), &arena, &timeline, &e), 0);
		assert_int_equal(fault_timeline_statements(timeline, &bad), cases[i].statements);
		assert_int_equal(bad, cases[i].bad);
		arena_release(&arena);
	}
	size_t bad;
	assert_int_equal(fault_timeline_statements(NULL, &bad), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_of_both_shapes),
		cmocka_unit_test(statements_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
