/* When the guard of a server is asked, what its refusals look like, and that it is told once when a
 * request is over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "../tools/http_fake.h"

static struct {
	struct http_core core;
	struct clock_virtual clock;
	struct fake *fake;
	struct http_guard guard;
	int status; /* what the guard says */
	bool shown;
	unsigned asked, left, begun, aborted, bodies;
	int left_status;
	bool answers; /* the handler, at the end */
	const struct http_request *waiting;
	unsigned gone;
} test;

static const char caller_of_test = 'c';

static int admit(UNUSED struct http_guard *guard, struct http_request *request, bool *shown,
		 struct errbuf *why)
{
	assert_true(test.begun <= test.left); /* those before it are over */
	assert_int_equal(request->body_bytes, 0);
	assert_int_equal(request->peer->bytes[3], 9);
	test.asked++;
	*shown = test.shown;
	if (test.status == HTTP_GUARD_WAITS) {
		test.waiting = request;
		return HTTP_GUARD_WAITS;
	}
	request->caller = (const struct caller *)&caller_of_test;
	return test.status ? (errbuf_set(why, ERR_INVALID, "why"), test.status) : 0;
}

static void leave(UNUSED struct http_guard *guard, const struct http_request *request, int status)
{
	assert_ptr_equal(request->caller, &caller_of_test);
	test.left++;
	test.left_status = status;
}

static void gone(UNUSED struct http_guard *guard, struct http_request *request)
{
	assert_ptr_equal(request, test.waiting);
	test.gone++;
}

static void on_begin(struct http_request *request)
{
	assert_ptr_equal(request->caller, &caller_of_test);
	test.begun++;
}

static void on_body(UNUSED struct http_request *request, UNUSED struct slice piece)
{
	test.bodies++;
}

static void on_end(struct http_request *request)
{
	assert_true(test.left < test.begun);
	if (test.answers)
		http_reply(request, 200, "text/plain", SLICE("ok"));
}

static void on_abort(UNUSED struct http_request *request, UNUSED int err)
{
	assert_int_equal(test.left, 0);
	test.aborted++;
}

static const struct http_handler handler = {on_begin, on_body, on_end, on_abort, NULL};
static const struct http_route routes[] = {
	{VERB_GET, "/r", false, ROLE_READ, REACH_ALL, 0, 0, &handler, "", NULL},
	{VERB_POST, "/w", false, ROLE_WRITE, REACH_ALL, 1000, 0, &handler, "", NULL},
};

static int start(UNUSED void **state)
{
	static const char *const hosts[] = {"h"};
	struct http_limits limits = http_limits_default;
	memset(&test, 0, sizeof(test));
	limits.hosts = hosts;
	limits.host_count = 1;
	clock_virtual_init(&test.clock, 0);
	http_core_init(&test.core, &test.clock.clock, &limits, routes, ARRAY_LEN(routes), NULL);
	test.guard = (struct http_guard){admit, leave, gone};
	test.core.guard = &test.guard;
	test.fake = fake_new(&test.core);
	test.fake->conn.peer = (struct loop_address){.bytes = {192, 0, 2, 9}};
	test.answers = true;
	return 0;
}

static int end(UNUSED void **state)
{
	fake_free(test.fake);
	http_core_release(&test.core);
	return 0;
}

/* The status of the answer; it begins at `from`. */
static int ask(const char *text)
{
	size_t from = test.fake->out.len;
	fake_input(test.fake, slice_of(text), SIZE_MAX);
	buf_append_char(&test.fake->out, 0);
	test.fake->out.len--;
	return test.fake->out.len == from
		       ? 0
		       : (int)strtol(test.fake->out.data + from + strlen("HTTP/1.1 "), NULL, 10);
}

/* On a connection of its own. */
static int ask_again(const char *text)
{
	fake_free(test.fake);
	test.fake = fake_new(&test.core);
	test.fake->conn.peer = (struct loop_address){.bytes = {192, 0, 2, 9}};
	return ask(text);
}

#define GET(host) "GET /r HTTP/1.1\r\nHost: " host "\r\n\r\n"

static void who_may_is_given_to_the_handler(UNUSED void **state)
{
	assert_int_equal(ask(GET("h")), 200);
	assert_int_equal(test.asked, 1);
	assert_int_equal(test.left, 1);
	test.begun = test.left = 0;
	assert_int_equal(ask(GET("h")), 200);
	assert_int_equal(test.left, 1);
	assert_int_equal(test.left_status, 200);
}

