/* What roll-ups cost: a job over slots of raw data in a store.
 *
 *   rollup_bench [--hosts 1000] [--slots 4] [--step 10] [--partitions 1] --data DIR
 *
 * Each host has ten gauges that walk at random, sampled every `step` seconds; slots are an hour,
 * the granularities 5 minutes and 1 hour. What was written is marked as a door would. Prints one
 * JSON object: raw samples rolled up per CPU second until the rows were durable, the same with what
 * the store does until all has settled (raw data settled before), the CPU seconds that marking took
 * of those that writing took, and the seconds on the wall from the begin of the pass until its end.
 */
#include <getopt.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/mem.h"
#include "base/random.h"
#include "bench/cpu_time.h"
#include "rollup/job.h"
#include "marks/store.h"
#include "store/lmdb/lmdb.h"
#include "tools/store_wait.h"

enum {
	METRICS = 10,
	HOUR_S = 3600,
	QUIET_MS = 300000,
	WRITE_MAX_BYTES = 48 << 20,
	HOSTS_PER_WRITE = 100,
	NAME_BYTES = 64,
};

static struct {
	size_t hosts, slots, step_s;
	uint32_t partitions;
	int64_t begin_s;
	struct store *store;
	struct marks *marks;
	struct task_queue queue;
	struct store_waiter waiter;
	struct random random;
	uint64_t *handles; /* by host and metric */
	double *values;
	struct store_write *write;
	bool done;
	int err;
} bench = {.hosts = 1000, .slots = 4, .step_s = 10, .partitions = 1};

static const char *const names[METRICS] = {
	"usage_user", "usage_system",  "usage_idle",  "usage_nice",  "usage_iowait",
	"usage_irq",  "usage_softirq", "usage_steal", "usage_guest", "usage_guest_nice"};

