/* The connection, without sockets and on a clock that is moved by hand: what each request's end is,
 * when deadlines cut, when it reads and when not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../tools/http_fake.h"

#include "base/stats.h"

/* The handler of /h writes down what it is told, and answers when it is told to. */
static struct {
	struct clock_virtual clock;
	struct http_core core;
	struct fake *fake;
	struct http_request *request; /* begun and not over */
	struct buf log;
	bool answer_at_end, answer_at_body;
	bool pause_each, pause_body, pause_at_begin;
	size_t looked_at; /* of what was written */
} test;

static void note(const char *what)
{
	buf_append_text(&test.log, what);
	buf_append_char(&test.log, ' ');
}

static void assert_log(const char *expected)
{
	assert_true(slice_equal(buf_slice(&test.log), slice_of(expected)));
	buf_clear(&test.log);
}

static void answer(void)
{
	struct http_request *request = test.request;
	test.request = NULL;
	http_reply(request, 200, "text/plain", SLICE("ok"));
}

static void h_begin(struct http_request *request)
{
	assert_null(test.request);
	test.request = request;
	note("begin");
	if (test.pause_at_begin)
		http_request_pause_body(request);
}

static void h_body(struct http_request *request, struct slice piece)
{
	assert_ptr_equal(request, test.request);
	buf_append(&test.log, piece.data, piece.len < 1000 ? piece.len : 0);
	note("");
	if (test.pause_body)
		http_request_pause_body(request);
	else if (test.pause_each)
		http_request_pause(request);
	else if (test.answer_at_body)
		answer();
}

static void h_end(struct http_request *request)
{
	assert_ptr_equal(request, test.request);
	note("end");
	if (test.answer_at_end)
		answer();
}

static void h_abort(struct http_request *request, int err)
{
	assert_ptr_equal(request, test.request);
	test.request = NULL;
	note(err == ERR_CANCELLED ? "cancelled"
	     : err == ERR_TIMEOUT ? "timeout"
	     : err == ERR_LIMIT   ? "limit"
	     : err == ERR_INVALID ? "invalid"
	     : err == ERR_BUSY    ? "busy"
				  : "?");
}

static void h_drained(struct http_request *request)
{
	assert_ptr_equal(request, test.request);
	note("drained");
}

static const struct http_handler h = {h_begin, h_body, h_end, h_abort, h_drained};
static const struct http_handler g = {h_begin, NULL, h_end, h_abort, NULL};

static const struct http_route routes[] = {
	{VERB_GET, "/h", false, ROLE_READ, REACH_ALL, 0, 0, &h, "", NULL},
	{VERB_POST, "/h", false, ROLE_WRITE, REACH_ALL, 1000, 0, &h, "", NULL},
	{VERB_POST, "/z", false, ROLE_WRITE, REACH_ALL, 10000, 1 << 24, &h, "", NULL},
	{VERB_POST, "/g", false, ROLE_WRITE, REACH_ALL, 5000, 0, &g, "", NULL},
};

static int set_up(void **state)
{
	static const char *const hosts[] = {"h"};
	struct http_limits limits = http_limits_default;
	(void)state;
	limits.hosts = hosts;
	limits.host_count = ARRAY_LEN(hosts);
	limits.memory_max_bytes = 4000;
	limits.unsent_max_bytes = 100000;
	memset(&test, 0, sizeof(test));
	buf_init(&test.log, 100000);
	clock_virtual_init(&test.clock, INT64_C(784111777) * 1000000);
	http_core_init(&test.core, &test.clock.clock, &limits, routes, ARRAY_LEN(routes), NULL);
	test.fake = fake_new(&test.core);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fake_free(test.fake);
	http_core_release(&test.core); /* asserts that all memory was given back */
	buf_release(&test.log);
	return 0;
}

static void client_sends(const char *text)
{
	assert_int_equal(fake_input(test.fake, slice_of(text), SIZE_MAX), strlen(text));
}

static void pass_ms(int64_t ms)
{
	clock_virtual_advance(&test.clock, ms * 1000);
	http_conn_tick(&test.fake->conn);
}

/* Everything written since the last call begins with this. */
static void assert_written(const char *begins)
{
	size_t from = test.looked_at;
	struct buf *out = &test.fake->out;
	size_t len = strlen(begins);
	assert_true(out->len - from >= len);
	assert_memory_equal(out->data + from, begins, len);
	if (!len)
		assert_int_equal(out->len, from);
	test.looked_at = out->len;
}

static bool was_written(const char *text)
{
	struct buf *out = &test.fake->out;
	return memmem(out->data, out->len, text, strlen(text));
}

static void forget_written(void)
{
	buf_clear(&test.fake->out);
	test.fake->sent = test.looked_at = 0;
}

#define GET_H  "GET /h HTTP/1.1\r\nHost: h\r\n\r\n"
#define POST_H "POST /h HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n"

