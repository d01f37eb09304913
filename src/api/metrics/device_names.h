/* Devices by the names that they have now, where counters are found by tags: series keep in their
 * tag `device` what device_stored_as says, which is another name once the device was renamed.
 *
 * Selectors of `device` are made to find what is stored of the devices whose names match, and no
 * other; answers say the name. What is stored under a name that no device has is found by that.
 * Only in the tenant of counters. Threads: the loop's. */
#ifndef API_METRICS_DEVICE_NAMES_H
#define API_METRICS_DEVICE_NAMES_H

#include "api/routes.h"
#include "catalog/catalog.h"
#include "inventory/inventory.h"

struct device_names {
	const struct inventory *inventory; /* NULL: every device has the name it is stored under */

	/* private */
	struct catalog_selector asked[CATALOG_SELECTORS_MAX]; /* those of `device` */
	size_t asked_count;
};

void device_names_init(struct device_names *names, struct api *api, struct slice tenant);
/* At any time, also of zeroes. */
void device_names_release(struct device_names *names);

/* Changes selectors in place, with memory of the arena. *strict: they find too much, and of that
 * device_names_keep tells what is meant. ERR_LIMIT: the arena is full. */
int device_names_select(struct device_names *names, struct catalog_selector *selectors,
			size_t count, struct arena *arena, bool *strict) MUST_CHECK;
/* `owner`: the names. */
bool device_names_keep(void *owner, struct slice tags_text);

/* The same tags with the device's name, in the arena. `owner`: the names. */
struct slice device_names_tags(void *owner, struct slice tags_text, struct arena *arena);

/* A list of values of the tag `device` becomes that of the names: those that begin with `prefix`,
 * each once, ascending. ERR_LIMIT: the arena is full. */
int device_names_list(const struct device_names *names, struct slice prefix, struct arena *arena,
		      struct slice *values, size_t *count) MUST_CHECK;

#endif
