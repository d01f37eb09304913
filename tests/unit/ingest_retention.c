/* What the push doors refuse since it would not be kept, or its slot is closed. */
#include "ingest_points.h"

#include "retention/retention.h"

static void old_points_are_refused_by_retention(void **state)
{
	(void)state;
	struct harness h = {0};
	struct retention_rules rules = {.levels_ms = {3600000}};
	harness_open(&h, &(struct ingest_options){.retention = {.rules = &rules}, .ahead_ms = -1});
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
	harness_open(&h, &(struct ingest_options){.retention = {.rules = &rules},
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
	harness_open(&h, &(struct ingest_options){.retention = {.rules = &rules}});
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
	harness_open(&h, &(struct ingest_options){.retention = {.rules = &rules}});
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
	harness_open(&h, &(struct ingest_options){.retention = {.rules = &rules},
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

/* All is kept for a day but debug, for 30 days. */
static void read_other_rule(struct retention_rules *rules)
{
	static const char *const items[] = {"t/debug*/raw:30d"};
	struct granularities none = {0};
	struct errbuf e;
	assert_int_equal(retention_parse(items, 1, &none, 0, rules, &e), 0);
	rules->levels_ms[0] = 86400000;
}

static void add_of(struct ingest_request *r, const char *host, int64_t ts_ms)
{
	add(r, host, "cpu", 1, ts_ms);
	add(r, host, "debug", 2, ts_ms);
}

/* The rules change while samples wait for the catalog. Those of `h=old`, whose series were known,
 * go where they were to go: cpu to the class of 35 days, debug to that of 2. Those of `h=new` go by
 * the rules of now, the other way round. */
static void rules_change_while_samples_wait(void **state)
{
	(void)state;
	struct harness h = {0};
	struct retention_rules rules, others;
	read_debug_rule(&rules);
	read_other_rule(&others);
	rules.levels_ms[0] = 20 * 86400000L;
	harness_open(&h, &(struct ingest_options){.retention = {.rules = &rules}});
	struct ingest_request *r = harness_request(&h);
	add_of(r, "h=old", HARNESS_NOW_MS - 1);
	harness_finish(&h, r);
	ingest_request_free(r);
	r = harness_request(&h);
	add_of(r, "h=new", HARNESS_NOW_MS);
	add_of(r, "h=old", HARNESS_NOW_MS);
	ingest_piece_end(r);
	ingest_set_retention(h.ingest, &(struct ingest_retention){.rules = &others});
	ingest_piece_begin(r);
	add_of(r, "h=old", HARNESS_NOW_MS - 90000000);
	harness_finish(&h, r);
	assert_int_equal(r->accepted, 5);
	assert_int_equal(r->refused, 1);
	assert_string_equal(r->errors[0].sentence, "the time 2023-11-13T21:13:20Z is older than "
						   "the retention of 86400 s");
	ingest_request_free(r);
	harness_expect(&h, "t:cpu,h=new 1700000000000=1.0f\n"
			   "t:cpu,h=old 1699999999999=1.0f 1700000000000=1.0f\n"
			   "t:debug,h=new 1700000000000=2.0f\n"
			   "t:debug,h=old 1699910000000=2.0f 1699999999999=2.0f "
			   "1700000000000=2.0f\n");
	clock_virtual_advance(&h.clock, 3 * INT64_C(86400000000));
	harness_expect(&h, "t:cpu,h=new\n"
			   "t:cpu,h=old 1699999999999=1.0f 1700000000000=1.0f\n"
			   "t:debug,h=new 1700000000000=2.0f\n"
			   "t:debug,h=old 1699910000000=2.0f\n");
	harness_close(&h);
}

/* A group of metrics whose samples are of several levels under the rules of now. */
static void a_group_is_of_several_levels_after_a_change(void **state)
{
	(void)state;
	struct harness h = {0};
	struct retention_rules others;
	read_other_rule(&others);
	harness_open(&h, &(struct ingest_options){.retention = {.rules = NULL}});
	struct ingest_request *r = harness_request(&h);
	add_pair(r, false, 1, HARNESS_NOW_MS);
	ingest_piece_end(r);
	ingest_set_retention(h.ingest, &(struct ingest_retention){.rules = &others});
	ingest_piece_begin(r);
	harness_finish(&h, r);
	assert_int_equal(r->accepted, 3);
	ingest_request_free(r);
	clock_virtual_advance(&h.clock, 3 * INT64_C(86400000000));
	harness_expect(&h, "t:cpu,h=x\nt:debug,h=x 1700000000000=2i\nt:net,h=x\n");
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
		cmocka_unit_test(rules_change_while_samples_wait),
		cmocka_unit_test(a_group_is_of_several_levels_after_a_change),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
