/* Object identifiers; the encodings are worked by hand from X.690 8.19. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "hex.h"
#include "wire/oid.h"

static void text_there_and_back(void **state)
{
	static const struct {
		const char *text, *hex;
	} cases[] = {
		{".0.0", "00"},
		{".1.3", "2b"},
		{".2.0", "50"},
		{".2.39", "77"},
		{".2.47", "7f"},
		{".2.48", "8100"},
		{".2.999", "8837"}, /* the example of X.690 8.19.5 */
		{".1.3.6.1.2.1.2.2.1.10.127", "2b060102010202010a7f"},
		{".1.3.6.1.2.1.2.2.1.10.128", "2b060102010202010a8100"},
		{".1.3.6.1.4.1.8072", "2b06010401bf08"},
		{".1.3.4294967295", "2b8fffffff7f"},
		{".1.3.0.16383.16384", "2b00ff7f818000"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t memory[OID_MAX_BYTES], expected_memory[OID_MAX_BYTES];
		struct slice oid, expected = hex_to(cases[i].hex, expected_memory);
		struct errbuf e;
		struct buf out;
		buf_init(&out, 1000);
		assert_int_equal(oid_parse(slice_of(cases[i].text), memory, &oid, &e), 0);
		assert_true(slice_equal(oid, expected));
		assert_true(oid_valid(oid));
		assert_int_equal(oid_parse(slice_of(cases[i].text + 1), memory, &oid, &e), 0);
		assert_true(slice_equal(oid, expected));
		oid_print(oid, &out);
		assert_true(slice_equal(buf_slice(&out), slice_of(cases[i].text)));
		buf_release(&out);
	}
}

static void text_that_is_none(void **state)
{
	static const char *const texts[] = {
		"",
		".",
		"1",
		".1",
		"1.",
		"1..3",
		"1.3.",
		"3.1",
		"1.40",
		"0.40",
		"1.3.4294967296",
		"1.3.a",
		"1.3.-1",
		" 1.3",
		"1.3 ",
		"1.3.0x1",
		"..1.3",
		"1.3.99999999999999999999",
		"2.4294967295",
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		uint8_t memory[OID_MAX_BYTES];
		struct slice oid;
		struct errbuf e = {""};
		assert_int_equal(oid_parse(slice_of(texts[i]), memory, &oid, &e), ERR_INVALID);
		assert_true(e.text[0]);
	}
}

static void at_most_128_arcs(void **state)
{
	char text[4 * OID_ARCS_MAX] = "1.3";
	uint8_t memory[OID_MAX_BYTES + 1];
	struct slice oid;
	struct errbuf e;
	(void)state;
	for (int i = 2; i < OID_ARCS_MAX; i++)
		memcpy(text + strlen(text), ".1", 3);
	assert_int_equal(oid_parse(slice_of(text), memory, &oid, &e), 0);
	assert_int_equal(oid.len, OID_ARCS_MAX - 1);
	assert_true(oid_valid(oid));
	memory[oid.len++] = 1;
	assert_false(oid_valid(oid));
	memcpy(text + strlen(text), ".1", 3);
	assert_int_equal(oid_parse(slice_of(text), memory, &oid, &e), ERR_INVALID);
}

static void bytes_that_are_none(void **state)
{
	static const char *const hex[] = {
		"",
		"2b81",   /* the last arc does not end */
		"2b8001", /* an arc begins with 0x80 */
		"80",
		"2b9080808000", /* 2^32 */
		"2b818080808000",
		"2bffffffff7f", /* 35 bits */
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hex); i++) {
		struct slice oid = hex_new(hex[i]);
		assert_false(oid_valid(oid));
		hex_free(oid);
	}
}

