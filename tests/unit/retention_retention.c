/* Rules of retention: how they are written, which of them holds, and which are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "retention/retention.h"

#define MINUTE (INT64_C(60) * 1000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* 5m for 14 days and 1h for a year, in slots of 1h. */
static struct granularities granularities(void)
{
	return (struct granularities){
		.slot_ms = HOUR, .count = 2, .list = {{5 * MINUTE, 14 * DAY}, {HOUR, 365 * DAY}}};
}

static const int64_t raw_least_ms = HOUR + 10 * MINUTE;

static void read_rules(const char *const *items, size_t count, struct retention_rules *rules)
{
	struct granularities g = granularities();
	struct errbuf e = {""};
	if (retention_parse(items, count, &g, raw_least_ms, rules, &e))
		fail_msg("%s", e.text);
}

static struct retention_fit match(const struct retention_rules *rules, const char *tenant,
				  const char *metric)
{
	return retention_match(rules, slice_of(tenant), slice_of(metric));
}

static void check_refused(const char *const *items, size_t count, const char *sentence)
{
	struct retention_rules rules;
	struct granularities g = granularities();
	struct errbuf e = {""};
	assert_int_equal(retention_parse(items, count, &g, raw_least_ms, &rules, &e), ERR_INVALID);
	assert_string_equal(e.text, sentence);
}

static void check_one_refused(const char *item, const char *sentence)
{
	check_refused(&item, 1, sentence);
}

static void without_rules_presets_hold(UNUSED void **state)
{
	struct retention_rules rules;
	read_rules(NULL, 0, &rules);
	struct retention_fit fit = match(&rules, "acme", "cpu");
	assert_int_equal(fit.raw, 0);
	assert_int_equal(fit.granularities[0], 0);
	assert_true(retention_keep_ms(&rules, fit.raw, 3 * DAY) == 3 * DAY);
	rules.levels_ms[0] = DAY;
	assert_true(retention_longest_raw_ms(&rules) == DAY);
	assert_true(retention_shortest_raw_ms(&rules) == DAY);
	assert_true(retention_shortest_whole_ms(&retention_for_ever, 9 * DAY) == 0);
}

static void the_first_rule_that_fits_holds(UNUSED void **state)
{
	static const char *const items[] = {"acme/debug.*/raw:2h", "acme/debug.*/*:2d",
					    "acme/*/raw:7d", "*/net*bytes/1h:0"};
	struct retention_rules rules;
	read_rules(items, 4, &rules);
	struct retention_fit fit = match(&rules, "acme", "debug.x");
	assert_int_equal(fit.raw, 1);
	assert_int_equal(fit.granularities[0], 2);
	assert_int_equal(fit.granularities[1], 2);
	assert_true(retention_keep_ms(&rules, fit.raw, 0) == 2 * HOUR);
	assert_true(retention_keep_ms(&rules, fit.granularities[0], 0) == 2 * DAY);
	fit = match(&rules, "acme", "debug");
	assert_int_equal(fit.raw, 3);
	assert_int_equal(fit.granularities[0], 0);
	fit = match(&rules, "other", "debug.x");
	assert_int_equal(fit.raw, 0);
	fit = match(&rules, "other", "net.in.bytes");
	assert_int_equal(fit.raw, 0);
	assert_int_equal(fit.granularities[1], 4);
	assert_true(retention_keep_ms(&rules, fit.granularities[1], DAY) == 0);
	assert_int_equal(match(&rules, "acmes", "debug.x").raw, 0);
}

/* `*` stands for any text, also none, wherever it stands. */
static void stars(UNUSED void **state)
{
	static const struct {
		const char *pattern, *metric;
		bool fits;
	} cases[] = {
		{"*", "x", true},           {"a*", "a", true},       {"a*", "ba", false},
		{"*a", "ba", true},         {"*a", "bab", false},    {"a*b*c", "abc", true},
		{"a*b*c", "aXbYbZc", true}, {"a*b*c", "acb", false}, {"*ab*ab*", "abab", true},
		{"*ab*ab*", "aba", false},  {"a", "a*", false},      {"**", "", true},
		{"a**b", "ab", true},       {"*aab", "aaaab", true},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char item[64];
		const char *items[] = {item};
		struct retention_rules rules;
		snprintf(item, sizeof(item), "t/%s/raw:1d", cases[i].pattern);
		read_rules(items, 1, &rules);
		if ((match(&rules, "t", cases[i].metric).raw == 1) != cases[i].fits)
			fail_msg("%s %s", cases[i].pattern, cases[i].metric);
	}
}

/* A metric may hold what separates the parts. */
static void metrics_with_slashes_and_colons(UNUSED void **state)
{
	static const char *const items[] = {"t/a/b:c/5m:2d"};
	struct retention_rules rules;
	read_rules(items, 1, &rules);
	assert_int_equal(match(&rules, "t", "a/b:c").granularities[0], 1);
	assert_int_equal(match(&rules, "t", "a/b").granularities[0], 0);
}

