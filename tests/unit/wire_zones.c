/* Time zones by name, from the files of this machine. Offsets are those of the tz database. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "wire/zones.h"

static struct zones *zones;

static int setup(void **state)
{
	(void)state;
	zones = zones_new(files_real(), ZONES_FOLDER);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	zones_free(zones);
	return 0;
}

static const struct zone *zone_of(const char *name)
{
	const struct zone *zone;
	struct errbuf e;
	if (zones_get(zones, slice_of(name), &zone, &e))
		fail_msg("%s", e.text);
	return zone;
}

static void refuse(const char *name, const char *sentence)
{
	const struct zone *zone;
	struct errbuf e;
	assert_int_equal(zones_get(zones, slice_of(name), &zone, &e), ERR_INVALID);
	assert_string_equal(e.text, sentence);
}

static void names_and_what_makes_room(void **state)
{
	(void)state;
	static const char *const bad[] = {"",
					  "/",
					  "/etc/passwd",
					  "..",
					  "../zoneinfo/UTC",
					  "Europe/",
					  "Europe//Berlin",
					  "/Europe/Berlin",
					  "Europe/../UTC",
					  ".",
					  "Europe/Berlin\n",
					  "Europe/ber lin",
					  "a\\b",
					  "%2e%2e"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(zone_name_valid(slice_of(bad[i])));
	assert_false(zone_name_valid((struct slice){"UTC\0", 4}));
	assert_true(zone_name_valid(SLICE("America/Argentina/Buenos_Aires")));
	assert_true(zone_name_valid(SLICE("Etc/GMT+12")));
	refuse("../zoneinfo/UTC", "time zone \"../zoneinfo/UTC\" is no name like Europe/Berlin");
	refuse("Europe/Nowhere", "time zone \"Europe/Nowhere\": this machine knows none of that "
				 "name");
	refuse("Europe", "time zone \"Europe\": this machine knows none of that name");
	refuse("leapseconds", "time zone \"leapseconds\": its file is no time zone");
	/* A refused one leaves nothing behind, and the seventeenth takes the place of the first. */
	assert_int_equal(zone_span_at(zone_of("Europe/Berlin"), 1720000000).offset_s, 7200);
	static const char *const names[] = {
		"Etc/GMT+1", "Etc/GMT+2", "Etc/GMT+3", "Etc/GMT+4",  "Etc/GMT+5",  "Etc/GMT+6",
		"Etc/GMT+7", "Etc/GMT+8", "Etc/GMT+9", "Etc/GMT+10", "Etc/GMT+11", "Etc/GMT+12",
		"Etc/GMT-1", "Etc/GMT-2", "Etc/GMT-3", "Etc/GMT-4",  "Etc/GMT-5",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int east = (names[i][7] == '-' ? 1 : -1) * (int)strtol(names[i] + 8, NULL, 10);
		assert_int_equal(zone_span_at(zone_of(names[i]), 0).offset_s, east * 3600);
	}
	assert_int_equal(zone_span_at(zone_of("Europe/Berlin"), 1720000000).offset_s, 7200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_what_makes_room),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
