/* Blocks of a few rows of integers, or of doubles that do not change, which is what heads of very
 * many series are sealed as. The general encoder (block.c) weighs every way to write a column and
 * how many rows fit; for so few rows that costs several times what writing them does. Here a column
 * is looked at once, and packed at one width. What is written is a block like any other. */
#ifndef STORE_LMDB_CODEC_BLOCK_SMALL_H
#define STORE_LMDB_CODEC_BLOCK_SMALL_H

#include "store/lmdb/codec/block.h"

/* So few rows have no exceptions (pattern_codec_width leaves one row in 32 aside). */
enum { SMALL_ROWS_MAX = 31 };

enum small_outcome {
	SMALL_TAKEN,    /* all rows, as block_encode has it */
	SMALL_NO_ROOM,  /* for all of them */
	SMALL_UNLIKELY, /* not what this is for */
};

/* Dense rows, too many, several doubles, values of several types: SMALL_UNLIKELY. */
enum small_outcome small_encode(const struct block_rows *rows, uint8_t *to, size_t room,
				struct block *out);

#endif
