/* The arithmetic of one counter: samples in, closed bins and periods out. Pure: no store, no clock,
 * no memory of its own. doc/rates.md says the same in words for people.
 *
 * A counter is fed its raw samples in the order of time. Each pair of neighbours gives a delta, or
 * a loss where nobody can say what was counted between them. A delta is spread over the bins of the
 * base frequency that it covers by an exact integer split; hours, days and whatever else was asked
 * for are the sums of their bins, or, where the base frequency does not divide the period, splits
 * of the delta at the period's own edges.
 *
 * Invariants. The values and the unplaced growth of all rows of one level add up to the growth that
 * was counted, to the unit. What is emitted never changes with how the input was cut: the state
 * encoded, decoded and fed on gives the same rows, and a sample fed again is passed over. A row is
 * emitted when no later sample can add to it; the last slot of each level stays open in the state.
 *
 * Bounds: one feed emits at most counter_rows_max rows, whatever the gap. Everything here takes any
 * numbers that a device may send. */
#ifndef RATE_COUNTER_H
#define RATE_COUNTER_H

#include "base/base.h"
#include "base/buf.h"

enum {
	COUNTER_PERIODS_MAX = 4,
	COUNTER_LEVELS_MAX = 1 + COUNTER_PERIODS_MAX, /* level 0 are the bins */
	/* A gap is one beyond so many base intervals. */
	COUNTER_GAP_INTERVALS = 3,
	/* Of one gap and level: empty slots beyond these are not written. */
	COUNTER_GAP_ROWS_MAX = 288,
};

/* Times of samples; beyond them a sample is refused. */
#define COUNTER_TS_MAX (INT64_C(1) << 52)
/* The longest base interval or period: 40 days, which fit into 32 bits of ms. */
#define COUNTER_PERIOD_MAX_MS (INT64_C(40) * 86400000)
/* What a line of unknown speed can carry in a second, in octets: the bound of E, in the unit that
 * it meant. */
#define COUNTER_RATE_UNKNOWN UINT64_C(110000000000)
/* No speed is believed beyond this: 20 Tbit/s in octets. */
#define COUNTER_RATE_MAX UINT64_C(2500000000000)

/* Why a slot is not simply what was counted in it. On disk. */
enum counter_flag {
	COUNTER_GAP = 1,   /* some of its time lies in a gap, or what it has came over one */
	COUNTER_RESET = 2, /* the counter began again in it, or jumped, and growth may be missing */
	COUNTER_WRAP = 4,  /* the counter passed its largest value */
	COUNTER_FLAGS = 7,
};

/* Shared by all counters of an OIDSet. */
struct counter_config {
	int64_t base_ms;
	size_t period_count;
	int64_t periods_ms[COUNTER_PERIODS_MAX]; /* none shorter than the base, none twice */
};

/* ERR_INVALID with a sentence. */
int counter_config_check(const struct counter_config *config, struct errbuf *e) MUST_CHECK;
/* The width of a level's slots. */
int64_t counter_level_ms(const struct counter_config *config, size_t level);
/* The widest of all levels. */
int64_t counter_widest_ms(const struct counter_config *config);

struct counter_def {
	const struct counter_config *config;
	unsigned width_bits; /* 32 or 64 */
	bool octets;         /* it counts those, so that the line's speed bounds it */
};

struct counter_sample {
	int64_t ts_ms;
	uint64_t value;
	/* Of the device at that poll: sysUpTime in hundredths of a second and when it was read;
	 * ifCounterDiscontinuityTime and ifHighSpeed (0: unknown) of the interface. */
	bool has_uptime, has_discontinuity;
	uint32_t uptime_ticks, discontinuity_ticks, speed_mbit;
	int64_t uptime_ts_ms;
};

/* One bin or period. */
struct counter_row {
	int64_t start_ms;
	uint64_t val;      /* growth that lies in it */
	uint64_t unplaced; /* growth over a gap that begins here, which nobody can place */
	uint32_t covered_ms;
	uint32_t count; /* of a bin: deltas that touch it (is_valid); else: whose sample is in it */
	uint8_t level;  /* 0: a bin; 1 ...: periods_ms[level - 1] */
	uint8_t flags;
	bool has_rate;   /* min and max are there; never of a bin */
	double min, max; /* rate of one delta, per second */
	int64_t min_ts_ms, max_ts_ms;
};

/* A slot that later samples may add to. */
struct counter_open {
	uint64_t val, unplaced;
	uint32_t covered_ms, count;
	uint8_t flags;
};

struct counter_extremes {
	double min, max; /* max < min: none */
	uint32_t min_offset_ms, max_offset_ms;
};

/* All of a sample but its value: the same for counters that were polled together. */
struct counter_poll {
	int64_t ts_ms;
	uint32_t uptime_ticks, discontinuity_ticks, speed_mbit;
	int32_t uptime_offset_ms; /* when it was read, from ts_ms */
	bool has_uptime, has_discontinuity;
	uint32_t offset_ms[COUNTER_LEVELS_MAX]; /* of ts_ms in its slot; follows from it */
};

/* What must be known of a counter to go on. Without `known` nothing yet, and the rest means
 * nothing. */
struct counter {
	struct counter_poll last;
	uint64_t value; /* of the last sample */
	bool known;
	struct counter_open open[COUNTER_LEVELS_MAX]; /* the slots that the last sample lies in */
	struct counter_extremes extremes[COUNTER_PERIODS_MAX];
};

