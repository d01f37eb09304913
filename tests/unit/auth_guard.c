/* Who may ask what: every route of the server, asked with each sort of credential; what a
 * credential may be, how it is shown, and how credentials change. */
#include "auth_world.h"

#include "auth/auth_private.h"

/* ---- The table ------------------------------------------------------------------------------- */

/* Who may ask what, said once more from what operators are told (doc/auth.md): by verbs (P: POST,
 * U: PUT, D: DELETE, G: GET) and path, of which `*` stands for all that begins so. The first row
 * counts. A route that is in none of them fails. */
static const struct rule {
	const char *verbs, *path;
	enum http_role role;
	enum http_reach reach;
} rules[] = {
	/* How the server is, and what shows a key of its own: no credential. */
	{"G", "/-/*", ROLE_NONE, REACH_NOBODY},
	{"G", "/ping", ROLE_NONE, REACH_NOBODY},
	{"G", "/health", ROLE_NONE, REACH_NOBODY},
	{"G", "/ready", ROLE_NONE, REACH_NOBODY},
	{"G", "/api/v2/health", ROLE_NONE, REACH_NOBODY},
	{"G", "/api/v2/ready", ROLE_NONE, REACH_NOBODY},
	{"G", "/api/version", ROLE_NONE, REACH_NOBODY},
	{"G", "/style.css", ROLE_NONE, REACH_NOBODY},
	{"P", "/api/#/*", ROLE_NONE, REACH_NOBODY},
	{"P", "/api/session", ROLE_NONE, REACH_NOBODY},
	/* Hand-shakes of clients: any credential. */
	{"GP", "/query", ROLE_ANY, REACH_NOBODY},
	{"G", "/api/v2/buckets", ROLE_ANY, REACH_NOBODY},
	{"G", "/api/v2/orgs", ROLE_ANY, REACH_NOBODY},
	{"G", "/api/aggregators", ROLE_ANY, REACH_NOBODY},
	{"G", "/api/config/filters", ROLE_ANY, REACH_NOBODY},
	{"GD", "/api/session", ROLE_ANY, REACH_NOBODY},
	/* The server itself, or all tenants. */
	{"GPUD", "/api/credentials*", ROLE_ADMIN, REACH_ALL},
	{"D", "/api/sessions", ROLE_ADMIN, REACH_ALL},
	{"G", "/api/verify", ROLE_ADMIN, REACH_ALL},
	{"G", "/api/backup", ROLE_ADMIN, REACH_ALL},
	{"P", "/api/rollups/rebuild", ROLE_ADMIN, REACH_ALL},
	{"GP", "/api/retention*", ROLE_ADMIN, REACH_ALL},
	{"P", "/api/clock/accept", ROLE_ADMIN, REACH_ALL},
	{"P", "/api/queues/retry", ROLE_ADMIN, REACH_ALL},
	{"GPD", "/oops/projects*", ROLE_ADMIN, REACH_ALL},
	{"D", "/api/agents/", ROLE_ADMIN, REACH_ALL},
	{"G", "/", ROLE_READ, REACH_ALL},
	{"G", "/metrics", ROLE_READ, REACH_ALL},
	{"G", "/api/stats", ROLE_READ, REACH_ALL},
	{"G", "/api/rollups", ROLE_READ, REACH_ALL},
	{"G", "/api/queues*", ROLE_READ, REACH_ALL},
	{"G", "/api/pollers", ROLE_READ, REACH_ALL},
	{"G", "/api/agents*", ROLE_READ, REACH_ALL},
	{"G", "/api/clock", ROLE_READ, REACH_NOBODY},
	{"P", "/api/agents/", ROLE_WRITE, REACH_TENANT},
	/* What is polled. */
	{"GP", "/api/pollers/", ROLE_POLL, REACH_SNMP},
	{"P", "/api/polls", ROLE_POLL, REACH_SNMP},
	{"P", "/api/polls/now", ROLE_ADMIN, REACH_SNMP},
	{"P", "/api/recompute", ROLE_ADMIN, REACH_SNMP},
	{"PD", "/api/devices*", ROLE_ADMIN, REACH_SNMP},
	{"U", "/v2/device/", ROLE_ADMIN, REACH_SNMP},
	{"P", "/v2/timeseries/", ROLE_WRITE, REACH_SNMP},
	{"P", "/v2/bulk/*", ROLE_READ, REACH_SNMP},
	{"G", "/v2/*", ROLE_READ, REACH_SNMP},
	{"G", "/api/devices*", ROLE_READ, REACH_SNMP},
	{"G", "/api/oidsets*", ROLE_READ, REACH_SNMP},
	{"G", "/api/interfaces", ROLE_READ, REACH_SNMP},
	/* Data of a tenant: what deletes or configures, */
	{"P", "/api/delete", ROLE_ADMIN, REACH_TENANT},
	{"D", "/api/streams", ROLE_ADMIN, REACH_TENANT},
	{"P", "/api/streams/demux", ROLE_ADMIN, REACH_TENANT},
	{"P", "/oops/days/", ROLE_ADMIN, REACH_TENANT},
	{"P", "/oops/gc", ROLE_ADMIN, REACH_TENANT},
	{"P", "/oops/delete", ROLE_ADMIN, REACH_TENANT},
	/* what asks by a body, */
	{"P", "/api/query*", ROLE_READ, REACH_TENANT},
	{"P", "/api/suggest", ROLE_READ, REACH_TENANT},
	{"U", "/hicc/v1/chart/preview/series", ROLE_READ, REACH_TENANT},
	/* what sends, and what is said of it, */
	{"P", "/api/put", ROLE_WRITE, REACH_TENANT},
	{"P", "/write", ROLE_WRITE, REACH_TENANT},
	{"P", "/api/v2/write", ROLE_WRITE, REACH_TENANT},
	{"P", "/chukwa", ROLE_WRITE, REACH_TENANT},
	{"P", "/loki/api/v1/push", ROLE_WRITE, REACH_TENANT},
	{"PU", "/oops*", ROLE_WRITE, REACH_TENANT},
	{"PUD", "/hicc/v1/*", ROLE_WRITE, REACH_TENANT},
	{"U", "/api/metadata/metric", ROLE_WRITE, REACH_TENANT},
	/* and what is read. */
	{"G", "/api/query*", ROLE_READ, REACH_TENANT},
	{"G", "/api/export", ROLE_READ, REACH_TENANT},
	{"G", "/api/metadata/*", ROLE_READ, REACH_TENANT},
	{"G", "/api/suggest", ROLE_READ, REACH_TENANT},
	{"G", "/api/search/lookup", ROLE_READ, REACH_TENANT},
	{"G", "/api/streams*", ROLE_READ, REACH_TENANT},
	{"G", "/oops*", ROLE_READ, REACH_TENANT},
	{"G", "/hicc/v1/*", ROLE_READ, REACH_TENANT},
};

