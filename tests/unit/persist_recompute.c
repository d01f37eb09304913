/* Recomputing on the real store: what lies in it is made wrong, and made right again. */
#include "persist_harness.h"

#include "loop/job.h"
#include "persist/claims.h"
#include "persist/recompute.h"
#include "rate/oidset.h"
#include "rate/rows.h"

struct run {
	struct job *job;
	struct recompute *recompute;
	bool over;
	int err;
	struct errbuf error;
	struct rate_recompute_result result;
	char first[512]; /* `tags metric seconds: stored -> computed` of the first */
};

static void describe_first(struct run *run)
{
	const struct rate_difference *d = &run->result.list[0];
	struct slice tags = recompute_tags_text(run->recompute, d);
	struct slice metric = recompute_metric(run->recompute, d);
	const struct counter_row *row = d->was ? &d->stored : &d->computed;
	snprintf(run->first, sizeof(run->first), "%.*s %.*s %lld: %lld -> %lld", (int)tags.len,
		 tags.data, (int)metric.len, metric.data, (long long)(row->start_ms / 1000 - T0_S),
		 d->was ? (long long)d->stored.val : -1, d->is ? (long long)d->computed.val : -1);
}

static void run_job(struct job *job, void *owner)
{
	struct run *run = owner;
	run->err = recompute_run(run->recompute, job, &run->error);
}

static void run_over(void *owner)
{
	struct run *run = owner;
	run->over = true;
	run->result = *recompute_result(run->recompute);
	if (run->result.list_count)
		describe_first(run);
	recompute_free(run->recompute);
	job_free(run->job);
}

static void start(struct run *run, const char *device, bool only_report)
{
	const struct recompute_options recompute = {
		.persist = persist,
		.device = slice_of(device),
		.oidset = inventory_conf_oidset(conf, SLICE("FastPollHC")),
		.from_ms = (T0_S - 3600) * 1000,
		.to_ms = (T0_S + 3600) * 1000,
		.only_report = only_report,
	};
	*run = (struct run){.recompute = recompute_new(&recompute)};
	assert_int_equal(
		job_start("recompute", run_job, run_over, run, loop_executor(loop), &run->job), 0);
}

static struct run run_of(const char *device, bool only_report)
{
	struct run run;
	start(&run, device, only_report);
	wait_until(is_true, &run.over);
	return run;
}

static void expect_counts(const struct run *run, uint64_t differed, uint64_t missing,
			  uint64_t extra)
{
	assert_string_equal(run->error.text, "");
	assert_int_equal(run->err, 0);
	assert_int_equal(run->result.differed, differed);
	assert_int_equal(run->result.missing, missing);
	assert_int_equal(run->result.extra, extra);
}

static void written(struct store_write *write, int err)
{
	assert_int_equal(err, 0);
	*(bool *)write->owner = true;
}

/* Makes the store have this bin with that value, or none there. */
static void spoil(int64_t start_s, uint64_t val, bool none)
{
	const struct counter_config config =
		rate_config_of(inventory_conf_oidset(conf, SLICE("FastPollHC")));
	const struct counter_row row = {
		.start_ms = (T0_S + start_s) * 1000, .val = val, .covered_ms = 30000, .count = 1};
	bool done = false;
	struct store_write *write = store_write_new(store, 1 << 20);
	write->executor = loop_executor(loop);
	write->done = written;
	write->owner = &done;
	assert_int_equal(
		row_store(write, &config, RETENTION_EVER, find("ifHCInOctets", XE), &row, none), 0);
	assert_int_equal(store_write_submit(write), 0);
	wait_until(is_true, &done);
	store_write_free(write);
}

/* 100 in each bin from 0 s to 120 s; that of 120 s is open. */
static void put_hundreds(void)
{
	for (int64_t i = 0; i <= 5; i++)
		put_octets(T0_S + 30 * i, "xe-0/2/0", 1000 + 100 * (uint64_t)i);
	wait_until(nothing_pending, NULL);
}

#define HUNDREDS "0=100 30=100 60=100 90=100"

static void test_what_is_wrong_is_made_right(void **state)
{
	(void)state;
	put_hundreds();
	expect_bins(0, "ifHCInOctets", HUNDREDS);
	spoil(30, 999, false);
	spoil(60, 0, true);
	struct run run = run_of("router_a", true);
	expect_counts(&run, 1, 1, 0);
	assert_string_equal(run.first, XE " ifHCInOctets 30: 999 -> 100");
	expect(TABLE_BASE_RATES, 30000, 0, "ifHCInOctets", XE, "0=100 30=999 90=100");
	run = run_of("router_a", false);
	expect_counts(&run, 1, 1, 0);
	expect(TABLE_BASE_RATES, 30000, 0, "ifHCInOctets", XE, HUNDREDS);
	run = run_of("router_a", false);
	expect_counts(&run, 0, 0, 0);
	assert_true(run.result.compared >= 4);
}

