/* Times as text. Expected ms are from `date -u -d ... +%s` or counted by hand beside the case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "wire/timetext.h"

#define DAY_MS INT64_C(86400000)

static int64_t iso(const char *text)
{
	int64_t ms = 42;
	struct errbuf e;
	if (time_parse_iso(slice_of(text), &ms, &e) != 0)
		fail_msg("%s: %s", text, e.text);
	return ms;
}

static int64_t epoch(const char *text)
{
	int64_t ms = 42;
	struct errbuf e;
	if (time_parse_epoch(slice_of(text), &ms, &e) != 0)
		fail_msg("%s: %s", text, e.text);
	return ms;
}

static int64_t duration(const char *text)
{
	int64_t ms = 42;
	struct errbuf e;
	if (duration_parse(slice_of(text), &ms, &e) != 0)
		fail_msg("%s: %s", text, e.text);
	return ms;
}

typedef int parser(struct slice text, int64_t *ms, struct errbuf *e);

static void refused(parser *parse, const char *text, const char *reason)
{
	struct errbuf e = {""};
	int64_t ms = 42;
	if (parse(slice_of(text), &ms, &e) != ERR_INVALID || ms != 42)
		fail_msg("%s was taken", text);
	if (!strstr(e.text, reason))
		fail_msg("%s: %s", text, e.text);
}

/* ---- ISO 8601 ------------------------------------------------------------------------------- */

static void dates_and_times_of_iso(void **state)
{
	(void)state;
	assert_int_equal(iso("1970-01-01"), 0);
	assert_int_equal(iso("2020-08-24"), INT64_C(1598227200000));
	assert_int_equal(iso("2020-08-24T16:34:05Z"), INT64_C(1598286845000));
	assert_int_equal(iso("2020-08-24 16:34:05z"), INT64_C(1598286845000));
	assert_int_equal(iso("2020-08-24t16:34Z"), INT64_C(1598286840000));
	assert_int_equal(iso("2020-08-24T18:34:05+02:00"), INT64_C(1598286845000));
	assert_int_equal(iso("2020-08-24T18:34:05+0200"), INT64_C(1598286845000));
	assert_int_equal(iso("2020-08-24T18:34:05+02"), INT64_C(1598286845000));
	assert_int_equal(iso("2020-08-24T11:04:05-05:30"), INT64_C(1598286845000));
	assert_int_equal(iso("1969-12-31T23:59:59.999Z"), -1);
	assert_int_equal(iso("1970-01-01T00:30:00+01:00"), -1800000);
	assert_int_equal(iso("2000-02-29"), INT64_C(951782400000));
	assert_int_equal(iso("9999-12-31T23:59:59Z"), INT64_C(253402300799000));
}

static void fractions_are_cut_to_the_ms(void **state)
{
	(void)state;
	assert_int_equal(iso("1970-01-01T00:00:00.1Z"), 100);
	assert_int_equal(iso("1970-01-01T00:00:00.12Z"), 120);
	assert_int_equal(iso("1970-01-01T00:00:00,123Z"), 123);
	assert_int_equal(iso("1970-01-01T00:00:00.1239999999999999Z"), 123);
	assert_int_equal(iso("1969-12-31T23:59:59.9999Z"), -1);
	refused(time_parse_iso, "1970-01-01T00:00:00.Z", "digit should follow the point");
}

static void years_beyond_four_digits_have_a_sign(void **state)
{
	(void)state;
	/* 0000 is a leap year; 0001-01-01 is day -719162, so 0000-01-01 is 366 days before it. */
	assert_int_equal(iso("0001-01-01"), -719162 * DAY_MS);
	assert_int_equal(iso("0000-01-01"), (-719162 - 366) * DAY_MS);
	assert_int_equal(iso("-0001-12-31"), (-719162 - 367) * DAY_MS);
	assert_int_equal(iso("+10000-01-01"), INT64_C(253402300800000));
	assert_int_equal(iso("+2020-08-24"), iso("2020-08-24"));
	refused(time_parse_iso, "10000-01-01", "a - should follow the year");
	refused(time_parse_iso, "+999-01-01", "4 to 9 digits");
	refused(time_parse_iso, "+1234567890-01-01", "4 to 9 digits");
	refused(time_parse_iso, "-9223372036854775808-01-01", "4 to 9 digits");
	refused(time_parse_iso, "+999999999-01-01", "too far");
	refused(time_parse_iso, "-999999999-01-01", "too far");
}

/* The ends of 64 bits: -292275055-05-16T16:47:04.192Z and +292278994-08-17T07:12:55.807Z, as
 * java.util.Date documents them. */
