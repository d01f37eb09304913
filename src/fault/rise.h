/* Whether a group has more reports today than it usually has by this time of the day (daisy's rule
 * for crashes of a new version, with a bound for few reports). Pure. */
#ifndef FAULT_RISE_H
#define FAULT_RISE_H

#include "fault/groups.h"

enum {
	FAULT_RISE_DAYS = 7,     /* before today that are looked at */
	FAULT_RISE_DAYS_MIN = 3, /* of them; the group has its first report before that */
	FAULT_RISE_REPORTS = 20, /* today, at least */
	FAULT_RISE_DEVIATIONS = 3,
};

/* With the mean m and the standard deviation s of the reports of those days, days without a report
 * included, and f of today over: f * m is usual by now, and a deviation is the larger of f * s and
 * sqrt(f * m), which is that of events that come by chance. True: today's are more than what is
 * usual and three deviations. */
bool fault_rises(const struct fault_group_history *history, int64_t now_us);

/* How many reports the group had on a day. */
uint64_t fault_reports_of_day(const struct fault_group_history *history, int64_t day);

#endif
