#include "store/lmdb/codec/block.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "store/lmdb/codec/column.h"
#include "store/store.h"

enum { ROOM = 1 << 20 };

static uint64_t f64_bits(double d)
{
	return value_f64(d).bits;
}

/* ---- Bytes worked by hand from doc/format-store.md ------------------------------------------ */

/* A block of one column with the given bytes; the body is the column's length and the column. */
struct hand_block {
	uint8_t body[256];
	struct block block;
};

static struct block *by_hand(struct hand_block *h, uint32_t rows, const char *column, size_t len)
{
	assert_true(len < 128);
	h->body[0] = (uint8_t)len;
	memcpy(h->body + 1, column, len);
	h->block = (struct block){.meta = {.columns = 1,
					   .rows = rows,
					   .first_ts_ms = 1000,
					   .last_ts_ms = 1000 + 10 * ((int64_t)rows - 1)},
				  .regular = true,
				  .body = {(const char *)h->body, len + 1}};
	return &h->block;
}

static void assert_column(uint32_t rows, struct slice column, const uint64_t *bits,
			  const uint8_t *types)
{
	struct hand_block h;
	uint64_t got[256];
	uint8_t got_types[256];
	struct block *block = by_hand(&h, rows, column.data, column.len);
	assert_int_equal(block_decode_column(block, 0, got, got_types), 0);
	assert_memory_equal(got, bits, rows * 8);
	assert_memory_equal(got_types, types, rows);
}

#define U64S(...)  ((const uint64_t[]){__VA_ARGS__})
#define TYPES(...) ((const uint8_t[]){__VA_ARGS__})
#define MINUS(n)   ((uint64_t)0 - (n))

static void a_constant_is_head_and_anchor(void **state)
{
	(void)state;
	/* i64, CONSTANT: 0x20, zigzag(-3) = 5 */
	assert_column(3, SLICE("\x20\x05"), U64S(MINUS(3), MINUS(3), MINUS(3)), TYPES(2, 2, 2));
	/* u64 300 */
	assert_column(1, SLICE("\x30\xac\x02"), U64S(300), TYPES(3));
	/* f64 as decimal: 15 / 10^1, zigzag(15) = 30 */
	assert_column(2, SLICE("\x90\x01\x1e"), U64S(f64_bits(1.5), f64_bits(1.5)), TYPES(1, 1));
	/* f64 as it is: 1.0 */
	assert_column(1, SLICE("\x10\0\0\0\0\0\0\xf0\x3f"), U64S(f64_bits(1)), TYPES(1));
}

static void every_codec_decodes_by_the_table(void **state)
{
	(void)state;
	/* FOR: 10 + {0, 2, 1}, width 2: 0b01'10'00 */
	assert_column(3, SLICE("\x21\x14\x02\x18"), U64S(10, 12, 11), TYPES(2, 2, 2));
	/* DELTA: 10, zigzag {0, 4, 1}, width 3: 4 << 3 | 1 << 6 */
	assert_column(3, SLICE("\x22\x14\x03\x60\x00"), U64S(10, 12, 11), TYPES(2, 2, 2));
	/* DELTA_UP: 100, steps of 5 + {0, 1, 3}, the first being none */
	assert_column(3, SLICE("\x33\x64\x0a\x02\x34"), U64S(100, 106, 114), TYPES(3, 3, 3));
	/* DELTA2: 0, then steps 3 and 3 + 1 */
	assert_column(3, SLICE("\x24\x00\x06\x02\x20"), U64S(0, 3, 7), TYPES(2, 2, 2));
	/* XOR, shift 52: 1.0 = 0x3ff << 52, 2.0 = 0x400 << 52, differing in 0x7ff */
	assert_column(3, SLICE("\x1d\x34\0\0\0\0\0\0\xf0\x3f\x0b\x00\xf8\xff\xff\x01"),
		      U64S(f64_bits(1), f64_bits(2), f64_bits(1)), TYPES(1, 1, 1));
	/* RAW */
	assert_column(2, SLICE("\x16\1\2\3\4\5\6\7\x08\1\2\3\4\5\6\7\x08\x09\0\0\0\0\0\0\x0a"),
		      U64S(0x0807060504030201, 0x0a00000000000009), TYPES(1, 1));
	/* FOR, shift 12: 4096 * {1, 2} over 4096 */
	assert_column(2, SLICE("\x39\x0c\x80\x20\x02\x04"), U64S(4096, 8192), TYPES(3, 3));
}

static void absent_and_mixed_values(void **state)
{
	(void)state;
	/* GAPS, rows 0 and 3 of 4; DELTA 7, zigzag(-1) = 1 in one bit */
	assert_column(4, SLICE("\x62\x09\x0e\x01\x02"), U64S(7, 0, 0, 6), TYPES(2, 0, 0, 2));
	/* mixed: i64, f64, absent, u64 = 2 | 1 << 2 | 3 << 6; FOR over 0, width 4 */
	assert_column(4, SLICE("\x01\xc6\0\0\0\0\0\0\0\0\x04\x21\x03"), U64S(1, 2, 0, 3),
		      TYPES(2, 1, 0, 3));
	/* nothing at all: no bytes */
	assert_column(3, SLICE(""), U64S(0, 0, 0), TYPES(0, 0, 0));
}

