/* When roll-ups are taken for those of all raw data: after a rebuild, and when nothing can be
 * missing. */
#include "rollup_harness.h"

#include "rollup/backfill.h"
#include "rollup/stored_settings.h"

#define NOON_MS INT64_C(1700049600000) /* 2023-11-15T12:00:00Z */
#define DAY_MS  (24 * HOUR_MS)

static const char *const one[] = {"1h"}, *const two[] = {"5m", "1h"};

/* A server that was started with granularities when there was data already. */
struct server {
	struct rolled r;
	struct rollup_site site;
	const char *counters; /* the end of their names */
	struct backfill *backfill;
};

static void start(struct server *s, const char *const *items, size_t count)
{
	struct errbuf e = {""};
	assert_int_equal(granularities_parse(items, count, HOUR_MS, &s->site.granularities, &e), 0);
	s->site.counter_suffixes = &s->counters;
	s->site.counter_suffix_count = s->counters != NULL;
	assert_int_equal(stored_settings_open(&s->site, rolled_now_ms(&s->r), &e), 0);
	s->backfill = backfill_new(&s->site);
}

static void stop(struct server *s)
{
	backfill_free(s->backfill);
	stored_settings_release(&s->site.settings);
}

/* At 12:10 the server is started with items, and has data of an hour before. */
static void server_open(struct server *s, const char *const *items, size_t count, int64_t raw_ms)
{
	*s = (struct server){0};
	rolled_open(&s->r, two, 2);
	s->site = (struct rollup_site){.store = s->r.h.store,
				       .clock = &s->r.h.clock.clock,
				       .quiet_ms = 5 * MINUTE_MS,
				       .retention.levels_ms = {raw_ms}};
	rolled_set_ms(&s->r, NOON_MS + 10 * MINUTE_MS);
	rolled_write(&s->r, "m value=1 1700046000000\n");
	start(s, items, count);
	for (size_t g = 0; g < count; g++)
		assert_true(s->site.settings.since_ms[g] == NOON_MS + HOUR_MS);
}

static void server_close(struct server *s)
{
	stop(s);
	rolled_close(&s->r);
}

/* A pass that leaves no mark of earlier times. */
static void pass(struct server *s, int64_t before_ms)
{
	backfill_begin_pass(s->backfill);
	backfill_end_pass(s->backfill, &s->r.h.queue, before_ms);
}

static void rebuild(struct server *s)
{
	backfill_rebuilt(s->backfill, &s->r.h.queue);
}

static int64_t since(const struct server *s, size_t granularity)
{
	return s->site.settings.since_ms[granularity];
}

static void nothing_changes_without_a_rebuild(void **state)
{
	(void)state;
	struct server s;
	server_open(&s, one, 1, 0);
	pass(&s, NOON_MS + HOUR_MS);
	pass(&s, NOON_MS + HOUR_MS);
	assert_true(since(&s, 0) == NOON_MS + HOUR_MS);
	server_close(&s);
}

/* What queries know of marks is of the last pass that is over; one that runs may have listed the
 * slots before. */
static void a_pass_that_had_begun_before_says_nothing(void **state)
{
	(void)state;
	struct server s;
	server_open(&s, two, 2, 0);
	pass(&s, NOON_MS);
	backfill_begin_pass(s.backfill);
	rebuild(&s);
	assert_true(since(&s, 0) == NOON_MS + HOUR_MS);
	backfill_end_pass(s.backfill, &s.r.h.queue, NOON_MS);
	assert_true(since(&s, 0) == NOON_MS + HOUR_MS);
	pass(&s, NOON_MS - HOUR_MS);
	assert_true(since(&s, 0) == 0);
	assert_true(s.site.settings.since_ms[1] == 0);
	server_close(&s);
}

/* It is kept, and so is what is still missing. */
static void a_restart_goes_on_where_it_was(void **state)
{
	(void)state;
	struct server s;
	server_open(&s, two, 2, 0);
	rebuild(&s);
	assert_true(since(&s, 0) == NOON_MS + HOUR_MS);
	stop(&s);
	start(&s, two, 2);
	assert_true(s.site.settings.since_ms[0] == NOON_MS + HOUR_MS);
	assert_true(since(&s, 0) == NOON_MS + HOUR_MS);
	pass(&s, NOON_MS);
	assert_true(since(&s, 0) == 0);
	stop(&s);
	start(&s, two, 2);
	assert_true(s.site.settings.since_ms[0] == 0 && s.site.settings.since_ms[1] == 0);
	server_close(&s);
}

