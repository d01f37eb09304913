/* The summaries of a column's rows, range by range, without making values of them: what windows
 * that cut a block ask for.
 *
 * Integers and decimals are summarised as the patterns that they are stored as. Where small
 * differences stand in an entropy-coded stream it goes further: the running sums of the stream's
 * symbols, which are below 16, fit into narrow lanes, and their least, greatest and total are all
 * that the patterns are needed for. Other columns (plain doubles, mixed types, absent or special
 * values) are decoded and summarised by block_summarise. */
#ifndef STORE_LMDB_CODEC_COLUMN_SUMS_H
#define STORE_LMDB_CODEC_COLUMN_SUMS_H

#include "base/base.h"
#include "store/lmdb/codec/column.h"

struct fold {
	const struct column *column;
	uint32_t row;             /* comes next */
	const uint8_t *pairs;     /* of symbols of the differences, or NULL: */
	const uint64_t *patterns; /* or NULL: all rows are the anchor */
	uint64_t carry;           /* pairs: the pattern before `row` */
};

/* Whether the column can be summarised so. */
bool fold_suits(const struct column *column);

/* `patterns` has room for the column's rows, `pairs` for half as many bytes and ENTROPY_SLACK; both
 * and the column must live as long as the fold. ERR_DAMAGED. */
int fold_begin(struct fold *fold, struct column *column, uint64_t *patterns,
	       uint8_t *pairs) MUST_CHECK;
void fold_skip(struct fold *fold, uint32_t rows);
/* The next rows, at least one and no more than are left: all but their times. */
void fold_next(struct fold *fold, uint32_t rows, struct block_summary *summary);

#endif
