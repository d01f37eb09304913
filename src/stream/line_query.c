#include "stream/line_query.h"

#include <stdio.h>

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

/* A text, which may have a star at its sides. */
struct line_starred {
	struct slice text;
	bool open_left, open_right;
};

static int line_take_starred(struct slice *rest, struct arena *arena, struct line_starred *taken,
			     struct errbuf *e)
{
	taken->open_left = line_take_char(rest, '*');
	int err = line_take_text(rest, arena, &taken->text, e);
	if (err)
		return err;
	struct slice *text = &taken->text;
	taken->open_right = line_take_char(rest, '*');
	if (!taken->open_right && text->len && text->data[text->len - 1] == '*' &&
	    text->data + text->len == rest->data) {
		taken->open_right = true;
		text->len--;
	}
	return memchr(text->data, '\n', text->len)
		       ? errbuf_set(e, ERR_INVALID, "the search has a text of more than one line")
		       : 0;
}

static int line_take_literal(struct slice *rest, struct arena *arena, struct line_term *term,
			     struct errbuf *e)
{
	struct line_starred taken;
	int err = line_take_starred(rest, arena, &taken, e);
	if (err)
		return err;
	if (!taken.text.len)
		return errbuf_set(e, ERR_INVALID, "the search has a term without a text");
	return lines_literal_init(&term->literal, taken.text, taken.open_left, taken.open_right,
				  arena);
}

/* A regular expression behind its ~. */
static int line_take_pattern(struct slice *rest, struct arena *arena, struct slice *pattern,
			     struct errbuf *e)
{
	int err = line_take_text(rest, arena, pattern, e);
	return err || pattern->len
		       ? err
		       : errbuf_set(e, ERR_INVALID, "the search has a ~ without an expression");
}

static int line_term_set_regex(struct line_term *term, struct slice pattern, struct arena *arena,
			       struct errbuf *e)
{
	int err = regex_compile(pattern, false, arena, &term->regex, e);
	return err ? err : line_regex_literal(pattern, arena, &term->literal);
}

/* The term as a text, which begins at `begin`. */
static int line_field_set_plain(struct line_field *field, const char *begin,
				const struct slice *rest, struct arena *arena)
{
	size_t len = (size_t)(rest->data - begin);
	bool open_right = begin[len - 1] == '*';
	return lines_literal_init(&field->plain, (struct slice){begin, len - open_right}, false,
				  open_right, arena);
}

/* Reads what follows the relation of a field, whose name begins at `begin`. */
static int line_take_field(struct slice *rest, const char *begin, struct arena *arena,
			   struct line_field *field, struct errbuf *e)
{
	struct line_starred taken;
	struct slice pattern;
	field->is_regex = field->relation <= DATATYPE_NOT_EQUAL && line_take_char(rest, '~');
	if (field->is_regex) {
		int err = line_take_pattern(rest, arena, &pattern, e);
		return err ? err : regex_compile(pattern, false, arena, &field->regex, e);
	}
	int err = line_take_starred(rest, arena, &taken, e);
	err = err ? err
		  : line_field_set_text(field, taken.text, taken.open_left, taken.open_right, arena,
					e);
	return err || field->relation != DATATYPE_EQUAL
		       ? err
		       : line_field_set_plain(field, begin, rest, arena);
}

static int line_take_term(struct slice *rest, struct arena *arena, struct line_term *term,
			  struct errbuf *e)
{
	struct slice pattern;
	struct line_field field = {.is_regex = false};
	*term = (struct line_term){.negated = line_take_char(rest, '-')};
	const char *begin = rest->data;
	term->is_field = line_field_take(rest, &field);
	if (term->is_field) {
		term->field = arena_alloc(arena, sizeof(*term->field));
		if (!term->field)
			return ERR_LIMIT;
		*term->field = field;
		return line_take_field(rest, begin, arena, term->field, e);
	}
	term->is_regex = line_take_char(rest, '~');
	if (!term->is_regex)
		return line_take_literal(rest, arena, term, e);
	int err = line_take_pattern(rest, arena, &pattern, e);
	return err ? err : line_term_set_regex(term, pattern, arena, e);
}

static int line_query_refuse(struct errbuf *e)
{
	return errbuf_set(e, ERR_INVALID, "a search has up to %d terms", LINE_QUERY_TERMS_MAX);
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
	}
	return err;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static void line_term_set_rule(struct line_term *term, const struct datatype *rule)
{
	term->needed = &term->literal;
	if (!term->is_field)
		return;
	term->how = line_field_how(term->field, rule);
	term->needed = term->how == LINE_FIELD_READ    ? line_field_needed(term->field, rule)
		       : term->how == LINE_FIELD_PLAIN ? &term->field->plain
						       : NULL;
}

