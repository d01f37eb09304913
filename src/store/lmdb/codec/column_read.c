/* How a column is read: its head and its summary first, which answer much; the values when they are
 * asked for. All of it may be damaged in ways that a checksum does not see (an older program, a bad
 * copy): nothing is believed that has not been looked at. */
#include "store/lmdb/codec/column.h"

#include <math.h>

#include "store/lmdb/codec/column_format.h"
#include "store/lmdb/codec/summary.h"

bool column_is_plain_double(const struct column *column)
{
	return column->type == VALUE_NONE || (column->type == VALUE_F64 && !column->decimal);
}

static uint64_t column_read_number(const struct column *column, struct cursor *c)
{
	if (column_is_plain_double(column))
		return cursor_u64(c);
	uint64_t n = cursor_varint(c);
	return column->type == VALUE_U64 ? n : (uint64_t)zigzag_decode(n);
}

/* Bits after the last row must be 0: counts are taken over whole bytes. */
static int count_present(struct column *column)
{
	uint32_t rows = column->rows;
	if (rows % 8 && column->presence[rows / 8] >> rows % 8)
		return ERR_DAMAGED;
	column->present = 0;
	for (uint32_t m = 0; m * MINI_ROWS < rows; m++)
		column->present += (uint32_t)mini_count(column->presence, rows, m);
	return column->present ? 0 : ERR_DAMAGED;
}

static int read_mixed_types(struct column *column, struct cursor *c)
{
	uint32_t rows = column->rows;
	column->types = cursor_take(c, (rows + 3) / 4);
	if (!column->types)
		return ERR_DAMAGED;
	memset(column->presence_of_types, 0, (rows + 7) / 8);
	for (uint32_t i = 0; i < rows; i++) {
		unsigned type = column->types[i / 4] >> i % 4 * 2 & 3;
		if (type != VALUE_NONE)
			column->presence_of_types[i / 8] =
				(uint8_t)(column->presence_of_types[i / 8] | 1u << i % 8);
	}
	column->presence = column->presence_of_types;
	return count_present(column);
}

static int read_presence(struct column *column, struct cursor *c, bool gaps)
{
	column->present = column->rows;
	column->presence = column->types = NULL;
	if (column->type == VALUE_NONE)
		return gaps ? ERR_DAMAGED : read_mixed_types(column, c);
	if (!gaps)
		return 0;
	column->presence = cursor_take(c, (column->rows + 7) / 8);
	return column->presence ? count_present(column) : ERR_DAMAGED;
}

/* The next special: its index, and its bits. */
static uint64_t next_special(struct cursor *c, uint32_t *next, uint32_t *index)
{
	uint64_t gap = cursor_varint(c), bits = cursor_u64(c);
	if (gap >= BLOCK_ROWS_MAX - *next)
		c->bad = true;
	*index = c->bad ? 0 : *next + (uint32_t)gap;
	*next = (uint32_t)*index + 1;
	return bits;
}

static int check_specials(struct column *column, struct cursor *c)
{
	uint64_t count = cursor_varint(c);
	uint32_t next = 0, index = 0;
	if (c->bad || count < 1 || count > column->present)
		return ERR_DAMAGED;
	column->special_count = (uint32_t)count;
	column->specials = *c;
	for (uint64_t i = 0; i < count && !c->bad; i++)
		next_special(c, &next, &index);
	return c->bad || index >= column->present ? ERR_DAMAGED : 0;
}

static int column_read_decimal(struct column *column, struct cursor *c)
{
	column->exponent = 0;
	column->special_count = 0;
	if (!column->decimal)
		return 0;
	uint8_t byte = cursor_u8(c);
	column->exponent = byte & 0x7f;
	if (column->type != VALUE_F64 || column->exponent > DECIMAL_EXPONENT_MAX)
		return ERR_DAMAGED;
	return byte & DECIMAL_SPECIALS ? check_specials(column, c) : 0;
}

static bool is_integers(const struct column *column)
{
	return !column_is_plain_double(column) && !column->special_count;
}

static int read_integer_summary(struct column *column, struct cursor *c)
{
	struct integer_summary *s = &column->integers;
	s->first = column->codec.anchor;
	if (column->codec_number == CODEC_FOR)
		s->first += (uint64_t)zigzag_decode(cursor_varint(c));
	integer_summary_read(c, s);
	return c->bad ? ERR_DAMAGED : 0;
}

static int read_summary(struct column *column, struct cursor *c)
{
	column->has_summary =
		column->rows > BLOCK_NO_SUMMARY_ROWS && column->codec_number != CODEC_CONSTANT;
	if (!column->has_summary)
		return 0;
	if (is_integers(column))
		return read_integer_summary(column, c);
	column->wide = (struct block_summary){.count = column->present};
	column->wide.first.bits = column->codec.anchor;
	return wide_summary_read(c, column->type == VALUE_NONE,
				 column->codec_number == CODEC_FOR || column->decimal,
				 &column->wide);
}

/* What the table's last sentence forbids. */
static bool head_is_sound(const struct column *column, bool shifted)
{
	bool constant = column->codec_number == CODEC_CONSTANT;
	bool raw = column->codec_number == CODEC_RAW;
	if (constant && (column->type == VALUE_NONE || column->special_count))
		return false;
	return !(shifted && (constant || raw)) && !(raw && column->decimal);
}

