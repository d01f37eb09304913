/* What the files of the query engine share; see query.h.
 *
 * A query is read in stages: some rows (series, or groups of them) over some time, as much as may
 * lie in memory at once. A stage is read in parts, each some of its series, by up to
 * options.parallel_max jobs at a time; it is given when all its parts have arrived. */
#ifndef QUERY_PRIVATE_H
#define QUERY_PRIVATE_H

#include <stdatomic.h>

#include "base/owner.h"
#include "loop/loop.h"
#include "query/plan.h"
#include "rollup/aggregate_row.h"

enum {
	JOBS_MAX = 8,
	PART_SERIES = 512,           /* of one read: each costs 150 bytes in its result */
	PART_SERIES_LEAST = 64,      /* fewer are not worth a second reader */
	PART_WINDOWS = 32768,        /* summaries of one read: 130 bytes each */
	PART_ROWS = 1 << 20,         /* samples that one read should look at: some ms */
	READ_MAX_BYTES = 32 << 20,   /* results of one read */
	SERIES_MAX_BYTES = 64 << 20, /* names of the series of one query, and its spec */
	STAGE_POINTS = 65536,        /* of one stage, made from windows */
	STAGE_CELLS = 16384,         /* of one stage, with agg */
	CELLS_MAX = 65536,           /* times of one stage, with agg and without windows */
	CHUNK_POINTS = 4096,         /* of one chunk that is put together here */
};

struct query_engine {
	struct query_options options;
	struct loop_timer *timer;
	struct query_run *runs;           /* all that live */
	struct query_run *first, **last;  /* those that wait for a place, by arrival */
	size_t running, waiting, resting; /* runs */
	size_t reading;                   /* jobs in flight, of all runs */
};

/* Windows of one field in one part of the time. */
struct job_ask {
	struct store_request *request;
	size_t have;     /* series whose results have been folded */
	size_t first;    /* its first window, of those of the stage */
	int granularity; /* what is asked, as in struct query_part */
	enum rollup_field field;
	int64_t from_ms, to_ms;
	int64_t window_ms; /* 0: its rows are asked for instead */
};

enum { ASKS_MAX = 4 * QUERY_PARTS_MAX }; /* of one job: two fields, and a window cut at the front */

/* How much a series grew in a window: growth.c. */
struct grown;

/* A row of roll-ups by itself: late.c. */
struct late_row {
	int64_t ts_ms;
	struct value fields[ROLLUP_FIELDS];
};

/* One read of the store. */
struct query_job {
	uint32_t magic;
	struct query_run *run;
	struct store_read *read;
	bool in_flight;
	size_t count;
	uint32_t series[PART_SERIES]; /* which of the query's */
	uint64_t handles[PART_SERIES];
	struct store_request *main; /* of readers with one request */
	size_t main_have;           /* series whose results have been folded */
	struct store_token token;
	int64_t end_ms; /* merge */
	size_t part;    /* growth: which part of the plan is read */
	/* late.c: the last row of a slice, and of which series of the job; rows that were joined */
	bool held;
	size_t held_series;
	struct late_row held_row;
	struct arena joined;
	/* windows */
	struct job_ask asks[ASKS_MAX];
	size_t ask_count;
	bool beyond; /* a bucket's sum is not finite */
	bool redo;   /* therefore buckets are read one by one, the second time */
	/* By series and window, of those windows that several asks tell of. */
	struct store_summary *made;
	size_t made_count, made_room;
	struct grown *grown; /* growth: likewise */
	size_t grown_room;
};

/* How points come: raw.c, stitch.c, windows.c, growth.c, last.c, merge.c. */
struct query_reader {
	/* Sets up the next stage; false: there is none. */
	bool (*stage)(struct query_run *run);
	/* Adds the requests of the stage's next part to the job's (reset) read, and moves
	 * stage.series_next on. */
	void (*part)(struct query_run *run, struct query_job *job);
	/* The read is done: takes what it holds. True: it is to be submitted again. */
	bool (*arrived)(struct query_run *run, struct query_job *job);
	/* The next points of the stage; false: it has none left. */
	bool (*next)(struct query_run *run, size_t points_max, struct query_chunk *chunk);
};

