/* The old form of python-oops. The body is gone over once for each kind of line in it: lines of two
 * kinds may stand mixed, and a tree is made from front to back. */
#include "wire/oops_rfc822.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "wire/json_make.h"
#include "wire/number.h"
#include "wire/timetext.h"

/* In the order in which they are written. */
enum rfc822_field {
	RFC822_ID,
	RFC822_TYPE,
	RFC822_VALUE,
	RFC822_TIME,
	RFC822_TOPIC,
	RFC822_BRANCH,
	RFC822_REVISION,
	RFC822_USER,
	RFC822_URL,
	RFC822_DURATION,
	RFC822_INFORMATIONAL,
	RFC822_REPORTER,
	RFC822_NEW_TOPIC, /* read, never written */
	RFC822_FIELDS,
};

static const struct {
	struct slice header, key;
} rfc822_fields[RFC822_FIELDS] = {
	[RFC822_ID] = {{"Oops-Id", 7}, {"id", 2}},
	[RFC822_TYPE] = {{"Exception-Type", 14}, {"type", 4}},
	[RFC822_VALUE] = {{"Exception-Value", 15}, {"value", 5}},
	[RFC822_TIME] = {{"Date", 4}, {"time", 4}},
	[RFC822_TOPIC] = {{"Page-Id", 7}, {"topic", 5}},
	[RFC822_BRANCH] = {{"Branch", 6}, {"branch_nick", 11}},
	[RFC822_REVISION] = {{"Revision", 8}, {"revno", 5}},
	[RFC822_USER] = {{"User", 4}, {"username", 8}},
	[RFC822_URL] = {{"URL", 3}, {"url", 3}},
	[RFC822_DURATION] = {{"Duration", 8}, {"duration", 8}},
	[RFC822_INFORMATIONAL] = {{"Informational", 13}, {"informational", 13}},
	[RFC822_REPORTER] = {{"Oops-Reporter", 13}, {"reporter", 8}},
	[RFC822_NEW_TOPIC] = {{"Topic", 5}, {"topic", 5}},
};

/* What Python takes for blank in bytes. */
static bool rfc822_is_space(char c)
{
	return c == ' ' || ('\t' <= c && c <= '\r');
}

/* What it takes for blank in text, of ASCII. */
static bool rfc822_is_blank(char c)
{
	return rfc822_is_space(c) || ('\x1c' <= c && c <= '\x1f');
}

/* Where str.splitlines of Python ends a line; there is no CR any more. */
static bool rfc822_is_line_end(char c)
{
	return ('\n' <= c && c <= '\f') || ('\x1c' <= c && c <= '\x1e');
}

static struct slice rfc822_strip(struct slice text)
{
	while (text.len && rfc822_is_blank(text.data[text.len - 1]))
		text.len--;
	while (text.len && rfc822_is_blank(*text.data))
		text = (struct slice){text.data + 1, text.len - 1};
	return text;
}

static bool rfc822_in_category(char c)
{
	char lower = (char)(c | 0x20);
	return number_is_digit(c) || ('a' <= lower && lower <= 'z') || c == '_' || c == '-';
}

/* ---- Reading: headers ----------------------------------------------------------------------- */

struct rfc822_reader {
	const char *at, *end; /* UTF-8 with LF at the end of lines */
	const char *body;
	const char *traceback;              /* the last line that was taken begins here */
	struct slice values[RFC822_FIELDS]; /* without data: no such header */
	struct json_maker maker;
};

/* The name before the colon: printable ASCII without blanks, maybe none. False: no header. */
static bool rfc822_header_name(struct slice line, struct slice *name)
{
	size_t len = 0;
	while (len < line.len && '!' <= line.data[len] && line.data[len] <= '~' &&
	       line.data[len] != ':')
		len++;
	*name = (struct slice){line.data, len};
	return len < line.len && line.data[len] == ':';
}

/* The first line of a mailbox. */
static bool rfc822_is_envelope(struct slice line)
{
	return line.len >= 5 && memcmp(line.data, "From ", 5) == 0;
}

bool oops_rfc822_begins(struct slice text)
{
	struct slice name;
	if (!rfc822_header_name(text, &name))
		return rfc822_is_envelope(text);
	for (size_t i = 0; i < name.len; i++) {
		if (!rfc822_in_category(name.data[i]))
			return false;
	}
	return name.len;
}

