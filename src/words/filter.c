#include "words/filter.h"

#include "base/cursor.h"
#include "base/hash.h"

enum {
	FILTER_BITS = 9, /* a word */
	FILTER_PROBES = 6,
	FILTER_BITS_ALONE = 10, /* of a filter that is alone */
	FILTER_PROBES_ALONE = 8,
	FILTER_WORD_MAX_BYTES = 1 << 16,
	SET_ROOM_MIN = 1024,
	/* A word of more parts is kept once for all of them. */
	FILTER_REPEATS_MAX = 3,
	/* That of all words, that of words that many parts have, and those of each part. */
	FILTER_ALL = 0,
	FILTER_COMMON = 1,
	FILTER_OF_PART = 2,
	FILTERS_MAX = FILTER_OF_PART + WORDS_PARTS_MAX,
};

/* ---- Sets ------------------------------------------------------------------------------------ */

/* 0 means free. */
static uint64_t filter_hash_by(struct slice text, uint64_t seed)
{
	uint64_t hash = hash64(text.data, text.len, seed);
	return hash ? hash : 1;
}

/* The hash of a word. Filters on disk are made of it, so it stays as it is. */
static uint64_t filter_hash(struct slice folded)
{
	return filter_hash_by(folded, 0);
}

static void table_release(struct words_table *table)
{
	mem_free(table->hashes);
	mem_free(table->parts);
}

static void table_clear(struct words_table *table)
{
	table->count = 0;
	if (table->room)
		memset(table->hashes, 0, table->room * sizeof(*table->hashes));
}

/* The slot of a hash, or the free one where it would be. */
static size_t table_slot(const struct words_table *table, uint64_t hash)
{
	size_t at = hash & (table->room - 1);
	while (table->hashes[at] && table->hashes[at] != hash)
		at = (at + 1) & (table->room - 1);
	return at;
}

/* The parts that had it before. */
static uint8_t table_put(struct words_table *table, uint64_t hash, uint8_t parts)
{
	size_t at = table_slot(table, hash);
	uint8_t before = table->hashes[at] ? table->parts[at] : 0;
	table->count += !table->hashes[at];
	table->parts[at] = before | parts;
	table->hashes[at] = hash;
	return before;
}

/* At most half of the slots are used. */
static void table_grow(struct words_table *table)
{
	if (2 * (table->count + 1) <= table->room)
		return;
	struct words_table grown = {.room = table->room ? 2 * table->room : SET_ROOM_MIN};
	grown.hashes = mem_zalloc(grown.room * sizeof(*grown.hashes));
	grown.parts = mem_zalloc(grown.room * sizeof(*grown.parts));
	for (size_t i = 0; i < table->room; i++)
		if (table->hashes[i])
			(void)table_put(&grown, table->hashes[i], table->parts[i]);
	table_release(table);
	*table = grown;
}

static uint8_t table_add(struct words_table *table, uint64_t hash, unsigned part)
{
	table_grow(table);
	return table_put(table, hash, (uint8_t)(1u << part));
}

void words_set_init(struct words_set *set, uint64_t seed)
{
	*set = (struct words_set){.seed = seed};
	buf_init(&set->word, FILTER_WORD_MAX_BYTES);
}

void words_set_release(struct words_set *set)
{
	table_release(&set->words);
	table_release(&set->texts);
	buf_release(&set->word);
	mem_free(set->recent);
}

void words_set_clear(struct words_set *set)
{
	table_clear(&set->words);
	table_clear(&set->texts);
	set->waiting_count = 0;
	if (set->recent)
		memset(set->recent, 0, WORDS_RECENT * sizeof(*set->recent));
}

/* Whether more parts have it than a filter distinguishes. */
static bool set_is_common(uint8_t parts)
{
	return __builtin_popcount(parts) > FILTER_REPEATS_MAX;
}

static void set_add_folded(struct words_set *set, unsigned part, struct slice folded)
{
	(void)table_add(&set->words, filter_hash(folded), part);
}

static void set_add_word(struct words_set *set, unsigned part, struct slice word)
{
	buf_clear(&set->word);
	words_fold(word, &set->word);
	set_add_folded(set, part, buf_slice(&set->word));
}

void words_set_begin_lines(struct words_set *set)
{
	if (!set->recent)
		set->recent = mem_zalloc(WORDS_RECENT * sizeof(*set->recent));
}

static void set_add_waiting(struct words_set *set)
{
	struct words_table *words = &set->words;
	for (size_t i = 0; i < set->waiting_count; i++) {
		table_grow(words);
		size_t at = table_slot(words, set->waiting[i]);
		if (words->hashes[at])
			continue;
		words->hashes[at] = set->waiting[i];
		words->parts[at] = 1;
		words->count++;
	}
	set->waiting_count = 0;
}

