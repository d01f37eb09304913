/* The HTTP/1.1 server: requests come to handlers by a table of routes.
 *
 * A handler is told of a request in pieces: `begin` when the head is there, `body` for each piece
 * of the (decoded) body, `end` after the last one. A compressed body (coding.h) reaches it when all
 * of it has come and its end, checksum and length have been found right, never before. It answers
 * whenever it likes, from one of these or later from a completion on the loop, either at once
 * (http_reply) or as a stream (http_stream_*).
 *
 * The life of a request ends with exactly one of:
 *  - the handler's answer is complete (http_reply, http_reply_error, http_stream_end or
 *    http_stream_break returns), or
 *  - `abort` is called: the client has gone, or a deadline has passed, or the server (not the
 *    handler) has refused the rest of the body, or the server stops.
 * After either the request must not be touched, and no callback of it comes any more: what the
 * handler hung on `request->owner` it frees there. An answer may be given before the body has come;
 * the rest of the body is then thrown away.
 *
 * One connection works on one request at a time; what a client pipelines waits its turn, so answers
 * leave in order. A handler that cannot keep up pauses the body, which stops the socket. A stream
 * that the client does not read tells its producer to wait.
 *
 * Threads: everything runs on the loop's thread and every call is made there.
 *
 * Only who means us is answered, by the name in Host (421 else) unless a credential says it, and no
 * page of another site (403) but by routes that say so: see site.h. The guard of a server says who
 * may ask what (struct http_guard).
 *
 * What is ambiguous is refused with 400 and the connection closed: a bare LF, a folded header, a
 * blank before the colon, NUL and other control bytes, Content-Length beside Transfer-Encoding, a
 * doubled length or Host, any transfer coding but `chunked`. See head.h. */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "loop/tls.h"

enum http_verb {
	VERB_GET,
	VERB_HEAD,
	VERB_POST,
	VERB_PUT,
	VERB_DELETE,
	VERB_OPTIONS, /* of no row: the server answers it by the rows of the path */
	VERB_OTHER
};

const char *http_verb_text(enum http_verb verb);

/* What a caller must be allowed to do. */
enum http_role {
	ROLE_NONE = 1, /* nothing: the route is for everybody */
	ROLE_ANY,      /* anything: the hand-shakes of clients, which hold no data */
	ROLE_READ,
	ROLE_WRITE,
	ROLE_POLL, /* what pollers send, and ask for */
	ROLE_ADMIN,
};

/* Whose data a route reads or changes. */
enum http_reach {
	REACH_NOBODY = 1,
	REACH_TENANT, /* that of one tenant, which the handler finds out (auth/caller.h) */
	REACH_SNMP,   /* that of the tenant of polled devices */
	REACH_ALL,    /* that of all tenants, or of the server itself */
};

struct caller;
struct http_request;
struct param;

struct http_handler {
	/* The head is there. May be NULL. */
	void (*begin)(struct http_request *request);
	/* A piece of the body, decoded; valid until the call returns. NULL: the body is gathered in
	 * request->body, where `end` finds it whole. */
	void (*body)(struct http_request *request, struct slice piece);
	/* The body is complete. Always called, unless the request has ended before. */
	void (*end)(struct http_request *request);
	/* The request ends here without an answer of the handler: see above. May be NULL. `err` is
	 * ERR_CANCELLED (client or server gone), ERR_TIMEOUT, ERR_LIMIT (body over a limit) or
	 * ERR_INVALID (body malformed); for the last three the server has answered. */
	void (*abort)(struct http_request *request, int err);
	/* http_stream_write said ERR_BUSY and there is room again. */
	void (*drained)(struct http_request *request);
	/* Appends the JSON of an error, where clients of the route look for another shape than that
	 * of http_reply_error, which then takes this one; so do the server's own answers (413, 415,
	 * 503 ...). The message has at most HTTP_MESSAGE_MAX_BYTES. May be NULL. */
	void (*error)(struct buf *out, int status, struct slice message);
};

