/* What comes while a slot is rolled up: a late sample at every step of a pass, beside a pass of
 * another job, with the store failing or refusing; and damage, which holds up nobody else. */
#include "rollup_harness.h"

#include "base/cursor.h"
#include "base/fault.h"
#include "marks/watermark.h"
#include "rollup/delete.h"
#include "lease/partition.h"
#include "rollup_drivers.h"
#include "stepped.h"

#define STEPS_MAX 200

/* A job beside that of the harness, whose passes go on a step at a time. */
struct racer {
	struct rolled r;
	struct stepped work;
	struct watermark *watermark;
	struct rollup_job *job;
};

static struct task_queue *workers_queue; /* of the pass that goes on */

/* One slot worker after the other, on the thread of the pass. */
static void run_workers(const char *name, void (*run)(struct task_queue *queue, void *owner),
			void *const *owners, size_t count)
{
	(void)name;
	for (size_t i = 0; i < count; i++)
		run(workers_queue, owners[i]);
}

static void racer_open(struct racer *racer)
{
	rolled_open(&racer->r, quarter_and_hour, 2);
	racer->watermark = watermark_new(HOUR_MS, racer->r.site.quiet_ms, false);
	marks_tell(racer->r.h.marks, racer->watermark);
	racer->r.site.watermark = racer->watermark;
	racer->job = rollup_job_new(&racer->r.site, run_workers);
	rolled_set_ms(&racer->r, AT(50, 0));
	rolled_write(&racer->r, "m value=1 1598263200000\nm value=2 1598264100000\n"
				"n,h=a value=1 1598263200000\n");
	rolled_set_ms(&racer->r, AT(65, 0));
}

static void racer_close(struct racer *racer)
{
	rollup_job_free(racer->job);
	rolled_close(&racer->r);
	watermark_free(racer->watermark);
}

static void run_pass(struct task_queue *queue, void *owner)
{
	struct racer *racer = owner;
	(void)rollup_job_run(racer->job, queue, &racer->r.own, rolled_now_ms(&racer->r), INT64_MAX);
}

static void racer_start(struct racer *racer)
{
	workers_queue = &racer->work.queue;
	stepped_start(&racer->work, run_pass, racer);
}

/* Redis answers when it likes. */
static void wait_for_answer(struct stepped *work)
{
	struct task_queue *queue = &work->queue;
	pthread_mutex_lock(&queue->lock);
	while (work->begun && !queue->first)
		pthread_cond_wait(&queue->arrived, &queue->lock);
	pthread_mutex_unlock(&queue->lock);
}

/* False: the pass is over. */
static bool racer_step(struct racer *racer)
{
	if (driver.in_redis && !stepped_over(&racer->work))
		wait_for_answer(&racer->work);
	return stepped_step(&racer->work);
}

static size_t racer_steps(struct racer *racer, size_t steps)
{
	size_t n = 0;
	while (n < steps && racer_step(racer))
		n++;
	return n;
}

static void racer_finish(struct racer *racer)
{
	racer_steps(racer, STEPS_MAX);
	assert_true(stepped_over(&racer->work));
	stepped_release(&racer->work);
}

static void come_to_rest(struct rolled *r)
{
	for (size_t i = 0; i < 10; i++) {
		struct rollup_pass pass = rolled_pass_at(r, rolled_now_ms(r) + 6 * MINUTE_MS);
		if (!pass.slots && !pass.err)
			return;
	}
	fail_msg("marks are left");
}

static void expect_late(struct rolled *r)
{
	come_to_rest(r);
	rolled_expect(r, "m", HOUR_MS, TEN_MS,
		      "0:min=1.0,max=9.0,sum=12.0,count=3,first=1.0,last=2.0");
	rolled_expect(r, "m", 15 * MINUTE_MS, TEN_MS,
		      "0:min=1.0,max=9.0,sum=10.0,count=2,first=1.0,last=9.0 "
		      "15:min=2.0,max=2.0,sum=2.0,count=1,first=2.0,last=2.0");
	rolled_expect(r, "n,h=a", HOUR_MS, TEN_MS,
		      "0:min=1.0,max=1.0,sum=1.0,count=1,first=1.0,last=1.0");
}

