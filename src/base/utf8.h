/* UTF-8 as RFC 3629 defines it: no surrogates, nothing overlong, nothing above U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/base.h"

/* Length of the sequence at p, 1 to 4 bytes; 0 if there is none. `left` >= 1. */
static inline size_t utf8_length(const uint8_t *p, size_t left)
{
	if (p[0] < 0x80)
		return 1;
	if (left >= 2 && p[0] >= 0xc2 && p[0] <= 0xdf && (p[1] & 0xc0) == 0x80)
		return 2;
	if (left >= 3 && (p[0] & 0xf0) == 0xe0 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80) {
		if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))
			return 0;
		return 3;
	}
	if (left >= 4 && p[0] >= 0xf0 && p[0] <= 0xf4 && (p[1] & 0xc0) == 0x80 &&
	    (p[2] & 0xc0) == 0x80 && (p[3] & 0xc0) == 0x80) {
		if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
			return 0;
		return 4;
	}
	return 0;
}

/* Whether the whole text is such sequences. */
static inline bool utf8_is_valid(struct slice text)
{
	const uint8_t *p = (const uint8_t *)text.data;
	for (size_t at = 0, n; at < text.len; at += n) {
		n = utf8_length(p + at, text.len - at);
		if (!n)
			return false;
	}
	return true;
}

/* Copies the text with U+FFFD for each byte that belongs to no sequence; returns how many bytes
 * stand at `to` then. There is room for UTF8_REPAIRED_BYTES_MAX for each byte of the text. */
enum { UTF8_REPAIRED_BYTES_MAX = 3 };
static inline size_t utf8_repair(char *to, struct slice text)
{
	const uint8_t *p = (const uint8_t *)text.data;
	char *begin = to;
	for (size_t at = 0, n; at < text.len; at += n ? n : 1) {
		n = utf8_length(p + at, text.len - at);
		memcpy(to, n ? (const char *)p + at : "\xef\xbf\xbd", n ? n : 3);
		to += n ? n : 3;
	}
	return (size_t)(to - begin);
}

/* So many bytes of a text, or fewer where the last character would be cut. */
static inline size_t utf8_cut(struct slice text, size_t max_bytes)
{
	size_t len = text.len < max_bytes ? text.len : max_bytes;
	while (len && len < text.len && ((uint8_t)text.data[len] & 0xc0) == 0x80)
		len--;
	return len;
}

/* The code point of a sequence of two to four bytes. */
static inline uint32_t utf8_code(const uint8_t *p, size_t len)
{
	uint32_t code = p[0] & (0x7fU >> len);
	for (size_t i = 1; i < len; i++)
		code = code << 6 | (p[i] & 0x3fU);
	return code;
}

/* Writes a code point (<= 0x10ffff, no surrogate) as 1 to 4 bytes at `to`; returns how many. */
static inline size_t utf8_put(char *to, uint32_t code)
{
	if (code < 0x80) {
		to[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		to[0] = (char)(0xc0 | code >> 6);
		to[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		to[0] = (char)(0xe0 | code >> 12);
		to[1] = (char)(0x80 | (code >> 6 & 0x3f));
		to[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | code >> 18);
	to[1] = (char)(0x80 | (code >> 12 & 0x3f));
	to[2] = (char)(0x80 | (code >> 6 & 0x3f));
	to[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

#endif
