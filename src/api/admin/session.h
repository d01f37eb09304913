/* Sessions of browsers: /api/session by POST, with {"name":"...","password":"..."} or
 * {"token":"..."}, GET and DELETE; and the end of all of them. */
#ifndef API_ADMIN_SESSION_H
#define API_ADMIN_SESSION_H

#include "http/http.h"

extern const struct http_handler session_begin, session_show, session_drop; /* POST, GET, DELETE */
extern const struct http_handler session_reset; /* DELETE /api/sessions */

#endif
