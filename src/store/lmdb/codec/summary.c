#include "store/lmdb/codec/summary.h"

#include <math.h>

#include "store/lmdb/codec/kernels.h"
#include "store/lmdb/codec/stream.h"
#include "store/store.h"

void block_summary_total(struct block_summary *summary)
{
	summary->sum = (double)summary->integers + store_sum(summary->doubles, summary->scaled);
}

static double scaled_of(double doubles, double scaled)
{
	return isfinite(doubles) ? doubles * 0x1p-64 : scaled;
}

/* ---- From values ---------------------------------------------------------------------------- */

static bool is_nan(struct value v)
{
	return v.type == VALUE_F64 && isnan(value_as_f64(v));
}

static void summary_fold_min_max(struct block_summary *s, struct value min, struct value max)
{
	if (s->min.type == VALUE_NONE || value_compare(min, s->min) < 0)
		s->min = min;
	if (s->max.type == VALUE_NONE || value_compare(max, s->max) > 0)
		s->max = max;
}

static void add_to_sum(struct block_summary *s, struct value v)
{
	if (v.type == VALUE_F64)
		s->doubles += value_as_f64(v);
	else
		s->integers += v.type == VALUE_I64 ? (__int128)(int64_t)v.bits : (__int128)v.bits;
}

static void add_value(struct block_summary *s, int64_t ts_ms, struct value v)
{
	if (v.type == VALUE_NONE)
		return;
	if (s->count++ == 0) {
		s->first = v;
		s->first_ts_ms = ts_ms;
	}
	s->last = v;
	s->last_ts_ms = ts_ms;
	add_to_sum(s, v);
	if (!is_nan(v))
		summary_fold_min_max(s, v, v);
}

static void set_ends(const int64_t *ts_ms, const uint64_t *bits, enum value_type type, size_t count,
		     struct block_summary *s)
{
	s->count = count;
	s->first = (struct value){bits[0], type};
	s->last = (struct value){bits[count - 1], type};
	if (ts_ms) {
		s->first_ts_ms = ts_ms[0];
		s->last_ts_ms = ts_ms[count - 1];
	}
}

static void summarise_f64(const uint64_t *bits, size_t count, struct block_summary *s)
{
	double sum = 0;
	const uint64_t *min = NULL, *max = NULL;
	double low = 0, high = 0;
	for (size_t i = 0; i < count; i++) {
		double d;
		memcpy(&d, &bits[i], 8);
		sum += d;
		if (isnan(d))
			continue;
		if (!min || d < low) {
			min = &bits[i];
			low = d;
		}
		if (!max || d > high) {
			max = &bits[i];
			high = d;
		}
	}
	s->doubles = sum;
	if (min) {
		s->min = (struct value){*min, VALUE_F64};
		s->max = (struct value){*max, VALUE_F64};
	}
}

static void summary_integers(const uint64_t *bits, enum value_type type, size_t count,
			     struct block_summary *s)
{
	uint64_t flip = type == VALUE_I64 ? UINT64_C(1) << 63 : 0;
	struct pattern_range range = {.low = UINT64_MAX};
	kernels->add_range(&range, bits[0], flip, bits, count);
	s->integers = range.total - (__int128)count * (__int128)flip;
	s->min = (struct value){range.low ^ flip, type};
	s->max = (struct value){range.high ^ flip, type};
}

/* After the sum of the doubles has overflowed on its way. */
static void sum_scaled(const uint64_t *bits, const uint8_t *types, size_t count,
		       struct block_summary *s)
{
	s->scaled = 0;
	for (size_t i = 0; i < count; i++) {
		if (!types || types[i] == VALUE_F64)
			s->scaled += value_as_f64((struct value){bits[i], VALUE_F64}) * 0x1p-64;
	}
}

/* Each equals the one before it. */
static bool summary_one_type(const uint8_t *types, size_t count)
{
	return count && memcmp(types, types + 1, count - 1) == 0;
}

void block_summarise(const int64_t *ts_ms, const uint64_t *bits, const uint8_t *types,
		     enum value_type type, size_t count, struct block_summary *summary)
{
	*summary = (struct block_summary){.count = 0};
	if (types && summary_one_type(types, count)) {
		type = (enum value_type)types[0];
		types = NULL;
	}
	if (types) {
		for (size_t i = 0; i < count; i++)
			add_value(summary, ts_ms ? ts_ms[i] : 0,
				  (struct value){bits[i], (enum value_type)types[i]});
	} else if (type != VALUE_NONE && count) {
		set_ends(ts_ms, bits, type, count, summary);
		if (type == VALUE_F64)
			summarise_f64(bits, count, summary);
		else
			summary_integers(bits, type, count, summary);
	}
	if (UNLIKELY(!isfinite(summary->doubles)))
		sum_scaled(bits, types, count, summary);
	block_summary_total(summary);
}

void block_summary_merge(struct block_summary *into, const struct block_summary *later)
{
	if (!later->count)
		return;
	if (!into->count) {
		*into = *later;
		return;
	}
	into->count += later->count;
	into->last = later->last;
	into->last_ts_ms = later->last_ts_ms;
	into->integers += later->integers;
	double before = into->doubles;
	into->doubles += later->doubles;
	if (UNLIKELY(!isfinite(into->doubles)))
		into->scaled =
			scaled_of(before, into->scaled) + scaled_of(later->doubles, later->scaled);
	if (later->min.type != VALUE_NONE)
		summary_fold_min_max(into, later->min, later->max);
	block_summary_total(into);
}

/* ---- Stored: integers ----------------------------------------------------------------------- */

