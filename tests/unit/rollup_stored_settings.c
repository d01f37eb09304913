/* Since when roll-ups are made of what is written. */
#include "rollup_harness.h"

#include "rollup/stored_settings.h"

#define NOON_MS INT64_C(1700049600000) /* 2023-11-15T12:00:00Z */

static const char *const two[] = {"5m:14d", "1h:365d"}, *const three[] = {"5m", "15m", "1h"};

static struct granularities granularities_in(const char *const *items, size_t count,
					     int64_t slot_ms)
{
	struct granularities granularities;
	struct errbuf e;
	assert_int_equal(granularities_parse(items, count, slot_ms, &granularities, &e), 0);
	return granularities;
}

static struct granularities granularities_of(const char *const *items, size_t count)
{
	return granularities_in(items, count, HOUR_MS);
}

/* What was configured when, but for granularities all as in `r`. */
static int settle(struct rolled *r, const struct granularities *granularities, int64_t now_ms,
		  struct stored_settings *settings, struct errbuf *e)
{
	struct rollup_site site = {.store = r->h.store, .granularities = *granularities};
	int err = stored_settings_open(&site, now_ms, e);
	*settings = site.settings;
	return err;
}

static void take_since(const struct stored_settings *settings, int64_t since_ms[GRANULARITIES_MAX])
{
	for (size_t g = 0; g < GRANULARITIES_MAX; g++)
		since_ms[g] = settings->since_ms[g];
}

static void open_at(struct rolled *r, const char *const *items, size_t count, int64_t now_ms,
		    int64_t since_ms[GRANULARITIES_MAX])
{
	struct granularities granularities = granularities_of(items, count);
	struct stored_settings settings;
	struct errbuf e = {""};
	assert_int_equal(settle(r, &granularities, now_ms, &settings, &e), 0);
	take_since(&settings, since_ms);
	stored_settings_release(&settings);
}

/* Nothing was ever written: all that ever will be is marked. */
static void an_empty_store_has_always_had_them(void **state)
{
	(void)state;
	struct rolled r;
	int64_t since_ms[GRANULARITIES_MAX] = {1, 1};
	rolled_open(&r, two, 2);
	open_at(&r, two, 2, NOON_MS + 1, since_ms);
	assert_true(since_ms[0] == 0 && since_ms[1] == 0);
	rolled_write(&r, "m value=1 1700000000000\n");
	open_at(&r, two, 2, NOON_MS + 1, since_ms);
	assert_true(since_ms[0] == 0 && since_ms[1] == 0);
	rolled_close(&r);
}

/* The slot in which it begins has data that nobody marked. */
static void a_new_granularity_begins_with_the_next_slot(void **state)
{
	(void)state;
	struct rolled r;
	int64_t since_ms[GRANULARITIES_MAX];
	rolled_open(&r, two, 2);
	open_at(&r, two, 2, NOON_MS, since_ms);
	rolled_write(&r, "m value=1 1700000000000\n");
	open_at(&r, three, 3, NOON_MS + 1, since_ms);
	assert_true(since_ms[0] == 0);
	assert_true(since_ms[1] == NOON_MS + HOUR_MS);
	assert_true(since_ms[2] == 0);
	open_at(&r, three, 3, NOON_MS + 5 * HOUR_MS, since_ms);
	assert_true(since_ms[1] == NOON_MS + HOUR_MS);
	rolled_close(&r);
}

static void what_was_not_configured_for_a_while_begins_again(void **state)
{
	(void)state;
	struct rolled r;
	int64_t since_ms[GRANULARITIES_MAX];
	rolled_open(&r, two, 2);
	open_at(&r, two, 2, NOON_MS, since_ms);
	rolled_write(&r, "m value=1 1700000000000\n");
	open_at(&r, two, 1, NOON_MS, since_ms);
	assert_true(since_ms[0] == 0);
	open_at(&r, two, 2, NOON_MS, since_ms);
	assert_true(since_ms[0] == 0);
	assert_true(since_ms[1] == NOON_MS + HOUR_MS);
	open_at(&r, NULL, 0, NOON_MS, since_ms);
	open_at(&r, two, 2, NOON_MS + 2 * HOUR_MS, since_ms);
	assert_true(since_ms[0] == NOON_MS + 3 * HOUR_MS);
	assert_true(since_ms[1] == NOON_MS + 3 * HOUR_MS);
	rolled_close(&r);
}

static void put_done(struct store_write *write, int err)
{
	(void)write;
	assert_int_equal(err, 0);
}