static void exceptions_and_specials_are_put_back(void **state)
{
	(void)state;
	/* FOR, width 1 with exceptions (66): {1, 0, 1}; index 1 is 0 + 3 * 2^1 */
	assert_column(3, SLICE("\x31\x00\x42\x05\x01\x01\x03"), U64S(1, 6, 1), TYPES(3, 3, 3));
	/* decimal, exponent 2, special at 1: -0.0; 125, 125, 126 by DELTA */
	assert_column(3, SLICE("\x92\x82\x01\x01\0\0\0\0\0\0\0\x80\xfa\x01\x02\x20"),
		      U64S(f64_bits(1.25), f64_bits(-0.0), f64_bits(1.26)), TYPES(1, 1, 1));
}

/* Table 4 begins with 000 for the symbols 0 0, 001 for 0 2, 0110 for 0 1; table 24 with 0 for four
 * zeros, and 11010 stands for 1 0 0 0: Huffman's method on the numbers of the document, by another
 * program (tests/e2e/test_format.py). */
static void entropy_coded_streams_by_hand(void **state)
{
	(void)state;
	/* DELTA, zigzag {0, 2, 0, 1}: 001 0110, first bit lowest */
	assert_column(4, SLICE("\x22\x14\x88\x34"), U64S(10, 11, 11, 10), TYPES(2, 2, 2, 2));
	/* an odd number: the last word has one more */
	assert_column(3, SLICE("\x22\x14\x88\x04"), U64S(10, 11, 11), TYPES(2, 2, 2));
	/* four to a word */
	assert_column(5, SLICE("\x22\x14\x9c\x16"), U64S(10, 10, 10, 10, 9), TYPES(2, 2, 2, 2, 2));
	/* with gaps: present values follow each other */
	assert_column(5, SLICE("\x62\x1b\x14\x88\x34"), U64S(10, 11, 0, 11, 10),
		      TYPES(2, 2, 0, 2, 2));
	/* FOR over 0, two low bits, about 100, an exception: z = 0, 2*4+1, 17*4+3, 1*4+0 */
	assert_column(4, SLICE("\x31\x00\xa8\xc2\x64\x34\x01\x02\x01\x34"), U64S(100, 95, 64, 102),
		      TYPES(3, 3, 3, 3));
}

static void a_long_column_has_widths_and_a_summary(void **state)
{
	(void)state;
	/* FOR over 0: 128 zeros, then 5 and 6 in three bits each; first 0, min 0, max 0 + 6,
	 * last 0 + 6, sum 11 */
	struct slice column = SLICE("\x31\x00\x00\x00\x06\x0c\x16\x82\x00\x03\x35");
	uint64_t bits[130] = {[128] = 5, [129] = 6};
	uint8_t types[130];
	struct hand_block h;
	struct block_summary s;
	memset(types, VALUE_U64, sizeof(types));
	assert_column(130, column, bits, types);
	assert_int_equal(block_read_summary(by_hand(&h, 130, column.data, column.len), 0, &s), 0);
	assert_int_equal(s.count, 130);
	assert_true(s.sum == 11 && s.integers == 11 && s.doubles == 0);
	assert_true(value_identical(s.min, value_u64(0)) && value_identical(s.max, value_u64(6)));
	assert_true(value_identical(s.first, value_u64(0)) &&
		    value_identical(s.last, value_u64(6)));
	assert_int_equal(s.first_ts_ms, 1000);
	assert_int_equal(s.last_ts_ms, 1000 + 1290);
}

static void irregular_times_by_hand(void **state)
{
	struct hand_block h;
	int64_t ts[4];
	(void)state;
	/* STEPS of 7 + {0, 0, 1, 3} ms, the first being none: 1000, 1007, 1015, 1025 */
	struct block *b = by_hand(&h, 4, "\x20\x00", 2);
	b->regular = false;
	b->meta.last_ts_ms = 1025;
	b->times = SLICE("\x00\x01\x0e\x02\xd0");
	assert_int_equal(block_decode_times(b, ts), 0);
	assert_true(ts[0] == 1000 && ts[1] == 1007 && ts[2] == 1015 && ts[3] == 1025);
	/* LINE: unit 1000, slope 10, base -1: 1000 * (10 i - 1 + {1, 3, 0, 2}) */
	b->meta.last_ts_ms = 32000;
	b->times = SLICE("\x01\xe8\x07\x0a\x01\x02\x8d");
	assert_int_equal(block_decode_times(b, ts), 0);
	assert_true(ts[0] == 1000 && ts[1] == 13000 && ts[2] == 20000 && ts[3] == 32000);
	/* the last time is another than the index says */
	b->meta.last_ts_ms = 32001;
	assert_int_equal(block_decode_times(b, ts), ERR_DAMAGED);
	/* times that stand still: slope 0, base 0, all residuals 0 */
	b->meta.last_ts_ms = 1000;
	b->times = SLICE("\x01\x01\x00\x00\x00");
	assert_int_equal(block_decode_times(b, ts), ERR_DAMAGED);
}

static void assert_refused(uint32_t rows, struct slice column, int err)
{
	struct hand_block h;
	uint64_t bits[256];
	uint8_t types[256];
	struct block *b = by_hand(&h, rows, column.data, column.len);
	assert_int_equal(block_decode_column(b, 0, bits, types), err);
}

