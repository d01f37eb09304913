/* The door of fault reports (document O, OOPS Repository), the part of it that takes time: from the
 * bytes of a body to what can be submitted (fault/intake.h). Its routes stand in api/fault/take.c.
 *
 * A body is one report in any of the forms of wire/oops_document.h, or an array of reports in JSON.
 * Each item of an array is a report by itself: what is wrong with one is said of it, and the others
 * are good.
 *
 * A report of 5 KB takes some 100 microseconds, so this is for a worker (loop/pool.h) and never for
 * a loop. No I/O, no globals. */
#ifndef INGEST_OOPS_H
#define INGEST_OOPS_H

#include "fault/intake.h"
#include "fault/report.h"

enum { OOPS_UNPACKED_MAX_BYTES = 32 << 20 }; /* of a body that is packed by bzip2 */

struct oops_options {
	struct fault_report_options report;
	bool takes_array;
};

/* A report of a body. */
struct oops_report {
	struct slice id; /* len 0: it is not known */
	int err;         /* 0: it is among the items */
	const char *sentence;
	const struct slice *refused; /* parts of it that were not understood, a sentence each */
	size_t refused_shown, refused_count;
	size_t item; /* its place among the items */
};

struct oops_batch {
	struct arena arena; /* has what all others point to */
	bool is_array;
	struct oops_report *reports; /* in the order of the body */
	size_t count;
	struct fault_item *items; /* those that can be submitted */
	size_t item_count;
};

void oops_batch_init(struct oops_batch *batch);
void oops_batch_release(struct oops_batch *batch);

/* Once for each batch. `id`, where it has data, is that of the one report (PUT /oops/ID). The body
 * may go after that. ERR_INVALID: the body, or the one report in it, is none, with a sentence;
 * ERR_LIMIT: it is too large, or has more than FAULT_ITEMS_MAX reports. */
int oops_batch_read(struct oops_batch *batch, struct slice body, struct slice id,
		    const struct oops_options *options, struct errbuf *e) MUST_CHECK;

#endif
