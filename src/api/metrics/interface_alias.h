/* Interfaces by what their ifAlias says: how queries of counters find series by alias, which is no
 * tag of theirs, since it changes while a series goes on.
 *
 * The versioned rows of the inventory's devices are gone through, one device after the other, for
 * those that lived at some time of the query and match; a series is meant if its tags `device` and
 * `interface` are those of such a row. Threads: the loop's. */
#ifndef API_METRICS_INTERFACE_ALIAS_H
#define API_METRICS_INTERFACE_ALIAS_H

#include "api/routes.h"
#include "base/hash_set.h"
#include "inventory/inventory.h"
#include "query/query.h"

enum { ALIAS_ROWS_MAX = 100000 }; /* interfaces of one query */

struct alias;
/* Also from within alias_start. ERR_LIMIT, or the store's error. */
typedef void alias_done(struct alias *alias, int err);

/* Embedded in its owner. */
struct alias {
	struct api *api;
	const struct query_spec *spec; /* with its selectors, some of `alias` */
	alias_done *done;
	void *owner;

	struct errbuf error;

	/* private */
	uint32_t magic; /* from the start to the release */
	const struct inventory *inventory;
	size_t next; /* device */
	struct inventory_rows_read read;
	bool reading;
	struct arena arena;   /* of one device */
	struct hash_set rows; /* found */
};

/* Whether a query asks for an alias: one of counters, with a selector of that name. */
bool alias_is_asked(const struct query_spec *spec);
void alias_start(struct alias *alias);
/* The selectors but those of `alias`, in place; and keep, which needs this until the query ends. */
void alias_apply(struct alias *alias, struct query_spec *spec);
/* At any time; what is under way is dropped. Zeroed is allowed. */
void alias_release(struct alias *alias);

#endif
