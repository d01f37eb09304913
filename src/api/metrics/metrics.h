/* The handlers of queries by metric and tags (query.c) and of what exists (metadata.c), for the
 * table of routes. */
#ifndef API_METRICS_METRICS_H
#define API_METRICS_METRICS_H

#include "api/params.h"

extern const struct http_handler query_handler;
extern const struct param query_params[];

extern const struct http_handler metadata_tenants, metadata_metric_names, metadata_tag_keys,
	metadata_tag_values, metadata_series, metadata_metric, metadata_metric_put;
extern const struct param metadata_tenants_params[], metadata_metric_names_params[],
	metadata_tag_keys_params[], metadata_tag_values_params[], metadata_series_params[],
	metadata_metric_params[];

/* GET /api/export?format=lines|json|csv: samples of data_raw as they are stored, by series-set,
 * then time; a page, and in the header X-Granary-Next the token of the next one (export.c). */
extern const struct http_handler export_handler;
extern const struct param export_params[];

#endif
