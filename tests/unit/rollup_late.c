/* Points that come when the slot of their roll-ups is closed: where they go, what is made of them,
 * and that nothing which was made before is touched. */
#include "rollup_harness.h"

#include "base/fault.h"
#include "rollup/stored_settings.h"

#define QUARTER (15 * MINUTE_MS)

/* Raw data is kept for a day, so its class (two days) for two; now is 10:50. */
static void begin(struct rolled *r)
{
	rolled_begin(r, quarter_and_hour, 2, DAY_MS, NULL);
	rolled_set_ms(r, AT(50, 0));
}

/* Reference 3.5, as rollup_job.c has it, but without the third quarter of the hour. */
static void write_example(struct rolled *r)
{
	rolled_put(r, "m", "1.2", AT(1, 23));
	rolled_put(r, "m", "1.5", AT(16, 11));
	rolled_put(r, "m", "3.4", AT(47, 1));
	assert_int_equal(rolled_pass_at(r, AT(65, 0)).rolled_up, 1);
}

#define EXAMPLE_0  "0:min=1.2,max=1.2,sum=1.2,count=1,first=1.2,last=1.2"
#define EXAMPLE_15 "15:min=1.5,max=1.5,sum=1.5,count=1,first=1.5,last=1.5"
#define EXAMPLE_45 "45:min=3.4,max=3.4,sum=3.4,count=1,first=3.4,last=3.4"
#define EXAMPLE_H  "0:min=1.2,max=3.4,sum=6.1,count=3,first=1.2,last=3.4"

/* The marks of now are ready. */
static struct rollup_pass pass_later(struct rolled *r)
{
	rolled_set_ms(r, rolled_now_ms(r) + 5 * MINUTE_MS);
	return rolled_pass(r);
}

static void expect_example_with(struct rolled *r, const char *quarters, const char *hour)
{
	rolled_expect(r, "m", QUARTER, TEN_MS, quarters);
	rolled_expect(r, "m", HOUR_MS, TEN_MS, hour);
}

/* Three days later 9 comes for 10:20, and -2 for 10:35, of whose quarter nothing is known. */
static void late_points_have_rows_beside(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	write_example(&r);
	rolled_set_ms(&r, AT(50, 0) + 3 * DAY_MS);
	rolled_put(&r, "m", "9", AT(20, 0));
	struct rollup_pass pass = pass_later(&r);
	assert_int_equal(pass.rolled_up, 1);
	assert_int_equal(pass.expired, 0);
	assert_int_equal(pass.rows, 2);
	assert_int_equal(rolled_samples(&r, TABLE_DATA_LATE, "m"), 1);
	expect_example_with(
		&r, EXAMPLE_0 " " EXAMPLE_15 " 15+:min=9.0,max=9.0,sum=9.0,count=1 " EXAMPLE_45,
		EXAMPLE_H " 0+:min=9.0,max=9.0,sum=9.0,count=1");
	rolled_put(&r, "m", "-2", AT(35, 0));
	pass_later(&r);
	expect_example_with(
		&r,
		EXAMPLE_0 " " EXAMPLE_15 " 15+:min=9.0,max=9.0,sum=9.0,count=1 "
			  "30+:min=-2.0,max=-2.0,sum=-2.0,count=1,first=-2.0,last=-2.0 " EXAMPLE_45,
		EXAMPLE_H " 0+:min=-2.0,max=9.0,sum=7.0,count=2");
	rolled_close(&r);
}

/* After two days and half an hour the store has the raw sample of 10:47 still, not those of 10:01
 * and 10:16: the rows made of all three stay. */
static void rows_are_not_made_of_what_raw_data_is_left(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	write_example(&r);
	rolled_set_ms(&r, AT(25, 0) + 2 * DAY_MS);
	assert_int_equal(rolled_samples(&r, TABLE_DATA_RAW, "m"), 1);
	rolled_put(&r, "m", "9", AT(20, 0));
	assert_int_equal(pass_later(&r).rolled_up, 1);
	rolled_expect(&r, "m", HOUR_MS, TEN_MS, EXAMPLE_H " 0+:min=9.0,max=9.0,sum=9.0,count=1");
	rolled_close(&r);
}