static void the_ends_of_64_bits(void **state)
{
	(void)state;
	char text[TIME_PRINT_MAX_BYTES + 1];
	text[time_print(text, INT64_MAX)] = 0;
	assert_string_equal(text, "+292278994-08-17T07:12:55.807Z");
	assert_true(iso(text) == INT64_MAX);
	refused(time_parse_iso, "+292278994-08-17T07:12:55.808Z", "too far");
	text[time_print(text, INT64_MIN)] = 0;
	assert_string_equal(text, "-292275055-05-16T16:47:04.192Z");
}

static void what_is_no_iso_time_is_refused(void **state)
{
	(void)state;
	refused(time_parse_iso, "", "empty");
	refused(time_parse_iso, "2020", "a - should follow the year");
	refused(time_parse_iso, "2020-8-24", "month should be");
	refused(time_parse_iso, "2020-13-01", "month should be");
	refused(time_parse_iso, "2020-00-01", "month should be");
	refused(time_parse_iso, "2020-01-00", "day should be");
	refused(time_parse_iso, "2020-04-31", "no such day");
	refused(time_parse_iso, "2019-02-29", "no such day");
	refused(time_parse_iso, "1900-02-29", "no such day");
	refused(time_parse_iso, "2020-08-24T", "hour should be");
	refused(time_parse_iso, "2020-08-24T16", ": should follow");
	refused(time_parse_iso, "2020-08-24T24:00:00Z", "hour should be");
	refused(time_parse_iso, "2020-08-24T16:60:00Z", "minute should be");
	refused(time_parse_iso, "2020-08-24T16:34:05", "Z or an offset");
	refused(time_parse_iso, "2020-08-24T16:34:05.123", "Z or an offset");
	refused(time_parse_iso, "2020-08-24T16:34:05 02:00", "Z or an offset");
	refused(time_parse_iso, "2020-08-24T16:34:05+2:00", "offset's hour");
	refused(time_parse_iso, "2020-08-24T16:34:05+02:60", "offset's minute");
	refused(time_parse_iso, "2020-08-24T16:34:05+02:", "offset's minute");
	refused(time_parse_iso, "2020-08-24T16:34:05Zx", "something follows");
	refused(time_parse_iso, "2020-08-24x", "T and a time of day");
	refused(time_parse_iso, " 2020-08-24", "4 digits");
	refused(time_parse_iso,
		"2020-08-24T16:34:05.000000000000000000000000000000000000000000000Z", "too long");
}

static void leap_seconds_end_a_day_of_utc(void **state)
{
	(void)state;
	assert_int_equal(iso("2016-12-31T23:59:60Z"), iso("2017-01-01T00:00:00Z"));
	assert_int_equal(iso("2016-12-31T23:59:60.5Z"), iso("2017-01-01T00:00:00.5Z"));
	assert_int_equal(iso("2017-01-01T00:59:60+01:00"), iso("2017-01-01"));
	assert_int_equal(iso("2016-12-31T18:59:60-05:00"), iso("2017-01-01"));
	refused(time_parse_iso, "2016-12-31T23:58:60Z", "60");
	refused(time_parse_iso, "2016-12-31T23:59:60+01:00", "60");
	refused(time_parse_iso, "2016-12-31T23:59:61Z", "second should be");
}

/* ---- Epoch ---------------------------------------------------------------------------------- */

static void thirteen_digits_are_ms(void **state)
{
	(void)state;
	assert_int_equal(epoch("0"), 0);
	assert_int_equal(epoch("1600000000"), INT64_C(1600000000000));
	assert_int_equal(epoch("1600000000123"), INT64_C(1600000000123));
	assert_int_equal(epoch("999999999999"), INT64_C(999999999999000));
	assert_int_equal(epoch("1000000000000"), INT64_C(1000000000000));
	assert_int_equal(epoch("0001600000000"), INT64_C(1600000000000));
	assert_int_equal(epoch("1600000000.5"), INT64_C(1600000000500));
	assert_int_equal(epoch("1600000000.123"), INT64_C(1600000000123));
	assert_int_equal(epoch("1600000000.1239"), INT64_C(1600000000123));
	assert_int_equal(epoch("1600000000123.9"), INT64_C(1600000000123));
	assert_int_equal(epoch("+5"), 5000);
}

static void negative_times_are_cut_to_the_earlier_ms(void **state)
{
	(void)state;
	assert_int_equal(epoch("-1"), -1000);
	assert_int_equal(epoch("-1.5"), -1500);
	assert_int_equal(epoch("-1.0005"), -1001);
	assert_int_equal(epoch("-1.0000"), -1000);
	assert_int_equal(epoch("-1000000000000.1"), -INT64_C(1000000000001));
}