static void put_slot(struct rolled *r, struct slice width)
{
	struct store_parts row = {{SLICE("rollup-since")}}, column = {{SLICE("slot")}};
	struct store_write_cond *outcome;
	struct store_write *write = store_write_new(r->h.store, 1 << 20);
	assert_int_equal(
		store_cell_put_if(write, TABLE_LEASES, &row, &column, 0, width, 0, &outcome), 0);
	write->executor = &r->h.queue.executor;
	write->done = put_done;
	assert_int_equal(store_write_submit(write), 0);
	harness_pump(&r->h);
	store_write_free(write);
}

/* Work that took every multiple of it would never end. */
static void a_width_that_is_none_is_damage(void **state)
{
	static const char *const widths[] = {"0", "1", "x", "9223372036854775000", "-1000"};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
		struct rolled r;
		struct stored_settings settings;
		struct errbuf e = {""};
		rolled_open(&r, two, 2);
		put_slot(&r, slice_of(widths[i]));
		assert_int_equal(settle(&r, &r.site.granularities, NOON_MS, &settings, &e),
				 ERR_DAMAGED);
		assert_non_null(strstr(e.text, "row rollup-since, column slot"));
		stored_settings_release(&settings);
		rolled_close(&r);
	}
}

/* Slots of `slot_ms` from now on, and a pass of a job that has them. */
static void roll_in_slots(struct rolled *r, int64_t slot_ms, uint64_t rolled_up)
{
	static const char *const items[] = {"15m"};
	struct stored_settings settings;
	struct errbuf e = {""};
	rollup_job_free(r->job);
	r->site.granularities = granularities_in(items, 1, slot_ms);
	assert_int_equal(settle(r, &r->site.granularities, rolled_now_ms(r), &settings, &e), 0);
	stored_settings_release(&settings);
	r->job = rolled_job(r);
	rolled_set_ms(r, rolled_now_ms(r) + 4 * HOUR_MS);
	assert_int_equal(rolled_pass(r).rolled_up, rolled_up);
	assert_int_equal(rolled_pass(r).slots, 0);
}

/* An hour's mark stands for its two halves, and for the two hours that it lies in. 21:00 and 21:45
 * of 2023-11-14; the two hours begin at 20:00, so rows are told from there. */
static void slots_of_another_width_take_over_the_marks(void **state)
{
	static const char *const items[] = {"15m"};
	(void)state;
	struct rolled r;
	int64_t since_ms[GRANULARITIES_MAX];
	for (int64_t width_ms = HOUR_MS / 2; width_ms <= 2 * HOUR_MS; width_ms *= 4) {
		int64_t eight_ms = HARNESS_NOW_MS / (2 * HOUR_MS) * (2 * HOUR_MS) - 2 * HOUR_MS;
		char lines[128];
		rolled_open(&r, items, 1);
		open_at(&r, items, 1, rolled_now_ms(&r), since_ms);
		snprintf(lines, sizeof(lines), "m value=1 %lld\nm value=2 %lld\n",
			 (long long)(eight_ms + HOUR_MS), (long long)(eight_ms + 105 * MINUTE_MS));
		rolled_write(&r, lines);
		roll_in_slots(&r, width_ms, width_ms < HOUR_MS ? 2 : 1);
		rolled_expect(&r, "m", 15 * MINUTE_MS, eight_ms,
			      "60:min=1.0,max=1.0,sum=1.0,count=1,first=1.0,last=1.0 "
			      "105:min=2.0,max=2.0,sum=2.0,count=1,first=2.0,last=2.0");
		rolled_close(&r);
	}
}

/* Late samples are refused, or those that are older than after_ms are kept; raw samples are kept
 * for as much longer as slots of an hour and a quiet time of five minutes take. */
static struct late_samples late_after(struct rolled *r, int64_t after_ms, int64_t kept_ms)
{
	const int64_t more_ms = HOUR_MS + 10 * MINUTE_MS;
	struct rollup_site site = {
		.store = r->h.store,
		.granularities = r->site.granularities,
		.retention = {.levels_ms = {after_ms ? after_ms + more_ms : 0},
			      .keeps_late = after_ms != 0,
			      .late.kept_ms = kept_ms},
		.quiet_ms = 5 * MINUTE_MS,
	};
	struct errbuf e;
	assert_int_equal(stored_settings_open(&site, NOON_MS, &e), 0);
	stored_settings_release(&site.settings);
	return site.retention.late;
}

/* Readers look for late points wherever some may lie: also when raw data is kept for longer by now,
 * when late ones are refused, or nothing is rolled up for a while. */
