/* Devices, OIDSets and interfaces as JSON: what the API answers and takes, and what the commands
 * send. Pure. */
#ifndef API_ADMIN_INVENTORY_JSON_H
#define API_ADMIN_INVENTORY_JSON_H

#include "inventory/inventory.h"
#include "wire/json.h"

/* With how polling it goes at `now_ms`: state is ok, waiting (not polled yet), failing,
 * misconfigured or inactive; `reason` and `since` say more where they can. `heard_ms`: when its
 * poller was heard of, where that is not the server; 0: never. Not `whole`: without its address,
 * and by which credentials it is asked. */
void device_json(const struct device *device, bool whole, int64_t heard_ms, int64_t now_ms,
		 struct json_writer *writer);
void oidset_json(const struct oidset *set, struct json_writer *writer);
/* The row's attributes with device, name, begin and end. */
void interface_json(struct slice device, const struct inventory_row *row,
		    struct json_writer *writer);

/* What was said of a device, to be sent. */
void device_spec_json(const struct device_spec *spec, struct json_writer *writer);
/* And to be taken: members that are there go over those of *spec. Texts lie in the JSON, lists in
 * `arena`. ERR_INVALID with a sentence, also for members that are not known. */
int device_spec_from_json(const struct json *object, struct arena *arena, struct device_spec *spec,
			  struct errbuf *e) MUST_CHECK;

#endif
