/* What rates cost: the arithmetic alone, and jobs on a store.
 *
 *   rate_bench [--devices 20] [--rows 48] [--columns 10] [--polls 1000] [--speeds] --data DIR
 *
 * Each counter is polled every 30 s, some seconds off, and grows at random. A job per device runs
 * after each 10 polls, as every five minutes. With --speeds each row has its ifHighSpeed polled,
 * too. A rate is one sample that was fed: its share of a bin, an hour and a day. Prints one JSON
 * object: rates per CPU second of feeding alone, of the jobs until everything was durable (the
 * writing of raw data left out), and likewise with what the store does about their rows until all
 * has settled. */
#include <getopt.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/mem.h"
#include "base/random.h"
#include "bench/cpu_time.h"
#include "rate/job.h"
#include "store/lmdb/lmdb.h"
#include "tools/store_wait.h"

enum {
	COLUMNS_MAX = 32,
	STEP_MS = 30000,
	POLLS_PER_JOB = 10,
	WRITE_MAX_BYTES = 32 << 20,
	JOBS = 8, /* at once, as a worker has them */
};

#define BEGIN_MS INT64_C(1451606400000) /* 2016-01-01T00:00:00Z */

static struct {
	size_t devices, rows, columns, polls;
	bool speeds;
	struct store *store;
	struct task_queue queue;
	struct store_waiter waiter;
	struct random random;
	struct slice metrics[COLUMNS_MAX + 1]; /* the speed is the last */
	struct rate_column column_list[COLUMNS_MAX];
	struct rate_table *tables;
	uint64_t *values; /* by device, row, column */
	struct store_write *write;
	bool done;
	int err;
	struct rate_job_result sum;
	size_t next_device, jobs_left; /* of this round of jobs */
	int64_t until_ms;
} bench = {.devices = 20, .rows = 48, .columns = 10, .polls = 1000};

static void die(const char *what, int err)
{
	fprintf(stderr, "rate_bench: %s: %s\n", what, err_text(err));
	exit(1);
}

static void wait_done(const char *what)
{
	while (!bench.done)
		task_queue_wait(&bench.queue);
	bench.done = false;
	if (bench.err)
		die(what, bench.err);
}

/* ---- Feeding alone --------------------------------------------------------------------------- */

static double feed_alone(void)
{
	static const struct counter_config config = {STEP_MS, 2, {3600000, 86400000}};
	struct counter_def def = {&config, 64, true};
	struct counter_out out = {.max = 4 * counter_rows_max(&config)};
	struct counter_sample s = {.ts_ms = BEGIN_MS + 1000, .has_uptime = true};
	struct counter counter = {0};
	size_t count = 10000000;
	double begun_s = cpu_s();

	out.rows = mem_alloc_array(out.max, sizeof(*out.rows));
	for (size_t i = 0; i < count; i++) {
		uint64_t bits = random_next(&bench.random);
		s.ts_ms += STEP_MS - 500 + (int64_t)(bits & 1023);
		s.value += bits >> 32;
		s.uptime_ticks = (uint32_t)(s.ts_ms / 10);
		s.uptime_ts_ms = s.ts_ms;
		if (out.max - out.count < counter_rows_max(&config))
			out.count = 0;
		counter_feed(&def, &counter, &s, &out);
	}
	mem_free(out.rows);
	return (double)count / (cpu_s() - begun_s);
}

/* ---- The store ------------------------------------------------------------------------------- */