/* A sum of 2^14 differences of 64 bits, with its sign: 79 bits. What a damaged one may hold is
 * small enough that adding up every block on earth cannot overflow. */
enum { VARINT128_MAX_BYTES = 12 };

static unsigned __int128 zigzag128(__int128 n)
{
	return ((unsigned __int128)n << 1) ^ (unsigned __int128)(n >> 127);
}

static size_t varint128_bytes(unsigned __int128 n)
{
	size_t bytes = 1;
	for (; n >= 0x80; n >>= 7)
		bytes++;
	return bytes;
}

static uint8_t *varint128_put(uint8_t *to, unsigned __int128 n)
{
	for (; n >= 0x80; n >>= 7)
		*to++ = (uint8_t)((uint8_t)n | 0x80);
	*to++ = (uint8_t)n;
	return to;
}

static __int128 zigzag128_read(struct cursor *c)
{
	unsigned __int128 n = 0;
	for (unsigned i = 0; i < VARINT128_MAX_BYTES; i++) {
		uint8_t byte = cursor_u8(c);
		n |= (unsigned __int128)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80))
			return (__int128)(n >> 1) ^ -(__int128)(n & 1);
	}
	c->bad = true;
	return 0;
}

static uint64_t summary_zigzag_between(uint64_t from, uint64_t to)
{
	return zigzag_encode((int64_t)(to - from));
}

size_t integer_summary_bytes(const struct integer_summary *s)
{
	return varint_bytes(s->first - s->low) + varint_bytes(s->high - s->first) +
	       varint_bytes(summary_zigzag_between(s->first, s->last)) +
	       varint128_bytes(zigzag128(s->deviation));
}

uint8_t *integer_summary_put(const struct integer_summary *s, uint8_t *to)
{
	to += varint_put(to, s->first - s->low);
	to += varint_put(to, s->high - s->first);
	to += varint_put(to, summary_zigzag_between(s->first, s->last));
	return varint128_put(to, zigzag128(s->deviation));
}

void integer_summary_read(struct cursor *c, struct integer_summary *s)
{
	s->low = s->first - cursor_varint(c);
	s->high = s->first + cursor_varint(c);
	s->last = s->first + (uint64_t)zigzag_decode(cursor_varint(c));
	s->deviation = zigzag128_read(c);
}

static struct value value_of(uint64_t pattern, enum value_type type, unsigned exponent)
{
	if (type == VALUE_F64)
		kernels->decimals_to_bits(&pattern, 1, exponent);
	return (struct value){pattern, type};
}

void integer_summary_expand(const struct integer_summary *s, enum value_type type,
			    unsigned exponent, struct block_summary *summary)
{
	__int128 first = type == VALUE_U64 ? (__int128)s->first : (__int128)(int64_t)s->first;
	__int128 sum = first * (__int128)summary->count + s->deviation;
	summary->first = value_of(s->first, type, exponent);
	summary->min = value_of(s->low, type, exponent);
	summary->max = value_of(s->high, type, exponent);
	summary->last = value_of(s->last, type, exponent);
	summary->integers = type == VALUE_F64 ? 0 : sum;
	summary->doubles = type == VALUE_F64 ? (double)sum / decimal_power(exponent) : 0;
	block_summary_total(summary);
}

/* ---- Stored: everything else ---------------------------------------------------------------- */

static uint8_t *u64_put(uint8_t *to, uint64_t bits)
{
	memcpy(to, &bits, 8);
	return to + 8;
}

/* A minimum of type NONE in a column of doubles: all were NaN, and a NaN says so. */
#define NAN_BITS UINT64_C(0x7ff8000000000000)

static uint64_t bits_or_nan(struct value v)
{
	return v.type == VALUE_NONE ? NAN_BITS : v.bits;
}

uint8_t *wide_summary_put(const struct block_summary *s, bool mixed, bool with_first, uint8_t *to)
{
	uint64_t sum;
	memcpy(&sum, &s->sum, 8);
	if (mixed)
		*to++ = (uint8_t)(s->min.type | s->max.type << 2 | s->first.type << 4 |
				  s->last.type << 6);
	to = u64_put(to, bits_or_nan(s->min));
	to = u64_put(to, bits_or_nan(s->max));
	to = u64_put(to, s->last.bits);
	to = u64_put(to, sum);
	return with_first ? u64_put(to, s->first.bits) : to;
}

static struct value value_or_none(uint64_t bits, enum value_type type)
{
	struct value v = {bits, type};
	return type == VALUE_NONE || is_nan(v) ? (struct value){0, VALUE_NONE} : v;
}

int wide_summary_read(struct cursor *c, bool mixed, bool with_first, struct block_summary *summary)
{
	/* Without that byte all four are f64. */
	uint8_t types = mixed ? cursor_u8(c) : 0x55;
	uint64_t min = cursor_u64(c), max = cursor_u64(c), last = cursor_u64(c);
	uint64_t sum = cursor_u64(c);
	summary->min = value_or_none(min, (enum value_type)(types & 3));
	summary->max = value_or_none(max, (enum value_type)(types >> 2 & 3));
	summary->last = (struct value){last, (enum value_type)(types >> 6)};
	summary->first.type = (enum value_type)(types >> 4 & 3);
	if (with_first)
		summary->first.bits = cursor_u64(c);
	memcpy(&summary->doubles, &sum, 8);
	summary->scaled = summary->doubles;
	summary->integers = 0;
	block_summary_total(summary);
	if (summary->first.type == VALUE_NONE || summary->last.type == VALUE_NONE)
		return ERR_DAMAGED;
	return c->bad ? ERR_DAMAGED : 0;
}
