/* What the store says of itself: `/api/stats`, `/api/verify`. Both are read slice by slice, so
 * that no other request waits for them; the shapes are those of store_json.h. */
#ifndef API_ADMIN_STORE_ADMIN_H
#define API_ADMIN_STORE_ADMIN_H

#include "http/http.h"

extern const struct http_handler store_admin_stats;
extern const struct http_handler store_admin_verify;

#endif