static void die(const char *what, int err)
{
	fprintf(stderr, "rollup_bench: %s: %s\n", what, err_text(err));
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

static void write_done(UNUSED struct store_write *write, int err)
{
	bench.err = err;
	bench.done = true;
}

static void submit(void)
{
	int err = store_write_submit(bench.write);
	if (err)
		die("submit", err);
	wait_done("write");
	store_write_reset(bench.write);
}

/* ---- Filling --------------------------------------------------------------------------------- */

static void append_hosts(size_t first, int64_t ts_s)
{
	for (size_t h = first; h < first + HOSTS_PER_WRITE && h < bench.hosts; h++) {
		struct value values[METRICS];
		double *at = &bench.values[h * METRICS];
		for (size_t m = 0; m < METRICS; m++) {
			at[m] += (double)(random_next(&bench.random) % 21) / 10 - 1;
			values[m] = value_f64(at[m]);
		}
		int err = store_append(bench.write,
				       &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
				       ts_s * 1000, &bench.handles[h * METRICS], METRICS, values);
		if (err)
			die("append", err);
	}
}

static void fill_slot(int64_t slot_s)
{
	for (size_t first = 0; first < bench.hosts; first += HOSTS_PER_WRITE) {
		for (size_t at_s = 0; at_s < HOUR_S; at_s += bench.step_s)
			append_hosts(first, slot_s + (int64_t)at_s);
		submit();
	}
}

/* As marks_collect does it, the look-up of the series left out. */
static void mark_hosts(size_t first, int64_t slot_s)
{
	size_t added = 0, n = 0, count = HOSTS_PER_WRITE * METRICS;
	struct mark_touch *touches = mem_alloc_array(count, sizeof(*touches));
	char(*texts)[NAME_BYTES] = mem_alloc_array(HOSTS_PER_WRITE, NAME_BYTES);
	for (size_t h = first; h < first + HOSTS_PER_WRITE && h < bench.hosts; h++) {
		struct slice tenant = SLICE("default"), tags = {texts[h - first], 0};
		tags.len = (size_t)snprintf(texts[h - first], NAME_BYTES, ",host=h%zu", h);
		for (size_t m = 0; m < METRICS; m++, n++) {
			struct series_set set = {slice_of(names[m]), tags};
			touches[n] = (struct mark_touch){
				{slot_s, partition_of(tenant, set, bench.partitions)}, tenant, set};
		}
	}
	mark_touches_sort(touches, n);
	int err = marks_touches_add(bench.marks, bench.write, clock_wall_ms(clock_real()), touches,
				    n, &added);
	if (err)
		die("marks", err);
	submit();
	mem_free(touches);
	mem_free(texts);
}

static void mark_slot(int64_t slot_s)
{
	for (size_t first = 0; first < bench.hosts; first += HOSTS_PER_WRITE)
		mark_hosts(first, slot_s);
}

/* ---- Rolling up ------------------------------------------------------------------------------ */

static struct rollup_pass run_pass(void)
{
	static const char *const items[] = {"5m:14d", "1h:365d"};
	struct rollup_site site = {.store = bench.store,
				   .marks = bench.marks,
				   .clock = clock_real(),
				   .quiet_ms = QUIET_MS};
	struct partitions own;
	struct errbuf e;
	char all[32];
	snprintf(all, sizeof(all), "0-%u", bench.partitions - 1);
	if (granularities_parse(items, 2, HOUR_S * 1000, &site.granularities, &e) ||
	    partitions_parse(slice_of(all), bench.partitions, &own, &e))
		die(e.text, ERR_INVALID);
	struct rollup_job *job = rollup_job_new(&site, NULL);
	struct rollup_pass pass = rollup_job_run(
		job, &bench.queue, &own, clock_wall_ms(clock_real()) + 2 * QUIET_MS, INT64_MAX);
	rollup_job_free(job);
	if (pass.err)
		die("pass", pass.err);
	return pass;
}

static void settle(void)
{
	int err = lmdb_settle(bench.store);
	if (err)
		die("settle", err);
}

static void run(void)
{
	/* The last slots that are over, so that nothing is written into the distant past. */
	int64_t now_s = clock_wall_ms(clock_real()) / 1000;
	bench.begin_s = now_s / HOUR_S * HOUR_S - (int64_t)bench.slots * HOUR_S;
	double begun_s = cpu_s();
	for (size_t slot = 0; slot < bench.slots; slot++)
		fill_slot(bench.begin_s + (int64_t)slot * HOUR_S);
	double written_s = cpu_s();
	for (size_t slot = 0; slot < bench.slots; slot++)
		mark_slot(bench.begin_s + (int64_t)slot * HOUR_S);
	double marked_s = cpu_s();
	settle();
	double ready_s = cpu_s();
	int64_t ready_ms = clock_mono_ms(clock_real());
	struct rollup_pass pass = run_pass();
	double passed_s = cpu_s();
	int64_t passed_ms = clock_mono_ms(clock_real());
	settle();
	double samples =
		(double)(bench.hosts * METRICS * bench.slots) * (double)(HOUR_S / bench.step_s);
	printf("{\"samples\": %.0f, \"series_slots\": %llu, \"rows\": %llu, "
	       "\"per_cpu_s\": %.0f, \"settled_per_cpu_s\": %.0f, \"written_cpu_s\": %.2f, "
	       "\"marked_cpu_s\": %.3f, \"pass_s\": %.2f}\n",
	       samples, (unsigned long long)pass.rolled_up, (unsigned long long)pass.rows,
	       samples / (passed_s - ready_s), samples / (cpu_s() - ready_s), written_s - begun_s,
	       marked_s - written_s, (double)(passed_ms - ready_ms) / 1e3);
}

static void bench_open(const char *path)
{
	struct lmdb_options options = {.path = path};
	struct slice metrics[METRICS];
	struct errbuf e;
	int err = lmdb_open(&options, &bench.store, &e);
	if (err)
		die(e.text, err);
	task_queue_init(&bench.queue);
	bench.marks = marks_store_open(
		&(struct marks_store_options){.store = bench.store, .writer = SLICE("bench")});
	bench.waiter = (struct store_waiter){bench.store, &bench.queue, clock_real(), die};
	bench.handles = mem_alloc_array(bench.hosts * METRICS, sizeof(*bench.handles));
	bench.values = mem_zalloc(bench.hosts * METRICS * sizeof(*bench.values));
	for (size_t m = 0; m < METRICS; m++)
		metrics[m] = slice_of(names[m]);
	store_wait_series(&bench.waiter, "host", "h", bench.hosts, metrics, METRICS, bench.handles);
	bench.write = store_write_new(bench.store, WRITE_MAX_BYTES);
	bench.write->executor = &bench.queue.executor;
	bench.write->done = write_done;
}

static void bench_close(void)
{
	store_write_free(bench.write);
	marks_close(bench.marks);
	store_close(bench.store);
	mem_free(bench.handles);
	mem_free(bench.values);
	task_queue_release(&bench.queue);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"hosts", required_argument, NULL, 'h'},
		{"slots", required_argument, NULL, 's'},
		{"step", required_argument, NULL, 't'},
		{"data", required_argument, NULL, 'D'},
		{"partitions", required_argument, NULL, 'p'},
		{NULL, 0, NULL, 0},
	};
	const char *path = NULL;
	int option;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'h')
			bench.hosts = strtoul(optarg, NULL, 10);
		else if (option == 's')
			bench.slots = strtoul(optarg, NULL, 10);
		else if (option == 't')
			bench.step_s = strtoul(optarg, NULL, 10);
		else if (option == 'p')
			bench.partitions = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'D')
			path = optarg;
		else
			break;
	}
	if (option != -1 || !path || !bench.hosts || !bench.slots || !bench.step_s ||
	    !bench.partitions || bench.step_s > HOUR_S || optind != argc) {
		fputs("usage: rollup_bench [--hosts N] [--slots N] [--step SECONDS] "
		      "[--partitions N] --data DIR\n",
		      stderr);
		return 2;
	}
	random_init(&bench.random, 1);
	bench_open(path);
	run();
	bench_close();
	return 0;
}
