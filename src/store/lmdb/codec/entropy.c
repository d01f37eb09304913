/* Why: what is left of measured values once each is told by the one before (pattern.h) is small and
 * unevenly spread. Bit-packing gives all of a mini-block one width; in a code what is frequent is
 * short.
 *
 * The shape: a value is a symbol and, below it, as many low bits as leave nearly all symbols under
 * 16. Low bits are as good as random, so they are packed. Symbols go two to a word, or four where
 * they are under 4, and each of the 256 words has a code: so a symbol may cost less than a bit, and
 * a look-up gives several. What is greater stands in a list of exceptions. Values that do not lie
 * about zero are first taken from their median (`centre`).
 *
 * The codes are not made for a stream: in a block of some hundred bytes a table of its own would
 * cost what it saves. The stream names one of 32, which stand for the distributions that rates,
 * counters and gauges leave.
 *
 * The order: the encoder hands mini-blocks to entropy_cost_add, which chooses centre and low bits
 * by the first of them and a table for either kind of word as it goes; entropy_cost_form tells what
 * it would cost, stream.c compares that with packing, and entropy_write writes it. */
#include "store/lmdb/codec/entropy_format.h"

#include <math.h>

#include "store/lmdb/codec/kernels.h"
#include "store/lmdb/codec/stream.h"

enum {
	/* An exception's index takes at most this. */
	EXCEPTION_GAP_BYTES = 2,
	/* With more low bits than this the stage is not tried. */
	LOW_BITS_WORTH_IT = 16,
};

/* ---- Cost ----------------------------------------------------------------------------------- */

static uint64_t zigzag_about(uint64_t centre, uint64_t value)
{
	return zigzag_encode((int64_t)(value - centre));
}

/* The middle one of at most so many values, taken at equal distances. */
enum { MEDIAN_SAMPLES = 32 };

