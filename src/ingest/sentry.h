/* The doors of Sentry's clients, the part of them that takes time: from the bytes of a body to what
 * can be submitted (fault/intake.h). Their routes stand in api/fault/sentry.c.
 *
 * A body is an envelope (wire/sentry_envelope.h), or, at the older door /store/, one event
 * (wire/sentry_store.h). The event of an envelope becomes a report; so does a transaction that took
 * longer than `slow_ms`. Attachments go with the report of their envelope; of one that is too
 * large, or beyond what a report may have, only its name is kept. Sessions, and what clients threw
 * away, are counts (sentry_counts.h). Of all other items only their number is kept, by type. What
 * is wrong behind the event of an envelope is counted, and the event is taken.
 *
 * For a worker, as oops.h. No I/O, no globals but counters. */
#ifndef INGEST_SENTRY_H
#define INGEST_SENTRY_H

#include "ingest/minute_sums.h"
#include "ingest/oops.h"
#include "wire/sentry_envelope.h"

struct sentry_options {
	struct fault_report_options report;
	bool is_envelope;
	int64_t slow_ms;             /* a transaction of more is kept; 0: none is */
	size_t attachment_max_bytes; /* at most FAULT_ATTACHMENT_MAX_BYTES; 0: none is kept */
};

/* Once for each batch, which then has one report or none; `id`, what the client is told: 32 digits,
 * or of len 0 where the body has none; `counts` are in the batch's arena. The body may go after
 * that. ERR_INVALID: the body is no envelope, or its event no event, with a sentence; ERR_LIMIT: it
 * is too large. */
int sentry_batch_read(struct oops_batch *batch, struct slice body,
		      const struct sentry_options *options, struct slice *id,
		      struct minute_counts *counts, struct errbuf *e) MUST_CHECK;

#endif
