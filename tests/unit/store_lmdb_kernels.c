/* Packing worked by hand, and the plain loops beside those for AVX2 over all widths and counts. */
#include "store/lmdb/codec/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../tools/missing.h"

#include "base/mem.h"
#include "base/random.h"
#include "store/lmdb/codec/stream.h"

enum { COUNT_MAX = 300 };

static void packs_low_bits_first(void **state)
{
	(void)state;
	const uint64_t values[] = {1, 2, 3, 4, 5, 6, 7, 0, 1, 0xff};
	uint8_t bytes[8] = {0};
	/* 3 bits each: 001 010 011 100 101 110 111 000 from the low end, then 001 111 */
	kernels->pack(values, 10, 3, bytes);
	assert_memory_equal(bytes, "\xd1\x58\x1f\x39\0\0\0\0", 8);
	uint64_t got[10];
	kernels->unpack(bytes, bytes + 4, 10, 3, got);
	assert_int_equal(got[0], 1);
	assert_int_equal(got[6], 7);
	assert_int_equal(got[9], 7);
	kernels->pack(values, 1, 64, bytes);
	assert_memory_equal(bytes, "\1\0\0\0\0\0\0\0", 8);
	kernels->pack((const uint64_t[]){UINT64_MAX, 0}, 2, 13, bytes);
	assert_memory_equal(bytes, "\xff\x1f\0\0", 4);
}

static void every_width_and_count_comes_back(void **state)
{
	struct random random;
	uint64_t values[COUNT_MAX], plain[COUNT_MAX], fast[COUNT_MAX];
	const struct kernels *avx2 = kernels_avx2();
	(void)state;
	if (!avx2)
		missing("this machine has no AVX2");
	random_init(&random, 1);
	for (unsigned width = 0; width <= 64; width++) {
		for (size_t count = 0; count < COUNT_MAX; count += 1 + count / 40) {
			size_t len = packed_bytes(count, width);
			/* Of the exact length, so that a sanitizer sees a step outside. */
			uint8_t *a = mem_alloc(len), *b = mem_alloc(len);
			for (size_t i = 0; i < count; i++)
				values[i] = random_next(&random);
			kernels_plain.pack(values, count, width, a);
			avx2->pack(values, count, width, b);
			assert_true(len == 0 || memcmp(a, b, len) == 0);
			kernels_plain.unpack(a, a + len, count, width, plain);
			avx2->unpack(a, a + len, count, width, fast);
			for (size_t i = 0; i < count; i++) {
				assert_int_equal(plain[i], values[i] & low_mask(width));
				assert_int_equal(fast[i], plain[i]);
			}
			mem_free(a);
			mem_free(b);
		}
	}
}

static void residuals_become_the_patterns_again(void **state)
{
	struct random random;
	uint64_t v[COUNT_MAX], r[2][COUNT_MAX], back[2][COUNT_MAX];
	const struct kernels *both[] = {&kernels_plain, kernels_avx2()};
	(void)state;
	if (!both[1])
		missing("this machine has no AVX2");
	random_init(&random, 2);
	for (int round = 0; round < 4000; round++) {
		struct pattern_codec codec = {
			(uint8_t)(CODEC_FOR + random_below(&random, 5)),
			(uint8_t)(random_below(&random, 3) ? 0 : random_below(&random, 64)),
			random_next(&random), random_next(&random) >> random_below(&random, 64)};
		size_t count = 1 + random_below(&random, 128);
		unsigned width = (unsigned)random_below(&random, 65), top = 0;
		uint8_t packed[8 * 128];
		struct pattern_carry start = pattern_begin(&codec);
		for (size_t i = 0; i < count; i++)
			v[i] = random_next(&random) & low_mask(width);
		/* Random residuals give patterns that have them. */
		struct pattern_carry carry = start;
		pattern_from_residuals(&codec, &carry, v, count);
		for (int k = 0; k < 2; k++) {
			uint16_t histogram[65] = {0}, sum = 0;
			carry = start;
			assert_int_equal(both[k]->to_residuals(&codec, &carry, v, count, r[k]), 0);
			top = both[k]->count_widths(r[k], count, histogram);
			for (unsigned w = 0; w <= 64; w++) {
				uint16_t expected = 0;
				for (size_t i = 0; i < count; i++)
					expected = (uint16_t)(expected + (bit_width(r[k][i]) == w));
				assert_int_equal(histogram[w], expected);
				sum = (uint16_t)(sum + expected);
				assert_true(w <= top || !expected);
			}
			assert_int_equal(sum, count);
			both[k]->pack(r[k], count, top, packed);
			carry = start;
			both[k]->unpack_patterns(&codec, &carry, packed,
						 packed + packed_bytes(count, top), count, top,
						 back[k]);
			assert_memory_equal(back[k], v, count * 8);
			if (codec.codec != CODEC_FOR)
				assert_int_equal(carry.value, v[count - 1]);
		}
		assert_memory_equal(r[0], r[1], count * 8);
	}
}

