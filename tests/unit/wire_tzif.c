/* Time zones. Expected times are from `TZ=... date -d ... +%s`; the files are made here by hand, or
 * the system's, all of which are compared with what the C library makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "wire/calendar.h"
#include "wire/tzif.h"

static struct arena arena;

static int setup(void **state)
{
	(void)state;
	arena_init(&arena, 4 << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

/* ---- Files made by hand --------------------------------------------------------------------- */

struct image {
	uint8_t bytes[512];
	size_t len;
};

static void put_bytes(struct image *image, const void *bytes, size_t len)
{
	memcpy(image->bytes + image->len, bytes, len);
	image->len += len;
}

static void put_be32(struct image *image, int64_t number)
{
	uint32_t big = __builtin_bswap32((uint32_t)number);
	put_bytes(image, &big, 4);
}

static void put_header(struct image *image, char version, int leap, int times, int types, int chars)
{
	put_bytes(image, "TZif", 4);
	put_bytes(image, &version, 1);
	put_bytes(image, (char[15]){0}, 15);
	put_be32(image, 0);
	put_be32(image, 0);
	put_be32(image, leap);
	put_be32(image, times);
	put_be32(image, types);
	put_be32(image, chars);
}

static void put_type(struct image *image, int offset_s)
{
	put_be32(image, offset_s);
	put_bytes(image, "\0\0", 2);
}

/* A file with no transitions but the rule. */
static struct image with_rule(const char *rule)
{
	struct image image = {.len = 0};
	put_header(&image, '2', 0, 0, 1, 0);
	put_type(&image, 7);
	put_header(&image, '2', 0, 0, 1, 0);
	put_type(&image, 7);
	put_bytes(&image, "\n", 1);
	put_bytes(&image, rule, strlen(rule));
	put_bytes(&image, "\n", 1);
	return image;
}

static struct zone zone_of(const struct image *image)
{
	struct zone zone;
	struct errbuf e;
	if (zone_parse((struct slice){(const char *)image->bytes, image->len}, &arena, &zone, &e))
		fail_msg("%s", e.text);
	return zone;
}

static struct zone zone_with_rule(const char *rule)
{
	struct image image = with_rule(rule);
	return zone_of(&image);
}

static int offset_at(const struct zone *zone, int64_t at_s)
{
	return zone_span_at(zone, at_s).offset_s;
}

static int64_t day(int64_t year, int month, int d)
{
	return days_of_date((struct date){year, month, d});
}

static void test_first_version(void **state)
{
	(void)state;
	struct image image = {.len = 0};
	put_header(&image, 0, 0, 2, 2, 0);
	put_be32(&image, -1000);
	put_be32(&image, 5000);
	put_bytes(&image, "\1\0", 2);
	put_type(&image, 3600);
	put_type(&image, -7200);
	struct zone zone = zone_of(&image);
	assert_int_equal(offset_at(&zone, INT64_C(-100000000000)), 3600);
	assert_int_equal(offset_at(&zone, -1001), 3600);
	assert_int_equal(offset_at(&zone, -1000), -7200);
	assert_int_equal(offset_at(&zone, 4999), -7200);
	assert_int_equal(offset_at(&zone, 5000), 3600);
	assert_int_equal(offset_at(&zone, INT64_C(100000000000)), 3600);
	struct zone_span span = zone_span_at(&zone, 0);
	assert_int_equal(span.from_s, -1000);
	assert_int_equal(span.to_s, 5000);
}

