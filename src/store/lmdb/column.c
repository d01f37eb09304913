#include "store/lmdb/column.h"

#include <math.h>

#include "store/lmdb/summary.h"

/* The head byte (doc/format-store.md, "Column"). */
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

/* ---- One mini-block of rows, as patterns ---------------------------------------------------- */

struct chunk {
	const uint64_t
		*patterns; /* of the present rows: the column's own memory, or one of these */
	uint32_t count, special_count;
	uint64_t gathered[MINI_ROWS], integers[MINI_ROWS];
};

/* What the types of some rows are: 0 when none is present, MANY when they differ. */
enum { MANY = 4 };

static unsigned scan_types(const uint8_t *types, uint32_t count, uint32_t *present)
{
	unsigned seen = 0;
	uint32_t values = 0;
	for (uint32_t i = 0; i < count; i++) {
		seen |= 1u << types[i];
		values += types[i] != VALUE_NONE;
	}
	*present = values;
	seen >>= 1;
	if (seen & (seen - 1))
		return MANY;
	return seen == 4 ? VALUE_U64 : seen;
}

static void gather(const struct block_column *column, uint32_t from, uint32_t count,
		   uint32_t present, struct chunk *chunk)
{
	chunk->patterns = column->bits + from;
	chunk->count = present;
	chunk->special_count = 0;
	if (present == count)
		return;
	uint32_t k = 0;
	for (uint32_t i = from; i < from + count; i++) {
		if (column->types && column->types[i] != VALUE_NONE)
			chunk->gathered[k++] = column->bits[i];
	}
	chunk->patterns = chunk->gathered;
}

/* A special leaves the integer before it in its place; at the start of a column, the one behind. */
static void load_decimals(struct chunk *chunk, unsigned exponent, bool has_previous,
			  uint64_t previous)
{
	const uint64_t *bits = chunk->patterns;
	uint64_t *m = chunk->integers;
	uint32_t i = (uint32_t)kernels->decimals_from_bits(bits, chunk->count, exponent, m),
		 lead = 0;
	if (i) {
		has_previous = true;
		previous = m[i - 1];
	}
	for (; i < chunk->count; i++) {
		if (decimal_from_bits(bits[i], exponent, &m[i])) {
			for (; !has_previous && lead < i; lead++)
				m[lead] = m[i];
			has_previous = true;
			previous = m[i];
		} else {
			chunk->special_count++;
			m[i] = previous;
		}
	}
	chunk->patterns = m;
}

/* ---- Choosing ------------------------------------------------------------------------------- */

static bool is_wide(const struct column_cost *cost)
{
	return cost->limits.mixed || cost->specials ||
	       (cost->plan.type == VALUE_F64 && !cost->plan.decimal);
}

static bool is_signed(const struct column_cost *cost)
{
	return !cost->limits.mixed && (cost->plan.decimal || cost->plan.type == VALUE_I64);
}

/* Patterns are in order as unsigned integers after this. */
static uint64_t order_flip(const struct column_cost *cost)
{
	return is_signed(cost) ? UINT64_C(1) << 63 : 0;
}

static size_t number_bytes(const struct column_cost *cost, uint64_t pattern)
{
	if (cost->limits.mixed || (cost->plan.type == VALUE_F64 && !cost->plan.decimal))
		return 8;
	return varint_bytes(cost->plan.type == VALUE_U64 ? pattern
							 : zigzag_encode((int64_t)pattern));
}

static bool has_parameter(uint8_t codec)
{
	return codec == CODEC_DELTA_UP || codec == CODEC_DELTA2;
}

static size_t codec_bytes(const struct column_cost *cost, const struct pattern_codec *codec)
{
	size_t bytes = number_bytes(cost, codec->anchor) + (codec->shift ? 1 : 0);
	if (has_parameter(codec->codec))
		bytes += varint_bytes(zigzag_encode((int64_t)codec->parameter));
	return bytes;
}

/* Its residuals are distances from below, not from the middle. */
static bool may_centre(uint8_t codec)
{
	return codec == CODEC_FOR || codec == CODEC_DELTA_UP;
}

