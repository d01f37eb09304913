/* CRC-32C against RFC 3720 B.4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"

/* The RFC prints the check values byte by byte, lowest first: aa 36 91 8a is 0x8a9136aa. */
static void vectors_of_the_rfc(UNUSED void **state)
{
	uint8_t bytes[32];
	memset(bytes, 0, 32);
	assert_true(crc32c(0, bytes, 32) == 0x8a9136aa);
	memset(bytes, 0xff, 32);
	assert_true(crc32c(0, bytes, 32) == 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		bytes[i] = (uint8_t)i;
	assert_true(crc32c(0, bytes, 32) == 0x46dd794e);
	for (int i = 0; i < 32; i++)
		bytes[i] = (uint8_t)(31 - i);
	assert_true(crc32c(0, bytes, 32) == 0x113fdb5c);
	static const uint8_t read_command[48] = {
		0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0,
		0x14, 0,    0, 0, 0, 0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
		0x28, 0,    0, 0, 0, 0, 0, 0, 2, 0, 0, 0,    0, 0, 0, 0};
	assert_true(crc32c(0, read_command, 48) == 0xd9963a56);
	assert_true(crc32c(0, "123456789", 9) == 0xe3069283);
	assert_true(crc32c(0, "", 0) == 0);
}

/* In two pieces, wherever cut, and from every alignment: the fast path takes 8 bytes at once. */
static void pieces_and_alignments(UNUSED void **state)
{
	char bytes[80];
	for (size_t at = 0; at < 16; at++) {
		memset(bytes, 0, sizeof(bytes));
		memcpy(bytes + at, "123456789", 9);
		assert_true(crc32c(0, bytes + at, 9) == 0xe3069283);
		for (size_t cut = 0; cut <= 9; cut++)
			assert_true(crc32c(crc32c(0, bytes + at, cut), bytes + at + cut, 9 - cut) ==
				    0xe3069283);
	}
}

/* Long ones are worked on in stretches; fed in pieces of 5 bytes they are not. */
static void long_buffers_equal_their_pieces(UNUSED void **state)
{
	uint8_t bytes[4000];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * i >> 3 ^ i);
	for (size_t len = 760; len <= sizeof(bytes); len += 1 + len % 13) {
		uint32_t crc = 0;
		for (size_t at = 0; at < len; at += 5)
			crc = crc32c(crc, bytes + at, len - at < 5 ? len - at : 5);
		assert_true(crc32c(0, bytes, len) == crc);
		assert_true(crc32c(0, bytes + 1, len - 1) != crc);
	}
}

/* Of XXH3 with seed 0, as its specification lists them for the empty input. */
static void xxh3_of_nothing(UNUSED void **state)
{
	assert_true(hash64("", 0, 0) == UINT64_C(0x2d06800538d394c2));
	struct hash128 h = hash128("", 0, 0);
	assert_true(h.high == UINT64_C(0x99aa06d3014798d8));
	assert_true(h.low == UINT64_C(0x6001c324468d497f));
	assert_true(hash64("a", 1, 0) != hash64("a", 1, 1));
}

static uint32_t murmur(const char *text, uint32_t seed, size_t first)
{
	struct murmur3_32 m;
	size_t len = strlen(text);
	murmur3_32_init(&m, seed);
	murmur3_32_add(&m, text, first < len ? first : len);
	if (first < len)
		murmur3_32_add(&m, text + first, len - first);
	return murmur3_32_end(&m);
}

/* Of the reference implementation, as published with it and in Wikipedia's article; however the
 * text is cut in two. */
static void murmur_vectors(UNUSED void **state)
{
	const char *fox = "The quick brown fox jumps over the lazy dog";
	for (size_t first = 0; first < 44; first++) {
		assert_int_equal(murmur("", 0, first), 0);
		assert_int_equal(murmur("", 1, first), 0x514e28b7);
		assert_int_equal(murmur("", 0xffffffff, first), 0x81f16f39);
		assert_int_equal(murmur("test", 0, first), 0xba6bd213);
		assert_int_equal(murmur("test", 0x9747b28c, first), 0x704b81dc);
		assert_int_equal(murmur("Hello, world!", 0, first), 0xc0363e43);
		assert_int_equal(murmur("Hello, world!", 0x9747b28c, first), 0x24884cba);
		assert_int_equal(murmur(fox, 0, first), 0x2e4ff723);
		assert_int_equal(murmur(fox, 0x9747b28c, first), 0x2fa826cd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_of_the_rfc),
		cmocka_unit_test(pieces_and_alignments),
		cmocka_unit_test(murmur_vectors),
		cmocka_unit_test(long_buffers_equal_their_pieces),
		cmocka_unit_test(xxh3_of_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