/* `meanwhile` happens after so many steps of the pass. Returns false when the pass had fewer. */
static bool race(size_t steps, void (*meanwhile)(struct racer *racer),
		 void (*expect)(struct rolled *r))
{
	struct racer racer;
	racer_open(&racer);
	racer_start(&racer);
	bool reached = racer_steps(&racer, steps) == steps;
	meanwhile(&racer);
	racer_finish(&racer);
	fault_disarm_all();
	naive_fail_writes(racer.r.h.store, 0, 0);
	naive_refuse_writes(racer.r.h.store, 0, 0);
	naive_refuse_reads(racer.r.h.store, 0, 0);
	expect(&racer.r);
	racer_close(&racer);
	return reached;
}

static void race_all_to(void (*meanwhile)(struct racer *racer), void (*expect)(struct rolled *r))
{
	size_t steps = 0;
	while (race(steps, meanwhile, expect))
		steps++;
	assert_in_range(steps, 5, STEPS_MAX - 1);
}

static void race_all(void (*meanwhile)(struct racer *racer))
{
	race_all_to(meanwhile, expect_late);
}

static void write_late(struct racer *racer)
{
	rolled_write(&racer->r, "m value=9 1598263201000\n");
}

/* Ceres removed a mark by its name, so one that came meanwhile went with it. */
static void a_late_point_at_any_step_of_a_pass_is_not_lost(void **state)
{
	(void)state;
	race_all(write_late);
}

static int64_t before_ms(struct racer *racer, struct slice metric)
{
	return watermark_before_ms(racer->watermark, SLICE("default"), metric);
}

static bool late_is_not_passed_over(size_t steps)
{
	struct racer racer;
	racer_open(&racer);
	racer_start(&racer);
	bool reached = racer_steps(&racer, steps) == steps;
	write_late(&racer);
	assert_true(before_ms(&racer, SLICE("m")) <= TEN_MS);
	racer_finish(&racer);
	assert_int_equal(before_ms(&racer, SLICE("m")), TEN_MS);
	assert_int_equal(before_ms(&racer, SLICE("n")), TEN_MS + HOUR_MS);
	rolled_set_ms(&racer.r, AT(70, 0));
	racer_start(&racer);
	racer_finish(&racer);
	assert_int_equal(before_ms(&racer, SLICE("m")), TEN_MS + HOUR_MS);
	expect_late(&racer.r);
	racer_close(&racer);
	return reached;
}

/* The pass as it saw things told them where rows may be taken, up to the next one. */
static void queries_do_not_take_rows_that_lack_a_late_point(void **state)
{
	(void)state;
	size_t steps = 0;
	while (late_is_not_passed_over(steps))
		steps++;
	assert_in_range(steps, 5, STEPS_MAX - 1);
}

/* The first job's rows are old by the time at which it writes them. */
static void write_late_and_pass(struct racer *racer)
{
	write_late(racer);
	rolled_pass_at(&racer->r, rolled_now_ms(&racer->r) + 5 * MINUTE_MS);
}

static void rows_of_a_job_that_stood_still_do_not_replace_newer_ones(void **state)
{
	(void)state;
	race_all(write_late_and_pass);
}

static void read_fails(struct racer *racer)
{
	write_late(racer);
	fault_arm("rollup_read", FAULT_ERROR, 1, 1);
}

static void finish_fails(struct racer *racer)
{
	write_late(racer);
	fault_arm("rollup_finish", FAULT_ERROR, 1, 1);
}

static void write_is_unknown(struct racer *racer)
{
	write_late(racer);
	naive_fail_writes(racer->r.h.store, ERR_UNKNOWN, 1);
}

static void write_is_refused(struct racer *racer)
{
	write_late(racer);
	naive_refuse_writes(racer->r.h.store, ERR_BUSY, 1);
}

static void read_is_refused(struct racer *racer)
{
	write_late(racer);
	naive_refuse_reads(racer->r.h.store, ERR_BUSY, 1);
}

static void whatever_fails_is_done_by_the_next_pass(void **state)
{
	(void)state;
	race_all(read_fails);
	race_all(finish_fails);
	race_all(write_is_unknown);
	race_all(write_is_refused);
	race_all(read_is_refused);
}

