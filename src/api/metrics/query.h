/* `GET /api/query`: the points of a metric's series. Parameters in query_params.h, shapes in
 * query_encode.h.
 *
 * What is wrong is answered before anything else: 400 names the parameter, 422 a limit. A short
 * answer leaves whole, a long one as a stream as fast as the client reads, encoded in pieces with
 * other work of the loop between them. Where it was cut, the header (or trailer) X-Granary-Cut says
 * by what: `points` or `time`. If the store fails half-way, the connection is closed without the
 * end. */
#ifndef API_QUERY_H
#define API_QUERY_H

#include "http/http.h"

extern const struct http_handler query_handler;

#endif