/* The whole head, to the byte; the date is the one of RFC 9110 5.6.7. */
static void test_an_answer(void **state)
{
	static const char expected[] = "HTTP/1.1 200 OK\r\n"
				       "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
				       "Content-Type: text/plain\r\n"
				       "X-Content-Type-Options: nosniff\r\n"
				       "Cross-Origin-Resource-Policy: same-origin\r\n"
				       "Content-Length: 2\r\n"
				       "X: y\r\n"
				       "\r\n"
				       "ok";
	(void)state;
	client_sends(GET_H);
	assert_log("begin end ");
	assert_int_equal(test.fake->out.len, 0);
	http_reply_header(test.request, "X", "y");
	answer();
	assert_int_equal(test.fake->out.len, strlen(expected));
	assert_memory_equal(test.fake->out.data, expected, strlen(expected));
}

static void test_the_next_request_waits_for_the_answer(void **state)
{
	(void)state;
	client_sends(GET_H GET_H POST_H "abcdef");
	assert_log("begin end ");
	answer();
	assert_true(test.fake->deferred); /* not from inside the answer of the first */
	assert_log("");
	fake_step(test.fake);
	assert_log("begin end ");
	test.answer_at_end = true;
	answer();
	fake_step(test.fake);
	assert_log("begin abcdef end ");
	assert_int_equal(test.fake->conn.kept.len, 0);
	assert_int_equal(test.fake->read_max, 4096);
}

static void test_what_is_read_ahead_is_bounded(void **state)
{
	char *many = mem_alloc(1 << 20);
	size_t one = strlen(GET_H), len = 0;
	(void)state;
	for (; len + one < 1 << 20; len += one)
		memcpy(many + len, GET_H, one);
	/* The first read may bring a whole buffer, later ones only a little. */
	size_t used = fake_input(test.fake, (struct slice){many, len}, 8000);
	assert_true(used < 50000);
	assert_int_equal(test.fake->read_max, 0);
	test.answer_at_end = true;
	answer();
	used += fake_input(test.fake, (struct slice){many + used, len - used}, 8000);
	assert_int_equal(used, len);
	assert_null(test.request);
	mem_free(many);
}

static void test_a_pause_stops_the_socket_and_keeps_the_rest(void **state)
{
	(void)state;
	test.pause_each = true;
	client_sends("POST /h HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n" GET_H);
	assert_log("begin abc ");
	assert_int_equal(test.fake->read_max, 0);
	pass_ms(1000000); /* no deadline of the client's runs */
	http_request_resume(test.request);
	assert_log("");
	fake_step(test.fake);
	assert_log("def ");
	http_request_resume(test.request);
	fake_step(test.fake);
	assert_log("end ");
	answer();
	fake_step(test.fake);
	assert_log("begin end ");
}

static void test_a_pause_at_the_last_piece_delays_the_end(void **state)
{
	(void)state;
	test.pause_each = true;
	client_sends(POST_H "abcdef");
	assert_log("begin abcdef ");
	http_request_resume(test.request);
	fake_step(test.fake);
	assert_log("end ");
}

static void test_a_paused_body_may_end(void **state)
{
	(void)state;
	test.pause_body = true;
	client_sends(POST_H "abcdef");
	assert_log("begin abcdef end ");
	answer();
	client_sends("POST /h HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n");
	assert_log("begin abc "); /* there is more */
	assert_int_equal(test.fake->read_max, 0);
	http_request_resume(test.request);
	fake_step(test.fake);
	assert_log("def end ");
}

static void test_a_body_paused_before_it_comes(void **state)
{
	(void)state;
	test.pause_at_begin = true;
	client_sends(POST_H "abc");
	assert_log("begin ");
	assert_int_equal(test.fake->read_max, 0);
	pass_ms(1000000);
	http_request_resume(test.request);
	fake_step(test.fake);
	assert_log("abc ");
	client_sends("def");
	assert_log("def end ");
	answer();
	client_sends(GET_H); /* nothing to hold back */
	assert_log("begin end ");
}

static void test_an_answer_while_paused(void **state)
{
	(void)state;
	test.pause_each = true;
	client_sends(POST_H "abc");
	answer();
	client_sends("def" GET_H);
	assert_log("begin abc begin end ");
}

static void test_a_body_that_comes_after_the_answer_is_discarded(void **state)
{
	(void)state;
	client_sends(POST_H);
	answer();
	assert_log("begin ");
	client_sends("GET /h" GET_H); /* six bytes of body, then a request */
	assert_log("begin end ");
	assert_false(test.fake->shut);
}