/* ---- Deletions beside a pass ----------------------------------------------------------------- */

/* Of the metric m; all that there is if no time lies between. */
struct deletion {
	struct rolled *r;
	int64_t from_ms, to_ms;
};

static void tell_catalog(void *owner, const struct slice *metrics, size_t count)
{
	struct rolled *r = owner;
	for (size_t i = 0; i < count; i++)
		catalog_forgotten(r->h.catalog, SLICE("default"), metrics[i]);
}

static void run_deletion(struct task_queue *queue, void *owner)
{
	const struct deletion *deletion = owner;
	struct rolled *r = deletion->r;
	struct rollup_site site = r->site;
	struct rollup_delete_result result;
	struct errbuf e;
	site.partitions = 8;
	int err = rollup_delete(
		&(struct rollup_delete_options){.site = &site,
						.queue = queue,
						.tenant = SLICE("default"),
						.metric = SLICE("m"),
						.from_ms = deletion->from_ms,
						.to_ms = deletion->to_ms,
						.whole = deletion->from_ms == deletion->to_ms,
						.forgotten = tell_catalog,
						.owner = r},
		&result, &e);
	ASSERT(!err); /* on any stack */
}

static void delete_of(struct racer *racer, int64_t from_ms, int64_t to_ms)
{
	struct rolled *r = &racer->r;
	run_deletion(&r->h.queue, &(struct deletion){r, from_ms, to_ms});
	harness_pump(&r->h);
}

static void delete_second_quarter(struct racer *racer)
{
	delete_of(racer, AT(15, 0), AT(30, 0));
}

static void expect_first_quarter(struct rolled *r)
{
	come_to_rest(r);
	rolled_expect(r, "m", HOUR_MS, TEN_MS,
		      "0:min=1.0,max=1.0,sum=1.0,count=1,first=1.0,last=1.0");
	rolled_expect(r, "m", 15 * MINUTE_MS, TEN_MS,
		      "0:min=1.0,max=1.0,sum=1.0,count=1,first=1.0,last=1.0");
	rolled_expect(r, "n,h=a", HOUR_MS, TEN_MS,
		      "0:min=1.0,max=1.0,sum=1.0,count=1,first=1.0,last=1.0");
}

static void delete_hour(struct racer *racer)
{
	delete_of(racer, AT(0, 0), AT(60, 0));
}

static void expect_no_rows(struct rolled *r)
{
	come_to_rest(r);
	rolled_expect(r, "m", HOUR_MS, TEN_MS, "");
	rolled_expect(r, "m", 15 * MINUTE_MS, TEN_MS, "");
}

static void delete_all(struct racer *racer)
{
	delete_of(racer, 0, 0);
	assert_true(rolled_handle(&racer->r, "m") == 0);
}

static void expect_no_series(struct rolled *r)
{
	come_to_rest(r);
	assert_true(rolled_handle(r, "m") == 0);
	rolled_expect(r, "n,h=a", HOUR_MS, TEN_MS,
		      "0:min=1.0,max=1.0,sum=1.0,count=1,first=1.0,last=1.0");
}

/* The job had read the samples that went, and wrote its rows when those had been deleted. */
static void what_is_deleted_at_any_step_of_a_pass_does_not_come_back(void **state)
{
	(void)state;
	race_all_to(delete_second_quarter, expect_first_quarter);
	race_all_to(delete_hour, expect_no_rows);
	race_all_to(delete_all, expect_no_series);
}

/* As a write does that fails, or whose answer is late. */
static void mark_without_samples(struct rolled *r, int64_t ts_ms)
{
	struct slice tenant = SLICE("default");
	struct series_set series_set = {.metric = SLICE("m")};
	struct mark_touch touch = {
		.slot = {slot_begin_s(ts_ms, HOUR_MS), partition_of(tenant, series_set, 8)},
		.tenant = tenant,
		.series_set = series_set};
	assert_int_equal(marks_mark_wait(r->h.marks, &r->h.queue, rolled_now_ms(r), &touch, 1), 0);
}

/* In the slot of `minute` there is a mark and nothing else, in the hours from ten and from twelve
 * are samples. */
