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

enum { TOKEN_FILE_MAX_BYTES = 4096 };

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

static int token_take_line(struct slice bytes, const char *path, char text[TOKEN_TEXT_BYTES + 1],
			   struct errbuf *e)
{
	uint64_t id;
	const char *newline = bytes.len ? memchr(bytes.data, '\n', bytes.len) : NULL;
	struct slice line = {bytes.data, newline ? (size_t)(newline - bytes.data) : bytes.len};
	if (!line.len)
		return errbuf_set(e, ERR_INVALID, "%s is empty, or begins with an empty line",
				  path);
	if (!token_read_id(line, &id))
		return errbuf_set(e, ERR_INVALID,
				  "the first line of %s is no token of Granary, which are "
				  "gr_, %d hexadecimal digits, _ and %d more",
				  path, TOKEN_ID_DIGITS, 2 * TOKEN_SECRET_BYTES);
	memcpy(text, line.data, line.len);
	text[line.len] = 0;
	return 0;
}

int token_read_file(const char *path, char text[TOKEN_TEXT_BYTES + 1], struct errbuf *e)
{
	struct buf bytes;
	int err = file_check_secret(files_real(), path, e);
	if (err)
		return err;
	buf_init(&bytes, TOKEN_FILE_MAX_BYTES);
	err = files_real()->read(files_real(), path, TOKEN_FILE_MAX_BYTES, &bytes);
	err = err ? errbuf_set(e, err, "%s cannot be read: %s", path, err_text(err))
		  : token_take_line(buf_slice(&bytes), path, text, e);
	if (bytes.data)
		OPENSSL_cleanse(bytes.data, bytes.len);
	buf_release(&bytes);
	return err;
}
