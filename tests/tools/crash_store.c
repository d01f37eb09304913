/* Works on a store that may be killed at any moment, and checks afterwards what it still has: as
 * crash_writer, but on the store's contract itself, with overwriting, deletions and cells.
 *
 *   crash_store write --data DIR --seed N --log FILE    until it is killed, or 74: the disk is gone
 *   crash_store check --data DIR --seed N --log FILE
 *
 * --no-sync breaks the store on purpose, to see that the tests find it.
 *
 * A stream is three series whose samples share their times; position p is one time. Operations of
 * a stream follow one another, one in flight: put positions [from, to) with a version, or delete
 * them; each also writes its number into a cell of the stream, in the same batch. The log says
 * which operation went out and which was answered. So the version at each position is known (0:
 * nothing), but for the operation in flight at the crash, which must have happened to a whole row
 * or not at all. It is sent again first thing in the next `write`, unchanged.
 *
 * Every value is a function of (seed, series, position, version). */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/hash.h"
#include "base/mapped.h"
#include "base/mem.h"
#include "base/random.h"
#include "store/lmdb/lmdb.h"
#include "tools/store_wait.h"

enum {
	STREAMS = 12,
	SERIES = 3,
	POSITIONS = 30000, /* of a stream: two and a half days of STEP_MS */
	STEP_MS = 7000,
	OPERATION_MAX = 3000, /* positions of one */
	BATCH_MAX_BYTES = 16 << 20,
	READ_MAX_BYTES = 64 << 20,
	PROBLEMS_MAX = 20,
	VERSIONS = 60000,
};

#define BASE_MS INT64_C(1704067200000) /* 2024-01-01T00:00:00Z */

struct operation {
	unsigned long number; /* of its stream, from 1; 0: none */
	unsigned from, to;
	unsigned version; /* 0: delete */
};

struct stream {
	unsigned id;
	uint64_t handles[SERIES];
	uint16_t *versions;    /* by position, of what was answered */
	struct operation last; /* the latest that went out */
	bool answered;         /* it was */
	struct store_write *write;
};

struct crash {
	struct store *store;
	struct task_queue queue;
	struct store_waiter waiter;
	struct random random;
	uint64_t seed;
	int log;
	struct stream streams[STREAMS];
	size_t problems, samples;
};

static void die(const char *what, int err)
{
	fprintf(stderr, "crash_store: %s: %s\n", what, err_text(err));
	/* What the disk holds is not known: the declared end, as the server's. */
	if (err == ERR_UNKNOWN || err == ERR_READ_ONLY)
		_exit(MAPPED_EXIT_STATUS);
	exit(2);
}