static bool rule_is_of(const struct rule *rule, const struct http_route *route)
{
	static const char verbs[] = {
		[VERB_GET] = 'G', [VERB_POST] = 'P', [VERB_PUT] = 'U', [VERB_DELETE] = 'D'};
	size_t len = strlen(rule->path);
	bool begins = rule->path[len - 1] == '*';
	return strchr(rule->verbs, verbs[route->verb]) &&
	       (begins ? strncmp(rule->path, route->path, len - 1) == 0
		       : strcmp(rule->path, route->path) == 0);
}

static const struct rule *rule_of(const struct http_route *route)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (rule_is_of(&rules[i], route))
			return &rules[i];
	fail_msg("no rule is of %s %s", http_verb_text(route->verb), route->path);
	return NULL;
}

static void every_route_is_as_the_rules_say(UNUSED void **state)
{
	bool used[ARRAY_LEN(rules)] = {false};
	for (size_t i = 0; i < api_route_count; i++) {
		const struct rule *rule = rule_of(&api_routes[i]);
		used[rule - rules] = true;
		if (rule->role != api_routes[i].role || rule->reach != api_routes[i].reach)
			fail_msg("%s %s has another role or reach than its rule",
				 http_verb_text(api_routes[i].verb), api_routes[i].path);
	}
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (!used[i])
			fail_msg("the rule %s %s is of no route", rules[i].verbs, rules[i].path);
}

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

