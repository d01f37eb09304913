/* Pollers elsewhere (`granary poll`): what they poll, and how it goes there (doc/remote-poller.md).
 * What they poll with comes over /api/polls. */
#ifndef API_ADMIN_POLLERS_H
#define API_ADMIN_POLLERS_H

#include "http/http.h"

/* Who was heard of, in memory only: after a restart they say it again. The loop's thread. */
struct pollers;

struct pollers *pollers_new(void);
void pollers_free(struct pollers *pollers); /* NULL is allowed */
/* When the poller of that name last reported; 0: not since the start. */
int64_t pollers_heard_ms(const struct pollers *pollers, struct slice name);

/* GET /api/pollers/NAME/inventory: the document of inventory_document_write, with an ETag that
 * changes with the inventory and with each start of the server; 304 where If-None-Match names it.
 */
extern const struct http_handler poller_inventory;

/* POST /api/pollers/NAME/report, 204:
 *
 *     {"problem":"","pending":12,"pendingBytes":4711,"aside":0,"dropped":0,
 *      "devices":[{"name":"rtr_a","lastSuccess":1600000000000,"failingSince":0,"resolved":true,
 *                  "reason":""}]}
 *
 * Times in ms, 0: never. Devices that are not this poller's are passed over, and those that are not
 * named stay as they are. */
extern const struct http_handler poller_report;

/* GET /api/pollers: all that were heard of or that devices name. */
extern const struct http_handler pollers_list;

#endif