/* But for the case; of letters and hyphens. */
static bool rfc822_same_name(struct slice a, struct slice b)
{
	size_t i = 0;
	while (i < a.len && i < b.len && ((a.data[i] ^ b.data[i]) & ~0x20) == 0)
		i++;
	return i == a.len && i == b.len;
}

/* Where the value of this header belongs; NULL: nowhere. */
static struct slice *rfc822_place(struct rfc822_reader *r, struct slice name)
{
	for (size_t i = 0; i < RFC822_FIELDS; i++) {
		if (rfc822_same_name(name, rfc822_fields[i].header))
			return r->values[i].data ? NULL : &r->values[i];
	}
	return NULL;
}

static struct slice rfc822_header_line(const struct rfc822_reader *r)
{
	size_t left = (size_t)(r->end - r->at);
	const char *line_end = memchr(r->at, '\n', left);
	return (struct slice){r->at, line_end ? (size_t)(line_end + 1 - r->at) : left};
}

static struct slice rfc822_header_value(struct slice line, size_t name_len)
{
	size_t at = name_len + 1;
	while (at < line.len && (line.data[at] == ' ' || line.data[at] == '\t'))
		at++;
	return (struct slice){line.data + at, line.len - at};
}

/* Up to an empty line, or before the first that is no header. A line that begins with a blank goes
 * on with the value before it, line end included. */
static void rfc822_read_headers(struct rfc822_reader *r)
{
	struct slice *open = NULL, name;
	while (r->at < r->end) {
		struct slice line = rfc822_header_line(r);
		bool more = *line.data == ' ' || *line.data == '\t';
		if (*line.data == '\n')
			r->at++;
		if (!more && !rfc822_header_name(line, &name) && !rfc822_is_envelope(line))
			break;
		r->at += line.len;
		if (!more) {
			open = rfc822_is_envelope(line) ? NULL : rfc822_place(r, name);
			if (open)
				*open = rfc822_header_value(line, name.len);
		} else if (open) {
			open->len = (size_t)(r->at - open->data);
		}
	}
	r->body = r->at;
	for (size_t i = 0; i < RFC822_FIELDS; i++) {
		struct slice *value = &r->values[i];
		while (value->len && value->data[value->len - 1] == '\n')
			value->len--;
	}
	if (r->values[RFC822_NEW_TOPIC].data)
		r->values[RFC822_TOPIC] = r->values[RFC822_NEW_TOPIC];
}

static void rfc822_make_time(struct rfc822_reader *r, struct slice key, struct slice text)
{
	struct slice stripped = rfc822_strip(text);
	char zoned[TIME_TEXT_MAX_BYTES];
	int64_t ms;
	int err = time_parse_iso(stripped, &ms, NULL);
	if (err && stripped.len < sizeof(zoned)) {
		/* Without a zone it is UTC. */
		memcpy(zoned, stripped.data, stripped.len);
		zoned[stripped.len] = 'Z';
		err = time_parse_iso((struct slice){zoned, stripped.len + 1}, &ms, NULL);
	}
	char *printed = err ? NULL : json_make_room(&r->maker, TIME_PRINT_MAX_BYTES);
	if (printed)
		text = (struct slice){printed, time_print(printed, ms)};
	json_make_text(&r->maker, key, text);
}

static void rfc822_make_duration(struct rfc822_reader *r, struct slice key, struct slice text)
{
	double seconds;
	text = rfc822_strip(text);
	if (!text.len || number_parse_f64(text.data, text.data + text.len, &seconds))
		seconds = -1;
	json_make_number(&r->maker, key, value_f64(seconds));
}

static void rfc822_make_header(struct rfc822_reader *r, enum rfc822_field field)
{
	struct slice key = rfc822_fields[field].key, value = r->values[field];
	bool optional = field == RFC822_INFORMATIONAL || field == RFC822_REPORTER;
	if (field == RFC822_DURATION)
		rfc822_make_duration(r, key, value);
	else if (!value.data && !optional)
		json_make_null(&r->maker, key);
	else if (value.data && field == RFC822_TIME)
		rfc822_make_time(r, key, value);
	else if (value.data)
		json_make_text(&r->maker, key, value);
}

/* ---- Reading: the body ---------------------------------------------------------------------- */

