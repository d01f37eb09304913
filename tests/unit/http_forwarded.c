/* What proxies say, and the external URL: whom a request comes from, by headers that everybody can
 * write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "http/forwarded.h"

static struct http_outside outside;
static struct errbuf e;

static void trust(const char *const *networks)
{
	outside = (struct http_outside){.https = false};
	for (; *networks; networks++)
		assert_int_equal(loop_network_parse(slice_of(*networks),
						    &outside.proxies.list[outside.proxies.count++],
						    &e),
				 0);
}

#define TRUST(...) trust((const char *const[]){__VA_ARGS__, NULL})

static struct http_request request;
static struct http_header headers[8];

/* Names and values; the last name is NULL. Gives the client of a request of 10.0.0.1. */
static const char *client_of(const char *const *said)
{
	static char text[LOOP_ADDRESS_TEXT_BYTES];
	struct loop_address client = {.bytes = {10, 0, 0, 1}, .port = 7};
	request = (struct http_request){.headers = headers};
	for (; said[0]; said += 2)
		headers[request.header_count++] =
			(struct http_header){slice_of(said[0]), slice_of(said[1])};
	forwarded_read(&outside, &request, &client);
	return loop_address_text(&client, text);
}

#define CLIENT(...) client_of((const char *const[]){__VA_ARGS__, NULL})
#define FOR         "X-Forwarded-For"

static void the_client_is_the_last_that_is_no_proxy(UNUSED void **state)
{
	TRUST("10.0.0.0/8", "2001:db8::/64");
	assert_string_equal(CLIENT("Accept", "*/*"), "10.0.0.1:7");
	assert_string_equal(CLIENT(FOR, "192.0.2.1"), "192.0.2.1:0");
	/* What a client has written itself stands before what our proxies have. */
	assert_string_equal(CLIENT(FOR, "127.0.0.1, 192.0.2.1"), "192.0.2.1:0");
	assert_string_equal(CLIENT(FOR, "127.0.0.1,192.0.2.1 ,\t10.9.9.9"), "192.0.2.1:0");
	assert_string_equal(CLIENT(FOR, "127.0.0.1", "x-forwarded-FOR", "192.0.2.1, 10.2.2.2"),
			    "192.0.2.1:0");
	assert_string_equal(CLIENT(FOR, "192.0.2.1", FOR, "10.2.2.2"), "192.0.2.1:0");
	/* All are ours: the first of them asks for itself. */
	assert_string_equal(CLIENT(FOR, "10.3.3.3, 10.2.2.2"), "10.3.3.3:0");
}

static void addresses_of_all_forms(UNUSED void **state)
{
	TRUST("10.0.0.0/8", "2001:db8::/64");
	assert_string_equal(CLIENT(FOR, "192.0.2.1:4711"), "192.0.2.1:4711");
	assert_string_equal(CLIENT(FOR, "[2001:db8:1::1]:4711"), "[2001:db8:1::1]:4711");
	assert_string_equal(CLIENT(FOR, "2001:db8:1::1"), "[2001:db8:1::1]:0");
	assert_string_equal(CLIENT(FOR, "192.0.2.1, 2001:db8::9"), "192.0.2.1:0");
	assert_string_equal(CLIENT(FOR, "::ffff:192.0.2.1"), "192.0.2.1:0");
	assert_string_equal(CLIENT(FOR, "192.0.2.1, ::ffff:10.1.1.1"), "192.0.2.1:0");
}

/* Who is behind that nobody knows: it is not the one before. */
static void what_is_no_address_ends_the_way(UNUSED void **state)
{
	TRUST("10.0.0.0/8");
	assert_string_equal(CLIENT(FOR, "unknown"), "10.0.0.1:7");
	assert_string_equal(CLIENT(FOR, ""), "10.0.0.1:7");
	assert_string_equal(CLIENT(FOR, "192.0.2.1, unknown, 10.2.2.2"), "10.2.2.2:0");
	assert_string_equal(CLIENT(FOR, "192.0.2.1,,10.2.2.2"), "10.2.2.2:0");
	assert_string_equal(CLIENT(FOR, "192.0.2.1", FOR, "unknown", FOR, "10.2.2.2"),
			    "10.2.2.2:0");
	assert_string_equal(CLIENT(FOR, "localhost"), "10.0.0.1:7");
}

