/* Roll-ups from the door to the rows: the document's examples, what is late, what breaks off. */
#include "rollup_harness.h"

#include "rollup_drivers.h"

#include "base/clock_watch.h"
#include "base/fault.h"
#include "base/stats.h"

static struct rolled *begin(struct rolled *r, const char *const *granularities, size_t count)
{
	rolled_open(r, granularities, count);
	rolled_set_ms(r, AT(50, 0));
	return r;
}

/* Texts are refused. */
static void write_partly(struct rolled *r, const char *lines)
{
	struct ingest_request *request = rolled_send(r, lines);
	assert_int_equal(request->err, 0);
	ingest_request_free(request);
}

static void write_example(struct rolled *r)
{
	rolled_put(r, "m,h=a", "1.2", AT(1, 23));
	rolled_put(r, "m,h=a", "1.5", AT(16, 11));
	rolled_put(r, "m,h=a", "1.1", AT(31, 21));
	rolled_put(r, "m,h=a", "3.4", AT(47, 1));
}

/* The document's example: the hour has sum 7.2, min 1.1, max 3.4, average 1.8 (7.2 / 4). */
static void the_documents_example(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r, quarter_and_hour, 2);
	write_example(&r);
	struct rollup_pass pass = rolled_pass_at(&r, AT(65, 0));
	assert_int_equal(pass.rolled_up, 1);
	assert_int_equal(pass.rows, 5);
	assert_int_equal(pass.err, 0);
	assert_true(pass.oldest_slot_s == INT64_MAX);
	rolled_expect(&r, "m,h=a", 15 * MINUTE_MS, TEN_MS,
		      "0:min=1.2,max=1.2,sum=1.2,count=1,first=1.2,last=1.2 "
		      "15:min=1.5,max=1.5,sum=1.5,count=1,first=1.5,last=1.5 "
		      "30:min=1.1,max=1.1,sum=1.1,count=1,first=1.1,last=1.1 "
		      "45:min=3.4,max=3.4,sum=3.4,count=1,first=3.4,last=3.4");
	rolled_expect(&r, "m,h=a", HOUR_MS, TEN_MS,
		      "0:min=1.1,max=3.4,sum=7.2,count=4,first=1.2,last=3.4");
	assert_int_equal(rolled_pass(&r).slots, 0);
	rolled_close(&r);
}

/* The document's program began its maxima at the smallest positive double. */
static void negative_maxima(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r, quarter_and_hour, 2);
	rolled_write(&r, "m,h=a value=-5 1598263200000\nm,h=a value=-2.5 1598263201000\n"
			 "m,h=a value=-7 1598264100000\n");
	rolled_pass_at(&r, AT(65, 0));
	rolled_expect(&r, "m,h=a", 15 * MINUTE_MS, TEN_MS,
		      "0:min=-5.0,max=-2.5,sum=-7.5,count=2,first=-5.0,last=-2.5 "
		      "15:min=-7.0,max=-7.0,sum=-7.0,count=1,first=-7.0,last=-7.0");
	rolled_expect(&r, "m,h=a", HOUR_MS, TEN_MS,
		      "0:min=-7.0,max=-2.5,sum=-14.5,count=3,first=-5.0,last=-7.0");
	rolled_close(&r);
}

/* The document's second example: 1.2, 2.5, 3.1, 1.1 have sum 7.9. */
static void a_gauge_of_four(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r, quarter_and_hour, 1);
	rolled_write(&r, "g value=1.2 1598263200000\ng value=2.5 1598263210000\n"
			 "g value=3.1 1598263220000\ng value=1.1 1598263230000\n");
	rolled_pass_at(&r, AT(65, 0));
	rolled_expect(&r, "g", 15 * MINUTE_MS, TEN_MS,
		      "0:min=1.1,max=3.1,sum=7.9,count=4,first=1.2,last=1.1");
	rolled_close(&r);
}

/* 10, 25, 5 (begun again), 11 in one quarter, 20 in the next: it grew 15 + 5 + 6 in the first, by
 * nothing inside the second, and by 9 between the two. */
static void a_counter_grows_and_begins_again(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r, quarter_and_hour, 2);
	rolled_write(&r, "c_total value=10u 1598263200000\nc_total value=25u 1598263210000\n"
			 "c_total value=5u 1598263220000\nc_total value=11u 1598263230000\n"
			 "c_total value=20u 1598264100000\n");
	rolled_pass_at(&r, AT(65, 0));
	rolled_expect(
		&r, "c_total", 15 * MINUTE_MS, TEN_MS,
		"0:sum=51,increase=26,first=10,last=11 15:sum=20,increase=0,first=20,last=20");
	rolled_expect(&r, "c_total", HOUR_MS, TEN_MS, "0:sum=71,increase=35,first=10,last=20");
	rolled_close(&r);
}

