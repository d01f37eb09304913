/* Sessions: what their cookie has, what ends them, and what they may do without a sign of our own
 * page. */
#include "auth_world.h"

#include "auth/auth_private.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS  (24 * HOUR_MS)

/* Computed by Python's struct and hmac. */
static const char example[] = "01c665c48b608c5297030000000000000000262d27a20100000054c029a2010000"
			      "9babb8e654a211178e001d86df80cd5722e89c8f4f928da482cd1dc6060a7ca2";

static void a_session_is_signed(UNUSED void **state)
{
	const struct auth_session session = {UINT64_C(0x97528c608bc465c6), 3, T0 / 1000,
					     T0 / 1000 + 12 * HOUR_MS};
	uint8_t key[SESSION_KEY_BYTES];
	char text[SESSION_TEXT_BYTES + 1], wrong[SESSION_TEXT_BYTES + 1];
	struct auth_session read;
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)i;
	session_write(&session, key, text);
	assert_string_equal(text, example);
	assert_true(session_read(slice_of(text), key, &read));
	assert_memory_equal(&read, &session, sizeof(session));
	for (size_t i = 0; i < SESSION_TEXT_BYTES; i++) {
		memcpy(wrong, text, sizeof(wrong));
		wrong[i] = wrong[i] == '0' ? '1' : '0';
		assert_false(session_read(slice_of(wrong), key, &read));
		wrong[i] = 'g';
		assert_false(session_read(slice_of(wrong), key, &read));
		assert_false(session_read((struct slice){text, i}, key, &read));
	}
	key[31]++;
	assert_false(session_read(slice_of(text), key, &read));
}

static void a_session_ends_after_twelve_hours_or_thirty_days(UNUSED void **state)
{
	assert_int_equal(session_end_ms(1000, 1000), 1000 + 12 * HOUR_MS);
	assert_int_equal(session_end_ms(1000, 1000 + 29 * DAY_MS),
			 1000 + 29 * DAY_MS + 12 * HOUR_MS);
	assert_int_equal(session_end_ms(1000, 1000 + 29 * DAY_MS + 13 * HOUR_MS),
			 1000 + 30 * DAY_MS);
}

/* ---- Through the guard ----------------------------------------------------------------------- */

/* The value of the cookie that an answer sets; its attributes are those of RFC 6265bis. */
static const char *cookie_of(const char *headers, bool secure)
{
	static char value[SESSION_TEXT_BYTES + 1];
	char begins[60];
	snprintf(begins, sizeof(begins), "Set-Cookie: %sgranary_session=", secure ? "__Host-" : "");
	const char *at = strstr(headers, begins);
	if (!at)
		return NULL;
	at += strlen(begins);
	snprintf(value, sizeof(value), "%s", at);
	value[strcspn(value, ";")] = 0;
	at += strlen(value);
	assert_ptr_equal(strstr(at, "; Path=/; Max-Age="), at);
	assert_non_null(strstr(at, "; HttpOnly; SameSite=Strict"));
	assert_int_equal(strstr(at, "; Secure") != NULL, secure);
	return value;
}

static const char *begin_session(uint64_t id, bool secure)
{
	char headers[1000];
	struct http_conn conn = {.live = true};
	struct http_request request = {.secure = secure, .conn = &conn};
	struct credential *credential = auth_find_id(world.auth, id);
	assert_non_null(credential);
	buf_init(&request.reply_headers, sizeof(headers));
	auth_begin_session(world.auth, &request, credential);
	snprintf(headers, sizeof(headers), "%.*s", (int)request.reply_headers.len,
		 request.reply_headers.data);
	buf_release(&request.reply_headers);
	credential_unref(credential);
	assert_non_null(strstr(headers, "Max-Age=43200;"));
	return cookie_of(headers, secure);
}

static uint64_t id_of(const char *name)
{
	size_t count;
	uint64_t id = 0;
	struct credential **list = auth_list(world.auth, &count);
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i]->caller.name, name) == 0)
			id = list[i]->id;
	auth_list_free(list, count);
	return id;
}

static struct answered ask(const char *cookie)
{
	return ask_of(world.auth, route_of(VERB_GET, "/api/query"),
		      &(struct asked){.peer = &here, .cookie = cookie});
}

