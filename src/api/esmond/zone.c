#include "api/esmond/zone.h"

#include <stdio.h>

#include "wire/calendar.h"

static int64_t first_day(enum v2_span span, int64_t day)
{
	struct date date = date_of_days(day);
	return span == SPAN_DAY ? day : day - (date.day - 1);
}

int64_t v2_next_month(int64_t day)
{
	struct date date = date_of_days(day);
	date.day = 1;
	date.month++;
	if (date.month > 12) {
		date.month = 1;
		date.year++;
	}
	return days_of_date(date);
}

static int64_t next_day(enum v2_span span, int64_t day)
{
	return span == SPAN_DAY ? day + 1 : v2_next_month(day);
}

int v2_spans(const struct zone *zone, enum v2_span span, int64_t begin_s, int64_t end_s,
	     int64_t *edges_s, int64_t *days, size_t *count)
{
	int64_t day = first_day(span, zone_day_of(zone, begin_s));
	edges_s[0] = zone_day_begin(zone, day);
	*count = 0;
	while (edges_s[*count] <= end_s) {
		int64_t next = next_day(span, day), next_s = zone_day_begin(zone, next);
		if (*count == V2_SPANS_MAX)
			return ERR_LIMIT;
		days[*count] = day;
		if (next_s > edges_s[*count])
			edges_s[++*count] = next_s;
		day = next;
	}
	ASSERT(*count <= V2_SPANS_MAX);
	return 0;
}

void v2_span_text(enum v2_span span, int64_t day, char *to)
{
	struct date date = date_of_days(day);
	int n = snprintf(to, V2_SPAN_TEXT_BYTES, "%04lld-%02d", (long long)date.year, date.month);
	if (span == SPAN_DAY)
		snprintf(to + n, (size_t)(V2_SPAN_TEXT_BYTES - n), "-%02d", date.day);
}

int v2_month_parse(struct slice text, int64_t *day)
{
	int number = 0;
	if (text.len != 7 || text.data[4] != '-')
		return ERR_INVALID;
	for (size_t i = 0; i < text.len; i++) {
		if (i == 4)
			continue;
		if (text.data[i] < '0' || text.data[i] > '9')
			return ERR_INVALID;
		number = number * 10 + (text.data[i] - '0');
	}
	if (number / 100 < 1 || number % 100 < 1 || number % 100 > 12)
		return ERR_INVALID;
	*day = days_of_date((struct date){number / 100, number % 100, 1});
	return 0;
}
