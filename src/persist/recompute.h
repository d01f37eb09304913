/* Rebuilding a device's bins and aggregates of one OIDSet from its raw data (granary recompute).
 *
 * The table of its counters is put together from the catalog, so that it has also what is polled no
 * more; the worker that owns the device then brings the rates up to its newest raw data and
 * recomputes, a slice of time after the other, while it goes on persisting polls and makes the
 * rates of all others.
 *
 * Threads: all of this is called, and `done` is, on the thread of the persist's loop. */
#ifndef PERSIST_RECOMPUTE_H
#define PERSIST_RECOMPUTE_H

#include "persist/persist.h"
#include "rate/recompute.h"

struct recompute;
/* `err` 0: recompute_result. ERR_NOT_FOUND: the store has no counter of that device and OIDSet.
 * ERR_CANCELLED; ERR_TIMEOUT: the worker hangs; or an error of the store. What was corrected before
 * an error stays, and the rest can be done by another run. */
typedef void recompute_done(struct recompute *recompute, int err);

struct recompute_options {
	struct slice device;         /* copied */
	const struct oidset *oidset; /* of counters; the one of its set_name is meant */
	int64_t from_ms, to_ms;      /* rows that begin in from <= start < to, of each level */
	bool only_report;            /* write nothing */
	bool only_derive;            /* compare nothing: rates are brought up to date */
	recompute_done *done;
	void *owner;
};

/* `done` follows, never from within. ERR_INVALID with a sentence: nothing can have that name. */
int recompute_start(struct persist *persist, const struct recompute_options *options,
		    struct recompute **started, struct errbuf *e) MUST_CHECK;
/* Ends soon, with ERR_CANCELLED if it was not over. */
void recompute_cancel(struct recompute *recompute);

/* From `done` on, until recompute_free. */
void *recompute_owner(const struct recompute *recompute);
const struct oidset *recompute_oidset(const struct recompute *recompute);
const char *recompute_error(const struct recompute *recompute);
const struct rate_recompute_result *recompute_result(const struct recompute *recompute);
/* The tags of a row, as tags_encode writes them, and the OID, of a difference. */
struct slice recompute_tags_text(const struct recompute *recompute,
				 const struct rate_difference *difference);
struct slice recompute_metric(const struct recompute *recompute,
			      const struct rate_difference *difference);
void recompute_free(struct recompute *recompute);

#endif
