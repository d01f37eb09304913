#include "store/lmdb/codec/pattern.h"

#include "store/lmdb/codec/stream.h"

/* The power of two that divides all differences divides the distances from the least pattern, the
 * differences of differences and what neighbours differ in as well. */
static unsigned common_shift(const struct pattern_survey *s)
{
	return s->differences ? (unsigned)__builtin_ctzll(s->differences) : 0;
}

/* What is left of the width goes half below the smallest seen: later values wander both ways. */
static uint64_t headroom(uint64_t range)
{
	return (low_mask(bit_width(range)) - range) / 2;
}

static uint64_t fit_anchor(const struct pattern_survey *s, unsigned shift, uint64_t flip)
{
	uint64_t below = headroom((s->high - s->low) >> shift) << shift;
	/* Nothing lies below the least number of the type. */
	if (below > s->low)
		below = 0;
	return (s->low - below) ^ flip;
}

/* A counter that was reset once or twice: a reset is an exception, whatever the parameter. */
static int64_t least_difference(const struct pattern_survey *s)
{
	return s->downs && s->downs <= s->count / 32 ? s->least_up : s->least;
}

static uint64_t fit_step(const struct pattern_survey *s, unsigned shift)
{
	int64_t least = least_difference(s), base = least >> shift;
	uint64_t below = headroom(((uint64_t)s->most - (uint64_t)least) >> shift);
	/* A counter does not go down. */
	if (base >= 0 && (uint64_t)base < below)
		return 0;
	return (uint64_t)base - below;
}

struct pattern_codec pattern_codec_fit(enum codec codec, bool shift, uint64_t flip,
				       const struct pattern_survey *s)
{
	struct pattern_codec c = {.codec = (uint8_t)codec, .anchor = s->first};
	c.shift = (uint8_t)(shift ? common_shift(s) : 0);
	if (codec == CODEC_FOR)
		c.anchor = fit_anchor(s, c.shift, flip);
	else if (codec == CODEC_DELTA_UP)
		c.parameter = fit_step(s, c.shift);
	else if (codec == CODEC_DELTA2)
		c.parameter = s->first_difference;
	return c;
}

unsigned pattern_codec_width(enum codec codec, bool shift, const struct pattern_survey *s)
{
	unsigned drop = shift ? common_shift(s) : 0;
	switch (codec) {
	case CODEC_FOR:
		return bit_width((s->high - s->low) >> drop);
	case CODEC_DELTA_UP:
		return bit_width(((uint64_t)s->most - (uint64_t)least_difference(s)) >> drop);
	case CODEC_DELTA2:
		return bit_width(s->zigzags2 >> drop);
	case CODEC_XOR:
		return bit_width(s->xors >> drop);
	default:
		return bit_width(s->zigzags >> drop);
	}
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

static bool pattern_is_finite(uint64_t bits)
{
	return (bits >> 52 & 0x7ff) != 0x7ff;
}

/* NaN and infinities are set aside: a column of decimals may have many. Real doubles are known by
 * the first few, and cost the most to try. */
int decimal_exponent_fit(const uint64_t *bits, size_t count)
{
	size_t needed[FIT_EXPONENT_MAX + 2] = {0}, tried = 0, aside = count / 32;
	size_t *none = &needed[FIT_EXPONENT_MAX + 1];
	for (size_t i = 0; i < count; i++) {
		if (!pattern_is_finite(bits[i]))
			continue;
		needed[exponent_needed(bits[i])]++;
		if (*none > 2 + tried++ / 8)
			return -1;
	}
	if (*none > aside || !tried)
		return -1;
	size_t above = *none;
	int e = FIT_EXPONENT_MAX;
	while (e > 0 && above + needed[e] <= aside)
		above += needed[e--];
	return e;
}
