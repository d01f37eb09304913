/* The shapes of exported samples. Pure: samples in, text out.
 *
 * Lines: Influx line protocol, times in ms. `/write?precision=ms` of them gives the same samples. A
 * comment in front says the precision to `granary import`.
 *
 *     # granary precision=ms
 *     cpu_idle,host=h-1,os=linux value=186.0 1598284275000
 *
 * The measurement is the metric and the field is `value`, which `/write` takes for the measurement
 * alone (ingest/line_feed.h). Integers end in i, unsigned ones in u; doubles read back to the same
 * bits. Series that lines have no form for (wire/line.h) are left out.
 *
 * JSON: a line for some samples of a series, as VictoriaMetrics' /api/v1/export writes them. A
 * number has no type there: readers take it for a double. NaN is null. A series with a tag __name__
 * is left out.
 *
 *     {"metric":{"__name__":"cpu_idle","host":"h-1"},"values":[186.0],"timestamps":[1598284275000]}
 *
 * CSV (RFC 4180, lines end with LF): `metric,tags,time_ms,type,value`. Tags are a text as
 * tags_encode writes it; types are f64, i64 and u64. */
#ifndef API_METRICS_EXPORT_ENCODE_H
#define API_METRICS_EXPORT_ENCODE_H

#include "base/buf.h"
#include "store/store.h"

enum {
	EXPORT_RUN_SAMPLES = 256, /* encoded before the length of the page is looked at */
	/* One run at most, with names of the greatest length. */
	EXPORT_RUN_MAX_BYTES = EXPORT_RUN_SAMPLES * (8 << 10),
};

struct export_encoder {
	const struct export_shape *shape;
	struct buf *out;     /* the caller's, who sees to its maximum */
	struct arena arena;  /* tags of one series */
	struct buf prefix;   /* what its lines begin with */
	struct buf times;    /* JSON: of the line that is open */
	size_t line_samples; /* likewise */
};

struct export_shape {
	const char *content_type;
	const char *title; /* the first line of all, or NULL */
	/* Makes the prefix. ERR_INVALID: the shape has no form for the names. */
	int (*series)(struct export_encoder *encoder, struct slice metric, struct slice tags_text);
	void (*run)(struct export_encoder *encoder, const struct store_points *points, size_t at,
		    size_t count);
	void (*close)(struct export_encoder *encoder); /* the line that is open; may be NULL */
};

extern const struct export_shape export_lines, export_json, export_csv;

void export_encoder_init(struct export_encoder *encoder, const struct export_shape *shape,
			 struct buf *out);
void export_encoder_release(struct export_encoder *encoder);

/* The series whose samples come next. ERR_INVALID: it is to be left out. ERR_DAMAGED: its tags
 * cannot be read. */
int export_encoder_series(struct export_encoder *encoder, struct slice metric,
			  struct slice tags_text) MUST_CHECK;
/* What has been written, also of a line that is open. */
static inline size_t export_encoder_bytes(const struct export_encoder *encoder)
{
	return encoder->out->len + encoder->times.len;
}

/* Samples of it from points->ts_ms[at] on, until bytes_max have been written or `max` are taken;
 * gives how many. */
size_t export_encoder_points(struct export_encoder *encoder, const struct store_points *points,
			     size_t at, size_t max, size_t bytes_max);
/* No more samples of the series come, or none on this page. */
void export_encoder_close(struct export_encoder *encoder);

#endif
