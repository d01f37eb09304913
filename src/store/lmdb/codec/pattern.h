/* How 64-bit patterns become small residuals, and back: the codecs of a column. All arithmetic is
 * modulo 2^64, so every codec can carry every pattern; what differs is how many bits are left. The
 * table is in doc/format-store.md, "Column". */
#ifndef STORE_LMDB_CODEC_PATTERN_H
#define STORE_LMDB_CODEC_PATTERN_H

#include "base/base.h"
#include "base/cursor.h"

static inline unsigned bit_width(uint64_t value)
{
	return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

static inline uint64_t low_mask(unsigned bits)
{
	return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static inline size_t packed_bytes(size_t count, unsigned width)
{
	return (count * width + 7) / 8;
}

/* On disk. */
enum codec {
	CODEC_CONSTANT = 0,
	CODEC_FOR = 1,
	CODEC_DELTA = 2,
	CODEC_DELTA_UP = 3,
	CODEC_DELTA2 = 4,
	CODEC_XOR = 5,
	CODEC_RAW = 6,
	CODEC_LATER = 7, /* of a later format */
};

struct pattern_codec {
	uint8_t codec; /* FOR ... XOR here */
	uint8_t shift; /* differences are multiples of 2^shift */
	uint64_t anchor, parameter;
};

/* What goes from one mini-block to the next. */
struct pattern_carry {
	uint64_t value, difference;
};

/* What the codecs are chosen by: one look at some patterns, taken by kernels->survey. */
struct pattern_survey {
	size_t count;
	uint64_t first, first_difference;
	uint64_t low, high;   /* as unsigned, after the flip of signed ones */
	uint64_t differences; /* all of them or-ed: what power of two divides them */
	uint64_t xors;        /* of neighbours, or-ed */
	uint64_t zigzags;     /* of the differences, or-ed */
	uint64_t zigzags2;    /* of the differences of differences, or-ed */
	int64_t least, most;  /* difference */
	int64_t least_up;     /* the least that is not negative */
	size_t downs;         /* how many are negative */
};

/* The best anchor, parameter and (if allowed) shift of that codec for what was surveyed. They
 * remain correct for whatever follows, only dearer, but for the shift. `flip` turns signed
 * patterns to unsigned ones in the same order. */
struct pattern_codec pattern_codec_fit(enum codec codec, bool shift, uint64_t flip,
				       const struct pattern_survey *survey);
/* The bits that its widest residual takes, leaving a few resets of a counter aside. */
unsigned pattern_codec_width(enum codec codec, bool shift, const struct pattern_survey *survey);

struct pattern_carry pattern_begin(const struct pattern_codec *codec);

/* Back again, in place. The way there is kernels->to_residuals. */
void pattern_from_residuals(const struct pattern_codec *codec, struct pattern_carry *carry,
			    uint64_t *values, size_t count);

/* Doubles as integers m with value = m / 10^exponent, |m| <= 2^51. */
enum { DECIMAL_EXPONENT_MAX = 22 };

double decimal_power(unsigned exponent);

/* Adding 1.5 * 2^52 to a double of magnitude up to 2^51 rounds it to an integer, whose distance
 * from the magic number's own pattern is that integer: a conversion that every vector unit can do.
 */
#define DECIMAL_MAGIC      0x1.8p52
#define DECIMAL_MAGIC_BITS UINT64_C(0x4338000000000000)
#define DECIMAL_M_MAX      0x1p51

static inline double decimal_of_bits(uint64_t bits)
{
	double d;
	memcpy(&d, &bits, 8);
	return d;
}

static inline uint64_t decimal_bits(double d)
{
	uint64_t bits;
	memcpy(&bits, &d, 8);
	return bits;
}

/* m as a double; of an integer that is too large for one, some double. */
static inline double decimal_double(uint64_t m)
{
	return decimal_of_bits(DECIMAL_MAGIC_BITS + m) - DECIMAL_MAGIC;
}

static inline uint64_t decimal_round(double d)
{
	return decimal_bits(d + DECIMAL_MAGIC) - DECIMAL_MAGIC_BITS;
}

/* The integer whose quotient is bit for bit that double; false if there is none. */
static inline bool decimal_from_bits(uint64_t bits, unsigned exponent, uint64_t *m)
{
	double power = decimal_power(exponent), scaled = decimal_of_bits(bits) * power;
	if (!(scaled >= -DECIMAL_M_MAX && scaled <= DECIMAL_M_MAX))
		return false;
	*m = decimal_round(scaled);
	return decimal_bits(decimal_double(*m) / power) == bits;
}

/* The smallest exponent that fits nearly all of the sample; -1 when the doubles are no decimals. */
int decimal_exponent_fit(const uint64_t *bits, size_t count);

#endif
