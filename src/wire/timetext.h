/* Times and durations as people and programs write them. All times are ms since 1970-01-01T00:00Z,
 * signed, in the proleptic Gregorian calendar without leap seconds.
 *
 * Any thread; no state. Errors are ERR_INVALID with a sentence. */
#ifndef WIRE_TIMETEXT_H
#define WIRE_TIMETEXT_H

#include "base/base.h"

enum {
	TIME_TEXT_MAX_BYTES = 64,  /* of a time or a duration that is read */
	TIME_PRINT_MAX_BYTES = 40, /* of a time that is written */
	DURATION_PRINT_MAX_BYTES = 24,
};

/* ISO 8601: 2020-08-24 (its midnight, UTC), 2020-08-24T16:34Z, 2020-08-24T16:34:05.123456+02:00. A
 * date-time needs Z or an offset (+hh:mm, +hhmm, +hh); `t`, `z` and a blank for the T are taken; a
 * fraction of any length is cut to the ms. 23:59:60 UTC is the first second of the next day. Years
 * of other than four digits have a sign: +12020-01-01, -0044-03-15 (the year before 0001 is 0000).
 */
int time_parse_iso(struct slice text, int64_t *ms, struct errbuf *e) MUST_CHECK;

/* Digits with an optional fraction, sign or exponent: seconds, or ms where the whole part has 13
 * digits or more. What is finer than a ms is cut (to the earlier ms). */
int time_parse_epoch(struct slice text, int64_t *ms, struct errbuf *e) MUST_CHECK;

/* Either of the above. */
int time_parse_absolute(struct slice text, int64_t *ms, struct errbuf *e) MUST_CHECK;

/* Either of the above, `now`, or a duration before now: `1h-ago`. What a query's start and end may
 * be. */
int time_parse(struct slice text, int64_t now_ms, int64_t *ms, struct errbuf *e) MUST_CHECK;

/* A whole number and a unit: ms, s, m, h, d, w, n (30 days), y (365 days); or ISO 8601 with W, D,
 * H, M, S: PT5M, P1DT12H, PT0.5S. At least 0. */
int duration_parse(struct slice text, int64_t *ms, struct errbuf *e) MUST_CHECK;

/* As options are written: one number, in the largest of ms, s, m, h and d that it is whole in. Ends
 * with a zero; returns `to`. `ms` is at least 0. */
const char *duration_print(char to[DURATION_PRINT_MAX_BYTES], int64_t ms);

/* 2020-08-24T16:34:05Z, with .123 only if the ms are not zero; years outside 0000-9999 get a sign
 * and as many digits as they need. At most TIME_PRINT_MAX_BYTES, no closing zero; returns how
 * many. */
size_t time_print(char *to, int64_t ms);

#endif
