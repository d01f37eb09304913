/* Raw samples that are to be kept for longer: what was there leaves as it would have. */
#include "rollup_harness.h"

#include "rollup/stored_settings.h"

#define NOON_MS INT64_C(1700049600000) /* 2023-11-15T12:00:00Z */

static const struct granularities granularities = {
	.slot_ms = HOUR_MS, .count = 1, .list = {{HOUR_MS, 0}}};

struct items {
	size_t count;
	const char *list[3];
};

/* The rules at a start at `now_ms`. */
static struct retention_rules start_ahead(struct rolled *r, int64_t preset_ms, struct items items,
					  int64_t now_ms, int64_t ahead_ms)
{
	struct rollup_site site = {
		.store = r->h.store, .granularities = granularities, .ahead_ms = ahead_ms};
	struct errbuf e = {""};
	assert_int_equal(
		retention_parse(items.list, items.count, &granularities, 0, &site.retention, &e),
		0);
	site.retention.levels_ms[0] = preset_ms;
	assert_int_equal(stored_settings_open(&site, now_ms, &e), 0);
	stored_settings_release(&site.settings);
	return site.retention;
}

static struct retention_rules start_with(struct rolled *r, int64_t preset_ms, struct items items,
					 int64_t now_ms)
{
	return start_ahead(r, preset_ms, items, now_ms, 0);
}

static struct retention_rules start(struct rolled *r, int64_t preset_ms, int64_t now_ms)
{
	return start_with(r, preset_ms, (struct items){0}, now_ms);
}

/* How long samples of the rule of this place, from 1 on, or of retention.raw count as kept. */
static void expect(const struct retention_rules *rules, uint8_t fit, int64_t now_ms,
		   int64_t whole_ms)
{
	assert_int_equal(retention_whole_ms(rules, retention_level(rules, fit), now_ms), whole_ms);
}

static const char *const hour[] = {"1h"};

/* Raised from a day to 30 at noon: what came before noon has gone a day later, and what came since
 * is there. */
static void what_was_there_goes_as_it_would_have(UNUSED void **state)
{
	struct rolled r;
	rolled_open(&r, hour, 1);
	struct retention_rules rules = start(&r, DAY_MS, NOON_MS - 9 * DAY_MS);
	expect(&rules, 0, NOON_MS, DAY_MS);
	rules = start(&r, 30 * DAY_MS, NOON_MS);
	for (int starts = 0; starts < 2; starts++) {
		expect(&rules, 0, NOON_MS, DAY_MS);
		expect(&rules, 0, NOON_MS + DAY_MS - 1, DAY_MS);
		expect(&rules, 0, NOON_MS + DAY_MS + 1, DAY_MS + 1);
		expect(&rules, 0, NOON_MS + 29 * DAY_MS, 29 * DAY_MS);
		expect(&rules, 0, NOON_MS + 31 * DAY_MS, 30 * DAY_MS);
		rules = start(&r, 30 * DAY_MS, NOON_MS + 3 * DAY_MS);
	}
	rules = start(&r, 30 * DAY_MS, NOON_MS + 31 * DAY_MS);
	assert_true(rules.raise.until_ms == 0);
	rolled_close(&r);
}

/* Of samples of the next hour some are there already. */
static void what_was_ahead_goes_with_them(UNUSED void **state)
{
	struct rolled r;
	rolled_open(&r, hour, 1);
	(void)start(&r, DAY_MS, NOON_MS);
	struct retention_rules rules = start_ahead(&r, 0, (struct items){0}, NOON_MS, HOUR_MS);
	expect(&rules, 0, NOON_MS + 3 * DAY_MS, 3 * DAY_MS - HOUR_MS);
	rolled_close(&r);
}

/* From 30 days to one that is at once; when it is 30 again, what came meanwhile goes after one. */
static void what_is_lowered_is_no_raise(UNUSED void **state)
{
	struct rolled r;
	rolled_open(&r, hour, 1);
	(void)start(&r, 0, NOON_MS);
	struct retention_rules rules = start(&r, 30 * DAY_MS, NOON_MS);
	assert_true(rules.raise.until_ms == 0);
	rules = start(&r, DAY_MS, NOON_MS + DAY_MS);
	assert_true(rules.raise.until_ms == 0);
	rules = start(&r, 30 * DAY_MS, NOON_MS + 5 * DAY_MS);
	expect(&rules, 0, NOON_MS + 7 * DAY_MS, 2 * DAY_MS);
	rules = start(&r, DAY_MS, NOON_MS + 8 * DAY_MS);
	expect(&rules, 0, NOON_MS + 8 * DAY_MS, DAY_MS);
	rules = start(&r, 0, NOON_MS + 9 * DAY_MS);
	expect(&rules, 0, NOON_MS + 9 * DAY_MS, DAY_MS);
	expect(&rules, 0, NOON_MS + 99 * DAY_MS, 90 * DAY_MS);
	rolled_close(&r);
}

/* From one day to 9, and three days later for ever: samples of three days are there. */
static void raised_twice(UNUSED void **state)
{
	struct rolled r;
	rolled_open(&r, hour, 1);
	(void)start(&r, DAY_MS, NOON_MS);
	(void)start(&r, 9 * DAY_MS, NOON_MS);
	struct retention_rules rules = start(&r, 0, NOON_MS + 3 * DAY_MS);
	expect(&rules, 0, NOON_MS + 3 * DAY_MS, 3 * DAY_MS);
	expect(&rules, 0, NOON_MS + 99 * DAY_MS, 96 * DAY_MS);
	rolled_close(&r);
}

