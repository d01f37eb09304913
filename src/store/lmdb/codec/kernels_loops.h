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

TARGET static void survey_ends(const uint64_t *v, size_t count, uint64_t flip,
			       struct pattern_survey *s)
{
	/* Compared as signed, which every vector unit can do. */
	const uint64_t top = UINT64_C(1) << 63;
	int64_t low = INT64_MAX, high = INT64_MIN;
	for (size_t i = 0; i < count; i++) {
		int64_t ordered = (int64_t)(v[i] ^ flip ^ top);
		low = ordered < low ? ordered : low;
		high = ordered > high ? ordered : high;
	}
	s->low = (uint64_t)low ^ top;
	s->high = (uint64_t)high ^ top;
}

TARGET static void survey_steps(const uint64_t *v, size_t steps, struct pattern_survey *s)
{
	int64_t least = INT64_MAX, most = INT64_MIN, least_up = INT64_MAX, downs = 0;
	for (size_t i = 0; i < steps; i++) {
		int64_t d = (int64_t)(v[i + 1] - v[i]), down = d < 0 ? -1 : 0;
		/* A negative one becomes the greatest there is. */
		int64_t up = (d & ~down) | (down & INT64_MAX);
		least = d < least ? d : least;
		most = d > most ? d : most;
		least_up = up < least_up ? up : least_up;
		downs -= down;
	}
	s->least = least;
	s->most = most;
	s->least_up = least_up;
	s->downs = (size_t)downs;
}

TARGET static void survey_bits(const uint64_t *v, size_t steps, struct pattern_survey *s)
{
	uint64_t any = 0, xors = 0, zigzags = 0, zigzags2 = 0;
	for (size_t i = 0; i < steps; i++) {
		uint64_t d = v[i + 1] - v[i];
		any |= d;
		xors |= v[i + 1] ^ v[i];
		zigzags |= d << 1 ^ ((int64_t)d < 0 ? UINT64_MAX : 0);
	}
	/* From the patterns again: differences that were just stored would have to be waited for.
	 */
	for (size_t i = 0; i + 1 < steps; i++) {
		uint64_t d = v[i + 2] - 2 * v[i + 1] + v[i];
		zigzags2 |= d << 1 ^ ((int64_t)d < 0 ? UINT64_MAX : 0);
	}
	s->differences = any;
	s->xors = xors;
	s->zigzags = zigzags;
	s->zigzags2 = zigzags2;
}

TARGET static void survey(const uint64_t *v, size_t count, uint64_t flip, struct pattern_survey *s)
{
	*s = (struct pattern_survey){.count = count, .first = v[0]};
	survey_ends(v, count, flip, s);
	if (count < 2)
		return;
	s->first_difference = v[1] - v[0];
	survey_steps(v, count - 1, s);
	survey_bits(v, count - 1, s);
}

TARGET static unsigned count_few(const uint64_t *values, size_t count, uint16_t *histogram)
{
	uint64_t any = 0;
	for (size_t i = 0; i < count; i++) {
		histogram[bit_width(values[i])]++;
		any |= values[i];
	}
	return bit_width(any);
}

/* Four histograms side by side, so that equal neighbours do not wait for each other's increment. */
TARGET static unsigned count_any(const uint64_t *values, size_t count, uint16_t *histogram)
{
	uint8_t part[4][72];
	uint64_t any = 0;
	size_t i = 0;
	if (count < 32)
		return count_few(values, count, histogram);
	memset(part, 0, sizeof(part));
	for (; i + 4 <= count; i += 4) {
		part[0][bit_width(values[i])]++;
		part[1][bit_width(values[i + 1])]++;
		part[2][bit_width(values[i + 2])]++;
		part[3][bit_width(values[i + 3])]++;
		any |= values[i] | values[i + 1] | values[i + 2] | values[i + 3];
	}
	for (; i < count; i++) {
		part[0][bit_width(values[i])]++;
		any |= values[i];
	}
	unsigned top = bit_width(any);
	for (unsigned w = 0; w <= top; w++)
		histogram[w] = (uint16_t)(histogram[w] + part[0][w] + part[1][w] + part[2][w] +
					  part[3][w]);
	return top;
}