enum rfc822_line {
	RFC822_END, /* of the text */
	RFC822_STATEMENT,
	RFC822_VARIABLE,
	RFC822_TRACEBACK,
	RFC822_OTHER,
};

struct rfc822_statement {
	struct slice start, stop, text;
	struct slice category; /* without data: none */
};

/* Takes digits off the front. */
static struct slice rfc822_take_digits(struct slice *rest)
{
	size_t len = 0;
	while (len < rest->len && number_is_digit(rest->data[len]))
		len++;
	struct slice digits = {rest->data, len};
	*rest = (struct slice){rest->data + len, rest->len - len};
	return digits;
}

static bool rfc822_take_char(struct slice *rest, char c)
{
	if (!rest->len || *rest->data != c)
		return false;
	*rest = (struct slice){rest->data + 1, rest->len - 1};
	return true;
}

/* ^(\d+)-(\d+)(?:@([\w-]+))?\s+(.*), of a line without blanks around it. */
static bool rfc822_scan_statement(struct slice line, struct rfc822_statement *s)
{
	*s = (struct rfc822_statement){0};
	s->start = rfc822_take_digits(&line);
	if (!s->start.len || !rfc822_take_char(&line, '-'))
		return false;
	s->stop = rfc822_take_digits(&line);
	if (!s->stop.len)
		return false;
	if (rfc822_take_char(&line, '@')) {
		size_t len = 0;
		while (len < line.len && rfc822_in_category(line.data[len]))
			len++;
		if (!len)
			return false;
		s->category = (struct slice){line.data, len};
		line = (struct slice){line.data + len, line.len - len};
	}
	s->text = rfc822_strip(line);
	return line.len && rfc822_is_blank(*line.data);
}

static bool rfc822_begins_traceback(struct slice line)
{
	static const struct slice word = {"traceback", 9};
	return line.len >= word.len && rfc822_same_name((struct slice){line.data, word.len}, word);
}

/* What some reporters put in the place of a traceback. */
static bool rfc822_begins_extra_data(struct slice line)
{
	static const struct slice words = {"== EXTRA DATA ==", 16};
	return line.len >= words.len && memcmp(line.data, words.data, words.len) == 0;
}

/* Takes the next line that is not blank; *line is what it says. */
static enum rfc822_line rfc822_take_line(struct rfc822_reader *r, struct slice *line,
					 struct rfc822_statement *s)
{
	do {
		const char *begin = r->at, *p = begin;
		if (p == r->end)
			return RFC822_END;
		while (p < r->end && !rfc822_is_line_end(*p))
			p++;
		*line = rfc822_strip((struct slice){begin, (size_t)(p - begin)});
		r->at = p < r->end ? p + 1 : p;
		r->traceback = begin;
	} while (!line->len);
	if (rfc822_scan_statement(*line, s))
		return RFC822_STATEMENT;
	if (rfc822_begins_extra_data(*line))
		return RFC822_TRACEBACK;
	if (memchr(line->data, '=', line->len))
		return RFC822_VARIABLE;
	return rfc822_begins_traceback(*line) ? RFC822_TRACEBACK : RFC822_OTHER;
}

/* What %XX stands for; a % without two hexadecimal digits stays. */
static struct slice rfc822_unquote(struct rfc822_reader *r, struct slice text)
{
	char *copy = memchr(text.data, '%', text.len) ? json_make_room(&r->maker, text.len) : NULL;
	if (!copy)
		return text;
	char *to = copy;
	for (size_t i = 0; i < text.len; i++) {
		bool quoted = text.data[i] == '%' && text.len - i > 2;
		int high = quoted ? number_hex_digit(text.data[i + 1]) : -1;
		int low = high >= 0 ? number_hex_digit(text.data[i + 2]) : -1;
		*to++ = low >= 0 ? (char)(high << 4 | low) : text.data[i];
		i += low >= 0 ? 2 : 0;
	}
	return json_make_utf8(&r->maker, (struct slice){copy, (size_t)(to - copy)});
}

