#include "store/lmdb/codec/block_small.h"

#include "store/lmdb/codec/column_format.h"
#include "store/lmdb/codec/stream.h"
#include "store/lmdb/codec/times.h"

enum { SECOND_MS = 1000, DECIMALS_MAX = 3 };

/* A column, or the times, as they will be written. */
struct plan {
	struct pattern_codec codec; /* CONSTANT, or what the residuals are */
	uint8_t width, type;
	uint8_t exponent; /* of a double that is: */
	bool decimal;
	uint32_t bytes;   /* of all; 0: nothing is */
	uint32_t present; /* a bit a row */
	uint32_t count;   /* of these bits */
};

struct small {
	const struct block_rows *rows;
	bool regular;
	uint64_t unit; /* of the times */
	struct plan times;
	struct plan column[BLOCK_COLUMNS_MAX];
};

/* The type of the values and where they are; false: they are not of one type. */
static bool block_small_scan_types(const struct block_column *column, uint32_t rows,
				   struct plan *plan)
{
	plan->type = (uint8_t)column->type;
	plan->count = column->type == VALUE_NONE ? 0 : rows;
	plan->present = (uint32_t)low_mask(plan->count);
	if (!column->types)
		return true;
	unsigned seen = 0;
	plan->count = plan->present = 0;
	for (uint32_t i = 0; i < rows; i++) {
		bool is = column->types[i] != VALUE_NONE;
		seen |= is ? 1u << column->types[i] : 0;
		plan->present |= (uint32_t)is << i;
		plan->count += is;
	}
	plan->type = (uint8_t)(seen ? __builtin_ctz(seen) : VALUE_NONE);
	return !(seen & (seen - 1));
}

/* The values that are there, at `values` where they do not lie together. */
static const uint64_t *block_small_gather(const struct block_column *column, uint32_t rows,
					  const struct plan *plan, uint64_t *values)
{
	if (plan->present == low_mask(rows))
		return column->bits;
	uint32_t count = 0;
	for (uint32_t left = plan->present; left; left &= left - 1)
		values[count++] = column->bits[__builtin_ctz(left)];
	return values;
}

/* Form and packed values. */
static uint32_t stream_bytes(uint32_t rows, unsigned width)
{
	return 1 + (uint32_t)packed_bytes(rows, width);
}

static uint8_t *put_stream(const struct plan *plan, const uint64_t *residuals, uint32_t rows,
			   uint8_t *to)
{
	*to++ = plan->width; /* the form: one width, no exceptions */
	kernels->pack(residuals, rows, plan->width, to);
	return to + packed_bytes(rows, plan->width);
}

/* ---- Times ---------------------------------------------------------------------------------- */

static void plan_times(struct small *s)
{
	const int64_t *ts_ms = s->rows->ts_ms;
	uint64_t least = UINT64_MAX, most = 0, rest = 0;
	for (uint32_t i = 1; i < s->rows->rows; i++) {
		uint64_t step = (uint64_t)ts_ms[i] - (uint64_t)ts_ms[i - 1];
		rest |= step % SECOND_MS;
		least = step < least ? step : least;
		most = step > most ? step : most;
	}
	s->regular = least >= most;
	if (s->regular)
		return;
	s->unit = rest ? 1 : SECOND_MS;
	s->times.codec.parameter = least / s->unit;
	s->times.width = (uint8_t)bit_width((most - least) / s->unit);
	s->times.bytes = 1 + (uint32_t)varint_bytes(s->unit) +
			 (uint32_t)varint_bytes(zigzag_encode((int64_t)(least / s->unit))) +
			 stream_bytes(s->rows->rows, s->times.width);
}