/* Of a gzipped body, too, the rest is as long as it was sent, not as what it would become. */
static void test_an_answer_in_the_middle_of_a_gzipped_body(void **state)
{
	static char zeros[1 << 20];
	struct gzip *gzip = gzip_new();
	struct buf body;
	char head[200];
	(void)state;
	buf_init(&body, 1 << 24);
	assert_int_equal(gzip_write(gzip, (struct slice){zeros, sizeof(zeros)}, true, &body), 0);
	gzip_free(gzip);
	snprintf(head, sizeof(head),
		 "POST /z HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\n"
		 "Content-Length: %zu\r\n\r\n",
		 body.len);
	test.core.limits.memory_max_bytes = 100000;
	test.answer_at_body = true;
	client_sends(head);
	buf_append_text(&body, GET_H);
	assert_int_equal(fake_input(test.fake, buf_slice(&body), SIZE_MAX), body.len);
	assert_log("begin  begin end ");
	buf_release(&body);
}

/* `printf hello | gzip -n` of gzip 1.12, in two chunks; byte `flipped` of the gzip data damaged. */
static void send_hello(size_t flipped, const char *more)
{
	static const uint8_t hello_gz[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
					   0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x86,
					   0xa6, 0x10, 0x36, 0x05, 0x00, 0x00, 0x00};
	uint8_t gz[sizeof(hello_gz)];
	struct buf sent;
	memcpy(gz, hello_gz, sizeof(gz));
	if (flipped < sizeof(gz))
		gz[flipped] ^= 1;
	buf_init(&sent, 10000);
	buf_append_text(&sent, "POST /z HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\n"
			       "Transfer-Encoding: chunked\r\n\r\n14\r\n");
	buf_append(&sent, gz, 20);
	buf_append_text(&sent, "\r\n5\r\n");
	buf_append(&sent, gz + 20, 5);
	buf_append_text(&sent, "\r\n0\r\n\r\n");
	buf_append_text(&sent, more);
	fake_input(test.fake, buf_slice(&sent), 1);
	buf_release(&sent);
}

static void test_a_gzipped_body_is_handed_out_when_it_is_whole(void **state)
{
	(void)state;
	test.answer_at_end = true;
	send_hello(SIZE_MAX, GET_H);
	assert_log("begin hello end begin end ");
	assert_int_equal(test.core.memory_bytes, 0);
}

static void test_of_a_damaged_gzipped_body_nothing_is_handed_out(void **state)
{
	int64_t before = stat_get(STAT_http_refused_gzip);
	(void)state;
	send_hello(20, ""); /* of its checksum */
	assert_log("begin invalid ");
	assert_written("HTTP/1.1 400 Bad Request\r\n");
	assert_int_equal(stat_get(STAT_http_refused_gzip), before + 1);
	assert_int_equal(test.core.memory_bytes, 0);
}

static void test_a_paused_gzipped_body_waits_whole(void **state)
{
	(void)state;
	test.pause_each = true;
	send_hello(SIZE_MAX, "");
	assert_log("begin hello ");
	assert_int_equal(test.fake->read_max, 0);
	http_request_resume(test.request);
	fake_step(test.fake);
	assert_log("end ");
	answer();
}

/* More than its share of the memory, in pieces of unknown number. */
static void test_a_gzipped_body_is_bounded(void **state)
{
	(void)state;
	test.core.limits.memory_max_bytes = 80; /* a quarter is less than the 25 bytes of it */
	send_hello(SIZE_MAX, "");
	assert_log("begin limit ");
	assert_written("HTTP/1.1 413 ");
	assert_int_equal(test.core.memory_bytes, 0);
}

/* ---- Other codings --------------------------------------------------------------------------- */

static const struct coded {
	const char *coding;
	size_t len;
	uint8_t bytes[32];
} hellos[] = {
	/* zlib.compress(b"hello") of Python, without head and checksum, `printf hello | brotli` */
	{"deflate",
	 13,
	 {0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0, 0x06, 0x2c, 0x02, 0x15}},
	{"deflate", 7, {0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00}},
	{"br", 9, {0x0b, 0x02, 0x80, 'h', 'e', 'l', 'l', 'o', 0x03}},
};
/* `head -c 16M /dev/zero | brotli -w 24` */
static const struct coded zeros = {
	"br",
	14,
	{0x9f, 0xff, 0xff, 0xff, 0xf8, 0x27, 0, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x1f}};

/* On a connection of its own, its first `len` bytes, each in a read of its own; `more` is what
 * stands behind it in the same body. */
static void send_coded(const char *path, const struct coded *coded, size_t len, const char *more)
{
	struct buf sent;
	fake_free(test.fake);
	test.fake = fake_new(&test.core);
	test.looked_at = 0;
	buf_init(&sent, 10000);
	buf_printf(&sent,
		   "POST %s HTTP/1.1\r\nHost: h\r\nContent-Encoding: %s\r\n"
		   "Content-Length: %zu\r\n\r\n",
		   path, coded->coding, len + strlen(more));
	buf_append(&sent, coded->bytes, len);
	buf_append_text(&sent, more);
	fake_input(test.fake, buf_slice(&sent), 1);
	buf_release(&sent);
}