static bool holder_reaches(const struct holder *h, enum http_reach reach)
{
	switch (reach) {
	case REACH_NOBODY:
	case REACH_TENANT: /* it is asked without one */
		return true;
	case REACH_SNMP:
		return h->polled;
	case REACH_ALL:
		return h->all;
	}
	fail_msg("a route has no reach");
	return false;
}

/* What is shown beside `asked`: another tenant, which is there or never was, is refused with the
 * same sentence. */
static void check_other_tenant(const struct http_route *route, const struct asked *asked)
{
	struct asked other = *asked;
	other.tenant = "d";
	struct answered got = ask_of(world.auth, route, &other);
	assert_int_equal(got.status, 403);
	assert_string_equal(got.why.text, "this credential does not have tenant d");
	other.tenant = NULL;
	other.x_tenant = "d";
	assert_int_equal(ask_of(world.auth, route, &other).status, 403);
}

static void check_asked(const struct holder *h, const struct http_route *route,
			const struct asked *asked)
{
	const struct rule *rule = rule_of(route);
	struct answered got = ask_of(world.auth, route, asked);
	bool open = rule->role == ROLE_NONE;
	bool may = open || (holder_may(h, rule->role) && holder_reaches(h, rule->reach));
	/* A cookie goes along by itself. */
	bool needs_page = asked->cookie && !open && route->verb != VERB_GET && !asked->own_page;
	if (got.status != (may && !needs_page ? 0 : 403))
		fail_msg("%s %s, asked by %s%s: %d, %s", http_verb_text(route->verb), route->path,
			 h->name, asked->cookie ? " in a session" : "", got.status, got.why.text);
	bool is_tenants = may && !needs_page && !open && rule->reach == REACH_TENANT;
	assert_string_equal(got.tenant, is_tenants && h->first ? h->first : "");
	if (may && !needs_page && !open) {
		assert_string_equal(got.caller, h->name);
		assert_string_equal(got.how, asked->cookie ? "session" : "token");
	}
	if (is_tenants && h->first)
		check_other_tenant(route, asked);
}

/* In a session of its own: as a page of ours has it, and as nobody says whose page it is. */
static void check_holder(const struct holder *h, const struct http_route *route, const char *token,
			 const char *cookie)
{
	struct asked asked = {.peer = &here,
			      .authorization = bearer(token),
			      .segments = {TEXT("api"), TEXT("pollers"), TEXT("site")}};
	check_asked(h, route, &asked);
	asked.authorization = NULL;
	asked.cookie = cookie;
	check_asked(h, route, &asked);
	asked.own_page = true;
	check_asked(h, route, &asked);
}

static void make_session(const char *name, char cookie[SESSION_TEXT_BYTES + 1])
{
	struct credential *credential = NULL;
	uint8_t key[SESSION_KEY_BYTES];
	size_t count;
	struct credential **list = auth_list(world.auth, &count);
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i]->caller.name, name) == 0)
			credential = list[i];
	assert_non_null(credential);
	const struct auth_session session = {credential->id, credential->generation, T0 / 1000,
					     T0 / 1000 + SESSION_IDLE_MS};
	auth_session_key(world.auth, key);
	session_write(&session, key, cookie);
	auth_list_free(list, count);
}

