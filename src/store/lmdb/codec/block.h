/* The block codec of the embedded engine: rows of one band in few bytes, and back.
 *
 * A band is up to 512 columns (series registered together) that share timestamps. A block holds
 * rows (ascending, distinct times) of a slice of at most 32 columns of one band. Blocks lie in
 * extents (extent.h), whose index keeps what is not in the block's own bytes: struct block_meta.
 * The byte layout is doc/format-store.md, "Blocks".
 *
 * Pure functions: bytes in, struct out; no memory of their own, no globals. A decoder that is fed
 * garbage says ERR_DAMAGED (ERR_VERSION for a codec of a later format), never reads outside its
 * slice and never writes more than the rows that the meta names. */
#ifndef STORE_LMDB_CODEC_BLOCK_H
#define STORE_LMDB_CODEC_BLOCK_H

#include "base/base.h"
#include "model/value.h"

enum {
	BLOCK_COLUMNS_MAX = 32,
	BLOCK_ROWS_MAX = 16384,
	BAND_COLUMNS_MAX = 512,
	/* A block of so many rows or fewer stores no summaries: they are computed from the rows. */
	BLOCK_NO_SUMMARY_ROWS = 64,
};

/* One column of what is to be encoded. `types` by row (enum value_type), or NULL: every row is of
 * `type`. The bits of a VALUE_NONE row mean nothing and come back as 0. */
struct block_column {
	const uint64_t *bits;
	const uint8_t *types;
	enum value_type type;
};

struct block_rows {
	uint32_t rows;        /* >= 1 */
	uint32_t columns;     /* 1 .. BLOCK_COLUMNS_MAX */
	const int64_t *ts_ms; /* ascending, distinct */
	const struct block_column *column;
	bool dense; /* as few bytes as can be, for what is rarely written and kept for long */
};

struct block_meta {
	uint32_t ordinal;      /* of the band within its group */
	uint16_t first_column; /* of the slice within the band */
	uint16_t columns;
	uint32_t rows;
	int64_t first_ts_ms, last_ts_ms;
	uint64_t sequence; /* the highest journal sequence contained */
};

/* An encoded block: slices into the extent's bytes. `times` is empty where the step is constant
 * (`regular`). */
struct block {
	struct block_meta meta;
	bool regular;
	struct slice times, body;
};

/* Of the values of one column; the meaning of struct store_summary: integers exact in all but sum,
 * NaN counts, makes the sum NaN and is never min or max (NONE if there is no other value). first_ts
 * and last_ts are those of the first and last value present. The sum is kept in two parts, so that
 * merging rounds the integers only once: `integers` of i64 and u64 exactly, `doubles` of f64 in
 * their order (where they are stored as decimals: their exact sum, rounded once). Where `doubles`
 * has left the numbers, `scaled` is the same sum times 2^-64, which has not; else it means nothing.
 */
struct block_summary {
	uint64_t count;
	double sum; /* integers + doubles */
	__int128 integers;
	double doubles, scaled;
	struct value min, max, first, last;
	int64_t first_ts_ms, last_ts_ms;
};

/* Encodes as many leading rows as fit into `room` bytes at `to`: the times, then the body.
 * out->meta's rows, first_ts_ms, last_ts_ms and columns are set here, the rest is the caller's;
 * its slices point into `to`. Returns the rows taken; 0 when not even min(rows, rows_least) fit
 * (so that the last bytes of an extent are not filled with blocks that are all header). */
uint32_t block_encode(const struct block_rows *rows, uint8_t *to, size_t room, uint32_t rows_least,
		      struct block *out);

/* `ts_ms` has room for meta.rows. */
int block_decode_times(const struct block *block, int64_t *ts_ms) MUST_CHECK;

/* Column 0 .. meta.columns-1. `bits` and `types` have room for meta.rows. */
int block_decode_column(const struct block *block, unsigned column, uint64_t *bits,
			uint8_t *types) MUST_CHECK;

struct column;
/* The column for the readers of columns (column.h). */
int block_open_column(const struct block *block, unsigned number, struct column *column) MUST_CHECK;

/* Without decoding the column, unless it has absent values at an end or few rows. count 0: all
 * absent, nothing else is set. A sum that is not finite says nothing (it is stored as a double),
 * not even whether the values have a finite sum: then the values have to be read. */
int block_read_summary(const struct block *block, unsigned column,
		       struct block_summary *summary) MUST_CHECK;

/* The same by looking at every value: for heads, and for the parts of a decoded block that a window
 * cuts. `count` rows; types NULL: all of `type`. ts_ms NULL: its times are not wanted. */
void block_summarise(const int64_t *ts_ms, const uint64_t *bits, const uint8_t *types,
		     enum value_type type, size_t count, struct block_summary *summary);

/* Puts `later`, whose values all come after it, into `into`. */
void block_summary_merge(struct block_summary *into, const struct block_summary *later);

#endif