static void test_bodies_of_other_codings(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hellos); i++) {
		send_coded("/z", &hellos[i], hellos[i].len, "");
		assert_log("begin hello end ");
		answer();
		send_coded("/g", &hellos[i], hellos[i].len, "");
		assert_log("begin end ");
		assert_true(slice_equal(buf_slice(&test.request->body), SLICE("hello")));
		answer();
		assert_int_equal(test.core.memory_bytes, 0);
	}
}

static void test_of_a_cut_body_nothing_is_handed_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hellos); i++) {
		for (size_t len = 1; len < hellos[i].len; len++) {
			send_coded("/z", &hellos[i], len, "");
			assert_log("begin invalid ");
			assert_written("HTTP/1.1 400 Bad Request\r\n");
			send_coded("/g", &hellos[i], len, "");
			assert_log("begin invalid ");
		}
	}
	assert_int_equal(test.core.memory_bytes, 0);
}

static void test_of_a_body_with_something_behind_it_nothing_is_handed_out(void **state)
{
	int64_t deflate = stat_get(STAT_http_refused_deflate), br = stat_get(STAT_http_refused_br);
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hellos); i++) {
		send_coded("/z", &hellos[i], hellos[i].len, "x");
		assert_log("begin invalid ");
		assert_written("HTTP/1.1 400 Bad Request\r\n");
		send_coded("/g", &hellos[i], hellos[i].len, "x");
		assert_log("begin invalid ");
	}
	assert_int_equal(stat_get(STAT_http_refused_deflate), deflate + 4);
	assert_int_equal(stat_get(STAT_http_refused_br), br + 2);
}

/* Headers of one name are a list, and of two codings one would be left in the body. */
static void test_two_codings(void **state)
{
	static const struct {
		const char *headers;
		int status;
	} cases[] = {
		{"Content-Encoding: br\r\nContent-Encoding: gzip\r\n", 415},
		{"Content-Encoding: br\r\nContent-Encoding: br\r\n", 415},
		{"Content-Encoding: br, br\r\n", 415},
		{"Content-Encoding: identity\r\nContent-Encoding: compress\r\n", 415},
		{"Content-Encoding: br\r\nContent-Encoding: compress\r\n", 415},
		{"Content-Encoding: identity\r\nContent-Encoding: br\r\n", 200},
		{"Content-Encoding: br\r\nContent-Encoding:\r\n", 200},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char head[300];
		snprintf(head, sizeof(head),
			 "POST /g HTTP/1.1\r\nHost: h\r\n%sContent-Length: 9\r\n\r\n",
			 cases[i].headers);
		client_sends(head);
		fake_input(test.fake, (struct slice){(const char *)hellos[2].bytes, 9}, SIZE_MAX);
		if (cases[i].status == 200) {
			assert_log("begin end ");
			assert_true(slice_equal(buf_slice(&test.request->body), SLICE("hello")));
			answer();
			assert_written("HTTP/1.1 200 OK\r\n");
		} else {
			assert_log("");
			assert_written("HTTP/1.1 415 Unsupported Media Type\r\n");
		}
		assert_int_equal(was_written("\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n"),
				 cases[i].status == 415);
		forget_written();
	}
}

/* What a body of 14 bytes makes the decoder hold counts as what it holds itself. */
static void test_the_memory_of_a_decoder(void **state)
{
	int64_t before = stat_get(STAT_http_memory_refused);
	(void)state;
	test.core.limits.memory_max_bytes = 1 << 20;
	send_coded("/z", &zeros, zeros.len, "");
	assert_log("begin busy ");
	assert_written("HTTP/1.1 503 Service Unavailable\r\n");
	send_coded("/g", &zeros, zeros.len, "");
	assert_log("begin busy ");
	assert_int_equal(stat_get(STAT_http_memory_refused), before + 2);
	assert_int_equal(test.core.memory_bytes, 0);
}

/* Its decoder holds all of it when it is asked for the first piece. */
static void test_a_paused_brotli_body_waits(void **state)
{
	(void)state;
	test.core.limits.memory_max_bytes = 64 << 20;
	test.pause_body = true;
	send_coded("/z", &zeros, zeros.len, "");
	assert_log("begin  ");
	for (int i = 1; i < 128; i++) {
		assert_false(fake_step(test.fake));
		http_request_resume(test.request);
		fake_step(test.fake);
		assert_log(i < 127 ? " " : " end ");
	}
	answer();
}

/* 16 MB of zeros are what /z takes, and no byte more. */
static void test_a_brotli_bomb(void **state)
{
	static struct http_route tight[ARRAY_LEN(routes)];
	(void)state;
	test.core.limits.memory_max_bytes = 64 << 20;
	test.answer_at_end = true;
	send_coded("/z", &zeros, zeros.len, "");
	assert_written("HTTP/1.1 200 OK\r\n");
	buf_clear(&test.log);
	memcpy(tight, routes, sizeof(routes));
	tight[2].decoded_max_bytes = (1 << 24) - 1;
	test.core.routes = tight;
	send_coded("/z", &zeros, zeros.len, "");
	assert_log("begin limit ");
	assert_written("HTTP/1.1 413 Payload Too Large\r\n");
	send_coded("/g", &zeros, zeros.len, "");
	assert_log("begin limit ");
	assert_written("HTTP/1.1 413 Payload Too Large\r\n");
	assert_int_equal(test.core.memory_bytes, 0);
}