extern const struct query_reader reader_raw, reader_stitch, reader_windows, reader_growth,
	reader_last, reader_merge, reader_estimate;

/* A sum of doubles: wide.c. Zeroed, it is that of none. */
enum { WIDE_DIGITS = 5 };
struct wide_sum {
	int64_t digits[WIDE_DIGITS]; /* the highest first */
	unsigned top;                /* the place of that one */
	double special;              /* the sum of infinities and NaN */
};

/* The values of one point of a group, put together; in whatever order, it comes to the same. */
struct query_cell {
	uint64_t count;  /* values added */
	uint64_t weight; /* samples of these values, for avg */
	__int128 integers;
	struct wide_sum doubles;
	bool any_double;
	struct value min, max;
};

struct timed_cell {
	int64_t ts_ms;
	struct query_cell cell;
};

/* What leads from one to the next:
 *
 *   NEW        query_start              -> FINDING, or WAITING while concurrent_max others run
 *   WAITING    a place is free          -> FINDING
 *   FINDING    the series are there     -> READING the first stage, or FILTERING, or ASKING
 *   FILTERING  those meant are known    -> READING the first stage, or ASKING
 *   ASKING     roll-ups go so far       -> READING the first stage
 *   READING    all its parts are there  -> ANSWERING, or READING the next where it has no point
 *   ANSWERING  the last point is read   -> READING the next
 *   READING    there is no next stage   -> ENDED
 *   any        error, deadline, freed   -> ENDED
 *
 * `ready` tells the caller that READING became ANSWERING, and that the run ended, unless the caller
 * ended it. From FINDING to ANSWERING a run holds one of the places (places.c), unless it rests.
 * What the store still reads for a run that ended is cancelled and its answer dropped; a run that
 * is freed meanwhile goes with the last. */
enum run_state {
	RUN_NEW,
	RUN_WAITING, /* for a place */
	RUN_FINDING,
	RUN_FILTERING, /* a thread of the pool looks which series are meant */
	RUN_ASKING,    /* the store says how far the metric is rolled up */
	RUN_READING,
	RUN_ANSWERING, /* a stage is there */
	RUN_ENDED,
};

/* The present stage. */
struct query_stage {
	size_t row, row_count;  /* rows: of row_series, or one series each without groups */
	int64_t from_ms, to_ms; /* its time */
	size_t windows;         /* with windows: how many, the cut one at the front included */
	const uint32_t *series; /* what is to be read, by handle */
	size_t series_count;    /* of these; 1 where a stage is one part */
	size_t series_next;     /* the next part begins with this one */
};

struct query_run {
	uint32_t magic;
	struct query query;
	struct query_engine *engine;
	query_ready *ready;
	void *owner;
	const struct query_reader *reader;
	enum run_state state;
	bool rests; /* while it answers: nobody has called query_next for a while, its place is free
		     */
	bool called;                     /* query_next was called since the last tick */
	struct query_run *older, *newer; /* in engine->runs */
	struct query_run *next;          /* that waits */
	int64_t now_ms, start_ms, end_ms, deadline_us;
	struct catalog_find find;
	struct task filter_task; /* to the pool and back */
	bool filter_in_flight;
	atomic_bool filter_dropped; /* nobody wants to know any more */
	struct store_read *asking;  /* how far the metric is rolled up; NULL: nobody has to */
	struct watermark_asked *asked;
	struct query_home home; /* of all its series */
	struct query_plan plan; /* made when they are found */
	int64_t asked_us;       /* when finding began, or the first of the jobs in flight */

	struct query_job *jobs[JOBS_MAX];
	size_t in_flight;
	bool dropped;
	uint64_t sampled;                  /* estimate: samples looked at, over: */
	double sampled_ms;                 /* series times time of these */
	uint64_t parts_rows, parts_series; /* samples looked at, and of how many series */

	struct query_stage stage;
	uint32_t *order;         /* the series of the stage, by handle */
	size_t next_row, offset; /* of the stage: what take gives next */
	size_t next_ask;         /* stitch: likewise */
	size_t last_series;      /* index of the last row answered, plus one */

