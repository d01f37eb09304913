/* The lines around a place of a stream. For threads that may wait. */
#ifndef STREAM_LINE_CONTEXT_H
#define STREAM_LINE_CONTEXT_H

#include "stream/line_scan.h"

enum { LINE_CONTEXT_MAX = 100 }; /* lines before and behind, each */

struct line_context_rules {
	struct line_scan_rules scan; /* of one stream */
	uint64_t offset;             /* of any byte of the line */
	size_t before, behind;       /* lines, at most LINE_CONTEXT_MAX each */
};

struct line_context {
	/* In their order: up to `before` that end at the offset or before it, and up to `behind` +
	 * 1 from the one on that has the byte; where none has it, from the next one on. */
	struct line_found *list;
	size_t count;
	bool held;             /* the byte at the offset is there */
	struct line_scan scan; /* what was done; the rest is private */
};

/* *context is to be released in any case. Errors as of line_scan_open; ERR_NOT_FOUND: there is no
 * such stream. */
int line_context_read(struct line_context *context, const struct stream_site *site,
		      struct task_queue *queue, const struct line_context_rules *rules,
		      struct errbuf *e) MUST_CHECK;
void line_context_release(struct line_context *context);

#endif
