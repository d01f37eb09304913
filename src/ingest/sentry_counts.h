/* What Sentry's clients count themselves: the items `session`, `sessions` (many at once) and
 * `client_report` of an envelope (develop.sentry.dev/sdk/telemetry/sessions/, .../client-reports/),
 * as counts of the metrics faults_sessions and faults_discarded. doc/faults.md says what counts.
 *
 * Pure; memory from the caller's arena. */
#ifndef INGEST_SENTRY_COUNTS_H
#define INGEST_SENTRY_COUNTS_H

#include "ingest/minute_sums.h"
#include "wire/json.h"

/* Of an item of that type; of other types, and of what has not their shape, nothing. */
void sentry_counts_read(struct slice type, const struct json *item, struct minute_counts *counts,
			struct arena *arena);
/* Whether items of that type count. */
bool sentry_counts_has(struct slice type);

#endif
