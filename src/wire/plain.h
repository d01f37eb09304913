/* Eight bytes at a time: which of them a JSON string can hold as they are. */
#ifndef WIRE_PLAIN_H
#define WIRE_PLAIN_H

#include "base/base.h"

/* The first byte from p on that is not plain ASCII text: below 0x20, a quote, a backslash, or
 * beyond 0x7f. */
static inline const char *plain_end(const char *p, const char *end)
{
	const uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
	while (end - p >= 8) {
		uint64_t bytes;
		memcpy(&bytes, p, 8);
		/* A byte's top bit is set in each term where it is 0 after the exclusive or (or
		 * below 0x20); a borrow can only set bits above the first hit, which then do not
		 * count. */
		uint64_t quote = bytes ^ (ones * '"'), slash = bytes ^ (ones * '\\');
		uint64_t hits = ((quote - ones) & ~quote) | ((slash - ones) & ~slash) |
				((bytes - ones * 0x20) & ~bytes) | bytes;
		hits &= tops;
		if (hits)
			return p + (__builtin_ctzll(hits) >> 3);
		p += 8;
	}
	for (; p < end; p++) {
		unsigned char c = (unsigned char)*p;
		if (c < 0x20 || c == '"' || c == '\\' || c >= 0x80)
			break;
	}
	return p;
}

#endif
