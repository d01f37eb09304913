/* Heads and targets of requests. What the whole server makes of bad ones is in
 * tests/e2e/test_http_*.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "http/head.h"
#include "http/target.h"

/* The end is found wherever the bytes are cut, and never before it. */
static void test_the_end_of_a_head(void **state)
{
	static const struct {
		const char *bytes;
		size_t len; /* 0: bad */
	} cases[] = {
		{"GET / HTTP/1.1\r\nA: b\r\n\r\nrest\r\n\r\n", 24},
		{"GET / HTTP/1.1\r\n\r\n", 18},
		{"\r\nGET / HTTP/1.1\r\n\r\n", 20},
		{"\r\n\r\nGET", 4},
		{"GET / HTTP/1.1\nA: b\r\n\r\n", 0},
		{"GET / HTTP/1.1\r\nA: b\n\r\n", 0},
		{"GET / HTTP/1.1\r\nA: b\r\n\n", 0},
		{"\n", 0},
		{"\x16\x03\x01", 0},
		{"{\"a\":1}", 0},
		{" GET", 0},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice all = slice_of(cases[i].bytes);
		for (size_t cut = 0; cut <= all.len; cut++) {
			size_t seen = 0, len = 0;
			const char *reason = NULL;
			enum head_result result =
				head_find((struct slice){all.data, cut}, &seen, &len, &reason);
			if (cases[i].len && cut < cases[i].len)
				assert_int_equal(result, HEAD_MORE);
			if (result == HEAD_MORE)
				result = head_find(all, &seen, &len, &reason);
			assert_int_equal(result, cases[i].len ? HEAD_DONE : HEAD_BAD);
			if (result == HEAD_DONE)
				assert_int_equal(len, cases[i].len);
			else
				assert_non_null(reason);
		}
	}
}

static void test_a_head(void **state)
{
	static const char text[] = "POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 00120\r\n"
				   "X:\t a b \t\r\nExpect: 100-Continue\r\n\r\n";
	struct arena arena;
	struct http_head head;
	(void)state;
	arena_init(&arena, 10000);
	assert_int_equal(head_parse(SLICE(text), &arena, 4, &head), 0);
	assert_int_equal(head.verb, VERB_POST);
	assert_true(slice_equal(head.target, SLICE("/a?b")));
	assert_true(head.minor_1 && head.keep_alive && head.has_length && head.expects_continue);
	assert_false(head.chunked);
	assert_int_equal(head.length, 120);
	assert_int_equal(head.header_count, 4);
	assert_true(slice_equal(head.headers[2].name, SLICE("X")));
	assert_true(slice_equal(head.headers[2].value, SLICE("a b")));
	assert_int_equal(head_parse(SLICE(text), &arena, 3, &head), ERR_INVALID);
	assert_int_equal(head.status, 431);
	arena_release(&arena);
}

/* Methods are told apart by case (RFC 9110 9.1). */
static void test_verbs(void **state)
{
	static const char *const others[] = {"",     "OTHER",  "get",   "GE",
					     "GETS", "OPTION", "PATCH", "TRACE"};
	(void)state;
	assert_int_equal(head_verb(SLICE("GET")), VERB_GET);
	assert_int_equal(head_verb(SLICE("HEAD")), VERB_HEAD);
	assert_int_equal(head_verb(SLICE("POST")), VERB_POST);
	assert_int_equal(head_verb(SLICE("PUT")), VERB_PUT);
	assert_int_equal(head_verb(SLICE("DELETE")), VERB_DELETE);
	assert_int_equal(head_verb(SLICE("OPTIONS")), VERB_OPTIONS);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_int_equal(head_verb(slice_of(others[i])), VERB_OTHER);
	assert_int_equal(head_verb((struct slice){NULL, 0}), VERB_OTHER);
	for (enum http_verb verb = 0; verb < VERB_OTHER; verb++)
		assert_int_equal(head_verb(slice_of(http_verb_text(verb))), verb);
}