static void rfc822_make_variables(struct rfc822_reader *r)
{
	struct slice line;
	struct rfc822_statement s;
	enum rfc822_line kind;
	json_make(&r->maker, JSON_T_OBJECT, SLICE("req_vars"));
	r->at = r->body;
	while ((kind = rfc822_take_line(r, &line, &s)) != RFC822_END && kind != RFC822_TRACEBACK) {
		if (kind != RFC822_VARIABLE)
			continue;
		const char *equals = memchr(line.data, '=', line.len);
		size_t key_len = (size_t)(equals - line.data);
		struct slice value = {equals + 1, line.len - key_len - 1};
		struct slice key = rfc822_unquote(r, (struct slice){line.data, key_len});
		json_make_text(&r->maker, key, rfc822_unquote(r, value));
	}
	json_make_end(&r->maker);
}

/* Of any length; one that no number of ours holds stays text. */
static void rfc822_make_ms(struct rfc822_reader *r, struct slice digits)
{
	const char *p = digits.data, *end = p + digits.len;
	static const struct slice none = {NULL, 0};
	uint64_t whole;
	double rounded;
	if (number_parse_u64(p, end, &whole) == 0)
		json_make_number(&r->maker, none,
				 whole <= INT64_MAX ? value_i64((int64_t)whole) : value_u64(whole));
	else if (number_parse_f64(p, end, &rounded) == 0)
		json_make_number(&r->maker, none, value_f64(rounded));
	else
		json_make_text(&r->maker, none, digits);
}

static void rfc822_make_timeline(struct rfc822_reader *r)
{
	static const struct slice none = {NULL, 0};
	struct json_maker *m = &r->maker;
	struct slice line;
	struct rfc822_statement s;
	enum rfc822_line kind;
	json_make(m, JSON_T_ARRAY, SLICE("timeline"));
	r->at = r->body;
	while ((kind = rfc822_take_line(r, &line, &s)) != RFC822_END && kind != RFC822_TRACEBACK) {
		if (kind != RFC822_STATEMENT)
			continue;
		json_make(m, JSON_T_ARRAY, none);
		rfc822_make_ms(r, s.start);
		rfc822_make_ms(r, s.stop);
		if (s.category.data)
			json_make_text(m, none, s.category);
		else
			json_make_null(m, none);
		json_make_text(m, none, s.text);
		json_make_end(m);
	}
	json_make_end(m);
}

/* CR LF and CR become LF. Without a CR it is the text itself. */
static struct slice rfc822_line_ends(struct rfc822_reader *r, struct slice text)
{
	char *copy = text.len && memchr(text.data, '\r', text.len)
			     ? json_make_room(&r->maker, text.len)
			     : NULL;
	if (!copy)
		return text;
	char *to = copy;
	for (size_t i = 0; i < text.len; i++) {
		*to++ = text.data[i] == '\r' ? '\n' : text.data[i];
		if (text.data[i] == '\r' && i + 1 < text.len && text.data[i + 1] == '\n')
			i++;
	}
	return (struct slice){copy, (size_t)(to - copy)};
}

int oops_rfc822_parse(struct slice text, struct arena *arena, struct json **root, struct errbuf *e)
{
	struct rfc822_reader r = {0};
	json_maker_init(&r.maker, arena, root);
	text = rfc822_line_ends(&r, json_make_utf8(&r.maker, text));
	if (!text.len)
		text.data = "";
	r.at = text.data;
	r.end = text.data + text.len;
	rfc822_read_headers(&r);
	r.traceback = r.end;
	json_make(&r.maker, JSON_T_OBJECT, (struct slice){NULL, 0});
	for (enum rfc822_field field = 0; field < RFC822_NEW_TOPIC; field++)
		rfc822_make_header(&r, field);
	rfc822_make_variables(&r);
	rfc822_make_timeline(&r);
	json_make_text(&r.maker, SLICE("tb_text"),
		       (struct slice){r.traceback, (size_t)(r.end - r.traceback)});
	json_make_end(&r.maker);
	if (r.maker.full)
		return errbuf_set(e, ERR_LIMIT, "more text and values than memory is allowed for");
	return 0;
}

/* ---- Writing: text -------------------------------------------------------------------------- */

enum { RFC822_ESCAPED_MAX_BYTES = 16 };

/* The first character as it is written: how many bytes stand at `to`, and in *taken how many were
 * taken. */
