/* What routes are asked, read from their parameters: what several have alike, and all of a
 * `GET /api/query`. Pure. */
#ifndef API_METRICS_QUERY_PARAMS_H
#define API_METRICS_QUERY_PARAMS_H

#include "http/http.h"
#include "query/query.h"

/* Every parameter of the request is one of `names` (NULL-terminated), and but for `tag` and `by`
 * stands at most once. ERR_INVALID with a sentence. */
int params_check(const struct http_request *request, const char *const *names,
		 struct errbuf *e) MUST_CHECK;

/* The parameter `tenant`, else the header X-Tenant, else `default`; both only if they agree. */
int params_tenant(const struct http_request *request, struct slice *tenant,
		  struct errbuf *e) MUST_CHECK;

/* `metricName`, which must be there. */
int params_metric(const struct http_request *request, struct slice *metric,
		  struct errbuf *e) MUST_CHECK;

/* `tenant` and `metric`, each of which may be left out and is empty then: all. */
int params_narrowing(const struct http_request *request, struct slice *tenant, struct slice *metric,
		     struct errbuf *e) MUST_CHECK;
/* A parameter that is true or false; false where it is left out. */
int params_flag(const struct http_request *request, const char *name, bool *flag,
		struct errbuf *e) MUST_CHECK;
/* A parameter that is a time (wire/timetext.h); *ms stays as it is where it is left out. */
int params_time(const struct http_request *request, const char *name, int64_t now_ms, int64_t *ms,
		struct errbuf *e) MUST_CHECK;
/* All `tag`s, into an array in `arena`. */
int params_selectors(const struct http_request *request, struct arena *arena,
		     const struct catalog_selector **list, size_t *count,
		     struct errbuf *e) MUST_CHECK;

/* `limit`, from 1 to max. */
int params_limit(const struct http_request *request, size_t preset, size_t max, size_t *limit,
		 struct errbuf *e) MUST_CHECK;

enum query_format { QUERY_JSON, QUERY_CSV };

/* All of a query; `granularities` are those that are stored, or NULL. ERR_INVALID: the request is
 * wrong (400); ERR_LIMIT: it is right, but cannot be answered here (422). Names and selectors lie
 * in the request or in `arena`. */
int params_query(const struct http_request *request, int64_t now_ms,
		 const struct granularities *granularities, struct arena *arena,
		 struct query_spec *spec, enum query_format *format, bool *explain,
		 struct errbuf *e) MUST_CHECK;

#endif