static void open_with_a_mark(struct racer *racer, int64_t minute)
{
	racer_open(racer);
	rolled_set_ms(&racer->r, AT(250, 0));
	rolled_write(&racer->r, "m value=5 1598270400000\n");
	mark_without_samples(&racer->r, AT(minute, 0));
	rolled_set_ms(&racer->r, AT(270, 0));
}

/* A sample comes when the job and a deletion of its time have come so far; then the job goes on.
 * Returns false when the deletion had fewer steps, *job_reached when the job had them. */
static bool race_deletion(size_t job_steps, size_t deletion_steps, int64_t minute,
			  bool *job_reached)
{
	struct racer racer;
	struct stepped work;
	struct deletion deletion = {&racer.r, AT(0, 0), AT(240, 0)};
	char line[64];
	open_with_a_mark(&racer, minute);
	racer_start(&racer);
	*job_reached = racer_steps(&racer, job_steps) == job_steps;
	stepped_start(&work, run_deletion, &deletion);
	size_t steps = 0;
	while (steps < deletion_steps && stepped_step(&work))
		steps++;
	snprintf(line, sizeof(line), "m value=9 %lld\n", (long long)AT(minute, 0));
	rolled_write(&racer.r, line);
	racer_finish(&racer);
	while (stepped_step(&work))
		;
	stepped_release(&work);
	come_to_rest(&racer.r);
	snprintf(line, sizeof(line), "%lld:min=9.0,max=9.0,sum=9.0,count=1,first=9.0,last=9.0",
		 (long long)minute / 60 * 60);
	rolled_expect(&racer.r, "m", HOUR_MS, TEN_MS,
		      rolled_samples(&racer.r, TABLE_DATA_RAW, "m") ? line : "");
	racer_close(&racer);
	return steps == deletion_steps;
}

static size_t race_deletion_all(int64_t minute)
{
	size_t steps = 0, deletions = 0;
	for (bool job_reached = true; job_reached; steps++) {
		deletions = 0;
		while (race_deletion(steps, deletions, minute, &job_reached))
			deletions++;
	}
	assert_in_range(deletions, 5, STEPS_MAX);
	return steps;
}

/* The deletion had found the slot empty and did not mark it, but took the sample away; the job had
 * read the slot's mark before that came, and the sample after it. 75 lies between slots that have
 * samples, 200 behind them. */
static void what_comes_between_the_count_of_a_deletion_and_its_write(void **state)
{
	(void)state;
	assert_in_range(race_deletion_all(75), 5, STEPS_MAX);
	assert_in_range(race_deletion_all(200), 5, STEPS_MAX);
}

static bool has_aggregators(struct rolled *r, const char *metric)
{
	struct store_read *read = store_read_new(r->h.store, 1 << 20);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	request->cell_get.table = TABLE_METRIC_NAMES;
	request->cell_get.key.part[0] = SLICE("default");
	request->cell_get.column.part[0] = slice_of(metric);
	harness_read(&r->h, read);
	struct slice set = request->cell_get.cell.value;
	bool has = request->cell_get.found && memmem(set.data, set.len, "sum", 3);
	store_read_free(read);
	return has;
}

/* They were taken for stored although the write that had them was refused. */
static void aggregators_of_a_refused_write_are_written_by_the_next(void **state)
{
	(void)state;
	struct racer racer;
	racer_open(&racer);
	struct rolled *r = &racer.r;
	naive_refuse_writes(r->h.store, ERR_BUSY, 10);
	assert_int_equal(rolled_pass(r).err, ERR_BUSY);
	assert_false(has_aggregators(r, "m"));
	naive_refuse_writes(r->h.store, 0, 0);
	assert_int_equal(rolled_pass(r).err, 0);
	assert_true(has_aggregators(r, "m"));
	racer_close(&racer);
}

