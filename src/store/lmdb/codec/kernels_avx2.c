#include "store/lmdb/codec/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "store/lmdb/codec/stream.h"

#define TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#include "store/lmdb/codec/kernels_loops.h"

/* ---- Unpacking ------------------------------------------------------------------------------ */

/* Eight values of up to 25 bits become eight lanes of 32: values 0-3 begin at the group's first
 * byte and 4-7 at its byte width / 2; in each half every value lies within four bytes, which a
 * shuffle brings into its lane and a shift puts in place. */
enum { LANE_WIDTH_MAX = 25 };

struct lanes {
	uint8_t shuffle[32];
	uint32_t shift[8];
};

static struct lanes lanes_by_width[LANE_WIDTH_MAX + 1];

static void make_lanes(void)
{
	for (unsigned width = 1; width <= LANE_WIDTH_MAX; width++) {
		struct lanes *lanes = &lanes_by_width[width];
		for (unsigned j = 0; j < 8; j++) {
			unsigned bit = j < 4 ? j * width : 4 * width % 8 + (j - 4) * width;
			for (unsigned b = 0; b < 4; b++)
				lanes->shuffle[4 * j + b] = (uint8_t)(bit / 8 + b);
			lanes->shift[j] = bit % 8;
		}
	}
}

struct unpacker {
	__m256i shuffle, shift, mask;
	unsigned width;
};

TARGET static inline struct unpacker unpacker_of(unsigned width)
{
	const struct lanes *lanes = &lanes_by_width[width];
	return (struct unpacker){
		_mm256_loadu_si256((const __m256i *)lanes->shuffle),
		_mm256_loadu_si256((const __m256i *)lanes->shift),
		_mm256_set1_epi32((int)low_mask(width)),
		width,
	};
}

/* Reads 16 bytes at `from` and at width / 2 after. */
TARGET static inline __m256i unpack_group(const struct unpacker *u, const uint8_t *from)
{
	__m128i low = _mm_loadu_si128((const __m128i *)from);
	__m128i high = _mm_loadu_si128((const __m128i *)(from + u->width / 2));
	__m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
	both = _mm256_shuffle_epi8(both, u->shuffle);
	return _mm256_and_si256(_mm256_srlv_epi32(both, u->shift), u->mask);
}

/* What becomes of residuals: out = carry + ramp + (prefix sum or residual) * 2^shift, 64 bits. */
struct adder {
	bool sum, zigzag;
	__m128i shift;
	__m256i carry, ramp_low, ramp_high;
};

TARGET static inline __m256i prefix_sum(__m256i x)
{
	x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4));
	x = _mm256_add_epi32(x, _mm256_slli_si256(x, 8));
	/* The sum of the low half, into every lane of the high one. */
	__m256i low = _mm256_shuffle_epi32(_mm256_permute2x128_si256(x, x, 0x08), 0xff);
	return _mm256_add_epi32(x, low);
}

TARGET static inline __m256i unzigzag(__m256i x)
{
	__m256i one = _mm256_set1_epi32(1);
	__m256i sign = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_and_si256(x, one));
	return _mm256_xor_si256(_mm256_srli_epi32(x, 1), sign);
}

TARGET static inline __attribute__((always_inline)) void
add_groups(const struct unpacker *unpacker, struct adder *a, const uint8_t *from, size_t groups,
	   bool sum, bool zigzag, uint64_t *values)
{
	__m256i carry = a->carry;
	for (; groups; groups--, from += unpacker->width, values += 8) {
		/* Sums of eight values of 25 bits stay within 32. */
		__m256i x = unpack_group(unpacker, from);
		if (zigzag)
			x = unzigzag(x);
		if (sum)
			x = prefix_sum(x);
		__m256i low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(x));
		__m256i high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256(x, 1));
		low = _mm256_add_epi64(_mm256_sll_epi64(low, a->shift), a->ramp_low);
		high = _mm256_add_epi64(_mm256_sll_epi64(high, a->shift), a->ramp_high);
		low = _mm256_add_epi64(low, carry);
		high = _mm256_add_epi64(high, carry);
		_mm256_storeu_si256((__m256i *)values, low);
		_mm256_storeu_si256((__m256i *)(values + 4), high);
		if (sum)
			carry = _mm256_permute4x64_epi64(high, 0xff);
	}
	a->carry = carry;
}

