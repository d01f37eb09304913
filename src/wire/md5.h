/* MD5 (RFC 1321), by libcrypto: for names that other programs make of it. It protects nothing.
 *
 * Pure, any thread. */
#ifndef WIRE_MD5_H
#define WIRE_MD5_H

#include "base/base.h"

enum { MD5_HEX_BYTES = 32 };

/* The MD5 of the pieces one after the other, in lower-case hexadecimal digits, without a closing
 * zero.
 * ERR_NOT_FOUND: libcrypto has no MD5, as where an administrator allows FIPS 140 alone. */
int md5_hex(const struct slice *pieces, size_t count, char hex[MD5_HEX_BYTES]) MUST_CHECK;

#endif
