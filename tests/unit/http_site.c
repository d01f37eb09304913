/* Who is answered: names in Host and in targets, pages that browsers ask for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../tools/http_fake.h"

#include "base/stats.h"

static void ok_end(struct http_request *request)
{
	http_reply(request, 200, "text/plain", SLICE("ok"));
}

static const struct http_handler ok = {.end = ok_end};

static void too_often_end(struct http_request *request)
{
	http_reply_header(request, "Retry-After", "60");
	http_reply_error(request, 429, "too often");
}

static const struct http_handler too_often = {.end = too_often_end};

static const struct http_route routes[] = {
	{VERB_GET, "/", false, ROLE_READ, REACH_ALL, 0, 0, &ok, "", NULL, .page = true},
	{VERB_GET, "/r", false, ROLE_READ, REACH_ALL, 0, 0, &ok, "", NULL},
	{VERB_POST, "/w", false, ROLE_WRITE, REACH_ALL, 1000, 0, &ok, "", NULL},
	{VERB_GET, "/open", false, ROLE_READ, REACH_ALL, 0, 0, &ok, "", NULL},
	{VERB_POST, "/open", false, ROLE_WRITE, REACH_ALL, 1000, 0, &ok, "", NULL,
	 .any_origin = true},
	{VERB_GET, "/open/read", false, ROLE_READ, REACH_ALL, 0, 0, &ok, "", NULL,
	 .any_origin = true},
	{VERB_POST, "/open/often", false, ROLE_WRITE, REACH_ALL, 1000, 0, &too_often, "", NULL,
	 .any_origin = true},
};

static struct {
	char text[4096]; /* of the last answer */
	bool spare;      /* the connection is one too many */
} answer;

/* Listens on 127.0.0.1:8470 and [::1]:8470. The status of the answer; both refusals close. */
static int status_of(const char *head)
{
	static const char *const hosts[] = {"Granary.example", "proxy.example:8443", "192.0.2.7",
					    "[2001:db8::1]"};
	const struct loop_address v4 = {.bytes = {127, 0, 0, 1}, .port = 8470};
	const struct loop_address v6 = {.v6 = true, .bytes = {[15] = 1}, .port = 8470};
	struct http_limits limits = http_limits_default;
	struct clock_virtual clock;
	struct http_core core;
	limits.hosts = hosts;
	limits.host_count = ARRAY_LEN(hosts);
	limits.hosts_option = "http.names";
	clock_virtual_init(&clock, 0);
	http_core_init(&core, &clock.clock, &limits, routes, ARRAY_LEN(routes), NULL);
	site_listens(&core.site, &v4);
	site_listens(&core.site, &v6);
	struct fake *fake = fake_new(&core);
	if (answer.spare)
		http_conn_is_spare(&fake->conn);
	fake_input(fake, slice_of(head), SIZE_MAX);
	assert_true(fake->out.len > 12);
	buf_append_char(&fake->out, 0);
	assert_true(fake->out.len <= sizeof(answer.text));
	memcpy(answer.text, fake->out.data, fake->out.len);
	int status = (int)strtol(fake->out.data + strlen("HTTP/1.1 "), NULL, 10);
	if (status == 421) {
		assert_non_null(strstr(fake->out.data, "http.names"));
	}
	if (status == 421 || status == 403)
		assert_true(fake->shut);
	fake_free(fake);
	http_core_release(&core);
	return status;
}

static void assert_status(const char *head, int status)
{
	int64_t names = stat_get(STAT_http_refused_name),
		pages = stat_get(STAT_http_refused_foreign);
	int got = status_of(head);
	if (got != status)
		fail_msg("%d, not %d: %s", got, status, head);
	assert_int_equal(stat_get(STAT_http_refused_name) - names, status == 421);
	assert_int_equal(stat_get(STAT_http_refused_foreign) - pages, status == 403);
}

