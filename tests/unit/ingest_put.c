/* The door /api/put, over an HTTP connection without sockets: what it answers, and what becomes of
 * its requests when clients go away or the store does not want them. */
#include "ingest_harness.h"

#include <zlib.h>

#include "http/conn.h"
#include "ingest/put.h"
#include "ingest/put_feed.h"
#include "wire/json.h"

static const struct http_route routes[] = {
	{VERB_POST, "/api/put", false, ROLE_WRITE, REACH_ALL, 8 << 20, 8 << 20, &put_handler, "",
	 NULL},
};

struct door {
	struct harness h;
	struct ingest_context context;
	struct http_core core;
	struct http_conn conn;
	struct buf out;
	bool deferred, closed;
};

static struct door *door_of(struct http_conn *conn)
{
	return CONTAINER_OF(conn, struct door, conn);
}

static void on_read(struct http_conn *conn, size_t max_bytes)
{
	(void)conn;
	(void)max_bytes;
}

static void on_write(struct http_conn *conn, const struct slice *pieces, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_append(&door_of(conn)->out, pieces[i].data, pieces[i].len);
}

static size_t on_unsent(struct http_conn *conn)
{
	(void)conn;
	return 0;
}

static void on_shutdown(struct http_conn *conn)
{
	(void)conn;
}

static void on_defer(struct http_conn *conn)
{
	door_of(conn)->deferred = true;
}

static void on_close(struct http_conn *conn)
{
	door_of(conn)->closed = true;
}

static const struct http_transport transport = {.read = on_read,
						.write = on_write,
						.unsent = on_unsent,
						.shutdown = on_shutdown,
						.defer = on_defer,
						.close = on_close};

static void door_open(struct door *d, const struct ingest_options *options)
{
	memset(d, 0, sizeof(*d));
	harness_open(&d->h, options);
	d->context.ingest = d->h.ingest;
	http_core_init(&d->core, &d->h.clock.clock, &http_limits_default, routes, ARRAY_LEN(routes),
		       &d->context);
	http_conn_init(&d->conn, &d->core, &transport);
	buf_init(&d->out, 16 << 20);
}

static void door_close(struct door *d)
{
	if (!d->closed)
		http_conn_close(&d->conn);
	harness_pump(&d->h);
	http_conn_release(&d->conn);
	http_core_release(&d->core);
	buf_release(&d->out);
	harness_close(&d->h);
}

static void pump(struct door *d)
{
	size_t ran;
	do {
		ran = task_queue_run(&d->h.queue);
		if (d->deferred) {
			d->deferred = false;
			http_conn_step(&d->conn);
			ran++;
		}
	} while (ran);
}

static void send_head(struct door *d, const char *query, const char *headers, size_t length)
{
	char head[1024];
	int n = snprintf(
		head, sizeof(head),
		"POST /api/put%s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n",
		query, headers, length);
	http_conn_input(&d->conn, (struct slice){head, (size_t)n});
}

static void send_put(struct door *d, const char *query, const char *headers, struct slice body)
{
	buf_clear(&d->out);
	send_head(d, query, headers, body.len);
	http_conn_input(&d->conn, body);
}

/* The answer's status and body. */
static int answer(struct door *d, struct slice *body)
{
	buf_append_char(&d->out, 0);
	assert_memory_equal(d->out.data, "HTTP/1.1 ", 9);
	char *end = strstr(d->out.data, "\r\n\r\n");
	assert_non_null(end);
	*body = slice_of(end + 4);
	uint64_t status;
	number_scan_digits(d->out.data + 9, end, &status);
	return (int)status;
}

static void expect(struct door *d, int status, const char *body_expected)
{
	struct slice body;
	pump(d);
	assert_int_equal(answer(d, &body), status);
	assert_string_equal(body.data, body_expected);
}

#define POINT(metric, value)                                                                       \
	"{\"metric\":\"" metric "\",\"timestamp\":1,\"value\":" value ",\"tags\":{\"k\":\"v\"}}"

/* ---- Answers -------------------------------------------------------------------------------- */

