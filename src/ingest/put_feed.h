/* The body of /api/put, point by point, into an ingest_request: what stands between wire/json.h
 * and the HTTP door.
 *
 * {"metric":"cpu_idle","timestamp":1600000000,"value":12.5,"tags":{"host":"h-1","os":"linux"}}
 *
 * or an array of these. In a point
 *  - `metric` is a text;
 *  - `timestamp` is a number, of seconds, or of ms if its whole part has 13 digits or more, or a
 * text that holds such a number or an ISO 8601 time;
 *  - `value` is a number, or a text that holds one;
 *  - `tags` is an object of texts; numbers, true and false are taken as they are written. It may be
 *    empty or missing. An empty or missing (null) value is a fault: nothing is dropped silently;
 *  - other members are ignored. One of these keys, or the key of a tag, that stands twice
 *    is a fault, as it is in line protocol: which of the two was meant nobody can tell.
 *
 * A faulty point is refused by itself, with its index from 0, and the next one is read; NaN and
 * Infinity, which are not JSON but which writers of JSON write, are such faults. Bytes
 * that are no JSON end the reading: the points before are kept, and the refusal names index, line
 * and column.
 *
 * Points that follow each other and share tags and time go to the store together. Tags that are
 * written byte for byte like those of the point before are not read again.
 *
 * Private to ingest/, tests and benchmarks; the loop's thread. */
#ifndef INGEST_PUT_FEED_H
#define INGEST_PUT_FEED_H

#include "base/buf.h"
#include "ingest/ingest.h"
#include "wire/json.h"

enum {
	PUT_SLICE_BYTES = 64 << 10,   /* of the body, read without a pause: well below a ms */
	PUT_TEXT_MAX_BYTES = 8 << 20, /* of texts with escapes that are held at a time */
	PUT_OFFSETS_MAX_BYTES = 16 << 20,
};

enum put_field { PUT_METRIC, PUT_TIME, PUT_VALUE, PUT_TAGS, PUT_FIELDS };

struct put_fault {
	enum ingest_reason reason;
	const char *sentence; /* NULL: there is none */
};

struct put_tags {
	struct slice text; /* as written */
	struct slice tenant;
	struct tag list[TAGS_MAX + 1]; /* one may name the tenant */
	size_t count;
	struct put_fault fault;
	struct errbuf sentence;
};

/* Points that wait for one more that shares their tags and their time. */
struct put_group {
	const struct put_tags *tags;
	int64_t ts_ms;
	uint64_t first; /* index of the first; the others follow without a gap */
	struct slice metrics[INGEST_POINTS_MAX];
	struct value values[INGEST_POINTS_MAX];
	size_t count;
};

struct put_feed {
	struct ingest_request *r;
	struct slice tenant; /* of all points; NULL data: by each one's tags */
	struct json_reader reader;
	struct arena arena;
	uint64_t index; /* of the point being read; at the end, how many there were */
	bool begun, array, over;
	/* Tags are read into one of the two while the group needs the other. The last that were
	 * read; NULL: none, or their memory is another's. */
	struct put_tags tags[2], *known;
	struct put_tags untagged; /* of points that have no "tags" */
	struct put_group group;
	struct errbuf sentences[PUT_FIELDS]; /* of faults of the point being read */
	bool keep_offsets;
	struct buf offsets; /* size_t each, by index */
};

/* `body` and `tenant` stay until release. */
void put_feed_init(struct put_feed *feed, struct ingest_request *r, struct slice tenant,
		   struct slice body);
void put_feed_release(struct put_feed *feed);

/* Reads on, about PUT_SLICE_BYTES. Calls ingest_piece_begin and ingest_piece_end. False when there
 * is nothing left to read, or when the request has failed: the caller then ends it. */
bool put_feed_slice(struct put_feed *feed);

/* With keep_offsets (set after init): where in the body a point begins. False: not known. */
bool put_feed_offset(const struct put_feed *feed, uint64_t index, size_t *offset);

#endif
