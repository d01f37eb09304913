/* Any bytes as a cookie, and as the header Authorization: they let nobody in. What is signed, of
 * any numbers, is read again as it was; with one bit turned it is none. */
#include "auth/auth_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SESSION_NUMBERS_BYTES = 4 * 8 };

static const uint8_t key[SESSION_KEY_BYTES] = "a key of tests, that nobody has";

static void sign(const uint8_t *data, size_t size)
{
	struct auth_session session = {.id = 0}, again;
	char text[SESSION_TEXT_BYTES + 1];
	memcpy(&session, data, size < SESSION_NUMBERS_BYTES ? size : SESSION_NUMBERS_BYTES);
	session_write(&session, key, text);
	bool is = session_read(slice_of(text), key, &again);
	ASSERT(is && memcmp(&session, &again, sizeof(session)) == 0);
	size_t at = size ? data[size - 1] % SESSION_TEXT_BYTES : 0;
	text[at] = text[at] == '0' ? '1' : '0';
	is = session_read(slice_of(text), key, &again);
	ASSERT(!is);
}

static void show(struct auth *auth, const char *name, struct slice value)
{
	static const struct http_route route = {
		.verb = VERB_GET, .path = "/write", .role = ROLE_READ, .reach = REACH_ALL};
	const struct loop_address peer = {.bytes = {192, 0, 2, 1}};
	const struct http_header header = {slice_of(name), value};
	struct http_request request = {.route = &route,
				       .peer = &peer,
				       .path = SLICE("/write"),
				       .headers = &header,
				       .header_count = 1};
	struct http_guard *guard = auth_guard(auth);
	struct credential *credential;
	bool shown = false;
	struct errbuf why;
	if (strcmp(name, "Cookie") == 0) {
		int err = auth_take_session(auth, &request, &credential);
		ASSERT(err && !credential);
	} else {
		int status = guard->admit(guard, &request, &shown, &why);
		ASSERT(status == 401 && !request.caller);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct auth *auth = auth_new(&(struct auth_options){.clock = clock_real()});
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	struct auth_session session;
	memcpy(bytes, data, size);
	sign(data, size);
	bool is = session_read((struct slice){bytes, size}, key, &session);
	ASSERT(!is);
	show(auth, "Cookie", (struct slice){bytes, size});
	show(auth, "Authorization", (struct slice){bytes, size});
	mem_free(bytes);
	auth_free(auth);
	return 0;
}
