/* Questions of OpenTSDB's clients that stand in the address, as the bodies that say the same:
 *
 *     m=sum:rate{counter,,1000}:1m-avg:cpu{host=*}{os=linux}&start=1h-ago    of /api/query
 *     timeseries=cpu{host=a}&back_scan=24                                    of /api/query/last
 *
 * So there is one reader of each. Parameters that are not known are refused.
 *
 * Pure but for the request that is read. */
#ifndef API_OPENTSDB_URI_H
#define API_OPENTSDB_URI_H

#include "base/buf.h"
#include "http/http.h"

enum { OPENTSDB_URI_MAX_BYTES = 1 << 20 };

/* Whether GET /api/query asks as OpenTSDB has it. */
bool opentsdb_uri_asked(const struct http_request *request);

/* The body is appended to `body`. ERR_INVALID with a sentence that names the parameter. */
/* ERR_INVALID: it asks by ids of series, which there are none of. */
int opentsdb_uri_check(const struct http_request *request, struct errbuf *e) MUST_CHECK;
int opentsdb_uri_query(const struct http_request *request, struct buf *body,
		       struct errbuf *e) MUST_CHECK;
int opentsdb_uri_last(const struct http_request *request, struct buf *body,
		      struct errbuf *e) MUST_CHECK;

#endif
