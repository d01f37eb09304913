#include "store/lmdb/codec/row_codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/random.h"

/* ---- Bytes worked by hand from doc/format-store.md ------------------------------------------ */

static void assert_row(const struct value *values, unsigned count, unsigned fields,
		       struct slice expected)
{
	uint8_t bytes[ROW_MAX_BYTES];
	uint8_t *end = row_put(bytes, values, count, fields);
	assert_int_equal(end - bytes, expected.len);
	assert_memory_equal(bytes, expected.data, expected.len);
}

static void assert_bytes(const struct value *values, unsigned count, struct slice expected)
{
	assert_row(values, count, 1, expected);
}

static void small_integers_take_a_byte_each(void **state)
{
	(void)state;
	/* zigzag: 0, -1 = 1, 100 = 200, 127 = 254 */
	const struct value values[] = {value_i64(0), value_i64(-1), value_i64(100), value_i64(127)};
	assert_bytes(values, 4, SLICE("\x10\x00\x01\xc8\xfe"));
	assert_bytes(&(struct value){255, VALUE_U64}, 1, SLICE("\x14\xff"));
	assert_bytes((const struct value[]){value_f64(3), value_f64(-2)}, 2, SLICE("\x18\x06\x03"));
}

static void the_greatest_makes_the_width(void **state)
{
	(void)state;
	/* zigzag(128) = 256 */
	assert_bytes((const struct value[]){value_i64(128), value_i64(1)}, 2,
		     SLICE("\x11\x00\x01\x02\x00"));
	assert_bytes((const struct value[]){value_u64(65536), value_u64(1 << 24)}, 2,
		     SLICE("\x16\x00\x00\x01\x00\x00\x00\x00\x01"));
	assert_bytes((const struct value[]){value_u64(UINT64_MAX)}, 1,
		     SLICE("\x17\xff\xff\xff\xff\xff\xff\xff\xff"));
	assert_bytes((const struct value[]){value_i64(INT64_MIN)}, 1,
		     SLICE("\x13\xff\xff\xff\xff\xff\xff\xff\xff"));
}

static void one_large_number_among_small_ones_makes_none_of_them_wide(void **state)
{
	(void)state;
	const struct value values[] = {value_u64(1), value_u64(2), value_u64(UINT64_C(1) << 35),
				       value_u64(3)};
	/* One field, sized, u64 of up to 8 bytes; 1, 1, 5 and 1 bytes; the numbers. */
	assert_bytes(values, 4, SLICE("\x21\x27\x11\x15\x01\x02\x00\x00\x00\x00\x08\x03"));
	/* 300 needs two bytes, 0 none, 2^24 four; half of two bytes is the last one's. */
	const struct value three[] = {value_i64(150), value_i64(0), value_i64(1 << 23)};
	assert_bytes(three, 3, SLICE("\x21\x22\x02\x04\x2c\x01\x00\x00\x00\x01"));
}

/* Two series of five fields: what base rates are made of. */
static void fields_lie_together(void **state)
{
	(void)state;
	const struct value values[] = {
		value_u64(1000),  value_u64(2), value_u64(30000), value_u64(0), value_u64(0),
		value_u64(70000), value_u64(2), value_u64(30000), value_u64(0), value_u64(7),
	};
	assert_row(values, 10, 5,
		   SLICE("\x25"
			 "\x06\xe8\x03\x00\x00\x70\x11\x01\x00" /* u64 of four bytes each */
			 "\x14\x02"                             /* the same in both */
			 "\x15\x30\x75"                         /* likewise, of two bytes */
			 "\x14\x00"                             /* likewise */
			 "\x04\x00\x07"));                      /* a byte each */
	/* Fields of unlike type, one of them nowhere; 0.5, 0.25 as they are. */
	const struct value mixed[] = {value_f64(0.5),  {0, VALUE_NONE}, value_i64(-1),
				      value_f64(0.25), {0, VALUE_NONE}, value_i64(-1)};
	assert_row(mixed, 6, 3,
		   SLICE("\x23"
			 "\x0f\0\0\0\0\0\0\xe0\x3f\0\0\0\0\0\0\xd0\x3f"
			 "\x30"
			 "\x10\x01"));
	/* A hole in one field: nibbles of all types, values one by one. */
	const struct value hole[] = {value_u64(1), value_u64(2), {0, VALUE_NONE}, value_u64(3)};
	assert_row(hole, 4, 2, SLICE("\xff\x33\x30\x01\x02\x03"));
}

