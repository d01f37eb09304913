/* Folds beside sums, minima and maxima taken by their definition from the values themselves. */
#include "store/lmdb/codec/column_sums.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "store/lmdb/codec/stream.h"

enum { ROWS = 6000, ROOM = 1 << 18 };

struct fixture {
	int64_t ts_ms[ROWS];
	uint64_t bits[ROWS];
	uint8_t bytes[ROOM];
	struct block block;
	struct column column;
	struct fold fold;
	uint64_t patterns[ROWS];
	uint8_t pairs[ROWS / 2 + ENTROPY_SLACK];
};

static int setup(void **state)
{
	struct fixture *f = mem_zalloc(sizeof(*f));
	for (size_t i = 0; i < ROWS; i++)
		f->ts_ms[i] = 1000 * (int64_t)i;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	mem_free(*state);
	return 0;
}

static void encode(struct fixture *f, enum value_type type)
{
	struct block_column column = {.bits = f->bits, .type = type};
	struct block_rows rows = {ROWS, 1, f->ts_ms, &column, true};
	assert_int_equal(block_encode(&rows, f->bytes, ROOM, 1, &f->block), ROWS);
	assert_int_equal(block_open_column(&f->block, 0, &f->column), 0);
}

static __int128 integer(uint64_t bits, enum value_type type)
{
	return type == VALUE_I64 ? (__int128)(int64_t)bits : (__int128)bits;
}

/* Integers in ranges of `width` rows, the first `skipped` left out. */
static void assert_ranges(struct fixture *f, enum value_type type, uint32_t width, uint32_t skipped)
{
	assert_true(fold_suits(&f->column));
	assert_int_equal(fold_begin(&f->fold, &f->column, f->patterns, f->pairs), 0);
	fold_skip(&f->fold, skipped);
	for (uint32_t from = skipped; from < ROWS; from += width) {
		uint32_t to = from + width < ROWS ? from + width : ROWS;
		struct value low = {f->bits[from], type}, high = low;
		__int128 sum = 0;
		for (uint32_t i = from; i < to; i++) {
			struct value v = {f->bits[i], type};
			low = value_compare(v, low) < 0 ? v : low;
			high = value_compare(v, high) > 0 ? v : high;
			sum += integer(v.bits, type);
		}
		struct block_summary s;
		fold_next(&f->fold, to - from, &s);
		assert_int_equal(s.count, to - from);
		assert_true(s.first.bits == f->bits[from] && s.first.type == type);
		assert_true(s.last.bits == f->bits[to - 1] && s.last.type == type);
		assert_true(s.min.bits == low.bits && s.min.type == type);
		assert_true(s.max.bits == high.bits && s.max.type == type);
		assert_true(s.integers == sum && s.doubles == 0 && s.sum == (double)sum);
	}
}

static void assert_all_ranges(struct fixture *f, enum value_type type)
{
	static const uint32_t widths[] = {1,  2,  15, 16,  17,   30,   31,
					  32, 33, 64, 360, 2047, 2049, ROWS};
	for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
		assert_ranges(f, type, widths[i], 0);
		assert_ranges(f, type, widths[i], 5);
		assert_ranges(f, type, widths[i], 2100);
	}
}

/* A walk in steps of -2 .. 2 times `unit`. */
static void walk(struct fixture *f, uint64_t begin, uint64_t unit)
{
	struct random random;
	random_init(&random, 7);
	for (size_t i = 0; i < ROWS; i++) {
		f->bits[i] = begin;
		begin += (random_below(&random, 5) - 2) * unit;
	}
}

static void small_steps_are_summed_as_symbols(void **state)
{
	struct fixture *f = *state;
	walk(f, 1000000, 1);
	encode(f, VALUE_I64);
	assert_all_ranges(f, VALUE_I64);
	assert_non_null(f->fold.pairs);
	encode(f, VALUE_U64);
	assert_all_ranges(f, VALUE_U64);
	assert_non_null(f->fold.pairs);
	walk(f, 0, 4096); /* about zero, in multiples */
	encode(f, VALUE_I64);
	assert_all_ranges(f, VALUE_I64);
	assert_non_null(f->fold.pairs);
}

static void upward_steps_are_summed_as_symbols(void **state)
{
	struct fixture *f = *state;
	struct random random;
	random_init(&random, 8);
	uint64_t value = 5;
	for (size_t i = 0; i < ROWS; i++) {
		f->bits[i] = value;
		value += random_below(&random, 16) & random_below(&random, 16);
	}
	encode(f, VALUE_U64);
	assert_int_equal(f->column.codec.codec, CODEC_DELTA_UP);
	assert_all_ranges(f, VALUE_U64);
	assert_non_null(f->fold.pairs);
}