static void a_slot_waits_for_its_end_and_for_quiet(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r, quarter_and_hour, 2);
	write_example(&r);
	struct rollup_pass pass = rolled_pass_at(&r, AT(64, 59) + 999);
	assert_int_equal(pass.rolled_up, 0);
	assert_true(pass.oldest_slot_s == TEN_MS / 1000);
	assert_true(pass.next_ready_ms == AT(65, 0));
	/* It is of ten o'clock, but nothing is late. */
	assert_int_equal(stat_get(STAT_rollup_behind_seconds), 0);
	/* A late one begins the quiet time again, for its series alone. */
	rolled_put(&r, "m,h=b", "1", AT(59, 0));
	pass = rolled_pass_at(&r, AT(69, 59) + 998);
	assert_int_equal(pass.rolled_up, 1);
	assert_true(pass.next_ready_ms == AT(69, 59) + 999);
	rolled_expect(&r, "m,h=b", HOUR_MS, TEN_MS, "");
	rolled_expect(&r, "m,h=a", HOUR_MS, TEN_MS,
		      "0:min=1.1,max=3.4,sum=7.2,count=4,first=1.2,last=3.4");
	assert_int_equal(rolled_pass_at(&r, AT(69, 59) + 999).rolled_up, 1);
	rolled_expect(&r, "m,h=b", HOUR_MS, TEN_MS,
		      "0:min=1.0,max=1.0,sum=1.0,count=1,first=1.0,last=1.0");
	rolled_close(&r);
}

static void a_late_point_is_taken_in(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r, quarter_and_hour, 2);
	write_example(&r);
	rolled_pass_at(&r, AT(65, 0));
	rolled_set_ms(&r, AT(600, 0));
	rolled_put(&r, "m,h=a", "9", AT(20, 0));
	assert_int_equal(rolled_pass_at(&r, AT(605, 0)).rolled_up, 1);
	rolled_expect(&r, "m,h=a", HOUR_MS, TEN_MS,
		      "0:min=1.1,max=9.0,sum=16.2,count=5,first=1.2,last=3.4");
	rolled_close(&r);
}

/* Between the read of the raw data and the removal of the mark. */
static void a_point_between_read_and_removal_is_not_lost(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r, quarter_and_hour, 2);
	write_example(&r);
	rolled_set_ms(&r, AT(65, 0));
	fault_arm("rollup_finish", FAULT_ERROR, 1, 1);
	struct rollup_pass pass = rolled_pass(&r);
	fault_disarm_all();
	/* The rows are written, the mark stands; what comes now was not in them. */
	assert_int_equal(pass.err, ERR_FAULT);
	assert_true(pass.ready_since_ms == AT(65, 0));
	rolled_put(&r, "m,h=a", "9", AT(20, 0));
	pass = rolled_pass_at(&r, AT(71, 0));
	assert_int_equal(pass.rolled_up, 1);
	assert_true(pass.ready_since_ms == INT64_MAX);
	assert_int_equal(stat_get(STAT_rollup_behind_seconds), 0);
	rolled_expect(&r, "m,h=a", HOUR_MS, TEN_MS,
		      "0:min=1.1,max=9.0,sum=16.2,count=5,first=1.2,last=3.4");
	assert_int_equal(rolled_pass(&r).slots, 0);
	rolled_close(&r);
}

/* What was not looked at was said to be rolled up. */
static void a_pass_that_is_stopped_does_not_say_that_all_is_done(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r, quarter_and_hour, 2);
	write_example(&r);
	rolled_set_ms(&r, AT(65, 0));
	/* Its lease ends now. */
	struct rollup_pass pass =
		rollup_job_run(r.job, &r.h.queue, &r.own, rolled_now_ms(&r), rolled_now_ms(&r));
	assert_int_equal(pass.err, 0);
	assert_int_equal(pass.rolled_up, 0);
	assert_true(pass.oldest_slot_s <= TEN_MS / 1000);
	assert_true(pass.ready_since_ms == AT(65, 0));
	/* A second one that is broken off ten minutes later: it is behind since the first. */
	rolled_set_ms(&r, AT(75, 0));
	struct task_queue stopped;
	task_queue_init(&stopped);
	task_queue_stop(&stopped);
	pass = rollup_job_run(r.job, &stopped, &r.own, rolled_now_ms(&r), INT64_MAX);
	task_queue_release(&stopped);
	assert_int_equal(pass.err, ERR_CANCELLED);
	assert_int_equal(stat_get(STAT_rollup_behind_seconds), 600);
	assert_int_equal(rolled_pass(&r).rolled_up, 1);
	assert_int_equal(stat_get(STAT_rollup_behind_seconds), 0);
	rolled_close(&r);
}

