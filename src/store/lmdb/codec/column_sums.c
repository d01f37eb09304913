#include "store/lmdb/codec/column_sums.h"

#include "store/lmdb/codec/kernels.h"
#include "store/lmdb/codec/stream.h"
#include "store/lmdb/codec/summary.h"

enum {
	/* Shifts up to this leave the sums of symbols within 64 bits. */
	SYMBOLS_SHIFT_MAX = 32,
};

/* Patterns are in order as unsigned integers after this. */
static uint64_t column_sums_order_flip(const struct column *column)
{
	return column->type == VALUE_U64 ? 0 : UINT64_C(1) << 63;
}

bool fold_suits(const struct column *column)
{
	return column->present == column->rows && !column->presence && !column->special_count &&
	       !column_is_plain_double(column);
}

/* Sums of residuals, with nothing added at each step. */
static bool column_sums_is_addition(const struct pattern_codec *codec)
{
	return codec->shift <= SYMBOLS_SHIFT_MAX &&
	       (codec->codec == CODEC_DELTA ||
		(codec->codec == CODEC_DELTA_UP && codec->parameter == 0));
}

/* Patterns are added modulo 2^64: whether the greatest sum and the least one remain so. */
static bool keeps_order(const struct column *column, const uint8_t *pairs)
{
	__int128 begin = (__int128)(column->codec.anchor ^ column_sums_order_flip(column));
	__int128 unit = (__int128)1 << column->codec.shift, most = column->rows * 15 * unit;
	struct symbol_sums sums;
	if (begin >= most && begin + most <= UINT64_MAX)
		return true;
	kernels->sum_symbols(pairs, 0, column->rows, column->codec.codec == CODEC_DELTA, &sums);
	return begin + sums.least * unit >= 0 && begin + sums.greatest * unit <= UINT64_MAX;
}

/* False: the column is not of that kind, or its sums do not keep the order. */
static bool begin_pairs(struct fold *fold, uint8_t *pairs)
{
	const struct column *column = fold->column;
	struct stream_reader stream;
	if (!column_sums_is_addition(&column->codec) ||
	    stream_read_begin(&stream, column->rest, column->rows, NULL, column->rows) ||
	    !stream_is_symbols(&stream) || stream_read_pairs(&stream, pairs))
		return false;
	if (!keeps_order(column, pairs))
		return false;
	fold->carry = pattern_begin(&column->codec).value;
	fold->pairs = pairs;
	return true;
}

int fold_begin(struct fold *fold, struct column *column, uint64_t *patterns, uint8_t *pairs)
{
	*fold = (struct fold){.column = column};
	if (column->codec_number == CODEC_CONSTANT)
		return cursor_left(&column->rest) ? ERR_DAMAGED : 0;
	if (begin_pairs(fold, pairs))
		return 0;
	fold->patterns = patterns;
	return column_read_patterns(column, patterns);
}

/* The sums of the next rows' symbols, and the pattern after them. */
static void fold_symbols(struct fold *fold, uint32_t rows, struct symbol_sums *sums)
{
	const struct pattern_codec *codec = &fold->column->codec;
	kernels->sum_symbols(fold->pairs, fold->row, rows, codec->codec == CODEC_DELTA, sums);
	fold->carry += (uint64_t)sums->last << codec->shift;
	fold->row += rows;
}

static struct integer_summary column_sums_symbols(struct fold *fold, uint32_t rows)
{
	unsigned shift = fold->column->codec.shift;
	uint64_t carry = fold->carry;
	struct symbol_sums sums;
	fold_symbols(fold, rows, &sums);
	return (struct integer_summary){
		.first = carry + ((uint64_t)sums.first << shift),
		.low = carry + ((uint64_t)sums.least << shift),
		.high = carry + ((uint64_t)sums.greatest << shift),
		.last = fold->carry,
		.deviation = (__int128)(sums.total - sums.first * (int64_t)rows) *
			     ((__int128)1 << shift),
	};
}

static struct integer_summary sum_patterns(struct fold *fold, uint32_t rows)
{
	const uint64_t *patterns = fold->patterns + fold->row;
	uint64_t flip = column_sums_order_flip(fold->column), first = patterns[0];
	struct pattern_range range = {.low = UINT64_MAX};
	kernels->add_range(&range, first, flip, patterns, rows);
	fold->row += rows;
	return (struct integer_summary){
		.first = first,
		.low = range.low ^ flip,
		.high = range.high ^ flip,
		.last = patterns[rows - 1],
		.deviation = range.total - (__int128)(first ^ flip) * rows,
	};
}

void fold_skip(struct fold *fold, uint32_t rows)
{
	struct symbol_sums sums;
	if (fold->pairs && rows)
		fold_symbols(fold, rows, &sums);
	else
		fold->row += rows;
}

void fold_next(struct fold *fold, uint32_t rows, struct block_summary *summary)
{
	const struct column *column = fold->column;
	uint64_t anchor = column->codec.anchor;
	struct integer_summary s = {anchor, anchor, anchor, anchor, 0};
	ASSERT(rows && rows <= column->rows - fold->row);
	if (fold->pairs)
		s = column_sums_symbols(fold, rows);
	else if (fold->patterns)
		s = sum_patterns(fold, rows);
	else
		fold->row += rows;
	/* All that integer_summary_expand does not set. */
	summary->count = rows;
	summary->scaled = 0;
	summary->first_ts_ms = summary->last_ts_ms = 0;
	integer_summary_expand(&s, (enum value_type)column->type, column->exponent, summary);
}
