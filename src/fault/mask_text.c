/* One pass over the text that stops at the bytes with which a secret can begin or be given away:
 * the `=` or `:` after its name, a digit, a hyphen of a PEM header, the B of Bearer, the I of
 * IDENTIFIED, the P of PASSWORD, the V of VALUES. From such a byte it looks back at a name and at
 * most MASK_TEXT_LITERAL_MAX_BYTES before it, or at one list of columns. It looks ahead as far as
 * what it hides or one word; past what it does not hide at most MASK_TEXT_STANDING_MAX_BYTES; and
 * at rows of VALUES once. So no text costs more than a few times its length. */
#include "fault/mask_text.h"

#include "fault/mask_card.h"
#include "wire/number.h"

enum {
	MASK_TEXT_NAME_MAX_BYTES = 100,
	MASK_TEXT_BLANKS_MAX = 8, /* around an operator */
	MASK_TEXT_OPENED_MAX = 3, /* brackets and calls before a literal: lower(trim('x')) */
	MASK_TEXT_LABEL_MAX = 60, /* RSA PRIVATE KEY */
	MASK_TEXT_SCHEME_MIN = 8, /* bytes of what follows Bearer */
	MASK_TEXT_CODED_MIN = 16,
	MASK_TEXT_LITERAL_MAX_BYTES = 200, /* before a name that is in one */
	MASK_TEXT_DIGITS_MIN = 3,          /* of a secret that is a number without quotes */
	MASK_TEXT_STANDING_MAX_BYTES =
		200, /* of what stands for a value: the name of a parameter */
};

static bool mask_text_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool mask_text_is_quote(char c)
{
	return c == '"' || c == '\'' || c == '`';
}

static bool mask_text_is_word(char c)
{
	char small = (char)(c | 0x20);
	return (small >= 'a' && small <= 'z') || number_is_digit(c) || c == '_';
}

static bool mask_text_ends_line(char c)
{
	return c == '\n' || c == '\r';
}

static size_t mask_text_skip_blanks(struct slice text, size_t at)
{
	while (at < text.len && mask_text_is_blank(text.data[at]))
		at++;
	return at;
}

/* Whether `small`, in small letters, stands at `at`. */
static bool mask_text_has(struct slice text, size_t at, const char *small)
{
	size_t len = strlen(small);
	if (at > text.len || text.len - at < len)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text.data[at + i];
		if ((c >= 'A' && c <= 'Z' ? c | 0x20 : c) != small[i])
			return false;
	}
	return true;
}

/* ---- The name before an operator ------------------------------------------------------------ */

struct mask_text_name {
	struct slice name;
	bool quoted;
	bool line;   /* begins its line */
	bool spaced; /* a blank stands between name and operator */
};

static bool mask_text_in_name(char c)
{
	return mask_text_is_word(c) || (c & 0x80) || (c && strchr("-.[]%", c));
}

/* Only blanks between the beginning of a line and `at`. */
static bool mask_text_begins_line(struct slice text, size_t at)
{
	size_t floor = at > MASK_TEXT_NAME_MAX_BYTES ? at - MASK_TEXT_NAME_MAX_BYTES : 0;
	while (at > floor && mask_text_is_blank(text.data[at - 1]))
		at--;
	return at == 0 || mask_text_ends_line(text.data[at - 1]);
}

/* `at` is where the operator begins; the name begins at `from` or later. */
static void mask_text_name_before(struct slice text, size_t from, size_t at,
				  struct mask_text_name *found)
{
	*found = (struct mask_text_name){.name = {NULL, 0}};
	size_t end = at, floor = at > MASK_TEXT_BLANKS_MAX ? at - MASK_TEXT_BLANKS_MAX : 0;
	while (end > from && end > floor && mask_text_is_blank(text.data[end - 1]))
		end--;
	found->spaced = end < at;
	size_t close = end;
	if (close > from && text.data[close - 1] == ']')
		close--;
	if (close > from && mask_text_is_quote(text.data[close - 1])) {
		found->quoted = true;
		for (end = close - 1; end > from && text.data[end - 1] == '\\';)
			end--;
	}
	floor = end > MASK_TEXT_NAME_MAX_BYTES ? end - MASK_TEXT_NAME_MAX_BYTES : 0;
	size_t begin = end;
	while (begin > from && begin > floor && mask_text_in_name(text.data[begin - 1]))
		begin--;
	found->name = (struct slice){text.data + begin, end - begin};
	found->line = !found->quoted && mask_text_begins_line(text, begin);
}