/* One row of the table. GET routes answer HEAD too. */
struct http_route {
	enum http_verb verb;
	const char *path; /* `/api/put`, also with a slash behind it; with `prefix`, `/v2/` stands
			   * for all that begins so; `#` in it stands for a number of up to
			   * HTTP_NUMBER_DIGITS_MAX digits */
	bool prefix;
	enum http_role role;
	enum http_reach reach;
	size_t body_max_bytes;    /* as sent; 0: no body is taken (413) */
	size_t decoded_max_bytes; /* once it is decoded; 0: as body_max_bytes */
	const struct http_handler *handler;
	const char *help;    /* a sentence */
	const char *example; /* path with query, or a command line; NULL: none */
	/* Where the two bounds are set, for the answers that name them. May be NULL. */
	const char *body_option, *decoded_option;
	bool always;                /* answered also when all places for connections are taken */
	bool page;                  /* for people: may be opened by a link on another site */
	bool any_origin;            /* for pages of every site: whoever asks shows a key that is
				     * public by design, or needs none (site.h) */
	const struct param *params; /* the handler's own (api/params.h); NULL: none */
	uint8_t poller_segment; /* which segment of the path names the poller that asks; 0: none */
	bool user_params;       /* `u` and `p` may be a name and a secret, as InfluxDB 1 has it */
};

struct http_header {
	struct slice name, value; /* as sent, blanks around the value removed */
};

struct http_param {
	struct slice name, value; /* decoded */
};

enum { HTTP_SEGMENTS_MAX = 16, HTTP_MESSAGE_MAX_BYTES = 1000, HTTP_NUMBER_DIGITS_MAX = 18 };

struct http_conn;

struct http_request {
	/* For the handler to read. */
	const struct http_route *route;
	void *context;                   /* of the server: http_server_new */
	const struct loop_address *peer; /* who asks, also through trusted proxies */
	bool secure;                     /* it came over TLS, as its client sees it */
	bool from_proxy;                 /* a trusted one */
	/* What a trusted proxy says that Host was; NULL data: nothing. See http_host(). */
	struct slice forwarded_host;
	const struct http_outside *outside; /* of the server; may be NULL */
	/* Who asks on a socket for commands, where no browser and no proxy is; NULL: came
	 * otherwise.
	 */
	const uid_t *peer_uid;
	/* Who asks, as the guard says. NULL: the server has no guard, and everybody may do all. */
	const struct caller *caller;
	const char *known_by; /* `token`, `password`, `session`, `proxy`, `socket`; NULL: nothing */
	struct slice note;    /* http_request_note; NULL data: none */
	bool own_page;        /* a browser says that a page of our own asks (site.h) */
	void *waiting;        /* of the guard, while it has the request parked */
	/* The only tenant whose data the caller may have here, of a route of REACH_TENANT. NULL
	 * data: the request says which. */
	struct slice tenant;
	enum http_verb verb;
	struct slice target; /* as sent, without the path of the external URL */
	/* Of a target that is a whole address, what stands in front of its path; NULL data: none.
	 */
	struct slice authority;
	struct slice path; /* percent-decoded once */
	/* The path by which its route is found: a slash within a part is 0xff in it, which no route
	 * has. So the parts that a route names are those that the handler sees. */
	struct slice route_path;
	/* The path between its slashes, each part decoded by itself, so that `%2F` is a slash
	 * within a part: `/a/b%2Fc/` has the parts `a`, `b/c` and ``. */
	struct slice segments[HTTP_SEGMENTS_MAX];
	size_t segment_count;
	const struct http_param *params; /* of the query, in the order sent */
	size_t param_count;
	const struct http_header *headers;
	size_t header_count;
	int64_t content_length; /* bytes as sent, -1: not known before the end */
	uint64_t body_bytes;    /* decoded, so far */
	struct buf body;        /* gathered, if the handler has no `body` */
	int64_t begun_us;       /* monotonic: when the head was complete */