static uint8_t *put_times(const struct small *s, uint8_t *to)
{
	const int64_t *ts_ms = s->rows->ts_ms;
	uint64_t residuals[SMALL_ROWS_MAX] = {0};
	if (s->regular)
		return to;
	for (uint32_t i = 1; i < s->rows->rows; i++) {
		uint64_t step = (uint64_t)ts_ms[i] - (uint64_t)ts_ms[i - 1];
		residuals[i] = step / s->unit - s->times.codec.parameter;
	}
	*to++ = TIMES_STEPS;
	to += varint_put(to, s->unit);
	to += varint_put(to, zigzag_encode((int64_t)s->times.codec.parameter));
	return put_stream(&s->times, residuals, s->rows->rows, to);
}

/* ---- Columns -------------------------------------------------------------------------------- */

static uint64_t block_small_number_of(const struct plan *plan, uint64_t pattern)
{
	return plan->type == VALUE_U64 ? pattern : zigzag_encode((int64_t)pattern);
}

static uint32_t presence_bytes(const struct plan *plan, uint32_t rows)
{
	return plan->present == low_mask(rows) ? 0 : (rows + 7) / 8;
}

static uint32_t block_small_head_bytes(const struct plan *plan, const struct pattern_codec *codec)
{
	size_t bytes = 1 + (codec->shift ? 1 : 0) +
		       varint_bytes(block_small_number_of(plan, codec->anchor));
	if (has_parameter(codec->codec))
		bytes += varint_bytes(zigzag_encode((int64_t)codec->parameter));
	return (uint32_t)bytes;
}

/* The codec that takes the fewest bytes; plan->bytes are those before it. */
static void block_small_choose(struct plan *plan, uint64_t flip,
			       const struct pattern_survey *survey)
{
	static const enum codec codecs[] = {CODEC_DELTA, CODEC_FOR, CODEC_DELTA_UP};
	uint32_t least = UINT32_MAX, count = plan->count;
	for (size_t i = 0; i < ARRAY_LEN(codecs); i++) {
		unsigned width = pattern_codec_width(codecs[i], true, survey);
		if (i && width >= plan->width)
			continue;
		struct pattern_codec codec = pattern_codec_fit(codecs[i], true, flip, survey);
		uint32_t bytes = block_small_head_bytes(plan, &codec) + stream_bytes(count, width);
		if (bytes >= least)
			continue;
		least = bytes;
		plan->codec = codec;
		plan->width = (uint8_t)width;
	}
	plan->bytes += least;
}

/* One double in all rows, such as that of the only row; with few decimals, if it has. */
static bool plan_double(const uint64_t *values, uint32_t rows, struct plan *plan)
{
	uint64_t others = 0, m = 0;
	for (uint32_t i = 1; i < plan->count; i++)
		others |= values[i] ^ values[0];
	if (others)
		return false;
	plan->exponent = 0;
	while (plan->exponent < DECIMALS_MAX && !decimal_from_bits(values[0], plan->exponent, &m))
		plan->exponent++;
	plan->decimal = decimal_from_bits(values[0], plan->exponent, &m);
	plan->codec = (struct pattern_codec){CODEC_CONSTANT, 0, plan->decimal ? m : values[0], 0};
	plan->bytes = presence_bytes(plan, rows) + 1;
	plan->bytes += plan->decimal ? 1 + (uint32_t)varint_bytes(zigzag_encode((int64_t)m)) : 8;
	return true;
}

/* False: it is not what this is for. */
static bool plan_column(const struct block_column *column, uint32_t rows, struct plan *plan)
{
	struct pattern_survey survey;
	uint64_t values[SMALL_ROWS_MAX];
	plan->bytes = 0;
	plan->decimal = false;
	if (!block_small_scan_types(column, rows, plan))
		return false;
	if (!plan->present)
		return true;
	const uint64_t *present = block_small_gather(column, rows, plan, values);
	if (plan->type == VALUE_F64)
		return plan_double(present, rows, plan);
	uint64_t flip = plan->type == VALUE_I64 ? UINT64_C(1) << 63 : 0;
	kernels->survey(present, plan->count, flip, &survey);
	plan->bytes = presence_bytes(plan, rows);
	if (survey.low != survey.high) {
		block_small_choose(plan, flip, &survey);
		return true;
	}
	plan->codec = (struct pattern_codec){CODEC_CONSTANT, 0, survey.first, 0};
	plan->bytes += block_small_head_bytes(plan, &plan->codec);
	return true;
}