static char cookie[SESSION_TEXT_BYTES + 1];

static void begin_as(const char *name)
{
	create("root", "admin", "*", (char[TOKEN_TEXT_BYTES + 1]){""});
	create_user("ann", "read,write", "b", "correct horse");
	snprintf(cookie, sizeof(cookie), "%s", begin_session(id_of(name), false));
}

static void a_session_is_its_credential(UNUSED void **state)
{
	begin_as("ann");
	struct answered got = ask(cookie);
	assert_int_equal(got.status, 0);
	assert_true(got.shown);
	assert_string_equal(got.caller, "ann");
	assert_string_equal(got.how, "session");
	assert_string_equal(got.tenant, "b");
	assert_int_equal(ask_of(world.auth, route_of(VERB_GET, "/api/stats"),
				&(struct asked){.peer = &here, .cookie = cookie})
				 .status,
			 403);
	/* It outlives a start. */
	restart(false);
	assert_int_equal(ask(cookie).status, 0);
	assert_int_equal(change("ann", NULL, "1d"), 0); /* any change ends it */
	got = ask(cookie);
	assert_int_equal(got.status, 401);
	assert_string_equal(cookie_of(got.headers, false), "");
	assert_non_null(strstr(got.headers, "Max-Age=0;"));
}

static void what_ends_a_session(UNUSED void **state)
{
	begin_as("ann");
	assert_int_equal(change_password("ann", "another one"), 0);
	assert_int_equal(ask(cookie).status, 401);

	snprintf(cookie, sizeof(cookie), "%s", begin_session(id_of("ann"), false));
	assert_int_equal(ask(cookie).status, 0);
	assert_int_equal(auth_reset_sessions(world.auth, &world.queue, &world.e), 0);
	assert_int_equal(ask(cookie).status, 401);
	restart(false);
	assert_int_equal(ask(cookie).status, 401);

	snprintf(cookie, sizeof(cookie), "%s", begin_session(id_of("ann"), false));
	restart(false); /* with the new key */
	assert_int_equal(ask(cookie).status, 0);
	assert_int_equal(revoke_credential("ann"), 0);
	assert_int_equal(ask(cookie).status, 401);
	create_user("ann", "read", "b", "correct horse"); /* another one of that name */
	assert_int_equal(ask(cookie).status, 401);

	assert_int_equal(change("ann", NULL, "1h"), 0);
	snprintf(cookie, sizeof(cookie), "%s", begin_session(id_of("ann"), false));
	advance_ms(HOUR_MS - 1);
	assert_int_equal(ask(cookie).status, 0);
	advance_ms(1);
	assert_int_equal(ask(cookie).status, 401); /* expired */
}

/* Used every eleven hours it lasts for thirty days; once an hour at most it is written anew. */
static void a_session_that_is_used_goes_on(UNUSED void **state)
{
	int64_t age_ms = 0;
	begin_as("ann");
	advance_ms(HOUR_MS - 1);
	assert_null(cookie_of(ask(cookie).headers, false));
	advance_ms(1);
	struct answered got = ask(cookie);
	assert_non_null(strstr(got.headers, "Max-Age=43200;"));
	for (age_ms = HOUR_MS; age_ms + 11 * HOUR_MS < 30 * DAY_MS; age_ms += 11 * HOUR_MS) {
		const char *renewed = cookie_of(got.headers, false);
		if (renewed)
			snprintf(cookie, sizeof(cookie), "%s", renewed);
		advance_ms(11 * HOUR_MS);
		got = ask(cookie);
		assert_int_equal(got.status, 0);
	}
	if (cookie_of(got.headers, false))
		snprintf(cookie, sizeof(cookie), "%s", cookie_of(got.headers, false));
	advance_ms(30 * DAY_MS - age_ms - 1);
	assert_int_equal(ask(cookie).status, 0);
	advance_ms(1);
	assert_int_equal(ask(cookie).status, 401);
	/* Another one, that nobody uses. */
	snprintf(cookie, sizeof(cookie), "%s", begin_session(id_of("ann"), false));
	advance_ms(12 * HOUR_MS - 1);
	assert_int_equal(ask(cookie).status, 0);
	advance_ms(1);
	assert_int_equal(ask(cookie).status, 401);
}

