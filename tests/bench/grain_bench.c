/* How fast roll-ups answer: a year of one metric, so many series, rows of an hour as the job writes
 * them, through the query engine on the embedded store; without HTTP.
 *
 *   grain_bench --series 1000 --data DIR           fills the directory if it is new, settles, asks
 *   grain_bench --only 'by day' --data DIR         questions with that in their names
 *   grain_bench --late 1 --data DIR                one of a hundred buckets has late points, too;
 *                                                  0: none has, but they are looked for
 *
 * Values walk at random in 0 ... 100, each row of 12 samples. Prints a line of JSON for each
 * question: the best wall time and the best CPU time (of the whole process) of --rounds, points of
 * the answer, and what it read. */
#include <getopt.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/mem.h"
#include "base/random.h"
#include "bench/cpu_time.h"
#include "query/query.h"
#include "retention/granularity.h"
#include "retention/late.h"
#include "rollup/aggregate_row.h"
#include "store/lmdb/lmdb.h"
#include "tools/store_wait.h"

#define HOUR_MS  INT64_C(3600000)
#define YEAR_MS  (365 * 24 * HOUR_MS)
#define BEGIN_MS INT64_C(1704067200000) /* 2024-01-01T00:00:00Z, 366 days before the next year */

enum { ROWS = 8784, SERIES_MAX = 100000, BATCH_MAX_BYTES = 32 << 20, SAMPLES = 12 };

struct bench {
	struct store *store;
	struct catalog *catalog;
	struct query_engine *engine;
	struct task_queue queue;
	struct store_waiter waiter;
	struct random random;
	size_t series, rounds;
	const char *only; /* questions with this in their name; NULL: all */
	bool late;        /* there may be late points */
	uint64_t late_percent;
	struct query *query;
	uint64_t points;
};

static const struct granularities granularities = {
	.slot_ms = HOUR_MS, .count = 2, .list = {{300000, 14 * 24 * HOUR_MS}, {HOUR_MS, 0}}};

static void die(const char *what, int err)
{
	fprintf(stderr, "grain_bench: %s: %s\n", what, err_text(err));
	exit(1);
}

/* ---- Filling --------------------------------------------------------------------------------- */

static void write_done(struct store_write *write, int err)
{
	*(bool *)write->owner = true;
	if (err)
		die("write", err);
}

static void submit(struct bench *bench, struct store_write *write)
{
	bool done = false;

	write->owner = &done;
	int err = store_write_submit(write);
	if (err)
		die("submit", err);
	while (!done)
		task_queue_wait(&bench->queue);
	store_write_reset(write);
}

static void make_row(struct bench *bench, int64_t *at, struct value row[ROLLUP_FIELDS])
{
	int64_t low = *at, high = *at, sum = 0;

	memset(row, 0, ROLLUP_FIELDS * sizeof(*row));
	row[ROLLUP_FIRST] = value_f64((double)*at / 10);
	for (size_t i = 0; i < SAMPLES; i++) {
		uint64_t bits = random_next(&bench->random);
		*at += __builtin_popcountll(bits & 63) - 3;
		*at = *at < 0 ? 0 : *at > 1000 ? 1000 : *at;
		low = *at < low ? *at : low;
		high = *at > high ? *at : high;
		sum += *at;
	}
	row[ROLLUP_MIN] = value_f64((double)low / 10);
	row[ROLLUP_MAX] = value_f64((double)high / 10);
	row[ROLLUP_SUM] = value_f64((double)sum / 10);
	row[ROLLUP_COUNT] = value_u64(SAMPLES);
	row[ROLLUP_LAST] = value_f64((double)*at / 10);
}

/* Of a bucket that has another row late points say neither what came first nor what last. */
static int append_late(struct bench *bench, struct store_write *write, int64_t ts_ms,
		       uint64_t handle, struct value row[ROLLUP_FIELDS])
{
	row[ROLLUP_FIRST] = row[ROLLUP_LAST] = (struct value){0};
	if (random_below(&bench->random, 100) >= bench->late_percent)
		return 0;
	return store_append(write,
			    &(struct store_target){TABLE_DATA_DOWNSAMPLED, RETENTION_EVER, HOUR_MS},
			    ts_ms + LATE_ROW_BEHIND_MS, &handle, 1, row);
}

