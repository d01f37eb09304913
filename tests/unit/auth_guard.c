/* Who may ask what: every route of the server, asked with each sort of credential; what a
 * credential may be, how it is shown, and how credentials change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "api/routes.h"
#include "auth/auth.h"
#include "base/stats.h"
#include "contract/naive.h"
#include "store/wait.h"

#define T0         INT64_C(1795953600000000)
#define TEXT(text) SLICE(text)

static struct {
	struct clock_virtual clock;
	struct store *store;
	struct task_queue queue;
	struct auth *auth;
	struct errbuf e;
} world;

static const struct loop_address here = {.bytes = {127, 0, 0, 1}, .port = 1},
				 elsewhere = {.bytes = {192, 0, 2, 1}, .port = 1};

static struct auth *open_auth(bool anonymous_reads)
{
	struct auth *auth = auth_new(&(struct auth_options){.store = world.store,
							    .clock = &world.clock.clock,
							    .polled_tenant = TEXT("snmp"),
							    .anonymous_reads = anonymous_reads});
	assert_int_equal(auth_load(auth, &world.queue, &world.e), 0);
	return auth;
}

static int start(UNUSED void **state)
{
	clock_virtual_init(&world.clock, T0);
	world.store = naive_open(&world.clock.clock);
	task_queue_init(&world.queue);
	world.auth = open_auth(false);
	world.e.text[0] = 0;
	return 0;
}

static int end(UNUSED void **state)
{
	auth_free(world.auth);
	task_queue_release(&world.queue);
	store_close(world.store);
	return 0;
}

static int try_create(const char *name, const char *roles, const char *tenants, char *token)
{
	const struct credential_wish wish = {.roles = slice_of(roles),
					     .tenants = slice_of(tenants)};
	struct credential *made;
	world.e.text[0] = 0;
	int err = auth_create(world.auth, &world.queue, slice_of(name), &wish, token, &made,
			      &world.e);
	credential_unref(made);
	assert_true(!err == !world.e.text[0]);
	return err;
}

static void create(const char *name, const char *roles, const char *tenants, char *token)
{
	assert_int_equal(try_create(name, roles, tenants, token), 0);
}

/* ---- A request ------------------------------------------------------------------------------- */

struct asked {
	const struct loop_address *peer;
	const char *authorization; /* NULL: none */
	const char *x_tenant, *tenant, *p;
	const uid_t *uid;                         /* of who asks on the socket for commands */
	struct slice segments[HTTP_SEGMENTS_MAX]; /* of pollers */
};

struct answered {
	int status;
	bool shown;
	char tenant[80], caller[80];
	struct errbuf why;
};

static struct answered ask_of(struct auth *auth, const struct http_route *route,
			      const struct asked *asked)
{
	struct answered answered = {.why.text = ""};
	struct http_header headers[2];
	struct http_param params[2];
	struct http_request request = {.route = route,
				       .peer = asked->peer,
				       .peer_uid = asked->uid,
				       .verb = route->verb,
				       .path = slice_of(route->path),
				       .headers = headers,
				       .params = params};
	struct http_guard *guard = auth_guard(auth);
	if (asked->authorization)
		headers[request.header_count++] =
			(struct http_header){TEXT("authorization"), slice_of(asked->authorization)};
	if (asked->x_tenant)
		headers[request.header_count++] =
			(struct http_header){TEXT("X-TENANT"), slice_of(asked->x_tenant)};
	if (asked->tenant)
		params[request.param_count++] =
			(struct http_param){TEXT("tenant"), slice_of(asked->tenant)};
	if (asked->p)
		params[request.param_count++] = (struct http_param){TEXT("p"), slice_of(asked->p)};
	memcpy(request.segments, asked->segments, sizeof(request.segments));
	request.segment_count = asked->segments[2].data ? 4 : 0;
	buf_init(&request.reply_headers, 4096);
	answered.status = guard->admit(guard, &request, &answered.shown, &answered.why);
	snprintf(answered.tenant, sizeof(answered.tenant), "%.*s", (int)request.tenant.len,
		 request.tenant.data);
	if (request.caller) {
		snprintf(answered.caller, sizeof(answered.caller), "%s",
			 *(const char *const *)request.caller);
		guard->leave(guard, &request, answered.status);
	}
	buf_release(&request.reply_headers);
	assert_true(!answered.status == !answered.why.text[0]);
	return answered;
}

