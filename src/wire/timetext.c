/* Times and durations as text. Every parser here is a cursor with one sticky reason: what fits is
 * taken piece by piece, and the first piece that does not says why. */
#include "wire/timetext.h"

#include <math.h>

#include "wire/calendar.h"
#include "wire/number.h"

enum { MS_PER_SECOND = 1000, MS_PER_MINUTE = 60000, MS_PER_HOUR = 3600000, MS_PER_DAY = 86400000 };

struct timetext_scan {
	const char *p, *end;
	const char *reason; /* why it is wrong; NULL while good */
};

static struct timetext_scan scan_of(struct slice text)
{
	if (text.len == 0)
		return (struct timetext_scan){"", "", "it is empty"};
	if (text.len > TIME_TEXT_MAX_BYTES)
		return (struct timetext_scan){text.data, text.data, "it is too long"};
	return (struct timetext_scan){text.data, text.data + text.len, NULL};
}

static void timetext_spoil(struct timetext_scan *s, const char *reason)
{
	if (!s->reason)
		s->reason = reason;
	s->p = s->end;
}

static int result(const struct timetext_scan *s, struct slice text, const char *what,
		  struct errbuf *e)
{
	if (!s->reason)
		return 0;
	return errbuf_set(e, ERR_INVALID, "\"" SHOWN "\" is no %s: %s", SHOWN_OF(text), what,
			  s->reason);
}

/* Takes `c` if it is next; letters in either case. */
static bool timetext_skip_char(struct timetext_scan *s, char c)
{
	if (s->p == s->end || (*s->p != c && !(c >= 'A' && c <= 'Z' && *s->p == c + 32)))
		return false;
	s->p++;
	return true;
}

static void timetext_need(struct timetext_scan *s, char c, const char *reason)
{
	if (!timetext_skip_char(s, c))
		timetext_spoil(s, reason);
}

/* Exactly `count` digits that make a number from `low` to `high`. */
static int timetext_parse_field(struct timetext_scan *s, int count, int low, int high,
				const char *reason)
{
	int number = 0, taken = 0;
	for (; taken < count && s->p < s->end && number_is_digit(*s->p); taken++)
		number = number * 10 + (*s->p++ - '0');
	if (taken == count && number >= low && number <= high)
		return number;
	timetext_spoil(s, reason);
	return low;
}

/* The digits of a fraction, at least one, as thousandths; `rest` says whether what was cut off is
 * more than zeros. */
static int timetext_parse_thousandths(struct timetext_scan *s, bool *rest)
{
	int number = 0, taken = 0;
	*rest = false;
	for (; s->p < s->end && number_is_digit(*s->p); s->p++, taken++) {
		if (taken < 3)
			number = number * 10 + (*s->p - '0');
		else
			*rest |= *s->p != '0';
	}
	if (taken == 0)
		timetext_spoil(s, "a digit should follow the point");
	for (; taken < 3; taken++)
		number *= 10;
	return number;
}

/* ---- ISO 8601 ------------------------------------------------------------------------------- */

static int64_t timetext_parse_year(struct timetext_scan *s)
{
	bool negative = s->p < s->end && *s->p == '-';
	if (s->p == s->end || (*s->p != '-' && *s->p != '+'))
		return timetext_parse_field(s, 4, 0, 9999,
					    "the year should have 4 digits, or a sign");
	const char *digits = ++s->p;
	uint64_t year;
	s->p = number_scan_digits(digits, s->end, &year);
	if (s->p - digits < 4 || s->p - digits > 9) {
		timetext_spoil(s, "a year with a sign should have 4 to 9 digits");
		return 0; /* 2^63 has no negative. */
	}
	return negative ? -(int64_t)year : (int64_t)year;
}

static struct date timetext_parse_date(struct timetext_scan *s)
{
	struct date date = {.year = timetext_parse_year(s), .month = 1, .day = 1};
	timetext_need(s, '-', "a - should follow the year");
	date.month = timetext_parse_field(s, 2, 1, 12, "the month should be 01 to 12");
	timetext_need(s, '-', "a - should follow the month");
	date.day = timetext_parse_field(s, 2, 1, 31, "the day should be 01 to 31");
	if (date.day > days_of_month(date.year, date.month))
		timetext_spoil(s, "the month has no such day");
	return date;
}