static void raw_retentions_are_few_levels(UNUSED void **state)
{
	static const char *const items[] = {"t/a/raw:2d", "t/b/raw:0", "t/c/5m:9d", "t/d/*:2d"};
	struct retention_rules rules;
	read_rules(items, 4, &rules);
	assert_int_equal(rules.last_level, 2);
	assert_int_equal(retention_level(&rules, match(&rules, "t", "a").raw), 1);
	assert_int_equal(retention_level(&rules, match(&rules, "t", "b").raw), 2);
	assert_int_equal(retention_level(&rules, match(&rules, "t", "c").raw), 0);
	assert_int_equal(retention_level(&rules, match(&rules, "t", "d").raw), 1);
	assert_true(rules.levels_ms[1] == 2 * DAY);
	assert_true(rules.levels_ms[2] == 0);
	assert_true(retention_shortest_raw_ms(&rules) == 2 * DAY);
	rules.levels_ms[0] = DAY;
	assert_true(retention_longest_raw_ms(&rules) == 0);
	assert_true(retention_shortest_raw_ms(&rules) == DAY);
	rules.levels_ms[0] = 3 * DAY;
	assert_true(retention_shortest_raw_ms(&rules) == 2 * DAY);
}

static void what_is_no_rule_is_refused(UNUSED void **state)
{
	check_one_refused("acme", "\"acme\": it is not TENANT/METRIC/GRANULARITY:DURATION, such as "
				  "acme/*/raw:7d");
	check_one_refused("acme/raw:7d",
			  "\"acme/raw:7d\": it is not "
			  "TENANT/METRIC/GRANULARITY:DURATION, such as acme/*/raw:7d");
	check_one_refused("a b/x/raw:7d", "\"a b/x/raw:7d\": the tenant \"a b\" is not 1 to 64 of "
					  "A-Z a-z 0-9 _ . - and *");
	check_one_refused("a//raw:7d", "\"a//raw:7d\": metric \"\" is empty (1 to 256 bytes)");
	check_one_refused("a/x/10m:7d",
			  "\"a/x/10m:7d\": there is no granularity \"10m\": it is one "
			  "of raw, 5m, 1h, or * for all");
	check_one_refused("a/x/raws:7d", "\"a/x/raws:7d\": there is no granularity \"raws\": it is "
					 "one of raw, 5m, 1h, or * for all");
	check_one_refused("a/x/raw:7x", "\"a/x/raw:7x\": \"7x\" is no duration: its unit should be "
					"ms, s, m, h, d, w, n or y");
	check_one_refused("a/x/raw:0s", "\"a/x/raw:0s\": \"0s\" is no time; for ever is 0");
}

/* A slot is 1h, the quiet time 5m. */
static void times_that_cannot_be_kept_are_refused(UNUSED void **state)
{
	check_one_refused("a/x/raw:69m",
			  "\"a/x/raw:69m\": raw samples have to be kept for 70m at least: a slot "
			  "and twice the quiet time, or they are gone before they are rolled up");
	check_one_refused("a/x/*:69m",
			  "\"a/x/*:69m\": raw samples have to be kept for 70m at least: a slot "
			  "and twice the quiet time, or they are gone before they are rolled up");
	check_one_refused("a/x/5m:59m",
			  "\"a/x/5m:59m\": nothing is kept for less than a slot of 1h");
	check_one_refused("a/x/5m:36501d", "\"a/x/5m:36501d\": \"36501d\" is above the maximum of "
					   "36500d; for ever is 0");
	struct retention_rules rules;
	static const char *const least[] = {"a/x/raw:70m", "a/x/5m:1h", "a/y/5m:36500d"};
	read_rules(least, 3, &rules);
}

static void a_rule_that_is_never_reached_is_refused(UNUSED void **state)
{
	static const char *const same[] = {"a/x/raw:7d", "a/x/raw:7d"};
	static const char *const wider[] = {"a*/*/*:7d", "abc/x*y/5m:9d"};
	static const char *const parts[] = {"a/*/raw:7d", "a/x*/5m:7d", "*/x*/1h:7d", "a/xy/*:9d"};
	static const char *const fine[] = {"a/x*/raw:7d", "a/x*/5m:7d",  "a/x/*:9d",
					   "a/*/raw:9d",  "b/x*/raw:7d", "*/*/*:9d"};
	struct retention_rules rules;
	check_refused(same, 2,
		      "\"a/x/raw:7d\": it is never reached: \"a/x/raw:7d\" before it takes "
		      "all that it is about");
	check_refused(wider, 2,
		      "\"abc/x*y/5m:9d\": it is never reached: \"a*/*/*:7d\" before it "
		      "takes all that it is about");
	check_refused(parts, 4,
		      "\"a/xy/*:9d\": it is never reached: \"*/x*/1h:7d\" before it takes "
		      "all that it is about");
	read_rules(fine, 6, &rules);
}