static void what_the_format_forbids_is_damage(void **state)
{
	(void)state;
	/* the codec that is not used: a later format */
	assert_refused(3, SLICE("\x27\x14\x02\x18"), ERR_VERSION);
	/* bytes left over, and one too few */
	assert_refused(3, SLICE("\x21\x14\x02\x18\x00"), ERR_DAMAGED);
	assert_refused(3, SLICE("\x20\x05\x00"), ERR_DAMAGED);
	assert_refused(3, SLICE("\x21\x14\x03\x18"), ERR_DAMAGED);
	/* constant: shifted, mixed */
	assert_refused(3, SLICE("\x28\x01\x05"), ERR_DAMAGED);
	assert_refused(1, SLICE("\x00\x02\0\0\0\0\0\0\0\0"), ERR_DAMAGED);
	/* decimals that are integers; exponent 23; both bits of the reserved two */
	assert_refused(1, SLICE("\xa0\x01\x1e"), ERR_DAMAGED);
	assert_refused(1, SLICE("\x90\x17\x1e"), ERR_DAMAGED);
	assert_refused(1, SLICE("\x90\x61\x1e"), ERR_DAMAGED);
	/* shift 0, shift 64 */
	assert_refused(2, SLICE("\x39\x00\x80\x20\x02\x04"), ERR_DAMAGED);
	assert_refused(2, SLICE("\x39\x40\x80\x20\x02\x04"), ERR_DAMAGED);
	/* a presence bit behind the last row; no bit at all; bits of mixed types behind the last */
	assert_refused(4, SLICE("\x62\x19\x0e\x01\x02"), ERR_DAMAGED);
	assert_refused(4, SLICE("\x62\x00\x0e\x01\x02"), ERR_DAMAGED);
	assert_refused(3, SLICE("\x01\x00\0\0\0\0\0\0\0\0\x00"), ERR_DAMAGED);
	/* GAPS with mixed */
	assert_refused(1, SLICE("\x41\x01\x02\0\0\0\0\0\0\0\0\x00"), ERR_DAMAGED);
	/* form 196; width 65 of a mini-block */
	assert_refused(3, SLICE("\x21\x14\xc4\x02\x18"), ERR_DAMAGED);
	assert_refused(3, SLICE("\x21\x14\x82\x41\x18"), ERR_DAMAGED);
	/* words: a spare symbol, a spare bit, a byte too many, too few */
	assert_refused(3, SLICE("\x22\x14\x88\x34"), ERR_DAMAGED);
	assert_refused(4, SLICE("\x22\x14\x88\xb4"), ERR_DAMAGED);
	assert_refused(4, SLICE("\x22\x14\x88\x34\x00"), ERR_DAMAGED);
	assert_refused(4, SLICE("\x22\x14\x88"), ERR_DAMAGED);
	assert_refused(30, SLICE("\x22\x14\x88\x00\x00"), ERR_DAMAGED);
	/* 61 low bits; fewer bytes than low bits; no details */
	assert_refused(1, SLICE("\x31\x00\xa8\x3d\0\0\0\0\0\0\0\0\x00"), ERR_DAMAGED);
	assert_refused(4, SLICE("\x31\x00\xa8\x10\x64\x34"), ERR_DAMAGED);
	assert_refused(4, SLICE("\x31\x00\xa8"), ERR_DAMAGED);
	/* exceptions among words: none, behind the last, where a symbol is, two at the end, beyond
	 * 64 bits with 59 and with 60 low bits */
	assert_refused(4, SLICE("\x31\x00\xa8\xc2\x64\x34\x00\x34"), ERR_DAMAGED);
	assert_refused(4, SLICE("\x31\x00\xa8\xc2\x64\x34\x01\x04\x01\x34"), ERR_DAMAGED);
	assert_refused(4, SLICE("\x31\x00\xa8\xc2\x64\x34\x01\x01\x01\x34"), ERR_DAMAGED);
	assert_refused(3, SLICE("\x31\x00\xa8\x80\x02\x02\x00\x00\x00\x00"), ERR_DAMAGED);
	assert_refused(1, SLICE("\x31\x00\xa8\xbb\0\0\0\0\0\0\0\0\x01\x00\x10\x00"), ERR_DAMAGED);
	assert_refused(1, SLICE("\x31\x00\xa8\xbc\0\0\0\0\0\0\0\0\x01\x00\x00\x00"), ERR_DAMAGED);
	/* exceptions: none, behind the last, high 0, beyond 64 bits, one too many */
	assert_refused(3, SLICE("\x31\x00\x42\x05\x00"), ERR_DAMAGED);
	assert_refused(3, SLICE("\x31\x00\x42\x05\x01\x03\x03"), ERR_DAMAGED);
	assert_refused(3, SLICE("\x31\x00\x42\x05\x01\x01\x00"), ERR_DAMAGED);
	assert_refused(1, SLICE("\x31\x00\x7f\0\0\0\0\0\0\0\0\x01\x00\x04"), ERR_DAMAGED);
	assert_refused(3, SLICE("\x31\x00\x42\x05\x01\x01\x03\x00\x01"), ERR_DAMAGED);
	/* specials: the first behind the last value, the second wrapping round to before it */
	assert_refused(2,
		       SLICE("\x92\x82\x02\x05\0\0\0\0\0\0\0\x80\xfa\xff\xff\xff\x0f\0\0\0\0\0\0\0"
			     "\x80\xfa\x01\x02\x00"),
		       ERR_DAMAGED);
	/* specials: none; behind the last value; an index that wraps round */
	assert_refused(2, SLICE("\x92\x82\x00\xfa\x01\x02\x20"), ERR_DAMAGED);
	assert_refused(2, SLICE("\x92\x82\x01\x02\0\0\0\0\0\0\0\x80\xfa\x01\x02\x00"), ERR_DAMAGED);
	assert_refused(2,
		       SLICE("\x92\x82\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0\0\0\0\0\0"
			     "\x80\xfa\x01\x02\x00"),
		       ERR_DAMAGED);
}

