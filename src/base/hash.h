/* Checksums and hashes, each by its published name. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/base.h"

/* CRC-32C (Castagnoli, RFC 3720 B.4): crc32c(0, "123456789") = 0xe3069283. To go on over more
 * bytes, pass the last result as `crc`. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t len);

struct hash128 {
	uint64_t low, high;
};

/* XXH3, 64 and 128 bits. */
uint64_t hash64(const void *bytes, size_t len, uint64_t seed);
struct hash128 hash128(const void *bytes, size_t len, uint64_t seed);

/* Murmur 3, the 32-bit one of x86 (Appleby), in pieces. */
struct murmur3_32 {
	uint32_t hash, tail; /* tail: bytes that are no whole word yet, the first lowest */
	uint64_t len;
};
void murmur3_32_init(struct murmur3_32 *m, uint32_t seed);
void murmur3_32_add(struct murmur3_32 *m, const void *bytes, size_t len);
uint32_t murmur3_32_end(const struct murmur3_32 *m);

#endif