/* A late touch was remembered by the line's key alone: a field that the key learned of in another
 * slot was taken for touched, too. */
static void a_late_touch_says_nothing_of_a_field_that_came_since(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r, quarter_and_hour, 2);
	rolled_set_ms(&r, AT(200, 0));
	write_partly(&r, "m value=1,x=\"text\" 1598263201000\n");
	write_partly(&r, "m value=\"text\",x=2 1598274000000\n");
	write_partly(&r, "m value=\"text\",x=3 1598263202000\n");
	rolled_pass_at(&r, AT(300, 0));
	rolled_expect(&r, "m_x", HOUR_MS, TEN_MS,
		      "0:min=3.0,max=3.0,sum=3.0,count=1,first=3.0,last=3.0 "
		      "180:min=2.0,max=2.0,sum=2.0,count=1,first=2.0,last=2.0");
	rolled_close(&r);
}

/* The touch is a minute old, which is a fifth of the quiet time; four minutes later the series is
 * taken for quiet, so that is too late by a millisecond. */
static void a_sample_that_is_handed_over_when_its_series_is_quiet_is_refused(void **state)
{
	(void)state;
	for (int64_t late_ms = 0; late_ms < 2; late_ms++) {
		struct rolled r;
		begin(&r, quarter_and_hour, 2);
		rolled_set_ms(&r, AT(150, 0));
		rolled_put(&r, "m", "1", TEN_MS);
		rolled_set_ms(&r, AT(151, 0));
		struct ingest_request *request = harness_request(&r.h);
		struct line_feed feed;
		line_feed_init(&feed, request, (struct slice){NULL, 0}, LINE_MS);
		line_feed_piece(&feed, SLICE("m value=2 1598263201000\n"));
		line_feed_end(&feed);
		rolled_set_ms(&r, AT(155, 0) - 1 + late_ms);
		line_feed_release(&feed);
		harness_finish(&r.h, request);
		assert_int_equal(ingest_status(request), late_ms ? 503 : 204);
		ingest_request_free(request);
		rolled_pass_at(&r, AT(155, 0));
		rolled_expect(&r, "m", HOUR_MS, TEN_MS,
			      late_ms ? "0:min=1.0,max=1.0,sum=1.0,count=1,first=1.0,last=1.0"
				      : "0:min=1.0,max=2.0,sum=3.0,count=2,first=1.0,last=2.0");
		rolled_close(&r);
	}
}

/* What it had sent lay until the end, and by then it was too late for marks to hold. */
static void who_sends_a_line_a_minute_is_not_refused_in_the_end(void **state)
{
	(void)state;
	struct rolled r;
	/* There the clock would go on by a minute while Redis is asked. */
	if (driver.in_redis)
		return;
	begin(&r, quarter_and_hour, 2);
	struct ingest_request *request = harness_request(&r.h);
	struct line_feed feed;
	line_feed_init(&feed, request, (struct slice){NULL, 0}, LINE_MS);
	for (int64_t minute = 0; minute < 12; minute++) {
		char line[64];
		snprintf(line, sizeof(line), "m value=1 %lld\n", (long long)(TEN_MS + minute));
		rolled_set_ms(&r, AT(50 + minute, 0));
		line_feed_piece(&feed, slice_of(line));
		ingest_tick(r.h.ingest);
		harness_pump(&r.h);
	}
	line_feed_end(&feed);
	line_feed_release(&feed);
	harness_finish(&r.h, request);
	assert_int_equal(ingest_status(request), 204);
	ingest_request_free(request);
	rolled_pass_at(&r, AT(75, 0));
	rolled_expect(&r, "m", HOUR_MS, TEN_MS,
		      "0:min=1.0,max=1.0,sum=12.0,count=12,first=1.0,last=1.0");
	rolled_close(&r);
}

/* Gauges and counters of one batch, each read in several pieces: none is counted twice. The counter
 * goes 0, 2, 4, 6, 8 in each minute; the gauges are their host's number. */