static void exponents_go_by_value(void **state)
{
	(void)state;
	assert_int_equal(epoch("1.6e9"), INT64_C(1600000000000));
	assert_int_equal(epoch("1.6E12"), INT64_C(1600000000000));
	assert_int_equal(epoch("1e-3"), 1);
	refused(time_parse_epoch, "1e30", "too far");
	refused(time_parse_epoch, "1e400", "neither");
	refused(time_parse_epoch, "1e", "neither");
}

static void what_is_no_epoch_is_refused(void **state)
{
	(void)state;
	refused(time_parse_epoch, "", "empty");
	refused(time_parse_epoch, "-", "neither");
	refused(time_parse_epoch, ".5", "neither");
	refused(time_parse_epoch, "5.", "digit should follow");
	refused(time_parse_epoch, "16x", "neither");
	refused(time_parse_epoch, "1 6", "neither");
	refused(time_parse_epoch, "0x10", "neither");
	refused(time_parse_epoch, "NaN", "neither");
	refused(time_parse_epoch, "9223372036854775808", "too far");
	refused(time_parse_epoch, "99999999999999999999", "too far");
	refused(time_parse_epoch, "-9223372036854775808", "too far");
	assert_true(epoch("9223372036854775807") == INT64_MAX);
}

/* ---- Durations and relative times ----------------------------------------------------------- */

static void durations_in_both_forms(void **state)
{
	(void)state;
	assert_int_equal(duration("500ms"), 500);
	assert_int_equal(duration("0s"), 0);
	assert_int_equal(duration("90s"), 90000);
	assert_int_equal(duration("5m"), 300000);
	assert_int_equal(duration("1h"), 3600000);
	assert_int_equal(duration("14d"), 14 * DAY_MS);
	assert_int_equal(duration("2w"), 14 * DAY_MS);
	assert_int_equal(duration("1n"), 30 * DAY_MS);
	assert_int_equal(duration("1y"), 365 * DAY_MS);
	assert_int_equal(duration("PT5M"), 300000);
	assert_int_equal(duration("P14D"), 14 * DAY_MS);
	assert_int_equal(duration("P2W"), 14 * DAY_MS);
	assert_int_equal(duration("P1DT12H30M5.25S"), DAY_MS + 45005250);
	assert_int_equal(duration("pt0.0019s"), 1);
}

static void what_is_no_duration_is_refused(void **state)
{
	(void)state;
	refused(duration_parse, "", "empty");
	refused(duration_parse, "5", "unit should be");
	refused(duration_parse, "m", "number should stand");
	refused(duration_parse, "-5m", "number should stand");
	refused(duration_parse, "5M", "unit should be");
	refused(duration_parse, "1.5h", "unit should be");
	refused(duration_parse, "5 m", "unit should be");
	refused(duration_parse, "1h30m", "unit should be");
	refused(duration_parse, "999999999999999999y", "too long");
	refused(duration_parse, "9999999999999999999s", "too long");
	refused(duration_parse, "P", "number should follow the P");
	refused(duration_parse, "PT", "number should follow the T");
	refused(duration_parse, "P5", "units should be");
	refused(duration_parse, "P1Y", "units should be");
	refused(duration_parse, "P1M", "units should be");
	refused(duration_parse, "P1H", "units should be");
	refused(duration_parse, "PT1D", "units should be");
	refused(duration_parse, "PT1S1M", "units should be");
	refused(duration_parse, "PT1M1M", "units should be");
	refused(duration_parse, "PT1.5H", "only seconds");
	refused(duration_parse, "PT1HT1M", "second T");
	refused(duration_parse, "PT9999999999999999H", "too long");
}

static int64_t at(const char *text)
{
	int64_t ms = 42;
	struct errbuf e;
	if (time_parse(slice_of(text), INT64_C(1598286845000), &ms, &e) != 0)
		fail_msg("%s: %s", text, e.text);
	return ms;
}

static int parse_at_min(struct slice text, int64_t *ms, struct errbuf *e)
{
	return time_parse(text, INT64_MIN + 1, ms, e);
}

static void any_form_of_time(void **state)
{
	(void)state;
	assert_int_equal(at("now"), INT64_C(1598286845000));
	assert_int_equal(at("1h-ago"), INT64_C(1598283245000));
	assert_int_equal(at("0ms-ago"), INT64_C(1598286845000));
	assert_int_equal(at("1n-ago"), INT64_C(1598286845000) - 30 * DAY_MS);
	assert_int_equal(at("PT1H-ago"), INT64_C(1598283245000));
	assert_int_equal(at("2020-08-24"), INT64_C(1598227200000));
	assert_int_equal(at("-0001-12-31"), (-719162 - 367) * DAY_MS);
	assert_int_equal(at("1600000000"), INT64_C(1600000000000));
	assert_int_equal(at("1600000000123"), INT64_C(1600000000123));
	assert_int_equal(at("-1"), -1000);
	assert_int_equal(at("1e-3"), 1);
	refused(parse_at_min, "1h-ago", "too far");
	refused(parse_at_min, "-ago", "empty");
	refused(parse_at_min, "x-ago", "number should stand");
	refused(parse_at_min, "yesterday", "neither");
	refused(parse_at_min, "1-ago", "unit should be");
	refused(parse_at_min, "NOW", "neither");
}

