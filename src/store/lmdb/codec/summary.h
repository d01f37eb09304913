/* The stored form of a column's summary (doc/format-store.md, "Summary"), and its arithmetic. */
#ifndef STORE_LMDB_CODEC_SUMMARY_H
#define STORE_LMDB_CODEC_SUMMARY_H

#include "base/cursor.h"
#include "store/lmdb/codec/block.h"

/* Of integers, or decimals by their m. `low` and `high` are patterns. */
struct integer_summary {
	uint64_t first, low, high, last;
	__int128 deviation; /* sum of (value - first) */
};

enum { WIDE_SUMMARY_MAX_BYTES = 1 + 4 * 8 + 8 };

size_t integer_summary_bytes(const struct integer_summary *s);
uint8_t *integer_summary_put(const struct integer_summary *s, uint8_t *to);
/* `first` is set by the caller. */
void integer_summary_read(struct cursor *c, struct integer_summary *s);

/* `value` of integers of `type`; `exponent` of decimals (type f64). `count` must be set. */
void integer_summary_expand(const struct integer_summary *s, enum value_type type,
			    unsigned exponent, struct block_summary *summary);

/* `with_first`: it stands here, else it follows from the column. */
uint8_t *wide_summary_put(const struct block_summary *s, bool mixed, bool with_first, uint8_t *to);
int wide_summary_read(struct cursor *c, bool mixed, bool with_first,
		      struct block_summary *summary) MUST_CHECK;

/* Sets the sum from its parts, after any of them was changed. */
void block_summary_total(struct block_summary *summary);

#endif
