/* How bad the line of a log says that it is. Pure; any thread. */
#ifndef WIRE_LINE_SEVERITY_H
#define WIRE_LINE_SEVERITY_H

#include "base/base.h"

enum line_severity {
	LINE_UNKNOWN,
	LINE_TRACE,
	LINE_DEBUG,
	LINE_INFO,
	LINE_NOTICE,
	LINE_WARNING,
	LINE_ERROR,
	LINE_CRITICAL, /* and worse */
	LINE_SEVERITIES
};

/* `unknown`, `trace`, ... */
const char *line_severity_text(enum line_severity severity);

/* By syslog's <PRI> or glog's letter at the beginning; else by the first word of the first
 * LINE_SEVERITY_BYTES that names one, in any case: as `ERROR`, `[warn]`, `level=info`, `err`. */
enum { LINE_SEVERITY_BYTES = 256 };
enum line_severity line_severity_of(struct slice line);

#endif
