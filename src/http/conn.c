#include "http/conn.h"

#include "base/stats.h"
#include "http/forwarded.h"
#include "http/target.h"

enum { NAME_SHOWN_MAX_BYTES = 100, ALLOW_MAX_BYTES = 100 };

/* ---- What connections share ------------------------------------------------------------------ */

void http_core_init(struct http_core *core, struct clock *clock, const struct http_limits *limits,
		    const struct http_route *routes, size_t route_count, void *context)
{
	*core = (struct http_core){.clock = clock,
				   .limits = *limits,
				   .routes = routes,
				   .route_count = route_count,
				   .context = context,
				   .date_s = INT64_MIN};
	/* What was read of a request that then pauses is kept: of all connections together as much
	 * as all gathered bodies may be. */
	core->read_bytes = limits->memory_max_bytes / limits->connections_max;
	if (core->read_bytes < READ_MIN_BYTES)
		core->read_bytes = READ_MIN_BYTES;
	if (core->read_bytes > LOOP_READ_BYTES)
		core->read_bytes = LOOP_READ_BYTES;
	buf_init(&core->scratch, SIZE_MAX / 2);
	site_init(&core->site, limits->hosts, limits->host_count,
		  limits->outside ? limits->outside->host : (struct slice){NULL, 0});
	head_use_our_limit();
}

void http_core_release(struct http_core *core)
{
	ASSERT(core->memory_bytes == 0 && core->gzip_active == 0 && core->endless_count == 0);
	while (core->decoder_count)
		body_decoder_free(core->decoders[--core->decoder_count]);
	while (core->gzip_count)
		gzip_free(core->gzips[--core->gzip_count]);
	buf_release(&core->scratch);
}

struct body_decoder *http_core_take_decoder(struct http_core *core)
{
	return core->decoder_count ? core->decoders[--core->decoder_count] : body_decoder_new();
}

void http_core_give_decoder(struct http_core *core, struct body_decoder **decoder)
{
	if (!*decoder)
		return;
	body_decoder_end(*decoder);
	if (core->decoder_count < CODERS_IDLE_MAX)
		core->decoders[core->decoder_count++] = *decoder;
	else
		body_decoder_free(*decoder);
	*decoder = NULL;
}

struct gzip *http_core_take_gzip(struct http_core *core)
{
	if (core->gzip_active >= GZIP_ACTIVE_MAX)
		return NULL;
	core->gzip_active++;
	return core->gzip_count ? core->gzips[--core->gzip_count] : gzip_new();
}

void http_core_give_gzip(struct http_core *core, struct gzip **gzip)
{
	if (!*gzip)
		return;
	core->gzip_active--;
	gzip_reset(*gzip);
	if (core->gzip_count < CODERS_IDLE_MAX)
		core->gzips[core->gzip_count++] = *gzip;
	else
		gzip_free(*gzip);
	*gzip = NULL;
}

/* ---- Phases ---------------------------------------------------------------------------------- */

static const uint8_t phase_may_become[PHASE_COUNT] = {
	[PHASE_HEAD] = 1 << PHASE_BODY | 1 << PHASE_LINGER | 1 << PHASE_CLOSED,
	[PHASE_BODY] = 1 << PHASE_ANSWER | 1 << PHASE_HEAD | 1 << PHASE_DISCARD |
		       1 << PHASE_LINGER | 1 << PHASE_CLOSED,
	[PHASE_ANSWER] = 1 << PHASE_HEAD | 1 << PHASE_LINGER | 1 << PHASE_CLOSED,
	[PHASE_DISCARD] = 1 << PHASE_HEAD | 1 << PHASE_LINGER | 1 << PHASE_CLOSED,
	[PHASE_LINGER] = 1 << PHASE_CLOSED,
};

int64_t http_conn_now_ms(const struct http_conn *conn)
{
	return clock_mono_ms(conn->core->clock);
}

void http_conn_enter(struct http_conn *conn, enum http_phase phase)
{
	ASSERT(phase_may_become[conn->phase] & 1 << phase);
	conn->phase = phase;
	conn->phase_ms = http_conn_now_ms(conn);
	conn->receiving.since_ms = -1;
}