static void under_tls_it_has_another_name(UNUSED void **state)
{
	begin_as("root");
	const char *secure = begin_session(id_of("root"), true);
	const struct http_route *route = route_of(VERB_GET, "/api/stats");
	assert_int_equal(ask_of(world.auth, route,
				&(struct asked){.peer = &here, .cookie = secure, .secure = true})
				 .status,
			 0);
	/* Its plain one could have been set by whoever is on the wire: it is not looked at. */
	char plain[400];
	snprintf(plain, sizeof(plain), "x; granary_session=%s", cookie);
	assert_int_equal(ask_of(world.auth, route,
				&(struct asked){.peer = &here, .cookie = plain, .secure = true})
				 .status,
			 401);
}

/* What is shown by itself counts, and a cookie beside it does not. */
static void a_credential_counts_before_a_session(UNUSED void **state)
{
	char token[TOKEN_TEXT_BYTES + 1];
	begin_as("root");
	create("b_read", "read", "b", token);
	const struct http_route *query = route_of(VERB_GET, "/api/query"),
				*write = route_of(VERB_POST, "/write");
	struct asked asked = {.peer = &here, .authorization = bearer(token), .cookie = cookie};
	struct answered got = ask_of(world.auth, query, &asked);
	assert_string_equal(got.caller, "b_read");
	assert_string_equal(got.how, "token");
	asked.own_page = true;
	assert_int_equal(ask_of(world.auth, write, &asked).status, 403); /* it may not write */
	asked.authorization = "Bearer gr_wrong";
	assert_int_equal(ask_of(world.auth, query, &asked).status, 401);
	asked = (struct asked){.peer = &here, .p = "wrong", .u = "x", .cookie = cookie};
	assert_int_equal(ask_of(world.auth, write, &asked).status, 401);
}

/* Stale ones are not nobody's. */
static void a_session_that_is_over_is_wrong(UNUSED void **state)
{
	begin_as("ann");
	restart(true);
	assert_int_equal(ask(NULL).status, 0);
	assert_int_equal(ask("x").status, 401);
	assert_int_equal(ask("").status, 401);
	assert_int_equal(ask(example).status, 401); /* signed by another key */
	assert_int_equal(ask(cookie).status, 0);
}

/* A damaged key signs nothing, and what it signed before is none; nor is a key of zeros there. */
static void a_key_that_cannot_be_read_opens_nothing(UNUSED void **state)
{
	const struct store_parts row = {{TEXT("session")}}, column = {{TEXT("key")}};
	struct auth_session forged = {0, 0, T0 / 1000, T0 / 1000 + HOUR_MS};
	const uint8_t zeros[SESSION_KEY_BYTES] = {0};
	char text[SESSION_TEXT_BYTES + 1];
	begin_as("root");
	for (uint64_t version = 1; version < 100; version++)
		if (!store_put_if_wait(world.store, &world.queue, TABLE_CREDENTIALS, &row, &column,
				       version, TEXT("\x02short")))
			version = 100;
	restart(false);
	assert_int_equal(ask(cookie).status, 401);
	forged.id = id_of("root");
	session_write(&forged, zeros, text);
	assert_int_equal(ask(text).status, 401);
	/* Another one is made when somebody asks for that. */
	assert_int_equal(auth_reset_sessions(world.auth, &world.queue, &world.e), 0);
	snprintf(cookie, sizeof(cookie), "%s", begin_session(id_of("root"), false));
	restart(false);
	assert_int_equal(ask(cookie).status, 0);
}

int main(void)
{
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, start, end)
	const struct CMUnitTest tests[] = {
		IN_WORLD(a_session_is_signed),
		IN_WORLD(a_session_ends_after_twelve_hours_or_thirty_days),
		IN_WORLD(a_session_is_its_credential),
		IN_WORLD(what_ends_a_session),
		IN_WORLD(a_session_that_is_used_goes_on),
		IN_WORLD(under_tls_it_has_another_name),
		IN_WORLD(a_credential_counts_before_a_session),
		IN_WORLD(a_session_that_is_over_is_wrong),
		IN_WORLD(a_key_that_cannot_be_read_opens_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
