/* Blocks of a few rows: their bytes by hand, and round trips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "store/lmdb/codec/block_small.h"
#include "store/store.h"

#define U64S(...) ((const uint64_t[]){__VA_ARGS__})

/* By doc/format-store.md, "Block". Times: STEPS, unit 1, base 995 (zigzag 1990), then 0 10 0 10 in
 * 4 bits. Columns: DELTA_UP from 0 by 997 (one below the least step, which centres them in 3 bits),
 * 0 3 6 1; FOR from -8, 15 0 15 0 in 4 bits; DELTA_UP from 0 by 3 << 12, nothing left; nothing;
 * CONSTANT 300. */
static void test_bytes_by_hand(void **state)
{
	(void)state;
	static const int64_t ts[] = {1000, 2005, 3000, 4005};
	struct block_column columns[] = {
		{U64S(0, 1000, 2003, 3001), NULL, VALUE_U64},
		{U64S(7, (uint64_t)-8, 7, (uint64_t)-8), NULL, VALUE_I64},
		{U64S(0, 3 << 12, 6 << 12, 9 << 12), NULL, VALUE_U64},
		{U64S(1, 2, 3, 4), NULL, VALUE_NONE},
		{U64S(300, 300, 300, 300), NULL, VALUE_U64},
	};
	struct block_rows rows = {4, 5, ts, columns, false};
	struct block block;
	uint8_t bytes[64];
	assert_int_equal(small_encode(&rows, bytes, sizeof(bytes), &block), SMALL_TAKEN);
	assert_false(block.regular);
	struct slice times = SLICE("\x00\x01\xc6\x0f\x04\xa0\xa0");
	assert_int_equal(block.times.len, times.len);
	assert_memory_equal(block.times.data, times.data, times.len);
	struct slice body = SLICE("\x07\x05\x05\x00\x03"
				  "\x33\x00\xca\x0f\x03\x98\x03"
				  "\x21\x0f\x04\x0f\x0f"
				  "\x3b\x0c\x00\x06\x00"
				  "\x30\xac\x02");
	assert_int_equal(block.body.len, body.len);
	assert_memory_equal(block.body.data, body.data, body.len);
}

static void test_times_of_whole_seconds(void **state)
{
	(void)state;
	static const int64_t ts[] = {-5000, 0, 2000};
	struct block_column column = {U64S(1, 1, 1), NULL, VALUE_U64};
	struct block_rows rows = {3, 1, ts, &column, false};
	struct block block;
	uint8_t bytes[64];
	assert_int_equal(small_encode(&rows, bytes, sizeof(bytes), &block), SMALL_TAKEN);
	/* STEPS, unit 1000, base 2 (zigzag 4), then 0 3 0 in 2 bits. */
	struct slice times = SLICE("\x00\xe8\x07\x04\x02\x0c");
	assert_int_equal(block.times.len, times.len);
	assert_memory_equal(block.times.data, times.data, times.len);
}

/* CONSTANT with GAPS: rows 0 and 2 are there. */
static void test_gaps(void **state)
{
	(void)state;
	static const int64_t ts[] = {1000, 2000, 3000};
	static const uint8_t types[] = {VALUE_U64, VALUE_NONE, VALUE_U64};
	struct block_column columns[] = {{U64S(7, 5, 7), types, VALUE_U64}};
	struct block_rows rows = {3, 1, ts, columns, false};
	struct block block;
	uint8_t bytes[64];
	assert_int_equal(small_encode(&rows, bytes, sizeof(bytes), &block), SMALL_TAKEN);
	assert_true(block.regular);
	struct slice body = SLICE("\x03\x70\x05\x07");
	assert_int_equal(block.body.len, body.len);
	assert_memory_equal(block.body.data, body.data, body.len);
}

/* CONSTANT of f64, bits of 1.5 / 2^30 as they are; DECIMAL of exponent 2: 21.37 is 2137 (zigzag
 * 4274); of exponent 0, with GAPS: -4 in row 1. */
