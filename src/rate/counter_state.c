/* The states of some counters as bytes: those of one interface, which have most in common, so field
 * by field.
 *
 *  u8 version
 *  u8 number of periods
 *  numbers (numbers.h), one of each counter: what is there (bit 0 anything, 1 uptime, 2
 * discontinuity); ts_ms, value, uptime ticks, their offset, discontinuity ticks, speed in Mbit/s;
 * version 2 has no speed: it is unknown
 *  per level: numbers of flags, val, unplaced, covered, count; the offset follows from ts_ms
 *  per period: numbers of min and max, as bits of f64, and of their offsets
 */
#include <math.h>

#include "base/cursor.h"
#include "rate/counter.h"
#include "rate/numbers.h"

enum { STATE_VERSION = 3, STATE_VERSION_SPEEDLESS = 2 };
enum { STATE_KNOWN = 1, STATE_UPTIME = 2, STATE_DISCONTINUITY = 4, STATE_ALL = 7 };

/* All but the flags, which are few bytes for much; in the order in which they are written. */
struct state_field {
	uint16_t offset;
	uint8_t bytes;
};

#define FIELD(type, member)                                                                        \
	{                                                                                          \
		offsetof(struct type, member), sizeof(((struct type *)NULL)->member)               \
	}

static const struct state_field of_counter[] = {
	FIELD(counter, last.ts_ms),
	FIELD(counter, value),
	FIELD(counter, last.uptime_ticks),
	FIELD(counter, last.uptime_offset_ms),
	FIELD(counter, last.discontinuity_ticks),
	FIELD(counter, last.speed_mbit),
};
static const struct state_field of_open[] = {
	FIELD(counter_open, flags),      FIELD(counter_open, val),   FIELD(counter_open, unplaced),
	FIELD(counter_open, covered_ms), FIELD(counter_open, count),
};
static const struct state_field of_extremes[] = {
	FIELD(counter_extremes, min),
	FIELD(counter_extremes, max),
	FIELD(counter_extremes, min_offset_ms),
	FIELD(counter_extremes, max_offset_ms),
};

enum {
	STATE_FIELDS_MAX = 1 + ARRAY_LEN(of_counter) + COUNTER_LEVELS_MAX * ARRAY_LEN(of_open) +
			   COUNTER_PERIODS_MAX * ARRAY_LEN(of_extremes),
};

/* ---- Writing -------------------------------------------------------------------------------- */

/* The field that lies `at` bytes into each of the counters. A loop for each size, without a choice
 * inside. */
static void load_field(const struct counter *const *counters, size_t count, size_t at, size_t bytes,
		       uint64_t *numbers)
{
	if (bytes == sizeof(uint8_t)) {
		for (size_t i = 0; i < count; i++)
			numbers[i] = *((const uint8_t *)counters[i] + at);
	} else if (bytes == sizeof(uint32_t)) {
		for (size_t i = 0; i < count; i++) {
			uint32_t four;
			memcpy(&four, (const uint8_t *)counters[i] + at, sizeof(four));
			numbers[i] = four;
		}
	} else {
		for (size_t i = 0; i < count; i++)
			memcpy(&numbers[i], (const uint8_t *)counters[i] + at, sizeof(*numbers));
	}
}

/* Of each counter the fields of the struct that lies `base` bytes into it. */
static uint8_t *put_fields(uint8_t *to, const struct counter *const *counters, size_t count,
			   size_t base, const struct state_field *fields, size_t field_count)
{
	uint64_t numbers[NUMBERS_MAX];
	for (const struct state_field *f = fields; f < fields + field_count; f++) {
		load_field(counters, count, base + f->offset, f->bytes, numbers);
		to = numbers_put(to, numbers, count);
	}
	return to;
}

static uint8_t *put_what(uint8_t *to, const struct counter *const *counters, size_t count)
{
	uint64_t numbers[NUMBERS_MAX];
	for (size_t i = 0; i < count; i++)
		numbers[i] = (counters[i]->known ? STATE_KNOWN : 0u) |
			     (counters[i]->last.has_uptime ? STATE_UPTIME : 0u) |
			     (counters[i]->last.has_discontinuity ? STATE_DISCONTINUITY : 0u);
	return numbers_put(to, numbers, count);
}

