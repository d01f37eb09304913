/* How a column is written: what it would cost is known before a byte is. The codec is chosen by its
 * first mini-block with values; each mini-block is then added to the cost, and when the block knows
 * how many rows fit they are written by the plan that the cost holds. Back again: column_read.c. */
#include "store/lmdb/codec/column.h"

#include "store/lmdb/codec/column_format.h"
#include "store/lmdb/codec/summary.h"

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

static void column_gather(const struct block_column *column, uint32_t from, uint32_t count,
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

/* A special leaves the integer before it in its place; at the start of a column, the one after. */
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

static bool column_is_wide(const struct column_cost *cost)
{
	return cost->limits.mixed || cost->specials ||
	       (cost->plan.type == VALUE_F64 && !cost->plan.decimal);
}

static bool is_signed(const struct column_cost *cost)
{
	return !cost->limits.mixed && (cost->plan.decimal || cost->plan.type == VALUE_I64);
}

/* Patterns are in order as unsigned integers after this. */
static uint64_t column_order_flip(const struct column_cost *cost)
{
	return is_signed(cost) ? UINT64_C(1) << 63 : 0;
}

static size_t column_number_bytes(const struct column_cost *cost, uint64_t pattern)
{
	if (cost->limits.mixed || (cost->plan.type == VALUE_F64 && !cost->plan.decimal))
		return 8;
	return varint_bytes(cost->plan.type == VALUE_U64 ? pattern
							 : zigzag_encode((int64_t)pattern));
}

static size_t codec_bytes(const struct column_cost *cost, const struct pattern_codec *codec)
{
	size_t bytes = column_number_bytes(cost, codec->anchor) + (codec->shift ? 1 : 0);
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
	*codec = pattern_codec_fit(number, !cost->limits.no_shift, column_order_flip(cost), survey);
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
							       column_order_flip(cost), survey);
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
	cost->plan.codec = pattern_codec_fit(CODEC_DELTA, shift, column_order_flip(cost), survey);
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
		cost->plan.codec =
			pattern_codec_fit(codecs[i], shift, column_order_flip(cost), survey);
	}
}

