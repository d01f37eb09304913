/* `GET /api/rollups`: how roll-ups are configured, what the last pass did, and what waits; limit=
 * bounds the slots that are listed. `POST /api/rollups/rebuild`: marks anew all that has raw data,
 * of tenant=, metric=, from=, to=; dryRun=true only counts. */
#ifndef API_ROLLUPS_H
#define API_ROLLUPS_H

#include "api/params.h"

extern const struct http_handler rollups_handler;
extern const struct http_handler rollups_rebuild_handler;
extern const struct param rollups_params[], rollups_rebuild_params[];

#endif