static const struct http_route *route_of(enum http_verb verb, const char *path)
{
	for (size_t i = 0; i < api_route_count; i++)
		if (api_routes[i].verb == verb && strcmp(api_routes[i].path, path) == 0)
			return &api_routes[i];
	fail_msg("there is no route %s", path);
	return NULL;
}

static const char *bearer(const char *token)
{
	static char text[TOKEN_TEXT_BYTES + 20];
	snprintf(text, sizeof(text), "Bearer %s", token);
	return text;
}

static int status_of(const char *path, enum http_verb verb, const char *authorization,
		     const char *tenant)
{
	return ask_of(world.auth, route_of(verb, path),
		      &(struct asked){&here, authorization, .tenant = tenant})
		.status;
}

/* ---- The table ------------------------------------------------------------------------------- */

/* What each credential has, said here once more; and by it what each route says to it. */
static const struct holder {
	const char *name, *roles, *tenants;
	bool read, write, poll, admin;
	bool all, polled;
	const char *first; /* tenant; NULL: of all */
} holders[] = {
	{"root", "admin", "*", true, true, true, true, true, true, NULL},
	{"all_read", "read", "*", true, false, false, false, true, true, NULL},
	{"all_write", "write", "*", false, true, false, false, true, true, NULL},
	{"b_admin", "admin", "b", true, true, true, true, false, false, "b"},
	{"b_read", "read", "c,b", true, false, false, false, false, false, "b"},
	{"b_write", "write", "b", false, true, false, false, false, false, "b"},
	{"b_both", "write,read", "b", true, true, false, false, false, false, "b"},
	{"snmp_read", "read", "snmp", true, false, false, false, false, true, "snmp"},
	{"poller", "poll:site", "snmp", false, false, true, false, false, true, "snmp"},
};

static bool holder_may(const struct holder *h, enum http_role role)
{
	switch (role) {
	case ROLE_NONE:
	case ROLE_ANY:
		return true;
	case ROLE_READ:
		return h->read;
	case ROLE_WRITE:
		return h->write;
	case ROLE_POLL:
		return h->poll;
	case ROLE_ADMIN:
		return h->admin;
	}
	fail_msg("a route has no role");
	return false;
}

static bool holder_reaches(const struct holder *h, const struct http_route *route)
{
	switch (route->reach) {
	case REACH_NOBODY:
	case REACH_TENANT: /* it is asked without one */
		return true;
	case REACH_SNMP:
		return h->polled;
	case REACH_ALL:
		return h->all;
	}
	fail_msg("%s has no reach", route->path);
	return false;
}

static void check_holder(const struct holder *h, const struct http_route *route, const char *token)
{
	const struct asked asked = {.peer = &here,
				    .authorization = bearer(token),
				    .segments = {TEXT("api"), TEXT("pollers"), TEXT("site")}};
	struct answered got = ask_of(world.auth, route, &asked);
	bool may = holder_may(h, route->role) && holder_reaches(h, route);
	if (route->role == ROLE_NONE)
		may = true;
	if (got.status != (may ? 0 : 403))
		fail_msg("%s %s, asked by %s: %d, %s", http_verb_text(route->verb), route->path,
			 h->name, got.status, got.why.text);
	bool is_tenants = may && route->reach == REACH_TENANT && route->role != ROLE_NONE;
	assert_string_equal(got.tenant, is_tenants && h->first ? h->first : "");
	if (may && route->role != ROLE_NONE)
		assert_string_equal(got.caller, h->name);
	if (!is_tenants || !h->first)
		return;
	/* Another tenant, which is there or never was, is refused with the same sentence. */
	struct asked other = asked;
	other.tenant = "d";
	got = ask_of(world.auth, route, &other);
	assert_int_equal(got.status, 403);
	assert_string_equal(got.why.text, "this credential does not have tenant d");
	other.tenant = NULL;
	other.x_tenant = "d";
	assert_int_equal(ask_of(world.auth, route, &other).status, 403);
}

