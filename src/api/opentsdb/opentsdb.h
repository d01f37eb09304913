/* What clients of OpenTSDB ask, Grafana's data source above all, in its shapes; doc/opentsdb.md has
 * them. Tenants are named as in GET /api/query. Threads: the loop's. */
#ifndef API_OPENTSDB_H
#define API_OPENTSDB_H

#include "api/params.h"

extern const struct http_handler opentsdb_aggregators, opentsdb_filters, opentsdb_version,
	opentsdb_suggest, opentsdb_lookup, opentsdb_query_handler, opentsdb_last_handler;
extern const struct param opentsdb_lookup_params[], opentsdb_suggest_params[],
	opentsdb_suggest_post_params[], opentsdb_query_params[], opentsdb_last_params[],
	opentsdb_last_post_params[];

#endif