static void open_device(size_t device)
{
	struct rate_table *table = &bench.tables[device];
	struct rate_row *rows = mem_zalloc(bench.rows * sizeof(*rows));
	size_t each = bench.columns + bench.speeds;
	uint64_t *handles = mem_alloc_array(bench.rows * each, sizeof(*handles));
	struct slice uptime = SLICE("sysUpTime");
	uint64_t uptime_handle;
	char *name = mem_alloc(64);

	snprintf(name, 64, "d%zu-", device);
	store_wait_series(&bench.waiter, "interface", name, bench.rows, bench.metrics, each,
			  handles);
	store_wait_series(&bench.waiter, "device", name, 1, &uptime, 1, &uptime_handle);
	for (size_t i = 0; i < bench.rows; i++)
		rows[i] = (struct rate_row){
			.id = i,
			.handles = handles + i * each,
			.speed = bench.speeds ? handles[i * each + bench.columns] : 0,
		};
	*table = (struct rate_table){.device = slice_of(name),
				     .oidset = SLICE("FastPollHC"),
				     .config = {STEP_MS, 2, {3600000, 86400000}},
				     .columns = bench.column_list,
				     .column_count = bench.columns,
				     .rows = rows,
				     .row_count = bench.rows,
				     .uptime = uptime_handle};
}

static void write_done(UNUSED struct store_write *write, int err)
{
	bench.err = err;
	bench.done = true;
}

static void append(int64_t ts_ms, const uint64_t *handles, size_t n, const struct value *values)
{
	int err = store_append(bench.write,
			       &(struct store_target){TABLE_RAW_DATA, RETENTION_EVER, STEP_MS},
			       ts_ms, handles, n, values);
	if (err)
		die("append", err);
}

static void poll_device(size_t device, int64_t ts_ms)
{
	const struct rate_table *table = &bench.tables[device];
	uint64_t *at = bench.values + device * bench.rows * bench.columns;
	struct value values[COLUMNS_MAX + 1], ticks = value_u64((uint64_t)ts_ms / 10 % UINT32_MAX);

	ts_ms += (int64_t)(device * 977 % STEP_MS);
	append(ts_ms, &table->uptime, 1, &ticks);
	for (size_t row = 0; row < bench.rows; row++, at += bench.columns) {
		uint64_t bits = random_next(&bench.random);
		for (size_t c = 0; c < bench.columns; c++, bits = bits * 6364136223846793005U + 1)
			values[c] = value_u64(at[c] += bits >> 40);
		values[bench.columns] = value_u64(10000);
		append(ts_ms, table->rows[row].handles, bench.columns + bench.speeds, values);
	}
}

static void poll_all(size_t poll)
{
	for (size_t i = 0; i < bench.devices; i++)
		poll_device(i, BEGIN_MS + (int64_t)poll * STEP_MS);
	int err = store_write_submit(bench.write);
	if (err)
		die("submit", err);
	wait_done("write");
	store_write_reset(bench.write);
}

static void begin_job(struct rate_job *job);

static void job_done(struct rate_job *job, int err)
{
	if (err)
		die(rate_job_error(job), err);
	bench.sum.samples += rate_job_result(job).samples;
	bench.sum.rows += rate_job_result(job).rows;
	bench.jobs_left--;
	begin_job(job);
}

static void begin_job(struct rate_job *job)
{
	if (bench.next_device == bench.devices)
		return;
	struct rate_job_options options = {
		.table = &bench.tables[bench.next_device++],
		.until_ms = bench.until_ms,
		.now_ms = clock_wall_ms(clock_real()),
		.retention = {RETENTION_EVER, RETENTION_EVER, RETENTION_EVER},
		.done = job_done};
	int err = rate_job_start(job, &options);
	if (err)
		die("job", err);
}

static void run_jobs(struct rate_job **jobs, int64_t until_ms)
{
	bench.until_ms = until_ms;
	bench.next_device = 0;
	bench.jobs_left = bench.devices;
	for (size_t i = 0; i < JOBS; i++)
		begin_job(jobs[i]);
	while (bench.jobs_left)
		task_queue_wait(&bench.queue);
}

static void settle(void)
{
	int err = lmdb_settle(bench.store);
	if (err)
		die("settle", err);
}