void http_conn_init(struct http_conn *conn, struct http_core *core,
		    const struct http_transport *transport)
{
	*conn = (struct http_conn){.core = core, .transport = transport, .phase = PHASE_HEAD};
	conn->receiving.since_ms = conn->sending.since_ms = -1;
	conn->phase_ms = http_conn_now_ms(conn);
	buf_init(&conn->kept, core->limits.head_max_bytes + 2 * LOOP_READ_BYTES);
	/* Flushed at OUT_FLUSH_BYTES, so that it never comes near its maximum. */
	buf_init(&conn->out, OUT_MAX_BYTES);
	/* The head, and its path, segments and parameters decoded; the rest is the handler's. */
	arena_init(&conn->request.arena, HTTP_ARENA_MAX_BYTES + 5 * core->limits.head_max_bytes);
}

void http_conn_release(struct http_conn *conn)
{
	ASSERT(conn->phase == PHASE_CLOSED && !conn->held);
	arena_release(&conn->request.arena);
	buf_release(&conn->kept);
	buf_release(&conn->out);
}

/* The client will have no answer, or another one than the handler's. */
static void abort_request(struct http_conn *conn, int err)
{
	if (!conn->live)
		return;
	const struct http_route *route = conn->request.route;
	conn->live = false;
	stat_add(STAT_http_aborted, 1);
	if (conn->parked)
		conn->core->guard->gone(conn->core->guard, &conn->request);
	else if (route && route->handler->abort)
		route->handler->abort(&conn->request, err);
}

static void release_request(struct http_conn *conn)
{
	if (!conn->held)
		return;
	conn->held = conn->live = false;
	if (conn->endless)
		stat_set(STAT_http_endless, --conn->core->endless_count);
	conn->endless = false;
	http_core_give_decoder(conn->core, &conn->decoder);
	http_core_give_gzip(conn->core, &conn->gzip);
	buf_release(&conn->packed);
	conn->packed_rest = (struct slice){NULL, 0};
	if (conn->request.caller)
		conn->core->guard->leave(conn->core->guard, &conn->request, conn->status);
	conn->request.caller = NULL;
	http_request_release(&conn->request);
}

void http_conn_close(struct http_conn *conn)
{
	if (conn->phase == PHASE_CLOSED)
		return;
	abort_request(conn, ERR_CANCELLED);
	release_request(conn);
	http_conn_enter(conn, PHASE_CLOSED);
	conn->transport->close(conn);
}

/* ---- Refusing -------------------------------------------------------------------------------- */

/* The head cannot be understood, so there is no request, and what follows is not to be trusted. */
static void refuse_head(struct http_conn *conn, int status, const char *message)
{
	conn->live = false;
	conn->closing = true;
	http_conn_refuse(conn, status, message);
	release_request(conn);
	http_conn_enter(conn, PHASE_LINGER);
}

/* Of what is gathered before it is used a handler has had nothing yet, and of a compressed body it
 * has nothing before all of that is known to be good. A question is not stored in any case. */
static const char *fate_of_body(const struct http_conn *conn)
{
	const struct http_request *request = &conn->request;
	bool used = request->route->handler->body && request->body_bytes > 0;
	if (request->route->role < ROLE_WRITE && !request->route->any_origin)
		return "";
	return used ? "; what came before may be stored" : "; nothing of it was stored";
}

void http_conn_refuse_body(struct http_conn *conn, int err, int status, const char *reason)
{
	char message[HTTP_MESSAGE_MAX_BYTES];
	snprintf(message, sizeof(message), "%s%s", reason, fate_of_body(conn));
	abort_request(conn, err);
	if (conn->streaming) {
		release_request(conn);
		http_conn_close(conn);
		return;
	}
	conn->closing = true;
	http_conn_refuse(conn, status, message);
	release_request(conn);
	http_conn_enter(conn, PHASE_LINGER);
}

static const char too_many[] = "there are too many connections (http.connections_max)";

void http_conn_is_spare(struct http_conn *conn)
{
	conn->spare = true;
}

/* ---- HEAD ------------------------------------------------------------------------------------ */

size_t http_conn_unsent(struct http_conn *conn)
{
	return conn->transport->unsent(conn) + conn->out.len;
}

