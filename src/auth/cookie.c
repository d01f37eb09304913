/* The cookie that has a session. Under TLS its name makes browsers keep it for this host alone, as
 * it was sent over TLS (RFC 6265bis, 4.1.3.2). */
#include "auth/auth_private.h"

#include <inttypes.h>
#include <openssl/crypto.h>

#define COOKIE_PLAIN  "granary_session"
#define COOKIE_SECURE "__Host-" COOKIE_PLAIN

static const char *cookie_name(const struct http_request *request)
{
	return request->secure ? COOKIE_SECURE : COOKIE_PLAIN;
}

static void cookie_set(struct http_request *request, const char *value, int64_t age_ms)
{
	char text[SESSION_TEXT_BYTES + 200];
	snprintf(text, sizeof(text),
		 "%s=%s; Path=/; Max-Age=%" PRId64 "; HttpOnly; SameSite=Strict%s",
		 cookie_name(request), value, age_ms / 1000, request->secure ? "; Secure" : "");
	http_reply_header(request, "Set-Cookie", text);
}

static void cookie_write(struct auth *auth, struct http_request *request,
			 const struct auth_session *session, int64_t now_ms)
{
	uint8_t key[SESSION_KEY_BYTES];
	char text[SESSION_TEXT_BYTES + 1];
	auth_session_key(auth, key);
	session_write(session, key, text);
	OPENSSL_cleanse(key, sizeof(key));
	cookie_set(request, text, session->ends_ms - now_ms);
}

void auth_begin_session(struct auth *auth, struct http_request *request,
			const struct credential *credential)
{
	int64_t now_ms = clock_wall_ms(auth->options.clock);
	struct auth_session session = {.id = credential->id,
				       .generation = credential->generation,
				       .begun_ms = now_ms,
				       .ends_ms = session_end_ms(now_ms, now_ms)};
	cookie_write(auth, request, &session, now_ms);
}

void auth_drop_session(struct http_request *request)
{
	cookie_set(request, "", 0);
}

/* The value of a cookie in `a=1; b=2` (RFC 6265, 4.2.1); NULL data: it is not there. */
static struct slice cookie_find(struct slice header, struct slice name)
{
	while (header.len) {
		const char *end = memchr(header.data, ';', header.len);
		struct slice pair = {header.data, end ? (size_t)(end - header.data) : header.len};
		header = (struct slice){pair.data + pair.len, header.len - pair.len};
		if (header.len)
			header = (struct slice){header.data + 1, header.len - 1};
		while (pair.len && *pair.data == ' ')
			pair = (struct slice){pair.data + 1, pair.len - 1};
		if (pair.len > name.len && slice_starts_with(pair, name) &&
		    pair.data[name.len] == '=')
			return (struct slice){pair.data + name.len + 1, pair.len - name.len - 1};
	}
	return (struct slice){NULL, 0};
}

int auth_take_session(struct auth *auth, struct http_request *request,
		      struct credential **credential)
{
	struct auth_session session;
	uint8_t key[SESSION_KEY_BYTES];
	int64_t now_ms = clock_wall_ms(auth->options.clock);
	struct slice value =
		cookie_find(http_header(request, "Cookie"), slice_of(cookie_name(request)));
	*credential = NULL;
	if (!value.data)
		return ERR_NOT_FOUND;
	auth_session_key(auth, key);
	bool is_ours = session_read(value, key, &session);
	OPENSSL_cleanse(key, sizeof(key));
	if (!is_ours || now_ms >= session.ends_ms)
		return ERR_INVALID;
	*credential = auth_find_generation(auth, session.id, session.generation);
	if (!*credential || credential_has_expired(*credential, now_ms)) {
		credential_unref(*credential);
		*credential = NULL;
		return ERR_INVALID;
	}
	int64_t ends_ms = session_end_ms(session.begun_ms, now_ms);
	if (ends_ms - session.ends_ms >= SESSION_RENEW_MS) {
		session.ends_ms = ends_ms;
		cookie_write(auth, request, &session, now_ms);
	}
	return 0;
}