static void how_young_late_points_may_be_is_remembered(void **state)
{
	(void)state;
	struct rolled r;
	rolled_open(&r, two, 2);
	assert_true(late_after(&r, 0, 0).after_ms == 0);
	assert_true(late_after(&r, 5 * HOUR_MS, 0).after_ms == 5 * HOUR_MS);
	assert_true(late_after(&r, 9 * HOUR_MS, 0).after_ms == 5 * HOUR_MS);
	assert_true(late_after(&r, 2 * HOUR_MS, 0).after_ms == 2 * HOUR_MS);
	r.site.granularities.count = 0;
	assert_true(late_after(&r, 0, 0).after_ms == 2 * HOUR_MS);
	r.site.granularities.count = 2;
	assert_true(late_after(&r, 0, 0).after_ms == 2 * HOUR_MS);
	rolled_close(&r);
}

/* What is kept for a year is of the class of 400 days: if it is to be three years some time, what
 * was written before goes after 400 days, and rows would be made of what is left. Of the class of
 * 35 days the same. */
static void how_soon_late_points_may_go_is_remembered(void **state)
{
	(void)state;
	const int64_t day_ms = 24 * HOUR_MS;
	struct rolled r;
	rolled_open(&r, two, 2);
	assert_true(late_after(&r, 0, 14 * day_ms).kept_ms == 14 * day_ms);
	assert_true(late_after(&r, HOUR_MS, 0).kept_ms == 0);
	assert_true(late_after(&r, HOUR_MS, 365 * day_ms).kept_ms == 365 * day_ms);
	assert_true(late_after(&r, HOUR_MS, 3 * 365 * day_ms).kept_ms == 400 * day_ms);
	assert_true(late_after(&r, HOUR_MS, 0).kept_ms == 400 * day_ms);
	assert_true(late_after(&r, HOUR_MS, 14 * day_ms).kept_ms == 14 * day_ms);
	assert_true(late_after(&r, 0, 365 * day_ms).kept_ms == 35 * day_ms);
	rolled_close(&r);
}

static struct rollup_site site_of_raw(struct rolled *r, int64_t raw_ms)
{
	return (struct rollup_site){.store = r->h.store,
				    .clock = &r->h.clock.clock,
				    .granularities = r->site.granularities,
				    .retention.levels_ms = {raw_ms},
				    .quiet_ms = 5 * MINUTE_MS,
				    .ahead_ms = HOUR_MS};
}

/* The settings of rules that hold from a time within ten minutes. */
static void change_raw(struct rolled *r, struct rollup_site *site, int64_t raw_ms)
{
	struct retention_rules rules = {.levels_ms = {raw_ms}};
	struct errbuf e;
	assert_int_equal(stored_settings_change(site, &rules, &r->h.queue, &e), 0);
	rollup_site_change_rules(site, &rules);
}

/* Two hours, then five: until ten minutes and an hour later, samples count as kept for two. A start
 * finds that. One hour is less, and holds at once. */
static void rules_change_while_the_store_is_open(void **state)
{
	(void)state;
	struct rolled r;
	struct errbuf e;
	rolled_open(&r, two, 2);
	struct rollup_site site = site_of_raw(&r, 2 * HOUR_MS);
	int64_t now_ms = clock_age_ms(site.clock), until_ms = now_ms + 70 * MINUTE_MS;
	assert_int_equal(stored_settings_open(&site, now_ms, &e), 0);
	change_raw(&r, &site, 5 * HOUR_MS);
	assert_ptr_not_equal(rollup_site_rules(&site), &site.retention);
	assert_true(rollup_site_rules(&site)->raise.until_ms == until_ms);
	assert_true(rollup_site_rules(&site)->raise.kept_ms == 2 * HOUR_MS);
	assert_true(rollup_site_longest_ms(&site) == 2 * HOUR_MS);
	struct rollup_site next = site_of_raw(&r, 5 * HOUR_MS);
	assert_int_equal(stored_settings_open(&next, now_ms + HOUR_MS, &e), 0);
	assert_true(next.retention.raise.until_ms == until_ms);
	change_raw(&r, &next, HOUR_MS);
	assert_true(rollup_site_longest_ms(&next) == HOUR_MS);
	assert_true(rollup_site_changes_left(&next) == SITE_RULES_MAX - 1);
	rollup_site_close(&site);
	rollup_site_close(&next);
	rolled_close(&r);
}

static void changed_rules_are_refused_by_a_store_without_room(void **state)
{
	(void)state;
	struct rolled r;
	struct errbuf e;
	rolled_open(&r, two, 2);
	struct rollup_site site = site_of_raw(&r, 2 * HOUR_MS);
	struct retention_rules rules = {.levels_ms = {5 * HOUR_MS}};
	assert_int_equal(stored_settings_open(&site, clock_age_ms(site.clock), &e), 0);
	naive_refuse_writes(r.h.store, ERR_FULL, 1);
	assert_int_equal(stored_settings_change(&site, &rules, &r.h.queue, &e), ERR_FULL);
	assert_non_null(strstr(e.text, "how long samples were kept cannot be noted: "));
	rollup_site_close(&site);
	rolled_close(&r);
}

