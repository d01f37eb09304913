/* A line of OpenTSDB's telnet protocol: bytes in, a point out.
 *
 *     put metric timestamp value key=value key=value ...
 *
 * Words are separated by blanks or tabs, any number of them. The timestamp is in seconds, or in ms
 * if its whole part has 13 digits or more; both may have a fraction, which is cut to the ms. The
 * value is a decimal number; it is a double, unless it is an integer that no double holds but 64
 * bits do. A tag's key ends at the first `=`. There may be no tags.
 *
 * No state, no allocation, any thread. */
#ifndef WIRE_PUT_LINE_H
#define WIRE_PUT_LINE_H

#include "base/base.h"
#include "model/series.h"
#include "model/value.h"

enum { PUT_LINE_TAGS_MAX = TAGS_MAX + 1 }; /* one may name the tenant */

enum put_line_fault {
	PUT_LINE_GOOD,
	PUT_LINE_SYNTAX,
	PUT_LINE_TIME,
	PUT_LINE_NOT_NUMBER,
	PUT_LINE_NOT_FINITE,
	PUT_LINE_TOO_MANY, /* tags */
};

struct put_line {
	struct slice metric;
	int64_t ts_ms;
	struct value value;
	struct tag tags[PUT_LINE_TAGS_MAX];
	size_t tag_count;
};

/* Takes the next word off the front of *rest; empty at the end. */
struct slice put_line_word(struct slice *rest);

/* `words` is what follows `put`, without the end of the line. Slices of it are given; names are
 * unchecked, but neither a key nor a value of a tag is empty. Of a fault, a sentence and where in
 * `words` it is. */
enum put_line_fault put_line_parse(struct slice words, struct put_line *line, const char **at,
				   struct errbuf *e) MUST_CHECK;

#endif
