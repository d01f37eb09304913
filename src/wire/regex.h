/* Regular expressions whose time is bounded: at most the length of the program for each character
 * of the text, whatever the pattern, and of a character beyond U+00FF the ranges of its classes.
 * There are no back-references and no look-around, which is what makes others explode.
 *
 * Taken is what Python's `re` and POSIX's extended expressions have in common: literals, `.`,
 * [classes] with ranges and ^, \d \w \s \D \W \S \b \B, ^ $ \A \Z, groups ( ) and (?: ), | , * + ?
 * {m} {m,} {m,n}, and the lazy forms, which match the same texts. Within a class [: is refused,
 * which POSIX takes for the beginning of [:digit:] and Python for characters. A backslash before
 * anything else that is no letter or digit stands for that character. Texts are UTF-8 and matched
 * by character; a byte that is not UTF-8 is a character of its own.
 *
 * No state; memory: the caller's arena. */
#ifndef WIRE_REGEX_H
#define WIRE_REGEX_H

#include "base/base.h"

struct arena;

enum {
	REGEX_MAX_BYTES = 256,      /* of a pattern */
	REGEX_STEPS_MAX = 1000,     /* of its program */
	REGEX_RANGES_MAX = 500,     /* of all its classes together */
	REGEX_DEPTH_MAX = 32,       /* groups within each other */
	REGEX_REPEATS_MAX = 255,    /* in {m,n} */
	REGEX_PAUSE_WORK = 1 << 22, /* some 10 ms */
};

struct regex_step;
struct regex_range;
struct regex_class;

struct regex {
	const struct regex_step *steps;
	const struct regex_range *ranges;
	const struct regex_class *classes;
	size_t step_count;
	bool fold_case;
};

/* With `fold_case` ASCII letters match in either case. ERR_INVALID with a sentence; ERR_LIMIT: more
 * than the limits above. */
int regex_compile(struct slice pattern, bool fold_case, struct arena *arena, struct regex *regex,
		  struct errbuf *e) MUST_CHECK;

/* Whether it matches somewhere in the text. Adds what it cost, in steps and ranges that were looked
 * at, to *work. */
bool regex_search(const struct regex *regex, struct slice text, uint64_t *work);
/* The same of texts that may be long: `stops` is asked after each REGEX_PAUSE_WORK of work, and
 * ends the search where it says so; then it is said that there is no match. NULL: nobody is asked.
 */
bool regex_search_pausing(const struct regex *regex, struct slice text, uint64_t *work,
			  bool (*stops)(void *owner), void *owner);

#endif
