/* The host adaptor over the naive engine, with a /proc of our own and a virtual clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/stats.h"
#include "ingest/host.h"
#include "naive.h"

#define T0_MS INT64_C(1600000000000)

static struct clock_virtual clock_;
static struct task_queue loop;
static struct store *store;
static struct catalog *catalog;
static struct ingest *ingest;
static struct host *host;
static struct arena arena;
static bool catalog_closed_, host_closed_;

/* The one-minute load is the number of readings so far; eth0 has received 1,000 bytes at each. */
static unsigned readings;
static bool no_proc;

static int proc_read(struct files *files, const char *path, size_t max_bytes, struct buf *out)
{
	(void)files;
	(void)max_bytes;
	buf_clear(out);
	if (no_proc)
		return ERR_NOT_FOUND;
	if (strcmp(path, "/proc/loadavg") == 0)
		return buf_printf(out, "%u.5 2 3 1/94 19208\n", ++readings);
	if (strcmp(path, "/proc/net/dev") == 0)
		return buf_printf(out, "a|b\nc|d\neth0: %u 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
				  readings * 1000);
	return ERR_NOT_FOUND;
}

static struct files proc = {.read = proc_read};

static void pump(void)
{
	while (task_queue_run(&loop))
		;
}

static int open_host(struct errbuf *e)
{
	const struct host_options options = {
		.ingest = ingest,
		.store = store,
		.clock = &clock_.clock,
		.files = &proc,
		.executor = &loop.executor,
		.interval_ms = 10000,
		.hostname = "h-1",
	};
	return host_open(&options, &host, e);
}

static int setup(void **state)
{
	(void)state;
	clock_virtual_init(&clock_, T0_MS * 1000);
	task_queue_init(&loop);
	arena_init(&arena, 16 << 20);
	store = naive_open(&clock_.clock);
	const struct catalog_options options = catalog_options_default();
	catalog = catalog_new(store, &clock_.clock, &loop.executor, &options);
	const struct ingest_options door = {
		.store = store,
		.catalog = catalog,
		.clock = &clock_.clock,
		.executor = &loop.executor,
	};
	ingest = ingest_new(&door);
	readings = 0;
	no_proc = false;
	assert_int_equal(open_host(NULL), 0);
	return 0;
}

static void on_closed(void *owner)
{
	*(bool *)owner = true;
}

static void close_host(void)
{
	host_closed_ = false;
	host_close(host, on_closed, &host_closed_);
	assert_false(host_closed_); /* never from within */
	pump();
	assert_true(host_closed_);
	host = NULL;
}

static int teardown(void **state)
{
	(void)state;
	if (host)
		close_host();
	assert_true(ingest_idle(ingest));
	ingest_free(ingest);
	catalog_closed_ = false;
	catalog_close(catalog, on_closed, &catalog_closed_);
	pump();
	assert_true(catalog_closed_);
	store_close(store);
	arena_release(&arena);
	task_queue_release(&loop);
	return 0;
}

static void round_after(int64_t seconds)
{
	clock_virtual_advance(&clock_, seconds * 1000000);
	host_collect(host);
	pump();
}

/* ---- Reading back --------------------------------------------------------------------------- */

static void on_read(struct store_read *read, int err)
{
	(void)read;
	assert_int_equal(err, 0);
}

static struct store_request *ask(struct store_read *read)
{
	read->executor = &loop.executor;
	read->done = on_read;
	read->now_ms = T0_MS;
	assert_int_equal(store_read_submit(read), 0);
	pump();
	return read->requests;
}

/* The samples of one series; its values, as many as fit, and how many there are. */
static size_t values_of(const char *metric, const char *tags_text, int64_t *ts, double *values,
			size_t max)
{
	struct store_read *read = store_read_new(store, 4 << 20);
	struct store_request *open = store_read_add(read, STORE_SERIES_OPEN);
	struct tags tags;
	struct slice name = slice_of(metric);
	assert_int_equal(tags_decode(slice_of(tags_text), &arena, &tags), 0);
	open->series_open = (struct store_series_open){
		.tenant = SLICE("host"),
		.tags = tags,
		.metrics = &name,
		.count = 1,
		.find_only = true,
	};
	uint64_t handle = ask(read)->series_open.handles[0];
	store_read_reset(read);
	size_t count = 0;
	if (handle) {
		struct store_request *range = store_read_add(read, STORE_RANGE);
		range->range = (struct store_range){
			.table = TABLE_DATA_RAW,
			.handles = &handle,
			.handle_count = 1,
			.start_ms = 0,
			.end_ms = STORE_TS_MAX,
		};
		const struct store_points *points = &ask(read)->range.points[0];
		count = points->count;
		for (size_t i = 0; i < count && i < max; i++) {
			ts[i] = points->ts_ms[i];
			values[i] = value_as_f64(
				(struct value){points->bits[0][i], points->types[0][i]});
		}
	}
	store_read_free(read);
	return count;
}

static void on_described(struct catalog_describe *describe, int err)
{
	*(int *)describe->owner = err;
}

