/* The body of POST /api/query: what is asked, read into specs of queries; doc/opentsdb.md has its
 * members. What would change an answer and is not known is refused, never passed over.
 *
 * Pure; memory: the caller's arena. */
#ifndef API_OPENTSDB_BODY_H
#define API_OPENTSDB_BODY_H

#include "api/opentsdb/filter.h"
#include "query/combine.h"

enum { OPENTSDB_QUERIES_MAX = 32 };

/* One of the queries. */
struct opentsdb_query {
	const struct json *asked;
	struct slice metric;
	struct opentsdb_filters filters;
	enum query_fn fn; /* of windows */
	int64_t window_ms;
	enum query_agg agg; /* AGG_NONE: every series by itself */
	bool combined;      /* agg is done behind the engine */
	struct combine_spec combine;
};

struct opentsdb_body {
	int64_t start_ms, end_ms; /* start <= time < end */
	bool ms;                  /* times of the answer are in ms, else in seconds */
	bool show_query;
	struct opentsdb_query *queries;
	size_t count;
};

/* ERR_INVALID, ERR_LIMIT with a sentence that says where. */
int opentsdb_body_read(struct slice text, int64_t now_ms, struct arena *arena,
		       struct opentsdb_body *body, struct errbuf *e) MUST_CHECK;

#endif
