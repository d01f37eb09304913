/* Private to api/admin/: what is the same of all who report to the server how it goes with them,
 * pollers (pollers.h) and agents (agents.h). */
#ifndef API_ADMIN_REPORTER_H
#define API_ADMIN_REPORTER_H

#include "http/http.h"

enum { REPORTER_SILENT_MS = 30000 }; /* not heard of for so long: something is wrong */

/* heard_ms 0: never. */
bool reporter_is_silent(int64_t heard_ms, int64_t now_ms);

/* /api/pollers/NAME/WHAT; `what` NULL: /api/agents/NAME. False: 404 was said, or 400 where the name
 * is none. */
bool reporter_read_path(struct http_request *request, const char *what,
			struct slice *name) MUST_CHECK;

/* Whether these bytes have no control characters. */
bool reporter_is_one_line(struct slice text);

#endif
