/* Between decimal text and binary64, both ways by one table of powers of ten to 128 bits.
 *
 * Reading goes through three doors. Up to 2^53 with a power of ten that a double holds, one
 * multiplication or division is correctly rounded by IEEE 754 itself. Up to 19 digits, the product
 * of the digits with a 128-bit power is nearly always enough to know the 53 bits and how to round
 * them (D. Lemire, "Number Parsing at a Gigabyte per Second", 2021); it notices when it is not.
 * What is left goes to the C library, in the C locale.
 *
 * Writing is Schubfach (R. Giulietti, "The Schubfach way to render doubles", 2021): of the
 * decimals that lie nearer to this double than to any other, the shortest, and of those the
 * nearest. */
#include "wire/number.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>

#include "base/buf.h"

/* The leading 128 bits of a power of ten, cut; exact from 10^0 to 10^55. */
struct power {
	uint64_t high, low;
};

#include "wire/powers.inc"

enum { POWER_EXACT_MAX = 55 };

static struct power power_of_ten(int exponent)
{
	return powers[exponent - POWER_LOWEST];
}

/* floor(log2(10^exponent)) for |exponent| <= 1,233. */
static int log2_of_power(int exponent)
{
	return (exponent * 1741647) >> 19;
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* [-]digits * 10^exponent, as far as 19 digits hold it. */
struct decimal {
	const char *start, *end;
	uint64_t digits;
	int exponent;
	bool negative;
	bool integer;      /* written without fraction and exponent */
	bool overlong;     /* more than 19 digits count: `digits` means nothing */
	bool whole_part;   /* a digit stands before the point */
	bool bare_point;   /* none stands after it */
	bool leading_zero; /* before another digit */
};

enum { EXPONENT_CAP = 100000 };

static bool eight_digits(uint64_t bytes)
{
	return ((bytes & 0xf0f0f0f0f0f0f0f0) |
		(((bytes + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) >> 4)) == 0x3333333333333333;
}

/* The first character is the lowest byte: neighbours are joined to pairs, pairs to fours, fours to
 * eight. */
static uint64_t eight_digits_value(uint64_t bytes)
{
	bytes -= 0x3030303030303030;
	bytes = bytes * 10 + (bytes >> 8);
	return (((bytes & 0x000000ff000000ff) * (100 + (UINT64_C(1000000) << 32))) +
		(((bytes >> 16) & 0x000000ff000000ff) * (1 + (UINT64_C(10000) << 32)))) >>
	       32;
}

/* All digits from p on; *digits wraps around when they are too many. */
static const char *number_parse_digits(const char *p, const char *end, uint64_t *digits)
{
	uint64_t bytes;
	while (end - p >= 8) {
		memcpy(&bytes, p, 8);
		if (!eight_digits(bytes))
			break;
		*digits = *digits * 100000000 + eight_digits_value(bytes);
		p += 8;
	}
	for (; p < end && number_is_digit(*p); p++)
		*digits = *digits * 10 + (uint64_t)(*p - '0');
	return p;
}

/* After `e`: NULL if no digit follows. */
static const char *number_parse_exponent(const char *p, const char *end, int *exponent)
{
	bool negative = p < end && *p == '-';
	if (p < end && (*p == '-' || *p == '+'))
		p++;
	if (p == end || !number_is_digit(*p))
		return NULL;
	int number = 0;
	for (; p < end && number_is_digit(*p); p++) {
		if (number < EXPONENT_CAP)
			number = number * 10 + (*p - '0');
	}
	*exponent += negative ? -number : number;
	return p;
}

/* How many digits count: zeros in front of all others do not. */
static size_t significant_digits(const char *p, const char *stop, size_t count)
{
	for (; p < stop && (*p == '0' || *p == '.'); p++)
		count -= *p == '0';
	return count;
}

/* A decimal in the laxest form that any caller takes. False: there is none at p. Sets d->end. */
static bool scan_decimal(const char *p, const char *end, struct decimal *d)
{
	*d = (struct decimal){.start = p, .integer = true};
	if (p < end && (*p == '-' || *p == '+'))
		d->negative = *p++ == '-';
	const char *whole = p;
	p = number_parse_digits(p, end, &d->digits);
	size_t count = (size_t)(p - whole);
	d->whole_part = count > 0;
	d->leading_zero = count > 1 && *whole == '0';
	if (p < end && *p == '.') {
		const char *fraction = ++p;
		p = number_parse_digits(p, end, &d->digits);
		d->integer = false;
		d->bare_point = p == fraction;
		count += (size_t)(p - fraction);
		/* A fraction too long for an int is too long for every caller, too. */
		d->exponent = p - fraction < EXPONENT_CAP ? -(int)(p - fraction) : -EXPONENT_CAP;
	}
	if (count == 0)
		return false;
	d->overlong = count > 19 && significant_digits(whole, p, count) > 19;
	if (p < end && (*p == 'e' || *p == 'E')) {
		d->integer = false;
		p = number_parse_exponent(p + 1, end, &d->exponent);
	}
	d->end = p;
	return p != NULL;
}

static locale_t c_locale;

static void make_c_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	ASSERT(c_locale != (locale_t)0);
}

static double slow_f64(const struct decimal *d)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, make_c_locale);
	char text[NUMBER_TEXT_MAX_BYTES + 1];
	size_t len = (size_t)(d->end - d->start);
	ASSERT(len <= NUMBER_TEXT_MAX_BYTES);
	memcpy(text, d->start, len);
	text[len] = 0;
	return strtod_l(text, NULL, c_locale);
}

