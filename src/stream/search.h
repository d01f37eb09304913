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
#ifndef STREAM_SEARCH_H
#define STREAM_SEARCH_H

#include "stream/known.h"
#include "stream/line_query.h"

/* A place in the order of lines. */
struct line_place {
	int64_t ms;
	struct slice stream; /* its address */
	uint64_t offset;
};
/* <0, 0, >0 */
int line_place_compare(const struct line_place *a, const struct line_place *b);

struct line_found {
	struct line_place place;
	struct slice text; /* without the end of the line */
	uint64_t bytes;    /* of the line; more than the text has, where that is cut */
};

struct line_search_rules {
	struct slice tenant;
	struct stream_names names; /* NULL data: any */
	uint64_t incarnation;      /* 0: any */
	int64_t from_ms, to_ms;    /* from <= the time of a line < to */
	struct line_query *query;
	bool oldest_first;
	size_t limit;
	bool goes_on; /* only lines behind `after`, in the order that is asked for */
	struct line_place after;
	/* 0, or the error with which the search is to end. */
	int (*may_go_on)(void *owner, struct errbuf *e);
	void *owner;
};

struct line_search_result {
	struct line_found *found; /* in the order that was asked for */
	size_t count;
	bool more; /* there may be more, behind the last one */
	/* What was done for it. */
	uint64_t streams, blocks, excluded_blocks, bytes;
	uint64_t damaged; /* blocks and ranges that cannot be read, and were left out */

	/* private */
	struct arena arena;
};

enum { LINE_SEARCH_LIMIT_MAX = 10000, LINE_SEARCH_TEXT_MAX_BYTES = 64 << 10 };

/* *result is to be released in any case. ERR_CANCELLED; ERR_LIMIT, with a sentence: too many
 * streams or blocks; the error of may_go_on; or the store's error, with a sentence. */
int line_search(const struct stream_site *site, struct task_queue *queue,
		const struct line_search_rules *rules, struct line_search_result *result,
		struct errbuf *e) MUST_CHECK;
void line_search_release(struct line_search_result *result);

#endif
