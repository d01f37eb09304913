/* The body of a request, from the transport to its handler: found in the input by its length or its
 * chunks, inflated, held to its bounds, and given piece by piece or gathered.
 *
 * A body that is not gzipped, or that is gathered before the handler has any of it, goes through in
 * one pass. A gzipped one for a handler that takes pieces goes through in two (enum packed_state),
 * since what is wrong with it shows at its end. */
#include "http/conn.h"

#include "base/stats.h"

static bool has_body(const struct http_conn *conn)
{
	return conn->head.chunked || conn->head.length > 0;
}

static void init_packed(struct http_conn *conn)
{
	size_t max_bytes = conn->core->limits.memory_max_bytes / PACKED_SHARE;
	if (max_bytes > conn->request.route->body_max_bytes)
		max_bytes = conn->request.route->body_max_bytes;
	conn->packed_state = PACKED_COMES;
	conn->packed_max_bytes = max_bytes;
	conn->checked_bytes = 0;
	buf_init(&conn->packed, max_bytes);
}

bool http_body_begin(struct http_conn *conn)
{
	struct slice coding = http_header(&conn->request, "content-encoding");
	if (!has_body(conn) || !coding.len || head_name_is(coding, "identity"))
		return true;
	if (!head_name_is(coding, "gzip") && !head_name_is(coding, "x-gzip"))
		return false;
	conn->gunzip = http_core_take_gunzip(conn->core);
	if (conn->request.route->handler->body)
		init_packed(conn);
	return true;
}

size_t http_body_decoded_max(const struct http_route *route)
{
	return route->decoded_max_bytes ? route->decoded_max_bytes : route->body_max_bytes;
}

/* How long a body may be as sent. */
static size_t encoded_max(const struct http_conn *conn)
{
	return conn->packed_state ? conn->packed_max_bytes : conn->request.route->body_max_bytes;
}

/* ---- Bodies that are refused ----------------------------------------------------------------- */

/* Counted, and in words. */
static void http_body_too_large(const struct http_conn *conn, char reason[REASON_MAX_BYTES])
{
	const struct http_route *route = conn->request.route;
	size_t max_bytes = encoded_max(conn);
	const char *option = max_bytes < route->body_max_bytes ? conn->core->limits.packed_option
							       : route->body_option;
	stat_add(STAT_http_refused_too_large, 1);
	if (!route->body_max_bytes) {
		snprintf(reason, REASON_MAX_BYTES,
			 "this takes no body: its parameters belong into the address, behind a ?");
		return;
	}
	snprintf(reason, REASON_MAX_BYTES, "the %sbody is larger than %zu bytes%s%s%s",
		 conn->packed_state ? "gzipped " : "", max_bytes, option ? " (" : "",
		 option ? option : "", option ? ")" : "");
}

bool http_body_is_too_large(const struct http_conn *conn, char reason[REASON_MAX_BYTES])
{
	if (conn->head.length <= encoded_max(conn))
		return false;
	http_body_too_large(conn, reason);
	return true;
}

static void refuse_too_large(struct http_conn *conn)
{
	char reason[REASON_MAX_BYTES];
	http_body_too_large(conn, reason);
	http_conn_refuse_body(conn, ERR_LIMIT, 413, reason);
}

static void refuse_decoded(struct http_conn *conn)
{
	const struct http_route *route = conn->request.route;
	const char *option = route->decoded_option;
	char reason[REASON_MAX_BYTES];
	stat_add(STAT_http_refused_decoded, 1);
	snprintf(reason, sizeof(reason), "the decoded body is larger than %zu bytes%s%s%s",
		 http_body_decoded_max(route), option ? " (" : "", option ? option : "",
		 option ? ")" : "");
	http_conn_refuse_body(conn, ERR_LIMIT, 413, reason);
}

static void refuse_gzip(struct http_conn *conn, const char *reason)
{
	stat_add(STAT_http_refused_gzip, 1);
	http_conn_refuse_body(conn, ERR_INVALID, 400, reason);
}

