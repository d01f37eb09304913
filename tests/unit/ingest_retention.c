/* What the push doors refuse since it would not be kept, or its slot is closed. */
#include "ingest_points.h"

#include "retention/retention.h"

static void old_points_are_refused_by_retention(void **state)
{
	(void)state;
	struct harness h = {0};
	struct retention_rules rules = {.levels_ms = {3600000}};
	harness_open(&h, &(struct ingest_options){.retention = &rules, .ahead_ms = -1});
	struct ingest_request *r = harness_request(&h);
	add(r, "k=v", "m", 1, HARNESS_NOW_MS - 3600001);
	add(r, "k=v", "m", 2, HARNESS_NOW_MS - 3600000);
	add(r, "k=v", "m", 3, HARNESS_NOW_MS);
	add(r, "k=v", "m", 4, HARNESS_NOW_MS + 1);
	harness_finish(&h, r);
	assert_int_equal(r->accepted, 2);
	assert_int_equal(r->errors[0].reason, INGEST_TOO_OLD);
	assert_string_equal(r->errors[0].sentence,
			    "the time 2023-11-14T21:13:19.999Z is older than the "
			    "retention of 3600 s");
	assert_int_equal(r->errors[1].reason, INGEST_TOO_NEW);
	ingest_request_free(r);
	harness_close(&h);
}

/* It is 22:13:20; three hours are kept. The slot from 19:00 closes at 21:50, ten minutes before its
 * first samples go. */
static void points_of_a_closed_slot_are_refused(void **state)
{
	(void)state;
	struct harness h = {0};
	struct retention_rules rules = {.levels_ms = {3 * 3600000}};
	harness_open(&h, &(struct ingest_options){.retention = &rules,
						  .partitions = 1,
						  .rollup_slot_ms = 3600000,
						  .rollup_quiet_ms = 300000});
	int64_t eight_ms = HARNESS_NOW_MS - 2 * 3600000 - 13 * 60000 - 20 * 1000;
	struct ingest_request *r = harness_request(&h);
	add(r, "k=v", "m", 1, eight_ms - 1);
	add(r, "k=v", "m", 2, eight_ms);
	add(r, "k=v", "m", 3, HARNESS_NOW_MS - 3 * 3600000 - 1);
	harness_finish(&h, r);
	assert_int_equal(r->accepted, 1);
	assert_int_equal(r->errors[0].reason, INGEST_TOO_OLD);
	assert_string_equal(
		r->errors[0].sentence,
		"the time 2023-11-14T19:59:59.999Z is too old to be rolled up: samples of its "
		"slot go after the retention of 10800 s, those before 2023-11-14T20:00:00Z "
		"are refused");
	assert_string_equal(r->errors[1].sentence,
			    "the time 2023-11-14T19:13:19.999Z is older than the "
			    "retention of 10800 s");
	ingest_request_free(r);
	harness_close(&h);
}

/* debug is kept for 2 h, all else for 20 days. */
static void read_debug_rule(struct retention_rules *rules)
{
	static const char *const items[] = {"t/debug*/raw:2h"};
	struct granularities none = {0};
	struct errbuf e;
	assert_int_equal(retention_parse(items, 1, &none, 0, rules, &e), 0);
}

static void add_pair(struct ingest_request *r, bool one_by_one, int64_t number, int64_t ts_ms)
{
	struct tag tag = {SLICE("h"), SLICE("x")};
	struct slice metrics[] = {SLICE("cpu"), SLICE("debug"), SLICE("net")};
	struct value values[] = {value_i64(number), value_i64(number + 1), value_i64(number + 2)};
	ingest_points(r, &(struct ingest_points){.tenant = SLICE("t"),
						 .tags = &tag,
						 .tag_count = 1,
						 .metrics = metrics,
						 .values = values,
						 .count = 3,
						 .ts_ms = ts_ms,
						 .place = {.index = 7},
						 .one_by_one = one_by_one});
}