PRINTF_LIKE(3, 4)
static void problem(struct crash *crash, const struct stream *stream, const char *fmt, ...)
{
	va_list arguments;

	if (crash->problems++ >= PROBLEMS_MAX)
		return;
	fprintf(stderr, "stream %u: ", stream->id);
	va_start(arguments, fmt);
	vfprintf(stderr, fmt, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

/* ---- What is at a position ------------------------------------------------------------------ */

/* Small integers, large ones, decimals and any double, so that every codec has its share. */
static struct value value_of(uint64_t seed, unsigned stream, unsigned series, unsigned position,
			     unsigned version)
{
	unsigned name[] = {stream, series, position, version};
	uint64_t bits = hash64(name, sizeof(name), seed);

	switch ((stream + series) % 4) {
	case 0:
		return value_i64((int64_t)(bits % 100));
	case 1:
		return value_u64(bits);
	case 2:
		return value_f64((double)(bits % 100000) / 100);
	default:
		return (struct value){bits & ~(UINT64_C(1) << 62), VALUE_F64};
	}
}

static void apply(uint16_t *versions, const struct operation *operation)
{
	for (unsigned p = operation->from; p < operation->to; p++)
		versions[p] = (uint16_t)operation->version;
}

/* ---- The log -------------------------------------------------------------------------------- */

static void read_log(struct crash *crash, const char *path)
{
	FILE *file = fopen(path, "r");
	struct operation o;
	char line[100], *at;

	if (!file && errno != ENOENT)
		die(path, -errno);
	while (file && fgets(line, sizeof(line), file)) {
		unsigned long id = strtoul(line + 1, &at, 10);
		o.number = strtoul(at, &at, 10);
		o.from = (unsigned)strtoul(at, &at, 10);
		o.to = (unsigned)strtoul(at, &at, 10);
		o.version = (unsigned)strtoul(at, &at, 10);
		ASSERT(id < STREAMS && o.from < o.to && o.to <= POSITIONS && *at == '\n');
		struct stream *stream = &crash->streams[id];
		stream->last = o;
		stream->answered = line[0] == 'A';
		if (stream->answered)
			apply(stream->versions, &o);
	}
	if (file)
		fclose(file);
}

static void note(struct crash *crash, char what, const struct stream *stream)
{
	const struct operation *o = &stream->last;
	int n = dprintf(crash->log, "%c %u %lu %u %u %u\n", what, stream->id, o->number, o->from,
			o->to, o->version);
	ASSERT(n > 0);
}

/* ---- Opening -------------------------------------------------------------------------------- */

static struct store_read *read_new(struct crash *crash)
{
	return store_wait_new(&crash->waiter, READ_MAX_BYTES);
}

static void open_streams(struct crash *crash)
{
	static const struct slice metrics[SERIES] = {
		{"crash_a", 7}, {"crash_b", 7}, {"crash_c", 7}};
	uint64_t handles[STREAMS][SERIES];

	store_wait_series(&crash->waiter, "stream", "", STREAMS, metrics, SERIES, handles[0]);
	for (unsigned i = 0; i < STREAMS; i++)
		memcpy(crash->streams[i].handles, handles[i], sizeof(handles[i]));
}

static void crash_open(struct crash *crash, const char *path, bool no_sync)
{
	/* Small, so that sealing, cutting and evicting happen all the time. */
	struct lmdb_options options = {.path = path,
				       .journal_max_bytes = 1 << 20,
				       .head_max_bytes = 2 << 20,
				       .settle_delay_ms = 50,
				       .not_durable = no_sync,
				       .map_bytes = UINT64_C(4) << 30};
	struct errbuf e;

	task_queue_init(&crash->queue);
	int err = lmdb_open(&options, &crash->store, &e);
	if (err) {
		fprintf(stderr, "crash_store: %s\n", e.text);
		exit(1);
	}
	crash->waiter = (struct store_waiter){crash->store, &crash->queue, clock_real(), die};
	open_streams(crash);
}

/* ---- Writing -------------------------------------------------------------------------------- */

static void add_put(struct crash *crash, struct stream *stream)
{
	const struct operation *o = &stream->last;
	struct value values[SERIES];

	for (unsigned i = 0; i < o->to - o->from; i++) {
		/* Every other stream is written backwards. */
		unsigned p = stream->id % 2 ? o->to - 1 - i : o->from + i;
		for (unsigned s = 0; s < SERIES; s++)
			values[s] = value_of(crash->seed, stream->id, s, p, o->version);
		int err = store_append(
			stream->write, &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
			BASE_MS + (int64_t)p * STEP_MS, stream->handles, SERIES, values);
		if (err)
			die("append", err);
	}
}

static void add_delete(struct stream *stream)
{
	const struct operation *o = &stream->last;
	int err = store_delete_range(stream->write, &(struct store_target){.table = TABLE_DATA_RAW},
				     stream->handles, SERIES, BASE_MS + (int64_t)o->from * STEP_MS,
				     BASE_MS + (int64_t)o->to * STEP_MS);
	if (err)
		die("delete", err);
}

struct cell_name {
	struct store_parts key, column;
	char text[16];
};

static void cell_name(struct cell_name *name, const struct stream *stream)
{
	snprintf(name->text, sizeof(name->text), "%u", stream->id);
	name->key = (struct store_parts){{SLICE("crash")}};
	name->column = (struct store_parts){{SLICE("k"), slice_of(name->text)}};
}

static void send_last(struct crash *crash, struct stream *stream)
{
	struct operation *o = &stream->last;
	struct cell_name name;

	store_write_reset(stream->write);
	if (o->version)
		add_put(crash, stream);
	else
		add_delete(stream);
	cell_name(&name, stream);
	int err = store_cell_put(stream->write, TABLE_METRIC_INFO, &name.key, &name.column,
				 (struct slice){(const char *)&o->number, sizeof(o->number)},
				 (int64_t)o->number, 0);
	if (err)
		die("cell", err);
	stream->answered = false;
	note(crash, 'S', stream);
	while ((err = store_write_submit(stream->write)) == ERR_BUSY)
		task_queue_wait(&crash->queue);
	if (err)
		die("submit", err);
}

static void next_operation(struct crash *crash, struct stream *stream)
{
	struct random *random = &crash->random;
	struct operation *o = &stream->last;
	/* Mostly small ones, now and then a long one. */
	unsigned max = random_below(random, 4) ? 50 : OPERATION_MAX;

	o->number++;
	o->from = (unsigned)random_below(random, POSITIONS);
	o->to = o->from + 1 + (unsigned)random_below(random, max);
	if (o->to > POSITIONS)
		o->to = POSITIONS;
	o->version = random_below(random, 4) ? 1 + (unsigned)(o->number % VERSIONS) : 0;
}

static void write_done(struct store_write *write, int err)
{
	struct stream *stream = write->owner;

	if (err)
		die("write", err);
	stream->answered = true;
}

static void run_streams(struct crash *crash)
{
	for (;;) {
		for (unsigned i = 0; i < STREAMS; i++) {
			struct stream *stream = &crash->streams[i];
			if (!stream->answered)
				continue;
			if (stream->last.number)
				note(crash, 'A', stream);
			next_operation(crash, stream);
			send_last(crash, stream);
		}
		task_queue_wait(&crash->queue);
	}
}

static void crash_write(struct crash *crash)
{
	random_init(&crash->random, random_system_seed());
	for (unsigned i = 0; i < STREAMS; i++) {
		struct stream *stream = &crash->streams[i];
		stream->write = store_write_new(crash->store, BATCH_MAX_BYTES);
		stream->write->executor = &crash->queue.executor;
		stream->write->done = write_done;
		stream->write->owner = stream;
		if (stream->last.number && !stream->answered)
			send_last(crash, stream);
		else
			stream->answered = true;
	}
	run_streams(crash);
}

/* ---- Checking ------------------------------------------------------------------------------- */

/* What a series has that it should not, or the other way round. */
struct difference {
	size_t count;
	/* Of the first: its position (POSITIONS: a time that is none), the version it should have,
	 * and the one it has; -1: a value that nobody wrote. */
	unsigned position, expected;
	long found;
};

/* Which version `have` is of; -1 if of none. */
static long version_of(struct crash *crash, const struct stream *stream, unsigned series,
		       unsigned position, struct value have)
{
	for (unsigned version = 1; version <= VERSIONS; version++) {
		if (value_identical(have,
				    value_of(crash->seed, stream->id, series, position, version)))
			return (long)version;
	}
	return -1;
}

static void compare(struct crash *crash, const struct stream *stream, unsigned series,
		    const uint16_t *versions, const struct store_points *points,
		    struct difference *difference)
{
	size_t at = 0;

	*difference = (struct difference){.position = POSITIONS};
	for (unsigned p = 0; p < POSITIONS; p++) {
		struct value have = {.type = VALUE_NONE}, want = {.type = VALUE_NONE};
		if (at < points->count && points->ts_ms[at] == BASE_MS + (int64_t)p * STEP_MS) {
			have = (struct value){points->bits[0][at],
					      (enum value_type)points->types[0][at]};
			at++;
		}
		if (versions[p])
			want = value_of(crash->seed, stream->id, series, p, versions[p]);
		if (value_identical(have, want) || difference->count++)
			continue;
		difference->position = p;
		difference->expected = versions[p];
		difference->found =
			have.type == VALUE_NONE ? 0 : version_of(crash, stream, series, p, have);
	}
	difference->count += at != points->count;
}

/* Whether the operation in flight happened to this row: -1 cannot be told. */
static int check_row(struct crash *crash, const struct stream *stream, unsigned series,
		     const uint16_t *after, const struct store_points *points)
{
	struct difference before, with;

	compare(crash, stream, series, stream->versions, points, &before);
	with = before;
	if (!stream->answered)
		compare(crash, stream, series, after, points, &with);
	crash->samples += points->count;
	if (before.count && with.count)
		problem(crash, stream,
			"series %u differs at %zu positions, %zu with operation %lu in flight, "
			"which "
			"makes [%u, %u) version %u; position %u should have version %u and has %ld",
			series, before.count, with.count, stream->last.number, stream->last.from,
			stream->last.to, stream->last.version, before.position, before.expected,
			before.found);
	return !before.count && !with.count ? -1 : with.count == 0;
}

static unsigned long read_cell(struct crash *crash, const struct stream *stream)
{
	struct store_read *read = read_new(crash);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	struct cell_name name;
	unsigned long number = 0;

	ASSERT(request);
	cell_name(&name, stream);
	request->cell_get = (struct store_cell_get){
		.table = TABLE_METRIC_INFO, .key = name.key, .column = name.column};
	store_wait(&crash->waiter, read);
	if (request->cell_get.found && request->cell_get.cell.value.len == sizeof(number))
		memcpy(&number, request->cell_get.cell.value.data, sizeof(number));
	store_read_free(read);
	return number;
}

static void check_stream(struct crash *crash, struct stream *stream)
{
	struct store_read *read = read_new(crash);
	struct store_request *request = store_read_add(read, STORE_RANGE);
	uint16_t *after = mem_alloc_array(POSITIONS, sizeof(*after));
	unsigned long cell = read_cell(crash, stream), number = stream->last.number;
	bool happened = stream->answered || cell == number;

	memcpy(after, stream->versions, POSITIONS * sizeof(*after));
	if (number && !stream->answered)
		apply(after, &stream->last);
	if (cell != number && (stream->answered || cell + 1 != number))
		problem(crash, stream, "the cell says %lu, operation %lu was sent", cell, number);
	ASSERT(request);
	request->range = (struct store_range){.table = TABLE_DATA_RAW,
					      .handles = stream->handles,
					      .handle_count = SERIES,
					      .start_ms = STORE_TS_MIN,
					      .end_ms = STORE_TS_MAX};
	store_wait(&crash->waiter, read);
	ASSERT(!request->more);
	for (unsigned s = 0; s < SERIES; s++) {
		int did = check_row(crash, stream, s, after, &request->range.points[s]);
		if (!stream->answered && did >= 0 && did != happened)
			problem(crash, stream,
				"series %u and the cell disagree about operation %lu", s, number);
	}
	mem_free(after);
	store_read_free(read);
}

static void verify(struct crash *crash)
{
	struct store_token token = {.len = 0};
	struct store_verify found = {0};
	bool more = true;

	while (more) {
		struct store_read *read = read_new(crash);
		struct store_request *request = store_read_add(read, STORE_VERIFY);
		ASSERT(request);
		request->token = token;
		request->verify = found;
		store_wait(&crash->waiter, read);
		for (size_t i = 0; i < request->verify.sentence_count; i++)
			fprintf(stderr, "verify: %s\n", request->verify.sentences[i]);
		found = request->verify;
		token = request->token;
		more = request->more;
		store_read_free(read);
	}
	crash->problems += found.problems;
}

static int crash_check(struct crash *crash)
{
	for (unsigned i = 0; i < STREAMS; i++)
		check_stream(crash, &crash->streams[i]);
	verify(crash);
	printf("{\"samples\": %zu, \"problems\": %zu}\n", crash->samples, crash->problems);
	store_close(crash->store);
	return crash->problems ? 1 : 0;
}

/* ---- The command line ----------------------------------------------------------------------- */

static int usage(void)
{
	fputs("usage: crash_store write|check --data DIR --seed N --log FILE [--no-sync]\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"data", required_argument, NULL, 'd'},
		{"seed", required_argument, NULL, 's'},
		{"log", required_argument, NULL, 'l'},
		{"no-sync", no_argument, NULL, 'n'},
		{NULL, 0, NULL, 0},
	};
	static struct crash crash;
	const char *data = NULL, *log = NULL;
	bool no_sync = false;
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'n')
			no_sync = true;
		else if (option == 'd')
			data = optarg;
		else if (option == 's')
			crash.seed = strtoull(optarg, NULL, 10);
		else if (option == 'l')
			log = optarg;
		else
			return usage();
	}
	bool check = optind + 1 == argc && strcmp(argv[optind], "check") == 0;
	if (!data || !log || optind + 1 != argc || (!check && strcmp(argv[optind], "write") != 0))
		return usage();
	for (unsigned i = 0; i < STREAMS; i++) {
		crash.streams[i].id = i;
		crash.streams[i].answered = true;
		crash.streams[i].versions = mem_zalloc(POSITIONS * sizeof(uint16_t));
	}
	read_log(&crash, log);
	crash_open(&crash, data, no_sync);
	if (check)
		return crash_check(&crash);
	crash.log = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (crash.log < 0)
		die(log, -errno);
	crash_write(&crash);
	return 0;
}
