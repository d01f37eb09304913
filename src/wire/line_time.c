/* A form is a function that takes one time at its cursor and says whether it is there; which forms
 * come into question is seen by the first bytes. Each field is compared with its limits where it is
 * read, but the day of the month, whose limit needs a year: line_time_of_year does that.
 *
 * The order in which forms are tried is fixed, so a line has one result. What costs most of a time
 * without an offset is the zone's part; that is what a context remembers. */
#include "wire/line_time.h"

#include "wire/calendar.h"
#include "wire/number.h"
#include "wire/tzif.h"

enum {
	LINE_TIME_MIN_BYTES = 10, /* of the shortest, an epoch in seconds */
	LINE_TIME_YEAR_MIN = 1970,
	LINE_TIME_YEAR_MAX = 9999,
	LINE_TIME_NO_YEAR = -1,
	LINE_TIME_NO_NUMBER = 1 << 20, /* above each limit, also where it is a part of a number */
};

#define LINE_TIME_SECOND_MS    INT64_C(1000)
#define LINE_TIME_DAY_MS       INT64_C(86400000)
#define LINE_TIME_MEAN_YEAR_MS (146097 * LINE_TIME_DAY_MS / 400)
#define LINE_TIME_MAX_MS       INT64_C(253402300799999) /* the end of 9999 */

/* The cursor, and what was read. */
struct line_time_scan {
	const char *p, *end;
	int64_t year;
	unsigned month, day;
	int64_t of_day_ms;
	bool has_offset;
	int offset_minutes; /* to the east */
};

/* There may be no byte at all behind the cursor. */
typedef bool line_time_form(struct line_time_scan *s);

/* The rest of a line in which times are tried. */
struct line_time_search {
	const char *end;
	struct line_time_context *context;
	int64_t *ms;
};

static inline bool line_time_is_letter(char c)
{
	return (unsigned char)((c | 0x20) - 'a') < 26;
}

/* Whether a word or a number goes on here. */
static inline bool line_time_goes_on(const char *p, const char *end)
{
	return p < end && (number_is_digit(*p) || line_time_is_letter(*p));
}

static inline unsigned line_time_two(const char *p)
{
	unsigned tens = (unsigned char)(p[0] - '0'), ones = (unsigned char)(p[1] - '0');
	return tens <= 9 && ones <= 9 ? tens * 10 + ones : LINE_TIME_NO_NUMBER;
}

/* Four digits; more than any year if they are not. */
static inline unsigned line_time_four(const char *p)
{
	return line_time_two(p) * 100 + line_time_two(p + 2);
}

/* ---- From fields to ms ----------------------------------------------------------------------- */

/* A local time belongs to the first span that ends later, by the later of the clocks before and
 * after its end: so the first of two is taken, and a time in a gap has the offset before it. The
 * walk starts where the clocks of no offset show so late a time. */
static int32_t line_time_search_offset(struct line_time_context *context, int64_t local_s)
{
	struct zone_span span = zone_span_at(context->zone, local_s - TZIF_OFFSET_MAX_S);
	int64_t to_s = INT64_MAX;
	while (span.to_s < INT64_MAX - TZIF_OFFSET_MAX_S) {
		struct zone_span next = zone_span_at(context->zone, span.to_s);
		to_s = span.to_s + (next.offset_s > span.offset_s ? next.offset_s : span.offset_s);
		if (local_s < to_s)
			break;
		span = next;
		to_s = INT64_MAX;
	}
	/* For local times of last_from_s and later, the walk starts in this span. */
	context->last_from_s = span.from_s + TZIF_OFFSET_MAX_S;
	context->last_to_s = to_s;
	context->last_offset_s = span.offset_s;
	context->last_zone = context->zone;
	context->last = 1;
	return span.offset_s;
}

static inline int32_t line_time_offset_s(struct line_time_context *context, int64_t local_s)
{
	if (LIKELY(context->last && context->last_zone == context->zone &&
		   local_s >= context->last_from_s && local_s < context->last_to_s))
		return context->last_offset_s;
	return line_time_search_offset(context, local_s);
}