/* A client that sends requests and reads no answers is not served on. */
static bool is_backed_up(struct http_conn *conn)
{
	return http_conn_unsent(conn) >= conn->core->limits.unsent_max_bytes / 2;
}

static void init_request(struct http_conn *conn)
{
	struct http_request *request = &conn->request;
	struct arena arena = request->arena;
	*request = (struct http_request){.arena = arena,
					 .context = conn->core->context,
					 .peer = &conn->client,
					 .secure = conn->secure,
					 .outside = conn->core->limits.outside,
					 .peer_uid = conn->has_uid ? &conn->peer_uid : NULL,
					 .verb = conn->head.verb,
					 .target = conn->head.target,
					 .headers = conn->head.headers,
					 .header_count = conn->head.header_count,
					 .content_length = -1,
					 .conn = conn};
	if (!conn->head.chunked)
		request->content_length = (int64_t)conn->head.length;
	conn->client = conn->peer;
	request->from_proxy = conn->trusted;
	if (conn->trusted)
		forwarded_read(conn->core->limits.outside, request, &conn->client);
	if (conn->core->limits.outside)
		forwarded_strip_prefix(conn->core->limits.outside, &request->target);
	request->begun_us = conn->core->clock->mono_us(conn->core->clock);
	buf_init(&request->reply_headers, REPLY_HEADERS_MAX_BYTES);
	conn->held = conn->live = true;
}

/* Everything that lasts for one request and is not in it. */
static void init_body(struct http_conn *conn)
{
	conn->parked = conn->unparked = conn->paused = false;
	conn->status = 0;
	conn->streaming = false;
	conn->wants_drain = false;
	conn->closing = !conn->head.keep_alive || conn->spare;
	conn->chunked = (struct chunked){0};
	conn->body_left = conn->head.length;
	conn->framed = 0;
	conn->encoded_bytes = 0;
	conn->packed_state = PACKED_NOT;
	conn->waits_for_continue = conn->head.expects_continue;
}

/* ---- The choice of a handler ----------------------------------------------------------------- */

/* The connection ends with it: a page that is refused is to hold no place. */
static void http_conn_refuse_stranger(struct http_conn *conn, enum stat_id counter, int status,
				      const char *message)
{
	stat_add(counter, 1);
	conn->closing = true;
	http_reply_error(&conn->request, status, "%s", message);
}

static void refuse_name(struct http_conn *conn)
{
	char message[HTTP_MESSAGE_MAX_BYTES];
	struct slice host = conn->request.authority;
	if (!host.data)
		host = http_host(&conn->request);
	int shown = host.len > NAME_SHOWN_MAX_BYTES ? NAME_SHOWN_MAX_BYTES : (int)host.len;
	const char *option = conn->core->limits.hosts_option;
	snprintf(message, sizeof(message),
		 "this server is not called '%.*s': it answers for localhost, for addresses, and "
		 "for the names in %s",
		 shown, host.data ? host.data : "", option ? option : "its configuration");
	http_conn_refuse_stranger(conn, STAT_http_refused_name, 421, message);
}

/* The route that a preflight asks for, if it is one of any origin. */
static const struct http_route *find_asked(struct http_conn *conn)
{
	const struct http_request *request = &conn->request;
	const struct http_route *route = NULL;
	struct buf allow;
	buf_init(&allow, ALLOW_MAX_BYTES);
	int status = http_route_find(conn->core, site_preflight_verb(request), request->route_path,
				     &route, &allow);
	buf_release(&allow);
	return !status && route->any_origin ? route : NULL;
}

/* A preflight, or somebody who wants to know what can be done here. */
static void reply_options(struct http_conn *conn, const char *allow)
{
	struct http_request *request = &conn->request;
	http_reply_header(request, "Allow", allow);
	if (request->route)
		site_allow(request, site_preflight_verb(request));
	http_reply(request, 204, NULL, (struct slice){NULL, 0});
}

/* Whether the request is parked, or answered without a handler. `found` and `allow` are those of
 * http_route_find(). */
