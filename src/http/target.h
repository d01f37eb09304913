/* The request target: path and query, decoded. Private to http/. */
#ifndef HTTP_TARGET_H
#define HTTP_TARGET_H

#include "http/http.h"

/* Fills in path, segments and params of the request from its target (`/path?query`, or
 * `http://host/path?query`). ERR_INVALID with a constant reason. */
int target_parse(struct http_request *request, unsigned params_max, const char **reason) MUST_CHECK;

#endif
