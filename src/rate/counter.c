/* Deltas, and how they come to lie in slots.
 *
 * The order of events in a feed: is the sample in order; what is the delta to the one before, or is
 * the interval lost; then the delta goes to every level. Inside one level the state knows how far
 * into its open slot the last sample lay, so that nothing is divided as long as the next sample
 * lies in the same slot. At an edge the slot is emitted and the next one opened.
 *
 * Failure modes are all the device's: counters that fall, jump, repeat or stand still, clocks that
 * go back. None of them may make growth that was not there, or cost more than the interval in which
 * it happened. */
#include "rate/counter.h"

#include <math.h>

#define TICK_MS       INT64_C(10)
#define TICKS_WRAP_MS (TICK_MS << 32)
/* How much the device's clock and ours may differ over an interval, and polls from each other. */
#define UPTIME_SLACK_MS INT64_C(60000)
/* Agents keep counters for some seconds: within so short a time the rate says nothing. */
#define RATE_SPAN_MIN_MS INT64_C(30000)
/* A delta of more than half of what 64 bits hold is none; so sums of them stay within 64 bits. */
#define DELTA_MAX (UINT64_MAX >> 1)

__extension__ typedef unsigned __int128 wide;

struct delta {
	uint64_t growth;
	int64_t span_ms;
	uint8_t flags;
	bool gap;
};

static inline int64_t level_ms(const struct counter_config *config, size_t level)
{
	return level ? config->periods_ms[level - 1] : config->base_ms;
}

int64_t counter_level_ms(const struct counter_config *config, size_t level)
{
	return level_ms(config, level);
}

int64_t counter_widest_ms(const struct counter_config *config)
{
	int64_t widest_ms = 0;

	for (size_t level = 0; level <= config->period_count; level++)
		if (counter_level_ms(config, level) > widest_ms)
			widest_ms = counter_level_ms(config, level);
	return widest_ms;
}

int counter_config_check(const struct counter_config *config, struct errbuf *e)
{
	if (config->base_ms < 1 || config->base_ms > COUNTER_PERIOD_MAX_MS)
		return errbuf_set(e, ERR_INVALID, "a base frequency lies between 1 ms and 40 days");
	if (config->period_count > COUNTER_PERIODS_MAX)
		return errbuf_set(e, ERR_INVALID, "there may be at most %d aggregates",
				  COUNTER_PERIODS_MAX);
	for (size_t i = 0; i < config->period_count; i++) {
		if (config->periods_ms[i] < config->base_ms ||
		    config->periods_ms[i] > COUNTER_PERIOD_MAX_MS)
			return errbuf_set(e, ERR_INVALID,
					  "an aggregate lies between the base frequency and "
					  "40 days");
		for (size_t j = 0; j < i; j++)
			if (config->periods_ms[i] == config->periods_ms[j])
				return errbuf_set(e, ERR_INVALID, "an aggregate stands twice");
	}
	return 0;
}

/* ---- What happened between two samples ----------------------------------------------------- */

/* Whether `growth` may have been counted in `span_ms`. */
static bool rate_possible(uint64_t growth, int64_t span_ms, uint64_t rate)
{
	if (rate > COUNTER_RATE_MAX)
		rate = COUNTER_RATE_MAX;
	return growth <= DELTA_MAX && (wide)growth * 1000 <= (wide)rate * (uint64_t)span_ms;
}

static uint64_t rate_of_line(const struct counter_def *def)
{
	return def->rate_max ? def->rate_max : COUNTER_RATE_UNKNOWN;
}

enum uptime { UPTIME_UNKNOWN, UPTIME_ROSE, UPTIME_FELL };

/* sysUpTime is itself a counter of 32 bits, which begins anew every 497 days. It fell if the device
 * can have started since the last poll; it rose if it went on, be it over that edge. A clock that
 * steps back a little did neither. */
static enum uptime uptime_of(const struct counter *last, const struct counter_sample *now)
{
	int64_t elapsed, slack, went_on, since_start;