static void the_directory_must_fill_the_body(void **state)
{
	struct hand_block h;
	uint64_t bits[4];
	uint8_t types[4];
	(void)state;
	struct block *b = by_hand(&h, 3, "\x20\x05", 2);
	assert_int_equal(block_decode_column(b, 0, bits, types), 0);
	h.body[0] = 1;
	assert_int_equal(block_decode_column(b, 0, bits, types), ERR_DAMAGED);
	h.body[0] = 3;
	assert_int_equal(block_decode_column(b, 0, bits, types), ERR_DAMAGED);
	b->body.len = 0;
	assert_int_equal(block_decode_column(b, 0, bits, types), ERR_DAMAGED);
}

static void the_encoder_takes_the_fewest_bytes(void **state)
{
	(void)state;
	static const int64_t ts[] = {1000, 2000, 3000};
	struct block_column columns[] = {
		{U64S(10, 12, 11), NULL, VALUE_I64},
		{U64S(f64_bits(1.5), f64_bits(1.5), f64_bits(1.5)), NULL, VALUE_F64},
		{U64S(1, 2, 3), NULL, VALUE_NONE},
	};
	struct block_rows rows = {3, 3, ts, columns};
	struct block block;
	uint8_t bytes[64];
	assert_int_equal(block_encode(&rows, bytes, sizeof(bytes), 1, &block), 3);
	assert_true(block.regular);
	assert_int_equal(block.times.len, 0);
	struct slice expected = SLICE("\x04\x03\x00\x21\x14\x02\x18\x90\x01\x1e");
	assert_int_equal(block.body.len, expected.len);
	assert_memory_equal(block.body.data, expected.data, expected.len);
}

/* ---- Round trips ---------------------------------------------------------------------------- */

enum { ROWS = 3000, COLUMNS = 8 };

struct sheet {
	uint32_t rows, columns;
	int64_t ts_ms[ROWS];
	uint64_t bits[COLUMNS][ROWS];
	uint8_t types[COLUMNS][ROWS];
	bool dense;
	struct block_column column[COLUMNS];
	/* decoded */
	int64_t ts_out[ROWS + 1];
	uint64_t bits_out[ROWS + 1];
	uint8_t types_out[ROWS + 1];
	uint8_t bytes[ROOM];
};

static struct sheet *sheet_new(uint32_t rows, uint32_t columns)
{
	struct sheet *s = mem_zalloc(sizeof(*s));
	s->rows = rows;
	s->columns = columns;
	for (uint32_t i = 0; i < rows; i++)
		s->ts_ms[i] = 1000 * (int64_t)i;
	for (uint32_t c = 0; c < columns; c++)
		s->column[c] = (struct block_column){s->bits[c], s->types[c], VALUE_NONE};
	return s;
}

static bool same_number(double a, double b, double scale)
{
	if (isnan(a) || isnan(b) || isinf(a) || isinf(b))
		return (isnan(a) && isnan(b)) || a == b;
	return fabs(a - b) <= 1e-11 * scale;
}

/* The definition, value by value: nothing of the codec's arithmetic. */
static void assert_summary(const struct sheet *s, uint32_t c, uint32_t from, uint32_t rows,
			   const struct block_summary *got)
{
	struct value min = {0, VALUE_NONE}, max = min, first = min, last = min;
	int64_t first_ts = 0, last_ts = 0;
	uint64_t count = 0;
	bool only_integers = true;
	__int128 integers = 0;
	double doubles = 0, scale = 0;
	for (uint32_t i = from; i < from + rows; i++) {
		struct value v = {s->bits[c][i], s->types[c][i]};
		if (v.type == VALUE_NONE)
			continue;
		last = v;
		last_ts = s->ts_ms[i];
		if (count++ == 0) {
			first = v;
			first_ts = last_ts;
		}
		only_integers &= v.type != VALUE_F64;
		if (v.type == VALUE_F64)
			doubles += value_as_f64(v);
		else if (v.type == VALUE_I64)
			integers += (int64_t)v.bits;
		else
			integers += v.bits;
		scale += fabs(value_as_f64(v));
		if (isnan(value_as_f64(v)))
			continue;
		if (min.type == VALUE_NONE || value_compare(v, min) < 0)
			min = v;
		if (max.type == VALUE_NONE || value_compare(v, max) > 0)
			max = v;
	}
	assert_int_equal(got->count, count);
	if (!count)
		return;
	assert_true(value_identical(got->first, first) && value_identical(got->last, last));
	assert_true(got->first_ts_ms == first_ts && got->last_ts_ms == last_ts);
	assert_true(value_equal(got->min, min) && got->min.type == min.type);
	assert_true(value_equal(got->max, max) && got->max.type == max.type);
	if (only_integers)
		assert_true(got->sum == (double)integers);
	if (!only_integers)
		assert_true(same_number(got->sum, (double)integers + doubles, scale));
}

