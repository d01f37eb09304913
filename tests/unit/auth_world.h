/* Credentials in a store of this process, on a clock that the test moves, with a queue as the
 * guard's thread; and a request with what the guard reads of it. */
#ifndef TESTS_UNIT_AUTH_WORLD_H
#define TESTS_UNIT_AUTH_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "api/routes.h"
#include "auth/login.h"
#include "base/stats.h"
#include "contract/naive.h"
#include "http/conn.h"
#include "store/wait.h"

#define T0         INT64_C(1795953600000000)
#define TEXT(text) SLICE(text)
#define NONE       ((struct slice){NULL, 0})

static struct {
	struct clock_virtual clock;
	struct store *store;
	struct task_queue queue;  /* of who waits for the store */
	struct task_queue thread; /* the guard's */
	struct auth *auth;
	struct errbuf e;
} world;

static const struct loop_address here = {.bytes = {127, 0, 0, 1}, .port = 1},
				 elsewhere = {.bytes = {192, 0, 2, 1}, .port = 1};

static struct auth *open_auth(bool anonymous_reads)
{
	struct auth *auth =
		auth_new(&(struct auth_options){.store = world.store,
						.clock = &world.clock.clock,
						.polled_tenant = TEXT("snmp"),
						.executor = &world.thread.executor,
						.proxy_user_header = TEXT("X-Remote-User"),
						.anonymous_reads = anonymous_reads});
	assert_int_equal(auth_load(auth, &world.queue, &world.e), 0);
	return auth;
}

/* As a start of the server does. */
static inline void restart(bool anonymous_reads)
{
	auth_free(world.auth);
	task_queue_run(&world.thread);
	world.auth = open_auth(anonymous_reads);
}

static int start(UNUSED void **state)
{
	clock_virtual_init(&world.clock, T0);
	world.store = naive_open(&world.clock.clock);
	task_queue_init(&world.queue);
	task_queue_init(&world.thread);
	world.auth = open_auth(false);
	world.e.text[0] = 0;
	return 0;
}

static int end(UNUSED void **state)
{
	auth_free(world.auth);
	task_queue_run(&world.thread);
	task_queue_release(&world.thread);
	task_queue_release(&world.queue);
	store_close(world.store);
	return 0;
}

static inline int try_wish(const char *name, const struct credential_wish *wish, char *token)
{
	struct credential *made;
	char text[TOKEN_TEXT_BYTES + 1];
	world.e.text[0] = 0;
	int err = auth_create(world.auth, &world.queue, slice_of(name), wish, token ? token : text,
			      &made, &world.e);
	credential_unref(made);
	assert_true(!err == !world.e.text[0]);
	return err;
}

static inline int try_create(const char *name, const char *roles, const char *tenants, char *token)
{
	return try_wish(
		name,
		&(struct credential_wish){.roles = slice_of(roles), .tenants = slice_of(tenants)},
		token);
}

static inline void create(const char *name, const char *roles, const char *tenants, char *token)
{
	assert_int_equal(try_create(name, roles, tenants, token), 0);
}

static inline int try_user(const char *name, const char *roles, const char *tenants,
			   struct slice password)
{
	return try_wish(name,
			&(struct credential_wish){.roles = slice_of(roles),
						  .tenants = slice_of(tenants),
						  .kind = CREDENTIAL_USER,
						  .password = password},
			NULL);
}

static inline void create_user(const char *name, const char *roles, const char *tenants,
			       const char *password)
{
	assert_int_equal(try_user(name, roles, tenants, slice_of(password)), 0);
}

static inline struct slice text_or_none(const char *text)
{
	return text ? slice_of(text) : NONE;
}

static inline int change_wish(const char *name, struct credential_wish wish, const char *expires)
{
	struct credential *made;
	world.e.text[0] = 0;
	int err = credential_read_expiry(text_or_none(expires), clock_wall_ms(&world.clock.clock),
					 &wish, &world.e);
	if (err)
		return err;
	err = auth_change(world.auth, &world.queue, slice_of(name), &wish, &made, &world.e);
	credential_unref(made);
	return err;
}

static inline int change(const char *name, const char *roles, const char *expires)
{
	return change_wish(name, (struct credential_wish){.roles = text_or_none(roles)}, expires);
}

static inline int change_password(const char *name, const char *password)
{
	return change_wish(name, (struct credential_wish){.password = slice_of(password)}, NULL);
}

static inline int revoke_credential(const char *name)
{
	world.e.text[0] = 0;
	return auth_revoke(world.auth, &world.queue, slice_of(name), &world.e);
}

static inline void advance_ms(int64_t ms)
{
	clock_virtual_advance(&world.clock, ms * 1000);
}

/* ---- A request ------------------------------------------------------------------------------- */

struct asked {
	const struct loop_address *peer;
	const char *authorization; /* NULL: none */
	const char *x_tenant, *tenant, *u, *p;
	const char *cookie;                     /* of a session; NULL: none */
	const char *remote_user, *remote_user2; /* as a proxy, or anybody, says */
	bool from_proxy;
	bool secure, own_page, head;              /* head: HEAD instead of GET */
	const uid_t *uid;                         /* of who asks on the socket for commands */
	struct slice segments[HTTP_SEGMENTS_MAX]; /* of pollers */
};

