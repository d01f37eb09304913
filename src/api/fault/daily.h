/* GET /oops/days/DAY/report, of which days.c reads the question and whose job it is. */
#ifndef API_FAULT_DAILY_H
#define API_FAULT_DAILY_H

#include "api/call.h"

enum daily_format { DAILY_JSON, DAILY_TEXT, DAILY_HTML };
extern const char *const daily_formats[];

/* On the job's thread: makes the report of a day in the call's `out`. The error, whose sentence is
 * the call's. */
int daily_run(struct api_call *call, struct slice tenant, int64_t day,
	      enum daily_format format) MUST_CHECK;
/* On the loop's thread, before the answer leaves: what it is. */
void daily_set_headers(struct api_call *call, enum daily_format format);

#endif
