#include "wire/chukwa_key.h"

#include "wire/md5.h"
#include "wire/number.h"

enum { CHUKWA_YEAR_DAYS_MAX = 366 };

int chukwa_sig(struct slice name, char digits[CHUKWA_SIG_DIGITS + 1])
{
	char hex[MD5_HEX_BYTES];
	int err = md5_hex(&name, 1, hex);
	if (err)
		return err;
	memcpy(digits, hex, CHUKWA_SIG_DIGITS);
	digits[CHUKWA_SIG_DIGITS] = '\0';
	return 0;
}

/* ---- Days ------------------------------------------------------------------------------------ */

/* From 1 on. */
static unsigned chukwa_day_of_year(unsigned day)
{
	for (unsigned year = 1970;; year++) {
		bool leaps = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
		unsigned days = leaps ? 366 : 365;
		if (day < days)
			return day + 1;
		day -= days;
	}
}

static void chukwa_put_number(unsigned number, char key[CHUKWA_KEY_BYTES])
{
	key[0] = (char)(number >> 8);
	key[1] = (char)number;
}

static void chukwa_put_digits(unsigned number, char key[CHUKWA_KEY_BYTES])
{
	unsigned left = number < 100 ? number : number / 10;
	key[0] = (char)('0' + (left < 10 ? left : left / 10));
	key[1] = (char)(left < 10 ? 0 : '0' + left % 10);
}

static size_t chukwa_days_by_digits(const char key[CHUKWA_KEY_BYTES],
				    uint16_t days[CHUKWA_DAYS_MAX])
{
	size_t count = 0;
	if (key[0] < '1' || key[0] > '9')
		return 0;
	unsigned number = (unsigned)(key[0] - '0');
	if (key[1]) {
		if (key[1] < '0' || key[1] > '9')
			return 0;
		number = 10 * number + (unsigned)(key[1] - '0');
	}
	days[count++] = (uint16_t)number;
	for (unsigned last = 0; last < 10 && key[1]; last++)
		if (10 * number + last <= CHUKWA_YEAR_DAYS_MAX)
			days[count++] = (uint16_t)(10 * number + last);
	return count;
}

size_t chukwa_key_days(enum chukwa_days form, const char key[CHUKWA_KEY_BYTES],
		       uint16_t days[CHUKWA_DAYS_MAX])
{
	if (form == CHUKWA_DAYS_DIGITS)
		return chukwa_days_by_digits(key, days);
	days[0] = (uint16_t)((uint8_t)key[0] << 8 | (uint8_t)key[1]);
	return form == CHUKWA_DAYS_EPOCH || (days[0] >= 1 && days[0] <= CHUKWA_YEAR_DAYS_MAX);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static int chukwa_put_sig(struct slice name, char to[CHUKWA_SIG_BYTES])
{
	char digits[CHUKWA_SIG_DIGITS + 1];
	int err = chukwa_sig(name, digits);
	for (size_t i = 0; i < CHUKWA_SIG_BYTES && !err; i++)
		to[i] = (char)(number_hex_digit(digits[2 * i]) << 4 |
			       number_hex_digit(digits[2 * i + 1]));
	return err;
}

int chukwa_key_make(enum chukwa_days form, int64_t day, struct slice metric, struct slice source,
		    char key[CHUKWA_KEY_BYTES])
{
	ASSERT(day >= 0 && day <= CHUKWA_DAY_MAX);
	if (form == CHUKWA_DAYS_EPOCH)
		chukwa_put_number((unsigned)day, key);
	else if (form == CHUKWA_DAYS_NUMBER)
		chukwa_put_number(chukwa_day_of_year((unsigned)day), key);
	else
		chukwa_put_digits(chukwa_day_of_year((unsigned)day), key);
	int err = chukwa_put_sig(metric, key + 2);
	return err ? err : chukwa_put_sig(source, key + 2 + CHUKWA_SIG_BYTES);
}