static bool answer_in_its_place(struct http_conn *conn, int found, const char *allow)
{
	struct http_request *request = &conn->request;
	struct http_guard *guard = conn->core->guard;
	struct errbuf why = {""};
	bool shown = false, foreign = site_is_foreign(&conn->core->site, request);
	bool no_place = conn->spare && (found || !request->route->always);
	request->own_page = site_is_own_page(&conn->core->site, request);
	int denied = guard && !found && !foreign && !no_place
			     ? guard->admit(guard, request, &shown, &why)
			     : 0;
	if (denied == HTTP_GUARD_WAITS) {
		conn->parked = true;
	} else if (!shown && !site_is_meant(&conn->core->site, request, !conn->head.minor_1)) {
		request->route = NULL; /* nothing of it is for this client */
		refuse_name(conn);
	} else if (foreign) {
		http_conn_refuse_stranger(
			conn, STAT_http_refused_foreign, 403,
			"this comes from the page of another site, which may neither read "
			"nor change anything here");
	} else if (no_place) {
		http_reply_error(request, 503, "%s", too_many);
	} else if (found == 404) {
		http_reply_error(request, 404, "there is nothing at %.*s", (int)request->path.len,
				 request->path.data);
	} else if (found == 405 && request->verb == VERB_OPTIONS) {
		reply_options(conn, allow);
	} else if (found == 405) {
		http_reply_header(request, "Allow", allow);
		http_reply_error(request, 405, "the method is not allowed here");
	} else if (denied) {
		if (denied == 401) { /* RFC 9110 15.5.2 */
			http_reply_header(request, "WWW-Authenticate", "Bearer realm=\"granary\"");
			http_reply_header(request, "WWW-Authenticate", "Basic realm=\"granary\"");
		}
		http_reply_error(request, denied, "%s", why.text);
	} else {
		return false;
	}
	return true;
}

/* The route, or NULL: the request is parked or answered. */
static const struct http_route *find_route(struct http_conn *conn)
{
	struct http_request *request = &conn->request;
	const struct http_route *route = NULL;
	struct buf allow;
	buf_init(&allow, ALLOW_MAX_BYTES);
	int found = http_route_find(conn->core, request->verb, request->route_path, &route, &allow);
	buf_append_char(&allow, 0);
	request->route = request->verb == VERB_OPTIONS ? find_asked(conn) : route;
	if (answer_in_its_place(conn, found, allow.data))
		route = NULL;
	buf_release(&allow);
	return route;
}

/* Gives the request to its handler, or answers for it. */
static void dispatch(struct http_conn *conn)
{
	struct http_request *request = &conn->request;
	char reason[REASON_MAX_BYTES];
	const struct http_route *route = find_route(conn);
	if (!route)
		return;
	if (!http_body_begin(conn)) {
		char names[CODING_NAMES_BYTES];
		http_reply_header(request, "Accept-Encoding", coding_names(names));
		http_reply_error(request, 415, "one Content-Encoding of these is understood: %s",
				 names);
	} else if (http_body_is_too_large(conn, reason)) {
		http_reply_error(request, 413, "%s%s", reason, fate_of_body(conn));
	} else {
		buf_init(&request->body, http_body_decoded_max(route));
		if (route->handler->begin)
			route->handler->begin(request);
	}
}

void http_conn_unpark(struct http_conn *conn)
{
	conn->parked = conn->unparked = false;
	dispatch(conn);
}

static void http_conn_begin_request(struct http_conn *conn, struct slice head)
{
	struct http_core *core = conn->core;
	const char *reason = NULL;
	struct slice copy = arena_copy(&conn->request.arena, head);
	ASSERT(copy.data); /* the arena has room for a head, see http_conn_init */
	int err = head_parse(copy, &conn->request.arena, core->limits.headers_max, &conn->head);
	init_request(conn);
	init_body(conn);
	if (err) {
		refuse_head(conn, conn->head.status, conn->head.reason);
	} else if (target_parse(&conn->request, core->limits.params_max, &reason)) {
		refuse_head(conn, 400, reason);
	} else {
		http_conn_enter(conn, PHASE_BODY);
		dispatch(conn);
	}
}

