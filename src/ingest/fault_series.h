/* Counts of fault reports as tagged metrics of their tenant, so that queries, roll-ups and
 * retention have them as any other:
 *
 *     faults{context, exception, release}     reports received in the minute that begins then
 *     fault_groups{group}                     likewise, of a group
 *
 * A fact that a report has not is no tag. A job writes what the owners' books give (minutes.h),
 * when nothing more is expected of a minute, one sample of each series that has reports; a minute
 * that gets a late report is written once more, over the samples that are there. A sample of a slot
 * that is rolled up already is late data, as any other would be (retention/late.h).
 *
 * A metric gets so many series of a tenant; reports of further names are counted in one that has
 * the tag rest=true alone.
 *
 * Threads: the functions here belong to the thread of the executor. */
#ifndef INGEST_FAULT_SERIES_H
#define INGEST_FAULT_SERIES_H

#include "fault/fault.h"
#include "ingest/ingest.h"

enum { FAULT_SERIES_MAX = 100000 };

struct fault_series_options {
	struct fault *fault;
	struct ingest *ingest;
	struct catalog *catalog;
	struct executor *executor;
	size_t series_max; /* of each of the metrics, of a tenant; up to FAULT_SERIES_MAX */
};

struct fault_series;

struct fault_series *fault_series_start(const struct fault_series_options *options);
void fault_series_stop(struct fault_series *series);
bool fault_series_is_over(const struct fault_series *series);
/* When it is over. NULL is allowed. */
void fault_series_free(struct fault_series *series);

#endif