static void refuse_framing(struct http_conn *conn, const char *reason)
{
	stat_add(STAT_http_refused_framing, 1);
	http_conn_refuse_body(conn, ERR_INVALID, 400, reason);
}

/* ---- BODY ------------------------------------------------------------------------------------ */

/* false: refused. */
static bool http_body_charge(struct http_conn *conn, size_t bytes)
{
	if (!http_request_charge(&conn->request, bytes))
		return true;
	stat_add(STAT_http_memory_refused, 1);
	http_conn_refuse_body(conn, ERR_BUSY, 503,
			      "the memory for bodies (http.memory_max) is used up, try again");
	return false;
}

static void http_body_gather(struct http_conn *conn, struct slice piece)
{
	struct http_request *request = &conn->request;
	if (!http_body_charge(conn, piece.len))
		return;
	/* One allocation where the length is known and no lie worth the memory. */
	size_t whole = conn->gunzip ? 0 : (size_t)conn->body_left + piece.len;
	if (!request->body.len && whole <= TURN_MAX_BYTES && whole <= request->body.max &&
	    !buf_reserve(&request->body, whole))
		ASSERT(false);
	int err = buf_append(&request->body, piece.data, piece.len);
	ASSERT(!err); /* its maximum is what body_bytes is held to */
}

static void http_body_deliver(struct http_conn *conn, struct slice piece)
{
	struct http_request *request = &conn->request;
	const struct http_route *route = request->route;
	request->body_bytes += piece.len;
	conn->turn_bytes += piece.len;
	if (conn->gunzip)
		stat_add(STAT_http_decoded_bytes, (int64_t)piece.len);
	if (request->body_bytes > http_body_decoded_max(route))
		refuse_decoded(conn);
	else if (route->handler->body)
		route->handler->body(request, piece);
	else
		http_body_gather(conn, piece);
}

static void http_body_end_body(struct http_conn *conn)
{
	const struct http_route *route = conn->request.route;
	http_conn_enter(conn, PHASE_ANSWER);
	route->handler->end(&conn->request);
}

/* ---- Gzipped bodies -------------------------------------------------------------------------- */

static void http_body_pack(struct http_conn *conn, struct slice piece)
{
	if (!http_body_charge(conn, piece.len))
		return;
	int err = buf_append(&conn->packed, piece.data, piece.len);
	ASSERT(!err); /* its maximum is what encoded_bytes is held to */
}

static void http_body_begin_pass(struct http_conn *conn, enum packed_state state)
{
	conn->packed_state = state;
	conn->packed_rest = buf_slice(&conn->packed);
	gunzip_reset(conn->gunzip);
}

static void http_body_check(struct http_conn *conn, struct slice piece)
{
	conn->checked_bytes += piece.len;
	conn->turn_bytes += piece.len;
	if (conn->checked_bytes > http_body_decoded_max(conn->request.route))
		refuse_decoded(conn);
}

static void http_body_end_pass(struct http_conn *conn)
{
	if (conn->packed_state == PACKED_CHECKED)
		http_body_begin_pass(conn, PACKED_DELIVERED);
	else
		http_body_end_body(conn);
}

/* Inflates a little of what was kept. What is used counts for the turn as well as what becomes of
 * it, since there may be ever so much of the one with nothing of the other. */
static void inflate_packed(struct http_conn *conn)
{
	struct slice piece, in = conn->packed_rest;
	const char *reason;
	if (in.len > PACKED_STEP_BYTES)
		in.len = PACKED_STEP_BYTES;
	bool last = in.len == conn->packed_rest.len;
	enum body_result result = gunzip_next(conn->gunzip, &in, last, &piece, &reason);
	size_t used = (size_t)(in.data - conn->packed_rest.data);
	if (used)
		conn->packed_rest = (struct slice){in.data, conn->packed_rest.len - used};
	conn->turn_bytes += used;
	if (result == BODY_BAD)
		refuse_gzip(conn, reason);
	else if (result == BODY_END)
		http_body_end_pass(conn);
	else if (result == BODY_PIECE && conn->packed_state == PACKED_CHECKED)
		http_body_check(conn, piece);
	else if (result == BODY_PIECE)
		http_body_deliver(conn, piece);
}

