/* Bins and aggregates, rebuilt from raw data (granary recompute). */
#ifndef API_RECOMPUTE_H
#define API_RECOMPUTE_H

#include "api/params.h"

/* POST /api/recompute?device=D&from=T&to=T[&oidset=S][&dryRun=true]: of one OIDSet or of all that
 * the device has counters of. 200 with what differed, by OIDSet; `differences` are the first of
 * each, `stored` or `computed` null where there was or should be no row. Times are ms. */
extern const struct http_handler recompute_handler;
extern const struct param recompute_params[];

#endif