static uint64_t median(const uint64_t *values, size_t count)
{
	uint64_t sorted[MEDIAN_SAMPLES];
	size_t step = (count + MEDIAN_SAMPLES - 1) / MEDIAN_SAMPLES, kept = 0;
	for (size_t i = 0; i < count; i += step) {
		size_t at = kept++;
		for (; at > 0 && sorted[at - 1] > values[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = values[i];
	}
	return sorted[kept / 2];
}

static size_t widths(const uint64_t *values, size_t count)
{
	size_t sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += bit_width(values[i]);
	return sum;
}

static size_t widths_about(uint64_t centre, const uint64_t *values, size_t count)
{
	size_t sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += bit_width(zigzag_about(centre, values[i]));
	return sum;
}

size_t entropy_estimate(const uint64_t *values, size_t count, bool may_centre)
{
	size_t plain = widths(values, count);
	size_t centred = may_centre ? widths_about(median(values, count), values, count) : SIZE_MAX;
	return centred < plain ? centred : plain;
}

void entropy_cost_init(struct entropy_cost *cost, bool may_centre)
{
	memset(cost, 0, sizeof(*cost));
	cost->may_centre = may_centre;
}

static uint64_t positive(const struct entropy_cost *cost, uint64_t value)
{
	return cost->centred ? zigzag_about(cost->centre, value) : value;
}

/* As many low bits as leave nearly all values a symbol below 16. */
static uint8_t choose_low_bits(const struct entropy_cost *cost, const uint64_t *values,
			       size_t count)
{
	size_t at_width[65] = {0}, above = 0;
	for (size_t i = 0; i < count; i++)
		at_width[bit_width(positive(cost, values[i]))]++;
	unsigned width = 64;
	for (; width > 4; width--) {
		above += at_width[width];
		if (above > count / 64)
			break;
	}
	return (uint8_t)(width - 4);
}

/* The stage saves about as many bits of a wide value as of a narrow one, which is a small part. */
static bool entropy_is_wide(const struct entropy_cost *cost)
{
	return cost->low_bits > LOW_BITS_WORTH_IT;
}

/* The first values stand for the stream. */
static void entropy_begin(struct entropy_cost *cost, const uint64_t *values, size_t count)
{
	cost->begun = true;
	if (cost->may_centre) {
		uint64_t centre = median(values, count);
		cost->centred =
			centre && widths_about(centre, values, count) < widths(values, count);
		cost->centre = cost->centred ? centre : 0;
	}
	cost->low_bits = choose_low_bits(cost, values, count);
	for (unsigned kind = 0; kind < ENTROPY_KINDS; kind++)
		cost->tally[kind].out = entropy_is_wide(cost);
}

/* -log2 of what a weight stands for, in 1/256 bits. */
static uint16_t symbol_costs[ENTROPY_TABLES][WEIGHTS];

__attribute__((constructor)) static void make_symbol_costs(void)
{
	for (unsigned t = 0; t < ENTROPY_TABLES; t++)
		for (unsigned s = 0; s < WEIGHTS && entropy_weights[t][s]; s++)
			symbol_costs[t][s] =
				(uint16_t)(256 * (12 - log2((double)entropy_weights[t][s])));
}

/* The table whose ideal code is the shortest for these symbols: the real one hardly differs. */
static unsigned best_table(const struct entropy_tally *tally, enum entropy_kind kind)
{
	uint32_t symbols[WEIGHTS] = {0};
	for (unsigned w = 0; w < ENTROPY_WORDS; w++) {
		for (unsigned i = 0; tally->words[w] && i < entropy_kinds[kind].symbols; i++)
			symbols[entropy_symbol_of(kind, w, i)] += tally->words[w];
	}
	unsigned first = kind == ENTROPY_PAIRS ? 0 : PAIR_TABLES, best = first;
	unsigned end = kind == ENTROPY_PAIRS ? PAIR_TABLES : ENTROPY_TABLES;
	uint64_t least = UINT64_MAX;
	for (unsigned t = first; t < end; t++) {
		uint64_t bits = 0;
		for (unsigned s = 0; s < 1u << entropy_kinds[kind].bits; s++)
			bits += (uint64_t)symbols[s] * symbol_costs[t][s];
		if (bits < least) {
			least = bits;
			best = t;
		}
	}
	return best;
}

static uint32_t code_bits(const struct entropy_tally *tally, const struct entropy_code *code)
{
	uint32_t bits = 0;
	for (unsigned w = 0; w < ENTROPY_WORDS; w++)
		bits += (uint32_t)tally->words[w] * code->lengths[w];
	return bits;
}

static void choose_table(struct entropy_tally *tally, enum entropy_kind kind, uint32_t count)
{
	unsigned table = best_table(tally, kind);
	uint32_t bits = code_bits(tally, entropy_code(table));
	if (!tally->chosen_at || bits < tally->bits) {
		tally->table = (uint8_t)table;
		tally->bits = bits;
	}
	tally->chosen_at = count;
}

/* A word at a time, while all of it is there and in the alphabet. */
static size_t tally_words(struct entropy_tally *tally, enum entropy_kind kind,
			  const uint64_t *highs, size_t count)
{
	const uint8_t *lengths = entropy_code(tally->table)->lengths;
	uint32_t bits = 0;
	size_t i = 0;
	if (kind == ENTROPY_PAIRS) {
		for (; i + 2 <= count && (highs[i] | highs[i + 1]) < 16; i += 2) {
			unsigned word = (unsigned)(highs[i] | highs[i + 1] << 4);
			tally->words[word]++;
			bits += lengths[word];
		}
	} else {
		for (; i + 4 <= count; i += 4) {
			const uint64_t *h = highs + i;
			if ((h[0] | h[1] | h[2] | h[3]) >= 4)
				break;
			unsigned word = (unsigned)(h[0] | h[1] << 2 | h[2] << 4 | h[3] << 6);
			tally->words[word]++;
			bits += lengths[word];
		}
	}
	tally->bits += bits;
	return i;
}

static void tally_symbol(struct entropy_tally *tally, enum entropy_kind kind, uint32_t index,
			 uint64_t symbol)
{
	unsigned symbols = entropy_kinds[kind].symbols, at = index % symbols;
	uint64_t alphabet = UINT64_C(1) << entropy_kinds[kind].bits;
	if (symbol >= alphabet) {
		tally->exceptions++;
		tally->exception_bytes +=
			EXCEPTION_GAP_BYTES + (uint32_t)varint_bytes(symbol - alphabet);
		symbol = 0;
	}
	tally->partial |= (uint32_t)symbol << at * entropy_kinds[kind].bits;
	if (at + 1 < symbols)
		return;
	tally->words[tally->partial]++;
	tally->bits += entropy_code(tally->table)->lengths[tally->partial];
	tally->partial = 0;
}

static void add_to_tally(struct entropy_tally *tally, enum entropy_kind kind, uint32_t index,
			 const uint64_t *highs, size_t count)
{
	if (!tally->chosen_at)
		tally->table = kind == ENTROPY_PAIRS ? 0 : PAIR_TABLES;
	for (size_t i = 0; i < count;) {
		uint32_t at = index + (uint32_t)i;
		size_t whole = at % entropy_kinds[kind].symbols
				       ? 0
				       : tally_words(tally, kind, highs + i, count - i);
		i += whole;
		for (size_t end = i + entropy_kinds[kind].symbols; !whole && i < count && i < end;
		     i++)
			tally_symbol(tally, kind, index + (uint32_t)i, highs[i]);
	}
	uint32_t total = index + (uint32_t)count;
	tally->out = tally->exceptions > 8 + total / (kind == ENTROPY_PAIRS ? 8 : 32);
	if (!tally->out && total >= 3 * tally->chosen_at)
		choose_table(tally, kind, total);
}

void entropy_cost_add(struct entropy_cost *cost, const uint64_t *values, size_t count)
{
	uint64_t highs[MINI_ROWS];
	ASSERT(count <= MINI_ROWS);
	if (!count)
		return;
	if (!cost->begun)
		entropy_begin(cost, values, count);
	cost->count += (uint32_t)count;
	if (entropy_is_wide(cost))
		return;
	for (size_t i = 0; i < count; i++)
		highs[i] = positive(cost, values[i]) >> cost->low_bits;
	for (unsigned kind = 0; kind < ENTROPY_KINDS; kind++) {
		if (!cost->tally[kind].out)
			add_to_tally(&cost->tally[kind], (enum entropy_kind)kind,
				     cost->count - (uint32_t)count, highs, count);
	}
}

void entropy_cost_adopt(struct entropy_cost *cost, const struct entropy_cost *other)
{
	if (cost->begun || !other->begun)
		return;
	cost->begun = true;
	cost->centred = other->centred;
	cost->centre = other->centre;
	cost->low_bits = other->low_bits;
	for (unsigned kind = 0; kind < ENTROPY_KINDS; kind++)
		cost->tally[kind].out = entropy_is_wide(cost);
}

void entropy_cost_finish(struct entropy_cost *cost)
{
	for (unsigned kind = 0; cost->begun && kind < ENTROPY_KINDS; kind++) {
		if (!cost->tally[kind].out)
			choose_table(&cost->tally[kind], (enum entropy_kind)kind, cost->count);
	}
}

static const struct entropy_tally *tally_of(const struct entropy_cost *cost, unsigned table)
{
	return &cost->tally[entropy_kind_of(table)];
}

bool entropy_has_details(const struct entropy_cost *cost, unsigned table)
{
	return cost->centred || cost->low_bits || tally_of(cost, table)->exceptions;
}

static size_t entropy_form_bytes(const struct entropy_cost *cost, const struct entropy_tally *tally)
{
	const struct entropy_code *code = entropy_code(tally->table);
	size_t bits = tally->bits;
	if (cost->count % code->symbols_per_word)
		bits += code->lengths[tally->partial];
	size_t bytes = (bits + 7) / 8;
	if (!entropy_has_details(cost, tally->table))
		return bytes;
	bytes += 1 + packed_bytes(cost->count, cost->low_bits);
	if (cost->centred)
		bytes += varint_bytes(cost->centre);
	if (tally->exceptions)
		bytes += varint_bytes(tally->exceptions) + tally->exception_bytes;
	return bytes;
}

struct entropy_form entropy_cost_form(const struct entropy_cost *cost)
{
	struct entropy_form best = {0, SIZE_MAX};
	for (unsigned kind = 0; kind < ENTROPY_KINDS; kind++) {
		const struct entropy_tally *tally = &cost->tally[kind];
		size_t bytes = tally->out ? SIZE_MAX : entropy_form_bytes(cost, tally);
		if (bytes < best.bytes)
			best = (struct entropy_form){tally->table, bytes};
	}
	return best;
}

/* ---- Writing -------------------------------------------------------------------------------- */

static uint8_t *write_exceptions(const struct entropy_cost *cost, unsigned table,
				 const uint64_t *values, uint8_t *to)
{
	uint64_t alphabet = UINT64_C(1) << entropy_kinds[entropy_kind_of(table)].bits;
	uint32_t next = 0;
	to += varint_put(to, tally_of(cost, table)->exceptions);
	for (uint32_t i = 0; i < cost->count; i++) {
		uint64_t symbol = positive(cost, values[i]) >> cost->low_bits;
		if (symbol < alphabet)
			continue;
		to += varint_put(to, i - next);
		to += varint_put(to, symbol - alphabet);
		next = i + 1;
	}
	return to;
}

static uint8_t *write_details(const struct entropy_cost *cost, unsigned table,
			      const uint64_t *values, uint8_t *to)
{
	uint64_t lows[MINI_ROWS];
	bool exceptions = tally_of(cost, table)->exceptions;
	*to++ = (uint8_t)(cost->low_bits | (cost->centred ? DETAILS_CENTRED : 0) |
			  (exceptions ? DETAILS_EXCEPTIONS : 0));
	if (cost->centred)
		to += varint_put(to, cost->centre);
	for (uint32_t from = 0; from < cost->count; from += MINI_ROWS) {
		uint32_t left = cost->count - from, count = left < MINI_ROWS ? left : MINI_ROWS;
		for (uint32_t i = 0; i < count; i++)
			lows[i] = positive(cost, values[from + i]);
		kernels->pack(lows, count, cost->low_bits, to);
		to += packed_bytes(count, cost->low_bits);
	}
	return exceptions ? write_exceptions(cost, table, values, to) : to;
}

struct bit_writer {
	uint64_t pending;
	unsigned filled;
	uint8_t *to;
};

static void put_code(struct bit_writer *w, uint32_t code, unsigned length)
{
	w->pending |= (uint64_t)code << w->filled;
	w->filled += length;
	if (w->filled < 32)
		return;
	memcpy(w->to, &w->pending, 4);
	w->to += 4;
	w->filled -= 32;
	w->pending >>= 32;
}

uint8_t *entropy_write(const struct entropy_cost *cost, unsigned table, const uint64_t *values,
		       uint8_t *to)
{
	const struct entropy_code *code = entropy_code(table);
	unsigned symbols = code->symbols_per_word, bits = code->bits_per_symbol;
	if (entropy_has_details(cost, table))
		to = write_details(cost, table, values, to);
	struct bit_writer w = {.to = to};
	for (uint32_t i = 0; i < cost->count; i += symbols) {
		unsigned word = 0;
		for (unsigned s = 0; s < symbols && i + s < cost->count; s++) {
			uint64_t symbol = positive(cost, values[i + s]) >> cost->low_bits;
			word |= symbol >> bits ? 0 : (unsigned)symbol << s * bits;
		}
		put_code(&w, code->codes[word], code->lengths[word]);
	}
	for (; w.filled; w.filled -= w.filled < 8 ? w.filled : 8, w.pending >>= 8)
		*w.to++ = (uint8_t)w.pending;
	return w.to;
}
