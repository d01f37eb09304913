/* What the store says of itself as JSON: the answers of /api/stats and /api/verify, and what
 * `granary stats` and `granary verify` print of a directory. The shape is drawn above each
 * function in store_json.c. */
#ifndef API_ADMIN_STORE_JSON_H
#define API_ADMIN_STORE_JSON_H

#include "store/store.h"
#include "wire/json.h"

/* `memory` writes the object of that name, where there is a server to speak of; else NULL. */
void store_stats_json(const struct store_stats *stats, void (*memory)(struct json_writer *writer),
		      struct json_writer *writer);

/* Problems of all slices and all tables (store/tables_verify.h). */
struct store_verified {
	uint64_t checked, problems, orphans;
	const char *const *sentences; /* those that were kept */
	size_t sentence_count;
};
void store_verify_json(const struct store_verified *found, struct json_writer *writer);

#endif
