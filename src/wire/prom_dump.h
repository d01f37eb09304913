/* A line of `promtool tsdb dump`: one sample.
 *
 *     {__name__="cpu", host="a"} 2.5 1600000000000
 *
 * Times are in ms. Values of labels are quoted as Go does it (strconv.Quote). The value is a
 * double, NaN, +Inf or -Inf.
 *
 * Bytes in, structs out; no I/O. Lines of a series begin alike, so names are taken apart by a
 * function of their own. */
#ifndef WIRE_PROM_DUMP_H
#define WIRE_PROM_DUMP_H

#include "model/series.h"
#include "model/value.h"

struct arena;

/* *names: the text from brace to brace. ERR_INVALID with a constant reason. */
int prom_dump_split(struct slice line, struct slice *names, int64_t *ts_ms, struct value *value,
		    const char **reason) MUST_CHECK;
/* Into the arena; tags in the order sent, unchecked. ERR_INVALID as above. */
int prom_dump_names(struct slice names, struct arena *arena, struct slice *metric,
		    struct tags *tags, const char **reason) MUST_CHECK;

#endif
