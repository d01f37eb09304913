/* A token: `gr_ID_SECRET`, ID being 16 hexadecimal digits by which its credential is found, SECRET
 * 64 of them, 32 random bytes. Its SHA-256 is what is kept. */
#ifndef AUTH_TOKEN_H
#define AUTH_TOKEN_H

#include "auth/credential.h"

enum {
	TOKEN_ID_DIGITS = 16,
	TOKEN_SECRET_BYTES = 32,
	TOKEN_TEXT_BYTES = 3 + TOKEN_ID_DIGITS + 1 + 2 * TOKEN_SECRET_BYTES,
};

/* A new one, with a zero behind it. */
void token_make(uint64_t *id, char text[TOKEN_TEXT_BYTES + 1]);
/* False: this is no token. */
bool token_read_id(struct slice text, uint64_t *id) MUST_CHECK;
void token_hash(struct slice text, uint8_t hash[CREDENTIAL_HASH_BYTES]);
/* Takes as long for one that is wrong as for one that is right. */
bool token_is(const struct credential *credential, struct slice text) MUST_CHECK;

/* The first line of a file, or all of it without its newline: a token, that nobody but its owner
 * may read. ERR_INVALID, or a system error, with a sentence that names the file. */
int token_read_file(const char *path, char text[TOKEN_TEXT_BYTES + 1], struct errbuf *e) MUST_CHECK;

#endif