static void who_may_not_is_refused_before_the_body(UNUSED void **state)
{
	test.status = 401;
	assert_int_equal(ask("POST /w HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n"
			     "Expect: 100-continue\r\n\r\n"),
			 401);
	assert_null(strstr(test.fake->out.data, "100 Continue"));
	assert_int_equal(test.begun, 0);
	assert_int_equal(test.left, 1);
	assert_int_equal(test.left_status, 401);
}

static void what_is_refused_says_how_to_ask(UNUSED void **state)
{
	test.status = 401;
	assert_int_equal(ask("POST /w HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody"), 401);
	assert_non_null(strstr(test.fake->out.data, "WWW-Authenticate: Bearer"));
	assert_non_null(strstr(test.fake->out.data, "WWW-Authenticate: Basic"));
	assert_non_null(strstr(test.fake->out.data, "why"));
	assert_int_equal(test.left, 1);
	test.left = 0;
	test.status = 403;
	/* The body is thrown away; the next request is answered. */
	assert_int_equal(ask(GET("h")), 403);
	assert_int_equal(test.begun + test.bodies + test.aborted, 0);
	assert_int_equal(test.left, 1);
}

static void what_is_no_route_is_not_asked_about(UNUSED void **state)
{
	assert_int_equal(ask("GET /none HTTP/1.1\r\nHost: h\r\n\r\n"), 404);
	assert_int_equal(ask("PUT /r HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"), 405);
	assert_int_equal(test.asked, 0);
}

/* A page that has given its own name to our address shows nothing that only we are shown. */
static void a_name_does_not_count_beside_a_credential(UNUSED void **state)
{
	test.shown = true;
	assert_int_equal(ask(GET("rebound.example")), 200);
	test.shown = false;
	test.begun = 0;
	assert_int_equal(ask(GET("rebound.example")), 421);
	assert_int_equal(test.begun, 0);
	assert_int_equal(test.left, 2);
}

static void a_page_of_another_site_is_refused_with_a_credential_too(UNUSED void **state)
{
	test.shown = true;
	assert_int_equal(ask("POST /w HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n"
			     "Origin: http://other.example\r\n\r\n"),
			 403);
	assert_int_equal(test.begun, 0);
	assert_int_equal(test.asked, 0); /* so no page has passwords of others tried */
	/* Nor is a name ours because Host has it, too. */
	assert_int_equal(ask_again("POST /w HTTP/1.1\r\nHost: rebound.example\r\n"
				   "Origin: http://rebound.example\r\n"
				   "Content-Length: 0\r\n\r\n"),
			 421);
	assert_int_equal(test.begun, 0);
}

/* ---- Parked ---------------------------------------------------------------------------------- */

/* The guard has said what it waited for. */
static void unpark(void)
{
	assert_false(test.fake->deferred);
	http_unpark(&test.fake->conn.request);
	while (fake_step(test.fake))
		;
}

#define POST "POST /w HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n"

static void a_parked_request_is_asked_about_once_more(UNUSED void **state)
{
	test.status = HTTP_GUARD_WAITS;
	assert_int_equal(ask(POST "\r\nbody"), 0);
	assert_int_equal(test.begun + test.bodies, 0);
	assert_int_equal(test.fake->read_max, 0);
	assert_true(test.waiting);
	test.status = 0;
	unpark();
	assert_int_equal(test.asked, 2);
	assert_int_equal(test.begun, 1);
	assert_int_equal(test.bodies, 1);
	assert_int_equal(ask(GET("h")), 200); /* and the next one */
	assert_int_equal(test.gone, 0);
	assert_int_equal(test.left, 2);
}

static void a_parked_request_may_be_refused(UNUSED void **state)
{
	test.status = HTTP_GUARD_WAITS;
	assert_int_equal(ask(POST "Expect: 100-continue\r\n\r\n"), 0);
	test.status = 401;
	unpark();
	buf_append_char(&test.fake->out, 0);
	assert_ptr_equal(strstr(test.fake->out.data, "HTTP/1.1 401"), test.fake->out.data);
	assert_null(strstr(test.fake->out.data, "100 Continue"));
	assert_int_equal(test.begun + test.gone, 0);
	assert_int_equal(test.left, 1);
}