static size_t try_codec(const struct column_cost *cost, const struct pattern_codec *codec,
			const uint64_t *patterns, uint32_t count)
{
	uint64_t residuals[MINI_ROWS];
	struct stream_cost stream;
	struct pattern_carry carry = pattern_begin(codec);
	if (kernels->to_residuals(codec, &carry, patterns, count, residuals))
		return SIZE_MAX;
	stream_cost_init(&stream, NULL);
	stream_cost_add(&stream, residuals, count);
	return codec_bytes(cost, codec) + stream_cost_form(&stream).bytes;
}

static size_t try_fit(const struct column_cost *cost, enum codec number,
		      const struct pattern_survey *survey, const uint64_t *patterns,
		      struct pattern_codec *codec)
{
	*codec = pattern_codec_fit(number, !cost->limits.no_shift, order_flip(cost), survey);
	return try_codec(cost, codec, patterns, (uint32_t)survey->count);
}

/* DELTA unless another leaves clearly fewer bits to an entropy code. */
static void choose_for_entropy(struct column_cost *cost, const struct pattern_survey *survey,
			       const uint64_t *patterns)
{
	static const enum codec codecs[] = {CODEC_DELTA, CODEC_FOR, CODEC_DELTA_UP, CODEC_DELTA2};
	uint64_t residuals[MINI_ROWS];
	size_t least = SIZE_MAX;
	for (size_t i = 0; i < ARRAY_LEN(codecs); i++) {
		struct pattern_codec codec = pattern_codec_fit(codecs[i], !cost->limits.no_shift,
							       order_flip(cost), survey);
		struct pattern_carry carry = pattern_begin(&codec);
		if (kernels->to_residuals(&codec, &carry, patterns, survey->count, residuals))
			continue;
		size_t bits =
			entropy_estimate(residuals, survey->count, may_centre((uint8_t)codecs[i]));
		bits += 8 * codec_bytes(cost, &codec) + (i ? survey->count / 16 : 0);
		if (bits < least) {
			least = bits;
			cost->plan.codec = codec;
		}
	}
}

/* DELTA unless another has narrower residuals, and is smaller all in all. */
static void choose_for_integers(struct column_cost *cost, const struct pattern_survey *survey,
				const uint64_t *patterns)
{
	static const enum codec others[] = {CODEC_FOR, CODEC_DELTA_UP, CODEC_DELTA2};
	bool shift = !cost->limits.no_shift;
	unsigned width = pattern_codec_width(CODEC_DELTA, shift, survey);
	size_t least = 0;
	cost->plan.codec = pattern_codec_fit(CODEC_DELTA, shift, order_flip(cost), survey);
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		struct pattern_codec codec;
		if (pattern_codec_width(others[i], shift, survey) >= width)
			continue;
		if (!least)
			least = try_codec(cost, &cost->plan.codec, patterns,
					  (uint32_t)survey->count);
		size_t bytes = try_fit(cost, others[i], survey, patterns, &codec);
		if (bytes < least) {
			least = bytes;
			cost->plan.codec = codec;
		}
	}
}

/* The bits of doubles have no outliers to leave aside: the narrowest is the smallest. */
static void choose_for_doubles(struct column_cost *cost, const struct pattern_survey *survey)
{
	static const enum codec codecs[] = {CODEC_XOR, CODEC_DELTA, CODEC_FOR};
	bool shift = !cost->limits.no_shift;
	unsigned least = UINT8_MAX;
	for (size_t i = 0; i < ARRAY_LEN(codecs); i++) {
		unsigned width = pattern_codec_width(codecs[i], shift, survey);
		if (width >= least)
			continue;
		least = width;
		cost->plan.codec = pattern_codec_fit(codecs[i], shift, order_flip(cost), survey);
	}
}

/* The first mini-block that has values stands for the column. */
static void choose_codec(struct column_cost *cost, const uint64_t *patterns, uint32_t count)
{
	struct pattern_survey survey;
	kernels->survey(patterns, count, order_flip(cost), &survey);
	if (cost->limits.mixed || (cost->plan.type == VALUE_F64 && !cost->plan.decimal))
		choose_for_doubles(cost, &survey);
	else if (cost->stream.entropy)
		choose_for_entropy(cost, &survey, patterns);
	else
		choose_for_integers(cost, &survey, patterns);
}