/* ---- The value after it --------------------------------------------------------------------- */

static bool mask_text_all_of(struct slice text, const char *set)
{
	for (size_t i = 0; i < text.len; i++) {
		if (!text.data[i] || !strchr(set, text.data[i]))
			return false;
	}
	return true;
}

static bool mask_text_all_word(struct slice text)
{
	size_t i = 0;
	while (i < text.len && mask_text_is_word(text.data[i]))
		i++;
	return text.len && i == text.len;
}

static bool mask_text_is_small_word(struct slice text, const char *small)
{
	return text.len == strlen(small) && mask_text_has(text, 0, small);
}

/* A name of code: `self.password`, `new_token`. */
static bool mask_text_is_variable(struct mask_words *words, struct slice value)
{
	bool joined = false;
	for (size_t i = 0; i < value.len; i++) {
		if (!mask_text_is_word(value.data[i]) && value.data[i] != '.')
			return false;
		joined |= value.data[i] == '.' || value.data[i] == '_';
	}
	return joined && mask_name_is_secret(words, value);
}

/* One or two bytes of punctuation, as parsers compare tokens with. */
static bool mask_text_is_punctuation(struct slice value)
{
	for (size_t i = 0; i < value.len; i++) {
		if (mask_text_is_word(value.data[i]) || (value.data[i] & 0x80))
			return false;
	}
	return value.len <= 2;
}

/* What stands for a value that is not there, or was masked by the sender. */
static bool mask_text_stands_for_value(struct mask_words *words, struct slice value,
				       struct slice name)
{
	static const char *const constants[] = {
		"none", "null",     "nil",        "true", "false",  "undefined", "%s",
		"?",    "<hidden>", "[filtered]", "str",  "string", "bytes"};
	if (value.len > MASK_TEXT_STANDING_MAX_BYTES)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(constants); i++) {
		if (mask_text_is_small_word(value, constants[i]))
			return true;
	}
	if (mask_text_is_punctuation(value) || mask_text_all_of(value, "*") ||
	    slice_equal(value, name) || mask_text_is_variable(words, value))
		return true;
	struct slice rest = {value.data + 1, value.len - 1};
	switch (value.data[0]) {
	case '$': /* PostgreSQL */
		return mask_text_all_of(rest, "0123456789");
	case ':': /* Oracle, SQLite, SQLAlchemy */
		return mask_text_all_word(rest);
	case '%': /* %(name)s */
		return value.len > 3 && value.data[1] == '(' && slice_ends_with(value, SLICE(")s"));
	case '{': /* {name!r}, {} */
		return rest.data[0] == '}' || mask_text_is_word(rest.data[0]);
	default:
		return false;
	}
}

/* The opening quote of a literal at `at`, behind brackets, calls and a letter as in u'x'; text.len:
 * there is none. */
static size_t mask_text_opening(struct slice text, size_t at)
{
	for (int opened = 0; opened <= MASK_TEXT_OPENED_MAX; opened++) {
		size_t word = at;
		while (word < text.len && mask_text_is_word(text.data[word]))
			word++;
		size_t slash = word;
		while (slash < text.len && text.data[slash] == '\\')
			slash++;
		if (word - at <= 1 && slash < text.len && mask_text_is_quote(text.data[slash]))
			return slash;
		if (word >= text.len ||
		    !(text.data[word] == '(' || (word == at && text.data[word] == '[')))
			return text.len;
		at = mask_text_skip_blanks(text, word + 1);
	}
	return text.len;
}

static size_t mask_text_slashes_before(struct slice text, size_t from, size_t at)
{
	size_t begin = at;
	while (begin > from && text.data[begin - 1] == '\\')
		begin--;
	return at - begin;
}

/* The end of the literal whose opening quote is at `quote`; that of the text if it is cut. A quote
 * that is escaped more often than the opening one is in it, and so are two quotes (SQL). */