static size_t rfc822_escape(char to[RFC822_ESCAPED_MAX_BYTES], struct slice text, size_t *taken)
{
	const uint8_t *p = (const uint8_t *)text.data;
	size_t len = utf8_length(p, text.len);
	*taken = len ? len : 1;
	if (len == 1 && *p != '\\') {
		to[0] = (char)*p;
		return 1;
	}
	if (len == 1)
		return (size_t)snprintf(to, RFC822_ESCAPED_MAX_BYTES, "\\\\");
	unsigned code = len ? utf8_code(p, len) : *p;
	const char *format = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
	return (size_t)snprintf(to, RFC822_ESCAPED_MAX_BYTES, format, code);
}

static void rfc822_append(struct buf *out, struct slice text)
{
	char piece[RFC822_ESCAPED_MAX_BYTES];
	for (size_t at = 0, taken; at < text.len; at += taken) {
		size_t len =
			rfc822_escape(piece, (struct slice){text.data + at, text.len - at}, &taken);
		buf_append(out, piece, len);
	}
}

/* In one line: one blank between words. */
static void rfc822_append_words(struct buf *out, struct slice text)
{
	for (size_t at = 0; at < text.len;) {
		size_t begin = at;
		while (at < text.len && rfc822_is_space(text.data[at]))
			at++;
		if (begin && at > begin && at < text.len)
			buf_append_char(out, ' ');
		begin = at;
		while (at < text.len && !rfc822_is_space(text.data[at]))
			at++;
		rfc822_append(out, (struct slice){text.data + begin, at - begin});
	}
}

/* Whether quote() of Python leaves it, with the letters that the original calls safe. */
static bool rfc822_is_safe(char c)
{
	return c && (rfc822_in_category(c) || strchr(".~;/\\?:@&+$, ()*!", c));
}

static void rfc822_append_quoted(struct buf *out, struct slice text)
{
	char piece[RFC822_ESCAPED_MAX_BYTES];
	for (size_t at = 0, taken; at < text.len; at += taken) {
		size_t len =
			rfc822_escape(piece, (struct slice){text.data + at, text.len - at}, &taken);
		if (len == 1 && !rfc822_is_safe(*piece))
			buf_printf(out, "%%%02X", (unsigned)(uint8_t)*piece);
		else
			buf_append(out, piece, len); /* backslashes, letters and digits are safe */
	}
}

/* What a value says, in `scratch` unless it is a text; false: nothing, or null. */
static bool rfc822_text_of(const struct json *value, struct buf *scratch, struct slice *text)
{
	struct json_writer writer;
	if (!value || value->type == JSON_T_NULL)
		return false;
	*text = value->text;
	if (value->type == JSON_T_STRING)
		return true;
	buf_clear(scratch);
	if (value->type == JSON_T_BOOL) {
		buf_append_text(scratch, value->boolean ? "True" : "False");
	} else if (value->type == JSON_T_NUMBER) {
		number_append(scratch, value->number);
	} else {
		json_writer_init(&writer, scratch);
		json_write_tree(&writer, value);
	}
	*text = buf_slice(scratch);
	return true;
}

/* ---- Writing: parts ------------------------------------------------------------------------- */

struct rfc822_writer {
	struct buf *out;
	struct buf scratch;
};

/* As isoformat() of a datetime in UTC: 2005-04-01T00:00:00.123000+00:00. */
static void rfc822_write_time(struct buf *out, struct slice text)
{
	char printed[TIME_PRINT_MAX_BYTES];
	int64_t ms;
	if (time_parse_iso(text, &ms, NULL)) {
		rfc822_append_words(out, text);
		return;
	}
	buf_append(out, printed, time_print(printed, ms) - 1);
	buf_append_text(out, ms % 1000 == 0 ? "+00:00" : "000+00:00");
}

static void rfc822_write_headers(struct rfc822_writer *w, const struct json *report)
{
	for (size_t i = 0; i < RFC822_NEW_TOPIC; i++) {
		/* The keys are literals, which a zero ends. */
		const struct json *value = json_member(report, rfc822_fields[i].key.data);
		struct slice text;
		if (!rfc822_text_of(value, &w->scratch, &text))
			continue;
		buf_append_text(w->out, rfc822_fields[i].header.data);
		buf_append_text(w->out, ": ");
		if (i == RFC822_TIME)
			rfc822_write_time(w->out, text);
		else
			rfc822_append_words(w->out, text);
		buf_append_char(w->out, '\n');
	}
	buf_append_char(w->out, '\n');
}

