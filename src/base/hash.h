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

#endif