static bool step_head(struct http_conn *conn, struct slice *in)
{
	const char *reason;
	size_t len = 0;
	if (!in->len || is_backed_up(conn))
		return false;
	if (conn->turn_requests == TURN_REQUESTS_MAX) {
		http_conn_defer(conn);
		return false;
	}
	if (!conn->head_seen)
		conn->head_ms = http_conn_now_ms(conn);
	enum head_result result = head_find(*in, &conn->head_seen, &len, &reason);
	size_t length = result == HEAD_DONE ? len : in->len;
	if (result == HEAD_BAD) {
		refuse_head(conn, 400, reason);
		return true;
	}
	if (length > conn->core->limits.head_max_bytes) {
		refuse_head(conn, 431, "the head of the request is too long");
		return true;
	}
	if (result == HEAD_MORE)
		return false;
	conn->head_seen = 0;
	conn->turn_requests++;
	struct slice head = {in->data, len};
	*in = (struct slice){in->data + len, in->len - len};
	http_conn_begin_request(conn, head);
	return true;
}

/* ---- ANSWER, DISCARD, LINGER ----------------------------------------------------------------- */

static bool step_discard(struct http_conn *conn, struct slice *in)
{
	size_t len = conn->body_left < in->len ? (size_t)conn->body_left : in->len;
	*in = (struct slice){in->data + len, in->len - len};
	conn->body_left -= len;
	if (conn->body_left)
		return false;
	http_conn_enter(conn, PHASE_HEAD);
	return true;
}

static bool step_linger(struct http_conn *conn, struct slice *in)
{
	conn->drained_bytes += in->len;
	*in = (struct slice){in->data + in->len, 0};
	if (conn->drained_bytes > conn->core->limits.drain_max_bytes)
		http_conn_close(conn);
	return false;
}

static bool step_answer(struct http_conn *conn, struct slice *in)
{
	/* Nothing is answered behind a stream without end. What comes there is read all the same,
	 * since only so is the client's end noticed. */
	if (conn->endless)
		step_linger(conn, in);
	return false; /* http_conn_answered goes on */
}

/* Where the connection goes when an answer is complete and the body may not be. */
static enum http_phase phase_after_answer(struct http_conn *conn)
{
	if (conn->core->stopping)
		conn->closing = true;
	if (conn->phase == PHASE_ANSWER)
		return conn->closing ? PHASE_LINGER : PHASE_HEAD;
	conn->body_left += conn->framed;
	conn->framed = 0;
	bool short_rest = !conn->head.chunked && conn->body_left <= DISCARD_MAX_BYTES;
	if (!short_rest || conn->closing)
		return PHASE_LINGER;
	return conn->body_left ? PHASE_DISCARD : PHASE_HEAD;
}

void http_conn_answered(struct http_conn *conn)
{
	release_request(conn);
	http_conn_enter(conn, phase_after_answer(conn));
	if (conn->kept.len && !conn->running)
		http_conn_defer(conn);
	http_conn_settle(conn);
}

/* ---- Driving --------------------------------------------------------------------------------- */

/* A step uses what it can of *in and says whether there may be more to do at once. */
static bool (*const steps[PHASE_COUNT])(struct http_conn *conn, struct slice *in) = {
	[PHASE_HEAD] = step_head,       [PHASE_BODY] = http_body_step, [PHASE_ANSWER] = step_answer,
	[PHASE_DISCARD] = step_discard, [PHASE_LINGER] = step_linger,
};

static void http_conn_run(struct http_conn *conn, struct slice *in)
{
	ASSERT(!conn->running);
	conn->running = true;
	conn->turn_bytes = 0;
	conn->turn_requests = 0;
	while (conn->phase != PHASE_CLOSED && steps[conn->phase](conn, in))
		;
	conn->running = false;
}

static void http_conn_run_kept(struct http_conn *conn)
{
	struct slice in = buf_slice(&conn->kept);
	http_conn_run(conn, &in);
	buf_consume(&conn->kept, conn->kept.len - in.len);
	if (!conn->kept.len && conn->kept.cap > AHEAD_MAX_BYTES)
		buf_release(&conn->kept);
}

void http_conn_flush(struct http_conn *conn)
{
	if (!conn->out.len)
		return;
	struct slice out = buf_slice(&conn->out);
	conn->written_bytes += out.len;
	stat_add(STAT_http_sent_bytes, (int64_t)out.len);
	conn->transport->write(conn, &out, 1);
	buf_clear(&conn->out);
	if (conn->out.cap > 2 * OUT_FLUSH_BYTES)
		buf_release(&conn->out);
}