static struct catalog_info info_of(const char *metric)
{
	int err = 1;
	struct catalog_describe describe = {
		.catalog = catalog,
		.tenant = SLICE("host"),
		.metric = slice_of(metric),
		.done = on_described,
		.owner = &err,
		.arena = &arena,
	};
	catalog_describe_start(&describe);
	pump();
	assert_int_equal(err, 0);
	return describe.info;
}

/* ---- Cases ---------------------------------------------------------------------------------- */

static void values_come_with_the_second_round(void **state)
{
	(void)state;
	int64_t ts[4];
	double v[4];
	int64_t rounds = stat_get(STAT_host_rounds);
	round_after(0);
	assert_int_equal(values_of("SystemMetrics.LoadAverage.1", "host=h-1", ts, v, 4), 0);
	round_after(1);
	round_after(10);
	/* open_host has read the load once, to see whether it can. */
	assert_int_equal(values_of("SystemMetrics.LoadAverage.1", "host=h-1", ts, v, 4), 2);
	assert_true(v[0] == 3.5 && v[1] == 4.5);
	assert_int_equal(ts[0], T0_MS + 1000);
	assert_int_equal(ts[1], T0_MS + 11000);
	assert_int_equal(values_of("SystemMetrics.LoadAverage.15", "host=h-1", ts, v, 4), 2);
	/* 1,000 bytes within 1 s, then within 10 s */
	const char *eth = "host=h-1,interface=eth0";
	assert_int_equal(values_of("SystemMetrics.network.RxBytes", eth, ts, v, 4), 2);
	assert_true(v[0] == 1000 && v[1] == 100);
	assert_int_equal(values_of("SystemMetrics.network.RxBytes", "host=h-1", ts, v, 4), 2);
	assert_true(v[1] == 100);
	assert_int_equal(stat_get(STAT_host_rounds), rounds + 2);
}

static void kinds_and_units_are_in_the_catalog(void **state)
{
	(void)state;
	round_after(0);
	round_after(10);
	struct catalog_info info = info_of("SystemMetrics.network.RxBytes");
	assert_int_equal(info.kind, KIND_RATE);
	assert_true(slice_equal(info.unit, SLICE("bytes/s")));
	assert_int_equal(info.base_frequency_ms, 10000);
	assert_int_equal(info.home, TABLE_DATA_RAW);
	info = info_of("SystemMetrics.cpu.combined");
	assert_int_equal(info.kind, KIND_GAUGE);
	assert_true(slice_equal(info.unit, SLICE("%")));
}

static void units_are_stored_later_when_the_store_has_no_room_now(void **state)
{
	(void)state;
	round_after(0);
	naive_refuse_writes(store, ERR_BUSY, 1000);
	round_after(10);
	assert_int_equal(info_of("SystemMetrics.Uptime").kind, KIND_UNKNOWN);
	naive_refuse_writes(store, 0, 0);
	round_after(10);
	assert_int_equal(info_of("SystemMetrics.Uptime").kind, KIND_GAUGE);
}

static void a_lost_round_is_counted_and_the_next_one_stands(void **state)
{
	(void)state;
	int64_t ts[4];
	double v[4];
	int64_t lost = stat_get(STAT_host_lost);
	round_after(0);
	round_after(10);
	naive_fail_writes(store, ERR_UNKNOWN, 1);
	round_after(10);
	assert_int_equal(stat_get(STAT_host_lost), lost + 1);
	round_after(10);
	assert_int_equal(stat_get(STAT_host_lost), lost + 1);
	assert_int_equal(values_of("SystemMetrics.LoadAverage.1", "host=h-1", ts, v, 4), 2);
	assert_int_equal(ts[0], T0_MS + 10000);
	assert_int_equal(ts[1], T0_MS + 30000);
}

static void no_round_begins_while_one_runs(void **state)
{
	(void)state;
	int64_t ts[4];
	double v[4];
	int64_t skipped = stat_get(STAT_host_skipped);
	round_after(0);
	clock_virtual_advance(&clock_, 1000000);
	host_collect(host);
	host_collect(host);
	assert_int_equal(stat_get(STAT_host_skipped), skipped + 1);
	pump();
	assert_int_equal(values_of("SystemMetrics.LoadAverage.1", "host=h-1", ts, v, 4), 1);
}

static void closing_waits_for_the_round_at_hand(void **state)
{
	(void)state;
	round_after(0);
	clock_virtual_advance(&clock_, 1000000);
	host_collect(host);
	close_host();
	assert_true(ingest_idle(ingest));
	assert_int_equal(open_host(NULL), 0);
	close_host();
}

static void without_proc_there_is_a_sentence(void **state)
{
	(void)state;
	struct errbuf e = {""};
	close_host();
	no_proc = true;
	assert_int_equal(open_host(&e), ERR_NOT_FOUND);
	assert_non_null(strstr(e.text, "host metrics are read from Linux's /proc"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(values_come_with_the_second_round),
		TEST(kinds_and_units_are_in_the_catalog),
		TEST(units_are_stored_later_when_the_store_has_no_room_now),
		TEST(a_lost_round_is_counted_and_the_next_one_stands),
		TEST(no_round_begins_while_one_runs),
		TEST(closing_waits_for_the_round_at_hand),
		TEST(without_proc_there_is_a_sentence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
