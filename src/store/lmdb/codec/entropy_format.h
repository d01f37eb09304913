/* What the files of the entropy stage share; private to them. entropy_code.c makes the codes,
 * entropy.c writes and entropy_read.c reads (doc/format-store.md, "Entropy-coded streams"). */
#ifndef STORE_LMDB_CODEC_ENTROPY_FORMAT_H
#define STORE_LMDB_CODEC_ENTROPY_FORMAT_H

#include "store/lmdb/codec/entropy.h"

enum {
	PAIR_TABLES = 24, /* the first ones; the rest are of quads */
	WEIGHTS = 16,
	/* The byte of details. */
	DETAILS_LOW_BITS = 0x3f,
	DETAILS_CENTRED = 0x40,
	DETAILS_EXCEPTIONS = 0x80,
};

/* How often each symbol is thought to occur, of 4096; a table of quads has four. */
extern const uint16_t entropy_weights[ENTROPY_TABLES][WEIGHTS];

static const struct {
	uint8_t symbols, bits;
} entropy_kinds[ENTROPY_KINDS] = {{2, 4}, {4, 2}};

static inline enum entropy_kind entropy_kind_of(unsigned table)
{
	return table < PAIR_TABLES ? ENTROPY_PAIRS : ENTROPY_QUADS;
}

static inline unsigned entropy_symbol_of(enum entropy_kind kind, unsigned word, unsigned at)
{
	return word >> at * entropy_kinds[kind].bits & ((1u << entropy_kinds[kind].bits) - 1);
}

/* The word that `bits` begin with, if it is longer than `least` and no longer than `most`; its
 * length, or 0. */
unsigned entropy_first_word(const struct entropy_code *code, uint64_t bits, unsigned least,
			    unsigned most, unsigned *word);

#endif