/* A step over the end of the type is a small difference, but the greatest value is not the one with
 * the greatest sum. */
static void values_that_wrap_are_not(void **state)
{
	struct fixture *f = *state;
	walk(f, INT64_MAX, 1);
	encode(f, VALUE_I64);
	assert_all_ranges(f, VALUE_I64);
	assert_null(f->fold.pairs);
	walk(f, 0, 1);
	encode(f, VALUE_U64);
	assert_all_ranges(f, VALUE_U64);
	assert_null(f->fold.pairs);
}

/* Near the end, yet never over it. */
static void values_near_an_end_are(void **state)
{
	struct fixture *f = *state;
	uint64_t least = UINT64_MAX;
	walk(f, 1 << 20, 1);
	for (size_t i = 0; i < ROWS; i++)
		least = f->bits[i] < least ? f->bits[i] : least;
	for (size_t i = 0; i < ROWS; i++)
		f->bits[i] -= least;
	encode(f, VALUE_U64);
	assert_all_ranges(f, VALUE_U64);
	assert_non_null(f->fold.pairs);
}

static void other_codecs_are_summed_as_patterns(void **state)
{
	struct fixture *f = *state;
	struct random random;
	random_init(&random, 9);
	for (size_t i = 0; i < ROWS; i++)
		f->bits[i] = random_next(&random) >> 8;
	encode(f, VALUE_U64);
	assert_all_ranges(f, VALUE_U64);
	assert_null(f->fold.pairs);
	for (size_t i = 0; i < ROWS; i++)
		f->bits[i] = UINT64_C(0) - 77;
	encode(f, VALUE_I64);
	assert_int_equal(f->column.codec_number, CODEC_CONSTANT);
	assert_all_ranges(f, VALUE_I64);
}

/* 0.25 * n is exact: so are the sums. */
static void decimals_are_summed_exactly(void **state)
{
	struct fixture *f = *state;
	walk(f, 4000, 1);
	for (size_t i = 0; i < ROWS; i++)
		f->bits[i] = value_f64((double)f->bits[i] / 4).bits;
	encode(f, VALUE_F64);
	assert_true(fold_suits(&f->column));
	assert_int_equal(fold_begin(&f->fold, &f->column, f->patterns, f->pairs), 0);
	for (uint32_t from = 0; from < ROWS; from += 100) {
		double sum = 0, low = 1e9, high = -1e9;
		for (uint32_t i = from; i < from + 100; i++) {
			double d = value_as_f64((struct value){f->bits[i], VALUE_F64});
			sum += d;
			low = d < low ? d : low;
			high = d > high ? d : high;
		}
		struct block_summary s;
		fold_next(&f->fold, 100, &s);
		assert_true(s.sum == sum && s.doubles == sum && s.integers == 0);
		assert_true(s.min.bits == value_f64(low).bits && s.min.type == VALUE_F64);
		assert_true(s.max.bits == value_f64(high).bits && s.max.type == VALUE_F64);
		assert_true(s.first.bits == f->bits[from] && s.last.bits == f->bits[from + 99]);
	}
}

static void what_is_not_an_integer_is_not_folded(void **state)
{
	struct fixture *f = *state;
	struct random random;
	random_init(&random, 10);
	for (size_t i = 0; i < ROWS; i++)
		f->bits[i] = value_f64(random_unit(&random)).bits;
	encode(f, VALUE_F64);
	assert_false(fold_suits(&f->column));
	walk(f, 4000, 1);
	for (size_t i = 0; i < ROWS; i++)
		f->bits[i] = value_f64((double)f->bits[i] / 4).bits;
	f->bits[4000] = value_f64(0.0 / 0.0).bits; /* a special among decimals */
	encode(f, VALUE_F64);
	assert_false(fold_suits(&f->column));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_steps_are_summed_as_symbols),
		cmocka_unit_test(upward_steps_are_summed_as_symbols),
		cmocka_unit_test(values_that_wrap_are_not),
		cmocka_unit_test(values_near_an_end_are),
		cmocka_unit_test(other_codecs_are_summed_as_patterns),
		cmocka_unit_test(decimals_are_summed_exactly),
		cmocka_unit_test(what_is_not_an_integer_is_not_folded),
	};
	return cmocka_run_group_tests_name("fold", tests, setup, teardown);
}
