/* What the members of a board's JSON may be: a row each. Members without a row are kept as they
 * are. Private to board/. Pure. */
#ifndef BOARD_RULES_H
#define BOARD_RULES_H

#include "wire/json.h"

enum board_type {
	BOARD_NAME,     /* a text of `least` to `most` bytes without control characters */
	BOARD_TEXT,     /* likewise, of any characters */
	BOARD_WORD,     /* a text that stands in `words` */
	BOARD_VARIABLE, /* as a variable is called: a letter or `_`, then letters, digits, `_` */
	BOARD_FLAG,     /* true or false */
	BOARD_NUMBER,   /* from `least` to `most` */
	BOARD_WHOLE,    /* likewise, without a fraction */
	BOARD_TIME,     /* a text, as `start` of /api/query */
	BOARD_DURATION, /* a text, `least` to `most` in ms */
	BOARD_LIST,     /* of at most `most` values */
	BOARD_TEXTS,    /* of at most `most` texts */
	BOARD_OBJECT,   /* whose members are as `within`, if that is not NULL */
	BOARD_OBJECTS,  /* a list of at most `most` of them */
	BOARD_QUERY,    /* likewise, of texts, numbers and lists of texts */
};

struct board_rule {
	const char *name; /* NULL: the end of the table */
	enum board_type type;
	double least, most;
	const char *const *words; /* ends with NULL */
	const struct board_rule *within;
	bool is_needed;
	const char
		*preset; /* JSON, of what does not say it; NULL: none. Of a board's own members */
};

/* ERR_INVALID with a sentence that names the member. */
int board_rules_check(const struct board_rule *rules, const struct json *object,
		      struct errbuf *e) MUST_CHECK;

#endif