/* What lets nobody in: none, wrong ones, and those of credentials that are over. */
static void check_nobody(const struct http_route *route, const struct asked *list, size_t count)
{
	int expected = rule_of(route)->role == ROLE_NONE ? 0 : 401;
	for (size_t i = 0; i < count; i++) {
		struct answered got = ask_of(world.auth, route, &list[i]);
		if (got.status != expected)
			fail_msg("%s %s, asked by nobody, case %zu: %d",
				 http_verb_text(route->verb), route->path, i, got.status);
		if (i && expected)
			assert_string_equal(got.why.text, "a valid credential is needed here: a "
							  "token, as in the header "
							  "\"Authorization: Bearer gr_...\", or "
							  "the name and the password of a user");
	}
}

static void every_route_is_asked_by_everybody(UNUSED void **state)
{
	char tokens[ARRAY_LEN(holders)][TOKEN_TEXT_BYTES + 1];
	char cookies[ARRAY_LEN(holders)][SESSION_TEXT_BYTES + 1];
	char expired[TOKEN_TEXT_BYTES + 1], expired_cookie[SESSION_TEXT_BYTES + 1];
	char revoked[TOKEN_TEXT_BYTES + 1], revoked_cookie[SESSION_TEXT_BYTES + 1];
	char expired_shown[TOKEN_TEXT_BYTES + 20], revoked_shown[TOKEN_TEXT_BYTES + 20];
	for (size_t i = 0; i < ARRAY_LEN(holders); i++) {
		create(holders[i].name, holders[i].roles, holders[i].tenants, tokens[i]);
		make_session(holders[i].name, cookies[i]);
	}
	create("expired", "admin", "*", expired);
	assert_int_equal(change("expired", NULL, "1s"), 0);
	make_session("expired", expired_cookie);
	create("revoked", "admin", "*", revoked);
	make_session("revoked", revoked_cookie);
	assert_int_equal(revoke_credential("revoked"), 0);
	advance_ms(1000);
	snprintf(expired_shown, sizeof(expired_shown), "Bearer %s", expired);
	snprintf(revoked_shown, sizeof(revoked_shown), "Token %s", revoked);
	const struct asked nobody[] = {
		{.peer = &here},
		{.peer = &elsewhere},
		{.peer = &here, .authorization = "Bearer gr_1"},
		{.peer = &here, .authorization = expired_shown},
		{.peer = &here, .authorization = revoked_shown},
		{.peer = &here, .cookie = "1234", .own_page = true},
		{.peer = &here, .cookie = expired_cookie, .own_page = true},
		{.peer = &here, .cookie = revoked_cookie, .own_page = true},
	};
	for (size_t i = 0; i < api_route_count; i++) {
		check_nobody(&api_routes[i], nobody, ARRAY_LEN(nobody));
		for (size_t h = 0; h < ARRAY_LEN(holders); h++)
			check_holder(&holders[h], &api_routes[i], tokens[h], cookies[h]);
	}
}

