/* A request at work: what is common to all that are not answered within their handler.
 *
 * A call is the first member of its owner, which is freed with it. It stands in api->calls until
 * its owner is freed, so that a stop can wait for all that is in flight. It has an arena, the body
 * that was sent, and `out`, to which the answer is written, as JSON through `json` or otherwise.
 *
 * Answers: a short one leaves whole, a long one as a stream, as fast as the client reads. Whoever
 * produces a long one does so in turns: `advance` is called until the call is ended, appends to
 * `out`, and asks api_call_room between pieces. An answer that has begun to leave is broken off by
 * an error.
 *
 * Time: what takes longer than query.timeout is ended as queries are, where its kind is timed; the
 * time in which the client was to read does not count.
 *
 * Life: api_call_end and api_call_fail end the request, and so does a client who goes. Then `ended`
 * cancels what is at work, and the owner is freed (`release`): now or, while a turn is posted or
 * `held` is not 0, when that has passed. What the owner asked for and cannot take back (reads of
 * the store, changes) it counts in `held`, and calls api_call_settle when it is back.
 *
 * Jobs: a kind with `run` may be worked on by a job (loop/job.h), which may wait.
 *
 * What the owner asks for gives it back as void *: api_call_from makes sure that it still is one,
 * and the owner's X_of(call) that it is of its kind. */
#ifndef API_CALL_H
#define API_CALL_H

#include "api/routes.h"
#include "base/buf.h"
#include "base/owner.h"
#include "loop/job.h"
#include "wire/json.h"

struct api_call;

struct api_call_kind {
	size_t arena_max_bytes, out_max_bytes;
	size_t flush_bytes; /* gathered before it is sent; 0: the answer always leaves whole */
	bool timed;         /* turns end it when query.timeout has passed */
	/* query.timeout has passed while something is held: answers. May be NULL; needs
	 * api_call_set_deadline. */
	void (*late)(struct api_call *call);
	/* The request has ended, by an answer or without one: cancels what is at work. May be NULL.
	 */
	void (*ended)(struct api_call *call);
	/* Releases what the owner has beside the call, whose own memory has been released. May be
	 * NULL. */
	void (*release)(struct api_call *call);

	/* For calls that a job works on: the job's name; `run`, its work, on the job's thread,
	 * where nothing of the request may be read; and `over`, on the loop's thread, which answers
	 * the request if its client is still there. NULL: the answer is `out`, or the `err` that
	 * `run` left. */
	const char *job_name;
	void (*run)(struct api_call *call);
	void (*over)(struct api_call *call);
};

struct api_call {
	struct http_request *request; /* NULL: it has ended */
	struct api *api;
	const struct api_call_kind *kind;
	struct arena arena;
	struct buf body; /* the request's */
	struct buf out;
	struct json_writer json;  /* writes to `out` */
	const char *content_type; /* JSON where the owner sets no other; NULL: there is no body */
	int status;
	const char *cut; /* why the answer is not all: header or trailer X-Granary-Cut; NULL: it is
			    all */
	bool streaming;  /* a part of the answer has left */
	void (*advance)(struct api_call *call);
	unsigned held;
	int64_t timeout_ms, deadline_us; /* deadline_us: monotonic; 0: none */
	struct job *job;
	bool carried_through; /* the job goes on when the client has gone; else it is stopped */
	int err;              /* of the job; ERR_CANCELLED until it has run */
	struct errbuf error;  /* its sentence; may be empty */

	/* private */
	uint32_t magic;
	int64_t begun_us; /* monotonic; later by all the time in which the client was to read */
	bool endless;     /* the answer has no end of its own */
	bool stalled;     /* the client does not read */
	int64_t stalled_us;
	struct task turn;
	bool turn_posted;
	struct api_call *next, **place; /* in api->calls */
};

/* The call that begins what was given away as `owner`. */
static inline struct api_call *api_call_from(void *owner)
{
	return FROM_OWNER(api_call, owner);
}

/* Takes the request's body. */
void api_call_init(struct api_call *call, struct http_request *request,
		   const struct api_call_kind *kind);
/* For a kind that is not timed: the call has the same deadline, but its owner looks at it
 * (api_call_check_time). */
void api_call_set_deadline(struct api_call *call);
/* Answers a HEAD request, whose GET would take work: true, and the call is over. */
bool api_call_answers_head(struct api_call *call) MUST_CHECK;

/* Sends what was gathered, if that is worth it. False: wait, `advance` comes when the client has
 * read; or the request has ended. */
bool api_call_room(struct api_call *call) MUST_CHECK;
/* `advance` comes when others of the loop had their turn. */
void api_call_later(struct api_call *call);
/* The same at once, for completions: unless the client is to read first. */
void api_call_go_on(struct api_call *call);

/* Begins a stream without an end of its own (http_stream_begin_endless), to which the owner writes
 * by http_stream_write; its handler has a `drained` of its own. False: the request has ended, and
 * the owner is gone. */
bool api_call_begin_endless(struct api_call *call) MUST_CHECK;
/* Whether its caller's credential still lets it in; a stream without an end is ended soon if not.
 */
bool api_call_may_go_on(const struct api_call *call);

/* The answer is complete: `out`, with `status`. One that had no room is answered by 422. */
void api_call_end(struct api_call *call);
void api_call_fail(struct api_call *call, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* With the status of an error, where a deadline is a limit of what was asked (422). An empty
 * sentence: the error's own text. */
void api_call_fail_with(struct api_call *call, int err, const char *sentence);
/* 0, or ERR_TIMEOUT with a sentence: its time is over. Turns look by themselves. */
int api_call_check_time(const struct api_call *call, struct errbuf *e) MUST_CHECK;
/* Something that was `held` has come back. False: the request has ended, and the owner may be gone.
 */
bool api_call_settle(struct api_call *call) MUST_CHECK;

/* Has a job run the kind's `run`. Where too many jobs are at work, the request is answered by 503.
 */
void api_call_start_job(struct api_call *call);

/* Looks whether calls are late; to be called several times a second. */
void api_calls_tick(const struct api *api);

/* One of this kind is at work. */
bool api_calls_have(const struct api *api, const struct api_call_kind *kind);
/* All jobs end soon; api->calls is NULL when they and all others are over. */
void api_calls_stop(const struct api *api);

/* For struct http_handler, whose request->owner is the call. */
void api_call_drained(struct http_request *request);
void api_call_aborted(struct http_request *request, int err);

#define API_CALL_HANDLER(end_)                                                                     \
	{                                                                                          \
		.end = (end_), .drained = api_call_drained, .abort = api_call_aborted              \
	}

#endif
