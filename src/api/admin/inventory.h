/* The inventory over HTTP: /api/devices, /api/oidsets, /api/interfaces (doc/inventory.md). */
#ifndef API_INVENTORY_H
#define API_INVENTORY_H

#include "api/params.h"

extern const struct http_handler devices_handler, device_handler;           /* GET */
extern const struct http_handler device_add_handler, device_change_handler; /* POST */
extern const struct http_handler device_poll_handler;   /* POST /api/polls/now?device= */
extern const struct http_handler device_remove_handler; /* DELETE */
extern const struct http_handler oidsets_handler, oidset_handler;
extern const struct http_handler interfaces_handler;
extern const struct param device_remove_params[], device_poll_params[], interfaces_params[];

#endif