TARGET static void avx2_add_any(const struct unpacker *unpacker, struct adder *a,
				const uint8_t *from, size_t groups, uint64_t *values)
{
	if (!a->sum)
		add_groups(unpacker, a, from, groups, false, false, values);
	else if (a->zigzag)
		add_groups(unpacker, a, from, groups, true, true, values);
	else
		add_groups(unpacker, a, from, groups, true, false, values);
}

/* The last groups of a slice are read out of a copy, since loads reach beyond them. */
enum { COPY_BYTES = 16 + 2 * LANE_WIDTH_MAX + 32, COPY_VALUES = (16 + 1 + 2) * 8 };

TARGET static void unpack_lanes(struct adder *a, const uint8_t *from, const uint8_t *end,
				size_t count, unsigned width, uint64_t *values)
{
	struct unpacker unpacker = unpacker_of(width);
	size_t readable = (size_t)(end - from), groups = count / 8, reach = 16 + width / 2;
	size_t safe = readable < reach ? 0 : (readable - reach) / width + 1;
	if (groups > safe)
		groups = safe;
	avx2_add_any(&unpacker, a, from, groups, values);
	size_t done = groups * 8, left = count - done;
	if (!left)
		return;
	uint8_t copy[COPY_BYTES] = {0};
	uint64_t rest[COPY_VALUES];
	ASSERT(left <= COPY_VALUES - 7 && packed_bytes(left, width) <= COPY_BYTES - 32);
	memcpy(copy, from + groups * width, packed_bytes(left, width));
	avx2_add_any(&unpacker, a, copy, (left + 7) / 8, rest);
	memcpy(values + done, rest, left * sizeof(*rest));
}

TARGET static void avx2_unpack(const uint8_t *from, const uint8_t *end, size_t count,
			       unsigned width, uint64_t *values)
{
	if (width == 0 || width > LANE_WIDTH_MAX) {
		kernels_plain.unpack(from, end, count, width, values);
		return;
	}
	__m256i zero = _mm256_setzero_si256();
	struct adder a = {false, false, _mm_setzero_si128(), zero, zero, zero};
	unpack_lanes(&a, from, end, count, width, values);
}

TARGET static struct adder adder_of(const struct pattern_codec *codec,
				    const struct pattern_carry *carry)
{
	bool up = codec->codec == CODEC_DELTA_UP;
	uint64_t step = up ? codec->parameter << codec->shift : 0;
	uint64_t base = codec->codec == CODEC_FOR ? codec->anchor : carry->value;
	return (struct adder){
		.sum = codec->codec != CODEC_FOR,
		.zigzag = codec->codec == CODEC_DELTA,
		.shift = _mm_cvtsi32_si128(codec->shift),
		.carry = _mm256_set1_epi64x((int64_t)base),
		.ramp_low = _mm256_setr_epi64x((int64_t)step, (int64_t)(2 * step),
					       (int64_t)(3 * step), (int64_t)(4 * step)),
		.ramp_high = _mm256_setr_epi64x((int64_t)(5 * step), (int64_t)(6 * step),
						(int64_t)(7 * step), (int64_t)(8 * step)),
	};
}

TARGET static void avx2_unpack_patterns(const struct pattern_codec *codec,
					struct pattern_carry *carry, const uint8_t *from,
					const uint8_t *end, size_t count, unsigned width,
					uint64_t *values)
{
	bool adds = codec->codec == CODEC_FOR || codec->codec == CODEC_DELTA ||
		    codec->codec == CODEC_DELTA_UP;
	if (!adds || width == 0 || width > LANE_WIDTH_MAX || !count) {
		avx2_unpack(from, end, count, width, values);
		pattern_from_residuals(codec, carry, values, count);
		return;
	}
	struct adder a = adder_of(codec, carry);
	unpack_lanes(&a, from, end, count, width, values);
	if (codec->codec != CODEC_FOR)
		carry->value = values[count - 1];
}

/* ---- Packing -------------------------------------------------------------------------------- */