static void line_query_set_rule(struct line_query *query, const struct datatype *rule)
{
	query->rule = rule;
	query->without_rule = query->never = query->has_words = false;
	query->first = NULL;
	for (size_t i = 0; i < query->count; i++) {
		struct line_term *term = &query->terms[i];
		line_term_set_rule(term, rule);
		bool unknown = term->is_field && term->how == LINE_FIELD_NONE;
		if (unknown && !query->without_rule)
			query->unknown = term->field->name;
		query->without_rule |= unknown;
		query->never |= unknown && !term->negated;
		query->has_words |= !term->negated && term->needed && term->needed->hash_count;
		if (!term->negated && term->needed && term->needed->needle.len &&
		    (!query->first || term->needed->needle.len > query->first->needle.len))
			query->first = term->needed;
	}
}

static void line_query_end_reading(struct line_query *query)
{
	if (query->reads)
		fields_reader_release(&query->fields);
	query->reads = false;
}

void line_query_begin(struct line_query *query, const struct datatype *rule)
{
	if (rule == query->rule)
		return;
	line_query_end_reading(query);
	line_query_set_rule(query, rule);
}

void line_without_add(struct line_without *without, const struct line_query *query,
		      struct slice datatype)
{
	if (!without->streams++) {
		without->field = query->unknown;
		snprintf(without->datatype, sizeof(without->datatype), "%.*s", (int)datatype.len,
			 datatype.data);
	}
}

/* ---- A search -------------------------------------------------------------------------------- */

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
	if (!err)
		line_query_set_rule(query, NULL);
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
		line_query_set_rule(query, query->rule);
	else if (err == ERR_LIMIT && !e->text[0])
		return errbuf_set(e, err, "the search is too long");
	return err;
}

void line_query_release(struct line_query *query)
{
	line_query_end_reading(query);
	datatypes_free(query->datatypes);
	buf_release(&query->room);
}

/* ---- Looking --------------------------------------------------------------------------------- */

bool line_query_may_fit(const struct line_query *query, struct slice filter)
{
	for (size_t i = 0; i < query->count; i++) {
		const struct line_term *term = &query->terms[i];
		const struct lines_literal *needed = term->needed;
		if (!term->negated && needed &&
		    !words_filter_has(filter, needed->hashes, needed->hash_count))
			return false;
	}
	return !query->never;
}

size_t line_query_seek(const struct line_query *query, struct slice text, size_t from)
{
	return query->first ? lines_literal_seek(query->first, text, from) : from;
}

static bool line_query_stops(void *owner)
{
	struct line_query *query = owner;
	query->stopped = query->may_go_on ? query->may_go_on(query->owner) : 0;
	return query->stopped;
}

static bool line_query_finds(struct line_query *query, const struct regex *regex, struct slice text)
{
	return regex_search_pausing(regex, text, &query->work, line_query_stops, query);
}

static bool line_term_fits(struct line_query *query, const struct line_term *term,
			   struct slice line)
{
	if (term->is_field)
		return term->how == LINE_FIELD_PLAIN &&
		       lines_literal_is_in(&term->field->plain, line, &query->room);
	if (!term->is_regex)
		return lines_literal_is_in(&term->literal, line, &query->room);
	return lines_literal_seek(&term->literal, line, 0) < line.len + !term->literal.needle.len &&
	       line_query_finds(query, &term->regex, line);
}

/* Whether a line may fit a term of a field, which is known without its fields. */
static bool line_term_may_fit(struct line_query *query, const struct line_term *term,
			      struct slice line)
{
	return !term->needed || lines_literal_is_in(term->needed, line, &query->room);
}

static bool line_field_is_so(struct line_query *query, const struct line_field *field)
{
	struct slice text = fields_find(&query->fields, field->name);
	if (!field->is_regex)
		return line_field_fits(field, text, &query->room);
	return text.data &&
	       line_query_finds(query, &field->regex, text) == (field->relation == DATATYPE_EQUAL);
}

/* Whether the terms of fields hold, of a line for which all others do. */
static bool line_query_fits_fields(struct line_query *query, struct slice line)
{
	bool read = false;
	for (size_t i = 0; i < query->count; i++) {
		const struct line_term *term = &query->terms[i];
		if (!term->is_field || term->how != LINE_FIELD_READ)
			continue;
		bool fits = line_term_may_fit(query, term, line);
		if (fits && !read) {
			if (!query->reads)
				fields_reader_init(&query->fields, &query->rule->format);
			query->reads = read = true;
			query->work += line.len;
			/* A line that the rule does not read has no fields then. */
			(void)fields_read(&query->fields, line);
		}
		if ((fits && line_field_is_so(query, term->field)) == term->negated)
			return false;
	}
	return true;
}

bool line_query_fits(struct line_query *query, struct slice line)
{
	if (query->never || query->stopped)
		return false;
	for (size_t i = 0; i < query->count; i++) {
		const struct line_term *term = &query->terms[i];
		bool waits = term->is_field && term->how == LINE_FIELD_READ;
		bool fails = waits ? !term->negated && !line_term_may_fit(query, term, line)
				   : line_term_fits(query, term, line) == term->negated;
		if (fails)
			return false;
	}
	return line_query_fits_fields(query, line) && !query->stopped;
}