static void nothing_wrong_is_204(void **state)
{
	(void)state;
	struct door d;
	door_open(&d, NULL);
	send_put(&d, "", "", SLICE("[" POINT("a", "1") "," POINT("b", "2") "]"));
	expect(&d, 204, "");
	send_put(&d, "?summary", "", SLICE(POINT("c", "3")));
	expect(&d, 200, "{\"success\":1,\"failed\":0}");
	send_put(&d, "?details", "", SLICE("[" POINT("d", "3") "]"));
	expect(&d, 200, "{\"success\":1,\"failed\":0,\"errors\":[]}");
	send_put(&d, "?summary=false&details=false", "", SLICE("[]"));
	expect(&d, 204, "");
	harness_expect(&d.h, "default:a,k=v 1000=1.0f\ndefault:b,k=v 1000=2.0f\n"
			     "default:c,k=v 1000=3.0f\ndefault:d,k=v 1000=3.0f\n");
	door_close(&d);
}

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	struct door d;
	door_open(&d, NULL);
	struct slice body =
		SLICE("[" POINT("a", "1") "," POINT("b", "\"x\"") "," POINT("c", "3") ",7]");
	send_put(&d, "", "", body);
	expect(&d, 400,
	       "{\"error\":{\"code\":400,\"message\":\"2 of 4 points refused; point 1: the value "
	       "is a "
	       "text, not a "
	       "number\"},\"success\":2,\"failed\":2,\"errors\":[{\"index\":1,\"error\":"
	       "\"the value is a text, not a number\"},{\"index\":3,\"error\":\"a point is an "
	       "object\"}]}");
	send_put(&d, "?summary", "", body);
	expect(&d, 400, "{\"success\":2,\"failed\":2}");
	send_put(&d, "?details&summary", "", body);
	expect(&d, 400,
	       "{\"success\":2,\"failed\":2,\"errors\":[{\"index\":1,\"error\":\"the value is a "
	       "text, "
	       "not a number\",\"datapoint\":{\"metric\":\"b\",\"timestamp\":1,\"value\":\"x\","
	       "\"tags\":{\"k\":\"v\"}}},{\"index\":3,\"error\":\"a point is an object\","
	       "\"datapoint\":7}]}");
	harness_expect(&d.h, "default:a,k=v 1000=1.0f\ndefault:c,k=v 1000=3.0f\n");
	door_close(&d);
}

/* What is no JSON, or has NaN in it, must not make the answer so. */
static void datapoints_of_bad_json(void **state)
{
	(void)state;
	struct door d;
	struct arena arena;
	struct json *root;
	struct errbuf e;
	struct slice body;
	door_open(&d, NULL);
	arena_init(&arena, 1 << 20);
	send_put(&d, "?details", "",
		 SLICE("[" POINT("a", "NaN") "," POINT(
			 "b", "-Infinity") ",{\"metric\":\"\\ud83d\\ude00\""
					   ",\"x\":[{},[],[null,true,{\"y\":[]}]],\"x\":1},{"
					   "\"metric\":!}]"));
	expect(&d, 400,
	       "{\"success\":0,\"failed\":4,\"errors\":["
	       "{\"index\":0,\"error\":\"the value is not a finite "
	       "number\",\"datapoint\":{\"metric\":"
	       "\"a\",\"timestamp\":1,\"value\":null,\"tags\":{\"k\":\"v\"}}},"
	       "{\"index\":1,\"error\":\"the value is not a finite "
	       "number\",\"datapoint\":{\"metric\":"
	       "\"b\",\"timestamp\":1,\"value\":null,\"tags\":{\"k\":\"v\"}}},"
	       "{\"index\":2,\"error\":\"\\\"timestamp\\\" is missing\",\"datapoint\":{\"metric\":"
	       "\"\xf0\x9f\x98\x80\",\"x\":[{},[],[null,true,{\"y\":[]}]],\"x\":1}},"
	       "{\"index\":3,\"error\":\"line 1, column 199: not a value; what follows was not "
	       "read\"}]}");
	answer(&d, &body);
	assert_int_equal(json_parse(slice_of(body.data), &arena, &root, &e), 0);
	arena_release(&arena);
	door_close(&d);
}