static bool line_time_of_year(const struct line_time_scan *s, int64_t year,
			      struct line_time_context *context, int64_t *ms)
{
	if (year < LINE_TIME_YEAR_MIN || year > LINE_TIME_YEAR_MAX || s->day < 1 ||
	    s->day > (unsigned)days_of_month(year, (int)s->month))
		return false;
	struct date date = {year, (int)s->month, (int)s->day};
	int64_t local_ms = days_of_date(date) * LINE_TIME_DAY_MS + s->of_day_ms;
	int64_t offset_s = s->has_offset
				   ? s->offset_minutes * 60
				   : line_time_offset_s(context, local_ms / LINE_TIME_SECOND_MS);
	int64_t found_ms = local_ms - offset_s * LINE_TIME_SECOND_MS;
	if (found_ms < 0)
		return false;
	*ms = found_ms;
	return true;
}

static bool line_time_of_nearest_year(const struct line_time_scan *s,
				      struct line_time_context *context, int64_t *ms)
{
	enum { LEAP_YEARS_APART_MAX = 8 };
	int64_t near_ms = context->near_ms, found_ms, best_ms = INT64_MAX;
	near_ms = near_ms < 0 ? 0 : near_ms > LINE_TIME_MAX_MS ? LINE_TIME_MAX_MS : near_ms;
	/* By years of mean length: at the turn of a year perhaps the one beside it, whose
	 * neighbours have every nearest date too. */
	int64_t year = LINE_TIME_YEAR_MIN + near_ms / LINE_TIME_MEAN_YEAR_MS;
	if (line_time_of_year(s, year, context, &found_ms) &&
	    llabs(found_ms - near_ms) < LINE_TIME_SURELY_NEAREST_DAYS * LINE_TIME_DAY_MS) {
		*ms = found_ms;
		return true;
	}
	int reach = s->month == 2 && s->day == 29 ? LEAP_YEARS_APART_MAX : 1;
	for (int i = -reach; i <= reach; i++) {
		if (!line_time_of_year(s, year + i, context, &found_ms) ||
		    llabs(found_ms - near_ms) >= best_ms)
			continue;
		best_ms = llabs(found_ms - near_ms);
		*ms = found_ms;
	}
	return best_ms < INT64_MAX;
}

/* Whether a form is at p, and a valid time in it. */
static inline bool line_time_try(line_time_form *form, const char *p,
				 const struct line_time_search *search)
{
	struct line_time_scan s = {.p = p, .end = search->end, .year = LINE_TIME_NO_YEAR};
	if (!form(&s))
		return false;
	search->context->of_near = s.year == LINE_TIME_NO_YEAR;
	if (s.year == LINE_TIME_NO_YEAR)
		return line_time_of_nearest_year(&s, search->context, search->ms);
	return line_time_of_year(&s, s.year, search->context, search->ms);
}

/* ---- Parts of a time ------------------------------------------------------------------------- */

/* Three letters, in either case, among names of three small letters, with a blank behind each; 0:
 * they are none, else which one, from 1. */
static inline unsigned line_time_name(const char *p, const char *names)
{
	const char name[4] = {(char)(p[0] | 0x20), (char)(p[1] | 0x20), (char)(p[2] | 0x20), ' '};
	for (unsigned i = 0; names[4 * i]; i++) {
		if (memcmp(names + (size_t)4 * i, name, 4) == 0)
			return i + 1;
	}
	return 0;
}

static inline unsigned line_time_month(const char *p)
{
	return line_time_name(p, "jan feb mar apr may jun jul aug sep oct nov dec ");
}

/* Digits behind `point`, if there are any. */
static inline void line_time_fraction(struct line_time_scan *s, bool point)
{
	if (!point || s->end - s->p < 2 || !number_is_digit(s->p[1]))
		return;
	s->p++;
	static const int digits_ms[] = {100, 10, 1};
	for (size_t i = 0; s->p < s->end && number_is_digit(*s->p); i++, s->p++) {
		if (i < ARRAY_LEN(digits_ms))
			s->of_day_ms += digits_ms[i] * (*s->p - '0');
	}
}

