/* A filter of words: whether some texts have a word is answered with no, or with maybe. So whoever
 * searches passes over what certainly lacks a word without unpacking it.
 *
 * The texts are in up to eight parts. A query gives the parts that may have all of its words. A
 * word of more than three parts is kept once, in a filter for all parts: it excludes none of them.
 * The filters are Bloom filters of 9 bits and 6 probes a word. Each word stands in the filter of
 * all words and in another one at least: so of words that are in no text one in about 670 is
 * answered with maybe.
 *
 * It knows each word of the texts, whole and in parts, as words_fold writes it.
 *
 * Pure; a set belongs to one thread. */
#ifndef WORDS_FILTER_H
#define WORDS_FILTER_H

#include "words/query.h"

enum {
	WORDS_PARTS_MAX = 8,
	WORDS_PARTS_ALL = (1 << WORDS_PARTS_MAX) - 1,
	WORDS_RECENT = 4096,
	WORDS_WAITING = 32,
};

/* Hashes, and of each the parts that have what it is of. */
struct words_table {
	uint64_t *hashes; /* open addressing; 0: free */
	uint8_t *parts;   /* 1 << part */
	size_t count, room;
};

/* The different words of some texts. Texts that are alike are most of what reports and lines of one
 * kind say: what a text has is looked for once in each part. */
struct words_set {
	struct words_table words, texts;
	uint64_t seed; /* of the hashes of texts */
	struct buf word;
	/* Words of lines: WORDS_RECENT of those that were added, or NULL; and those that are to
	 * be added, whose slots come from memory meanwhile. */
	uint64_t *recent;
	uint64_t waiting[WORDS_WAITING];
	size_t waiting_count;
};
/* `seed` is what senders of texts do not know: a text whose hash is that of another one is left
 * out. */
void words_set_init(struct words_set *set, uint64_t seed);
void words_set_release(struct words_set *set);
void words_set_clear(struct words_set *set);
/* part: below WORDS_PARTS_MAX */
void words_set_add(struct words_set *set, unsigned part, struct slice text);

/* Before words of lines are added. */
void words_set_begin_lines(struct words_set *set);
/* Adds a hash that words_set_add_hash does not find among the recent ones. */
void words_set_add_new(struct words_set *set, uint64_t hash);
/* Words of lines (lines.h) are added by their hash, which is not 0, and are in no part. Most of
 * them were added just before. */
static inline void words_set_add_hash(struct words_set *set, uint64_t hash)
{
	uint64_t *recent = &set->recent[hash % WORDS_RECENT];
	if (*recent == hash)
		return;
	*recent = hash;
	words_set_add_new(set, hash);
}

/* Appends the filter of a set: bytes that stay as they are on disk. */
void words_filter_put(const struct words_set *set, struct buf *out);
/* The same of a set without parts: one Bloom filter of 10 bits and 8 probes a word, by which one
 * word in about 120 is answered with maybe. */
void words_filter_put_alone(struct words_set *set, struct buf *out);
/* The parts of which a text may have all words of the terms that have to hold: 1 << part. Values of
 * keys count as texts: their words have to be in the set, too. A filter of no bytes, and one that
 * nobody has written, know nothing: all parts. */
unsigned words_filter_parts(struct slice filter, const struct words_query *query);

/* Whether a text may have all of these words. */
bool words_filter_has(struct slice filter, const uint64_t *hashes, size_t count);
/* How many words of a set the filter answers with no: of its own set none. */
size_t words_filter_count_lacking(struct slice filter, struct words_set *set);

#endif