/* ---- Streams without end --------------------------------------------------------------------- */

#define GET_EVENTS "GET /h HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n"

/* The last bytes that were written. */
static void assert_ends(const char *end)
{
	struct buf *out = &test.fake->out;
	assert_true(out->len >= strlen(end));
	assert_memory_equal(out->data + out->len - strlen(end), end, strlen(end));
}

static void begin_events(void)
{
	client_sends(GET_EVENTS);
	assert_log("begin end ");
	assert_int_equal(http_stream_begin_endless(test.request, "text/event-stream"), 0);
	fake_step(test.fake);
	assert_written("HTTP/1.1 200 OK\r\n");
}

static void send_event(const char *event)
{
	assert_int_equal(http_stream_write(test.request, slice_of(event)), 0);
	fake_step(test.fake);
}

static void test_each_event_leaves_at_once(void **state)
{
	(void)state;
	begin_events();
	assert_true(was_written("\r\nCache-Control: no-store\r\n"));
	assert_true(was_written("\r\nContent-Type: text/event-stream\r\n"));
	assert_true(was_written("\r\nTransfer-Encoding: chunked\r\n"));
	assert_false(was_written("Content-Encoding"));
	send_event("data: 1\n\n");
	assert_ends("\r\n9\r\ndata: 1\n\n\r\n");
	pass_ms(1000);
	send_event("data: 22\n\n");
	assert_ends("\r\na\r\ndata: 22\n\n\r\n");
	assert_int_equal(fake_unsent(&test.fake->conn), 0);
	http_stream_end(test.request);
	test.request = NULL;
	assert_ends("\r\n0\r\n\r\n");
	assert_true(test.fake->shut);
}

/* Whoever begins it: gzip would keep the first event for itself. */
static void test_events_are_not_gzipped(void **state)
{
	static const struct {
		const char *type;
		bool gzipped;
	} cases[] = {{"text/event-stream", false},
		     {"text/event-stream; charset=utf-8", false},
		     {"text/plain", true}};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		client_sends(GET_EVENTS);
		forget_written();
		http_stream_begin(test.request, 200, cases[i].type);
		send_event("data: 1\n\n");
		assert_int_equal(was_written("Content-Encoding: gzip"), cases[i].gzipped);
		assert_int_equal(was_written("data: 1\n\n"), !cases[i].gzipped);
		http_stream_end(test.request);
		test.request = NULL;
		fake_step(test.fake);
	}
	client_sends(GET_EVENTS);
	assert_int_equal(http_stream_begin_endless(test.request, "text/plain"), 0);
	send_event("1\n");
	assert_true(was_written("1\n"));
}

static void test_silent_events_have_no_deadline(void **state)
{
	(void)state;
	begin_events();
	for (int i = 0; i < 1000; i++)
		pass_ms(100000);
	assert_false(test.fake->closed);
	send_event("data: late\n\n");
	assert_ends("data: late\n\n\r\n");
	pass_ms(100000);
	pass_ms(100000);
	assert_false(test.fake->closed);
	assert_log("");
	assert_int_equal(stat_get(STAT_http_endless), 1);
	http_conn_eof(&test.fake->conn);
	assert_log("cancelled ");
	assert_true(test.fake->closed);
	assert_int_equal(test.core.endless_count, 0);
	assert_int_equal(stat_get(STAT_http_endless), 0);
}

/* One that takes nothing is not there. */
static void test_events_that_are_not_read(void **state)
{
	(void)state;
	begin_events();
	test.fake->blocked = true;
	send_event("data: 1\n\n");
	pass_ms(0);
	pass_ms(29999);
	assert_false(test.fake->closed);
	pass_ms(1);
	assert_true(test.fake->closed);
	assert_log("cancelled ");
}

static void test_events_of_a_client_that_has_ended_before(void **state)
{
	(void)state;
	client_sends(GET_EVENTS);
	http_conn_eof(&test.fake->conn);
	assert_log("begin end ");
	assert_int_equal(http_stream_begin_endless(test.request, "text/event-stream"),
			 ERR_CANCELLED);
	assert_log(""); /* it has been told by the error */
	assert_true(test.fake->closed);
}

/* It is read, for else the end of the client would not be noticed, and it is bounded. */
static void test_what_comes_behind_a_request_for_events(void **state)
{
	static char piece[1000];
	(void)state;
	client_sends(GET_EVENTS GET_H);
	assert_log("begin end ");
	assert_int_equal(http_stream_begin_endless(test.request, "text/event-stream"), 0);
	fake_step(test.fake);
	client_sends(GET_H);
	assert_log("");
	assert_int_equal(test.fake->conn.kept.len, 0);
	send_event("data: 1\n\n");
	test.core.limits.drain_max_bytes = 100000;
	for (int i = 0; i < 200 && !test.fake->closed; i++) {
		assert_true(test.fake->read_max > 0);
		fake_input(test.fake, (struct slice){piece, sizeof(piece)}, SIZE_MAX);
	}
	assert_true(test.fake->closed);
	assert_log("cancelled ");
}