/* Numbers are shown digit for digit, also where no type of ours holds them. */
static void datapoints_are_echoed_as_they_came(void **state)
{
	(void)state;
	struct door d;
	door_open(&d, NULL);
	send_put(&d, "?details", "",
		 SLICE("{\"timestamp\":1.60e9,\"value\":18446744073709551617,\"a\":[-0,1e400,"
		       "0.10,123456789012345678901234567890]}"));
	expect(&d, 400,
	       "{\"success\":0,\"failed\":1,\"errors\":[{\"index\":0,\"error\":\"\\\"metric\\\" is "
	       "missing\",\"datapoint\":{\"timestamp\":1.60e9,\"value\":18446744073709551617,"
	       "\"a\":[-0,1e400,0.10,123456789012345678901234567890]}}]}");
	door_close(&d);
}

static void many_errors_are_cut(void **state)
{
	(void)state;
	struct door d;
	struct arena arena;
	struct buf text;
	struct json *root;
	struct errbuf e;
	struct slice body;
	int64_t count;
	door_open(&d, NULL);
	arena_init(&arena, 1 << 20);
	buf_init(&text, 2 << 20);
	buf_append_char(&text, '[');
	for (int i = 0; i < 250; i++)
		buf_printf(&text, "{\"metric\":\"%05000d\"},", i);
	buf_append_text(&text, POINT("good", "1") "]");
	send_put(&d, "?details", "", buf_slice(&text));
	pump(&d);
	assert_int_equal(answer(&d, &body), 400);
	assert_int_equal(json_parse(body, &arena, &root, &e), 0);
	assert_int_equal(json_get_i64(root, "success", &count, &e), 0);
	assert_int_equal(count, 1);
	assert_int_equal(json_get_i64(root, "failed", &count, &e), 0);
	assert_int_equal(count, 250);
	assert_int_equal(json_get_i64(root, "omitted", &count, &e), 0);
	assert_int_equal(count, 250 - INGEST_ERRORS_MAX);
	assert_int_equal(json_member(root, "errors")->count, INGEST_ERRORS_MAX);
	/* Datapoints of 5,000 bytes are left out. */
	assert_null(json_member(json_member(root, "errors")->first, "datapoint"));
	buf_release(&text);
	arena_release(&arena);
	door_close(&d);
}

static void the_header_names_the_tenant(void **state)
{
	(void)state;
	struct door d;
	door_open(&d, NULL);
	send_put(&d, "", "x-tenant: t-9\r\n", SLICE(POINT("a", "1")));
	expect(&d, 204, "");
	send_put(&d, "", "X-Tenant: no way\r\n", SLICE(POINT("a", "1")));
	expect(&d, 400,
	       "{\"error\":{\"code\":400,\"message\":\"X-Tenant is not 1 to 64 of A-Z a-z 0-9 _ . "
	       "and "
	       "-\"}}\n");
	harness_expect(&d.h, "t-9:a,k=v 1000=1.0f\n");
	door_close(&d);
}

static void gzipped_bodies_are_taken(void **state)
{
	(void)state;
	struct door d;
	static const char body[] = "[" POINT("a", "1") "," POINT("b", "2") "]";
	unsigned char packed[512];
	z_stream z = {.next_in = (unsigned char *)body,
		      .avail_in = sizeof(body) - 1,
		      .next_out = packed,
		      .avail_out = sizeof(packed)};
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	door_open(&d, NULL);
	send_put(&d, "", "Content-Encoding: gzip\r\n", (struct slice){(char *)packed, z.total_out});
	expect(&d, 204, "");
	harness_expect(&d.h, "default:a,k=v 1000=1.0f\ndefault:b,k=v 1000=2.0f\n");
	door_close(&d);
}

/* ---- A store that does not want them -------------------------------------------------------- */

