/* Row keys of the table `chukwa` (document K): a day, and the first bytes of the MD5 of a metric's
 * name and of that of a source.
 *
 *     +-----+-----------------+-----------------+
 *     | day | md5(metric)[:6] | md5(source)[:6] |
 *     +-----+-----------------+-----------------+
 *        2           6                 6
 *
 * The day has three forms, which the bytes do not tell from each other.
 *
 * Pure, any thread. */
#ifndef WIRE_CHUKWA_KEY_H
#define WIRE_CHUKWA_KEY_H

#include "base/base.h"

enum chukwa_days {
	CHUKWA_DAYS_EPOCH,  /* ours: since 1970-01-01, u16, big endian */
	CHUKWA_DAYS_NUMBER, /* document K: of the year, from 1 on, u16, big endian */
	/* Chukwa's code: of the year, decimal digits in ASCII; of three the last one is lost, and
	 * behind a single one stands a zero byte. */
	CHUKWA_DAYS_DIGITS,
};

enum {
	CHUKWA_SIG_BYTES = 6,
	CHUKWA_SIG_DIGITS = 2 * CHUKWA_SIG_BYTES,
	CHUKWA_KEY_BYTES = 2 + 2 * CHUKWA_SIG_BYTES,
	CHUKWA_DAY_MAX = UINT16_MAX, /* since the epoch: 2149-06-06 */
	CHUKWA_DAYS_MAX = 11,        /* that one key of CHUKWA_DAYS_DIGITS may be of */
};

/* In lower-case hexadecimal digits, with a closing zero. ERR_NOT_FOUND as md5_hex. */
int chukwa_sig(struct slice name, char digits[CHUKWA_SIG_DIGITS + 1]) MUST_CHECK;

/* `day` is since the epoch, in each form: 0 to CHUKWA_DAY_MAX. ERR_NOT_FOUND as md5_hex. */
int chukwa_key_make(enum chukwa_days form, int64_t day, struct slice metric, struct slice source,
		    char key[CHUKWA_KEY_BYTES]) MUST_CHECK;

/* Which days a key may be of, ascending: since the epoch, or of Chukwa's forms of the year, 1 to
 * 366. Returns how many; 0: a key of this form does not begin so. */
size_t chukwa_key_days(enum chukwa_days form, const char key[CHUKWA_KEY_BYTES],
		       uint16_t days[CHUKWA_DAYS_MAX]);

#endif