static void scheme_and_name(UNUSED void **state)
{
	TRUST("10.0.0.0/8");
	CLIENT("X-Forwarded-Proto", "https", "X-Forwarded-Host", "a.example, b.example:8443");
	assert_true(request.secure);
	assert_true(slice_equal(request.forwarded_host, SLICE("b.example:8443")));
	CLIENT("X-Forwarded-Proto", "https, http");
	assert_false(request.secure);
	assert_null(request.forwarded_host.data);
	CLIENT("X-Forwarded-Proto", "https", "X-Forwarded-Proto", "http");
	assert_false(request.secure);
	/* Where no proxy says it, the external URL does. */
	assert_int_equal(http_external_parse("https://g.example", &outside, &e), 0);
	CLIENT("Accept", "*/*");
	assert_true(request.secure);
	CLIENT("X-Forwarded-Proto", "http");
	assert_false(request.secure);
}

static void urls(UNUSED void **state)
{
	static const struct {
		const char *text, *host, *prefix; /* host NULL: refused */
		bool https;
	} cases[] = {
		{"https://g.example", "g.example", "", true},
		{"HTTP://g.example:8080/", "g.example:8080", "", false},
		{"https://[2001:db8::1]:443/a/b/", "[2001:db8::1]:443", "/a/b", true},
		{"http://g.example/a-b_c.d~e", "g.example", "/a-b_c.d~e", false},
		{"g.example", NULL, NULL, false},
		{"ftp://g.example", NULL, NULL, false},
		{"https://", NULL, NULL, false},
		{"https:///a", NULL, NULL, false},
		{"https://u@g.example/", NULL, NULL, false},
		{"https://g.example//a", NULL, NULL, false},
		{"https://g.example/a//", NULL, NULL, false},
		{"https://g.example/a?b", NULL, NULL, false},
		{"https://g.example/a%20b", NULL, NULL, false},
		{"https://g.example?a", NULL, NULL, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		e.text[0] = 0;
		int err = http_external_parse(cases[i].text, &outside, &e);
		assert_int_equal(err, cases[i].host ? 0 : ERR_INVALID);
		assert_true(!err || strstr(e.text, cases[i].text));
		if (err)
			continue;
		assert_int_equal(outside.https, cases[i].https);
		assert_true(slice_equal(outside.host, slice_of(cases[i].host)));
		assert_true(slice_equal(outside.prefix, slice_of(cases[i].prefix)));
	}
}

static void the_path_of_the_url_is_taken_off(UNUSED void **state)
{
	static const struct {
		const char *target, *left; /* NULL: it stays */
	} cases[] = {
		{"/g/api/query?a=/g/b", "/api/query?a=/g/b"},
		{"/g", "/"},
		{"/g/", "/"},
		{"/g/g/x", "/g/x"},
		{"/gg/x", NULL},
		{"/api/query", NULL},
		{"/", NULL},
		{"/g?x", NULL},
		{"/G/x", NULL},
		{"http://h/g/x", NULL},
	};
	assert_int_equal(http_external_parse("https://h/g", &outside, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice target = slice_of(cases[i].target);
		bool taken = forwarded_strip_prefix(&outside, &target);
		assert_int_equal(taken, cases[i].left != NULL);
		assert_true(slice_equal(target, slice_of(taken ? cases[i].left : cases[i].target)));
	}
	assert_int_equal(http_external_parse("https://h", &outside, &e), 0);
	struct slice target = SLICE("/g/x");
	assert_false(forwarded_strip_prefix(&outside, &target));
}

static void the_base_of_links(UNUSED void **state)
{
	struct http_base base;
	TRUST("10.0.0.0/8");
	CLIENT("Host", "inner:8470");
	base = http_base_of(&request);
	assert_string_equal(base.scheme, "http");
	assert_true(slice_equal(base.host, SLICE("inner:8470")) && !base.prefix.len);
	CLIENT("Host", "inner:8470", "X-Forwarded-Host", "g.example", "X-Forwarded-Proto", "https");
	base = http_base_of(&request);
	assert_string_equal(base.scheme, "https");
	assert_true(slice_equal(base.host, SLICE("g.example")));
	assert_int_equal(http_external_parse("https://x.example/p", &outside, &e), 0);
	request.outside = &outside;
	base = http_base_of(&request);
	assert_string_equal(base.scheme, "https");
	assert_true(slice_equal(base.host, SLICE("x.example")));
	assert_true(slice_equal(base.prefix, SLICE("/p")));
	/* Of who comes straight, too. */
	request = (struct http_request){.outside = &outside};
	assert_true(slice_equal(http_base_of(&request).host, SLICE("x.example")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_client_is_the_last_that_is_no_proxy),
		cmocka_unit_test(addresses_of_all_forms),
		cmocka_unit_test(what_is_no_address_ends_the_way),
		cmocka_unit_test(scheme_and_name),
		cmocka_unit_test(urls),
		cmocka_unit_test(the_path_of_the_url_is_taken_off),
		cmocka_unit_test(the_base_of_links),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