static void every_route_is_asked_by_everybody(UNUSED void **state)
{
	char tokens[ARRAY_LEN(holders)][TOKEN_TEXT_BYTES + 1];
	for (size_t i = 0; i < ARRAY_LEN(holders); i++)
		create(holders[i].name, holders[i].roles, holders[i].tenants, tokens[i]);
	for (size_t i = 0; i < api_route_count; i++) {
		const struct http_route *route = &api_routes[i];
		int none = route->role == ROLE_NONE ? 0 : 401;
		assert_int_equal(ask_of(world.auth, route, &(struct asked){&here}).status, none);
		assert_int_equal(
			ask_of(world.auth, route, &(struct asked){&here, "Bearer gr_1"}).status,
			none);
		for (size_t h = 0; h < ARRAY_LEN(holders); h++)
			check_holder(&holders[h], route, tokens[h]);
	}
}

/* ---- How it is shown ------------------------------------------------------------------------- */

static int shown_as(const char *format, const char *token)
{
	char text[400];
	snprintf(text, sizeof(text), format, token);
	return status_of("/api/stats", VERB_GET, text, NULL);
}

static void a_token_is_shown_in_several_ways(UNUSED void **state)
{
	char token[TOKEN_TEXT_BYTES + 1], wrong[TOKEN_TEXT_BYTES + 1];
	create("root", "admin", "*", token);
	assert_int_equal(shown_as("Bearer %s", token), 0);
	assert_int_equal(shown_as("bearer  %s", token), 0);
	assert_int_equal(shown_as("Token %s", token), 0);
	assert_int_equal(shown_as("Token anybody:%s", token), 0);
	assert_int_equal(shown_as("ApiKey root:%s", token), 0);
	assert_int_equal(shown_as("ApiKey other:%s", token), 401);
	assert_int_equal(shown_as("Digest %s", token), 401);
	assert_int_equal(shown_as("%s", token), 401);
	assert_int_equal(shown_as("Bearer %s ", token), 401);
	assert_int_equal(shown_as("Bearer", token), 401);
	assert_int_equal(shown_as("", token), 401);
	assert_int_equal(shown_as("Basic %%%%%%", token), 401);
	assert_int_equal(shown_as("Basic ====", token), 401);
	/* Each digit of it counts. */
	for (size_t i = 0; i < TOKEN_TEXT_BYTES; i++) {
		memcpy(wrong, token, sizeof(wrong));
		wrong[i] = wrong[i] == 'a' ? 'b' : 'a';
		assert_int_equal(shown_as("Bearer %s", wrong), 401);
	}
	/* As a parameter to InfluxDB's routes, and to no other. */
	const struct asked asked = {.peer = &here, .p = token};
	assert_int_equal(ask_of(world.auth, route_of(VERB_POST, "/write"), &asked).status, 0);
	assert_int_equal(ask_of(world.auth, route_of(VERB_GET, "/query"), &asked).status, 0);
	assert_int_equal(ask_of(world.auth, route_of(VERB_GET, "/api/stats"), &asked).status, 401);
}

/* RFC 4648, 4. */
static void put_base64(const char *text, char *to)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t len = strlen(text);
	for (size_t i = 0; i < len; i += 3) {
		unsigned bits = 0;
		for (size_t j = 0; j < 3; j++)
			bits = bits << 8 | (i + j < len ? (unsigned char)text[i + j] : 0u);
		for (size_t j = 0; j < 4; j++)
			*to++ = i + j > len ? '=' : digits[bits >> (18 - 6 * j) & 63];
	}
	*to = 0;
}

