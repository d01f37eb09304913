/* A field of lines, as people search for it (line_query.h): `status>=500`, `method=GET`,
 * `path=~^/items`. The rule of a datatype (datatypes.h) says which fields its lines have.
 *
 * Numbers are compared where both are some, else = and != compare texts, in any case. Where a line
 * may be known by a word of it, = holds only of a line that has this word as it was asked for: of
 * status=500 that is 500, which 500.0 has, too, and 5e2 has not.
 *
 * Pure; memory from the caller's arena. */
#ifndef STREAM_LINE_FIELD_H
#define STREAM_LINE_FIELD_H

#include "stream/datatypes.h"
#include "wire/regex.h"
#include "words/lines.h"

struct line_field {
	struct slice name;
	enum datatype_relation relation;
	struct value number; /* VALUE_NONE: the text is none */
	bool is_regex;       /* the text is a regular expression, and not in `text` */
	struct regex regex;
	struct lines_literal text;
	struct lines_literal word;  /* of =, a word of the text; may be empty */
	struct lines_literal plain; /* of =, the whole term as a text; empty: it means nothing so */
};

/* Takes the name and the relation of a field off a search, where a term begins with them and more
 * follows. False: it is another term, and nothing is taken. */
bool line_field_take(struct slice *rest, struct line_field *field);
/* Sets the text, of which a side with a star is open. ERR_INVALID with a sentence: it is no number
 * to compare with; ERR_LIMIT: the arena is full. */
int line_field_set_text(struct line_field *field, struct slice text, bool open_left,
			bool open_right, struct arena *arena, struct errbuf *e) MUST_CHECK;

enum line_field_how {
	LINE_FIELD_READ,  /* the rule reads lines of this field */
	LINE_FIELD_PLAIN, /* it knows no such field, and the term is a text */
	LINE_FIELD_NONE,  /* likewise, and the term says nothing of the lines */
};
/* `rule` may be NULL. What stands below a line of names is not known by itself: the rule of columns
 * reads no fields here. */
enum line_field_how line_field_how(const struct line_field *field, const struct datatype *rule);
/* A text that each fitting line has, where the rule reads it; NULL: none is known. */
const struct lines_literal *line_field_needed(const struct line_field *field,
					      const struct datatype *rule);

/* Whether the field's text is as it is asked for, which has no regular expression; text.data NULL:
 * the line has no such field. */
bool line_field_fits(const struct line_field *field, struct slice text, struct buf *room);

#endif