	/* Groups, with agg: row g has the series row_series[row_first[g] .. row_first[g + 1]). */
	struct catalog_series *rows;
	size_t row_count;
	uint32_t *row_series, *row_first;
	uint32_t *series_row; /* the row of each series */
	bool ordered;         /* by_order: these are known, but rows are NULL, and stay series */
	bool *series_found;   /* of each series: a value was found of it; NULL without groups */

	/* raw and stitch */
	bool part_open; /* it goes on at the job's token */
	/* windows: those of the stage that several asks tell of, from 0 on, the others -1 */
	int32_t *shared;
	size_t shared_count;
	/* windows: of the row that is given, how many have been given or left out */
	size_t windows_done;
	bool row_has_points;  /* of these at least one was given */
	struct value *before; /* growth: of each series the value before what is read next */
	/* windows and last: by row and window, or by row */
	struct value *values;
	int64_t *times; /* last */
	struct query_cell *cells;
	/* merge: by time */
	struct timed_cell *merged, *spare;
	size_t merged_count, merged_cap;
	/* Points put together for a chunk, CHUNK_POINTS each. */
	int64_t *ts_ms;
	uint64_t *bits;
	uint8_t *types;
};

/* places.c: who may run. place_begin puts a new run into FINDING, or after those that wait;
 * ERR_BUSY with a sentence when too many do. */
int place_begin(struct query_run *run) MUST_CHECK;
/* The run ends, or is freed: its place or its turn is another's. */
void place_leave(struct query_run *run);
/* A second has passed: runs for which query_next was not called rest, so that others may run. */
void places_tick(struct query_engine *engine);
/* query_next is called again: the run has its place again, even if all are occupied by now. */
void place_wake(struct query_run *run);

/* parts.c. The job that the read belongs to gets `count` series of the stage from `at` on. */
void job_set_series(struct query_job *job, size_t at, size_t count);
/* Adds to the job's read what is asked of all its series, raw data or the rows of a granularity:
 * windows of start <= time < end of one field (of raw data the only one), or its points from
 * job->token on, which becomes job->main; `fields` of rows as in struct store_range. */
struct store_request *job_ask_windows(struct query_job *job, int granularity,
				      enum rollup_field field, int64_t start_ms, int64_t end_ms,
				      int64_t window_ms);
void job_ask_points(struct query_job *job, int granularity, unsigned fields, int64_t start_ms,
		    int64_t end_ms);
/* An array of a job's part, cleared: the one of the part before, if it has room for `count`. */
void *job_clear_array(void *array, size_t *room, size_t count, size_t size_bytes) MUST_CHECK;
/* How many series the next part of the stage has, each of `windows` summaries. */
size_t run_part_series(const struct query_run *run, size_t windows);
/* The series of the rows become run->order and stage.series, by handle. */
void run_order_series(struct query_run *run);
/* A chunk of what lies in run->ts_ms and so on. */
struct query_chunk run_chunk(const struct query_run *run, size_t row, size_t count);
static inline void run_found_value(struct query_run *run, size_t series)
{
	if (run->series_found)
		run->series_found[series] = true;
}
/* query.c. Whether every sample or row is looked at by itself, not the summaries of many. */
bool run_reads_points(const struct query_run *run);
int64_t run_mono_us(const struct query_run *run);

/* found.c: of what was found that stays which is meant, for a spec with `keep`. On any thread. */
void found_filter(struct query_run *run);
/* Looks whether that can be answered, and makes its groups. ERR_LIMIT, ERR_INVALID, ERR_DAMAGED
 * with a sentence in query->error. */
int found_check(struct query_run *run) MUST_CHECK;
/* Whether raw data answers all that is answered. */
bool run_is_raw(const struct query_run *run);
/* How many points other queries of the answer have left. */
uint64_t run_points_allowed(const struct query_run *run);

/* windows.c: what readers of windows share. The window that a time lies in, counted from the one
 * that the run's start lies in, and when one begins. */