/* hh:mm[:ss[.fraction]] as ms. */
static int64_t timetext_parse_clock(struct timetext_scan *s, bool *second_60)
{
	bool rest;
	int64_t ms = timetext_parse_field(s, 2, 0, 23, "the hour should be 00 to 23") *
		     (int64_t)MS_PER_HOUR;
	timetext_need(s, ':', "a : should follow the hour");
	ms += timetext_parse_field(s, 2, 0, 59, "the minute should be 00 to 59") * MS_PER_MINUTE;
	if (!timetext_skip_char(s, ':'))
		return ms;
	int second = timetext_parse_field(s, 2, 0, 60, "the second should be 00 to 59");
	*second_60 = second == 60;
	ms += second * MS_PER_SECOND;
	if (timetext_skip_char(s, '.') || timetext_skip_char(s, ','))
		ms += timetext_parse_thousandths(s, &rest);
	return ms;
}

/* Z, +hh, +hhmm or +hh:mm, as ms to the east. */
static int64_t timetext_parse_offset(struct timetext_scan *s)
{
	if (timetext_skip_char(s, 'Z'))
		return 0;
	bool west = timetext_skip_char(s, '-');
	if (!west)
		timetext_need(s, '+', "Z or an offset such as +02:00 should follow");
	int64_t ms = timetext_parse_field(s, 2, 0, 23, "the offset's hour should be 00 to 23") *
		     (int64_t)MS_PER_HOUR;
	if (s->p < s->end) {
		timetext_skip_char(s, ':');
		ms += timetext_parse_field(s, 2, 0, 59, "the offset's minute should be 00 to 59") *
		      MS_PER_MINUTE;
	}
	return west ? -ms : ms;
}

static int64_t timetext_parse_time_of_day(struct timetext_scan *s)
{
	bool second_60 = false;
	int64_t ms = timetext_parse_clock(s, &second_60);
	ms -= timetext_parse_offset(s);
	/* Leap seconds come at the end of a UTC day and nowhere else: with its 60 counted, such a
	 * time lies in the first second of a day. */
	if (second_60 && floor_to(ms, MS_PER_SECOND) % MS_PER_DAY != 0)
		timetext_spoil(s, "only the last second of a UTC day may be 60");
	return ms;
}

static int64_t timetext_parse_iso(struct timetext_scan *s)
{
	struct date date = timetext_parse_date(s);
	int64_t ms_of_day = 0, ms = 0;
	if (s->p < s->end) {
		if (!timetext_skip_char(s, 'T'))
			timetext_need(s, ' ', "T and a time of day should follow the date");
		ms_of_day = timetext_parse_time_of_day(s);
	}
	if (s->p < s->end)
		timetext_spoil(s, "something follows the time");
	if (!s->reason && (__builtin_mul_overflow(days_of_date(date), (int64_t)MS_PER_DAY, &ms) ||
			   __builtin_add_overflow(ms, ms_of_day, &ms)))
		timetext_spoil(s, "it lies too far from now");
	return ms;
}

int time_parse_iso(struct slice text, int64_t *ms, struct errbuf *e)
{
	struct timetext_scan s = scan_of(text);
	int64_t taken = s.reason ? 0 : timetext_parse_iso(&s);
	int err = result(&s, text, "time", e);
	if (!err)
		*ms = taken;
	return err;
}

/* ---- Seconds or ms since the epoch ---------------------------------------------------------- */

#define TOO_FAR "it lies too far from 1970"

/* Written with an exponent: by value, as a double. */
static int64_t epoch_of_f64(struct timetext_scan *s)
{
	double number;
	if (number_parse_f64(s->p, s->end, &number) != 0) {
		timetext_spoil(s, "it is neither a number nor a date");
		return 0;
	}
	double ms = floor(fabs(number) >= 1e12 ? number : number * 1000);
	if (!(ms >= -0x1p63 && ms < 0x1p63)) {
		timetext_spoil(s, TOO_FAR);
		return 0;
	}
	return (int64_t)ms;
}

/* [whole].[fraction] without a sign, as ms; `rest`: and a bit. */
static int64_t epoch_magnitude(struct timetext_scan *s, bool *rest)
{
	enum { DIGITS_OF_MS = 13 };
	uint64_t whole;
	int thousandths = 0;
	while (s->p + 1 < s->end && *s->p == '0' && number_is_digit(s->p[1]))
		s->p++;
	const char *digits = s->p;
	s->p = number_scan_digits(digits, s->end, &whole);
	bool in_ms = s->p - digits >= DIGITS_OF_MS;
	if (s->p == digits)
		timetext_spoil(s, "it is neither a number nor a date");
	*rest = false;
	if ((s->p < s->end && number_is_digit(*s->p)) || whole > (uint64_t)INT64_MAX) {
		timetext_spoil(s, TOO_FAR);
		return 0;
	}
	if (timetext_skip_char(s, '.'))
		thousandths = timetext_parse_thousandths(s, rest);
	if (s->p < s->end)
		timetext_spoil(s, "it is neither a number nor a date");
	if (!in_ms)
		return (int64_t)whole * 1000 + thousandths;
	*rest |= thousandths != 0;
	return (int64_t)whole;
}