static void a_late_point_that_comes_twice_counts_once(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	write_example(&r);
	rolled_set_ms(&r, AT(50, 0) + 3 * DAY_MS);
	for (int i = 0; i < 3; i++) {
		rolled_put(&r, "m", "9", AT(20, 0));
		assert_int_equal(pass_later(&r).rolled_up, 1);
		rolled_expect(&r, "m", HOUR_MS, TEN_MS,
			      EXAMPLE_H " 0+:min=9.0,max=9.0,sum=9.0,count=1");
	}
	assert_int_equal(rolled_pass(&r).slots, 0);
	rolled_close(&r);
}

/* The rows are written, and the marks stay. */
static void a_crash_before_the_marks_go_changes_nothing(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	write_example(&r);
	rolled_set_ms(&r, AT(50, 0) + 3 * DAY_MS);
	rolled_put(&r, "m", "9", AT(20, 0));
	fault_arm("rollup_finish", FAULT_ERROR, 1, 1);
	assert_int_equal(pass_later(&r).err, ERR_FAULT);
	fault_disarm_all();
	rolled_put(&r, "m", "4", AT(21, 0));
	assert_int_equal(pass_later(&r).rolled_up, 1);
	rolled_expect(&r, "m", HOUR_MS, TEN_MS, EXAMPLE_H " 0+:min=4.0,max=9.0,sum=13.0,count=2");
	rolled_close(&r);
}

/* 10, 25 in time; 17, 40 and 6 (begun again) late for the same quarter, 50 and 70 for the next one,
 * which grew by 20. */
static void late_samples_of_a_counter_add_to_its_sum(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	rolled_put(&r, "c_total", "10u", AT(1, 0));
	rolled_put(&r, "c_total", "25u", AT(3, 0));
	rolled_pass_at(&r, AT(65, 0));
	rolled_set_ms(&r, AT(50, 0) + 3 * DAY_MS);
	rolled_put(&r, "c_total", "17u", AT(2, 0));
	rolled_put(&r, "c_total", "40u", AT(4, 0));
	rolled_put(&r, "c_total", "6u", AT(5, 0));
	rolled_put(&r, "c_total", "50u", AT(16, 0));
	rolled_put(&r, "c_total", "70u", AT(17, 0));
	pass_later(&r);
	rolled_expect(&r, "c_total", QUARTER, TEN_MS,
		      "0:sum=35,increase=15,first=10,last=25 0+:sum=63 "
		      "15+:sum=120,increase=20,first=50,last=70");
	rolled_expect(&r, "c_total", HOUR_MS, TEN_MS,
		      "0:sum=35,increase=15,first=10,last=25 0+:sum=183");
	rolled_close(&r);
}

/* At 09:50 of the next day raw data of 09:50 and later is there; the slot of ten o'clock closes ten
 * minutes, twice the quiet time, before its first samples go. */
static void a_slot_closes_before_its_raw_data_goes(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	write_example(&r);
	rolled_set_ms(&r, TEN_MS + DAY_MS - 10 * MINUTE_MS);
	rolled_put(&r, "m", "9", AT(20, 0));
	assert_int_equal(rolled_samples(&r, TABLE_DATA_RAW, "m"), 4);
	rolled_set_ms(&r, TEN_MS + DAY_MS - 10 * MINUTE_MS + 1);
	rolled_put(&r, "m", "5", AT(21, 0));
	assert_int_equal(rolled_samples(&r, TABLE_DATA_RAW, "m"), 4);
	assert_int_equal(rolled_samples(&r, TABLE_DATA_LATE, "m"), 1);
	/* Both are made: raw data is all there. */
	assert_int_equal(pass_later(&r).rolled_up, 1);
	rolled_expect(&r, "m", HOUR_MS, TEN_MS,
		      "0:min=1.2,max=9.0,sum=15.1,count=4,first=1.2,last=3.4 "
		      "0+:min=5.0,max=5.0,sum=5.0,count=1");
	rolled_close(&r);
}

static void put_done(UNUSED struct store_write *write, int err)
{
	assert_int_equal(err, 0);
}

static void put_raw(struct rolled *r, const char *series_set, int64_t ts_ms, double value)
{
	uint64_t handle = rolled_handle(r, series_set);
	struct store_write *write = store_write_new(r->h.store, 1 << 20);
	struct value number = value_f64(value);
	assert_int_equal(store_append(write,
				      &(struct store_target){TABLE_DATA_RAW, RETENTION_2_DAYS},
				      ts_ms, &handle, 1, &number),
			 0);
	write->executor = &r->h.queue.executor;
	write->done = put_done;
	assert_int_equal(store_write_submit(write), 0);
	harness_pump(&r->h);
	store_write_free(write);
}

