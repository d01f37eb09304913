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
} test;

static const char caller_of_test = 'c';

static int admit(UNUSED struct http_guard *guard, struct http_request *request, bool *shown,
		 struct errbuf *why)
{
	assert_int_equal(test.begun, 0);
	assert_int_equal(request->body_bytes, 0);
	assert_int_equal(request->peer->bytes[3], 9);
	test.asked++;
	*shown = test.shown;
	request->caller = (const struct caller *)&caller_of_test;
	return test.status ? (errbuf_set(why, ERR_INVALID, "why"), test.status) : 0;
}

static void leave(UNUSED struct http_guard *guard, const struct http_request *request, int status)
{
	assert_ptr_equal(request->caller, &caller_of_test);
	test.left++;
	test.left_status = status;
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
	assert_int_equal(test.left, 0);
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
	test.guard = (struct http_guard){admit, leave};
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
		IN_WORLD(a_client_that_goes_leaves_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