/* How much may come now: nothing while what was kept waits for us. */
static size_t wanted_bytes(struct http_conn *conn)
{
	if (conn->deferred)
		return 0;
	switch (conn->phase) {
	case PHASE_HEAD:
		return is_backed_up(conn) ? 0 : conn->core->read_bytes;
	case PHASE_BODY:
		/* Where all has come, what follows is the next request's. */
		if (conn->paused || conn->parked || conn->packed_state > PACKED_COMES)
			return 0;
		return conn->core->read_bytes;
	case PHASE_ANSWER:
		/* Only to notice that the client has gone, and for a little of what it pipelines.
		 */
		return conn->kept.len >= AHEAD_MAX_BYTES ? 0 : AHEAD_MAX_BYTES;
	case PHASE_DISCARD:
	case PHASE_LINGER:
		return LOOP_READ_BYTES;
	case PHASE_CLOSED:
	case PHASE_COUNT:
		break;
	}
	return 0;
}

static void linger(struct http_conn *conn)
{
	if (!conn->shut) {
		conn->shut = true;
		conn->transport->shutdown(conn);
	}
	if (conn->at_end && http_conn_unsent(conn) == 0)
		http_conn_close(conn);
}

void http_conn_settle(struct http_conn *conn)
{
	if (conn->running || conn->phase == PHASE_CLOSED)
		return;
	http_conn_flush(conn);
	/* The client sends no more and nothing of it waits: it is answered and gone. */
	if (conn->phase == PHASE_HEAD && conn->at_end && !conn->deferred && !is_backed_up(conn))
		http_conn_enter(conn, PHASE_LINGER);
	if (conn->phase == PHASE_LINGER)
		linger(conn);
	if (conn->phase != PHASE_CLOSED)
		conn->transport->read(conn, wanted_bytes(conn));
}

/* ---- What the transport tells ---------------------------------------------------------------- */

void http_conn_defer(struct http_conn *conn)
{
	if (conn->deferred)
		return;
	conn->deferred = true;
	conn->transport->defer(conn);
}

void http_conn_input(struct http_conn *conn, struct slice bytes)
{
	stat_add(STAT_http_received_bytes, (int64_t)bytes.len);
	conn->received_bytes += bytes.len;
	if (conn->kept.len) {
		int err = buf_append(&conn->kept, bytes.data, bytes.len);
		ASSERT(!err); /* wanted_bytes() sees to it */
		http_conn_run_kept(conn);
	} else {
		http_conn_run(conn, &bytes);
		int err = buf_append(&conn->kept, bytes.data, bytes.len);
		ASSERT(!err);
	}
	http_conn_settle(conn);
}

void http_conn_step(struct http_conn *conn)
{
	conn->deferred = false;
	if (conn->phase == PHASE_CLOSED)
		return;
	http_conn_run_kept(conn);
	http_conn_settle(conn);
}

void http_conn_eof(struct http_conn *conn)
{
	conn->at_end = true;
	/* The rest of a body that was promised does not come any more. In HEAD it is a good end, or
	 * the end of half a head, which nobody waits for either. */
	if ((conn->phase == PHASE_BODY && !conn->parked) || conn->phase == PHASE_DISCARD ||
	    conn->endless)
		http_conn_close(conn);
	http_conn_settle(conn);
}

void http_conn_broken(struct http_conn *conn)
{
	http_conn_close(conn);
}

void http_conn_sent(struct http_conn *conn)
{
	if (conn->wants_drain && conn->live) {
		const struct http_handler *handler = conn->request.route->handler;
		conn->wants_drain = false;
		handler->drained(&conn->request);
	}
	if (conn->phase == PHASE_HEAD && conn->kept.len && !conn->deferred)
		http_conn_run_kept(conn);
	http_conn_settle(conn);
}

/* ---- Deadlines ------------------------------------------------------------------------------- */

static bool has_stalled(struct http_conn *conn, struct http_progress *progress, uint64_t bytes,
			int64_t timeout_ms)
{
	int64_t now_ms = http_conn_now_ms(conn);
	if (progress->since_ms < 0 ||
	    bytes - progress->bytes >= conn->core->limits.progress_min_bytes) {
		*progress = (struct http_progress){now_ms, bytes};
		return false;
	}
	return now_ms - progress->since_ms >= timeout_ms;
}