/* The late point of 10:35 was alone in its quarter, and said what came first there. Then raw data
 * was to be kept for longer, and more of it came. */
static void what_came_first_is_forgotten_when_another_row_tells(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	write_example(&r);
	rolled_set_ms(&r, TEN_MS + DAY_MS - 9 * MINUTE_MS);
	rolled_put(&r, "m", "-2", AT(35, 0));
	pass_later(&r);
	rolled_expect(&r, "m", QUARTER, TEN_MS,
		      EXAMPLE_0 " " EXAMPLE_15 " 30+:min=-2.0,max=-2.0,sum=-2.0,count=1,first=-2.0,"
				"last=-2.0 " EXAMPLE_45);
	put_raw(&r, "m", AT(32, 0), 7);
	rolled_put(&r, "m", "-2", AT(35, 0));
	rollup_job_free(r.job);
	r.site.retention.levels_ms[0] = 2 * DAY_MS;
	r.job = rolled_job(&r);
	pass_later(&r);
	rolled_expect(&r, "m", QUARTER, TEN_MS,
		      EXAMPLE_0 " " EXAMPLE_15
				" 30:min=7.0,max=7.0,sum=7.0,count=1,first=7.0,last=7.0 "
				"30+:min=-2.0,max=-2.0,sum=-2.0,count=1 " EXAMPLE_45);
	rolled_close(&r);
}

/* Marks of a slot whose raw data is gone, and for which a late point has come or none: the server
 * was down. */
static void a_mark_that_nothing_is_left_of_is_counted(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	rolled_put(&r, "m", "1", AT(1, 0));
	rolled_put(&r, "n", "1", AT(1, 0));
	rolled_set_ms(&r, AT(50, 0) + 3 * DAY_MS);
	rolled_put(&r, "n", "2", AT(2, 0));
	struct rollup_pass pass = pass_later(&r);
	assert_int_equal(pass.rolled_up, 1);
	assert_int_equal(pass.expired, 2);
	rolled_expect(&r, "m", HOUR_MS, TEN_MS, "");
	rolled_expect(&r, "n", HOUR_MS, TEN_MS,
		      "0+:min=2.0,max=2.0,sum=2.0,count=1,first=2.0,last=2.0");
	assert_int_equal(rolled_pass(&r).slots, 0);
	rolled_close(&r);
}

/* Of a granularity that is kept for two weeks nothing is made of a point of last month. */
static void rows_that_would_have_gone_are_not_made(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	rolled_set_ms(&r, AT(50, 0) + 30 * DAY_MS);
	rolled_put(&r, "m", "1", AT(1, 0));
	pass_later(&r);
	rolled_expect(&r, "m", QUARTER, TEN_MS, "");
	rolled_expect(&r, "m", HOUR_MS, TEN_MS,
		      "0+:min=1.0,max=1.0,sum=1.0,count=1,first=1.0,last=1.0");
	rolled_close(&r);
}

/* The next day; the slot of ten o'clock closes at 9:50, its raw data begins to go at 10:00. */
#define NEXT_DAY(m) (AT(m, 0) + DAY_MS)

/* A sample a minute, each 1 and of a second of its own of the slot; and a pass behind it. Returns
 * of how many series of all passes raw data was lost. */
static uint64_t fill_slowly(struct rolled *r, int from, int to)
{
	uint64_t expired = 0;
	for (int m = from; m <= to; m++) {
		rolled_set_ms(r, NEXT_DAY(m));
		rolled_put(r, "m", "1", AT(0, m + 60));
		expired += rolled_pass(r).expired;
	}
	return expired;
}