/* Each rule by itself, while they are the same; rows are no raw samples. */
static void rules_are_raised_by_themselves(UNUSED void **state)
{
	struct rolled r;
	rolled_open(&r, hour, 1);
	(void)start_with(&r, 30 * DAY_MS, (struct items){2, {"*/a/raw:2d", "*/b/raw:9d"}}, NOON_MS);
	struct retention_rules rules =
		start_with(&r, 30 * DAY_MS,
			   (struct items){3, {"*/*/1h:90d", "*/a/raw:5d", "*/b/raw:9d"}}, NOON_MS);
	expect(&rules, 0, NOON_MS, 30 * DAY_MS);
	expect(&rules, 2, NOON_MS, 2 * DAY_MS);
	expect(&rules, 3, NOON_MS, 9 * DAY_MS);
	assert_int_equal(retention_shortest_whole_ms(&rules, NOON_MS), 2 * DAY_MS);
	assert_int_equal(retention_longest_whole_ms(&rules, NOON_MS), 30 * DAY_MS);
	rolled_close(&r);
}

/* A rule that keeps for less raises nothing; when it is taken away, its series are kept for longer,
 * and which of all they are is not known. */
static void rules_that_come_and_go(UNUSED void **state)
{
	struct rolled r;
	rolled_open(&r, hour, 1);
	(void)start_with(&r, 30 * DAY_MS, (struct items){1, {"*/a/raw:9d"}}, NOON_MS);
	struct retention_rules rules = start_with(
		&r, 30 * DAY_MS, (struct items){2, {"*/a/raw:9d", "*/b/raw:2d"}}, NOON_MS + DAY_MS);
	assert_true(rules.raise.until_ms == 0);
	rules = start_with(&r, 30 * DAY_MS, (struct items){2, {"*/a/raw:9d", "*/c/raw:1d"}},
			   NOON_MS + 2 * DAY_MS);
	expect(&rules, 0, NOON_MS + 2 * DAY_MS, 2 * DAY_MS);
	expect(&rules, 1, NOON_MS + 2 * DAY_MS, 9 * DAY_MS);
	expect(&rules, 2, NOON_MS + 2 * DAY_MS, DAY_MS);
	/* That goes on when rules change once more, for whoever may have been meant. */
	rules = start_with(&r, 30 * DAY_MS, (struct items){1, {"*/b/raw:20d"}},
			   NOON_MS + 2 * DAY_MS);
	expect(&rules, 0, NOON_MS + 2 * DAY_MS, DAY_MS);
	expect(&rules, 1, NOON_MS + 5 * DAY_MS, 3 * DAY_MS);
	rolled_close(&r);
}

static void put_cell(struct rolled *r, struct slice text)
{
	struct store_parts row = {{SLICE("retention-raw")}}, column = {{SLICE("kept")}};
	struct store_write_cond *outcome;
	struct store_write *write = store_write_new(r->h.store, 1 << 20);
	assert_int_equal(
		store_cell_put_if(write, TABLE_LEASES, &row, &column, 0, text, 0, &outcome), 0);
	harness_write(&r->h, write);
	store_write_free(write);
}

static void what_is_none_is_damage(UNUSED void **state)
{
	static const char *const texts[] = {"x",
					    "1 2 3 0",
					    "1 2 3 0 0 7",
					    "1 2 3 0 0 ",
					    "1  2 3 0 0",
					    "-1 0 0 0 0",
					    "1 2 3 0 0 7 9223372036854775807"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct rolled r;
		struct errbuf e = {""};
		rolled_open(&r, hour, 1);
		struct rollup_site site = {.store = r.h.store, .granularities = granularities};
		put_cell(&r, slice_of(texts[i]));
		assert_int_equal(stored_settings_open(&site, NOON_MS, &e), ERR_DAMAGED);
		stored_settings_release(&site.settings);
		assert_non_null(strstr(e.text, "retention-raw"));
		rolled_close(&r);
	}
}

/* What is raised holds; the next start, which finds it again, says the same of later. */
static void a_store_without_room_is_served(UNUSED void **state)
{
	struct rolled r;
	rolled_open(&r, hour, 1);
	(void)start(&r, DAY_MS, NOON_MS);
	naive_refuse_writes(r.h.store, ERR_FULL, 1);
	struct retention_rules rules = start(&r, 0, NOON_MS);
	expect(&rules, 0, NOON_MS + 9 * DAY_MS, 9 * DAY_MS);
	rules = start(&r, 0, NOON_MS + 4 * DAY_MS);
	expect(&rules, 0, NOON_MS + 9 * DAY_MS, 5 * DAY_MS);
	rolled_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_there_goes_as_it_would_have),
		cmocka_unit_test(what_was_ahead_goes_with_them),
		cmocka_unit_test(what_is_lowered_is_no_raise),
		cmocka_unit_test(raised_twice),
		cmocka_unit_test(rules_are_raised_by_themselves),
		cmocka_unit_test(rules_that_come_and_go),
		cmocka_unit_test(what_is_none_is_damage),
		cmocka_unit_test(a_store_without_room_is_served),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
