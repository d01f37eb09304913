#include "words/filter.h"

#include "base/hash.h"

enum {
	FILTER_BITS = 16, /* a word */
	FILTER_PROBES = 8,
	FILTER_WORD_MAX_BYTES = 1 << 16,
	SET_ROOM_MIN = 1024,
};

/* ---- Sets ------------------------------------------------------------------------------------ */

/* 0 means free. */
static uint64_t filter_hash(struct slice folded)
{
	uint64_t hash = hash64(folded.data, folded.len, 0);
	return hash ? hash : 1;
}

void words_set_init(struct words_set *set)
{
	*set = (struct words_set){NULL};
	buf_init(&set->word, FILTER_WORD_MAX_BYTES);
}

void words_set_release(struct words_set *set)
{
	mem_free(set->hashes);
	buf_release(&set->word);
}

void words_set_clear(struct words_set *set)
{
	set->count = 0;
	if (set->room)
		memset(set->hashes, 0, set->room * sizeof(*set->hashes));
}

/* The slot of a hash, or the free one where it would be. */
static uint64_t *set_slot(const struct words_set *set, uint64_t hash)
{
	size_t at = hash & (set->room - 1);
	while (set->hashes[at] && set->hashes[at] != hash)
		at = (at + 1) & (set->room - 1);
	return &set->hashes[at];
}

/* At most half of the slots are used. */
static void set_grow(struct words_set *set)
{
	struct words_set grown = *set;
	if (2 * (set->count + 1) <= set->room)
		return;
	grown.room = set->room ? 2 * set->room : SET_ROOM_MIN;
	grown.hashes = mem_zalloc(grown.room * sizeof(*grown.hashes));
	for (size_t i = 0; i < set->room; i++)
		if (set->hashes[i])
			*set_slot(&grown, set->hashes[i]) = set->hashes[i];
	mem_free(set->hashes);
	*set = grown;
}

static void set_add_word(struct words_set *set, struct slice word)
{
	buf_clear(&set->word);
	words_fold(word, &set->word);
	uint64_t hash = filter_hash(buf_slice(&set->word));
	set_grow(set);
	uint64_t *slot = set_slot(set, hash);
	set->count += !*slot;
	*slot = hash;
}

void words_set_add(struct words_set *set, struct slice text)
{
	struct slice word, part;
	while (words_next(&text, &word)) {
		struct slice rest = word;
		set_add_word(set, word);
		while (words_next_part(&rest, &part) && part.len < word.len)
			set_add_word(set, part);
	}
}

/* ---- Filters --------------------------------------------------------------------------------- */

/* The probe of a hash among so many bits. */
static uint64_t filter_bit(uint64_t hash, unsigned probe, uint64_t bits)
{
	uint64_t mixed = hash + probe * (hash >> 32 | 1) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint64_t)((unsigned __int128)mixed * bits >> 64);
}

void words_filter_put(const struct words_set *set, struct buf *out)
{
	size_t bytes = (set->count * FILTER_BITS + 7) / 8;
	uint8_t *to = (uint8_t *)buf_reserve(out, bytes);
	if (!to || !bytes)
		return;
	memset(to, 0, bytes);
	for (size_t i = 0; i < set->room; i++) {
		for (unsigned p = 0; p < FILTER_PROBES && set->hashes[i]; p++) {
			uint64_t bit = filter_bit(set->hashes[i], p, 8 * bytes);
			to[bit / 8] |= (uint8_t)(1u << bit % 8);
		}
	}
	out->len += bytes;
}

static bool filter_has(struct slice filter, uint64_t hash)
{
	const uint8_t *bytes = (const uint8_t *)filter.data;
	for (unsigned p = 0; p < FILTER_PROBES; p++) {
		uint64_t bit = filter_bit(hash, p, 8 * filter.len);
		if (!(bytes[bit / 8] >> bit % 8 & 1))
			return false;
	}
	return true;
}

/* A value may also be what is written without words: true, false. */
static bool filter_has_value(struct slice filter, struct slice value)
{
	struct slice rest = value, word;
	struct buf folded;
	bool may = true;
	if (slice_equal(value, SLICE("true")) || slice_equal(value, SLICE("false")))
		return true;
	buf_init(&folded, FILTER_WORD_MAX_BYTES);
	while (may && words_next(&rest, &word)) {
		buf_clear(&folded);
		words_fold(word, &folded);
		may = folded.failed || filter_has(filter, filter_hash(buf_slice(&folded)));
	}
	buf_release(&folded);
	return may;
}

bool words_filter_may_fit(struct slice filter, const struct words_query *query)
{
	for (size_t i = 0; i < query->count && filter.len; i++) {
		const struct words_term *term = &query->terms[i];
		if (term->negated)
			continue;
		if (term->key.len && !filter_has_value(filter, term->value))
			return false;
		for (size_t w = 0; w < term->word_count; w++) {
			struct slice word = term->words[w];
			if (!filter_has(filter, filter_hash(word)))
				return false;
		}
	}
	return true;
}