/* HEAD is to GET as a question is. */
static void a_session_may_ask_by_head(UNUSED void **state)
{
	char cookie[SESSION_TEXT_BYTES + 1];
	const struct asked asked = {.peer = &here, .cookie = cookie, .head = true};
	create("root", "admin", "*", (char[TOKEN_TEXT_BYTES + 1]){""});
	make_session("root", cookie);
	assert_int_equal(ask_of(world.auth, route_of(VERB_GET, "/api/stats"), &asked).status, 0);
	int64_t before = stat_get(STAT_auth_refused_page);
	assert_int_equal(ask_of(world.auth, route_of(VERB_POST, "/write"),
				&(struct asked){.peer = &here, .cookie = cookie})
				 .status,
			 403);
	assert_int_equal(stat_get(STAT_auth_refused_page) - before, 1);
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

/* A password is compared elsewhere, and then known. */
static void a_user_shows_a_name_and_a_password(UNUSED void **state)
{
	const struct http_route *query = route_of(VERB_GET, "/api/query"),
				*write = route_of(VERB_POST, "/write");
	struct asked asked = {.peer = &elsewhere, .authorization = basic("ann", "correct: horse")};
	create("root", "admin", "*", (char[TOKEN_TEXT_BYTES + 1]){""});
	create_user("ann", "read", "b", "correct: horse");
	struct answered got = ask_of(world.auth, query, &asked);
	assert_int_equal(got.status, 0);
	assert_true(got.waited);
	assert_true(got.shown);
	assert_string_equal(got.caller, "ann");
	assert_string_equal(got.how, "password");
	assert_string_equal(got.tenant, "b");
	got = ask_of(world.auth, query, &asked);
	assert_false(got.waited);
	assert_int_equal(got.status, 0);
	assert_int_equal(ask_of(world.auth, write, &asked).status, 403);
	assert_int_equal(shown_as("Token ann:%s", "correct: horse"), 403); /* of /api/stats */
	/* Only at InfluxDB's routes. */
	assert_int_equal(change("ann", "write", NULL), 0);
	asked = (struct asked){.peer = &elsewhere, .u = "ann", .p = "correct: horse"};
	assert_int_equal(ask_of(world.auth, write, &asked).status, 0);
	assert_int_equal(ask_of(world.auth, query, &asked).status, 401);
	asked.u = NULL;
	assert_int_equal(ask_of(world.auth, write, &asked).status, 401);
	assert_int_equal(shown_as("Bearer ann:%s", "correct: horse"), 401);
	assert_int_equal(shown_as("Bearer %s", "correct: horse"), 401);
	/* It ends as others do. */
	assert_int_equal(change("ann", NULL, "1m"), 0);
	asked = (struct asked){.peer = &elsewhere, .u = "ann", .p = "correct: horse"};
	assert_int_equal(ask_of(world.auth, write, &asked).status, 0);
	advance_ms(60000);
	assert_int_equal(ask_of(world.auth, write, &asked).status, 401);
}

/* Whether the name is there cannot be told: the same sentence, the same work. */
static void a_wrong_password_says_nothing(UNUSED void **state)
{
	static const char *const names[] = {"ann", "ben", "root", "ann", "ben"};
	const struct http_route *query = route_of(VERB_GET, "/api/query");
	char said[ARRAY_LEN(names)][sizeof(((struct errbuf *)0)->text)];
	create("root", "admin", "*", (char[TOKEN_TEXT_BYTES + 1]){""});
	create_user("ann", "read", "b", "correct horse");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct asked asked = {.peer = &elsewhere,
				      .authorization = basic(names[i], "wrong horse")};
		struct answered got = ask_of(world.auth, query, &asked);
		assert_int_equal(got.status, 401);
		assert_true(got.waited);
		snprintf(said[i], sizeof(said[i]), "%s", got.why.text);
		assert_string_equal(said[i], said[0]);
	}
	int64_t before = stat_get(STAT_auth_refused_held_up);
	struct asked asked = {.peer = &elsewhere, .authorization = basic("cat", "wrong horse")};
	struct answered got = ask_of(world.auth, query, &asked);
	assert_int_equal(got.status, 429);
	assert_false(got.waited);
	assert_non_null(strstr(got.headers, "Retry-After: 10\r\n"));
	assert_non_null(strstr(got.why.text, "for 10 seconds"));
	assert_int_equal(stat_get(STAT_auth_refused_held_up) - before, 1);
	/* Tokens are not guessed, and go on. */
	asked.authorization = "Bearer gr_wrong";
	assert_int_equal(ask_of(world.auth, query, &asked).status, 401);
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

/* A proxy's word counts, and nobody else's; a page of another site has a browser show a proxy who
 * it is, too. */
static void a_trusted_proxy_names_a_user(UNUSED void **state)
{
	char token[TOKEN_TEXT_BYTES + 1];
	const struct http_route *query = route_of(VERB_GET, "/api/query"),
				*write = route_of(VERB_POST, "/write");
	struct asked asked = {.peer = &elsewhere, .from_proxy = true, .remote_user = "ann"};
	create("root", "admin", "*", token);
	create_user("ann", "read,write", "b", "correct: horse");
	char long_name[CREDENTIAL_NAME_MAX_BYTES + 2] = "";
	memset(long_name, 'a', CREDENTIAL_NAME_MAX_BYTES);
	create_user(long_name, "read", "b", "correct: horse");
	asked.remote_user = long_name;
	assert_int_equal(ask_of(world.auth, query, &asked).status, 0);
	long_name[CREDENTIAL_NAME_MAX_BYTES] = 'a';
	asked.remote_user = "ann";
	struct answered got = ask_of(world.auth, query, &asked);
	assert_int_equal(got.status, 0);
	assert_string_equal(got.caller, "ann");
	assert_string_equal(got.how, "proxy");
	assert_string_equal(got.tenant, "b");
	assert_int_equal(ask_of(world.auth, write, &asked).status, 403);
	asked.own_page = true;
	assert_int_equal(ask_of(world.auth, write, &asked).status, 0);
	/* What the proxy is shown comes along; a token is meant for the server. */
	asked.authorization = basic("ann", "of the proxy");
	assert_string_equal(ask_of(world.auth, query, &asked).how, "proxy");
	asked.authorization = bearer(token);
	assert_string_equal(ask_of(world.auth, query, &asked).caller, "root");
	asked.authorization = NULL;
	/* It names a token, nobody, or two. */
	asked.remote_user = "root";
	assert_int_equal(ask_of(world.auth, query, &asked).status, 401);
	asked.remote_user = long_name; /* behind the end of a user's name there is more */
	assert_int_equal(ask_of(world.auth, query, &asked).status, 401);
	asked.remote_user = "bob";
	assert_int_equal(ask_of(world.auth, query, &asked).status, 401);
	asked.remote_user = "ann";
	asked.remote_user2 = "ann";
	assert_int_equal(ask_of(world.auth, query, &asked).status, 401);
	asked.remote_user2 = NULL;
	asked.from_proxy = false;
	assert_int_equal(ask_of(world.auth, query, &asked).status, 401);
	asked.from_proxy = true;
	assert_int_equal(change("ann", NULL, "1ms"), 0);
	clock_virtual_advance(&world.clock, 2000);
	assert_int_equal(ask_of(world.auth, query, &asked).status, 401);
}

/* ---- Changes --------------------------------------------------------------------------------- */

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
					   &column, 0, TEXT("\x03more of a later version")),
			 0);
	auth_free(world.auth);
	world.auth = open_auth(false);
	assert_false(auth_is_open(world.auth));
	assert_int_equal(status_of("/api/stats", VERB_GET, NULL, NULL), 401);
}

