/* How reports, days, places and times are written in requests about fault reports and in answers.
 * Pure. */
#ifndef API_FAULT_NOTATION_H
#define API_FAULT_NOTATION_H

#include "fault/arrival.h"
#include "http/http.h"
#include "wire/json.h"

/* What the path has behind that of its route, but for a slash at its end: an id with a slash in it
 * is seen as one. */
struct slice notation_id(const struct http_request *request);

/* 2026-11-24, 20261124, today or yesterday, in UTC: days since the epoch. ERR_INVALID with a
 * sentence. */
int notation_day(struct slice text, int64_t now_ms, int64_t *day, struct errbuf *e) MUST_CHECK;

enum { NOTATION_TOKEN_BYTES = 51 }; /* with its zero */

/* A token: a report's place, by which a list goes on behind it: date, writer and sequence number,
 * each 16 hexadecimal digits. */
void notation_put_token(const struct fault_order *order, char to[NOTATION_TOKEN_BYTES]);
/* ERR_INVALID with a sentence: no list has given it. */
int notation_token(struct slice text, struct fault_order *order, struct errbuf *e) MUST_CHECK;

/* What people say of groups and reports is shown as they said it. ERR_INVALID, with the name of the
 * parameter: the text has a control character. */
int notation_check_said(struct slice text, const char *name, struct errbuf *e) MUST_CHECK;

/* What facts are compared with: a copy, cut and closed as the fact is (fault_fact_cut). NULL data
 * stays. ERR_INVALID, with a sentence: too long, or not UTF-8. */
int notation_keep_fact(struct arena *arena, enum fault_text fact, struct slice *text,
		       struct errbuf *e) MUST_CHECK;

/* The first microsecond of a ms; the ends of time stay ends. */
int64_t notation_us(int64_t ms);
int64_t notation_ms(int64_t us);

enum { NOTATION_MS_BYTES = 32 };

/* Microseconds, at least 0, as ms: 34, or 34.125. */
void notation_write_ms(struct json_writer *json, int64_t us);
size_t notation_print_ms(char to[NOTATION_MS_BYTES], int64_t us);

#endif
