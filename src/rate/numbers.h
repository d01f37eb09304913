/* Some numbers that belong together and are mostly alike, as bytes: of the states of counters that
 * were polled together. Private to rate/.
 *
 *  u8 0: all are 0
 *  u8 1: all are the same; varint
 *  u8 2: a nibble for each, low first: its bytes, 0 to 8; then they, without zero bytes at their
 * end
 */
#ifndef RATE_NUMBERS_H
#define RATE_NUMBERS_H

#include "base/cursor.h"

enum { NUMBERS_MAX = 64 };

/* What numbers_put takes at most, with what it writes beyond its end. */
static inline size_t numbers_room(size_t count)
{
	return 1 + (count + 1) / 2 + 8 * count + 8;
}

/* 1 to NUMBERS_MAX; where they end. */
uint8_t *numbers_put(uint8_t *to, const uint64_t *numbers, size_t count);

/* So many; bad, and zeros, where nobody wrote that. True: all are the same, and only the first one
 * is given. */
bool numbers_take(struct cursor *from, uint64_t *numbers, size_t count);

#endif
