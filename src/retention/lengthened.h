/* Raw samples that were written when they were to be kept for less time.
 *
 * What is written goes to a class of retention and leaves with it, so when retention.raw or a rule
 * of raw samples is raised, what is there already leaves as it would have. Rows are never made of
 * what is left of a slot, so of time before a raise samples count as kept for as long as before it,
 * of time behind it for as long as now: struct retention_lengthened.
 *
 * The store remembers it (rollup/stored_settings.h) as numbers in decimal with blanks between them
 * (lengthened_cell.h). First what held at the last start: retention.raw. Then the raise: until
 * when, for how long samples of before were kept at least, whether retention.raw was raised (0 or
 * 1) and which rules (a bit for each, the first the lowest). Then the rules of raw samples, in
 * their order: a hash of tenant and metric as they are written, and for how long. All times in ms.
 */
#ifndef RETENTION_LENGTHENED_H
#define RETENTION_LENGTHENED_H

#include "retention/lengthened_cell.h"

/* Compares what the last start stored, *value, with the configuration: sets rules->raise, and
 * *value to what is to be stored now, in `text`. An empty *value: the store has always been as the
 * configuration is. Samples are at most ahead_ms ahead of now.
 *
 * From the first rule on that differs from the last start's, all rules count as changed: samples
 * that are kept for longer now than by the shortest of these count as lengthened. ERR_DAMAGED: the
 * value is none. */
int retention_lengthened_settle(struct slice *value, struct retention_rules *rules, int64_t now_ms,
				int64_t ahead_ms, char text[LENGTHENED_CELL_MAX_BYTES]) MUST_CHECK;

#endif
