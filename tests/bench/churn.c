/* Pushes many times more data through a store than it may keep, and watches whether it stays as
 * fast and as small as it was in the beginning.
 *
 *   churn --gigabytes 3 [--rounds 5] --data DIR
 *
 * Samples of random doubles, which no codec makes smaller, go into the shortest retention class;
 * the store lives on a virtual clock that goes a minute ahead with each time step, so that settling
 * and expiry work every day from the second on. The gigabytes are what the process has written,
 * journal and tree pages included.
 *
 * Minutes lie between the beginning and the end, and a shared machine is not as fast in the one as
 * in the other. So the beginning is measured again beside the end: in each round a new store takes
 * its first days, and from the second on (the first has nothing to settle or to drop) each day of
 * the new store is followed by one of the aged.
 *
 * Prints one JSON object a day of the aged store, at last one for all:
 *
 *   ratio        samples per CPU second of the aged store by those of a new one: the median round
 *   wall_ratio   the same per second
 *   ratios       of each round
 *   file_bytes   length of the aged store's file at the end; file_bytes_day_5: after its fifth day,
 *                when it has been as full as it gets for two days */
#include <getopt.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/stats.h"
#include "bench/cpu_time.h"
#include "store/lmdb/lmdb.h"
#include "tools/store_wait.h"

enum {
	HOSTS = 200,
	METRICS = 10,
	STEPS_PER_BATCH = 10,
	BATCHES = 4, /* in flight */
	DAYS_MAX = 2000,
	ROUND_DAYS = 3, /* that are compared in a round */
	ROUNDS_MAX = 99,
	FULL_DAYS = 5, /* after which the file has its size */
	STEP_MS = 60000,
	BATCH_MAX_BYTES = 8 << 20,
};

#define BEGIN_MS INT64_C(1704067200000) /* 2024-01-01T00:00:00Z */
#define DAY_MS   INT64_C(86400000)

struct window {
	uint64_t samples, written_bytes, commits, file_bytes, used_bytes;
	double wall_s, cpu_s;
};

struct churn {
	struct store *store;
	struct clock_virtual clock;
	struct task_queue queue;
	struct store_waiter waiter;
	struct random random;
	uint64_t handles[HOSTS][METRICS];
	struct store_write *writes[BATCHES];
	bool busy[BATCHES];
	int64_t next_ms;
	uint64_t samples;
	int err;
	struct window days[DAYS_MAX + 1]; /* running sums, from nothing */
	unsigned day;
};

static void die(const char *what, int err)
{
	fprintf(stderr, "churn: %s: %s\n", what, err_text(err));
	exit(1);
}

/* ---- What it costs -------------------------------------------------------------------------- */

/* What the process handed to write calls. `write_bytes` of the same file is no measure: a kernel
 * with large folios counts, and writes, all of a folio of which one page is dirty. */
static uint64_t written_bytes(void)
{
	FILE *file = fopen("/proc/self/io", "r");
	static const char name[] = "wchar:";
	uint64_t bytes = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, name, sizeof(name) - 1) == 0)
			bytes = strtoull(line + sizeof(name) - 1, NULL, 10);
	}
	if (file)
		fclose(file);
	return bytes;
}

/* ---- Reading -------------------------------------------------------------------------------- */

static struct store_read *read_new(struct churn *churn)
{
	return store_wait_new(&churn->waiter, 256 << 20);
}

static void open_series(struct churn *churn)
{
	static char metric_text[METRICS][16];
	struct slice metrics[METRICS];

	for (size_t m = 0; m < METRICS; m++) {
		snprintf(metric_text[m], sizeof(metric_text[m]), "churn_%zu", m);
		metrics[m] = slice_of(metric_text[m]);
	}
	store_wait_series(&churn->waiter, "host", "h-", HOSTS, metrics, METRICS, churn->handles[0]);
}

/* Samples of all series in [start, end). */
static uint64_t count_samples(struct churn *churn, int64_t start_ms, int64_t end_ms)
{
	struct store_read *read = read_new(churn);
	uint64_t count = 0;

	for (size_t host = 0; host < HOSTS; host++) {
		store_read_reset(read);
		struct store_request *request = store_read_add(read, STORE_AGGREGATE);
		ASSERT(request);
		request->aggregate = (struct store_aggregate){.table = TABLE_DATA_RAW,
							      .handles = churn->handles[host],
							      .handle_count = METRICS,
							      .start_ms = start_ms,
							      .end_ms = end_ms,
							      .window_ms = end_ms - start_ms};
		do {
			size_t from = request->more ? request->aggregate.next_handle : 0;
			store_wait(&churn->waiter, read);
			size_t to = request->more ? request->aggregate.next_handle : METRICS;
			for (size_t i = from; i < to; i++)
				count += request->aggregate.windows[i].count
						 ? request->aggregate.windows[i].list[0].count
						 : 0;
		} while (request->more);
	}
	store_read_free(read);
	return count;
}