/* As many as may be, and half of the connections at most. */
static void test_events_are_bounded(void **state)
{
	(void)state;
	for (int half = 0; half < 2; half++) {
		struct fake *first = test.fake, *second = fake_new(&test.core);
		int64_t before = stat_get(STAT_http_endless_refused);
		test.core.limits.endless_max = half ? 256 : 1;
		test.core.limits.endless_option = half ? NULL : "faults.viewers_max";
		test.core.limits.connections_max = half ? 2 : 1024;
		begin_events();
		struct http_request *request = test.request;
		test.request = NULL;
		test.fake = second;
		client_sends(GET_EVENTS);
		assert_int_equal(http_stream_begin_endless(test.request, "text/event-stream"),
				 ERR_LIMIT);
		test.request = NULL;
		assert_true(was_written("HTTP/1.1 503 Service Unavailable\r\n"));
		assert_true(was_written("\r\nRetry-After: 1\r\n"));
		assert_true(was_written("as many streams without end as may be, 1"));
		assert_int_equal(was_written("(faults.viewers_max)"), !half);
		assert_int_equal(stat_get(STAT_http_endless_refused), before + 1);
		/* The connection goes on, with requests that have an end; and there is a place
		 * again when the first has gone. */
		client_sends(GET_H);
		answer();
		buf_clear(&test.log);
		test.request = request;
		fake_free(first);
		assert_log("cancelled ");
		test.looked_at = second->out.len;
		begin_events();
		http_conn_eof(&second->conn);
		assert_log("cancelled ");
		fake_free(second);
		test.fake = fake_new(&test.core);
		test.looked_at = 0;
	}
}

static void test_the_end_of_each_request(void **state)
{
	(void)state;
	client_sends(POST_H "abc");
	http_conn_eof(&test.fake->conn);
	assert_log("begin abc cancelled ");
	assert_true(test.fake->closed);
	assert_int_equal(test.fake->out.len, 0);
}

static void test_broken_while_answering(void **state)
{
	(void)state;
	client_sends(GET_H);
	http_conn_broken(&test.fake->conn);
	assert_log("begin end cancelled ");
	assert_true(test.fake->closed);
}

static void test_the_client_ends_and_waits(void **state)
{
	(void)state;
	client_sends(GET_H);
	http_conn_eof(&test.fake->conn);
	assert_false(test.fake->closed);
	answer();
	assert_written("HTTP/1.1 200 OK\r\n");
	assert_true(test.fake->closed);
	assert_log("begin end ");
}

static void test_the_client_ends_behind_pipelined_requests(void **state)
{
	(void)state;
	client_sends(GET_H GET_H);
	http_conn_eof(&test.fake->conn);
	answer();
	assert_false(test.fake->closed);
	fake_step(test.fake);
	assert_log("begin end begin end ");
	answer();
	assert_true(test.fake->closed);
}

/* ---- Deadlines ------------------------------------------------------------------------------- */

static void test_idle(void **state)
{
	(void)state;
	pass_ms(59999);
	assert_false(test.fake->closed);
	test.answer_at_end = true;
	client_sends(GET_H);
	assert_written("HTTP/1.1 200 OK\r\n");
	pass_ms(59999);
	assert_false(test.fake->closed);
	pass_ms(1);
	assert_true(test.fake->closed);
	assert_written("");
}

static void test_a_slow_head(void **state)
{
	(void)state;
	client_sends("GET /h HT");
	for (int i = 0; i < 9; i++) {
		pass_ms(1000);
		client_sends("T");
	}
	assert_false(test.fake->shut);
	pass_ms(999);
	assert_false(test.fake->shut);
	pass_ms(1);
	assert_written("HTTP/1.1 408 Request Timeout\r\n");
	assert_true(test.fake->shut);
	assert_log("");
	http_conn_eof(&test.fake->conn);
	assert_true(test.fake->closed);
}

/* The deadline of a head that was pipelined begins when its first byte is looked at. */
static void test_the_next_head_has_its_own_time(void **state)
{
	(void)state;
	client_sends(GET_H "GET");
	pass_ms(1000000);
	answer();
	fake_step(test.fake);
	pass_ms(9999);
	assert_false(test.fake->shut);
	pass_ms(1);
	assert_true(test.fake->shut);
}

