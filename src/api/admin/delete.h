/* `POST /api/delete`: deletes what is stored of a tenant's series over a time; with dryRun=true it
 * only counts. tenant= and tag= as in `GET /api/query`; metricName=, or allMetrics=true; start= and
 * end=, or all=true, by which the series leave the catalog, too; by= says in the log whose wish it
 * was. A deletion that has begun ends though its client goes. */
#ifndef API_DELETE_H
#define API_DELETE_H

#include "api/params.h"

extern const struct http_handler delete_handler;
extern const struct param delete_params[];

#endif