static size_t mask_text_closing(struct slice text, size_t quote)
{
	char c = text.data[quote];
	size_t escaped = mask_text_slashes_before(text, 0, quote);
	for (size_t at = quote + 1; at < text.len; at++) {
		const char *found = memchr(text.data + at, c, text.len - at);
		if (!found)
			break;
		at = (size_t)(found - text.data);
		size_t slashes = mask_text_slashes_before(text, quote + 1, at);
		if (slashes > escaped)
			continue;
		if (!slashes && at + 1 < text.len && text.data[at + 1] == c) {
			at++;
			continue;
		}
		return at - slashes;
	}
	return text.len;
}

/* A word of a query, a form, a header: what ends it may be punctuation of the text around it. */
static size_t mask_text_word_end(struct slice text, size_t at)
{
	size_t end = at;
	for (; end < text.len; end++) {
		unsigned char c = (unsigned char)text.data[end];
		if (c <= ' ' || c == 0x7f || strchr("&;\"'`<>", c))
			break;
	}
	while (end > at && strchr(",)]}.:", text.data[end - 1]))
		end--;
	return end;
}

static size_t mask_text_line_end(struct slice text, size_t at)
{
	while (at < text.len && !mask_text_ends_line(text.data[at]))
		at++;
	while (at && mask_text_is_blank(text.data[at - 1]))
		at--;
	return at;
}

/* A word that is all that is left of its line. */
static bool mask_text_ends_with_word(struct slice text, size_t end)
{
	end = mask_text_skip_blanks(text, end);
	return end == text.len || mask_text_ends_line(text.data[end]);
}

/* A word with a digit and without what code has in it: `password = hunter2`, and not
 * `token = get_token2()`. */
static bool mask_text_is_bare_secret(struct slice word)
{
	bool digit = false;
	for (size_t i = 0; i < word.len; i++) {
		if (strchr("()[].", word.data[i]))
			return false;
		digit |= number_is_digit(word.data[i]);
	}
	return digit;
}

static bool mask_text_is_number(struct slice word)
{
	return word.len >= MASK_TEXT_DIGITS_MIN && mask_text_all_of(word, "0123456789");
}

enum mask_text_kind {
	MASK_TEXT_COLONED,  /* name: value */
	MASK_TEXT_ASSIGNED, /* name = value, of code, SQL and files of options */
	MASK_TEXT_JOINED,   /* name=value */
	MASK_TEXT_COMPARED, /* name == value and others */
};

/* `Cookie: a=b; c=d`, `HTTP_COOKIE=a=b; c=d`, and not `cookies=None,`. Only a name that begins its
 * line is looked at, so a line is gone through once. */
static bool mask_text_header(struct slice text, const struct mask_text_name *name,
			     enum mask_text_kind kind, size_t at, struct mask_span *span)
{
	if (!name->line || !mask_name_is_header(name->name))
		return false;
	*span = (struct mask_span){at, mask_text_line_end(text, at)};
	if (span->begin >= span->end)
		return false;
	return kind == MASK_TEXT_COLONED ||
	       (kind == MASK_TEXT_JOINED && memchr(text.data + at, '=', span->end - at));
}

/* The value at `at` without quotes. */
static bool mask_text_bare(struct slice text, const struct mask_text_name *name,
			   enum mask_text_kind kind, size_t at, struct mask_span *span)
{
	if (kind == MASK_TEXT_COMPARED)
		return false;
	if (mask_text_header(text, name, kind, at, span))
		return true;
	span->begin = at;
	span->end = mask_text_word_end(text, at);
	if (span->begin >= span->end)
		return false;
	struct slice word = {text.data + at, span->end - at};
	if (mask_text_is_small_word(word, "basic") || mask_text_is_small_word(word, "bearer"))
		span->end = mask_text_word_end(text, mask_text_skip_blanks(text, span->end));
	bool line = name->line && mask_text_ends_with_word(text, span->end);
	switch (kind) {
	case MASK_TEXT_COLONED:
		return mask_text_is_number(word) || line;
	case MASK_TEXT_ASSIGNED:
		return mask_text_is_number(word) || (line && mask_text_is_bare_secret(word));
	case MASK_TEXT_JOINED:
		return true;
	case MASK_TEXT_COMPARED:
		break;
	}
	return false;
}