/* The marks were worked on when it was not there. */
static void a_granularity_that_came_after_the_rebuild_is_not_of_all(void **state)
{
	(void)state;
	struct server s;
	server_open(&s, one, 1, 0);
	rebuild(&s);
	assert_true(since(&s, 0) == NOON_MS + HOUR_MS);
	stop(&s);
	rolled_set_ms(&s.r, NOON_MS + 5 * HOUR_MS);
	start(&s, two, 2);
	pass(&s, NOON_MS + 5 * HOUR_MS);
	assert_true(since(&s, 1) == 0);
	assert_true(s.site.settings.since_ms[0] == NOON_MS + 6 * HOUR_MS);
	server_close(&s);
}

/* Raw data is kept for a day, and twice five minutes are needed to work: at 13:05, when the marks
 * are worked on, the slot from 13:00 of the day before is closed. Until 14:00 there is raw data of
 * it, which nobody rolls up. */
static void what_was_closed_has_to_be_gone(void **state)
{
	(void)state;
	struct server s;
	server_open(&s, one, 1, DAY_MS);
	rebuild(&s);
	pass(&s, NOON_MS);
	assert_true(since(&s, 0) == NOON_MS + HOUR_MS);
	rolled_set_ms(&s.r, NOON_MS + 65 * MINUTE_MS);
	pass(&s, NOON_MS + HOUR_MS);
	assert_true(since(&s, 0) == NOON_MS + HOUR_MS);
	rolled_set_ms(&s.r, NOON_MS + 2 * HOUR_MS - 1);
	pass(&s, NOON_MS);
	assert_true(since(&s, 0) == NOON_MS + HOUR_MS);
	rolled_set_ms(&s.r, NOON_MS + 2 * HOUR_MS);
	pass(&s, NOON_MS);
	assert_true(since(&s, 0) == 0);
	server_close(&s);
}

/* A rule has some metrics kept for a day, all others are kept for ever. */
static void the_longest_and_the_shortest_are_looked_at(void **state)
{
	static const char *const rules[] = {"default/short.*/raw:1d"};
	(void)state;
	struct server s;
	struct errbuf e = {""};
	server_open(&s, one, 1, 0);
	assert_int_equal(
		retention_parse(rules, 1, &s.site.granularities, HOUR_MS, &s.site.retention, &e),
		0);
	rebuild(&s);
	rolled_set_ms(&s.r, NOON_MS + 65 * MINUTE_MS);
	pass(&s, NOON_MS);
	assert_true(since(&s, 0) == NOON_MS + HOUR_MS);
	pass(&s, NOON_MS + HOUR_MS);
	assert_true(since(&s, 0) == NOON_MS + HOUR_MS);
	rolled_set_ms(&s.r, NOON_MS + 2 * HOUR_MS);
	pass(&s, NOON_MS);
	assert_true(since(&s, 0) == 0);
	server_close(&s);
}

static void which_rebuild_is_one_of_all(void **state)
{
	(void)state;
	struct server s;
	server_open(&s, one, 1, DAY_MS);
	/* 12:10 of the day before and twice the quiet time: the slot from 13:00 is open. */
	int64_t open_ms = NOON_MS - DAY_MS + HOUR_MS;
	assert_true(backfill_is_all(s.backfill, open_ms, NOON_MS + HOUR_MS));
	assert_true(backfill_is_all(s.backfill, 0, NOON_MS + 9 * HOUR_MS));
	assert_false(backfill_is_all(s.backfill, open_ms + 1, NOON_MS + HOUR_MS));
	assert_false(backfill_is_all(s.backfill, open_ms, NOON_MS + HOUR_MS - 1));
	server_close(&s);
	server_open(&s, one, 1, 0);
	assert_false(backfill_is_all(s.backfill, 1, NOON_MS + HOUR_MS));
	assert_true(backfill_is_all(s.backfill, 0, NOON_MS + HOUR_MS));
	server_close(&s);
}

