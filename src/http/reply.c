/* Answers: at once, as a stream, and errors. */
#include <http_parser.h>
#include <time.h>

#include "base/stats.h"
#include "http/conn.h"
#include "wire/json.h"

enum { UNKNOWN_LENGTH = -1 };

/* ---- Heads ----------------------------------------------------------------------------------- */

static void count_status(int status)
{
	static const enum stat_id by_class[] = {STAT_http_responses_1xx, STAT_http_responses_2xx,
						STAT_http_responses_3xx, STAT_http_responses_4xx,
						STAT_http_responses_5xx};
	ASSERT(status >= 100 && status <= 599);
	stat_add(by_class[status / 100 - 1], 1);
}

/* `Tue, 15 Nov 1994 08:12:31 GMT` (RFC 9110 5.6.7), made once a second. */
static const char *date_now(struct http_core *core)
{
	time_t now = (time_t)floor_div(clock_wall_ms(core->clock), 1000);
	if (now != core->date_s) {
		struct tm tm;
		gmtime_r(&now, &tm);
		strftime(core->date, sizeof(core->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
		core->date_s = now;
	}
	return core->date;
}

static void http_reply_put_number(struct buf *out, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	buf_append(out, digits + at, sizeof(digits) - at);
}

struct answer {
	int status;
	const char *content_type; /* NULL: no body */
	int64_t length;
	bool gzipped;
	struct slice headers; /* ready lines */
};

static bool has_no_body(int status)
{
	return status < 200 || status == 204 || status == 304;
}

static void put_framing(struct http_conn *conn, const struct answer *answer)
{
	struct buf *out = &conn->out;
	if (has_no_body(answer->status))
		return;
	if (answer->length != UNKNOWN_LENGTH) {
		buf_append_text(out, "Content-Length: ");
		http_reply_put_number(out, (uint64_t)answer->length);
		buf_append_text(out, "\r\n");
	} else if (conn->head.minor_1) {
		buf_append_text(out, "Transfer-Encoding: chunked\r\n");
	}
}

static void put_connection(struct http_conn *conn)
{
	if (conn->closing)
		buf_append_text(&conn->out, "Connection: close\r\n");
	else if (!conn->head.minor_1)
		buf_append_text(&conn->out, "Connection: keep-alive\r\n");
}

/* Of the request that is answered; NULL: none, or it has not come so far. */
static const struct http_route *http_reply_route(const struct http_conn *conn)
{
	return conn->held ? conn->request.route : NULL;
}

static void http_reply_put_head(struct http_conn *conn, const struct answer *answer)
{
	const struct http_route *route = http_reply_route(conn);
	bool any_origin = route && route->any_origin;
	struct buf *out = &conn->out;
	count_status(answer->status);
	conn->status = answer->status;
	buf_append_text(out, "HTTP/1.1 ");
	http_reply_put_number(out, (uint64_t)answer->status);
	buf_append_char(out, ' ');
	buf_append_text(out, http_status_str((enum http_status)answer->status));
	buf_append_text(out, "\r\nDate: ");
	buf_append_text(out, date_now(conn->core));
	buf_append_text(out, "\r\n");
	if (answer->content_type) {
		buf_append_text(out, "Content-Type: ");
		buf_append_text(out, answer->content_type);
		/* Data of others is shown in browsers: it is what we say it is, nothing else, and
		 * no page of another site embeds it. */
		buf_append_text(out, "\r\nX-Content-Type-Options: nosniff\r\n"
				     "Cross-Origin-Resource-Policy: ");
		buf_append_text(out, any_origin ? "cross-origin\r\n" : "same-origin\r\n");
	}
	if (any_origin)
		buf_append_text(out, site_any_origin_lines);
	if (answer->gzipped)
		buf_append_text(out, "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n");
	put_framing(conn, answer);
	put_connection(conn);
	buf_append(out, answer->headers.data, answer->headers.len);
	buf_append_text(out, "\r\n");
}

/* Large bytes go from where they are, behind what is gathered. */
static void http_reply_put_body(struct http_conn *conn, struct slice bytes)
{
	if (bytes.len <= OUT_COPY_MAX_BYTES) {
		buf_append(&conn->out, bytes.data, bytes.len);
	} else {
		struct slice pieces[] = {buf_slice(&conn->out), bytes};
		conn->written_bytes += pieces[0].len + bytes.len;
		stat_add(STAT_http_sent_bytes, (int64_t)(pieces[0].len + bytes.len));
		conn->transport->write(conn, pieces, 2);
		buf_clear(&conn->out);
	}
	if (conn->out.len >= OUT_FLUSH_BYTES)
		http_conn_flush(conn);
	ASSERT(!conn->out.failed);
}

static void http_reply_put_header(struct http_request *request, const char *name, const char *value)
{
	struct buf *headers = &request->reply_headers;
	ASSERT(request->conn->live);
	for (const char *c = value; *c; c++)
		ASSERT((uint8_t)*c >= ' ' && *c != 0x7f);
	buf_printf(headers, "%s: %s\r\n", name, value);
	ASSERT(!headers->failed);
}

void http_reply_header(struct http_request *request, const char *name, const char *value)
{
	ASSERT(!request->conn->streaming);
	http_reply_put_header(request, name, value);
}

/* ---- Whether to close ------------------------------------------------------------------------ */

/* The answer comes before the body has: what is left must be short and sure to come, else the
 * connection cannot go on. */
static void consider_closing(struct http_conn *conn)
{
	if (conn->core->stopping)
		conn->closing = true;
	if (conn->phase != PHASE_BODY)
		return;
	if (conn->head.chunked || conn->waits_for_continue ||
	    conn->body_left + conn->framed > DISCARD_MAX_BYTES)
		conn->closing = true;
}

/* ---- At once --------------------------------------------------------------------------------- */

/* What gzip makes much smaller. Events are left out: each is wanted at once, and gzip would hold it
 * back. */
static bool http_reply_is_text(const char *content_type)
{
	static const char events[] = "text/event-stream";
	if (strncmp(content_type, events, sizeof(events) - 1) == 0)
		return false;
	return strncmp(content_type, "text/", 5) == 0 || strstr(content_type, "json") ||
	       strstr(content_type, "xml");
}

static bool takes_gzip(const struct http_request *request)
{
	return head_list_accepts(http_header(request, "accept-encoding"), "gzip");
}

/* The gzipped body in core->scratch, if that is smaller. */
static bool compress(struct http_conn *conn, struct slice body, struct slice *gzipped)
{
	struct buf *scratch = &conn->core->scratch;
	if (body.len > GZIP_WHOLE_MAX_BYTES)
		return false; /* it would hold up the others */
	struct gzip *gzip = http_core_take_gzip(conn->core);
	if (!gzip)
		return false;
	buf_clear(scratch);
	int err = gzip_write(gzip, body, true, scratch);
	http_core_give_gzip(conn->core, &gzip);
	*gzipped = buf_slice(scratch);
	return !err && scratch->len < body.len;
}

static bool says_when(const struct http_request *request)
{
	struct slice headers = buf_slice(&request->reply_headers), name = SLICE("Retry-After: ");
	return headers.len && memmem(headers.data, headers.len, name.data, name.len);
}

void http_reply(struct http_request *request, int status, const char *content_type,
		struct slice body)
{
	struct http_conn *conn = request->conn;
	ASSERT(conn->live && !conn->streaming);
	ASSERT(content_type || !body.len);
	if (status == 503 && !says_when(request))
		http_reply_header(request, "Retry-After", "1");
	struct answer answer = {.status = status,
				.content_type = content_type,
				.headers = buf_slice(&request->reply_headers)};
	if (body.len >= GZIP_WORTH_BYTES && http_reply_is_text(content_type) && takes_gzip(request))
		answer.gzipped = compress(conn, body, &body);
	answer.length = (int64_t)body.len;
	consider_closing(conn);
	http_reply_put_head(conn, &answer);
	http_reply_put_body(conn, request->verb == VERB_HEAD ? (struct slice){NULL, 0} : body);
	http_conn_answered(conn);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

void http_error_json(struct buf *out, int status, struct slice message)
{
	buf_printf(out, "{\"code\":%d,\"message\":", status);
	json_append_string(out, message); /* a message may quote any bytes */
	buf_append_char(out, '}');
}

enum { ERROR_BODY_MAX_BYTES = 6 * HTTP_MESSAGE_MAX_BYTES + 100 };

/* In the shape that clients of the route expect. */
static void put_error_body(const struct http_conn *conn, struct buf *out, int status,
			   const char *message)
{
	const struct http_route *route = http_reply_route(conn);
	if (route && route->handler->error) {
		route->handler->error(out, status, slice_of(message));
	} else {
		buf_append_text(out, "{\"error\":");
		http_error_json(out, status, slice_of(message));
		buf_append_text(out, "}\n");
	}
	ASSERT(!out->failed);
}

int http_status_of(int err)
{
	switch (err) {
	case ERR_INVALID:
		return 400;
	case ERR_DENIED:
		return 403;
	case ERR_NOT_FOUND:
		return 404;
	case ERR_EXISTS:
		return 409;
	case ERR_LIMIT:
		return 422;
	case ERR_BUSY:
	case ERR_RETRY:
	case ERR_UNKNOWN:
	case ERR_TIMEOUT:
	case ERR_CANCELLED:
		return 503;
	case ERR_FULL:
	case ERR_READ_ONLY:
		return 507;
	default:
		return 500;
	}
}

void http_reply_error(struct http_request *request, int status, const char *fmt, ...)
{
	char message[HTTP_MESSAGE_MAX_BYTES + 1];
	struct buf body;
	va_list args;
	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	buf_init(&body, ERROR_BODY_MAX_BYTES);
	put_error_body(request->conn, &body, status, message);
	http_reply(request, status, "application/json", buf_slice(&body));
	buf_release(&body);
}

void http_conn_refuse(struct http_conn *conn, int status, const char *message)
{
	struct buf body;
	buf_init(&body, ERROR_BODY_MAX_BYTES);
	put_error_body(conn, &body, status, message);
	struct answer answer = {
		.status = status, .content_type = "application/json", .length = (int64_t)body.len};
	/* What the server refuses for want of room passes soon. */
	if (status == 503)
		answer.headers = SLICE("Retry-After: 1\r\n");
	http_reply_put_head(conn, &answer);
	http_reply_put_body(conn, conn->head.verb == VERB_HEAD ? (struct slice){NULL, 0}
							       : buf_slice(&body));
	buf_release(&body);
}

/* ---- Streams --------------------------------------------------------------------------------- */

void http_stream_begin(struct http_request *request, int status, const char *content_type)
{
	struct http_conn *conn = request->conn;
	ASSERT(conn->live && !conn->streaming && !has_no_body(status));
	if (http_reply_is_text(content_type) && takes_gzip(request) && request->verb != VERB_HEAD &&
	    !conn->endless)
		conn->gzip = http_core_take_gzip(conn->core);
	conn->streaming = true;
	/* Without chunks the end of the connection is the end of the answer. */
	if (!conn->head.minor_1 || conn->core->stopping)
		conn->closing = true;
	struct answer answer = {.status = status,
				.content_type = content_type,
				.length = UNKNOWN_LENGTH,
				.gzipped = conn->gzip != NULL,
				.headers = buf_slice(&request->reply_headers)};
	http_reply_put_head(conn, &answer);
	buf_clear(&request->reply_headers); /* from now on: trailers */
	if (!conn->running)
		http_conn_defer(conn);
}

/* Viewers are not to take the places of all others. */
static unsigned endless_most(const struct http_core *core)
{
	unsigned half = (core->limits.connections_max + 1) / 2;
	return core->limits.endless_max < half ? core->limits.endless_max : half;
}

static void refuse_endless(struct http_request *request)
{
	const struct http_core *core = request->conn->core;
	const char *option = core->limits.endless_option;
	stat_add(STAT_http_endless_refused, 1);
	if (core->stopping)
		http_reply_error(request, 503, "the server stops");
	else
		http_reply_error(request, 503,
				 "there are as many streams without end as may be, %u%s%s%s",
				 endless_most(core), option ? " (" : "", option ? option : "",
				 option ? ")" : "");
}

int http_stream_begin_endless(struct http_request *request, const char *content_type)
{
	struct http_conn *conn = request->conn;
	struct http_core *core = conn->core;
	ASSERT(conn->live && conn->phase == PHASE_ANSWER);
	if (conn->at_end) {
		conn->live = false;
		http_conn_close(conn);
		return ERR_CANCELLED;
	}
	if (core->stopping || core->endless_count >= endless_most(core)) {
		refuse_endless(request);
		return ERR_LIMIT;
	}
	stat_set(STAT_http_endless, ++core->endless_count);
	conn->endless = true;
	conn->closing = true;
	http_reply_header(request, "Cache-Control", "no-store");
	http_stream_begin(request, 200, content_type);
	return 0;
}

static void put_chunk(struct http_conn *conn, struct slice piece)
{
	if (!piece.len)
		return;
	if (conn->head.minor_1)
		buf_printf(&conn->out, "%zx\r\n", piece.len);
	http_reply_put_body(conn, piece);
	if (conn->head.minor_1)
		buf_append_text(&conn->out, "\r\n");
}

/* Through gzip, if that was agreed on. */
static void http_reply_put_piece(struct http_conn *conn, struct slice piece, bool last)
{
	struct buf *scratch = &conn->core->scratch;
	if (!conn->gzip) {
		put_chunk(conn, piece);
		return;
	}
	buf_clear(scratch);
	int err = gzip_write(conn->gzip, piece, last, scratch);
	ASSERT(!err);
	put_chunk(conn, buf_slice(scratch));
}

int http_stream_write(struct http_request *request, struct slice piece)
{
	struct http_conn *conn = request->conn;
	size_t max = conn->core->limits.unsent_max_bytes;
	ASSERT(conn->live && conn->streaming);
	if (request->verb == VERB_HEAD || !piece.len)
		return 0;
	size_t unsent = http_conn_unsent(conn);
	if (piece.len > max || unsent > max - piece.len)
		return ERR_LIMIT;
	http_reply_put_piece(conn, piece, false);
	if (http_conn_unsent(conn) >= max / 2)
		http_conn_flush(conn);
	if (http_conn_unsent(conn) >= max / 2) {
		conn->wants_drain = true;
		return ERR_BUSY;
	}
	/* Small pieces of one turn leave together. */
	if (!conn->running && conn->out.len)
		http_conn_defer(conn);
	return 0;
}

void http_stream_trailer(struct http_request *request, const char *name, const char *value)
{
	ASSERT(request->conn->streaming);
	http_reply_put_header(request, name, value);
}

void http_stream_end(struct http_request *request)
{
	struct http_conn *conn = request->conn;
	ASSERT(conn->live && conn->streaming);
	if (request->verb != VERB_HEAD) {
		if (conn->gzip)
			http_reply_put_piece(conn, (struct slice){NULL, 0}, true);
		if (conn->head.minor_1) {
			struct slice trailers = buf_slice(&request->reply_headers);
			buf_append_text(&conn->out, "0\r\n");
			buf_append(&conn->out, trailers.data, trailers.len);
			buf_append_text(&conn->out, "\r\n");
		}
	}
	http_conn_answered(conn);
}

void http_stream_break(struct http_request *request)
{
	struct http_conn *conn = request->conn;
	ASSERT(conn->live && conn->streaming);
	conn->live = false;
	http_conn_close(conn);
}

bool http_reply_head(struct http_request *request, const char *content_type)
{
	if (request->verb != VERB_HEAD)
		return false;
	http_stream_begin(request, 200, content_type);
	http_stream_end(request);
	return true;
}
