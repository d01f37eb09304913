/* Roll-ups in a request and in its answer: `aggregator`, `granularity` and `points`, and which
 * granularity answered which part of the time.
 *
 * In the header X-Granary-Grain that is a list in order of time, each with the time that it ends
 * at, but the last: `1h until 2026-11-01T00:00:00Z, 5m until 2026-11-14T12:00:00Z, raw`. `none`
 * answers nothing: no data that suits is left of that time. */
#ifndef API_METRICS_ANSWERED_BY_H
#define API_METRICS_ANSWERED_BY_H

#include "base/buf.h"
#include "http/http.h"
#include "query/query.h"

enum { GRANULARITY_POINTS_MAX = 1000000 }; /* that may be wanted */

/* ERR_INVALID, or ERR_LIMIT where no roll-ups are stored (`granularities` NULL or empty). */
int granularity_params(const struct http_request *request,
		       const struct granularities *granularities, struct query_spec *spec,
		       struct errbuf *e) MUST_CHECK;

/* The header, before anything of the answer is sent; the query's series are known. */
#define GRANULARITY_HEADER "X-Granary-Grain"
void granularity_list(struct buf *out, const struct query *query,
		      const struct granularities *granularities);
/* And X-Granary-Note, where an answer has less than whoever asks may think: a word for programs, a
 * colon, a sentence. */
#define NOTE_HEADER "X-Granary-Note"
void granularity_reply_header(struct http_request *request, const struct query *query,
			      const struct granularities *granularities);
/* `"metricExists":true,"note":"...","fn":"avg","window":"1h",
 * "grains":[{"start":"...","end":"...","grain":"5m"},...],`,
 * of note, fn and window what there is. */
void granularity_explain(struct buf *out, const struct query *query,
			 const struct granularities *granularities);

#endif