void words_set_add_new(struct words_set *set, uint64_t hash)
{
	if (set->waiting_count == ARRAY_LEN(set->waiting))
		set_add_waiting(set);
	set->waiting[set->waiting_count++] = hash;
	if (set->words.room) {
		size_t at = hash & (set->words.room - 1);
		__builtin_prefetch(set->words.hashes + at);
	}
}

void words_set_add(struct words_set *set, unsigned part, struct slice text)
{
	struct slice word, piece;
	ASSERT(part < WORDS_PARTS_MAX);
	uint8_t before = table_add(&set->texts, filter_hash_by(text, set->seed), part);
	/* All words of a text that is common are common already. */
	if (before >> part & 1 || set_is_common(before))
		return;
	while (words_next(&text, &word)) {
		struct slice rest = word;
		if (words_is_plain(word)) {
			set_add_folded(set, part, word);
			continue;
		}
		set_add_word(set, part, word);
		while (words_next_part(&rest, &piece) && piece.len < word.len)
			set_add_word(set, part, piece);
	}
}

/* ---- Filters --------------------------------------------------------------------------------- */

/* The probe of a hash among so many bits. */
static uint64_t filter_bit(uint64_t hash, unsigned probe, uint64_t bits)
{
	uint64_t mixed = hash + probe * (hash >> 32 | 1) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint64_t)((unsigned __int128)mixed * bits >> 64);
}

/* The filters that have a word of these parts: 1 << number. */
static unsigned filters_of(uint8_t parts)
{
	if (set_is_common(parts))
		return 1u << FILTER_ALL | 1u << FILTER_COMMON;
	return 1u << FILTER_ALL | (unsigned)parts << FILTER_OF_PART;
}

/* The filter of all words and the others say maybe by chance, each for another reason. */
static uint64_t filter_hash_for(unsigned number, uint64_t hash)
{
	if (number == FILTER_ALL)
		return hash;
	hash = (hash ^ hash >> 31) * UINT64_C(0xd6e8feb86659fd93);
	return hash ^ hash >> 32;
}

/* A filter that is being made. */
struct filter_made {
	size_t count; /* words */
	size_t at;    /* of its bytes in the output */
	uint64_t bits;
};

/* The words of each. How many parts have filters: 1 + the last that has a word, as far as that was
 * noted of common words. */
static unsigned filters_count(const struct words_table *words, struct filter_made *made)
{
	uint8_t all = 0;
	for (size_t i = 0; i < words->room; i++) {
		if (!words->hashes[i])
			continue;
		all |= words->parts[i];
		for (unsigned left = filters_of(words->parts[i]); left; left &= left - 1)
			made[__builtin_ctz(left)].count++;
	}
	return all ? 32 - (unsigned)__builtin_clz(all) : 0;
}

static void filter_put_empty(struct filter_made *made, unsigned word_bits, struct buf *out)
{
	size_t bytes = (made->count * word_bits + 7) / 8;
	uint8_t head[10];
	buf_append(out, head, varint_put(head, bytes));
	char *to = buf_reserve(out, bytes);
	if (!to)
		return;
	memset(to, 0, bytes);
	made->at = out->len;
	made->bits = 8 * bytes;
	out->len += bytes;
}

static void filter_set(uint8_t *bytes, uint64_t bits, unsigned probes, uint64_t hash)
{
	for (unsigned p = 0; p < probes; p++) {
		uint64_t bit = filter_bit(hash, p, bits);
		bytes[bit / 8] |= (uint8_t)(1u << bit % 8);
	}
}

void words_filter_put(const struct words_set *set, struct buf *out)
{
	const struct words_table *words = &set->words;
	struct filter_made made[FILTERS_MAX] = {{0}};
	unsigned parts = filters_count(words, made);
	buf_append_char(out, (char)parts);
	for (unsigned number = 0; number < FILTER_OF_PART + parts; number++)
		filter_put_empty(&made[number], FILTER_BITS, out);
	for (size_t i = 0; i < words->room && !out->failed; i++) {
		unsigned left = words->hashes[i] ? filters_of(words->parts[i]) : 0;
		for (; left; left &= left - 1) {
			unsigned number = (unsigned)__builtin_ctz(left);
			filter_set((uint8_t *)out->data + made[number].at, made[number].bits,
				   FILTER_PROBES, filter_hash_for(number, words->hashes[i]));
		}
	}
}