static void assert_block(struct sheet *s, const struct block *block, uint32_t from)
{
	struct block_summary summary;
	uint32_t rows = block->meta.rows;
	s->ts_out[rows] = 77;
	s->bits_out[rows] = 77;
	s->types_out[rows] = 77;
	assert_int_equal(block_decode_times(block, s->ts_out), 0);
	assert_memory_equal(s->ts_out, s->ts_ms + from, rows * 8);
	for (uint32_t c = 0; c < s->columns; c++) {
		assert_int_equal(block_decode_column(block, c, s->bits_out, s->types_out), 0);
		assert_memory_equal(s->types_out, s->types[c] + from, rows);
		for (uint32_t i = 0; i < rows; i++) {
			uint64_t bits = s->types[c][from + i] ? s->bits[c][from + i] : 0;
			assert_int_equal(s->bits_out[i], bits);
		}
		assert_int_equal(block_read_summary(block, c, &summary), 0);
		assert_summary(s, c, from, rows, &summary);
	}
	assert_true(s->ts_out[rows] == 77 && s->bits_out[rows] == 77 && s->types_out[rows] == 77);
}

/* Encodes all rows into blocks of `room` bytes and compares every block; returns all their bytes.
 */
static size_t assert_round_trip(struct sheet *s, size_t room)
{
	size_t bytes = 0;
	for (uint32_t from = 0; from < s->rows;) {
		struct block_column columns[COLUMNS];
		struct block block = {.regular = false};
		for (uint32_t c = 0; c < s->columns; c++)
			columns[c] = (struct block_column){s->bits[c] + from, s->types[c] + from,
							   VALUE_NONE};
		struct block_rows rows = {s->rows - from, s->columns, s->ts_ms + from, columns,
					  s->dense};
		memset(s->bytes + room, 0xa5, 16);
		uint32_t taken = block_encode(&rows, s->bytes, room, 1, &block);
		assert_true(taken >= 1 && taken <= s->rows - from);
		for (int i = 0; i < 16; i++)
			assert_int_equal(s->bytes[room + (size_t)i], 0xa5);
		assert_int_equal(block.meta.rows, taken);
		assert_block(s, &block, from);
		bytes += block.times.len + block.body.len;
		from += taken;
	}
	return bytes;
}

static const uint64_t nasty[] = {
	0,
	1,
	UINT64_MAX,
	UINT64_MAX - 1,
	INT64_MAX,
	UINT64_C(1) << 63,
	(UINT64_C(1) << 63) + 1,
	(UINT64_C(1) << 53) + 1,
	0x7ff0000000000000, /* infinity */
	0xfff0000000000000,
	0x7ff8000000000000, /* NaN */
	0x7ff0000000000001, /* signalling */
	0xfff8000000abcdef, /* a payload */
	0x8000000000000001, /* smallest negative double */
	0x3fb999999999999a, /* 0.1 */
	0x3ff0000000000000, /* 1.0 */
	0x4340000000000000, /* 2^53 */
	0x433fffffffffffff, /* 2^53 - 1 */
	0x4320000000000000, /* 2^51 */
	0x4320000000000001, /* 2^51 + 0.5 */
	0x7fefffffffffffff, /* largest double */
};

static void one_nasty_value_of_each_type(void **state)
{
	struct sheet *s = sheet_new(1, 3);
	(void)state;
	for (size_t n = 0; n < ARRAY_LEN(nasty); n++) {
		for (uint32_t c = 0; c < 3; c++) {
			s->bits[c][0] = nasty[n];
			s->types[c][0] = (uint8_t)(c + 1);
		}
		assert_true(assert_round_trip(s, 200) <= 3 * 13);
	}
	mem_free(s);
}

static void fill_column(struct random *random, struct sheet *s, uint32_t c)
{
	unsigned kind = (unsigned)random_below(random, 15);
	uint8_t type = (uint8_t)(1 + random_below(random, 3));
	unsigned gaps = random_below(random, 3) ? 0 : 1 + (unsigned)random_below(random, 99);
	unsigned shift = (unsigned)random_below(random, 64);
	uint64_t value = random_next(random) >> random_below(random, 64);
	double walk = 100 * random_unit(random);
	bool mixed = random_below(random, 6) == 0;
	for (uint32_t i = 0; i < s->rows; i++) {
		uint64_t bits = value, r = random_next(random);
		switch (kind) {
		case 0: /* constant */
			break;
		case 1:
			bits = r >> shift;
			break;
		case 2:
			bits = value += r >> shift;
			break;
		case 3:
			bits = value += (r >> 60) - 8;
			break;
		case 4: /* quadratic */
			bits = value + (uint64_t)i * i + (r >> 62);
			break;
		case 5:
			bits = nasty[r % ARRAY_LEN(nasty)];
			break;
		case 6: /* nearly constant */
			bits = value + (r % 100 == 0 ? r >> 8 : 0);
			break;
		case 7:
			bits = (r >> 58 << shift) + value;
			break;
		case 8: /* decimals, and what is none */
			walk += (double)(int64_t)(r % 1000) / 100 - 5;
			bits = r % 64 ? f64_bits(round(walk * 100) / 100) : nasty[r % 21];
			break;
		case 9:
			walk += (double)(int64_t)(r % 1000) / 1000 - 0.5;
			bits = f64_bits(walk);
			break;
		case 10: /* integers in doubles */
			bits = f64_bits((double)(int64_t)(r % 1000) - 500);
			break;
		case 11: /* small steps */
			bits = value +=
				(uint64_t)__builtin_popcountll(r & low_mask(shift)) - shift / 2;
			break;
		case 12: /* mostly none */
			bits = value += r % 20 ? 0 : r >> 60 & 3;
			break;
		case 13: /* about one rate, and resets */
			bits = value = r % 500 ? value + 5000 + (r >> 55) + (r & 127) : r >> 40;
			break;
		default: /* changes its nature half way */
			bits = i < s->rows / 2 ? 5 : r >> shift;
			break;
		}
		s->bits[c][i] = bits;
		s->types[c][i] = random_below(random, 100) < gaps ? VALUE_NONE : type;
		if (mixed && random_below(random, 10) == 0)
			s->types[c][i] = (uint8_t)random_below(random, 4);
	}
}

