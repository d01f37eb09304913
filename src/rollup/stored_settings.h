/* Since when what is written is marked for a granularity: of what was written before, nobody made
 * roll-ups, unless marks were made anew.
 *
 * Kept in the store: a conditional cell for each granularity (`leases`, kind "rollup-since", name
 * its width), written when a server first has it configured, and deleted when one starts that has
 * not: data that is written then is not marked. It is followed by " rebuilt" when marks of what was
 * there before have been made anew, and is 0 when these are worked on (complete.h). Beside them
 * stands how wide slots are (name "slot"): when that changes, what is marked is marked anew; and,
 * once late points were kept, how old the youngest of them was at least when it came (name "late"),
 * and how long those live that live the shortest (name "late-kept"; not there: for ever). All in
 * ms.
 *
 * Likewise which ends of names are those of counters (name "counters", each with the end of a line)
 * and, once that has changed, which ones came or went at some time, and up to when rows may be of
 * the other kind therefore (name "recount", `<ms>` and the ends, a line each). `<ms>` is followed
 * by " rebuilt", too, and the cell is deleted when the marks are worked on. */
#ifndef ROLLUP_STORED_SETTINGS_H
#define ROLLUP_STORED_SETTINGS_H

#include "base/buf.h"
#include "retention/granularity.h"
#include "retention/late.h"
#include "store/store.h"

/* Reads or makes them, before anything is written by this process; blocks for a read and a write,
 * or for as long as marks_resize takes.
 * since_ms[i] is of granularities->list[i]: data of that time and later is marked, 0 if all is.
 * `granularities` may be empty. *late is what this configuration wants: after_ms 0 if it keeps no
 * late points; and becomes what holds for all that were ever kept. The store's error, with a
 * sentence. */
int rollup_since_open(struct store *store, const struct granularities *granularities,
		      int64_t now_ms, int64_t since_ms[GRANULARITIES_MAX],
		      struct late_samples *late, struct errbuf *e) MUST_CHECK;

/* For complete.h. Has a request read the cells; */
void rollup_since_scan(struct store_request *scan);
/* which of `granularities` have been rebuilt, bit by place, and behind these whether "recount" has;
 */
unsigned rollup_since_rebuilt(const struct store_cell_scan *cells,
			      const struct granularities *granularities);
/* says of those in `which` that they have been, or that since then they are of all there is, and
 * that no rows are of the other kind. Cells that are not there are not made. */
int rollup_since_keep(struct store_write *write, const struct store_cell_scan *cells,
		      const struct granularities *granularities, unsigned which,
		      bool all) MUST_CHECK;

/* Which metrics are counters: the first time it is kept, later compared; a warning says what has
 * changed. Blocks for a read and a write. *recount is made; the caller releases it. */
int rollup_recount_open(struct store *store, const char *const *suffixes, size_t count,
			int64_t slot_ms, int64_t now_ms, struct buf *recount,
			struct errbuf *e) MUST_CHECK;
/* Rows of a metric of earlier times may be those of a gauge though it is a counter, or the other
 * way round; 0: they are not. */
int64_t rollup_recount_before_ms(const struct buf *recount, struct slice metric);

/* The latest such time of all metrics; 0: there is none. */
int64_t rollup_recount_last_ms(const struct buf *recount);

#endif