/* Series after series: the same blocks as of slot after slot, when all has settled. */
static void fill(struct bench *bench)
{
	struct slice metric = SLICE("m");
	uint64_t *handles = mem_alloc_array(bench->series, sizeof(*handles));
	struct store_write *write = store_write_new(bench->store, BATCH_MAX_BYTES);

	write->executor = &bench->queue.executor;
	write->done = write_done;
	store_wait_series(&bench->waiter, "host", "h-", bench->series, &metric, 1, handles);
	for (size_t s = 0; s < bench->series; s++) {
		struct value row[ROLLUP_FIELDS];
		int64_t at = 500;
		for (int64_t i = 0; i < ROWS; i++) {
			make_row(bench, &at, row);
			int err = store_append(write,
					       &(struct store_target){TABLE_DATA_DOWNSAMPLED,
								      RETENTION_EVER, HOUR_MS},
					       BEGIN_MS + i * HOUR_MS, &handles[s], 1, row);
			if (!err)
				err = append_late(bench, write, BEGIN_MS + i * HOUR_MS, handles[s],
						  row);
			if (err)
				die("append", err);
		}
		submit(bench, write);
	}
	store_write_free(write);
	mem_free(handles);
	int err = lmdb_settle(bench->store);
	if (err)
		die("settle", err);
}

/* The year is over, and the hour behind it. */
static int64_t wall_us(UNUSED struct clock *clock)
{
	return (BEGIN_MS + ROWS * HOUR_MS + HOUR_MS) * 1000;
}

static int64_t mono_us(UNUSED struct clock *clock)
{
	return clock_real()->mono_us(clock_real());
}

static struct clock after_the_year = {wall_us, mono_us};

/* ---- Asking ---------------------------------------------------------------------------------- */

static void take(void *owner)
{
	struct bench *bench = owner;
	struct query_chunk chunk;

	while (query_next(bench->query, 4096, &chunk))
		bench->points += chunk.count;
}

struct question {
	const char *name;
	enum query_fn fn;
	int64_t window_ms;
	enum query_agg agg;
	bool stored;
};

static void ask_once(struct bench *bench, const struct question *question)
{
	bench->points = 0;
	bench->query = query_new(bench->engine, take, bench);
	bench->query->spec = (struct query_spec){.tenant = SLICE("default"),
						 .metric = SLICE("m"),
						 .start_ms = BEGIN_MS,
						 .end_ms = BEGIN_MS + YEAR_MS,
						 .fn = question->fn,
						 .window_ms = question->window_ms,
						 .agg = question->agg,
						 .stored = question->stored};
	int err = query_start(bench->query);
	if (err)
		die(bench->query->error.text, err);
	while (!bench->query->ended)
		task_queue_wait(&bench->queue);
	if (bench->query->err)
		die(bench->query->error.text, bench->query->err);
}

static void ask(struct bench *bench, const struct question *question)
{
	double best_ms = 0, best_cpu_ms = 0;

	for (size_t round = 0; round < bench->rounds; round++) {
		int64_t begun_us = clock_real()->mono_us(clock_real());
		double begun_cpu_s = cpu_s();
		query_free(bench->query);
		ask_once(bench, question);
		double ms = (double)(clock_real()->mono_us(clock_real()) - begun_us) / 1e3;
		double cpu_ms = (cpu_s() - begun_cpu_s) * 1e3;
		best_ms = round && best_ms < ms ? best_ms : ms;
		best_cpu_ms = round && best_cpu_ms < cpu_ms ? best_cpu_ms : cpu_ms;
	}
	const struct store_read_work *work = &bench->query->work;
	printf("{\"question\": \"%s\", \"ms\": %.2f, \"cpu_ms\": %.2f, \"points\": %llu, "
	       "\"reads\": %zu, \"extents\": %llu, \"decoded\": %llu, \"summarised\": %llu, "
	       "\"rows\": %llu, \"find_ms\": %.2f}\n",
	       question->name, best_ms, best_cpu_ms, (unsigned long long)bench->points,
	       bench->query->reads, (unsigned long long)work->extents,
	       (unsigned long long)work->blocks_decoded,
	       (unsigned long long)work->blocks_summarised, (unsigned long long)work->rows_decoded,
	       (double)bench->query->find_us / 1e3);
	query_free(bench->query);
	bench->query = NULL;
}

