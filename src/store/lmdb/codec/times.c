#include "store/lmdb/codec/times.h"

/* Times that are all whole seconds apart are counted in seconds. */
enum { SECOND_MS = 1000 };

void times_cost_init(struct times_cost *cost, bool any_ms, struct entropy_cost *entropy)
{
	memset(cost, 0, offsetof(struct times_cost, stream));
	if (entropy)
		entropy_cost_init(entropy, true);
	stream_cost_init(&cost->stream, entropy);
	cost->any_ms = any_ms;
}

/* q of rows from .. from+count-1, less the line; false: not whole units. */
static bool to_patterns(const struct times_cost *cost, const int64_t *ts_ms, uint32_t from,
			uint32_t count, uint64_t *patterns)
{
	uint64_t first = (uint64_t)cost->first_ms, rest = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t q = (uint64_t)ts_ms[from + i] - first;
		if (cost->unit == SECOND_MS) {
			rest |= q % SECOND_MS;
			q /= SECOND_MS;
		}
		patterns[i] = q - (from + i) * cost->slope;
	}
	return rest == 0;
}

/* `codec` of `kind` is what costs the sample least; the best so far is in cost. */
static size_t try_kind(struct times_cost *cost, uint8_t kind, uint64_t slope, const int64_t *ts_ms,
		       uint32_t count, size_t least)
{
	uint64_t patterns[MINI_ROWS], residuals[MINI_ROWS];
	struct times_cost attempt = *cost;
	attempt.kind = kind;
	attempt.slope = slope;
	(void)to_patterns(&attempt, ts_ms, 0, count, patterns);
	struct pattern_survey survey;
	uint64_t flip = UINT64_C(1) << 63;
	kernels->survey(patterns, count, flip, &survey);
	attempt.codec = pattern_codec_fit(kind == TIMES_LINE ? CODEC_FOR : CODEC_DELTA_UP, false,
					  flip, &survey);
	attempt.carry = pattern_begin(&attempt.codec);
	struct pattern_carry carry = attempt.carry;
	struct stream_cost stream;
	stream_cost_init(&stream, NULL);
	kernels->to_residuals(&attempt.codec, &carry, patterns, count, residuals);
	stream_cost_add(&stream, residuals, count);
	size_t bytes = stream_cost_form(&stream).bytes;
	if (bytes >= least)
		return least;
	*cost = attempt;
	return bytes;
}

static void plain_choose(struct times_cost *cost, const int64_t *ts_ms, uint32_t count)
{
	uint64_t patterns[MINI_ROWS], span = (uint64_t)ts_ms[count - 1] - (uint64_t)ts_ms[0];
	cost->first_ms = ts_ms[0];
	cost->unit = SECOND_MS;
	if (cost->any_ms || !to_patterns(cost, ts_ms, 0, count, patterns))
		cost->unit = 1;
	uint64_t steps = count > 1 ? count - 1 : 1;
	uint64_t slope = (span / cost->unit + steps / 2) / steps;
	size_t least = try_kind(cost, TIMES_STEPS, 0, ts_ms, count, SIZE_MAX);
	try_kind(cost, TIMES_LINE, slope, ts_ms, count, least);
}

static bool is_regular(const struct times_cost *cost, const int64_t *ts_ms, uint32_t from,
		       uint32_t count)
{
	uint64_t step = (uint64_t)ts_ms[from + count > 1 ? 1 : 0] - (uint64_t)ts_ms[0], other = 0;
	for (uint32_t i = from ? from : 1; i < from + count; i++)
		other |= ((uint64_t)ts_ms[i] - (uint64_t)ts_ms[i - 1]) ^ step;
	return !cost->irregular && other == 0;
}

static bool add_mini(struct times_cost *cost, const int64_t *ts_ms, uint32_t from, uint32_t count)
{
	uint64_t patterns[MINI_ROWS], residuals[MINI_ROWS];
	if (!to_patterns(cost, ts_ms, from, count, patterns))
		return false;
	kernels->to_residuals(&cost->codec, &cost->carry, patterns, count, residuals);
	stream_cost_add(&cost->stream, residuals, count);
	return true;
}

/* The first step that differs: now the rows before have to be counted too. */
static bool become_irregular(struct times_cost *cost, const int64_t *ts_ms, uint32_t count)
{
	uint32_t rows = cost->rows + count;
	cost->irregular = true;
	plain_choose(cost, ts_ms, rows < MINI_ROWS ? rows : MINI_ROWS);
	for (uint32_t from = 0; from < cost->rows; from += MINI_ROWS) {
		if (!add_mini(cost, ts_ms, from, MINI_ROWS))
			return false;
	}
	return true;
}