/* What is written of some fields is what is written of all with nothing in the others. */
static void fields_that_are_not_given_are_none(void **state)
{
	(void)state;
	uint8_t bytes[ROW_MAX_BYTES], *end;
	const struct value first[] = {value_u64(7), value_u64(255)};
	end = row_put_fields(bytes, first, 2, 5, 1);
	assert_int_equal(end - bytes, 8);
	assert_memory_equal(bytes, "\x25\x04\x07\xff\x30\x30\x30\x30", 8);
	const struct value some[] = {value_u64(7), value_u64(1), value_u64(8), value_u64(1)};
	end = row_put_fields(bytes, some, 2, 3, 5);
	assert_int_equal(end - bytes, 7);
	assert_memory_equal(bytes, "\x23\x04\x07\x08\x30\x14\x01", 7);
	/* A hole in a field that is given: nibbles for none, 2; none, none. */
	const struct value hole[] = {value_u64(2), {0, VALUE_NONE}};
	end = row_put_fields(bytes, hole, 2, 2, 2);
	assert_int_equal(end - bytes, 4);
	assert_memory_equal(bytes, "\xff\x30\x00\x02", 4);
}

static void types_that_differ_have_a_nibble_each(void **state)
{
	(void)state;
	/* i64 5, f64 0.5, a whole f64 4, none */
	const struct value values[] = {value_i64(5), value_f64(0.5), value_f64(4), {0, VALUE_NONE}};
	assert_bytes(values, 4, SLICE("\xff\x12\x04\x0a\0\0\0\0\0\0\xe0\x3f\x08"));
	/* Minus zero is not the whole number 0. */
	assert_bytes((const struct value[]){value_f64(-0.0)}, 1, SLICE("\x01\0\0\0\0\0\0\0\x80"));
	/* 2^53 neither: above it not every whole number is a double. */
	assert_bytes((const struct value[]){value_f64(0x1p53)}, 1,
		     SLICE("\x01\0\0\0\0\0\0\x40\x43"));
}

/* ---- What is put is got ---------------------------------------------------------------------- */

static void assert_same(const uint8_t *bytes, size_t len, const struct value *values,
			unsigned count)
{
	uint64_t bits[ROW_VALUES_MAX];
	uint8_t types[ROW_VALUES_MAX];
	assert_int_equal(row_check(bytes, len, count), 0);
	assert_int_equal(row_get(bytes, len, count, bits, types), 0);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(types[i], values[i].type);
		struct value one = row_value(bytes, len, count, i);
		assert_int_equal(one.type, types[i]);
		if (types[i] == VALUE_NONE)
			continue;
		assert_int_equal(bits[i], values[i].bits);
		assert_int_equal(one.bits, values[i].bits);
	}
}

static struct value random_value(struct random *random, unsigned types, unsigned width)
{
	uint64_t bits = random_next(random) >> (63 - random_below(random, width));
	switch (types == 4 ? random_below(random, 4) : types) {
	case VALUE_NONE:
		return (struct value){0, VALUE_NONE};
	case VALUE_F64:
		return random_below(random, 2) ? value_f64((double)(int64_t)bits)
					       : (struct value){bits, VALUE_F64};
	case VALUE_I64:
		return value_i64(random_below(random, 2) ? (int64_t)bits : -(int64_t)(bits >> 1));
	default:
		return value_u64(bits);
	}
}