/* hh:mm:ss, or hhmmss, and a fraction. */
static inline bool line_time_clock(struct line_time_scan *s, bool colons)
{
	const char *p = s->p;
	int step = colons ? 3 : 2;
	if (s->end - p < 2 + 2 * step || (colons && (p[2] != ':' || p[5] != ':')))
		return false;
	unsigned hour = line_time_two(p), minute = line_time_two(p + step),
		 second = line_time_two(p + 2 * step);
	if (hour > 23 || minute > 59 || second > 60)
		return false;
	s->of_day_ms = ((hour * 60 + minute) * 60 + second) * LINE_TIME_SECOND_MS;
	s->p = p + 2 + 2 * step;
	if (s->p == s->end)
		return true;
	line_time_fraction(s, *s->p == '.' || *s->p == ',');
	return s->p == s->end || !number_is_digit(*s->p);
}

/* +hh:mm, +hhmm or (where `hours` says so) +hh. */
static bool line_time_offset(struct line_time_scan *s, const char *p, bool hours)
{
	bool west = *p++ == '-', colon = s->end - p > 2 && p[2] == ':';
	unsigned hour = s->end - p < 2 ? LINE_TIME_NO_NUMBER : line_time_two(p), minute = 0;
	p += 2;
	if (!hours || colon || (s->end > p && number_is_digit(*p))) {
		p += colon;
		minute = s->end - p < 2 ? LINE_TIME_NO_NUMBER : line_time_two(p);
		p += 2;
	}
	if (hour > 23 || minute > 59 || line_time_goes_on(p, s->end))
		return false;
	s->has_offset = true;
	s->offset_minutes = (int)(hour * 60 + minute) * (west ? -1 : 1);
	s->p = p;
	return true;
}

/* Z, UTC, GMT, an offset, or UTC or GMT with an offset: directly behind the time or behind a blank.
 * False: an offset that is wrong, or that JSON has escaped. What is wrong behind a blank is another
 * word. */
static inline bool line_time_zone(struct line_time_scan *s)
{
	const char *p = s->p, *end = s->end;
	bool apart = p < end && *p == ' ';
	p += apart;
	if (p == end)
		return true;
	if (*p == '+' || *p == '-') {
		bool number = end - p > 1 && number_is_digit(p[1]);
		return !number || line_time_offset(s, p, !apart) || apart;
	}
	if (*p == '\\')
		return end - p < 2 || p[1] != 'u';
	ptrdiff_t name = 0;
	if (*p == 'Z' || (*p == 'z' && !apart))
		name = 1;
	else if (end - p >= 3 && (memcmp(p, "UTC", 3) == 0 || memcmp(p, "GMT", 3) == 0))
		name = 3;
	if (!name || line_time_goes_on(p + name, end))
		return true;
	s->has_offset = true;
	s->p = p += name;
	bool offset = end - p > 1 && (*p == '+' || *p == '-') && number_is_digit(p[1]);
	return !offset || line_time_offset(s, p, true);
}

/* ---- Forms ----------------------------------------------------------------------------------- */

/* Two digits each of the month and the day, and a clock: so many bytes from the cursor. */
static inline bool line_time_numbers(struct line_time_scan *s, int month_at, int day_at,
				     int clock_at, bool colons)
{
	s->month = line_time_two(s->p + month_at);
	s->day = line_time_two(s->p + day_at);
	s->p += clock_at;
	return s->month - 1 < 12 && line_time_clock(s, colons);
}

/* 2026-11-29T14:49:30 */
static bool line_time_iso(struct line_time_scan *s)
{
	const char *p = s->p;
	if (s->end - p < 19 || (p[4] != '-' && p[4] != '/') || p[7] != p[4] ||
	    (p[10] != ' ' && p[10] != 'T' && p[10] != 't'))
		return false;
	s->year = line_time_four(p);
	return line_time_numbers(s, 5, 8, 11, true) && line_time_zone(s);
}

