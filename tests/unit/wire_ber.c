/* BER, by X.690 and by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hex.h"
#include "wire/ber.h"

static void lengths_of_every_form(void **state)
{
	static const struct {
		const char *hex;
		size_t len; /* SIZE_MAX: bad */
	} cases[] = {
		{"0400", 0},
		{"0403 616263", 3},
		{"0481 03 616263", 3},       /* long where short would do */
		{"0482 0003 616263", 3},     /* two bytes of length */
		{"0484 00000003 616263", 3}, /* four, as some agents always do */
		{"", SIZE_MAX},
		{"04", SIZE_MAX},
		{"0401", SIZE_MAX},             /* one past the end */
		{"0404 616263", SIZE_MAX},      /* one past the end */
		{"0480 616263 0000", SIZE_MAX}, /* indefinite */
		{"0485 0000000003 616263", SIZE_MAX},
		{"0484 ffffffff 616263", SIZE_MAX},
		{"0482 00", SIZE_MAX},
		{"04ff", SIZE_MAX},
		{"1f04 03 616263", SIZE_MAX}, /* a tag of two bytes */
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice bytes = hex_new(cases[i].hex);
		struct ber b = ber_of(bytes);
		struct slice octets = ber_expect(&b, BER_OCTETS);
		if (cases[i].len == SIZE_MAX) {
			assert_non_null(b.bad);
			assert_int_equal(octets.len, 0);
		} else {
			assert_null(b.bad);
			assert_int_equal(octets.len, cases[i].len);
			assert_memory_equal(octets.data, "abc", octets.len);
			assert_true(ber_at_end(&b));
		}
		hex_free(bytes);
	}
}

static void an_error_sticks(void **state)
{
	uint8_t memory[64];
	struct ber b = ber_of(hex_to("020105 0401 020107", memory));
	(void)state;
	assert_int_equal(ber_integer(&b, 0, 10), 5);
	assert_int_equal(ber_integer(&b, 0, 10), 0); /* octets */
	const char *first = b.bad;
	assert_non_null(first);
	assert_int_equal(ber_integer(&b, 3, 10), 3); /* nothing is read any more */
	struct ber inner = ber_enter(&b, BER_SEQUENCE);
	assert_ptr_equal(b.bad, first);
	assert_ptr_equal(inner.bad, first);
	assert_true(ber_at_end(&inner));
}

static void what_is_inside_ends_with_what_holds_it(void **state)
{
	uint8_t memory[64];
	/* The sequence has 3 bytes; the octets in it claim 4, which the datagram would have. */
	struct ber b = ber_of(hex_to("3003 0404 61 626364", memory));
	struct ber inner = ber_enter(&b, BER_SEQUENCE);
	(void)state;
	assert_null(inner.bad);
	assert_int_equal(ber_expect(&inner, BER_OCTETS).len, 0);
	assert_non_null(inner.bad);
}

static void integers_are_in_twos_complement(void **state)
{
	static const struct {
		const char *hex;
		bool ok;
		int64_t value;
	} cases[] = {
		{"00", true, 0},
		{"7f", true, 127},
		{"80", true, -128},
		{"0080", true, 128},
		{"ff7f", true, -129},
		{"7fffffff", true, INT32_MAX},
		{"7fffffffffffffff", true, INT64_MAX},
		{"8000000000000000", true, INT64_MIN},
		{"00000001", true, 1}, /* longer than it has to be */
		{"ffffffff", true, -1},
		{"000000000000000005", true, 5},                  /* 9 bytes */
		{"fffffffffffffffffffffffffffffffe", true, -2},   /* 16 */
		{"0000000000000000000000000000000005", false, 0}, /* 17 */
		{"008000000000000000", false, 0},                 /* 2^63 */
		{"ff7fffffffffffffff", false, 0},                 /* -2^63 - 1 */
		{"", false, 0},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice bytes = hex_new(cases[i].hex);
		struct ber_item item = {BER_INTEGER, (const uint8_t *)bytes.data, bytes.len};
		int64_t value = 0;
		assert_int_equal(ber_to_i64(&item, &value), cases[i].ok);
		assert_true(value == cases[i].value);
		hex_free(bytes);
	}
}

