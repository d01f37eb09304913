/* Whether what the tables say fits together, of all modules that can tell: for /api/verify and for
 * `granary verify` of a directory. */
#ifndef API_ADMIN_STORE_VERIFY_H
#define API_ADMIN_STORE_VERIFY_H

#include "store/tables_verify.h"

/* For threads that may wait. ERR_CANCELLED; or the store's error. */
int store_verify_tables(struct tables_verify *v) MUST_CHECK;

#endif
