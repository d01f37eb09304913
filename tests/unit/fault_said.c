/* What people have said of a group, which reports open it again, and the order of releases. */
#include "fault_harness.h"

#include "fault/release.h"
#include "fault/said.h"

#define HOUR_US INT64_C(3600000000)

/* In the order of Semantic Versioning 2.0, section 11, with a few beside it. */
static void releases_are_ordered(UNUSED void **state)
{
	static const char *const order[] = {
		"0.9",
		"1.0.0-alpha",
		"1.0.0-alpha.1",
		"1.0.0-alpha.beta",
		"1.0.0-beta",
		"1.0.0-beta.2",
		"1.0.0-beta.11",
		"1.0.0-rc.1",
		"1.0.0",
		"1.0.0.1",
		"1.2.0",
		"v1.10.0",
		"2.0.0",
		"2.1.0",
		"2.1.1",
		"10.0",
		"20261124.1",
		"99999999999999999999",
		"0100000000000000000000",
	};
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		for (size_t j = 0; j < ARRAY_LEN(order); j++) {
			int is, wanted = (i > j) - (i < j);
			assert_true(
				fault_release_compare(slice_of(order[i]), slice_of(order[j]), &is));
			assert_int_equal((is > 0) - (is < 0), wanted);
			is = fault_release_order(slice_of(order[i]), slice_of(order[j]));
			assert_int_equal((is > 0) - (is < 0), wanted);
		}
	}
}

static void builds_and_packages(UNUSED void **state)
{
	int order;
	assert_true(fault_release_compare(TEXT("shop@1.2+a"), TEXT("shop@1.2.0+b"), &order));
	assert_int_equal(order, 0);
	assert_true(fault_release_compare(TEXT("@org/web@1.2"), TEXT("@org/web@1.10"), &order));
	assert_true(order < 0);
	assert_true(fault_release_compare(TEXT("shop@1.9"), TEXT("1.10"), &order));
	assert_true(order < 0);
	static const char *const others[] = {"web@1.2",        "",        "shop@",
					     "shop@x",         "shop@1.", "shop@1..2",
					     "shop@1.2.3.4.5", "shop@-1", "f00dfeed"};
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_false(fault_release_compare(TEXT("shop@1.2"), slice_of(others[i]), &order));
}

static void a_cell_is_as_the_page_has_it(UNUSED void **state)
{
	/* clang-format off */
	static const uint8_t bytes[] = {
		1, 2,                                     /* version, muted */
		0x40, 0x42, 0x0f, 0, 0, 0, 0, 0,          /* 1,000,000 us */
		0, 0,                                     /* now; no release */
		3, 24, 7, 2,                              /* 3 in 24 hours; 7, 2 before */
		4, 'a', 'n', 'n', 'a',
		1, 4, 'j', 'i', 'r', 'a', 2, 'S', '1',    /* one bug */
	};
	/* clang-format on */
	struct fault_said said;
	struct buf out;
	assert_int_equal(
		fault_said_decode((struct slice){(const char *)bytes, sizeof(bytes)}, &said), 0);
	assert_int_equal(said.status, FAULT_MUTED);
	assert_int_equal(said.said_us, 1000000);
	assert_int_equal(said.until, 3);
	assert_int_equal(said.hours, 24);
	assert_int_equal(said.before, 7);
	assert_int_equal(said.before_of_hour, 2);
	assert_true(slice_equal(said.assignee, TEXT("anna")));
	assert_int_equal(said.bug_count, 1);
	assert_true(slice_equal(said.bugs[0].tracker, TEXT("jira")));
	assert_true(slice_equal(said.bugs[0].bug, TEXT("S1")));
	buf_init(&out, 1000);
	fault_said_encode(&said, &out);
	assert_int_equal(out.len, sizeof(bytes));
	assert_memory_equal(out.data, bytes, sizeof(bytes));
	buf_release(&out);
	for (size_t len = 0; len < sizeof(bytes); len++)
		assert_int_equal(fault_said_decode((struct slice){(const char *)bytes, len}, &said),
				 ERR_DAMAGED);
	assert_int_equal(fault_said_decode(TEXT("\2"), &said), ERR_VERSION);
	assert_int_equal(fault_said_decode(TEXT("\1\3"), &said), ERR_DAMAGED);
}

