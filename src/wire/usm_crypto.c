#include "wire/usm_crypto.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <strings.h>

#include "base/cursor.h"
#include "base/mem.h"

enum {
	PASSWORD_EXPANDED_BYTES = 1 << 20,
	PASSWORD_BLOCK_BYTES = 64 << 10,
	IV_MAX_BYTES = 16,
};

struct usm_crypto {
	EVP_MD_CTX *digest;
	EVP_MD *digests[USM_AUTH_COUNT];     /* NULL until used */
	EVP_MAC_CTX *macs[USM_AUTH_COUNT];   /* the same */
	EVP_CIPHER *ciphers[USM_PRIV_COUNT]; /* the same */
	EVP_CIPHER_CTX *cipher;
	EVP_MAC *hmac;
};

static const struct {
	const char *name;
	const char *openssl;
	size_t digest_bytes, mac_bytes;
} auths[USM_AUTH_COUNT] = {
	[USM_AUTH_MD5] = {"MD5", "MD5", 16, 12},
	[USM_AUTH_SHA1] = {"SHA", "SHA1", 20, 12},
	/* RFC 7860 section 4.2 */
	[USM_AUTH_SHA224] = {"SHA-224", "SHA2-224", 28, 16},
	[USM_AUTH_SHA256] = {"SHA-256", "SHA2-256", 32, 24},
	[USM_AUTH_SHA384] = {"SHA-384", "SHA2-384", 48, 32},
	[USM_AUTH_SHA512] = {"SHA-512", "SHA2-512", 64, 48},
};

static const struct {
	const char *name;
	const char *openssl;
	size_t key_bytes; /* of what is localized; DES: 8 of them make the IV */
	bool reeder;
} privs[USM_PRIV_COUNT] = {
	[USM_PRIV_DES] = {"DES", "DES-EDE3-CBC", 16, false},
	[USM_PRIV_AES128] = {"AES", "AES-128-CFB", 16, false},
	[USM_PRIV_AES192] = {"AES-192", "AES-192-CFB", 24, false},
	[USM_PRIV_AES256] = {"AES-256", "AES-256-CFB", 32, false},
	[USM_PRIV_AES192_C] = {"AES-192-C", "AES-192-CFB", 24, true},
	[USM_PRIV_AES256_C] = {"AES-256-C", "AES-256-CFB", 32, true},
};

/* ---- Names ----------------------------------------------------------------------------------- */

const char *usm_auth_name(enum usm_auth auth)
{
	return auths[auth].name;
}

const char *usm_priv_name(enum usm_priv priv)
{
	return privs[priv].name;
}

/* Letters of any case and digits; hyphens say nothing. */
static bool usm_crypto_same_name(struct slice a, const char *b)
{
	size_t i = 0;
	for (; i < a.len; i++) {
		if (a.data[i] == '-')
			continue;
		while (*b == '-')
			b++;
		if (!*b || strncasecmp(a.data + i, b++, 1) != 0)
			return false;
	}
	return *b == 0;
}

bool usm_auth_parse(struct slice name, enum usm_auth *auth)
{
	if (usm_crypto_same_name(name, "SHA-1")) {
		*auth = USM_AUTH_SHA1;
		return true;
	}
	for (int i = USM_AUTH_NONE + 1; i < USM_AUTH_COUNT; i++) {
		*auth = (enum usm_auth)i;
		if (usm_crypto_same_name(name, auths[i].name))
			return true;
	}
	return false;
}

bool usm_priv_parse(struct slice name, enum usm_priv *priv)
{
	if (usm_crypto_same_name(name, "AES-128")) {
		*priv = USM_PRIV_AES128;
		return true;
	}
	for (int i = USM_PRIV_NONE + 1; i < USM_PRIV_COUNT; i++) {
		*priv = (enum usm_priv)i;
		if (usm_crypto_same_name(name, privs[i].name))
			return true;
	}
	return false;
}

size_t usm_digest_bytes(enum usm_auth auth)
{
	return auths[auth].digest_bytes;
}

size_t usm_mac_bytes(enum usm_auth auth)
{
	return auths[auth].mac_bytes;
}

/* ---- Contexts -------------------------------------------------------------------------------- */

/* libcrypto fails here only for want of memory, or when its algorithms are not installed: neither
 * comes from input. */
