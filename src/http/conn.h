/* One connection: bytes in, bytes out, handlers in between. Private to http/.
 *
 * It knows no sockets: a transport carries its bytes and calls it with what happens, so that tests
 * and the fuzzer drive it without a loop, on a virtual clock.
 *
 *            +------------------------- keep-alive ------------------------+
 *            v                                                             |
 *          HEAD --head--> BODY --last piece, end()--> ANSWER --answer complete
 *            |              |                            |
 *            |              +--answer complete before--> DISCARD --rest of body--> HEAD
 *            |                the body                   |
 *          refused            (much left, or close)      | close
 *            |                          |                |
 *            +-----------> LINGER <-----+----------------+
 *                            |
 *                          CLOSED
 *
 * LINGER: it is bounded in time, all in all, whatever still comes. Our side is shut down, what the
 * client still sends is thrown away up to a bound, so that it comes to read the answer: closing at
 * once would answer its bytes with a reset, and a reset makes its kernel forget the answer.
 *
 * Input that cannot be used yet (a head that is not complete, a paused body, the next pipelined
 * request) is kept; while something is kept that waits for us, not for the client, nothing is
 * read. */
#ifndef HTTP_CONN_H
#define HTTP_CONN_H

#include "http/coding.h"
#include "http/head.h"
#include "http/http.h"
#include "http/site.h"

enum {
	CODERS_IDLE_MAX = 16,       /* of each kind, kept for the next user */
	GZIP_ACTIVE_MAX = 64,       /* gzipped streams at once; more go out as they are */
	GZIP_WORTH_BYTES = 1024,    /* less is hardly smaller gzipped */
	OUT_FLUSH_BYTES = 32 << 10, /* gathered before it is written */
	OUT_MAX_BYTES = 1 << 20,
	OUT_COPY_MAX_BYTES = 16 << 10,  /* larger pieces are written from where they are */
	DISCARD_MAX_BYTES = 256 << 10,  /* of a body nobody wants; more closes the connection */
	TURN_MAX_BYTES = 1 << 20,       /* decoded bytes before the other connections' turn */
	TURN_REQUESTS_MAX = 8,          /* one behind the other, likewise */
	AHEAD_MAX_BYTES = 16 << 10,     /* read ahead while an answer is being made */
	REST_MAX_MS = 30000,            /* in which what nobody wants may come */
	REST_LATE_MAX_MS = 1000,        /* of a client that has let its time pass */
	SPARE_HEAD_MAX_MS = 1000,       /* for the request on a spare place */
	READ_MIN_BYTES = 4 << 10,       /* of a body at once, however many connections there are */
	GZIP_WHOLE_MAX_BYTES = 4 << 20, /* a larger answer at once goes out as it is */
	REPLY_HEADERS_MAX_BYTES = 8 << 10,
	PACKED_SHARE = 4,              /* one compressed body: of the memory for all */
	PACKED_STEP_BYTES = 64 << 10,  /* of it decoded at once */
	DECODER_FREE_BYTES = 64 << 10, /* of a decoder's memory; more is charged to its request */
	REASON_MAX_BYTES = 200,
};

/* What the connections of a server share; one thread. */
struct http_core {
	struct clock *clock;
	struct http_limits limits;
	const struct http_route *routes;
	size_t route_count;
	void *context;
	struct http_guard *guard; /* NULL: there is none */
	struct site site;
	bool stopping;
	size_t memory_bytes;    /* charged by requests */
	unsigned endless_count; /* streams without end that are open */
	size_t read_bytes;      /* of a body at once: what a paused request may have to keep */
	struct body_decoder *decoders[CODERS_IDLE_MAX];
	struct gzip *gzips[CODERS_IDLE_MAX];
	size_t decoder_count, gzip_count; /* idle */
	size_t gzip_active;
	struct buf scratch; /* gzipped bytes on their way out */
	int64_t date_s;
	char date[32]; /* of date_s, as the Date header wants it */
};

void http_core_init(struct http_core *core, struct clock *clock, const struct http_limits *limits,
		    const struct http_route *routes, size_t route_count, void *context);
void http_core_release(struct http_core *core);

struct http_transport {
	/* 0: rest. */
	void (*read)(struct http_conn *conn, size_t max_bytes);
	void (*write)(struct http_conn *conn, const struct slice *pieces, size_t count);
	size_t (*unsent)(struct http_conn *conn);
	void (*shutdown)(struct http_conn *conn);
	/* Calls http_conn_step() soon, not from inside. */
	void (*defer)(struct http_conn *conn);
	/* The last call; http_conn_release() follows, not from inside. */
	void (*close)(struct http_conn *conn);
};

/* A compressed body for a handler that takes pieces: what is wrong with it shows at its end, when a
 * handler that had been given it would have made use of it. So it is kept as it was sent, decoded
 * once for its end, its checksum and its length, and then once more for the handler. */
enum packed_state {
	PACKED_NOT, /* another body: each piece is handed out as it comes */
	PACKED_COMES,
	PACKED_CHECKED,
	PACKED_DELIVERED,
};

enum http_phase {
	PHASE_HEAD,
	PHASE_BODY,
	PHASE_ANSWER,
	PHASE_DISCARD,
	PHASE_LINGER,
	PHASE_CLOSED,
	PHASE_COUNT
};

/* A deadline by progress: in each span of time so many bytes. */
struct http_progress {
	int64_t since_ms; /* -1: not being watched */
	uint64_t bytes;
};

