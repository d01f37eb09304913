/* What people search for in texts:
 *
 *     timeout            texts with this word, or part of a word (words.h), in any case
 *     "lock wait"        with these words one after the other; foo-bar is the same as "foo bar"
 *     host:db1           whose attribute or tag has this value; also host:"db 1"
 *     -timeout           not so; also -"lock wait" and -host:db1
 *
 * All terms have to hold. What has attributes is known to the caller, who gives their values.
 *
 * Pure; memory from the caller's arena; a matcher belongs to one thread. */
#ifndef WORDS_QUERY_H
#define WORDS_QUERY_H

#include "base/mem.h"
#include "words/words.h"

enum {
	WORDS_TERMS_MAX = 20,
	WORDS_OF_TERM_MAX = 50,
};

struct words_term {
	bool negated;
	struct slice key, value; /* key len 0: it is words */
	/* Other values that will do; the caller may set them. */
	const struct slice *others;
	size_t other_count;
	struct slice words[WORDS_OF_TERM_MAX];
	size_t word_count;
};

struct words_query {
	struct words_term *terms;
	size_t count; /* 0: every text fits */
};

/* ERR_INVALID, with a sentence; ERR_LIMIT: the arena is full. */
int words_query_parse(struct slice text, struct arena *arena, struct words_query *query,
		      struct errbuf *e) MUST_CHECK;

/* A word of ASCII that has to be there, and how to find it by Horspool's search. */
struct words_needle {
	struct slice word;
	uint8_t skip[256]; /* by the byte under its end: bytes to go on */
};

/* Compares one text after another with the terms. */
struct words_matcher {
	const struct words_query *query;
	uint32_t found;   /* bit n: term n was there */
	uint32_t negated; /* bit n: it must not be there */
	struct buf word;
	struct words_needle needles[WORDS_TERMS_MAX];
	size_t needle_count;
};
void words_matcher_init(struct words_matcher *matcher, const struct words_query *query);
void words_matcher_release(struct words_matcher *matcher);
/* Forgets what was found. */
void words_matcher_begin(struct words_matcher *matcher);
/* A fast look before words_match. `texts` contain all that would be matched, and maybe more. False:
 * a word of the query is in none of them, so the query does not fit. */
bool words_matcher_may_fit(const struct words_matcher *matcher, const struct slice *texts,
			   size_t count);
/* Phrases do not go beyond a text. */
void words_match(struct words_matcher *matcher, struct slice text);
/* An attribute or tag of this name has this value. */
void words_match_value(struct words_matcher *matcher, struct slice name, struct slice value);
/* Whether all terms hold; whether one is there that must not be, whatever is looked at further. */
bool words_matcher_fits(const struct words_matcher *matcher);
static inline bool words_matcher_fails(const struct words_matcher *matcher)
{
	return matcher->found & matcher->negated;
}

#endif