static void test_doubles_that_do_not_change(void **state)
{
	(void)state;
	static const int64_t ts[] = {1000, 2000};
	static const uint8_t types[] = {VALUE_NONE, VALUE_F64};
	double odd = 0x1.8p-30, usual = 21.37, whole = -4;
	uint64_t bits[3][2];
	for (int i = 0; i < 2; i++) {
		memcpy(&bits[0][i], &odd, 8);
		memcpy(&bits[1][i], &usual, 8);
		memcpy(&bits[2][i], &whole, 8);
	}
	struct block_column columns[] = {{bits[0], NULL, VALUE_F64},
					 {bits[1], NULL, VALUE_F64},
					 {bits[2], types, VALUE_F64}};
	struct block_rows rows = {2, 3, ts, columns, false};
	struct block block;
	uint8_t bytes[64];
	assert_int_equal(small_encode(&rows, bytes, sizeof(bytes), &block), SMALL_TAKEN);
	struct slice body = SLICE("\x09\x04\x04"
				  "\x10\x00\x00\x00\x00\x00\x00\x18\x3e"
				  "\x90\x02\xb2\x21"
				  "\xd0\x02\x00\x07");
	assert_int_equal(block.body.len, body.len);
	assert_memory_equal(block.body.data, body.data, body.len);
	for (unsigned c = 0; c < 3; c++) {
		uint64_t back[2];
		uint8_t back_types[2];
		assert_int_equal(block_decode_column(&block, c, back, back_types), 0);
		assert_true(back[1] == bits[c][1] && back_types[1] == VALUE_F64);
		assert_true(back_types[0] == (c == 2 ? VALUE_NONE : VALUE_F64));
	}
}

static void test_what_it_is_not_for(void **state)
{
	(void)state;
	int64_t ts[SMALL_ROWS_MAX + 1];
	uint64_t bits[SMALL_ROWS_MAX + 1];
	uint8_t types[SMALL_ROWS_MAX + 1], bytes[1000];
	for (int i = 0; i <= SMALL_ROWS_MAX; i++) {
		ts[i] = i;
		bits[i] = (uint64_t)i * i;
		types[i] = VALUE_U64;
	}
	struct block_column column = {bits, NULL, VALUE_U64};
	struct block_rows rows = {SMALL_ROWS_MAX, 1, ts, &column, false};
	struct block block;
	assert_int_equal(small_encode(&rows, bytes, sizeof(bytes), &block), SMALL_TAKEN);
	size_t taken = block.times.len + block.body.len;
	assert_int_equal(small_encode(&rows, bytes, taken, &block), SMALL_TAKEN);
	assert_int_equal(small_encode(&rows, bytes, taken - 1, &block), SMALL_NO_ROOM);
	rows.rows++;
	assert_int_equal(small_encode(&rows, bytes, sizeof(bytes), &block), SMALL_UNLIKELY);
	rows.rows--;
	rows.dense = true;
	assert_int_equal(small_encode(&rows, bytes, sizeof(bytes), &block), SMALL_UNLIKELY);
	rows.dense = false;
	column.types = types;
	assert_int_equal(small_encode(&rows, bytes, sizeof(bytes), &block), SMALL_TAKEN);
	types[5] = VALUE_I64;
	assert_int_equal(small_encode(&rows, bytes, sizeof(bytes), &block), SMALL_UNLIKELY);
	types[5] = VALUE_F64;
	assert_int_equal(small_encode(&rows, bytes, sizeof(bytes), &block), SMALL_UNLIKELY);
	column = (struct block_column){bits, NULL, VALUE_F64};
	assert_int_equal(small_encode(&rows, bytes, sizeof(bytes), &block), SMALL_UNLIKELY);
}

/* Where not all rows have room, a block of as many as have is the general encoder's. */
static void test_without_room_some_rows_are_taken(void **state)
{
	(void)state;
	struct random random;
	random_init(&random, 1);
	int64_t ts[20];
	uint64_t bits[20];
	uint8_t bytes[100];
	for (int i = 0; i < 20; i++) {
		ts[i] = 1000 * i;
		bits[i] = random_next(&random);
	}
	struct block_column column = {bits, NULL, VALUE_U64};
	struct block_rows rows = {20, 1, ts, &column, false};
	struct block block;
	assert_int_equal(block_encode(&rows, bytes, sizeof(bytes), 20, &block), 0);
	uint32_t taken = block_encode(&rows, bytes, sizeof(bytes), 1, &block);
	/* Each of 64 random bits takes eight bytes, so twelve have no room. */
	assert_in_range(taken, 1, 11);
	assert_int_equal(block.meta.rows, taken);
	uint64_t back[20];
	uint8_t types[20];
	assert_int_equal(block_decode_column(&block, 0, back, types), 0);
	assert_memory_equal(back, bits, taken * sizeof(bits[0]));
}

enum { COLUMNS = 6 };

struct sheet {
	int64_t ts_ms[SMALL_ROWS_MAX];
	uint64_t bits[COLUMNS][SMALL_ROWS_MAX];
	uint8_t types[COLUMNS][SMALL_ROWS_MAX];
	struct block_column column[COLUMNS];
};