	if (!last->has_uptime || !now->has_uptime || last->uptime_ticks == now->uptime_ticks)
		return UPTIME_UNKNOWN;
	elapsed = now->uptime_ts_ms - (last->ts_ms + last->uptime_offset_ms);
	if (elapsed <= 0 || elapsed >= TICKS_WRAP_MS)
		return UPTIME_UNKNOWN;
	slack = UPTIME_SLACK_MS + elapsed / 16;
	went_on = (int64_t)(uint32_t)(now->uptime_ticks - last->uptime_ticks) * TICK_MS;
	if (went_on <= elapsed + slack && went_on >= elapsed - slack)
		return UPTIME_ROSE;
	since_start = (int64_t)now->uptime_ticks * TICK_MS;
	if (since_start <= elapsed + slack &&
	    (now->uptime_ticks < last->uptime_ticks || since_start < elapsed - slack))
		return UPTIME_FELL;
	return now->uptime_ticks > last->uptime_ticks ? UPTIME_ROSE : UPTIME_UNKNOWN;
}

static bool discontinuity_moved(const struct counter *last, const struct counter_sample *now)
{
	return last->has_discontinuity && now->has_discontinuity &&
	       last->discontinuity_ticks != now->discontinuity_ticks;
}

/* A counter that rose counted, and at least that much even if the device began anew and passed its
 * old value since (most that say so only restarted their agent). The speed that an interface claims
 * is often wrong, so a rise is refused only if no interface can do it. */
static enum counter_outcome judge_rise(const struct counter_def *def, const struct counter *last,
				       const struct counter_sample *now, struct delta *delta)
{
	uint64_t rate = rate_of_line(def);
	int64_t span = delta->span_ms;
	bool fell = uptime_of(last, now) == UPTIME_FELL;

	delta->growth = now->value - last->value;
	if (!fell && discontinuity_moved(last, now))
		return COUNTER_LOST; /* RFC 2863: what lies between says nothing */
	if (!fell && rate < COUNTER_RATE_UNKNOWN)
		rate = COUNTER_RATE_UNKNOWN;
	if (!rate_possible(delta->growth, span < RATE_SPAN_MIN_MS ? RATE_SPAN_MIN_MS : span, rate))
		return COUNTER_LOST;
	if (fell)
		delta->flags |= COUNTER_RESET;
	return fell ? COUNTER_RESTARTED : COUNTER_COUNTED;
}

/* The growth if the counter went over its largest value once, or false. Going back by less than a
 * sixteenth of the range is no wrap: it would have had to count the other fifteen at once. */
static bool wrap_possible(const struct counter_def *def, const struct counter *last,
			  const struct counter_sample *now, struct delta *delta)
{
	uint64_t largest = def->width_bits == 32 ? UINT32_MAX : UINT64_MAX;
	uint64_t back = last->value - now->value;

	if (last->value > largest || back <= largest / 16)
		return false;
	delta->growth = largest - back + 1;
	return rate_possible(delta->growth, delta->span_ms, rate_of_line(def));
}

static enum counter_outcome judge_fall(const struct counter_def *def, const struct counter *last,
				       const struct counter_sample *now, struct delta *delta)
{
	enum uptime uptime = uptime_of(last, now);
	int64_t since_start = (int64_t)now->uptime_ticks * TICK_MS + UPTIME_SLACK_MS;

	if (uptime == UPTIME_FELL) {
		delta->growth = now->value;
		if (since_start > delta->span_ms)
			since_start = delta->span_ms;
		if (!rate_possible(delta->growth, since_start, rate_of_line(def)))
			return COUNTER_LOST;
		delta->flags |= COUNTER_RESET;
		return COUNTER_RESTARTED;
	}
	if (uptime == UPTIME_ROSE && !discontinuity_moved(last, now) &&
	    wrap_possible(def, last, now, delta)) {
		delta->flags |= COUNTER_WRAP;
		return COUNTER_WRAPPED;
	}
	return COUNTER_LOST;
}

