#include "words/words.h"

#include <locale.h>
#include <pthread.h>
#include <wctype.h>

#include "base/hash.h"
#include "base/utf8.h"

enum { ASCII_MAX = 0x7f, CODE_MAX = 0x10ffff };

enum words_class { WORDS_OTHER, WORDS_SMALL, WORDS_DIGIT, WORDS_CAPITAL, WORDS_BEYOND_ASCII };

static locale_t words_locale; /* 0: the system has none */
static pthread_once_t words_once = PTHREAD_ONCE_INIT;

static void words_open_locale(void)
{
	words_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static const uint8_t words_ascii[UINT8_MAX + 1] = {['0' ... '9'] = WORDS_DIGIT,
						   ['a' ... 'z'] = WORDS_SMALL,
						   ['A' ... 'Z'] = WORDS_CAPITAL,
						   [0x80 ... 0xff] = WORDS_BEYOND_ASCII};

/* Beyond ASCII. */
static enum words_class words_class_of(uint32_t code)
{
	pthread_once(&words_once, words_open_locale);
	if (!words_locale)
		return WORDS_SMALL;
	if (!iswalnum_l((wint_t)code, words_locale))
		return WORDS_OTHER;
	return iswupper_l((wint_t)code, words_locale) ? WORDS_CAPITAL : WORDS_SMALL;
}

/* The character at a place of a text, and its length in bytes; of bytes that are no UTF-8 it is
 * WORDS_OTHER, of one byte. */
static inline enum words_class words_at(struct slice text, size_t at, uint32_t *code, size_t *len)
{
	const uint8_t *p = (const uint8_t *)text.data + at;
	*len = 1;
	*code = *p;
	if (*p <= ASCII_MAX)
		return words_ascii[*p];
	size_t bytes = utf8_length(p, text.len - at);
	if (!bytes)
		return WORDS_OTHER;
	*len = bytes;
	*code = utf8_code(p, bytes);
	return words_class_of(*code);
}

bool words_is_letter(struct slice text, size_t at, size_t *len)
{
	uint32_t code;
	return words_at(text, at, &code, len) != WORDS_OTHER;
}

bool words_next(struct slice *text, struct slice *word)
{
	const uint8_t *p = (const uint8_t *)text->data;
	size_t at = 0, len = 1;
	uint32_t code;
	for (; at < text->len; at += len) {
		while (at < text->len && words_ascii[p[at]] == WORDS_OTHER)
			at++;
		if (at == text->len || words_at(*text, at, &code, &len) != WORDS_OTHER)
			break;
	}
	size_t begin = at;
	for (; at < text->len; at += len) {
		while (at < text->len && words_ascii[p[at]] - 1u < WORDS_CAPITAL)
			at++;
		if (at == text->len || words_at(*text, at, &code, &len) == WORDS_OTHER)
			break;
	}
	*word = (struct slice){text->data + begin, at - begin};
	*text = (struct slice){text->data + at, text->len - at};
	return word->len > 0;
}

/* A small letter or digit of ASCII: no part begins with it, unless a capital is before it. */
static bool words_goes_on(char c)
{
	return words_ascii[(uint8_t)c] == WORDS_SMALL || words_ascii[(uint8_t)c] == WORDS_DIGIT;
}

bool words_is_plain(struct slice word)
{
	size_t at = 0;
	while (at < word.len && words_goes_on(word.data[at]))
		at++;
	return at == word.len;
}

/* A part ends before a capital that follows a small letter or a digit, and before the last of some
 * capitals where a small letter follows that. */
bool words_next_part(struct slice *word, struct slice *part)
{
	enum words_class before = WORDS_CAPITAL;
	size_t at = 0, len = 0, last = 0;
	uint32_t code;
	while (at < word->len) {
		while (before != WORDS_CAPITAL && at < word->len && words_goes_on(word->data[at]))
			last = at++;
		if (at == word->len)
			break;
		enum words_class now = words_at(*word, at, &code, &len);
		if (now == WORDS_CAPITAL && before != WORDS_CAPITAL)
			break;
		if (now == WORDS_SMALL && before == WORDS_CAPITAL && last > 0) {
			at = last;
			break;
		}
		last = at;
		before = now;
		at += len;
	}
	*part = (struct slice){word->data, at};
	*word = (struct slice){word->data + at, word->len - at};
	return part->len > 0;
}

static uint32_t words_small_ascii(uint32_t code)
{
	return code | (uint32_t)(code - 'A' <= 'Z' - 'A') << 5;
}

static uint32_t words_small(uint32_t code)
{
	if (code <= ASCII_MAX)
		return words_small_ascii(code);
	pthread_once(&words_once, words_open_locale);
	uint32_t small = words_locale ? (uint32_t)towlower_l((wint_t)code, words_locale) : code;
	return small > ASCII_MAX ? small : code;
}

void words_fold(struct slice text, struct buf *out)
{
	/* A capital of two bytes may have a small letter of three. */
	char *to = buf_reserve(out, 2 * text.len);
	const uint8_t *from = (const uint8_t *)text.data;
	size_t used = 0;
	for (size_t at = 0, len; to && at < text.len; at += len) {
		len = utf8_length(from + at, text.len - at);
		if (len > 1)
			used += utf8_put(to + used, words_small(utf8_code(from + at, len)));
		else
			to[used++] = (char)(len ? words_small_ascii(from[at]) : from[at]);
		len = len ? len : 1;
	}
	out->len += used;
}

static uint64_t words_rules_hash;
static pthread_once_t words_rules_once = PTHREAD_ONCE_INIT;

static void words_hash_rules(void)
{
	for (uint32_t code = ASCII_MAX + 1; code <= CODE_MAX; code++) {
		enum words_class class = words_class_of(code);
		const uint32_t rule[] = {code, class, words_small(code)};
		if (class != WORDS_OTHER)
			words_rules_hash = hash64(rule, sizeof(rule), words_rules_hash);
	}
}

uint64_t words_rules(void)
{
	pthread_once(&words_rules_once, words_hash_rules);
	return words_rules_hash;
}
