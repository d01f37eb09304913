/* The doors of Influx line protocol.
 *
 *     POST /write           the body as in wire/line.h; ?precision=ns|us|ms|s|m|h, also n, u, µ;
 * db, rp, u, p are accepted and ignored POST /api/v2/write    the same; org and bucket likewise;
 * errors in that version's shape
 *
 * The body is read as it arrives and written while it arrives. Answers to a write: 204, everything
 * is durable; 400, the good lines are durable and the others are named:
 *
 *     {"error":"partial write: line 3, column 17: this is not a value; dropped=1", "dropped":1,
 *      "errors":[{"line":3, "column":17, "reason":"syntax", "message":"this is not a value"}]}
 *
 * or, in the second version, {"code":"invalid", "message":"partial write: ...", ...},
 * with at most three errors in the sentence and 100 in the list; 503 (Retry-After) and 507: send
 * all of it again, which is harmless; 413 by the route's limits.
 *
 * What http_server_new is given as context begins with a struct ingest_context. */
#ifndef INGEST_LINE_H
#define INGEST_LINE_H

#include "http/http.h"
#include "ingest/ingest.h"

extern const struct http_handler line_write_handler;
extern const struct http_handler line_v2_write_handler;

/* The shapes of errors, as struct http_handler wants them: {"error":"..."} and
 * {"code":"...","message":"..."}. */
void line_error_v1(struct buf *out, int status, struct slice message);
void line_error_v2(struct buf *out, int status, struct slice message);

#endif
