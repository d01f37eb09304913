/* Names and addresses of streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/stream.h"

static void check_address(struct stream_names names, uint64_t incarnation, const char *address)
{
	struct buf out;
	struct arena arena;
	struct stream_names read;
	uint64_t number;
	struct errbuf e = {""};
	buf_init(&out, STREAM_ADDRESS_MAX_BYTES);
	arena_init(&arena, 4096);
	stream_address_put(&names, incarnation, &out);
	buf_append_char(&out, '\0');
	assert_string_equal(out.data, address);
	assert_int_equal(stream_address_parse(slice_of(address), &arena, &read, &number, &e), 0);
	assert_true(stream_names_equal(&read, &names));
	assert_true(number == incarnation);
	arena_release(&arena);
	buf_release(&out);
}

static void addresses_go_there_and_back(void **state)
{
	(void)state;
	check_address((struct stream_names){SLICE("host1"), SLICE("web"), SLICE("syslog"),
					    SLICE("/var/log/messages")},
		      UINT64_C(0x00c1d2e3f4a5b6c7),
		      "host1/web/syslog//var/log/messages@00c1d2e3f4a5b6c7");
	check_address((struct stream_names){SLICE("a/b"), SLICE("50%"), SLICE("%2F"), SLICE("")}, 1,
		      "a%2Fb/50%25/%252F/@0000000000000001");
	check_address((struct stream_names){SLICE("h"), SLICE("c"), SLICE("d"),
					    SLICE("me@home@0000000000000001")},
		      UINT64_MAX, "h/c/d/me@home@0000000000000001@ffffffffffffffff");
}

static void the_longest_names_have_an_address(void **state)
{
	static char slashes[STREAM_SOURCE_MAX_BYTES], address[4000];
	static char name[STREAM_NAME_MAX_BYTES];
	(void)state;
	memset(slashes, '/', sizeof(slashes));
	memset(name, 'n', sizeof(name));
	char *at = address;
	for (size_t i = 0; i < 255 + 64 + 64; i++) {
		memcpy(at, "%2F", 3);
		at += 3;
		if (i == 254 || i == 254 + 64 || i == 254 + 128)
			*at++ = '/';
	}
	memcpy(at, name, sizeof(name));
	memcpy(at + sizeof(name), "@0000000000000001", 18);
	check_address(
		(struct stream_names){
			{slashes, 255}, {slashes, 64}, {slashes, 64}, {name, sizeof(name)}},
		1, address);
}

static void what_is_no_address_is_refused(void **state)
{
	static const char *const texts[] = {"",
					    "h",
					    "h/c/d",
					    "h/c/d/n",
					    "h/c/d/n@",
					    "h/c/d/n@12345678",
					    "h/c/n@0000000000000001",
					    "h/c/d/n@000000000000000G",
					    "h/c/d/n@00000000000000AB",
					    "h%2/c/d/n@0000000000000001",
					    "h%41/c/d/n@0000000000000001",
					    "/c/d/n@0000000000000001",
					    "h//d/n@0000000000000001",
					    "h/c//n@0000000000000001",
					    "h/c/d/n@0000000000000001 ",
					    "h/c/chart_meta/n@0000000000000001",
					    "h\n/c/d/n@0000000000000001",
					    "h/c/\xff/n@0000000000000001",
					    "0000000000000001"};
	struct arena arena;
	struct stream_names names;
	uint64_t incarnation;
	(void)state;
	arena_init(&arena, 4096);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct errbuf e = {""};
		assert_int_equal(
			stream_address_parse(slice_of(texts[i]), &arena, &names, &incarnation, &e),
			ERR_INVALID);
		assert_true(strlen(e.text) > 10);
	}
	arena_release(&arena);
}

static int check(struct slice source, struct slice cluster, struct slice datatype,
		 struct slice name, struct errbuf *e)
{
	const struct stream_names names = {source, cluster, datatype, name};
	return stream_names_check(&names, e);
}

static void names_have_their_limits(void **state)
{
	static char many[STREAM_NAME_MAX_BYTES + 1];
	struct errbuf e = {""};
	(void)state;
	memset(many, 'x', sizeof(many));
	const struct slice s = SLICE("s");
	assert_int_equal(check(s, s, s, (struct slice){many, 1024}, &e), 0);
	assert_int_equal(check((struct slice){many, 255}, (struct slice){many, 64},
			       (struct slice){many, 64}, SLICE(""), &e),
			 0);
	assert_int_equal(check(s, s, s, (struct slice){many, 1025}, &e), ERR_INVALID);
	assert_non_null(strstr(e.text, "the name xxx"));
	assert_non_null(strstr(e.text, "1025 bytes, more than 1024"));
	assert_int_equal(check((struct slice){many, 256}, s, s, s, &e), ERR_INVALID);
	assert_int_equal(check(s, (struct slice){many, 65}, s, s, &e), ERR_INVALID);
	assert_int_equal(check(s, s, (struct slice){many, 65}, s, &e), ERR_INVALID);
	assert_int_equal(check(s, s, SLICE(""), s, &e), ERR_INVALID);
	assert_string_equal(e.text, "the datatype is empty");
	assert_int_equal(check(s, s, SLICE("widget_meta"), s, &e), ERR_INVALID);
	assert_int_equal(check(s, s, s, SLICE("a\x7f"), &e), ERR_INVALID);
	assert_string_equal(e.text, "the name has a control character");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_go_there_and_back),
		cmocka_unit_test(the_longest_names_have_an_address),
		cmocka_unit_test(what_is_no_address_is_refused),
		cmocka_unit_test(names_have_their_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
