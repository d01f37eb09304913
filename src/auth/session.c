#include "auth/session.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/cursor.h"
#include "wire/number.h"

enum { SESSION_VERSION = 1 };

static void session_sign(const uint8_t *bytes, const uint8_t *key, uint8_t *signature)
{
	const unsigned char *made = HMAC(EVP_sha256(), key, SESSION_KEY_BYTES, bytes,
					 SESSION_SIGNED_BYTES, signature, NULL);
	ASSERT(made); /* libcrypto has SHA-256 */
}

void session_write(const struct auth_session *session, const uint8_t key[SESSION_KEY_BYTES],
		   char text[SESSION_TEXT_BYTES + 1])
{
	uint8_t bytes[SESSION_BYTES] = {SESSION_VERSION};
	memcpy(bytes + 1, &session->id, 8);
	memcpy(bytes + 9, &session->generation, 8);
	memcpy(bytes + 17, &session->begun_ms, 8);
	memcpy(bytes + 25, &session->ends_ms, 8);
	session_sign(bytes, key, bytes + SESSION_SIGNED_BYTES);
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

bool session_read(struct slice text, const uint8_t key[SESSION_KEY_BYTES],
		  struct auth_session *session)
{
	uint8_t bytes[SESSION_BYTES], signature[SESSION_BYTES - SESSION_SIGNED_BYTES];
	if (text.len != SESSION_TEXT_BYTES)
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		int high = number_hex_digit(text.data[2 * i]);
		int low = number_hex_digit(text.data[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	session_sign(bytes, key, signature);
	if (CRYPTO_memcmp(signature, bytes + SESSION_SIGNED_BYTES, sizeof(signature)) != 0)
		return false;
	struct cursor c = cursor_of(bytes, SESSION_SIGNED_BYTES);
	unsigned version = cursor_u8(&c);
	*session = (struct auth_session){.id = cursor_u64(&c)};
	session->generation = cursor_u64(&c);
	session->begun_ms = (int64_t)cursor_u64(&c);
	session->ends_ms = (int64_t)cursor_u64(&c);
	return version == SESSION_VERSION;
}

int64_t session_end_ms(int64_t begun_ms, int64_t now_ms)
{
	int64_t idle_ms = now_ms + SESSION_IDLE_MS, most_ms = begun_ms + SESSION_MOST_MS;
	return idle_ms < most_ms ? idle_ms : most_ms;
}
