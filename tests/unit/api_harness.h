/* The API over a real connection, for its tests: a server on the naive engine, the data of the
 * document's worked example, and a client on a thread of its own. */
#ifndef TESTS_UNIT_API_HARNESS_H
#define TESTS_UNIT_API_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/routes.h"
#include "base/buf.h"
#include "base/stats.h"
#include "catalog/catalog.h"
#include "loop/loop.h"
#include "naive.h"
#include "query/query.h"

/* 2020-08-24T16:40:00Z: when the example is asked. */
#define NOW_MS INT64_C(1598287200000)

#ifndef OPEN_STORE
#define OPEN_STORE() naive_open(&clock_.clock)
#endif

static struct loop *loop;
static struct clock_virtual clock_;
static struct store *store;
static struct catalog *catalog;
static struct http_server *server;
static struct api api;
static struct query_options options;
static struct http_limits limits;
static uint16_t port;

static inline void stop_loop(void *owner)
{
	(void)owner;
	loop_stop(loop);
}

static inline void begin(void)
{
	struct loop_address address;
	struct errbuf e;
	api.queries = query_engine_new(&options);
	server = http_server_new(loop, clock_real(), &limits, api_routes, api_route_count, &api);
	assert_int_equal(loop_address_parse(SLICE("127.0.0.1:0"), &address, &e), 0);
	assert_int_equal(http_server_listen(server, &address, &e), 0);
	port = http_server_address(server).port;
}

static inline int setup(void **state)
{
	(void)state;
	struct catalog_options catalog_options = catalog_options_default();
	loop = loop_new();
	clock_virtual_init(&clock_, NOW_MS * 1000);
	store = OPEN_STORE();
	catalog = catalog_new(store, &clock_.clock, loop_executor(loop), &catalog_options);
	api = (struct api){
		.loop = loop, .clock = &clock_.clock, .store = store, .catalog = catalog};
	options = (struct query_options){
		.store = store,
		.catalog = catalog,
		.clock = &clock_.clock,
		.executor = loop_executor(loop),
		.loop = loop,
	};
	limits = http_limits_default;
	begin();
	return 0;
}

static inline void end(void)
{
	http_server_stop(server, 0, stop_loop, NULL);
	loop_run(loop);
	http_server_free(server);
	while (!query_engine_idle(api.queries)) { /* reads that were dropped come back */
		loop_stop(loop);
		loop_run(loop);
	}
	query_engine_free(api.queries);
}

static inline void begin_again(void)
{
	end();
	begin();
}

static inline int teardown(void **state)
{
	(void)state;
	end();
	catalog_close(catalog, stop_loop, NULL);
	loop_run(loop);
	store_close(store);
	loop_free(loop);
	return 0;
}

/* ---- Data ---------------------------------------------------------------------------------- */

static inline void opened(struct catalog_open *open)
{
	(void)open;
	loop_stop(loop);
}

static inline void written(struct store_write *write, int err)
{
	(void)write;
	assert_int_equal(err, 0);
	loop_stop(loop);
}

static inline struct store_write *write_new(void)
{
	struct store_write *write = store_write_new(store, 32 << 20);
	write->executor = loop_executor(loop);
	write->done = written;
	return write;
}

static inline void write_out(struct store_write *write)
{
	assert_int_equal(store_write_submit(write), 0);
	loop_run(loop);
	store_write_free(write);
}

static inline uint64_t open_series(const char *tenant, const char *metric, const char *tags)
{
	struct arena arena;
	struct slice name = slice_of(metric);
	uint64_t handle = 0;
	arena_init(&arena, 1 << 20);
	struct catalog_group group = {
		.tenant = slice_of(tenant),
		.metrics = &name,
		.count = 1,
		.handles = &handle,
	};
	assert_int_equal(tags_decode(slice_of(tags), &arena, &group.tags), 0);
	struct catalog_open open = {
		.catalog = catalog,
		.executor = loop_executor(loop),
		.done = opened,
		.groups = &group,
		.count = 1,
	};
	assert_int_equal(catalog_open_start(&open), 0);
	loop_run(loop);
	assert_int_equal(group.err, 0);
	struct store_write *write = write_new();
	assert_int_equal(catalog_open_add_names(&open, write), 0);
	write_out(write);
	catalog_open_finish(&open, 0);
	arena_release(&arena);
	return handle;
}