static void run(double fed)
{
	struct rate_job *jobs[JOBS];
	double jobs_s = 0, settled_s = 0;

	for (size_t i = 0; i < JOBS; i++)
		jobs[i] = rate_job_new(bench.store, &bench.queue.executor);
	for (size_t poll = 0; poll < bench.polls; poll++) {
		poll_all(poll);
		if (poll % POLLS_PER_JOB != POLLS_PER_JOB - 1)
			continue;
		double begun_s = cpu_s();
		run_jobs(jobs, BEGIN_MS + (int64_t)poll * STEP_MS + STEP_MS);
		jobs_s += cpu_s() - begun_s;
	}
	double begun_s = cpu_s();
	settle();
	settled_s = cpu_s() - begun_s;
	printf("{\"rates\": %llu, \"rows\": %llu, \"fed_per_cpu_s\": %.0f, "
	       "\"jobs_per_cpu_s\": %.0f, \"settle_cpu_s_of_all\": %.2f, \"jobs_cpu_s\": %.2f}\n",
	       (unsigned long long)bench.sum.samples, (unsigned long long)bench.sum.rows, fed,
	       (double)bench.sum.samples / jobs_s, settled_s, jobs_s);
	for (size_t i = 0; i < JOBS; i++)
		rate_job_free(jobs[i]);
}

static void bench_open(const char *path)
{
	struct lmdb_options options = {.path = path};
	struct errbuf e;
	static char names[COLUMNS_MAX][16];
	int err = lmdb_open(&options, &bench.store, &e);

	if (err)
		die(e.text, err);
	task_queue_init(&bench.queue);
	bench.waiter = (struct store_waiter){bench.store, &bench.queue, clock_real(), die};
	for (size_t c = 0; c < bench.columns; c++) {
		snprintf(names[c], sizeof(names[c]), "ifCounter%zu", c);
		bench.metrics[c] = slice_of(names[c]);
		bench.column_list[c] = (struct rate_column){bench.metrics[c], 64, true};
	}
	bench.metrics[bench.columns] = SLICE("ifHighSpeed");
	bench.tables = mem_zalloc(bench.devices * sizeof(*bench.tables));
	bench.values = mem_zalloc(bench.devices * bench.rows * bench.columns * sizeof(uint64_t));
	for (size_t i = 0; i < bench.devices; i++)
		open_device(i);
	bench.write = store_write_new(bench.store, WRITE_MAX_BYTES);
	bench.write->executor = &bench.queue.executor;
	bench.write->done = write_done;
}

static void bench_close(void)
{
	store_write_free(bench.write);
	store_close(bench.store);
	for (size_t i = 0; i < bench.devices; i++) {
		mem_free((void *)bench.tables[i].rows[0].handles);
		mem_free((void *)bench.tables[i].rows);
		mem_free((void *)bench.tables[i].device.data);
	}
	mem_free(bench.tables);
	mem_free(bench.values);
	task_queue_release(&bench.queue);
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"devices", required_argument, NULL, 'd'},
		{"rows", required_argument, NULL, 'r'},
		{"columns", required_argument, NULL, 'c'},
		{"polls", required_argument, NULL, 'p'},
		{"data", required_argument, NULL, 'D'},
		{"speeds", no_argument, NULL, 's'},
		{NULL, 0, NULL, 0},
	};
	const char *path = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'd')
			bench.devices = strtoul(optarg, NULL, 10);
		else if (option == 'r')
			bench.rows = strtoul(optarg, NULL, 10);
		else if (option == 'c')
			bench.columns = strtoul(optarg, NULL, 10);
		else if (option == 'p')
			bench.polls = strtoul(optarg, NULL, 10);
		else if (option == 's')
			bench.speeds = true;
		else if (option == 'D')
			path = optarg;
		else
			break;
	}
	if (option != -1 || !path || !bench.devices || !bench.rows || !bench.columns ||
	    bench.columns > COLUMNS_MAX || optind != argc) {
		fputs("usage: rate_bench [--devices N] [--rows N] [--columns N] [--polls N] "
		      "[--speeds] --data DIR\n",
		      stderr);
		return 2;
	}
	random_init(&bench.random, 1);
	double fed = feed_alone();
	bench_open(path);
	run(fed);
	bench_close();
	return 0;
}