/* The second request finds what the first has made known. */
static void rules_say_what_is_too_old_and_how_long_it_stays(void **state)
{
	(void)state;
	struct harness h = {0};
	struct retention_rules rules;
	read_debug_rule(&rules);
	rules.levels_ms[0] = 20 * 86400000L;
	harness_open(&h, &(struct ingest_options){.retention = &rules});
	const int64_t old_ms = HARNESS_NOW_MS - 3 * 3600000;
	for (int i = 0; i < 2; i++) {
		struct ingest_request *r = harness_request(&h);
		add_pair(r, false, 1, old_ms);
		add_pair(r, true, 1, old_ms);
		add_pair(r, false, 4, HARNESS_NOW_MS);
		harness_finish(&h, r);
		assert_int_equal(r->accepted, 7);
		assert_int_equal(r->refused, 2);
		assert_int_equal(r->errors[0].place.index, 7);
		assert_int_equal(r->errors[1].place.index, 8);
		assert_string_equal(r->errors[1].sentence, "the time 2023-11-14T19:13:20Z is older "
							   "than the retention of 7200 s");
		ingest_request_free(r);
	}
	harness_expect(&h, "t:cpu,h=x 1699989200000=1i 1700000000000=4i\n"
			   "t:debug,h=x 1700000000000=5i\n"
			   "t:net,h=x 1699989200000=3i 1700000000000=6i\n");
	/* Two hours lie in the class of two days, twenty days in that of 35. */
	clock_virtual_advance(&h.clock, 3 * INT64_C(86400000000));
	harness_expect(&h, "t:cpu,h=x 1699989200000=1i 1700000000000=4i\nt:debug,h=x\n"
			   "t:net,h=x 1699989200000=3i 1700000000000=6i\n");
	harness_close(&h);
}

static void what_a_rule_refuses_makes_no_series(void **state)
{
	(void)state;
	struct harness h = {0};
	struct retention_rules rules;
	read_debug_rule(&rules);
	harness_open(&h, &(struct ingest_options){.retention = &rules});
	struct ingest_request *r = harness_request(&h);
	add(r, "k=v", "debug.a", 1, HARNESS_NOW_MS - 7200001);
	add(r, "k=v", "debug.b", 1, HARNESS_NOW_MS - 7200000);
	add(r, "k=v", "cpu", 1, 0);
	/* The longest is for ever, so what lies before 1970 is told as that. */
	add(r, "k=v", "cpu", 1, -1);
	harness_finish(&h, r);
	assert_int_equal(r->accepted, 2);
	assert_int_equal(r->refused, 2);
	assert_string_equal(r->errors[0].sentence,
			    "the time 2023-11-14T20:13:19.999Z is older than the "
			    "retention of 7200 s");
	assert_string_equal(r->errors[1].sentence,
			    "the time 1969-12-31T23:59:59.999Z is before 1970");
	ingest_request_free(r);
	harness_expect(&h, "t:cpu,k=v 0=1.0f\nt:debug.b,k=v 1699992800000=1.0f\n");
	harness_close(&h);
}

/* It is 22:13:20. Of two hours 20:13:20 is the first that is kept; with ten minutes for the roll-up
 * the first slot that is open begins at 21:00. */
static void a_slot_closes_by_the_rule_of_its_series(void **state)
{
	(void)state;
	struct harness h = {0};
	struct retention_rules rules;
	read_debug_rule(&rules);
	harness_open(&h, &(struct ingest_options){.retention = &rules,
						  .partitions = 1,
						  .rollup_slot_ms = 3600000,
						  .rollup_quiet_ms = 300000});
	int64_t nine_ms = HARNESS_NOW_MS - 3600000 - 13 * 60000 - 20 * 1000;
	struct ingest_request *r = harness_request(&h);
	add(r, "k=v", "debug", 1, nine_ms - 1);
	add(r, "k=v", "debug", 2, nine_ms);
	add(r, "k=v", "cpu", 3, nine_ms - 1);
	harness_finish(&h, r);
	assert_int_equal(r->accepted, 2);
	assert_string_equal(
		r->errors[0].sentence,
		"the time 2023-11-14T20:59:59.999Z is too old to be rolled up: samples of its "
		"slot go after the retention of 7200 s, those before 2023-11-14T21:00:00Z "
		"are refused");
	ingest_request_free(r);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(old_points_are_refused_by_retention),
		cmocka_unit_test(points_of_a_closed_slot_are_refused),
		cmocka_unit_test(rules_say_what_is_too_old_and_how_long_it_stays),
		cmocka_unit_test(what_a_rule_refuses_makes_no_series),
		cmocka_unit_test(a_slot_closes_by_the_rule_of_its_series),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