enum counter_outcome {
	COUNTER_FIRST,     /* nothing to compare with */
	COUNTER_COUNTED,   /* a delta was booked */
	COUNTER_WRAPPED,   /* likewise, past the largest value */
	COUNTER_RESTARTED, /* likewise, of a device that began again */
	COUNTER_LOST,      /* the interval is lost and flagged */
	COUNTER_REPEATED,  /* the same time and value as the last: nothing happens */
	COUNTER_REFUSED,   /* not later than the last, or no possible time: nothing happens */
	COUNTER_OUTCOMES
};

/* A delta within three intervals touches four bins at most, and a period that is no shorter than
 * the base likewise. */
enum { COUNTER_PIECES_MAX = COUNTER_GAP_INTERVALS + 2 };

/* What falls into each of the neighbouring slots that a delta touches. */
struct counter_pieces {
	size_t count;
	uint64_t growth[COUNTER_PIECES_MAX];
	uint32_t covered_ms[COUNTER_PIECES_MAX];
};

/* `growth` over `span` ms that begins `offset` into a slot of `width` and passes its end (or comes
 * to it: then the slot that begins there gets nothing), over COUNTER_PIECES_MAX slots at most. Each
 * gets its share by time, rounded, half away from zero; what that gives too little or too much is
 * settled by units, and the sum is exact. */
void counter_split(uint64_t growth, int64_t span_ms, uint32_t offset_ms, int64_t width_ms,
		   struct counter_pieces *pieces);

/* From one poll to the next: what is the same for all counters that went from the one to the other,
 * whatever they counted. */
struct counter_step {
	struct counter_poll from, to;
	int64_t span_ms; /* 0: not made yet */
	bool gap, uptime_fell, uptime_rose, discontinuity_moved;
	bool follows;     /* it begins where the step before it ends */
	unsigned crosses; /* bit l: it comes to the end of its slot of level l, or passes it */
	int64_t since_start_ms; /* of the span at most so much, if the device began again in it */
	/* A counter that rose by less counted so much, whatever its line; 0: each is judged. */
	uint64_t sure_below;
	struct counter_pieces bins; /* how it cuts the bins, without their growth */
};

/* Where the rows go. */
struct counter_out {
	struct counter_row *rows;
	size_t count, max;
	uint64_t delta;  /* of the last feed, where one was booked */
	bool gap;        /* the last feed bridged a gap */
	unsigned levels; /* bit l is set when a row of level l comes */
};

/* The room that `out` must have before each feed and each counter_emit_open. */
static inline size_t counter_rows_max(const struct counter_config *config)
{
	return (1 + config->period_count) * (COUNTER_GAP_ROWS_MAX + COUNTER_PIECES_MAX + 1);
}

enum counter_outcome counter_feed(const struct counter_def *def, struct counter *counter,
				  const struct counter_sample *sample, struct counter_out *out);

/* The same for one of several counters that were polled together: `step` is what was left of it
 * when another counter with this configuration was fed a sample with all of this but the value, or
 * zeroed. It is used if it fits, else made again. `before`: the step to the sample before, or NULL.
 */
enum counter_outcome counter_feed_together(const struct counter_def *def, struct counter *counter,
					   const struct counter_sample *sample,
					   const struct counter_step *before,
					   struct counter_step *step, struct counter_out *out);

/* The most rows that come of a delta without a gap. */
enum { COUNTER_STEADY_ROWS_MAX = COUNTER_LEVELS_MAX * COUNTER_PIECES_MAX };

/* Counters that go on as steadily as nearly all do: feeds as many of `values` as can be counted
 * without a question, as far as `out` has room for COUNTER_STEADY_ROWS_MAX rows more. `steps` to
 * each of them are what was left by another counter, as above. Gives how many; what comes then is
 * for counter_feed_together. */
size_t counter_feed_steady(const struct counter_def *def, struct counter *counter,
			   const uint64_t *values, const struct counter_step *steps, size_t count,
			   struct counter_out *out);

/* The slots that are open, as they would be if nothing more came. For readers; the state stays. */
void counter_emit_open(const struct counter_config *config, const struct counter *counter,
		       struct counter_out *out);

/* Whether a row says anything. */
static inline bool counter_row_exists(const struct counter_row *row)
{
	return row->count || row->flags || row->covered_ms || row->unplaced;
}

static inline bool counter_config_equal(const struct counter_config *a,
					const struct counter_config *b)
{
	return a->base_ms == b->base_ms && a->period_count == b->period_count &&
	       memcmp(a->periods_ms, b->periods_ms, a->period_count * sizeof(a->periods_ms[0])) ==
		       0;
}

/* The state under another list of periods: those that are in both go on, the others begin. */
void counter_convert(const struct counter_config *from, const struct counter_config *to,
		     struct counter *counter);

/* The states of 1 to 64 counters as bytes. ERR_LIMIT: the buffer is full. */
int counter_encode(const struct counter_config *config, const struct counter *const *counters,
		   size_t count, struct buf *out);
/* Takes so many states off the front of `from`; after an error they mean nothing. ERR_DAMAGED: no
 * encoder wrote that, or one with another configuration. ERR_VERSION: a later one. */
struct cursor;
int counter_decode(const struct counter_config *config, struct cursor *from,
		   struct counter *const *counters, size_t count) MUST_CHECK;

#endif
