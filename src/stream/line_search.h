/* Searching lines of logs in all streams of a tenant, in the order of their times.
 *
 * Lines are ordered by their time (line_clock.h); lines of one time by the address of their stream
 * and their offset. That order is the same for all who search, whatever is in blocks, so that a
 * search goes on exactly where another one has ended.
 *
 * Blocks are looked at in the order of the first time that they can have, until no block that is
 * left can have a line that comes before those that were found. A block whose filter of words
 * excludes the text is not read. Chunks that are not in blocks are looked at first, all of them,
 * since nobody has noted the times of their lines.
 *
 * For threads that may wait. */
#ifndef STREAM_LINE_SEARCH_H
#define STREAM_LINE_SEARCH_H

#include "stream/line_scan.h"

struct line_search_rules {
	struct line_scan_rules scan;
	bool oldest_first;
	size_t limit; /* of lines: 1 to LINE_SEARCH_LIMIT_MAX */
	bool goes_on; /* only lines behind `after`, in the order that is asked for */
	struct line_place after;
};

struct line_search_result {
	struct line_found *found; /* in the order that was asked for */
	size_t count;
	bool more; /* there may be more, behind the last one */
	struct line_scan_work work;

	/* private */
	struct line_scan scan;
};

enum { LINE_SEARCH_LIMIT_MAX = 10000 };

/* *result is to be released in any case. Errors as of line_scan_open. */
int line_search(const struct stream_site *site, struct task_queue *queue,
		const struct line_search_rules *rules, struct line_search_result *result,
		struct errbuf *e) MUST_CHECK;
void line_search_release(struct line_search_result *result);

#endif