static void test_a_slow_body(void **state)
{
	char kilobyte[1001];
	(void)state;
	memset(kilobyte, 'x', 1000);
	kilobyte[1000] = 0;
	test.core.limits.memory_max_bytes = 10000;
	client_sends("POST /g HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n");
	pass_ms(0);
	for (int i = 0; i < 3; i++) { /* a thousand bytes in each ten seconds are enough */
		pass_ms(9999);
		client_sends(kilobyte);
		pass_ms(0);
	}
	client_sends("999 bytes are too few");
	pass_ms(9999);
	assert_log("begin ");
	pass_ms(1);
	assert_log("timeout ");
	assert_written("HTTP/1.1 408 Request Timeout\r\n");
	assert_true(test.fake->shut);
}

static void test_answering_has_no_deadline_here(void **state)
{
	(void)state;
	client_sends(GET_H);
	pass_ms(100000000);
	assert_log("begin end ");
	answer();
	assert_written("HTTP/1.1 200 OK\r\n");
	assert_false(test.fake->closed);
}

static void test_a_client_that_does_not_read(void **state)
{
	static char piece[20000];
	int64_t before = stat_get(STAT_http_timeouts_write);
	int err = 0;
	(void)state;
	memset(piece, 'x', sizeof(piece));
	client_sends(GET_H);
	test.fake->blocked = true;
	http_stream_begin(test.request, 200, "application/octet-stream");
	size_t taken = 0;
	while (!err && taken < 100) {
		err = http_stream_write(test.request, (struct slice){piece, sizeof(piece)});
		taken++;
	}
	assert_int_equal(err, ERR_BUSY); /* at half of 100,000, with a little for heads */
	assert_int_equal(taken, 3);
	assert_int_equal(http_stream_write(test.request, (struct slice){piece, sizeof(piece)}),
			 ERR_BUSY);
	assert_int_equal(http_stream_write(test.request, (struct slice){piece, sizeof(piece)}),
			 ERR_LIMIT);
	assert_true(fake_unsent(&test.fake->conn) < 100000);
	pass_ms(0);
	pass_ms(29999);
	test.fake->sent += 1000; /* as little as must be */
	pass_ms(0);
	pass_ms(29999);
	assert_false(test.fake->closed);
	test.fake->sent += 999;
	pass_ms(1);
	assert_true(test.fake->closed);
	assert_log("begin end cancelled ");
	assert_int_equal(stat_get(STAT_http_timeouts_write) - before, 1);
}

static void test_a_client_that_reads_again(void **state)
{
	static char piece[60000];
	(void)state;
	client_sends(GET_H);
	test.fake->blocked = true;
	http_stream_begin(test.request, 200, "application/octet-stream");
	assert_int_equal(http_stream_write(test.request, (struct slice){piece, sizeof(piece)}),
			 ERR_BUSY);
	test.fake->blocked = false;
	fake_take(test.fake);
	assert_log("begin end drained ");
	http_stream_end(test.request);
	test.request = NULL;
	assert_memory_equal(test.fake->out.data + test.fake->out.len - 7, "\r\n0\r\n\r\n", 7);
}

