/* Asks a server the same few questions over and over on kept connections and prints how long an
 * answer took. Targets are given by --path (repeatable) or read from standard input, one a line,
 * and asked in turn: every connection takes the next one when its answer is there.
 *
 *   querier --port 8470 --count 5000 --connections 8 < paths
 *   querier --port 8470 --count 20 --path '/api/query?metricName=cpu_usage_user&start=...'
 *
 * With --group N, N consecutive targets on one connection are one query: their times add up.
 *
 * Prints one JSON object: queries, wall seconds, queries per second, p50, p90, p99 in ms and the
 * mean length of an answer. */
#include <getopt.h>
#include <pthread.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/mem.h"
#include "tools/raw_http.h"

enum { PATHS_MAX = 10000, PATH_MAX_BYTES = 4096, CONNECTIONS_MAX = 256, TIMEOUT_S = 120 };

struct paths {
	struct arena arena;
	struct slice heads[PATHS_MAX]; /* whole requests */
	size_t count;
};

static void paths_add(struct paths *paths, const char *path)
{
	struct buf head;

	ASSERT(paths->count < PATHS_MAX);
	buf_init(&head, PATH_MAX_BYTES * 2);
	raw_http_head(&head, "GET", path, NULL, SIZE_MAX);
	paths->heads[paths->count] = arena_copy(&paths->arena, buf_slice(&head));
	ASSERT(paths->heads[paths->count].data);
	paths->count++;
	buf_release(&head);
}

static void paths_read(struct paths *paths)
{
	char line[PATH_MAX_BYTES];

	while (paths->count < PATHS_MAX && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\r\n")] = '\0';
		paths_add(paths, line);
	}
}

/* What the connections share: the next query's number, and each query's time. */
struct run {
	const struct paths *paths;
	size_t count, group;
	uint16_t port;
	bool tls;
	_Atomic size_t next, bytes;
	_Atomic int err;
	int64_t *took_us; /* by query */
};

static int ask(struct raw_http *client, struct slice head, size_t *bytes)
{
	struct http_reply reply;
	int err = raw_http_send(client, head, (struct slice){NULL, 0});

	if (!err)
		err = raw_http_receive(client, &reply);
	if (err) {
		fprintf(stderr, "querier: %s\n", err_text(err));
		return err;
	}
	*bytes += reply.body.len;
	if (reply.status == 200)
		return 0;
	fprintf(stderr, "querier: status %d: %.*s\n", reply.status,
		(int)(reply.body.len < 500 ? reply.body.len : 500), reply.body.data);
	return ERR_INVALID;
}

static int ask_group(struct run *run, struct raw_http *client, size_t query)
{
	struct clock *clock = clock_real();
	int64_t begun_us = clock->mono_us(clock);
	size_t bytes = 0;
	int err = 0;

	for (size_t i = query * run->group; i < (query + 1) * run->group && !err; i++)
		err = ask(client, run->paths->heads[i % run->paths->count], &bytes);
	run->took_us[query] = clock->mono_us(clock) - begun_us;
	run->bytes += bytes;
	return err;
}

static void *connection_main(void *arg)
{
	struct run *run = arg;
	struct raw_http client;
	int err = run->tls ? raw_http_open_tls(&client, run->port, TIMEOUT_S)
			   : raw_http_open(&client, run->port, TIMEOUT_S);

	if (err)
		fprintf(stderr, "querier: %s\n", err_text(err));
	for (size_t i = run->next++; i < run->count && !err && !run->err; i = run->next++)
		err = ask_group(run, &client, i);
	raw_http_close(&client);
	if (err)
		run->err = err;
	return NULL;
}

static int compare_i64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void print_found(struct run *run, int64_t wall_us)
{
	size_t count = run->count;
	int64_t *took_us = run->took_us;

	qsort(took_us, count, sizeof(*took_us), compare_i64);
	printf("{\"queries\": %zu, \"seconds\": %.3f, \"qps\": %.1f, \"p50_ms\": %.3f, "
	       "\"p90_ms\": %.3f, \"p99_ms\": %.3f, \"bytes\": %zu}\n",
	       count, (double)wall_us / 1e6, (double)count * 1e6 / (double)(wall_us + 1),
	       (double)took_us[count / 2] / 1e3, (double)took_us[count * 9 / 10] / 1e3,
	       (double)took_us[count * 99 / 100] / 1e3, run->bytes / count);
}

static int run_all(struct run *run, size_t connections)
{
	struct clock *clock = clock_real();
	pthread_t threads[CONNECTIONS_MAX];
	int64_t begun_us = clock->mono_us(clock);

	run->took_us = mem_alloc_array(run->count, sizeof(*run->took_us));
	for (size_t i = 0; i < connections; i++) {
		int failed = pthread_create(&threads[i], NULL, connection_main, run);
		ASSERT(!failed);
	}
	for (size_t i = 0; i < connections; i++)
		pthread_join(threads[i], NULL);
	if (!run->err)
		print_found(run, clock->mono_us(clock) - begun_us);
	mem_free(run->took_us);
	return run->err;
}

static int usage(void)
{
	fputs("usage: querier --port PORT [--count N] [--connections N] [--group N] [--tls]\n"
	      "               [--path TARGET ...] [< TARGETS]\n",
	      stderr);
	return 2;
}

/* A number of at least 1 and at most `max`; 0: it is none. */
static size_t number_of(const char *text, size_t max)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);
	return *end || n > max ? 0 : (size_t)n;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"port", required_argument, NULL, 'p'},
		{"count", required_argument, NULL, 'c'},
		{"connections", required_argument, NULL, 'n'},
		{"group", required_argument, NULL, 'g'},
		{"path", required_argument, NULL, 't'},
		{"tls", no_argument, NULL, 's'},
		{NULL, 0, NULL, 0},
	};
	static struct paths paths;
	struct run run = {.paths = &paths, .count = 1000, .group = 1};
	size_t connections = 1;
	int option;

	arena_init(&paths.arena, (size_t)PATHS_MAX * PATH_MAX_BYTES);
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'p')
			run.port = (uint16_t)number_of(optarg, UINT16_MAX);
		else if (option == 'c')
			run.count = number_of(optarg, 100000000);
		else if (option == 'n')
			connections = number_of(optarg, CONNECTIONS_MAX);
		else if (option == 'g')
			run.group = number_of(optarg, PATHS_MAX);
		else if (option == 't' && strlen(optarg) < PATH_MAX_BYTES)
			paths_add(&paths, optarg);
		else if (option == 's')
			run.tls = true;
		else
			return usage();
	}
	if (!paths.count)
		paths_read(&paths);
	if (!run.port || !run.count || !connections || !run.group || !paths.count)
		return usage();
	int err = run_all(&run, connections);
	arena_release(&paths.arena);
	return err ? 1 : 0;
}