static void fill_times(struct random *random, struct sheet *s)
{
	unsigned kind = (unsigned)random_below(random, 6);
	uint64_t ts = (uint64_t)STORE_TS_MIN, step = 1 + random_below(random, 100000);
	if (random_below(random, 2))
		ts = 1451606400000 + random_below(random, 1000);
	for (uint32_t i = 0; i < s->rows; i++) {
		s->ts_ms[i] = (int64_t)ts;
		switch (kind) {
		case 0:
			ts += step;
			break;
		case 1: /* jitter that does not add up */
			s->ts_ms[i] = (int64_t)(ts + random_below(random, step));
			ts += step;
			break;
		case 2: /* jitter that does */
			ts += step + random_below(random, 50);
			break;
		case 3: /* gaps */
			ts += step * (random_below(random, 50) ? 1 : 7);
			break;
		case 4: /* whole seconds */
			ts += 1000 * (1 + random_below(random, 20));
			break;
		default: /* anything: 2^51 * 3000 rows reach over all times there are */
			ts += 1 + (random_next(random) >> 13 >> random_below(random, 50));
			break;
		}
	}
}

static void random_sheets_come_back_bit_for_bit(void **state)
{
	struct sheet *s = sheet_new(1, 1);
	struct random random;
	(void)state;
	for (uint64_t seed = 0; seed < 3000; seed++) {
		random_init(&random, seed);
		s->rows = 1 + (uint32_t)(random_next(&random) % ROWS >> random_below(&random, 12));
		s->columns = 1 + (uint32_t)random_below(&random, COLUMNS);
		for (uint32_t c = 0; c < s->columns; c++)
			fill_column(&random, s, c);
		fill_times(&random, s);
		s->dense = seed % 2;
		/* One row of 8 columns takes at most 8 * (2 + 9 + 10), the least room here. */
		size_t room = random_below(&random, 2) ? 4050 : 250 + random_below(&random, 9000);
		assert_round_trip(s, room);
	}
	mem_free(s);
}

static void the_ends_of_time(void **state)
{
	struct sheet *s = sheet_new(2, 1);
	(void)state;
	s->ts_ms[0] = STORE_TS_MIN;
	s->ts_ms[1] = STORE_TS_MAX;
	s->types[0][0] = s->types[0][1] = VALUE_I64;
	assert_round_trip(s, 100);
	s->rows = 3;
	s->types[0][2] = VALUE_I64;
	s->ts_ms[1] = 0;
	s->ts_ms[2] = STORE_TS_MAX;
	assert_round_trip(s, 100);
	s->ts_ms[1] = STORE_TS_MIN + 1;
	assert_round_trip(s, 100);
	s->ts_ms[1] = STORE_TS_MAX - 1;
	assert_round_trip(s, 100);
	mem_free(s);
}

static void differences_that_overflow(void **state)
{
	struct sheet *s = sheet_new(200, 3);
	(void)state;
	for (uint32_t i = 0; i < s->rows; i++) {
		s->bits[0][i] = i % 2 ? INT64_MAX : (uint64_t)INT64_MIN;
		s->bits[1][i] = i % 2 ? UINT64_MAX : 0;
		s->bits[2][i] = i % 3 ? f64_bits(INFINITY) : f64_bits(-INFINITY);
		for (uint32_t c = 0; c < 3; c++)
			s->types[c][i] = (uint8_t)(c == 0   ? VALUE_I64
						   : c == 1 ? VALUE_U64
							    : VALUE_F64);
	}
	assert_round_trip(s, 16000);
	mem_free(s);
}

static void types_that_alternate(void **state)
{
	struct sheet *s = sheet_new(1000, 2);
	(void)state;
	for (uint32_t i = 0; i < s->rows; i++) {
		s->bits[0][i] = i;
		s->types[0][i] = (uint8_t)(1 + i % 3);
		/* only from row 500 on: found out long after the codec was chosen */
		s->bits[1][i] = i;
		s->types[1][i] = (uint8_t)(i < 500 ? VALUE_I64 : 1 + i % 3);
	}
	assert_round_trip(s, 20000);
	mem_free(s);
}

