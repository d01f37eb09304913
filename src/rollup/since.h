/* Since when what is written is marked for a granularity: of what was written before, nobody made
 * roll-ups, unless marks were made anew.
 *
 * Kept in the store: a conditional cell for each granularity (`leases`, kind "rollup-since", name
 * its width), written when a server first has it configured, and deleted when one starts that has
 * not: data that is written then is not marked. Beside them stands how wide slots are (name
 * "slot"): when that changes, what is marked is marked anew; and, once late points were kept, how
 * old the youngest of them was at least when it came (name "late"), and how long those live that
 * live the shortest (name "late-kept"; not there: for ever). All in ms. */
#ifndef ROLLUP_SINCE_H
#define ROLLUP_SINCE_H

#include "rollup/grain.h"
#include "rollup/late.h"
#include "store/store.h"

/* Reads or makes them, before anything is written by this process; blocks for a read and a write,
 * or for as long as rollup_resize takes.
 * since_ms[i] is of grains->list[i]: data of that time and later is marked, 0 if all is. `grains`
 * may be empty. *late is what this configuration wants: after_ms 0 if it keeps no late points; and
 * becomes what holds for all that were ever kept. The store's error, with a sentence. */
int rollup_since_open(struct store *store, const struct rollup_grains *grains, int64_t now_ms,
		      int64_t since_ms[ROLLUP_GRAINS_MAX], struct rollup_late *late,
		      struct errbuf *e) MUST_CHECK;

#endif
