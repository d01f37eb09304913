/* Words of lines of logs, and how a text is found in them.
 *
 * A word is a run of letters, digits and `_`, in small letters. So that 10.1.2.3, a path or a
 * version is found fast, too, pairs of words count beside them: two words with one of . : / @ -
 * between them. 10.1.2.3 has the words 10, 1, 2 and 3, and the pairs 10.1, 1.2 and 2.3. Pairs, and
 * not 10.1.2.3 as a whole, so that it is found in 10.1.2.3:80 as well. Fractions of seconds do not
 * count, since each line has another one: a word of three digits or more and Z (206Z), and a pair
 * of two digits, a point, and three digits or more, with or without Z (07.206).
 *
 * Letters and small letters are those of words.h.
 *
 * Pure; memory from the caller's arena; a matcher belongs to one thread. */
#ifndef WORDS_LINES_H
#define WORDS_LINES_H

#include "base/mem.h"
#include "words/filter.h"

enum { LINES_HASHES_MAX = 100 };

/* Adds the words and the pairs of a text, which is one line or several. */
void words_set_add_lines(struct words_set *set, struct slice text);

/* A text that is looked for in lines, in any case. Where it begins with a letter, a digit or `_`,
 * none of these stands before it in a line, unless `open_left`; the same holds at its end. */
struct lines_literal {
	struct slice text; /* in small letters */
	bool open_left, open_right;
	bool ascii; /* it has no other characters, so that lines are compared as they are */
	/* Hashes of words and pairs that each line which has the text has, too. */
	uint64_t hashes[LINES_HASHES_MAX];
	size_t hash_count;
	struct slice needle; /* the longest part of it that is ASCII */
};

/* The text is copied in small letters. ERR_LIMIT: the arena is full, or the text takes more than 4
 * KiB in small letters, for which twice its bytes are reckoned. */
int lines_literal_init(struct lines_literal *literal, struct slice text, bool open_left,
		       bool open_right, struct arena *arena) MUST_CHECK;

/* Where in a text, from `from` on, a line may have the literal: the offset of the first place that
 * has its needle; text.len: there is none. */
size_t lines_literal_seek(const struct lines_literal *literal, struct slice text, size_t from);
/* Whether a line has it. `room` is the caller's: where the text has other characters than those of
 * ASCII, the line in small letters is put there. A line that has no room there does not have it. */
bool lines_literal_is_in(const struct lines_literal *literal, struct slice line, struct buf *room);

#endif
