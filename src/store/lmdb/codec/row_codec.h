/* The values of one row as bytes: what records of the journal and heads hold. Pure functions.
 * Private.
 *
 * Most rows are small integers of one type: those take as many bytes each as the greatest needs (1,
 * 2, 4 or 8), so that no byte of them is a branch. The layout is doc/format-store.md, "Journal". */
#ifndef STORE_LMDB_CODEC_ROW_CODEC_H
#define STORE_LMDB_CODEC_ROW_CODEC_H

#include "base/base.h"
#include "model/value.h"
#include "store/schema.h"

enum {
	ROW_VALUES_MAX = 256,
	ROW_MAX_BYTES = 1 + ROW_VALUES_MAX / 2 + ROW_VALUES_MAX * 10,
};

/* Writes 1 to ROW_VALUES_MAX values, `fields` of each series one after the other; gives the end.
 * `to` has room for ROW_MAX_BYTES. */
uint8_t *row_put(uint8_t *to, const struct value *values, unsigned count, unsigned fields);

/* The same of `series` of `fields` each, of which only those in `given` (bits) are in `values`; the
 * others are none. */
uint8_t *row_put_fields(uint8_t *to, const struct value *values, unsigned series, unsigned fields,
			unsigned given);

/* Values of one type in a row: of its columns first, first + step, ..., `count` of them. */
struct row_piece {
	uint16_t first, step, count;
	uint8_t type;
};

/* All values that a row has. The bits of a piece stand after those of the piece before it. */
struct row_pieces {
	size_t count;
	struct row_piece list[ROW_VALUES_MAX];
	uint64_t bits[ROW_VALUES_MAX];
};

/* Of `count` columns. ERR_DAMAGED for bytes that row_put did not write. */
int row_decode(const uint8_t *bytes, size_t len, unsigned count,
	       struct row_pieces *pieces) MUST_CHECK;
/* The same as bits and types of all columns; the bits of VALUE_NONE mean nothing. */
int row_get(const uint8_t *bytes, size_t len, unsigned count, uint64_t *bits,
	    uint8_t *types) MUST_CHECK;
/* Only whether row_get would succeed. */
int row_check(const uint8_t *bytes, size_t len, unsigned count) MUST_CHECK;

/* One value of a row that row_check has found good. */
struct value row_value(const uint8_t *bytes, size_t len, unsigned count, unsigned at);

#endif