/* 20261129T144930 or 20261129 14:49:30 */
static bool line_time_basic(struct line_time_scan *s)
{
	const char *p = s->p;
	if (s->end - p < 15 || (p[8] != ' ' && p[8] != 'T'))
		return false;
	s->year = line_time_four(p);
	return line_time_numbers(s, 4, 6, 9, p[8] == ' ') && line_time_zone(s);
}

/* 29 Nov 2026 14:49:30, 29/Nov/2026:14:49:30 */
static bool line_time_day_first(struct line_time_scan *s)
{
	const char *p = s->p;
	if (s->end - p < 20 || (p[2] != ' ' && p[2] != '-' && p[2] != '/') || p[6] != p[2] ||
	    (p[11] != ' ' && p[11] != ':'))
		return false;
	s->day = line_time_two(p);
	s->month = line_time_month(p + 3);
	s->year = line_time_four(p + 7);
	s->p = p + 12;
	return s->month && line_time_clock(s, true) && line_time_zone(s);
}

/* Four digits that are no part of a word, behind a blank: a year. */
static bool line_time_year_behind(struct line_time_scan *s)
{
	if (s->end - s->p < 5 || *s->p != ' ' || line_time_four(s->p + 1) > LINE_TIME_YEAR_MAX ||
	    line_time_goes_on(s->p + 5, s->end))
		return false;
	s->year = line_time_four(s->p + 1);
	s->p += 5;
	return true;
}

/* Nov 29 14:49:30, Nov  9 14:49:30, Nov 29 2026 14:49:30 */
static bool line_time_month_first(struct line_time_scan *s)
{
	const char *p = s->p;
	if (s->end - p < 14 || p[3] != ' ' || !(s->month = line_time_month(p)))
		return false;
	p += 4 + (p[4] == ' ');
	bool one = p[1] == ' ';
	s->day = !one ? line_time_two(p) : number_is_digit(*p) ? (unsigned)(*p - '0') : 0;
	s->p = p + (one ? 1 : 2);
	(void)line_time_year_behind(s);
	return *s->p++ == ' ' && line_time_clock(s, true) && line_time_zone(s);
}

/* Sun Nov 29 14:49:30 2026: `date` puts the zone before the year, git puts it behind. Only behind a
 * weekday, because RFC 3164 has a host there, which may be named by four digits. */
static bool line_time_weekday_first(struct line_time_scan *s)
{
	s->p += s->p[3] == ',' ? 5 : 4;
	if (s->p < s->end && number_is_digit(*s->p))
		return line_time_day_first(s);
	if (!line_time_month_first(s))
		return false;
	if (s->year != LINE_TIME_NO_YEAR)
		return true;
	if (line_time_year_behind(s))
		return s->has_offset || line_time_zone(s);
	const char *behind = s->p, *p = behind + (behind < s->end);
	while (p < s->end && *p >= 'A' && *p <= 'Z' && p - behind <= 5)
		p++;
	s->p = p;
	(void)line_time_year_behind(s);
	return true;
}

/* Seconds, ms, us or ns, by the number of digits. The first of 10 digits is 2001-09-09. */
static bool line_time_epoch(struct line_time_scan *s)
{
	uint64_t number;
	const char *begin = s->p, *p = number_scan_digits(begin, s->end, &number);
	if (p == begin || *begin == '0')
		return false;
	ptrdiff_t digits = p - begin;
	s->of_day_ms = digits == 10   ? (int64_t)number * LINE_TIME_SECOND_MS
		       : digits == 13 ? (int64_t)number
		       : digits == 16 ? (int64_t)(number / 1000)
		       : digits == 19 ? (int64_t)(number / 1000000)
				      : -1;
	if (s->of_day_ms < 0)
		return false;
	s->p = p;
	line_time_fraction(s, digits == 10 && p < s->end && *p == '.');
	s->year = 1970;
	s->month = s->day = 1;
	s->has_offset = true;
	return !line_time_goes_on(s->p, s->end);
}

