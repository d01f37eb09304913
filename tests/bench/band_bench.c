/* Whether values that share a time should share a row: the same samples of ten metrics of each
 * host, once as bands of ten (one row for all of them), once as ten series that were registered one
 * by one (a row each), through the store alone.
 *
 *   band_bench --shared --hosts 1000 --points 2160 --data DIR
 *   band_bench --single --hosts 1000 --points 2160 --data DIR
 *
 * Values walk at random in 0 ... 100 as those of tsbs_gen do. Prints one JSON object: CPU seconds
 * of the whole process until the last batch was durable and until all has settled, less those of
 * the walk; what is in the journal before it settles (all, as long as no head is full: up to 500
 * points); and what the settled samples take. */
#include <getopt.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/mem.h"
#include "base/random.h"
#include "bench/cpu_time.h"
#include "store/lmdb/lmdb.h"
#include "tools/store_wait.h"

enum {
	METRICS = 10,
	HOSTS_MAX = 100000,
	BATCH_ROWS = 1000, /* hosts in one batch, as a request of line protocol has */
	BATCHES = 4,       /* in flight */
	STEP_MS = 10000,
	BATCH_MAX_BYTES = 8 << 20,
};

#define BEGIN_MS INT64_C(1451606400000) /* 2016-01-01T00:00:00Z */

struct bench {
	struct store *store;
	struct task_queue queue;
	struct store_waiter waiter;
	struct random random;
	bool shared;
	size_t hosts, points;
	uint64_t *handles; /* by host, then metric */
	int64_t *walks;    /* likewise */
	struct store_write *writes[BATCHES], *write;
	bool busy[BATCHES];
	size_t rows;
	int err;
};

static void die(const char *what, int err)
{
	fprintf(stderr, "band_bench: %s: %s\n", what, err_text(err));
	exit(1);
}

/* ---- Series --------------------------------------------------------------------------------- */

static void open_series(struct bench *bench)
{
	static char text[METRICS][16];
	struct slice metrics[METRICS];
	uint64_t *one = mem_alloc_array(bench->hosts, sizeof(*one));

	for (size_t m = 0; m < METRICS; m++) {
		snprintf(text[m], sizeof(text[m]), "cpu_%zu", m);
		metrics[m] = slice_of(text[m]);
	}
	if (bench->shared)
		store_wait_series(&bench->waiter, "host", "h-", bench->hosts, metrics, METRICS,
				  bench->handles);
	for (size_t m = 0; m < METRICS && !bench->shared; m++) {
		store_wait_series(&bench->waiter, "host", "h-", bench->hosts, &metrics[m], 1, one);
		for (size_t host = 0; host < bench->hosts; host++)
			bench->handles[host * METRICS + m] = one[host];
	}
	mem_free(one);
}

/* ---- Writing -------------------------------------------------------------------------------- */

static void write_done(struct store_write *write, int err)
{
	struct bench *bench = write->owner;

	for (size_t i = 0; i < BATCHES; i++) {
		if (bench->writes[i] == write)
			bench->busy[i] = false;
	}
	if (err)
		bench->err = err;
}

static void submit(struct bench *bench)
{
	int err;

	if (!bench->write || !bench->rows)
		return;
	while ((err = store_write_submit(bench->write)) == ERR_BUSY)
		task_queue_wait(&bench->queue);
	if (err)
		die("submit", err);
	bench->write = NULL;
	bench->rows = 0;
}

static struct store_write *write_free(struct bench *bench)
{
	while (!bench->write) {
		if (bench->err)
			die("write", bench->err);
		for (size_t i = 0; i < BATCHES && !bench->write; i++) {
			if (bench->busy[i])
				continue;
			bench->busy[i] = true;
			bench->write = bench->writes[i];
			store_write_reset(bench->write);
		}
		if (!bench->write)
			task_queue_wait(&bench->queue);
	}
	return bench->write;
}

static void walk(struct bench *bench, int64_t *at, struct value *values)
{
	uint64_t bits = random_next(&bench->random);

	for (size_t m = 0; m < METRICS; m++) {
		/* The sum of six bits less three has the spread of N(0, 1.2). */
		at[m] += __builtin_popcountll(bits & 63) - 3;
		bits >>= 6;
		at[m] = at[m] < 0 ? 0 : at[m] > 100 ? 100 : at[m];
		values[m] = value_i64(at[m]);
	}
}

static void append(struct bench *bench, size_t host, int64_t ts_ms, const struct value *values)
{
	const uint64_t *handles = bench->handles + host * METRICS;
	size_t together = bench->shared ? METRICS : 1;

	for (size_t m = 0; m < METRICS; m += together) {
		int err = store_append(write_free(bench),
				       &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
				       ts_ms, handles + m, together, values + m);
		if (err)
			die("append", err);
	}
	if (++bench->rows == BATCH_ROWS)
		submit(bench);
}

