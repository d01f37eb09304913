/* A line of `granary export --format csv`: one sample.
 *
 *     cpu_idle,"host=h-1,os=linux",1598284275000,f64,186.0
 *
 * metric, tags, time_ms, type, value. Tags are a text as tags_encode writes it. Names are quoted
 * where they have a comma or a quote, and have no line's end.
 *
 * Bytes in, structs out; no I/O. Lines of a series begin alike, so names are taken apart by a
 * function of their own. */
#ifndef WIRE_SAMPLE_CSV_H
#define WIRE_SAMPLE_CSV_H

#include "model/series.h"
#include "model/value.h"

struct arena;

#define SAMPLE_CSV_TITLE "metric,tags,time_ms,type,value"

/* *names: the text of metric and tags. ERR_INVALID with a constant reason. */
int sample_csv_split(struct slice line, struct slice *names, int64_t *ts_ms, struct value *value,
		     const char **reason) MUST_CHECK;
/* Into the arena. ERR_INVALID as above. */
int sample_csv_names(struct slice names, struct arena *arena, struct slice *metric,
		     struct tags *tags, const char **reason) MUST_CHECK;

#endif
