#define BASE_MAY_MALLOC
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint32_t crc_table[256];

static void hash_make_table(void)
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
/* The instruction takes one word in a cycle but gives its result three cycles later: so three
 * stretches of a buffer are worked on in turn and put together, a crc being linear: that of what
 * follows is the crc moved on over as many zero bytes, xor its own from 0. */
enum { STRETCH_BYTES = 256 };

static uint32_t crc_moved[4][256]; /* each byte of a crc, moved on over a stretch of zeros */

static void make_moved(void)
{
	uint32_t bit_moved[32];
	for (int bit = 0; bit < 32; bit++) {
		uint32_t crc = UINT32_C(1) << bit;
		for (int i = 0; i < STRETCH_BYTES; i++)
			crc = (crc >> 8) ^ crc_table[crc & 0xff];
		bit_moved[bit] = crc;
	}
	for (int byte = 0; byte < 4; byte++) {
		for (uint32_t value = 0; value < 256; value++) {
			crc_moved[byte][value] = 0;
			for (int bit = 0; bit < 8; bit++)
				crc_moved[byte][value] ^=
					value >> bit & 1 ? bit_moved[8 * byte + bit] : 0;
		}
	}
}

static uint32_t hash_move_on(uint32_t crc)
{
	return crc_moved[0][crc & 0xff] ^ crc_moved[1][crc >> 8 & 0xff] ^
	       crc_moved[2][crc >> 16 & 0xff] ^ crc_moved[3][crc >> 24];
}

static inline uint64_t hash_load64(const uint8_t *p)
{
	uint64_t word;
	memcpy(&word, p, 8);
	return word;
}

__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const uint8_t *p,
							    size_t len)
{
	for (; len >= 3 * STRETCH_BYTES; p += 3 * STRETCH_BYTES, len -= 3 * STRETCH_BYTES) {
		uint64_t a = crc, b = 0, c = 0;
		for (size_t i = 0; i < STRETCH_BYTES; i += 8) {
			a = __builtin_ia32_crc32di(a, hash_load64(p + i));
			b = __builtin_ia32_crc32di(b, hash_load64(p + STRETCH_BYTES + i));
			c = __builtin_ia32_crc32di(c, hash_load64(p + 2 * STRETCH_BYTES + i));
		}
		crc = hash_move_on(hash_move_on((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
	}
	uint64_t wide = crc;
	for (; len >= 8; p += 8, len -= 8)
		wide = __builtin_ia32_crc32di(wide, hash_load64(p));
	crc = (uint32_t)wide;
	while (len--)
		crc = __builtin_ia32_crc32qi(crc, *p++);
	return crc;
}
#endif

static uint32_t (*crc_update)(uint32_t crc, const uint8_t *p, size_t len);

__attribute__((constructor)) static void hash_choose(void)
{
	hash_make_table();
	crc_update = crc_portable;
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2")) {
		make_moved();
		crc_update = crc_sse42;
	}
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

/* ---- Murmur 3 ------------------------------------------------------------------------------- */

static uint32_t hash_rotate(uint32_t x, int by)
{
	return x << by | x >> (32 - by);
}

static uint32_t scrambled(uint32_t word)
{
	return hash_rotate(word * UINT32_C(0xcc9e2d51), 15) * UINT32_C(0x1b873593);
}

void murmur3_32_init(struct murmur3_32 *m, uint32_t seed)
{
	*m = (struct murmur3_32){.hash = seed};
}

static void add_word(struct murmur3_32 *m, uint32_t word)
{
	m->hash = hash_rotate(m->hash ^ scrambled(word), 13) * 5 + UINT32_C(0xe6546b64);
}

static void add_byte(struct murmur3_32 *m, uint8_t byte)
{
	m->tail |= (uint32_t)byte << (m->len % 4 * 8);
	if (++m->len % 4)
		return;
	add_word(m, m->tail);
	m->tail = 0;
}

void murmur3_32_add(struct murmur3_32 *m, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	for (; len && m->len % 4; len--)
		add_byte(m, *p++);
	for (; len >= 4; len -= 4, p += 4) {
		uint32_t word;
		memcpy(&word, p, 4);
		add_word(m, word);
		m->len += 4;
	}
	for (; len; len--)
		add_byte(m, *p++);
}

uint32_t murmur3_32_end(const struct murmur3_32 *m)
{
	uint32_t h = m->hash ^ scrambled(m->tail);
	h ^= (uint32_t)m->len;
	h = (h ^ h >> 16) * UINT32_C(0x85ebca6b);
	h = (h ^ h >> 13) * UINT32_C(0xc2b2ae35);
	return h ^ h >> 16;
}