static int read_shift(struct column *column, struct cursor *c, bool shifted)
{
	column->codec.shift = shifted ? cursor_u8(c) : 0;
	return column->codec.shift > 63 || (shifted && !column->codec.shift) ? ERR_DAMAGED : 0;
}

int column_open(struct column *column, struct slice bytes, uint32_t rows)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	column->rows = rows;
	column->present = 0;
	column->has_summary = false;
	column->presence = NULL;
	if (!bytes.len)
		return 0;
	uint8_t head = cursor_u8(&c);
	column->codec_number = column->codec.codec = head & HEAD_CODEC;
	column->type = head >> HEAD_TYPE_SHIFT & 3;
	column->decimal = head & HEAD_DECIMAL;
	if (column->codec_number == CODEC_LATER)
		return ERR_VERSION;
	if (read_presence(column, &c, head & HEAD_GAPS) || column_read_decimal(column, &c) ||
	    read_shift(column, &c, head & HEAD_SHIFTED) ||
	    !head_is_sound(column, head & HEAD_SHIFTED))
		return ERR_DAMAGED;
	column->codec.anchor = column_read_number(column, &c);
	if (read_summary(column, &c))
		return ERR_DAMAGED;
	column->codec.parameter = 0;
	if (has_parameter(column->codec_number))
		column->codec.parameter = (uint64_t)zigzag_decode(cursor_varint(&c));
	column->rest = c;
	return c.bad ? ERR_DAMAGED : 0;
}

static int read_stream(struct column *column, uint64_t *values)
{
	struct stream_reader stream;
	if (stream_read_begin(&stream, column->rest, column->rows, column->presence,
			      column->present))
		return ERR_DAMAGED;
	return stream_read_all(&stream, &column->codec, column->rows, column->presence, values);
}

int column_read_patterns(struct column *column, uint64_t *values)
{
	size_t left = cursor_left(&column->rest);
	switch (column->codec_number) {
	case CODEC_CONSTANT:
		for (uint32_t i = 0; i < column->present; i++)
			values[i] = column->codec.anchor;
		return left ? ERR_DAMAGED : 0;
	case CODEC_RAW:
		if (left != column->present * sizeof(*values))
			return ERR_DAMAGED;
		memcpy(values, column->rest.at, left);
		return 0;
	default:
		return read_stream(column, values);
	}
}

static void put_specials(const struct column *column, uint64_t *values)
{
	struct cursor c = column->specials;
	uint32_t next = 0, index;
	for (uint32_t i = 0; i < column->special_count; i++) {
		uint64_t bits = next_special(&c, &next, &index);
		values[index] = bits;
	}
}

static uint8_t column_stored_type(const struct column *column, uint32_t row)
{
	if (column->types)
		return column->types[row / 4] >> row % 4 * 2 & 3;
	return column->presence[row / 8] >> row % 8 & 1 ? column->type : VALUE_NONE;
}

/* From the present values at the front to their rows, backwards so that none is overwritten. */
static void spread(const struct column *column, uint64_t *bits, uint8_t *types)
{
	uint32_t k = column->present;
	for (uint32_t row = column->rows; row-- > 0;) {
		types[row] = column_stored_type(column, row);
		bits[row] = types[row] == VALUE_NONE ? 0 : bits[--k];
	}
}

int column_read(struct column *column, uint64_t *bits, uint8_t *types)
{
	if (!column->present) {
		memset(bits, 0, column->rows * sizeof(*bits));
		memset(types, VALUE_NONE, column->rows);
		return 0;
	}
	if (column_read_patterns(column, bits))
		return ERR_DAMAGED;
	if (column->decimal)
		kernels->decimals_to_bits(bits, column->present, column->exponent);
	if (column->special_count)
		put_specials(column, bits);
	if (column->presence)
		spread(column, bits, types);
	else
		memset(types, column->type, column->rows);
	return 0;
}

static void column_summarise_integers(const struct column *column, const struct integer_summary *s,
				      struct block_summary *summary)
{
	*summary = (struct block_summary){.count = column->present};
	integer_summary_expand(s, (enum value_type)column->type, column->exponent, summary);
}

/* `count` times the same value: the product, rounded once. */
static void summarise_constant(const struct column *column, struct block_summary *summary)
{
	uint64_t anchor = column->codec.anchor;
	struct integer_summary s = {anchor, anchor, anchor, anchor, 0};
	if (!column_is_plain_double(column)) {
		column_summarise_integers(column, &s, summary);
		return;
	}
	struct value v = {anchor, VALUE_F64};
	double d = value_as_f64(v);
	*summary = (struct block_summary){.count = column->present};
	summary->first = summary->last = v;
	if (!isnan(d))
		summary->min = summary->max = v;
	summary->doubles = d * (double)column->present;
	summary->scaled = d * 0x1p-64 * (double)column->present;
	block_summary_total(summary);
}

bool column_summary(const struct column *column, struct block_summary *summary)
{
	if (column->codec_number == CODEC_CONSTANT)
		summarise_constant(column, summary);
	else if (column->has_summary && is_integers(column))
		column_summarise_integers(column, &column->integers, summary);
	else if (column->has_summary)
		*summary = column->wide;
	return column->codec_number == CODEC_CONSTANT || column->has_summary;
}
