/* One column of a block, both ways. The byte layout is doc/format-store.md, "Column". */
#ifndef STORE_LMDB_CODEC_COLUMN_H
#define STORE_LMDB_CODEC_COLUMN_H

#include "store/lmdb/codec/block.h"
#include "store/lmdb/codec/pattern.h"
#include "store/lmdb/codec/stream.h"
#include "store/lmdb/codec/summary.h"

/* What turned out, further down the rows, not to hold for a column. A column starts with none of
 * these; each found costs the block one more pass. */
struct column_limits {
	bool mixed;      /* its values are of several types */
	bool no_shift;   /* a difference is no multiple of the shift */
	bool no_decimal; /* too many doubles are no decimals */
};

/* How a column is to be encoded and what that costs, for the rows added so far. Copyable. */
struct column_cost {
	struct column_limits limits;
	struct column_plan {
		bool chosen; /* there was a value to choose by */
		bool decimal;
		uint8_t type, exponent;
		struct pattern_codec codec;
	} plan;

	uint32_t rows, present, specials;
	/* So far all rows have the same integer, and nothing but that is known of the column: the
	 * plan is not chosen, the stream empty. */
	bool same;
	struct pattern_carry carry;
	uint64_t first_pattern, last_pattern;
	struct pattern_range range;
	struct stream_cost stream;
};

/* entropy: NULL, or the caller's, for a denser column. A copy of the cost shares it. */
void column_cost_init(struct column_cost *cost, struct column_limits limits,
		      struct entropy_cost *entropy);
/* Rows from .. from+count-1, one mini-block. false: limits was extended, begin again with it. */
bool column_cost_add(struct column_cost *cost, const struct block_column *column, uint32_t from,
		     uint32_t count, struct column_limits *limits) MUST_CHECK;
/* Takes over what another attempt at more of the same rows has chosen. */
void column_cost_adopt(struct column_cost *cost, const struct column_cost *other);
/* At most so many bytes. */
size_t column_cost_bytes(const struct column_cost *cost);

/* Writes the rows that were added to the cost; where the column ends. */
uint8_t *column_write(const struct column_cost *cost, const struct block_column *column,
		      uint8_t *to);

/* A column opened: what stands before its stream. */
struct column {
	uint8_t codec_number, type; /* type 0: mixed */
	bool decimal, has_summary;
	uint8_t exponent;
	uint32_t rows, present, special_count;
	const uint8_t *presence; /* a bit a row, or NULL: all present */
	const uint8_t *types;    /* mixed: two bits a row */
	struct cursor specials;  /* checked, not read */
	struct pattern_codec codec;
	struct integer_summary integers; /* if has_summary, as it is stored, or */
	struct block_summary wide;       /* all but the times */
	struct cursor rest;              /* the stream, or the patterns of RAW */
	uint8_t presence_of_types[BLOCK_ROWS_MAX / 8];
};

/* `bytes` of `rows` rows. An empty column has present 0 and nothing else. */
int column_open(struct column *column, struct slice bytes, uint32_t rows) MUST_CHECK;
int column_read(struct column *column, uint64_t *bits, uint8_t *types) MUST_CHECK;
/* The values of the present rows as they are stored: their bits, or the m of decimals. */
int column_read_patterns(struct column *column, uint64_t *patterns) MUST_CHECK;
/* Patterns that are not integers: doubles as such, and mixed types. */
bool column_is_plain_double(const struct column *column);
/* All but the times; false when it has none and the values have to be looked at. */
bool column_summary(const struct column *column, struct block_summary *summary);

#endif
