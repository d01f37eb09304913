/* Days and months of reports in time zones (wire/zones.h). Pure; any thread. */
#ifndef API_ESMOND_ZONE_H
#define API_ESMOND_ZONE_H

#include "wire/tzif.h"

enum v2_span { SPAN_DAY, SPAN_MONTH };

enum { V2_SPANS_MAX = 4000 };

/* The edges of the whole days or months that the time from `begin_s` to `end_s` (inclusive)
 * touches: edges_s[0] is where the first begins, edges_s[count] where the last ends; a day that
 * the zone left out has no length and is left out here, too. days[i] is the first day of each, as
 * days since 1970-01-01. ERR_LIMIT: more than V2_SPANS_MAX. Room for V2_SPANS_MAX + 1 of each. */
int v2_spans(const struct zone *zone, enum v2_span span, int64_t begin_s, int64_t end_s,
	     int64_t *edges_s, int64_t *days, size_t *count) MUST_CHECK;

/* The first day of the month behind that of `day`. */
int64_t v2_next_month(int64_t day);

/* `2026-10-31`, or `2026-10` for a month; room for V2_SPAN_TEXT_BYTES. */
enum { V2_SPAN_TEXT_BYTES = 32 };
void v2_span_text(enum v2_span span, int64_t day, char *to);

/* `2026-10` of the years 1 to 9999 as its first day; ERR_INVALID: it is not. */
int v2_month_parse(struct slice text, int64_t *day) MUST_CHECK;

#endif