/* The low bytes of eight values, side by side; the values are below 256. */
TARGET static inline uint64_t eight_bytes(__m256i a, __m256i b)
{
	__m256i even = _mm256_castps_si256(
		_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
	/* a0 a1 b0 b1 | a2 a3 b2 b3, 32 bits each */
	__m256i in_order = _mm256_permute4x64_epi64(even, 0xd8);
	__m128i words = _mm_packus_epi32(_mm256_castsi256_si128(in_order),
					 _mm256_extracti128_si256(in_order, 1));
	return (uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(words, words));
}

TARGET static void avx2_pack(const uint64_t *values, size_t count, unsigned width, uint8_t *to)
{
	if (width == 0 || width > 8) {
		kernels_plain.pack(values, count, width, to);
		return;
	}
	__m256i mask = _mm256_set1_epi64x((int64_t)low_mask(width));
	uint64_t bits_of_byte = low_mask(width) * UINT64_C(0x0101010101010101);
	const uint8_t *end = to + packed_bytes(count, width);
	for (; count >= 8; count -= 8, values += 8, to += width) {
		__m256i a = _mm256_loadu_si256((const __m256i *)values);
		__m256i b = _mm256_loadu_si256((const __m256i *)(values + 4));
		uint64_t bytes = eight_bytes(_mm256_and_si256(a, mask), _mm256_and_si256(b, mask));
		uint64_t packed = _pext_u64(bytes, bits_of_byte);
		/* A whole word while it stays within what is ours to write. */
		memcpy(to, &packed, (size_t)(end - to) >= 8 ? 8 : width);
	}
	kernels_plain.pack(values, count, width, to);
}

/* ---- Counting widths ------------------------------------------------------------------------ */

/* 32 values below 256 as bytes, in any order. */
TARGET static inline __m256i avx2_bytes_of(const uint64_t *values)
{
	__m256i words[2];
	for (unsigned half = 0; half < 2; half++) {
		__m256i pair[2];
		for (unsigned k = 0; k < 2; k++) {
			const uint64_t *from = values + 16 * half + 8 * k;
			__m256 a = _mm256_loadu_ps((const float *)from);
			__m256 b = _mm256_loadu_ps((const float *)(from + 4));
			pair[k] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
		}
		words[half] = _mm256_packus_epi32(pair[0], pair[1]);
	}
	return _mm256_packus_epi16(words[0], words[1]);
}

TARGET static unsigned at_least(const __m256i *bytes, size_t vectors, unsigned least)
{
	__m256i threshold = _mm256_set1_epi8((char)least);
	unsigned count = 0;
	for (size_t i = 0; i < vectors; i++) {
		__m256i reached = _mm256_cmpeq_epi8(_mm256_max_epu8(bytes[i], threshold), bytes[i]);
		count += (unsigned)__builtin_popcount((unsigned)_mm256_movemask_epi8(reached));
	}
	return count;
}

TARGET static uint64_t any_bits(const uint64_t *values, size_t count)
{
	uint64_t any = 0;
	for (size_t i = 0; i < count; i++)
		any |= values[i];
	return any;
}

/* Small values are compared, 32 at a time, with each power of two. */
TARGET static void count_bytes(const uint64_t *values, size_t vectors, unsigned top,
			       uint16_t *histogram)
{
	__m256i bytes[4];
	unsigned reached = (unsigned)vectors * 32;
	for (size_t i = 0; i < vectors; i++)
		bytes[i] = avx2_bytes_of(values + 32 * i);
	for (unsigned w = 0; w <= top; w++) {
		unsigned next = w == top ? 0 : at_least(bytes, vectors, 1u << w);
		histogram[w] = (uint16_t)(histogram[w] + reached - next);
		reached = next;
	}
}

TARGET static unsigned avx2_count_widths(const uint64_t *values, size_t count, uint16_t *histogram)
{
	unsigned top = bit_width(any_bits(values, count));
	size_t vectors = top <= 8 ? count / 32 : 0;
	ASSERT(count <= MINI_ROWS);
	if (vectors)
		count_bytes(values, vectors, top, histogram);
	if (vectors * 32 < count)
		count_any(values + vectors * 32, count - vectors * 32, histogram);
	return top;
}

/* ---- Sums of symbols ------------------------------------------------------------------------ */

/* So many sums of symbols below 16 stay within 16 bits. */
enum { SUMS_PAIRS_MAX = 1024 };

struct sums {
	__m256i carry;           /* the sum of all before, in every lane of 16 bits */
	__m256i least, greatest; /* 16 bits */
	__m256i parts, carries;  /* what the total is made of: 16 bits, 32 bits */
};

TARGET static inline __m256i unzigzag_symbols(__m256i x)
{
	const __m128i values =
		_mm_setr_epi8(0, -1, 1, -2, 2, -3, 3, -4, 4, -5, 5, -6, 6, -7, 7, -8);
	return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), x);
}

/* The greater byte, or the lesser, of the two in each lane, as 16 bits: the upper byte decides. */
TARGET static inline __attribute__((always_inline)) __m256i greater_byte(__m256i x, bool zigzag)
{
	__m256i y = _mm256_slli_epi16(x, 8);
	return zigzag ? _mm256_srai_epi16(_mm256_max_epi16(x, y), 8)
		      : _mm256_srli_epi16(_mm256_max_epu16(x, y), 8);
}

