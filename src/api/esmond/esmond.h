/* The network engineer's API, /v2: document E's, with what its users missed. doc/api-v2.md says
 * what it answers; one file per noun here. */
#ifndef API_V2_H
#define API_V2_H

#include "api/params.h"

extern const struct http_handler v2_device;
extern const struct http_handler v2_device_put;
extern const struct http_handler v2_interface;
extern const struct http_handler v2_oidset;
extern const struct http_handler v2_oidsetmap;
extern const struct http_handler v2_timeseries;
extern const struct http_handler v2_timeseries_post;
extern const struct http_handler v2_bulk_interface;
extern const struct http_handler v2_bulk_timeseries;
extern const struct http_handler v2_inventory;
extern const struct http_handler v2_outlet;
extern const struct http_handler v2_pdu;
extern const struct http_handler v2_report_percentile;
extern const struct http_handler v2_report_volume;
extern const struct http_handler v2_report_sum;
extern const struct http_handler v2_report_top;

extern const struct param v2_endpoint_params[], v2_timeseries_params[], v2_percentile_params[],
	v2_volume_params[], v2_sum_params[], v2_top_params[];

#endif