static unsigned symbol_at(const uint8_t *pairs, size_t i)
{
	return i % 2 ? pairs[i / 2] >> 4 : pairs[i / 2] & 15;
}

static void assert_sums(const uint8_t *pairs, size_t from, size_t count, bool zigzag)
{
	const struct kernels *both[] = {&kernels_plain, kernels_avx2()};
	int64_t sum = 0, first = 0, least = INT64_MAX, greatest = INT64_MIN, total = 0;
	for (size_t i = 0; i < count; i++) {
		int64_t symbol = symbol_at(pairs, from + i);
		sum += !zigzag ? symbol : symbol % 2 ? -(symbol / 2) - 1 : symbol / 2;
		first = i ? first : sum;
		least = sum < least ? sum : least;
		greatest = sum > greatest ? sum : greatest;
		total += sum;
	}
	for (int k = 0; k < 2 && both[k]; k++) {
		struct symbol_sums got;
		both[k]->sum_symbols(pairs, from, count, zigzag, &got);
		assert_int_equal(got.first, first);
		assert_int_equal(got.last, sum);
		assert_int_equal(got.least, least);
		assert_int_equal(got.greatest, greatest);
		assert_int_equal(got.total, total);
	}
}

/* Steady ones, so that sums grow as far as they can, and any; of every short length, and about the
 * length that 16 bits hold the sums of; from the first of a pair and from the second. */
static void sums_of_symbols_by_definition(void **state)
{
	enum { MOST = 6200 };
	static const size_t lengths[] = {2047, 2048, 2049, 2050, 4096, 4097, MOST};
	struct random random;
	(void)state;
	random_init(&random, 5);
	for (unsigned kind = 0; kind < 20; kind++) {
		for (size_t i = 1; i < 200 + ARRAY_LEN(lengths); i++) {
			size_t count = i < 200 ? i : lengths[i - 200];
			for (size_t from = 0; from < 2; from++) {
				size_t bytes = (from + count + 1) / 2;
				uint8_t *pairs = mem_alloc(bytes + ENTROPY_SLACK);
				memset(pairs, 0xff, bytes + ENTROPY_SLACK);
				for (size_t k = 0; k < bytes; k++)
					pairs[k] =
						(uint8_t)(kind < 16 ? 17 * kind
								    : random_below(&random, 256));
				assert_sums(pairs, from, count, true);
				assert_sums(pairs, from, count, false);
				mem_free(pairs);
			}
		}
	}
}

static void ranges_by_definition(void **state)
{
	struct random random;
	uint64_t v[COUNT_MAX];
	const struct kernels *both[] = {&kernels_plain, kernels_avx2()};
	(void)state;
	random_init(&random, 3);
	for (int round = 0; round < 4000; round++) {
		uint64_t flip = random_below(&random, 2) << 63, low = UINT64_MAX, high = 0;
		size_t count = 1 + random_below(&random, COUNT_MAX - 1);
		unsigned shift = (unsigned)random_below(&random, 64);
		__int128 total = 0;
		for (size_t i = 0; i < count; i++) {
			v[i] = random_next(&random) >> shift;
			uint64_t ordered = v[i] ^ flip;
			low = ordered < low ? ordered : low;
			high = ordered > high ? ordered : high;
			total += ordered;
		}
		for (int k = 0; k < 2 && both[k]; k++) {
			struct pattern_range range = {.low = UINT64_MAX};
			both[k]->add_range(&range, v[0], flip, v, count / 2);
			both[k]->add_range(&range, v[0], flip, v + count / 2, count - count / 2);
			assert_true(range.low == low && range.high == high);
			assert_true(range.total == total);
			assert_true((range.varies == 0) == (low == high));
		}
	}
}

