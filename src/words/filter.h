/* A filter of words: whether some texts have a word is answered with no, or with maybe. So whoever
 * searches passes over what certainly lacks a word without unpacking it. A Bloom filter of 16 bits
 * and 8 probes a word: of words that are not there one in 1,700 is answered with maybe.
 *
 * It knows each word of the texts, whole and in parts, as words_fold writes it.
 *
 * Pure; a set belongs to one thread. */
#ifndef WORDS_FILTER_H
#define WORDS_FILTER_H

#include "words/query.h"

/* The different words of some texts. */
struct words_set {
	uint64_t *hashes; /* open addressing; 0: free */
	size_t count, room;
	struct buf word;
};
void words_set_init(struct words_set *set);
void words_set_release(struct words_set *set);
void words_set_clear(struct words_set *set);
void words_set_add(struct words_set *set, struct slice text);

/* Appends the filter of a set: bytes that stay as they are on disk. */
void words_filter_put(const struct words_set *set, struct buf *out);
/* False: no text has all words of the terms that have to hold. Values of keys count as texts: their
 * words have to be in the set, too. A filter of no bytes knows nothing: true. */
bool words_filter_may_fit(struct slice filter, const struct words_query *query);

#endif
