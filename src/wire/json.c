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

/* Writes what the string [p, end), known to be good but for its escapes, says. NULL: an escape is
 * bad, *p is left on its backslash. */
static char *json_unescape(const char **p, const char *end, char *to, bool lone,
			   const char **reason)
{
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
			if (code < 0)
				return NULL;
			to += utf8_put(to, (uint32_t)code);
		} else {
			*reason = "unknown escape";
			*to = short_escape(slash[1]);
			if (!*to++)
				return NULL;
		}
		*p = after;
	}
	return to;
}

/* Finds the closing quote of the string that begins at p; NULL and a fault if there is none or if
 * something before it may not stand in a string. */
static const char *string_end(struct json_reader *r, const char *p, bool *escaped)
{
	const char *opening = p - 1;
	for (;;) {
		p = plain_end(p, r->end);
		if (p == r->end || (*p == '\\' && p + 1 == r->end)) {
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
		if (len < 2) {
			json_fail(r, p,
				  len ? "control character in a string" : "text that is not UTF-8");
			return NULL;
		}
		p += len;
	}
}

/* r->at is after the opening quote. */
static bool json_parse_string(struct json_reader *r)
{
	bool escaped = false;
	const char *p = r->at, *end = string_end(r, p, &escaped);
	if (!end)
		return false;
	r->text = (struct slice){p, (size_t)(end - p)};
	r->at = end + 1;
	if (!escaped)
		return true;
	/* An escape is never shorter than what it stands for. */
	char *copy = arena_alloc(r->arena, r->text.len + 1);
	if (!copy) {
		r->arena_full = true;
		json_fail(r, p, "too much text with escapes");
		return false;
	}
	const char *reason, *stop = json_unescape(&p, end, copy, r->lone_surrogates, &reason);
	if (!stop) {
		json_fail(r, p, reason);
		return false;
	}
	r->text = (struct slice){copy, (size_t)(stop - copy)};
	return true;
}

/* ---- Structure ------------------------------------------------------------------------------ */

static bool in_object(const struct json_reader *r)
{
	return r->depth && (r->objects >> (r->depth - 1) & 1);
}

static enum json_event open_level(struct json_reader *r, bool object)
{
	if (r->depth == JSON_DEPTH_MAX)
		return json_fail(r, r->at, "nested too deep");
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
		return json_fail(r, r->at, "not a value");
	r->at += word.len;
	r->expect = EXPECT_NEXT;
	return event;
}

static enum json_event json_parse_number(struct json_reader *r)
{
	const char *reason, *stop = number_scan_json(r->at, r->end, &r->number, &reason);
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
	if (r->at == r->end)
		return json_fail(r, r->at, "the text ends where a value should stand");
	switch (*r->at) {
	case '"':
		r->at++;
		r->expect = EXPECT_NEXT;
		return json_parse_string(r) ? JSON_STRING : JSON_BAD;
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
		return json_fail(r, r->at, "not a value");
	}
}

static enum json_event json_parse_key(struct json_reader *r)
{
	if (r->at == r->end)
		return json_fail(r, r->at, "the text ends within an object");
	if (*r->at != '"')
		return json_fail(r, r->at, "a key in quotes should stand here");
	r->at++;
	if (!json_parse_string(r))
		return JSON_BAD;
	json_skip_blanks(r);
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
		return json_fail(r, r->at,
				 object ? "the text ends within an object"
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