static void rfc822_write_variable(struct rfc822_writer *w, struct slice key,
				  const struct json *value)
{
	struct slice text = {NULL, 0};
	if (!rfc822_text_of(value, &w->scratch, &text))
		text = (struct slice){NULL, 0};
	rfc822_append_quoted(w->out, key);
	buf_append_char(w->out, '=');
	rfc822_append_quoted(w->out, text);
	buf_append_char(w->out, '\n');
}

struct rfc822_variable {
	const struct json *member;
	size_t place;
};

/* By key; equal keys in their order, since the last counts. */
static int rfc822_compare(const void *a, const void *b)
{
	const struct rfc822_variable *x = a, *y = b;
	int order = slice_compare(x->member->key, y->member->key);
	return order ? order : (x->place > y->place) - (x->place < y->place);
}

static void rfc822_write_sorted(struct rfc822_writer *w, const struct json *object)
{
	struct rfc822_variable *sorted = mem_alloc_array(object->count, sizeof(*sorted));
	size_t count = 0;
	for (const struct json *member = object->first; member; member = member->next, count++)
		sorted[count] = (struct rfc822_variable){member, count};
	ASSERT(count == object->count);
	if (count)
		qsort(sorted, count, sizeof(*sorted), rfc822_compare);
	for (size_t i = 0; i < count; i++)
		rfc822_write_variable(w, sorted[i].member->key, sorted[i].member);
	mem_free(sorted);
}

static void rfc822_write_variables(struct rfc822_writer *w, const struct json *variables)
{
	if (!variables || (variables->type != JSON_T_OBJECT && variables->type != JSON_T_ARRAY))
		return;
	if (variables->type == JSON_T_OBJECT)
		rfc822_write_sorted(w, variables);
	/* As older reporters have it; one without a value was seen. */
	for (const struct json *pair = variables->first; pair && variables->type == JSON_T_ARRAY;
	     pair = pair->next) {
		bool good = pair->type == JSON_T_ARRAY && pair->first &&
			    pair->first->type == JSON_T_STRING;
		if (good)
			rfc822_write_variable(w, pair->first->text, pair->first->next);
	}
	buf_append_char(w->out, '\n');
}

static bool rfc822_ms_of(const struct json *value, long long *ms)
{
	if (!value || value->type != JSON_T_NUMBER)
		return false;
	double number = value_as_f64(value->number);
	if (!(number >= -0x1p62 && number <= 0x1p62))
		return false;
	*ms = value->number.type == VALUE_F64 ? (long long)number : (long long)value->number.bits;
	return true;
}

static void rfc822_write_row(struct rfc822_writer *w, const struct json *row)
{
	long long start, stop;
	struct slice text;
	const struct json *value = row->type == JSON_T_ARRAY ? row->first : NULL;
	if (!rfc822_ms_of(value, &start) || !rfc822_ms_of(value->next, &stop))
		return;
	buf_printf(w->out, "%05lld-%05lld", start, stop);
	value = value->next->next;
	if (rfc822_text_of(value, &w->scratch, &text)) {
		buf_append_char(w->out, '@');
		rfc822_append_words(w->out, text);
	}
	buf_append_char(w->out, ' ');
	if (value && rfc822_text_of(value->next, &w->scratch, &text))
		rfc822_append_words(w->out, text);
	buf_append_char(w->out, '\n');
}

static void rfc822_write_timeline(struct rfc822_writer *w, const struct json *timeline)
{
	if (!timeline || timeline->type != JSON_T_ARRAY)
		return;
	for (const struct json *row = timeline->first; row; row = row->next)
		rfc822_write_row(w, row);
	buf_append_char(w->out, '\n');
}

void oops_rfc822_write(const struct json *report, struct buf *out)
{
	struct rfc822_writer w = {.out = out};
	struct slice text;
	buf_init(&w.scratch, out->max);
	rfc822_write_headers(&w, report);
	rfc822_write_variables(&w, json_member(report, "req_vars"));
	rfc822_write_timeline(&w, json_member(report, "timeline"));
	if (rfc822_text_of(json_member(report, "tb_text"), &w.scratch, &text))
		rfc822_append(out, text);
	out->failed |= w.scratch.failed;
	buf_release(&w.scratch);
}