/* The first mini-block that has values stands for the column. */
static void choose_codec(struct column_cost *cost, const uint64_t *patterns, uint32_t count)
{
	struct pattern_survey survey;
	kernels->survey(patterns, count, column_order_flip(cost), &survey);
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

static void column_load(const struct column_cost *cost, const struct block_column *column,
			uint32_t from, uint32_t count, uint32_t present, bool has_previous,
			uint64_t previous, struct chunk *chunk)
{
	column_gather(column, from, count, present, chunk);
	if (cost->plan.decimal)
		load_decimals(chunk, cost->plan.exponent, has_previous, previous);
}

static void column_choose(struct column_cost *cost, const struct block_column *column,
			  uint32_t from, uint32_t count, uint32_t present, unsigned type)
{
	struct chunk chunk;
	cost->plan.chosen = true;
	cost->plan.type = (uint8_t)type;
	column_gather(column, from, count, present, &chunk);
	choose_decimal(cost, &chunk);
	column_load(cost, column, from, count, present, false, 0, &chunk);
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
static void column_begin(struct column_cost *cost, uint64_t first)
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
	column_load(cost, column, from, count, present, cost->present > 0, cost->last_pattern,
		    &chunk);
	if (!cost->present)
		column_begin(cost, chunk.patterns[0]);
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
	kernels->add_range(&cost->range, cost->first_pattern, column_order_flip(cost),
			   chunk.patterns, chunk.count);
	return true;
}

/* ---- Columns that stay the same ---------------------------------------------------------------
 */

static bool all_are(const uint64_t *bits, uint32_t count, uint64_t value)
{
	uint64_t others = 0;
	for (uint32_t i = 0; i < count; i++)
		others |= bits[i] ^ value;
	return !others;
}

/* Many columns never change (flags, states), and looking for a codec would be for nothing. */
static bool stays_same(const struct column_cost *cost, const struct block_column *column,
		       uint32_t from, uint32_t count)
{
	bool integers = column->type == VALUE_I64 || column->type == VALUE_U64;
	if (cost->rows ? !cost->same : cost->limits.mixed || cost->plan.chosen)
		return false;
	return integers && !column->types && (!cost->rows || column->type == cost->plan.type) &&
	       all_are(column->bits + from, count, column->bits[0]);
}

static bool add_same(struct column_cost *cost, const struct block_column *column, uint32_t count)
{
	cost->same = true;
	cost->plan.type = (uint8_t)column->type;
	cost->first_pattern = cost->last_pattern = column->bits[0];
	cost->rows += count;
	cost->present += count;
	return true;
}

static bool column_add_any(struct column_cost *cost, const struct block_column *column,
			   uint32_t from, uint32_t count, struct column_limits *limits);

/* Now that it has changed: what was left out. */
static bool catch_up(struct column_cost *cost, const struct block_column *column,
		     struct column_limits *limits)
{
	uint32_t rows = cost->rows;
	cost->same = false;
	cost->rows = cost->present = 0;
	for (uint32_t row = 0; row < rows; row += MINI_ROWS) {
		uint32_t count = rows - row < MINI_ROWS ? rows - row : MINI_ROWS;
		if (!column_add_any(cost, column, row, count, limits))
			return false;
	}
	return true;
}

bool column_cost_add(struct column_cost *cost, const struct block_column *column, uint32_t from,
		     uint32_t count, struct column_limits *limits)
{
	if (stays_same(cost, column, from, count))
		return add_same(cost, column, count);
	if (cost->same && !catch_up(cost, column, limits))
		return false;
	return column_add_any(cost, column, from, count, limits);
}

static bool column_add_any(struct column_cost *cost, const struct block_column *column,
			   uint32_t from, uint32_t count, struct column_limits *limits)
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
		column_choose(cost, column, from, count, present, type == MANY ? VALUE_U64 : type);
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
	uint64_t flip = column_order_flip(cost);
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
	if (column_is_wide(cost))
		return 32 + (cost->limits.mixed ? 1 : 0) + (first_in_summary(cost) ? 8 : 0);
	struct integer_summary s = integer_summary_of(cost);
	size_t first = 0;
	if (cost->plan.codec.codec == CODEC_FOR)
		first = varint_bytes(first_beyond_anchor(cost));
	return first + integer_summary_bytes(&s);
}

static size_t column_head_bytes(const struct column_cost *cost)
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
static bool column_is_raw(const struct column_cost *cost, const struct stream_form *form)
{
	return !cost->plan.decimal && form->bytes > 8 * (size_t)cost->present;
}

size_t column_cost_bytes(const struct column_cost *cost)
{
	if (!cost->present)
		return 0;
	if (is_constant(cost))
		return column_head_bytes(cost) + column_number_bytes(cost, cost->first_pattern);
	struct stream_form form = stream_cost_form(&cost->stream);
	/* As raw the anchor is the first value, which may be longer than that of FOR. */
	return column_head_bytes(cost) + codec_bytes(cost, &cost->plan.codec) +
	       summary_bytes(cost) +
	       (column_is_raw(cost, &form) ? 8 * (size_t)cost->present + 10 : form.bytes);
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

static void column_put_number(struct column_writer *w, uint64_t pattern)
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

static void column_write_head(struct column_writer *w)
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
	column_put_number(w, w->codec.anchor);
}

static void write_summary(struct column_writer *w)
{
	const struct column_cost *cost = w->cost;
	if (cost->rows <= BLOCK_NO_SUMMARY_ROWS)
		return;
	if (column_is_wide(cost)) {
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
		column_load(cost, w->column, from, count, cost->stream.counts[m], seen > 0,
			    previous, &chunk);
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
	else if (column_is_raw(cost, &form))
		w.codec = (struct pattern_codec){CODEC_RAW, 0, cost->first_pattern, 0};
	column_write_head(&w);
	if (w.codec.codec == CODEC_CONSTANT)
		return w.to;
	write_summary(&w);
	if (has_parameter(w.codec.codec))
		put_varint(&w, zigzag_encode((int64_t)w.codec.parameter));
	write_values(&w);
	return w.to;
}
