/* `GET /api/metadata/...`: what exists, as JSON.
 *
 *     tenants                                         ["default","host"]
 *     metricNames  tenant, prefix                     ["cpu_idle","mem_free"]
 *     tagKeys      tenant, metricName, prefix         ["deployment","host","os"]
 *     tagValues    tenant, metricName, tagKey, prefix ["linux","windows"]
 *     series       tenant, metricName, tag...         what is known of each series, see metadata.c
 *     metric       tenant, metricName                 what is known of the metric; PUT sets kind,
 *                                                     unit and description of it
 *
 * Names are in byte order, at most `limit` (10,000 unless given; of series as many as a query
 * reads); where there are more, the header X-Granary-Cut is `limit`. */
#ifndef API_METADATA_H
#define API_METADATA_H

#include "api/params.h"

extern const struct http_handler metadata_tenants;
extern const struct http_handler metadata_metric_names;
extern const struct http_handler metadata_tag_keys;
extern const struct http_handler metadata_tag_values;
extern const struct http_handler metadata_series;
extern const struct http_handler metadata_metric;
extern const struct http_handler metadata_metric_put;
extern const struct param metadata_tenants_params[], metadata_metric_names_params[],
	metadata_tag_keys_params[], metadata_tag_values_params[], metadata_series_params[],
	metadata_metric_params[];

#endif
