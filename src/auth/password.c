#include "auth/password.h"

#include <crypt.h>
#include <errno.h>
#include <openssl/crypto.h>

#include "auth/token.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"

#define PASSWORD_METHOD "$y$" /* yescrypt */

_Static_assert((int)PASSWORD_HASH_BYTES == (int)CRYPT_OUTPUT_SIZE, "what crypt(3) writes");
_Static_assert((int)PASSWORD_MAX_BYTES <= (int)CRYPT_MAX_PASSPHRASE_SIZE, "what crypt(3) reads");

int password_check(struct slice password, struct errbuf *e)
{
	uint64_t id;
	if (!password.len)
		return errbuf_set(e, ERR_INVALID, "the password is empty");
	if (password.len < PASSWORD_MIN_BYTES)
		return errbuf_set(e, ERR_INVALID, "the password has fewer than %d bytes",
				  PASSWORD_MIN_BYTES);
	if (password.len > PASSWORD_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "the password has more than %d bytes",
				  PASSWORD_MAX_BYTES);
	for (size_t i = 0; i < password.len; i++)
		if ((unsigned char)password.data[i] < ' ' || password.data[i] == 0x7f)
			return errbuf_set(e, ERR_INVALID,
					  "the password has a control character, which is byte "
					  "%d at place %zu",
					  password.data[i], i + 1);
	if (!utf8_is_valid(password))
		return errbuf_set(e, ERR_INVALID, "the password is not UTF-8");
	if (secret_is_placeholder(password))
		return errbuf_set(
			e, ERR_INVALID,
			"the password is a word that stands where a password belongs, and "
			"is none");
	if (token_read_id(password, &id))
		return errbuf_set(e, ERR_INVALID,
				  "the password looks like a token, and would be taken for one");
	return 0;
}

/* ---- Hashes ---------------------------------------------------------------------------------- */

bool password_is_hash(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return false;
	return text.len < PASSWORD_HASH_BYTES && slice_starts_with(text, SLICE(PASSWORD_METHOD));
}

/* The hash of `password` by the method, the cost and the salt of `setting`, which may be a hash. */
static int password_crypt(struct slice password, const char *setting,
			  char hash[PASSWORD_HASH_BYTES])
{
	char text[PASSWORD_MAX_BYTES + 1];
	ASSERT(password.len <= PASSWORD_MAX_BYTES);
	struct crypt_data *data = mem_zalloc(sizeof(*data)); /* 32 KiB */
	memcpy(text, password.data, password.len);
	text[password.len] = 0;
	const char *made = crypt_r(text, setting, data);
	/* It fails for want of memory, and writes what is no hash. */
	int err = made && *made != '*' ? 0 : -ENOMEM;
	if (!err)
		snprintf(hash, PASSWORD_HASH_BYTES, "%s", made);
	OPENSSL_cleanse(text, sizeof(text));
	OPENSSL_cleanse(data, sizeof(*data));
	mem_free(data);
	return err;
}

void password_hash_of_nobody(char hash[PASSWORD_HASH_BYTES])
{
	char *setting = crypt_gensalt_rn(PASSWORD_METHOD, 0, NULL, 0, hash, PASSWORD_HASH_BYTES);
	ASSERT(setting); /* the system has random bytes */
}

int password_hash(struct slice password, char hash[PASSWORD_HASH_BYTES])
{
	char setting[PASSWORD_HASH_BYTES];
	password_hash_of_nobody(setting);
	return password_crypt(password, setting, hash);
}

int password_compare(struct slice password, const char *hash, bool *is)
{
	char made[PASSWORD_HASH_BYTES] = "";
	int err = password_crypt(password, hash, made);
	size_t len = strlen(made);
	*is = !err && len == strlen(hash) && CRYPTO_memcmp(made, hash, len) == 0;
	return err;
}
