#include "rate/numbers.h"

enum { NUMBERS_ZERO, NUMBERS_SAME, NUMBERS_SIZED };

static bool are_same(const uint64_t *numbers, size_t count)
{
	uint64_t others = 0;
	for (size_t i = 1; i < count; i++)
		others |= numbers[i] ^ numbers[0];
	return !others;
}

static inline unsigned numbers_bytes_of(uint64_t number)
{
	return (71 - (unsigned)__builtin_clzll(number | 1)) / 8 - !number; /* without a branch */
}

/* Eight bytes are stored for each, of which the next one overwrites what is too much. */
static uint8_t *numbers_put_sized(uint8_t *to, const uint64_t *numbers, size_t count)
{
	uint8_t *nibbles = to;
	to += (count + 1) / 2;
	for (size_t i = 0; i < count; i += 2) {
		uint64_t second = i + 1 < count ? numbers[i + 1] : 0;
		unsigned low = numbers_bytes_of(numbers[i]), high = numbers_bytes_of(second);
		*nibbles++ = (uint8_t)(low | high << 4);
		memcpy(to, &numbers[i], sizeof(second));
		memcpy(to + low, &second, sizeof(second));
		to += low + high;
	}
	return to;
}

uint8_t *numbers_put(uint8_t *to, const uint64_t *numbers, size_t count)
{
	ASSERT(count >= 1 && count <= NUMBERS_MAX);
	if (!are_same(numbers, count)) {
		*to++ = NUMBERS_SIZED;
		return numbers_put_sized(to, numbers, count);
	}
	*to++ = numbers[0] ? NUMBERS_SAME : NUMBERS_ZERO;
	return numbers[0] ? to + varint_put(to, numbers[0]) : to;
}

/* Of nibbles up to 8 the sum; SIZE_MAX if one is greater. Behind an odd number is none. */
static size_t numbers_sum_of(const uint8_t *nibbles, size_t count)
{
	size_t sum = 0;
	unsigned high = 0;
	for (size_t i = 0; i < (count + 1) / 2; i++) {
		unsigned both = nibbles[i];
		if (i == count / 2)
			both &= 0xf;
		sum += (both & 0xf) + (both >> 4);
		/* Beside the bit of 8 another one. */
		high |= both >> 3 & (both | both >> 1 | both >> 2) & 0x11;
	}
	return high ? SIZE_MAX : sum;
}

/* As many bytes at `p` as the nibbles say, and eight more that may be read. */
static void get_sized(const uint8_t *nibbles, const uint8_t *p, uint64_t *numbers, size_t count)
{
	static const uint64_t masks[] = {0,          0xff,         0xffff,         0xffffff,
					 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
					 UINT64_MAX};
	for (size_t i = 0; i < count; i++) {
		unsigned bytes = nibbles[i / 2] >> (i % 2 * 4) & 0xf;
		memcpy(&numbers[i], p, sizeof(*numbers));
		numbers[i] &= masks[bytes];
		p += bytes;
	}
}

static void take_sized(struct cursor *from, uint64_t *numbers, size_t count)
{
	const uint8_t *nibbles = cursor_take(from, (count + 1) / 2);
	size_t sum = nibbles ? numbers_sum_of(nibbles, count) : SIZE_MAX;
	const uint8_t *p = cursor_take(from, sum);
	uint8_t last[8 * (NUMBERS_MAX + 1)];
	if (!p) {
		memset(numbers, 0, count * sizeof(*numbers));
		return;
	}
	if (UNLIKELY(cursor_left(from) < 8)) {
		memcpy(last, p, sum);
		memset(last + sum, 0, 8);
		p = last;
	}
	get_sized(nibbles, p, numbers, count);
}

bool numbers_take(struct cursor *from, uint64_t *numbers, size_t count)
{
	uint8_t form = cursor_u8(from);
	ASSERT(count >= 1 && count <= NUMBERS_MAX);
	if (form == NUMBERS_SIZED) {
		take_sized(from, numbers, count);
		return false;
	}
	from->bad |= form > NUMBERS_SIZED;
	*numbers = form == NUMBERS_SAME ? cursor_varint(from) : 0;
	return true;
}
