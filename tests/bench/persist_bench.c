/* What it costs to keep polls: from the message in the queue to raw data that is durable.
 *
 *   persist_bench [--devices 1000] [--rows 48] [--polls 20] [--workers 1] --data DIR
 *   persist_bench [--devices 1000] [--rows 48] [--polls 20] [--begin SECONDS] --messages
 *
 * Each device gives rows of ten counters every 30 s. The messages are made first and put in the
 * order of time, as fast as the queue takes them. Prints one JSON object: values per CPU second of
 * the whole process, in the first poll (whose series are new) and in those after it, and the
 * anonymous memory by counter, with its largest parts: heads of the store, what is remembered of
 * places, what was freed and is kept for the next batch. Rates are rate_bench's.
 *
 * With --messages nothing is measured: they are printed, each behind its length, as POST /api/polls
 * takes them. */
#include <getopt.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/stats.h"
#include "bench/cpu_time.h"
#include "conf/conf.h"
#include "model/poll.h"
#include "persist/persist.h"
#include "queue/local/local.h"
#include "store/lmdb/lmdb.h"
#include "wire/procfs.h"

enum { STEP_MS = 30000, COLUMNS = 10, OIDSET_BYTES_MAX = 1024, STATUS_BYTES_MAX = 1 << 16 };

static const char *const columns[COLUMNS] = {
	"ifHCInOctets",        "ifHCOutOctets",        "ifHCInUcastPkts",
	"ifHCOutUcastPkts",    "ifHCInMulticastPkts",  "ifHCOutMulticastPkts",
	"ifHCInBroadcastPkts", "ifHCOutBroadcastPkts", "ifInErrors",
	"ifOutErrors",
};

struct message {
	struct queue_put put;
	char device[16];
	struct buf bytes;
};

static struct {
	size_t devices, rows, polls, workers;
	struct loop *loop;
	struct store *store;
	struct catalog *catalog;
	struct inventory_conf *conf;
	struct queue **queues;
	struct queue *queue; /* of the OIDSet */
	struct persist *persist;
	struct message *messages;
	size_t put, done;
	uint64_t target;
	int64_t begin_ms; /* 0: so that the last poll is now */
	struct random random;
} bench = {.devices = 1000, .rows = 48, .polls = 20, .workers = 1};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "persist_bench: %s: %s\n", what, why);
	exit(1);
}

