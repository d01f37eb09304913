/* Layout of a file (RFC 8536, 3.1), big endian:
 *
 *     "TZif" version[1] unused[15]
 *     isutcnt[4] isstdcnt[4] leapcnt[4] timecnt[4] typecnt[4] charcnt[4]
 *     timecnt x time (4 bytes in version 1, 8 after)
 *     timecnt x type[1]
 *     typecnt x (offset[4] daylight[1] name[1])
 *     charcnt x character
 *     leapcnt x (time, correction[4])
 *     isstdcnt x [1]
 *     isutcnt x [1]
 *
 * From version 2 on all of this stands a second time, with long times, and a footer: newline, a
 * rule as in POSIX's TZ, newline. */
#include "wire/tzif.h"

#include "base/cursor.h"
#include "base/mem.h"
#include "wire/calendar.h"

enum { DAY_S = 86400, HOUR_S = 3600, TAIL_YEARS = 5 };

const struct zone zone_utc = {0};

/* ---- The rule of the footer ------------------------------------------------------------------ */

struct tzif_scan {
	const char *p, *end;
	bool bad;
};

static bool tzif_skip_char(struct tzif_scan *s, char c)
{
	if (s->bad || s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

static void tzif_need(struct tzif_scan *s, char c)
{
	if (!tzif_skip_char(s, c))
		s->bad = true;
}

static int tzif_parse_number(struct tzif_scan *s, int low, int high)
{
	int number = 0, digits = 0;
	for (; !s->bad && s->p < s->end && *s->p >= '0' && *s->p <= '9' && digits < 4; digits++)
		number = number * 10 + (*s->p++ - '0');
	if (!digits || number < low || number > high)
		s->bad = true;
	return s->bad ? low : number;
}

/* [+-]hh[:mm[:ss]] */
static int32_t tzif_parse_time(struct tzif_scan *s, int hours_max)
{
	bool minus = tzif_skip_char(s, '-');
	if (!minus)
		(void)tzif_skip_char(s, '+');
	int32_t seconds = tzif_parse_number(s, 0, hours_max) * HOUR_S;
	if (tzif_skip_char(s, ':')) {
		seconds += tzif_parse_number(s, 0, 59) * 60;
		if (tzif_skip_char(s, ':'))
			seconds += tzif_parse_number(s, 0, 59);
	}
	return minus ? -seconds : seconds;
}

/* Three letters or more, or anything of letters, digits and signs between angle brackets. */
static void skip_name(struct tzif_scan *s)
{
	const char *start = s->p;
	if (tzif_skip_char(s, '<')) {
		while (s->p < s->end && *s->p != '>')
			s->p++;
		tzif_need(s, '>');
		return;
	}
	while (s->p < s->end && ((*s->p >= 'A' && *s->p <= 'Z') || (*s->p >= 'a' && *s->p <= 'z')))
		s->p++;
	if (s->p - start < 3)
		s->bad = true;
}

static struct zone_rule tzif_parse_rule(struct tzif_scan *s)
{
	struct zone_rule rule = {.time_s = 2 * HOUR_S};
	tzif_need(s, ',');
	if (tzif_skip_char(s, 'M')) {
		rule.kind = ZONE_WEEKDAY;
		rule.month = tzif_parse_number(s, 1, 12);
		tzif_need(s, '.');
		rule.week = tzif_parse_number(s, 1, 5);
		tzif_need(s, '.');
		rule.day = tzif_parse_number(s, 0, 6);
	} else if (tzif_skip_char(s, 'J')) {
		rule.kind = ZONE_DAY_WITHOUT_LEAP;
		rule.day = tzif_parse_number(s, 1, 365);
	} else {
		rule.kind = ZONE_DAY_FROM_0;
		rule.day = tzif_parse_number(s, 0, 365);
	}
	if (tzif_skip_char(s, '/'))
		rule.time_s = tzif_parse_time(s, 167);
	return rule;
}

/* `CET-1CEST,M3.5.0,M10.5.0/3`: name, time west of UTC, the same of daylight saving time (an hour
 * east of the former if it is not said), when that begins and ends. */
static bool parse_rule(struct slice text, struct zone *zone)
{
	struct tzif_scan s = {text.data, text.data + text.len, false};
	skip_name(&s);
	zone->standard_s = -tzif_parse_time(&s, 24);
	if (!s.bad && s.p < s.end) {
		zone->has_daylight = true;
		zone->daylight_s = zone->standard_s + HOUR_S;
		skip_name(&s);
		if (s.p < s.end && *s.p != ',')
			zone->daylight_s = -tzif_parse_time(&s, 24);
		zone->begins = tzif_parse_rule(&s);
		zone->ends = tzif_parse_rule(&s);
	}
	zone->has_tail = true;
	return !s.bad && s.p == s.end;
}

static int64_t rule_day(const struct zone_rule *rule, int64_t year)
{
	int64_t first = days_of_date((struct date){year, 1, 1});
	if (rule->kind == ZONE_DAY_FROM_0)
		return first + rule->day;
	if (rule->kind == ZONE_DAY_WITHOUT_LEAP)
		return first + rule->day - 1 + (leap_year(year) && rule->day >= 60);
	first = days_of_date((struct date){year, rule->month, 1});
	int64_t day = first + (rule->day - weekday_of_days(first) + 7) % 7 + 7 * (rule->week - 1);
	/* The fifth is the last, which may be the fourth. */
	return date_of_days(day).month == rule->month ? day : day - 7;
}

/* ---- The file -------------------------------------------------------------------------------- */

struct tzif_counts {
	uint32_t isut, isstd, leap, time, type, chars;
};

static uint32_t tzif_decode_be32(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 4);
	return p ? be32_get(p) : 0;
}

/* ERR_INVALID: not such a file. */
static int read_header(struct cursor *c, struct tzif_counts *n, uint8_t *version)
{
	const uint8_t *magic = cursor_take(c, 4);
	*version = cursor_u8(c);
	(void)cursor_take(c, 15);
	n->isut = tzif_decode_be32(c);
	n->isstd = tzif_decode_be32(c);
	n->leap = tzif_decode_be32(c);
	n->time = tzif_decode_be32(c);
	n->type = tzif_decode_be32(c);
	n->chars = tzif_decode_be32(c);
	return c->bad || memcmp(magic, "TZif", 4) != 0 ? ERR_INVALID : 0;
}

/* The sizes cannot pass 64 bits: each count has 32. */
static void skip_block(struct cursor *c, const struct tzif_counts *n, unsigned time_bytes)
{
	(void)cursor_take(c, (size_t)n->time * (time_bytes + 1) + (size_t)n->type * 6 + n->chars +
				     (size_t)n->leap * (time_bytes + 4) + n->isstd + n->isut);
}

static int64_t time_at(const uint8_t *times, size_t i, unsigned time_bytes)
{
	if (time_bytes == 4)
		return (int32_t)be32_get(times + i * 4);
	return (int64_t)be64_get(times + i * 8);
}

static int check_types(const uint8_t *types, const struct tzif_counts *n)
{
	for (size_t i = 0; i < n->type; i++) {
		int32_t offset_s = (int32_t)be32_get(types + i * 6);
		if (offset_s < -TZIF_OFFSET_MAX_S || offset_s > TZIF_OFFSET_MAX_S)
			return ERR_INVALID;
	}
	return 0;
}

static int fill_transitions(struct zone *zone, struct arena *arena, const uint8_t *times,
			    const uint8_t *indexes, const uint8_t *types,
			    const struct tzif_counts *n, unsigned time_bytes)
{
	int64_t *at_s = arena_alloc(arena, (n->time + 1) * sizeof(*at_s));
	int32_t *offset_s = arena_alloc(arena, (n->time + 1) * sizeof(*offset_s));
	if (!at_s || !offset_s)
		return ERR_LIMIT;
	for (size_t i = 0; i < n->time; i++) {
		at_s[i] = time_at(times, i, time_bytes);
		if (indexes[i] >= n->type || (i && at_s[i] <= at_s[i - 1]))
			return ERR_INVALID;
		offset_s[i] = (int32_t)be32_get(types + (size_t)indexes[i] * 6);
	}
	zone->count = n->time;
	zone->at_s = at_s;
	zone->offset_s = offset_s;
	/* RFC 8536, 3.2: what lies before the first transition has type 0. */
	zone->first_offset_s = (int32_t)be32_get(types);
	return 0;
}

static int read_block(struct cursor *c, const struct tzif_counts *n, unsigned time_bytes,
		      struct arena *arena, struct zone *zone, struct errbuf *e)
{
	if (n->leap)
		return errbuf_set(e, ERR_INVALID,
				  "its file counts leap seconds, which times here "
				  "do not have");
	if (n->time > TZIF_TRANSITIONS_MAX || n->type > TZIF_TYPES_MAX)
		return errbuf_set(e, ERR_LIMIT, "its file has more transitions than %d",
				  TZIF_TRANSITIONS_MAX);
	const uint8_t *times = cursor_take(c, (size_t)n->time * time_bytes);
	const uint8_t *indexes = cursor_take(c, n->time);
	const uint8_t *types = cursor_take(c, (size_t)n->type * 6);
	(void)cursor_take(c, (size_t)n->chars + n->isstd + n->isut);
	if (c->bad || !n->type || check_types(types, n))
		return errbuf_set(e, ERR_INVALID, "its file is damaged");
	int err = fill_transitions(zone, arena, times, indexes, types, n, time_bytes);
	return err ? errbuf_set(e, err, "its file is damaged or too large") : 0;
}

static int read_footer(struct cursor *c, struct zone *zone, struct errbuf *e)
{
	const char *p = (const char *)c->at;
	size_t left = cursor_left(c);
	const char *end = left > 1 ? memchr(p + 1, '\n', left - 1) : NULL;
	if (!end || *p != '\n')
		return errbuf_set(e, ERR_INVALID, "its file ends too early");
	struct slice rule = {p + 1, (size_t)(end - p - 1)};
	if (rule.len && !parse_rule(rule, zone))
		return errbuf_set(e, ERR_INVALID, "the rule \"" SHOWN "\" of its file is not known",
				  SHOWN_OF(rule));
	return 0;
}

int zone_parse(struct slice bytes, struct arena *arena, struct zone *zone, struct errbuf *e)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	struct tzif_counts n;
	uint8_t version;
	*zone = zone_utc;
	if (bytes.len > TZIF_MAX_BYTES)
		return errbuf_set(e, ERR_LIMIT, "its file is too long");
	if (read_header(&c, &n, &version))
		return errbuf_set(e, ERR_INVALID, "its file is no time zone");
	if (version == 0)
		return read_block(&c, &n, 4, arena, zone, e);
	skip_block(&c, &n, 4);
	if (read_header(&c, &n, &version))
		return errbuf_set(e, ERR_INVALID, "its file ends too early");
	int err = read_block(&c, &n, 8, arena, zone, e);
	return err ? err : read_footer(&c, zone, e);
}

