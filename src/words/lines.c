#include "words/lines.h"

#include "base/utf8.h"

enum {
	LINES_LITERAL_MAX_BYTES = 1 << 12,
	LINES_VECTOR_BYTES = 16,
	LINES_AT_ONCE = 64,
};

enum lines_class { LINES_OTHER, LINES_JOINER, LINES_WORD, LINES_BEYOND_ASCII };

static const uint8_t lines_classes[UINT8_MAX + 1] = {
	['.'] = LINES_JOINER,       [':'] = LINES_JOINER,
	['/'] = LINES_JOINER,       ['@'] = LINES_JOINER,
	['-'] = LINES_JOINER,       ['_'] = LINES_WORD,
	['0' ... '9'] = LINES_WORD, ['a' ... 'z'] = LINES_WORD,
	['A' ... 'Z'] = LINES_WORD, [0x80 ... 0xff] = LINES_BEYOND_ASCII};

static enum lines_class lines_class_of(char c)
{
	return (enum lines_class)lines_classes[(uint8_t)c];
}

typedef uint8_t lines_vector __attribute__((vector_size(LINES_VECTOR_BYTES)));
typedef uint64_t lines_halves __attribute__((vector_size(LINES_VECTOR_BYTES)));

static lines_vector lines_vector_of(uint8_t byte)
{
	return (lines_vector){0} + byte;
}

static lines_vector lines_load(const char *from)
{
	lines_vector v;
	memcpy(&v, from, sizeof(v));
	return v;
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* A bit for each byte of a text from some place on. */
struct lines_bits {
	uint64_t run; /* a letter, a digit or `_`, or beyond ASCII */
	uint64_t beyond;
};

/* A bit for each byte, all of whose bits are equal. */
static uint64_t lines_bits_of(lines_vector bytes)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), gather = UINT64_C(0x0102040810204080);
	lines_halves halves = (lines_halves)bytes;
	return ((halves[0] & ones) * gather >> 56) | ((halves[1] & ones) * gather >> 56) << 8;
}

static struct lines_bits lines_bits_at(struct slice text, size_t at)
{
	struct lines_bits bits = {0, 0};
	char last[LINES_AT_ONCE] = {0};
	const char *from = text.data + at;
	if (at < text.len && text.len - at < LINES_AT_ONCE)
		from = memcpy(last, from, text.len - at);
	for (unsigned i = 0; i < LINES_AT_ONCE && at < text.len; i += LINES_VECTOR_BYTES) {
		lines_vector v = lines_load(from + i), small = v | lines_vector_of(0x20);
		lines_vector beyond = (lines_vector)(v >= lines_vector_of(0x80));
		lines_vector run =
			(lines_vector)(small - lines_vector_of('a') < lines_vector_of(26)) |
			(lines_vector)(v - lines_vector_of('0') < lines_vector_of(10)) |
			(lines_vector)(v == lines_vector_of('_')) | beyond;
		bits.run |= lines_bits_of(run) << i;
		bits.beyond |= lines_bits_of(beyond) << i;
	}
	return bits;
}

/* Eight bytes of a word, or those that are left, the others 0. `room`: how many may be read. */
static uint64_t lines_eight(const char *from, size_t left, size_t room)
{
	uint64_t eight = 0;
	if (room < sizeof(eight)) {
		memcpy(&eight, from, smaller_of((int64_t)left, (int64_t)room));
		return eight;
	}
	memcpy(&eight, from, sizeof(eight));
	return left < sizeof(eight) ? eight & ((UINT64_C(1) << 8 * left) - 1) : eight;
}

/* The hash of a word; `room`: bytes from its beginning that may be read. The bits of `small` make a
 * capital its small letter, and no other two letters, digits or `_` equal. Filters on disk are made
 * of hashes, so hashes stay as they are. */