bool times_cost_add(struct times_cost *cost, const int64_t *ts_ms, uint32_t from, uint32_t count)
{
	if (!is_regular(cost, ts_ms, from, count)) {
		if (!cost->irregular && !become_irregular(cost, ts_ms, count))
			return false;
		if (!add_mini(cost, ts_ms, from, count))
			return false;
	}
	cost->rows += count;
	return true;
}

/* The base of the format: STEPS has it in the parameter, LINE in the anchor. */
static uint64_t base_of(const struct times_cost *cost)
{
	uint64_t base = cost->kind == TIMES_LINE ? cost->codec.anchor : cost->codec.parameter;
	return zigzag_encode((int64_t)base);
}

size_t times_cost_bytes(const struct times_cost *cost)
{
	if (!cost->irregular)
		return 0;
	return 1 + varint_bytes(cost->unit) +
	       (cost->kind == TIMES_LINE ? varint_bytes(cost->slope) : 0) +
	       varint_bytes(base_of(cost)) + stream_cost_form(&cost->stream).bytes;
}

uint8_t *times_write(const struct times_cost *cost, const int64_t *ts_ms, uint8_t *to)
{
	struct stream_writer stream;
	struct pattern_carry carry = pattern_begin(&cost->codec);
	if (!cost->irregular)
		return to;
	*to++ = cost->kind;
	to += varint_put(to, cost->unit);
	if (cost->kind == TIMES_LINE)
		to += varint_put(to, cost->slope);
	to += varint_put(to, base_of(cost));
	stream_write_begin(&stream, &cost->stream, to);
	for (uint32_t m = 0; m < cost->stream.minis; m++) {
		uint64_t patterns[MINI_ROWS], residuals[MINI_ROWS];
		uint32_t count = cost->stream.counts[m];
		ASSERT(to_patterns(cost, ts_ms, m * MINI_ROWS, count, patterns));
		kernels->to_residuals(&cost->codec, &carry, patterns, count, residuals);
		stream_write(&stream, residuals, count);
	}
	return stream_write_end(&stream);
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* From q, less the line, to times. */
static void from_patterns(const struct times_cost *head, int64_t *ts_ms, uint32_t rows)
{
	for (uint32_t i = 0; i < rows; i++) {
		uint64_t q = (uint64_t)ts_ms[i] + i * head->slope;
		ts_ms[i] = (int64_t)((uint64_t)head->first_ms + q * head->unit);
	}
}

static int times_read_head(const struct block *block, struct cursor *c, struct times_cost *head)
{
	head->kind = cursor_u8(c);
	head->unit = cursor_varint(c);
	head->slope = head->kind == TIMES_LINE ? cursor_varint(c) : 0;
	head->first_ms = block->meta.first_ts_ms;
	uint64_t base = (uint64_t)zigzag_decode(cursor_varint(c));
	if (head->kind == TIMES_LINE)
		head->codec = (struct pattern_codec){CODEC_FOR, 0, base, 0};
	else
		head->codec = (struct pattern_codec){CODEC_DELTA_UP, 0, 0, base};
	return c->bad || head->kind > TIMES_LINE || !head->unit ? ERR_DAMAGED : 0;
}

static int check_order(const struct block *block, const int64_t *ts_ms)
{
	uint32_t rows = block->meta.rows;
	bool ascending =
		ts_ms[0] == block->meta.first_ts_ms && ts_ms[rows - 1] == block->meta.last_ts_ms;
	for (uint32_t i = 1; i < rows; i++)
		ascending = ascending & (ts_ms[i - 1] < ts_ms[i]);
	return ascending ? 0 : ERR_DAMAGED;
}

static int read_irregular(const struct block *block, int64_t *ts_ms)
{
	struct times_cost head;
	struct stream_reader stream;
	struct cursor c = cursor_of(block->times.data, block->times.len);
	uint32_t rows = block->meta.rows;
	if (times_read_head(block, &c, &head) || stream_read_begin(&stream, c, rows, NULL, rows))
		return ERR_DAMAGED;
	/* Times are filled in as the integers that they are made from. */
	if (stream_read_all(&stream, &head.codec, rows, NULL, (uint64_t *)ts_ms))
		return ERR_DAMAGED;
	from_patterns(&head, ts_ms, rows);
	return check_order(block, ts_ms);
}

int times_read(const struct block *block, int64_t *ts_ms)
{
	const struct block_meta *meta = &block->meta;
	if (!block->regular)
		return read_irregular(block, ts_ms);
	uint64_t span = (uint64_t)meta->last_ts_ms - (uint64_t)meta->first_ts_ms;
	uint64_t step = meta->rows > 1 ? span / (meta->rows - 1) : 0;
	for (uint32_t i = 0; i < meta->rows; i++)
		ts_ms[i] = (int64_t)((uint64_t)meta->first_ts_ms + i * step);
	return 0;
}