/* What may stand at the beginning, in brackets, and as a value. */
static bool line_time_text(struct line_time_scan *s)
{
	const char *p = s->p;
	if (s->end - p < LINE_TIME_MIN_BYTES)
		return false;
	if (!number_is_digit(*p)) {
		if (p[3] != ' ' && (p[3] != ',' || p[4] != ' '))
			return false;
		if (p[3] == ' ' && !line_time_is_letter(p[4]))
			return line_time_month_first(s);
		return line_time_name(p, "sun mon tue wed thu fri sat ") &&
		       line_time_weekday_first(s);
	}
	if (p[4] == '-' || p[4] == '/')
		return line_time_iso(s);
	if (line_time_is_letter(p[3]))
		return line_time_day_first(s);
	return number_is_digit(p[8]) ? line_time_epoch(s) : line_time_basic(s);
}

/* I1129 14:49:30.123456, I20261129 14:49:30.123456 */
static bool line_time_glog(struct line_time_scan *s)
{
	enum { GLOG_MIN_BYTES = 14 }; /* without a fraction at least as long as "1129 14:49:30." */
	const char *p = s->p + 1;
	if (s->end - p <= GLOG_MIN_BYTES)
		return false;
	if (p[4] != ' ') {
		s->year = line_time_four(p);
		p += 4;
	}
	s->p = p;
	return p[4] == ' ' && line_time_numbers(s, 0, 2, 5, true) && s->p - p > GLOG_MIN_BYTES;
}

/* 081109 203615 148 INFO: nothing but the blanks marks these numbers as a time. */
static bool line_time_hdfs(struct line_time_scan *s)
{
	const char *p = s->p;
	if (s->end - p < 14 || p[6] != ' ' || p[13] != ' ')
		return false;
	s->year = 2000 + line_time_two(p);
	return line_time_numbers(s, 2, 4, 7, false);
}

/* 1234:M 29 Nov 2026 14:49:30.123 */
static bool line_time_redis(struct line_time_scan *s)
{
	uint64_t process;
	const char *p = number_scan_digits(s->p, s->end, &process);
	if (s->end - p < 3 || p[0] != ':' || !line_time_is_letter(p[1]) || p[2] != ' ')
		return false;
	s->p = p + 3;
	return line_time_day_first(s);
}

/* <13>Nov 29 14:49:30, <13>1 2026-11-29T14:49:30Z: a priority is at most 191 (RFC 5424, 6.2.1). */
static bool line_time_syslog(struct line_time_scan *s)
{
	uint64_t priority;
	const char *begin = s->p + 1, *p = number_scan_digits(begin, s->end, &priority);
	if (p == begin || p - begin > 3 || priority > 191 || p == s->end || *p != '>')
		return false;
	s->p = ++p;
	if (s->end - p < 2 || p[0] != '1' || p[1] != ' ')
		return line_time_text(s);
	s->p += 2;
	return line_time_iso(s);
}

/* ---- Places ---------------------------------------------------------------------------------- */

static bool line_time_clf(const char *begin, const struct line_time_search *search)
{
	const char *p = begin, *end = search->end, *to = end;
	if (end - p > LINE_TIME_CLF_MAX_BYTES)
		to = p + LINE_TIME_CLF_MAX_BYTES;
	while ((p = memchr(p, '[', (size_t)(to - p)))) {
		p++;
		if (end - p < 4 || p[2] != '/' || !line_time_is_letter(p[3]))
			continue;
		if (memchr(begin, '"', (size_t)(p - begin)))
			return false;
		if (line_time_try(line_time_day_first, p, search))
			return true;
	}
	return false;
}

/* The quote that ends a string which begins at p; NULL: none before `end`. */
static const char *line_time_string_end(const char *p, const char *end)
{
	for (const char *from = p; (p = memchr(p, '"', (size_t)(end - p))); p++) {
		const char *escapes = p;
		while (escapes > from && escapes[-1] == '\\')
			escapes--;
		if ((p - escapes) % 2 == 0)
			return p;
	}
	return NULL;
}