static void what_is_read_in_pieces_counts_once(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r, quarter_and_hour, 2);
	rollup_job_free(r.job);
	r.site.slice_points = 2;
	r.job = rolled_job(&r);
	for (int i = 0; i < 5; i++) {
		char value[] = {(char)('0' + 2 * i), 'u', 0};
		rolled_put(&r, "c_total,h=a", value, AT(i, 0));
		rolled_put(&r, "c_total,h=b", value, AT(i, 0));
		rolled_put(&r, "g,h=a", "1i", AT(i, 0));
		rolled_put(&r, "g,h=b", "2i", AT(i, 0));
		rolled_put(&r, "g,h=c", "3i", AT(i, 0));
	}
	assert_int_equal(rolled_pass_at(&r, AT(65, 0)).rolled_up, 5);
	rolled_expect(&r, "c_total,h=a", HOUR_MS, TEN_MS, "0:sum=20,increase=8,first=0,last=8");
	rolled_expect(&r, "c_total,h=b", HOUR_MS, TEN_MS, "0:sum=20,increase=8,first=0,last=8");
	rolled_expect(&r, "g,h=a", HOUR_MS, TEN_MS, "0:min=1,max=1,sum=5,count=5,first=1,last=1");
	rolled_expect(&r, "g,h=c", HOUR_MS, TEN_MS, "0:min=3,max=3,sum=15,count=5,first=3,last=3");
	rolled_close(&r);
}

/* What is left of a slot's raw data must not take the place of the rows
 * that were made of all. */
static void a_slot_that_has_begun_to_expire_is_left_as_it_is(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r, quarter_and_hour, 2);
	write_example(&r);
	rolled_pass_at(&r, AT(65, 0));
	rolled_put(&r, "m,h=a", "9", AT(20, 0));
	/* The server was down; 24 hours are kept, and the slot's first minute is older by now. */
	rollup_job_free(r.job);
	r.site.retention.levels_ms[0] = 24 * HOUR_MS;
	r.job = rolled_job(&r);
	struct rollup_pass pass = rolled_pass_at(&r, AT(24 * 60 + 1, 0));
	assert_int_equal(pass.rolled_up, 0);
	assert_int_equal(pass.expired, 1);
	rolled_expect(&r, "m,h=a", HOUR_MS, TEN_MS,
		      "0:min=1.1,max=3.4,sum=7.2,count=4,first=1.2,last=3.4");
	assert_int_equal(rolled_pass(&r).slots, 0);
	rolled_close(&r);
}

/* Takes samples away and marks the slot of ten o'clock, as of a deletion or as of a late point. */
static void take_away(struct rolled *r, int64_t from_ms, int64_t to_ms, bool deleted)
{
	struct series_set series_set = series_set_split(SLICE("m,h=a"));
	uint64_t handle = rolled_handle(r, "m,h=a");
	struct store_write *write = store_write_new(r->h.store, 1 << 20);
	struct mark_touch touch = {
		.slot = {TEN_MS / 1000, partition_of(SLICE("default"), series_set, 8)},
		.tenant = SLICE("default"),
		.series_set = series_set,
		.deleted = deleted};
	size_t added = 0;
	assert_int_equal(marks_touches_add(r->h.marks, write, rolled_now_ms(r), &touch, 1, &added),
			 0);
	assert_int_equal(store_delete_range(write, &(struct store_target){.table = TABLE_DATA_RAW},
					    &handle, 1, from_ms, to_ms),
			 0);
	harness_write(&r->h, write);
	store_write_free(write);
}

#define FIRST_QUARTER "0:min=1.2,max=1.2,sum=1.2,count=1,first=1.2,last=1.2 "
#define LAST_QUARTER  "45:min=3.4,max=3.4,sum=3.4,count=1,first=3.4,last=3.4"