TARGET static inline __attribute__((always_inline)) __m256i lesser_byte(__m256i x, bool zigzag)
{
	__m256i y = _mm256_slli_epi16(x, 8);
	return zigzag ? _mm256_srai_epi16(_mm256_min_epi16(x, y), 8)
		      : _mm256_srli_epi16(_mm256_min_epu16(x, y), 8);
}

/* Bytes are added two by two. */
TARGET static inline __attribute__((always_inline)) __m256i add_bytes(__m256i x, bool zigzag)
{
	const __m256i ones = _mm256_set1_epi8(1);
	return zigzag ? _mm256_maddubs_epi16(ones, x) : _mm256_maddubs_epi16(x, ones);
}

/* The sum of each eight pairs, in all four lanes of them. */
TARGET static inline __attribute__((always_inline)) __m256i sums_of_eight(__m256i behind,
									  bool zigzag)
{
	const int64_t seventh = 0x0780078007800780, last = 0x0f800f800f800f80;
	const __m256i bytes = _mm256_setr_epi64x(seventh, last, seventh, last);
	__m256i x = _mm256_shuffle_epi8(behind, bytes);
	return zigzag ? _mm256_srai_epi16(x, 8) : _mm256_srli_epi16(x, 8);
}

/* What all eights before have come to is added to each eight's own sums; `s` goes on to the next
 * four. Given back: what came before each. */
TARGET static inline __m256i carry_on(struct sums *s, __m256i eights)
{
	__m256i sums = _mm256_add_epi16(eights, _mm256_slli_si256(eights, 8));
	__m256i low_half = _mm256_permute2x128_si256(sums, sums, 0x08);
	sums = _mm256_add_epi16(sums, _mm256_unpackhi_epi64(low_half, low_half));
	__m256i before = _mm256_add_epi16(s->carry, _mm256_sub_epi16(sums, eights));
	s->carry = _mm256_add_epi16(s->carry, _mm256_permute4x64_epi64(sums, 0xff));
	return before;
}

/* 32 pairs: sums of eight lie within -128 .. 112, or 0 .. 240, and so within a byte. */
TARGET static inline __attribute__((always_inline)) void avx2_add_pairs(struct sums *s,
									__m256i pairs, bool zigzag)
{
	const __m256i nibble = _mm256_set1_epi8(15);
	__m256i first = _mm256_and_si256(pairs, nibble);
	__m256i second = _mm256_and_si256(_mm256_srli_epi16(pairs, 4), nibble);
	if (zigzag) {
		first = unzigzag_symbols(first);
		second = unzigzag_symbols(second);
	}
	__m256i behind = _mm256_add_epi8(first, second);
	behind = _mm256_add_epi8(behind, _mm256_slli_epi64(behind, 8));
	behind = _mm256_add_epi8(behind, _mm256_slli_epi64(behind, 16));
	behind = _mm256_add_epi8(behind, _mm256_slli_epi64(behind, 32));
	__m256i between = _mm256_sub_epi8(behind, second);
	__m256i high = zigzag ? _mm256_max_epi8(between, behind) : _mm256_max_epu8(between, behind);
	__m256i low = zigzag ? _mm256_min_epi8(between, behind) : _mm256_min_epu8(between, behind);
	__m256i before = carry_on(s, sums_of_eight(behind, zigzag));
	high = _mm256_add_epi16(greater_byte(high, zigzag), before);
	low = _mm256_add_epi16(lesser_byte(low, zigzag), before);
	s->greatest = _mm256_max_epi16(s->greatest, high);
	s->least = _mm256_min_epi16(s->least, low);
	s->parts = _mm256_add_epi16(s->parts, add_bytes(between, zigzag));
	s->parts = _mm256_add_epi16(s->parts, add_bytes(behind, zigzag));
	s->carries = _mm256_add_epi32(s->carries, _mm256_madd_epi16(before, _mm256_set1_epi16(1)));
}

TARGET static inline int16_t least_of(__m256i x)
{
	const __m128i flip = _mm_set1_epi16(INT16_MIN);
	__m128i y = _mm_min_epi16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
	uint16_t least = (uint16_t)_mm_extract_epi16(_mm_minpos_epu16(_mm_xor_si128(y, flip)), 0);
	return (int16_t)(least ^ 0x8000);
}

