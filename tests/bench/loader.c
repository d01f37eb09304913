/* Sends a file of line protocol to a /write endpoint as fast as the endpoint takes it: N
 * connections, each with one request of some thousand rows in flight, every status checked.
 *
 *   loader --port 8428 --connections 2 --rows 10000 cpu.lp
 *
 * Prints one JSON object: rows, samples, bytes, requests, wall seconds and latencies. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/mem.h"
#include "tools/raw_http.h"

enum { CONNECTIONS_MAX = 64, TIMEOUT_S = 120, REQUESTS_MAX = 1 << 20 };

struct load {
	uint16_t port;
	bool tls;
	const char *path;
	size_t rows_per_request, connections;
	struct slice file;
	pthread_mutex_t lock; /* guards all below */
	size_t next;          /* byte where the next request begins */
	size_t rows, requests;
	int err;
	uint32_t *latencies_us;
};

/* The next rows of the file, whole lines; false at its end or after somebody failed. */
static bool load_take(struct load *load, struct slice *body)
{
	pthread_mutex_lock(&load->lock);
	const char *begin = load->file.data + load->next, *end = load->file.data + load->file.len;
	const char *at = begin;
	size_t rows = 0;

	while (rows < load->rows_per_request && at < end && !load->err) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		at = line_end ? line_end + 1 : end;
		rows++;
	}
	load->rows += rows;
	load->next = (size_t)(at - load->file.data);
	pthread_mutex_unlock(&load->lock);
	*body = (struct slice){begin, (size_t)(at - begin)};
	return rows != 0;
}

static void load_done(struct load *load, int64_t took_us)
{
	pthread_mutex_lock(&load->lock);
	if (load->requests < REQUESTS_MAX)
		load->latencies_us[load->requests] = (uint32_t)took_us;
	load->requests++;
	pthread_mutex_unlock(&load->lock);
}

static int send_one(struct load *load, struct raw_http *client, struct slice body)
{
	struct clock *clock = clock_real();
	int64_t begun_us = clock->mono_us(clock);
	struct http_reply reply;
	struct buf head;

	buf_init(&head, 4096);
	raw_http_head(&head, "POST", load->path, "text/plain", body.len);
	int err = raw_http_send(client, buf_slice(&head), body);
	buf_release(&head);
	if (!err)
		err = raw_http_receive(client, &reply);
	if (err) {
		fprintf(stderr, "loader: %s\n", err_text(err));
		return err;
	}
	if (reply.status / 100 != 2) {
		fprintf(stderr, "loader: status %d: %.*s\n", reply.status,
			(int)(reply.body.len < 500 ? reply.body.len : 500), reply.body.data);
		return ERR_INVALID;
	}
	load_done(load, clock->mono_us(clock) - begun_us);
	return 0;
}

static void *connection_run(void *argument)
{
	struct load *load = argument;
	struct raw_http client;
	struct slice body;
	int err = load->tls ? raw_http_open_tls(&client, load->port, TIMEOUT_S)
			    : raw_http_open(&client, load->port, TIMEOUT_S);

	while (!err && load_take(load, &body))
		err = send_one(load, &client, body);
	if (err) {
		pthread_mutex_lock(&load->lock);
		load->err = err;
		pthread_mutex_unlock(&load->lock);
	}
	raw_http_close(&client);
	return NULL;
}

/* Values of the first line: `=` outside of the tags. */
static size_t count_fields(struct slice file)
{
	const char *end = memchr(file.data, '\n', file.len);
	const char *at = memchr(file.data, ' ', file.len);
	size_t count = 0;

	for (; at && end && at < end; at++)
		count += *at == '=';
	return count;
}

static int map_file(const char *path, struct slice *file)
{
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &info) < 0)
		return -errno;
	file->len = (size_t)info.st_size;
	if (file->len == 0)
		return ERR_INVALID;
	void *data = mmap(NULL, file->len, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	close(fd);
	file->data = data;
	return data == MAP_FAILED ? -errno : 0;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static void report(struct load *load, int64_t took_us)
{
	size_t n = load->requests < REQUESTS_MAX ? load->requests : REQUESTS_MAX;

	qsort(load->latencies_us, n, sizeof(*load->latencies_us), compare_u32);
	printf("{\"rows\": %zu, \"samples\": %zu, \"bytes\": %zu, \"requests\": %zu, "
	       "\"seconds\": %.3f, \"p50_ms\": %.2f, \"p99_ms\": %.2f}\n",
	       load->rows, load->rows * count_fields(load->file), load->file.len, load->requests,
	       (double)took_us / 1e6, n ? load->latencies_us[n / 2] / 1e3 : 0,
	       n ? load->latencies_us[n * 99 / 100] / 1e3 : 0);
}

static int run(struct load *load)
{
	struct clock *clock = clock_real();
	int64_t begun_us = clock->mono_us(clock);
	pthread_t threads[CONNECTIONS_MAX];

	pthread_mutex_init(&load->lock, NULL);
	load->latencies_us = mem_alloc_array(REQUESTS_MAX, sizeof(*load->latencies_us));
	for (size_t i = 0; i < load->connections; i++)
		ASSERT(pthread_create(&threads[i], NULL, connection_run, load) == 0);
	for (size_t i = 0; i < load->connections; i++)
		pthread_join(threads[i], NULL);
	if (!load->err)
		report(load, clock->mono_us(clock) - begun_us);
	mem_free(load->latencies_us);
	return load->err;
}

static int usage(void)
{
	fputs("usage: loader --port PORT [--path /write] [--connections N] [--rows N] [--tls] "
	      "FILE\n",
	      stderr);
	return 2;
}

static int parse(int argc, char **argv, struct load *load)
{
	static const struct option names[] = {
		{"port", required_argument, NULL, 'p'},
		{"path", required_argument, NULL, 'u'},
		{"connections", required_argument, NULL, 'c'},
		{"rows", required_argument, NULL, 'r'},
		{"tls", no_argument, NULL, 't'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'p')
			load->port = (uint16_t)strtoul(optarg, NULL, 10);
		else if (option == 'u')
			load->path = optarg;
		else if (option == 'c')
			load->connections = strtoul(optarg, NULL, 10);
		else if (option == 'r')
			load->rows_per_request = strtoul(optarg, NULL, 10);
		else if (option == 't')
			load->tls = true;
		else
			return ERR_INVALID;
	}
	bool ok = load->port && load->rows_per_request && load->connections &&
		  load->connections <= CONNECTIONS_MAX && optind + 1 == argc;
	return ok ? 0 : ERR_INVALID;
}

int main(int argc, char **argv)
{
	struct load load = {.path = "/write", .connections = 2, .rows_per_request = 10000};

	if (parse(argc, argv, &load))
		return usage();
	int err = map_file(argv[optind], &load.file);
	if (err) {
		fprintf(stderr, "loader: %s: %s\n", argv[optind], err_text(err));
		return 1;
	}
	return run(&load) ? 1 : 0;
}