static void read_sizes(struct churn *churn, struct window *window)
{
	struct store_token token = {.len = 0};
	struct store_stats stats = {0};
	bool more = true;

	while (more) {
		struct store_read *read = read_new(churn);
		struct store_request *request = store_read_add(read, STORE_STATS);
		ASSERT(request);
		request->token = token;
		*request->stats = stats;
		store_wait(&churn->waiter, read);
		token = request->token;
		stats = *request->stats;
		more = request->more;
		store_read_free(read);
	}
	window->file_bytes = stats.file_bytes;
	window->used_bytes = stats.used_bytes;
}

/* ---- Writing -------------------------------------------------------------------------------- */

static void write_done(struct store_write *write, int err)
{
	struct churn *churn = write->owner;

	for (size_t i = 0; i < BATCHES; i++) {
		if (churn->writes[i] == write)
			churn->busy[i] = false;
	}
	if (err)
		churn->err = err;
}

static struct store_write *write_free(struct churn *churn)
{
	for (;;) {
		if (churn->err)
			die("write", churn->err);
		for (size_t i = 0; i < BATCHES; i++) {
			if (!churn->busy[i]) {
				churn->busy[i] = true;
				store_write_reset(churn->writes[i]);
				return churn->writes[i];
			}
		}
		task_queue_wait(&churn->queue);
	}
}

static void write_step(struct churn *churn, struct store_write *write)
{
	struct value values[METRICS];

	for (size_t host = 0; host < HOSTS; host++) {
		for (size_t m = 0; m < METRICS; m++)
			values[m] = value_f64(random_unit(&churn->random));
		int err = store_append(write,
				       &(struct store_target){TABLE_DATA_RAW, RETENTION_2_DAYS},
				       churn->next_ms, churn->handles[host], METRICS, values);
		if (err)
			die("append", err);
	}
	churn->next_ms += STEP_MS;
	churn->samples += HOSTS * METRICS;
}

static void write_batch(struct churn *churn)
{
	struct store_write *write = write_free(churn);
	int err;

	for (size_t step = 0; step < STEPS_PER_BATCH; step++)
		write_step(churn, write);
	clock_virtual_advance(&churn->clock, (int64_t)STEPS_PER_BATCH * STEP_MS * 1000);
	while ((err = store_write_submit(write)) == ERR_BUSY)
		task_queue_wait(&churn->queue);
	if (err)
		die("submit", err);
}

static void write_drain(struct churn *churn)
{
	for (size_t i = 0; i < BATCHES; i++) {
		while (churn->busy[i])
			task_queue_wait(&churn->queue);
	}
	if (churn->err)
		die("write", churn->err);
}

/* ---- A day ---------------------------------------------------------------------------------- */

static void print_window(const struct window *a, const struct window *b)
{
	printf("{\"samples\": %llu, \"written_bytes\": %llu, \"seconds\": %.2f, \"cpu_s\": %.2f, "
	       "\"commits_per_s\": %.0f, \"samples_per_cpu_s\": %.0f, \"file_bytes\": %llu, "
	       "\"used_bytes\": %llu}\n",
	       (unsigned long long)(b->samples - a->samples),
	       (unsigned long long)(b->written_bytes - a->written_bytes), b->wall_s - a->wall_s,
	       b->cpu_s - a->cpu_s, (double)(b->commits - a->commits) / (b->wall_s - a->wall_s),
	       (double)(b->samples - a->samples) / (b->cpu_s - a->cpu_s),
	       (unsigned long long)b->file_bytes, (unsigned long long)b->used_bytes);
	fflush(stdout);
}

static void run_day(struct churn *churn)
{
	struct clock *real = clock_real();
	int64_t begun_us = real->mono_us(real);
	uint64_t begun_bytes = written_bytes(),
		 begun_commits = (uint64_t)stat_get(STAT_store_commits);
	double begun_cpu_s = cpu_s();

	ASSERT(churn->day < DAYS_MAX);
	struct window *before = &churn->days[churn->day], *day = &churn->days[++churn->day];
	while (churn->next_ms < BEGIN_MS + churn->day * DAY_MS)
		write_batch(churn);
	write_drain(churn);
	read_sizes(churn, day);
	day->samples = churn->samples;
	day->written_bytes = before->written_bytes + written_bytes() - begun_bytes;
	day->commits = before->commits + (uint64_t)stat_get(STAT_store_commits) - begun_commits;
	day->wall_s = before->wall_s + (double)(real->mono_us(real) - begun_us) / 1e6;
	day->cpu_s = before->cpu_s + cpu_s() - begun_cpu_s;
}

static void churn_open(struct churn *churn, const char *path)
{
	struct lmdb_options options = {.path = path, .clock = &churn->clock.clock};
	struct errbuf e;

	clock_virtual_init(&churn->clock, BEGIN_MS * 1000);
	task_queue_init(&churn->queue);
	random_init(&churn->random, 1);
	churn->next_ms = BEGIN_MS;
	int err = lmdb_open(&options, &churn->store, &e);
	if (err)
		die(e.text, err);
	churn->waiter =
		(struct store_waiter){churn->store, &churn->queue, &churn->clock.clock, die};
	for (size_t i = 0; i < BATCHES; i++) {
		churn->writes[i] = store_write_new(churn->store, BATCH_MAX_BYTES);
		churn->writes[i]->executor = &churn->queue.executor;
		churn->writes[i]->done = write_done;
		churn->writes[i]->owner = churn;
	}
	open_series(churn);
}

