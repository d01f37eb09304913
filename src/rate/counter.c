/* Deltas, and how they come to lie in slots.
 *
 * The order of events in a feed: is the sample in order; what is the delta to the one before, or is
 * the interval lost; then the delta goes to every level. At an edge of a level the slot is emitted
 * and the next one opened.
 *
 * What depends only on when two samples were taken and on what the device said of itself then is
 * the step between them: it is made once for all counters that were polled together. It knows how
 * far into the slot of each level the samples lie, so that nothing is divided as long as the next
 * one lies in the same slot.
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
/* Lines are faster than they say, and ifHighSpeed is rounded. */
#define SPEED_HEADROOM_PERCENT 125
#define OCTETS_OF_MBIT         UINT64_C(125000)
/* A delta of more than half of what 64 bits hold is none; so sums of them stay within 64 bits. */
#define DELTA_MAX (UINT64_MAX >> 1)

/* What is called for one delta in a hundred stays out of the way of the others. */
#define RARE __attribute__((noinline))

__extension__ typedef unsigned __int128 wide;

struct delta {
	uint64_t growth;
	uint8_t flags;
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

/* In a second, with headroom; 0: unknown, or not to be believed. */
static uint64_t octets_of(uint32_t speed_mbit)
{
	uint64_t octets = speed_mbit * OCTETS_OF_MBIT;
	return octets <= COUNTER_RATE_MAX ? octets * SPEED_HEADROOM_PERCENT / 100 : 0;
}

/* A line whose speed changed between two polls had the one or the other. What was said before them
 * or later has no part in it, so that a step is judged alike whenever that is done. */
static uint64_t rate_of_line(const struct counter_def *def, const struct counter_step *step)
{
	uint64_t from = octets_of(step->from.speed_mbit), to = octets_of(step->to.speed_mbit);
	uint64_t larger = from > to ? from : to;
	return def->octets && larger ? larger : COUNTER_RATE_UNKNOWN;
}

static int64_t judged_span_ms(const struct counter_step *step)
{
	return step->span_ms < RATE_SPAN_MIN_MS ? RATE_SPAN_MIN_MS : step->span_ms;
}

/* What rate_possible says yes to, whatever the line. */
static uint64_t largest_sure(const struct counter_step *step)
{
	uint64_t most;
	if (__builtin_mul_overflow(COUNTER_RATE_UNKNOWN / 1000, (uint64_t)judged_span_ms(step),
				   &most) ||
	    most > DELTA_MAX)
		return DELTA_MAX;
	return most;
}

enum uptime { UPTIME_UNKNOWN, UPTIME_ROSE, UPTIME_FELL };

/* sysUpTime is itself a counter of 32 bits, which begins again every 497 days. It fell if the
 * device can have started since the last poll; it rose if it went on, be it over that edge. A clock
 * that steps back a little did neither. */
static enum uptime uptime_of(const struct counter_poll *last, const struct counter_sample *now)
{
	if (!last->has_uptime || !now->has_uptime || last->uptime_ticks == now->uptime_ticks)
		return UPTIME_UNKNOWN;
	int64_t elapsed = now->uptime_ts_ms - (last->ts_ms + last->uptime_offset_ms);
	if (elapsed <= 0 || elapsed >= TICKS_WRAP_MS)
		return UPTIME_UNKNOWN;
	int64_t slack = UPTIME_SLACK_MS + elapsed / 16;
	int64_t went_on = (int64_t)(uint32_t)(now->uptime_ticks - last->uptime_ticks) * TICK_MS;
	if (went_on <= elapsed + slack && went_on >= elapsed - slack)
		return UPTIME_ROSE;
	int64_t since_start = (int64_t)now->uptime_ticks * TICK_MS;
	if (since_start <= elapsed + slack &&
	    (now->uptime_ticks < last->uptime_ticks || since_start < elapsed - slack))
		return UPTIME_FELL;
	return now->uptime_ticks > last->uptime_ticks ? UPTIME_ROSE : UPTIME_UNKNOWN;
}

/* A counter that rose counted, and at least that much even if the device began again and passed its
 * old value since (most that say so only restarted their agent). The speed that an interface claims
 * is often wrong, so a rise is refused only if no interface can do it. */
RARE static enum counter_outcome judge_rise(const struct counter_def *def,
					    const struct counter_step *step, struct delta *delta)
{
	uint64_t rate = rate_of_line(def, step);
	if (!step->uptime_fell && step->discontinuity_moved)
		return COUNTER_LOST; /* RFC 2863: what lies between says nothing */
	if (!step->uptime_fell && rate < COUNTER_RATE_UNKNOWN)
		rate = COUNTER_RATE_UNKNOWN;
	if (!rate_possible(delta->growth, judged_span_ms(step), rate))
		return COUNTER_LOST;
	if (step->uptime_fell)
		delta->flags |= COUNTER_RESET;
	return step->uptime_fell ? COUNTER_RESTARTED : COUNTER_COUNTED;
}

/* The growth if the counter went over its largest value once, or false. Going back by less than a
 * sixteenth of the range is no wrap: it would have had to count the other fifteen at once. */
static bool wrap_possible(const struct counter_def *def, const struct counter_step *step,
			  uint64_t last, uint64_t now, struct delta *delta)
{
	uint64_t largest = def->width_bits == 32 ? UINT32_MAX : UINT64_MAX;
	uint64_t back = last - now;
	if (last > largest || back <= largest / 16)
		return false;
	delta->growth = largest - back + 1;
	return rate_possible(delta->growth, step->span_ms, rate_of_line(def, step));
}

RARE static enum counter_outcome judge_fall(const struct counter_def *def,
					    const struct counter_step *step, uint64_t last,
					    uint64_t now, struct delta *delta)
{
	if (step->uptime_fell) {
		delta->growth = now;
		if (!rate_possible(delta->growth, step->since_start_ms, rate_of_line(def, step)))
			return COUNTER_LOST;
		delta->flags |= COUNTER_RESET;
		return COUNTER_RESTARTED;
	}
	if (step->uptime_rose && !step->discontinuity_moved &&
	    wrap_possible(def, step, last, now, delta)) {
		delta->flags |= COUNTER_WRAP;
		return COUNTER_WRAPPED;
	}
	return COUNTER_LOST;
}

static inline enum counter_outcome judge(const struct counter_def *def,
					 const struct counter_step *step, uint64_t last,
					 uint64_t now, struct delta *delta)
{
	*delta = (struct delta){now - last, step->gap ? COUNTER_GAP : 0};
	if (LIKELY(now >= last && delta->growth < step->sure_below))
		return COUNTER_COUNTED;
	enum counter_outcome outcome = now >= last ? judge_rise(def, step, delta)
						   : judge_fall(def, step, last, now, delta);
	if (outcome == COUNTER_LOST) {
		delta->growth = 0;
		delta->flags |= COUNTER_RESET;
	}
	return outcome;
}

/* ---- The split ------------------------------------------------------------------------------ */

/* n / by, for n below 2^53: a double's quotient is at most one too large, and takes a fraction of
 * the time of a division of 64-bit integers. */
static inline uint64_t counter_quotient(uint64_t n, uint64_t by)
{
	uint64_t q = (uint64_t)(int64_t)((double)(int64_t)n / (double)(int64_t)by);
	return q - (q * by > n);
}

/* growth * part / whole; halves go up, and *half tells so. */
static inline uint64_t share_of(uint64_t growth, uint32_t part, int64_t whole, bool *half)
{
	uint64_t product, twice = 2 * (uint64_t)whole;
	if (LIKELY(!__builtin_mul_overflow(growth, 2 * (uint64_t)part, &product) &&
		   product < (UINT64_C(1) << 53) - (uint64_t)whole)) {
		product += (uint64_t)whole;
		uint64_t share = counter_quotient(product, twice);
		*half = product == share * twice;
		return share;
	}
	wide exact = (wide)growth * part * 2 + (uint64_t)whole;
	*half = exact % twice == 0;
	return (uint64_t)(exact / twice);
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

/* How many slots a delta touches, and how much of its time lies in each. */
static void cut(int64_t span, uint32_t offset, int64_t width, struct counter_pieces *p)
{
	uint32_t first = (uint32_t)(width - offset);
	size_t between = 0;
	int64_t left = span - first;
	for (; left >= width && between < COUNTER_PIECES_MAX; left -= width)
		between++;
	p->count = between + 2;
	ASSERT(p->count <= COUNTER_PIECES_MAX);
	p->covered_ms[0] = first;
	for (size_t i = 1; i <= between; i++)
		p->covered_ms[i] = (uint32_t)width;
	p->covered_ms[between + 1] = (uint32_t)left;
}

/* What falls into the first of two slots. Of two shares only halves can be too much: both are
 * rounded up. */
static inline uint64_t first_of_two(uint64_t growth, int64_t span, uint32_t first, uint32_t last)
{
	bool half;
	uint64_t share = share_of(growth, first, span, &half);
	return UNLIKELY(half) && first <= last ? share - 1 : share;
}

static void share_out(uint64_t growth, int64_t span, struct counter_pieces *p)
{
	uint64_t given = 0;
	bool half;
	if (p->count == 2) {
		p->growth[0] = first_of_two(growth, span, p->covered_ms[0], p->covered_ms[1]);
		p->growth[1] = growth - p->growth[0];
		return;
	}
	for (size_t i = 0; i < p->count; i++) {
		p->growth[i] = share_of(growth, p->covered_ms[i], span, &half);
		given += p->growth[i];
	}
	if (given != growth)
		settle_rest(p, (int64_t)(growth - given));
}

void counter_split(uint64_t growth, int64_t span, uint32_t offset, int64_t width,
		   struct counter_pieces *p)
{
	cut(span, offset, width, p);
	share_out(growth, span, p);
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

static inline void counter_emit(struct counter_out *out, const struct counter *c, size_t level,
				int64_t start_ms)
{
	struct counter_row *row = &out->rows[out->count];
	row_of(c, level, start_ms, row);
	out->count += counter_row_exists(row);
	out->levels |= (unsigned)counter_row_exists(row) << level;
}

static inline void counter_add_piece(struct counter_open *open, const struct counter_pieces *p,
				     size_t i, uint8_t flags)
{
	open->val += p->growth[i];
	open->covered_ms += p->covered_ms[i];
	open->flags |= flags;
}

/* Most often a delta begins in one slot and ends in the next. */
static inline void place_over_edge(const struct counter_step *step, struct counter *c,
				   const struct delta *d, struct counter_out *out)
{
	struct counter_open *open = &c->open[0];
	uint64_t first = first_of_two(d->growth, step->span_ms, step->bins.covered_ms[0],
				      step->bins.covered_ms[1]);
	open->val += first;
	open->covered_ms += step->bins.covered_ms[0];
	open->flags |= d->flags;
	open->count++;
	counter_emit(out, c, 0, step->from.ts_ms - step->from.offset_ms[0]);
	*open = (struct counter_open){.val = d->growth - first,
				      .covered_ms = step->bins.covered_ms[1],
				      .count = 1,
				      .flags = d->flags};
}

/* Pieces of `step_ms` each, the first one in the open slot, which begins at `start`, and `at` ms
 * behind that; `width` is a multiple of `step_ms`. */
static void place_pieces(struct counter *c, size_t level, int64_t start, int64_t width,
			 int64_t step_ms, int64_t at, const struct counter_pieces *p, uint8_t flags,
			 struct counter_out *out)
{
	for (size_t i = 0; i < p->count; i++, at += step_ms) {
		if (at >= width) {
			counter_emit(out, c, level, start);
			open_slot(c, level, 0);
			start += width;
			at -= width;
		}
		counter_add_piece(&c->open[level], p, i, flags);
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

static inline void place_inside(struct counter_open *open, const struct delta *d, int64_t span)
{
	open->val += d->growth;
	open->covered_ms += (uint32_t)span;
	open->flags |= d->flags;
}

/* What passes the end of a slot whose edges may be none of a bin: split at its own. */
RARE static void place_across(const struct counter_config *config, struct counter *c, size_t level,
			      int64_t from_ms, uint32_t offset, int64_t span, const struct delta *d,
			      struct counter_out *out)
{
	int64_t width = level_ms(config, level);
	struct counter_pieces own;
	counter_split(d->growth, span, offset, width, &own);
	place_pieces(c, level, from_ms - offset, width, width, 0, &own, d->flags, out);
}

/* The bins' pieces of a delta, which is larger than what is left of its first bin, on one level. */
RARE static void place_bins(const struct counter_config *config, const struct counter_step *step,
			    struct counter *c, size_t level, const struct delta *d,
			    struct counter_out *out)
{
	int64_t width = level_ms(config, level);
	uint32_t offset = step->from.offset_ms[level], bin_offset = step->from.offset_ms[0];
	struct counter_pieces bins = step->bins;
	share_out(d->growth, step->span_ms, &bins);
	place_pieces(c, level, step->from.ts_ms - offset, width, config->base_ms,
		     (int64_t)offset - bin_offset, &bins, d->flags, out);
}

/* A delta without a gap. */
static inline void place_delta(const struct counter_config *config, const struct counter_step *step,
			       struct counter *c, const struct delta *d, struct counter_out *out)
{
	double rate = (double)(int64_t)d->growth * 1000.0 / (double)step->span_ms;
	if (LIKELY(step->bins.count == 2)) {
		place_over_edge(step, c, d, out);
	} else if (step->bins.count) {
		place_bins(config, step, c, 0, d, out);
	} else {
		place_inside(&c->open[0], d, step->span_ms);
		c->open[0].count++;
	}
	for (size_t level = 1; level <= config->period_count; level++) {
		if (LIKELY(!(step->crosses >> level & 1)))
			place_inside(&c->open[level], d, step->span_ms);
		else if (level_ms(config, level) % config->base_ms == 0)
			place_bins(config, step, c, level, d, out);
		else
			place_across(config, c, level, step->from.ts_ms,
				     step->from.offset_ms[level], step->span_ms, d, out);
		c->open[level].count++;
		note_rate(&c->extremes[level - 1], rate, step->to.offset_ms[level]);
	}
}

/* ---- Gaps and losses ------------------------------------------------------------------------ */

/* Passes over `span` ms on one level: the slots in them are flagged, and hold nothing but
 * `unplaced`, which lies `unplaced_at` ms ahead. After so many empty slots the rest are left out:
 * a gap of years is as well told by what stands at its ends. */
static void counter_skip(const struct counter_config *config, struct counter *c, size_t level,
			 int64_t span, uint8_t flags, uint64_t unplaced, int64_t unplaced_at,
			 struct counter_out *out)
{
	struct counter_open *open = &c->open[level];
	int64_t width = level_ms(config, level);
	uint32_t offset = c->last.offset_ms[level];
	int64_t start = c->last.ts_ms - offset;
	int64_t holder = (offset + unplaced_at) / width;
	int64_t last = (offset + span) / width;
	open->flags |= flags;
	open->unplaced += holder == 0 ? unplaced : 0;
	for (int64_t i = 0; i < last && i <= COUNTER_GAP_ROWS_MAX; i++) {
		counter_emit(out, c, level, start + i * width);
		open_slot(c, level, flags);
		open->unplaced = holder == i + 1 ? unplaced : 0;
	}
}

/* Of growth over a gap only the share of the newest bin can be placed, by time and cut off. */
RARE static void place_over_gap(const struct counter_config *config,
				const struct counter_step *step, struct counter *c,
				const struct delta *d, struct counter_out *out)
{
	uint32_t bin_offset = c->last.offset_ms[0];
	int64_t until_bin = floor_to(bin_offset + step->span_ms, config->base_ms) - bin_offset;
	int64_t next_bin = config->base_ms - bin_offset, span = step->span_ms - until_bin;
	struct delta share = {.flags = d->flags};
	share.growth = (uint64_t)((wide)d->growth * (uint64_t)span / (uint64_t)step->span_ms);
	for (size_t level = 0; level <= config->period_count; level++) {
		int64_t width = level_ms(config, level);
		uint32_t offset = (uint32_t)((c->last.offset_ms[level] + until_bin) % width);
		counter_skip(config, c, level, until_bin, d->flags, d->growth - share.growth,
			     next_bin, out);
		if (offset + span < width)
			place_inside(&c->open[level], &share, span);
		else
			place_across(config, c, level, c->last.ts_ms + until_bin, offset, span,
				     &share, out);
		c->open[level].count++;
	}
}

RARE static void pass_over_loss(const struct counter_config *config,
				const struct counter_step *step, struct counter *c,
				const struct delta *d, struct counter_out *out)
{
	for (size_t level = 0; level <= config->period_count; level++)
		counter_skip(config, c, level, step->span_ms, d->flags, 0, 0, out);
}

/* ---- Steps ---------------------------------------------------------------------------------- */

static inline bool same_poll(const struct counter_poll *a, const struct counter_poll *b)
{
	return a->ts_ms == b->ts_ms && a->uptime_ticks == b->uptime_ticks &&
	       a->discontinuity_ticks == b->discontinuity_ticks && a->speed_mbit == b->speed_mbit &&
	       a->uptime_offset_ms == b->uptime_offset_ms && a->has_uptime == b->has_uptime &&
	       a->has_discontinuity == b->has_discontinuity;
}

/* All but the offsets. */
static struct counter_poll poll_of(const struct counter_sample *s)
{
	int64_t offset = s->uptime_ts_ms - s->ts_ms;
	struct counter_poll poll = {.ts_ms = s->ts_ms, .speed_mbit = s->speed_mbit};
	/* An uptime of another time than the sample's says nothing about it. */
	poll.has_uptime = s->has_uptime && offset >= INT32_MIN && offset <= INT32_MAX;
	poll.uptime_ticks = poll.has_uptime ? s->uptime_ticks : 0;
	poll.uptime_offset_ms = poll.has_uptime ? (int32_t)offset : 0;
	poll.has_discontinuity = s->has_discontinuity;
	poll.discontinuity_ticks = s->has_discontinuity ? s->discontinuity_ticks : 0;
	return poll;
}

static uint32_t offset_in(int64_t ts_ms, int64_t width)
{
	return (uint32_t)(ts_ms - floor_to(ts_ms, width));
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

static void make_step(const struct counter_config *config, const struct counter_poll *from,
		      const struct counter_sample *sample, struct counter_step *step)
{
	enum uptime uptime = uptime_of(from, sample);
	step->from = *from;
	step->to = poll_of(sample);
	step->span_ms = sample->ts_ms - from->ts_ms;
	step->uptime_fell = uptime == UPTIME_FELL;
	step->uptime_rose = uptime == UPTIME_ROSE;
	step->crosses = 0;
	for (size_t level = 0; level <= config->period_count; level++) {
		int64_t width = level_ms(config, level);
		uint32_t offset = from->offset_ms[level];
		step->to.offset_ms[level] = offset_after(offset, step->span_ms, width);
		step->crosses |= (unsigned)(offset + step->span_ms >= width) << level;
	}
	step->gap = step->span_ms > COUNTER_GAP_INTERVALS * config->base_ms;
	step->discontinuity_moved = from->has_discontinuity && sample->has_discontinuity &&
				    from->discontinuity_ticks != sample->discontinuity_ticks;
	step->sure_below =
		step->uptime_fell || step->discontinuity_moved ? 0 : largest_sure(step) + 1;
	step->since_start_ms = (int64_t)sample->uptime_ticks * TICK_MS + UPTIME_SLACK_MS;
	if (step->since_start_ms > step->span_ms)
		step->since_start_ms = step->span_ms;
	step->bins.count = 0;
	if (!step->gap && step->crosses & 1)
		cut(step->span_ms, from->offset_ms[0], config->base_ms, &step->bins);
}

/* ---- Feeding -------------------------------------------------------------------------------- */

static void counter_begin_level(const struct counter_config *config, struct counter *c,
				size_t level)
{
	open_slot(c, level, 0);
	c->last.offset_ms[level] = offset_in(c->last.ts_ms, level_ms(config, level));
}

static void counter_begin(const struct counter_config *config, struct counter *c,
			  const struct counter_sample *s)
{
	*c = (struct counter){.last = poll_of(s), .value = s->value, .known = true};
	for (size_t level = 0; level <= config->period_count; level++)
		counter_begin_level(config, c, level);
}

/* COUNTER_COUNTED: there is a step to the sample. */
RARE static enum counter_outcome step_to(const struct counter_config *config,
					 struct counter *counter,
					 const struct counter_sample *sample,
					 const struct counter_step *before,
					 struct counter_step *step)
{
	if (sample->ts_ms > COUNTER_TS_MAX || sample->ts_ms < -COUNTER_TS_MAX)
		return COUNTER_REFUSED;
	if (!counter->known) {
		counter_begin(config, counter, sample);
		return COUNTER_FIRST;
	}
	if (sample->ts_ms <= counter->last.ts_ms)
		return sample->ts_ms == counter->last.ts_ms && sample->value == counter->value
			       ? COUNTER_REPEATED
			       : COUNTER_REFUSED;
	make_step(config, &counter->last, sample, step);
	step->follows = before && before->span_ms && same_poll(&before->to, &step->from);
	return COUNTER_COUNTED;
}

enum counter_outcome counter_feed_together(const struct counter_def *def, struct counter *counter,
					   const struct counter_sample *sample,
					   const struct counter_step *before,
					   struct counter_step *step, struct counter_out *out)
{
	enum counter_outcome outcome = COUNTER_COUNTED;
	struct delta delta;
	ASSERT(out->max - out->count >= counter_rows_max(def->config));
	out->delta = 0;
	out->gap = false;
	if (UNLIKELY(!counter->known || !step->span_ms || !same_poll(&step->from, &counter->last)))
		outcome = step_to(def->config, counter, sample, before, step);
	if (UNLIKELY(outcome != COUNTER_COUNTED))
		return outcome;
	outcome = judge(def, step, counter->value, sample->value, &delta);
	out->delta = delta.growth;
	out->gap = step->gap;
	if (UNLIKELY(outcome == COUNTER_LOST))
		pass_over_loss(def->config, step, counter, &delta, out);
	else if (UNLIKELY(step->gap))
		place_over_gap(def->config, step, counter, &delta, out);
	else
		place_delta(def->config, step, counter, &delta, out);
	counter->last = step->to;
	counter->value = sample->value;
	return outcome;
}

enum counter_outcome counter_feed(const struct counter_def *def, struct counter *counter,
				  const struct counter_sample *sample, struct counter_out *out)
{
	struct counter_step step;
	step.span_ms = 0;
	return counter_feed_together(def, counter, sample, NULL, &step, out);
}

size_t counter_feed_steady(const struct counter_def *def, struct counter *counter,
			   const uint64_t *values, const struct counter_step *steps, size_t count,
			   struct counter_out *out)
{
	uint64_t last = counter->value;
	size_t i = 0;
	if (!counter->known || !count || !steps->span_ms ||
	    !same_poll(&steps->from, &counter->last))
		return 0;
	for (; i < count && out->max - out->count >= COUNTER_STEADY_ROWS_MAX; i++) {
		const struct counter_step *step = &steps[i];
		struct delta delta = {values[i] - last, 0};
		if (values[i] < last || delta.growth >= step->sure_below || step->gap ||
		    (i && !step->follows))
			break;
		place_delta(def->config, step, counter, &delta, out);
		last = values[i];
	}
	if (i) {
		counter->last = steps[i - 1].to;
		counter->value = last;
	}
	return i;
}

void counter_convert(const struct counter_config *from, const struct counter_config *to,
		     struct counter *c)
{
	if (counter_config_equal(from, to))
		return;
	struct counter old = *c;
	for (size_t level = 1; level <= to->period_count; level++) {
		counter_begin_level(to, c, level);
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
		counter_emit(out, counter, level,
			     counter->last.ts_ms - counter->last.offset_ms[level]);
}