	/* For the handler to use; HTTP_ARENA_MAX_BYTES of the arena are its own. */
	struct arena arena;
	void *owner;

	/* Private. */
	struct http_conn *conn;
	struct buf reply_headers;
	size_t charged_bytes;
};

enum { HTTP_ARENA_MAX_BYTES = 1 << 20 };

/* The name by which this server was asked; NULL data: by none. */
struct slice http_host(const struct http_request *request);
/* How whoever asks reaches this server: by its external URL, else by the name in the request. */
struct http_base {
	const char *scheme;
	struct slice host; /* NULL data: nobody has said it */
	struct slice prefix;
};
struct http_base http_base_of(const struct http_request *request);

/* ---- Reading a request ----------------------------------------------------------------------- */

/* The first header of that name, in any case; NULL data: none. */
struct slice http_header(const struct http_request *request, const char *name);
/* The only tenant that the caller may have, else what the header X-Tenant says; NULL data: that is
 * not there. */
struct slice http_tenant(const struct http_request *request);
/* The first parameter of that name; NULL data: none (`?a` and `?a=` have data and length 0). */
struct slice http_param(const struct http_request *request, const char *name);
/* The next one of that name, beginning at *at (0 at first), which moves on: for repeated ones.
 * NULL data: no more. */
struct slice http_param_next(const struct http_request *request, const char *name, size_t *at);

/* The first field of that name in a gathered body of application/x-www-form-urlencoded, decoded
 * into the arena, 0 with NULL data: none, or another type of body. ERR_INVALID where the body is
 * not properly percent-encoded, ERR_LIMIT where the arena is full. */
int http_form_field(struct http_request *request, const char *name, struct slice *value) MUST_CHECK;

/* Whether an entity tag, with its quotes, is in the list of If-Match or If-None-Match (RFC
 * 9110, 13.1);
 * `*` is all. Weak tags count as others: a proxy that compresses makes them of ours. */
bool http_tag_is_listed(struct slice list, struct slice tag) MUST_CHECK;

/* No more `body` calls until resumed (the piece being handled counts as taken), nor `end`. `resume`
 * never calls back from inside. */
void http_request_pause(struct http_request *request);
/* The same, also from `begin`; but `end` comes when the whole body has come, and before it the few
 * bytes that the decoder of a compressed body may still hold. */
void http_request_pause_body(struct http_request *request);
void http_request_resume(struct http_request *request);

/* The gathered body becomes the caller's; it frees it with buf_release. Its memory stays charged
 * until the request ends. */
struct buf http_request_take_body(struct http_request *request);

/* Counts memory that the handler is about to hold for this request against the server's
 * memory_max_bytes; given back when the request ends. ERR_LIMIT: answer 503. Gathered bodies are
 * charged by the server itself. */
int http_request_charge(struct http_request *request, size_t bytes) MUST_CHECK;

/* ---- Answering ------------------------------------------------------------------------------- */

/* Adds a header to the answer; before http_reply or http_stream_begin. A value with control bytes
 * is a programming error. */
void http_reply_header(struct http_request *request, const char *name, const char *value);

/* The whole answer; the bytes are copied or sent before it returns. `content_type` NULL: no body
 * (204, 304). Gzipped where the client takes it and it is worth it. A 503 says when to come again,
 * in one second, where the handler has not set another Retry-After. */
void http_reply(struct http_request *request, int status, const char *content_type,
		struct slice body);

/* For a HEAD request whose answer to GET would take work: 200 with the head of a stream, which has
 * no length. False, and nothing happens, for other verbs. */
bool http_reply_head(struct http_request *request, const char *content_type);

/* {"error":{"code":400,"message":"..."}}: every error of the server looks like this, but where the
 * route's handler has an `error`. The message is cut at HTTP_MESSAGE_MAX_BYTES. */