static enum counter_outcome judge(const struct counter_def *def, const struct counter *last,
				  const struct counter_sample *now, struct delta *delta)
{
	enum counter_outcome outcome;

	delta->span_ms = now->ts_ms - last->ts_ms;
	delta->gap = delta->span_ms > COUNTER_GAP_INTERVALS * def->config->base_ms;
	delta->flags = delta->gap ? COUNTER_GAP : 0;
	outcome = now->value >= last->value ? judge_rise(def, last, now, delta)
					    : judge_fall(def, last, now, delta);
	if (outcome == COUNTER_LOST) {
		delta->growth = 0;
		delta->flags |= COUNTER_RESET;
	}
	return outcome;
}

/* ---- The split ------------------------------------------------------------------------------ */

/* n / by, for n below 2^53: a double's quotient is at most one too large, and takes a fraction of
 * the time of a division of 64-bit integers. */
static inline uint64_t quotient(uint64_t n, uint64_t by)
{
	uint64_t q = (uint64_t)(int64_t)((double)(int64_t)n / (double)(int64_t)by);

	return q - (q * by > n);
}

/* growth * part / whole; halves go up. */
static inline uint64_t share_of(uint64_t growth, uint32_t part, int64_t whole)
{
	uint64_t product, twice = 2 * (uint64_t)whole;

	if (LIKELY(!__builtin_mul_overflow(growth, 2 * (uint64_t)part, &product) &&
		   product < (UINT64_C(1) << 53) - (uint64_t)whole))
		return quotient(product + (uint64_t)whole, twice);
	return (uint64_t)(((wide)growth * part * 2 + (uint64_t)whole) / twice);
}

/* Rounding has given out too little or too much. One unit each in turn: what is missing to those
 * with the most time first, what is too much from those with the least. Of equals the first slot
 * comes first, then the last, then those between. Nothing is taken where nothing is. */
static void settle_rest(struct counter_pieces *p, int64_t rest)
{
	size_t order[COUNTER_PIECES_MAX], n = p->count;

	for (size_t i = 0; i < n; i++) {
		size_t piece = i == 0 ? 0 : i == 1 ? n - 1 : i - 1, at = i;
		uint32_t covered = p->covered_ms[piece];
		for (; at > 0; at--) {
			uint32_t before = p->covered_ms[order[at - 1]];
			if (rest > 0 ? before >= covered : before <= covered)
				break;
			order[at] = order[at - 1];
		}
		order[at] = piece;
	}
	for (size_t i = 0; rest != 0; i = (i + 1) % n) {
		if (rest > 0) {
			p->growth[order[i]]++;
			rest--;
		} else if (p->growth[order[i]] > 0) {
			p->growth[order[i]]--;
			rest++;
		}
	}
}

void counter_split(uint64_t growth, int64_t span, uint32_t offset, int64_t width,
		   struct counter_pieces *p)
{
	uint32_t first = (uint32_t)(width - offset), last;
	size_t between = 0;
	int64_t left = span - first;
	uint64_t given;

	for (; left >= width && between < COUNTER_PIECES_MAX; left -= width)
		between++;
	last = (uint32_t)left;
	p->count = between + 2;
	ASSERT(p->count <= COUNTER_PIECES_MAX);
	p->covered_ms[0] = first;
	p->growth[0] = given = share_of(growth, first, span);
	for (size_t i = 1; i <= between; i++) {
		p->covered_ms[i] = (uint32_t)width;
		p->growth[i] = i > 1 ? p->growth[1] : share_of(growth, (uint32_t)width, span);
		given += p->growth[i];
	}
	p->covered_ms[between + 1] = last;
	/* Of two shares only halves can be too much: both are rounded up. */
	p->growth[between + 1] = between ? share_of(growth, last, span) : growth - given;
	if (between) {
		given += p->growth[between + 1];
		if (given != growth)
			settle_rest(p, (int64_t)(growth - given));
	} else if (first <= last && given > 0 &&
		   UNLIKELY((wide)growth * first * 2 == (wide)(given * 2 - 1) * (uint64_t)span)) {
		p->growth[0]--;
		p->growth[1]++;
	}
}

