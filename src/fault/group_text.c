/* What varies is taken out of texts. Each scanner goes once from left to right; where it looks
 * ahead for an end, it does so for GROUP_LOOK_MAX_BYTES at most, and only goes on behind what it
 * has looked at, or takes the byte as it is once no end can follow. */
#include "fault/group_private.h"

enum {
	TEXT_LINES = 2,
	TEXT_HEX_MIN = 8, /* so many hexadecimal digits, a decimal one among them, are a hash */
};

/* ---- Bytes ----------------------------------------------------------------------------------- */

bool grouping_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

size_t grouping_find(struct slice text, size_t at, struct slice what)
{
	size_t left = at < text.len ? text.len - at : 0;
	size_t look = left < GROUP_LOOK_MAX_BYTES ? left : GROUP_LOOK_MAX_BYTES;
	if (look < what.len)
		return text.len;
	/* What is looked for is a few bytes of this program, and texts are short: memmem(3)
	 * prepares longer than that takes. */
	const char *from = text.data + at, *last = from + look - what.len;
	while (from <= last && (from = memchr(from, what.data[0], (size_t)(last - from) + 1))) {
		if (memcmp(from, what.data, what.len) == 0)
			return (size_t)(from - text.data);
		from++;
	}
	return text.len;
}

size_t grouping_find_last(struct slice text, char c)
{
	size_t from = text.len > GROUP_LOOK_MAX_BYTES ? text.len - GROUP_LOOK_MAX_BYTES : 0;
	for (size_t at = text.len; at > from; at--)
		if (text.data[at - 1] == c)
			return at - 1;
	return text.len;
}

struct slice grouping_trim(struct slice text)
{
	size_t from = 0, to = text.len;
	while (from < to && grouping_is_blank(text.data[from]))
		from++;
	while (to > from && grouping_is_blank(text.data[to - 1]))
		to--;
	return grouping_part(text, from, to);
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* The end of the word that begins at `at`. */
static size_t grouping_text_word_end(struct slice text, size_t at)
{
	while (at < text.len && !grouping_is_blank(text.data[at]) &&
	       !memchr("\"'`()[]{}<>,;=|", text.data[at], 16))
		at++;
	return at;
}

/* Addresses have = and & and more in them. */
static size_t grouping_text_address_end(struct slice text, size_t at)
{
	while (at < text.len && !grouping_is_blank(text.data[at]) &&
	       !memchr("\"'`<>()", text.data[at], 7))
		at++;
	return at;
}

/* A number of any kind, with its unit; an id, an address, a date. */
static bool grouping_text_is_number(struct slice word)
{
	size_t at = 0, digits = 0, letters = 0;
	if (word.len && (word.data[0] == '-' || word.data[0] == '+' || word.data[0] == '#' ||
			 word.data[0] == '$'))
		at++;
	bool begins = at < word.len && number_is_digit(word.data[at]);
	bool hex = true;
	for (; at < word.len; at++) {
		char c = word.data[at];
		digits += number_is_digit(c);
		letters += grouping_is_letter(c);
		hex = hex &&
		      (number_hex_digit(c) >= 0 || c == '-' || c == ':' || c == '.' || c == '_');
		if (number_hex_digit(c) < 0 && !grouping_is_letter(c) && !memchr("-:.+/%_", c, 7))
			return false;
	}
	return digits && (begins || (hex && digits + letters >= TEXT_HEX_MIN));
}

static bool grouping_text_has(struct slice word, struct slice what)
{
	return grouping_find(word, 0, what) < word.len;
}

/* Values that follow each other count as one, however many they are. */
static void grouping_text_put_value(struct buf *to)
{
	size_t end = to->len;
	while (end && (to->data[end - 1] == ' ' || to->data[end - 1] == ','))
		end--;
	if (end && to->data[end - 1] == '#')
		to->len = end;
	else
		buf_append_char(to, '#');
}

/* A name with numbers in it. */
static void grouping_text_put_mixed(struct slice word, struct buf *to)
{
	for (size_t at = 0; at < word.len; at++) {
		if (!number_is_digit(word.data[at]))
			buf_append_char(to, word.data[at]);
		else if (!at || !number_is_digit(word.data[at - 1]))
			buf_append_char(to, '#');
	}
}

static void grouping_text_put_word(struct slice word, struct buf *to)
{
	size_t end = word.len;
	while (end && memchr(".:!?", word.data[end - 1], 4))
		end--;
	struct slice bare = grouping_part(word, 0, end);
	bool address = grouping_text_has(bare, SLICE("://")) ||
		       (grouping_text_has(bare, SLICE("@")) && grouping_text_has(bare, SLICE(".")));
	if (address || grouping_text_is_number(bare))
		grouping_text_put_value(to);
	else
		grouping_text_put_mixed(bare, to);
	buf_append(to, word.data + end, word.len - end);
}

/* The end of the quoted value at `at`, behind its closing quote; `at`: it is none, as in can't. */
static size_t grouping_text_quoted_end(struct slice line, size_t at)
{
	char quote = line.data[at];
	if (at && grouping_is_word(line.data[at - 1]))
		return at;
	for (size_t i = at + 1; i < line.len && i - at < GROUP_LOOK_MAX_BYTES; i++) {
		if (line.data[i] == '\\')
			i++;
		else if (line.data[i] == quote &&
			 (i + 1 >= line.len || !grouping_is_word(line.data[i + 1])))
			return i + 1;
	}
	return at;
}

static void grouping_text_put_line(struct slice line, struct buf *to)
{
	bool closes[3] = {true, true, true}; /* a quote of this kind may still be closed */
	static const char quotes[] = "\"'`";
	for (size_t at = 0, end; at < line.len; at = end) {
		char c = line.data[at];
		const char *quote = memchr(quotes, c, 3);
		end = at + 1;
		if (grouping_is_blank(c)) {
			if (to->len && to->data[to->len - 1] != ' ')
				buf_append_char(to, ' ');
			continue;
		}
		if (quote && closes[quote - quotes]) {
			size_t behind = grouping_text_quoted_end(line, at);
			if (behind > at) {
				grouping_text_put_value(to);
				end = behind;
				continue;
			}
			closes[quote - quotes] = at && grouping_is_word(line.data[at - 1]);
		}
		end = grouping_text_word_end(line, at);
		if (grouping_text_has(grouping_part(line, at, end), SLICE("://")))
			end = grouping_text_address_end(line, end);
		if (end > at)
			grouping_text_put_word(grouping_part(line, at, end), to);
		else
			buf_append_char(to, line.data[end++]);
	}
}

void grouping_message(struct slice text, struct buf *to)
{
	size_t lines = 0;
	for (size_t at = 0; at < text.len && lines < TEXT_LINES;) {
		const char *found = memchr(text.data + at, '\n', text.len - at);
		size_t end = found ? (size_t)(found - text.data) : text.len;
		struct slice line = grouping_trim(grouping_part(text, at, end));
		at = end + 1;
		if (!line.len)
			continue;
		if (lines++)
			buf_append_char(to, '\n');
		if (line.len > GROUP_LOOK_MAX_BYTES)
			line.len = GROUP_LOOK_MAX_BYTES;
		grouping_text_put_line(line, to);
	}
}