static void all_absent_but_one(void **state)
{
	static const uint32_t at[] = {0, 1, 7, 8, 127, 128, 129, 500, 998, 999};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		struct sheet *s = sheet_new(1000, 2);
		s->bits[0][at[i]] = f64_bits(NAN);
		s->types[0][at[i]] = VALUE_F64;
		s->ts_ms[999] += 1; /* irregular */
		/* 125 bytes of presence, and little else */
		assert_true(assert_round_trip(s, 4000) <= 125 + 30);
		mem_free(s);
	}
}

static void sums_of_integers_are_exact(void **state)
{
	struct sheet *s = sheet_new(1000, 2);
	struct block_summary a, b;
	(void)state;
	for (uint32_t i = 0; i < s->rows; i++) {
		s->bits[0][i] = (UINT64_C(1) << 53) + (i == 500);
		s->bits[1][i] = i % 2 ? (uint64_t)INT64_MIN : INT64_MAX;
		s->types[0][i] = VALUE_U64;
		s->types[1][i] = VALUE_I64;
	}
	assert_round_trip(s, 4000);
	s->column[0] = (struct block_column){s->bits[0], NULL, VALUE_U64};
	s->column[1] = (struct block_column){s->bits[1], NULL, VALUE_I64};
	struct block_rows rows = {1000, 2, s->ts_ms, s->column};
	struct block block;
	assert_int_equal(block_encode(&rows, s->bytes, 4000, 1, &block), 1000);
	assert_int_equal(block_read_summary(&block, 0, &a), 0);
	assert_true(a.integers == ((__int128)1 << 53) * 1000 + 1);
	assert_int_equal(block_read_summary(&block, 1, &a), 0);
	assert_true(a.integers == -500);
	/* 2^53 + 1 and 2^53 as doubles would be 2^54; together they are one more */
	block_summarise(s->ts_ms, s->bits[0] + 500, NULL, VALUE_U64, 1, &a);
	block_summarise(s->ts_ms, s->bits[0], NULL, VALUE_U64, 1, &b);
	block_summary_merge(&a, &b);
	assert_true(a.integers == ((__int128)1 << 54) + 1);
	assert_int_equal(a.count, 2);
	mem_free(s);
}

static void merging_takes_ends_and_extremes(void **state)
{
	(void)state;
	struct block_summary a, b;
	const int64_t ts[] = {5, 6, 7};
	const uint64_t low[] = {f64_bits(3), f64_bits(NAN), f64_bits(2)};
	const uint64_t nans[] = {f64_bits(NAN), f64_bits(NAN), f64_bits(NAN)};
	block_summarise(ts, low, NULL, VALUE_F64, 3, &a);
	assert_true(value_equal(a.min, value_f64(2)) && value_equal(a.max, value_f64(3)));
	assert_true(isnan(a.sum) && a.count == 3);
	block_summarise(ts, nans, NULL, VALUE_F64, 3, &b);
	assert_true(b.min.type == VALUE_NONE && b.max.type == VALUE_NONE && b.count == 3);
	block_summary_merge(&b, &a);
	assert_true(value_equal(b.min, value_f64(2)) && value_equal(b.last, value_f64(2)));
	assert_int_equal(b.count, 6);
	block_summarise(ts, low, (const uint8_t[]){0, 0, 0}, VALUE_NONE, 3, &a);
	assert_int_equal(a.count, 0);
	block_summary_merge(&b, &a);
	assert_int_equal(b.count, 6);
	block_summary_merge(&a, &b);
	assert_int_equal(a.count, 6);
}

static void a_block_fills_its_room(void **state)
{
	struct sheet *s = sheet_new(ROWS, 4);
	struct random random;
	struct block block;
	(void)state;
	random_init(&random, 7);
	for (uint32_t c = 0; c < 4; c++) {
		for (uint32_t i = 0; i < ROWS; i++)
			s->bits[c][i] = random_below(&random, UINT64_C(1) << (3 + 7 * c));
		s->column[c].types = NULL;
		s->column[c].type = VALUE_U64;
	}
	/* 3 + 10 + 17 + 24 bits a row */
	struct block_rows rows = {ROWS, 4, s->ts_ms, s->column};
	for (size_t room = 600; room < 8000; room += 331) {
		uint32_t taken = block_encode(&rows, s->bytes, room, 1, &block);
		size_t used = block.times.len + block.body.len;
		assert_true(used <= room && used >= room - room / 100 - 8);
		assert_true(taken >= (room - 100) * 8 / 54 - 10 && taken <= room * 8 / 54);
	}
	mem_free(s);
}

static void too_little_room_takes_nothing(void **state)
{
	struct sheet *s = sheet_new(100, 1);
	struct random random;
	struct block block;
	(void)state;
	random_init(&random, 7);
	for (uint32_t i = 0; i < 100; i++)
		s->bits[0][i] = random_next(&random);
	s->column[0] = (struct block_column){s->bits[0], NULL, VALUE_U64};
	struct block_rows rows = {100, 1, s->ts_ms, s->column};
	for (size_t room = 0; room < 10; room++)
		assert_int_equal(block_encode(&rows, s->bytes, room, 1, &block), 0);
	/* about 40 rows of 8 bytes fit: enough for 30, not for 64 */
	assert_int_equal(block_encode(&rows, s->bytes, 330, 64, &block), 0);
	assert_in_range(block_encode(&rows, s->bytes, 330, 30, &block), 30, 41);
	/* fewer rows than asked for at least, but all there are */
	rows.rows = 20;
	assert_int_equal(block_encode(&rows, s->bytes, 330, 64, &block), 20);
	mem_free(s);
}