static void test_rules(void **state)
{
	(void)state;
	/* 2024-03-31T01:00:00Z and 2024-10-27T01:00:00Z, the last Sundays */
	struct zone berlin = zone_with_rule("CET-1CEST,M3.5.0,M10.5.0/3");
	assert_int_equal(offset_at(&berlin, 1711846799), 3600);
	assert_int_equal(offset_at(&berlin, 1711846800), 7200);
	assert_int_equal(offset_at(&berlin, 1729990799), 7200);
	assert_int_equal(offset_at(&berlin, 1729990800), 3600);
	struct zone_span summer = zone_span_at(&berlin, 1720000000);
	assert_int_equal(summer.from_s, 1711846800);
	assert_int_equal(summer.to_s, 1729990800);
	/* Sydney: daylight saving time lies over New Year. 2024-04-06T16:00Z, 2024-10-05T16:00Z */
	struct zone sydney = zone_with_rule("AEST-10AEDT,M10.1.0,M4.1.0/3");
	assert_int_equal(offset_at(&sydney, 1704067200), 39600);
	assert_int_equal(offset_at(&sydney, 1712419199), 39600);
	assert_int_equal(offset_at(&sydney, 1712419200), 36000);
	assert_int_equal(offset_at(&sydney, 1728143999), 36000);
	assert_int_equal(offset_at(&sydney, 1728144000), 39600);
	/* Signs between brackets; west is positive there. */
	struct zone west = zone_with_rule("<-0330>3:30");
	assert_int_equal(offset_at(&west, 0), -12600);
	/* Times before midnight and beyond 24 hours (version 3): America/Godthab until 2023,
	 * 2030-03-30T22:00 local, which is 2030-03-31T01:00Z. */
	struct zone nuuk = zone_with_rule("<-03>3<-02>,M3.5.0/-2,M10.5.0/-1");
	assert_int_equal(offset_at(&nuuk, 1901149199), -10800);
	assert_int_equal(offset_at(&nuuk, 1901149200), -7200);
	/* Daylight saving time all year round: it ends and begins at the same moment. */
	struct zone always = zone_with_rule("XXX3EDT4,0/0,J365/23");
	for (int64_t at_s = 1704067200; at_s < 1704067200 + 800 * 86400; at_s += 43200)
		assert_int_equal(offset_at(&always, at_s), -14400);
	/* J60 is the first of March in every year, 59 its first only in those without a leap day.
	 */
	struct zone julian = zone_with_rule("AAA0BBB,J60/0,J90/0");
	assert_int_equal(offset_at(&julian, day(2024, 3, 1) * 86400 - 1), 0);
	assert_int_equal(offset_at(&julian, day(2024, 3, 1) * 86400), 3600);
	assert_int_equal(offset_at(&julian, day(2023, 3, 1) * 86400 - 1), 0);
	assert_int_equal(offset_at(&julian, day(2023, 3, 1) * 86400), 3600);
	struct zone counted = zone_with_rule("AAA0BBB,59/0,90/0");
	assert_int_equal(offset_at(&counted, day(2024, 2, 29) * 86400), 3600);
	assert_int_equal(offset_at(&counted, day(2023, 2, 28) * 86400 + 86399), 0);
	assert_int_equal(offset_at(&counted, day(2023, 3, 1) * 86400), 3600);
}

static void refuse(const struct image *image, const char *part)
{
	struct zone zone;
	struct errbuf e = {""};
	struct slice bytes = {(const char *)image->bytes, image->len};
	if (zone_parse(bytes, &arena, &zone, &e) == 0 || !strstr(e.text, part))
		fail_msg("expected \"%s\", got \"%s\"", part, e.text);
}

