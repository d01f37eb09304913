/* Loops that compilers turn into vector code by themselves. Included by kernels.c and by
 * kernels_avx2.c, each with its own TARGET. */

/* Where the shift is 0 the loops are short enough for vector units, and it nearly always is. */
#define DIFFERENCES(operation, residual)                                                           \
	do {                                                                                       \
		uint64_t d = v[0] operation previous;                                              \
		any |= d;                                                                          \
		r[0] = residual;                                                                   \
		for (size_t i = 1; i < count; i++) {                                               \
			d = v[i] operation v[i - 1];                                               \
			any |= d;                                                                  \
			r[i] = residual;                                                           \
		}                                                                                  \
	} while (0)

TARGET static uint64_t loop_for(uint64_t anchor, unsigned shift, const uint64_t *v, size_t count,
				uint64_t *r)
{
	uint64_t any = 0;
	for (size_t i = 0; i < count; i++) {
		any |= v[i] - anchor;
		r[i] = (v[i] - anchor) >> shift;
	}
	return any;
}

TARGET static uint64_t loop_delta(uint64_t previous, unsigned shift, const uint64_t *v,
				  size_t count, uint64_t *r)
{
	uint64_t any = 0;
	if (shift == 0)
		DIFFERENCES(-, d << 1 ^ (0 - (d >> 63)));
	else
		DIFFERENCES(-, zigzag_encode((int64_t)d >> shift));
	return any;
}

TARGET static uint64_t loop_delta_up(uint64_t previous, uint64_t parameter, unsigned shift,
				     const uint64_t *v, size_t count, uint64_t *r)
{
	uint64_t any = 0;
	if (shift == 0)
		DIFFERENCES(-, d - parameter);
	else
		DIFFERENCES(-, (uint64_t)((int64_t)d >> shift) - parameter);
	return any;
}

TARGET static uint64_t loop_xor(uint64_t previous, unsigned shift, const uint64_t *v, size_t count,
				uint64_t *r)
{
	uint64_t any = 0;
	DIFFERENCES(^, d >> shift);
	return any;
}

TARGET static uint64_t loop_delta2(struct pattern_carry *carry, unsigned shift, const uint64_t *v,
				   size_t count, uint64_t *r)
{
	uint64_t any = 0, previous = carry->value, difference = carry->difference;
	for (size_t i = 0; i < count; i++) {
		uint64_t d = v[i] - previous, dd = d - difference;
		any |= dd;
		r[i] = zigzag_encode((int64_t)dd >> shift);
		previous = v[i];
		difference = d;
	}
	carry->difference = difference;
	return any;
}

TARGET static uint64_t to_residuals(const struct pattern_codec *codec, struct pattern_carry *carry,
				    const uint64_t *v, size_t count, uint64_t *r)
{
	uint64_t any = 0, previous = carry->value;
	unsigned shift = codec->shift;
	if (!count)
		return 0;
	switch (codec->codec) {
	case CODEC_FOR:
		any = loop_for(codec->anchor, shift, v, count, r);
		break;
	case CODEC_DELTA:
		any = loop_delta(previous, shift, v, count, r);
		break;
	case CODEC_DELTA_UP:
		any = loop_delta_up(previous, codec->parameter, shift, v, count, r);
		break;
	case CODEC_DELTA2:
		any = loop_delta2(carry, shift, v, count, r);
		break;
	default: /* CODEC_XOR */
		any = loop_xor(previous, shift, v, count, r);
		break;
	}
	carry->value = v[count - 1];
	return any & low_mask(shift);
}

/* Halves of the integers are added, so that 64 bits hold the sum of 2^31 of them. */
TARGET static void add_range(struct pattern_range *range, uint64_t first, uint64_t flip,
			     const uint64_t *patterns, size_t count)
{
	/* Compared as signed, which every vector unit can do: the top bit is turned once more. */
	const uint64_t top = UINT64_C(1) << 63;
	int64_t low = (int64_t)(range->low ^ top), high = (int64_t)(range->high ^ top);
	uint64_t varies = 0, low_halves = 0, high_halves = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t ordered = patterns[i] ^ flip;
		int64_t compared = (int64_t)(ordered ^ top);
		low = compared < low ? compared : low;
		high = compared > high ? compared : high;
		varies |= patterns[i] ^ first;
		low_halves += (uint32_t)ordered;
		high_halves += ordered >> 32;
	}
	range->low = (uint64_t)low ^ top;
	range->high = (uint64_t)high ^ top;
	range->varies |= varies;
	range->total += ((__int128)high_halves << 32) + low_halves;
}

TARGET static void decimals_to_bits(uint64_t *values, size_t count, unsigned exponent)
{
	double power = decimal_power(exponent);
	if (exponent == 0) {
		for (size_t i = 0; i < count; i++)
			values[i] = decimal_bits(decimal_double(values[i]));
		return;
	}
	for (size_t i = 0; i < count; i++)
		values[i] = decimal_bits(decimal_double(values[i]) / power);
}

/* Sixteen at a time, whether they fit or not; then those up to the first that does not. */
TARGET static size_t decimals_from_bits(const uint64_t *bits, size_t count, unsigned exponent,
					uint64_t *m)
{
	size_t done = 0;
	double power = decimal_power(exponent);
	for (; done + 16 <= count; done += 16) {
		uint64_t wrong = 0;
		for (size_t i = done; i < done + 16; i++) {
			double scaled = decimal_of_bits(bits[i]) * power;
			m[i] = decimal_round(scaled);
			wrong |= decimal_bits(decimal_double(m[i]) / power) ^ bits[i];
			wrong |= !(scaled >= -DECIMAL_M_MAX) | !(scaled <= DECIMAL_M_MAX);
		}
		if (wrong)
			break;
	}
	while (done < count && decimal_from_bits(bits[done], exponent, &m[done]))
		done++;
	return done;
}