static uint64_t lines_hash(struct slice word, size_t room)
{
	const uint64_t small = UINT64_C(0x2020202020202020);
	uint64_t hash = word.len;
	for (size_t at = 0; at < word.len; at += sizeof(small)) {
		uint64_t eight = lines_eight(word.data + at, word.len - at, room - at);
		hash = (hash ^ (eight | small)) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	hash *= UINT64_C(0xbf58476d1ce4e5b9);
	hash ^= hash >> 32;
	return hash ? hash : 1;
}

static uint64_t lines_hash_pair(uint64_t before, char joiner, uint64_t word)
{
	uint64_t both = (before ^ (uint8_t)joiner) * UINT64_C(0x9e3779b97f4a7c15) + word;
	both = (both ^ both >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	both ^= both >> 32;
	return both ? both : 1;
}

struct lines_word {
	size_t begin, end;
	uint64_t hash;
	uint64_t pair;    /* with the word before; 0: no joiner stands between them */
	bool is_fraction; /* of a second: it does not count itself */
};
typedef void (*lines_see)(const struct lines_word *word, void *owner);

/* Whether a text has so many digits or more, and nothing else. */
static bool lines_are_digits(const char *text, size_t len, size_t least)
{
	size_t at = 0;
	while (at < len && (uint8_t)(text[at] - '0') < 10)
		at++;
	return at == len && len >= least;
}

/* Whether a word is a fraction of a second, in UTC. */
static bool lines_is_fraction(struct slice word)
{
	return lines_are_digits(word.data, word.len - 1, 3);
}

/* Whether the word behind two digits and a point is one. */
static bool lines_are_seconds(const char *second, struct slice word)
{
	bool utc = (word.data[word.len - 1] | 0x20) == 'z';
	return lines_are_digits(second, 2, 2) && lines_are_digits(word.data, word.len - utc, 3);
}

/* Sets `word` to the one behind it, whose hash is given. Each line has another fraction of a
 * second, so these would be half of all words, and nobody looks for them. */
static inline __attribute__((always_inline)) void
lines_word_next(struct lines_word *word, struct slice text, size_t begin, size_t end, uint64_t hash)
{
	const struct slice now = {text.data + begin, end - begin};
	const char *joiner = text.data + word->end;
	word->pair = 0;
	if (word->end && begin == word->end + 1 && lines_class_of(*joiner) == LINES_JOINER &&
	    !(*joiner == '.' && word->end - word->begin == 2 && lines_are_seconds(joiner - 2, now)))
		word->pair = lines_hash_pair(word->hash, *joiner, hash);
	word->is_fraction = (now.data[now.len - 1] | 0x20) == 'z' && lines_is_fraction(now);
	word->begin = begin;
	word->end = end;
	word->hash = hash;
}

/* Where a word of a run begins, from `at` on. */
static size_t lines_word_begin(struct slice run, size_t at)
{
	size_t len;
	for (; at < run.len; at += len)
		if (lines_class_of(run.data[at]) != LINES_BEYOND_ASCII ||
		    words_is_letter(run, at, &len))
			break;
	return at;
}

static size_t lines_word_end(struct slice run, size_t at)
{
	for (size_t len = 1; at < run.len; at += len, len = 1)
		if (lines_class_of(run.data[at]) == LINES_BEYOND_ASCII &&
		    !words_is_letter(run, at, &len))
			break;
	return at;
}

/* Gives the words of a run of letters, digits, `_` and bytes beyond ASCII. */
static struct lines_word lines_walk_beyond(struct lines_word last, struct slice text, size_t begin,
					   size_t end, lines_see see, void *owner)
{
	const struct slice run = {text.data, end};
	struct buf folded;
	buf_init(&folded, 2 * (end - begin) + 1);
	while ((begin = lines_word_begin(run, begin)) < end) {
		size_t behind = lines_word_end(run, begin);
		buf_clear(&folded);
		words_fold((struct slice){text.data + begin, behind - begin}, &folded);
		lines_word_next(&last, text, begin, behind,
				lines_hash(buf_slice(&folded), folded.len));
		see(&last, owner);
		begin = behind;
	}
	buf_release(&folded);
	return last;
}

/* Gives all words of a text. Inlined, so that for each `see` there is a loop without calls. */
static inline __attribute__((always_inline)) void lines_walk(struct slice text, lines_see see,
							     void *owner)
{
	struct lines_word last = {0};
	size_t begin = 0;
	bool inside = false, beyond = false;
	for (size_t base = 0; base <= text.len; base += LINES_AT_ONCE) {
		struct lines_bits bits = lines_bits_at(text, base);
		uint64_t edges = bits.run ^ (bits.run << 1 | inside);
		beyond = (inside && beyond) || bits.beyond;
		for (; edges; edges &= edges - 1) {
			size_t at = base + (unsigned)__builtin_ctzll(edges);
			if (inside && beyond) {
				last = lines_walk_beyond(last, text, begin, at, see, owner);
			} else if (inside) {
				struct slice word = {text.data + begin, at - begin};
				lines_word_next(&last, text, begin, at,
						lines_hash(word, text.len - begin));
				see(&last, owner);
			}
			begin = at;
			inside = !inside;
		}
	}
}

static inline void lines_see_for_set(const struct lines_word *word, void *owner)
{
	if (!word->is_fraction)
		words_set_add_hash(owner, word->hash);
	if (word->pair)
		words_set_add_hash(owner, word->pair);
}

void words_set_add_lines(struct words_set *set, struct slice text)
{
	words_set_begin_lines(set);
	lines_walk(text, lines_see_for_set, set);
}

/* ---- Literals -------------------------------------------------------------------------------- */

static void literal_add_hash(struct lines_literal *literal, uint64_t hash)
{
	if (literal->hash_count < LINES_HASHES_MAX)
		literal->hashes[literal->hash_count++] = hash;
}

struct literal_words {
	struct lines_literal *literal;
	bool whole_before;
};

/* A word at an open end may be a part of one of the line. */
static inline void lines_see_for_literal(const struct lines_word *word, void *owner)
{
	struct literal_words *words = owner;
	struct lines_literal *literal = words->literal;
	bool whole = (word->begin > 0 || !literal->open_left) &&
		     (word->end < literal->text.len || !literal->open_right);
	if (whole && !word->is_fraction)
		literal_add_hash(literal, word->hash);
	if (whole && word->pair && words->whole_before)
		literal_add_hash(literal, word->pair);
	words->whole_before = whole;
}

static void literal_find_needle(struct lines_literal *literal)
{
	const struct slice text = literal->text;
	size_t begin = 0;
	literal->ascii = true;
	for (size_t at = 0; at <= text.len; at++) {
		bool beyond = at < text.len && (uint8_t)text.data[at] > 0x7f;
		if (at < text.len && !beyond)
			continue;
		if (at - begin > literal->needle.len)
			literal->needle = (struct slice){text.data + begin, at - begin};
		begin = at + 1;
		literal->ascii = literal->ascii && !beyond;
	}
}

int lines_literal_init(struct lines_literal *literal, struct slice text, bool open_left,
		       bool open_right, struct arena *arena)
{
	struct buf folded;
	*literal = (struct lines_literal){.open_left = open_left, .open_right = open_right};
	buf_init(&folded, LINES_LITERAL_MAX_BYTES);
	words_fold(text, &folded);
	literal->text = arena_copy(arena, buf_slice(&folded));
	bool failed = folded.failed || !literal->text.data;
	buf_release(&folded);
	if (failed)
		return ERR_LIMIT;
	literal_find_needle(literal);
	lines_walk(literal->text, lines_see_for_literal,
		   &(struct literal_words){.literal = literal});
	return 0;
}

/* ---- Finding --------------------------------------------------------------------------------- */

/* What makes a capital of this letter small, and leaves no other character equal to it. */
static uint8_t lines_fold_bit(char c)
{
	return c >= 'a' && c <= 'z' ? 0x20 : 0;
}

/* The first of the 16 places at which the needle begins, or -1. Only places whose byte in the two
 * halves is not 0 are looked at. */
static int lines_first_of(const char *at, uint64_t low, uint64_t high, struct slice needle)
{
	for (int half = 0; half < 2; half++) {
		uint64_t left = half ? high : low;
		while (left) {
			int byte = __builtin_ctzll(left) / 8;
			if (slice_equal_lower((struct slice){at + 8 * half + byte, needle.len},
					      needle))
				return 8 * half + byte;
			left &= ~(UINT64_C(0xff) << 8 * byte);
		}
	}
	return -1;
}

/* The first and the last byte of the needle are looked for in 16 places at once. */
static size_t lines_find(struct slice text, size_t from, struct slice needle)
{
	if (!needle.len && from < text.len)
		return from;
	if (!needle.len || text.len < needle.len)
		return text.len;
	const size_t last = needle.len - 1, end = text.len - last;
	const char first_byte = needle.data[0], last_byte = needle.data[last];
	const lines_vector first = lines_vector_of((uint8_t)first_byte),
			   behind = lines_vector_of((uint8_t)last_byte),
			   first_bit = lines_vector_of(lines_fold_bit(first_byte)),
			   behind_bit = lines_vector_of(lines_fold_bit(last_byte));
	size_t at = from;
	for (; at + LINES_VECTOR_BYTES <= end; at += LINES_VECTOR_BYTES) {
		lines_vector fits =
			(lines_vector)((lines_load(text.data + at) | first_bit) == first) &
			(lines_vector)((lines_load(text.data + at + last) | behind_bit) == behind);
		lines_halves halves = (lines_halves)fits;
		if (!(halves[0] | halves[1]))
			continue;
		int found = lines_first_of(text.data + at, halves[0], halves[1], needle);
		if (found >= 0)
			return at + (size_t)found;
	}
	for (; at < end; at++)
		if (slice_equal_lower((struct slice){text.data + at, needle.len}, needle))
			return at;
	return text.len;
}

size_t lines_literal_seek(const struct lines_literal *literal, struct slice text, size_t from)
{
	return lines_find(text, from, literal->needle);
}

static bool lines_is_word_at(struct slice line, size_t at)
{
	enum lines_class class = lines_class_of(line.data[at]);
	size_t len;
	return class == LINES_BEYOND_ASCII ? words_is_letter(line, at, &len) : class >= LINES_WORD;
}

/* The character that ends before `at`. */
static bool lines_is_word_before(struct slice line, size_t at)
{
	size_t begin = at - 1;
	while (begin && at - begin < 4 && ((uint8_t)line.data[begin] & 0xc0) == 0x80)
		begin--;
	/* Bytes that are no character separate words. */
	size_t len = utf8_length((const uint8_t *)line.data + begin, at - begin);
	return len == at - begin && lines_is_word_at(line, begin);
}

static bool literal_is_bounded(const struct lines_literal *literal, struct slice line, size_t at)
{
	size_t end = at + literal->text.len;
	return (literal->open_left || at == 0 || !lines_is_word_at(line, at) ||
		!lines_is_word_before(line, at)) &&
	       (literal->open_right || end == line.len || !lines_is_word_before(line, end) ||
		!lines_is_word_at(line, end));
}

static bool literal_is_in_small(const struct lines_literal *literal, struct slice line)
{
	size_t at = 0;
	while ((at = lines_find(line, at, literal->text)) < line.len) {
		if (literal_is_bounded(literal, line, at))
			return true;
		at++;
	}
	return false;
}

bool lines_literal_is_in(const struct lines_literal *literal, struct slice line, struct buf *room)
{
	if (literal->ascii)
		return literal_is_in_small(literal, line);
	buf_clear(room);
	words_fold(line, room);
	return !room->failed && literal_is_in_small(literal, buf_slice(room));
}
