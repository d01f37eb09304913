/* How 64-bit patterns become small residuals, and back: the codecs of a column. All arithmetic is
 * modulo 2^64, so every codec can carry every pattern; what differs is how many bits are left. The
 * table is in doc/format-store.md, "Column". */
#ifndef STORE_LMDB_PATTERN_H
#define STORE_LMDB_PATTERN_H

#include "base/base.h"

/* On disk. */
enum codec {
	CODEC_CONSTANT = 0,
	CODEC_FOR = 1,
	CODEC_DELTA = 2,
	CODEC_DELTA_UP = 3,
	CODEC_DELTA2 = 4,
	CODEC_XOR = 5,
	CODEC_RAW = 6,
	CODEC_ENTROPY = 7, /* reserved: a later format */
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

/* The best anchor, parameter and (if allowed) shift of that codec for these patterns, count >= 1.
 * They remain correct for whatever follows, only dearer, but for the shift. `is_signed`: how
 * patterns are ordered. */
struct pattern_codec pattern_codec_fit(enum codec codec, bool shift, bool is_signed,
				       const uint64_t *patterns, size_t count);

struct pattern_carry pattern_begin(const struct pattern_codec *codec);

/* false: a difference is no multiple of 2^shift. */
bool pattern_to_residuals(const struct pattern_codec *codec, struct pattern_carry *carry,
			  const uint64_t *patterns, size_t count, uint64_t *residuals) MUST_CHECK;

/* In place. */
void pattern_from_residuals(const struct pattern_codec *codec, struct pattern_carry *carry,
			    uint64_t *values, size_t count);

/* Doubles as integers m with value = m / 10^exponent, |m| <= 2^51. */
enum { DECIMAL_EXPONENT_MAX = 22 };

/* The integer whose quotient is bit for bit that double; false if there is none. */
bool decimal_from_bits(uint64_t bits, unsigned exponent, uint64_t *m);
/* The same for many, stopping at the first that has none: how many were converted. */
size_t decimals_from_bits(const uint64_t *bits, size_t count, unsigned exponent, uint64_t *m);
/* In place, integers to the bits of doubles; any integer gives some double. */
void decimals_to_bits(uint64_t *values, size_t count, unsigned exponent);
double decimal_power(unsigned exponent);

/* The smallest exponent that fits nearly all of the sample; -1 when the doubles are no decimals. */
int decimal_exponent_fit(const uint64_t *bits, size_t count);

#endif
