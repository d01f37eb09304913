/* The arithmetic of the user-based security model, by libcrypto: keys from passwords, message
 * digests, encryption (RFC 3414, 3826, 7860).
 *
 * AES with 192 and 256 bits has no RFC, and two ways to make a key longer than the digest gives:
 * the draft of Blumenthal and others (hash what is there, append), and the one of Reeder as Cisco
 * has it (take what is there for a password). Agents speak one or the other.
 *
 * DES is 3DES with three equal keys, which is the same: OpenSSL 3 has moved single DES into a
 * provider that may be missing, and must be loaded for the whole process.
 *
 * A struct usm_crypto belongs to one thread. */
#ifndef WIRE_USM_CRYPTO_H
#define WIRE_USM_CRYPTO_H

#include "base/base.h"

enum usm_auth {
	USM_AUTH_NONE,
	USM_AUTH_MD5,
	USM_AUTH_SHA1,
	USM_AUTH_SHA224,
	USM_AUTH_SHA256,
	USM_AUTH_SHA384,
	USM_AUTH_SHA512,
	USM_AUTH_COUNT,
};

enum usm_priv {
	USM_PRIV_NONE,
	USM_PRIV_DES,
	USM_PRIV_AES128,
	USM_PRIV_AES192,   /* Blumenthal */
	USM_PRIV_AES256,   /* Blumenthal */
	USM_PRIV_AES192_C, /* Reeder */
	USM_PRIV_AES256_C, /* Reeder */
	USM_PRIV_COUNT,
};

enum {
	USM_KEY_MAX_BYTES = 64,
	USM_MAC_MAX_BYTES = 48,
	USM_SALT_BYTES = 8,
	USM_PASSWORD_MIN_BYTES = 8, /* RFC 3414 section 11.2 */
	USM_PASSWORD_MAX_BYTES = 1024,
	USM_DES_BLOCK_BYTES = 8,
};

/* As net-snmp has them: `SHA-256`, `AES-192-C`. NULL for none. */
const char *usm_auth_name(enum usm_auth auth);
const char *usm_priv_name(enum usm_priv priv);
/* Any case, with or without hyphens; `SHA` is SHA-1, `AES` AES-128. False: no such name. */
bool usm_auth_parse(struct slice name, enum usm_auth *auth) MUST_CHECK;
bool usm_priv_parse(struct slice name, enum usm_priv *priv) MUST_CHECK;

size_t usm_digest_bytes(enum usm_auth auth);
/* How much of the digest a message bears. */
size_t usm_mac_bytes(enum usm_auth auth);

struct usm_key {
	uint8_t bytes[USM_KEY_MAX_BYTES];
	size_t len;
};

struct usm_crypto;

struct usm_crypto *usm_crypto_new(void);
void usm_crypto_free(struct usm_crypto *crypto); /* NULL is allowed */

/* RFC 3414 A.2: hashes 2^20 bytes, which takes milliseconds: once for a password. `password` is
 * not empty. */
void usm_password_key(struct usm_crypto *crypto, enum usm_auth auth, struct slice password,
		      struct usm_key *key);
/* The key for one engine. */
void usm_localize(struct usm_crypto *crypto, enum usm_auth auth, const struct usm_key *key,
		  struct slice engine_id, struct usm_key *localized);
/* As usm_localize, of the length that `priv` wants. Reeder's takes as long as a password. */
void usm_localize_priv(struct usm_crypto *crypto, enum usm_auth auth, enum usm_priv priv,
		       const struct usm_key *key, struct slice engine_id,
		       struct usm_key *localized);

/* Of the pieces one after the other; usm_mac_bytes(auth) bytes. */
void usm_mac(struct usm_crypto *crypto, enum usm_auth auth, const struct usm_key *key,
	     const struct slice *pieces, size_t count, uint8_t mac[USM_MAC_MAX_BYTES]);
/* In a time that does not depend on where they differ. */
bool usm_same(const uint8_t *a, const uint8_t *b, size_t len);

struct usm_cipher {
	enum usm_priv priv;
	const struct usm_key *key; /* localized */
	uint32_t boots, time;      /* of the authoritative engine */
	uint8_t salt[USM_SALT_BYTES];
};

/* In place or into `out`; DES wants multiples of 8 bytes. */
void usm_encrypt(struct usm_crypto *crypto, const struct usm_cipher *cipher, const uint8_t *in,
		 size_t len, uint8_t *out);
void usm_decrypt(struct usm_crypto *crypto, const struct usm_cipher *cipher, const uint8_t *in,
		 size_t len, uint8_t *out);

/* For salts and message ids. */
void usm_random(void *bytes, size_t len);

#endif
