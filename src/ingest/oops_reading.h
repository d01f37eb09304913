/* What the doors of fault reports (oops.h, sentry.h) share: reading one document into a batch.
 * Private to ingest/. */
#ifndef INGEST_OOPS_READING_H
#define INGEST_OOPS_READING_H

#include "ingest/oops.h"

enum { OOPS_TREE_MAX_BYTES = 256 << 20 /* of a whole body */ };

struct oops_reading {
	struct oops_batch *batch;
	const struct fault_report_options *options;
	enum fault_dialect dialect;
	struct arena scratch; /* of one report */
	struct buf packed;
	uint64_t dictionary; /* by which it is packed */
	size_t packed_bytes; /* of all */
	struct errbuf *e;
};

void oops_reading_init(struct oops_reading *reading, struct oops_batch *batch,
		       const struct fault_report_options *options, struct errbuf *e);
void oops_reading_release(struct oops_reading *reading);

/* Once: room for so many reports. */
int oops_make_room(struct oops_batch *batch, size_t count, struct errbuf *e) MUST_CHECK;
/* Reads a report into the batch. What is wrong with the report is said there; an error is one of
 * the whole body. */
int oops_read_one(struct oops_reading *reading, struct json *document, struct slice id,
		  struct oops_report *report) MUST_CHECK;
/* The same of the only report of a body: what is wrong with it is wrong with the body. */
int oops_read_single(struct oops_reading *reading, struct json *document,
		     struct slice id) MUST_CHECK;

#endif
