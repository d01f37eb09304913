/* Bounded reader with a sticky error: read everything, check `bad` once at the end. After the first
 * read past the end each read gives zero, so a parser needs no check in between. */
#ifndef BASE_CURSOR_H
#define BASE_CURSOR_H

#include "base/base.h"

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static inline struct cursor cursor_of(const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	/* Nothing may be added to NULL, not even 0. */
	return (struct cursor){at, len ? at + len : at, false};
}

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->at);
}

/* The next `len` bytes, or NULL and bad. */
static inline const uint8_t *cursor_take(struct cursor *c, size_t len)
{
	if (UNLIKELY(c->bad || len > cursor_left(c))) {
		c->bad = true;
		c->at = c->end;
		return NULL;
	}
	const uint8_t *p = c->at;
	c->at += len;
	return p;
}

#define CURSOR_FIXED(name, type)                                                                   \
	static inline type name(struct cursor *c)                                                  \
	{                                                                                          \
		type value = 0;                                                                    \
		const uint8_t *p = cursor_take(c, sizeof(value));                                  \
		if (p)                                                                             \
			memcpy(&value, p, sizeof(value));                                          \
		return value;                                                                      \
	}
/* Little endian, as the machine is (checked by the build). */
CURSOR_FIXED(cursor_u8, uint8_t)
CURSOR_FIXED(cursor_u16, uint16_t)
CURSOR_FIXED(cursor_u32, uint32_t)
CURSOR_FIXED(cursor_u64, uint64_t)
#undef CURSOR_FIXED

/* Byte by byte: near the end, and what has more than eight bytes. */
static inline uint64_t cursor_varint_bytes(struct cursor *c)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = cursor_u8(c);
		if (c->bad)
			return 0;
		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	c->bad = true;
	c->at = c->end;
	return 0;
}

/* LEB128: seven bits a byte, low first, at most ten bytes. What passes 64 bits is bad. */
static inline uint64_t cursor_varint(struct cursor *c)
{
	uint64_t word, ends;
	if (UNLIKELY(c->bad || cursor_left(c) < sizeof(word)))
		return cursor_varint_bytes(c);
	memcpy(&word, c->at, sizeof(word));
	if ((word & 0x80) == 0) {
		c->at++;
		return word & 0x7f;
	}
	ends = ~word & UINT64_C(0x8080808080808080);
	if (UNLIKELY(!ends))
		return cursor_varint_bytes(c);
	c->at += (unsigned)__builtin_ctzll(ends) / 8 + 1;
	/* The bytes up to the first end, then seven bits of each moved together. */
	word &= (ends ^ (ends - 1)) & UINT64_C(0x7f7f7f7f7f7f7f7f);
	word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
	word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
	return (word & 0x0fffffff) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
}

static inline int64_t zigzag_decode(uint64_t n)
{
	return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

static inline uint64_t zigzag_encode(int64_t n)
{
	return ((uint64_t)n << 1) ^ (uint64_t)(n >> 63);
}

/* Writes at most 10 bytes at `to`; returns how many. */
static inline size_t varint_put(uint8_t *to, uint64_t value)
{
	size_t n = 0;
	while (value >= 0x80) {
		to[n++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	to[n++] = (uint8_t)value;
	return n;
}

/* Big endian, for keys whose byte order is their order. A signed key flips its top bit. */
static inline void be32_put(uint8_t *to, uint32_t value)
{
	value = __builtin_bswap32(value);
	memcpy(to, &value, 4);
}

static inline void be64_put(uint8_t *to, uint64_t value)
{
	value = __builtin_bswap64(value);
	memcpy(to, &value, 8);
}

static inline uint32_t be32_get(const uint8_t *from)
{
	uint32_t value;
	memcpy(&value, from, 4);
	return __builtin_bswap32(value);
}

static inline uint64_t be64_get(const uint8_t *from)
{
	uint64_t value;
	memcpy(&value, from, 8);
	return __builtin_bswap64(value);
}

static inline uint64_t ordered_i64(int64_t value)
{
	return (uint64_t)value ^ (UINT64_C(1) << 63);
}

static inline int64_t unordered_i64(uint64_t value)
{
	return (int64_t)(value ^ (UINT64_C(1) << 63));
}

#endif
