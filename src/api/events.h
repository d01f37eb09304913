/* A stream of server-sent events (HTML, 9.2) within a call: one event at a time, and the client is
 * told none while it does not read. */
#ifndef API_EVENTS_H
#define API_EVENTS_H

#include "api/call.h"

struct events {
	struct api_call *call;
	bool full;       /* the client is to read first; `drained` of the handler unsets it */
	int64_t said_us; /* monotonic: when something was last sent */
};

/* Before the request is read. */
void events_init(struct events *events, struct api_call *call);
/* Begins the stream, or answers a HEAD request. False: the call is over, and its owner gone. */
bool events_begin(struct events *events) MUST_CHECK;
/* Sends what is in the call's `out`, a whole event. Not while it is `full`. */
void events_send(struct events *events);
/* Whether nothing was sent for so long that the client should be told that the server is there. */
bool events_are_quiet(const struct events *events);

#endif
