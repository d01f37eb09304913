/* Rebuilding a device's bins and aggregates of one OIDSet from its raw data (granary recompute).
 *
 * The table of its counters is put together from the catalog, so that it has also what is polled no
 * more. The rates are brought up to its newest raw data and then recomputed, a slice of time after
 * the other, while the worker that has the device goes on persisting its polls; that one makes no
 * rates of this device and OIDSet meanwhile (persist/claims.h).
 *
 * Threads: that of a job, for which persisting and the catalog's thread go on. */
#ifndef PERSIST_RECOMPUTE_H
#define PERSIST_RECOMPUTE_H

#include "persist/persist.h"
#include "rate/recompute.h"

struct job;
struct recompute;

struct recompute_options {
	struct persist *persist;
	struct slice device;         /* the caller's */
	const struct oidset *oidset; /* of counters; the one of its set_name is meant */
	int64_t from_ms, to_ms;      /* rows that begin in from <= start < to, of each level */
	bool only_report;            /* write nothing */
	bool only_derive;            /* compare nothing: rates are brought up to date */
};

struct recompute *recompute_new(const struct recompute_options *options);
/* Once. ERR_NOT_FOUND: the store has no counter of that device and OIDSet. ERR_INVALID: nothing can
 * have that name. ERR_CANCELLED: the job is to end; or an error of the store; `e` has a sentence.
 * What was corrected before an error stays, and the rest can be done by another run. */
int recompute_run(struct recompute *recompute, struct job *job, struct errbuf *e) MUST_CHECK;
void recompute_free(struct recompute *recompute);

/* After it has run. */
const struct rate_recompute_result *recompute_result(const struct recompute *recompute);
/* The tags of a row, as tags_encode writes them, and the OID, of a difference. */
struct slice recompute_tags_text(const struct recompute *recompute,
				 const struct rate_difference *difference);
struct slice recompute_metric(const struct recompute *recompute,
			      const struct rate_difference *difference);

#endif
