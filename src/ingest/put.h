/* The door of OpenTSDB's way to write: POST /api/put.
 *
 * What a body may hold is said in put_feed.h. The tenant is named by the header X-Tenant, else by
 * each point's tag of the configured name. The body is gathered, then read a slice at a time, so
 * that a long one stalls nobody, and written while it is read.
 *
 * Answers, when everything that was taken is durable:
 *  - 204: there was nothing wrong;
 *  - 400: something was; the good points are stored all the same, and the body names the others:
 *        {"error":{"code":400,"message":"1 of 3 points refused; point 1: \"value\" is missing"},
 *         "success":2,"failed":1,"errors":[{"index":1,"error":"\"value\" is missing"}]}
 *  - with ?summary the body is {"success":2,"failed":1}; with ?details it has besides
 *    "errors":[{"index":1,"error":"...","datapoint":{...}}]. The status is 200, or 400 if any
 *    failed;
 *  - 503 (with Retry-After) and 507: send all of it again, which is harmless;
 *  - 413 by the limits of the route. At most INGEST_ERRORS_MAX errors are listed, "omitted" says
 *    how many are not. A datapoint longer than PUT_SHOWN_MAX_BYTES, and one that is no JSON, is
 *    left out.
 *
 * What http_server_new is given as context begins with a struct ingest_context. */
#ifndef INGEST_PUT_H
#define INGEST_PUT_H

#include "http/http.h"
#include "ingest/ingest.h"

enum { PUT_SHOWN_MAX_BYTES = 4096 };

extern const struct http_handler put_handler;

#endif
