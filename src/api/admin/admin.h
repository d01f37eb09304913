/* The handlers of what is administered and of what the server says of itself, for the table of
 * routes; and what they share. Those of pollers elsewhere are in pollers.h. */
#ifndef API_ADMIN_ADMIN_H
#define API_ADMIN_ADMIN_H

#include "api/params.h"

/* `/`, `/style.css`, `/metrics`, `/-/healthy`, `/-/ready`. */
extern const struct http_handler self_page, self_style, self_metrics, self_healthy, self_ready;

/* All counters and gauges, and those of the process, in the Prometheus text format 0.0.4. */
void self_metrics_text(struct buf *out);
/* Answers with them, and with when the process was started. */
void self_metrics_reply(struct http_request *request, int64_t started_ms);

/* What is thought of the wall clock, by which stored data expires: GET /api/clock; and that what it
 * shows is right: POST /api/clock/accept. */
extern const struct http_handler clock_handler, clock_accept_handler;

enum { CLOCK_SENTENCE_MAX_BYTES = 400 };

/* Says why nothing expires while the clock is doubted, and what ends that. */
void clock_sentence(const struct clock_judgement *judgement, char to[CLOCK_SENTENCE_MAX_BYTES]);

/* What the store says of itself: `/api/stats`, `/api/verify`. Both are read slice by slice, so
 * that no other request waits for them; what tables say is looked at by a job. The shapes are those
 * of store_json.h. */
extern const struct http_handler store_admin_stats, store_admin_verify;
extern const struct param verify_params[];

/* GET /api/backup: all that is stored, as a stream (store/backup_file.h). One at a time, else 409.
 * X-Granary-Note says what it may cost. A backup that has to end early ends with a manifest that
 * says why, and the answer is broken off. */
extern const struct http_handler backup_handler;

/* The inventory: /api/devices, /api/oidsets, /api/interfaces (doc/inventory.md). */
extern const struct http_handler devices_handler, device_handler;           /* GET */
extern const struct http_handler device_add_handler, device_change_handler; /* POST */
extern const struct http_handler device_poll_handler;   /* POST /api/polls/now?device= */
extern const struct http_handler device_remove_handler; /* DELETE */
extern const struct http_handler oidsets_handler, oidset_handler;
extern const struct http_handler interfaces_handler;
extern const struct param device_remove_params[], device_poll_params[], interfaces_params[];

/* POST /api/polls: one or more messages, each behind its length as 4 bytes, least first
 * (application/octet-stream), or one message of esmond's or an array of them (JSON). 204 when all
 * are durable in their queues; 400 when a message is not a poll of a known OIDSet, and then no
 * message is taken; 503 with Retry-After when a queue has no room or the store fails, and then any
 * of them may have been taken: sending them again is safe. */
extern const struct http_handler polls_handler;

/* GET /api/queues: {"queues":[{"name":...,"pending":...}, ...]}. */
extern const struct http_handler queues_list;
/* GET /api/queues/aside?queue=NAME: what lies aside there, newest first. */
extern const struct http_handler queues_aside;
/* POST /api/queues/retry?queue=NAME: gives that back to the queue; how many of it. */
extern const struct http_handler queues_retry;

/* POST /api/recompute: bins and aggregates, rebuilt from raw data, of one OIDSet or of all that
 * the device has counters of. 200 with what differed, by OIDSet; `differences` are the first of
 * each, `stored` or `computed` null where there was or should be no row. Times are ms. */
extern const struct http_handler recompute_handler;
extern const struct param recompute_params[];

/* GET /api/rollups: how roll-ups are configured, what the last pass did, and what waits. POST
 * /api/rollups/rebuild: marks all series that have raw data again. */
extern const struct http_handler rollups_handler, rollups_rebuild_handler;
extern const struct param rollups_params[], rollups_rebuild_params[];

/* GET /api/retention: how long what is kept; POST /api/retention/apply moves what is in another
 * class of the store than it would be written to now. */
extern const struct http_handler retention_handler, retention_apply_handler;
extern const struct param retention_params[], retention_apply_params[];

/* POST /api/delete: what is stored of a tenant's series over a time; of all time, by which the
 * series leave the catalog, too. A deletion that has begun ends though its client goes. */
extern const struct http_handler delete_handler;
extern const struct param delete_params[];

#endif
