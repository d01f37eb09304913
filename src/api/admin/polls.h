/* Polls that others made: taken into the queues. */
#ifndef API_ADMIN_POLLS_H
#define API_ADMIN_POLLS_H

#include "http/http.h"

/* POST /api/polls: one or more messages, each behind its length as 4 bytes, least first
 * (application/octet-stream), or one message of esmond's or an array of them (JSON). 204 when all
 * are durable in their queues; 400 when one is no poll of an OIDSet that is there, and then none is
 * taken; 503 with Retry-After when a queue has no room or the store fails, and then any of them may
 * have been taken: sending them again is safe. */
extern const struct http_handler polls_handler;

#endif
