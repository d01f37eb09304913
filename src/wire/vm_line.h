/* A line of VictoriaMetrics' /api/v1/export: some samples of a series.
 *
 *     {"metric":{"__name__":"cpu","host":"a"},"values":[1,2.5,null],"timestamps":[1000,2000,3000]}
 *
 * Times are in ms. A value is a number, null (NaN), or "Infinity" and "-Infinity". All numbers
 * are doubles. Other members are passed over.
 *
 * Bytes in, structs out; no I/O. */
#ifndef WIRE_VM_LINE_H
#define WIRE_VM_LINE_H

#include "model/series.h"
#include "model/value.h"
#include "wire/json.h"

struct vm_line {
	struct slice metric;
	struct tags tags;   /* in the order sent, unchecked */
	struct slice names; /* the text of the object `metric` */
	const char *reason;
	/* private */
	struct json_reader values, times;
};

/* Names are slices of the line or lie in the arena. ERR_INVALID: line->reason says why. */
int vm_line_read(struct vm_line *line, struct slice text, struct arena *arena) MUST_CHECK;
/* The next sample. ERR_NOT_FOUND: there is no further one; ERR_INVALID as above. */
int vm_line_next(struct vm_line *line, int64_t *ts_ms, struct value *value) MUST_CHECK;

#endif