static double anonymous_bytes(void)
{
	struct files *files = files_real();
	struct proc_self_status status;
	struct buf text;
	int err;

	buf_init(&text, STATUS_BYTES_MAX);
	err = files->read(files, "/proc/self/status", STATUS_BYTES_MAX, &text);
	if (!err)
		err = proc_self_status_parse(buf_slice(&text), &status);
	if (err)
		die("/proc/self/status", err_text(err));
	buf_release(&text);
	return (double)status.anonymous;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void put_done(struct queue_put *put, int err)
{
	(void)put;
	if (err)
		die("put", err_text(err));
	bench.done++;
}

/* Counters that grow by some thousands a poll, the later ones less. */
static void make_message(struct message *message, size_t device, size_t poll, int64_t ts_ms,
			 struct poll_builder *builder)
{
	struct errbuf e = {""};
	size_t column = 0;
	int err;

	snprintf(message->device, sizeof(message->device), "router-%zu", device);
	err = poll_begin(builder, slice_of(message->device), SLICE("Bench"), ts_ms, &e);
	for (; column < COLUMNS && !err; column++)
		err = poll_add_column(builder, slice_of(columns[column]), &e);
	for (size_t row = 0; row < bench.rows && !err; row++) {
		char name[32];
		struct slice path = {name, (size_t)snprintf(name, sizeof(name), "xe-0/%zu/%zu",
							    row / 24, row % 24)};
		err = poll_add_row(builder, &path, 1, ts_ms + (int64_t)row, &e);
		for (column = 0; column < COLUMNS && !err; column++) {
			uint64_t step = random_next(&bench.random) % (100000 >> column);
			poll_set(builder, row, column,
				 value_u64((poll + 1) * (200000 >> column) + step));
		}
	}
	buf_init(&message->bytes, POLL_BYTES_MAX);
	err = err ? err : poll_encode(builder, 0, true, &message->bytes, &e);
	if (err)
		die("message", e.text);
}

static void make_messages(void)
{
	struct poll_builder builder;
	int64_t begin_ms = bench.begin_ms;

	if (!begin_ms)
		begin_ms = clock_wall_ms(clock_real()) - (int64_t)bench.polls * STEP_MS;

	poll_builder_init(&builder);
	bench.messages = mem_zalloc(bench.devices * bench.polls * sizeof(*bench.messages));
	for (size_t poll = 0; poll < bench.polls; poll++) {
		for (size_t device = 0; device < bench.devices; device++)
			make_message(&bench.messages[poll * bench.devices + device], device, poll,
				     begin_ms + (int64_t)poll * STEP_MS, &builder);
	}
	poll_builder_release(&builder);
}

static void print_messages(void)
{
	make_messages();
	for (size_t i = 0; i < bench.devices * bench.polls; i++) {
		const struct buf *bytes = &bench.messages[i].bytes;
		uint32_t len = (uint32_t)bytes->len;
		if (fwrite(&len, sizeof(len), 1, stdout) != 1 ||
		    fwrite(bytes->data, bytes->len, 1, stdout) != 1)
			die("messages", "cannot be written");
	}
}

/* ---- The server's parts ---------------------------------------------------------------------- */

static void open_conf(void)
{
	char text[OIDSET_BYTES_MAX];
	struct errbuf e = {""};
	struct conf *conf = conf_new();
	int len = snprintf(text, sizeof(text),
			   "persist_queue: {bench: {persister: counters, workers: %zu, oidsets: "
			   "[\"*\"]}, interfaces: {persister: interfaces, oidsets: [\"*\"]}, saps: "
			   "{persister: saps, oidsets: [\"*\"]}, lsps: {persister: lsps, oidsets: "
			   "[\"*\"]}, outlets: {persister: outlets, oidsets: [\"*\"]}}\n"
			   "oidsets: {Bench: {frequency: 30s, correlator: IfName, aggregates: [1h, "
			   "1d], oids: [",
			   bench.workers);

	for (size_t i = 0; i < COLUMNS; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%s", i ? ", " : "",
				columns[i]);
	len += snprintf(text + len, sizeof(text) - (size_t)len, "]}}\n");
	if (conf_read_yaml(conf, "bench", (struct slice){text, (size_t)len}, &e) ||
	    inventory_conf_read(conf, files_real(), &bench.conf, &e))
		die("configuration", e.text);
	conf_free(conf);
}

static void open_queues(void)
{
	struct errbuf e = {""};
	const struct oidset *set = inventory_conf_oidset(bench.conf, SLICE("Bench"));

	bench.queues = mem_zalloc(bench.conf->queue_count * sizeof(*bench.queues));
	for (size_t i = 0; i < bench.conf->queue_count; i++) {
		const struct queue_def *def = bench.conf->queues[i];
		const struct queue_local_options options = {
			.name = def->name,
			.workers = def->workers,
			.store = bench.store,
			.clock = clock_real(),
		};
		if (queue_local_open(&options, &bench.queues[i], &e))
			die("queue", e.text);
		if (def == set->queue)
			bench.queue = bench.queues[i];
	}
}

static void open_all(const char *folder)
{
	struct errbuf e = {""};
	struct catalog_options catalog = catalog_options_default();
	const struct lmdb_options lmdb = {.path = folder, .map_bytes = UINT64_C(64) << 30};

	bench.loop = loop_new();
	if (lmdb_open(&lmdb, &bench.store, &e))
		die("store", e.text);
	bench.catalog = catalog_new(bench.store, clock_real(), loop_executor(bench.loop), &catalog);
	open_conf();
	open_queues();
	const struct persist_options options = {
		.store = bench.store,
		.catalog = bench.catalog,
		.clock = clock_real(),
		.loop = bench.loop,
		.conf = bench.conf,
		.queues = bench.queues,
		.future_max_ms = 86400000,
		.derive_every_ms = 86400000, /* not in this run */
		.hang_timeout_ms = 600000,
		.counters_max = 20000000,
	};
	bench.persist = persist_new(&options);
}

static void stop_loop(void *owner)
{
	(void)owner;
	loop_stop(bench.loop);
}

static void close_all(void)
{
	persist_stop(bench.persist, stop_loop, NULL);
	loop_run(bench.loop);
	persist_free(bench.persist);
	for (size_t i = 0; i < bench.conf->queue_count; i++)
		queue_close(bench.queues[i]);
	catalog_close(bench.catalog, stop_loop, NULL);
	loop_run(bench.loop);
	store_close(bench.store);
	inventory_conf_release(bench.conf);
	loop_free(bench.loop);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Puts what the queue takes, and stops when everything up to the target is persisted. */
static void step(void *owner)
{
	struct queue_stats stats;
	size_t end = bench.target;

	(void)owner;
	while (bench.put < end) {
		struct message *message = &bench.messages[bench.put];
		message->put = (struct queue_put){
			.key = slice_of(message->device),
			.bytes = buf_slice(&message->bytes),
			.executor = loop_executor(bench.loop),
			.done = put_done,
		};
		if (queue_put(bench.queue, &message->put))
			return; /* later */
		bench.put++;
	}
	queue_stats(bench.queue, &stats);
	if (bench.done == end && stats.done == end)
		loop_stop(bench.loop);
}

/* CPU seconds until so many messages in all are persisted. */
static double run_to(uint64_t messages)
{
	double begun_s = cpu_s();
	struct loop_timer *timer = loop_timer_new(bench.loop, step, NULL);

	bench.target = messages;
	loop_timer_start(timer, 0, 5);
	loop_run(bench.loop);
	loop_timer_close(timer);
	return cpu_s() - begun_s;
}

static void run(const char *folder)
{
	double each = (double)(bench.devices * bench.rows * COLUMNS);

	make_messages();
	open_all(folder);
	double before_bytes = anonymous_bytes();
	double first_s = run_to(bench.devices);
	double later_s = run_to(bench.devices * bench.polls);
	printf("{\"counters\": %.0f, \"polls\": %zu, \"new values per CPU-s\": %.0f, "
	       "\"values per CPU-s\": %.0f, \"bytes per counter\": %.1f, \"of these heads\": %.1f, "
	       "\"places\": %.1f, \"kept\": %.1f}\n",
	       each, bench.polls, each / first_s, each * (double)(bench.polls - 1) / later_s,
	       (anonymous_bytes() - before_bytes) / each,
	       (double)stat_get(STAT_store_head_bytes) / each,
	       (double)stat_get(STAT_persist_memory_bytes) / each, (double)mem_kept_bytes() / each);
	close_all();
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"devices", required_argument, NULL, 'd'},
		{"rows", required_argument, NULL, 'r'},
		{"polls", required_argument, NULL, 'p'},
		{"workers", required_argument, NULL, 'w'},
		{"data", required_argument, NULL, 'D'},
		{"begin", required_argument, NULL, 'b'},
		{"messages", no_argument, NULL, 'm'},
		{NULL, 0, NULL, 0},
	};
	const char *folder = NULL;
	bool print = false;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'd')
			bench.devices = strtoul(optarg, NULL, 10);
		else if (option == 'r')
			bench.rows = strtoul(optarg, NULL, 10);
		else if (option == 'p')
			bench.polls = strtoul(optarg, NULL, 10);
		else if (option == 'w')
			bench.workers = strtoul(optarg, NULL, 10);
		else if (option == 'D')
			folder = optarg;
		else if (option == 'b')
			bench.begin_ms = strtoll(optarg, NULL, 10) * 1000;
		else if (option == 'm')
			print = true;
		else
			return 2;
	}
	if ((folder != NULL) == print || !bench.devices || !bench.rows || bench.polls < 2 ||
	    !bench.workers)
		die("usage", "[--devices N] [--rows N] [--polls N] [--workers N] --data DIR");
	random_init(&bench.random, 1);
	if (print)
		print_messages();
	else
		run(folder);
	return 0;
}
