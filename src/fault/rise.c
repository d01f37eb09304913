#include "fault/rise.h"

#include <math.h>

uint64_t fault_reports_of_day(const struct fault_group_history *history, int64_t day)
{
	for (size_t i = history->count; i-- > 0;)
		if (history->days[i].day == day)
			return history->days[i].count;
	return 0;
}

bool fault_rises(const struct fault_group_history *history, int64_t now_us)
{
	int64_t today = fault_day_of(now_us);
	double passed = (double)(now_us - today * FAULT_DAY_US) / (double)FAULT_DAY_US;
	double sum = 0, squares = 0, count = (double)fault_reports_of_day(history, today);
	int64_t known = history->count ? today - history->days[0].day : 0;
	int64_t days = smaller_of(known, FAULT_RISE_DAYS);
	if (days < FAULT_RISE_DAYS_MIN || count < FAULT_RISE_REPORTS)
		return false;
	for (int64_t day = today - days; day < today; day++) {
		double reports = (double)fault_reports_of_day(history, day);
		sum += reports;
		squares += reports * reports;
	}
	double mean = sum / (double)days;
	double variance = fmax(0, squares / (double)days - mean * mean);
	double usual = passed * mean;
	double deviation = fmax(passed * sqrt(variance), sqrt(usual));
	return count > usual + FAULT_RISE_DEVIATIONS * deviation;
}