/* ---- Writing -------------------------------------------------------------------------------- */

static void check_print(int64_t ms, const char *expected)
{
	char text[TIME_PRINT_MAX_BYTES + 1];
	text[time_print(text, ms)] = 0;
	assert_string_equal(text, expected);
}

static void times_are_written(void **state)
{
	(void)state;
	check_print(0, "1970-01-01T00:00:00Z");
	check_print(INT64_C(1598286845000), "2020-08-24T16:34:05Z");
	check_print(INT64_C(1598286845120), "2020-08-24T16:34:05.120Z");
	check_print(-1, "1969-12-31T23:59:59.999Z");
	check_print(INT64_C(951868800000) - 1, "2000-02-29T23:59:59.999Z");
	check_print(INT64_C(253402300799000), "9999-12-31T23:59:59Z");
	check_print(INT64_C(253402300800000), "+10000-01-01T00:00:00Z");
	check_print(-719528 * DAY_MS, "0000-01-01T00:00:00Z");
	check_print(-719529 * DAY_MS, "-0001-12-31T00:00:00Z");
}

static void every_time_reads_back(void **state)
{
	(void)state;
	struct random random;
	random_init(&random, 1970);
	for (int i = 0; i < 200000; i++) {
		int64_t ms = (int64_t)random_next(&random) >> random_below(&random, 63);
		if (ms == INT64_MIN)
			continue;
		char text[TIME_PRINT_MAX_BYTES + 1];
		size_t len = time_print(text, ms);
		assert_true(len <= TIME_PRINT_MAX_BYTES);
		text[len] = 0;
		/* The first day's midnight lies before what 64 bits hold. */
		if (ms >= INT64_MIN + DAY_MS)
			assert_true(iso(text) == ms);
	}
}

/* Each day of 800 years follows the one before by the rules of the calendar. */
static void days_follow_each_other(void **state)
{
	(void)state;
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int64_t days = -719528; /* 0000-01-01 */
	for (int year = 0; year < 800; year++) {
		bool leap = year % 400 == 0 || (year % 100 != 0 && year % 4 == 0);
		for (int month = 1; month <= 12; month++) {
			int length = lengths[month - 1] + (month == 2 && leap);
			for (int day = 1; day <= length; day++, days++) {
				char expected[40];
				snprintf(expected, sizeof(expected), "%04d-%02d-%02dT00:00:00Z",
					 year, month, day);
				check_print(days * DAY_MS, expected);
			}
		}
	}
}

static void durations_are_printed_as_options_are_written(void **state)
{
	(void)state;
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{0, "0"},
		{1, "1ms"},
		{999, "999ms"},
		{1000, "1s"},
		{1001, "1001ms"},
		{4200000, "70m"},
		{3763000, "3763s"},
		{3600000, "1h"},
		{90000000, "25h"},
		{86400000, "1d"},
		{INT64_MAX, "9223372036854775807ms"},
		{INT64_C(36500) * 86400000, "36500d"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[DURATION_PRINT_MAX_BYTES];
		assert_string_equal(duration_print(text, cases[i].ms), cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_are_printed_as_options_are_written),
		cmocka_unit_test(dates_and_times_of_iso),
		cmocka_unit_test(fractions_are_cut_to_the_ms),
		cmocka_unit_test(years_beyond_four_digits_have_a_sign),
		cmocka_unit_test(the_ends_of_64_bits),
		cmocka_unit_test(what_is_no_iso_time_is_refused),
		cmocka_unit_test(leap_seconds_end_a_day_of_utc),
		cmocka_unit_test(thirteen_digits_are_ms),
		cmocka_unit_test(negative_times_are_cut_to_the_earlier_ms),
		cmocka_unit_test(exponents_go_by_value),
		cmocka_unit_test(what_is_no_epoch_is_refused),
		cmocka_unit_test(durations_in_both_forms),
		cmocka_unit_test(what_is_no_duration_is_refused),
		cmocka_unit_test(any_form_of_time),
		cmocka_unit_test(times_are_written),
		cmocka_unit_test(every_time_reads_back),
		cmocka_unit_test(days_follow_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
