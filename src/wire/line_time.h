/* The time that a line of a log says, in one of the forms that programs write:
 *
 *     2026-11-29T14:49:30.123456Z       RFC 3339; also a blank for the T, / in the date, a comma
 *     20261129T144930Z                  ISO 8601, basic; also 20261129 14:49:30
 *     29 Nov 2026 14:49:30,123          also - or / between day, month and year, : behind them
 *     Nov 29 14:49:30                   RFC 3164; also Nov 29 2026 14:49:30
 *     Sun Nov 29 14:49:30 2026          ctime; also without its year, or with a zone before it
 *     1700000000.123                    s since 1970 of 10 digits; ms of 13, us of 16, ns of 19
 *
 * Each of these stands at the beginning of the line, behind `[`, behind syslog's `<13>`, or (RFC
 * 3339) behind RFC 5424's `<13>1 `. Elsewhere these are found:
 *
 *     127.0.0.1 - frank [29/Nov/2026:14:49:30 +0000] "GET ...
 *                                       in the first 512 bytes, before the first quote
 *     {"level":"info","ts":1700000000.1}
 *                                       a time under one of the keys time, timestamp, @timestamp,
 *                                       ts, date, t at the first level; the first that is a time.
 *                                       The key lies in the first 1,024 bytes
 *     level=info ts=2026-11-29T14:49:30Z
 *                                       behind nothing but key=value, in the first 256 bytes; also
 *                                       time=, and t= at the beginning
 *     I1129 14:49:30.123456             glog and klog; also with the year, I20261129
 *     1234:M 29 Nov 2026 14:49:30.123   Redis
 *     081109 203615 148 INFO            yymmdd hhmmss of HDFS, from 2000 on
 *
 * A fraction is cut to the ms. The 60th second is the first one of the next minute. Behind the time
 * may stand Z, UTC, GMT or an offset; other names of zones are not known, and such a time counts as
 * one without a zone. A time without a zone is one of the context's zone:
 *     which its clocks leave out: taken as if they had not been put forward;
 *     which its clocks show twice: the first of the two.
 * A time without a year has the one that brings it nearest to near_ms, the earlier one of two; 29
 * February has the nearest leap year. Years before 1970 or after 9999 are none, nor is a time
 * before 1970 by UTC.
 *
 * Bytes in, number out: no memory, no locale. Any thread, each with its own context. */
#ifndef WIRE_LINE_TIME_H
#define WIRE_LINE_TIME_H

#include "base/base.h"

struct zone;

enum {
	LINE_TIME_CLF_MAX_BYTES = 512, /* before the bracket */
	LINE_TIME_JSON_MAX_BYTES = 1024,
	LINE_TIME_LOGFMT_MAX_BYTES = 256, /* before the key */
	/* A time without a year that is nearer than that to near_ms has the nearest year. */
	LINE_TIME_SURELY_NEAREST_DAYS = 180,
};

/* What the text of a time does not say. A zone stays as it is while a context names it. */
struct line_time_context {
	int64_t near_ms; /* when the line was received: decides the year where there is none */
	const struct zone *zone; /* wire/tzif.h: of times without an offset */
	bool of_near; /* out: the year of the time that was found is the one nearest to near_ms */
	/* Private: 0 at the beginning, 1: the fields below say for which local times of which zone
	 * an offset holds, so that the zone is not searched for each line. The result never depends
	 * on it. */
	unsigned last;
	const struct zone *last_zone;
	int64_t last_from_s, last_to_s; /* from <= local time < to */
	int32_t last_offset_s;
};

/* The time of a line, in ms since 1970-01-01T00:00Z. False: it says none, and *ms stays. */
bool line_time_find(struct slice line, struct line_time_context *context, int64_t *ms);

#endif
