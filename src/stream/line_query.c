#include "stream/line_query.h"

enum { LINE_ROOM_MAX_BYTES = 4 << 20 };

/* ---- What a regular expression needs --------------------------------------------------------- */

/* The bytes of what begins at a place of a pattern and is more than a character; 0: it has no end
 * that is known for sure. */
static size_t line_regex_class(struct slice rest)
{
	size_t at = 1 + (rest.len > 1 && rest.data[1] == '^');
	at += at < rest.len && rest.data[at] == ']';
	for (; at < rest.len && rest.data[at] != ']'; at++) {
		if (rest.data[at] == '[')
			return 0;
		at += rest.data[at] == '\\';
	}
	return at < rest.len ? at + 1 : 0;
}

static size_t line_regex_group(struct slice rest)
{
	size_t depth = 0, at = 0, len;
	for (; at < rest.len; at += len) {
		len = 1;
		if (rest.data[at] == '\\')
			len = 2;
		else if (rest.data[at] == '[')
			len = line_regex_class((struct slice){rest.data + at, rest.len - at});
		else if (rest.data[at] == '(')
			depth++;
		else if (rest.data[at] == ')' && --depth == 0)
			return at + 1;
		if (!len)
			return 0;
	}
	return 0;
}

/* Where something else stands in braces they are characters, and so may be what is within. */
static size_t line_regex_repeat(struct slice rest)
{
	size_t at = 1;
	while (at < rest.len &&
	       ((rest.data[at] >= '0' && rest.data[at] <= '9') || rest.data[at] == ','))
		at++;
	return at < rest.len && rest.data[at] == '}' ? at + 1 : 0;
}