static void fill_times(struct random *random, struct sheet *sheet, uint32_t rows)
{
	uint64_t ts = random_below(random, 2) ? (uint64_t)STORE_TS_MIN : 1451606400000;
	uint64_t unit = random_below(random, 2) ? 1000 : 1, most = (UINT64_C(1) << 58) / unit;
	unsigned shown = (unsigned)random_below(random, 58);
	for (uint32_t i = 0; i < rows; i++) {
		sheet->ts_ms[i] = (int64_t)ts;
		ts += unit + unit * ((random_next(random) >> 6 >> shown) % most);
	}
}

/* Any bits, or one with some decimals. */
static uint64_t some_double(struct random *random)
{
	static const double powers[] = {1, 10, 100, 1000, 10000};
	uint64_t bits = random_next(random);
	double d = (double)((int64_t)bits >> random_below(random, 64)) /
		   powers[random_below(random, ARRAY_LEN(powers))];
	if (random_below(random, 2))
		memcpy(&bits, &d, sizeof(d));
	return bits;
}

static void fill_column(struct random *random, struct sheet *sheet, uint32_t rows, uint32_t c)
{
	static const enum value_type types[] = {VALUE_U64, VALUE_I64, VALUE_NONE, VALUE_F64};
	enum value_type type = types[random_below(random, 4)];
	uint64_t same = some_double(random);
	uint64_t value = random_next(random) >> random_below(random, 64);
	uint64_t step = random_next(random) >> random_below(random, 64);
	uint64_t noise = random_below(random, 64), gaps = random_below(random, 2);
	uint64_t shift = random_below(random, 40) * random_below(random, 2);
	for (uint32_t i = 0; i < rows; i++) {
		bool none = gaps && random_below(random, 3);
		sheet->types[c][i] = none ? VALUE_NONE : (uint8_t)type;
		sheet->bits[c][i] = type == VALUE_F64 ? same : value << shift;
		value += step + (random_next(random) >> noise >> random_below(random, 2));
	}
	sheet->column[c] = (struct block_column){
		.bits = sheet->bits[c], .types = gaps ? sheet->types[c] : NULL, .type = type};
}

static void expect_back(const struct sheet *sheet, uint32_t rows, const struct block *block)
{
	int64_t ts[SMALL_ROWS_MAX];
	uint64_t bits[SMALL_ROWS_MAX];
	uint8_t types[SMALL_ROWS_MAX];
	assert_int_equal(block->meta.rows, rows);
	assert_int_equal(block->meta.first_ts_ms, sheet->ts_ms[0]);
	assert_int_equal(block->meta.last_ts_ms, sheet->ts_ms[rows - 1]);
	assert_int_equal(block_decode_times(block, ts), 0);
	assert_memory_equal(ts, sheet->ts_ms, rows * sizeof(ts[0]));
	for (uint32_t c = 0; c < COLUMNS; c++) {
		assert_int_equal(block_decode_column(block, c, bits, types), 0);
		for (uint32_t i = 0; i < rows; i++) {
			bool none = sheet->types[c][i] == VALUE_NONE;
			assert_int_equal(types[i], sheet->types[c][i]);
			assert_int_equal(bits[i], none ? 0 : sheet->bits[c][i]);
		}
	}
}

static void test_random_rows_come_back(void **state)
{
	(void)state;
	struct random random;
	random_init(&random, 7);
	static uint8_t bytes[COLUMNS * SMALL_ROWS_MAX * 10 + 1000];
	for (int round = 0; round < 20000; round++) {
		struct sheet sheet;
		uint32_t count = 1 + (uint32_t)random_below(&random, SMALL_ROWS_MAX);
		fill_times(&random, &sheet, count);
		for (uint32_t c = 0; c < COLUMNS; c++)
			fill_column(&random, &sheet, count, c);
		struct block_rows rows = {count, COLUMNS, sheet.ts_ms, sheet.column, false};
		struct block block = {.meta = {.ordinal = 0}};
		assert_int_equal(small_encode(&rows, bytes, sizeof(bytes), &block), SMALL_TAKEN);
		expect_back(&sheet, count, &block);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_by_hand),
		cmocka_unit_test(test_times_of_whole_seconds),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_doubles_that_do_not_change),
		cmocka_unit_test(test_what_it_is_not_for),
		cmocka_unit_test(test_without_room_some_rows_are_taken),
		cmocka_unit_test(test_random_rows_come_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