static inline void put(uint64_t handle, int64_t ts_ms, struct value value)
{
	struct store_write *write = write_new();
	assert_int_equal(store_append(write, &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
				      ts_ms, &handle, 1, &value),
			 0);
	write_out(write);
}

/* ---- A client on a thread of its own -------------------------------------------------------- */

struct client {
	const char *verb; /* NULL: GET */
	const char *path, *headers;
	pthread_t thread;
	size_t read_max;    /* goes away after so many bytes; 0: reads to the end */
	useconds_t rest_us; /* between two reads of 4 KB */
	char *answer;
	size_t len;
	int status;
	const char *body; /* raw: chunks are as sent */
};

/* 0: the kernel's own size for what was not read yet. */
static inline int dial_with(int receive_bytes)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (receive_bytes)
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes,
					    sizeof(receive_bytes)),
				 0);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static inline int dial(void)
{
	return dial_with(0);
}

static inline void *run_client(void *context)
{
	struct client *c = context;
	char request[4096];
	int fd = dial();
	int n = snprintf(request, sizeof(request),
			 "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n",
			 c->verb ? c->verb : "GET", c->path, c->headers ? c->headers : "");
	assert_int_equal(write(fd, request, (size_t)n), n);
	size_t room = 1 << 16;
	c->answer = mem_alloc(room);
	for (;;) {
		if (c->len + 4097 > room)
			c->answer = mem_resize(c->answer, room *= 2);
		ssize_t got = read(fd, c->answer + c->len, 4096);
		if (got <= 0)
			break;
		c->len += (size_t)got;
		if (c->read_max && c->len >= c->read_max)
			break;
		if (c->rest_us)
			usleep(c->rest_us);
	}
	c->answer[c->len] = 0;
	close(fd);
	loop_stop(loop);
	return NULL;
}

static inline void ask(struct client *c, const char *path)
{
	c->path = path;
	assert_int_equal(pthread_create(&c->thread, NULL, run_client, c), 0);
	loop_run(loop);
	pthread_join(c->thread, NULL);
	assert_memory_equal(c->answer, "HTTP/1.1 ", 9);
	c->status = (int)strtol(c->answer + 9, NULL, 10);
	c->body = strstr(c->answer, "\r\n\r\n");
	assert_non_null(c->body);
	c->body += 4;
}

static inline void expect(const char *path, int status, const char *body)
{
	struct client c = {0};
	ask(&c, path);
	if (c.status != status)
		fail_msg("%s: %s", path, c.answer);
	assert_string_equal(c.body, body);
	mem_free(c.answer);
}

static inline void refuse(const char *path, int status, const char *sentence)
{
	char body[1024];
	snprintf(body, sizeof(body), "{\"error\":{\"code\":%d,\"message\":\"%s\"}}\n", status,
		 sentence);
	expect(path, status, body);
}

/* The chunks of a streamed body put together. */
static inline char *unchunk(const char *body)
{
	char *plain = mem_alloc(strlen(body) + 1), *to = plain;
	for (;;) {
		char *at;
		size_t len = strtoul(body, &at, 16);
		assert_true(at != body && at[0] == '\r');
		if (!len)
			break;
		memcpy(to, at + 2, len);
		to += len;
		body = at + 2 + len + 2;
	}
	*to = 0;
	return plain;
}

/* ---- The worked example ---------------------------------------------------------------------- */

/* 2020-08-24T15:51:15Z is 1598284275 (date -d). The values that the document prints are at these
 * seconds; the others' are there to be left out. */
static inline void put_example(void)
{
	static const struct {
		const char *tags;
		int64_t s;
		double value;
	} points[] = {
		{"deployment=prod,host=h-1,os=linux", 1598284275, 186},
		{"deployment=prod,host=h-1,os=linux", 1598286234, 828},
		{"deployment=prod,host=h-1,os=linux", 1598286238, 842},
		{"deployment=prod,host=h-1,os=linux", 1598286412, 832},
		{"deployment=prod,host=h-1,os=linux", 1598286845, 436},
		{"deployment=prod,host=h-2,os=windows", 1598286845, 111},
		{"deployment=dev,host=h-3,os=linux", 1598286845, 222},
		{"deployment=prod,host=h-4,os=linux", 1598286845, 477},
	};
	for (size_t i = 0; i < ARRAY_LEN(points); i++)
		put(open_series("t-1", "cpu_idle", points[i].tags), points[i].s * 1000,
		    value_f64(points[i].value));
	put(open_series("t-2", "cpu_idle", points[0].tags), 1598286845000, value_f64(999));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