static bool line_regex_is_class(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Runs of characters that each text has which a pattern fits. */
struct line_regex_runs {
	struct buf run, longest;
};

static void line_regex_end_run(struct line_regex_runs *runs)
{
	if (runs->run.len > runs->longest.len) {
		buf_clear(&runs->longest);
		buf_append(&runs->longest, runs->run.data, runs->run.len);
	}
	buf_clear(&runs->run);
}

/* The last character of the run may be missing. */
static void line_regex_drop(struct line_regex_runs *runs)
{
	while (runs->run.len && ((uint8_t)runs->run.data[runs->run.len - 1] & 0xc0) == 0x80)
		runs->run.len--;
	runs->run.len -= runs->run.len > 0;
	line_regex_end_run(runs);
}

/* Takes what comes next in a pattern: its bytes; 0: nothing is known of what follows. */
static size_t line_regex_take(struct line_regex_runs *runs, struct slice rest)
{
	char c = rest.data[0], next = rest.len > 1 ? rest.data[1] : 'x';
	switch (c) {
	case '|':
		return 0;
	case '\\':
		if (line_regex_is_class(next))
			line_regex_end_run(runs);
		else
			buf_append_char(&runs->run, next);
		return smaller_of(rest.len, 2);
	case '[':
		line_regex_end_run(runs);
		return line_regex_class(rest);
	case '(':
		line_regex_end_run(runs);
		return line_regex_group(rest);
	case '*':
	case '?':
		line_regex_drop(runs);
		return 1;
	case '{':
		line_regex_drop(runs);
		return line_regex_repeat(rest);
	case '+':
	case '.':
	case '^':
	case '$':
		line_regex_end_run(runs);
		return 1;
	default:
		buf_append_char(&runs->run, c);
		return 1;
	}
}

/* The longest text that each line has which the pattern fits; empty: none is known. */
static int line_regex_literal(struct slice pattern, struct arena *arena,
			      struct lines_literal *literal)
{
	struct line_regex_runs runs;
	size_t len = 1;
	buf_init(&runs.run, REGEX_MAX_BYTES);
	buf_init(&runs.longest, REGEX_MAX_BYTES);
	for (size_t at = 0; at < pattern.len && len; at += len)
		len = line_regex_take(&runs, (struct slice){pattern.data + at, pattern.len - at});
	line_regex_end_run(&runs);
	struct slice found = len ? buf_slice(&runs.longest) : SLICE("");
	int err = lines_literal_init(literal, found, true, true, arena);
	buf_release(&runs.longest);
	buf_release(&runs.run);
	return err;
}

/* ---- Parsing --------------------------------------------------------------------------------- */

static bool line_is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool line_take_char(struct slice *rest, char c)
{
	if (!rest->len || *rest->data != c)
		return false;
	*rest = (struct slice){rest->data + 1, rest->len - 1};
	return true;
}

static int line_take_quoted(struct slice *rest, struct arena *arena, struct slice *text,
			    struct errbuf *e)
{
	char *to = arena_alloc(arena, rest->len + 1);
	size_t len = 0;
	if (!to)
		return ERR_LIMIT;
	while (!line_take_char(rest, '"')) {
		char next = rest->len > 1 ? rest->data[1] : 0;
		if (!rest->len)
			return errbuf_set(e, ERR_INVALID,
					  "the search has a quotation mark that is not closed");
		if (next == '"' || next == '\\')
			line_take_char(rest, '\\');
		to[len++] = *rest->data;
		*rest = (struct slice){rest->data + 1, rest->len - 1};
	}
	*text = (struct slice){to, len};
	return 0;
}

/* Up to the next blank, or what stands in quotation marks. */
static int line_take_text(struct slice *rest, struct arena *arena, struct slice *text,
			  struct errbuf *e)
{
	size_t len = 0;
	if (line_take_char(rest, '"'))
		return line_take_quoted(rest, arena, text, e);
	while (len < rest->len && !line_is_blank(rest->data[len]))
		len++;
	*text = (struct slice){rest->data, len};
	*rest = (struct slice){rest->data + len, rest->len - len};
	return 0;
}

static int line_take_literal(struct slice *rest, struct arena *arena, struct line_term *term,
			     struct errbuf *e)
{
	struct slice text;
	bool open_left = line_take_char(rest, '*');
	int err = line_take_text(rest, arena, &text, e);
	bool open_right = !err && line_take_char(rest, '*');
	if (err)
		return err;
	if (!open_right && text.len && text.data[text.len - 1] == '*' &&
	    text.data + text.len == rest->data) {
		open_right = true;
		text.len--;
	}
	if (!text.len)
		return errbuf_set(e, ERR_INVALID, "the search has a term without a text");
	if (memchr(text.data, '\n', text.len))
		return errbuf_set(e, ERR_INVALID, "the search has a text of more than one line");
	return lines_literal_init(&term->literal, text, open_left, open_right, arena);
}

static int line_term_set_regex(struct line_term *term, struct slice pattern, struct arena *arena,
			       struct errbuf *e)
{
	int err = regex_compile(pattern, false, arena, &term->regex, e);
	return err ? err : line_regex_literal(pattern, arena, &term->literal);
}

static int line_take_term(struct slice *rest, struct arena *arena, struct line_term *term,
			  struct errbuf *e)
{
	struct slice pattern;
	*term = (struct line_term){.negated = line_take_char(rest, '-')};
	term->is_regex = line_take_char(rest, '~');
	if (!term->is_regex)
		return line_take_literal(rest, arena, term, e);
	int err = line_take_text(rest, arena, &pattern, e);
	return err ? err : line_term_set_regex(term, pattern, arena, e);
}

static int line_query_refuse(struct errbuf *e)
{
	return errbuf_set(e, ERR_INVALID, "a search has up to %d terms", LINE_QUERY_TERMS_MAX);
}

static void line_query_note_first(struct line_query *query, const struct line_term *term)
{
	if (!term->negated && term->literal.needle.len &&
	    (!query->first || term->literal.needle.len > query->first->literal.needle.len))
		query->first = term;
}

static int line_query_take(struct slice rest, struct arena *arena, struct line_query *query,
			   struct errbuf *e)
{
	int err = 0;
	while (!err) {
		while (rest.len && line_is_blank(*rest.data))
			line_take_char(&rest, *rest.data);
		if (!rest.len)
			break;
		if (query->count == LINE_QUERY_TERMS_MAX)
			return line_query_refuse(e);
		struct line_term *term = &query->terms[query->count++];
		err = line_take_term(&rest, arena, term, e);
		if (!err && rest.len && !line_is_blank(*rest.data))
			return errbuf_set(e, ERR_INVALID,
					  "behind a quotation mark of the search stands \"" SHOWN
					  "\"; a blank stands between terms",
					  SHOWN_OF(rest));
		if (!err)
			line_query_note_first(query, term);
	}
	return err;
}

int line_query_parse(struct slice text, struct arena *arena, struct line_query *query,
		     struct errbuf *e)
{
	*query = (struct line_query){
		.terms = arena_alloc(arena, LINE_QUERY_TERMS_MAX * sizeof(*query->terms))};
	buf_init(&query->room, LINE_ROOM_MAX_BYTES);
	if (text.len > LINE_QUERY_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "a search has up to %d bytes",
				  LINE_QUERY_MAX_BYTES);
	int err = query->terms ? line_query_take(text, arena, query, e) : ERR_LIMIT;
	if (err == ERR_LIMIT && !e->text[0])
		return errbuf_set(e, err, "the search is too long");
	return err;
}

int line_query_add_regex(struct line_query *query, struct slice pattern, struct arena *arena,
			 struct errbuf *e)
{
	if (query->count == LINE_QUERY_TERMS_MAX)
		return line_query_refuse(e);
	struct line_term *term = &query->terms[query->count++];
	*term = (struct line_term){.is_regex = true};
	int err = line_term_set_regex(term, pattern, arena, e);
	if (!err)
		line_query_note_first(query, term);
	else if (err == ERR_LIMIT && !e->text[0])
		return errbuf_set(e, err, "the search is too long");
	return err;
}

void line_query_release(struct line_query *query)
{
	buf_release(&query->room);
}

/* ---- Looking --------------------------------------------------------------------------------- */

bool line_query_may_fit(const struct line_query *query, struct slice filter)
{
	for (size_t i = 0; i < query->count; i++) {
		const struct line_term *term = &query->terms[i];
		if (!term->negated &&
		    !words_filter_has(filter, term->literal.hashes, term->literal.hash_count))
			return false;
	}
	return true;
}

size_t line_query_seek(const struct line_query *query, struct slice text, size_t from)
{
	return query->first ? lines_literal_seek(&query->first->literal, text, from) : from;
}

static bool line_term_fits(struct line_query *query, const struct line_term *term,
			   struct slice line)
{
	if (!term->is_regex)
		return lines_literal_is_in(&term->literal, line, &query->room);
	return lines_literal_seek(&term->literal, line, 0) < line.len + !term->literal.needle.len &&
	       regex_search(&term->regex, line, &query->work);
}

bool line_query_fits(struct line_query *query, struct slice line)
{
	for (size_t i = 0; i < query->count; i++)
		if (line_term_fits(query, &query->terms[i], line) == query->terms[i].negated)
			return false;
	return true;
}
