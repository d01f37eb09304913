/* Secrets within a text, one after the other.
 *
 *     token=abc&x=1                         after a name, to a &, a ;, a blank or a quote
 *     password = 'x'   "token": "x"         a literal after a name: of SQL, of code, of JSON, of
 *     db.pw = md5('x')   r['token'] = "x"   what Python prints
 *     password: hunter2                     a line of a name and one word; with `=` and blanks
 *                                           around it the word has a digit, as code has names there
 *     Authorization: Bearer x               headers of two kinds, to the end of their line
 *     ... Bearer x1 ...                     after Bearer and Basic, if it is no plain word
 *     postgres://user:x@host                what stands between : and @
 *     4111 1111 1111 1111                   payment cards, below
 *     -----BEGIN RSA PRIVATE KEY-----       to its end, or to that of the text
 *
 * A name may be quoted, and the quotes may be escaped. What stands for a value is none: `?`, `%s`,
 * `$1`, `:name`, `***`, `None`, the name itself (`login(password=password)`). Prose is none:
 * "password: must be longer", "Unexpected token '<'".
 *
 * Cards have the digits that an issuer gives (ISO/IEC 7812), in one run or in the groups that stand
 * on a card, parted by blanks or hyphens, pass the check of Luhn, and stand neither within a word,
 * nor in a longer run, nor after a decimal point. Times in ms, us and ns begin with 1 and are none;
 * of numbers of 16 digits at random one in 55 is taken for a card. */
#ifndef FAULT_MASK_TEXT_H
#define FAULT_MASK_TEXT_H

#include "fault/mask_name.h"

struct mask_span {
	size_t begin, end; /* never empty */
};

/* The first secret that begins at `from` or later; what is before `from` is looked at no more, but
 * as the surroundings of what follows. For the next one: from = span->end. */
bool mask_text_next(struct mask_words *words, struct slice text, size_t from,
		    struct mask_span *span) MUST_CHECK;

#endif