static void choose_decimal(struct column_cost *cost, const struct chunk *chunk)
{
	if (cost->plan.type != VALUE_F64 || cost->limits.mixed || cost->limits.no_decimal)
		return;
	int exponent = decimal_exponent_fit(chunk->patterns, chunk->count);
	cost->plan.decimal = exponent >= 0;
	cost->plan.exponent = cost->plan.decimal ? (uint8_t)exponent : 0;
}

/* ---- Cost ----------------------------------------------------------------------------------- */

void column_cost_init(struct column_cost *cost, struct column_limits limits,
		      struct entropy_cost *entropy)
{
	memset(cost, 0, offsetof(struct column_cost, stream));
	if (entropy)
		entropy_cost_init(entropy, false);
	stream_cost_init(&cost->stream, entropy);
	cost->limits = limits;
	cost->range.low = UINT64_MAX;
}

static void load(const struct column_cost *cost, const struct block_column *column, uint32_t from,
		 uint32_t count, uint32_t present, bool has_previous, uint64_t previous,
		 struct chunk *chunk)
{
	gather(column, from, count, present, chunk);
	if (cost->plan.decimal)
		load_decimals(chunk, cost->plan.exponent, has_previous, previous);
}

static void choose(struct column_cost *cost, const struct block_column *column, uint32_t from,
		   uint32_t count, uint32_t present, unsigned type)
{
	struct chunk chunk;
	cost->plan.chosen = true;
	cost->plan.type = (uint8_t)type;
	gather(column, from, count, present, &chunk);
	choose_decimal(cost, &chunk);
	load(cost, column, from, count, present, false, 0, &chunk);
	choose_codec(cost, chunk.patterns, chunk.count);
}

void column_cost_adopt(struct column_cost *cost, const struct column_cost *other)
{
	if (cost->plan.chosen)
		return;
	cost->plan = other->plan;
	if (cost->stream.entropy)
		entropy_cost_adopt(cost->stream.entropy, other->stream.entropy);
}

/* At the first value: rows without any before it are empty mini-blocks. */
static void begin(struct column_cost *cost, uint64_t first)
{
	for (uint32_t row = 0; row < cost->rows; row += MINI_ROWS)
		stream_cost_add(&cost->stream, NULL, 0);
	if (cost->stream.entropy)
		cost->stream.entropy->may_centre = may_centre(cost->plan.codec.codec);
	cost->carry = pattern_begin(&cost->plan.codec);
	cost->first_pattern = first;
}

static bool too_many_specials(const struct column_cost *cost)
{
	return cost->specials > 4 + cost->present / 16;
}

/* The values of a mini-block of a chosen column. */
static bool add_values(struct column_cost *cost, const struct block_column *column, uint32_t from,
		       uint32_t count, uint32_t present, struct column_limits *limits)
{
	struct chunk chunk;
	uint64_t residuals[MINI_ROWS];
	load(cost, column, from, count, present, cost->present > 0, cost->last_pattern, &chunk);
	if (!cost->present)
		begin(cost, chunk.patterns[0]);
	if (kernels->to_residuals(&cost->plan.codec, &cost->carry, chunk.patterns, chunk.count,
				  residuals)) {
		limits->no_shift = true;
		return false;
	}
	stream_cost_add(&cost->stream, residuals, chunk.count);
	cost->present += chunk.count;
	cost->specials += chunk.special_count;
	if (too_many_specials(cost)) {
		limits->no_decimal = true;
		return false;
	}
	if (chunk.count)
		cost->last_pattern = chunk.patterns[chunk.count - 1];
	kernels->add_range(&cost->range, cost->first_pattern, order_flip(cost), chunk.patterns,
			   chunk.count);
	return true;
}