/* In Ceres it ended the pass of all others. */
static void a_damaged_series_holds_up_nobody_else(void **state)
{
	(void)state;
	for (int counter = 0; counter < 2; counter++) {
		struct rolled r;
		rolled_open(&r, quarter_and_hour, 2);
		rolled_set_ms(&r, AT(50, 0));
		for (size_t i = 0; i < 30; i++) {
			char line[128];
			snprintf(line, sizeof(line), "s%s,h=%zu value=%zu 1598263200000\n",
				 i % 2 ? "_total" : "", i, i);
			rolled_write(&r, line);
		}
		rolled_set_ms(&r, AT(65, 0));
		naive_damage(r.h.store, rolled_handle(&r, counter ? "s_total,h=7" : "s,h=8"));
		struct rollup_pass pass = rolled_pass(&r);
		assert_int_equal(pass.rolled_up, 29);
		assert_int_equal(pass.failed, 1);
		assert_int_equal(pass.err, 0);
		assert_true(pass.oldest_slot_s == TEN_MS / 1000);
		assert_true(pass.oldest_open_slot_s == INT64_MAX);
		rolled_expect(&r, "s,h=10", HOUR_MS, TEN_MS,
			      "0:min=10.0,max=10.0,sum=10.0,count=1,first=10.0,last=10.0");
		rolled_expect(&r, "s_total,h=9", HOUR_MS, TEN_MS,
			      "0:sum=9.0,increase=0,first=9.0,last=9.0");
		/* What was damaged waits, and only that. */
		assert_int_equal(rolled_pass(&r).series, 1);
		naive_damage(r.h.store, 0);
		assert_int_equal(rolled_pass(&r).rolled_up, 1);
		assert_int_equal(rolled_pass(&r).slots, 0);
		rolled_close(&r);
	}
}

/* A mark that is none stands for a slot of long ago: nobody can tell what of. */
static void put_unreadable(struct rolled *r)
{
	uint8_t numbers[3][8] = {{0}, {0}, {0}};
	if (driver.in_redis) {
		redis_say(&driver.redis, "SADD pending:3:1000000800 nocolon");
		return;
	}
	be64_put(numbers[0], 3);
	be64_put(numbers[1], 1000000800);
	be64_put(numbers[2], 1);
	struct store_write *write = store_write_new(r->h.store, 1 << 20);
	const struct store_parts row = {
		{{(const char *)numbers[0], 8}, {(const char *)numbers[1], 8}}};
	const struct store_parts column = {{{(const char *)numbers[2], 8}, SLICE("w")}};
	assert_int_equal(store_log_put(write, TABLE_MARKS, &row, &column, SLICE("\x63")), 0);
	harness_write(&r->h, write);
	store_write_free(write);
}

/* What is rolled up of all else is known, and used. */
static void a_mark_that_cannot_be_read_holds_up_nobody(void **state)
{
	(void)state;
	struct rolled r;
	rolled_open(&r, quarter_and_hour, 2);
	rolled_set_ms(&r, AT(50, 0));
	rolled_put(&r, "m", "1", AT(0, 0));
	put_unreadable(&r);
	struct rollup_pass pass = rolled_pass_at(&r, AT(65, 0));
	assert_int_equal(pass.rolled_up, 1);
	assert_int_equal(pass.failed, 0);
	assert_int_equal(pass.unread, 1);
	assert_true(pass.oldest_slot_s == INT64_MAX);
	assert_true(pass.oldest_open_slot_s == INT64_MAX);
	assert_true(pass.ready_since_ms == INT64_MAX);
	/* It stays, for who can read it. */
	pass = rolled_pass(&r);
	assert_int_equal(pass.slots, 1);
	assert_int_equal(pass.unread, 1);
	rolled_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_point_at_any_step_of_a_pass_is_not_lost),
		cmocka_unit_test(queries_do_not_take_rows_that_lack_a_late_point),
		cmocka_unit_test(rows_of_a_job_that_stood_still_do_not_replace_newer_ones),
		cmocka_unit_test(whatever_fails_is_done_by_the_next_pass),
		cmocka_unit_test(what_is_deleted_at_any_step_of_a_pass_does_not_come_back),
		cmocka_unit_test(what_comes_between_the_count_of_a_deletion_and_its_write),
		cmocka_unit_test(aggregators_of_a_refused_write_are_written_by_the_next),
		cmocka_unit_test(a_damaged_series_holds_up_nobody_else),
		cmocka_unit_test(a_mark_that_cannot_be_read_holds_up_nobody),
	};
	harness_track = driver_open;
	return driver_run(tests);
}
