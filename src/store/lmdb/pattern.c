#include "store/lmdb/pattern.h"

#include "store/lmdb/stream.h"

static unsigned common_shift(uint64_t any)
{
	return any ? (unsigned)__builtin_ctzll(any) : 0;
}

/* Ordered as unsigned after this, and the other way round. */
static uint64_t order_flip(bool is_signed)
{
	return is_signed ? UINT64_C(1) << 63 : 0;
}

/* What is left of the width goes half below the smallest seen: later values wander both ways. */
static uint64_t headroom(uint64_t range)
{
	return (low_mask(bit_width(range)) - range) / 2;
}

static struct pattern_codec fit_for(bool is_signed, const uint64_t *v, size_t count)
{
	uint64_t flip = order_flip(is_signed), low = UINT64_MAX, high = 0, any = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t ordered = v[i] ^ flip;
		low = ordered < low ? ordered : low;
		high = ordered > high ? ordered : high;
		any |= v[i] - v[0];
	}
	unsigned shift = common_shift(any);
	uint64_t below = headroom((high - low) >> shift) << shift;
	/* Nothing lies below the least number of the type. */
	if (below > low)
		below = 0;
	return (struct pattern_codec){CODEC_FOR, (uint8_t)shift, (low - below) ^ flip, 0};
}

static struct pattern_codec fit_delta(const uint64_t *v, size_t count)
{
	uint64_t any = 0;
	for (size_t i = 1; i < count; i++)
		any |= v[i] - v[i - 1];
	return (struct pattern_codec){CODEC_DELTA, (uint8_t)common_shift(any), v[0], 0};
}

/* The parameter is the smallest difference; of a counter that was reset once or twice the smallest
 * that is not negative, since a reset is an exception either way. */
static struct pattern_codec fit_delta_up(const uint64_t *v, size_t count)
{
	int64_t low = INT64_MAX, high = INT64_MIN, low_up = INT64_MAX;
	uint64_t any = 0;
	size_t down = 0;
	for (size_t i = 1; i < count; i++) {
		int64_t d = (int64_t)(v[i] - v[i - 1]);
		any |= (uint64_t)d;
		low = d < low ? d : low;
		high = d > high ? d : high;
		if (d < 0)
			down++;
		else if (d < low_up)
			low_up = d;
	}
	if (count < 2)
		low = high = 0;
	if (down && down <= count / 32)
		low = low_up;
	unsigned shift = common_shift(any);
	uint64_t below = headroom(((uint64_t)high - (uint64_t)low) >> shift);
	int64_t base = low >> shift;
	if (base >= 0 && (uint64_t)base < below)
		base = 0;
	else
		base = (int64_t)((uint64_t)base - below);
	return (struct pattern_codec){CODEC_DELTA_UP, (uint8_t)shift, v[0], (uint64_t)base};
}

static struct pattern_codec fit_delta2(const uint64_t *v, size_t count)
{
	uint64_t first = count > 1 ? v[1] - v[0] : 0, any = 0;
	for (size_t i = 2; i < count; i++)
		any |= v[i] - 2 * v[i - 1] + v[i - 2];
	return (struct pattern_codec){CODEC_DELTA2, (uint8_t)common_shift(any), v[0], first};
}

static struct pattern_codec fit_xor(const uint64_t *v, size_t count)
{
	uint64_t any = 0;
	for (size_t i = 1; i < count; i++)
		any |= v[i] ^ v[i - 1];
	return (struct pattern_codec){CODEC_XOR, (uint8_t)common_shift(any), v[0], 0};
}

static struct pattern_codec fit(enum codec codec, bool is_signed, const uint64_t *v, size_t count)
{
	switch (codec) {
	case CODEC_FOR:
		return fit_for(is_signed, v, count);
	case CODEC_DELTA_UP:
		return fit_delta_up(v, count);
	case CODEC_DELTA2:
		return fit_delta2(v, count);
	case CODEC_XOR:
		return fit_xor(v, count);
	default:
		return fit_delta(v, count);
	}
}

struct pattern_codec pattern_codec_fit(enum codec codec, bool shift, bool is_signed,
				       const uint64_t *patterns, size_t count)
{
	struct pattern_codec c = fit(codec, is_signed, patterns, count);
	if (!shift && c.shift) {
		/* Of what was found only the parameter of DELTA_UP is in shifted units. */
		if (codec == CODEC_DELTA_UP)
			c.parameter <<= c.shift;
		c.shift = 0;
	}
	return c;
}

struct pattern_carry pattern_begin(const struct pattern_codec *codec)
{
	switch (codec->codec) {
	case CODEC_DELTA_UP:
		return (struct pattern_carry){codec->anchor - (codec->parameter << codec->shift),
					      0};
	case CODEC_DELTA2:
		return (struct pattern_carry){codec->anchor - codec->parameter, codec->parameter};
	default:
		return (struct pattern_carry){codec->anchor, 0};
	}
}

static uint64_t unzigzag_bits(uint64_t residual)
{
	return (residual >> 1) ^ (0 - (residual & 1));
}

void pattern_from_residuals(const struct pattern_codec *codec, struct pattern_carry *carry,
			    uint64_t *v, size_t count)
{
	unsigned shift = codec->shift;
	uint64_t value = carry->value, difference = carry->difference;
	uint64_t anchor = codec->anchor, parameter = codec->parameter;
	switch (codec->codec) {
	case CODEC_FOR:
		for (size_t i = 0; i < count; i++)
			v[i] = anchor + (v[i] << shift);
		break;
	case CODEC_DELTA:
		for (size_t i = 0; i < count; i++)
			v[i] = value += unzigzag_bits(v[i]) << shift;
		break;
	case CODEC_DELTA_UP:
		for (size_t i = 0; i < count; i++)
			v[i] = value += (v[i] + parameter) << shift;
		break;
	case CODEC_DELTA2:
		for (size_t i = 0; i < count; i++) {
			difference += unzigzag_bits(v[i]) << shift;
			v[i] = value += difference;
		}
		break;
	default: /* CODEC_XOR */
		for (size_t i = 0; i < count; i++)
			v[i] = value ^= v[i] << shift;
		break;
	}
	*carry = (struct pattern_carry){value, difference};
}

/* Exact as doubles up to 10^22. */
static const double powers[DECIMAL_EXPONENT_MAX + 1] = {
	1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

double decimal_power(unsigned exponent)
{
	return powers[exponent];
}

/* Beyond 15 decimals an exact quotient is chance, and m too long to gain by. */
enum { FIT_EXPONENT_MAX = 15 };

static unsigned exponent_needed(uint64_t bits)
{
	uint64_t m;
	for (unsigned e = 0; e <= FIT_EXPONENT_MAX; e++) {
		if (decimal_from_bits(bits, e, &m))
			return e;
	}
	return FIT_EXPONENT_MAX + 1;
}

int decimal_exponent_fit(const uint64_t *bits, size_t count)
{
	size_t needed[FIT_EXPONENT_MAX + 2] = {0}, aside = count / 32;
	for (size_t i = 0; i < count; i++) {
		needed[exponent_needed(bits[i])]++;
		/* Real doubles are known by the first few, and cost the most to try. */
		if (needed[FIT_EXPONENT_MAX + 1] > aside + 2)
			return -1;
	}
	if (needed[FIT_EXPONENT_MAX + 1] > aside)
		return -1;
	size_t above = needed[FIT_EXPONENT_MAX + 1];
	int e = FIT_EXPONENT_MAX;
	while (e > 0 && above + needed[e] <= aside)
		above += needed[e--];
	return e;
}
