/* Feeds the counters of some rows with their raw data, window of time by window, so that any length
 * of it fits into bounded memory. What the job, readers and recomputation have in common. Private
 * to rate/.
 *
 * With each sample goes what is known of the device at that poll: the newest sysUpTime,
 * discontinuity time and speed within half a base interval of it. So that a sample is never judged
 * before its companions are there, feeding for keeps ends half a base interval before the newest
 * raw data.
 *
 * Samples of one counter are stored in the order of their times, but those of one may come long
 * after those of others: when history is carried over. So a counter goes on after the last sample
 * that it was fed, however far the others are. And where more than one window is read, each counter
 * is fed up to the sample that was its newest before the first of them: later ones may be stored
 * between two windows, in the time of both. */
#ifndef RATE_FEEDER_H
#define RATE_FEEDER_H

#include "rate/rate.h"

/* Of from_ms: from the first raw sample on; and there is none. */
#define FEEDER_BEGINNING INT64_MIN
#define FEEDER_NOTHING   INT64_MAX

struct feeder;
/* `err` 0: the window lo_ms <= ts < hi_ms has been read. ERR_NOT_FOUND: everything has been. */
typedef void feeder_done(struct feeder *feeder, int err);

/* What one row of the table has emitted: of column c the rows from start[c] to start[c + 1]. */
struct feeder_rows {
	struct counter_row *list;
	size_t count, cap;
	unsigned levels; /* bit l set: some are of level l; of feeder_row only */
	size_t start[RATE_COLUMNS_MAX + 1];
};

/* What is known of a row at its polls. */
enum feeder_companion { FEEDER_DISCONTINUITY, FEEDER_SPEED, FEEDER_COMPANIONS };

struct feeder_place {
	uint64_t handle; /* a series of the row */
	size_t row;
};

struct feeder {
	struct store_read *read;
	feeder_done *done;
	void *owner;

	const struct rate_table *table;
	size_t first, count; /* rows of the table */
	/* These, by where their series lie in the store, so that neighbours are read and written
	 * together. */
	struct feeder_place *places;
	struct counter *states; /* by row and column */
	int64_t *from_ms;       /* likewise: older raw data is in the state */
	int64_t lo_ms, hi_ms, end_ms;

	struct feeder_rows rows;                   /* of the last feeder_row */
	uint64_t outcomes[COUNTER_OUTCOMES], gaps; /* since feeder_begin */
	size_t points;                             /* of this window */

	int64_t window_ms; /* of the next window; may be set after feeder_begin */

	/* the feeder's */
	enum { FEEDER_BEGINS, FEEDER_FIRSTS, FEEDER_NEWEST, FEEDER_WINDOWS } step;
	bool knows_newest;
	int64_t *until_ms; /* by counter: its raw data from then on waits for the next time */
	int64_t ahead_ms;  /* from then on all counters are fed; those behind come there first */
	bool wants_speeds; /* a column has octets */
	size_t cap, place_cap;
	uint64_t *handles;
	uint32_t *slot; /* by counter: where in the read; UINT32_MAX: it is not */
	uint32_t (*companion_slot)[FEEDER_COMPANIONS]; /* likewise, by row */
	struct store_request *values;
	struct counter_sample *samples; /* of the columns of a row that share samples_ts_ms */
	struct counter_step *steps;     /* to each of them, of the columns before */
	const int64_t *samples_ts_ms;
	size_t sample_count, sample_cap;
};

void feeder_init(struct feeder *feeder, struct store *store, struct executor *executor,
		 feeder_done *done, void *owner);
void feeder_release(struct feeder *feeder);

/* For these rows, up to end_ms. All states are unknown and begin with the first raw sample; the
 * caller then puts in what it knows. */
void feeder_begin(struct feeder *feeder, const struct rate_table *table, size_t first, size_t count,
		  int64_t end_ms, int64_t now_ms);

/* Reads the next window; `done` follows unless this is an error. */
int feeder_next(struct feeder *feeder) MUST_CHECK;

/* Feeds one row's counters with what the window has of them. */
void feeder_row(struct feeder *feeder, size_t row);

/* The slots that are still open, as rows behind each column's. */
void feeder_row_open(struct feeder *feeder, size_t row);

static inline size_t feeder_counter(const struct feeder *f, size_t row, size_t column)
{
	return (row - f->first) * f->table->column_count + column;
}

static inline uint64_t feeder_handle(const struct feeder *f, size_t counter)
{
	size_t columns = f->table->column_count;
	return f->table->rows[f->first + counter / columns].handles[counter % columns];
}

/* The counter's state was put in, and it has raw data: it goes on after its last sample. */
static inline void feeder_go_on(struct feeder *f, size_t counter)
{
	if (f->states[counter].known && f->from_ms[counter] != FEEDER_NOTHING)
		f->from_ms[counter] = f->states[counter].last.ts_ms + 1;
}

/* Half a base interval. */
static inline int64_t feeder_reach_ms(const struct rate_table *table)
{
	return table->config.base_ms / 2;
}

/* A number as a counter has it; false for what none can be. */
bool feeder_value(uint8_t type, uint64_t bits, uint64_t *value);

#endif
