/* Credentials: /api/credentials, as credential_write() has them (auth/credential.h). A token is in
 * the answer that makes it, and in no other one. A password comes in the body, {"password":"..."},
 * since addresses are written to logs. */
#ifndef API_ADMIN_CREDENTIALS_H
#define API_ADMIN_CREDENTIALS_H

#include "api/params.h"

extern const struct http_handler credentials_list, credentials_create;   /* GET, POST */
extern const struct http_handler credentials_change, credentials_revoke; /* PUT, DELETE .../NAME */
extern const struct param credentials_list_params[], credentials_create_params[],
	credentials_change_params[];

#endif
