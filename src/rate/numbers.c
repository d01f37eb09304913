#include "rate/numbers.h"

enum { NUMBERS_ZERO, NUMBERS_SAME, NUMBERS_SIZED };

static bool are_same(const uint64_t *numbers, size_t count)
{
	uint64_t others = 0;

	for (size_t i = 1; i < count; i++)
		others |= numbers[i] ^ numbers[0];
	return !others;
}

/* Eight bytes are stored for each, of which the next one overwrites what is too much. */
static uint8_t *put_sized(uint8_t *to, const uint64_t *numbers, size_t count)
{
	uint8_t *nibbles = to;

	memset(nibbles, 0, (count + 1) / 2);
	to += (count + 1) / 2;
	for (size_t i = 0; i < count; i++) {
		unsigned bytes = numbers[i] ? (71 - (unsigned)__builtin_clzll(numbers[i])) / 8 : 0;
		nibbles[i / 2] |= (uint8_t)(bytes << (i % 2 * 4));
		memcpy(to, &numbers[i], sizeof(numbers[i]));
		to += bytes;
	}
	return to;
}

uint8_t *numbers_put(uint8_t *to, const uint64_t *numbers, size_t count)
{
	ASSERT(count >= 1 && count <= NUMBERS_MAX);
	if (!are_same(numbers, count)) {
		*to++ = NUMBERS_SIZED;
		return put_sized(to, numbers, count);
	}
	*to++ = numbers[0] ? NUMBERS_SAME : NUMBERS_ZERO;
	return numbers[0] ? to + varint_put(to, numbers[0]) : to;
}

/* Of nibbles up to 8 the sum; SIZE_MAX if one is greater. */
static size_t sum_of(const uint8_t *nibbles, size_t count)
{
	size_t sum = 0;
	unsigned high = 0;

	for (size_t i = 0; i < count; i++) {
		unsigned bytes = nibbles[i / 2] >> (i % 2 * 4) & 0xf;
		sum += bytes;
		high |= bytes > sizeof(uint64_t);
	}
	return high ? SIZE_MAX : sum;
}

static inline uint64_t low_bytes(uint64_t number, unsigned bytes)
{
	return bytes == sizeof(number) ? number : number & ((UINT64_C(1) << 8 * bytes) - 1);
}

/* Eight bytes are loaded for each, as long as there are so many. */
static void take_sized(struct cursor *from, uint64_t *numbers, size_t count)
{
	const uint8_t *nibbles = cursor_take(from, (count + 1) / 2);
	size_t sum = nibbles ? sum_of(nibbles, count) : SIZE_MAX;
	const uint8_t *p = cursor_take(from, sum), *end = from->end;

	for (size_t i = 0; p && i < count; i++) {
		unsigned bytes = nibbles[i / 2] >> (i % 2 * 4) & 0xf;
		uint64_t number = 0;
		if (LIKELY(end - p >= (ptrdiff_t)sizeof(number)))
			memcpy(&number, p, sizeof(number));
		else
			memcpy(&number, p, bytes);
		numbers[i] = low_bytes(number, bytes);
		p += bytes;
	}
}

void numbers_take(struct cursor *from, uint64_t *numbers, size_t count)
{
	uint8_t form = cursor_u8(from);
	uint64_t same = form == NUMBERS_SAME ? cursor_varint(from) : 0;

	ASSERT(count >= 1 && count <= NUMBERS_MAX);
	if (form > NUMBERS_SIZED)
		from->bad = true;
	for (size_t i = 0; i < count; i++)
		numbers[i] = same;
	if (form == NUMBERS_SIZED)
		take_sized(from, numbers, count);
}
