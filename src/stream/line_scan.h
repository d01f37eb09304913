/* Looking at lines of logs of all streams of a tenant, part by part: a block, or bytes that are in
 * none. What is known of a block without reading it says whether that is worth it.
 *
 * For threads that may wait. */
#ifndef STREAM_LINE_SCAN_H
#define STREAM_LINE_SCAN_H

#include "stream/known.h"
#include "stream/line_query.h"

/* A stream whose lines are asked for. Its texts stay until the scan is closed. */
struct line_stream {
	struct stream_id id;
	struct slice address;
	const struct datatype *rule; /* the query's, by which fields are read; NULL: none */
	struct stream_known known;
};

/* Bytes of a stream that are looked at together. */
struct line_part {
	size_t stream;            /* in the scan's list */
	uint64_t from, to;        /* offsets at which its lines begin */
	struct chunk_place place; /* of a block; length 0: what is known of the bytes is not used */
	int64_t first_ms, last_ms; /* times of its lines; of what is in no block: all times */
};

/* A line, and where it is. What it points to stays until the next one. */
struct line_seen {
	const struct line_stream *stream;
	int64_t ms;             /* its time, in ms since 1970 */
	uint64_t offset, bytes; /* of the line as it was sent */
	struct slice text;      /* without the end of the line */
};

/* A place in the order of lines. */
struct line_place {
	int64_t ms;          /* since 1970 */
	struct slice stream; /* its address */
	uint64_t offset;     /* of the line's first byte */
};
/* <0, 0, >0 */
int line_place_compare(const struct line_place *a, const struct line_place *b);

struct line_found {
	struct line_place place;
	struct slice text; /* without the end of the line; cut after LINE_FOUND_TEXT_MAX_BYTES */
	bool cut;          /* the text is */
	uint64_t bytes;    /* of the line as it was sent */
};
enum { LINE_FOUND_TEXT_MAX_BYTES = 64 << 10 };
/* A copy of what was seen; the address stays the scan's. */
struct line_found line_found_copy(const struct line_seen *seen);
void line_found_release(struct line_found *found);
void line_found_release_all(struct line_found *list, size_t count);

/* What is looked at. */
struct line_scan_rules {
	struct slice tenant;       /* texts stay until the scan is closed */
	struct stream_names names; /* NULL data: any */
	uint64_t incarnation;      /* 0: any */
	int64_t from_ms, to_ms;    /* from <= the time of a line < to */
	struct line_query *query;  /* for one scan at a time */
	/* 0, or the error with which it is to end. May be NULL. */
	int (*may_go_on)(void *owner, struct errbuf *e);
	void *owner;
};

/* What was done. */
struct line_scan_work {
	uint64_t streams;         /* that are asked for */
	uint64_t blocks;          /* that were read */
	uint64_t excluded_blocks; /* that were not read, because of their filters of words */
	uint64_t bytes;           /* that were looked at, in blocks or in none */
	uint64_t damaged;         /* blocks and ranges that cannot be read, and were left out */
	struct line_without without_rule;
};

struct line_scan {
	const struct line_scan_rules *rules;
	struct line_stream *streams;
	/* The blocks of each stream, then its bytes in none; both in the order of offsets. */
	struct line_part *parts;
	size_t stream_count, part_count;
	struct line_scan_work work;

	/* private */
	const struct stream_site *site;
	struct task_queue *queue;
	struct errbuf *e;
	struct arena names;
	size_t stream_room, part_room;
	int (*see)(const struct line_seen *seen, void *owner);
	void *see_owner;
	struct line_clock clock;
	struct buf unpacked;
	struct arena arena; /* of the part that is looked at */
	/* When it was last looked whether it may go on: lines since, and the work of the query. */
	unsigned lines;
	uint64_t query_work;
};

/* Lists the streams, and the parts that may have lines of the time that is asked for. To be closed
 * in any case. ERR_CANCELLED; ERR_LIMIT, with a sentence: too many streams or blocks; the error of
 * may_go_on; or the store's error, with a sentence. */
int line_scan_open(struct line_scan *scan, const struct stream_site *site, struct task_queue *queue,
		   const struct line_scan_rules *rules, struct errbuf *e) MUST_CHECK;
void line_scan_close(struct line_scan *scan);

/* Gives the lines of a part that may fit to `see`, in their order: those of the time that is asked
 * for, which are still to be compared with the query (line_query_fits). Ends when `see` returns
 * something else than 0, and returns that; it is neither ERR_DAMAGED nor ERR_VERSION. What cannot
 * be read is left out, and counted. Other errors as above. */
int line_scan_look(struct line_scan *scan, const struct line_part *part,
		   int (*see)(const struct line_seen *seen, void *owner), void *owner) MUST_CHECK;

#endif