static void churn_close(struct churn *churn)
{
	for (size_t i = 0; i < BATCHES; i++)
		store_write_free(churn->writes[i]);
	store_close(churn->store);
	task_queue_release(&churn->queue);
}

/* ---- The whole ------------------------------------------------------------------------------ */

static void grow_old(struct churn *churn, uint64_t bytes)
{
	while (churn->day <= FULL_DAYS || churn->days[churn->day].written_bytes < bytes) {
		run_day(churn);
		print_window(&churn->days[churn->day - 1], &churn->days[churn->day]);
	}
}

static double rate(const struct churn *churn, bool cpu)
{
	const struct window *end = &churn->days[churn->day], *begin = end - ROUND_DAYS;
	double seconds = cpu ? end->cpu_s - begin->cpu_s : end->wall_s - begin->wall_s;
	return (double)(end->samples - begin->samples) / seconds;
}

/* The aged store's rates by those of a new one, which is made in a folder below `path`. */
static void run_round(struct churn *aged, const char *path, unsigned round, double *cpu,
		      double *wall)
{
	struct churn *fresh = mem_zalloc(sizeof(*fresh));
	char folder[4096];

	snprintf(folder, sizeof(folder), "%s/new-%u", path, round);
	churn_open(fresh, folder);
	run_day(fresh);
	for (unsigned day = 0; day < ROUND_DAYS; day++) {
		run_day(fresh);
		run_day(aged);
	}
	*cpu = rate(aged, true) / rate(fresh, true);
	*wall = rate(aged, false) / rate(fresh, false);
	churn_close(fresh);
	mem_free(fresh);
}

static int order(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static double median(const double *values, unsigned count)
{
	double sorted[ROUNDS_MAX];

	memcpy(sorted, values, count * sizeof(*values));
	qsort(sorted, count, sizeof(*sorted), order);
	return sorted[count / 2];
}

static void print_summary(struct churn *churn, const double *cpu, const double *wall,
			  unsigned rounds)
{
	const struct window *last = &churn->days[churn->day];
	/* A day and a half lies well within the retention of two. */
	int64_t from_ms = churn->next_ms - DAY_MS * 3 / 2, old_ms = churn->next_ms - 5 * DAY_MS;
	uint64_t visible = count_samples(churn, from_ms, churn->next_ms);
	uint64_t expected = (uint64_t)(DAY_MS * 3 / 2 / STEP_MS) * HOSTS * METRICS;

	printf("{\"samples\": %llu, \"written_bytes\": %llu, \"seconds\": %.2f, \"cpu_s\": %.2f, "
	       "\"ratio\": %.3f, \"wall_ratio\": %.3f, \"ratios\": [",
	       (unsigned long long)last->samples, (unsigned long long)last->written_bytes,
	       last->wall_s, last->cpu_s, median(cpu, rounds), median(wall, rounds));
	for (unsigned i = 0; i < rounds; i++)
		printf("%s%.3f", i ? ", " : "", cpu[i]);
	printf("], \"file_bytes_day_5\": %llu, \"file_bytes\": %llu, \"days\": %u, "
	       "\"visible_samples\": %llu, \"expected_samples\": %llu, "
	       "\"expired_samples\": %llu}\n",
	       (unsigned long long)churn->days[FULL_DAYS].file_bytes,
	       (unsigned long long)last->file_bytes, churn->day, (unsigned long long)visible,
	       (unsigned long long)expected,
	       (unsigned long long)count_samples(churn, BEGIN_MS, old_ms));
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"gigabytes", required_argument, NULL, 'g'},
		{"rounds", required_argument, NULL, 'r'},
		{"data", required_argument, NULL, 'd'},
		{NULL, 0, NULL, 0},
	};
	static struct churn churn;
	const char *path = NULL;
	double gigabytes = 3, cpu[ROUNDS_MAX], wall[ROUNDS_MAX];
	unsigned rounds = 5;
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'g')
			gigabytes = strtod(optarg, NULL);
		else if (option == 'r')
			rounds = (unsigned)strtoul(optarg, NULL, 10);
		else if (option == 'd')
			path = optarg;
		else
			break;
	}
	if (option != -1 || !path || !(gigabytes > 0) || !rounds || rounds > ROUNDS_MAX ||
	    optind != argc) {
		fputs("usage: churn [--gigabytes N] [--rounds 1..99] --data DIR\n", stderr);
		return 2;
	}
	churn_open(&churn, path);
	grow_old(&churn, (uint64_t)(gigabytes * 1e9));
	for (unsigned i = 0; i < rounds; i++)
		run_round(&churn, path, i + 1, &cpu[i], &wall[i]);
	print_summary(&churn, cpu, wall, rounds);
	churn_close(&churn);
	return 0;
}