/* Its name is taken until it is revoked, by anybody who may. */
static void a_credential_that_cannot_be_read_can_go(UNUSED void **state)
{
	const struct store_parts row = {{TEXT("credential")}}, column = {{TEXT("old")}};
	char token[TOKEN_TEXT_BYTES + 1];
	create("root", "admin", "*", token);
	assert_int_equal(store_put_if_wait(world.store, &world.queue, TABLE_CREDENTIALS, &row,
					   &column, 0, TEXT("\x01junk")),
			 0);
	restart(false);
	assert_int_equal(try_create("old", "read", "*", token), ERR_EXISTS);
	assert_int_equal(change("old", "read", NULL), ERR_DAMAGED);
	assert_non_null(strstr(world.e.text, "revoke it and create it again"));
	world.e.text[0] = 0;
	assert_int_equal(auth_revoke(world.auth, &world.queue, TEXT("old"), &world.e), 0);
	assert_int_equal(try_create("old", "read", "*", token), 0);
}

/* The one that is too much is not stored: after a start the others are there. */
static void there_are_not_too_many_credentials(UNUSED void **state)
{
	char name[32], token[TOKEN_TEXT_BYTES + 1];
	size_t count;
	create("root", "admin", "*", NULL);
	for (int i = 1; i < AUTH_CREDENTIALS_MAX; i++) {
		snprintf(name, sizeof(name), "m%05d", i);
		create(name, "write", "acme", NULL);
	}
	assert_int_equal(try_create("aaa", "write", "acme", token), ERR_LIMIT);
	assert_non_null(strstr(world.e.text, "there are as many as there may be"));
	restart(false);
	struct credential **list = auth_list(world.auth, &count);
	assert_int_equal(count, AUTH_CREDENTIALS_MAX);
	assert_string_equal(list[0]->caller.name, "m00001");
	assert_string_equal(list[count - 1]->caller.name, "root");
	auth_list_free(list, count);
	assert_int_equal(change("m00001", "read", NULL), 0);
	assert_int_equal(auth_revoke(world.auth, &world.queue, TEXT("m00002"), &world.e), 0);
	create("aaa", "write", "acme", NULL);
}