/* A release that a report has, by number; 0: none. */
static const char *const release_names[] = {
	"", "shop@1.9", "1.9.1", "shop@1.10", "web@1.10", "f00d", "beef", "cafe",
};
enum { NONE, V1_9, V1_9_1, V1_10, WEB, FOOD, BEEF, CAFE };

static void came(struct fault_tally *tally, const char *id, int64_t date_us, const char *release)
{
	struct fault_arrival arrival = {.date_us = date_us, .id = slice_of(id)};
	for (size_t i = 0; i < FAULT_TEXTS; i++)
		arrival.facts.texts[i] = SLICE("");
	arrival.facts.texts[FAULT_RELEASE] = slice_of(release);
	fault_tally_add(tally, &arrival);
}

/* One report came before it was said, in second 100, and one after: which ones open the group. */
static void resolved_until_a_report_has_the_mend(UNUSED void **state)
{
	static const struct {
		enum fault_resolved resolved;
		unsigned release, before;
		int64_t second;
		unsigned after;
		bool opens;
	} cases[] = {
		{FAULT_RESOLVED_NOW, NONE, V1_9, 101, V1_9, true},
		{FAULT_RESOLVED_NOW, NONE, V1_9, 99, V1_9, true}, /* a clock that was set back */
		{FAULT_RESOLVED_IN, V1_10, V1_9, 101, V1_9, false},
		{FAULT_RESOLVED_IN, V1_10, V1_9, 101, V1_9_1, false},
		{FAULT_RESOLVED_IN, V1_10, V1_9, 101, V1_10, true},
		{FAULT_RESOLVED_IN, V1_10, V1_9, 1, V1_10, true},
		{FAULT_RESOLVED_IN, V1_10, V1_9, 1, V1_9, false},
		{FAULT_RESOLVED_IN, V1_10, V1_9, 101, NONE, true},
		{FAULT_RESOLVED_IN, V1_10, V1_10, 101, V1_10, true},
		{FAULT_RESOLVED_IN, V1_10, V1_10, 101, V1_9, false},
		{FAULT_RESOLVED_IN, V1_10, V1_10, 1, V1_10, true},
		{FAULT_RESOLVED_AFTER, V1_9, V1_9, 101, V1_9, false},
		{FAULT_RESOLVED_AFTER, V1_9, V1_9, 101, V1_9_1, true},
		{FAULT_RESOLVED_AFTER, NONE, NONE, 101, V1_9, true}, /* there was none */
		{FAULT_RESOLVED_AFTER, NONE, NONE, 101, NONE, true},
		/* No versions, or other packages: by when the first came. */
		{FAULT_RESOLVED_IN, V1_10, V1_9, 101, WEB, true},
		{FAULT_RESOLVED_AFTER, FOOD, FOOD, 101, BEEF, true},
		{FAULT_RESOLVED_AFTER, FOOD, FOOD, 101, FOOD, false},
		{FAULT_RESOLVED_IN, FOOD, FOOD, 101, FOOD, true},
		/* The next after 1.9 is none that was there. */
		{FAULT_RESOLVED_AFTER, V1_9, WEB, 101, WEB, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fault_group_history history = {0};
		struct fault_said said = {.status = FAULT_RESOLVED,
					  .said_us = 100000000,
					  .resolved = cases[i].resolved,
					  .release = slice_of(release_names[cases[i].release])};
		bool again;
		came(&history.tally, "id1", 50000000, release_names[cases[i].before]);
		fault_said_count_before(&said, &history, said.said_us);
		assert_int_equal(fault_said_status(&said, &history, &again), FAULT_RESOLVED);
		assert_false(again);
		came(&history.tally, "id2", cases[i].second * 1000000,
		     release_names[cases[i].after]);
		assert_int_equal(fault_said_status(&said, &history, &again) == FAULT_OPEN,
				 cases[i].opens);
		assert_int_equal(again, cases[i].opens);
		fault_tally_release(&history.tally);
	}
}

/* Of a group with 300 releases, of which 200 are kept, and which was resolved in one of them: what
 * it is after a report of a release that is not kept. */
static enum fault_status after_300(const char *format, const char *in, const char *then)
{
	struct fault_group_history history = {0};
	char text[16];
	bool again;
	for (unsigned i = 0; i < 300; i++) {
		snprintf(text, sizeof(text), format, i);
		came(&history.tally, "a", i + 1, text);
	}
	struct fault_said said = {.status = FAULT_RESOLVED,
				  .said_us = 400,
				  .resolved = FAULT_RESOLVED_IN,
				  .release = slice_of(in)};
	fault_said_count_before(&said, &history, said.said_us);
	came(&history.tally, "a", 401, then);
	enum fault_status status = fault_said_status(&said, &history, &again);
	fault_tally_release(&history.tally);
	return status;
}

/* Versions that are not kept are lower than those that are. Names come before versions; of those
 * that are not kept nothing is known. */
static void releases_that_are_not_kept(UNUSED void **state)
{
	assert_int_equal(after_300("1.%u", "2.0", "1.0"), FAULT_RESOLVED);
	assert_int_equal(after_300("1.%u", "2.0", "2.0"), FAULT_OPEN);
	assert_int_equal(after_300("1.%u", "1.400", "newhash"), FAULT_OPEN);
	assert_int_equal(after_300("shop@1.%u", "web@1.0", "web@1.0"), FAULT_OPEN);
	assert_int_equal(after_300("commit%u", "commit299", "aaa"), FAULT_OPEN);
}

/* Of a group that was muted in hour 1000 (16 o'clock of day 41), when that hour had 2 reports. */
static void muted_until_so_many_within_a_time(UNUSED void **state)
{
	static const struct {
		struct {
			unsigned hour, count;
		} came[4];
		bool opens;
	} cases[] = {
		{{{1000, 4}}, false},                       /* two after it */
		{{{1000, 5}}, true},                        /* three */
		{{{999, 50}, {1000, 2}}, false},            /* before it */
		{{{1000, 3}, {1003, 2}}, true},             /* 1, and 2 in the fourth hour */
		{{{1000, 3}, {1004, 2}}, false},            /* in the fifth */
		{{{1002, 2}, {1006, 2}, {1010, 2}}, false}, /* never three in four hours */
		{{{1002, 2}, {1007, 1}, {1010, 2}}, true},  /* over midnight: 1008 is it */
		{{{1002, 2}, {1100, 2}, {1103, 1}}, true},  /* days later */
	};
	const struct fault_said said = {.status = FAULT_MUTED,
					.said_us = 1000 * HOUR_US + 5,
					.until = 3,
					.hours = 4,
					.before_of_hour = 2};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fault_group_day days[4];
		struct fault_group_history history = {.days = days};
		bool again;
		for (size_t c = 0; c < 4 && cases[i].came[c].count; c++) {
			int64_t day = cases[i].came[c].hour / 24;
			if (!history.count || days[history.count - 1].day != day)
				days[history.count++] = (struct fault_group_day){.day = day};
			days[history.count - 1].hours[cases[i].came[c].hour % 24] +=
				cases[i].came[c].count;
		}
		enum fault_status status = fault_said_status(&said, &history, &again);
		assert_int_equal(again, cases[i].opens);
		assert_int_equal(status, cases[i].opens ? FAULT_OPEN : FAULT_MUTED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(releases_are_ordered),
		cmocka_unit_test(builds_and_packages),
		cmocka_unit_test(a_cell_is_as_the_page_has_it),
		cmocka_unit_test(resolved_until_a_report_has_the_mend),
		cmocka_unit_test(releases_that_are_not_kept),
		cmocka_unit_test(muted_until_so_many_within_a_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