static const double exact_powers[] = {
	1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

/* The 54 leading bits of `product` (at least 2^126), the last of them for rounding. */
static bool round_product(unsigned __int128 product, int exponent2, uint64_t *bits)
{
	uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
	unsigned top = (unsigned)(high >> 63);
	uint64_t mantissa = high >> (top + 9);
	/* Perhaps exactly half-way, where the cut-off part of the power decides. */
	if (low == 0 && (high & 0x1ff) == 0 && (mantissa & 3) == 1)
		return false;
	mantissa = (mantissa + (mantissa & 1)) >> 1;
	exponent2 += (int)top;
	if (mantissa >> 53) {
		mantissa >>= 1;
		exponent2++;
	}
	/* Subnormal or beyond the largest. */
	if (exponent2 < 1 || exponent2 >= 0x7ff)
		return false;
	*bits = (uint64_t)exponent2 << 52 | (mantissa & ((UINT64_C(1) << 52) - 1));
	return true;
}

/* digits * 10^exponent by a product of 64 x 128 bits. False: that was not enough to be sure. */
static bool product_f64(uint64_t digits, int exponent, uint64_t *bits)
{
	if (exponent < POWER_LOWEST || exponent > 308)
		return false;
	int zeros = __builtin_clzll(digits);
	digits <<= zeros;
	struct power power = power_of_ten(exponent);
	unsigned __int128 product = (unsigned __int128)digits * power.high;
	uint64_t low = (uint64_t)product;
	/* What the lower half of the power adds is less than `digits`: it matters only where it
	 * could carry into the 54 bits. */
	if (((uint64_t)(product >> 64) & 0x1ff) == 0x1ff && low + digits < low) {
		unsigned __int128 rest = (unsigned __int128)digits * power.low;
		product += (uint64_t)(rest >> 64);
		if (((uint64_t)(product >> 64) & 0x1ff) == 0x1ff &&
		    (uint64_t)product == UINT64_MAX && (uint64_t)rest + digits < (uint64_t)rest)
			return false;
	}
	return round_product(product, log2_of_power(exponent) + 63 - zeros + 1023, bits);
}

static double decimal_f64(const struct decimal *d)
{
	double number = 0;
	uint64_t bits;
	if (d->overlong)
		return slow_f64(d);
	if (d->digits == 0)
		return d->negative ? -0.0 : 0.0;
	if (d->digits <= UINT64_C(1) << 53 && d->exponent >= -22 && d->exponent <= 22) {
		number = (double)d->digits;
		number = d->exponent < 0 ? number / exact_powers[-d->exponent]
					 : number * exact_powers[d->exponent];
		return d->negative ? -number : number;
	}
	if (!product_f64(d->digits, d->exponent, &bits))
		return slow_f64(d);
	bits |= (uint64_t)d->negative << 63;
	memcpy(&number, &bits, sizeof(number));
	return number;
}

int number_parse_f64(const char *p, const char *end, double *out)
{
	struct decimal d;
	if (end - p > NUMBER_TEXT_MAX_BYTES)
		return ERR_LIMIT;
	if (!scan_decimal(p, end, &d) || d.end != end)
		return ERR_INVALID;
	*out = decimal_f64(&d);
	return isinf(*out) ? ERR_LIMIT : 0;
}

/* With zeros in front, or too large. */
int number_parse_u64_long(const char *p, const char *end, uint64_t *out)
{
	uint64_t number = 0;
	if (p == end)
		return ERR_INVALID;
	if (end - p > NUMBER_TEXT_MAX_BYTES)
		return ERR_LIMIT;
	bool overflow = false;
	for (; p < end; p++) {
		if (!number_is_digit(*p))
			return ERR_INVALID;
		overflow |= __builtin_mul_overflow(number, UINT64_C(10), &number);
		overflow |= __builtin_add_overflow(number, (uint64_t)(*p - '0'), &number);
	}
	*out = number;
	return overflow ? ERR_LIMIT : 0;
}

/* An odd number below 2^53 times a power of two. */
static bool double_holds(uint64_t magnitude)
{
	return magnitude == 0 || magnitude >> __builtin_ctzll(magnitude) < UINT64_C(1) << 53;
}

static struct value integer_value(const struct decimal *d)
{
	uint64_t magnitude = d->digits;
	if (d->overlong && number_parse_u64_long(d->start + d->negative, d->end, &magnitude) != 0)
		return value_f64(slow_f64(d));
	if (double_holds(magnitude)) {
		double number = (double)magnitude;
		return value_f64(d->negative ? -number : number);
	}
	if (magnitude <= (uint64_t)INT64_MAX)
		return value_i64(d->negative ? -(int64_t)magnitude : (int64_t)magnitude);
	return d->negative ? value_f64(-(double)magnitude) : value_u64(magnitude);
}

const char *number_scan_json(const char *p, const char *end, struct value *out, const char **reason)
{
	struct decimal d;
	*reason = "not a number";
	/* RFC 8259, 6: number = [ minus ] int [ frac ] [ exp ]; leading zeros are not allowed;
	 * frac = decimal-point 1*DIGIT. */
	if (p == end || (*p != '-' && !number_is_digit(*p)) || !scan_decimal(p, end, &d))
		return NULL;
	if (!d.whole_part || d.leading_zero || d.bare_point) {
		*reason = d.leading_zero ? "number with a zero in front"
					 : "number with a point but no digit beside it";
		return NULL;
	}
	if (d.end - d.start > NUMBER_TEXT_MAX_BYTES) {
		*reason = "number is too long";
		return NULL;
	}
	*out = d.integer ? integer_value(&d) : value_f64(decimal_f64(&d));
	return d.end;
}

int number_parse_json(struct slice text, struct value *out)
{
	if (text.len == 0)
		return ERR_INVALID;
	if (text.len > NUMBER_TEXT_MAX_BYTES)
		return ERR_LIMIT;
	const char *reason, *end = text.data + text.len;
	if (number_scan_json(text.data, end, out, &reason) != end)
		return ERR_INVALID;
	return out->type == VALUE_F64 && isinf(value_as_f64(*out)) ? ERR_LIMIT : 0;
}

/* ---- Writing -------------------------------------------------------------------------------- */

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324"
				  "25262728293031323334353637383940414243444546474849"
				  "50515253545556575859606162636465666768697071727374"
				  "75767778798081828384858687888990919293949596979899";

/* Writes backwards from `end`; gives where it begins. */
static char *put_digits(char *end, uint64_t number)
{
	while (number >= 100) {
		end -= 2;
		memcpy(end, digit_pairs + number % 100 * 2, 2);
		number /= 100;
	}
	if (number < 10) {
		*--end = (char)('0' + number);
		return end;
	}
	end -= 2;
	memcpy(end, digit_pairs + number * 2, 2);
	return end;
}

size_t number_print_u64(char *to, uint64_t number)
{
	char digits[20];
	char *start = put_digits(digits + sizeof(digits), number);
	size_t len = (size_t)(digits + sizeof(digits) - start);
	memcpy(to, start, len);
	return len;
}

size_t number_print_i64(char *to, int64_t number)
{
	if (number >= 0)
		return number_print_u64(to, (uint64_t)number);
	*to = '-';
	return 1 + number_print_u64(to + 1, -(uint64_t)number);
}

/* The upper 64 bits of a 64 x 128 bit product, the lowest of them set if anything was cut off:
 * enough for comparisons (Giulietti, 9.7). The power is not below the true one, by less than one
 * unit, which adds at most 1 to the middle word of an exact product. */
static uint64_t multiply_to_odd(struct power power, uint64_t factor)
{
	uint64_t low_high = (uint64_t)(((unsigned __int128)power.low * factor) >> 64);
	unsigned __int128 upper = (unsigned __int128)power.high * factor + low_high;
	return (uint64_t)(upper >> 64) | ((uint64_t)upper > 1);
}

/* digits * 10^exponent. */
struct shortest {
	uint64_t digits;
	int exponent;
};

static struct power power_rounded_up(int exponent)
{
	struct power power = power_of_ten(exponent);
	if (exponent < 0 || exponent > POWER_EXACT_MAX)
		power.high += ++power.low == 0;
	return power;
}

/* Names as in the paper: v = c * 2^q lies between the midpoints to its neighbours, vl and vr, which
 * belong to it only if c is even. All are scaled to 4 * 10^-k and compared with the decimals s and
 * s + 1, and, one digit shorter, with those of s / 10. */
static struct shortest schubfach(uint64_t fraction, int biased)
{
	uint64_t c = biased ? fraction | UINT64_C(1) << 52 : fraction;
	int q = (biased ? biased : 1) - 1075;
	bool closer = fraction == 0 && biased > 1; /* the lower neighbour is half as far */
	int k = (q * 1262611 - (closer ? 524031 : 0)) >> 22;
	int h = q + log2_of_power(-k) + 1;
	struct power g = power_rounded_up(-k);
	uint64_t vl = multiply_to_odd(g, (4 * c - 2 + closer) << h) + (c & 1);
	uint64_t v = multiply_to_odd(g, 4 * c << h);
	uint64_t vr = multiply_to_odd(g, (4 * c + 2) << h) - (c & 1);
	uint64_t s = v / 4;
	if (s >= 10) {
		uint64_t tens = s / 10;
		bool below = vl <= 40 * tens, above = 40 * tens + 40 <= vr;
		if (below != above)
			return (struct shortest){tens + above, k + 1};
	}
	bool below = vl <= 4 * s, above = 4 * s + 4 <= vr;
	if (below != above)
		return (struct shortest){s + above, k};
	uint64_t middle = 4 * s + 2;
	bool up = v > middle || (v == middle && (s & 1));
	return (struct shortest){s + up, k};
}

static struct shortest without_zeros(struct shortest s)
{
	while (s.digits % 100 == 0) {
		s.digits /= 100;
		s.exponent += 2;
	}
	if (s.digits % 10 == 0) {
		s.digits /= 10;
		s.exponent++;
	}
	return s;
}

/* d[.ddd]e+XX, at least two digits of exponent. */
static size_t put_scientific(char *to, const char *digits, size_t count, int exponent)
{
	char *p = to;
	*p++ = digits[0];
	if (count > 1) {
		*p++ = '.';
		memcpy(p, digits + 1, count - 1);
		p += count - 1;
	}
	*p++ = 'e';
	*p++ = exponent < 0 ? '-' : '+';
	unsigned magnitude = (unsigned)(exponent < 0 ? -exponent : exponent);
	if (magnitude < 10)
		*p++ = '0';
	return (size_t)(p - to) + number_print_u64(p, magnitude);
}

/* `point` digits stand before the point; -4 < point <= 16. */
static size_t number_put_plain(char *to, const char *digits, size_t count, int point)
{
	char *p = to;
	if (point <= 0) {
		memcpy(p, "0.0000", 6);
		p += 2 - point;
		memcpy(p, digits, count);
		return (size_t)(p - to) + count;
	}
	size_t whole = (size_t)point;
	if (count <= whole) {
		memset(p, '0', whole);
		memcpy(p, digits, count);
		memcpy(p + whole, ".0", 2);
		return whole + 2;
	}
	memcpy(p, digits, whole);
	p[whole] = '.';
	memcpy(p + whole + 1, digits + whole, count - whole);
	return count + 1;
}

static size_t put_positive(char *to, uint64_t fraction, int biased)
{
	struct shortest s = without_zeros(schubfach(fraction, biased));
	char room[20];
	char *digits = put_digits(room + sizeof(room), s.digits);
	size_t count = (size_t)(room + sizeof(room) - digits);
	int point = (int)count + s.exponent;
	if (point > -4 && point <= 16)
		return number_put_plain(to, digits, count, point);
	return put_scientific(to, digits, count, point - 1);
}

static size_t put_special(char *to, double number)
{
	const char *text = isnan(number) ? "NaN" : number > 0 ? "+Inf" : "-Inf";
	size_t len = strlen(text);
	memcpy(to, text, len);
	return len;
}

size_t number_print_f64(char *to, double number)
{
	if (UNLIKELY(!isfinite(number)))
		return put_special(to, number);
	char *p = to;
	if (signbit(number)) {
		*p++ = '-';
		number = -number;
	}
	if (number < 0x1p53 && number == (double)(uint64_t)number) {
		p += number_print_u64(p, (uint64_t)number);
		memcpy(p, ".0", 2);
		return (size_t)(p + 2 - to);
	}
	uint64_t bits;
	memcpy(&bits, &number, sizeof(bits));
	p += put_positive(p, bits & ((UINT64_C(1) << 52) - 1), (int)(bits >> 52));
	return (size_t)(p - to);
}

size_t number_print(char *to, struct value number)
{
	switch (number.type) {
	case VALUE_F64:
		return number_print_f64(to, value_as_f64(number));
	case VALUE_I64:
		return number_print_i64(to, (int64_t)number.bits);
	case VALUE_U64:
		return number_print_u64(to, number.bits);
	case VALUE_NONE:
		break;
	}
	return 0;
}

int number_append(struct buf *out, struct value number)
{
	char *room = buf_reserve(out, NUMBER_PRINT_MAX_BYTES);
	if (room) {
		out->len += number_print(room, number);
		return 0;
	}
	return ERR_LIMIT;
}
