/* Counting lines of logs by time, and by what they are of. For threads that may wait. */
#ifndef STREAM_LINE_COUNTS_H
#define STREAM_LINE_COUNTS_H

#include "stream/line_scan.h"
#include "wire/line_severity.h"

enum { LINE_COUNTS_STEPS_MAX = 10000, LINE_COUNTS_SERIES_MAX = 1000 };

struct line_counts_rules {
	struct line_scan_rules scan; /* of a whole number of steps, at most LINE_COUNTS_STEPS_MAX */
	int64_t step_ms;             /* above 0 */
	bool by_source, by_datatype, by_severity;
};

/* What the lines of a series have in common, where it is asked for. */
struct line_counts_series {
	struct slice source, datatype; /* NULL data: any */
	enum line_severity severity;
	uint64_t *counts; /* of each step */
};

struct line_counts {
	struct line_counts_series *list; /* in the order of source, datatype and severity */
	size_t count, steps;
	struct line_scan_work work;

	/* private */
	struct line_scan scan;
	size_t room;
	size_t last; /* the series that was counted last */
};

/* *counts is to be released in any case. Errors as of line_scan_open; ERR_LIMIT also: there are
 * more than LINE_COUNTS_SERIES_MAX series, with a sentence. */
int line_counts_read(struct line_counts *counts, const struct stream_site *site,
		     struct task_queue *queue, const struct line_counts_rules *rules,
		     struct errbuf *e) MUST_CHECK;
void line_counts_release(struct line_counts *counts);

#endif