/* It was stored all the same: the token that was made is the one that counts, and what was revoked
 * lets nobody in. */
static void a_store_does_not_say_what_became_of_a_change(UNUSED void **state)
{
	char token[TOKEN_TEXT_BYTES + 1];
	create("root", "admin", "*", NULL);
	naive_lose_outcomes(world.store, 0, 1);
	create("web", "read", "b", token);
	assert_int_equal(status_of("/api/query", VERB_GET, bearer(token), NULL), 0);
	restart(false);
	assert_int_equal(status_of("/api/query", VERB_GET, bearer(token), NULL), 0);
	naive_lose_outcomes(world.store, 0, 1);
	assert_int_equal(auth_revoke(world.auth, &world.queue, TEXT("web"), &world.e), 0);
	assert_int_equal(status_of("/api/query", VERB_GET, bearer(token), NULL), 401);
}

/* The only admin has expired: the owner of the machine takes away what nobody else can. */
static void where_nobody_is_admin_any_more_credentials_can_go(UNUSED void **state)
{
	create("root", "admin", "*", NULL);
	assert_int_equal(change("root", NULL, "1h"), 0);
	create("writer", "write", "acme", NULL);
	clock_virtual_advance(&world.clock, INT64_C(3600000001));
	assert_int_equal(auth_revoke(world.auth, &world.queue, TEXT("writer"), &world.e), 0);
	assert_int_equal(auth_revoke(world.auth, &world.queue, TEXT("root"), &world.e), 0);
	assert_true(auth_is_open(world.auth));
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
		IN_WORLD(every_route_is_as_the_rules_say),
		IN_WORLD(every_route_is_asked_by_everybody),
		IN_WORLD(a_session_may_ask_by_head),
		IN_WORLD(a_token_is_shown_in_several_ways),
		IN_WORLD(basic_has_the_token_as_password),
		IN_WORLD(a_user_shows_a_name_and_a_password),
		IN_WORLD(a_wrong_password_says_nothing),
		IN_WORLD(a_token_is_known_by_its_sha256),
		IN_WORLD(this_machine_may_do_everything_until_there_is_a_credential),
		IN_WORLD(owners_come_in_by_the_socket_for_commands),
		IN_WORLD(a_trusted_proxy_names_a_user),
		IN_WORLD(a_credential_expires_and_is_revoked),
		IN_WORLD(the_last_that_makes_others_stays),
		IN_WORLD(what_is_no_credential_is_refused),
		IN_WORLD(a_credential_that_cannot_be_read_opens_nothing),
		IN_WORLD(a_credential_that_cannot_be_read_can_go),
		IN_WORLD(there_are_not_too_many_credentials),
		IN_WORLD(a_store_does_not_say_what_became_of_a_change),
		IN_WORLD(where_nobody_is_admin_any_more_credentials_can_go),
		IN_WORLD(what_runs_here_has_a_token_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
