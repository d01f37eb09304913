/* Words of a text, as they are searched for: its runs of letters and digits, in small letters. A
 * word that is written in CamelCase has parts: KeyError has Key and Error, HTTPError has HTTP and
 * Error, MD5Sum has MD5 and Sum.
 *
 * Letters, digits and small letters are those of glibc's C.UTF-8, code point by code point. Where
 * the system has no such locale only those of ASCII are known; all other characters are letters. No
 * letter beyond ASCII becomes one of ASCII: what is ASCII in small letters was so before.
 *
 * Pure; any thread. */
#ifndef WORDS_WORDS_H
#define WORDS_WORDS_H

#include "base/buf.h"

/* Takes the next word off a text, as it is written. False: there is none left. Bytes that are no
 * UTF-8 separate words. */
bool words_next(struct slice *text, struct slice *word);
/* Takes the next part off a word. A word without an inner capital is its only part. False: there is
 * none left. */
bool words_next_part(struct slice *word, struct slice *part);
/* Whether a word has small letters and digits of ASCII only: it is its only part, and words_fold
 * leaves it as it is. Most words are so. */
bool words_is_plain(struct slice word);
/* Whether the character at a place of a text is a letter or a digit. *len: its bytes. Bytes that
 * are no UTF-8 are none, of one byte each. */
bool words_is_letter(struct slice text, size_t at, size_t *len);
/* Appends a text in small letters. Bytes that are no UTF-8 stay as they are. */
void words_fold(struct slice text, struct buf *out);
/* A hash of which characters are letters, capitals and small ones here: where it is another one,
 * words may be others. */
uint64_t words_rules(void);

#endif