struct usm_crypto *usm_crypto_new(void)
{
	struct usm_crypto *crypto = mem_zalloc(sizeof(*crypto));
	crypto->digest = EVP_MD_CTX_new();
	crypto->cipher = EVP_CIPHER_CTX_new();
	crypto->hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	ASSERT(crypto->digest && crypto->cipher && crypto->hmac);
	return crypto;
}

void usm_crypto_free(struct usm_crypto *crypto)
{
	if (!crypto)
		return;
	for (int i = 0; i < USM_AUTH_COUNT; i++) {
		EVP_MD_free(crypto->digests[i]);
		EVP_MAC_CTX_free(crypto->macs[i]);
	}
	for (int i = 0; i < USM_PRIV_COUNT; i++)
		EVP_CIPHER_free(crypto->ciphers[i]);
	EVP_MAC_free(crypto->hmac);
	EVP_CIPHER_CTX_free(crypto->cipher);
	EVP_MD_CTX_free(crypto->digest);
	mem_free(crypto);
}

static const EVP_MD *digest_of(struct usm_crypto *crypto, enum usm_auth auth)
{
	if (!crypto->digests[auth])
		crypto->digests[auth] = EVP_MD_fetch(NULL, auths[auth].openssl, NULL);
	ASSERT(crypto->digests[auth]);
	return crypto->digests[auth];
}

static const EVP_CIPHER *cipher_of(struct usm_crypto *crypto, enum usm_priv priv)
{
	if (!crypto->ciphers[priv])
		crypto->ciphers[priv] = EVP_CIPHER_fetch(NULL, privs[priv].openssl, NULL);
	ASSERT(crypto->ciphers[priv]);
	return crypto->ciphers[priv];
}

static EVP_MAC_CTX *mac_of(struct usm_crypto *crypto, enum usm_auth auth)
{
	char name[16];
	snprintf(name, sizeof(name), "%s", auths[auth].openssl);
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
		OSSL_PARAM_construct_end(),
	};
	if (!crypto->macs[auth]) {
		crypto->macs[auth] = EVP_MAC_CTX_new(crypto->hmac);
		ASSERT(crypto->macs[auth] && EVP_MAC_CTX_set_params(crypto->macs[auth], params));
	}
	return crypto->macs[auth];
}

