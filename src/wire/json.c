/* The event reader of JSON. A small automaton: `expect` says what may come next, one bit per level
 * whether that level is an object, so nothing recurses and nesting costs no memory. A fault is
 * sticky: it is reported by every further call. */
#include "wire/json.h"

#include <math.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "wire/number.h"
#include "wire/plain.h"

enum { REPLACEMENT = 0xfffd }; /* of what is no character */

enum expect {
	EXPECT_VALUE,
	EXPECT_FIRST_VALUE, /* of an array, or its end */
	EXPECT_FIRST_KEY,   /* of an object, or its end */
	EXPECT_KEY,
	EXPECT_NEXT, /* a comma or the end of what is open; at level 0 the end of the text */
	EXPECT_ENDS, /* of all that is open: the text was cut */
	EXPECT_NOTHING,
};

void json_reader_init(struct json_reader *reader, struct slice text, struct arena *arena)
{
	const char *start = text.len ? text.data : "";
	*reader = (struct json_reader){.start = start,
				       .at = start,
				       .end = start + text.len,
				       .arena = arena,
				       .expect = EXPECT_VALUE};
}

static enum json_event json_fail(struct json_reader *r, const char *at, const char *reason)
{
	r->offset = (size_t)(at - r->start);
	r->reason = reason;
	r->expect = EXPECT_NOTHING;
	return JSON_BAD;
}

/* ---- A text that ends too early -------------------------------------------------------------- */

/* Whether the reader may go on at the end of the text. */
static bool json_may_be_cut(const struct json_reader *r)
{
	return r->lax && r->depth;
}

static enum json_event json_cut(struct json_reader *r, enum json_event event)
{
	r->at = r->end;
	r->expect = EXPECT_ENDS;
	r->mended = JSON_CUT;
	return event;
}

static bool in_object(const struct json_reader *r)
{
	return r->depth && (r->objects >> (r->depth - 1) & 1);
}

/* Ends the array or object that was opened last. */
static enum json_event json_cut_level(struct json_reader *r)
{
	enum json_event event = in_object(r) ? JSON_OBJECT_END : JSON_ARRAY_END;
	r->depth--;
	return json_cut(r, event);
}

static enum json_event json_ends(struct json_reader *r, const char *reason)
{
	return json_may_be_cut(r) ? json_cut_level(r) : json_fail(r, r->at, reason);
}

/* Whether the text ends within a number or word. Nobody knows how that went on. */
static bool json_is_cut_here(const struct json_reader *r)
{
	const char *p = r->at;
	while (p < r->end && (number_is_digit(*p) || (*p >= 'a' && *p <= 'z') ||
			      (*p >= 'A' && *p <= 'Z') || *p == '-' || *p == '+' || *p == '.'))
		p++;
	return p == r->end && json_may_be_cut(r);
}

