/* What a handler asks of its request, and the choice of the handler. */
#include "base/stats.h"
#include "base/utf8.h"
#include "http/conn.h"

enum { NOTE_MAX_BYTES = 300 };

const struct http_limits http_limits_default = {
	.connections_max = 1024,
	.endless_max = 256,
	.headers_max = 100,
	.params_max = 256,
	.head_max_bytes = 16 << 10,
	.memory_max_bytes = 256 << 20,
	.unsent_max_bytes = 1 << 20,
	.drain_max_bytes = 64 << 20,
	.header_timeout_ms = 10000,
	.idle_timeout_ms = 60000,
	.body_timeout_ms = 10000,
	.write_timeout_ms = 30000,
	.progress_min_bytes = 1000,
};

const char *http_verb_text(enum http_verb verb)
{
	static const char *const texts[] = {
		[VERB_GET] = "GET",     [VERB_HEAD] = "HEAD",     [VERB_POST] = "POST",
		[VERB_PUT] = "PUT",     [VERB_DELETE] = "DELETE", [VERB_OPTIONS] = "OPTIONS",
		[VERB_OTHER] = "OTHER",
	};
	return texts[verb];
}

/* ---- Routes ---------------------------------------------------------------------------------- */

/* How many bytes of the text `#` of a route stands for: digits. */
static size_t path_digits(struct slice text)
{
	size_t len = 0;
	while (len < text.len && len < HTTP_NUMBER_DIGITS_MAX && text.data[len] >= '0' &&
	       text.data[len] <= '9')
		len++;
	return len;
}

static bool path_is_below(const struct http_route *route, struct slice path)
{
	for (const char *c = route->path; *c; c++) {
		size_t len = *c == '#' ? path_digits(path) : path.len && *path.data == *c;
		if (!len)
			return false;
		path = (struct slice){path.data + len, path.len - len};
	}
	return route->prefix || !path.len;
}

/* With a slash at its end a path is the same as without. */
static bool path_matches(const struct http_route *route, struct slice path)
{
	bool slashed = path.len > 1 && path.data[path.len - 1] == '/';
	return path_is_below(route, path) ||
	       (slashed && path_is_below(route, (struct slice){path.data, path.len - 1}));
}

static bool verb_matches(const struct http_route *route, enum http_verb verb)
{
	return route->verb == verb || (route->verb == VERB_GET && verb == VERB_HEAD);
}

static void add_allowed(struct buf *allow, enum http_verb verb)
{
	buf_printf(allow, "%s%s", allow->len ? ", " : "", http_verb_text(verb));
	if (verb == VERB_GET)
		buf_append_text(allow, ", HEAD");
}

int http_route_find(const struct http_core *core, enum http_verb verb, struct slice path,
		    const struct http_route **found, struct buf *allow)
{
	unsigned allowed = 0;
	for (size_t i = 0; i < core->route_count; i++) {
		const struct http_route *route = &core->routes[i];
		if (!path_matches(route, path))
			continue;
		if (verb_matches(route, verb)) {
			*found = route;
			return 0;
		}
		if (!(allowed & 1U << route->verb))
			add_allowed(allow, route->verb);
		allowed |= 1U << route->verb;
	}
	if (!allowed)
		return 404;
	buf_append_text(allow, ", OPTIONS"); /* which every path has */
	return 405;
}

/* ---- Look-up --------------------------------------------------------------------------------- */

static bool http_request_same_name(struct slice a, const char *b)
{
	for (size_t i = 0; i < a.len; i++) {
		if (!b[i] || ascii_lower(a.data[i]) != ascii_lower(b[i]))
			return false;
	}
	return !b[a.len];
}

struct slice http_host(const struct http_request *request)
{
	return request->forwarded_host.data ? request->forwarded_host
					    : http_header(request, "Host");
}

