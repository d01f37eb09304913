#include "wire/prom_dump.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "wire/sample_value.h"

static int prom_dump_bad(const char **reason, const char *why)
{
	*reason = why;
	return ERR_INVALID;
}

/* Takes the last word off the line; empty where there is none. */
static struct slice prom_dump_word(struct slice *line)
{
	const char *blank = memrchr(line->data, ' ', line->len);
	if (!blank)
		return (struct slice){line->data, 0};
	struct slice word = {blank + 1, (size_t)(line->data + line->len - blank - 1)};
	line->len = (size_t)(blank - line->data);
	return word;
}

int prom_dump_split(struct slice line, struct slice *names, int64_t *ts_ms, struct value *value,
		    const char **reason)
{
	struct slice time = prom_dump_word(&line), text = prom_dump_word(&line);
	double number;
	if (line.len < 2 || line.data[0] != '{' || line.data[line.len - 1] != '}')
		return prom_dump_bad(reason, "the line is not {labels} value time");
	if (number_parse_i64(time.data, time.data + time.len, ts_ms))
		return prom_dump_bad(reason, "the time is not a whole number of ms");
	if (!sample_value(text, &number))
		return prom_dump_bad(reason, "the value is not a number");
	*value = value_f64(number);
	*names = line;
	return 0;
}

/* ---- Names ----------------------------------------------------------------------------------- */

struct prom_cursor {
	const char *at, *end;
	char *to; /* unquoted text goes there; never longer than what is quoted */
};

/* So many hexadecimal digits. */
static bool prom_take_hex(struct prom_cursor *c, size_t digits, uint32_t *number)
{
	*number = 0;
	for (; digits; digits--, c->at++) {
		int digit = c->at < c->end ? number_hex_digit(*c->at) : -1;
		if (digit < 0)
			return false;
		*number = *number << 4 | (uint32_t)digit;
	}
	return true;
}

static bool prom_take_code(struct prom_cursor *c, char kind)
{
	uint32_t code;
	if (!prom_take_hex(c, kind == 'x' ? 2 : kind == 'u' ? 4 : 8, &code))
		return false;
	bool none = kind != 'x' && (code > 0x10ffff || (code >= 0xd800 && code < 0xe000));
	if (kind == 'x')
		*c->to++ = (char)code;
	else if (!none)
		c->to += utf8_put(c->to, code);
	return !none;
}

/* What follows a backslash. */
static bool prom_take_escape(struct prom_cursor *c)
{
	static const char letters[] = "abfnrtv\\\"'", bytes[] = "\a\b\f\n\r\t\v\\\"'";
	if (c->at == c->end)
		return false;
	char kind = *c->at++;
	const char *letter = memchr(letters, kind, sizeof(letters) - 1);
	if (letter)
		*c->to++ = bytes[letter - letters];
	return letter || ((kind == 'x' || kind == 'u' || kind == 'U') && prom_take_code(c, kind));
}

static bool prom_take_quoted(struct prom_cursor *c, struct slice *text)
{
	const char *begin = c->to;
	if (c->at == c->end || *c->at++ != '"')
		return false;
	while (c->at < c->end && *c->at != '"') {
		char byte = *c->at++;
		if (byte != '\\')
			*c->to++ = byte;
		else if (!prom_take_escape(c))
			return false;
	}
	*text = (struct slice){begin, (size_t)(c->to - begin)};
	return c->at++ < c->end;
}

/* `name="value"` */
static bool prom_take_label(struct prom_cursor *c, struct tag *tag)
{
	const char *equals = memchr(c->at, '=', (size_t)(c->end - c->at));
	if (!equals || equals == c->at)
		return false;
	tag->key = (struct slice){c->at, (size_t)(equals - c->at)};
	c->at = equals + 1;
	return prom_take_quoted(c, &tag->value);
}

int prom_dump_names(struct slice names, struct arena *arena, struct slice *metric,
		    struct tags *tags, const char **reason)
{
	struct slice copy = arena_copy(arena, names);
	struct tag *list = arena_alloc(arena, TAGS_MAX * sizeof(*list)), tag;
	struct prom_cursor c = {.to = arena_alloc(arena, names.len)};
	size_t count = 0;
	*metric = (struct slice){NULL, 0};
	if (!copy.data || !list || !c.to)
		return prom_dump_bad(reason, "the labels take too much room");
	c.at = copy.data + 1;
	c.end = copy.data + copy.len - 1;
	while (c.at < c.end) {
		if (!prom_take_label(&c, &tag))
			return prom_dump_bad(reason, "a label is not name=\"value\"");
		if (slice_equal(tag.key, SLICE("__name__")))
			*metric = tag.value;
		else if (count == TAGS_MAX)
			return prom_dump_bad(reason, "there are more than 64 labels");
		else
			list[count++] = tag;
		if (c.at < c.end && (c.end - c.at < 2 || c.at[0] != ',' || c.at[1] != ' '))
			return prom_dump_bad(reason, "a comma and a blank are missing");
		c.at += c.at < c.end ? 2 : 0;
	}
	*tags = (struct tags){list, count};
	return metric->len ? 0 : prom_dump_bad(reason, "there is no label __name__");
}