/* How long the operator at `at` is: =, ==, ===, =>, := or a colon. Others that end with = have no
 * name before it. */
static size_t mask_text_operator(struct slice text, size_t at)
{
	size_t len = 1;
	if (text.data[at] == ':')
		return at + 1 < text.len && text.data[at + 1] == '=' ? 2 : 1;
	while (len < 3 && at + len < text.len && text.data[at + len] == '=')
		len++;
	if (len == 1 && at + 1 < text.len && text.data[at + 1] == '>')
		len = 2;
	return len;
}

/* The quote at `quote` may be the end of the literal that the name is in: `"token=" + x`. */
static bool mask_text_ends_literal(struct slice text, size_t name, size_t quote)
{
	size_t floor = name > MASK_TEXT_LITERAL_MAX_BYTES ? name - MASK_TEXT_LITERAL_MAX_BYTES : 0;
	bool open = false;
	if (quote + 1 < text.len && mask_text_is_word(text.data[quote + 1]))
		return false;
	for (size_t at = name; at > floor && !mask_text_ends_line(text.data[at - 1]); at--)
		open ^= text.data[at - 1] == text.data[quote];
	return open;
}

static enum mask_text_kind mask_text_kind_of(struct slice text, const struct mask_text_name *name,
					     size_t at, size_t len, size_t value)
{
	if (len > 1)
		return MASK_TEXT_COMPARED;
	if (text.data[at] == ':')
		return MASK_TEXT_COLONED;
	return name->spaced || value > at + len ? MASK_TEXT_ASSIGNED : MASK_TEXT_JOINED;
}

/* Of a line `Name: value`; `token[:2]` begins one, too. */
static bool mask_text_is_line_name(const struct mask_text_name *name)
{
	return name->line && !memchr(name->name.data, '[', name->name.len);
}

static bool mask_text_assigned(struct mask_words *words, struct slice text, size_t from, size_t at,
			       struct mask_span *span)
{
	struct mask_text_name name;
	size_t len = mask_text_operator(text, at);
	mask_text_name_before(text, from, at, &name);
	if (!name.name.len || !mask_name_is_secret(words, name.name))
		return false;
	size_t value = mask_text_skip_blanks(text, at + len);
	enum mask_text_kind kind = mask_text_kind_of(text, &name, at, len, value);
	if (kind == MASK_TEXT_COLONED && !name.quoted && !mask_text_is_line_name(&name))
		return false;
	size_t quote = mask_text_opening(text, value);
	if (quote == value && !name.quoted &&
	    mask_text_ends_literal(text, (size_t)(name.name.data - text.data), quote))
		return false;
	if (quote < text.len)
		*span = (struct mask_span){quote + 1, mask_text_closing(text, quote)};
	else if (!mask_text_bare(text, &name, kind, value, span))
		return false;
	struct slice found = {text.data + span->begin, span->end - span->begin};
	return !mask_text_stands_for_value(words, found, name.name);
}

/* ---- By shape ------------------------------------------------------------------------------- */

/* RFC 3986, 3.2.1: userinfo is ended by the last @ of the authority. `at` is the colon of ://. */
static bool mask_text_userinfo(struct mask_words *words, struct slice text, size_t at,
			       struct mask_span *span)
{
	size_t begin = at + 3, end = begin, colon = 0, sign = 0;
	if (!at || !mask_text_is_word(text.data[at - 1]))
		return false;
	for (; end < text.len; end++) {
		unsigned char c = (unsigned char)text.data[end];
		if (c <= ' ' || strchr("/?#\"'`<>\\", c))
			break;
		if (c == ':' && !colon && !sign)
			colon = end;
		if (c == '@')
			sign = end;
	}
	if (!colon || !sign)
		return false;
	*span = (struct mask_span){colon + 1, sign};
	struct slice found = {text.data + span->begin, span->end - span->begin};
	return !mask_text_stands_for_value(words, found, SLICE("password"));
}