/* ---- Slots ---------------------------------------------------------------------------------- */

/* The open slot of a level as a row. */
static inline void row_of(const struct counter *c, size_t level, int64_t start_ms,
			  struct counter_row *row)
{
	const struct counter_open *open = &c->open[level];

	*row = (struct counter_row){
		.start_ms = start_ms,
		.val = open->val,
		.unplaced = open->unplaced,
		.covered_ms = open->covered_ms,
		.count = open->count,
		.level = (uint8_t)level,
		.flags = open->flags,
	};
	if (level && c->extremes[level - 1].min <= c->extremes[level - 1].max && open->count) {
		const struct counter_extremes *of = &c->extremes[level - 1];
		row->has_rate = true;
		row->min = of->min;
		row->max = of->max;
		row->min_ts_ms = start_ms + of->min_offset_ms;
		row->max_ts_ms = start_ms + of->max_offset_ms;
	}
}

static inline void forget_extremes(struct counter *c, size_t level)
{
	if (level)
		c->extremes[level - 1] =
			(struct counter_extremes){.min = INFINITY, .max = -INFINITY};
}

static inline void open_slot(struct counter *c, size_t level, uint8_t flags)
{
	c->open[level] = (struct counter_open){.flags = flags};
	forget_extremes(c, level);
}

static inline void emit(struct counter_out *out, const struct counter *c, size_t level,
			int64_t start_ms)
{
	struct counter_row *row = &out->rows[out->count];

	row_of(c, level, start_ms, row);
	out->count += counter_row_exists(row);
}

static inline void add_piece(struct counter_open *open, const struct counter_pieces *p, size_t i,
			     uint8_t flags)
{
	open->val += p->growth[i];
	open->covered_ms += p->covered_ms[i];
	open->flags |= flags;
}

/* Most often a delta begins in one slot and ends in the next. */
static inline void place_over_edge(struct counter *c, size_t level, const struct counter_pieces *p,
				   uint8_t flags, struct counter_out *out)
{
	struct counter_open *open = &c->open[level];

	add_piece(open, p, 0, flags);
	open->count += level == 0;
	emit(out, c, level, c->ts_ms - open->offset_ms);
	open_slot(c, level, flags);
	open->val = p->growth[1];
	open->covered_ms = p->covered_ms[1];
	open->count = level == 0;
}

/* Pieces of `step` ms each, the first one in the open slot and `at` ms behind its start; `width` is
 * a multiple of `step`. */
static void place_pieces(struct counter *c, size_t level, int64_t width, int64_t step, int64_t at,
			 const struct counter_pieces *p, uint8_t flags, struct counter_out *out)
{
	int64_t start = c->ts_ms - c->open[level].offset_ms;

	for (size_t i = 0; i < p->count; i++, at += step) {
		if (at >= width) {
			emit(out, c, level, start);
			open_slot(c, level, 0);
			start += width;
			at -= width;
		}
		add_piece(&c->open[level], p, i, flags);
		c->open[level].count += level == 0;
	}
}

static inline void note_rate(struct counter_extremes *of, double rate, uint32_t offset_ms)
{
	if (rate < of->min) {
		of->min = rate;
		of->min_offset_ms = offset_ms;
	}
	if (rate > of->max) {
		of->max = rate;
		of->max_offset_ms = offset_ms;
	}
}

/* The offset of the sample in its slot. */
static inline uint32_t offset_after(uint32_t offset, int64_t span, int64_t width)
{
	int64_t after = offset + span;

	if (after < width)
		return (uint32_t)after;
	after -= width;
	return (uint32_t)(after < width ? after : after % width);
}

/* A delta without a gap, on one level. `bins` are its pieces by the base frequency, `bin_offset`
 * where it began in its bin. */