static bool line_time_is_key(struct slice key)
{
	static const struct slice keys[] = {{"time", 4}, {"timestamp", 9}, {"@timestamp", 10},
					    {"ts", 2},   {"date", 4},      {"t", 1}};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (slice_equal(key, keys[i]))
			return true;
	}
	return false;
}

/* What follows a string: a colon, if it was a key, and its value. */
static bool line_time_member(const char *p, const struct line_time_search *search)
{
	const char *end = search->end;
	bool colon = false;
	while (p < end && (*p == ' ' || *p == '\t' || (*p == ':' && !colon)))
		colon |= *p++ == ':';
	if (!colon || p == end)
		return false;
	if (*p == '"')
		return line_time_try(line_time_text, p + 1, search);
	return line_time_try(line_time_epoch, p, search);
}

static bool line_time_json(const char *p, const struct line_time_search *search)
{
	const char *to = search->end;
	if (to - p > LINE_TIME_JSON_MAX_BYTES)
		to = p + LINE_TIME_JSON_MAX_BYTES;
	int depth = 1;
	for (p++; p < to && depth > 0; p++) {
		if (*p == '{' || *p == '[')
			depth++;
		else if (*p == '}' || *p == ']')
			depth--;
		if (*p != '"')
			continue;
		const char *string = p + 1;
		p = line_time_string_end(string, to);
		if (!p)
			return false;
		if (depth == 1 && line_time_is_key((struct slice){string, (size_t)(p - string)}) &&
		    line_time_member(p + 1, search))
			return true;
	}
	return false;
}

static inline bool line_time_is_key_char(char c)
{
	return number_is_digit(c) || line_time_is_letter(c) || c == '_' || c == '.' || c == '-';
}

static bool line_time_logfmt(const char *p, const struct line_time_search *search)
{
	enum { SEEN_MAX_BYTES = LINE_TIME_LOGFMT_MAX_BYTES + sizeof("time=") };
	const char *begin = p, *to = search->end;
	if (to - p > SEEN_MAX_BYTES)
		to = p + SEEN_MAX_BYTES;
	while (p && p < to && p - begin < LINE_TIME_LOGFMT_MAX_BYTES) {
		const char *name = p;
		while (p < to && line_time_is_key_char(*p))
			p++;
		if (p == name || p == to || *p != '=')
			return false;
		struct slice key = {name, (size_t)(p++ - name)};
		bool quoted = p < to && *p == '"';
		p += quoted;
		if ((slice_equal(key, SLICE("ts")) || slice_equal(key, SLICE("time")) ||
		     (name == begin && slice_equal(key, SLICE("t")))) &&
		    line_time_try(line_time_text, p, search))
			return true;
		if (quoted && (p = line_time_string_end(p, to)))
			p++;
		if (p && (p = memchr(p, ' ', (size_t)(to - p))))
			p++;
	}
	return false;
}

/* The first byte says what may be at the beginning. */
static bool line_time_at_beginning(const char *p, const struct line_time_search *search)
{
	if (*p == '[')
		return line_time_try(line_time_text, p + 1, search);
	if (*p == '<')
		return line_time_try(line_time_syslog, p, search);
	if ((*p == 'I' || *p == 'W' || *p == 'E' || *p == 'F') && number_is_digit(p[1]))
		return line_time_try(line_time_glog, p, search);
	if (line_time_try(line_time_text, p, search))
		return true;
	return number_is_digit(*p) && (line_time_try(line_time_redis, p, search) ||
				       line_time_try(line_time_hdfs, p, search));
}

bool line_time_find(struct slice line, struct line_time_context *context, int64_t *ms)
{
	const char *p = line.data;
	if (line.len < LINE_TIME_MIN_BYTES)
		return false;
	struct line_time_search search = {p + line.len, context, ms};
	if (*p == '{')
		return line_time_json(p, &search);
	return line_time_at_beginning(p, &search) || line_time_logfmt(p, &search) ||
	       line_time_clf(p, &search);
}