/* RFC 8259, 2: ws = *( %x20 / %x09 / %x0A / %x0D ) */
static void json_skip_blanks(struct json_reader *r)
{
	while (r->at < r->end &&
	       (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
		r->at++;
}

/* ---- Strings -------------------------------------------------------------------------------- */

/* RFC 8259, 7: a \ and one of "\/bfnrt, or u and four hexadecimal digits. */
static char short_escape(char c)
{
	switch (c) {
	case '"':
	case '\\':
	case '/':
		return c;
	case 'b':
		return '\b';
	case 'f':
		return '\f';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	default:
		return 0;
	}
}

/* Four hexadecimal digits at p, or -1. */
static int32_t hex_four(const char *p, const char *end)
{
	if (end - p < 4)
		return -1;
	int32_t code = 0;
	for (int i = 0; i < 4; i++) {
		int digit = number_hex_digit(p[i]);
		if (digit < 0)
			return -1;
		code = code << 4 | digit;
	}
	return code;
}

/* After `\u`: the code point of one escape, or of two that are the halves of a surrogate pair; *p
 * moves after it. A half by itself is bad, or REPLACEMENT if it may be. */
static int32_t unicode_escape(const char **p, const char *end, bool lone, const char **reason)
{
	int32_t code = hex_four(*p, end);
	if (code < 0) {
		*reason = "\\u without four hexadecimal digits";
		return -1;
	}
	*p += 4;
	if (code < 0xd800 || code > 0xdfff)
		return code;
	*reason = "half of a surrogate pair";
	int32_t half = lone ? REPLACEMENT : -1;
	if (code > 0xdbff || end - *p < 2 || (*p)[0] != '\\' || (*p)[1] != 'u')
		return half;
	int32_t low = hex_four(*p + 2, end);
	if (low < 0xdc00 || low > 0xdfff)
		return half;
	*p += 6;
	return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

/* Writes what the string [p, end), known to be good but for its escapes, says, and moves *to behind
 * it. False: an escape is bad, *p is left on its backslash. */
static bool json_unescape(const char **p, const char *end, char **out, bool lone,
			  const char **reason)
{
	char *to = *out;
	bool good = true;
	while (*p < end) {
		const char *slash = memchr(*p, '\\', (size_t)(end - *p));
		size_t plain = (size_t)((slash ? slash : end) - *p);
		memcpy(to, *p, plain);
		to += plain;
		*p += plain;
		if (!slash)
			break;
		const char *after = slash + 2; /* the scan saw a character after each backslash */
		if (slash[1] == 'u') {
			int32_t code = unicode_escape(&after, end, lone, reason);
			good = code >= 0;
			to += good ? utf8_put(to, (uint32_t)code) : 0;
		} else {
			*reason = "unknown escape";
			*to = short_escape(slash[1]);
			good = *to != 0;
			to += good;
		}
		if (!good)
			break;
		*p = after;
	}
	*out = to;
	return good;
}

/* Finds the closing quote of the string that begins at p, or where the text is cut; NULL and a
 * fault if there is none or if something before it may not stand in a string. */
static const char *string_end(struct json_reader *r, const char *p, bool *escaped)
{
	const char *opening = p - 1;
	for (;;) {
		p = plain_end(p, r->end);
		if (p == r->end || (*p == '\\' && p + 1 == r->end)) {
			if (json_may_be_cut(r)) {
				r->mended = JSON_CUT;
				return p;
			}
			json_fail(r, opening, "string without its end");
			return NULL;
		}
		if (*p == '"')
			return p;
		if (*p == '\\') {
			*escaped = true;
			/* What is after it is looked at again, but for a quote or backslash. */
			p += p[1] == '"' || p[1] == '\\' ? 2 : 1;
			continue;
		}
		size_t len = utf8_length((const uint8_t *)p, (size_t)(r->end - p));
		if (r->lax && !len)
			r->mended = JSON_NOT_UTF8;
		if (r->lax && len < 2) {
			p++;
			continue;
		}
		if (len < 2) {
			json_fail(r, p,
				  len ? "control character in a string" : "text that is not UTF-8");
			return NULL;
		}
		p += len;
	}
}

/* At p of the string, or at its begin where it is a copy. */
static void json_fail_in_string(struct json_reader *r, const char *p, const char *reason)
{
	json_fail(r, r->mended ? r->start + r->offset : p, reason);
}

static char *json_string_room(struct json_reader *r, size_t bytes)
{
	char *room = arena_alloc(r->arena, bytes + 1);
	if (!room) {
		r->arena_full = true;
		json_fail_in_string(r, r->text.data, "too much text with escapes");
	}
	return room;
}

/* Before its escapes are looked at. */
static bool json_repair_string(struct json_reader *r)
{
	char *copy = json_string_room(r, r->text.len * UTF8_REPAIRED_BYTES_MAX);
	if (copy)
		r->text = (struct slice){copy, utf8_repair(copy, r->text)};
	return copy != NULL;
}

static bool json_unescape_string(struct json_reader *r)
{
	const char *p = r->text.data, *reason = NULL;
	/* An escape is never shorter than what it stands for. */
	char *copy = json_string_room(r, r->text.len), *stop = copy;
	if (!copy)
		return false;
	if (!json_unescape(&p, p + r->text.len, &stop, r->lax, &reason) && r->mended != JSON_CUT) {
		json_fail_in_string(r, p, reason);
		return false;
	}
	r->text = (struct slice){copy, (size_t)(stop - copy)};
	return true;
}

/* r->at is after the opening quote. */
static bool json_parse_string(struct json_reader *r)
{
	bool escaped = false;
	const char *end = string_end(r, r->at, &escaped);
	if (!end)
		return false;
	r->text = (struct slice){r->at, (size_t)(end - r->at)};
	r->at = r->mended == JSON_CUT ? r->end : end + 1;
	if (r->mended && !json_repair_string(r))
		return false;
	return !escaped || json_unescape_string(r);
}

/* ---- Structure ------------------------------------------------------------------------------ */

/* Reads over what is nested too deep; only brackets and strings are looked at. */
static enum json_event json_pass_deep(struct json_reader *r)
{
	size_t open = 0;
	bool escaped;
	do {
		char c = *r->at++;
		open += c == '{' || c == '[';
		open -= c == '}' || c == ']';
		if (c == '"') {
			const char *end = string_end(r, r->at, &escaped);
			r->at = r->mended == JSON_CUT ? r->end : end + 1;
		}
	} while (open && r->at < r->end);
	if (open)
		return json_cut(r, JSON_NULL);
	r->mended = JSON_TOO_DEEP;
	r->expect = EXPECT_NEXT;
	return JSON_NULL;
}

static enum json_event open_level(struct json_reader *r, bool object)
{
	if (r->depth == JSON_DEPTH_MAX)
		return r->lax ? json_pass_deep(r) : json_fail(r, r->at, "nested too deep");
	r->at++;
	uint64_t bit = UINT64_C(1) << r->depth++;
	r->objects = object ? r->objects | bit : r->objects & ~bit;
	r->expect = object ? EXPECT_FIRST_KEY : EXPECT_FIRST_VALUE;
	return object ? JSON_OBJECT_BEGIN : JSON_ARRAY_BEGIN;
}

static enum json_event close_level(struct json_reader *r)
{
	enum json_event event = in_object(r) ? JSON_OBJECT_END : JSON_ARRAY_END;
	r->at++;
	r->depth--;
	r->expect = EXPECT_NEXT;
	return event;
}

static bool json_starts_with(const struct json_reader *r, struct slice word)
{
	return (size_t)(r->end - r->at) >= word.len && memcmp(r->at, word.data, word.len) == 0;
}

static enum json_event json_parse_word(struct json_reader *r, struct slice word,
				       enum json_event event)
{
	if (!json_starts_with(r, word))
		return json_is_cut_here(r) ? json_cut(r, JSON_NULL)
					   : json_fail(r, r->at, "not a value");
	r->at += word.len;
	r->expect = EXPECT_NEXT;
	return event;
}

static enum json_event json_parse_number(struct json_reader *r)
{
	const char *reason, *stop = number_scan_json(r->at, r->end, &r->number, &reason);
	if ((!stop || stop == r->end) && json_is_cut_here(r))
		return json_cut(r, JSON_NULL);
	if (!stop)
		return json_fail(r, r->at, reason);
	r->text = (struct slice){r->at, (size_t)(stop - r->at)};
	r->at = stop;
	r->expect = EXPECT_NEXT;
	return JSON_NUMBER;
}

/* Not JSON, but some writers write it. */
static bool json_parse_nan(struct json_reader *r)
{
	static const struct {
		struct slice word;
		double number;
	} words[] = {{{"NaN", 3}, NAN}, {{"Infinity", 8}, INFINITY}, {{"-Infinity", 9}, -INFINITY}};
	for (size_t i = 0; r->allow_nan && i < ARRAY_LEN(words); i++) {
		if (!json_starts_with(r, words[i].word))
			continue;
		r->number = value_f64(words[i].number);
		r->text = (struct slice){r->at, words[i].word.len};
		r->at += words[i].word.len;
		r->expect = EXPECT_NEXT;
		return true;
	}
	return false;
}

static enum json_event json_parse_value(struct json_reader *r)
{
	if (r->at == r->end && in_object(r) && r->lax)
		return json_cut(r, JSON_NULL); /* its key was given */
	if (r->at == r->end)
		return json_ends(r, "the text ends where a value should stand");
	switch (*r->at) {
	case '"':
		r->at++;
		r->expect = EXPECT_NEXT;
		if (!json_parse_string(r))
			return JSON_BAD;
		return r->mended == JSON_CUT ? json_cut(r, JSON_STRING) : JSON_STRING;
	case '{':
		return open_level(r, true);
	case '[':
		return open_level(r, false);
	case 't':
		return json_parse_word(r, SLICE("true"), JSON_TRUE);
	case 'f':
		return json_parse_word(r, SLICE("false"), JSON_FALSE);
	case 'n':
		return json_parse_word(r, SLICE("null"), JSON_NULL);
	default:
		if (json_parse_nan(r))
			return JSON_NUMBER;
		if (*r->at == '-' || number_is_digit(*r->at))
			return json_parse_number(r);
		return json_is_cut_here(r) ? json_cut(r, JSON_NULL)
					   : json_fail(r, r->at, "not a value");
	}
}

static enum json_event json_parse_key(struct json_reader *r)
{
	if (r->at == r->end)
		return json_ends(r, "the text ends within an object");
	if (*r->at != '"')
		return json_fail(r, r->at, "a key in quotes should stand here");
	r->at++;
	if (!json_parse_string(r))
		return JSON_BAD;
	json_skip_blanks(r);
	if (r->at == r->end && r->lax)
		return json_cut_level(r);
	if (r->at == r->end || *r->at != ':')
		return json_fail(r, r->at, "a colon should stand here");
	r->at++;
	r->expect = EXPECT_VALUE;
	return JSON_KEY;
}

/* After a whole value. */
static enum json_event json_parse_next(struct json_reader *r)
{
	if (r->depth == 0)
		return r->at == r->end ? JSON_END
				       : json_fail(r, r->at, "more text after the value");
	bool object = in_object(r);
	if (r->at == r->end)
		return json_ends(r, object ? "the text ends within an object"
					   : "the text ends within an array");
	if (*r->at == (object ? '}' : ']'))
		return close_level(r);
	if (*r->at != ',')
		return json_fail(r, r->at,
				 object ? "a comma or } should stand here"
					: "a comma or ] should stand here");
	r->at++;
	json_skip_blanks(r);
	r->offset = (size_t)(r->at - r->start);
	return object ? json_parse_key(r) : json_parse_value(r);
}

enum json_event json_next(struct json_reader *r)
{
	if (r->expect == EXPECT_NOTHING)
		return JSON_BAD;
	json_skip_blanks(r);
	r->offset = (size_t)(r->at - r->start);
	r->mended = JSON_AS_IS;
	switch ((enum expect)r->expect) {
	case EXPECT_FIRST_VALUE:
		if (r->at < r->end && *r->at == ']')
			return close_level(r);
		return json_parse_value(r);
	case EXPECT_FIRST_KEY:
		if (r->at < r->end && *r->at == '}')
			return close_level(r);
		return json_parse_key(r);
	case EXPECT_VALUE:
		return json_parse_value(r);
	case EXPECT_KEY:
		return json_parse_key(r);
	case EXPECT_ENDS:
		return r->depth ? json_cut_level(r) : JSON_END;
	case EXPECT_NEXT:
	case EXPECT_NOTHING:
		break;
	}
	return json_parse_next(r);
}

bool json_skip(struct json_reader *r, enum json_event event)
{
	if (event == JSON_KEY)
		event = json_next(r);
	if (event != JSON_ARRAY_BEGIN && event != JSON_OBJECT_BEGIN)
		return event != JSON_BAD;
	unsigned outside = r->depth - 1;
	while (r->depth > outside) {
		if (json_next(r) == JSON_BAD)
			return false;
	}
	return true;
}

bool json_skip_same(struct json_reader *r, struct slice same)
{
	ASSERT(same.len >= 2); /* two brackets, or what stands here would not have been read */
	const char *begin = r->start + r->offset;
	if ((size_t)(r->end - begin) < same.len || memcmp(begin, same.data, same.len) != 0)
		return false;
	r->at = begin + same.len;
	r->depth--;
	r->expect = EXPECT_NEXT;
	return true;
}

struct slice json_text_from(const struct json_reader *r, size_t offset)
{
	return (struct slice){r->start + offset, (size_t)(r->at - r->start) - offset};
}

/* ---- Places --------------------------------------------------------------------------------- */

void json_where(struct slice text, size_t offset, size_t *line, size_t *column)
{
	*line = 1;
	*column = 1;
	for (size_t i = 0; i < offset && i < text.len; i++) {
		if (text.data[i] == '\n') {
			++*line;
			*column = 1;
		} else if (((unsigned char)text.data[i] & 0xc0) != 0x80) {
			++*column;
		}
	}
}

int json_error(const struct json_reader *r, struct errbuf *e)
{
	size_t line, column;
	json_where((struct slice){r->start, (size_t)(r->end - r->start)}, r->offset, &line,
		   &column);
	return errbuf_set(e, r->arena_full ? ERR_LIMIT : ERR_INVALID, "line %zu, column %zu: %s",
			  line, column, r->reason ? r->reason : "no fault");
}
