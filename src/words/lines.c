#include "words/lines.h"

#include "base/utf8.h"

enum {
	LINES_LITERAL_MAX_BYTES = 1 << 12,
	LINES_VECTOR_BYTES = 16,
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

/* ---- Words ----------------------------------------------------------------------------------- */

/* A walk over the words of a text. */
struct lines_walk {
	struct slice text;
	size_t at;    /* behind the word */
	size_t begin; /* of the word */
	uint64_t word;
	uint64_t pair; /* with the word before; 0: no joiner stands between them */
	struct buf folded;
};

static void lines_walk_init(struct lines_walk *walk, struct slice text)
{
	*walk = (struct lines_walk){.text = text};
	buf_init(&walk->folded, 2 * text.len + 1);
}

/* Where the next word begins. */
static size_t lines_word_begin(struct slice text, size_t at)
{
	for (size_t len; at < text.len; at += len) {
		while (at < text.len && lines_class_of(text.data[at]) <= LINES_JOINER)
			at++;
		if (at == text.len || lines_class_of(text.data[at]) != LINES_BEYOND_ASCII ||
		    words_is_letter(text, at, &len))
			break;
	}
	return at;
}

static size_t lines_word_end(struct slice text, size_t at, bool *ascii)
{
	*ascii = true;
	for (size_t len; at < text.len; at += len) {
		while (at < text.len && lines_class_of(text.data[at]) == LINES_WORD)
			at++;
		if (at == text.len || lines_class_of(text.data[at]) != LINES_BEYOND_ASCII ||
		    !words_is_letter(text, at, &len))
			break;
		*ascii = false;
	}
	return at;
}

/* Eight bytes of a word, or those that are left, the others 0. `room`: how many may be read. */
static uint64_t lines_eight(const char *from, size_t left, size_t room)
{
	uint64_t eight = 0;
	if (left >= sizeof(eight) || room < sizeof(eight)) {
		memcpy(&eight, from, left < sizeof(eight) ? left : sizeof(eight));
		return eight;
	}
	memcpy(&eight, from, sizeof(eight));
	return eight & ((UINT64_C(1) << 8 * left) - 1);
}

/* The hash of a word, behind which `room` bytes are in all. Setting this
 * bit makes a capital its small letter, and no other two letters, digits or `_` equal. Filters on
 * disk are made of hashes, so they stay as they are. */
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

static bool lines_walk_next(struct lines_walk *walk)
{
	const struct slice text = walk->text;
	size_t before_end = walk->at, begin = lines_word_begin(text, before_end);
	bool ascii;
	if (begin >= text.len)
		return false;
	walk->begin = begin;
	walk->at = lines_word_end(text, begin, &ascii);
	uint64_t before = walk->word;
	struct slice word = {text.data + begin, walk->at - begin};
	if (!ascii) {
		buf_clear(&walk->folded);
		words_fold(word, &walk->folded);
		word = buf_slice(&walk->folded);
	}
	walk->word = lines_hash(word, ascii ? text.len - begin : word.len);
	bool joined = before && begin == before_end + 1 &&
		      lines_class_of(text.data[before_end]) == LINES_JOINER;
	walk->pair = joined ? lines_hash_pair(before, text.data[before_end], walk->word) : 0;
	return true;
}

void words_set_add_lines(struct words_set *set, struct slice text)
{
	struct lines_walk walk;
	lines_walk_init(&walk, text);
	while (lines_walk_next(&walk)) {
		words_set_add_hash(set, walk.word);
		if (walk.pair)
			words_set_add_hash(set, walk.pair);
	}
	buf_release(&walk.folded);
}

/* ---- Literals -------------------------------------------------------------------------------- */

static void literal_add_hash(struct lines_literal *literal, uint64_t hash)
{
	if (literal->hash_count < LINES_HASHES_MAX)
		literal->hashes[literal->hash_count++] = hash;
}

/* A word at an open end may be a part of one of the line. */
static void literal_hash(struct lines_literal *literal)
{
	struct lines_walk walk;
	bool whole_before = false;
	lines_walk_init(&walk, literal->text);
	while (lines_walk_next(&walk)) {
		bool whole = (walk.begin > 0 || !literal->open_left) &&
			     (walk.at < literal->text.len || !literal->open_right);
		if (whole)
			literal_add_hash(literal, walk.word);
		if (whole && walk.pair && whole_before)
			literal_add_hash(literal, walk.pair);
		whole_before = whole;
	}
	buf_release(&walk.folded);
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
	literal_hash(literal);
	return 0;
}

/* ---- Finding --------------------------------------------------------------------------------- */

typedef uint8_t lines_vector __attribute__((vector_size(LINES_VECTOR_BYTES)));
typedef uint64_t lines_halves __attribute__((vector_size(LINES_VECTOR_BYTES)));

/* What makes a capital of this letter small, and leaves no other character equal to it. */
static uint8_t lines_fold_bit(char c)
{
	return c >= 'a' && c <= 'z' ? 0x20 : 0;
}

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