/* ---- Spans ----------------------------------------------------------------------------------- */

/* Behind the last transition. The changes of two years before to two years after: no rule lies
 * more than a week beside its year. */
static struct zone_span tail_span(const struct zone *zone, int64_t at_s)
{
	struct zone_span span = {INT64_MIN, INT64_MAX, zone->standard_s};
	if (!zone->has_daylight)
		return span;
	int64_t year = date_of_days(floor_div(at_s, DAY_S)).year - TAIL_YEARS / 2;
	for (int i = 0; i < TAIL_YEARS; i++, year++) {
		int64_t ends_s =
			rule_day(&zone->ends, year) * DAY_S + zone->ends.time_s - zone->daylight_s;
		int64_t begins_s = rule_day(&zone->begins, year) * DAY_S + zone->begins.time_s -
				   zone->standard_s;
		/* Of two at the same time, beginning counts: daylight saving time all year ends and
		 * begins at once. */
		if (ends_s <= at_s && ends_s > span.from_s) {
			span.from_s = ends_s;
			span.offset_s = zone->standard_s;
		}
		if (begins_s <= at_s && begins_s >= span.from_s) {
			span.from_s = begins_s;
			span.offset_s = zone->daylight_s;
		}
		if (ends_s > at_s && ends_s < span.to_s)
			span.to_s = ends_s;
		if (begins_s > at_s && begins_s < span.to_s)
			span.to_s = begins_s;
	}
	return span;
}

