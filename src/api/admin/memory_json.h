/* What this process holds in memory, by part, as /api/stats has it under "memory". */
#ifndef API_ADMIN_MEMORY_JSON_H
#define API_ADMIN_MEMORY_JSON_H

#include "wire/json.h"

/* {"heads": N, "keyCache": N, "tagIndexes": N, "registry": N, "journalList": N, "groupLists": N,
 *  "samplesInFlight": N, "counters": what is remembered of polls, "requests": N, "kept": freed, for
 *  the next user, "parts": their sum, "anonymous": RssAnon of the kernel, "perSeries": anonymous by
 *  series, or null} - all in bytes.
 * What the sum lacks of anonymous is batches kept for the next request, stacks, and the database's
 * own. */
void memory_json(struct json_writer *writer);

#endif
