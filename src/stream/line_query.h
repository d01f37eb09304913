/* What people search for in lines of logs:
 *
 *     timeout            lines with this word, in any case
 *     10.1.2.3           the same of any text without blanks: no letter, digit or `_` stands beside
 *                        its first or last one
 *     "lock wait"        the same of a text with blanks
 *     *part*  part*      it may be a part of a word on the side of the star; also *"lock wa"*
 *     ~regex             lines that a regular expression (wire/regex.h) fits, in which case counts;
 *                        also ~"a b"
 *     status>=500        lines with such a field (line_field.h): = != < <= > >= and a number
 *     method=GET         = != and a text: "a b", *part*, ~regex; so also path!=~^/items
 *     -timeout           lines of which that does not hold; so of all of these
 *
 * All terms have to hold. In quotation marks `\` makes `"` and `\` ordinary.
 *
 * Lines whose datatype has no rule that knows the field do not fit a term of a field; but of `=` it
 * is a text as others are there, so that uid=0 is found in lines of syslog, too.
 *
 * Pure; memory from the caller's arena; one thread at a time, because of `room` and `work`. */
#ifndef STREAM_LINE_QUERY_H
#define STREAM_LINE_QUERY_H

#include "model/stream.h"
#include "stream/line_field.h"

enum { LINE_QUERY_TERMS_MAX = 20, LINE_QUERY_MAX_BYTES = 2048 };

struct line_term {
	bool negated, is_regex, is_field;
	struct regex regex;
	/* The text; where it is a regular expression, the longest text that is known of each line
	 * which it fits, and which may be empty. */
	struct lines_literal literal;
	struct line_field *field;
	/* By the rule of the lines: */
	enum line_field_how how;            /* of a field */
	const struct lines_literal *needed; /* each line which fits has it; NULL: not known */
};

struct line_query {
	struct line_term *terms;
	size_t count;                /* 0: every line fits */
	struct datatypes *datatypes; /* whoever sets it gives a share; NULL: there are no rules */
	/* 0, or an error that ends the look at a long line. May be NULL. */
	int (*may_go_on)(void *owner);
	void *owner;
	int stopped;   /* that error: from then on no line fits */
	uint64_t work; /* of regular expressions, as regex_search counts it */

	/* For the lines that are looked at now: */
	const struct datatype *rule;
	bool without_rule;    /* a field is asked for that their rule does not know */
	struct slice unknown; /* the first such field */
	bool never;           /* so that none of them fits */
	bool has_words;       /* that each of them which fits has */
	/* The text that is looked for first; NULL: no text must be there. */
	const struct lines_literal *first;

	/* private */
	struct buf room;
	bool reads; /* `fields` is there */
	struct fields_reader fields;
};

/* Streams of which no rule knows a field that is asked for. */
struct line_without {
	uint64_t streams;
	struct slice
		field; /* the unknown field of the first stream; as long as the query's terms */
	char datatype[STREAM_DATATYPE_MAX_BYTES + 1];
};
/* Counts one whose lines a query is to read. */
void line_without_add(struct line_without *without, const struct line_query *query,
		      struct slice datatype);

/* `text` is UTF-8. *query is to be released in any case; its texts are in the arena, or in `text`.
 * ERR_INVALID or ERR_LIMIT, with a sentence: it is no search; or the arena is full, or a regular
 * expression has more than its limits. */
int line_query_parse(struct slice text, struct arena *arena, struct line_query *query,
		     struct errbuf *e) MUST_CHECK;
/* One more term, `~pattern`. The errors are those of line_query_parse. */
int line_query_add_regex(struct line_query *query, struct slice pattern, struct arena *arena,
			 struct errbuf *e) MUST_CHECK;
void line_query_release(struct line_query *query);

/* From now on lines are read by this rule; NULL: by none, as at first. */
void line_query_begin(struct line_query *query, const struct datatype *rule);

/* Whether a line of a text whose filter this is may fit. */
bool line_query_may_fit(const struct line_query *query, struct slice filter);
/* The next place of a text, from `from` on, whose line may fit; text.len: there is none. */
size_t line_query_seek(const struct line_query *query, struct slice text, size_t from);
/* Whether a line, without its end, is one that is searched for. */
bool line_query_fits(struct line_query *query, struct slice line);

#endif
