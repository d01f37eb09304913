/* All of a `GET /api/query`, read from its parameters. Pure. */
#ifndef API_QUERY_PARAMS_H
#define API_QUERY_PARAMS_H

#include "api/params.h"
#include "query/query.h"

enum query_format { QUERY_JSON, QUERY_CSV };

struct query_question {
	struct query_spec spec;
	enum query_format format;
	int explain; /* 0 or 1 */
};

/* `grains` are those that are stored, or NULL. ERR_INVALID: the request is wrong (400); ERR_LIMIT:
 * it is right, but cannot be answered here (422). Names and selectors lie in the request or in
 * `arena`. */
int params_query(const struct http_request *request, int64_t now_ms,
		 const struct rollup_grains *grains, struct arena *arena, struct query_question *q,
		 struct errbuf *e) MUST_CHECK;

#endif