void http_reply_error(struct http_request *request, int status, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

/* What a change is about that its target does not say, for the log: in the request's arena, cut at
 * some length. */
void http_request_note(struct http_request *request, struct slice text);

/* The status of an error (enum err), the same at every door: 400 the input is wrong, 404 and 409 it
 * is not there or is there already, 422 a limit, 503 send it again soon, 507 no room; 500 all
 * others, which whoever asks cannot help. */
int http_status_of(int err);

/* The JSON body of http_reply_error, for answers that put more beside it: appends the object
 * {"code":...,"message":"..."}. */
void http_error_json(struct buf *out, int status, struct slice message);

void http_stream_begin(struct http_request *request, int status, const char *content_type);
/* The same, 200, for a stream without an end of its own, as of events (text/event-stream); from
 * `end` or later, and after http_reply_head(). What is written leaves at once and as it is; nobody
 * on its way keeps it (Cache-Control: no-store). The stream may be silent for as long as its client
 * is there: it ends by `abort` when the client sends its end, and at once when the server stops.
 * An error, and the request is over: ERR_CANCELLED, its client has gone; ERR_LIMIT, answered with
 * 503, since as many such streams are open as may be (endless_max, and half of the connections at
 * most) or since the server stops. */
int http_stream_begin_endless(struct http_request *request, const char *content_type) MUST_CHECK;
/* 0: taken, go on. ERR_BUSY: taken, but wait for `drained` before the next. ERR_LIMIT: not taken,
 * because more than unsent_max_bytes would wait (it was not heeded, or the piece is too large). */
int http_stream_write(struct http_request *request, struct slice piece) MUST_CHECK;
/* A header behind the last piece, for what is not known earlier; clients of HTTP/1.0 do not get it.
 * As http_reply_header, before http_stream_end. */
void http_stream_trailer(struct http_request *request, const char *name, const char *value);
void http_stream_end(struct http_request *request);
/* Something failed half-way: closes the connection so that the client sees an incomplete answer. */
void http_stream_break(struct http_request *request);

/* ---- The server ------------------------------------------------------------------------------ */

/* How the server looks from outside (http/forwarded.h). */
struct http_outside {
	struct loop_networks proxies; /* whose X-Forwarded-For, -Proto and -Host count */
	bool proxies_on_paths;        /* and of those on sockets for proxies (http_path_use) */
	/* Of the external URL: `granary.example:8443`, `/path` or empty. NULL data: there is none.
	 */
	struct slice host, prefix;
	bool https;
};
/* Sets the external URL; it keeps pointers into the text. ERR_INVALID with a sentence. */
int http_external_parse(const char *text, struct http_outside *outside,
			struct errbuf *e) MUST_CHECK;

struct http_limits {
	const struct http_outside *outside; /* outlives the server; NULL: nobody stands in front */
	/* What clients may call us besides localhost and addresses: NAME or
	 * NAME:PORT, each http_host_valid(), at most 64; and where that is set, for answers. */
	const char *const *hosts;
	size_t host_count;
	const char *hosts_option;
	unsigned connections_max;
	unsigned per_address_max;   /* of these; 0: no bound of its own */
	unsigned endless_max;       /* streams without end, and where that is set, for answers */
	const char *endless_option; /* may be NULL */
	unsigned headers_max, params_max;
	size_t head_max_bytes;     /* request line and headers */
	size_t memory_max_bytes;   /* gathered and compressed bodies, large decoders, and what
				    * handlers charge: all requests; one compressed body may be a
				    * quarter of it */
	const char *packed_option; /* what that quarter is of, for answers; may be NULL */
	size_t unsent_max_bytes;   /* per connection; streams are told to wait at half of it */
	size_t drain_max_bytes;    /* of a refused body */
	int64_t header_timeout_ms; /* from the first byte of a request to the end of its head */
	int64_t idle_timeout_ms;   /* between requests */
	int64_t body_timeout_ms;   /* in each such time at least progress_min_bytes must come */
	int64_t write_timeout_ms;  /* and in each such time as many must be taken by the client */
	size_t progress_min_bytes;
};

/* The defaults: 1,024 connections, 256 streams without end, 16 KB of head, 100 headers, 256
 * parameters, 256 MB of memory, 1 MB unsent, 64 MB drained, 10 s for a head, 60 s idle, 10 s body,
 * 30 s write, 1,000 bytes. */
extern const struct http_limits http_limits_default;

/* A name or an address, perhaps with a port, as Host has it. */
bool http_host_valid(struct slice text);

/* Whether a header may be called so (RFC 9110 5.6.2). */
bool http_header_name_valid(struct slice name);

/* For doors of other protocols, whose first bytes these are: whether they are HTTP, or no text.
 * Browsers send what pages of other sites want sent, also to such a port: the body of a request is
 * not to be taken for lines. So are the first bytes of TLS, which a page may have a say in. False
 * also while the first line is not whole and has no more than line_max_bytes. */
bool http_begins(struct slice bytes, size_t line_max_bytes);

/* Who may ask what. The server asks it for each request whose route is known, before anything of
 * the body is taken; not for one that a page of another site has sent. */
enum { HTTP_GUARD_WAITS = 1 };

struct http_guard {
	/* Sets the request's caller. 0: it may go on; or the status of the answer, 401, 403, 429 or
	 * 503, with a sentence; or HTTP_GUARD_WAITS: the request is parked until http_unpark(), by
	 * which it is asked once more. *shown: the name in Host does not count, since what lets the
	 * request in is something that a browser sends for no page but our own, or since nothing
	 * is answered without. */
	int (*admit)(struct http_guard *guard, struct http_request *request, bool *shown,
		     struct errbuf *why);
	/* The request is over, and its caller, which is not NULL, needed no more. `status` is that
	 * of the answer; 0: the client has gone, or the server goes, before there was one. */
	void (*leave)(struct http_guard *guard, const struct http_request *request, int status);
	/* A parked request is over. NULL: none is parked. */
	void (*gone)(struct http_guard *guard, struct http_request *request);
};

/* A parked request goes on, later. */
void http_unpark(struct http_request *request);

struct http_server;

/* The routes are the caller's and outlive the server. `context` is what requests carry. */
struct http_server *http_server_new(struct loop *loop, struct clock *clock,
				    const struct http_limits *limits,
				    const struct http_route *routes, size_t route_count,
				    void *context);
/* Before the first address. The guard outlives the server. */
void http_server_set_guard(struct http_server *server, struct http_guard *guard);
/* May be called for several addresses (at most 8). */
int http_server_listen(struct http_server *server, const struct loop_address *address,
		       struct errbuf *e) MUST_CHECK;
/* The same; clients speak TLS there. It keeps the context, not the rest of `tls`. */
int http_server_listen_tls(struct http_server *server, const struct loop_address *address,
			   const struct loop_tls *tls, struct errbuf *e) MUST_CHECK;
enum http_path_use {
	HTTP_FOR_PROXIES,  /* of the server's user and group; who is behind them nobody knows */
	HTTP_FOR_COMMANDS, /* of the server's user; the guard is told who asks */
};
/* The same on a socket of this machine (loop_listen_path). Its clients count as 127.0.0.1. */
int http_server_listen_path(struct http_server *server, const char *path, enum http_path_use use,
			    struct errbuf *e) MUST_CHECK;
/* Connections that are accepted from now on where TLS is spoken speak it so. */
void http_server_renew_tls(struct http_server *server, const struct loop_tls *tls);
/* From now on as many connections at most, and these deadlines; a connection that is there may stay
 * beyond the number until it is idle. */
void http_server_set_limits(struct http_server *server, const struct http_limits *limits);
/* The address of the last one of the network, with the port that was chosen. */
struct loop_address http_server_address(const struct http_server *server);

/* Takes no more connections, ends streams that have no end of their own, lets the other requests
 * that are being answered finish for `grace_ms`, then aborts them; calls `done` when the last
 * connection is closed, after which http_server_free is allowed. */
void http_server_stop(struct http_server *server, int64_t grace_ms, void (*done)(void *owner),
		      void *owner);
void http_server_free(struct http_server *server);

#endif