static void test_names(void **state)
{
	static const struct {
		const char *host;
		int status;
	} cases[] = {
		{"localhost", 200},
		{"localhost:8470", 200},
		{"localhost:9000", 200}, /* a tunnel */
		{"localhost:", 200},
		{"LocalHost:8470", 200},
		{"localhost.", 200},
		{"localhost.:8470", 200},
		{"127.0.0.1", 200},
		{"127.0.0.1:8470", 200},
		{"[::1]:8470", 200},
		{"[::1]", 200},
		{"[0:0:0:0:0:0:0:1]:8470", 200},
		{"granary.example", 200},
		{"GRANARY.EXAMPLE.:80", 200},
		{"proxy.example", 200},
		{"proxy.example:1", 200},
		{"192.0.2.7:8470", 200},
		{"[2001:DB8:0::1]", 200},
		{"", 421},
		{".", 421},
		{":8470", 421},
		{"localhost..", 421},
		{"localhost:x", 421},
		{"localhost:65536", 421},
		{"localhost:123456", 421},
		{"localhost:8470:1", 421},
		{"evil.example", 421},
		{"evil.example:8470", 421},
		{"localhost.evil.example", 421},
		{"127.0.0.1.evil.example", 421},
		{"xlocalhost", 421},
		{"localhos", 421},
		{"127.0.0.2", 200},
		{"198.51.100.9:1", 200}, /* any address: nobody gives it a name of his own */
		{"[fe80::1]:8470", 200},
		{"0.0.0.0", 421},
		{"[0:0::0]:8470", 421},
		{"127.0.0.1.", 200},
		{"127.0.0.1.5", 421},
		{"127.0.0.256", 421},
		{"1270.0.0.1", 421},
		{"127.1", 421},
		{"2130706433", 421},
		{"0.0.0.0:8470", 421},
		{"[::]", 421},
		{"[::1", 421},
		{"::1", 421},
		{"[::ffff:127.0.0.1]", 200},
		{"[::1]x", 421},
		{"[::1].evil.example", 421},
		{"[localhost]", 421},
		{"a.granary.example", 421},
		{"granary.example@evil", 400},
		{"evil, localhost", 400},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char head[200];
		snprintf(head, sizeof(head), "GET /r HTTP/1.1\r\nHost: %s\r\n\r\n", cases[i].host);
		assert_status(head, cases[i].status);
	}
}

