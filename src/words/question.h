/* What people search for in texts:
 *
 *     timeout            texts with this word (words.h), in any case, or as a part of another word
 *     "lock wait"        with these words one after the other; foo-bar is the same as "foo bar"
 *     host:db1           whose attribute or tag has this value; also host:"db 1"
 *     -timeout           not so; also -"lock wait" and -host:db1
 *
 * All terms have to hold. The value of an attribute is another's to look at.
 *
 * Pure; memory from the caller's arena; a looker belongs to one thread. */
#ifndef WORDS_QUESTION_H
#define WORDS_QUESTION_H

#include "base/mem.h"
#include "words/words.h"

enum {
	WORDS_TERMS_MAX = 20,
	WORDS_OF_TERM_MAX = 50,
};

struct words_term {
	bool negated;
	struct slice key, value; /* key len 0: it is words */
	struct slice words[WORDS_OF_TERM_MAX];
	size_t word_count;
};

struct words_question {
	struct words_term *terms;
	size_t count; /* 0: every text fits */
};

/* ERR_INVALID, with a sentence; ERR_LIMIT: the arena is full. */
int words_question_parse(struct slice text, struct arena *arena, struct words_question *question,
			 struct errbuf *e) MUST_CHECK;

/* A word of ASCII that has to be there, and how to find it by Horspool's search. */
struct words_needle {
	struct slice word;
	uint8_t skip[256]; /* by the byte under its end: bytes to go on */
};

/* Looks for the terms in one text after another. */
struct words_looker {
	const struct words_question *question;
	uint32_t found;   /* bit n: term n was there */
	uint32_t negated; /* bit n: it must not be there */
	struct buf word;
	struct words_needle needles[WORDS_TERMS_MAX];
	size_t needle_count;
};
void words_looker_init(struct words_looker *looker, const struct words_question *question);
void words_looker_release(struct words_looker *looker);
/* Forgets what was found. */
void words_looker_begin(struct words_looker *looker);
/* Of some bytes that hold all texts that are to be looked at, whatever else they hold: false where
 * the terms cannot hold, at a small part of the price of looking. */
bool words_looker_may_fit(const struct words_looker *looker, struct slice bytes);
/* Phrases do not go beyond a text. */
void words_look(struct words_looker *looker, struct slice text);
/* An attribute or tag of this name has this value. */
void words_look_at_value(struct words_looker *looker, struct slice name, struct slice value);
/* Whether all terms hold; whether one is there that must not be, whatever is looked at further. */
bool words_looker_fits(const struct words_looker *looker);
static inline bool words_looker_fails(const struct words_looker *looker)
{
	return looker->found & looker->negated;
}

#endif
