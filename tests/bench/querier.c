/* Asks a server the same few questions over and over on one kept connection and prints how long an
 * answer took. Paths are read from standard input, one a line, and asked in turn.
 *
 *   querier --port 8470 --count 5000 < paths
 *
 * Prints one JSON object: queries, wall seconds, p50, p90, p99 in ms and the mean answer length. */
#include <getopt.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/mem.h"
#include "tools/http_client.h"

enum { PATHS_MAX = 10000, PATH_MAX_BYTES = 4096, TIMEOUT_S = 60 };

struct paths {
	struct arena arena;
	struct slice heads[PATHS_MAX]; /* whole requests */
	size_t count;
};

static void paths_read(struct paths *paths)
{
	char line[PATH_MAX_BYTES];
	struct buf head;

	arena_init(&paths->arena, (size_t)PATHS_MAX * PATH_MAX_BYTES);
	buf_init(&head, PATH_MAX_BYTES * 2);
	while (paths->count < PATHS_MAX && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\r\n")] = '\0';
		buf_clear(&head);
		http_client_head(&head, "GET", line, NULL, SIZE_MAX);
		paths->heads[paths->count] = arena_copy(&paths->arena, buf_slice(&head));
		ASSERT(paths->heads[paths->count].data);
		paths->count++;
	}
	buf_release(&head);
}

static int ask(struct http_client *client, struct slice head, size_t *bytes)
{
	struct http_reply reply;
	int err = http_client_send(client, head, (struct slice){NULL, 0});

	if (!err)
		err = http_client_receive(client, &reply);
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

static int compare_i64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int run(struct http_client *client, const struct paths *paths, size_t count)
{
	struct clock *clock = clock_real();
	int64_t *took_us = mem_alloc_array(count, sizeof(*took_us)), total_us = 0;
	size_t bytes = 0;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		int64_t begun_us = clock->mono_us(clock);
		err = ask(client, paths->heads[i % paths->count], &bytes);
		took_us[i] = clock->mono_us(clock) - begun_us;
		total_us += took_us[i];
	}
	if (!err) {
		qsort(took_us, count, sizeof(*took_us), compare_i64);
		printf("{\"queries\": %zu, \"seconds\": %.3f, \"p50_ms\": %.3f, \"p90_ms\": %.3f, "
		       "\"p99_ms\": %.3f, \"bytes\": %zu}\n",
		       count, (double)total_us / 1e6, (double)took_us[count / 2] / 1e3,
		       (double)took_us[count * 9 / 10] / 1e3,
		       (double)took_us[count * 99 / 100] / 1e3, bytes / count);
	}
	mem_free(took_us);
	return err;
}

static int usage(void)
{
	fputs("usage: querier --port PORT [--count N] < PATHS\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"port", required_argument, NULL, 'p'},
		{"count", required_argument, NULL, 'c'},
		{NULL, 0, NULL, 0},
	};
	static struct paths paths;
	struct http_client client;
	unsigned long port = 0, count = 1000;
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'p')
			port = strtoul(optarg, NULL, 10);
		else if (option == 'c')
			count = strtoul(optarg, NULL, 10);
		else
			return usage();
	}
	paths_read(&paths);
	if (!port || port > UINT16_MAX || !count || !paths.count)
		return usage();
	int err = http_client_open(&client, (uint16_t)port, TIMEOUT_S);
	if (err)
		fprintf(stderr, "querier: %s\n", err_text(err));
	else
		err = run(&client, &paths, count);
	http_client_close(&client);
	arena_release(&paths.arena);
	return err ? 1 : 0;
}