/* Connection, by version (RFC 9112 9.3). */
static void test_who_keeps_the_connection(void **state)
{
	static const struct {
		const char *text;
		bool keep_alive;
	} cases[] = {
		{"GET / HTTP/1.1\r\nHost: h\r\n\r\n", true},
		{"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: h\r\nConnection: x, Close\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: h\r\nConnection: closed\r\n\r\n", true},
		{"GET / HTTP/1.0\r\n\r\n", false},
		{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
	};
	struct arena arena;
	struct http_head head;
	(void)state;
	arena_init(&arena, 10000);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(head_parse(slice_of(cases[i].text), &arena, 9, &head), 0);
		assert_int_equal(head.keep_alive, cases[i].keep_alive);
	}
	arena_release(&arena);
}

static void test_lists_and_weights(void **state)
{
	static const struct {
		const char *list;
		bool gzip;
	} cases[] = {
		{"gzip", true},
		{"deflate,\tGzip ;q=1", true},
		{"gzip;q=0.001", true},
		{"gzip;q=0", false},
		{"gzip; Q=0.000", false},
		{"gzip;level=0;q=0.0", false},
		{"gzip;level=0", true},
		{"gzipped", false},
		{"xgzip", false},
		{"*", false},
		{"", false},
		{",,gzip", true},
		{"gzip;q=0,gzip", false}, /* the first word counts */
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(head_list_accepts(slice_of(cases[i].list), "gzip"), cases[i].gzip);
	assert_false(head_list_accepts((struct slice){NULL, 0}, "gzip"));
}

static void test_targets(void **state)
{
	static const struct {
		const char *target, *path; /* NULL: refused */
		size_t segments, params;
	} cases[] = {
		{"/", "/", 1, 0},
		{"/a/b", "/a/b", 2, 0},
		{"/a%2Fb", "/a/b", 1, 0},
		{"//", "//", 2, 0},
		{"/?", "/", 1, 0},
		{"/?a", "/", 1, 1},
		{"/?a=b=c&d", "/", 1, 2},
		{"/?a?b", "/", 1, 1},
		{"/..", "/..", 1, 0},
		{"http://h/a?b", "/a", 1, 1},
		{"HTTP://u@h:1/", "/", 1, 0},
		{"http://h", NULL, 0, 0},
		{"http:///", "/", 1, 0},
		{"https://h/", NULL, 0, 0},
		{"a", NULL, 0, 0},
		{"*", NULL, 0, 0},
		{"/a#b", NULL, 0, 0},
		{"/%", NULL, 0, 0},
		{"/?a=%", NULL, 0, 0},
		{"/?%=a", NULL, 0, 0},
		{"/?1&2&3&4", NULL, 0, 0}, /* three are allowed */
		{"/?1&2&3", "/", 1, 3},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct http_request request = {.target = slice_of(cases[i].target)};
		const char *reason = NULL;
		arena_init(&request.arena, 1000);
		int err = target_parse(&request, 3, &reason);
		assert_int_equal(err, cases[i].path ? 0 : ERR_INVALID);
		if (err) {
			assert_non_null(reason);
		} else {
			assert_true(slice_equal(request.path, slice_of(cases[i].path)));
			assert_int_equal(request.segment_count, cases[i].segments);
			assert_int_equal(request.param_count, cases[i].params);
			assert_int_equal(request.route_path.len, request.path.len);
		}
		arena_release(&request.arena);
	}
}

/* A slash within a part is none of a route's. */
static void test_the_path_of_a_route(void **state)
{
	static const char *const cases[][2] = {{"/a/b", "/a/b"},
					       {"/a%2Fb", "/a\xff"
							  "b"},
					       {"/%2F/b%2f", "/\xff/b\xff"},
					       {"/%61//", "/a//"}};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct http_request request = {.target = slice_of(cases[i][0])};
		const char *reason = NULL;
		arena_init(&request.arena, 1000);
		assert_int_equal(target_parse(&request, 3, &reason), 0);
		assert_true(slice_equal(request.route_path, slice_of(cases[i][1])));
		arena_release(&request.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_end_of_a_head),
		cmocka_unit_test(test_a_head),
		cmocka_unit_test(test_verbs),
		cmocka_unit_test(test_who_keeps_the_connection),
		cmocka_unit_test(test_lists_and_weights),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_the_path_of_a_route),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
