/* Line protocol in pieces, into an ingest_request: what stands between wire/line.h and the HTTP
 * door.
 *
 * Complete lines are read where they arrive; only what a piece cuts off (and its last few bytes,
 * since the reader looks ahead) is carried over to the next piece, at most LINE_MAX_BYTES of one
 * line.
 *
 * A line's series: the tenant is the one given, else the tag `tenant`, else `default`; the metric
 * is `measurement_field`, or the measurement alone where the field is called `value`. Integers with
 * `i` are i64, with `u` u64, all other numbers f64; true and false are the f64 1 and 0. Text, NaN
 * and infinities are refused one by one, the other fields of the line are kept. A line without a
 * time gets the time at which its piece was read.
 *
 * What a line costs. The hash of the raw `measurement,tags` gives the handles of its fields and the
 * shape it had before (field_names.h): if the names of its fields are still those, nothing is
 * looked at again. A line of another shape is found by that hash and the shape's. Lines of unknown
 * keys wait for the catalog, all those of a piece in one call.
 *
 * Private to ingest/, tests and benchmarks; the loop's thread. */
#ifndef INGEST_LINE_FEED_H
#define INGEST_LINE_FEED_H

#include "base/buf.h"
#include "ingest/ingest.h"
#include "wire/line.h"

struct field_names;

struct line_feed {
	struct ingest_request *r;
	struct slice tenant; /* NULL data: by each line's tags; the caller's */
	uint64_t tenant_seed;
	enum line_precision precision;
	size_t line_max_bytes; /* LINE_MAX_BYTES; may be set lower after init */
	uint64_t line;         /* number of the line that comes next */
	struct buf carry;
	size_t cut; /* of the carry, what was read and found to end in an open text; else 0 */
	uint64_t texts_left_out;  /* fields */
	bool skipping;            /* the present line was too long: its rest is dropped */
	struct field_names *last; /* that an unknown key had: the next one may have it too */
};

void line_feed_init(struct line_feed *feed, struct ingest_request *r, struct slice tenant,
		    enum line_precision precision);
void line_feed_release(struct line_feed *feed);

/* The next bytes. Calls ingest_piece_begin and ingest_piece_end. */
void line_feed_piece(struct line_feed *feed, struct slice piece);
/* More may come, but perhaps not soon: reads a line again that ended in an open text, and all after
 * it. Bytes that still wait then are in the carry. */
void line_feed_try(struct line_feed *feed);
/* No more comes: reads what is left. The caller then ends the request. */
void line_feed_end(struct line_feed *feed);

#endif
