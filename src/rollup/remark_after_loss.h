/* Private: marks that were lost (rollup_track_state) are made anew from raw data, without anybody's
 * doing.
 *
 * A sample whose touch was left out because one had been made before the loss may still be on its
 * way then; all that was touched before is handed to the store within the quiet time. So it begins
 * that much later, when something that was handed over by then is durable. What fails is begun
 * again.
 *
 * The thread of the executor. */
#ifndef ROLLUP_RESTORE_H
#define ROLLUP_RESTORE_H

#include "base/clock.h"
#include "retention/retention.h"
#include "marks/marks.h"

struct rollup_restore;

struct rollup_restore_options {
	struct store *store;
	struct rollup_track *track;
	struct clock *clock;
	struct executor *executor;
	int64_t slot_ms, quiet_ms;
	int64_t raw_retention_ms;                      /* 0: for ever */
	const struct retention_rules *retention_rules; /* where they say else; NULL: nowhere */
	int64_t ahead_ms;                              /* how far after now there may be samples */
	uint32_t partitions;
};

struct rollup_restore *rollup_restore_new(const struct rollup_restore_options *options);
/* Not while it runs. */
void rollup_restore_free(struct rollup_restore *restore);
/* Begins if there is something to be made and nothing begun. Everything that was handed to the
 * store before asof_ms is durable. */
void rollup_restore_look(struct rollup_restore *restore, int64_t asof_ms);
/* Begins nothing more, and ends what runs; that is over when it rests. */
void rollup_restore_stop(struct rollup_restore *restore);
bool rollup_restore_rests(const struct rollup_restore *restore);

#endif