/* Users of any length, so that the code ends with none, one and two `=`. */
static void basic_has_the_token_as_password(UNUSED void **state)
{
	static const char *const users[] = {"", "u", "us", "usr", "a user of InfluxDB"};
	char token[TOKEN_TEXT_BYTES + 1], plain[200], code[300];
	create("root", "admin", "*", token);
	for (size_t i = 0; i < ARRAY_LEN(users); i++) {
		snprintf(plain, sizeof(plain), "%s:%s", users[i], token);
		put_base64(plain, code);
		assert_int_equal(shown_as("Basic %s", code), 0);
		plain[strlen(plain) - 1] ^= 1;
		put_base64(plain, code);
		assert_int_equal(shown_as("Basic %s", code), 401);
	}
}

/* Computed by sha256sum. */
static void a_token_is_known_by_its_sha256(UNUSED void **state)
{
	static const uint8_t expected[] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
					   0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
					   0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
					   0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
	uint8_t hash[CREDENTIAL_HASH_BYTES];
	token_hash(TEXT("abc"), hash);
	assert_memory_equal(hash, expected, sizeof(expected));
}

/* ---- Nobody ---------------------------------------------------------------------------------- */

static void this_machine_may_do_everything_until_there_is_a_credential(UNUSED void **state)
{
	char token[TOKEN_TEXT_BYTES + 1];
	const struct http_route *stats = route_of(VERB_GET, "/api/stats"),
				*verify = route_of(VERB_GET, "/api/verify");
	assert_true(auth_is_open(world.auth));
	for (size_t i = 0; i < api_route_count; i++) {
		const struct asked asked = {&here, "Bearer any"}, far = {&elsewhere};
		assert_int_equal(ask_of(world.auth, &api_routes[i], &asked).status, 0);
		assert_false(ask_of(world.auth, &api_routes[i], &asked).shown);
		assert_int_equal(ask_of(world.auth, &api_routes[i], &far).status,
				 api_routes[i].role == ROLE_NONE ? 0 : 401);
	}
	/* One by which nobody could make another is not the first. */
	assert_int_equal(try_create("w", "write", "*", token), ERR_INVALID);
	assert_int_equal(try_create("w", "admin", "b", token), ERR_INVALID);
	assert_true(auth_is_open(world.auth));
	create("root", "admin", "*", token);
	assert_false(auth_is_open(world.auth));
	assert_int_equal(ask_of(world.auth, stats, &(struct asked){&here}).status, 401);
	assert_int_equal(
		ask_of(world.auth, verify, &(struct asked){&elsewhere, bearer(token)}).status, 0);
	assert_true(ask_of(world.auth, verify, &(struct asked){&here, bearer(token)}).shown);
	auth_free(world.auth);
	world.auth = open_auth(true);
	assert_int_equal(ask_of(world.auth, stats, &(struct asked){&here}).status, 0);
	assert_false(ask_of(world.auth, stats, &(struct asked){&here}).shown);
	assert_int_equal(ask_of(world.auth, verify, &(struct asked){&here}).status, 403);
	/* Who shows something wrong is not nobody. */
	assert_int_equal(ask_of(world.auth, stats, &(struct asked){&here, "Bearer x"}).status, 401);
}

/* Root, and who runs the server; a token that they show counts instead. */
static void owners_come_in_by_the_socket_for_commands(UNUSED void **state)
{
	char token[TOKEN_TEXT_BYTES + 1];
	const uid_t root = 0, own = geteuid(), other = own + 12345;
	const struct http_route *verify = route_of(VERB_GET, "/api/verify"),
				*stats = route_of(VERB_GET, "/api/stats");
	create("root", "admin", "*", token);
	create("web", "write", "b", token);
	assert_int_equal(ask_of(world.auth, verify, &(struct asked){&here, .uid = &root}).status,
			 0);
	assert_int_equal(ask_of(world.auth, verify, &(struct asked){&here, .uid = &own}).status, 0);
	assert_true(ask_of(world.auth, verify, &(struct asked){&here, .uid = &own}).shown);
	assert_int_equal(ask_of(world.auth, verify, &(struct asked){&here, .uid = &other}).status,
			 401);
	assert_int_equal(
		ask_of(world.auth, verify, &(struct asked){&here, bearer(token), .uid = &root})
			.status,
		403);
	assert_int_equal(
		ask_of(world.auth, verify, &(struct asked){&here, "Bearer x", .uid = &root}).status,
		401);
	auth_free(world.auth);
	world.auth = open_auth(true);
	assert_int_equal(ask_of(world.auth, verify, &(struct asked){&here, .uid = &other}).status,
			 403);
	assert_int_equal(ask_of(world.auth, stats, &(struct asked){&here, .uid = &other}).status,
			 0);
}