static void test_refusals(void **state)
{
	(void)state;
	static const char *const rules[] = {
		"C-1",
		"CET",
		"CET-1CEST",
		"CET-1CEST,M3.5.0",
		"CET-1CEST,M3.5.7,M10.5.0",
		"CET-1CEST,M13.5.0,M10.5.0",
		"CET-1CEST,M3.0.0,M10.5.0",
		"CET-1CEST,J0,J5",
		"CET-1CEST,J366,J5",
		"CET-1CEST,366,5",
		"CET-25",
		"CET-1:60",
		"<+01-1",
		"CET-1CEST,M3.5.0/168,M10.5.0",
		"CET-1CEST,M3.5.0,M10.5.0 ",
		"CET-99999999999",
		"CET-1CEST,,",
		"\x80",
	};
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		struct image image = with_rule(rules[i]);
		refuse(&image, "of its file is not known");
	}
	/* Of a whole file every shorter one is none. */
	struct image whole = with_rule("CET-1CEST,M3.5.0,M10.5.0/3");
	for (size_t len = 0; len < whole.len; len++) {
		struct image part = whole;
		part.len = len;
		refuse(&part, "its file");
	}
	struct image leap = {.len = 0};
	put_header(&leap, 0, 1, 0, 1, 0);
	put_type(&leap, 0);
	put_bytes(&leap, "\0\0\0\1\0\0\0\1", 8);
	refuse(&leap, "leap seconds");
	struct image no_type = {.len = 0};
	put_header(&no_type, 0, 0, 0, 0, 0);
	refuse(&no_type, "damaged");
	struct image far = {.len = 0};
	put_header(&far, 0, 0, 0, 1, 0);
	put_type(&far, 26 * 3600 + 1);
	refuse(&far, "damaged");
	struct image beyond = {.len = 0};
	put_header(&beyond, 0, 0, 1, 1, 0);
	put_be32(&beyond, 0);
	put_bytes(&beyond, "\1", 1);
	put_type(&beyond, 0);
	refuse(&beyond, "damaged");
	struct image twice = {.len = 0};
	put_header(&twice, 0, 0, 2, 1, 0);
	put_be32(&twice, 5);
	put_be32(&twice, 5);
	put_bytes(&twice, "\0\0", 2);
	put_type(&twice, 0);
	refuse(&twice, "damaged");
	struct image many = {.len = 0};
	put_header(&many, 0, 0, TZIF_TRANSITIONS_MAX + 1, 1, 0);
	refuse(&many, "more transitions than 4096");
	struct image huge = {.len = 0};
	put_header(&huge, '2', -1, -1, -1, -1);
	refuse(&huge, "ends too early");
}

/* ---- Days ------------------------------------------------------------------------------------ */

static void test_days(void **state)
{
	(void)state;
	struct zone berlin = zone_with_rule("CET-1CEST,M3.5.0,M10.5.0/3");
	/* 2024-03-31 has 23 hours, 2024-10-27 has 25. */
	assert_int_equal(zone_day_begin(&berlin, day(2024, 3, 31)), 1711839600);
	assert_int_equal(zone_day_begin(&berlin, day(2024, 4, 1)), 1711922400);
	assert_int_equal(zone_day_begin(&berlin, day(2024, 10, 27)), 1729980000);
	assert_int_equal(zone_day_begin(&berlin, day(2024, 10, 28)), 1730070000);
	assert_int_equal(zone_day_of(&berlin, 1711922399), day(2024, 3, 31));
	assert_int_equal(zone_day_of(&berlin, 1711922400), day(2024, 4, 1));
	assert_int_equal(zone_day_begin(&zone_utc, 3), 3 * 86400);
	assert_int_equal(zone_day_of(&zone_utc, -1), -1);
	/* Santiago's clocks go from 24:00 to 23:00 in April and from 24:00 to 01:00 in September
	 * (2024: the 6th, 2024-04-07T03:00Z, and the 7th, 2024-09-08T04:00Z). So the 6th of April
	 * has 25 hours, and the 8th of September begins at 01:00. */
	struct zone santiago = zone_with_rule("<-04>4<-03>,M9.1.6/24,M4.1.6/24");
	assert_int_equal(zone_day_begin(&santiago, day(2024, 4, 6)), 1712372400);
	assert_int_equal(zone_day_begin(&santiago, day(2024, 4, 7)), 1712372400 + 25 * 3600);
	assert_int_equal(zone_day_begin(&santiago, day(2024, 9, 8)), 1725768000);
	assert_int_equal(zone_day_begin(&santiago, day(2024, 9, 9)), 1725768000 + 23 * 3600);
	assert_int_equal(zone_day_of(&santiago, 1725767999), day(2024, 9, 7));
	assert_int_equal(zone_day_of(&santiago, 1725768000), day(2024, 9, 8));
	/* Put back over midnight, at 00:01 to 23:01 (as in St. John's until 2011): the hour that is
	 * repeated stays with the day that had begun. */
	struct zone john = zone_with_rule("NST3:30NDT,M3.2.0/0:01,M11.1.0/0:01");
	int64_t begin_s = zone_day_begin(&john, day(2010, 11, 7));
	assert_int_equal(begin_s, day(2010, 11, 7) * 86400 + 9000); /* 00:00 at -02:30 */
	assert_int_equal(zone_day_of(&john, begin_s), day(2010, 11, 7));
	assert_int_equal(zone_day_of(&john, begin_s + 60), day(2010, 11, 7));
	assert_int_equal(zone_day_begin(&john, day(2010, 11, 8)), begin_s + 25 * 3600);
}