/* How many transitions lie at or before `at_s`. */
static size_t transitions_until(const struct zone *zone, int64_t at_s)
{
	size_t low = 0, high = zone->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (zone->at_s[middle] <= at_s)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct zone_span zone_span_at(const struct zone *zone, int64_t at_s)
{
	size_t next = transitions_until(zone, at_s);
	struct zone_span span = {
		next ? zone->at_s[next - 1] : INT64_MIN,
		next < zone->count ? zone->at_s[next] : INT64_MAX,
		next ? zone->offset_s[next - 1] : zone->first_offset_s,
	};
	if (next < zone->count || !zone->has_tail)
		return span;
	struct zone_span tail = tail_span(zone, at_s);
	if (tail.from_s < span.from_s)
		tail.from_s = span.from_s;
	return tail;
}

/* ---- Days ------------------------------------------------------------------------------------ */

int64_t zone_day_begin(const struct zone *zone, int64_t day)
{
	/* The first moment whose local time is not before that midnight; no offset passes the
	 * limit, so it lies within a day and a bit of the same time in UTC. */
	int64_t local_s = day * DAY_S, at_s = local_s - TZIF_OFFSET_MAX_S;
	for (;;) {
		struct zone_span span = zone_span_at(zone, at_s);
		if (at_s < local_s - span.offset_s)
			at_s = local_s - span.offset_s;
		if (at_s < span.to_s)
			return at_s;
		at_s = span.to_s;
	}
}

int64_t zone_day_of(const struct zone *zone, int64_t at_s)
{
	int64_t day = floor_div(at_s + zone_span_at(zone, at_s).offset_s, DAY_S);
	/* Clocks that were put back over midnight show the day before once more. */
	while (zone_day_begin(zone, day + 1) <= at_s)
		day++;
	return day;
}