static void unsigned_ones_may_have_lost_their_zero(void **state)
{
	static const struct {
		const char *hex;
		unsigned bits;
		bool ok;
		uint64_t value;
	} cases[] = {
		{"00", 32, true, 0},
		{"00ffffffff", 32, true, UINT32_MAX},
		{"ffffffff", 32, true, UINT32_MAX}, /* without the zero in front */
		{"80000000", 32, true, 1u << 31},
		{"fe", 32, true, UINT32_MAX - 1}, /* -2, of a signed variable */
		{"00000000000000ffffffff", 32, true, UINT32_MAX},
		{"0100000000", 32, false, 0}, /* 2^32 */
		{"ff7fffffff", 32, false, 0}, /* -2^31 - 1 */
		{"", 32, false, 0},
		{"00ffffffffffffffff", 64, true, UINT64_MAX},
		{"ffffffffffffffff", 64, true, UINT64_MAX},
		{"0000000000ffffffffffffffff", 64, true, UINT64_MAX},
		{"008000000000000000", 64, true, UINT64_C(1) << 63},
		{"7fffffffffffffff", 64, true, INT64_MAX},
		{"010000000000000000", 64, false, 0}, /* 2^64 */
		{"ff7fffffffffffffff", 64, false, 0},
		{"0000000000000000000000000000000001", 64, false, 0}, /* 17 bytes */
		{"", 64, false, 0},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice bytes = hex_new(cases[i].hex);
		struct ber_item item = {0x41, (const uint8_t *)bytes.data, bytes.len};
		uint64_t value = 0;
		assert_int_equal(ber_to_unsigned(&item, cases[i].bits, &value), cases[i].ok);
		if (cases[i].ok)
			assert_true(value == cases[i].value);
		hex_free(bytes);
	}
}

static void written(const struct ber_writer *w, const uint8_t *end, const char *hex)
{
	uint8_t memory[64];
	struct slice expected = hex_to(hex, memory);
	assert_false(w->full);
	assert_int_equal(end - w->at, expected.len);
	assert_memory_equal(w->at, expected.data, expected.len);
}

static void integers_are_written_shortest(void **state)
{
	static const struct {
		int64_t value;
		const char *hex;
	} cases[] = {
		{0, "020100"},
		{127, "02017f"},
		{128, "02020080"},
		{-128, "020180"},
		{-129, "0202ff7f"},
		{0x40000001, "020440000001"}, /* an id of ours */
		{INT32_MAX, "02047fffffff"},
		{INT64_MIN, "02088000000000000000"},
	};
	uint8_t memory[32];
	const uint8_t *end = memory + sizeof(memory);
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ber_writer w = ber_writer_of(memory, sizeof(memory));
		ber_put_integer(&w, BER_INTEGER, cases[i].value);
		written(&w, end, cases[i].hex);
	}
	struct ber_writer w = ber_writer_of(memory, sizeof(memory));
	ber_put_unsigned(&w, 0x46, UINT64_MAX);
	written(&w, end, "4609 00ffffffffffffffff");
}

static void lengths_are_written_shortest(void **state)
{
	static char bytes[70000];
	static uint8_t memory[sizeof(bytes) + 8];
	static const struct {
		size_t len;
		const char *header;
	} cases[] = {
		{0, "0400"},       {127, "047f"},       {128, "048180"},       {255, "0481ff"},
		{256, "04820100"}, {65535, "0482ffff"}, {65536, "0483010000"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t header[8];
		struct ber_writer w = ber_writer_of(memory, sizeof(memory));
		struct slice expected = hex_to(cases[i].header, header);
		ber_put_octets(&w, BER_OCTETS, (struct slice){bytes, cases[i].len});
		assert_false(w.full);
		assert_memory_equal(w.at, expected.data, expected.len);
		assert_int_equal(memory + sizeof(memory) - w.at, expected.len + cases[i].len);
	}
}

static void a_full_writer_stays_full(void **state)
{
	uint8_t memory[5];
	struct ber_writer w = ber_writer_of(memory, sizeof(memory));
	(void)state;
	ber_put_octets(&w, BER_OCTETS, SLICE("abc"));
	assert_false(w.full);
	ber_put_bytes(&w, "x", 1); /* one too many */
	assert_true(w.full);
	ber_put_integer(&w, BER_INTEGER, 1);
	assert_true(w.full);
	assert_ptr_equal(w.at, memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_of_every_form),
		cmocka_unit_test(an_error_sticks),
		cmocka_unit_test(what_is_inside_ends_with_what_holds_it),
		cmocka_unit_test(integers_are_in_twos_complement),
		cmocka_unit_test(unsigned_ones_may_have_lost_their_zero),
		cmocka_unit_test(integers_are_written_shortest),
		cmocka_unit_test(lengths_are_written_shortest),
		cmocka_unit_test(a_full_writer_stays_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