/* ---- The system's files ---------------------------------------------------------------------- */

static bool system_zone(const char *name, struct zone *zone)
{
	char path[256];
	struct buf bytes;
	struct errbuf e;
	snprintf(path, sizeof(path), "/usr/share/zoneinfo/%s", name);
	buf_init(&bytes, TZIF_MAX_BYTES);
	int err = files_real()->read(files_real(), path, TZIF_MAX_BYTES, &bytes);
	if (!err)
		err = zone_parse(buf_slice(&bytes), &arena, zone, &e);
	buf_release(&bytes);
	return !err;
}

static void compare_with_libc(const char *name)
{
	struct zone zone;
	if (!system_zone(name, &zone))
		fail_msg("%s is not taken", name);
	assert_int_equal(setenv("TZ", name, 1), 0);
	tzset();
	/* Every 11 days and a bit from 1900 to 2100, and a second on each side of each span. */
	for (int64_t at_s = INT64_C(-2208988800); at_s < INT64_C(4102444800);) {
		struct tm tm;
		struct zone_span span = zone_span_at(&zone, at_s);
		time_t t = at_s;
		assert_non_null(localtime_r(&t, &tm));
		if (tm.tm_gmtoff != span.offset_s)
			fail_msg("%s at %lld: %ld, we say %d", name, (long long)at_s, tm.tm_gmtoff,
				 span.offset_s);
		int64_t next_s = at_s + 1000003;
		at_s = span.to_s > at_s + 1 && span.to_s <= next_s ? span.to_s - 1 : next_s;
		if (at_s == span.to_s - 1 && span.to_s != INT64_MAX) {
			t = span.to_s - 1;
			assert_non_null(localtime_r(&t, &tm));
			assert_int_equal(tm.tm_gmtoff, span.offset_s);
			at_s = span.to_s;
		}
	}
}

static void check_days(const char *name)
{
	struct zone zone;
	assert_true(system_zone(name, &zone));
	for (int64_t d = day(1999, 12, 1); d < day(2040, 1, 1); d++) {
		int64_t from_s = zone_day_begin(&zone, d), to_s = zone_day_begin(&zone, d + 1);
		assert_true(to_s >= from_s);
		if (to_s == from_s)
			continue; /* a day that was left out */
		assert_int_equal(zone_day_of(&zone, from_s), d);
		assert_int_equal(zone_day_of(&zone, to_s - 1), d);
	}
}

static void test_system_zones(void **state)
{
	(void)state;
	static const char *const names[] = {
		"UTC",
		"Europe/Berlin",
		"Europe/London",
		"Europe/Dublin",
		"America/New_York",
		"America/Santiago",
		"America/St_Johns",
		"America/Sao_Paulo",
		"America/Nuuk",
		"Asia/Kolkata",
		"Asia/Kathmandu",
		"Asia/Tehran",
		"Asia/Beirut",
		"Asia/Gaza",
		"Africa/Casablanca",
		"Africa/Cairo",
		"Australia/Lord_Howe",
		"Australia/Sydney",
		"Pacific/Apia",
		"Pacific/Kwajalein",
		"Pacific/Auckland",
		"Antarctica/Troll",
		"Etc/GMT+12",
		"Europe/Lisbon",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		compare_with_libc(names[i]);
		check_days(names[i]);
	}
}

/* Samoa went over the date line: there was no 30 December 2011. */
static void test_a_day_left_out(void **state)
{
	(void)state;
	struct zone apia;
	assert_true(system_zone("Pacific/Apia", &apia));
	int64_t gone = day(2011, 12, 30);
	assert_int_equal(zone_day_begin(&apia, gone), 1325239200); /* 2011-12-30T10:00Z */
	assert_int_equal(zone_day_begin(&apia, gone + 1), 1325239200);
	assert_int_equal(zone_day_of(&apia, 1325239200), gone + 1);
	assert_int_equal(zone_day_of(&apia, 1325239199), gone - 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_first_version), TEST(test_rules),        TEST(test_refusals),
		TEST(test_days),          TEST(test_system_zones), TEST(test_a_day_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