static void set_true(void *flag)
{
	*(bool *)flag = true;
}

static void run(struct bench *bench)
{
	static const struct question questions[] = {
		{"max, one number", FN_MAX, YEAR_MS * 200, AGG_MAX, false},
		{"avg, one number", FN_AVG, YEAR_MS * 200, AGG_AVG, false},
		{"max by month", FN_MAX, 30 * 24 * HOUR_MS, AGG_MAX, false},
		{"max by day", FN_MAX, 24 * HOUR_MS, AGG_MAX, false},
		{"avg by day", FN_AVG, 24 * HOUR_MS, AGG_AVG, false},
		{"max by hour", FN_MAX, HOUR_MS, AGG_MAX, true},
		{"avg by hour", FN_AVG, HOUR_MS, AGG_AVG, true},
		{"avg by day, each series", FN_AVG, 24 * HOUR_MS, AGG_NONE, false},
	};
	struct catalog_options options = catalog_options_default();
	bool closed = false;

	bench->catalog = catalog_new(bench->store, clock_real(), &bench->queue.executor, &options);
	bench->engine = query_engine_new(&(struct query_options){.store = bench->store,
								 .catalog = bench->catalog,
								 .clock = &after_the_year,
								 .executor = &bench->queue.executor,
								 .series_max = SERIES_MAX,
								 .late_after_ms = bench->late,
								 .granularities = &granularities});
	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		if (!bench->only || strstr(questions[i].name, bench->only))
			ask(bench, &questions[i]);
	}
	query_engine_free(bench->engine);
	catalog_close(bench->catalog, set_true, &closed);
	while (!closed)
		task_queue_wait(&bench->queue);
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"series", required_argument, NULL, 's'}, {"rounds", required_argument, NULL, 'r'},
		{"only", required_argument, NULL, 'o'},   {"late", required_argument, NULL, 'l'},
		{"data", required_argument, NULL, 'd'},   {NULL, 0, NULL, 0}};
	static struct bench bench = {.series = 1000, .rounds = 10};
	mem_keep_little(); /* as the server does */
	const char *path = NULL;
	struct errbuf e;
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 's')
			bench.series = strtoul(optarg, NULL, 10);
		else if (option == 'r')
			bench.rounds = strtoul(optarg, NULL, 10);
		else if (option == 'o')
			bench.only = optarg;
		else if (option == 'l')
			bench.late_percent = strtoul(optarg, NULL, 10);
		else if (option == 'd')
			path = optarg;
		else
			break;
		bench.late |= option == 'l';
	}
	if (option != -1 || !path || !bench.series || bench.series > SERIES_MAX || !bench.rounds ||
	    optind != argc) {
		fputs("usage: grain_bench [--series N] [--rounds N] [--only NAME] "
		      "[--late PERCENT] --data DIR\n",
		      stderr);
		return 2;
	}
	task_queue_init(&bench.queue);
	random_init(&bench.random, 1);
	struct lmdb_options options = {.path = path, .must_exist = true};
	int err = lmdb_open(&options, &bench.store, &e);
	bool is_new = err == ERR_NOT_FOUND;
	options.must_exist = false;
	if (is_new)
		err = lmdb_open(&options, &bench.store, &e);
	if (err)
		die(e.text, err);
	bench.waiter = (struct store_waiter){bench.store, &bench.queue, clock_real(), die};
	if (is_new)
		fill(&bench);
	run(&bench);
	store_close(bench.store);
	task_queue_release(&bench.queue);
	return 0;
}
