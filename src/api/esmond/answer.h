/* What the handlers of /v2 share: a call (api/call.h) with the picture of the inventory that its
 * answer is made from, and the shapes of its errors.
 *
 * An answer is the first member of its owner, which is freed with it.
 *
 * Errors: 400 is {"error":"..."}, and what a query of data asks wrongly {"query error":"'...'"}, as
 * document E's service has it; all others {"detail":"..."}. An answer that has begun is broken off.
 */
#ifndef API_ESMOND_ANSWER_H
#define API_ESMOND_ANSWER_H

#include "api/call.h"
#include "api/esmond/page.h"
#include "inventory/inventory.h"

struct v2_data;
struct v2_rows;

struct v2_answer {
	struct api_call call;
	const struct inventory *inventory; /* the picture that it is made from */
	int64_t now_ms;
	/* Releases what the owner has beside it. May be NULL. */
	void (*release)(struct v2_answer *answer);
	size_t charged_bytes; /* fetch.c's */

	/* What works on it at present: of rows.c and data.c. */
	struct v2_rows *walk;
	struct v2_data *data;
};

enum { V2_ANSWER_ARENA_BYTES = 64 << 20 };

void v2_answer_init(struct v2_answer *answer, struct http_request *request,
		    void (*advance)(struct api_call *call),
		    void (*release)(struct v2_answer *answer));

struct v2_answer *v2_answer_of(struct api_call *call);

/* 400 {"query error":"'...'"} */
void v2_answer_query_error(struct v2_answer *answer, const char *sentence);

/* 404 for a path below a known beginning that is none. */
void v2_no_such_path(struct http_request *request);
/* As document E's service: 404 of what is listed, 400 of data. */
void v2_no_device(struct v2_answer *answer, int status, struct slice name);

/* For struct http_handler. */
void v2_error(struct buf *out, int status, struct slice message);

#define V2_HANDLER(end_)                                                                           \
	{                                                                                          \
		.end = (end_), .drained = api_call_drained, .abort = api_call_aborted,             \
		.error = v2_error                                                                  \
	}

/* ---- Small parts of answers -------------------------------------------------------------------
 */

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
