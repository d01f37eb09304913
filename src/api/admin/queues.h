/* What waits in the queues, and what no persister could read. */
#ifndef API_ADMIN_QUEUES_H
#define API_ADMIN_QUEUES_H

#include "http/http.h"

/* GET /api/queues: {"queues":[{"name":...,"pending":...}, ...]}. */
extern const struct http_handler queues_list;
/* GET /api/queues/aside?queue=NAME: what lies aside there, newest first. */
extern const struct http_handler queues_aside;
/* POST /api/queues/retry?queue=NAME: gives that back to the queue; how many of it. */
extern const struct http_handler queues_retry;

#endif