int counter_encode(const struct counter_config *config, const struct counter *const *counters,
		   size_t count, struct buf *out)
{
	uint8_t *begin = (uint8_t *)buf_reserve(out, 2 + STATE_FIELDS_MAX * numbers_room(count));
	uint8_t *to = begin;
	if (!begin)
		return ERR_LIMIT;
	*to++ = STATE_VERSION;
	*to++ = (uint8_t)config->period_count;
	to = put_what(to, counters, count);
	to = put_fields(to, counters, count, 0, of_counter, ARRAY_LEN(of_counter));
	for (size_t level = 0; level <= config->period_count; level++)
		to = put_fields(to, counters, count, offsetof(struct counter, open[level]), of_open,
				ARRAY_LEN(of_open));
	for (size_t i = 0; i < config->period_count; i++)
		to = put_fields(to, counters, count, offsetof(struct counter, extremes[i]),
				of_extremes, ARRAY_LEN(of_extremes));
	out->len += (size_t)(to - begin);
	return 0;
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* As load_field; where all are the same there is one number, which is the one at `i & of` = 0.
 * False: one does not fit. */
static bool store_field(struct counter *const *counters, size_t count, size_t at, size_t bytes,
			const uint64_t *numbers, size_t of)
{
	uint64_t all = 0;
	if (bytes == sizeof(uint8_t)) {
		for (size_t i = 0; i < count; i++) {
			all |= numbers[i & of] >> 8;
			*((uint8_t *)counters[i] + at) = (uint8_t)numbers[i & of];
		}
	} else if (bytes == sizeof(uint32_t)) {
		for (size_t i = 0; i < count; i++) {
			uint32_t four = (uint32_t)numbers[i & of];
			all |= numbers[i & of] >> 32;
			memcpy((uint8_t *)counters[i] + at, &four, sizeof(four));
		}
	} else {
		for (size_t i = 0; i < count; i++)
			memcpy((uint8_t *)counters[i] + at, &numbers[i & of], sizeof(*numbers));
	}
	return !all;
}

static void take_fields(struct cursor *from, struct counter *const *counters, size_t count,
			size_t base, const struct state_field *fields, size_t field_count)
{
	uint64_t numbers[NUMBERS_MAX];
	for (const struct state_field *f = fields; f < fields + field_count; f++) {
		size_t of = numbers_take(from, numbers, count) ? 0 : SIZE_MAX;
		from->bad |= !store_field(counters, count, base + f->offset, f->bytes, numbers, of);
	}
}

static void take_what(struct cursor *from, struct counter *const *counters, size_t count)
{
	uint64_t numbers[NUMBERS_MAX];
	size_t of = numbers_take(from, numbers, count) ? 0 : SIZE_MAX;
	for (size_t i = 0; i < count; i++) {
		uint64_t what = numbers[i & of];
		counters[i]->known = what & STATE_KNOWN;
		counters[i]->last.has_uptime = what & STATE_UPTIME;
		counters[i]->last.has_discontinuity = what & STATE_DISCONTINUITY;
		from->bad |= what > STATE_ALL || (what && !counters[i]->known);
	}
}

static bool open_is_sound(const struct counter_open *open, int64_t width)
{
	return open->flags <= COUNTER_FLAGS && open->covered_ms <= width &&
	       open->count <= width + 1;
}

/* Nobody wrote a rate that cannot be; none is a least one above the largest. */
static bool extremes_are_sound(const struct counter_extremes *of, int64_t width)
{
	if (of->min == INFINITY && of->max == -INFINITY)
		return !of->min_offset_ms && !of->max_offset_ms;
	return of->min >= 0 && of->min <= of->max && of->max <= (double)UINT64_MAX * 1000.0 &&
	       of->min_offset_ms < width && of->max_offset_ms < width;
}

static bool are_sound(struct counter *const *counters, size_t count, size_t level, int64_t width)
{
	bool sound = true;
	for (size_t i = 0; i < count; i++) {
		const struct counter *c = counters[i];
		sound &= !c->known ||
			 (c->last.ts_ms <= COUNTER_TS_MAX && c->last.ts_ms >= -COUNTER_TS_MAX &&
			  open_is_sound(&c->open[level], width) &&
			  (!level || extremes_are_sound(&c->extremes[level - 1], width)));
	}
	return sound;
}

static void counter_state_take_last(struct cursor *from, struct counter *const *counters,
				    size_t count, uint8_t version)
{
	bool speedless = version == STATE_VERSION_SPEEDLESS;
	take_fields(from, counters, count, 0, of_counter, ARRAY_LEN(of_counter) - speedless);
	for (size_t i = 0; speedless && i < count; i++)
		counters[i]->last.speed_mbit = 0;
}

/* What follows from the time of the last sample. */
static void set_offsets(const struct counter_config *config, struct counter *const *counters,
			size_t count)
{
	for (size_t level = 0; level <= config->period_count; level++) {
		int64_t width = counter_level_ms(config, level), ts_ms = INT64_MIN;
		uint32_t offset_ms = 0;
		for (size_t i = 0; i < count; i++) {
			if (counters[i]->last.ts_ms != ts_ms) {
				ts_ms = counters[i]->last.ts_ms;
				offset_ms = (uint32_t)(ts_ms - floor_to(ts_ms, width));
			}
			counters[i]->last.offset_ms[level] = offset_ms;
		}
	}
}

int counter_decode(const struct counter_config *config, struct cursor *from,
		   struct counter *const *counters, size_t count)
{
	uint8_t version = cursor_u8(from), periods = cursor_u8(from);
	if (!from->bad && version > STATE_VERSION)
		return ERR_VERSION;
	if (version < STATE_VERSION_SPEEDLESS || periods != config->period_count)
		from->bad = true;
	if (from->bad)
		return ERR_DAMAGED;
	take_what(from, counters, count);
	counter_state_take_last(from, counters, count, version);
	for (size_t level = 0; level <= config->period_count; level++)
		take_fields(from, counters, count, offsetof(struct counter, open[level]), of_open,
			    ARRAY_LEN(of_open));
	for (size_t i = 0; i < config->period_count; i++)
		take_fields(from, counters, count, offsetof(struct counter, extremes[i]),
			    of_extremes, ARRAY_LEN(of_extremes));
	for (size_t level = 0; level <= config->period_count && !from->bad; level++)
		from->bad = !are_sound(counters, count, level, counter_level_ms(config, level));
	if (from->bad)
		return ERR_DAMAGED;
	set_offsets(config, counters, count);
	return 0;
}