/* RFC 7468: -----BEGIN label----- ... -----END label-----; `at` is the first hyphen. */
static bool mask_text_private_key(struct slice text, size_t at, struct mask_span *span)
{
	static const char begin[] = "-----BEGIN ", end[] = "-----END ", kind[] = "PRIVATE KEY";
	const size_t begin_len = sizeof(begin) - 1, end_len = sizeof(end) - 1;
	if (text.len - at < begin_len || memcmp(text.data + at, begin, begin_len) != 0)
		return false;
	const char *label = text.data + at + begin_len;
	size_t left = text.len - at - begin_len;
	size_t label_max = left < MASK_TEXT_LABEL_MAX ? left : MASK_TEXT_LABEL_MAX;
	const char *label_end = memmem(label, label_max, "-----", 5);
	size_t label_len = label_end ? (size_t)(label_end - label) : label_max;
	if (!memmem(label, label_len, kind, sizeof(kind) - 1))
		return false;
	*span = (struct mask_span){at, text.len};
	const char *last = memmem(label, left, end, end_len);
	if (last) {
		left = (size_t)(text.data + text.len - last) - end_len;
		last = memmem(last + end_len, left, "-----", 5);
	}
	if (last)
		span->end = (size_t)(last - text.data) + 5;
	return true;
}

/* As no word is: with a digit, or long and with a capital after a small letter. */
static bool mask_text_is_coded(struct slice word)
{
	bool small = false;
	for (size_t i = 0; i < word.len; i++) {
		char c = word.data[i];
		if (number_is_digit(c) ||
		    (small && c >= 'A' && c <= 'Z' && word.len >= MASK_TEXT_CODED_MIN))
			return true;
		small = c >= 'a' && c <= 'z';
	}
	return false;
}

/* RFC 6750, 2.1: b64token; of Basic (RFC 7617) it is base64. */
static bool mask_text_scheme(struct slice text, size_t at, struct mask_span *span)
{
	size_t begin = at;
	if (at && mask_text_is_word(text.data[at - 1]))
		return false;
	if (mask_text_has(text, at, "bearer "))
		begin += 7;
	else if (mask_text_has(text, at, "basic "))
		begin += 6;
	else
		return false;
	begin = mask_text_skip_blanks(text, begin);
	size_t end = begin;
	for (; end < text.len; end++) {
		char c = text.data[end];
		if (!mask_text_is_word(c) && (!c || !strchr("-.~+/", c)))
			break;
	}
	while (end < text.len && text.data[end] == '=')
		end++;
	*span = (struct mask_span){begin, end};
	return end - begin >= MASK_TEXT_SCHEME_MIN &&
	       mask_text_is_coded((struct slice){text.data + begin, end - begin});
}

/* ---- Statements of SQL ----------------------------------------------------------------------- */

static bool mask_text_is_space(char c)
{
	return mask_text_is_blank(c) || mask_text_ends_line(c);
}

static size_t mask_text_skip_spaces(struct slice text, size_t at)
{
	while (at < text.len && mask_text_is_space(text.data[at]))
		at++;
	return at;
}

/* Whether a list of columns, which ends with the bracket before `at`, has one of a secret. It has
 * no brackets in it, so no part of a text is gone through twice. */
static bool mask_text_columns(struct mask_words *words, struct slice text, size_t at)
{
	bool secret = false;
	while (at && mask_text_is_space(text.data[at - 1]))
		at--;
	if (!at || text.data[at - 1] != ')')
		return false;
	for (size_t end = --at; at; at--) {
		char c = text.data[at - 1];
		bool ends = c == ',' || c == '(' || mask_text_is_space(c) || mask_text_is_quote(c);
		if (ends && at < end)
			secret |= mask_name_is_secret(words,
						      (struct slice){text.data + at, end - at});
		if (ends)
			end = at - 1;
		if (c == '(')
			return secret;
		if (c == ')' || c == ';')
			return false;
	}
	return false;
}

/* The end of the rows of values, of which the first begins with the bracket at `at`; whether one of
 * the values is a literal, and not a parameter. */
