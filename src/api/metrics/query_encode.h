/* The shapes of a query's answer. Pure: chunks in, text out.
 *
 * JSON, as the document prints it:
 *
 *     [{"tenant":"t-1","metricName":"cpu_idle","tags":{"host":"h-1","os":"linux"},
 *       "values":{"2020-08-24T15:51:15Z":186.0,"2020-08-24T16:23:54.250Z":828.0}}, ...]
 *
 * Tags and values are in order; NaN, infinities and filled gaps are null. Where the answer was cut,
 * the last series has `"truncated":true` behind its values.
 *
 * With `explain` the array is the member `result` of an object, beside `explain`, which says what
 * was read for it; in CSV that is a last line `# explain: {...}`.
 *
 * CSV (RFC 4180, lines end with LF): `time,tenant,metric,`, a column for each tag key that occurs,
 * by bytes, `value`, which is empty for a filled gap. A tag that is called as one of the other
 * columns, or begins with `tag.`, has `tag.` before its name. Where the answer was cut, the last
 * line is `# truncated: ...`. */
#ifndef API_METRICS_QUERY_ENCODE_H
#define API_METRICS_QUERY_ENCODE_H

#include "base/buf.h"
#include "query/query.h"

enum {
	ENCODE_POINT_MAX_BYTES = 96,      /* of a point, without the names of its series */
	ENCODE_CHUNK_MAX_BYTES = 1 << 20, /* of a chunk, with all that comes before its points */
};

struct encoder {
	const struct encoder_shape *shape;
	const struct query *query;
	struct buf *out;
	struct arena arena; /* of one series: its tags, or the middle of its lines */
	bool began, in_series, in_values;
	bool explain;                              /* the caller's, before the first chunk */
	const struct granularities *granularities; /* likewise: those of the query */
	/* Likewise: tags as they are to be said, in the arena; NULL: as they are. */
	struct slice (*say_tags)(void *owner, struct slice tags_text, struct arena *arena);
	void *say_owner;
	int64_t encode_us; /* the caller's: what encoding has taken so far */
	/* CSV */
	struct slice *keys; /* by bytes */
	size_t key_count;
	struct arena key_arena;
	struct slice middle;
	/* The day of the last time, as text up to the T. */
	int64_t day_ms;
	char day[40];
	size_t day_len;
};

struct encoder_shape {
	const char *content_type;
	size_t chunk_points; /* what encoder_chunk may be given at once */
	void (*begin)(struct encoder *encoder);
	void (*series)(struct encoder *encoder, const struct catalog_series *series);
	void (*points)(struct encoder *encoder, const struct query_chunk *chunk);
	void (*end)(struct encoder *encoder);
};

extern const struct encoder_shape encoder_json, encoder_csv;

/* Appends to `out`, whose maximum the caller sees to: out->failed tells. */
void encoder_init(struct encoder *encoder, const struct encoder_shape *shape,
		  const struct query *query, struct buf *out);
void encoder_release(struct encoder *encoder);

/* A field of CSV: in quotes where it holds one or a comma; names have no line's end. */
void encoder_put_field(struct buf *out, struct slice text);

void encoder_chunk(struct encoder *encoder, const struct query_chunk *chunk);
/* Once, when the query has ended without an error. */
void encoder_end(struct encoder *encoder);

#endif
