/* The codes that follow from the tables of weights. */
#include "store/lmdb/codec/entropy_format.h"

#include <pthread.h>

/* How often each symbol is thought to occur, of 4096: steps of a quantised random walk (0-9),
 * two-sided geometric (10-15), half of a normal distribution (16-19), geometric (20-23); mostly
 * zeros, two-sided (24-27) and one-sided (28-31). On disk. */
const uint16_t entropy_weights[ENTROPY_TABLES][WEIGHTS] = {
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

struct entropy_node {
	uint64_t weight;
	uint16_t number;
};

static int node_order(const void *a, const void *b)
{
	const struct entropy_node *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* The product of the symbols' weights; the least is raised so that no code becomes very long. */
static uint64_t word_weight(unsigned table, unsigned word)
{
	enum entropy_kind kind = entropy_kind_of(table);
	uint64_t product = 1;
	for (unsigned i = 0; i < entropy_kinds[kind].symbols; i++)
		product *= entropy_weights[table][entropy_symbol_of(kind, word, i)];
	return product + (UINT64_C(1) << (12 * entropy_kinds[kind].symbols - 18));
}

/* Huffman's: the two lightest nodes are joined again and again; of equals the lower number comes
 * first, and joined nodes are numbered on. They arise in order of weight, so that they are a queue
 * beside the sorted words. */
static void find_lengths(unsigned table, uint8_t lengths[ENTROPY_WORDS])
{
	struct entropy_node leaves[ENTROPY_WORDS], joined[ENTROPY_WORDS];
	uint16_t parent[2 * ENTROPY_WORDS];
	unsigned leaf = 0, next = 0, made = 0;
	for (unsigned w = 0; w < ENTROPY_WORDS; w++)
		leaves[w] = (struct entropy_node){word_weight(table, w), (uint16_t)w};
	qsort(leaves, ENTROPY_WORDS, sizeof(leaves[0]), node_order);
	for (; made < ENTROPY_WORDS - 1; made++) {
		uint64_t weight = 0;
		for (int two = 0; two < 2; two++) {
			bool is_leaf = next == made || (leaf < ENTROPY_WORDS &&
							leaves[leaf].weight <= joined[next].weight);
			const struct entropy_node *node =
				is_leaf ? &leaves[leaf++] : &joined[next++];
			weight += node->weight;
			parent[node->number] = (uint16_t)(ENTROPY_WORDS + made);
		}
		joined[made] = (struct entropy_node){weight, (uint16_t)(ENTROPY_WORDS + made)};
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

unsigned entropy_first_word(const struct entropy_code *code, uint64_t bits, unsigned least,
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
			unsigned length = entropy_first_word(code, bits >> used, 0,
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
	enum entropy_kind kind = entropy_kind_of(building);
	code->symbols_per_word = entropy_kinds[kind].symbols;
	code->bits_per_symbol = entropy_kinds[kind].bits;
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