static void errors_of_the_store_are_answered(void **state)
{
	(void)state;
	struct door d;
	struct slice body;
	static const struct {
		int err, status;
	} cases[] = {{ERR_BUSY, 503}, {ERR_FULL, 507}, {ERR_READ_ONLY, 507}};
	door_open(&d, NULL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		naive_refuse_writes(d.h.store, cases[i].err, 1);
		send_put(&d, "?details", "", SLICE(POINT("a", "1")));
		pump(&d);
		assert_int_equal(answer(&d, &body), cases[i].status);
		assert_memory_equal(body.data, "{\"error\":{\"code\":50", 19);
		assert_true((strstr(d.out.data, "Retry-After: 1\r\n") != NULL) ==
			    (cases[i].status == 503));
	}
	naive_fail_writes(d.h.store, ERR_UNKNOWN, 1);
	send_put(&d, "", "", SLICE(POINT("a", "1")));
	pump(&d);
	assert_int_equal(answer(&d, &body), 503);
	/* The same again is taken. */
	send_put(&d, "", "", SLICE(POINT("a", "1")));
	expect(&d, 204, "");
	harness_expect(&d.h, "default:a,k=v 1000=1.0f\n");
	door_close(&d);
}

/* ---- Long bodies, and clients that go away -------------------------------------------------- */

static void long_body(struct buf *body, unsigned points)
{
	buf_init(body, 8 << 20);
	for (unsigned i = 0; i < points; i++)
		buf_printf(body,
			   "%c{\"metric\":\"m\",\"timestamp\":%u,\"value\":%u,\"tags\":{\"h\":\"%"
			   "u\"}}",
			   i ? ',' : '[', i / 10, i, i % 10);
	buf_append_char(body, ']');
}

static void a_long_body_is_read_in_slices(void **state)
{
	(void)state;
	struct door d;
	struct buf body;
	/* So little may be in flight that the request is paused now and then. */
	struct ingest_options options = {.write_bytes = 16 << 10, .in_flight_max_bytes = 256 << 10};
	door_open(&d, &options);
	long_body(&body, 40000);
	send_put(&d, "?summary", "", buf_slice(&body));
	unsigned turns = 0;
	while (d.out.len == 0) {
		assert_true(task_queue_run(&d.h.queue) > 0 || d.deferred);
		if (d.deferred) {
			d.deferred = false;
			http_conn_step(&d.conn);
		}
		turns++;
	}
	assert_true(turns >= body.len / PUT_SLICE_BYTES);
	expect(&d, 200, "{\"success\":40000,\"failed\":0}");
	buf_release(&body);
	door_close(&d);
}

/* After any number of turns of the loop: nothing is left behind (the leak checker looks), and
 * nobody is called who is gone. */
static void clients_may_go_at_any_time(void **state)
{
	(void)state;
	struct buf body;
	struct ingest_options options = {.write_bytes = 16 << 10, .in_flight_max_bytes = 256 << 10};
	long_body(&body, 20000);
	for (unsigned turns = 0; turns < 40; turns++) {
		struct door d;
		door_open(&d, &options);
		send_put(&d, "", "", buf_slice(&body));
		for (unsigned i = 0; i < turns; i++) {
			task_queue_run(&d.h.queue);
			if (d.deferred) {
				d.deferred = false;
				http_conn_step(&d.conn);
			}
		}
		http_conn_broken(&d.conn);
		door_close(&d);
	}
	/* Within the head and the body. */
	for (size_t len = 0; len < 100; len += 10) {
		struct door d;
		door_open(&d, NULL);
		send_head(&d, "", "", 200);
		http_conn_input(&d.conn, (struct slice){body.data, len});
		http_conn_broken(&d.conn);
		door_close(&d);
	}
	buf_release(&body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_wrong_is_204),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(datapoints_of_bad_json),
		cmocka_unit_test(datapoints_are_echoed_as_they_came),
		cmocka_unit_test(many_errors_are_cut),
		cmocka_unit_test(the_header_names_the_tenant),
		cmocka_unit_test(gzipped_bodies_are_taken),
		cmocka_unit_test(errors_of_the_store_are_answered),
		cmocka_unit_test(a_long_body_is_read_in_slices),
		cmocka_unit_test(clients_may_go_at_any_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