/* 21 samples until 9:50, then 30 late ones without a pause, until long after raw data has gone. */
static void late_points_that_do_not_end_put_off_nothing_that_came_in_time(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	assert_int_equal(fill_slowly(&r, -30, 20), 0);
	rolled_expect(&r, "m", HOUR_MS, TEN_MS,
		      "0:min=1.0,max=1.0,sum=21.0,count=21,first=1.0,last=1.0 "
		      "0+:min=1.0,max=1.0,sum=5.0,count=5");
	pass_later(&r);
	rolled_expect(&r, "m", HOUR_MS, TEN_MS,
		      "0:min=1.0,max=1.0,sum=21.0,count=21,first=1.0,last=1.0 "
		      "0+:min=1.0,max=1.0,sum=30.0,count=30");
	assert_int_equal(rolled_pass(&r).slots, 0);
	rolled_close(&r);
}

/* The mark of the late ones goes when they have ended, not with the rows of raw data: one of
 * 9:55:30 is not marked, since one of 9:55 was. */
static void a_late_point_behind_the_pass_that_reads_raw_data_counts(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	assert_int_equal(fill_slowly(&r, -13, -5), 0);
	rolled_set_ms(&r, NEXT_DAY(-5) + 30000);
	rolled_put(&r, "m", "1", AT(30, 0));
	assert_int_equal(rolled_pass(&r).waiting, 1);
	assert_int_equal(pass_later(&r).rolled_up, 1);
	rolled_expect(&r, "m", HOUR_MS, TEN_MS,
		      "0:min=1.0,max=1.0,sum=4.0,count=4,first=1.0,last=1.0 "
		      "0+:min=1.0,max=1.0,sum=6.0,count=6");
	assert_int_equal(rolled_pass(&r).slots, 0);
	rolled_close(&r);
}

/* The server is down from some time on, late points come when it is up again: what came in time
 * until then is lost and counted once, but not what had been rolled up by then. */
static void raw_data_that_is_lost_behind_late_points_is_counted(void **state)
{
	(void)state;
	static const struct {
		int until;
		uint64_t lost;
	} cases[] = {{-11, 1}, {-7, 1}, {-5, 0}};
	for (size_t i = 0; i < 3; i++) {
		struct rolled r;
		begin(&r);
		assert_int_equal(fill_slowly(&r, -13, cases[i].until), 0);
		rollup_job_free(r.job);
		r.job = rolled_job(&r);
		assert_int_equal(fill_slowly(&r, 1, 12), cases[i].lost);
		assert_int_equal(pass_later(&r).expired, 0);
		assert_int_equal(rolled_pass(&r).slots, 0);
		rolled_close(&r);
	}
}

/* Raw samples of x_fast are kept for 6 hours, others for a day: of one line of ten o'clock, that
 * comes six hours later, one value is late and the other is not. */
static void each_series_is_late_by_its_own_rules(void **state)
{
	(void)state;
	static const char *const items[] = {"*/x_fast/raw:6h"};
	const struct granularities granularities = {
		.slot_ms = HOUR_MS, .count = 2, .list = {{QUARTER, 0}, {HOUR_MS, 0}}};
	struct retention_rules rules;
	struct rolled r;
	struct errbuf e;
	assert_int_equal(retention_parse(items, 1, &granularities, 0, &rules, &e), 0);
	rolled_begin(&r, quarter_and_hour, 2, DAY_MS, &rules);
	rolled_set_ms(&r, AT(50, 0));
	rolled_write(&r, "x fast=1,slow=2 1598263260000\n");
	assert_int_equal(rolled_pass_at(&r, AT(65, 0)).rolled_up, 2);
	rolled_set_ms(&r, AT(6 * 60 + 30, 0));
	rolled_write(&r, "x fast=3,slow=4 1598263320000\n");
	assert_int_equal(rolled_samples(&r, TABLE_DATA_LATE, "x_fast"), 1);
	assert_int_equal(rolled_samples(&r, TABLE_DATA_LATE, "x_slow"), 0);
	assert_int_equal(pass_later(&r).rolled_up, 2);
	rolled_expect(&r, "x_fast", HOUR_MS, TEN_MS,
		      "0:min=1.0,max=1.0,sum=1.0,count=1,first=1.0,last=1.0 "
		      "0+:min=3.0,max=3.0,sum=3.0,count=1");
	rolled_expect(&r, "x_slow", HOUR_MS, TEN_MS,
		      "0:min=2.0,max=4.0,sum=6.0,count=2,first=2.0,last=4.0");
	rolled_close(&r);
}

/* Roll-ups of x_short are kept for 20 days at most: a point that comes when its slot has closed for
 * these would never be seen. Of one line it is refused, the other value is kept; also when both
 * series are known. */