static void digest(struct usm_crypto *crypto, enum usm_auth auth, const struct slice *pieces,
		   size_t count, struct usm_key *out)
{
	unsigned len = 0;
	ASSERT(EVP_DigestInit_ex2(crypto->digest, digest_of(crypto, auth), NULL));
	for (size_t i = 0; i < count; i++)
		ASSERT(EVP_DigestUpdate(crypto->digest, pieces[i].data, pieces[i].len));
	ASSERT(EVP_DigestFinal_ex(crypto->digest, out->bytes, &len));
	out->len = len;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

void usm_password_key(struct usm_crypto *crypto, enum usm_auth auth, struct slice password,
		      struct usm_key *key)
{
	ASSERT(password.len);
	/* Of the endless repetition of the password a window as long as both lets a whole block
	 * begin anywhere in it. */
	size_t window_bytes = PASSWORD_BLOCK_BYTES + password.len;
	char *window = mem_alloc(window_bytes);
	struct slice pieces[PASSWORD_EXPANDED_BYTES / PASSWORD_BLOCK_BYTES];
	for (size_t i = 0; i < window_bytes; i++)
		window[i] = password.data[i % password.len];
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
		pieces[i] = (struct slice){window + i * PASSWORD_BLOCK_BYTES % password.len,
					   PASSWORD_BLOCK_BYTES};
	digest(crypto, auth, pieces, ARRAY_LEN(pieces), key);
	OPENSSL_cleanse(window, window_bytes);
	mem_free(window);
}

static struct slice key_slice(const struct usm_key *key)
{
	return (struct slice){(const char *)key->bytes, key->len};
}

void usm_localize(struct usm_crypto *crypto, enum usm_auth auth, const struct usm_key *key,
		  struct slice engine_id, struct usm_key *localized)
{
	const struct slice pieces[] = {key_slice(key), engine_id, key_slice(key)};
	digest(crypto, auth, pieces, ARRAY_LEN(pieces), localized);
}

/* draft-blumenthal-aes-usm-04 section 3.1.2.1, and draft-reeder-snmpv3-usm-3desede-00 section 2.1:
 * one more digest after what is there. */
static void extend(struct usm_crypto *crypto, enum usm_auth auth, bool reeder,
		   struct slice engine_id, struct usm_key *key)
{
	struct usm_key more, more_local;
	const struct slice so_far = key_slice(key);
	if (reeder) {
		usm_password_key(crypto, auth, so_far, &more);
		usm_localize(crypto, auth, &more, engine_id, &more_local);
	} else {
		digest(crypto, auth, &so_far, 1, &more_local);
	}
	size_t room = sizeof(key->bytes) - key->len;
	size_t n = more_local.len < room ? more_local.len : room;
	memcpy(key->bytes + key->len, more_local.bytes, n);
	key->len += n;
	OPENSSL_cleanse(&more, sizeof(more));
	OPENSSL_cleanse(&more_local, sizeof(more_local));
}

void usm_localize_priv(struct usm_crypto *crypto, enum usm_auth auth, enum usm_priv priv,
		       const struct usm_key *key, struct slice engine_id, struct usm_key *localized)
{
	usm_localize(crypto, auth, key, engine_id, localized);
	while (localized->len < privs[priv].key_bytes)
		extend(crypto, auth, privs[priv].reeder, engine_id, localized);
	localized->len = privs[priv].key_bytes;
}

/* ---- Messages -------------------------------------------------------------------------------- */

void usm_mac(struct usm_crypto *crypto, enum usm_auth auth, const struct usm_key *key,
	     const struct slice *pieces, size_t count, uint8_t mac[USM_MAC_MAX_BYTES])
{
	uint8_t whole[EVP_MAX_MD_SIZE];
	size_t len = 0;
	EVP_MAC_CTX *context = mac_of(crypto, auth);
	ASSERT(EVP_MAC_init(context, key->bytes, key->len, NULL));
	for (size_t i = 0; i < count; i++)
		ASSERT(EVP_MAC_update(context, (const uint8_t *)pieces[i].data, pieces[i].len));
	ASSERT(EVP_MAC_final(context, whole, &len, sizeof(whole)));
	ASSERT(len >= auths[auth].mac_bytes);
	memcpy(mac, whole, auths[auth].mac_bytes);
}

bool usm_same(const uint8_t *a, const uint8_t *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}

static void crypt(struct usm_crypto *crypto, const struct usm_cipher *cipher, bool encrypt,
		  const uint8_t *in, size_t len, uint8_t *out)
{
	uint8_t key[USM_KEY_MAX_BYTES], iv[IV_MAX_BYTES];
	int n = 0;
	memcpy(key, cipher->key->bytes, sizeof(key));
	if (cipher->priv == USM_PRIV_DES) {
		ASSERT(len % USM_DES_BLOCK_BYTES == 0);
		memcpy(key + 8, key, 8);
		memcpy(key + 16, key, 8);
		/* RFC 3414 section 8.1.1.1: the other half of the key, xored with the salt. */
		for (size_t i = 0; i < USM_SALT_BYTES; i++)
			iv[i] = cipher->key->bytes[8 + i] ^ cipher->salt[i];
	} else {
		/* RFC 3826 section 3.1.2.1 */
		be32_put(iv, cipher->boots);
		be32_put(iv + 4, cipher->time);
		memcpy(iv + 8, cipher->salt, USM_SALT_BYTES);
	}
	ASSERT(EVP_CipherInit_ex2(crypto->cipher, cipher_of(crypto, cipher->priv), key, iv, encrypt,
				  NULL));
	EVP_CIPHER_CTX_set_padding(crypto->cipher, 0);
	ASSERT(EVP_CipherUpdate(crypto->cipher, out, &n, in, (int)len) && (size_t)n == len);
	OPENSSL_cleanse(key, sizeof(key));
}

void usm_encrypt(struct usm_crypto *crypto, const struct usm_cipher *cipher, const uint8_t *in,
		 size_t len, uint8_t *out)
{
	crypt(crypto, cipher, true, in, len, out);
}

void usm_decrypt(struct usm_crypto *crypto, const struct usm_cipher *cipher, const uint8_t *in,
		 size_t len, uint8_t *out)
{
	crypt(crypto, cipher, false, in, len, out);
}

void usm_random(void *bytes, size_t len)
{
	ASSERT(RAND_bytes(bytes, (int)len) == 1);
}
