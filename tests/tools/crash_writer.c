/* Writes numbered samples to a server that may be killed at any moment, and checks afterwards what
 * the server still has.
 *
 *   crash_writer write --port PORT --seed N --log FILE     until the server is gone
 *   crash_writer check --port PORT --seed N --log FILE [--tail]
 *
 * A writer is a stream of positions 0, 1, 2, ...; position n stands for one time of one of its
 * series, and every value is a function of (seed, writer, series, field, time): nothing of what was
 * sent needs to be remembered to recognise it. The log holds, per writer, how far it has sent (put
 * down before the request goes out) and how far the server has answered with success. So, of what a
 * query gives: every position below `answered` must be there, none from `sent` on may be, and all
 * must have their values. A writer goes on from `answered`, so it sends again what it does not know
 * the fate of.
 *
 * `check --tail` looks only at what was written since the last `write` began, and a bit before. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/random.h"
#include "tools/raw_http.h"

#define BASE_MS INT64_C(1704067200000) /* 2024-01-01T00:00:00Z */

enum {
	STEP_MS = 250,
	BLOCK = 4096, /* positions are only ever permuted within an aligned block of so many */
	WINDOW = 4 * BLOCK, /* times asked for at once */
	PROBLEMS_MAX = 20,
	BODY_MAX_BYTES = 8 << 20,
	TIMEOUT_S = 60,
};

/* What one writer is like; `mask` turns the order of times around within a block. */
struct shape {
	bool put; /* /api/put, else /write */
	unsigned series, fields;
	uint64_t mask;
	unsigned batch_max;
};

static const struct shape shapes[] = {
	{false, 1, 4, 0, 5000},    /* rows of several fields */
	{false, 50, 1, 0, 1000},   /* many series in a batch */
	{false, 3, 2, 0x3f, 500},  /* a little late */
	{false, 2, 1, 0xfff, 700}, /* very late, and not in order */
	{false, 1, 1, 0, 1},       /* one sample a commit */
	{true, 4, 1, 0, 300},      {true, 1, 1, 0x3f, 1},
};

enum { WRITERS = ARRAY_LEN(shapes) };

struct stream {
	uint64_t sent, answered;
	uint64_t begun; /* `answered` when the last writing began */
};

struct crash {
	uint16_t port;
	uint64_t seed;
	int log;
	struct stream streams[WRITERS];
};

struct writer {
	struct crash *crash;
	unsigned id;
	int err; /* a refusal; the end of the server is none */
};

/* ---- What position n stands for ------------------------------------------------------------- */

static int64_t time_of(unsigned writer, uint64_t position)
{
	uint64_t index = position / shapes[writer].series;
	return BASE_MS + (int64_t)(index ^ shapes[writer].mask) * STEP_MS;
}

static uint64_t position_of(unsigned writer, unsigned series, int64_t ts_ms)
{
	uint64_t index = (uint64_t)((ts_ms - BASE_MS) / STEP_MS) ^ shapes[writer].mask;
	return index * shapes[writer].series + series;
}

enum number { NUMBER_F64, NUMBER_I64, NUMBER_U64, NUMBER_DECIMAL };

/* JSON has no types, so what is put there is a double. */
static enum number number_of(unsigned writer, unsigned field)
{
	if (shapes[writer].put)
		return writer % 2 ? NUMBER_F64 : NUMBER_DECIMAL;
	return (enum number)((writer + field) % 4);
}

static uint64_t bits_of(uint64_t seed, unsigned writer, unsigned series, unsigned field,
			int64_t ts_ms)
{
	int64_t name[] = {writer, series, field, ts_ms};
	return hash64(name, sizeof(name), seed);
}