/* Of the example the second and third quarter go; 1.2 and 3.4 are left, 4.6 together. */
static void rows_go_where_samples_were_deleted(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r, quarter_and_hour, 2);
	write_example(&r);
	rolled_pass_at(&r, AT(65, 0));
	take_away(&r, AT(15, 0), AT(45, 0), true);
	assert_int_equal(rolled_pass_at(&r, AT(75, 0)).rows, 3);
	rolled_expect(&r, "m,h=a", 15 * MINUTE_MS, TEN_MS, FIRST_QUARTER LAST_QUARTER);
	rolled_expect(&r, "m,h=a", HOUR_MS, TEN_MS,
		      "0:min=1.2,max=3.4,sum=4.6,count=2,first=1.2,last=3.4");
	take_away(&r, AT(0, 0), AT(60, 0), true);
	assert_int_equal(rolled_pass_at(&r, AT(85, 0)).rolled_up, 1);
	rolled_expect(&r, "m,h=a", 15 * MINUTE_MS, TEN_MS, "");
	rolled_expect(&r, "m,h=a", HOUR_MS, TEN_MS, "");
	assert_int_equal(rolled_pass(&r).slots, 0);
	rolled_close(&r);
}

/* What is not there for another reason is all the more kept as a row. */
static void rows_stay_where_samples_were_not_deleted(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r, quarter_and_hour, 2);
	write_example(&r);
	rolled_pass_at(&r, AT(65, 0));
	take_away(&r, AT(15, 0), AT(60, 0), false);
	assert_int_equal(rolled_pass_at(&r, AT(75, 0)).rows, 2);
	rolled_expect(&r, "m,h=a", 15 * MINUTE_MS, TEN_MS,
		      FIRST_QUARTER
		      "15:min=1.5,max=1.5,sum=1.5,count=1,first=1.5,last=1.5 "
		      "30:min=1.1,max=1.1,sum=1.1,count=1,first=1.1,last=1.1 " LAST_QUARTER);
	rolled_close(&r);
}

/* Of m only 3 hours are kept, of n a day: the same slot has begun to go of one and not of the
 * other. The rows of an hour are kept for a year, but of m for 30 days. */
static void each_series_is_rolled_up_by_its_own_rules(void **state)
{
	(void)state;
	static const char *const items[] = {"*/m/raw:3h", "default/m/1h:30d"};
	struct rolled r;
	struct retention_rules rules;
	struct errbuf e;
	begin(&r, quarter_and_hour, 2);
	rollup_job_free(r.job);
	assert_int_equal(retention_parse(items, 2, &r.site.granularities, 0, &rules, &e), 0);
	r.site.granularities.list[1].retention_ms = 365 * 24 * HOUR_MS;
	r.site.retention = rules;
	r.site.retention.levels_ms[0] = 24 * HOUR_MS;
	r.job = rolled_job(&r);
	rolled_put(&r, "m,h=a", "1", AT(20, 0));
	rolled_put(&r, "n,h=a", "2", AT(20, 0));
	assert_int_equal(rolled_pass_at(&r, AT(65, 0)).rolled_up, 2);
	rolled_put(&r, "m,h=a", "3", AT(21, 0));
	rolled_put(&r, "n,h=a", "4", AT(21, 0));
	struct rollup_pass pass = rolled_pass_at(&r, AT(3 * 60 + 1, 0));
	assert_int_equal(pass.rolled_up, 1);
	assert_int_equal(pass.expired, 1);
	const char *const one = "0:min=1.0,max=1.0,sum=1.0,count=1,first=1.0,last=1.0";
	const char *const two = "0:min=2.0,max=4.0,sum=6.0,count=2,first=2.0,last=4.0";
	rolled_expect(&r, "m,h=a", HOUR_MS, TEN_MS, one);
	rolled_expect(&r, "n,h=a", HOUR_MS, TEN_MS, two);
	/* 30 days are of the class of 35, which ends; a year is of that of 400. */
	rolled_set_ms(&r, AT(36 * 24 * 60, 0));
	rolled_expect(&r, "m,h=a", HOUR_MS, TEN_MS, "");
	rolled_expect(&r, "n,h=a", HOUR_MS, TEN_MS, two);
	rolled_close(&r);
}

/* The door had eight partitions when it marked; now there are two. */
static void marks_of_partitions_that_are_no_more_are_not_left(void **state)
{
	(void)state;
	struct rolled r;
	struct errbuf e;
	begin(&r, quarter_and_hour, 2);
	rollup_job_free(r.job);
	r.site.partitions = 2;
	r.job = rolled_job(&r);
	assert_int_equal(partitions_parse(SLICE("0-1"), 2, &r.own, &e), 0);
	for (char host = 'a'; host <= 'z'; host++) {
		char series[] = {'m', ',', 'h', '=', host, 0};
		rolled_put(&r, series, "1", AT(1, 0));
	}
	assert_int_equal(rolled_pass_at(&r, AT(65, 0)).rolled_up, 26);
	assert_int_equal(rolled_pass(&r).slots, 0);
	rolled_close(&r);
}

