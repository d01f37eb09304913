/* The agent's control by HTTP, in the shapes of Chukwa's agent (ChukwaRestServer,
 * AdaptorController):
 *
 *     GET    /rest/v2/adaptor       {"adaptorInfo":[...],"adaptorCount":2}
 *     GET    /rest/v2/adaptor/ID    {"id","dataType","adaptorClass","adaptorParams","offset",
 *                                    "adaptorRates":[{"rate","intervalInSeconds"}]}
 *     POST   /rest/v2/adaptor       {"dataType","adaptorClass","adaptorParams","offset"}; as by GET
 *     DELETE /rest/v2/adaptor/ID    nothing; the adaptor is stopped
 *
 * Errors are a sentence of plain text. Different from Chukwa: there is no XML, the offset is filled
 * in, and an id that is not known is 404 where that one fails.
 *
 * Beside them there is /metrics (cmd/agent_control.c).
 *
 * For a server of http/ whose context is the control. */
#ifndef AGENT_CONTROL_REST_H
#define AGENT_CONTROL_REST_H

#include "agent/control.h"
#include "http/http.h"

enum { CONTROL_REST_ROUTES = 4 };
extern const struct http_route control_rest_routes[CONTROL_REST_ROUTES];

#endif