static void test_targets_and_versions(void **state)
{
	(void)state;
	assert_status("GET /r HTTP/1.1\r\n\r\n", 400);
	assert_status("GET /r HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400);
	assert_status("GET /r HTTP/1.0\r\n\r\n", 200); /* no browser */
	assert_status("GET /r HTTP/1.0\r\nHost: evil.example\r\n\r\n", 421);
	assert_status("GET /r HTTP/1.0\r\nHost:\r\n\r\n", 421);
	assert_status("GET /r HTTP/1.0\r\nOrigin: http://evil.example\r\n\r\n", 403);
	assert_status("GET http://localhost/r HTTP/1.1\r\nHost: localhost\r\n\r\n", 200);
	assert_status("GET http://evil.example/r HTTP/1.1\r\nHost: localhost\r\n\r\n", 421);
	assert_status("GET http://localhost/r HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421);
	assert_status("GET http://evil.example/r HTTP/1.0\r\n\r\n", 421);
	assert_status("GET http://u@localhost/r HTTP/1.1\r\nHost: localhost\r\n\r\n", 421);
	/* Also where there is nothing, or nothing of that kind. */
	assert_status("GET /none HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421);
	assert_status("OPTIONS /w HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421);
	assert_status("POST /w HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1\r\n\r\nx", 421);
	assert_status("PUT /w HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n", 403);
	assert_status("OPTIONS /w HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil\r\n\r\n", 403);
	assert_status("GET /none HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil\r\n\r\n", 403);
	assert_status("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 400);
}

static void test_origins(void **state)
{
	static const struct {
		const char *host, *origin;
		bool ours;
	} cases[] = {
		{"localhost:8470", "http://localhost:8470", true},
		{"localhost:8470", "HTTP://LOCALHOST:8470", true},
		{"localhost:9000", "http://localhost:9000", true},
		{"127.0.0.1:8470", "http://127.0.0.1:8470", true},
		{"127.0.0.1:8470", "http://localhost:8470", true},
		{"[::1]:8470", "http://[::1]:8470", true},
		{"localhost", "http://localhost", true},
		{"localhost:80", "http://localhost", true},
		{"granary.example", "https://granary.example", true},
		/* The address in Host, and no other one that is none of ours. */
		{"198.51.100.9:8470", "http://198.51.100.9:8470", true},
		{"198.51.100.9:8470", "http://198.51.100.9:3000", false},
		{"198.51.100.9", "http://198.51.100.9", true},
		{"198.51.100.9:8470", "http://198.51.100.8:8470", false},
		{"localhost:8470", "http://198.51.100.9:8470", false},
		{"[2001:db8::9]:8470", "http://[2001:DB8:0::9]:8470", true},
		/* A proxy that writes a Host of its own. */
		{"127.0.0.1:8470", "https://granary.example", true},
		{"127.0.0.1:8470", "http://granary.example", true},
		{"127.0.0.1:8470", "https://proxy.example:8443", true},
		{"127.0.0.1:8470", "https://granary.example:8443", false},
		{"127.0.0.1:8470", "https://proxy.example", false},
		{"granary.example:8470", "http://granary.example:3000", false},
		/* Another server of this machine. */
		{"localhost:8470", "http://localhost:3000", false},
		{"localhost:8470", "http://localhost", false},
		{"localhost:8470", "https://localhost", false},
		{"localhost:8470", "null", false},
		{"localhost:8470", "", false},
		{"localhost:8470", "http://", false},
		{"localhost:8470", "http://:8470", false},
		{"localhost:8470", "localhost:8470", false},
		{"localhost:8470", "http://evil.example", false},
		{"localhost:8470", "http://evil.example:8470", false},
		{"localhost:8470", "http://localhost:8470/", false},
		{"localhost:8470", "http://localhost:8470 http://evil.example", false},
		{"localhost:8470", "http://evil@localhost:8470", false},
		{"localhost:8470", "file://localhost:8470", false},
		{"localhost:8470", "chrome-extension://localhost:8470", false},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char head[300];
		int status = cases[i].ours ? 200 : 403;
		snprintf(head, sizeof(head), "GET /r HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\n\r\n",
			 cases[i].host, cases[i].origin);
		assert_status(head, status);
		snprintf(head, sizeof(head),
			 "POST /w HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nContent-Length: 0\r\n\r\n",
			 cases[i].host, cases[i].origin);
		assert_status(head, status);
	}
	assert_status("GET /r HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
		      "Origin: http://evil.example\r\n\r\n",
		      403);
}

#define FETCH(target, site, mode, dest)                                                            \
	"GET " target " HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: " site                      \
	"\r\nSec-Fetch-Mode: " mode "\r\nSec-Fetch-Dest: " dest "\r\n\r\n"

/* The values are those of W3C Fetch Metadata 2.1 to 2.3. */
static void test_fetch_metadata(void **state)
{
	(void)state;
	assert_status(FETCH("/r", "same-origin", "cors", "empty"), 200);
	assert_status(FETCH("/r", "none", "navigate", "document"), 200);
	assert_status(FETCH("/r", "cross-site", "no-cors", "image"), 403);
	assert_status(FETCH("/r", "same-site", "no-cors", "script"), 403);
	assert_status(FETCH("/r", "cross-site", "navigate", "document"), 403);
	assert_status(FETCH("/r", "new-in-2040", "cors", "empty"), 403);
	/* A link to the page, but neither a frame nor a form. */
	assert_status(FETCH("/", "cross-site", "navigate", "document"), 200);
	assert_status(FETCH("/", "same-site", "navigate", "document"), 200);
	assert_status(FETCH("/", "cross-site", "navigate", "iframe"), 403);
	assert_status(FETCH("/", "cross-site", "no-cors", "document"), 403);
	assert_status("POST / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n"
		      "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"
		      "Content-Length: 0\r\n\r\n",
		      403);
	assert_status("GET /r HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: none\r\n"
		      "Sec-Fetch-Site: cross-site\r\n\r\n",
		      403);
	assert_status("GET /r HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n"
		      "Origin: http://evil.example\r\n\r\n",
		      403);
}

/* ---- Routes of any origin -------------------------------------------------------------------- */

#define EVIL "Host: localhost:8470\r\nOrigin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n"
#define ASK  "Access-Control-Request-Method: "

/* How often the last answer has that line. */
static unsigned lines_of(const char *line)
{
	unsigned count = 0;
	for (const char *at = answer.text; (at = strstr(at, line)); at++)
		count++;
	return count;
}

/* The answer says that any page may read it, once, or nothing of the kind. */
static void assert_any_origin(const char *head, int status, bool any)
{
	assert_status(head, status);
	assert_int_equal(lines_of("\r\nAccess-Control-Allow-Origin: *\r\n"), any);
	assert_int_equal(lines_of("\r\nAccess-Control-Expose-Headers: X-Sentry-Error, "
				  "X-Sentry-Rate-Limits, Retry-After\r\n"),
			 any);
	assert_int_equal(lines_of("\r\nCross-Origin-Resource-Policy: same-origin\r\n") && any, 0);
	assert_int_equal(lines_of("Access-Control-") > 0, any);
	assert_int_equal(lines_of("Access-Control-Allow-Credentials"), 0);
}

static void test_a_route_of_any_origin(void **state)
{
	static const char *const origins[] = {
		"Origin: http://evil.example",
		"Origin: null",
		"Origin: http://localhost:8470",
		"Origin: nonsense",
		"Sec-Fetch-Site: cross-site",
		"Sec-Fetch-Site: none",
		"X: no browser",
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(origins); i++) {
		char head[300];
		snprintf(head, sizeof(head),
			 "POST /open HTTP/1.1\r\nHost: localhost:8470\r\n%s\r\n"
			 "Content-Length: 2\r\n\r\nhi",
			 origins[i]);
		assert_any_origin(head, 200, true);
		snprintf(head, sizeof(head),
			 "GET /open/read HTTP/1.1\r\nHost: localhost:8470\r\n%s\r\n\r\n",
			 origins[i]);
		assert_any_origin(head, 200, true);
	}
	assert_any_origin("HEAD /open/read HTTP/1.1\r\n" EVIL "\r\n", 200, true);
	assert_any_origin("POST /open/ HTTP/1.1\r\n" EVIL "Content-Length: 0\r\n\r\n", 200, true);
}

/* Another verb of the same path, a path below it, beside it, or another name. */
static void test_what_is_near_a_route_of_any_origin(void **state)
{
	(void)state;
	assert_any_origin("GET /open HTTP/1.1\r\n" EVIL "\r\n", 403, false);
	assert_any_origin("PUT /open HTTP/1.1\r\n" EVIL "\r\n", 403, false);
	assert_any_origin("POST /open/read HTTP/1.1\r\n" EVIL "Content-Length: 0\r\n\r\n", 403,
			  false);
	assert_any_origin("POST /open/x HTTP/1.1\r\n" EVIL "Content-Length: 0\r\n\r\n", 403, false);
	assert_any_origin("POST /ope HTTP/1.1\r\n" EVIL "Content-Length: 0\r\n\r\n", 403, false);
	assert_any_origin("POST /w HTTP/1.1\r\n" EVIL "Content-Length: 0\r\n\r\n", 403, false);
	assert_any_origin("POST //open HTTP/1.1\r\n" EVIL "Content-Length: 0\r\n\r\n", 403, false);
	assert_any_origin("POST /open/../w HTTP/1.1\r\n" EVIL "Content-Length: 0\r\n\r\n", 403,
			  false);
	assert_any_origin("POST /w?/open HTTP/1.1\r\n" EVIL "Content-Length: 0\r\n\r\n", 403,
			  false);
	assert_any_origin("PUT /open HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, false);
	assert_any_origin("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, false);
	assert_any_origin("GET /r HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, false);
	assert_any_origin("POST /open HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n",
			  421, false);
	assert_any_origin("POST http://evil.example/open HTTP/1.1\r\nHost: localhost\r\n"
			  "Content-Length: 0\r\n\r\n",
			  421, false);
	assert_any_origin("POST /open HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400, false);
}

/* A page may read these, too: how often it may come, what is wrong with what it sent. */
static void test_refusals_of_a_route_of_any_origin(void **state)
{
	(void)state;
	assert_any_origin("POST /open HTTP/1.1\r\n" EVIL "Content-Length: 1001\r\n\r\n", 413, true);
	assert_any_origin("POST /open HTTP/1.1\r\n" EVIL "Content-Encoding: compress\r\n"
			  "Content-Length: 1\r\n\r\n",
			  415, true);
	assert_any_origin("POST /open HTTP/1.1\r\n" EVIL "Content-Encoding: br\r\n"
			  "Content-Length: 5\r\n\r\nhello",
			  400, true);
	assert_any_origin("POST /open HTTP/1.1\r\n" EVIL "Transfer-Encoding: chunked\r\n\r\nx", 400,
			  true);
	assert_any_origin("POST /open/often HTTP/1.1\r\n" EVIL "Content-Length: 0\r\n\r\n", 429,
			  true);
	answer.spare = true;
	assert_any_origin("POST /open HTTP/1.1\r\n" EVIL "Content-Length: 0\r\n\r\n", 503, true);
	assert_any_origin("OPTIONS /open HTTP/1.1\r\n" EVIL ASK "POST\r\n\r\n", 503, true);
	answer.spare = false;
	/* Of a head that cannot be understood nobody knows the route. */
	assert_any_origin("POST /open HTTP/1.1\r\n" EVIL "A : b\r\n\r\n", 400, false);
}

static void test_a_preflight(void **state)
{
	(void)state;
	assert_any_origin("OPTIONS /open HTTP/1.1\r\n" EVIL ASK "POST\r\n"
			  "Access-Control-Request-Headers: content-type,x-sentry-auth\r\n\r\n",
			  204, true);
	assert_int_equal(lines_of("\r\nAllow: GET, HEAD, POST, OPTIONS\r\n"), 1);
	assert_int_equal(lines_of("\r\nAccess-Control-Allow-Methods: POST\r\n"), 1);
	assert_int_equal(
		lines_of("\r\nAccess-Control-Allow-Headers: Content-Type, Content-Encoding, "
			 "Authorization, X-Sentry-Auth, sentry-trace, baggage\r\n"),
		1);
	assert_int_equal(lines_of("\r\nAccess-Control-Max-Age: 86400\r\n"), 1);
	assert_int_equal(lines_of("Content-Length"), 0);
	assert_any_origin("OPTIONS /open HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n" ASK
			  "POST\r\n\r\n",
			  204, true);
	assert_any_origin("OPTIONS /open/read HTTP/1.1\r\n" EVIL ASK "GET\r\n\r\n", 204, true);
	assert_int_equal(lines_of("\r\nAccess-Control-Allow-Methods: GET\r\n"), 1);
	assert_any_origin("OPTIONS http://localhost/open HTTP/1.1\r\n" EVIL ASK "POST\r\n\r\n", 204,
			  true);
	/* With a body, as no browser has it, and as a page of ours asks. */
	assert_any_origin("OPTIONS /open HTTP/1.1\r\n" EVIL ASK
			  "POST\r\nContent-Length: 5\r\n\r\nhello",
			  204, true);
	assert_any_origin(
		"OPTIONS /open HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n" ASK
		"POST\r\n\r\n",
		204, true);
}

static void test_a_preflight_of_what_pages_of_others_may_not(void **state)
{
	static const char *const verbs[] = {"GET",     "HEAD",  "PUT",       "DELETE",    "PATCH",
					    "OPTIONS", "OTHER", "CONNECT",   "post",      "Post",
					    "",        "*",     "POST, GET", "POST POST", "POSTS"};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		char head[300];
		snprintf(head, sizeof(head), "OPTIONS /open HTTP/1.1\r\n" EVIL ASK "%s\r\n\r\n",
			 verbs[i]);
		assert_any_origin(head, 403, false);
	}
	assert_any_origin("OPTIONS /open HTTP/1.1\r\n" EVIL "\r\n", 403, false);
	assert_any_origin("OPTIONS /w HTTP/1.1\r\n" EVIL ASK "POST\r\n\r\n", 403, false);
	assert_any_origin("OPTIONS /r HTTP/1.1\r\n" EVIL ASK "GET\r\n\r\n", 403, false);
	assert_any_origin("OPTIONS / HTTP/1.1\r\n" EVIL ASK "GET\r\n\r\n", 403, false);
	assert_any_origin("OPTIONS /none HTTP/1.1\r\n" EVIL ASK "POST\r\n\r\n", 403, false);
	assert_any_origin("OPTIONS /w HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n" ASK
			  "POST\r\n\r\n",
			  403, false);
	assert_any_origin("OPTIONS /open HTTP/1.1\r\nHost: evil.example\r\n"
			  "Origin: http://evil.example\r\n" ASK "POST\r\n\r\n",
			  421, false);
	assert_any_origin("OPTIONS http://evil.example/open HTTP/1.1\r\n" EVIL ASK "POST\r\n\r\n",
			  421, false);
	assert_any_origin("OPTIONS /open HTTP/1.1\r\nOrigin: null\r\n" ASK "POST\r\n\r\n", 400,
			  false);
	assert_any_origin("OPTIONS * HTTP/1.1\r\n" EVIL ASK "POST\r\n\r\n", 400, false);
	/* The verb that is asked for is no verb of the request. */
	assert_any_origin("GET /open HTTP/1.1\r\n" EVIL ASK "POST\r\n\r\n", 403, false);
	assert_any_origin("PUT /open HTTP/1.1\r\n" EVIL ASK "POST\r\n\r\n", 403, false);
}

/* Of whoever is no page of another site. */
static void test_options(void **state)
{
	(void)state;
	assert_any_origin("OPTIONS /w HTTP/1.1\r\nHost: localhost\r\n\r\n", 204, false);
	assert_int_equal(lines_of("\r\nAllow: POST, OPTIONS\r\n"), 1);
	assert_any_origin(
		"OPTIONS /r HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n" ASK
		"GET\r\n\r\n",
		204, false);
	assert_int_equal(lines_of("\r\nAllow: GET, HEAD, OPTIONS\r\n"), 1);
	assert_any_origin("OPTIONS /open HTTP/1.1\r\nHost: localhost\r\n\r\n", 204, false);
	assert_any_origin("OPTIONS /none HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, false);
	assert_any_origin("PUT /r HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, false);
	assert_int_equal(lines_of("\r\nAllow: GET, HEAD, OPTIONS\r\n"), 1);
}

static void test_what_can_be_configured(void **state)
{
	static const char *const bad[] = {"",    ".",       "http://a", "a/b",
					  "a b", "u@a",     "a:b",      "[::g]",
					  "::1", "a:70000", "*.a",      "b\xc3\xbc"};
	(void)state;
	assert_true(http_host_valid(SLICE("granary.example:8443")));
	assert_true(http_host_valid(SLICE("my_host")));
	assert_true(http_host_valid(SLICE("[2001:db8::1]:443")));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(http_host_valid(slice_of(bad[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_targets_and_versions),
		cmocka_unit_test(test_origins),
		cmocka_unit_test(test_fetch_metadata),
		cmocka_unit_test(test_a_route_of_any_origin),
		cmocka_unit_test(test_what_is_near_a_route_of_any_origin),
		cmocka_unit_test(test_refusals_of_a_route_of_any_origin),
		cmocka_unit_test(test_a_preflight),
		cmocka_unit_test(test_a_preflight_of_what_pages_of_others_may_not),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_what_can_be_configured),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