/* ---- Changes --------------------------------------------------------------------------------- */

static int change(const char *name, const char *roles, const char *expires)
{
	struct credential_wish wish = {.roles = roles ? slice_of(roles) : (struct slice){NULL, 0}};
	struct credential *made;
	world.e.text[0] = 0;
	struct slice text = expires ? slice_of(expires) : (struct slice){NULL, 0};
	int err = credential_read_expiry(text, clock_wall_ms(&world.clock.clock), &wish, &world.e);
	if (err)
		return err;
	err = auth_change(world.auth, &world.queue, slice_of(name), &wish, &made, &world.e);
	credential_unref(made);
	return err;
}

static int revoke_credential(const char *name)
{
	world.e.text[0] = 0;
	return auth_revoke(world.auth, &world.queue, slice_of(name), &world.e);
}

static void a_credential_expires_and_is_revoked(UNUSED void **state)
{
	char root[TOKEN_TEXT_BYTES + 1], web[TOKEN_TEXT_BYTES + 1];
	create("root", "admin", "*", root);
	create("web", "read", "b", web);
	assert_int_equal(try_create("web", "read", "b", web + 0), ERR_EXISTS);
	create("web2", "read", "b", web);
	assert_int_equal(status_of("/api/query", VERB_GET, bearer(web), NULL), 0);
	assert_int_equal(change("web2", NULL, "90d"), 0);
	clock_virtual_advance(&world.clock, INT64_C(90) * 86400 * 1000000 - 1000);
	assert_int_equal(status_of("/api/query", VERB_GET, bearer(web), NULL), 0);
	clock_virtual_advance(&world.clock, 1000);
	assert_int_equal(status_of("/api/query", VERB_GET, bearer(web), NULL), 401);
	assert_int_equal(change("web2", NULL, "never"), 0);
	assert_int_equal(status_of("/api/query", VERB_GET, bearer(web), NULL), 0);
	assert_int_equal(change("web2", "write", NULL), 0);
	assert_int_equal(status_of("/api/query", VERB_GET, bearer(web), NULL), 403);
	assert_int_equal(status_of("/write", VERB_POST, bearer(web), NULL), 0);
	/* The same after a start. */
	auth_free(world.auth);
	world.auth = open_auth(false);
	assert_int_equal(status_of("/write", VERB_POST, bearer(web), NULL), 0);
	assert_int_equal(revoke_credential("web2"), 0);
	assert_int_equal(status_of("/write", VERB_POST, bearer(web), NULL), 401);
	auth_free(world.auth);
	world.auth = open_auth(false);
	assert_int_equal(status_of("/write", VERB_POST, bearer(web), NULL), 401);
	assert_int_equal(revoke_credential("web2"), ERR_NOT_FOUND);
	assert_int_equal(change("web2", NULL, "never"), ERR_NOT_FOUND);
	assert_int_equal(revoke_credential("no such name"), ERR_NOT_FOUND);
}

static void the_last_that_makes_others_stays(UNUSED void **state)
{
	char token[TOKEN_TEXT_BYTES + 1];
	create("root", "admin", "*", token);
	assert_int_equal(revoke_credential("root"), ERR_INVALID);
	assert_int_equal(change("root", "read", NULL), ERR_INVALID);
	create("b_admin", "admin", "b", token);
	assert_int_equal(revoke_credential("root"), ERR_INVALID);
	create("other", "admin", "*", token);
	assert_int_equal(change("other", NULL, "1d"), 0);
	assert_int_equal(revoke_credential("root"), 0);
	assert_int_equal(revoke_credential("other"), ERR_INVALID);
}

