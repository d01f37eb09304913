/* Addresses of brokers, by https://www.rabbitmq.com/docs/uri-spec and its examples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/amqp_address.h"

static void test_addresses(UNUSED void **state)
{
	static const struct {
		const char *text;
		struct amqp_address address;
	} cases[] = {
		{"amqp://user:pass@host:10000/vhost", {"host", 10000, "vhost", "user", "pass"}},
		{"amqp://user%61:%61pass@ho%61st:10000/v%2fhost",
		 {"hoast", 10000, "v/host", "usera", "apass"}},
		{"amqp://:@host/x", {"host", 5672, "x", "", ""}},
		{"amqp://user@host", {"host", 5672, "/", "user", "guest"}},
		{"amqp://user:@host", {"host", 5672, "/", "user", ""}},
		{"amqp://host", {"host", 5672, "/", "guest", "guest"}},
		{"amqp://host:1", {"host", 1, "/", "guest", "guest"}},
		{"amqp://host:65535/%2F", {"host", 65535, "/", "guest", "guest"}},
		{"amqp://host/a:b", {"host", 5672, "a:b", "guest", "guest"}},
		{"amqp://[::1]", {"::1", 5672, "/", "guest", "guest"}},
		{"amqp://a:b@[2001:db8::1]:5673/x", {"2001:db8::1", 5673, "x", "a", "b"}},
		{"amqp://a+b:%40%3A%2F%23%3F%25@h", {"h", 5672, "/", "a+b", "@:/#?%"}},
		{"amqp://%C3%A4@h", {"h", 5672, "/", "\xc3\xa4", "guest"}},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct amqp_address *wanted = &cases[i].address;
		struct amqp_address found;
		const char *reason;
		struct arena arena;
		arena_init(&arena, 4000);
		assert_int_equal(
			amqp_address_parse(slice_of(cases[i].text), &arena, &found, &reason), 0);
		assert_string_equal(found.host, wanted->host);
		assert_int_equal(found.port, wanted->port);
		assert_string_equal(found.vhost, wanted->vhost);
		assert_string_equal(found.user, wanted->user);
		assert_string_equal(found.password, wanted->password);
		arena_release(&arena);
	}
}

static void test_what_is_no_address(UNUSED void **state)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{"", "amqp://"},
		{"amqp:/", "amqp://"},
		{"amqps://host", "amqp://"},
		{"AMQP://host", "amqp://"},
		{"amqp://", "no name"},
		{"amqp:///vhost", "no name"},
		{"amqp://user@", "no name"},
		{"amqp://:5672", "no name"},
		{"amqp://[]", "no name"},
		{"amqp://[::1", "]"},
		{"amqp://[::1]5672", "]"},
		{"amqp://::1", "no name"},
		{"amqp://a::1", "port"},
		{"amqp://host:", "port"},
		{"amqp://host:0", "port"},
		{"amqp://host:65536", "port"},
		{"amqp://host:+1", "port"},
		{"amqp://host:1a", "port"},
		{"amqp://host/", "empty"},
		{"amqp://host/a/b", "%2F"},
		{"amqp://a:b@c@host", "%40"},
		{"amqp://a:b:c@host", "%3A"},
		{"amqp://a:12/34@host", "%40"}, /* else 12 is the port of the machine a */
		{"amqp://a:12?34@host", "%3F"},
		{"amqp://host?heartbeat=5", "%3F"},
		{"amqp://host/x#y", "%23"},
		{"amqp://a%4@host", "two hexadecimal digits"},
		{"amqp://host/%zz", "two hexadecimal digits"},
		{"amqp://a:%00@host", "NUL"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct amqp_address address;
		const char *reason = NULL;
		struct arena arena;
		arena_init(&arena, 4000);
		assert_int_equal(
			amqp_address_parse(slice_of(cases[i].text), &arena, &address, &reason),
			ERR_INVALID);
		assert_non_null(strstr(reason, cases[i].reason));
		arena_release(&arena);
	}
}

/* What stood behind it would be lost. Found by the fuzzer. */
static void test_a_nul(UNUSED void **state)
{
	static const struct slice texts[] = {
		{"amqp://\0host", 12}, {"amqp://a:b\0c@host", 17}, {"amqp://host/a\0b", 15}};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct amqp_address address;
		const char *reason = NULL;
		struct arena arena;
		arena_init(&arena, 4000);
		assert_int_equal(amqp_address_parse(texts[i], &arena, &address, &reason),
				 ERR_INVALID);
		assert_non_null(strstr(reason, "NUL"));
		arena_release(&arena);
	}
}

static void test_texts_that_are_too_long(UNUSED void **state)
{
	static const char *const formats[] = {"amqp://%s", "amqp://%s@h", "amqp://u:%s@h",
					      "amqp://h/%s"};
	char name[AMQP_TEXT_MAX_BYTES + 2], text[300];
	struct amqp_address address;
	const char *reason;
	struct arena arena;
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		for (size_t len = AMQP_TEXT_MAX_BYTES; len <= AMQP_TEXT_MAX_BYTES + 1; len++) {
			memset(name, 'x', len);
			name[len] = 0;
			snprintf(text, sizeof(text), formats[i], name);
			arena_init(&arena, 4000);
			assert_int_equal(
				amqp_address_parse(slice_of(text), &arena, &address, &reason),
				len > AMQP_TEXT_MAX_BYTES ? ERR_INVALID : 0);
			arena_release(&arena);
		}
	}
	arena_init(&arena, 3);
	assert_int_equal(amqp_address_parse(SLICE("amqp://host"), &arena, &address, &reason),
			 ERR_LIMIT);
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_what_is_no_address),
		cmocka_unit_test(test_a_nul),
		cmocka_unit_test(test_texts_that_are_too_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