static double double_of(uint64_t bits, enum number number)
{
	double value;

	if (number == NUMBER_DECIMAL)
		return ((double)(bits % 2000000) - 1000000) / 100;
	/* Infinities and NaN are no JSON numbers; a smaller exponent makes them ordinary. */
	bits &= ~(UINT64_C(1) << 62);
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void put_number(struct buf *out, uint64_t bits, enum number number)
{
	if (number == NUMBER_I64)
		buf_printf(out, "%" PRId64, (int64_t)bits);
	else if (number == NUMBER_U64)
		buf_printf(out, "%" PRIu64, bits);
	else
		buf_printf(out, number == NUMBER_F64 ? "%.17g" : "%.2f", double_of(bits, number));
}

static bool number_matches(const char *text, uint64_t bits, enum number number)
{
	char *end;

	if (number == NUMBER_I64)
		return (int64_t)bits == strtoll(text, &end, 10) && !strchr(".eE", *end);
	if (number == NUMBER_U64)
		return bits == strtoull(text, &end, 10) && !strchr(".eE", *end);
	return double_of(bits, number) == strtod(text, &end);
}

/* ---- Writing -------------------------------------------------------------------------------- */

static void put_line(struct buf *out, uint64_t seed, unsigned writer, uint64_t position)
{
	unsigned series = (unsigned)(position % shapes[writer].series);
	int64_t ts_ms = time_of(writer, position);

	buf_printf(out, "crash,series=%u,writer=%u ", series, writer);
	for (unsigned field = 0; field < shapes[writer].fields; field++) {
		enum number number = number_of(writer, field);
		buf_printf(out, "%sv%u=", field ? "," : "", field);
		put_number(out, bits_of(seed, writer, series, field, ts_ms), number);
		if (number == NUMBER_I64 || number == NUMBER_U64)
			buf_append_char(out, number == NUMBER_I64 ? 'i' : 'u');
	}
	buf_printf(out, " %" PRId64 "000000\n", ts_ms);
}

static void put_json(struct buf *out, uint64_t seed, unsigned writer, uint64_t position, bool first)
{
	unsigned series = (unsigned)(position % shapes[writer].series);
	int64_t ts_ms = time_of(writer, position);

	buf_printf(out, "%s{\"metric\":\"crash_v0\",\"timestamp\":%" PRId64 ",\"value\":",
		   first ? "[" : ",", ts_ms);
	put_number(out, bits_of(seed, writer, series, 0, ts_ms), number_of(writer, 0));
	buf_printf(out, ",\"tags\":{\"series\":\"%u\",\"writer\":\"%u\"}}", series, writer);
}

static void put_batch(struct buf *out, uint64_t seed, unsigned writer, uint64_t from, uint64_t to)
{
	buf_clear(out);
	for (uint64_t position = from; position < to; position++) {
		if (shapes[writer].put)
			put_json(out, seed, writer, position, position == from);
		else
			put_line(out, seed, writer, position);
	}
	if (shapes[writer].put)
		buf_append_char(out, ']');
	ASSERT(!out->failed);
}

static void note(struct crash *crash, char what, unsigned writer, uint64_t position)
{
	ASSERT(dprintf(crash->log, "%c %u %" PRIu64 "\n", what, writer, position) > 0);
}

static int send_batch(struct writer *writer, struct raw_http *client, struct buf *head,
		      struct slice body)
{
	struct http_reply reply;
	bool put = shapes[writer->id].put;

	buf_clear(head);
	raw_http_head(head, "POST", put ? "/api/put" : "/write",
		      put ? "application/json" : "text/plain", body.len);
	if (raw_http_send(client, buf_slice(head), body) || raw_http_receive(client, &reply))
		return ERR_CANCELLED;
	if (reply.status == 204)
		return 0;
	fprintf(stderr, "writer %u: status %d: %.*s\n", writer->id, reply.status,
		(int)(reply.body.len < 300 ? reply.body.len : 300), reply.body.data);
	return ERR_INVALID;
}

static void *writer_run(void *argument)
{
	struct writer *writer = argument;
	struct crash *crash = writer->crash;
	struct stream *stream = &crash->streams[writer->id];
	struct raw_http client;
	struct random random;
	struct buf body, head;
	int err = raw_http_open(&client, crash->port, TIMEOUT_S);

	random_init(&random, crash->seed ^ random_system_seed());
	buf_init(&body, BODY_MAX_BYTES);
	buf_init(&head, 4096);
	while (!err) {
		uint64_t to =
			stream->answered + 1 + random_below(&random, shapes[writer->id].batch_max);
		put_batch(&body, crash->seed, writer->id, stream->answered, to);
		if (to > stream->sent) {
			stream->sent = to;
			note(crash, 'S', writer->id, to);
		}
		err = send_batch(writer, &client, &head, buf_slice(&body));
		if (!err) {
			stream->answered = to;
			note(crash, 'A', writer->id, to);
		}
	}
	writer->err = err == ERR_INVALID ? err : 0;
	raw_http_close(&client);
	buf_release(&body);
	buf_release(&head);
	return NULL;
}

static int crash_write(struct crash *crash)
{
	pthread_t threads[WRITERS];
	struct writer writers[WRITERS];
	int err = 0;

	for (unsigned i = 0; i < WRITERS; i++)
		note(crash, 'B', i, crash->streams[i].answered);
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){.crash = crash, .id = i};
		ASSERT(pthread_create(&threads[i], NULL, writer_run, &writers[i]) == 0);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		pthread_join(threads[i], NULL);
		if (writers[i].err)
			err = writers[i].err;
	}
	return err;
}

