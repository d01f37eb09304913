/* The bounded reader, variable-length integers, and keys whose byte order is their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cursor.h"

static void reading_past_the_end_is_bad_and_zero(UNUSED void **state)
{
	struct cursor c = cursor_of("\x01\x02\x03", 3);
	assert_int_equal(cursor_u16(&c), 0x0201);
	assert_int_equal(cursor_left(&c), 1);
	assert_int_equal(cursor_u32(&c), 0);
	assert_true(c.bad);
	assert_int_equal(cursor_u8(&c), 0); /* though one byte was left */
	assert_null(cursor_take(&c, 0));
	c = cursor_of("", 0);
	assert_non_null(cursor_take(&c, 0));
	assert_false(c.bad);
	assert_null(cursor_take(&c, SIZE_MAX));
	assert_true(c.bad);
}

static const struct {
	const char *bytes;
	size_t len;
	uint64_t value;
} vectors[] = {
	{"\x00", 1, 0},
	{"\x01", 1, 1},
	{"\x7f", 1, 127},
	{"\x80\x01", 2, 128},
	{"\xac\x02", 2, 300},
	{"\xff\x7f", 2, 16383},
	{"\x80\x80\x01", 3, 16384},
	{"\xff\xff\xff\xff\x0f", 5, UINT32_MAX},
	{"\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 9, INT64_MAX},
	{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 10, UINT64_C(1) << 63},
	{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, UINT64_MAX},
};

static void varints_both_ways(UNUSED void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		uint8_t bytes[10];
		assert_int_equal(varint_put(bytes, vectors[i].value), vectors[i].len);
		assert_memory_equal(bytes, vectors[i].bytes, vectors[i].len);
		struct cursor c = cursor_of(vectors[i].bytes, vectors[i].len);
		assert_true(cursor_varint(&c) == vectors[i].value);
		assert_false(c.bad);
		assert_int_equal(cursor_left(&c), 0);
		/* Behind it more bytes, which are not looked at. */
		uint8_t longer[20];
		memset(longer, 0xff, sizeof(longer));
		memcpy(longer, vectors[i].bytes, vectors[i].len);
		c = cursor_of(longer, sizeof(longer));
		assert_true(cursor_varint(&c) == vectors[i].value);
		assert_int_equal(cursor_left(&c), sizeof(longer) - vectors[i].len);
		/* Cut at every length. */
		for (size_t len = 0; len < vectors[i].len; len++) {
			c = cursor_of(vectors[i].bytes, len);
			assert_int_equal(cursor_varint(&c), 0);
			assert_true(c.bad);
		}
	}
}

static void varints_over_64_bits_are_bad(UNUSED void **state)
{
	struct cursor c = cursor_of("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);
	assert_int_equal(cursor_varint(&c), 0);
	assert_true(c.bad);
	c = cursor_of("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11);
	assert_int_equal(cursor_varint(&c), 0);
	assert_true(c.bad);
}

static void zigzag_interleaves_signs(UNUSED void **state)
{
	static const struct {
		int64_t plain;
		uint64_t coded;
	} pairs[] = {{0, 0},
		     {-1, 1},
		     {1, 2},
		     {-2, 3},
		     {2, 4},
		     {INT64_MAX, UINT64_MAX - 1},
		     {INT64_MIN, UINT64_MAX}};
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		assert_true(zigzag_encode(pairs[i].plain) == pairs[i].coded);
		assert_true(zigzag_decode(pairs[i].coded) == pairs[i].plain);
	}
}

static void big_endian_keys_sort_as_numbers(UNUSED void **state)
{
	static const int64_t ascending[] = {INT64_MIN, -256, -255, -1, 0, 1, 255, 256, INT64_MAX};
	uint8_t last[8], key[8];
	be32_put(key, 0x01020304);
	assert_memory_equal(key, "\x01\x02\x03\x04", 4);
	assert_int_equal(be32_get(key), 0x01020304);
	be64_put(key, UINT64_C(0x0102030405060708));
	assert_memory_equal(key, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
	for (size_t i = 0; i < ARRAY_LEN(ascending); i++) {
		be64_put(key, ordered_i64(ascending[i]));
		assert_true(unordered_i64(be64_get(key)) == ascending[i]);
		if (i)
			assert_true(memcmp(last, key, 8) < 0);
		memcpy(last, key, 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading_past_the_end_is_bad_and_zero),
		cmocka_unit_test(varints_both_ways),
		cmocka_unit_test(varints_over_64_bits_are_bad),
		cmocka_unit_test(zigzag_interleaves_signs),
		cmocka_unit_test(big_endian_keys_sort_as_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