TARGET static inline int32_t total_of(__m256i x)
{
	__m128i y = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
	y = _mm_add_epi32(y, _mm_shuffle_epi32(y, 0x4e));
	y = _mm_add_epi32(y, _mm_shuffle_epi32(y, 0xb1));
	return _mm_cvtsi128_si32(y);
}

/* At most SUMS_PAIRS_MAX pairs; those that fill up the last vector are differences of 0, which
 * leave the last sum, and are taken off the total. */
TARGET static inline __attribute__((always_inline)) void
sum_pairs(const uint8_t *pairs, size_t count, bool zigzag, struct symbol_sums *sums)
{
	static const uint8_t mask[64] = {[0 ... 31] = 0xff};
	__m256i zero = _mm256_setzero_si256();
	struct sums s = {zero, _mm256_set1_epi16(INT16_MAX), _mm256_set1_epi16(INT16_MIN), zero,
			 zero};
	size_t whole = count / 32 * 32, left = count - whole;
	for (size_t i = 0; i < whole; i += 32)
		avx2_add_pairs(&s, _mm256_loadu_si256((const __m256i *)(pairs + i)), zigzag);
	if (left) {
		__m256i x = _mm256_loadu_si256((const __m256i *)(pairs + whole));
		x = _mm256_and_si256(x, _mm256_loadu_si256((const __m256i *)(mask + 32 - left)));
		avx2_add_pairs(&s, x, zigzag);
	}
	/* Each carry stands in four lanes and belongs to sixteen sums. */
	__m256i total = _mm256_add_epi32(_mm256_slli_epi32(s.carries, 2),
					 _mm256_madd_epi16(s.parts, _mm256_set1_epi16(1)));
	sums->last = (int16_t)_mm256_extract_epi16(s.carry, 0);
	sums->least = least_of(s.least);
	sums->greatest = ~(int64_t)least_of(_mm256_xor_si256(s.greatest, _mm256_set1_epi16(-1)));
	sums->total = total_of(total) - (left ? 2 * (int64_t)(32 - left) * sums->last : 0);
}

/* Puts those of `count` more symbols after. */
static void join_sums(struct symbol_sums *sums, const struct symbol_sums *more, size_t count)
{
	int64_t least = sums->last + more->least, greatest = sums->last + more->greatest;
	sums->least = least < sums->least ? least : sums->least;
	sums->greatest = greatest > sums->greatest ? greatest : sums->greatest;
	sums->total += more->total + sums->last * (int64_t)count;
	sums->last += more->last;
}

static void join_symbol(struct symbol_sums *sums, const uint8_t *pairs, size_t at, bool zigzag)
{
	int64_t value = symbol_value(pairs, at, zigzag);
	join_sums(sums, &(struct symbol_sums){value, value, value, value, value}, 1);
}

TARGET static void avx2_sum_symbols(const uint8_t *pairs, size_t from, size_t count, bool zigzag,
				    struct symbol_sums *sums)
{
	size_t at = from, end = from + count;
	*sums = (struct symbol_sums){symbol_value(pairs, from, zigzag), 0, INT64_MAX, INT64_MIN, 0};
	if (at % 2)
		join_symbol(sums, pairs, at++, zigzag);
	while (at + 1 < end) {
		size_t left = (end - at) / 2, part = left < SUMS_PAIRS_MAX ? left : SUMS_PAIRS_MAX;
		struct symbol_sums of_part;
		if (zigzag)
			sum_pairs(pairs + at / 2, part, true, &of_part);
		else
			sum_pairs(pairs + at / 2, part, false, &of_part);
		join_sums(sums, &of_part, 2 * part);
		at += 2 * part;
	}
	if (at < end)
		join_symbol(sums, pairs, at, zigzag);
}

static const struct kernels table = {
	.pack = avx2_pack,
	.unpack = avx2_unpack,
	.unpack_patterns = avx2_unpack_patterns,
	.to_residuals = to_residuals,
	.survey = survey,
	.count_widths = avx2_count_widths,
	.add_range = loop_add_range,
	.decimals_to_bits = decimals_to_bits,
	.decimals_from_bits = decimals_from_bits,
	.read_words = loop_read_words,
	.read_lanes = loop_read_lanes,
	.add_symbols = add_symbols,
	.sum_symbols = avx2_sum_symbols,
	.about_centre = about_centre,
};

const struct kernels *kernels_avx2(void)
{
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2"))
		return NULL;
	if (!lanes_by_width[1].shuffle[1])
		make_lanes();
	return &table;
}

#else

const struct kernels *kernels_avx2(void)
{
	return NULL;
}

#endif