/* What is refused now is written later; what never will be holds until the next start. */
static void a_store_that_refuses(void **state)
{
	(void)state;
	struct server s;
	server_open(&s, one, 1, 0);
	naive_refuse_reads(s.r.h.store, ERR_BUSY, 9);
	rebuild(&s);
	pass(&s, NOON_MS);
	assert_true(since(&s, 0) == NOON_MS + HOUR_MS);
	naive_refuse_reads(s.r.h.store, 0, 0);
	naive_refuse_writes(s.r.h.store, ERR_BUSY, 2);
	pass(&s, NOON_MS);
	assert_true(since(&s, 0) == NOON_MS + HOUR_MS);
	naive_fail_writes(s.r.h.store, ERR_TIMEOUT, 2);
	pass(&s, NOON_MS);
	assert_true(since(&s, 0) == NOON_MS + HOUR_MS);
	pass(&s, NOON_MS);
	assert_true(since(&s, 0) == 0);
	stop(&s);
	start(&s, one, 1);
	assert_true(s.site.settings.since_ms[0] == 0);
	server_close(&s);
	server_open(&s, one, 1, 0);
	rebuild(&s);
	naive_refuse_writes(s.r.h.store, ERR_FULL, 9);
	pass(&s, NOON_MS);
	assert_true(since(&s, 0) == 0);
	naive_refuse_writes(s.r.h.store, 0, 0);
	stop(&s);
	start(&s, one, 1);
	assert_true(s.site.settings.since_ms[0] == NOON_MS + HOUR_MS);
	server_close(&s);
}

static int64_t recount(const struct server *s)
{
	return stored_settings_recount_ms(&s->site.settings, SLICE("reads"));
}

/* Metrics become counters at 12:10, and gauges again a day later. Each change has queries take raw
 * data until a rebuild that began after it. */
static void metrics_of_another_kind(void **state)
{
	(void)state;
	struct server s;
	server_open(&s, one, 1, 0);
	rebuild(&s);
	pass(&s, NOON_MS + HOUR_MS);
	assert_true(since(&s, 0) == 0 && recount(&s) == 0);
	stop(&s);
	s.counters = "reads";
	start(&s, one, 1);
	pass(&s, NOON_MS + HOUR_MS);
	assert_true(since(&s, 0) == 0 && recount(&s) == NOON_MS + HOUR_MS);
	assert_false(backfill_is_all(s.backfill, 0, NOON_MS + HOUR_MS - 1));
	assert_true(backfill_is_all(s.backfill, 0, NOON_MS + HOUR_MS));
	rebuild(&s);
	stop(&s);
	start(&s, one, 1); /* its marks are noted, and not yet worked on */
	assert_true(since(&s, 0) == 0 && recount(&s) == NOON_MS + HOUR_MS);
	stop(&s);
	rolled_set_ms(&s.r, NOON_MS + DAY_MS + 10 * MINUTE_MS);
	s.counters = NULL;
	start(&s, one, 1); /* that rebuild was of counters */
	pass(&s, NOON_MS + DAY_MS);
	assert_true(since(&s, 0) == 0 && recount(&s) == NOON_MS + DAY_MS + HOUR_MS);
	rebuild(&s);
	assert_true(since(&s, 0) == 0 && recount(&s) == NOON_MS + DAY_MS + HOUR_MS);
	pass(&s, NOON_MS + DAY_MS);
	assert_true(since(&s, 0) == 0 && recount(&s) == 0);
	stop(&s);
	start(&s, one, 1);
	assert_true(recount(&s) == 0);
	server_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_changes_without_a_rebuild),
		cmocka_unit_test(a_pass_that_had_begun_before_says_nothing),
		cmocka_unit_test(a_restart_goes_on_where_it_was),
		cmocka_unit_test(a_granularity_that_came_after_the_rebuild_is_not_of_all),
		cmocka_unit_test(what_was_closed_has_to_be_gone),
		cmocka_unit_test(the_longest_and_the_shortest_are_looked_at),
		cmocka_unit_test(which_rebuild_is_one_of_all),
		cmocka_unit_test(a_store_that_refuses),
		cmocka_unit_test(metrics_of_another_kind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