static int64_t timetext_parse_epoch(struct timetext_scan *s)
{
	for (const char *p = s->p; p < s->end; p++) {
		if (*p == 'e' || *p == 'E')
			return epoch_of_f64(s);
	}
	bool rest, negative = timetext_skip_char(s, '-');
	if (!negative)
		timetext_skip_char(s, '+');
	int64_t ms = epoch_magnitude(s, &rest);
	return negative ? -ms - rest : ms;
}

int time_parse_epoch(struct slice text, int64_t *ms, struct errbuf *e)
{
	struct timetext_scan s = scan_of(text);
	int64_t taken = s.reason ? 0 : timetext_parse_epoch(&s);
	int err = result(&s, text, "time", e);
	if (!err)
		*ms = taken;
	return err;
}

/* ---- Durations ------------------------------------------------------------------------------ */

static const struct timetext_unit {
	struct slice name;
	int64_t ms;
} units[] = {
	{{"ms", 2}, 1},
	{{"s", 1}, MS_PER_SECOND},
	{{"m", 1}, MS_PER_MINUTE},
	{{"h", 1}, MS_PER_HOUR},
	{{"d", 1}, MS_PER_DAY},
	{{"w", 1}, 7 * (int64_t)MS_PER_DAY},
	{{"n", 1}, 30 * (int64_t)MS_PER_DAY},
	{{"y", 1}, 365 * (int64_t)MS_PER_DAY},
};

/* A number of at most 18 digits; -1 and spoilt if there is none. */
static int64_t timetext_parse_whole(struct timetext_scan *s)
{
	const char *digits = s->p;
	uint64_t number;
	s->p = number_scan_digits(digits, s->end, &number);
	if (s->p == digits || s->p - digits > 18) {
		timetext_spoil(s, s->p == digits ? "a number should stand before each unit"
						 : "it is too long");
		return -1;
	}
	return (int64_t)number;
}

static int64_t timetext_parse_simple_duration(struct timetext_scan *s)
{
	int64_t number = timetext_parse_whole(s), ms = 0;
	struct slice name = {s->p, (size_t)(s->end - s->p)};
	for (size_t i = 0; !s->reason && i < ARRAY_LEN(units); i++) {
		if (!slice_equal(name, units[i].name))
			continue;
		if (__builtin_mul_overflow(number, units[i].ms, &ms))
			timetext_spoil(s, "it is too long");
		s->p = s->end;
		return ms;
	}
	timetext_spoil(s, "its unit should be ms, s, m, h, d, w, n or y");
	return 0;
}

/* One of the letters, after those already used; its place among them, -1 if it is none. */
static int timetext_parse_designator(struct timetext_scan *s, const char *letters, int after)
{
	for (int i = after; letters[i]; i++) {
		if (timetext_skip_char(s, letters[i]))
			return i;
	}
	timetext_spoil(s, "its units should be W, D, then T and H, M, S");
	return -1;
}

/* The part before T, or the one after it: numbers, each with its letter, in this order. */
static int64_t timetext_parse_designated(struct timetext_scan *s, const char *letters,
					 const int64_t *unit_ms)
{
	int64_t sum = 0, part;
	int used = 0;
	while (s->p < s->end && *s->p != 'T' && *s->p != 't') {
		bool rest;
		int64_t number = timetext_parse_whole(s);
		bool point = timetext_skip_char(s, '.');
		int thousandths = point ? timetext_parse_thousandths(s, &rest) : 0;
		int i = timetext_parse_designator(s, letters, used);
		if (s->reason)
			return 0;
		if (point && unit_ms[i] != MS_PER_SECOND)
			timetext_spoil(s, "only seconds may have a fraction");
		if (__builtin_mul_overflow(number, unit_ms[i], &part) ||
		    __builtin_add_overflow(sum, part + thousandths, &sum))
			timetext_spoil(s, "it is too long");
		used = i + 1;
	}
	return sum;
}

