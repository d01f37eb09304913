/* Raw samples that were written when they were to be kept for less time.
 *
 * What is written goes to a class of retention and leaves with it, so when retention.raw or a rule
 * of raw samples is raised, what is there already leaves as it would have. Rows are never made of
 * what is left of a slot, so of time before a raise samples count as kept for as long as before it,
 * of time behind it for as long as now: struct retention_lengthened.
 *
 * Kept in the store: a conditional cell (`leases`, kind "retention-raw", column "kept"), numbers in
 * decimal with blanks between them. First what held at the last start: retention.raw. Then the
 * raise: until when, for how long samples of before were kept at least, whether retention.raw was
 * raised (0 or 1) and which rules (a bit for each, the first the lowest). Then the rules of raw
 * samples, in their order: a hash of tenant and metric as they are written, and for how long. All
 * times in ms. A store that has no such cell is taken to have been as the configuration is. */
#ifndef RETENTION_LENGTHENED_H
#define RETENTION_LENGTHENED_H

#include "retention/retention.h"
#include "store/store.h"

/* Sets rules->raise, and keeps what this configuration says, before anything is written by this
 * process; blocks for a read and a write. Samples are at most ahead_ms ahead of now. Where rules
 * were added, removed or changed places, whom of those from there on it concerns is not told apart:
 * it is all whose samples are kept for longer now than the shortest of them were. The store's
 * error, with a sentence; ERR_DAMAGED: the cell is none. */
int retention_lengthened_open(struct store *store, int64_t preset_ms, int64_t now_ms,
			      int64_t ahead_ms, struct retention_rules *rules,
			      struct errbuf *e) MUST_CHECK;

#endif