static size_t mask_text_rows(struct slice text, size_t at, bool *literal)
{
	unsigned depth = 0;
	*literal = false;
	for (; at < text.len; at++) {
		char c = text.data[at];
		depth += c == '(';
		if (mask_text_is_quote(c)) {
			at = mask_text_closing(text, at);
			while (at < text.len && text.data[at] == '\\')
				at++;
			*literal = true;
		} else if (number_is_digit(c)) {
			char before = text.data[at - 1];
			*literal |= mask_text_is_space(before) || (before && strchr("(,-", before));
		} else if (c == ')' && !--depth) {
			size_t next = mask_text_skip_spaces(text, at + 1);
			if (next == text.len || text.data[next] != ',')
				return at + 1;
			next = mask_text_skip_spaces(text, next + 1);
			if (next == text.len || text.data[next] != '(')
				return at + 1;
			at = next - 1;
		}
	}
	return text.len;
}

/* Whether the rows that begin at `at` were looked at with those around them. */
static bool mask_text_has_no_rows(const struct mask_words *words, struct slice text, size_t at)
{
	uintptr_t known = (uintptr_t)words->no_rows.data, here = (uintptr_t)(text.data + at);
	return here >= known && here - known < words->no_rows.len;
}

/* INSERT INTO u (name, password) VALUES ('bob', 'x'), ...: the values are hidden as one. */
static bool mask_text_values(struct mask_words *words, struct slice text, size_t at,
			     struct mask_span *span)
{
	bool literal;
	size_t begin = mask_text_skip_spaces(text, at + sizeof("values") - 1);
	if (!mask_text_has(text, at, "values") || begin == text.len || text.data[begin] != '(' ||
	    mask_text_has_no_rows(words, text, begin) || !mask_text_columns(words, text, at))
		return false;
	*span = (struct mask_span){begin, mask_text_rows(text, begin, &literal)};
	if (!literal)
		words->no_rows = (struct slice){text.data + begin, span->end - begin};
	return literal;
}

/* IDENTIFIED BY 'x', PASSWORD 'x'. */
static bool mask_text_literal_after(struct mask_words *words, struct slice text, size_t at,
				    const char *small, struct mask_span *span)
{
	if (!mask_text_has(text, at, small))
		return false;
	size_t quote = mask_text_skip_spaces(text, at + strlen(small));
	if (quote >= text.len || text.data[quote] != '\'')
		return false;
	*span = (struct mask_span){quote + 1, mask_text_closing(text, quote)};
	struct slice found = {text.data + span->begin, span->end - span->begin};
	return found.len && !mask_text_stands_for_value(words, found, SLICE("password"));
}

/* ---- Literals of a statement ----------------------------------------------------------------- */

static bool mask_text_is_one_of(struct slice word, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (mask_text_is_small_word(word, list[i]))
			return true;
	}
	return false;
}

/* Where a text begins so, its quotes are those of SQL and not of code. */
static bool mask_text_is_statement(struct slice text)
{
	static const char *const verbs[] = {"select", "insert",  "update",  "delete", "replace",
					    "merge",  "with",    "alter",   "create", "set",
					    "grant",  "explain", "execute", "exec",   "prepare"};
	size_t begin = mask_text_skip_spaces(text, 0), end = begin;
	while (end < text.len && mask_text_is_word(text.data[end]))
		end++;
	struct slice word = {text.data + begin, end - begin};
	return end < text.len && mask_text_is_space(text.data[end]) &&
	       mask_text_is_one_of(word, verbs, ARRAY_LEN(verbs));
}

/* What stands between a column and the literal that it is compared with. */
static bool mask_text_is_operator_word(struct slice word)
{
	static const char *const operators[] = {
		"like", "ilike", "in",     "not",     "between", "and",      "any",    "all",
		"some", "array", "regexp", "rlike",   "similar", "to",       "binary", "is",
		"from", "by",    "values", "collate", "select",  "distinct", "escape"};
	return mask_text_is_one_of(word, operators, ARRAY_LEN(operators)) ||
	       mask_text_all_of(word, "0123456789");
}

/* How a search for a name goes back from a literal. */
struct mask_text_back {
	size_t at, floor;
	bool compared; /* it went over an operator */
	bool bracket;  /* over a bracket */
	bool secret;   /* to a row of columns of which one is a secret's */
	bool comma;    /* over a comma, and not yet over the bracket that opens its list */
};

