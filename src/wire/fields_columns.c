/* Columns: words below the names of a line of names. */
#include "base/put.h"
#include "wire/fields.h"
#include "wire/number.h"

enum { FIELDS_TIME_BYTES = 8 /* HH:MM:SS */ };

/* A line's words, one after the other. */
struct fields_cursor {
	const char *at, *end;
};

static bool fields_is_blank(char c)
{
	return (unsigned char)c <= ' ';
}

static void fields_to_word(struct fields_cursor *c)
{
	while (c->at < c->end && fields_is_blank(*c->at))
		c->at++;
}

/* Empty: there is none. */
static struct slice fields_word(struct fields_cursor *c)
{
	fields_to_word(c);
	const char *begin = c->at;
	while (c->at < c->end && !fields_is_blank(*c->at))
		c->at++;
	return (struct slice){begin, (size_t)(c->at - begin)};
}

/* Whether a text has digits where the form has 0, and else its characters. */
static bool fields_has_form(struct slice text, const char *form)
{
	size_t len = strlen(form);
	if (text.len < len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (form[i] == '0' ? !number_is_digit(text.data[i]) : text.data[i] != form[i])
			return false;
	return true;
}

static bool fields_is_among(const struct fields_words *words, struct slice word)
{
	for (size_t i = 0; i < words->count; i++)
		if (slice_equal(words->list[i], word))
			return true;
	return false;
}

/* sar and pidstat put a time in front of names and words alike. */
static struct slice fields_take_clock(struct fields_cursor *c)
{
	struct fields_cursor ahead = *c;
	struct slice clock = fields_word(&ahead);
	if (clock.len != FIELDS_TIME_BYTES || !fields_has_form(clock, "00:00:00"))
		return SLICE("");
	*c = ahead;
	struct slice half = fields_word(&ahead);
	if (slice_equal(half, SLICE("AM")) || slice_equal(half, SLICE("PM"))) {
		clock.len = (size_t)(half.data + half.len - clock.data);
		*c = ahead;
	}
	return clock;
}

/* ---- Lines of names -------------------------------------------------------------------------- */

static bool fields_has_names(const struct fields_reader *reader, struct fields_cursor line)
{
	const struct fields_columns *rule = &reader->format->columns;
	struct slice word = fields_word(&line);
	if (rule->headers.count)
		return fields_is_among(&rule->headers, word);
	for (; !reader->within && word.len; word = fields_word(&line))
		if (number_is_digit(word.data[0]))
			return false;
	return !reader->within;
}

/* A name of several words, if one begins here. */
static struct slice fields_long_name(const struct fields_words *names, struct fields_cursor *c)
{
	for (size_t i = 0; i < names->count; i++) {
		struct fields_cursor line = *c, name = {names->list[i].data,
							names->list[i].data + names->list[i].len};
		struct slice word;
		do {
			word = fields_word(&name);
		} while (word.len && slice_equal(word, fields_word(&line)));
		if (!word.len) {
			*c = line;
			return names->list[i];
		}
	}
	return SLICE("");
}

/* False: it is too long, or has too many. */
static bool fields_add_name(struct fields_reader *reader, struct slice name)
{
	if (reader->column_count == FIELDS_COLUMNS_MAX || name.len > FIELDS_NAME_MAX_BYTES)
		return false;
	/* The texts move while they grow; only their lengths count until all are there. */
	reader->columns[reader->column_count++] = name;
	return !buf_append(&reader->column_text, name.data, name.len);
}

static void fields_forget_names(struct fields_reader *reader)
{
	reader->column_count = 0;
	reader->labelled = reader->within = false;
	buf_clear(&reader->column_text);
}

static void fields_place_names(struct fields_reader *reader)
{
	const char *at = reader->column_text.data;
	for (size_t i = 0; i < reader->column_count; at += reader->columns[i++].len)
		reader->columns[i].data = at;
}

static enum fields_result fields_take_names(struct fields_reader *reader, struct fields_cursor line)
{
	const struct fields_columns *rule = &reader->format->columns;
	fields_forget_names(reader);
	reader->within = true;
	/* The names' bytes in a state: each has its length in front, of two bytes at most. */
	size_t bytes = 0;
	for (fields_to_word(&line); line.at < line.end; fields_to_word(&line)) {
		struct slice name = fields_long_name(&rule->names, &line);
		if (!name.len)
			name = fields_word(&line);
		if (name.len > 1 && name.data[name.len - 1] == ':') {
			name.len--;
			reader->labelled |= !reader->column_count;
		}
		bytes += name.len + 2;
		if (bytes > FIELDS_STATE_MAX_BYTES - 16 || !fields_add_name(reader, name)) {
			fields_forget_names(reader);
			reader->within = true;
			return FIELDS_NOT;
		}
	}
	fields_place_names(reader);
	return FIELDS_NONE;
}

/* ---- Lines of words -------------------------------------------------------------------------- */

/* The last column takes the rest of the line. */
static enum fields_result fields_take_words(struct fields_reader *reader, struct fields_cursor line,
					    size_t first)
{
	for (size_t i = first; i < reader->column_count; i++) {
		struct slice word = fields_word(&line);
		if (!word.len)
			return FIELDS_NOT;
		if (i + 1 == reader->column_count)
			word.len = (size_t)(line.end - word.data);
		*fields_next(reader) = (struct fields_field){reader->columns[i], word};
	}
	return FIELDS_READ;
}

static size_t fields_count_words(struct fields_cursor line)
{
	size_t count = 0;
	while (fields_word(&line).len)
		count++;
	return count;
}

enum fields_result fields_columns_read(struct fields_reader *reader, struct slice line)
{
	struct fields_cursor c = {line.data, line.len ? line.data + line.len : line.data};
	while (c.end > c.at && fields_is_blank(c.end[-1]))
		c.end--;
	/* A date begins what another run has printed. */
	if (c.at == c.end || fields_has_form(line, "0000-00-00")) {
		fields_forget_names(reader);
		return FIELDS_NONE;
	}
	struct slice clock = fields_take_clock(&c);
	struct fields_cursor ahead = c;
	if (fields_is_among(&reader->format->columns.skips, fields_word(&ahead)))
		return FIELDS_NONE;
	if (fields_has_names(reader, c))
		return fields_take_names(reader, c);
	if (!reader->column_count)
		return FIELDS_NONE;
	if (clock.len)
		*fields_next(reader) = (struct fields_field){SLICE("time"), clock};
	bool unlabelled = reader->labelled && fields_is_blank(line.data[0]) &&
			  fields_count_words(c) + 1 == reader->column_count;
	return fields_take_words(reader, c, unlabelled);
}

/* ---- State ----------------------------------------------------------------------------------- */

enum { FIELDS_STATE_LABELLED = 1, FIELDS_STATE_WITHIN = 2 };

void fields_state_put(const struct fields_reader *reader, struct buf *out)
{
	if (!reader->within)
		return;
	buf_put_varint(out, FIELDS_STATE_WITHIN | (reader->labelled ? FIELDS_STATE_LABELLED : 0));
	buf_put_varint(out, reader->column_count);
	for (size_t i = 0; i < reader->column_count; i++)
		buf_put_text(out, reader->columns[i]);
}

static bool fields_take_state(struct fields_reader *reader, struct cursor *c)
{
	uint64_t flags = cursor_varint(c), count = cursor_varint(c);
	if (c->bad ||
	    (flags | FIELDS_STATE_LABELLED) != (FIELDS_STATE_LABELLED | FIELDS_STATE_WITHIN) ||
	    count > FIELDS_COLUMNS_MAX)
		return false;
	reader->within = true;
	reader->labelled = flags & FIELDS_STATE_LABELLED;
	while (reader->column_count < count) {
		struct slice name = cursor_text(c, FIELDS_NAME_MAX_BYTES);
		if (!name.len || !fields_add_name(reader, name))
			return false;
	}
	fields_place_names(reader);
	return !c->bad && !cursor_left(c);
}

int fields_state_take(struct fields_reader *reader, struct slice state)
{
	struct cursor c = cursor_of(state.data, state.len);
	fields_forget_names(reader);
	if (!state.len)
		return 0;
	if (reader->format->kind == FIELDS_COLUMNS && state.len <= FIELDS_STATE_MAX_BYTES &&
	    fields_take_state(reader, &c))
		return 0;
	fields_forget_names(reader);
	return ERR_DAMAGED;
}