bool column_cost_add(struct column_cost *cost, const struct block_column *column, uint32_t from,
		     uint32_t count, struct column_limits *limits)
{
	uint32_t present = column->type == VALUE_NONE ? 0 : count;
	unsigned type = column->type;
	if (column->types)
		type = scan_types(column->types + from, count, &present);
	if (type == MANY || (cost->plan.chosen && type && type != cost->plan.type)) {
		if (!cost->limits.mixed) {
			limits->mixed = true;
			return false;
		}
	}
	if (present && !cost->plan.chosen)
		choose(cost, column, from, count, present, type == MANY ? VALUE_U64 : type);
	bool begun = present || cost->present;
	if (begun && !add_values(cost, column, from, count, present, limits))
		return false;
	cost->rows += count;
	return true;
}

/* ---- What the cost comes to ----------------------------------------------------------------- */

static bool is_constant(const struct column_cost *cost)
{
	return !cost->range.varies && !cost->limits.mixed && !cost->specials;
}

static struct integer_summary integer_summary_of(const struct column_cost *cost)
{
	uint64_t flip = order_flip(cost);
	__int128 first = (__int128)(cost->first_pattern ^ flip);
	return (struct integer_summary){
		.first = cost->first_pattern,
		.low = cost->range.low ^ flip,
		.high = cost->range.high ^ flip,
		.last = cost->last_pattern,
		.deviation = cost->range.total - first * (__int128)cost->present,
	};
}

static bool first_in_summary(const struct column_cost *cost)
{
	return cost->plan.codec.codec == CODEC_FOR || cost->plan.decimal;
}

static uint64_t first_beyond_anchor(const struct column_cost *cost)
{
	return zigzag_encode((int64_t)(cost->first_pattern - cost->plan.codec.anchor));
}

static size_t summary_bytes(const struct column_cost *cost)
{
	if (cost->rows <= BLOCK_NO_SUMMARY_ROWS)
		return 0;
	if (is_wide(cost))
		return 32 + (cost->limits.mixed ? 1 : 0) + (first_in_summary(cost) ? 8 : 0);
	struct integer_summary s = integer_summary_of(cost);
	size_t first = 0;
	if (cost->plan.codec.codec == CODEC_FOR)
		first = varint_bytes(first_beyond_anchor(cost));
	return first + integer_summary_bytes(&s);
}

static size_t head_bytes(const struct column_cost *cost)
{
	size_t bytes = 1 + (cost->plan.decimal ? 1 : 0);
	if (cost->limits.mixed)
		bytes += (cost->rows + 3) / 4;
	else if (cost->present < cost->rows)
		bytes += (cost->rows + 7) / 8;
	if (cost->specials)
		bytes += varint_bytes(cost->specials) + cost->specials * SPECIAL_MAX_BYTES;
	return bytes;
}

/* Packing has won nothing: the patterns as they are take no more. */
static bool is_raw(const struct column_cost *cost, const struct stream_form *form)
{
	return !cost->plan.decimal && form->bytes > 8 * (size_t)cost->present;
}

size_t column_cost_bytes(const struct column_cost *cost)
{
	if (!cost->present)
		return 0;
	if (is_constant(cost))
		return head_bytes(cost) + number_bytes(cost, cost->first_pattern);
	struct stream_form form = stream_cost_form(&cost->stream);
	/* As raw the anchor is the first value, which may be longer than that of FOR. */
	return head_bytes(cost) + codec_bytes(cost, &cost->plan.codec) + summary_bytes(cost) +
	       (is_raw(cost, &form) ? 8 * (size_t)cost->present + 10 : form.bytes);
}

/* ---- Writing -------------------------------------------------------------------------------- */

struct column_writer {
	const struct column_cost *cost;
	const struct block_column *column;
	struct pattern_codec codec; /* or RAW */
	uint8_t *to;
};

static uint8_t type_at(const struct block_column *column, uint32_t row)
{
	return column->types ? column->types[row] : (uint8_t)column->type;
}

static void write_presence(struct column_writer *w)
{
	uint32_t rows = w->cost->rows;
	size_t bytes = w->cost->limits.mixed ? (rows + 3) / 4 : (rows + 7) / 8;
	if (!w->cost->limits.mixed && w->cost->present == rows)
		return;
	memset(w->to, 0, bytes);
	for (uint32_t i = 0; i < rows; i++) {
		uint8_t type = type_at(w->column, i);
		if (w->cost->limits.mixed)
			w->to[i / 4] = (uint8_t)(w->to[i / 4] | type << i % 4 * 2);
		else if (type != VALUE_NONE)
			w->to[i / 8] = (uint8_t)(w->to[i / 8] | 1u << i % 8);
	}
	w->to += bytes;
}

