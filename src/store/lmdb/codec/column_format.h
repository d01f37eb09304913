/* What column.c writes and column_read.c reads (doc/format-store.md, "Column"); private to them. */
#ifndef STORE_LMDB_CODEC_COLUMN_FORMAT_H
#define STORE_LMDB_CODEC_COLUMN_FORMAT_H

#include "store/lmdb/codec/pattern.h"

/* The head byte. */
enum {
	HEAD_CODEC = 0x07,
	HEAD_SHIFTED = 0x08,
	HEAD_TYPE_SHIFT = 4,
	HEAD_GAPS = 0x40,
	HEAD_DECIMAL = 0x80,
	DECIMAL_SPECIALS = 0x80,
	/* A special's index (a block has at most 2^14 rows) and its bits. */
	SPECIAL_MAX_BYTES = 2 + 8,
};

static inline bool has_parameter(uint8_t codec)
{
	return codec == CODEC_DELTA_UP || codec == CODEC_DELTA2;
}

#endif