/* Nothing was derived, and nothing has been polled since the start: the catalog knows the counters,
 * and what raw data says is there before anything is compared. */
static void test_what_is_polled_no_more(void **state)
{
	(void)state;
	persist_end();
	options.derive_every_ms = 3600000;
	persist_begin();
	put_hundreds();
	persist_end();
	persist_begin();
	struct run run = run_of("router_a", false);
	expect_counts(&run, 0, 0, 0);
	expect(TABLE_BASE_RATES, 30000, 0, "ifHCInOctets", XE, HUNDREDS);
}

/* A device that was polled no more when the server ended: its first rates had been made, those of
 * what came after them are made by themselves some time after the start. */
static void test_what_fell_silent(void **state)
{
	(void)state;
	put_octets(T0_S, "xe-0/2/0", 1000);
	put_octets(T0_S + 30, "xe-0/2/0", 1100);
	put_octets(T0_S + 60, "xe-0/2/0", 1200);
	expect_bins(0, "ifHCInOctets", "0=100");
	persist_end();
	options.derive_every_ms = 3600000;
	persist_begin();
	put_hundreds();
	persist_end();
	expect(TABLE_BASE_RATES, 30000, 0, "ifHCInOctets", XE, "0=100");
	options.derive_every_ms = 100;
	persist_begin();
	expect_bins(0, "ifHCInOctets", HUNDREDS);
}

/* Polls go on and their rates are made while it works, again and again. */
static void test_beside_polls(void **state)
{
	(void)state;
	put_hundreds();
	expect_bins(0, "ifHCInOctets", HUNDREDS);
	for (int64_t i = 6; i < 30; i++) {
		struct run run;
		start(&run, "router_a", false);
		put_octets(T0_S + 30 * i, "xe-0/2/0", 1000 + 100 * (uint64_t)i);
		wait_until(is_true, &run.over);
		expect_counts(&run, 0, 0, 0);
	}
	wait_until(nothing_pending, NULL);
	struct run run = run_of("router_a", true);
	expect_counts(&run, 0, 0, 0);
	char wanted[TEXT_BYTES] = "";
	for (int i = 0; i < 28; i++)
		snprintf(wanted + strlen(wanted), sizeof(wanted) - strlen(wanted), "%s%d=100",
			 i ? " " : "", 30 * i);
	expect(TABLE_BASE_RATES, 30000, 0, "ifHCInOctets", XE, wanted);
}

static void test_a_device_that_nothing_is_known_of(void **state)
{
	(void)state;
	put_hundreds();
	struct run run = run_of("router_b", false);
	assert_int_equal(run.err, ERR_NOT_FOUND);
	assert_string_equal(run.error.text,
			    "nothing is stored of device router_b, OIDSet FastPollHC");
}

static void test_cancelled(void **state)
{
	(void)state;
	struct run run;
	put_hundreds();
	start(&run, "router_a", false);
	job_stop(run.job);
	wait_until(is_true, &run.over);
	assert_int_equal(run.err, ERR_CANCELLED);
	run = run_of("router_a", false);
	expect_counts(&run, 0, 0, 0);
}

/* While a worker hangs, and after another has taken its place. */
static void test_beside_a_worker_that_hangs(void **state)
{
	(void)state;
	put_hundreds();
	persist_end();
	options.hang_timeout_ms = 2500;
	fault_arm("persist_hang", FAULT_ERROR, 1, 1000);
	persist_begin();
	for (bool replaced = false; !replaced;) {
		replaced = counted(STAT_persist_replaced) > 0;
		struct run run = run_of("router_a", true);
		expect_counts(&run, 0, 0, 0);
	}
	fault_disarm_all();
}

/* What a worker had claimed when it hung is free once it is replaced. */
static void test_claims_of_a_worker_that_hangs(void **state)
{
	(void)state;
	struct claims claims;
	struct hash128 source = claims_source(SLICE("router_a"), SLICE("FastPollHC"));
	struct claim hung = {source, &hung, NULL}, other = {source, &other, NULL},
		     job = {source, NULL, NULL};
	claims_init(&claims);
	assert_true(claims_take(&claims, &hung));
	assert_false(claims_take(&claims, &other));
	assert_false(claims_take(&claims, &job));
	claims_drop(&claims, &hung);
	assert_true(claims_take(&claims, &other));
	claims_give_back(&claims, &hung); /* it moves again */
	assert_false(claims_take(&claims, &job));
	claims_give_back(&claims, &other);
	assert_true(claims_take(&claims, &job));
	claims_release(&claims);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_wrong_is_made_right),
		TEST(test_what_is_polled_no_more),
		TEST(test_what_fell_silent),
		TEST(test_beside_polls),
		TEST(test_a_device_that_nothing_is_known_of),
		TEST(test_cancelled),
		TEST(test_beside_a_worker_that_hangs),
		cmocka_unit_test(test_claims_of_a_worker_that_hangs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