static void late_points_that_nobody_can_see_are_refused(void **state)
{
	(void)state;
	static const char *const items[] = {"*/x_short/15m:2d", "*/x_short/1h:20d", "*/k/1h:500d"};
	const struct granularities granularities = {
		.slot_ms = HOUR_MS, .count = 2, .list = {{QUARTER, 0}, {HOUR_MS, 0}}};
	struct retention_rules rules;
	struct rolled r;
	struct errbuf e;
	assert_int_equal(retention_parse(items, 3, &granularities, 0, &rules, &e), 0);
	rolled_begin(&r, quarter_and_hour, 2, DAY_MS, &rules);
	rolled_set_ms(&r, TEN_MS + 20 * DAY_MS - 10 * MINUTE_MS);
	rolled_write(&r, "x short=1,long=1 1598263260000\n");
	assert_int_equal(rolled_samples(&r, TABLE_DATA_LATE, "x_short"), 1);
	rolled_set_ms(&r, TEN_MS + 20 * DAY_MS - 10 * MINUTE_MS + 1);
	for (size_t late = 2; late < 4; late++) {
		char line[64];
		snprintf(line, sizeof(line), "x short=1,long=1 159826326000%zu\n", late);
		struct ingest_request *request = rolled_send(&r, line);
		assert_int_equal(request->refused, 1);
		assert_int_equal(request->accepted, 1);
		const char *sentence = strstr(request->errors[0].sentence, "Z is ");
		assert_non_null(sentence);
		assert_string_equal(sentence,
				    "Z is too old to be kept: what is late of its series goes "
				    "after 1728000 s, as all of its roll-ups do");
		ingest_request_free(request);
		assert_int_equal(rolled_samples(&r, TABLE_DATA_LATE, "x_short"), 1);
		assert_int_equal(rolled_samples(&r, TABLE_DATA_LATE, "x_long"), late);
	}
	/* Where no rule fits, what granularities say holds: not what the longest rule does. */
	rolled_set_ms(&r, TEN_MS + 400 * DAY_MS);
	rolled_put(&r, "k", "1", TEN_MS);
	struct ingest_request *request = rolled_send(&r, "x long=1 1598263260000\n");
	assert_int_equal(request->refused, 1);
	ingest_request_free(request);
	rolled_close(&r);
}

static void expect_refused(struct rolled *r, int64_t ts_ms, const char *sentence)
{
	struct ingest_request *request = harness_request(&r->h);
	struct line_feed feed;
	char line[64];
	snprintf(line, sizeof(line), "m value=1 %lld\n", (long long)ts_ms);
	line_feed_init(&feed, request, (struct slice){NULL, 0}, LINE_MS);
	line_feed_piece(&feed, slice_of(line));
	line_feed_end(&feed);
	line_feed_release(&feed);
	harness_finish(&r->h, request);
	assert_int_equal(request->refused, 1);
	assert_string_equal(request->errors[0].sentence, sentence);
	ingest_request_free(request);
}

/* A year after 2020-08-24T09:50 the slot of ten o'clock is closed for late points, too: they would
 * go while they are worked on. */
static void what_is_older_than_every_granularity_is_refused(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	rolled_set_ms(&r, TEN_MS + 365 * DAY_MS - 10 * MINUTE_MS);
	rolled_put(&r, "m", "1", TEN_MS);
	rolled_set_ms(&r, TEN_MS + 365 * DAY_MS - 10 * MINUTE_MS + 1);
	expect_refused(
		&r, TEN_MS + HOUR_MS - 1,
		"the time 2020-08-24T10:59:59.999Z is too old to be kept: what is late goes after "
		"31536000 s, samples before 2020-08-24T11:00:00Z are refused");
	rolled_put(&r, "m", "1", TEN_MS + HOUR_MS);
	assert_int_equal(rolled_samples(&r, TABLE_DATA_LATE, "m"), 2);
	rolled_close(&r);
}