/* Up to when rows of `metric` may be of the other kind. */
static int64_t recount_of(struct rolled *r, const char *const *suffixes, size_t count,
			  int64_t now_ms, const char *metric)
{
	struct rollup_site site = {.store = r->h.store,
				   .granularities = r->site.granularities,
				   .counter_suffixes = suffixes,
				   .counter_suffix_count = count};
	struct errbuf e;
	assert_int_equal(stored_settings_open(&site, now_ms, &e), 0);
	int64_t before_ms = stored_settings_recount_ms(&site.settings, slice_of(metric));
	stored_settings_release(&site.settings);
	return before_ms;
}

/* Other ends of names than at the last start, or than ever before: rows of such metrics are of the
 * other kind up to the end of this slot. Those of other metrics are as they were. */
static void which_metrics_were_counters_is_remembered(void **state)
{
	static const char *const total[] = {"_total"}, *const both[] = {"bytes", "_total"};
	static const char *const turned[] = {"_total", "bytes"};
	(void)state;
	struct rolled r;
	rolled_open(&r, two, 2);
	assert_true(recount_of(&r, both, 2, NOON_MS, "net_bytes") == 0);
	assert_true(recount_of(&r, total, 1, NOON_MS, "net_bytes") == 0); /* nothing is written */
	rolled_write(&r, "m value=1 1700000000000\n");
	assert_true(recount_of(&r, total, 1, NOON_MS, "net_bytes") == 0);
	assert_true(recount_of(&r, both, 2, NOON_MS + 1, "net_bytes") == NOON_MS + HOUR_MS);
	assert_true(recount_of(&r, turned, 2, NOON_MS + 2 * HOUR_MS, "net_bytes") ==
		    NOON_MS + HOUR_MS);
	assert_true(recount_of(&r, turned, 2, NOON_MS + 2 * HOUR_MS, "x_total") == 0);
	assert_true(recount_of(&r, turned, 2, NOON_MS + 2 * HOUR_MS, "bytes_sent") == 0);
	assert_true(recount_of(&r, NULL, 0, NOON_MS + 2 * HOUR_MS, "x_total") ==
		    NOON_MS + 3 * HOUR_MS);
	assert_true(recount_of(&r, total, 1, NOON_MS + 5 * HOUR_MS, "net_bytes") ==
		    NOON_MS + 6 * HOUR_MS);
	assert_true(recount_of(&r, total, 1, NOON_MS + 5 * HOUR_MS, "cpu") == 0);
	rolled_close(&r);
}

static void a_store_that_refuses_says_so(void **state)
{
	(void)state;
	struct rolled r;
	struct errbuf e = {""};
	struct stored_settings settings;
	rolled_open(&r, two, 2);
	naive_refuse_writes(r.h.store, ERR_BUSY, 1);
	assert_int_equal(settle(&r, &r.site.granularities, NOON_MS, &settings, &e), ERR_BUSY);
	assert_non_null(strstr(e.text, "settings of the last start"));
	stored_settings_release(&settings);
	rolled_close(&r);
}

/* It can be read all the same; the next start asks again. */
static void a_store_without_room_is_served(void **state)
{
	(void)state;
	struct rolled r;
	int64_t since_ms[GRANULARITIES_MAX] = {1, 1};
	rolled_open(&r, two, 2);
	naive_refuse_writes(r.h.store, ERR_FULL, 1);
	open_at(&r, two, 2, NOON_MS, since_ms);
	assert_true(since_ms[0] == 0 && since_ms[1] == 0);
	rolled_write(&r, "m value=1 1700000000000\n");
	open_at(&r, two, 2, NOON_MS, since_ms);
	assert_true(since_ms[0] == NOON_MS + HOUR_MS);
	rolled_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_store_has_always_had_them),
		cmocka_unit_test(a_new_granularity_begins_with_the_next_slot),
		cmocka_unit_test(what_was_not_configured_for_a_while_begins_again),
		cmocka_unit_test(slots_of_another_width_take_over_the_marks),
		cmocka_unit_test(a_width_that_is_none_is_damage),
		cmocka_unit_test(how_young_late_points_may_be_is_remembered),
		cmocka_unit_test(how_soon_late_points_may_go_is_remembered),
		cmocka_unit_test(rules_change_while_the_store_is_open),
		cmocka_unit_test(changed_rules_are_refused_by_a_store_without_room),
		cmocka_unit_test(which_metrics_were_counters_is_remembered),
		cmocka_unit_test(a_store_that_refuses_says_so),
		cmocka_unit_test(a_store_without_room_is_served),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