static inline void place(const struct counter_config *config, struct counter *c, size_t level,
			 const struct delta *d, const struct counter_pieces *bins,
			 uint32_t bin_offset, struct counter_out *out)
{
	struct counter_open *open = &c->open[level];
	int64_t width = level_ms(config, level);
	uint32_t offset = open->offset_ms;
	struct counter_pieces own;

	if (LIKELY(offset + d->span_ms < width)) {
		open->val += d->growth;
		open->covered_ms += (uint32_t)d->span_ms;
		open->flags |= d->flags;
		open->count += level == 0;
	} else if (LIKELY(level == 0 && bins->count == 2)) {
		place_over_edge(c, 0, bins, d->flags, out);
	} else if (level == 0 || width % config->base_ms == 0) {
		place_pieces(c, level, width, config->base_ms, (int64_t)offset - bin_offset, bins,
			     d->flags, out);
	} else {
		counter_split(d->growth, d->span_ms, offset, width, &own);
		place_pieces(c, level, width, width, 0, &own, d->flags, out);
	}
	open->offset_ms = offset_after(offset, d->span_ms, width);
	open->count += level > 0;
}

static void place_delta(const struct counter_config *config, struct counter *c,
			const struct delta *d, struct counter_out *out)
{
	uint32_t bin_offset = c->open[0].offset_ms;
	double rate = (double)d->growth * 1000.0 / (double)d->span_ms;
	struct counter_pieces bins = {.count = 1};

	bins.growth[0] = d->growth;
	bins.covered_ms[0] = (uint32_t)d->span_ms;
	if (bin_offset + d->span_ms >= config->base_ms)
		counter_split(d->growth, d->span_ms, bin_offset, config->base_ms, &bins);
	for (size_t level = 0; level <= config->period_count; level++) {
		place(config, c, level, d, &bins, bin_offset, out);
		if (level)
			note_rate(&c->extremes[level - 1], rate, c->open[level].offset_ms);
	}
}

/* ---- Gaps and losses ------------------------------------------------------------------------ */

/* Passes over `span` ms on one level: the slots in them are flagged, and hold nothing but
 * `unplaced`, which lies `unplaced_at` ms ahead. After so many empty slots the rest are left out:
 * a gap of years is as well told by what stands at its ends. */
static void skip(const struct counter_config *config, struct counter *c, size_t level,
		 int64_t from_ms, int64_t span, uint8_t flags, uint64_t unplaced,
		 int64_t unplaced_at, struct counter_out *out)
{
	struct counter_open *open = &c->open[level];
	int64_t width = level_ms(config, level);
	int64_t start = from_ms - open->offset_ms;
	int64_t holder = (open->offset_ms + unplaced_at) / width;
	int64_t last = (open->offset_ms + span) / width;

	open->flags |= flags;
	open->unplaced += holder == 0 ? unplaced : 0;
	for (int64_t i = 0; i < last && i <= COUNTER_GAP_ROWS_MAX; i++) {
		emit(out, c, level, start + i * width);
		open_slot(c, level, flags);
		open->unplaced = holder == i + 1 ? unplaced : 0;
	}
	open->offset_ms = (uint32_t)(from_ms + span - (start + last * width));
}

/* Of growth over a gap only the share of the newest bin can be placed, by time and cut off. */
static void place_over_gap(const struct counter_config *config, struct counter *c,
			   const struct delta *d, struct counter_out *out)
{
	uint32_t bin_offset = c->open[0].offset_ms;
	int64_t until_bin = floor_to(bin_offset + d->span_ms, config->base_ms) - bin_offset;
	int64_t next_bin = config->base_ms - bin_offset, from = c->ts_ms;
	struct delta share = {.span_ms = d->span_ms - until_bin, .flags = d->flags};
	struct counter_pieces bin = {.count = 1};

	share.growth = (uint64_t)((wide)d->growth * (uint64_t)share.span_ms / (uint64_t)d->span_ms);
	bin.growth[0] = share.growth;
	bin.covered_ms[0] = (uint32_t)share.span_ms;
	for (size_t level = 0; level <= config->period_count; level++) {
		skip(config, c, level, from, until_bin, d->flags, d->growth - share.growth,
		     next_bin, out);
		c->ts_ms = from + until_bin;
		place(config, c, level, &share, &bin, 0, out);
		c->ts_ms = from;
	}
}