static int64_t timetext_parse_iso_duration(struct timetext_scan *s)
{
	static const int64_t day_units[] = {7 * (int64_t)MS_PER_DAY, MS_PER_DAY};
	static const int64_t clock_units[] = {MS_PER_HOUR, MS_PER_MINUTE, MS_PER_SECOND};
	int64_t sum, of_clock = 0;
	if (s->p == s->end)
		timetext_spoil(s, "a number should follow the P");
	sum = timetext_parse_designated(s, "WD", day_units);
	if (timetext_skip_char(s, 'T')) {
		if (s->p == s->end)
			timetext_spoil(s, "a number should follow the T");
		of_clock = timetext_parse_designated(s, "HMS", clock_units);
	}
	if (s->p < s->end)
		timetext_spoil(s, "a second T");
	if (__builtin_add_overflow(sum, of_clock, &sum))
		timetext_spoil(s, "it is too long");
	return sum;
}

int duration_parse(struct slice text, int64_t *ms, struct errbuf *e)
{
	struct timetext_scan s = scan_of(text);
	int64_t taken = 0;
	if (!s.reason)
		taken = timetext_skip_char(&s, 'P') ? timetext_parse_iso_duration(&s)
						    : timetext_parse_simple_duration(&s);
	int err = result(&s, text, "duration", e);
	if (!err)
		*ms = taken;
	return err;
}

/* ---- Any of them ---------------------------------------------------------------------------- */

/* A date has a - after a digit; a number has not (1e-3). */
static bool looks_like_date(struct slice text)
{
	for (size_t i = 1; i < text.len; i++) {
		if (text.data[i] == '-' && number_is_digit(text.data[i - 1]))
			return true;
	}
	return false;
}

int time_parse_absolute(struct slice text, int64_t *ms, struct errbuf *e)
{
	return looks_like_date(text) ? time_parse_iso(text, ms, e) : time_parse_epoch(text, ms, e);
}

int time_parse(struct slice text, int64_t now_ms, int64_t *ms, struct errbuf *e)
{
	const struct slice ago = SLICE("-ago");
	if (slice_equal(text, SLICE("now"))) {
		*ms = now_ms;
		return 0;
	}
	if (slice_ends_with(text, ago)) {
		int64_t back, then;
		text.len -= ago.len;
		int err = duration_parse(text, &back, e);
		if (err)
			return err;
		if (__builtin_sub_overflow(now_ms, back, &then))
			return errbuf_set(e, ERR_INVALID, "\"%.*s-ago\" lies too far from now",
					  (int)text.len, text.data);
		*ms = then;
		return 0;
	}
	return time_parse_absolute(text, ms, e);
}

/* ---- Writing -------------------------------------------------------------------------------- */

static char *put_padded(char *to, uint64_t number, int digits)
{
	for (int i = digits - 1; i >= 0; i--) {
		to[i] = (char)('0' + number % 10);
		number /= 10;
	}
	return to + digits;
}

static char *put_year(char *to, int64_t year)
{
	uint64_t magnitude = year < 0 ? -(uint64_t)year : (uint64_t)year;
	if (year < 0 || year > 9999)
		*to++ = year < 0 ? '-' : '+';
	if (magnitude > 9999)
		return to + number_print_u64(to, magnitude);
	return put_padded(to, magnitude, 4);
}

size_t time_print(char *to, int64_t ms)
{
	int64_t days = floor_div(ms, MS_PER_DAY);
	/* days * MS_PER_DAY may lie below INT64_MIN; the remainder does not care. */
	uint64_t of_day = (uint64_t)ms - (uint64_t)days * MS_PER_DAY;
	struct date date = date_of_days(days);
	char *p = put_year(to, date.year);
	*p++ = '-';
	p = put_padded(p, (uint64_t)date.month, 2);
	*p++ = '-';
	p = put_padded(p, (uint64_t)date.day, 2);
	*p++ = 'T';
	p = put_padded(p, of_day / MS_PER_HOUR, 2);
	*p++ = ':';
	p = put_padded(p, of_day / MS_PER_MINUTE % 60, 2);
	*p++ = ':';
	p = put_padded(p, of_day / MS_PER_SECOND % 60, 2);
	if (of_day % MS_PER_SECOND) {
		*p++ = '.';
		p = put_padded(p, of_day % MS_PER_SECOND, 3);
	}
	*p++ = 'Z';
	return (size_t)(p - to);
}

const char *duration_print(char to[DURATION_PRINT_MAX_BYTES], int64_t ms)
{
	static const struct {
		const char *name;
		int64_t ms;
	} whole[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
	size_t i = 0;
	while (ms % whole[i].ms)
		i++;
	snprintf(to, DURATION_PRINT_MAX_BYTES, "%lld%s", (long long)(ms / whole[i].ms),
		 ms ? whole[i].name : "");
	return to;
}
