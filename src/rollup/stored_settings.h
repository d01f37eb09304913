/* Stored settings: what the store remembers of the configuration under which its data was written.
 * At each start they are compared with the configuration of now; a change may concern data that is
 * there already.
 *
 * Where several processes share the store, all have the same configuration (shared_settings.h), and
 * a start with another one is refused while any is at work. So what is settled here is settled
 * alone, or by several that start at once and want the same: each looks at what became of each of
 * its conditions, and settles again from what is there when another was first. What backfill of one
 * process notes the others follow.
 *
 * They are conditional cells of the table `leases`; times are in ms:
 *
 *     row            column     value
 *     retention-raw  kept       how long raw samples were kept (retention/lengthened_cell.h)
 *     rollup-since   slot       the width of slots
 *                    late       the least age of late samples when they came; not there: there are
 *                               none
 *                    late-kept  the shortest life of late samples; not there: for ever
 *                    counters   the ends of names of counters, a line each
 *                    recount    the ends that came or went, see below
 *                    WIDTH      since when samples are marked for the granularity of that width;
 *                               0: since ever. " rebuilt" follows once earlier samples are marked
 *
 * A granularity gets its cell at the first start with it, and loses the cell at a start without it:
 * what is written then is not marked for it. `recount` has a time and, a line each, the ends of
 * names whose metrics became counters or ceased to be; rows of earlier times may be of the other
 * kind. " rebuilt" follows that time, too. Backfill (backfill.h) makes the cells 0 and removes
 * `recount` when roll-ups are made of all raw data.
 *
 * Threads: opened on one. since_ms and recount may be asked on any. */
#ifndef ROLLUP_STORED_SETTINGS_H
#define ROLLUP_STORED_SETTINGS_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/exec.h"
#include "retention/granularity.h"

struct retention_rules;
struct rollup_site;

struct stored_settings {
	/* By granularity: samples of that time and later are marked for it. */
	_Atomic int64_t since_ms[GRANULARITIES_MAX];
	struct buf recount;           /* the cell of that name */
	_Atomic bool recount_is_over; /* backfill has made it void */
	/* Where the store is shared: */
	struct buf shared;       /* this process's shared settings */
	_Atomic bool are_others; /* another process has changed them since */
	bool is_unstored;        /* the store had no room for all of this */
};

/* Compares the site's configuration with the settings, does what changes ask for, and stores those
 * that changed. Sets of the site settings, retention.raise, and `late`, whose kept_ms is the
 * configured one before, and whose after_ms is as far as late samples were ever kept. Before
 * anything is written by this process; blocks for a read and a write, or for as long as
 * marks_resize takes. The store's error with a sentence that names the setting; ERR_DAMAGED: it is
 * none; ERR_INVALID: a process is at work with other shared settings. The settings are to be
 * released in any case.
 *
 * Where the store is shared, this process has to be seen to be at work by then, under site->name
 * (shared_settings_find_other). */
int stored_settings_open(struct rollup_site *site, int64_t now_ms, struct errbuf *e) MUST_CHECK;
/* The same; waits on the queue. */
int stored_settings_settle(struct rollup_site *site, struct task_queue *queue, int64_t now_ms,
			   struct errbuf *e) MUST_CHECK;
void stored_settings_release(struct stored_settings *settings);
/* The rules of retention are to be these from now on, in a store that nobody shares: stores what
 * there is to remember of those of before, and sets rules->raise and rules->late. Then the site may
 * change to them (rollup_site_change_rules); if it does not, the settings hold all the same, for
 * these rules and for those of before. Waits on the queue. The store's error, with a sentence. */
int stored_settings_change(struct rollup_site *site, struct retention_rules *rules,
			   struct task_queue *queue, struct errbuf *e) MUST_CHECK;

/* Queries take raw samples of earlier times of the metric, since roll-ups of the granularity are
 * not of all of them; 0: at no time. */
int64_t stored_settings_since_ms(const struct stored_settings *settings, struct slice metric,
				 size_t granularity);
/* Rows of the metric of earlier times may be those of a gauge though it is a counter, or the other
 * way round; 0: they are not. */
int64_t stored_settings_recount_ms(const struct stored_settings *settings, struct slice metric);
/* The latest such time of all metrics; 0: there is none. */
int64_t stored_settings_recount_last_ms(const struct stored_settings *settings);
/* The same of the value of a cell, which may be any bytes. */
int64_t recount_before_ms(struct slice value, struct slice metric);

/* ---- What backfill notes; both wait for the store ---------------------------------------------
 */

/* Where the store is shared, takes over what backfill of other processes has brought to an end, and
 * sees whether the shared settings are still this process's: settings.are_others. *rebuilt: which
 * granularities are noted as rebuilt, bit by place, and at the bit after these `recount`. On one
 * thread at a time. */
int stored_settings_follow(struct rollup_site *site, struct task_queue *queue,
			   unsigned *rebuilt) MUST_CHECK;
/* Notes that those in `which` have been rebuilt, or with `all` that roll-ups are made of all there
 * is. A cell that is not there is not made, and what another process has noted before stays.
 * ERR_EXISTS, where the store is shared: there is something else than this process believes, and
 * nothing was noted. */
int stored_settings_note(const struct rollup_site *site, struct task_queue *queue, unsigned which,
			 bool all) MUST_CHECK;

#endif
