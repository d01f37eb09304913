/* The body of a request, from the transport to its handler: found in the input by its length or its
 * chunks, decoded, held to its bounds, and given piece by piece or gathered.
 *
 * A body that is not compressed, or that is gathered before the handler has any of it, goes through
 * in one pass. A compressed one for a handler that takes pieces goes through in two (enum
 * packed_state), since what is wrong with it shows at its end. */
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

/* NULL in *coding: the body is as it is. Headers of one name are a list (RFC 9110 5.3), so a second
 * one would be a second coding. */
static bool http_body_find_coding(const struct http_request *request, const struct coding **coding)
{
	*coding = NULL;
	for (size_t i = 0; i < request->header_count; i++) {
		const struct http_header *header = &request->headers[i];
		if (!head_name_is(header->name, "content-encoding") || !header->value.len ||
		    head_name_is(header->value, "identity"))
			continue;
		const struct coding *found = coding_find(header->value);
		if (!found || *coding)
			return false;
		*coding = found;
	}
	return true;
}

bool http_body_begin(struct http_conn *conn)
{
	if (!has_body(conn))
		return true;
	if (!http_body_find_coding(&conn->request, &conn->coding))
		return false;
	if (!conn->coding)
		return true;
	conn->decoder = http_core_take_decoder(conn->core);
	conn->decoder_charged_bytes = DECODER_FREE_BYTES;
	body_decoder_begin(conn->decoder, conn->coding);
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
		 conn->packed_state ? "compressed " : "", max_bytes, option ? " (" : "",
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

static void refuse_coded(struct http_conn *conn, const char *reason)
{
	stat_add(conn->coding->refused, 1);
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
	size_t whole = conn->decoder ? 0 : (size_t)conn->body_left + piece.len;
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
	if (conn->decoder)
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

/* ---- Compressed bodies ----------------------------------------------------------------------- */

/* A client says by a few bytes of brotli how much memory its decoder takes: so that counts, too,
 * right after it was taken. false: refused. */
static bool http_body_charge_decoder(struct http_conn *conn)
{
	size_t peak_bytes = body_decoder_peak_bytes(conn->decoder);
	if (peak_bytes <= conn->decoder_charged_bytes)
		return true;
	if (!http_body_charge(conn, peak_bytes - conn->decoder_charged_bytes))
		return false;
	conn->decoder_charged_bytes = peak_bytes;
	return true;
}

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
	body_decoder_begin(conn->decoder, conn->coding);
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

/* Decodes a little of what was kept. What is used counts for the turn as well as what becomes of
 * it, since there may be ever so much of the one with nothing of the other. */
static void decode_packed(struct http_conn *conn)
{
	struct slice piece, in = conn->packed_rest;
	const char *reason;
	if (in.len > PACKED_STEP_BYTES)
		in.len = PACKED_STEP_BYTES;
	bool last = in.len == conn->packed_rest.len;
	enum body_result result = body_decoder_next(conn->decoder, &in, last, &piece, &reason);
	size_t used = (size_t)(in.data - conn->packed_rest.data);
	if (used)
		conn->packed_rest = (struct slice){in.data, conn->packed_rest.len - used};
	conn->turn_bytes += used;
	if (!http_body_charge_decoder(conn))
		return;
	if (result == BODY_BAD)
		refuse_coded(conn, reason);
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
	if (!conn->decoder || conn->packed_state)
		return take_framed(conn, in);
	struct slice piece = {in->data, conn->framed}, rest = piece;
	const char *reason;
	enum body_result result = body_decoder_next(conn->decoder, &rest, last, &piece, &reason);
	size_t used = conn->framed - rest.len;
	*in = (struct slice){in->data + used, in->len - used};
	conn->framed -= used;
	if (!http_body_charge_decoder(conn))
		return true;
	if (result == BODY_BAD)
		refuse_coded(conn, reason);
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

/* Whether there is something that a pause holds back. */
static bool http_body_has_more(const struct http_conn *conn)
{
	return conn->framed || conn->packed_rest.len ||
	       (conn->decoder && body_decoder_holds_pieces(conn->decoder));
}

bool http_body_step(struct http_conn *conn, struct slice *in)
{
	const char *reason;
	if (conn->parked) {
		if (conn->unparked)
			http_conn_unpark(conn);
		return !conn->parked;
	}
	/* With nothing left to hold back, it may be the end. */
	if (conn->paused && (!conn->may_end || http_body_has_more(conn)))
		return false;
	if (conn->turn_bytes >= TURN_MAX_BYTES) {
		http_conn_defer(conn);
		return false;
	}
	if (conn->packed_state > PACKED_COMES) {
		decode_packed(conn);
		return true;
	}
	if (in->len)
		conn->waits_for_continue = false;
	/* What the decoder still holds comes before the next bytes are looked at. */
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