static void decimals_are_exact_or_refused(void **state)
{
	const struct kernels *both[] = {&kernels_plain, kernels_avx2()};
	const double no_decimals[] = {-0.0,   NAN,    INFINITY,     -INFINITY,
				      1e-300, 5e-324, 0x1p51 + 0.5, 1.0 / 3};
	uint64_t bits[40], m[40];
	(void)state;
	for (int k = 0; k < 2 && both[k]; k++) {
		for (size_t bad = 0; bad < 40; bad++) {
			for (size_t i = 0; i < 40; i++)
				bits[i] = decimal_bits((double)((int64_t)i * 7 - 100) / 100);
			bits[bad] = decimal_bits(no_decimals[bad % ARRAY_LEN(no_decimals)]);
			assert_int_equal(both[k]->decimals_from_bits(bits, 40, 2, m), bad);
			for (size_t i = 0; i < bad; i++)
				assert_int_equal((int64_t)m[i], (int64_t)i * 7 - 100);
			both[k]->decimals_to_bits(m, bad, 2);
			assert_memory_equal(m, bits, bad * 8);
		}
		/* 0.07 * 100 is 7.000000000000001: rounded to 7, whose quotient it is */
		bits[0] = decimal_bits(0.07);
		assert_int_equal(both[k]->decimals_from_bits(bits, 1, 2, m), 1);
		assert_int_equal(m[0], 7);
		/* the last that fits, and the first that does not */
		bits[0] = decimal_bits(0x1p51);
		assert_int_equal(both[k]->decimals_from_bits(bits, 1, 0, m), 1);
		assert_int_equal(m[0], INT64_C(1) << 51);
		bits[0] = decimal_bits(-0x1p51);
		assert_int_equal(both[k]->decimals_from_bits(bits, 1, 0, m), 1);
		both[k]->decimals_to_bits(m, 1, 0);
		assert_int_equal(m[0], bits[0]);
		bits[0] = decimal_bits(0x1p51 + 1);
		assert_int_equal(both[k]->decimals_from_bits(bits, 1, 0, m), 0);
	}
}

/* A prefix code: its codes fill all of the room that there is, and none begins another. */
static void codes_are_complete(void **state)
{
	(void)state;
	for (unsigned table = 0; table < ENTROPY_TABLES; table++) {
		const struct entropy_code *code = entropy_code(table);
		uint64_t filled = 0;
		for (unsigned w = 0; w < ENTROPY_WORDS; w++) {
			assert_in_range(code->lengths[w], 1, ENTROPY_CODE_BITS_MAX);
			filled += UINT64_C(1) << (ENTROPY_CODE_BITS_MAX - code->lengths[w]);
			for (unsigned x = 0; x < w; x++) {
				unsigned least = code->lengths[w] < code->lengths[x]
							 ? code->lengths[w]
							 : code->lengths[x];
				assert_true((code->codes[w] ^ code->codes[x]) & low_mask(least));
			}
		}
		assert_int_equal(filled, UINT64_C(1) << ENTROPY_CODE_BITS_MAX);
	}
}

/* Any bytes are words: both read the same ones, and stay inside. */
static void words_are_read_alike(void **state)
{
	enum { BYTES = 300, LANES = ENTROPY_LANES };
	struct random random;
	const struct kernels *both[] = {&kernels_plain, kernels_avx2()};
	(void)state;
	if (!both[1])
		missing("this machine has no AVX2");
	random_init(&random, 4);
	for (unsigned round = 0; round < 20 * ENTROPY_TABLES; round++) {
		const struct entropy_code *code = entropy_code(round % ENTROPY_TABLES);
		size_t bytes = 8 + random_below(&random, BYTES), room[LANES];
		uint8_t *from = mem_alloc(bytes), *words[2][LANES];
		struct word_lane lanes[2][LANES], one;
		for (size_t i = 0; i < bytes; i++)
			from[i] = (uint8_t)(random_next(&random) & random_next(&random));
		for (unsigned i = 0; i < LANES; i++) {
			room[i] = random_below(&random, 500);
			/* Eight bytes can be loaded at every bit up to the end. */
			size_t end = random_below(&random, bytes * 8 - 63);
			size_t bit = random_below(&random, end + 1);
			for (int k = 0; k < 2; k++) {
				uint8_t *to = words[k][i] = mem_alloc(room[i] + ENTROPY_SLACK);
				lanes[k][i] = (struct word_lane){bit, end, to, to + room[i]};
			}
		}
		for (int k = 0; k < 2; k++)
			both[k]->read_lanes(code, from, lanes[k]);
		for (unsigned i = 0; i < LANES; i++) {
			size_t read = (size_t)(lanes[0][i].to - words[0][i]);
			one = lanes[0][i];
			kernels_plain.read_words(code, from, &lanes[0][i]);
			both[1]->read_words(code, from, &lanes[1][i]);
			size_t done = (size_t)(lanes[0][i].to - words[0][i]);
			assert_true(one.bit <= one.end && read <= done && done <= room[i]);
			assert_int_equal(lanes[0][i].bit, lanes[1][i].bit);
			assert_true(lanes[0][i].bit <= one.end);
			assert_int_equal(lanes[1][i].to - words[1][i], done);
			assert_true(!done || memcmp(words[0][i], words[1][i], done) == 0);
			mem_free(words[0][i]);
			mem_free(words[1][i]);
		}
		mem_free(from);
	}
}

/* Word after word, bit after bit, as the document has it: the bit behind the last, or 0 when there
 * are too few. */
