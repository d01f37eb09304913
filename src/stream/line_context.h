/* The lines around a place of a stream. For threads that may wait. */
#ifndef STREAM_LINE_CONTEXT_H
#define STREAM_LINE_CONTEXT_H

#include "stream/line_scan.h"

enum { LINE_CONTEXT_MAX = 1000 }; /* lines before and behind, each */

struct line_context_rules {
	struct line_scan_rules scan; /* of one stream */
	uint64_t offset;
	size_t before, behind;
};

struct line_context {
	/* In their order: up to `before` that end before the offset, and up to `behind` + 1 from
	 * the one that has it on. */
	struct line_found *list;
	size_t count;
	struct line_scan scan;
};

/* *context is to be released in any case. Errors as of line_scan_open; ERR_NOT_FOUND: there is no
 * such stream. */
int line_context_read(struct line_context *context, const struct stream_site *site,
		      struct task_queue *queue, const struct line_context_rules *rules,
		      struct errbuf *e) MUST_CHECK;
void line_context_release(struct line_context *context);

#endif