static uint8_t *block_small_put_head(const struct plan *plan, uint32_t rows, uint8_t *to)
{
	const struct pattern_codec *codec = &plan->codec;
	uint32_t presence = presence_bytes(plan, rows);
	*to++ = (uint8_t)(codec->codec | (unsigned)plan->type << HEAD_TYPE_SHIFT |
			  (codec->shift ? HEAD_SHIFTED : 0) | (presence ? HEAD_GAPS : 0) |
			  (plan->decimal ? HEAD_DECIMAL : 0));
	for (uint32_t i = 0; i < presence; i++)
		*to++ = (uint8_t)(plan->present >> 8 * i);
	if (plan->type == VALUE_F64 && !plan->decimal) {
		memcpy(to, &codec->anchor, sizeof(codec->anchor));
		return to + sizeof(codec->anchor);
	}
	if (plan->decimal)
		*to++ = plan->exponent;
	if (codec->shift)
		*to++ = codec->shift;
	to += varint_put(to, block_small_number_of(plan, codec->anchor));
	if (has_parameter(codec->codec))
		to += varint_put(to, zigzag_encode((int64_t)codec->parameter));
	return to;
}

static uint8_t *block_small_put_column(const struct plan *plan, const struct block_column *column,
				       uint32_t rows, uint8_t *to)
{
	uint64_t values[SMALL_ROWS_MAX], residuals[SMALL_ROWS_MAX];
	if (!plan->bytes)
		return to;
	to = block_small_put_head(plan, rows, to);
	if (plan->codec.codec == CODEC_CONSTANT)
		return to;
	struct pattern_carry carry = pattern_begin(&plan->codec);
	(void)kernels->to_residuals(&plan->codec, &carry,
				    block_small_gather(column, rows, plan, values), plan->count,
				    residuals);
	return put_stream(plan, residuals, plan->count, to);
}

/* ---- The block ------------------------------------------------------------------------------ */

static bool plan_block(struct small *s, size_t *bytes)
{
	plan_times(s);
	*bytes = s->regular ? 0 : s->times.bytes;
	for (uint32_t c = 0; c < s->rows->columns; c++) {
		if (!plan_column(&s->rows->column[c], s->rows->rows, &s->column[c]))
			return false;
		*bytes += varint_bytes(s->column[c].bytes) + s->column[c].bytes;
	}
	return true;
}

static uint8_t *block_small_put_body(const struct small *s, uint8_t *to)
{
	for (uint32_t c = 0; c < s->rows->columns; c++)
		to += varint_put(to, s->column[c].bytes);
	for (uint32_t c = 0; c < s->rows->columns; c++)
		to = block_small_put_column(&s->column[c], &s->rows->column[c], s->rows->rows, to);
	return to;
}

enum small_outcome small_encode(const struct block_rows *rows, uint8_t *to, size_t room,
				struct block *out)
{
	struct small s;
	size_t bytes;
	s.rows = rows;
	if (rows->dense || rows->rows > SMALL_ROWS_MAX || !plan_block(&s, &bytes))
		return SMALL_UNLIKELY;
	if (bytes > room)
		return SMALL_NO_ROOM;
	uint8_t *times_end = put_times(&s, to), *end = block_small_put_body(&s, times_end);
	ASSERT((size_t)(end - to) == bytes);
	out->meta.rows = rows->rows;
	out->meta.columns = (uint16_t)rows->columns;
	out->meta.first_ts_ms = rows->ts_ms[0];
	out->meta.last_ts_ms = rows->ts_ms[rows->rows - 1];
	out->regular = s.regular;
	out->times = (struct slice){(const char *)to, (size_t)(times_end - to)};
	out->body = (struct slice){(const char *)times_end, (size_t)(end - times_end)};
	return SMALL_TAKEN;
}
