#define BASE_MAY_MALLOC
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint32_t crc_table[256];

static void make_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
		crc_table[i] = crc;
	}
}

static uint32_t crc_portable(uint32_t crc, const uint8_t *p, size_t len)
{
	while (len--)
		crc = (crc >> 8) ^ crc_table[(crc ^ *p++) & 0xff];
	return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const uint8_t *p,
							    size_t len)
{
	uint64_t wide = crc;
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t word;
		memcpy(&word, p, 8);
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	while (len--)
		crc = __builtin_ia32_crc32qi(crc, *p++);
	return crc;
}
#endif

static uint32_t (*crc_update)(uint32_t crc, const uint8_t *p, size_t len);

__attribute__((constructor)) static void choose(void)
{
	make_table();
	crc_update = crc_portable;
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2"))
		crc_update = crc_sse42;
#endif
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t len)
{
	return ~crc_update(~crc, bytes, len);
}

uint64_t hash64(const void *bytes, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(bytes, len, seed);
}

struct hash128 hash128(const void *bytes, size_t len, uint64_t seed)
{
	XXH128_hash_t h = XXH3_128bits_withSeed(bytes, len, seed);
	return (struct hash128){h.low64, h.high64};
}