/* A client that sends requests and reads no answers is served no further than half the bound. */
static void test_pipelining_without_reading(void **state)
{
	(void)state;
	test.answer_at_end = true;
	test.fake->blocked = true;
	for (int i = 0; i < 10000 && test.fake->read_max; i++)
		fake_input(test.fake, SLICE(GET_H), SIZE_MAX);
	assert_int_equal(test.fake->read_max, 0);
	assert_in_range(test.fake->out.len, 50000, 51000);
	buf_clear(&test.log);
	test.fake->blocked = false;
	fake_take(test.fake);
	assert_int_equal(test.fake->read_max, 4096);
	client_sends(GET_H);
	assert_log("begin end ");
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static void test_a_body_over_the_limit_midway(void **state)
{
	(void)state;
	client_sends("POST /h HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "3e8\r\n");
	for (int i = 0; i < 100; i++)
		client_sends("0123456789");
	client_sends("\r\n");
	buf_clear(&test.log);
	client_sends("1\r\n!");
	assert_log("limit ");
	assert_written("HTTP/1.1 413 Payload Too Large\r\n");
	assert_true(test.fake->shut);
}

static void test_the_memory_for_bodies(void **state)
{
	char body[5001];
	(void)state;
	memset(body, 'x', 5000);
	body[4001] = 0;
	client_sends("POST /g HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n");
	assert_int_equal(http_request_charge(test.request, 4001), ERR_LIMIT);
	assert_int_equal(http_request_charge(test.request, 100), 0);
	client_sends(body); /* 4,001 of 3,900 */
	assert_log("begin busy ");
	assert_written("HTTP/1.1 503 Service Unavailable\r\n");
	assert_int_equal(test.core.memory_bytes, 0);
}

static void test_a_gathered_body_can_be_taken(void **state)
{
	(void)state;
	client_sends("POST /g HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabcdef");
	struct buf body = http_request_take_body(test.request);
	assert_int_equal(test.core.memory_bytes, 6);
	answer();
	assert_true(slice_equal(buf_slice(&body), SLICE("abcdef")));
	assert_int_equal(test.core.memory_bytes, 0);
	buf_release(&body);
}

/* ---- Stopping -------------------------------------------------------------------------------- */

static void test_stopping(void **state)
{
	(void)state;
	client_sends(GET_H GET_H);
	test.core.stopping = true;
	http_conn_stop(&test.fake->conn);
	assert_false(test.fake->closed);
	answer();
	fake_step(test.fake);
	assert_log("begin end "); /* the second is not begun */
	assert_true(test.fake->shut);
}

static void test_stopping_an_idle_one(void **state)
{
	(void)state;
	test.core.stopping = true;
	http_conn_stop(&test.fake->conn);
	assert_true(test.fake->closed);
}

/* An answer that has an end may come to it; one without is ended, and nothing is waited for. */
static void test_stopping_events(void **state)
{
	(void)state;
	begin_events();
	send_event("data: 1\n\n");
	test.core.stopping = true;
	http_conn_stop(&test.fake->conn);
	assert_log("cancelled ");
	assert_true(test.fake->closed);
	assert_ends("data: 1\n\n\r\n0\r\n\r\n");
	assert_int_equal(test.core.endless_count, 0);
}

static void test_stopping_events_that_are_not_read(void **state)
{
	(void)state;
	begin_events();
	test.fake->blocked = true;
	send_event("data: 1\n\n");
	test.core.stopping = true;
	http_conn_stop(&test.fake->conn);
	assert_log("cancelled ");
	assert_true(test.fake->closed);
}

static void test_stopping_a_stream_that_has_an_end(void **state)
{
	(void)state;
	client_sends(GET_H);
	http_stream_begin(test.request, 200, "text/plain");
	test.core.stopping = true;
	http_conn_stop(&test.fake->conn);
	assert_log("begin end ");
	assert_false(test.fake->closed);
	http_stream_end(test.request);
	test.request = NULL;
	assert_true(test.fake->shut);
}

static void test_events_that_begin_while_it_stops(void **state)
{
	(void)state;
	client_sends(GET_H);
	test.core.stopping = true;
	http_conn_stop(&test.fake->conn);
	assert_int_equal(http_stream_begin_endless(test.request, "text/event-stream"), ERR_LIMIT);
	assert_written("HTTP/1.1 503 Service Unavailable\r\n");
	assert_true(test.fake->shut);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_an_answer),
		TEST(test_the_next_request_waits_for_the_answer),
		TEST(test_what_is_read_ahead_is_bounded),
		TEST(test_a_pause_stops_the_socket_and_keeps_the_rest),
		TEST(test_a_pause_at_the_last_piece_delays_the_end),
		TEST(test_a_paused_body_may_end),
		TEST(test_a_body_paused_before_it_comes),
		TEST(test_an_answer_while_paused),
		TEST(test_a_body_that_comes_after_the_answer_is_discarded),
		TEST(test_an_answer_in_the_middle_of_a_gzipped_body),
		TEST(test_a_gzipped_body_is_handed_out_when_it_is_whole),
		TEST(test_of_a_damaged_gzipped_body_nothing_is_handed_out),
		TEST(test_a_paused_gzipped_body_waits_whole),
		TEST(test_a_gzipped_body_is_bounded),
		TEST(test_bodies_of_other_codings),
		TEST(test_of_a_cut_body_nothing_is_handed_out),
		TEST(test_of_a_body_with_something_behind_it_nothing_is_handed_out),
		TEST(test_two_codings),
		TEST(test_the_memory_of_a_decoder),
		TEST(test_a_paused_brotli_body_waits),
		TEST(test_a_brotli_bomb),
		TEST(test_each_event_leaves_at_once),
		TEST(test_events_are_not_gzipped),
		TEST(test_silent_events_have_no_deadline),
		TEST(test_events_that_are_not_read),
		TEST(test_events_of_a_client_that_has_ended_before),
		TEST(test_what_comes_behind_a_request_for_events),
		TEST(test_events_are_bounded),
		TEST(test_the_end_of_each_request),
		TEST(test_broken_while_answering),
		TEST(test_the_client_ends_and_waits),
		TEST(test_the_client_ends_behind_pipelined_requests),
		TEST(test_idle),
		TEST(test_a_slow_head),
		TEST(test_the_next_head_has_its_own_time),
		TEST(test_a_slow_body),
		TEST(test_answering_has_no_deadline_here),
		TEST(test_a_client_that_does_not_read),
		TEST(test_a_client_that_reads_again),
		TEST(test_pipelining_without_reading),
		TEST(test_a_body_over_the_limit_midway),
		TEST(test_the_memory_for_bodies),
		TEST(test_a_gathered_body_can_be_taken),
		TEST(test_stopping),
		TEST(test_stopping_an_idle_one),
		TEST(test_stopping_events),
		TEST(test_stopping_events_that_are_not_read),
		TEST(test_stopping_a_stream_that_has_an_end),
		TEST(test_events_that_begin_while_it_stops),
	};
#undef TEST
	return cmocka_run_group_tests(tests, NULL, NULL);
}