static void more_rows_than_a_block_holds(void **state)
{
	(void)state;
	enum { MANY = BLOCK_ROWS_MAX + 1000 };
	int64_t *ts = mem_alloc_array(MANY, 8);
	uint64_t *bits = mem_alloc_array(MANY, 8);
	uint8_t *types = mem_alloc(MANY), bytes[100];
	for (int64_t i = 0; i < MANY; i++) {
		ts[i] = i;
		bits[i] = 5;
	}
	struct block_column column = {bits, NULL, VALUE_I64};
	struct block_rows rows = {MANY, 1, ts, &column};
	struct block block;
	assert_int_equal(block_encode(&rows, bytes, 100, 1, &block), BLOCK_ROWS_MAX);
	assert_int_equal(block.body.len, 3);
	bits[16000] = 6;
	assert_int_equal(block_encode(&rows, bytes, 100, 1, &block), BLOCK_ROWS_MAX);
	assert_int_equal(block_decode_column(&block, 0, bits, types), 0);
	assert_true(bits[15999] == 5 && bits[16000] == 6 && bits[16001] == 5);
	mem_free(ts);
	mem_free(bits);
	mem_free(types);
}

/* ---- Garbage -------------------------------------------------------------------------------- */

static void decode_all(struct sheet *s, const struct block *block)
{
	struct block_summary summary;
	(void)!block_decode_times(block, s->ts_out);
	for (unsigned c = 0; c < block->meta.columns; c++) {
		(void)!block_decode_column(block, c, s->bits_out, s->types_out);
		(void)!block_read_summary(block, c, &summary);
	}
}

/* Under the address sanitizer an allocation of the exact length shows any read beyond it. */
static void decode_copy(struct sheet *s, struct block block, size_t times_len, size_t body_len)
{
	char *times = mem_alloc(times_len), *body = mem_alloc(body_len);
	memcpy(times, block.times.data, times_len);
	memcpy(body, block.body.data, body_len);
	block.times = (struct slice){times, times_len};
	block.body = (struct slice){body, body_len};
	decode_all(s, &block);
	mem_free(times);
	mem_free(body);
}

static void cut_and_changed_blocks_do_not_hurt(void **state)
{
	struct sheet *s = sheet_new(1, 1);
	struct random random;
	struct block block;
	(void)state;
	for (uint64_t seed = 0; seed < 150; seed++) {
		random_init(&random, 1000 + seed);
		s->rows = 1 + (uint32_t)random_below(&random, 300);
		s->columns = 1 + (uint32_t)random_below(&random, 3);
		for (uint32_t c = 0; c < s->columns; c++)
			fill_column(&random, s, c);
		fill_times(&random, s);
		struct block_rows rows = {s->rows, s->columns, s->ts_ms, s->column, seed % 2};
		assert_true(block_encode(&rows, s->bytes, 4000, 1, &block) > 0);
		for (size_t cut = 0; cut < block.body.len; cut += 1 + cut / 50)
			decode_copy(s, block, block.times.len, cut);
		for (size_t cut = 0; cut < block.times.len; cut += 1 + cut / 50)
			decode_copy(s, block, cut, block.body.len);
		for (size_t i = 0; i < 300; i++) {
			size_t at = random_below(&random, block.times.len + block.body.len);
			uint8_t kept = s->bytes[at];
			s->bytes[at] = (uint8_t)random_next(&random);
			decode_copy(s, block, block.times.len, block.body.len);
			s->bytes[at] = kept;
		}
	}
	mem_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_constant_is_head_and_anchor),
		cmocka_unit_test(every_codec_decodes_by_the_table),
		cmocka_unit_test(absent_and_mixed_values),
		cmocka_unit_test(exceptions_and_specials_are_put_back),
		cmocka_unit_test(entropy_coded_streams_by_hand),
		cmocka_unit_test(a_long_column_has_widths_and_a_summary),
		cmocka_unit_test(irregular_times_by_hand),
		cmocka_unit_test(what_the_format_forbids_is_damage),
		cmocka_unit_test(the_directory_must_fill_the_body),
		cmocka_unit_test(the_encoder_takes_the_fewest_bytes),
		cmocka_unit_test(one_nasty_value_of_each_type),
		cmocka_unit_test(random_sheets_come_back_bit_for_bit),
		cmocka_unit_test(the_ends_of_time),
		cmocka_unit_test(differences_that_overflow),
		cmocka_unit_test(types_that_alternate),
		cmocka_unit_test(all_absent_but_one),
		cmocka_unit_test(sums_of_integers_are_exact),
		cmocka_unit_test(merging_takes_ends_and_extremes),
		cmocka_unit_test(a_block_fills_its_room),
		cmocka_unit_test(too_little_room_takes_nothing),
		cmocka_unit_test(more_rows_than_a_block_holds),
		cmocka_unit_test(cut_and_changed_blocks_do_not_hurt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
