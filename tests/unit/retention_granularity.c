/* Granularities as they are written, and which of them go together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "retention/granularity.h"

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

static void check_width(const char *text, int64_t width_ms, const char *printed)
{
	int64_t parsed_ms;
	struct errbuf e;
	char to[GRANULARITY_WIDTH_MAX_BYTES + 1];
	assert_int_equal(granularity_width_parse(slice_of(text), &parsed_ms, &e), 0);
	assert_true(parsed_ms == width_ms);
	to[granularity_width_print(to, width_ms)] = 0;
	assert_string_equal(to, printed);
}

static void check_no_width(const char *text, const char *sentence)
{
	int64_t width_ms;
	struct errbuf e = {""};
	assert_int_equal(granularity_width_parse(slice_of(text), &width_ms, &e), ERR_INVALID);
	assert_string_equal(e.text, sentence);
}

static void widths(UNUSED void **state)
{
	check_width("5m", 5 * MINUTE, "5m");
	check_width("1h", HOUR, "1h");
	check_width("12h30m", 12 * HOUR + 30 * MINUTE, "12h30m");
	check_width("90m", 90 * MINUTE, "1h30m");
	check_width("1w", 7 * DAY, "7d");
	check_width("2d3h4m5s", 2 * DAY + 3 * HOUR + 4 * MINUTE + 5 * SECOND, "2d3h4m5s");
	check_width("1000ms", SECOND, "1s");
	check_width("PT5M", 5 * MINUTE, "5m");
	check_width("P1D", DAY, "1d");
	check_no_width("", "\"\": a width is whole seconds, one at least");
	check_no_width("0m", "\"0m\": a width is whole seconds, one at least");
	check_no_width("500ms", "\"500ms\": a width is whole seconds, one at least");
	check_no_width("-5m", "\"-5m\": it is no number and unit (w, d, h, m, s)");
	check_no_width("5", "\"5\": it is no number and unit (w, d, h, m, s)");
	check_no_width("5x", "\"5x\": it is no number and unit (w, d, h, m, s)");
	check_no_width("1mo", "\"1mo\": months and years have no one length");
	check_no_width("1y", "\"1y\": months and years have no one length");
	check_no_width("99999999999999999999s", "\"99999999999999999999s\": it is too long");
	check_no_width("P1M",
		       "\"P1M\" is no duration: its units should be W, D, then T and H, M, S");
	check_no_width("9223372036854775807w", "\"9223372036854775807w\": it is too long");
}

static void check_refused(const char *const *items, size_t count, int64_t slot_ms,
			  const char *sentence)
{
	struct granularities granularities;
	struct errbuf e = {""};
	assert_int_equal(granularities_parse(items, count, slot_ms, &granularities, &e),
			 ERR_INVALID);
	assert_string_equal(e.text, sentence);
}

static void the_defaults(UNUSED void **state)
{
	static const char *const items[] = {"5m:14d", "1h:365d", "1d"};
	struct granularities granularities;
	struct errbuf e;
	assert_int_equal(granularities_parse(items, 2, HOUR, &granularities, &e), 0);
	assert_int_equal(granularities.count, 2);
	assert_true(granularities.slot_ms == HOUR);
	assert_true(granularities.list[0].width_ms == 5 * MINUTE);
	assert_true(granularities.list[0].retention_ms == 14 * DAY);
	assert_true(granularities.list[1].width_ms == HOUR);
	assert_true(granularities.list[1].retention_ms == 365 * DAY);
	assert_ptr_equal(granularity_find(&granularities, HOUR), &granularities.list[1]);
	assert_null(granularity_find(&granularities, DAY));
	assert_int_equal(granularities_parse(items, 3, DAY, &granularities, &e), 0);
	assert_true(granularities.list[2].retention_ms == 0);
	assert_int_equal(granularities_parse(NULL, 0, HOUR, &granularities, &e), 0);
	assert_int_equal(granularities.count, 0);
}

static void what_does_not_go_together(UNUSED void **state)
{
	static const char *const hour_in_90[] = {"5m", "1h"};
	check_refused(hour_in_90, 2, 90 * MINUTE,
		      "a slot of 1h30m is no multiple of the granularity 1h");
	static const char *const coarse_first[] = {"1h", "5m"};
	check_refused(coarse_first, 2, HOUR,
		      "the granularity 5m stands behind 1h: the finer ones go first");
	static const char *const twice[] = {"5m", "5m"};
	check_refused(twice, 2, HOUR,
		      "the granularity 5m stands behind 5m: the finer ones go first");
	static const char *const no_divisor[] = {"10m", "15m"};
	check_refused(no_divisor, 2, HOUR,
		      "the granularity 15m is no multiple of the one before it, 10m");
	static const char *const short_lived[] = {"5m:30m"};
	check_refused(short_lived, 1, HOUR,
		      "the granularity 5m is kept for less than a slot of 1h");
	static const char *const century[] = {"5m:36500d"}, *const more[] = {"5m:36501d"};
	struct granularities granularities;
	struct errbuf e;
	assert_int_equal(granularities_parse(century, 1, HOUR, &granularities, &e), 0);
	check_refused(more, 1, HOUR, "\"36501d\" is above the maximum of 36500d; for ever is 0");
	static const char *const seconds[] = {"1s"};
	check_refused(seconds, 1, 3 * HOUR, "a slot of 3h has more than 10000 buckets of 1s");
	static const char *const zero[] = {"0s"};
	check_refused(zero, 1, HOUR, "\"0s\": a width is whole seconds, one at least");
	static const char *const fine[] = {"5m"};
	check_refused(fine, 1, 0, "a slot is whole seconds wide, one at least");
	check_refused(fine, 1, -HOUR, "a slot is whole seconds wide, one at least");
	check_refused(fine, 1, 1500, "a slot is whole seconds wide, one at least");
	static const char *const nine[] = {"1s",  "2s",  "4s",   "8s",  "16s",
					   "32s", "64s", "128s", "256s"};
	check_refused(nine, 9, HOUR, "9 granularities are more than 8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(widths),
		cmocka_unit_test(the_defaults),
		cmocka_unit_test(what_does_not_go_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
