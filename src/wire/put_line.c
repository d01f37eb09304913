#include "wire/put_line.h"

#include "wire/number.h"
#include "wire/timetext.h"

static bool put_line_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct slice put_line_word(struct slice *rest)
{
	const char *p = rest->data, *end = rest->data + rest->len;
	while (p < end && put_line_is_blank(*p))
		p++;
	const char *begin = p;
	while (p < end && !put_line_is_blank(*p))
		p++;
	*rest = (struct slice){p, (size_t)(end - p)};
	return (struct slice){begin, (size_t)(p - begin)};
}

static enum put_line_fault put_line_fault(enum put_line_fault kind, const char **at,
					  const char *where)
{
	*at = where;
	return kind;
}

static bool put_line_word_is(struct slice word, const char *lower)
{
	for (size_t i = 0; i < word.len; i++) {
		if (!lower[i] || (word.data[i] | 0x20) != lower[i])
			return false;
	}
	return !lower[word.len];
}

/* As writers of other languages spell what is not finite. */
static bool is_not_finite(struct slice word)
{
	if (word.len && (word.data[0] == '-' || word.data[0] == '+'))
		word = (struct slice){word.data + 1, word.len - 1};
	return put_line_word_is(word, "nan") || put_line_word_is(word, "inf") ||
	       put_line_word_is(word, "infinity");
}

static enum put_line_fault parse_value(struct slice word, struct value *value, struct errbuf *e)
{
	double number;
	int err = number_parse_json(word, value);
	if (err == ERR_INVALID) {
		/* +1, .5 and 1. are numbers here, though not in JSON. */
		err = number_parse_f64(word.data, word.data + word.len, &number);
		if (!err)
			*value = value_f64(number);
	}
	if (!err)
		return PUT_LINE_GOOD;
	if (err == ERR_LIMIT || is_not_finite(word)) {
		errbuf_set(e, err, "the value is not a finite number");
		return PUT_LINE_NOT_FINITE;
	}
	errbuf_set(e, err, "the value is not a number: " SHOWN, SHOWN_OF(word));
	return PUT_LINE_NOT_NUMBER;
}

static enum put_line_fault parse_tags(struct slice rest, struct put_line *line, const char **at,
				      struct errbuf *e)
{
	struct slice word;
	while ((word = put_line_word(&rest)).len) {
		const char *equals = memchr(word.data, '=', word.len);
		size_t key_len = equals ? (size_t)(equals - word.data) : 0;
		if (!key_len || key_len + 1 == word.len) {
			errbuf_set(e, ERR_INVALID, "a tag is not key=value: " SHOWN,
				   SHOWN_OF(word));
			return put_line_fault(PUT_LINE_SYNTAX, at, word.data);
		}
		if (line->tag_count == PUT_LINE_TAGS_MAX) {
			errbuf_set(e, ERR_INVALID, "more than %d tags", TAGS_MAX);
			return put_line_fault(PUT_LINE_TOO_MANY, at, word.data);
		}
		line->tags[line->tag_count++] =
			(struct tag){{word.data, key_len}, {equals + 1, word.len - key_len - 1}};
	}
	return PUT_LINE_GOOD;
}

enum put_line_fault put_line_parse(struct slice words, struct put_line *line, const char **at,
				   struct errbuf *e)
{
	struct slice rest = words;
	struct slice metric = put_line_word(&rest), time = put_line_word(&rest),
		     value = put_line_word(&rest);
	line->metric = metric;
	line->tag_count = 0;
	if (!value.len) {
		errbuf_set(e, ERR_INVALID,
			   "not enough arguments: a metric, a timestamp and a value are needed");
		return put_line_fault(PUT_LINE_SYNTAX, at, rest.data);
	}
	if (time_parse_epoch(time, &line->ts_ms, e))
		return put_line_fault(PUT_LINE_TIME, at, time.data);
	enum put_line_fault kind = parse_value(value, &line->value, e);
	if (kind)
		return put_line_fault(kind, at, value.data);
	return parse_tags(rest, line, at, e);
}