/* ---- Checking ------------------------------------------------------------------------------- */

/* One series of one writer, looked at from `from_ms` on. */
struct check {
	struct crash *crash;
	struct raw_http *client;
	unsigned writer, series, field;
	int64_t from_ms;
	int64_t last_ms;
	uint64_t answered_seen;
	size_t *samples, *problems;
};

PRINTF_LIKE(2, 3) static void problem(struct check *check, const char *fmt, ...)
{
	va_list arguments;

	if ((*check->problems)++ >= PROBLEMS_MAX)
		return;
	fprintf(stderr, "writer %u, series %u, field v%u: ", check->writer, check->series,
		check->field);
	va_start(arguments, fmt);
	vfprintf(stderr, fmt, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

static void check_sample(struct check *check, int64_t ts_ms, const char *number)
{
	const struct stream *stream = &check->crash->streams[check->writer];
	int64_t offset_ms = ts_ms - BASE_MS;

	(*check->samples)++;
	if (ts_ms <= check->last_ms)
		problem(check, "%" PRId64 " comes after %" PRId64, ts_ms, check->last_ms);
	check->last_ms = ts_ms;
	if (offset_ms < 0 || offset_ms % STEP_MS) {
		problem(check, "time %" PRId64 " was never sent", ts_ms);
		return;
	}
	uint64_t position = position_of(check->writer, check->series, ts_ms);
	if (position >= stream->sent)
		problem(check, "position %" PRIu64 " was never sent, only up to %" PRIu64, position,
			stream->sent);
	if (position < stream->answered)
		check->answered_seen++;
	uint64_t bits =
		bits_of(check->crash->seed, check->writer, check->series, check->field, ts_ms);
	if (!number_matches(number, bits, number_of(check->writer, check->field)))
		problem(check, "position %" PRIu64 " has the value %.30s", position, number);
}

/* "2024-01-01T00:00:00Z" or with a fraction of a second; NULL if it is something else. */
static const char *read_time(const char *at, int64_t *ts_ms)
{
	struct tm tm = {0};
	const char *end = strptime(at, "%Y-%m-%dT%H:%M:%S", &tm);
	char *fraction_end;

	if (!end)
		return NULL;
	*ts_ms = (int64_t)timegm(&tm) * 1000;
	if (*end == '.') {
		*ts_ms += (int64_t)(strtod(end, &fraction_end) * 1000 + 0.5);
		end = fraction_end;
	}
	return *end == 'Z' ? end + 1 : NULL;
}

/* The pairs of the one "values" object of an answer to /api/query. */
static void check_answer(struct check *check, struct slice body)
{
	const char *end = body.data + body.len;
	const char *at = body.len ? memmem(body.data, body.len, "\"values\"", 8) : NULL;

	if (!at)
		return;
	at = memchr(at, '{', (size_t)(end - at));
	const char *close = at ? memchr(at, '}', (size_t)(end - at)) : NULL;
	if (!close) {
		problem(check, "the answer has no whole list of values");
		return;
	}
	while ((at = memchr(at, '"', (size_t)(close - at)))) {
		int64_t ts_ms;
		at = read_time(at + 1, &ts_ms);
		const char *colon = at ? memchr(at, ':', (size_t)(close - at)) : NULL;
		if (!colon) {
			problem(check, "an answer that cannot be read");
			return;
		}
		at = colon + 1;
		while (*at == ' ')
			at++;
		check_sample(check, ts_ms, at);
	}
	if (memmem(close, (size_t)(end - close), "\"values\"", 8))
		problem(check, "more than one series in an answer");
}

static int check_window(struct check *check, int64_t start_ms, int64_t end_ms)
{
	struct http_reply reply;
	struct buf path, head;

	buf_init(&path, 4096);
	buf_init(&head, 4096);
	buf_printf(
		&path,
		"/api/query?tenant=default&metricName=crash_v%u&tag=writer%%3D%u&tag=series%%3D%u"
		"&start=%" PRId64 "&end=%" PRId64,
		check->field, check->writer, check->series, start_ms, end_ms);
	buf_append_char(&path, '\0');
	raw_http_head(&head, "GET", path.data, NULL, SIZE_MAX);
	int err = raw_http_send(check->client, buf_slice(&head), (struct slice){NULL, 0});
	if (!err)
		err = raw_http_receive(check->client, &reply);
	if (err)
		problem(check, "query: %s", err_text(err));
	else if (reply.status != 200)
		problem(check, "query: status %d: %.*s", reply.status,
			(int)(reply.body.len < 300 ? reply.body.len : 300), reply.body.data);
	else
		check_answer(check, reply.body);
	buf_release(&path);
	buf_release(&head);
	return err;
}

/* Positions of one series below `position`. */
static uint64_t count_below(uint64_t position, unsigned series, unsigned series_count)
{
	return position > series ? (position - series - 1) / series_count + 1 : 0;
}

static int check_series(struct check *check, bool tail)
{
	const struct stream *stream = &check->crash->streams[check->writer];
	unsigned count = shapes[check->writer].series;
	uint64_t from = tail ? stream->begun / count / BLOCK * BLOCK : 0;
	uint64_t until = (stream->sent / count / BLOCK + 2) * BLOCK;
	uint64_t answered = count_below(stream->answered, check->series, count);
	int err = 0;

	check->last_ms = INT64_MIN;
	for (uint64_t index = from; index < until && !err; index += WINDOW) {
		/* The first one looks also at the time before all, the last one after. */
		int64_t start = index ? BASE_MS + (int64_t)index * STEP_MS : BASE_MS - 86400000;
		int64_t end = BASE_MS + (int64_t)(index + WINDOW) * STEP_MS;
		err = check_window(check, start, end);
	}
	answered = answered > from ? answered - from : 0;
	if (!err && check->answered_seen != answered)
		problem(check, "%" PRIu64 " of %" PRIu64 " answered samples are there",
			check->answered_seen, answered);
	return err;
}

static int crash_check(struct crash *crash, bool tail)
{
	struct raw_http client;
	size_t samples = 0, problems = 0;
	int err = raw_http_open(&client, crash->port, TIMEOUT_S);

	for (unsigned w = 0; w < WRITERS; w++) {
		for (unsigned s = 0; s < shapes[w].series; s++) {
			for (unsigned f = 0; f < shapes[w].fields && !err; f++) {
				struct check check = {.crash = crash,
						      .client = &client,
						      .writer = w,
						      .series = s,
						      .field = f,
						      .samples = &samples,
						      .problems = &problems};
				err = check_series(&check, tail);
			}
		}
	}
	raw_http_close(&client);
	printf("{\"samples\": %zu, \"problems\": %zu}\n", samples, problems);
	return err || problems ? ERR_INVALID : 0;
}

/* ---- The log and the command line ----------------------------------------------------------- */

static int read_log(struct crash *crash, const char *path)
{
	FILE *file = fopen(path, "r");
	char line[100], *at;

	if (!file)
		return errno == ENOENT ? 0 : -errno;
	while (fgets(line, sizeof(line), file)) {
		unsigned long writer = strtoul(line + 1, &at, 10);
		uint64_t position = strtoull(at, &at, 10);
		ASSERT(writer < WRITERS && *at == '\n');
		struct stream *stream = &crash->streams[writer];
		if (line[0] == 'S')
			stream->sent = position;
		else if (line[0] == 'A')
			stream->answered = position;
		else
			stream->begun = position;
	}
	fclose(file);
	return 0;
}

static int usage(void)
{
	fputs("usage: crash_writer write|check --port PORT --seed N --log FILE [--tail]\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"port", required_argument, NULL, 'p'},
		{"seed", required_argument, NULL, 's'},
		{"log", required_argument, NULL, 'l'},
		{"tail", no_argument, NULL, 't'},
		{NULL, 0, NULL, 0},
	};
	static struct crash crash;
	const char *log = NULL;
	bool tail = false;
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'p')
			crash.port = (uint16_t)strtoul(optarg, NULL, 10);
		else if (option == 's')
			crash.seed = strtoull(optarg, NULL, 10);
		else if (option == 'l')
			log = optarg;
		else if (option == 't')
			tail = true;
		else
			return usage();
	}
	if (!crash.port || !log || optind + 1 != argc || read_log(&crash, log))
		return usage();
	if (strcmp(argv[optind], "check") == 0)
		return crash_check(&crash, tail) ? 1 : 0;
	crash.log = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (strcmp(argv[optind], "write") != 0 || crash.log < 0)
		return usage();
	return crash_write(&crash) ? 1 : 0;
}