size_t window_number(const struct query_run *run, int64_t ms);
int64_t window_begin_ms(const struct query_run *run, size_t number);
bool windows_stage(struct query_run *run);
bool windows_next(struct query_run *run, size_t points_max, struct query_chunk *chunk);
/* Where the stage has a window of a series of the job. */
size_t windows_place(const struct query_run *run, uint32_t series, size_t window);

/* Which windows of the stage times lie in, given in their order. */
struct windows_walk {
	const struct query_run *run;
	int64_t window_ms, next_ms;
	size_t first, window;
};
struct windows_walk windows_walk(const struct query_run *run);
size_t windows_walk_to(struct windows_walk *walk, int64_t ts_ms);

/* late.c: whether a part of the plan may have rows of late points (retention/late.h) beside those
 * of its buckets. */
bool part_has_late(const struct query_run *run, const struct query_part *part);
/* When a read has arrived: what was joined of the one before it is forgotten. */
void job_join_begin(struct query_job *job);
/* Rows, with BUCKET_VALUE_FIELDS, of a request that has arrived: each of late points is joined to
 * the one that it stands beside, or takes the place of one that is not there. The last row of a
 * slice is held back (job->held) until the next slice, which begins with it. */
void job_join_late(struct query_job *job, struct store_request *request);

/* buckets.c: of a row of roll-ups a field; what it says of the sum of its samples, as a summary
 * with sums and, of gauges, the count, false: nothing; what it says to windows of `fn`, whose field
 * is given, false: nothing; and what it counts as among raw data: of a gauge the mean, of a counter
 * the last value, type NONE: nothing. */
enum {
	BUCKET_SUM_FIELDS = 1 << ROLLUP_SUM | 1 << ROLLUP_COUNT | 1 << ROLLUP_AVG,
	BUCKET_VALUE_FIELDS = BUCKET_SUM_FIELDS | 1 << ROLLUP_LAST,
};
static inline struct value bucket_field(const struct store_points *rows, size_t row,
					enum rollup_field field)
{
	return (struct value){rows->bits[field][row], (enum value_type)rows->types[field][row]};
}
bool bucket_summary(const struct store_points *rows, size_t row, struct store_summary *summary);
bool bucket_samples(const struct store_points *rows, size_t row, enum query_fn fn,
		    enum rollup_field field, struct store_summary *samples);
struct value bucket_value(const struct store_points *rows, size_t row);

/* group.c: which series belong together, by the tags of spec->by. ERR_LIMIT, ERR_DAMAGED with a
 * sentence in query->error. */
int groups_make(struct query_run *run) MUST_CHECK;
/* The same, but series remain; those of a group lie together. */
int groups_order(struct query_run *run) MUST_CHECK;

/* cell.c: what `agg` needs of a value is put into the cell; one agg for all of a cell's life. */
void cell_add(struct query_cell *cell, enum query_agg agg, struct value value);
/* The sum of a window, which weighs as much as so many values. */
void cell_add_sum(struct query_cell *cell, const struct store_summary *summary, uint64_t weight);
/* So many zeros. */
void cell_add_zeros(struct query_cell *cell, enum query_agg agg, uint64_t count);
/* Type NONE: there is none. */
struct value cell_value(const struct query_cell *cell, enum query_agg agg);
struct value summary_value(const struct store_summary *summary, enum query_fn fn);

/* wide.c: at most 2^31 doubles in one sum. wide_add_scaled adds 2^64 times `d`. */
void wide_add(struct wide_sum *sum, double d);
void wide_add_scaled(struct wide_sum *sum, double d);
/* The sum of the doubles and the integers, rounded once, and 2^-64 of it, which is always finite
 * where all that was added was. */
double wide_total(const struct wide_sum *sum, __int128 integers, double *scaled);

/* estimate.c: whether what is asked for might be more than options.samples_max; then it is to be
 * estimated first. */
bool estimate_needed(const struct query_run *run);
/* After reader_estimate's only stage: ERR_LIMIT with the estimate in the sentence, or 0. */
int estimate_check(struct query_run *run) MUST_CHECK;

#endif
