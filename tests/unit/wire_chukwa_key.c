/* Keys of the table `chukwa`, by the worked keys of a run of Chukwa's code, and by `date` and
 * `md5sum`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/chukwa_key.h"

static void check_key(enum chukwa_days form, int64_t day, const char *metric, const char *source,
		      const char *expected)
{
	char key[CHUKWA_KEY_BYTES], text[2 * CHUKWA_KEY_BYTES + 1];
	assert_int_equal(chukwa_key_make(form, day, slice_of(metric), slice_of(source), key), 0);
	for (size_t i = 0; i < CHUKWA_KEY_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", (uint8_t)key[i]);
	assert_string_equal(text, expected);
}

#define LOAD  "SystemMetrics.LoadAverage.1"
#define PARTS "f4768a0d6fe0815ad1c058df"

/* date -u -d 2016-01-01 +%s, by 86400: 16801. */
static void keys_as_chukwa_makes_them(void **state)
{
	(void)state;
	check_key(CHUKWA_DAYS_DIGITS, 16801, LOAD, "host1", "3100" PARTS);
	check_key(CHUKWA_DAYS_DIGITS, 16810, LOAD, "host1", "3130" PARTS);
	check_key(CHUKWA_DAYS_DIGITS, 16801 + 365, LOAD, "host1", "3336" PARTS);
	/* 2016-04-08 and 09 are the days 99 and 100. */
	check_key(CHUKWA_DAYS_DIGITS, 16899, LOAD, "host1", "3939" PARTS);
	check_key(CHUKWA_DAYS_DIGITS, 16900, LOAD, "host1", "3130" PARTS);
}

static void keys_as_document_k_has_them(void **state)
{
	(void)state;
	check_key(CHUKWA_DAYS_NUMBER, 16801, LOAD, "host1", "0001" PARTS);
	check_key(CHUKWA_DAYS_NUMBER, 16801 + 365, LOAD, "host1", "016e" PARTS);
	check_key(CHUKWA_DAYS_NUMBER, 16801 + 366, LOAD, "host1", "0001" PARTS);
	/* 1970-12-31; 2000-12-31, of a leap year; 2100-12-31, of none; 2149-06-06. */
	check_key(CHUKWA_DAYS_NUMBER, 364, LOAD, "host1", "016d" PARTS);
	check_key(CHUKWA_DAYS_NUMBER, 11322, LOAD, "host1", "016e" PARTS);
	check_key(CHUKWA_DAYS_NUMBER, 47846, LOAD, "host1", "016d" PARTS);
	check_key(CHUKWA_DAYS_NUMBER, CHUKWA_DAY_MAX, LOAD, "host1", "009d" PARTS);
}

static void keys_of_ours(void **state)
{
	(void)state;
	check_key(CHUKWA_DAYS_EPOCH, 0, LOAD, "host1", "0000" PARTS);
	check_key(CHUKWA_DAYS_EPOCH, 16810, LOAD, "host1", "41aa" PARTS);
	check_key(CHUKWA_DAYS_EPOCH, CHUKWA_DAY_MAX, LOAD, "host1", "ffff" PARTS);
	/* The MD5 of nothing is d41d8cd98f00b204e9800998ecf8427e (RFC 1321). */
	check_key(CHUKWA_DAYS_EPOCH, 1, "", "", "0001d41d8cd98f00d41d8cd98f00");
}

static void sigs(void **state)
{
	(void)state;
	char digits[CHUKWA_SIG_DIGITS + 1];
	assert_int_equal(chukwa_sig(slice_of("abc"), digits), 0); /* RFC 1321 */
	assert_string_equal(digits, "900150983cd2");
}

static void check_days(enum chukwa_days form, const char *begin, const char *expected)
{
	char key[CHUKWA_KEY_BYTES] = {begin[0], begin[1]}, text[100] = "";
	uint16_t days[CHUKWA_DAYS_MAX];
	size_t count = chukwa_key_days(form, key, days), len = 0;
	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%u ", days[i]);
	assert_string_equal(text, expected);
}

static void days_of_keys(void **state)
{
	(void)state;
	check_days(CHUKWA_DAYS_EPOCH, "\x41\xaa", "16810 ");
	check_days(CHUKWA_DAYS_EPOCH, "\xff\xff", "65535 ");
	check_days(CHUKWA_DAYS_NUMBER, "\x01\x6e", "366 ");
	check_days(CHUKWA_DAYS_NUMBER, "\x01\x6f", "");
	check_days(CHUKWA_DAYS_NUMBER, "\0\0", "");
	check_days(CHUKWA_DAYS_DIGITS, "1\0", "1 ");
	check_days(CHUKWA_DAYS_DIGITS, "10", "10 100 101 102 103 104 105 106 107 108 109 ");
	check_days(CHUKWA_DAYS_DIGITS, "36", "36 360 361 362 363 364 365 366 ");
	check_days(CHUKWA_DAYS_DIGITS, "37", "37 ");
	check_days(CHUKWA_DAYS_DIGITS, "99", "99 ");
	check_days(CHUKWA_DAYS_DIGITS, "01", "");
	check_days(CHUKWA_DAYS_DIGITS, "1a", "");
	check_days(CHUKWA_DAYS_DIGITS, "\0\0", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_as_chukwa_makes_them),
		cmocka_unit_test(keys_as_document_k_has_them),
		cmocka_unit_test(keys_of_ours),
		cmocka_unit_test(sigs),
		cmocka_unit_test(days_of_keys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
