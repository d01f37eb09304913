/* Rules that say how long streams are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "retention/keep.h"

enum { DAY_MS = 86400000 };

static int parse(struct keep_rules *rules, const char *const *items, size_t count, struct errbuf *e)
{
	*rules = (struct keep_rules){.preset_ms = 7};
	return keep_rules_parse(items, count, "DATATYPE", rules, e);
}

static void the_first_rule_that_fits_holds(void **state)
{
	static const char *const items[] = {"acme/audit:0", "acme/a*:2d", "*/debug/x:1:90m",
					    "*/*log:1d", "b*/*:3d"};
	struct keep_rules rules;
	struct errbuf e = {""};
	(void)state;
	assert_int_equal(parse(&rules, items, ARRAY_LEN(items), &e), 0);
	assert_int_equal(keep_rules_ms(&rules, SLICE("acme"), SLICE("audit")), 0);
	assert_int_equal(keep_rules_ms(&rules, SLICE("acme"), SLICE("access_log")), 2 * DAY_MS);
	assert_int_equal(keep_rules_ms(&rules, SLICE("b"), SLICE("debug/x:1")), 90 * 60000);
	assert_int_equal(keep_rules_ms(&rules, SLICE("b"), SLICE("access_log")), DAY_MS);
	assert_int_equal(keep_rules_ms(&rules, SLICE("b"), SLICE("audit")), 3 * DAY_MS);
	assert_int_equal(keep_rules_ms(&rules, SLICE("c"), SLICE("audit")), 7);
}

static void what_is_no_rule_is_refused(void **state)
{
	static const char *const items[] = {
		"",         "x",    "t/x",   "x:1d",   "t/:1d",      "/x:1d",
		"a b/x:1d", "t/x:", "t/x:1", "t/x:1q", "t/x:99999d", "t/x:0d"};
	struct keep_rules rules;
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(items); i++) {
		struct errbuf e = {""};
		assert_int_equal(parse(&rules, &items[i], 1, &e), ERR_INVALID);
		assert_int_equal(rules.count, 0);
		assert_true(strlen(e.text) > 10);
	}
	static const char *const taken[] = {"a/b:1d", "*/c*:2d", "a/cd:3d"};
	struct errbuf e = {""};
	assert_int_equal(parse(&rules, taken, 3, &e), ERR_INVALID);
	assert_int_equal(rules.count, 2);
	assert_non_null(strstr(e.text, "\"a/cd:3d\": it is never reached"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_rule_that_fits_holds),
		cmocka_unit_test(what_is_no_rule_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