/* What a client pipelines waits its turn. */
static void what_stands_behind_a_parked_request_waits(UNUSED void **state)
{
	test.status = HTTP_GUARD_WAITS;
	assert_int_equal(ask(GET("h") GET("h") GET("h")), 0);
	assert_int_equal(test.asked, 1);
	test.waiting = NULL; /* it lets the others in at once */
	test.status = 0;
	unpark();
	assert_int_equal(test.asked, 4);
	assert_int_equal(test.begun, 3);
	assert_int_equal(test.left, 3);
}

static void go_by_a_broken_connection(void)
{
	http_conn_broken(&test.fake->conn);
}

static void go_by_a_stop(void)
{
	test.core.stopping = true;
	http_conn_stop(&test.fake->conn); /* it may still be answered, */
	assert_int_equal(test.gone, 0);
	http_conn_close(&test.fake->conn); /* until the time for that is over */
}

static void go_when_it_is_to_go_on(void)
{
	http_unpark(&test.fake->conn.request);
	http_conn_broken(&test.fake->conn);
}

static void a_parked_request_may_go(UNUSED void **state)
{
	static void (*const ways[])(void) = {go_by_a_broken_connection, go_by_a_stop,
					     go_when_it_is_to_go_on};
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		if (i) {
			end(NULL);
			start(NULL);
		}
		test.status = HTTP_GUARD_WAITS;
		assert_int_equal(ask(POST "\r\nbo"), 0);
		ways[i]();
		assert_true(test.fake->closed);
		assert_int_equal(test.gone, 1);
		assert_int_equal(test.begun + test.aborted + test.left, 0);
		fake_step(test.fake);
	}
}

/* The time for a body runs from when it may come. */
static void a_parked_request_has_time(UNUSED void **state)
{
	test.status = HTTP_GUARD_WAITS;
	assert_int_equal(ask(POST "\r\n"), 0);
	for (int i = 0; i < 30; i++) {
		clock_virtual_advance(&test.clock, 10000000);
		http_conn_tick(&test.fake->conn);
	}
	assert_int_equal(test.gone, 0);
	test.status = 0;
	unpark();
	http_conn_tick(&test.fake->conn);
	assert_int_equal(ask("body"), 200);
}

/* A client that sends no more wants its answer all the same. */
static void a_parked_request_whose_client_sends_no_more(UNUSED void **state)
{
	test.status = HTTP_GUARD_WAITS;
	assert_int_equal(ask(GET("h")), 0);
	http_conn_eof(&test.fake->conn);
	assert_false(test.fake->closed);
	test.status = 0;
	unpark();
	assert_int_equal(test.begun, 1);
	assert_true(slice_starts_with(buf_slice(&test.fake->out), SLICE("HTTP/1.1 200")));
	assert_int_equal(test.left, 1);
}

static void a_client_that_goes_leaves_once(UNUSED void **state)
{
	test.answers = false;
	assert_int_equal(ask(GET("h")), 0);
	assert_int_equal(test.left, 0);
	http_conn_broken(&test.fake->conn);
	assert_int_equal(test.aborted, 1);
	assert_int_equal(test.left, 1);
	assert_int_equal(test.left_status, 0);
}

int main(void)
{
#define IN_WORLD(test_) cmocka_unit_test_setup_teardown(test_, start, end)
	const struct CMUnitTest tests[] = {
		IN_WORLD(who_may_is_given_to_the_handler),
		IN_WORLD(who_may_not_is_refused_before_the_body),
		IN_WORLD(what_is_refused_says_how_to_ask),
		IN_WORLD(what_is_no_route_is_not_asked_about),
		IN_WORLD(a_name_does_not_count_beside_a_credential),
		IN_WORLD(a_page_of_another_site_is_refused_with_a_credential_too),
		IN_WORLD(a_parked_request_is_asked_about_once_more),
		IN_WORLD(a_parked_request_may_be_refused),
		IN_WORLD(what_stands_behind_a_parked_request_waits),
		IN_WORLD(a_parked_request_may_go),
		IN_WORLD(a_parked_request_has_time),
		IN_WORLD(a_parked_request_whose_client_sends_no_more),
		IN_WORLD(a_client_that_goes_leaves_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
