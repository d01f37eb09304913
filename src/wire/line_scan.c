/* The search for the bytes that mean something in line protocol: 32 at a time, and one at a time.
 *
 * A byte is classified by two look-ups of 16 entries, one with its low half and one with its high
 * half, whose results have a bit in common if the byte is in the set (the way of simdjson: Langdale
 * and Lemire, "Parsing Gigabytes of JSON per Second", 2019). Per set, the bits are handed out by
 * high half, so that no foreign combination of halves gives one:
 *
 *     newline 0a: bit 0      blank 20, quote 22, comma 2c: bit 1
 *     equals  3d: bit 2      backslash 5c: bit 3 */
#include "wire/line.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { IN_KEY = 1 << LINE_SET_KEY, IN_NAME = 1 << LINE_SET_NAME, IN_TEXT = 1 << LINE_SET_TEXT };

static const uint8_t sets_of[256] = {
	['\n'] = IN_KEY | IN_NAME, [' '] = IN_KEY | IN_NAME, ['\\'] = IN_KEY | IN_NAME | IN_TEXT,
	[','] = IN_NAME,           ['='] = IN_NAME,          ['"'] = IN_TEXT,
};

const char *line_scan_plain(const char *p, const char *end, enum line_set set)
{
	while (p < end && !(sets_of[(uint8_t)*p] & 1 << set))
		p++;
	return p;
}

#if defined(__x86_64__)

static const uint8_t low_half[3][16] = {
	[LINE_SET_KEY] = {[0x0] = 2, [0xa] = 1, [0xc] = 8},
	[LINE_SET_NAME] = {[0x0] = 2, [0xa] = 1, [0xc] = 2 | 8, [0xd] = 4},
	[LINE_SET_TEXT] = {[0x2] = 2, [0xc] = 8},
};
static const uint8_t high_half[16] = {[0x0] = 1, [0x2] = 2, [0x3] = 4, [0x5] = 8};

__attribute__((target("avx2"))) const char *line_scan_avx2(const char *p, const char *end,
							   enum line_set set)
{
	const __m256i low =
		_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)low_half[set]));
	const __m256i high =
		_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)high_half));
	const __m256i nibble = _mm256_set1_epi8(0x0f);
	for (; p < end; p += 32) {
		__m256i bytes = _mm256_loadu_si256((const __m256i *)p);
		/* A shuffle gives 0 where the index has its top bit set: bytes from 80 on. */
		__m256i l = _mm256_shuffle_epi8(low, bytes);
		__m256i h = _mm256_shuffle_epi8(
			high, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble));
		__m256i none = _mm256_cmpeq_epi8(_mm256_and_si256(l, h), _mm256_setzero_si256());
		uint32_t found = ~(uint32_t)_mm256_movemask_epi8(none);
		if (found) {
			p += __builtin_ctz(found);
			break;
		}
	}
	return p < end ? p : end;
}

bool line_has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

#else

const char *line_scan_avx2(const char *p, const char *end, enum line_set set)
{
	return line_scan_plain(p, end, set);
}

bool line_has_avx2(void)
{
	return false;
}

#endif