static bool has_passed(struct http_conn *conn, int64_t since_ms, int64_t timeout_ms)
{
	return http_conn_now_ms(conn) - since_ms >= timeout_ms;
}

static void tick_head(struct http_conn *conn)
{
	const struct http_limits *limits = &conn->core->limits;
	if (conn->deferred || is_backed_up(conn))
		return; /* it waits for us, or for the client to read: not for a request */
	if (conn->spare && has_passed(conn, conn->phase_ms, SPARE_HEAD_MAX_MS)) {
		conn->late = true;
		refuse_head(conn, 503, too_many);
		return;
	}
	if (!conn->kept.len && has_passed(conn, conn->phase_ms, limits->idle_timeout_ms)) {
		stat_add(STAT_http_timeouts_idle, 1);
		http_conn_close(conn);
	} else if (conn->kept.len && has_passed(conn, conn->head_ms, limits->header_timeout_ms)) {
		stat_add(STAT_http_timeouts_header, 1);
		conn->late = true;
		refuse_head(conn, 408, "the head of the request did not come in time");
	}
}

static void tick_body(struct http_conn *conn)
{
	int64_t timeout_ms = conn->core->limits.body_timeout_ms;
	if (conn->paused || conn->parked || conn->deferred)
		conn->receiving.since_ms = -1;
	else if (has_stalled(conn, &conn->receiving, conn->received_bytes, timeout_ms)) {
		stat_add(STAT_http_timeouts_body, 1);
		conn->late = true;
		http_conn_refuse_body(conn, ERR_TIMEOUT, 408, "the body did not come in time");
	}
}

/* Nobody waits for these bytes but politeness: it has a bound of its own, however well they come.
 */
static void tick_rest(struct http_conn *conn)
{
	int64_t most_ms = conn->late ? REST_LATE_MAX_MS : REST_MAX_MS;
	if (http_conn_unsent(conn)) {
		conn->receiving.since_ms = -1; /* the write deadline rules */
		conn->phase_ms = http_conn_now_ms(conn);
	} else if (has_passed(conn, conn->phase_ms, most_ms) ||
		   has_stalled(conn, &conn->receiving, conn->received_bytes,
			       conn->core->limits.body_timeout_ms)) {
		http_conn_close(conn);
	}
}

bool http_conn_may_go(struct http_conn *conn)
{
	return !conn->deferred && (conn->phase == PHASE_HEAD || conn->phase == PHASE_LINGER) &&
	       http_conn_unsent(conn) == 0;
}

static bool tick_write(struct http_conn *conn)
{
	size_t unsent = http_conn_unsent(conn);
	if (!unsent) {
		conn->sending.since_ms = -1;
		return false;
	}
	if (!has_stalled(conn, &conn->sending, conn->written_bytes + conn->out.len - unsent,
			 conn->core->limits.write_timeout_ms))
		return false;
	stat_add(STAT_http_timeouts_write, 1);
	http_conn_close(conn);
	return true;
}

void http_conn_tick(struct http_conn *conn)
{
	if (conn->phase == PHASE_CLOSED || tick_write(conn))
		return;
	if (conn->phase == PHASE_HEAD)
		tick_head(conn);
	else if (conn->phase == PHASE_BODY)
		tick_body(conn);
	else if (conn->phase == PHASE_DISCARD || conn->phase == PHASE_LINGER)
		tick_rest(conn);
	http_conn_settle(conn);
}

/* Whether the client takes the end of the stream is not waited for. */
static void stop_endless(struct http_conn *conn)
{
	abort_request(conn, ERR_CANCELLED);
	if (conn->head.minor_1)
		buf_append_text(&conn->out, "0\r\n\r\n");
	http_conn_flush(conn);
	http_conn_close(conn);
}

void http_conn_stop(struct http_conn *conn)
{
	if (conn->endless)
		stop_endless(conn);
	/* A head that is not there in full is nothing that was asked yet. */
	if (conn->phase == PHASE_HEAD) {
		if (http_conn_unsent(conn))
			http_conn_enter(conn, PHASE_LINGER);
		else
			http_conn_close(conn);
	}
	http_conn_settle(conn);
}
