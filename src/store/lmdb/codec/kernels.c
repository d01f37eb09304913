#include "store/lmdb/codec/kernels.h"

#include "store/lmdb/codec/stream.h"

#define TARGET
#include "store/lmdb/codec/kernels_loops.h"

/* Value j of width w stands in bits j * w ... j * w + w - 1, low bits first. */
static void plain_pack(const uint64_t *values, size_t count, unsigned width, uint8_t *to)
{
	uint64_t pending = 0, mask = low_mask(width);
	unsigned filled = 0;
	if (width == 0)
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t value = values[i] & mask;
		pending |= value << filled;
		filled += width;
		if (filled < 64)
			continue;
		memcpy(to, &pending, 8);
		to += 8;
		filled -= 64;
		pending = filled ? value >> (width - filled) : 0;
	}
	memcpy(to, &pending, (filled + 7) / 8);
}

static inline uint64_t plain_load64(const uint8_t *from)
{
	uint64_t word;
	memcpy(&word, from, 8);
	return word;
}

/* Value j of a group of eight; reads within width + 8 bytes of `from`. With a constant width and j
 * all is constant but the loads. */
static inline __attribute__((always_inline)) uint64_t plain_bits_at(const uint8_t *from,
								    unsigned width, unsigned j)
{
	unsigned bit = j * width;
	uint64_t value = plain_load64(from + bit / 8) >> (bit % 8);
	if (bit % 8 + width > 64)
		value |= (uint64_t)from[bit / 8 + 8] << (64 - bit % 8);
	return value & low_mask(width);
}

static inline __attribute__((always_inline)) void unpack_groups(const uint8_t *from, size_t groups,
								unsigned width, uint64_t *values)
{
	for (; groups; groups--, from += width, values += 8) {
		values[0] = plain_bits_at(from, width, 0);
		values[1] = plain_bits_at(from, width, 1);
		values[2] = plain_bits_at(from, width, 2);
		values[3] = plain_bits_at(from, width, 3);
		values[4] = plain_bits_at(from, width, 4);
		values[5] = plain_bits_at(from, width, 5);
		values[6] = plain_bits_at(from, width, 6);
		values[7] = plain_bits_at(from, width, 7);
	}
}

#define FOR_8(base, X)                                                                             \
	X(base) X(base + 1) X(base + 2) X(base + 3) X(base + 4) X(base + 5) X(base + 6) X(base + 7)
#define FOR_64(X)                                                                                  \
	FOR_8(1, X)                                                                                \
	FOR_8(9, X)                                                                                \
	FOR_8(17, X)                                                                               \
	FOR_8(25, X) FOR_8(33, X) FOR_8(41, X) FOR_8(49, X) FOR_8(57, X)
#define CASE(width)                                                                                \
	case width:                                                                                \
		unpack_groups(from, groups, width, values);                                        \
		break;

/* Whole groups of eight; reads within 8 bytes after the last one. */
static void unpack_switch(const uint8_t *from, size_t groups, unsigned width, uint64_t *values)
{
	switch (width) {
		FOR_64(CASE)
	default:
		break;
	}
}

static void plain_unpack(const uint8_t *from, const uint8_t *end, size_t count, unsigned width,
			 uint64_t *values)
{
	if (width == 0) {
		memset(values, 0, count * sizeof(*values));
		return;
	}
	size_t readable = (size_t)(end - from), groups = count / 8;
	size_t safe = readable < 8 ? 0 : (readable - 8) / width;
	if (groups > safe)
		groups = safe;
	unpack_switch(from, groups, width, values);
	/* The rest, group by group, out of a copy that may be read beyond. */
	for (size_t done = groups * 8; done < count; done += 8) {
		uint8_t copy[64 + 8] = {0};
		uint64_t group[8];
		size_t left = count - done < 8 ? count - done : 8;
		memcpy(copy, from + done / 8 * width, packed_bytes(left, width));
		unpack_switch(copy, 1, width, group);
		memcpy(values + done, group, left * sizeof(*group));
	}
}

static void plain_unpack_patterns(const struct pattern_codec *codec, struct pattern_carry *carry,
				  const uint8_t *from, const uint8_t *end, size_t count,
				  unsigned width, uint64_t *values)
{
	plain_unpack(from, end, count, width, values);
	pattern_from_residuals(codec, carry, values, count);
}

static void plain_sum_symbols(const uint8_t *pairs, size_t from, size_t count, bool zigzag,
			      struct symbol_sums *sums)
{
	int64_t sum = symbol_value(pairs, from, zigzag);
	*sums = (struct symbol_sums){sum, sum, sum, sum, sum};
	for (size_t i = 1; i < count; i++) {
		sum += symbol_value(pairs, from + i, zigzag);
		sums->least = sum < sums->least ? sum : sums->least;
		sums->greatest = sum > sums->greatest ? sum : sums->greatest;
		sums->total += sum;
	}
	sums->last = sum;
}

static unsigned plain_count_widths(const uint64_t *values, size_t count, uint16_t *histogram)
{
	return count_any(values, count, histogram);
}

const struct kernels kernels_plain = {
	.pack = plain_pack,
	.unpack = plain_unpack,
	.unpack_patterns = plain_unpack_patterns,
	.to_residuals = to_residuals,
	.survey = survey,
	.count_widths = plain_count_widths,
	.add_range = loop_add_range,
	.decimals_to_bits = decimals_to_bits,
	.decimals_from_bits = decimals_from_bits,
	.read_words = loop_read_words,
	.read_lanes = loop_read_lanes,
	.add_symbols = add_symbols,
	.sum_symbols = plain_sum_symbols,
	.about_centre = about_centre,
};

const struct kernels *kernels = &kernels_plain;

__attribute__((constructor)) static void kernels_choose(void)
{
	if (kernels_avx2())
		kernels = kernels_avx2();
}
