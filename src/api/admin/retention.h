/* How long what is kept: GET /api/retention; and what is in another class of the store than it
 * would be written to now: POST /api/retention/apply moves it there; dryRun=true only counts. */
#ifndef API_RETENTION_H
#define API_RETENTION_H

#include "api/params.h"

extern const struct http_handler retention_handler, retention_apply_handler;
extern const struct param retention_params[], retention_apply_params[];

#endif
