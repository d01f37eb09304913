/* The entropy stage of streams: small symbols, two or four to a word, words in a prefix code out of
 * a fixed family of 32. What a stream's values need beyond the symbols are packed low bits and a
 * few exceptions. The byte layout and the tables are doc/format-store.md, "Entropy-coded streams".
 *
 * A code is built when it is first used, once in a process. */
#ifndef STORE_LMDB_CODEC_ENTROPY_H
#define STORE_LMDB_CODEC_ENTROPY_H

#include "base/base.h"
#include "base/cursor.h"

enum {
	ENTROPY_TABLES = 32,
	ENTROPY_WORDS = 256,
	ENTROPY_LOOKUP_BITS = 12,
	ENTROPY_ENTRY_WORDS = 3, /* that a look-up gives */
	ENTROPY_LANES = 3,       /* that read a stream side by side */
	ENTROPY_CODE_BITS_MAX = 24,
	ENTROPY_LOW_BITS_MAX = 60,
	/* Words may be written so far after the last one asked for. */
	ENTROPY_SLACK = 32,
};

/* Words of two symbols below 16, and of four below 4. */
enum entropy_kind { ENTROPY_PAIRS, ENTROPY_QUADS, ENTROPY_KINDS };

/* What the values of a stream so far cost. Copyable. */
struct entropy_cost {
	bool begun, may_centre, centred;
	uint8_t low_bits;
	uint64_t centre;
	uint32_t count;
	struct entropy_tally {
		bool out;           /* so many exceptions that it cannot win */
		uint8_t table;      /* the best when it was chosen, */
		uint32_t chosen_at; /* at so many values */
		uint32_t bits;      /* of the whole words by that table */
		uint32_t exceptions, exception_bytes;
		uint32_t partial;              /* the word that is being filled */
		uint16_t words[ENTROPY_WORDS]; /* how often each occurs */
	} tally[ENTROPY_KINDS];
};

/* may_centre: the values are not yet differences about zero (zigzag). */
void entropy_cost_init(struct entropy_cost *cost, bool may_centre);
void entropy_cost_add(struct entropy_cost *cost, const uint64_t *values, size_t count);

/* Takes over what `other`, which began with the same values and more, found out about them, unless
 * `cost` has begun. */
void entropy_cost_adopt(struct entropy_cost *cost, const struct entropy_cost *other);

/* When nothing more will be added: chooses the tables by all of it. No form gets longer. */
void entropy_cost_finish(struct entropy_cost *cost);

struct entropy_form {
	uint8_t table;
	size_t bytes; /* all after the form byte; an exception with a small gap takes one fewer */
};

/* The best table for what was added; at least one value. */
struct entropy_form entropy_cost_form(const struct entropy_cost *cost);

/* The bits that such values take, roughly: to choose a codec by. */
size_t entropy_estimate(const uint64_t *values, size_t count, bool may_centre);

/* True when the stream needs the byte of details. */
bool entropy_has_details(const struct entropy_cost *cost, unsigned table);
/* Writes all after the form byte; where it ends. */
uint8_t *entropy_write(const struct entropy_cost *cost, unsigned table, const uint64_t *values,
		       uint8_t *to);

struct pattern_codec;

/* The rest of the cursor, of a stream without details, as its symbols, which are the `count`
 * values: all below 16, two to a byte, the first one lowest. ENTROPY_SLACK bytes after them are
 * changed. */
int entropy_read_pairs(struct cursor c, unsigned table, uint32_t count, uint8_t *pairs) MUST_CHECK;

/* The rest of the cursor, as `count` values made patterns. */
int entropy_read(struct cursor c, unsigned table, bool details, const struct pattern_codec *codec,
		 uint32_t count, uint64_t *values) MUST_CHECK;

/* ---- For kernels and tests ------------------------------------------------------------------- */

struct entropy_code {
	/* By the next bits: what whole words they begin with. Bits 0-5 their length, then three
	 * words, a byte each, then how many. 0: the first one is longer than the index. */
	uint32_t lookup[1 << ENTROPY_LOOKUP_BITS];
	uint32_t codes[ENTROPY_WORDS]; /* the first bit lowest */
	uint8_t lengths[ENTROPY_WORDS];
	/* By length: the first code, read with its first bit highest, and where its words begin. */
	uint32_t first_code[ENTROPY_CODE_BITS_MAX + 1];
	uint16_t first_word[ENTROPY_CODE_BITS_MAX + 2];
	uint8_t words[ENTROPY_WORDS]; /* by length, then number */
	unsigned symbols_per_word, bits_per_symbol;
};

const struct entropy_code *entropy_code(unsigned table);

#endif