static void put_varint(struct column_writer *w, uint64_t n)
{
	w->to += varint_put(w->to, n);
}

static void put_bits(struct column_writer *w, uint64_t bits)
{
	memcpy(w->to, &bits, 8);
	w->to += 8;
}

static void put_number(struct column_writer *w, uint64_t pattern)
{
	const struct column_cost *cost = w->cost;
	if (cost->limits.mixed || (cost->plan.type == VALUE_F64 && !cost->plan.decimal))
		put_bits(w, pattern);
	else
		put_varint(w, cost->plan.type == VALUE_U64 ? pattern
							   : zigzag_encode((int64_t)pattern));
}

static void write_specials(struct column_writer *w)
{
	uint32_t index = 0, next = 0;
	uint64_t m;
	put_varint(w, w->cost->specials);
	for (uint32_t i = 0; i < w->cost->rows; i++) {
		if (type_at(w->column, i) == VALUE_NONE)
			continue;
		if (!decimal_from_bits(w->column->bits[i], w->cost->plan.exponent, &m)) {
			put_varint(w, index - next);
			put_bits(w, w->column->bits[i]);
			next = index + 1;
		}
		index++;
	}
}

static void write_head(struct column_writer *w)
{
	const struct column_cost *cost = w->cost;
	unsigned head = w->codec.codec;
	head |= (cost->limits.mixed ? 0u : cost->plan.type) << HEAD_TYPE_SHIFT;
	head |= w->codec.shift ? HEAD_SHIFTED : 0;
	head |= !cost->limits.mixed && cost->present < cost->rows ? HEAD_GAPS : 0;
	head |= cost->plan.decimal ? HEAD_DECIMAL : 0;
	*w->to++ = (uint8_t)head;
	write_presence(w);
	if (cost->plan.decimal)
		*w->to++ = (uint8_t)(cost->plan.exponent | (cost->specials ? DECIMAL_SPECIALS : 0));
	if (cost->specials)
		write_specials(w);
	if (w->codec.shift)
		*w->to++ = w->codec.shift;
	put_number(w, w->codec.anchor);
}

static void write_summary(struct column_writer *w)
{
	const struct column_cost *cost = w->cost;
	if (cost->rows <= BLOCK_NO_SUMMARY_ROWS)
		return;
	if (is_wide(cost)) {
		struct block_summary s;
		bool plain = !cost->limits.mixed && cost->present == cost->rows;
		block_summarise(NULL, w->column->bits, plain ? NULL : w->column->types,
				(enum value_type)cost->plan.type, cost->rows, &s);
		w->to = wide_summary_put(&s, cost->limits.mixed,
					 w->codec.codec == CODEC_FOR || cost->plan.decimal, w->to);
		return;
	}
	struct integer_summary s = integer_summary_of(cost);
	if (w->codec.codec == CODEC_FOR)
		put_varint(w, first_beyond_anchor(cost));
	w->to = integer_summary_put(&s, w->to);
}

static void write_values(struct column_writer *w)
{
	const struct column_cost *cost = w->cost;
	struct pattern_carry carry = pattern_begin(&cost->plan.codec);
	struct stream_writer stream;
	struct chunk chunk;
	uint64_t residuals[MINI_ROWS], previous = 0;
	uint32_t seen = 0;
	bool raw = w->codec.codec == CODEC_RAW;
	if (!raw)
		stream_write_begin(&stream, &cost->stream, w->to);
	for (uint32_t m = 0; m < cost->stream.minis; m++) {
		uint32_t from = m * MINI_ROWS;
		uint32_t count = cost->rows - from < MINI_ROWS ? cost->rows - from : MINI_ROWS;
		load(cost, w->column, from, count, cost->stream.counts[m], seen > 0, previous,
		     &chunk);
		if (raw) {
			memcpy(w->to, chunk.patterns, chunk.count * sizeof(uint64_t));
			w->to += chunk.count * sizeof(uint64_t);
			continue;
		}
		kernels->to_residuals(&cost->plan.codec, &carry, chunk.patterns, chunk.count,
				      residuals);
		stream_write(&stream, residuals, chunk.count);
		seen += chunk.count;
		if (chunk.count)
			previous = chunk.patterns[chunk.count - 1];
	}
	if (!raw)
		w->to = stream_write_end(&stream);
}