struct answered {
	int status;
	bool shown;
	bool waited; /* the request was parked, and asked for once more */
	char tenant[80], caller[80], how[16], headers[1000];
	struct errbuf why;
};

/* Asks for a step when the request is unparked. */
static inline void world_defer(UNUSED struct http_conn *conn)
{
}

static inline void world_wait(struct http_conn *conn)
{
	conn->parked = true;
	while (!conn->unparked)
		task_queue_wait(&world.thread);
}

static inline size_t asked_headers(const struct asked *asked, char *cookie, size_t size,
				   struct http_header *headers)
{
	size_t count = 0;
	if (asked->authorization)
		headers[count++] =
			(struct http_header){TEXT("authorization"), slice_of(asked->authorization)};
	if (asked->x_tenant)
		headers[count++] =
			(struct http_header){TEXT("X-TENANT"), slice_of(asked->x_tenant)};
	if (asked->remote_user)
		headers[count++] =
			(struct http_header){TEXT("x-remote-user"), slice_of(asked->remote_user)};
	if (asked->remote_user2)
		headers[count++] =
			(struct http_header){TEXT("X-Remote-User"), slice_of(asked->remote_user2)};
	if (asked->cookie) {
		snprintf(cookie, size, "a=1; %sgranary_session=%s; z=2",
			 asked->secure ? "__Host-" : "", asked->cookie);
		headers[count++] = (struct http_header){TEXT("Cookie"), slice_of(cookie)};
	}
	return count;
}

static inline size_t asked_params(const struct asked *asked, struct http_param *params)
{
	const struct {
		const char *name, *value;
	} list[] = {{"tenant", asked->tenant}, {"u", asked->u}, {"p", asked->p}};
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (list[i].value)
			params[count++] = (struct http_param){slice_of(list[i].name),
							      slice_of(list[i].value)};
	return count;
}

static inline struct answered ask_of(struct auth *auth, const struct http_route *route,
				     const struct asked *asked)
{
	static const struct http_transport transport = {.defer = world_defer};
	struct http_conn conn = {.transport = &transport, .live = true};
	struct answered answered = {.why.text = ""};
	char cookie[400];
	struct http_header headers[5];
	struct http_param params[3];
	struct http_request request = {
		.route = route,
		.peer = asked->peer,
		.peer_uid = asked->uid,
		.verb = asked->head ? VERB_HEAD : route->verb,
		.secure = asked->secure,
		.from_proxy = asked->from_proxy,
		.own_page = asked->own_page,
		.path = slice_of(route->path),
		.headers = headers,
		.header_count = asked_headers(asked, cookie, sizeof(cookie), headers),
		.params = params,
		.param_count = asked_params(asked, params),
		.conn = &conn,
		.segment_count = asked->segments[2].data ? 4 : 0};
	struct http_guard *guard = auth_guard(auth);
	memcpy(request.segments, asked->segments, sizeof(request.segments));
	buf_init(&request.reply_headers, 4096);
	answered.status = guard->admit(guard, &request, &answered.shown, &answered.why);
	answered.waited = answered.status == HTTP_GUARD_WAITS;
	if (answered.waited) {
		world_wait(&conn);
		answered.status = guard->admit(guard, &request, &answered.shown, &answered.why);
	}
	assert_null(request.waiting);
	snprintf(answered.tenant, sizeof(answered.tenant), "%.*s", (int)request.tenant.len,
		 request.tenant.data);
	snprintf(answered.headers, sizeof(answered.headers), "%.*s", (int)request.reply_headers.len,
		 request.reply_headers.data);
	if (request.caller) {
		snprintf(answered.caller, sizeof(answered.caller), "%s",
			 *(const char *const *)request.caller);
		snprintf(answered.how, sizeof(answered.how), "%s",
			 request.known_by ? request.known_by : "nothing");
		guard->leave(guard, &request, answered.status);
	}
	buf_release(&request.reply_headers);
	assert_true(!answered.status == !answered.why.text[0]);
	return answered;
}

static inline const struct http_route *route_of(enum http_verb verb, const char *path)
{
	for (size_t i = 0; i < api_route_count; i++)
		if (api_routes[i].verb == verb && strcmp(api_routes[i].path, path) == 0)
			return &api_routes[i];
	fail_msg("there is no route %s", path);
	return NULL;
}

static inline const char *bearer(const char *token)
{
	static char text[TOKEN_TEXT_BYTES + 20];
	snprintf(text, sizeof(text), "Bearer %s", token);
	return text;
}

static inline int status_of(const char *path, enum http_verb verb, const char *authorization,
			    const char *tenant)
{
	return ask_of(world.auth, route_of(verb, path),
		      &(struct asked){&here, authorization, .tenant = tenant})
		.status;
}

/* RFC 4648, 4. */
static inline void put_base64(const char *text, char *to)
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

static inline const char *basic(const char *name, const char *password)
{
	static char text[1200];
	char plain[800];
	snprintf(plain, sizeof(plain), "%s:%s", name, password);
	memcpy(text, "Basic ", 6);
	put_base64(plain, text + 6);
	return text;
}

#endif