/* ---- BODY, as it comes ----------------------------------------------------------------------- */

enum framing { FRAMED, FRAME_MORE, FRAME_END, FRAME_BAD };

/* Finds out how many bytes at the front of *in are body: conn->framed. */
static enum framing frame(struct http_conn *conn, struct slice *in, const char **reason)
{
	if (!conn->head.chunked) {
		conn->framed = conn->body_left < in->len ? (size_t)conn->body_left : in->len;
		conn->body_left -= conn->framed;
	} else {
		struct slice piece;
		enum body_result result = chunked_next(&conn->chunked, in, &piece, reason);
		if (result == BODY_BAD)
			return FRAME_BAD;
		if (result == BODY_END)
			return FRAME_END;
		if (result == BODY_MORE)
			return FRAME_MORE;
		*in = (struct slice){piece.data, piece.len + in->len};
		conn->framed = piece.len;
	}
	conn->encoded_bytes += conn->framed;
	if (conn->framed)
		return FRAMED;
	return conn->body_left ? FRAME_MORE : FRAME_END;
}

/* Hands out or keeps the framed bytes as they are. */
static bool take_framed(struct http_conn *conn, struct slice *in)
{
	struct slice piece = {in->data, conn->framed};
	if (!piece.len)
		return false;
	*in = (struct slice){in->data + piece.len, in->len - piece.len};
	conn->framed = 0;
	if (conn->packed_state)
		http_body_pack(conn, piece);
	else
		http_body_deliver(conn, piece);
	return true;
}

/* Hands out one piece of the framed bytes. false: more input is wanted. */
static bool http_body_decode(struct http_conn *conn, struct slice *in, bool last)
{
	if (!conn->gunzip || conn->packed_state)
		return take_framed(conn, in);
	struct slice piece = {in->data, conn->framed}, rest = piece;
	const char *reason;
	enum body_result result = gunzip_next(conn->gunzip, &rest, last, &piece, &reason);
	size_t used = conn->framed - rest.len;
	*in = (struct slice){in->data + used, in->len - used};
	conn->framed -= used;
	if (result == BODY_BAD)
		refuse_gzip(conn, reason);
	else if (result == BODY_PIECE)
		http_body_deliver(conn, piece);
	return result == BODY_PIECE || result == BODY_BAD;
}

/* The client waits to be told that its body is welcome. */
static void send_continue(struct http_conn *conn)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
	conn->waits_for_continue = false;
	stat_add(STAT_http_responses_1xx, 1);
	buf_append(&conn->out, text, sizeof(text) - 1);
}

bool http_body_step(struct http_conn *conn, struct slice *in)
{
	const char *reason;
	/* With nothing left to hold back, it may be the end. */
	if (conn->paused && (conn->framed || conn->packed_rest.len || !conn->may_end))
		return false;
	if (conn->turn_bytes >= TURN_MAX_BYTES) {
		http_conn_defer(conn);
		return false;
	}
	if (conn->packed_state > PACKED_COMES) {
		inflate_packed(conn);
		return true;
	}
	if (in->len)
		conn->waits_for_continue = false;
	/* What gunzip still holds comes before the next bytes are looked at. */
	if (http_body_decode(conn, in, false))
		return true;
	switch (frame(conn, in, &reason)) {
	case FRAMED:
		if (conn->encoded_bytes > encoded_max(conn))
			refuse_too_large(conn);
		return true;
	case FRAME_END:
		if (conn->packed_state)
			http_body_begin_pass(conn, PACKED_CHECKED);
		else if (!http_body_decode(conn, in, true))
			http_body_end_body(conn);
		return true;
	case FRAME_BAD:
		refuse_framing(conn, reason);
		return true;
	case FRAME_MORE:
		break;
	}
	if (conn->waits_for_continue)
		send_continue(conn);
	return false;
}
