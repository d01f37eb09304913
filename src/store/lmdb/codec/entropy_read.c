/* From an entropy-coded stream to values: words by look-ups, three lanes side by side; then symbols
 * out of words; then what the details add to them. */
#include "store/lmdb/codec/entropy_format.h"
#include "store/lmdb/codec/kernels.h"
#include "store/lmdb/codec/stream.h"

enum {
	WORDS_MAX = BLOCK_ROWS_MAX / 2,
	STREAM_BYTES_MAX = WORDS_MAX * ENTROPY_CODE_BITS_MAX / 8,
	/* Zeros stand after the copy of a stream that is read: look-ups go on into them, and where
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

static uint64_t entropy_bits_at(const uint8_t *from, size_t bit)
{
	uint64_t bits;
	memcpy(&bits, from + bit / 8, 8);
	return bits >> bit % 8;
}

/* One word, if it is longer than the index or ends the lane. */
static int entropy_read_word(const struct entropy_code *code, const uint8_t *from,
			     struct word_lane *lane)
{
	uint64_t bits = entropy_bits_at(from, lane->bit);
	uint32_t entry = code->lookup[bits & low_mask(ENTROPY_LOOKUP_BITS)];
	unsigned word = entry >> 6 & 0xff;
	unsigned length = entry ? code->lengths[word]
				: entropy_first_word(code, bits, ENTROPY_LOOKUP_BITS,
						     ENTROPY_CODE_BITS_MAX, &word);
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
		if (entropy_read_word(code, from, lane))
			return ERR_DAMAGED;
	}
}

static bool is_long(const struct entropy_code *code, const uint8_t *from,
		    const struct word_lane *lane)
{
	return lane->bit < lane->end && lane->to < lane->to_end &&
	       !code->lookup[entropy_bits_at(from, lane->bit) & low_mask(ENTROPY_LOOKUP_BITS)];
}

/* Until one of the lanes is near its end. */
static int entropy_read_lanes(const struct entropy_code *code, const uint8_t *from,
			      struct word_lane lanes[ENTROPY_LANES])
{
	int err = 0;
	while (!err && kernels->read_lanes(code, from, lanes)) {
		for (unsigned i = 0; i < ENTROPY_LANES && !err; i++)
			err = is_long(code, from, &lanes[i])
				      ? entropy_read_word(code, from, &lanes[i])
				      : 0;
	}
	return err;
}

/* Puts what the next lane has read, from `begin` on, to what is there, if that ends just there.
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
	int err = entropy_read_lanes(code, from, lanes);
	for (unsigned i = 1; i < ENTROPY_LANES; i++) {
		begin[i] = lanes[i - 1].end = lanes[i].bit;
		lanes[i].end = bits;
		lanes[i].to = words[i];
	}
	if (!err)
		err = entropy_read_lanes(code, from, lanes);
	*lane = lanes[0];
	for (unsigned i = 1; i < ENTROPY_LANES && !err; i++) {
		lane->end = begin[i];
		err = read_lane(code, from, lane);
		splice(lane, &lanes[i], words[i], begin[i]);
	}
	return err;
}

/* The words of `count` symbols, which what is left of the cursor holds exactly. Up to ENTROPY_SLACK
 * bytes after them are changed. */
static int entropy_read_words(const struct entropy_code *code, struct cursor c, uint32_t count,
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
	uint64_t alphabet = UINT64_C(1) << entropy_kinds[entropy_kind_of(table)].bits;
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
	if (entropy_kind_of(table) == ENTROPY_PAIRS)
		return entropy_read_words(code, c, count, pairs);
	if (entropy_read_words(code, c, count, words))
		return ERR_DAMAGED;
	for (uint32_t i = 0; i < count; i += VALUES_AT_ONCE) {
		size_t some = unpack_some(code, words, i, count, symbols);
		kernels->pack(symbols, some, entropy_kinds[ENTROPY_PAIRS].bits, pairs + i / 2);
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
	if (entropy_read_words(code, c, count, words))
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
