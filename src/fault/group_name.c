/* Names of functions, modules and files without what varies in them. */
#include "fault/group_private.h"

enum {
	NAME_HEX_MIN = 8,    /* so many hexadecimal digits, a decimal one among them, are a hash */
	NAME_DIGITS_MIN = 5, /* so many digits are a number that varies */
};

/* Behind the run of digits and letters at `at`. */
static size_t grouping_name_run_end(struct slice text, size_t at)
{
	while (at < text.len &&
	       (number_is_digit(text.data[at]) || grouping_is_letter(text.data[at])))
		at++;
	return at;
}

static bool grouping_name_is_hash(struct slice run)
{
	size_t digits = 0, from = run.len == 17 && run.data[0] == 'h'; /* of Rust */
	if (run.len > 2 && run.data[0] == '0' && run.data[1] == 'x')
		from = 2;
	for (size_t i = from; i < run.len; i++) {
		if (number_hex_digit(run.data[i]) < 0)
			return false;
		digits += number_is_digit(run.data[i]);
	}
	return from == 2 || (digits && run.len >= NAME_HEX_MIN);
}

/* Numbers that compilers and libraries give to what they make. */
static bool grouping_name_is_numbered(const struct buf *to)
{
	static const struct slice before[] = {
		SLICE("$$Lambda$"), SLICE("$Proxy"),     SLICE("MethodAccessor"),
		SLICE("CGLIB$$"),   SLICE("Lambda/"),    SLICE("ConstructorAccessor"),
		SLICE("$lambda-"),  SLICE("$lambda$"),   SLICE("#}#"),
		SLICE("}#"),        SLICE("ByteBuddy$"), SLICE("FastClass$$"),
		SLICE("b__"),       SLICE("$_"),
	};
	for (size_t i = 0; i < ARRAY_LEN(before); i++)
		if (to->len >= before[i].len &&
		    memcmp(to->data + to->len - before[i].len, before[i].data, before[i].len) == 0)
			return true;
	return false;
}

/* A run of digits and letters, with # for long numbers in it. */
static void grouping_name_put_run(struct slice run, struct buf *to)
{
	for (size_t at = 0, end; at < run.len; at = end) {
		bool digit = number_is_digit(run.data[at]);
		for (end = at; end < run.len && number_is_digit(run.data[end]) == digit;)
			end++;
		if (digit &&
		    (end - at >= NAME_DIGITS_MIN || (!at && grouping_name_is_numbered(to))))
			buf_append_char(to, '#');
		else
			buf_append(to, run.data + at, end - at);
	}
}

static bool grouping_name_is_all_hex(struct slice run)
{
	for (size_t i = 0; i < run.len; i++)
		if (number_hex_digit(run.data[i]) < 0)
			return false;
	return run.len > 0;
}

/* A version: digits with points between, behind - or @ or at the beginning. */
static size_t grouping_name_version_end(struct slice text, size_t at)
{
	size_t i = at, points = 0;
	if (at && !memchr("-@_/", text.data[at - 1], 4))
		return at;
	while (i < text.len &&
	       (number_is_digit(text.data[i]) ||
		(text.data[i] == '.' && i + 1 < text.len && number_is_digit(text.data[i + 1])))) {
		points += text.data[i] == '.';
		i++;
	}
	return points ? i : at;
}

/* lambda$name$12: the number counts where the compiler has seen the lambda. */
static size_t grouping_name_lambda_end(struct slice text)
{
	size_t end = text.len;
	while (end && number_is_digit(text.data[end - 1]))
		end--;
	bool numbered = end < text.len && end && text.data[end - 1] == '$';
	return numbered && grouping_find(text, 0, SLICE("lambda$")) < text.len ? end : text.len;
}

/* What gcc and linkers put behind the name of a part of a function. */
static size_t grouping_name_suffix_at(struct slice text)
{
	static const struct slice suffixes[] = {SLICE(".constprop."), SLICE(".isra."),
						SLICE(".part."),      SLICE(".cold"),
						SLICE(".lto_priv."),  SLICE(".llvm.")};
	size_t at = text.len;
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		size_t found = grouping_find(text, 1, suffixes[i]);
		at = found < at ? found : at;
	}
	return at;
}

void grouping_name(struct slice text, struct buf *to)
{
	if (text.len > GROUP_LOOK_MAX_BYTES)
		text.len = GROUP_LOOK_MAX_BYTES;
	text.len = grouping_name_suffix_at(text);
	text.len = grouping_name_lambda_end(text);
	for (size_t at = 0, end; at < text.len; at = end) {
		end = grouping_name_version_end(text, at);
		if (end > at) {
			buf_append_char(to, '#');
			continue;
		}
		end = grouping_name_run_end(text, at);
		struct slice run = grouping_part(text, at, end);
		if (end == at)
			buf_append_char(to, text.data[end++]);
		else if (grouping_name_is_hash(run) ||
			 (grouping_name_is_numbered(to) && grouping_name_is_all_hex(run)))
			buf_append_char(to, '#');
		else
			grouping_name_put_run(run, to);
	}
}
