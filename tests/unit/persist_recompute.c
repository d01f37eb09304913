/* Recomputing on the real store: what lies in it is made wrong, and made right again. */
#include "persist_harness.h"

#include "persist/recompute.h"
#include "rate/oidset.h"
#include "rate/rows.h"

struct run {
	bool over;
	int err;
	struct rate_recompute_result result;
	char error[512], first[512]; /* `tags metric seconds: stored -> computed` of the first */
};

static void describe_first(struct run *run, const struct recompute *recompute)
{
	const struct rate_difference *d = &run->result.list[0];
	struct slice tags = recompute_tags_text(recompute, d);
	struct slice metric = recompute_metric(recompute, d);
	const struct counter_row *row = d->was ? &d->stored : &d->computed;
	snprintf(run->first, sizeof(run->first), "%.*s %.*s %lld: %lld -> %lld", (int)tags.len,
		 tags.data, (int)metric.len, metric.data, (long long)(row->start_ms / 1000 - T0_S),
		 d->was ? (long long)d->stored.val : -1, d->is ? (long long)d->computed.val : -1);
}

static void run_over(struct recompute *recompute, int err)
{
	struct run *run = recompute_owner(recompute);
	run->over = true;
	run->err = err;
	run->result = *recompute_result(recompute);
	snprintf(run->error, sizeof(run->error), "%s", recompute_error(recompute));
	if (run->result.list_count)
		describe_first(run, recompute);
	recompute_free(recompute);
}

static struct recompute *start(struct run *run, const char *device, bool only_report)
{
	struct errbuf e = {""};
	struct recompute *started;
	const struct recompute_options recompute = {
		.device = slice_of(device),
		.oidset = inventory_conf_oidset(conf, SLICE("FastPollHC")),
		.from_ms = (T0_S - 3600) * 1000,
		.to_ms = (T0_S + 3600) * 1000,
		.only_report = only_report,
		.done = run_over,
		.owner = run,
	};
	*run = (struct run){0};
	assert_int_equal(recompute_start(persist, &recompute, &started, &e), 0);
	return started;
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
	assert_string_equal(run->error, "");
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
	assert_string_equal(run.error, "nothing is stored of device router_b, OIDSet FastPollHC");
}

static void test_cancelled(void **state)
{
	(void)state;
	struct run run;
	put_hundreds();
	recompute_cancel(start(&run, "router_a", false));
	wait_until(is_true, &run.over);
	assert_int_equal(run.err, ERR_CANCELLED);
	run = run_of("router_a", false);
	expect_counts(&run, 0, 0, 0);
}

/* Sooner or later one is with the worker when that hangs, and ends when it is replaced. */
static void test_a_worker_that_hangs(void **state)
{
	(void)state;
	struct run run;
	put_hundreds();
	persist_end();
	options.hang_timeout_ms = 2500;
	fault_arm("persist_hang", FAULT_ERROR, 1, 1000);
	persist_begin();
	do
		run = run_of("router_a", true);
	while (!run.err);
	assert_int_equal(run.err, ERR_TIMEOUT);
	assert_string_equal(run.error, "the worker that has the device hangs");
	fault_disarm_all();
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
		TEST(test_a_worker_that_hangs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
