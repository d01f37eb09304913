/* Fault reports of python-oops in their old form, which looks like a letter of RFC 822:
 *
 *     Oops-Id: OOPS-A0001
 *     Exception-Type: NotFound
 *     Exception-Value: error message
 *     Date: 2005-04-01T00:00:00+00:00
 *     Page-Id: IFoo:+foo-template
 *     Branch, Revision, User, URL, Duration, Informational, Oops-Reporter: likewise
 *
 *     HTTP_USER_AGENT=Mozilla/5.0
 *     name%3Dfoo=hello%0Aworld
 *
 *     00001-00005@store_a SELECT 1
 *     00005-00010@store_b SELECT 2
 *
 *     Traceback (most recent call last):
 *     ...
 *
 * Both directions do what `oops_datedir_repo.serializer_rfc822` does, but for what is said below.
 * The form loses types, and what the writer escapes with a backslash the reader leaves so.
 *
 * Bytes in, tree out and back: no I/O, no globals. Threads: any. */
#ifndef WIRE_OOPS_RFC822_H
#define WIRE_OOPS_RFC822_H

#include "wire/json.h"

/* Whether the first line is a header, of a name of letters, digits and hyphens: else it is no such
 * report, though the reader would make an empty one of it. */
bool oops_rfc822_begins(struct slice text);

/* The report as an object of these members, null where a header is missing:
 *
 *     id type value topic branch_nick revno username url     texts
 *     time           text, 2005-04-01T00:00:00Z; what is no time stays as it came
 *     duration       number of seconds; -1 where it is missing or not a finite number
 *     informational reporter    texts; not there where the header is missing
 *     req_vars       object of texts
 *     timeline       array of [start, stop, category, statement]: numbers of ms; a text, or null;
 *                    a text
 *     tb_text        text
 *
 * Of two headers of one name the first counts, and Topic before Page-Id. Lines before the traceback
 * that are neither variables nor statements are left out. Where no line begins a traceback, the
 * last line is taken for it, whatever it is: so does the original.
 *
 * Other than the original: UTF-8 stays what it is (there, each byte beyond ASCII becomes U+FFFD;
 * here each that is not UTF-8 does); a time that cannot be read is kept; a line that begins with
 * `== EXTRA DATA ==` begins the traceback, as the original means it to, but it takes the line for a
 * variable and loses what follows.
 *
 * The tree is in `arena`, its text also in `text`, which has to outlive it. ERR_LIMIT: the arena is
 * full. Nothing else fails. */
int oops_rfc822_parse(struct slice text, struct arena *arena, struct json **root,
		      struct errbuf *e) MUST_CHECK;

/* The report, an object, in that form; when `out` is full it says so (out->failed). Members of
 * other names, and rows of the timeline that do not begin with two numbers, are left out.
 * `req_vars` may also be an array of [key, value]. Text is ASCII, with \\, \x.., \u.... and
 * \U........; what is no text is written as Python's str() would, arrays and objects as JSON.
 *
 * Other than the original: a null is left out, so that it is read as null again, there as "None";
 * the category of a statement is written without line ends. */
void oops_rfc822_write(const struct json *report, struct buf *out);

#endif
