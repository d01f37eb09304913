/* Days and dates of the proleptic Gregorian calendar. Any year that fits 48 bits. */
#ifndef WIRE_CALENDAR_H
#define WIRE_CALENDAR_H

#include "base/base.h"

struct date {
	int64_t year;   /* 0 is the year before 1 */
	int month, day; /* from 1 */
};

enum { DAYS_PER_400_YEARS = 146097, EPOCH_FROM_MARCH_0 = 719468 };

/* From 1970-01-01. Years are counted from March, so that the leap day is their last; then the
 * lengths of the months repeat as 31,30,31,30,31, which is (153 * m + 2) / 5. A day beyond the
 * month's end is one of the next month. */
static inline int64_t days_of_date(struct date date)
{
	int64_t year = date.year - (date.month <= 2);
	int64_t era = floor_div(year, 400), of_era = year - era * 400;
	int month = (date.month + 9) % 12;
	int64_t of_year = (153 * month + 2) / 5 + date.day - 1;
	return era * DAYS_PER_400_YEARS + of_era * 365 + of_era / 4 - of_era / 100 + of_year -
	       EPOCH_FROM_MARCH_0;
}

static inline struct date date_of_days(int64_t days)
{
	days += EPOCH_FROM_MARCH_0;
	int64_t era = floor_div(days, DAYS_PER_400_YEARS), of_era = days - era * DAYS_PER_400_YEARS;
	/* Without the leap days that have passed in the era, each year has 365 days. */
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	int month = (int)((5 * of_year + 2) / 153);
	int day = (int)(of_year - (153 * month + 2) / 5) + 1;
	month = month < 10 ? month + 3 : month - 9;
	return (struct date){year + era * 400 + (month <= 2), month, day};
}

static inline bool leap_year(int64_t year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static inline int days_of_month(int64_t year, int month)
{
	static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	return days[month - 1] + (month == 2 && leap_year(year));
}

/* 0 is Sunday. */
static inline int weekday_of_days(int64_t days)
{
	return (int)(days + 4 - floor_to(days + 4, 7));
}

#endif