static struct slice mask_text_word_before(struct slice text, struct mask_text_back *back)
{
	size_t end = back->at;
	while (back->at > back->floor && mask_text_is_word(text.data[back->at - 1]))
		back->at--;
	return (struct slice){text.data + back->at, end - back->at};
}

/* Over a literal or a comment, whose end the place is before: to where it begins with `to`. */
static void mask_text_go_before(struct slice text, struct mask_text_back *back, struct slice to)
{
	while (back->at > back->floor &&
	       !(back->at >= to.len && memcmp(text.data + back->at - to.len, to.data, to.len) == 0))
		back->at--;
	back->at -= back->at - back->floor < to.len ? back->at - back->floor : to.len;
}

/* The name with which the literal is compared that opens at `quote`: before it, behind operators,
 * brackets, calls and other literals of a list. Of len 0: there is none. */
static struct slice mask_text_compared_before(struct mask_words *words, struct slice text,
					      size_t quote, struct mask_text_back *back)
{
	*back = (struct mask_text_back){.at = quote,
					.floor = quote > MASK_TEXT_LITERAL_MAX_BYTES
							 ? quote - MASK_TEXT_LITERAL_MAX_BYTES
							 : 0};
	while (back->at > back->floor) {
		char c = text.data[back->at - 1];
		if (mask_text_is_word(c)) {
			size_t end = back->at;
			struct slice word = mask_text_word_before(text, back);
			bool prefix = end == quote && (word.len == 1 || word.data[0] == '_');
			bool compares = mask_text_is_operator_word(word);
			bool call = text.data[end] == '(' && !mask_name_is_secret(words, word);
			back->compared |= compares;
			back->comma &= !mask_text_is_small_word(word, "select");
			if (!prefix && !compares && !call)
				return back->comma ? (struct slice){NULL, 0} : word;
		} else if (c == '\'') {
			back->at--;
			mask_text_go_before(text, back, SLICE("'"));
		} else if (c == '/' && back->at - back->floor > 1 &&
			   text.data[back->at - 2] == '*') {
			back->at -= 2;
			mask_text_go_before(text, back, SLICE("/*"));
		} else if (c == ')' && mask_text_columns(words, text, back->at)) {
			back->secret = true;
			break;
		} else if (mask_text_is_space(c) || (c && strchr("(),=<>!~|&@+{\"`[]", c))) {
			back->compared |= c && strchr("=<>!~", c);
			back->bracket |= c == '(' || c == ')';
			back->comma = (back->comma || c == ',') && c != '(';
			back->at--;
		} else {
			break;
		}
	}
	return (struct slice){NULL, 0};
}

/* The name behind it: 'x' = password, 'x' AS password. */
static struct slice mask_text_compared_behind(struct slice text, size_t end)
{
	size_t at = mask_text_skip_spaces(text, end + 1), begin;
	if (mask_text_has(text, at, "as "))
		at += 2;
	else if (at < text.len && text.data[at] && strchr("=<>!~", text.data[at]))
		while (at < text.len && text.data[at] && strchr("=<>!~", text.data[at]))
			at++;
	else
		return (struct slice){NULL, 0};
	begin = at = mask_text_skip_spaces(text, at);
	while (at < text.len && mask_text_in_name(text.data[at]) &&
	       at - begin < MASK_TEXT_NAME_MAX_BYTES)
		at++;
	return (struct slice){text.data + begin, at - begin};
}

/* A literal of a statement that is compared with a column of a secret in any way. One between
 * double quotes may be a name, unless it is compared. */