/* What waits is rolled up of all its samples, though the clock says that these have expired. */
static void a_clock_that_is_ahead_loses_no_roll_up(void **state)
{
	(void)state;
	struct rolled r;
	struct clock_watch watch;
	rolled_begin(&r, quarter_and_hour, 2, 30 * DAY_MS, NULL);
	rolled_set_ms(&r, AT(50, 0));
	clock_watch_init(&watch, &r.h.clock.clock);
	rollup_job_free(r.job);
	r.site.clock = &watch.clock;
	r.job = rolled_job(&r);
	write_example(&r);
	r.h.clock.wall_us += 400 * DAY_MS * 1000;
	struct rollup_pass pass = rolled_pass(&r);
	assert_int_equal(pass.expired, 0);
	assert_int_equal(pass.rolled_up, 1);
	r.h.clock.wall_us -= 400 * DAY_MS * 1000;
	rolled_expect(&r, "m,h=a", HOUR_MS, TEN_MS,
		      "0:min=1.1,max=3.4,sum=7.2,count=4,first=1.2,last=3.4");
	rolled_close(&r);
	clock_watch_release(&watch);
}

/* The clock when the session of the pass has ended: at its second write. */
static struct {
	struct rolled *r;
	unsigned writes;
	int64_t until_ms;
} ending;

static void end_session(const char *name)
{
	if (strcmp(name, "rollup_write") == 0 && ++ending.writes == 2)
		rolled_set_ms(ending.r, ending.until_ms);
}

/* With 3,601 rows a series, nine series are a batch. What was begun in time is written; of the
 * rest nothing is, and the next pass does it. */
static void a_session_that_ends_in_the_pass_ends_the_pass(void **state)
{
	static const char *const seconds[] = {"1s:14d", "1h:365d"};
	(void)state;
	struct rolled r;
	begin(&r, seconds, 2);
	for (int i = 0; i < 30; i++) {
		char series[16];
		snprintf(series, sizeof(series), "m,h=a%d", i);
		rolled_put(&r, series, "1.5", AT(1, 0));
	}
	rolled_set_ms(&r, AT(65, 0));
	ending.r = &r;
	ending.writes = 0;
	ending.until_ms = AT(66, 0);
	fault_set_pause(end_session);
	struct rollup_pass pass =
		rollup_job_run(r.job, &r.h.queue, &r.own, rolled_now_ms(&r), ending.until_ms);
	fault_set_pause(NULL);
	assert_int_equal(pass.err, 0);
	assert_int_equal(pass.rolled_up, 18);
	assert_int_equal(pass.rows, 36);
	assert_int_equal(ending.writes, 2);
	assert_true(pass.oldest_slot_s <= TEN_MS / 1000);
	pass = rolled_pass(&r);
	assert_int_equal(pass.rolled_up, 12);
	assert_true(pass.oldest_slot_s == INT64_MAX);
	rolled_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_documents_example),
		cmocka_unit_test(a_slot_that_has_begun_to_expire_is_left_as_it_is),
		cmocka_unit_test(a_clock_that_is_ahead_loses_no_roll_up),
		cmocka_unit_test(each_series_is_rolled_up_by_its_own_rules),
		cmocka_unit_test(what_is_read_in_pieces_counts_once),
		cmocka_unit_test(rows_go_where_samples_were_deleted),
		cmocka_unit_test(rows_stay_where_samples_were_not_deleted),
		cmocka_unit_test(marks_of_partitions_that_are_no_more_are_not_left),
		cmocka_unit_test(negative_maxima),
		cmocka_unit_test(a_gauge_of_four),
		cmocka_unit_test(a_counter_grows_and_begins_again),
		cmocka_unit_test(a_slot_waits_for_its_end_and_for_quiet),
		cmocka_unit_test(a_late_point_is_taken_in),
		cmocka_unit_test(a_point_between_read_and_removal_is_not_lost),
		cmocka_unit_test(a_pass_that_is_stopped_does_not_say_that_all_is_done),
		cmocka_unit_test(a_session_that_ends_in_the_pass_ends_the_pass),
		cmocka_unit_test(who_sends_a_line_a_minute_is_not_refused_in_the_end),
		cmocka_unit_test(a_late_touch_says_nothing_of_a_field_that_came_since),
		cmocka_unit_test(a_sample_that_is_handed_over_when_its_series_is_quiet_is_refused),
	};
	harness_track = driver_open;
	return driver_run(tests);
}
