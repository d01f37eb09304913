/* Time zones: the files of /usr/share/zoneinfo (TZif, RFC 8536 and 9636, versions 1 to 4), and when
 * days begin in them.
 *
 * A zone is a list of spans, each with one offset from UTC; after the last transition of the file
 * the rule of its footer goes on. Days begin at the first moment at which the clocks of the zone
 * show their date: where a night's hour is left out at midnight that is 01:00, and where one is
 * repeated over midnight the repeated part belongs to the new day. So days are whole, in order and
 * without gaps: what is summed by day is summed once.
 *
 * Bytes in, struct out: no files, no environment, no state (so unlike tzset and localtime any
 * thread may use any zone). Memory: the caller's arena. Times are seconds since 1970 UTC without
 * leap seconds, of the years that calendar.h takes. */
#ifndef WIRE_TZIF_H
#define WIRE_TZIF_H

#include "base/base.h"

struct arena;

enum {
	TZIF_MAX_BYTES = 128 << 10, /* of a file */
	TZIF_TRANSITIONS_MAX = 4096,
	TZIF_TYPES_MAX = 256,
	TZIF_OFFSET_MAX_S = 26 * 3600, /* east or west: RFC 8536 says -25 to 26 hours */
};

/* One day of each year and a time of it: when daylight saving time begins or ends. */
struct zone_rule {
	enum { ZONE_DAY_WITHOUT_LEAP, ZONE_DAY_FROM_0, ZONE_WEEKDAY } kind;
	int month, week, day; /* week 5: the month's last such day */
	int32_t time_s;       /* of the local clock before the change, up to +-167 hours */
};

struct zone {
	size_t count; /* of transitions */
	const int64_t *at_s;
	const int32_t *offset_s; /* from each transition on */
	int32_t first_offset_s;  /* before the first one */
	/* What holds after the last one. */
	bool has_tail, has_daylight;
	int32_t standard_s, daylight_s;
	struct zone_rule begins, ends;
};

extern const struct zone zone_utc;

/* ERR_INVALID with a sentence, also for files that count leap seconds (`right/...`); ERR_LIMIT:
 * more than the limits above, or the arena is full. */
int zone_parse(struct slice bytes, struct arena *arena, struct zone *zone,
	       struct errbuf *e) MUST_CHECK;

/* The time around `at_s` in which the offset is the same: from <= at < to. Two spans with the same
 * offset may follow each other; the ends of time are INT64_MIN and INT64_MAX. */
struct zone_span {
	int64_t from_s, to_s;
	int32_t offset_s;
};

struct zone_span zone_span_at(const struct zone *zone, int64_t at_s);

/* The date of the day to which a time belongs, as days since 1970-01-01. */
int64_t zone_day_of(const struct zone *zone, int64_t at_s);

/* When that day begins. */
int64_t zone_day_begin(const struct zone *zone, int64_t day);

#endif