static bool mask_text_literal(struct mask_words *words, struct slice text, size_t at,
			      struct mask_span *span)
{
	struct mask_text_back back;
	if (words->statement.data != text.data || text.data + at <= words->closing)
		return false; /* it is in the last literal, or ends it */
	*span = (struct mask_span){at + 1, mask_text_closing(text, at)};
	words->closing = text.data + span->end;
	struct slice found = {text.data + span->begin, span->end - span->begin};
	struct slice before = mask_text_compared_before(words, text, at, &back);
	bool secret =
		back.secret || (before.len && (mask_name_is_secret(words, before) ||
					       mask_text_is_small_word(before, "identified")));
	if (text.data[at] == '"' && back.bracket && !back.compared)
		secret = false;
	struct slice behind = mask_text_compared_behind(text, span->end);
	secret = secret || (behind.len && mask_name_is_secret(words, behind));
	return secret && found.len &&
	       !mask_text_stands_for_value(words, found, before.len ? before : behind);
}

/* ---- The pass ------------------------------------------------------------------------------- */

enum mask_text_stop {
	MASK_TEXT_NOTHING,
	MASK_TEXT_EQUALS,
	MASK_TEXT_COLON,
	MASK_TEXT_HYPHEN,
	MASK_TEXT_DIGIT,
	MASK_TEXT_QUOTE,
	MASK_TEXT_B,
	MASK_TEXT_I,
	MASK_TEXT_P,
	MASK_TEXT_V
};

static const uint8_t mask_text_stops[256] = {
	['='] = MASK_TEXT_EQUALS, [':'] = MASK_TEXT_COLON,
	['-'] = MASK_TEXT_HYPHEN, ['0' ... '9'] = MASK_TEXT_DIGIT,
	['B'] = MASK_TEXT_B,      ['b'] = MASK_TEXT_B,
	['I'] = MASK_TEXT_I,      ['i'] = MASK_TEXT_I,
	['P'] = MASK_TEXT_P,      ['p'] = MASK_TEXT_P,
	['V'] = MASK_TEXT_V,      ['v'] = MASK_TEXT_V,
	['\''] = MASK_TEXT_QUOTE, ['"'] = MASK_TEXT_QUOTE,
};

/* Whether a word begins at `at` whose second letter is `second`, in small letters. */
static bool mask_text_may_begin(struct slice text, size_t at, char second)
{
	return at + 1 < text.len && (text.data[at + 1] | 0x20) == second &&
	       (!at || !mask_text_is_word(text.data[at - 1]));
}

/* *at is where the pass goes on, if there is nothing. */
static bool mask_text_at(struct mask_words *words, struct slice text, size_t from, size_t *at,
			 struct mask_span *span)
{
	switch ((enum mask_text_stop)mask_text_stops[(uint8_t)text.data[*at]]) {
	case MASK_TEXT_COLON:
		if (mask_text_has(text, *at, "://"))
			return mask_text_userinfo(words, text, *at, span);
		return mask_text_assigned(words, text, from, *at, span);
	case MASK_TEXT_EQUALS:
		return mask_text_assigned(words, text, from, *at, span);
	case MASK_TEXT_HYPHEN:
		return mask_text_private_key(text, *at, span);
	case MASK_TEXT_B:
		return mask_text_scheme(text, *at, span);
	case MASK_TEXT_DIGIT:
		return mask_card_at(text, at, &span->begin, &span->end);
	case MASK_TEXT_QUOTE:
		return mask_text_literal(words, text, *at, span);
	case MASK_TEXT_I:
		return mask_text_may_begin(text, *at, 'd') &&
		       mask_text_literal_after(words, text, *at, "identified by ", span);
	case MASK_TEXT_P:
		return mask_text_may_begin(text, *at, 'a') &&
		       mask_text_literal_after(words, text, *at, "password ", span);
	case MASK_TEXT_V:
		return mask_text_values(words, text, *at, span);
	case MASK_TEXT_NOTHING:
		break;
	}
	return false;
}

bool mask_text_next(struct mask_words *words, struct slice text, size_t from,
		    struct mask_span *span)
{
	if (!from) {
		words->statement = mask_text_is_statement(text) ? text : (struct slice){NULL, 0};
		words->closing = text.data;
	}
	for (size_t at = from; at < text.len; at++) {
		if (!mask_text_stops[(uint8_t)text.data[at]] ||
		    !mask_text_at(words, text, from, &at, span))
			continue;
		if (span->end < text.len && mask_text_is_quote(text.data[span->end]) &&
		    text.data + span->end > words->closing)
			words->closing = text.data + span->end;
		return true;
	}
	return false;
}