/* In the order of a walk. */
static void the_order_is_that_of_arcs(void **state)
{
	static const char *const texts[] = {
		"0.0",         "1.0",           "1.3",
		"1.3.0",       "1.3.1",         "1.3.1.5",
		"1.3.2",       "1.3.127",       "1.3.127.9",
		"1.3.128",     "1.3.128.0",     "1.3.129",
		"1.3.255",     "1.3.256",       "1.3.16383",
		"1.3.16384",   "1.3.16384.1",   "1.3.2097151",
		"1.3.2097152", "1.3.268435456", "1.3.4294967295",
		"1.4",         "2.0",           "2.999",
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		for (size_t j = 0; j < ARRAY_LEN(texts); j++) {
			uint8_t a_memory[OID_MAX_BYTES], b_memory[OID_MAX_BYTES];
			struct slice a, b;
			struct errbuf e;
			assert_int_equal(oid_parse(slice_of(texts[i]), a_memory, &a, &e), 0);
			assert_int_equal(oid_parse(slice_of(texts[j]), b_memory, &b, &e), 0);
			int order = oid_compare(a, b);
			assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
		}
	}
}

/* Compared with arrays of numbers, compared in the plainest way. */
static void random_orders(void **state)
{
	struct random random;
	(void)state;
	random_init(&random, 7);
	for (int round = 0; round < 100000; round++) {
		uint32_t arcs[2][4];
		uint8_t bytes[2][OID_MAX_BYTES];
		struct slice oid[2];
		size_t count[2];
		for (int side = 0; side < 2; side++) {
			size_t len = 0;
			count[side] = 1 + random_below(&random, 4);
			for (size_t i = 0; i < count[side]; i++) {
				/* Small ones often, so that prefixes are equal. */
				uint32_t arc = (uint32_t)(random_next(&random) >>
							  (32 + random_below(&random, 32)));
				arcs[side][i] = arc;
				len += oid_put_arc(bytes[side] + len, arc);
			}
			oid[side] = (struct slice){(char *)bytes[side], len};
			assert_true(oid_valid(oid[side]));
		}
		int expected = (count[0] > count[1]) - (count[0] < count[1]);
		for (size_t i = 0; i < count[0] && i < count[1]; i++) {
			if (arcs[0][i] != arcs[1][i]) {
				expected = arcs[0][i] < arcs[1][i] ? -1 : 1;
				break;
			}
		}
		int order = oid_compare(oid[0], oid[1]);
		assert_int_equal((order > 0) - (order < 0), expected);
	}
}

static void prefixes_end_between_arcs(void **state)
{
	uint8_t a[16], b[16];
	struct slice column = hex_to("2b060102", a);
	(void)state;
	assert_true(oid_has_prefix(hex_to("2b060102", b), column));
	assert_true(oid_has_prefix(hex_to("2b06010201", b), column));
	assert_true(oid_has_prefix(hex_to("2b0601028101", b), column));
	assert_false(oid_has_prefix(hex_to("2b0601", b), column));
	assert_false(oid_has_prefix(hex_to("2b060103", b), column));
	/* 1.3.6.1.258 begins with other bytes than 1.3.6.1.2 */
	assert_false(oid_has_prefix(hex_to("2b06018202", b), column));
}

static void arcs_of_an_index(void **state)
{
	uint8_t memory[16];
	struct slice index = hex_to("05 8100 8fffffff7f", memory);
	uint32_t arc;
	(void)state;
	assert_true(oid_next_arc(&index, &arc));
	assert_int_equal(arc, 5);
	assert_true(oid_next_arc(&index, &arc));
	assert_int_equal(arc, 128);
	assert_true(oid_next_arc(&index, &arc));
	assert_true(arc == UINT32_MAX);
	assert_false(oid_next_arc(&index, &arc));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_there_and_back),       cmocka_unit_test(text_that_is_none),
		cmocka_unit_test(at_most_128_arcs),          cmocka_unit_test(bytes_that_are_none),
		cmocka_unit_test(the_order_is_that_of_arcs), cmocka_unit_test(random_orders),
		cmocka_unit_test(prefixes_end_between_arcs), cmocka_unit_test(arcs_of_an_index),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