/* What waits of closed slots holds up nobody who asks for open ones. */
static void late_marks_do_not_put_off_what_is_rolled_up(void **state)
{
	(void)state;
	struct rolled r;
	begin(&r);
	rolled_set_ms(&r, AT(50, 0) + 3 * DAY_MS);
	rolled_put(&r, "m", "1", AT(1, 0));
	struct rollup_pass pass = rolled_pass(&r);
	assert_int_equal(pass.waiting, 1);
	assert_true(pass.oldest_slot_s == TEN_MS / 1000);
	assert_true(pass.oldest_open_slot_s == INT64_MAX);
	rolled_put(&r, "m", "1", AT(0, 0) + 3 * DAY_MS);
	pass = rolled_pass(&r);
	assert_true(pass.oldest_open_slot_s == (TEN_MS + 3 * DAY_MS) / 1000);
	rolled_close(&r);
}

/* The server starts again, and keeps raw samples for this long from now on. */
static void restart(struct rolled *r, int64_t raw_ms, bool keep)
{
	struct rollup_site site = {.store = r->h.store,
				   .granularities = r->site.granularities,
				   .retention.levels_ms = {raw_ms}};
	struct errbuf e;
	assert_int_equal(stored_settings_open(&site, rolled_now_ms(r), &e), 0);
	stored_settings_release(&site.settings);
	rollup_job_free(r->job);
	ingest_free(r->h.ingest);
	site.retention.late = r->site.retention.late;
	r->site.retention = site.retention;
	r->job = rolled_job(r);
	r->h.ingest = ingest_new(
		&(struct ingest_options){.store = r->h.store,
					 .marks = r->h.marks,
					 .catalog = r->h.catalog,
					 .clock = &r->h.clock.clock,
					 .executor = &r->h.queue.executor,
					 .partitions = 8,
					 .rollup_slot_ms = HOUR_MS,
					 .rollup_quiet_ms = r->site.quiet_ms,
					 .retention = {.rules = &r->site.retention,
						       .late_keep = keep,
						       .late_ms = r->site.retention.late.kept_ms},
					 .granularities = &r->site.granularities});
}

/* Where what is late is refused, a slot is filled until it closes. */
static void a_slot_that_is_filled_until_it_closes_is_rolled_up(void **state)
{
	(void)state;
	struct rolled r;
	rolled_begin(&r, quarter_and_hour, 2, DAY_MS, NULL);
	r.site.retention.late.after_ms = 0;
	rolled_set_ms(&r, AT(50, 0));
	restart(&r, DAY_MS, false);
	assert_int_equal(fill_slowly(&r, -59, -10), 0);
	struct rollup_pass pass = rolled_pass(&r);
	assert_int_equal(pass.waiting, 1);
	assert_true(pass.next_ready_ms <= NEXT_DAY(-5));
	assert_int_equal(rolled_pass_at(&r, NEXT_DAY(-5)).rolled_up, 1);
	rolled_expect(&r, "m", HOUR_MS, TEN_MS,
		      "0:min=1.0,max=1.0,sum=50.0,count=50,first=1.0,last=1.0");
	assert_int_equal(rolled_pass(&r).slots, 0);
	rolled_close(&r);
}

/* The example, of when raw samples were kept for a day; then they are to be for a month, half a day
 * or five days later. After five days all have left the disk. */
static void begin_raised(struct rolled *r, int64_t after_ms, bool keep)
{
	rolled_begin(r, quarter_and_hour, 2, DAY_MS, NULL);
	rolled_set_ms(r, AT(50, 0));
	restart(r, DAY_MS, keep);
	write_example(r);
	rolled_set_ms(r, TEN_MS + after_ms);
	restart(r, 30 * DAY_MS, keep);
	rolled_set_ms(r, AT(50, 0) + 5 * DAY_MS);
	assert_int_equal(rolled_samples(r, TABLE_DATA_RAW, "m"), 0);
}

static void late_points_after_a_raise_replace_no_rows(void **state)
{
	(void)state;
	for (int64_t after_ms = DAY_MS / 2; after_ms <= 5 * DAY_MS; after_ms *= 10) {
		struct rolled r;
		begin_raised(&r, after_ms, true);
		rolled_put(&r, "m", "9", AT(20, 0));
		pass_later(&r);
		expect_example_with(&r,
				    EXAMPLE_0 " " EXAMPLE_15
					      " 15+:min=9.0,max=9.0,sum=9.0,count=1 " EXAMPLE_45,
				    EXAMPLE_H " 0+:min=9.0,max=9.0,sum=9.0,count=1");
		rolled_close(&r);
	}
}

