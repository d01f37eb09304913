#include "auth/token.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdio.h>

#include "base/file.h"
#include "wire/number.h"

#define TOKEN_BEGINS "gr_"

enum { TOKEN_LINE_MAX_BYTES = 256 };

void token_make(uint64_t *id, char text[TOKEN_TEXT_BYTES + 1])
{
	unsigned char secret[TOKEN_SECRET_BYTES];
	int ok = RAND_bytes((unsigned char *)id, sizeof(*id)) == 1 &&
		 RAND_bytes(secret, sizeof(secret)) == 1;
	ASSERT(ok); /* the system has random bytes */
	int len = snprintf(text, TOKEN_TEXT_BYTES + 1, TOKEN_BEGINS "%016" PRIx64 "_", *id);
	for (size_t i = 0; i < sizeof(secret); i++)
		len += snprintf(text + len, 3, "%02x", secret[i]);
	OPENSSL_cleanse(secret, sizeof(secret));
}

bool token_read_id(struct slice text, uint64_t *id)
{
	const size_t begin = sizeof(TOKEN_BEGINS) - 1, digits_end = begin + TOKEN_ID_DIGITS;
	return text.len == TOKEN_TEXT_BYTES && slice_starts_with(text, SLICE(TOKEN_BEGINS)) &&
	       text.data[digits_end] == '_' &&
	       number_parse_hex64(text.data + begin, text.data + digits_end, id) == 0;
}

/* ---- Hashes ---------------------------------------------------------------------------------- */

static EVP_MD *token_sha256;

static void token_fetch_sha256(void)
{
	token_sha256 = EVP_MD_fetch(NULL, "SHA2-256", NULL);
	ASSERT(token_sha256);
}

/* The algorithm is looked for once: that takes longer than a hash. */
void token_hash(struct slice text, uint8_t hash[CREDENTIAL_HASH_BYTES])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, token_fetch_sha256);
	int ok = EVP_Digest(text.data, text.len, hash, NULL, token_sha256, NULL);
	ASSERT(ok == 1);
}

bool token_is(const struct credential *credential, struct slice text)
{
	uint8_t hash[CREDENTIAL_HASH_BYTES];
	token_hash(text, hash);
	return CRYPTO_memcmp(hash, credential->hash, sizeof(hash)) == 0;
}

/* ---- Files ----------------------------------------------------------------------------------- */

int token_read_file(const char *path, char text[TOKEN_TEXT_BYTES + 1], struct errbuf *e)
{
	char line[TOKEN_LINE_MAX_BYTES];
	uint64_t id;
	int err = file_read_secret(files_real(), path, line, sizeof(line), e);
	if (!err && token_read_id(slice_of(line), &id))
		snprintf(text, TOKEN_TEXT_BYTES + 1, "%s", line);
	else if (!err)
		err = errbuf_set(e, ERR_INVALID,
				 "the first line of %s is no token of Granary; a token has "
				 "gr_, %d hexadecimal digits, _ and %d more digits",
				 path, TOKEN_ID_DIGITS, 2 * TOKEN_SECRET_BYTES);
	OPENSSL_cleanse(line, sizeof(line));
	return err;
}