/* Halves of the integers are added, so that 64 bits hold the sum of 2^31 of them. */
TARGET static void loop_add_range(struct pattern_range *range, uint64_t first, uint64_t flip,
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

/* So many look-ups are made of one load. The bit on top of it, which moves down with the others,
 * then tells how many bits they took. */
enum {
	LOOK_UPS = 4,
	LOOK_UPS_BITS = LOOK_UPS * ENTROPY_LOOKUP_BITS,
	LOOK_UPS_WORDS = LOOK_UPS * ENTROPY_ENTRY_WORDS,
};

TARGET static inline __attribute__((always_inline)) uint64_t load_bits(const uint8_t *from,
								       size_t bit)
{
	uint64_t bits;
	memcpy(&bits, from + bit / 8, 8);
	return bits >> bit % 8 | UINT64_C(1) << 63;
}

/* What is left of the bits. */
TARGET static inline __attribute__((always_inline)) uint64_t
loop_look_up(const uint32_t *lookup, uint64_t bits, uint8_t **to)
{
	uint32_t entry = lookup[bits & ((1 << ENTROPY_LOOKUP_BITS) - 1)];
	uint32_t words = entry >> 6 | entry << 26;
	memcpy(*to, &words, 4);
	*to += entry >> 30;
	return bits >> (entry & 63);
}

TARGET static void loop_read_words(const struct entropy_code *code, const uint8_t *from,
				   struct word_lane *of)
{
	struct word_lane lane = *of;
	for (bool fits = true; fits;) {
		uint64_t bits = load_bits(from, lane.bit);
		for (int i = 0; i < LOOK_UPS; i++) {
			uint32_t entry = code->lookup[bits & ((1 << ENTROPY_LOOKUP_BITS) - 1)];
			fits = entry && lane.bit + (entry & 63) <= lane.end &&
			       lane.to + (entry >> 30) <= lane.to_end;
			if (!fits)
				break;
			bits = loop_look_up(code->lookup, bits, &lane.to);
			lane.bit += entry & 63;
		}
	}
	*of = lane;
}

/* How often four look-ups have room for their words. */
static inline size_t rounds_of(const struct word_lane *lane)
{
	return (size_t)(lane->to_end - lane->to) / LOOK_UPS_WORDS;
}

static inline size_t least_rounds(const struct word_lane lanes[ENTROPY_LANES])
{
	size_t least = rounds_of(&lanes[0]);
	for (unsigned i = 1; i < ENTROPY_LANES; i++)
		least = rounds_of(&lanes[i]) < least ? rounds_of(&lanes[i]) : least;
	return least;
}

/* A look-up waits for the one before it, but not for those of the other lanes. */
TARGET static bool loop_read_lanes(const struct entropy_code *code, const uint8_t *from,
				   struct word_lane lanes[ENTROPY_LANES])
{
	const uint32_t *lookup = code->lookup;
	struct word_lane a = lanes[0], b = lanes[1], c = lanes[2];
	bool stuck = false;
	for (size_t rounds = least_rounds(lanes);
	     rounds && !stuck && a.bit + LOOK_UPS_BITS <= a.end && b.bit + LOOK_UPS_BITS <= b.end &&
	     c.bit + LOOK_UPS_BITS <= c.end;
	     rounds--) {
		uint64_t x = load_bits(from, a.bit);
		uint64_t y = load_bits(from, b.bit);
		uint64_t z = load_bits(from, c.bit);
		for (int i = 0; i < LOOK_UPS; i++) {
			x = loop_look_up(lookup, x, &a.to);
			y = loop_look_up(lookup, y, &b.to);
			z = loop_look_up(lookup, z, &c.to);
		}
		a.bit += (size_t)__builtin_clzll(x);
		b.bit += (size_t)__builtin_clzll(y);
		c.bit += (size_t)__builtin_clzll(z);
		stuck = (x | y | z) >> 63;
	}
	lanes[0] = a;
	lanes[1] = b;
	lanes[2] = c;
	return stuck;
}

/* A symbol as the difference it stands for. */
static inline int64_t symbol_value(const uint8_t *pairs, size_t at, bool zigzag)
{
	unsigned symbol = pairs[at / 2] >> 4 * (at % 2) & 15;
	return zigzag ? zigzag_decode(symbol) : symbol;
}

TARGET static void add_symbols(const uint64_t *symbols, size_t count, unsigned low_bits,
			       uint64_t *values)
{
	for (size_t i = 0; i < count; i++)
		values[i] |= symbols[i] << low_bits;
}

TARGET static void about_centre(uint64_t *values, size_t count, uint64_t centre)
{
	for (size_t i = 0; i < count; i++)
		values[i] = centre + ((values[i] >> 1) ^ (0 - (values[i] & 1)));
}