static void pass_over_loss(const struct counter_config *config, struct counter *c,
			   const struct delta *d, struct counter_out *out)
{
	for (size_t level = 0; level <= config->period_count; level++)
		skip(config, c, level, c->ts_ms, d->span_ms, d->flags, 0, 0, out);
}

/* ---- Feeding -------------------------------------------------------------------------------- */

static inline void remember(struct counter *c, const struct counter_sample *s)
{
	int64_t offset = s->uptime_ts_ms - s->ts_ms;

	c->ts_ms = s->ts_ms;
	c->value = s->value;
	c->known = true;
	/* An uptime of another time than the sample's says nothing about it. */
	c->has_uptime = s->has_uptime && offset >= INT32_MIN && offset <= INT32_MAX;
	c->uptime_ticks = c->has_uptime ? s->uptime_ticks : 0;
	c->uptime_offset_ms = c->has_uptime ? (int32_t)offset : 0;
	c->has_discontinuity = s->has_discontinuity;
	c->discontinuity_ticks = s->has_discontinuity ? s->discontinuity_ticks : 0;
}

/* Opens the slot that the last sample lies in. */
static void begin_level(const struct counter_config *config, struct counter *c, size_t level)
{
	open_slot(c, level, 0);
	c->open[level].offset_ms =
		(uint32_t)(c->ts_ms - floor_to(c->ts_ms, level_ms(config, level)));
}

static void begin(const struct counter_config *config, struct counter *c,
		  const struct counter_sample *s)
{
	*c = (struct counter){0};
	remember(c, s);
	for (size_t level = 0; level <= config->period_count; level++)
		begin_level(config, c, level);
}

enum counter_outcome counter_feed(const struct counter_def *def, struct counter *counter,
				  const struct counter_sample *sample, struct counter_out *out)
{
	enum counter_outcome outcome;
	struct delta delta;

	ASSERT(out->max - out->count >= counter_rows_max(def->config));
	out->delta = 0;
	out->gap = false;
	if (UNLIKELY(sample->ts_ms > COUNTER_TS_MAX || sample->ts_ms < -COUNTER_TS_MAX))
		return COUNTER_REFUSED;
	if (UNLIKELY(!counter->known)) {
		begin(def->config, counter, sample);
		return COUNTER_FIRST;
	}
	if (UNLIKELY(sample->ts_ms <= counter->ts_ms))
		return sample->ts_ms == counter->ts_ms && sample->value == counter->value
			       ? COUNTER_REPEATED
			       : COUNTER_REFUSED;
	outcome = judge(def, counter, sample, &delta);
	out->delta = delta.growth;
	out->gap = delta.gap;
	if (outcome == COUNTER_LOST)
		pass_over_loss(def->config, counter, &delta, out);
	else if (delta.gap)
		place_over_gap(def->config, counter, &delta, out);
	else
		place_delta(def->config, counter, &delta, out);
	remember(counter, sample);
	return outcome;
}

void counter_convert(const struct counter_config *from, const struct counter_config *to,
		     struct counter *c)
{
	struct counter old;

	if (counter_config_equal(from, to))
		return;
	old = *c;
	for (size_t level = 1; level <= to->period_count; level++) {
		begin_level(to, c, level);
		for (size_t was = 1; was <= from->period_count; was++) {
			if (level_ms(from, was) != level_ms(to, level))
				continue;
			c->open[level] = old.open[was];
			c->extremes[level - 1] = old.extremes[was - 1];
		}
	}
}

void counter_emit_open(const struct counter_config *config, const struct counter *counter,
		       struct counter_out *out)
{
	ASSERT(out->max - out->count > config->period_count);
	for (size_t level = 0; counter->known && level <= config->period_count; level++)
		emit(out, counter, level, counter->ts_ms - counter->open[level].offset_ms);
}
