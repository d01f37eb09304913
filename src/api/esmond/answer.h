/* What the handlers of /v2 share: an answer that is put together in pieces, and the shapes of its
 * errors.
 *
 * An answer is embedded in its owner, which is request->owner. Short ones leave whole, long ones as
 * a stream as fast as the client reads. The owner produces in turns: `advance` is called until the
 * answer is ended, appends to `out`, and asks v2_answer_room between pieces.
 *
 * Time: what takes longer than query.timeout is ended as queries are; the time in which the client
 * was to read does not count.
 *
 * Errors: 400 is {"error":"..."}, and what a query of data asks wrongly {"query error":"'...'"}, as
 * document E's service has it; all others {"detail":"..."}. An answer that has begun is broken off.
 *
 * Life: v2_answer_end and v2_answer_fail end the request and free the owner (`release`), now or,
 * while a turn is posted or `held` is not 0, when that has passed; so does a client who goes. What
 * the owner asked for and cannot take back (reads of the store, changes) it counts in `held`, and
 * calls v2_answer_settle when it is back. */
#ifndef API_ESMOND_ANSWER_H
#define API_ESMOND_ANSWER_H

#include "api/routes.h"
#include "api/reply_stream.h"
#include "api/esmond/page.h"
#include "inventory/inventory.h"
#include "wire/json.h"

struct v2_data;
struct v2_rows;

struct v2_answer {
	struct http_request *request; /* NULL: it has ended */
	struct api *api;
	const struct inventory *inventory; /* the picture that it is made from */
	int64_t now_ms;
	struct arena arena; /* for what lives as long as the answer */
	struct buf body;    /* the request's, into which names of the arena point */
	struct buf out;
	struct json_writer json; /* writes to `out` */
	struct sending sending;  /* its status and content type are the handler's to change */
	void (*advance)(struct v2_answer *answer);
	void (*release)(struct v2_answer *answer); /* frees the owner */
	unsigned held;
	size_t charged_bytes; /* v2_fetch.c's */
	int64_t deadline_us;  /* monotonic; also that of what it reads */

	/* What works on it at present: of v2_rows.c and v2_data.c. */
	struct v2_rows *walk;
	struct v2_data *data;

	/* private */
	struct task turn;
	bool turn_posted;
	int64_t timeout_ms, stalled_us; /* stalled_us: monotonic */
};

enum { V2_ANSWER_ARENA_BYTES = 64 << 20 };

void v2_answer_init(struct v2_answer *answer, struct http_request *request,
		    void (*advance)(struct v2_answer *answer),
		    void (*release)(struct v2_answer *answer));

/* Sends what was gathered, if that is worth it. False: wait, `advance` comes when the client has
 * read; or the request has ended. */
bool v2_answer_room(struct v2_answer *answer) MUST_CHECK;

/* `advance` comes when others of the loop had their turn. */
void v2_answer_later(struct v2_answer *answer);
/* The same at once, for completions: unless the client is to read first. */
void v2_answer_go_on(struct v2_answer *answer);

/* The answer is complete. */
void v2_answer_end(struct v2_answer *answer);
void v2_answer_fail(struct v2_answer *answer, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* 400 {"query error":"'...'"} */
void v2_answer_query_error(struct v2_answer *answer, const char *sentence);
/* An error of the store or of a limit. */
void v2_answer_fail_with(struct v2_answer *answer, int err, const char *sentence);
/* 0, or ERR_TIMEOUT with a sentence: its time is over. Turns look by themselves. */
int v2_answer_check_time(const struct v2_answer *answer, struct errbuf *e) MUST_CHECK;
/* Something that was `held` has come back. False: the request has ended, and the owner may be gone.
 */
bool v2_answer_settle(struct v2_answer *answer) MUST_CHECK;

/* 404 for a path below a known beginning that is none. */
void v2_no_such_path(struct http_request *request);
/* As document E's service: 404 of what is listed, 400 of data. */
void v2_no_device(struct v2_answer *answer, int status, struct slice name);

/* For struct http_handler. */
void v2_drained(struct http_request *request);
void v2_aborted(struct http_request *request, int err);
void v2_error(struct buf *out, int status, struct slice message);

#define V2_HANDLER(end_)                                                                           \
	{                                                                                          \
		.end = (end_), .drained = v2_drained, .abort = v2_aborted, .error = v2_error       \
	}

/* ---- Small parts of answers -------------------------------------------------------------------
 */

/* "key": for each type. */
void v2_put_text(struct json_writer *json, const char *key, struct slice text);
void v2_put_number(struct json_writer *json, const char *key, int64_t number);
void v2_put_null(struct json_writer *json, const char *key);

/* Links to /v2/..., whose parts are given already encoded: "url", which has the host, "uri" and
 * "resource_uri". */
void v2_put_links(struct v2_answer *answer, struct slice uri);

/* "url" and "resource_uri" of data, whose path has no slash at its end however it was asked for. */
void v2_put_address(struct v2_answer *answer, struct slice uri);

/* Whether the body's type is JSON. ERR_INVALID with a sentence. */
int v2_check_json(const struct http_request *request, struct errbuf *e) MUST_CHECK;
/* The body, parsed into the answer's arena, whose room is charged. ERR_BUSY: there is none now. */
int v2_read_json(struct v2_answer *answer, struct json **body, struct errbuf *e) MUST_CHECK;

/* The parts of the path behind `/v2/`, less an empty last one. */
size_t v2_part_count(const struct http_request *request);
static inline struct slice v2_part(const struct http_request *request, size_t i)
{
	return request->segments[i + 1];
}

/* ms as seconds of an answer. */
static inline int64_t v2_seconds(int64_t ms)
{
	return floor_div(ms, 1000);
}

#endif
