/* A session: what a browser has in a cookie instead of a credential. It says of which credential it
 * is, as that was when the session began, and until when; a key of the store signs it. So there is
 * no table to fill; it outlives a restart, and ends with its credential, or with a new key.
 *
 *     version   u8    1
 *     id        u64   of the credential
 *     generation u64  of the credential
 *     begun     i64   ms since the epoch
 *     ends      i64   ms since the epoch
 *     signature 32    HMAC-SHA256 of what stands in front of it
 *
 * as hexadecimal digits; numbers are little-endian. */
#ifndef AUTH_SESSION_H
#define AUTH_SESSION_H

#include "base/base.h"

enum {
	SESSION_KEY_BYTES = 32,
	SESSION_SIGNED_BYTES = 1 + 4 * 8,
	SESSION_BYTES = SESSION_SIGNED_BYTES + 32,
	SESSION_TEXT_BYTES = 2 * SESSION_BYTES,
	SESSION_IDLE_MS = 12 * 60 * 60 * 1000, /* without a request */
	SESSION_RENEW_MS = 60 * 60 * 1000,     /* a used cookie is replaced at most this often */
};
#define SESSION_MOST_MS (INT64_C(30) * 24 * 60 * 60 * 1000)

struct auth_session {
	uint64_t id, generation;
	int64_t begun_ms, ends_ms;
};

/* With a zero behind it. */
void session_write(const struct auth_session *session, const uint8_t key[SESSION_KEY_BYTES],
		   char text[SESSION_TEXT_BYTES + 1]);
/* False: the key has not signed it. */
bool session_read(struct slice text, const uint8_t key[SESSION_KEY_BYTES],
		  struct auth_session *session) MUST_CHECK;
/* When one that is used now ends. */
int64_t session_end_ms(int64_t begun_ms, int64_t now_ms);

#endif