static void anything_comes_back(void **state)
{
	(void)state;
	struct random random;
	random_init(&random, 20261121);
	for (int round = 0; round < 20000; round++) {
		struct value values[ROW_VALUES_MAX];
		uint8_t bytes[ROW_MAX_BYTES];
		unsigned count = 1 + (unsigned)random_below(&random, round % 100 ? 20 : 256);
		unsigned types = (unsigned)random_below(&random, 5);
		unsigned width = 1 + (unsigned)random_below(&random, 63);
		unsigned fields = 1 + (unsigned)random_below(&random, 8), field = 0;
		if (count % fields)
			fields = 1;
		/* Some fields are the same for all series, or of a type of their own. */
		unsigned same = (unsigned)random_next(&random);
		for (unsigned i = 0; i < count; i++, field = i % fields) {
			unsigned type = same >> 20 & 1 ? 1 + field % 3 : types;
			values[i] = random_value(&random, type, width);
			if (i >= fields && same >> field & 1)
				values[i] = values[i - fields];
		}
		uint8_t *end = row_put(bytes, values, count, fields);
		assert_true(end - bytes <= ROW_MAX_BYTES);
		assert_same(bytes, (size_t)(end - bytes), values, count);
	}
}

/* ---- What row_put did not write -------------------------------------------------------------- */

static void a_byte_too_few_or_too_many_is_damage(void **state)
{
	(void)state;
	const struct slice rows[] = {
		SLICE("\x10\x00\x01\xc8"),                               /* three packed */
		SLICE("\x11\x00\x01\x02\x00\x00\x00"),                   /* of two bytes */
		SLICE("\x02\x01\x80\x01\x03"),                           /* varints */
		SLICE("\xff\x12\x03\x0a\0\0\0\0\0\0\xe0\x3f\x08"),       /* nibbles */
		SLICE("\x21\x22\x02\x04\x2c\x01\x00\x00\x00\x01"),       /* one field, sized */
		SLICE("\x23\x14\x01\x15\x01\x02\x07\1\2\3\4\5\6\7\x08"), /* three of one */
	};
	uint64_t bits[3];
	uint8_t types[3], longer[32];
	for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
		const uint8_t *bytes = (const uint8_t *)rows[r].data;
		assert_int_equal(row_get(bytes, rows[r].len, 3, bits, types), 0);
		for (size_t len = 0; len < rows[r].len; len++) {
			assert_int_equal(row_get(bytes, len, 3, bits, types), ERR_DAMAGED);
			assert_int_equal(row_check(bytes, len, 3), ERR_DAMAGED);
		}
		memcpy(longer, bytes, rows[r].len);
		longer[rows[r].len] = 0;
		assert_int_equal(row_get(longer, rows[r].len + 1, 3, bits, types), ERR_DAMAGED);
		assert_int_equal(row_check(longer, rows[r].len + 1, 3), ERR_DAMAGED);
	}
}

static void a_type_that_does_not_exist_is_damage(void **state)
{
	(void)state;
	uint64_t bits[1];
	uint8_t types[1];
	const struct slice rows[] = {SLICE("\x05\x00"),
				     SLICE("\x0f\x00"),
				     SLICE("\x1c\x00"),
				     SLICE("\xfe\x00"),
				     SLICE("\xff\x05\x00"),
				     SLICE("\x20"),
				     SLICE("\x22\x14\x00\x14\x00"),
				     SLICE("\x29\x14\x00"),
				     SLICE("\x21\x34"),
				     SLICE("\x21\x40"),
				     SLICE("\x21\x0c\x00"),
				     SLICE("\x21\x27\x09\1\2\3\4\5\6\7\x08\x09")};
	for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
		const uint8_t *bytes = (const uint8_t *)rows[r].data;
		assert_int_equal(row_get(bytes, rows[r].len, 1, bits, types), ERR_DAMAGED);
		assert_int_equal(row_check(bytes, rows[r].len, 1), ERR_DAMAGED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_lie_together),
		cmocka_unit_test(fields_that_are_not_given_are_none),
		cmocka_unit_test(small_integers_take_a_byte_each),
		cmocka_unit_test(the_greatest_makes_the_width),
		cmocka_unit_test(one_large_number_among_small_ones_makes_none_of_them_wide),
		cmocka_unit_test(types_that_differ_have_a_nibble_each),
		cmocka_unit_test(anything_comes_back),
		cmocka_unit_test(a_byte_too_few_or_too_many_is_damage),
		cmocka_unit_test(a_type_that_does_not_exist_is_damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
