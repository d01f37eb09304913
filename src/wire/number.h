/* Numbers as text: exact, independent of the locale, bounded.
 *
 * Reading. A double is correctly rounded for every text; an integer is exact or refused. No
 * function reads past `end`, and none takes more than NUMBER_TEXT_MAX_BYTES of one number.
 * Writing. A double becomes the shortest text that reads back to the same bits, always with a
 * fraction or an exponent (477.0, 1e+300), laid out as Python's repr does; integers are exact.
 *
 * Any thread; no state. */
#ifndef WIRE_NUMBER_H
#define WIRE_NUMBER_H

#include "base/base.h"
#include "model/value.h"

struct buf;

enum {
	NUMBER_TEXT_MAX_BYTES = 1024, /* of one number that is read */
	NUMBER_PRINT_MAX_BYTES = 32,  /* of one number that is written */
};

/* The whole of [p, end) is one integer, [+-]digits. ERR_INVALID: it is not; ERR_LIMIT: it does not
 * fit. number_parse_u64 takes no minus. */
static inline int number_parse_i64(const char *p, const char *end, int64_t *out) MUST_CHECK;
static inline int number_parse_u64(const char *p, const char *end, uint64_t *out) MUST_CHECK;

/* The whole of [p, end) is one decimal, [+-]digits[.digits][e[+-]digits] with at least one digit
 * before the exponent ("1." and ".5" are taken; "inf", "nan" and hex are not). ERR_INVALID: it is
 * not; ERR_LIMIT: longer than NUMBER_TEXT_MAX_BYTES, or its magnitude passes every double (then
 * *out is an infinity). What is too small becomes a zero or a subnormal. */
int number_parse_f64(const char *p, const char *end, double *out) MUST_CHECK;

/* A number by the grammar of JSON (RFC 8259, section 6) at p; what follows it is not looked at.
 * f64 unless it is an integer literal that no double holds but an i64 or (above those) a u64 does.
 * What passes every double becomes an infinity. Gives the end of the number, or NULL and a constant
 * reason. */
const char *number_scan_json(const char *p, const char *end, struct value *out,
			     const char **reason) MUST_CHECK;

/* As above for the whole text: what a quoted number may be. ERR_INVALID or ERR_LIMIT as in
 * number_parse_f64; an infinity is ERR_LIMIT. */
int number_parse_json(struct slice text, struct value *out) MUST_CHECK;

/* Each writes at most NUMBER_PRINT_MAX_BYTES at `to`, without a closing zero, and returns how
 * many. */
size_t number_print_u64(char *to, uint64_t number);
size_t number_print_i64(char *to, int64_t number);
/* NaN, +Inf and -Inf are written so, as Prometheus reads them; JSON has no form for them. */
size_t number_print_f64(char *to, double number);
/* By type; VALUE_NONE is written as nothing. */
size_t number_print(char *to, struct value number);

/* number_print at the end of `out`; 0 or ERR_LIMIT. */
int number_append(struct buf *out, struct value number);

/* ---- The fast paths, inline --------------------------------------------------------------- */

static inline bool number_is_digit(char c)
{
	return (unsigned char)(c - '0') <= 9;
}

/* What a hexadecimal digit, of either case, stands for; -1: it is none. */
static inline int number_hex_digit(char c)
{
	if (number_is_digit(c))
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Exactly 16 hexadecimal digits, of either case. ERR_INVALID: it is something else. */
static inline int number_parse_hex64(const char *p, const char *end, uint64_t *out)
{
	if (end - p != 16)
		return ERR_INVALID;
	uint64_t number = 0;
	for (; p < end; p++) {
		int digit = number_hex_digit(*p);
		if (digit < 0)
			return ERR_INVALID;
		number = number << 4 | (uint64_t)digit;
	}
	*out = number;
	return 0;
}

/* Decimal digits from p on, at most 19 of them (those never overflow); gives the first byte that
 * was not taken: p if there is no digit. */
static inline const char *number_scan_digits(const char *p, const char *end, uint64_t *out)
{
	if (end - p > 19)
		end = p + 19;
	uint64_t number = 0;
	for (; p < end && number_is_digit(*p); p++)
		number = number * 10 + (uint64_t)(*p - '0');
	*out = number;
	return p;
}

int number_parse_u64_long(const char *p, const char *end, uint64_t *out) MUST_CHECK;

static inline int number_parse_u64(const char *p, const char *end, uint64_t *out)
{
	if (p < end && *p == '+')
		p++;
	const char *stop = number_scan_digits(p, end, out);
	if (LIKELY(stop == end && stop != p))
		return 0;
	return number_parse_u64_long(p, end, out);
}

static inline int number_parse_i64(const char *p, const char *end, int64_t *out)
{
	bool negative = p < end && *p == '-';
	if (negative && ++p < end && *p == '+')
		return ERR_INVALID;
	uint64_t magnitude = 0;
	int err = number_parse_u64(p, end, &magnitude);
	if (UNLIKELY(err))
		return err;
	if (UNLIKELY(magnitude > (uint64_t)INT64_MAX + negative))
		return ERR_LIMIT;
	*out = (int64_t)(negative ? -magnitude : magnitude);
	return 0;
}

#endif
