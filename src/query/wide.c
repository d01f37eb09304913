/* Sums of doubles that do not depend on the order of addition: parts of a query arrive in any, and
 * the same question has the same answer.
 *
 * The bits of all doubles are cut at fixed places, every 32, into digits; the digits of a number
 * are added as integers, those of each place by themselves. Kept are WIDE_DIGITS places from the
 * highest that any of the numbers reaches; what lies below is dropped, of numbers that came before
 * as of those that come after. So what is kept is the same whatever came first. The highest bit of
 * a number has 128 below it at least: far more than the 53 of the sum. */
#include <math.h>

#include "query/private.h"

enum {
	DIGIT_BITS = 32,
	LEAST_EXPONENT = -1074, /* of the lowest bit of all doubles: bit 0 of place 0 */
	SCALE = 64,             /* of what is `scaled` */
};

/* Higher places come: the lowest leave. */
static void wide_make_room(struct wide_sum *sum, unsigned top)
{
	unsigned by = top - sum->top;
	for (unsigned i = WIDE_DIGITS; i-- > 0;)
		sum->digits[i] = i >= by ? sum->digits[i - by] : 0;
	sum->top = top;
}

/* m 2^(shift + LEAST_EXPONENT), m < 2^53: up to three digits. 2^31 of them fit. */
static void add_bits(struct wide_sum *sum, bool negative, uint64_t m, unsigned shift)
{
	unsigned place = shift / DIGIT_BITS;
	unsigned __int128 bits = (unsigned __int128)m << (shift % DIGIT_BITS);
	unsigned highest = place + (bits >> DIGIT_BITS != 0) + (bits >> 2 * DIGIT_BITS != 0);
	if (highest > sum->top)
		wide_make_room(sum, highest);
	for (unsigned at = sum->top - place; bits; at--, bits >>= DIGIT_BITS) {
		int64_t digit = (uint32_t)bits;
		if (at < WIDE_DIGITS)
			sum->digits[at] += negative ? -digit : digit;
	}
}

static void add_double(struct wide_sum *sum, double d, unsigned scale)
{
	if (UNLIKELY(!isfinite(d))) {
		sum->special += d;
		return;
	}
	uint64_t bits = value_f64(d).bits, m = bits & ((UINT64_C(1) << 52) - 1);
	unsigned exponent = bits >> 52 & 0x7ff;
	if (exponent)
		m |= UINT64_C(1) << 52;
	if (m)
		add_bits(sum, bits >> 63, m, (exponent ? exponent - 1 : 0) + scale);
}

void wide_add(struct wide_sum *sum, double d)
{
	add_double(sum, d, 0);
}

void wide_add_scaled(struct wide_sum *sum, double d)
{
	add_double(sum, d, SCALE);
}

static void add_integer(struct wide_sum *sum, __int128 n)
{
	unsigned __int128 rest = n < 0 ? -(unsigned __int128)n : (unsigned __int128)n;
	for (unsigned shift = -LEAST_EXPONENT; rest; shift += DIGIT_BITS, rest >>= DIGIT_BITS)
		add_bits(sum, n < 0, (uint32_t)rest, shift);
}

/* Every digit but the first becomes 0 .. 2^32 - 1. */
static void carry(struct wide_sum *sum)
{
	for (unsigned i = WIDE_DIGITS - 1; i > 0; i--) {
		sum->digits[i - 1] += sum->digits[i] >> DIGIT_BITS;
		sum->digits[i] &= UINT32_MAX;
	}
}

static bool make_positive(struct wide_sum *sum)
{
	carry(sum);
	if (sum->digits[0] >= 0)
		return false;
	for (unsigned i = 0; i < WIDE_DIGITS; i++)
		sum->digits[i] = -sum->digits[i];
	carry(sum);
	return true;
}

double wide_total(const struct wide_sum *wide, __int128 integers, double *scaled)
{
	struct wide_sum sum = *wide;
	if (sum.special != 0)
		return *scaled = isnan(sum.special) ? NAN : sum.special;
	add_integer(&sum, integers);
	bool negative = make_positive(&sum);
	/* As many digits as the integer has room for; of the rest, whether there is any: enough to
	 * round by. */
	unsigned __int128 all = 0;
	unsigned taken = 0;
	for (; taken < WIDE_DIGITS && all >> 95 == 0; taken++)
		all = all << DIGIT_BITS | (uint64_t)sum.digits[taken];
	int exponent = LEAST_EXPONENT + DIGIT_BITS * ((int)sum.top - (int)taken + 1);
	for (; taken < WIDE_DIGITS; taken++)
		all |= sum.digits[taken] != 0;
	double d = negative ? -(double)all : (double)all;
	*scaled = ldexp(d, exponent - SCALE);
	return ldexp(d, exponent);
}
