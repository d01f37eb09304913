/* The loops over values, each in plain C and for AVX2; which is used is chosen once, at start. Both
 * give the same results for every input (tests/unit/store_lmdb_kernels.c). */
#ifndef STORE_LMDB_CODEC_KERNELS_H
#define STORE_LMDB_CODEC_KERNELS_H

#include "base/base.h"
#include "store/lmdb/codec/entropy.h"
#include "store/lmdb/codec/pattern.h"

/* Of patterns as integers; ordered as unsigned after `flip` was applied. */
struct pattern_range {
	uint64_t low, high;
	uint64_t varies; /* 0: all are `first` */
	__int128 total;  /* of the ordered ones */
};

/* Of the running sums of some differences, from 0. */
struct symbol_sums {
	int64_t first, last, least, greatest, total;
};

/* Someone who reads the words of a stream: from `bit` on, to `to`. */
struct word_lane {
	size_t bit, end;      /* no look-up goes beyond the end, */
	uint8_t *to, *to_end; /* nor its words; what lies after them may be changed */
};

struct kernels {
	/* `count` values of `width` bits, low bits first. pack ignores what lies above the width;
	 * unpack reads no byte at or after `end`, and the packed bytes lie before it. */
	void (*pack)(const uint64_t *values, size_t count, unsigned width, uint8_t *to);
	void (*unpack)(const uint8_t *from, const uint8_t *end, size_t count, unsigned width,
		       uint64_t *values);
	/* unpack, then pattern_from_residuals. */
	void (*unpack_patterns)(const struct pattern_codec *codec, struct pattern_carry *carry,
				const uint8_t *from, const uint8_t *end, size_t count,
				unsigned width, uint64_t *values);
	/* All codecs but CONSTANT and RAW; returns the bits in which any difference is no multiple
	 * of 2^shift. */
	uint64_t (*to_residuals)(const struct pattern_codec *codec, struct pattern_carry *carry,
				 const uint64_t *patterns, size_t count, uint64_t *residuals);
	/* `count` from 1 to 128. */
	void (*survey)(const uint64_t *patterns, size_t count, uint64_t flip,
		       struct pattern_survey *survey);
	/* Adds how many of at most 128 values have each width; returns the greatest. */
	unsigned (*count_widths)(const uint64_t *values, size_t count, uint16_t *histogram);
	/* Takes `count` more patterns, at most 2^31, into the range. */
	void (*add_range)(struct pattern_range *range, uint64_t first, uint64_t flip,
			  const uint64_t *patterns, size_t count);
	void (*decimals_to_bits)(uint64_t *values, size_t count, unsigned exponent);
	/* Stops at the first double that is no such decimal: how many were converted. `m` lies
	 * elsewhere than `bits`. */
	size_t (*decimals_from_bits)(const uint64_t *bits, size_t count, unsigned exponent,
				     uint64_t *m);
	/* As many words as whole look-ups give; stops before one that is longer than the index.
	 * Eight bytes can be loaded at every bit before the end. */
	void (*read_words)(const struct entropy_code *code, const uint8_t *from,
			   struct word_lane *lane);
	/* The same for all lanes side by side, while four look-ups fit into each. True: stopped
	 * before a word longer than the index, which some lane stands at. */
	bool (*read_lanes)(const struct entropy_code *code, const uint8_t *from,
			   struct word_lane lanes[ENTROPY_LANES]);
	/* Puts symbols above their low bits. */
	void (*add_symbols)(const uint64_t *symbols, size_t count, unsigned low_bits,
			    uint64_t *values);
	/* Symbols below 16, two to a byte, of which `count`, at least one, from number `from` on
	 * are differences: zigzag ones, or upwards. Bytes after them that belong to ENTROPY_SLACK
	 * may be read. */
	void (*sum_symbols)(const uint8_t *pairs, size_t from, size_t count, bool zigzag,
			    struct symbol_sums *sums);
	/* The inverse of zigzag, about a centre. */
	void (*about_centre)(uint64_t *values, size_t count, uint64_t centre);
};

extern const struct kernels kernels_plain;
/* What this processor runs fastest. */
extern const struct kernels *kernels;
/* NULL where the processor cannot. */
const struct kernels *kernels_avx2(void);

#endif