static size_t read_slowly(const struct entropy_code *code, const uint8_t *from, size_t bits,
			  size_t words, uint8_t *symbols)
{
	size_t at = 0;
	for (size_t i = 0; i < words; i++) {
		unsigned w = 0, j = 0;
		for (; w < ENTROPY_WORDS; w++) {
			for (j = 0; j < code->lengths[w] && at + j < bits; j++) {
				if ((from[(at + j) / 8] >> (at + j) % 8 & 1) !=
				    (code->codes[w] >> j & 1))
					break;
			}
			if (j == code->lengths[w])
				break;
		}
		if (w == ENTROPY_WORDS)
			return 0;
		at += j;
		for (unsigned s = 0; s < code->symbols_per_word; s++)
			*symbols++ = (uint8_t)(w >> s * code->bits_per_symbol &
					       ((1u << code->bits_per_symbol) - 1));
	}
	return at;
}

static bool all_zero(const uint8_t *from, size_t bit, size_t bits)
{
	for (; bit < bits; bit++) {
		if (from[bit / 8] >> bit % 8 & 1)
			return false;
	}
	return true;
}

enum { STREAM_WORDS = 700 };

/* As many symbols, from as many bytes: what they are, or that they are none. */
static void assert_stream(unsigned table, const uint8_t *stream, size_t bytes, uint32_t count)
{
	const struct entropy_code *code = entropy_code(table);
	uint32_t per_word = code->symbols_per_word, words = (count + per_word - 1) / per_word;
	uint8_t expected[4 * STREAM_WORDS + 16], *from = mem_alloc(bytes);
	uint8_t *got = mem_alloc((count + 1) / 2 + ENTROPY_SLACK);
	memcpy(from, stream, bytes);
	size_t end = read_slowly(code, from, bytes * 8, words, expected);
	bool sound = end && bytes * 8 - end < 8 && all_zero(from, end, bytes * 8);
	for (uint32_t i = count; i < words * per_word; i++)
		sound = sound && !expected[i];
	for (int k = 0; k < 2; k++) {
		kernels = k || !kernels_avx2() ? &kernels_plain : kernels_avx2();
		int err = entropy_read_pairs(cursor_of(from, bytes), table, count, got);
		assert_int_equal(err, sound ? 0 : ERR_DAMAGED);
		for (uint32_t i = 0; i < count && !err; i++)
			assert_int_equal(symbol_at(got, i), expected[i]);
	}
	mem_free(from);
	mem_free(got);
}

/* Streams of any bits, cut behind some word, and what differs from them by a byte, a bit or some
 * symbols. Sparse bits are mostly words of one length, in which who begins elsewhere is never in
 * step. */
static void streams_are_words_one_after_another(void **state)
{
	const struct kernels *fastest = kernels;
	struct random random;
	(void)state;
	random_init(&random, 6);
	for (unsigned round = 0; round < 12 * ENTROPY_TABLES; round++) {
		unsigned table = round % ENTROPY_TABLES;
		const struct entropy_code *code = entropy_code(table);
		uint32_t words = (uint32_t)(1 + random_below(&random, STREAM_WORDS - 1));
		uint8_t from[3 * STREAM_WORDS + 8], symbols[4 * STREAM_WORDS];
		uint64_t sparse = random_below(&random, 3);
		for (size_t i = 0; i < sizeof(from); i++) {
			from[i] = (uint8_t)random_next(&random);
			if (sparse && random_below(&random, 100) >= sparse - 1)
				from[i] = 0;
		}
		size_t end = read_slowly(code, from, sizeof(from) * 8, words, symbols);
		size_t bytes = (end + 7) / 8;
		assert_true(end > 0);
		if (end % 8)
			from[end / 8] &= (uint8_t)low_mask(end % 8);
		uint32_t count = words * code->symbols_per_word;
		for (uint32_t less = 0; less < 6 && less < count; less++)
			assert_stream(table, from, bytes, count - less);
		assert_stream(table, from, bytes, count + code->symbols_per_word);
		assert_stream(table, from, bytes - 1, count);
		assert_stream(table, from, bytes + 1, count);
		for (int i = 0; i < 4; i++) {
			from[random_below(&random, bytes)] ^=
				(uint8_t)(1 << random_below(&random, 8));
			assert_stream(table, from, bytes, count);
		}
	}
	kernels = fastest;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs_low_bits_first),
		cmocka_unit_test(every_width_and_count_comes_back),
		cmocka_unit_test(residuals_become_the_patterns_again),
		cmocka_unit_test(sums_of_symbols_by_definition),
		cmocka_unit_test(ranges_by_definition),
		cmocka_unit_test(decimals_are_exact_or_refused),
		cmocka_unit_test(codes_are_complete),
		cmocka_unit_test(words_are_read_alike),
		cmocka_unit_test(streams_are_words_one_after_another),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
