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
#include "store/lmdb/entropy.h"

#include <math.h>
#include <pthread.h>

#include "store/lmdb/kernels.h"
#include "store/lmdb/stream.h"

enum {
	PAIR_TABLES = 24, /* the first ones; the rest are of quads */
	WEIGHTS = 16,
	/* The byte of details. */
	DETAILS_LOW_BITS = 0x3f,
	DETAILS_CENTRED = 0x40,
	DETAILS_EXCEPTIONS = 0x80,
	/* An exception's index takes at most this. */
	EXCEPTION_GAP_BYTES = 2,
	/* With more low bits than this the stage is not tried. */
	LOW_BITS_WORTH_IT = 16,
};

/* How often each symbol is thought to occur, of 4096: steps of a quantised random walk (0-9),
 * two-sided geometric (10-15), half of a normal distribution (16-19), geometric (20-23); mostly
 * zeros, two-sided (24-27) and one-sided (28-31). On disk. */
static const uint16_t weights[ENTROPY_TABLES][WEIGHTS] = {
	{2943, 570, 570, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	{2487, 782, 782, 17, 17, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	{2105, 920, 920, 70, 70, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	{1805, 982, 982, 153, 153, 6, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	{1503, 986, 986, 273, 273, 32, 32, 2, 2, 1, 1, 1, 1, 1, 1, 1},
	{1281, 945, 945, 372, 372, 78, 78, 9, 9, 1, 1, 1, 1, 1, 1, 1},
	{1081, 870, 870, 450, 450, 149, 149, 32, 32, 4, 4, 1, 1, 1, 1, 1},
	{907, 779, 779, 490, 490, 226, 226, 76, 76, 19, 19, 3, 3, 1, 1, 1},
	{761, 685, 685, 494, 494, 286, 286, 133, 133, 50, 50, 15, 15, 4, 4, 1},
	{646, 598, 598, 473, 473, 321, 321, 186, 186, 92, 92, 39, 39, 14, 14, 4},
	{3187, 395, 395, 49, 49, 6, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	{2779, 531, 531, 101, 101, 19, 19, 4, 4, 1, 1, 1, 1, 1, 1, 1},
	{2371, 632, 632, 168, 168, 45, 45, 12, 12, 3, 3, 1, 1, 1, 1, 1},
	{1965, 691, 691, 243, 243, 85, 85, 30, 30, 11, 11, 4, 4, 1, 1, 1},
	{1602, 702, 702, 308, 308, 135, 135, 59, 59, 26, 26, 11, 11, 5, 5, 2},
	{1278, 673, 673, 354, 354, 187, 187, 98, 98, 52, 52, 27, 27, 14, 14, 8},
	{1317, 1115, 792, 474, 239, 102, 36, 11, 3, 1, 1, 1, 1, 1, 1, 1},
	{1002, 912, 751, 562, 381, 235, 131, 67, 31, 13, 5, 2, 1, 1, 1, 1},
	{768, 729, 651, 550, 439, 331, 236, 159, 101, 61, 35, 19, 9, 5, 2, 1},
	{546, 531, 503, 463, 414, 361, 305, 251, 201, 157, 119, 88, 63, 44, 30, 20},
	{3063, 768, 192, 48, 12, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	{2248, 1014, 456, 205, 92, 42, 19, 8, 4, 2, 1, 1, 1, 1, 1, 1},
	{1558, 965, 599, 371, 230, 143, 88, 55, 34, 21, 13, 8, 5, 3, 2, 1},
	{1075, 794, 588, 435, 322, 238, 176, 130, 97, 71, 53, 39, 29, 21, 16, 12},
	{3953, 63, 63, 17},
	{3810, 126, 126, 34},
	{3605, 216, 216, 59},
	{3319, 342, 342, 93},
	{3953, 103, 29, 11},
	{3810, 206, 57, 23},
	{3605, 354, 98, 39},
	{3318, 560, 156, 62},
};

/* ---- Codes ---------------------------------------------------------------------------------- */

static enum entropy_kind kind_of(unsigned table)
{
	return table < PAIR_TABLES ? ENTROPY_PAIRS : ENTROPY_QUADS;
}

static const struct {
	uint8_t symbols, bits;
} kinds[ENTROPY_KINDS] = {{2, 4}, {4, 2}};

static unsigned symbol_of(enum entropy_kind kind, unsigned word, unsigned at)
{
	return word >> at * kinds[kind].bits & ((1u << kinds[kind].bits) - 1);
}

struct node {
	uint64_t weight;
	uint16_t number;
};

static int node_order(const void *a, const void *b)
{
	const struct node *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* The product of the symbols' weights; the least is raised so that no code becomes very long. */
static uint64_t word_weight(unsigned table, unsigned word)
{
	enum entropy_kind kind = kind_of(table);
	uint64_t product = 1;
	for (unsigned i = 0; i < kinds[kind].symbols; i++)
		product *= weights[table][symbol_of(kind, word, i)];
	return product + (UINT64_C(1) << (12 * kinds[kind].symbols - 18));
}

/* Huffman's: the two lightest nodes are joined again and again; of equals the lower number comes
 * first, and joined nodes are numbered on. They arise in order of weight, so that they are a queue
 * beside the sorted words. */
static void find_lengths(unsigned table, uint8_t lengths[ENTROPY_WORDS])
{
	struct node leaves[ENTROPY_WORDS], joined[ENTROPY_WORDS];
	uint16_t parent[2 * ENTROPY_WORDS];
	unsigned leaf = 0, next = 0, made = 0;
	for (unsigned w = 0; w < ENTROPY_WORDS; w++)
		leaves[w] = (struct node){word_weight(table, w), (uint16_t)w};
	qsort(leaves, ENTROPY_WORDS, sizeof(leaves[0]), node_order);
	for (; made < ENTROPY_WORDS - 1; made++) {
		uint64_t weight = 0;
		for (int two = 0; two < 2; two++) {
			bool is_leaf = next == made || (leaf < ENTROPY_WORDS &&
							leaves[leaf].weight <= joined[next].weight);
			const struct node *node = is_leaf ? &leaves[leaf++] : &joined[next++];
			weight += node->weight;
			parent[node->number] = (uint16_t)(ENTROPY_WORDS + made);
		}
		joined[made] = (struct node){weight, (uint16_t)(ENTROPY_WORDS + made)};
	}
	uint8_t depth[2 * ENTROPY_WORDS];
	depth[2 * ENTROPY_WORDS - 2] = 0;
	for (unsigned n = 2 * ENTROPY_WORDS - 2; n-- > 0;)
		depth[n] = (uint8_t)(depth[parent[n]] + 1);
	memcpy(lengths, depth, ENTROPY_WORDS);
}

static uint32_t reverse_bits(uint32_t code, unsigned bits)
{
	uint32_t reversed = 0;
	for (unsigned i = 0; i < bits; i++)
		reversed |= (code >> i & 1) << (bits - 1 - i);
	return reversed;
}

/* Canonical: shorter codes first, of equal length in order of word. */
static void assign_codes(struct entropy_code *code)
{
	uint32_t next = 0;
	unsigned at = 0;
	for (unsigned length = 1; length <= ENTROPY_CODE_BITS_MAX; length++) {
		next <<= 1;
		code->first_code[length] = next;
		code->first_word[length] = (uint16_t)at;
		for (unsigned w = 0; w < ENTROPY_WORDS; w++) {
			if (code->lengths[w] != length)
				continue;
			code->codes[w] = reverse_bits(next++, length);
			code->words[at++] = (uint8_t)w;
		}
	}
	code->first_word[ENTROPY_CODE_BITS_MAX + 1] = (uint16_t)at;
	ASSERT(at == ENTROPY_WORDS);
}

/* The word that `bits` begin with, if it is longer than `least` and no longer than `most`; its
 * length, or 0. */
static unsigned first_word(const struct entropy_code *code, uint64_t bits, unsigned least,
			   unsigned most, unsigned *word)
{
	uint32_t value = 0;
	for (unsigned length = 1; length <= most; length++) {
		value = value << 1 | (uint32_t)(bits >> (length - 1) & 1);
		if (length <= least)
			continue;
		unsigned count = (unsigned)code->first_word[length + 1] - code->first_word[length];
		uint32_t index = value - code->first_code[length];
		if (value >= code->first_code[length] && index < count) {
			*word = code->words[code->first_word[length] + index];
			return length;
		}
	}
	return 0;
}

static void fill_lookup(struct entropy_code *code)
{
	for (uint32_t bits = 0; bits < 1 << ENTROPY_LOOKUP_BITS; bits++) {
		uint32_t entry = 0;
		unsigned used = 0, count = 0, word;
		for (; count < ENTROPY_ENTRY_WORDS; count++) {
			unsigned length = first_word(code, bits >> used, 0,
						     ENTROPY_LOOKUP_BITS - used, &word);
			if (!length)
				break;
			entry |= (uint32_t)word << (6 + 8 * count);
			used += length;
		}
		code->lookup[bits] = entry | count << 30 | used;
	}
}

static struct entropy_code codes[ENTROPY_TABLES];
static pthread_once_t once[ENTROPY_TABLES] = {[0 ... ENTROPY_TABLES - 1] = PTHREAD_ONCE_INIT};
static _Thread_local unsigned building;

static void build(void)
{
	struct entropy_code *code = &codes[building];
	enum entropy_kind kind = kind_of(building);
	code->symbols_per_word = kinds[kind].symbols;
	code->bits_per_symbol = kinds[kind].bits;
	find_lengths(building, code->lengths);
	assign_codes(code);
	fill_lookup(code);
}

const struct entropy_code *entropy_code(unsigned table)
{
	ASSERT(table < ENTROPY_TABLES);
	building = table;
	ASSERT(pthread_once(&once[table], build) == 0);
	return &codes[table];
}

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

/* Of wide values the stage saves about as many bits as of narrow ones, which is little of them. */
static bool is_wide(const struct entropy_cost *cost)
{
	return cost->low_bits > LOW_BITS_WORTH_IT;
}

/* The first values stand for the stream. */
static void begin(struct entropy_cost *cost, const uint64_t *values, size_t count)
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
		cost->tally[kind].out = is_wide(cost);
}

/* -log2 of what a weight stands for, in 1/256 bits. */
static uint16_t symbol_costs[ENTROPY_TABLES][WEIGHTS];

__attribute__((constructor)) static void make_symbol_costs(void)
{
	for (unsigned t = 0; t < ENTROPY_TABLES; t++)
		for (unsigned s = 0; s < WEIGHTS && weights[t][s]; s++)
			symbol_costs[t][s] = (uint16_t)(256 * (12 - log2((double)weights[t][s])));
}

/* The table whose ideal code is the shortest for these symbols: the real one hardly differs. */
static unsigned best_table(const struct entropy_tally *tally, enum entropy_kind kind)
{
	uint32_t symbols[WEIGHTS] = {0};
	for (unsigned w = 0; w < ENTROPY_WORDS; w++) {
		for (unsigned i = 0; tally->words[w] && i < kinds[kind].symbols; i++)
			symbols[symbol_of(kind, w, i)] += tally->words[w];
	}
	unsigned first = kind == ENTROPY_PAIRS ? 0 : PAIR_TABLES, best = first;
	unsigned end = kind == ENTROPY_PAIRS ? PAIR_TABLES : ENTROPY_TABLES;
	uint64_t least = UINT64_MAX;
	for (unsigned t = first; t < end; t++) {
		uint64_t bits = 0;
		for (unsigned s = 0; s < 1u << kinds[kind].bits; s++)
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
	unsigned symbols = kinds[kind].symbols, at = index % symbols;
	uint64_t alphabet = UINT64_C(1) << kinds[kind].bits;
	if (symbol >= alphabet) {
		tally->exceptions++;
		tally->exception_bytes +=
			EXCEPTION_GAP_BYTES + (uint32_t)varint_bytes(symbol - alphabet);
		symbol = 0;
	}
	tally->partial |= (uint32_t)symbol << at * kinds[kind].bits;
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
		size_t whole = at % kinds[kind].symbols
				       ? 0
				       : tally_words(tally, kind, highs + i, count - i);
		i += whole;
		for (size_t end = i + kinds[kind].symbols; !whole && i < count && i < end; i++)
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
		begin(cost, values, count);
	cost->count += (uint32_t)count;
	if (is_wide(cost))
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
		cost->tally[kind].out = is_wide(cost);
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
	return &cost->tally[kind_of(table)];
}

bool entropy_has_details(const struct entropy_cost *cost, unsigned table)
{
	return cost->centred || cost->low_bits || tally_of(cost, table)->exceptions;
}

static size_t form_bytes(const struct entropy_cost *cost, const struct entropy_tally *tally)
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
		size_t bytes = tally->out ? SIZE_MAX : form_bytes(cost, tally);
		if (bytes < best.bytes)
			best = (struct entropy_form){tally->table, bytes};
	}
	return best;
}

/* ---- Writing -------------------------------------------------------------------------------- */

static uint8_t *write_exceptions(const struct entropy_cost *cost, unsigned table,
				 const uint64_t *values, uint8_t *to)
{
	uint64_t alphabet = UINT64_C(1) << kinds[kind_of(table)].bits;
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

/* ---- Reading -------------------------------------------------------------------------------- */

enum {
	WORDS_MAX = BLOCK_ROWS_MAX / 2,
	STREAM_BYTES_MAX = WORDS_MAX * ENTROPY_CODE_BITS_MAX / 8,
	/* Zeros stand behind the copy of a stream that is read: look-ups go on into them, and where
	 * the last word of these bits may end, eight bytes can be loaded. Whoever took words from
	 * there has gone beyond the end, which is damage. */
	ZERO_BITS = 64,
	ZERO_BYTES = (ZERO_BITS + ENTROPY_CODE_BITS_MAX) / 8 + 8,
	/* A shorter stream is read by one lane. */
	LANES_BYTES_LEAST = 96,
	/* What a lane that begins anywhere reads to come into step with the words, and so much more
	 * than its end for whole look-ups. */
	IN_STEP_BITS = 84,
};

static uint64_t bits_at(const uint8_t *from, size_t bit)
{
	uint64_t bits;
	memcpy(&bits, from + bit / 8, 8);
	return bits >> bit % 8;
}

/* One word, if it is longer than the index or ends the lane. */
static int read_word(const struct entropy_code *code, const uint8_t *from, struct word_lane *lane)
{
	uint64_t bits = bits_at(from, lane->bit);
	uint32_t entry = code->lookup[bits & low_mask(ENTROPY_LOOKUP_BITS)];
	unsigned word = entry >> 6 & 0xff;
	unsigned length =
		entry ? code->lengths[word]
		      : first_word(code, bits, ENTROPY_LOOKUP_BITS, ENTROPY_CODE_BITS_MAX, &word);
	if (!length)
		return ERR_DAMAGED;
	*lane->to++ = (uint8_t)word;
	lane->bit += length;
	return 0;
}

/* To the lane's end, or as many words as are wanted. */
static int read_lane(const struct entropy_code *code, const uint8_t *from, struct word_lane *lane)
{
	for (;;) {
		kernels->read_words(code, from, lane);
		if (lane->bit >= lane->end || lane->to == lane->to_end)
			return 0;
		if (read_word(code, from, lane))
			return ERR_DAMAGED;
	}
}

static bool is_long(const struct entropy_code *code, const uint8_t *from,
		    const struct word_lane *lane)
{
	return lane->bit < lane->end && lane->to < lane->to_end &&
	       !code->lookup[bits_at(from, lane->bit) & low_mask(ENTROPY_LOOKUP_BITS)];
}

/* Until one of the lanes is near its end. */
static int read_lanes(const struct entropy_code *code, const uint8_t *from,
		      struct word_lane lanes[ENTROPY_LANES])
{
	int err = 0;
	while (!err && kernels->read_lanes(code, from, lanes)) {
		for (unsigned i = 0; i < ENTROPY_LANES && !err; i++)
			err = is_long(code, from, &lanes[i]) ? read_word(code, from, &lanes[i]) : 0;
	}
	return err;
}

/* Puts what the lane behind has read, from `begin` on, to what is there, if that ends just there.
 */
static void splice(struct word_lane *lane, const struct word_lane *behind, const uint8_t *words,
		   size_t begin)
{
	size_t count = (size_t)(behind->to - words);
	if (lane->bit != begin || count > (size_t)(lane->to_end - lane->to))
		return;
	memcpy(lane->to, words, count);
	lane->to += count;
	lane->bit = behind->bit;
}

/* A look-up has to wait for the one before it: most of the time of one lane is waiting. But in a
 * prefix code whoever begins anywhere is soon in step with the words, after some 20 bits and seldom
 * more than 90. So two more lanes read the second and the third part of the stream at the same
 * time, each from where it is likely to be in step. Whether it was turns out when the lane before
 * it arrives: only if that one meets the very bit from which on the next one's words were kept do
 * they count; else it goes on by itself. */
static int read_side_by_side(const struct entropy_code *code, const uint8_t *from, size_t bits,
			     struct word_lane *lane)
{
	uint8_t words[ENTROPY_LANES][WORDS_MAX + ENTROPY_SLACK]; /* the first one's are not used */
	size_t begin[ENTROPY_LANES], wanted = (size_t)(lane->to_end - lane->to);
	struct word_lane lanes[ENTROPY_LANES] = {*lane};
	for (unsigned i = 1; i < ENTROPY_LANES; i++) {
		begin[i] = (bits - IN_STEP_BITS) * i / ENTROPY_LANES;
		lanes[i] = (struct word_lane){begin[i], begin[i] + IN_STEP_BITS, words[i],
					      words[i] + wanted};
	}
	int err = read_lanes(code, from, lanes);
	for (unsigned i = 1; i < ENTROPY_LANES; i++) {
		begin[i] = lanes[i - 1].end = lanes[i].bit;
		lanes[i].end = bits;
		lanes[i].to = words[i];
	}
	if (!err)
		err = read_lanes(code, from, lanes);
	*lane = lanes[0];
	for (unsigned i = 1; i < ENTROPY_LANES && !err; i++) {
		lane->end = begin[i];
		err = read_lane(code, from, lane);
		splice(lane, &lanes[i], words[i], begin[i]);
	}
	return err;
}

/* The words of `count` symbols, which what is left of the cursor holds exactly. Up to ENTROPY_SLACK
 * bytes behind them are changed. */
static int read_words(const struct entropy_code *code, struct cursor c, uint32_t count,
		      uint8_t *words)
{
	uint8_t from[STREAM_BYTES_MAX + ZERO_BYTES];
	size_t bytes = cursor_left(&c), bits = bytes * 8;
	uint32_t symbols = code->symbols_per_word, wanted = (count + symbols - 1) / symbols;
	struct word_lane lane = {0, bits, words, words + wanted};
	if (bytes > STREAM_BYTES_MAX)
		return ERR_DAMAGED;
	memcpy(from, c.at, bytes);
	memset(from + bytes, 0, ZERO_BYTES);
	int err = bytes < LANES_BYTES_LEAST ? 0 : read_side_by_side(code, from, bits, &lane);
	lane.end = bits + ZERO_BITS;
	if (!err)
		err = read_lane(code, from, &lane);
	if (err || lane.to < lane.to_end || lane.bit > bits || bits - lane.bit >= 8)
		return ERR_DAMAGED;
	unsigned spare = count % symbols * code->bits_per_symbol;
	if (spare && words[wanted - 1] >> spare)
		return ERR_DAMAGED;
	return lane.bit % 8 && from[lane.bit / 8] >> lane.bit % 8 ? ERR_DAMAGED : 0;
}

struct details {
	unsigned low_bits;
	bool centred;
	uint64_t centre;
	const uint8_t *lows, *readable_end;
	uint64_t exceptions;
	struct cursor list; /* checked, not read */
};

/* The next exception: its index and the symbol above the alphabet. */
static uint64_t next_exception(struct cursor *c, unsigned table, uint32_t *next, uint32_t *index,
			       uint32_t count, unsigned low_bits)
{
	uint64_t gap = cursor_varint(c), symbol = cursor_varint(c);
	uint64_t alphabet = UINT64_C(1) << kinds[kind_of(table)].bits;
	uint64_t most = UINT64_MAX >> low_bits;
	if (gap >= count - *next || most < alphabet || symbol > most - alphabet)
		c->bad = true;
	*index = c->bad ? 0 : *next + (uint32_t)gap;
	*next = *index + 1;
	return symbol + alphabet;
}

static int read_details(struct cursor *c, unsigned table, uint32_t count, struct details *details)
{
	uint8_t byte = cursor_u8(c);
	uint32_t next = 0, index;
	details->low_bits = byte & DETAILS_LOW_BITS;
	details->centred = byte & DETAILS_CENTRED;
	if (details->low_bits > ENTROPY_LOW_BITS_MAX)
		return ERR_DAMAGED;
	details->centre = details->centred ? cursor_varint(c) : 0;
	details->lows = cursor_take(c, packed_bytes(count, details->low_bits));
	details->readable_end = c->end;
	if (!(byte & DETAILS_EXCEPTIONS))
		return c->bad ? ERR_DAMAGED : 0;
	details->exceptions = cursor_varint(c);
	details->list = *c;
	if (c->bad || details->exceptions < 1 || details->exceptions > count)
		return ERR_DAMAGED;
	for (uint64_t i = 0; i < details->exceptions && !c->bad; i++) {
		if (i && next >= count)
			return ERR_DAMAGED;
		next_exception(c, table, &next, &index, count, details->low_bits);
	}
	return c->bad ? ERR_DAMAGED : 0;
}

/* Words are symbols packed, as in a mini-block. */
static void words_to_patterns(const uint8_t *words, unsigned width, uint32_t count,
			      const struct pattern_codec *codec, uint64_t *values)
{
	struct pattern_carry carry = pattern_begin(codec);
	kernels->unpack_patterns(codec, &carry, words,
				 words + packed_bytes(count, width) + ENTROPY_SLACK, count, width,
				 values);
}

static int add_exceptions(const struct details *details, unsigned table, uint32_t count,
			  uint64_t *values)
{
	struct cursor c = details->list;
	uint32_t next = 0, index;
	for (uint64_t i = 0; i < details->exceptions; i++) {
		uint64_t symbol =
			next_exception(&c, table, &next, &index, count, details->low_bits);
		if (values[index] >> details->low_bits)
			return ERR_DAMAGED;
		values[index] |= symbol << details->low_bits;
	}
	return 0;
}

/* So many symbols at a time become values: whole bytes of words. */
enum { VALUES_AT_ONCE = 128 };

static size_t unpack_some(const struct entropy_code *code, const uint8_t *words, uint32_t from,
			  uint32_t count, uint64_t *values)
{
	unsigned width = code->bits_per_symbol;
	size_t some = count - from < VALUES_AT_ONCE ? count - from : VALUES_AT_ONCE;
	const uint8_t *at = words + packed_bytes(from, width);
	kernels->unpack(at, at + packed_bytes(some, width) + ENTROPY_SLACK, some, width, values);
	return some;
}

int entropy_read_pairs(struct cursor c, unsigned table, uint32_t count, uint8_t *pairs)
{
	uint8_t words[WORDS_MAX + ENTROPY_SLACK];
	uint64_t symbols[VALUES_AT_ONCE];
	const struct entropy_code *code = entropy_code(table);
	if (kind_of(table) == ENTROPY_PAIRS)
		return read_words(code, c, count, pairs);
	if (read_words(code, c, count, words))
		return ERR_DAMAGED;
	for (uint32_t i = 0; i < count; i += VALUES_AT_ONCE) {
		size_t some = unpack_some(code, words, i, count, symbols);
		kernels->pack(symbols, some, kinds[ENTROPY_PAIRS].bits, pairs + i / 2);
	}
	return 0;
}

int entropy_read(struct cursor c, unsigned table, bool has_details,
		 const struct pattern_codec *codec, uint32_t count, uint64_t *values)
{
	uint8_t words[WORDS_MAX + ENTROPY_SLACK];
	uint64_t symbols[VALUES_AT_ONCE];
	const struct entropy_code *code = entropy_code(table);
	struct details details = {.low_bits = 0};
	if (has_details && read_details(&c, table, count, &details))
		return ERR_DAMAGED;
	if (read_words(code, c, count, words))
		return ERR_DAMAGED;
	if (!details.low_bits && !details.centred && !details.exceptions) {
		words_to_patterns(words, code->bits_per_symbol, count, codec, values);
		return 0;
	}
	if (details.low_bits)
		kernels->unpack(details.lows, details.readable_end, count, details.low_bits,
				values);
	else
		memset(values, 0, count * sizeof(*values));
	for (uint32_t i = 0; i < count; i += VALUES_AT_ONCE) {
		size_t some = unpack_some(code, words, i, count, symbols);
		kernels->add_symbols(symbols, some, details.low_bits, values + i);
	}
	if (details.exceptions && add_exceptions(&details, table, count, values))
		return ERR_DAMAGED;
	if (details.centred)
		kernels->about_centre(values, count, details.centre);
	struct pattern_carry carry = pattern_begin(codec);
	pattern_from_residuals(codec, &carry, values, count);
	return 0;
}