uint8_t *column_write(const struct column_cost *cost, const struct block_column *column,
		      uint8_t *to)
{
	struct column_writer w = {cost, column, cost->plan.codec, to};
	if (!cost->present)
		return to;
	struct stream_form form = stream_cost_form(&cost->stream);
	if (is_constant(cost))
		w.codec = (struct pattern_codec){CODEC_CONSTANT, 0, cost->first_pattern, 0};
	else if (is_raw(cost, &form))
		w.codec = (struct pattern_codec){CODEC_RAW, 0, cost->first_pattern, 0};
	write_head(&w);
	if (w.codec.codec == CODEC_CONSTANT)
		return w.to;
	write_summary(&w);
	if (has_parameter(w.codec.codec))
		put_varint(&w, zigzag_encode((int64_t)w.codec.parameter));
	write_values(&w);
	return w.to;
}

/* ---- Reading -------------------------------------------------------------------------------- */

bool column_is_plain_double(const struct column *column)
{
	return column->type == VALUE_NONE || (column->type == VALUE_F64 && !column->decimal);
}

static uint64_t read_number(const struct column *column, struct cursor *c)
{
	if (column_is_plain_double(column))
		return cursor_u64(c);
	uint64_t n = cursor_varint(c);
	return column->type == VALUE_U64 ? n : (uint64_t)zigzag_decode(n);
}

/* Bits behind the last row must be 0: counts are taken over whole bytes. */
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

static int read_decimal(struct column *column, struct cursor *c)
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

static int read_integer_summary(struct column *column, struct cursor *c)
{
	struct integer_summary s = {.first = column->codec.anchor};
	if (column->codec_number == CODEC_FOR)
		s.first += (uint64_t)zigzag_decode(cursor_varint(c));
	integer_summary_read(c, &s);
	integer_summary_expand(&s, (enum value_type)column->type, column->exponent,
			       &column->summary);
	return c->bad ? ERR_DAMAGED : 0;
}

static int read_summary(struct column *column, struct cursor *c)
{
	column->has_summary =
		column->rows > BLOCK_NO_SUMMARY_ROWS && column->codec_number != CODEC_CONSTANT;
	if (!column->has_summary)
		return 0;
	column->summary = (struct block_summary){.count = column->present};
	if (!column_is_plain_double(column) && !column->special_count)
		return read_integer_summary(column, c);
	column->summary.first.bits = column->codec.anchor;
	return wide_summary_read(c, column->type == VALUE_NONE,
				 column->codec_number == CODEC_FOR || column->decimal,
				 &column->summary);
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
	if (read_presence(column, &c, head & HEAD_GAPS) || read_decimal(column, &c) ||
	    read_shift(column, &c, head & HEAD_SHIFTED) ||
	    !head_is_sound(column, head & HEAD_SHIFTED))
		return ERR_DAMAGED;
	column->codec.anchor = read_number(column, &c);
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

static uint8_t stored_type(const struct column *column, uint32_t row)
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
		types[row] = stored_type(column, row);
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

/* `count` times the same value: the product, rounded once. */
static void summarise_constant(const struct column *column, struct block_summary *summary)
{
	uint64_t anchor = column->codec.anchor;
	struct integer_summary s = {anchor, anchor, anchor, anchor, 0};
	*summary = (struct block_summary){.count = column->present};
	if (!column_is_plain_double(column)) {
		integer_summary_expand(&s, (enum value_type)column->type, column->exponent,
				       summary);
		return;
	}
	struct value v = {anchor, VALUE_F64};
	double d = value_as_f64(v);
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
	else if (column->has_summary)
		*summary = column->summary;
	return column->codec_number == CODEC_CONSTANT || column->has_summary;
}