static void late_points_after_a_raise_are_refused(void **state)
{
	(void)state;
	struct rolled r;
	begin_raised(&r, 5 * DAY_MS, false);
	expect_refused(
		&r, AT(20, 0),
		"the time 2020-08-24T10:20:00Z is older than the retention of 86400 s that held "
		"before; samples from 2020-08-29T10:00:00Z on are kept for 2592000 s");
	rolled_close(&r);
}

/* It was marked before the server went down; or a deletion marks it. */
static void a_mark_after_a_raise_replaces_no_rows(void **state)
{
	(void)state;
	for (int deleted = 0; deleted < 2; deleted++) {
		struct series_set series_set = {.metric = SLICE("m")};
		struct mark_touch touch = {
			.slot = {TEN_MS / 1000, partition_of(SLICE("default"), series_set, 8)},
			.tenant = SLICE("default"),
			.series_set = series_set,
			.deleted = deleted};
		struct rolled r;
		size_t added = 0;
		begin_raised(&r, DAY_MS / 2, true);
		put_raw(&r, "m", rolled_now_ms(&r), 1);
		struct store_write *write = store_write_new(r.h.store, 1 << 20);
		assert_int_equal(
			marks_touches_add(r.h.marks, write, rolled_now_ms(&r), &touch, 1, &added),
			0);
		harness_write(&r.h, write);
		store_write_free(write);
		pass_later(&r);
		assert_int_equal(rolled_pass(&r).slots, 0);
		expect_example_with(&r, EXAMPLE_0 " " EXAMPLE_15 " " EXAMPLE_45, EXAMPLE_H);
		rolled_close(&r);
	}
}

/* 11:00 is behind the raise: five days later 4 joins the 2 that is there. */
static void what_came_after_a_raise_is_open_for_as_long_as_now(void **state)
{
	(void)state;
	struct rolled r;
	rolled_begin(&r, quarter_and_hour, 2, DAY_MS, NULL);
	rolled_set_ms(&r, AT(30, 0));
	restart(&r, DAY_MS, true);
	restart(&r, 30 * DAY_MS, true);
	rolled_set_ms(&r, AT(70, 0));
	rolled_put(&r, "m", "2", AT(61, 0));
	rolled_set_ms(&r, AT(70, 0) + 5 * DAY_MS);
	rolled_put(&r, "m", "4", AT(62, 0));
	pass_later(&r);
	rolled_expect(&r, "m", HOUR_MS, TEN_MS,
		      "60:min=2.0,max=4.0,sum=6.0,count=2,first=2.0,last=4.0");
	rolled_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_points_have_rows_beside),
		cmocka_unit_test(rows_are_not_made_of_what_raw_data_is_left),
		cmocka_unit_test(a_late_point_that_comes_twice_counts_once),
		cmocka_unit_test(a_crash_before_the_marks_go_changes_nothing),
		cmocka_unit_test(late_samples_of_a_counter_add_to_its_sum),
		cmocka_unit_test(a_slot_closes_before_its_raw_data_goes),
		cmocka_unit_test(what_came_first_is_forgotten_when_another_row_tells),
		cmocka_unit_test(a_mark_that_nothing_is_left_of_is_counted),
		cmocka_unit_test(rows_that_would_have_gone_are_not_made),
		cmocka_unit_test(each_series_is_late_by_its_own_rules),
		cmocka_unit_test(late_points_that_nobody_can_see_are_refused),
		cmocka_unit_test(what_is_older_than_every_granularity_is_refused),
		cmocka_unit_test(late_marks_do_not_put_off_what_is_rolled_up),
		cmocka_unit_test(late_points_that_do_not_end_put_off_nothing_that_came_in_time),
		cmocka_unit_test(a_late_point_behind_the_pass_that_reads_raw_data_counts),
		cmocka_unit_test(raw_data_that_is_lost_behind_late_points_is_counted),
		cmocka_unit_test(a_slot_that_is_filled_until_it_closes_is_rolled_up),
		cmocka_unit_test(late_points_after_a_raise_replace_no_rows),
		cmocka_unit_test(late_points_after_a_raise_are_refused),
		cmocka_unit_test(a_mark_after_a_raise_replaces_no_rows),
		cmocka_unit_test(what_came_after_a_raise_is_open_for_as_long_as_now),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