static void there_are_not_too_many(UNUSED void **state)
{
	char texts[RETENTION_RULES_MAX + 1][32];
	const char *items[RETENTION_RULES_MAX + 1];
	struct retention_rules rules;
	for (size_t i = 0; i <= RETENTION_RULES_MAX; i++) {
		snprintf(texts[i], sizeof(texts[i]), "t/m%zu/5m:7d", i);
		items[i] = texts[i];
	}
	read_rules(items, RETENTION_RULES_MAX, &rules);
	check_refused(items, RETENTION_RULES_MAX + 1, "65 rules are more than 64");
	for (size_t i = 0; i < RETENTION_LEVELS_MAX; i++)
		snprintf(texts[i], sizeof(texts[i]), "t/m%zu/raw:%zud", i, i + 1);
	read_rules(items, RETENTION_LEVELS_MAX - 1, &rules);
	check_refused(items, RETENTION_LEVELS_MAX,
		      "\"t/m14/raw:15d\": there are more than 14 different retentions of raw "
		      "samples");
}

/* Twice, so that the second time it is remembered. */
static void what_was_matched_is_remembered(UNUSED void **state)
{
	static const char *const items[] = {"t/a*/raw:3d"};
	struct retention_rules rules;
	struct retention_memo memo = {0};
	read_rules(items, 1, &rules);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(retention_find(&rules, &memo, SLICE("t"), SLICE("abc")).raw, 1);
		assert_int_equal(retention_find(&rules, &memo, SLICE("t"), SLICE("b")).raw, 0);
		assert_int_equal(retention_find(&rules, &memo, SLICE("u"), SLICE("abc")).raw, 0);
		assert_int_equal(
			retention_find_encoded(&rules, &memo, SLICE("t"), SLICE("abc")).raw, 1);
		assert_int_equal(retention_find_encoded(&rules, &memo, SLICE("t"), SLICE("b")).raw,
				 0);
	}
	/* Other rules are asked. */
	struct retention_rules *copy = retention_copy(&retention_for_ever);
	assert_int_equal(retention_find(copy, &memo, SLICE("t"), SLICE("abc")).raw, 0);
	mem_free(copy);
	retention_memo_release(&memo);
}

static void a_copy_has_texts_of_its_own(void **state)
{
	(void)state;
	char first[] = "t/a*/raw:2h", second[] = "*/b/raw:3h";
	const char *const items[] = {first, second};
	struct granularities none = {0};
	struct retention_rules rules;
	struct errbuf e;
	assert_int_equal(retention_parse(items, 2, &none, 0, &rules, &e), 0);
	struct retention_rules *copy = retention_copy(&rules);
	memset(first, 'x', sizeof(first));
	memset(second, 'x', sizeof(second));
	assert_int_equal(copy->count, 2);
	assert_true(slice_equal(copy->list[0].text, SLICE("t/a*/raw:2h")));
	assert_true(slice_equal(copy->list[1].text, SLICE("*/b/raw:3h")));
	assert_int_equal(retention_match(copy, SLICE("t"), SLICE("abc")).raw, 1);
	assert_int_equal(retention_match(copy, SLICE("u"), SLICE("b")).raw, 2);
	assert_int_equal(retention_match(copy, SLICE("u"), SLICE("abc")).raw, 0);
	assert_true(copy->levels_ms[2] == 3 * 3600000);
	mem_free(copy);
}

/* In a series-set a comma of the metric has a backslash before it. */
static void an_escaped_metric_is_matched_by_its_name(UNUSED void **state)
{
	static const char *const items[] = {"t/*x/raw:2d"};
	struct retention_rules rules;
	struct retention_memo memo = {0};
	read_rules(items, 1, &rules);
	assert_int_equal(retention_find_encoded(&rules, &memo, SLICE("t"), SLICE("a\\,x")).raw, 1);
	assert_int_equal(retention_find_encoded(&rules, &memo, SLICE("t"), SLICE("a,x")).raw, 0);
	assert_int_equal(retention_find_encoded(&rules, &memo, SLICE("t"), SLICE("a\\")).raw, 0);
	retention_memo_release(&memo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_rules_presets_hold),
		cmocka_unit_test(the_first_rule_that_fits_holds),
		cmocka_unit_test(stars),
		cmocka_unit_test(metrics_with_slashes_and_colons),
		cmocka_unit_test(raw_retentions_are_few_levels),
		cmocka_unit_test(what_is_no_rule_is_refused),
		cmocka_unit_test(times_that_cannot_be_kept_are_refused),
		cmocka_unit_test(a_rule_that_is_never_reached_is_refused),
		cmocka_unit_test(there_are_not_too_many),
		cmocka_unit_test(what_was_matched_is_remembered),
		cmocka_unit_test(a_copy_has_texts_of_its_own),
		cmocka_unit_test(an_escaped_metric_is_matched_by_its_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