void words_filter_put_alone(struct words_set *set, struct buf *out)
{
	set_add_waiting(set);
	const struct words_table *words = &set->words;
	struct filter_made made = {.count = words->count};
	buf_append_char(out, 0);
	filter_put_empty(&made, FILTER_BITS_ALONE, out);
	for (size_t i = 0; i < words->room && !out->failed; i++)
		if (words->hashes[i])
			filter_set((uint8_t *)out->data + made.at, made.bits, FILTER_PROBES_ALONE,
				   words->hashes[i]);
}

/* The filters of a set, as they are stored. */
struct filter_read {
	unsigned parts; /* 0: it is one filter, alone */
	struct slice list[FILTERS_MAX];
};

static bool filter_read(struct slice bytes, struct filter_read *read)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	read->parts = cursor_u8(&c);
	if (read->parts > WORDS_PARTS_MAX)
		return false;
	unsigned count = read->parts ? FILTER_OF_PART + read->parts : 1;
	for (unsigned i = 0; i < count; i++) {
		uint64_t len = cursor_varint(&c);
		if (c.bad || len > cursor_left(&c))
			return false;
		read->list[i] =
			(struct slice){(const char *)cursor_take(&c, (size_t)len), (size_t)len};
	}
	return !c.bad;
}

static bool filter_has(struct slice filter, unsigned probes, uint64_t hash)
{
	const uint8_t *bytes = (const uint8_t *)filter.data;
	for (unsigned p = 0; p < probes && filter.len; p++) {
		uint64_t bit = filter_bit(hash, p, 8 * filter.len);
		if (!(bytes[bit / 8] >> bit % 8 & 1))
			return false;
	}
	return filter.len > 0;
}

/* Those of the parts that may have a word. */
static unsigned filter_parts_of(const struct filter_read *read, unsigned parts, uint64_t hash)
{
	uint64_t second = filter_hash_for(FILTER_COMMON, hash);
	unsigned probes = read->parts ? FILTER_PROBES : FILTER_PROBES_ALONE;
	if (!filter_has(read->list[FILTER_ALL], probes, hash))
		return 0;
	if (!read->parts || filter_has(read->list[FILTER_COMMON], probes, second))
		return parts;
	for (unsigned part = 0; part < WORDS_PARTS_MAX; part++)
		if (parts >> part & 1 &&
		    (part >= read->parts ||
		     !filter_has(read->list[FILTER_OF_PART + part], probes, second)))
			parts &= ~(1u << part);
	return parts;
}

/* A value may also be what is written without words: true, false. */
static unsigned filter_parts_of_value(const struct filter_read *read, unsigned parts,
				      struct slice value)
{
	struct slice rest = value, word;
	struct buf folded;
	if (slice_equal(value, SLICE("true")) || slice_equal(value, SLICE("false")))
		return parts;
	buf_init(&folded, FILTER_WORD_MAX_BYTES);
	while (parts && words_next(&rest, &word)) {
		buf_clear(&folded);
		words_fold(word, &folded);
		if (!folded.failed)
			parts = filter_parts_of(read, parts, filter_hash(buf_slice(&folded)));
	}
	buf_release(&folded);
	return parts;
}

/* Those that may have one of the values. */
static unsigned filter_parts_of_values(const struct filter_read *read, unsigned parts,
				       const struct words_term *term)
{
	unsigned found = filter_parts_of_value(read, parts, term->value);
	for (size_t i = 0; i < term->other_count && found != parts; i++)
		found |= filter_parts_of_value(read, parts, term->others[i]);
	return found;
}

unsigned words_filter_parts(struct slice filter, const struct words_query *query)
{
	struct filter_read read;
	unsigned parts = WORDS_PARTS_ALL;
	if (!filter.len || !filter_read(filter, &read))
		return parts;
	for (size_t i = 0; i < query->count && parts; i++) {
		const struct words_term *term = &query->terms[i];
		if (term->negated)
			continue;
		if (term->key.len)
			parts = filter_parts_of_values(&read, parts, term);
		for (size_t w = 0; w < term->word_count && parts; w++)
			parts = filter_parts_of(&read, parts, filter_hash(term->words[w]));
	}
	return parts;
}

bool words_filter_has(struct slice filter, const uint64_t *hashes, size_t count)
{
	struct filter_read read;
	unsigned parts = WORDS_PARTS_ALL;
	if (!filter.len || !filter_read(filter, &read))
		return true;
	for (size_t i = 0; i < count && parts; i++)
		parts = filter_parts_of(&read, parts, hashes[i]);
	return parts != 0;
}

size_t words_filter_count_lacking(struct slice filter, struct words_set *set)
{
	size_t count = 0;
	set_add_waiting(set);
	for (size_t i = 0; i < set->words.room; i++) {
		const uint64_t *hash = &set->words.hashes[i];
		count += *hash && !words_filter_has(filter, hash, 1);
	}
	return count;
}