static void write_all(struct bench *bench, bool appends)
{
	struct value values[METRICS];

	for (size_t point = 0; point < bench->points; point++) {
		for (size_t host = 0; host < bench->hosts; host++) {
			walk(bench, bench->walks + host * METRICS, values);
			if (appends)
				append(bench, host, BEGIN_MS + (int64_t)point * STEP_MS, values);
		}
	}
	submit(bench);
	for (size_t i = 0; i < BATCHES; i++) {
		while (bench->busy[i])
			task_queue_wait(&bench->queue);
	}
	if (bench->err)
		die("write", bench->err);
}

/* ---- The whole ------------------------------------------------------------------------------ */

static struct store_table_stats stats_of(struct bench *bench, uint64_t *journal_bytes)
{
	struct store_read *read = store_wait_new(&bench->waiter, 64 << 20);
	struct store_request *request = store_read_add(read, STORE_STATS);

	ASSERT(request);
	do {
		store_wait(&bench->waiter, read);
	} while (request->more);
	struct store_table_stats stats = request->stats->tables[TABLE_DATA_RAW];
	*journal_bytes = request->stats->journal_bytes;
	store_read_free(read);
	return stats;
}

static void run(struct bench *bench)
{
	double samples = (double)bench->hosts * (double)bench->points * METRICS;
	double begun_s = cpu_s();
	uint64_t journal_bytes, unused;

	write_all(bench, false);
	double walks_s = cpu_s() - begun_s;
	memset(bench->walks, 0, bench->hosts * METRICS * sizeof(*bench->walks));
	begun_s = cpu_s();
	write_all(bench, true);
	double durable_s = cpu_s() - begun_s - walks_s;
	stats_of(bench, &journal_bytes);
	begun_s = cpu_s();
	int err = lmdb_settle(bench->store);
	if (err)
		die("settle", err);
	double settled_s = durable_s + cpu_s() - begun_s;
	struct store_table_stats stats = stats_of(bench, &unused);
	printf("{\"samples\": %.0f, \"durable_cpu_s\": %.2f, \"settled_cpu_s\": %.2f, "
	       "\"durable_per_cpu_s\": %.0f, \"settled_per_cpu_s\": %.0f, "
	       "\"journal_bytes_per_sample\": %.2f, \"bytes_per_sample\": %.4f}\n",
	       samples, durable_s, settled_s, samples / durable_s, samples / settled_s,
	       (double)journal_bytes / samples,
	       (double)(stats.payload_bytes + stats.header_bytes + stats.key_bytes) / samples);
}

static void bench_open(struct bench *bench, const char *path)
{
	/* The journal is not cut for being long, so that it can be weighed. */
	struct lmdb_options options = {.path = path,
				       .journal_max_bytes = UINT64_C(8) << 30,
				       .head_max_bytes = UINT64_C(8) << 30};
	struct errbuf e;

	task_queue_init(&bench->queue);
	random_init(&bench->random, 1);
	int err = lmdb_open(&options, &bench->store, &e);
	if (err)
		die(e.text, err);
	bench->waiter = (struct store_waiter){bench->store, &bench->queue, clock_real(), die};
	bench->handles = mem_alloc_array(bench->hosts * METRICS, sizeof(*bench->handles));
	bench->walks = mem_zalloc(bench->hosts * METRICS * sizeof(*bench->walks));
	for (size_t i = 0; i < BATCHES; i++) {
		bench->writes[i] = store_write_new(bench->store, BATCH_MAX_BYTES);
		bench->writes[i]->executor = &bench->queue.executor;
		bench->writes[i]->done = write_done;
		bench->writes[i]->owner = bench;
	}
	open_series(bench);
}

static void bench_close(struct bench *bench)
{
	for (size_t i = 0; i < BATCHES; i++)
		store_write_free(bench->writes[i]);
	store_close(bench->store);
	mem_free(bench->handles);
	mem_free(bench->walks);
	task_queue_release(&bench->queue);
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"shared", no_argument, NULL, 's'},      {"single", no_argument, NULL, 'o'},
		{"hosts", required_argument, NULL, 'h'}, {"points", required_argument, NULL, 'p'},
		{"data", required_argument, NULL, 'd'},  {NULL, 0, NULL, 0},
	};
	static struct bench bench = {.shared = true, .hosts = 1000, .points = 2160};
	const char *path = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 's' || option == 'o')
			bench.shared = option == 's';
		else if (option == 'h')
			bench.hosts = strtoul(optarg, NULL, 10);
		else if (option == 'p')
			bench.points = strtoul(optarg, NULL, 10);
		else if (option == 'd')
			path = optarg;
		else
			break;
	}
	if (option != -1 || !path || !bench.hosts || bench.hosts > HOSTS_MAX || optind != argc) {
		fputs("usage: band_bench [--shared|--single] [--hosts N] [--points N] --data DIR\n",
		      stderr);
		return 2;
	}
	bench_open(&bench, path);
	run(&bench);
	bench_close(&bench);
	return 0;
}