struct http_base http_base_of(const struct http_request *request)
{
	const struct http_outside *outside = request->outside;
	if (outside && outside->host.data)
		return (struct http_base){outside->https ? "https" : "http", outside->host,
					  outside->prefix};
	return (struct http_base){
		request->secure ? "https" : "http", http_host(request), {NULL, 0}};
}

struct slice http_header(const struct http_request *request, const char *name)
{
	for (size_t i = 0; i < request->header_count; i++) {
		if (http_request_same_name(request->headers[i].name, name))
			return request->headers[i].value;
	}
	return (struct slice){NULL, 0};
}

bool http_tag_is_listed(struct slice list, struct slice tag)
{
	if (slice_equal(list, SLICE("*")))
		return true;
	while (list.len) {
		const char *end = list.data + list.len;
		const char *from = memchr(list.data, '"', list.len);
		const char *to = from ? memchr(from + 1, '"', (size_t)(end - from - 1)) : NULL;
		if (!to)
			return false;
		if (slice_equal((struct slice){from, (size_t)(to + 1 - from)}, tag))
			return true;
		list = (struct slice){to + 1, (size_t)(end - to - 1)};
	}
	return false;
}

struct slice http_param_next(const struct http_request *request, const char *name, size_t *at)
{
	while (*at < request->param_count) {
		const struct http_param *param = &request->params[(*at)++];
		if (slice_equal(param->name, slice_of(name)))
			return param->value;
	}
	return (struct slice){NULL, 0};
}

struct slice http_tenant(const struct http_request *request)
{
	return request->tenant.data ? request->tenant : http_header(request, "X-Tenant");
}

struct slice http_param(const struct http_request *request, const char *name)
{
	size_t at = 0;
	return http_param_next(request, name, &at);
}

/* ---- The body -------------------------------------------------------------------------------- */

void http_request_pause(struct http_request *request)
{
	struct http_conn *conn = request->conn;
	ASSERT(conn->live);
	conn->paused = true;
	conn->may_end = false;
	http_conn_settle(conn);
}

void http_unpark(struct http_request *request)
{
	struct http_conn *conn = request->conn;
	ASSERT(conn->live && conn->parked);
	conn->unparked = true;
	http_conn_defer(conn);
}

void http_request_pause_body(struct http_request *request)
{
	http_request_pause(request);
	request->conn->may_end = true;
}

void http_request_resume(struct http_request *request)
{
	struct http_conn *conn = request->conn;
	ASSERT(conn->live);
	if (!conn->paused)
		return;
	conn->paused = false;
	if (!conn->running)
		http_conn_defer(conn);
}

struct buf http_request_take_body(struct http_request *request)
{
	ASSERT(request->conn->live);
	struct buf body = request->body;
	buf_init(&request->body, body.max);
	return body;
}

int http_request_charge(struct http_request *request, size_t bytes)
{
	struct http_core *core = request->conn->core;
	ASSERT(request->conn->live);
	if (bytes > core->limits.memory_max_bytes - core->memory_bytes)
		return ERR_LIMIT;
	core->memory_bytes += bytes;
	request->charged_bytes += bytes;
	stat_set(STAT_http_memory_bytes, (int64_t)core->memory_bytes);
	return 0;
}

void http_request_release(struct http_request *request)
{
	struct http_core *core = request->conn->core;
	core->memory_bytes -= request->charged_bytes;
	if (request->charged_bytes)
		stat_set(STAT_http_memory_bytes, (int64_t)core->memory_bytes);
	buf_release(&request->body);
	buf_release(&request->reply_headers);
	/* One large request must not keep its memory for the life of the connection. */
	if (request->arena.used_bytes > AHEAD_MAX_BYTES)
		arena_release(&request->arena);
	else
		arena_reset(&request->arena);
}

void http_request_note(struct http_request *request, struct slice text)
{
	if (text.len > NOTE_MAX_BYTES)
		text.len = utf8_cut(text, NOTE_MAX_BYTES);
	request->note = arena_copy(&request->arena, text);
}