static void what_is_no_credential_is_refused(UNUSED void **state)
{
	static const struct {
		const char *name, *roles, *tenants;
	} wrong[] = {
		{"", "admin", "*"},     {"a b", "admin", "*"},
		{"a/b", "admin", "*"},  {"a", "", "*"},
		{"a", "root", "*"},     {"a", "read,,write", "*"},
		{"a", "read,", "*"},    {"a", "poll:", "*"},
		{"a", "poll:a b", "*"}, {"a", "poll,poll:x", "*"},
		{"a", "admin", ""},     {"a", "admin", "*,b"},
		{"a", "admin", "b,"},   {"a", "admin", "b c"},
		{"a", "pollx", "*"},
	};
	char token[TOKEN_TEXT_BYTES + 1], name[66], tenants[400] = "";
	size_t len = 0;
	create("root", "admin", "*", token);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (try_create(wrong[i].name, wrong[i].roles, wrong[i].tenants, token) !=
		    ERR_INVALID)
			fail_msg("row %zu is taken", i);
	memset(name, 'n', 65);
	name[65] = 0;
	assert_int_equal(try_create(name, "read", "b", token), ERR_INVALID);
	name[64] = 0;
	create(name, "read", "b", token);
	for (int i = 0; i < 64; i++)
		len += (size_t)snprintf(tenants + len, sizeof(tenants) - len, "%st%d", i ? "," : "",
					i);
	create("many", "read", tenants, token);
	assert_int_equal(status_of("/api/query", VERB_GET, bearer(token), "t63"), 0);
	snprintf(tenants + len, sizeof(tenants) - len, ",x");
	assert_int_equal(try_create("more", "read", tenants, token), ERR_LIMIT);
	assert_int_equal(change("many", NULL, "2020-01-01"), ERR_INVALID);
	assert_int_equal(change("many", NULL, "0d"), ERR_INVALID);
	assert_int_equal(change("many", NULL, "soon"), ERR_INVALID);
}

/* A cell that cannot be read lets nobody in, and opens nothing. */
static void a_credential_that_cannot_be_read_opens_nothing(UNUSED void **state)
{
	const struct store_parts row = {{TEXT("credential")}}, column = {{TEXT("root")}};
	assert_int_equal(store_put_if_wait(world.store, &world.queue, TABLE_CREDENTIALS, &row,
					   &column, 0, TEXT("\x02more of a later version")),
			 0);
	auth_free(world.auth);
	world.auth = open_auth(false);
	assert_false(auth_is_open(world.auth));
	assert_int_equal(status_of("/api/stats", VERB_GET, NULL, NULL), 401);
}

static void what_runs_here_has_a_token_of_its_own(UNUSED void **state)
{
	char own[TOKEN_TEXT_BYTES + 1], root[TOKEN_TEXT_BYTES + 1];
	size_t count;
	auth_make_own_token(world.auth, 1u << ROLE_WRITE, own);
	assert_true(auth_is_open(world.auth));
	create("root", "admin", "*", root);
	assert_int_equal(status_of("/chukwa", VERB_POST, bearer(own), "any"), 0);
	assert_int_equal(status_of("/api/query", VERB_GET, bearer(own), NULL), 403);
	struct credential **list = auth_list(world.auth, &count);
	assert_int_equal(count, 1);
	auth_list_free(list, count);
	auth_free(world.auth);
	world.auth = open_auth(false);
	assert_int_equal(status_of("/chukwa", VERB_POST, bearer(own), NULL), 401);
}

int main(void)
{
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, start, end)
	const struct CMUnitTest tests[] = {
		IN_WORLD(every_route_is_asked_by_everybody),
		IN_WORLD(a_token_is_shown_in_several_ways),
		IN_WORLD(basic_has_the_token_as_password),
		IN_WORLD(a_token_is_known_by_its_sha256),
		IN_WORLD(this_machine_may_do_everything_until_there_is_a_credential),
		IN_WORLD(owners_come_in_by_the_socket_for_commands),
		IN_WORLD(a_credential_expires_and_is_revoked),
		IN_WORLD(the_last_that_makes_others_stays),
		IN_WORLD(what_is_no_credential_is_refused),
		IN_WORLD(a_credential_that_cannot_be_read_opens_nothing),
		IN_WORLD(what_runs_here_has_a_token_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