struct http_conn {
	struct http_core *core;
	const struct http_transport *transport;
	struct loop_address peer;
	struct loop_address client; /* of the request: the peer, or who is behind a proxy */
	bool trusted;               /* the peer is a proxy that is believed */
	bool secure;                /* TLS is under it */
	bool has_uid;
	uid_t peer_uid; /* of a socket for commands */
	enum http_phase phase;
	int64_t phase_ms; /* when it began */
	bool running;     /* inside a step; the end of the step flushes and reads on */
	bool deferred;    /* http_conn_step() has been asked for */
	bool at_end;      /* the client sends no more */
	bool closing;     /* after this answer */
	bool late;        /* its time has passed: LINGER is short */
	bool spare;       /* beyond the number of connections: see http_conn_is_spare() */
	bool shut;        /* LINGER: our side is shut down */

	struct buf kept;  /* input not yet used; begins where the phase goes on */
	size_t head_seen; /* of it, by head_find */
	int64_t head_ms;  /* when its first byte came */
	uint64_t received_bytes, drained_bytes;
	struct http_progress receiving, sending;

	struct http_request request;
	struct http_head head;
	bool held; /* the request holds memory */
	bool live; /* and is the handler's: neither answered nor aborted */

	unsigned turn_requests; /* begun in this turn */

	/* BODY */
	int status;    /* of the answer; 0: there is none yet */
	bool parked;   /* its guard has not said yet whether it may go on; nothing is read */
	bool unparked; /* and is to be asked again */
	bool paused;
	bool may_end; /* while paused: see http_request_pause_body */
	bool waits_for_continue;
	struct chunked chunked;
	uint64_t body_left;           /* by length: not yet framed */
	size_t framed;                /* bytes at the front of the input known to be body */
	uint64_t encoded_bytes;       /* framed so far */
	size_t turn_bytes;            /* decoded in this turn */
	struct body_decoder *decoder; /* NULL: the body is not compressed */
	const struct coding *coding;  /* of the decoder */
	size_t decoder_charged_bytes; /* of its memory, with what is free */
	enum packed_state packed_state;
	struct buf packed;         /* such a body as sent */
	struct slice packed_rest;  /* of it, not decoded yet in this pass */
	uint64_t packed_max_bytes; /* of it: the route's bound or the memory's */
	uint64_t checked_bytes;    /* what it has become in the first pass */

	/* The answer */
	bool streaming;
	bool endless;     /* the stream has no end of its own: the connection ends with it */
	bool wants_drain; /* the producer was told to wait */
	struct gzip *gzip;
	struct buf out; /* to be written at the end of the turn */
	uint64_t written_bytes;
};

void http_conn_init(struct http_conn *conn, struct http_core *core,
		    const struct http_transport *transport);
void http_conn_release(struct http_conn *conn);

/* What the transport has to tell. None is called after transport->close. */
void http_conn_input(struct http_conn *conn, struct slice bytes);
void http_conn_eof(struct http_conn *conn);
void http_conn_broken(struct http_conn *conn);
void http_conn_sent(struct http_conn *conn);
void http_conn_step(struct http_conn *conn);
/* Looks at the deadlines. */
void http_conn_tick(struct http_conn *conn);
/* One connection too many, right after the init: has one request, soon, which is answered if its
 * route is always, else with 503. */
void http_conn_is_spare(struct http_conn *conn);
/* Whether it may be closed for the sake of another: it waits for a request, or for its end. */
bool http_conn_may_go(struct http_conn *conn);
/* The server stops: an idle connection is closed, a busy one after its answer, one with a stream
 * without end at once. */
void http_conn_stop(struct http_conn *conn);
/* Aborts the request that is being answered, if any, and closes. */
void http_conn_close(struct http_conn *conn);

/* ---- conn_body.c ----------------------------------------------------------------------------- */

/* A request has its route: how its body is decoded. false: the coding is none of ours, or there are
 * several. */
bool http_body_begin(struct http_conn *conn) MUST_CHECK;
/* Whether the head says that it is longer than it may be; then `reason` names the bound. */
bool http_body_is_too_large(const struct http_conn *conn, char reason[REASON_MAX_BYTES]) MUST_CHECK;
/* How long a body may be once it is decoded. */
size_t http_body_decoded_max(const struct http_route *route);
/* The step of PHASE_BODY. */
bool http_body_step(struct http_conn *conn, struct slice *in);

/* ---- Between conn.c, conn_body.c, request.c and reply.c -------------------------------------- */

void http_conn_enter(struct http_conn *conn, enum http_phase phase);
/* The request that was parked goes on to its handler, or is answered. */
void http_conn_unpark(struct http_conn *conn);
/* The request is understood, but its body will not be had; the answer says what became of it. */
void http_conn_refuse_body(struct http_conn *conn, int err, int status, const char *reason);
int64_t http_conn_now_ms(const struct http_conn *conn);
size_t http_conn_unsent(struct http_conn *conn);
void http_conn_flush(struct http_conn *conn);
/* The answer is complete: gives the request's memory back and moves on. */
void http_conn_answered(struct http_conn *conn);
/* Flushes and adjusts reading, unless a step is running, which then does it. */
void http_conn_settle(struct http_conn *conn);

/* The route of a verb and a route_path. 0, or 404, or 405 with the verbs of that path in `allow`.
 */
int http_route_find(const struct http_core *core, enum http_verb verb, struct slice path,
		    const struct http_route **route, struct buf *allow);
/* Frees what the request holds. */
void http_request_release(struct http_request *request);

/* Asks for http_conn_step(), once. */
void http_conn_defer(struct http_conn *conn);

/* Writes an answer of the server itself: the error in JSON, for a request that no handler has. */
void http_conn_refuse(struct http_conn *conn, int status, const char *message);

struct body_decoder *http_core_take_decoder(struct http_core *core);
void http_core_give_decoder(struct http_core *core, struct body_decoder **decoder);
struct gzip *http_core_take_gzip(struct http_core *core);
void http_core_give_gzip(struct http_core *core, struct gzip **gzip);

#endif
