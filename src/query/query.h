/* Queries: the points of the series of one metric that match tags, over a time, as they are or
 * computed over windows.
 *
 * Order of events:
 *
 *     query = query_new(engine, ready, owner)
 *     ... fill query->spec; selectors may lie in query->arena
 *     query_start(query)
 *     ready(owner):  while (query_next(query, n, &chunk)) encode the chunk
 *                    if (query->ended) answer is complete, or query->err says why it is not
 *     query_free(query)                          at any time: what runs is dropped
 *
 * The catalog gives the series, by tags text ascending. Then the store is read in stages of about
 * 64k points, each begun when the one before it was taken whole: so a query holds one stage in
 * memory, and a client that does not read stops it. A stage is read in parts of some milliseconds;
 * several at once while fewer than parallel_max are under way in all, else one after the other: so
 * one large query has every core, of many each gets its turn, and a small one waits for a part, not
 * for a query. A series comes in one or more chunks, one series after the other; a series without
 * points in the time is left out.
 *
 * At most concurrent_max queries run, the next ones wait for a place in the order of arrival. A
 * query whose client reads so slowly that the deadline passes is cut where it stands, and its
 * place is free.
 *
 * The series of a query lie in one table, and under one period where it has any: ERR_INVALID with
 * what is different otherwise.
 *
 * Limits. Series, windows and length of time are known before anything is read: ERR_LIMIT with a
 * sentence. How many samples the store would have to look at is estimated from a few of them, if it
 * could be more than samples_max: ERR_LIMIT with the estimate. How many points there are is not: an
 * answer that reaches points_max, or whose deadline passes after its first chunk, ends early with
 * `cut` set. All reads of a query share one now.
 *
 * Roll-ups. Where they are stored, a plan (plan.h) says which part of the time raw data answers,
 * and which a granularity. Windows of sums, means and so on come to the same whatever answers them,
 * but for rounding.
 *
 * Threads: everything belongs to the executor's thread. `ready` is never called from within. */
#ifndef QUERY_QUERY_H
#define QUERY_QUERY_H

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/mem.h"
#include "catalog/catalog.h"
#include "model/value.h"
#include "store/store.h"

struct pool;
struct granularities;
struct retention_rules;

/* Where the samples of a series lie. */
struct query_home {
	enum table table;
	int64_t period_ms; /* 0 for tables without one */
};

struct watermark_asked;

struct query_options {
	struct store *store;
	struct catalog *catalog;
	struct clock *clock;
	struct executor *executor;
	struct loop *loop;     /* for a timer; NULL: the caller calls query_engine_tick */
	struct pool *pool;     /* for what would hold up the executor; NULL: it is held up */
	size_t series_max;     /* of one query; 0 = 10,000 */
	uint64_t points_max;   /* of one answer; 0 = 10,000,000 */
	int64_t range_max_ms;  /* from the first millisecond to the last; 0 = no limit */
	int64_t timeout_ms;    /* 0 = 60 s; at most STORE_QUERY_DEADLINE_MAX_MS */
	size_t concurrent_max; /* 0 = 32 */
	size_t waiting_max;    /* 0 = 1,000 */
	/* Retention of data_raw and of its roll-ups: data that is older is not shown. NULL: data is
	 * kept for ever. */
	const struct retention_rules *retention;
	uint64_t samples_max; /* that one query may look at; 0 = 1,000,000,000 */
	size_t parallel_max;  /* reads of the store at once, of all queries beyond the first of
			       * each; 0 = 2, at most 8 */
	size_t slice_points;  /* 0 = 65,536; smaller ones are for tests */
	/* Where series of a tenant lie that are not in data_raw: called with home as data_raw, for
	 * each series that a query has found. NULL: all are there. */
	void (*home_of)(void *owner, struct slice tenant, struct slice tags_text,
			struct query_home *home);
	void *home_owner;
	/* Roll-ups of what lies in data_raw; they are there as long as the engine. NULL: none. */
	const struct granularities *granularities;
	/* What a read has to ask before the next is known: adds it to the read, in whose arena
	 * *asked lies; NULL there: nothing. NULL here: never anything. */
	int (*rolled_ask)(void *owner, struct slice tenant, struct slice metric,
			  struct store_read *read, struct watermark_asked **asked);
	/* All data of the metric with a time before this one is rolled up, in all granularities.
	 * NULL: all is before the present slot. */
	int64_t (*rolled_before_ms)(void *owner, struct slice tenant, struct slice metric,
				    const struct watermark_asked *asked);
	/* But, in a granularity, what was written before it was configured, or when the metric was
	 * a counter and is none now, or the other way round: of these times there may be such data.
	 * NULL: 0. */
	int64_t (*rolled_since_ms)(void *owner, struct slice metric, size_t granularity);
	/* Whether a metric's roll-ups are those of a counter: sum, increase, first and last instead
	 * of min, max, sum, avg, count, first and last. NULL: none are. */
	bool (*is_counter)(void *owner, struct slice metric);
	/* Late points (retention/late.h): how long ago a time lies at least that may have any, 0:
	 * none has; and if more are kept, the quiet time of roll-ups, else 0. */
	int64_t late_after_ms, late_quiet_ms;
	void *rollup_owner;
};

struct query_engine;

struct query_engine *query_engine_new(const struct query_options *options);
/* The limits of series, points, samples, time and queries at once of `options`, and for how long
 * they say that samples are kept, for queries that begin from now on; nothing else of them. The
 * rules of before are the engine's until it is freed, as these are. */
void query_engine_set_limits(struct query_engine *engine, const struct query_options *options);
/* No query may be left; pump the executor until query_engine_idle(). */
void query_engine_free(struct query_engine *engine);
/* ERR_TIMEOUT with its sentence: what everything says that answers questions and took too long. */
int query_late(int64_t timeout_ms, struct errbuf *e);

/* Ends what waits or stands still beyond its deadline; about once a second. */
void query_engine_tick(struct query_engine *engine);
/* No query lives and no read is in flight. */
bool query_engine_idle(const struct query_engine *engine);

/* How the points of a window become one. */
enum query_fn {
	FN_NONE,
	FN_MIN,
	FN_MAX,
	FN_SUM,
	FN_AVG,
	FN_COUNT,
	FN_FIRST,
	FN_LAST,
	FN_INCREASE, /* how much a counter grew, with resets: growth.c */
	FN_RATE,     /* the same, by the seconds of the window */
};

/* "min" and so on; ERR_INVALID for anything else. */
int query_fn_parse(struct slice text, enum query_fn *fn) MUST_CHECK;
/* The inverse; FN_NONE is empty. */
const char *query_fn_name(enum query_fn fn);

/* How the points of several series become one. */
enum query_agg { AGG_NONE, AGG_MIN, AGG_MAX, AGG_SUM, AGG_AVG, AGG_COUNT };

/* As query_fn_parse. */
int query_agg_parse(struct slice text, enum query_agg *agg) MUST_CHECK;

/* What windows without a point get, of a series that has any. */
enum query_fill { FILL_NONE, FILL_NULL, FILL_ZERO };

/* As query_fn_parse: "none", "null" or "zero". */
int query_fill_parse(struct slice text, enum query_fill *fill) MUST_CHECK;

/* A part of a query's time, and what answers it: a place in granularities, or one of these. */
enum { QUERY_PART_RAW = -1, QUERY_PART_NONE = -2 };
struct query_part {
	int64_t from_ms, to_ms;
	int granularity;
};

enum { QUERY_BY_MAX = 16, QUERY_PARTS_MAX = 40 };

struct query_spec {
	struct slice tenant, metric;
	struct catalog_selector *selectors; /* the asker's, who changes them until the start */
	size_t selector_count;
	/* Leaves out the series that match and for which it is false; NULL: none. For what
	 * selectors cannot say. */
	bool (*filter)(void *owner, struct slice tags_text);
	void *filter_owner;
	/* Not NULL: the filter takes long, and is called on a thread of the engine's pool. So its
	 * owner is needed from hold(owner, true) to hold(owner, false), whatever becomes of the
	 * query. Both come on the executor's thread, the second never from within a call of the
	 * owner. */
	void (*filter_hold)(void *owner, bool held);
	int64_t start_ms, end_ms; /* start <= time < end */
	/* Windows lie on multiples of window_ms since 1970 UTC, and their point has the time at
	 * which they begin; the first and the last hold only what lies between start and end. A
	 * window without points has none; nor has one whose points are all NaN, for min and max. */
	enum query_fn fn;
	int64_t window_ms; /* FN_LAST with 0: the newest point of each series, at its own time */
	/* Not 0: of each row at most so many points. window_ms is 0, and is chosen; so is fn, if it
	 * is FN_NONE. Both are set here when the series are found. At least 2. */
	uint64_t points_wanted;
	/* Roll-ups as they are stored and nothing else: `fn` says which field, of FN_INCREASE the
	 * growth within each bucket; window_ms which granularity, 0: is chosen, and then set. */
	bool stored;
	enum query_fill fill; /* with windows only; of type NONE is a point of FILL_NULL */
	/* Series whose tags `by` are equal become one, which has only these tags; one that lacks
	 * such a tag is in the group that lacks it. What is put together are the points that `fn`
	 * gave of a window or, without fn, those of the same time: a series without a point there
	 * counts for nothing. NaN makes sum and avg NaN and is never min or max. A sum of integers
	 * is one while it fits 64 bits. AGG_AVG with FN_AVG is the average of all samples (the sum
	 * of their sums by the sum of their counts), not that of the averages. */
	enum query_agg agg;
	/* With agg and without fn: samples count as if each lay at the beginning of such a span of
	 * time; 0: only those of equal times are put together. */
	int64_t tick_ms;
	const struct slice *by;
	size_t by_count;
	/* Without agg: series whose tags `by` are equal come one after the other, for those who
	 * put them together themselves. */
	bool by_order;
	/* The points of points_max that other queries of the same answer have used; and when that
	 * answer is late (monotonic; 0: timeout_ms from now, and never later). */
	uint64_t points_spent;
	int64_t deadline_us;
};

/* Points of one series or group, ascending by time. Valid until the next query_next or query_free.
 */
struct query_chunk {
	size_t series_index; /* into query_series() */
	bool first;          /* of this series */
	size_t count;
	const int64_t *ts_ms;
	const uint64_t *bits;
	const uint8_t *types; /* enum value_type; NONE with FILL_NULL only */
};

/* Why an answer has less than whoever asks may think. */
enum query_note {
	NOTE_NONE,
	NOTE_NO_METRIC,     /* the metric has no series */
	NOTE_NOT_ROLLED_UP, /* `stored`, and samples from note_ms on may not be rolled up yet */
	NOTE_COUNTER,       /* `stored`: roll-ups of a counter do not have `fn` */
	NOTE_NO_COUNTER,    /* `stored`: only those of a counter have it */
};

typedef void query_ready(void *owner);

struct query {
	struct query_spec spec;
	struct arena arena; /* for what the spec points to; the series found lie here too */

	/* Results. */
	bool ended;
	int err; /* ERR_LIMIT, ERR_TIMEOUT, or the store's */
	struct errbuf error;
	bool cut;               /* more points match than were given */
	const char *cut_why;    /* a constant: "points", "samples" or "time" */
	const char *cut_option; /* the one that sets that limit */
	uint64_t points;        /* given so far */
	enum query_note note;
	int64_t note_ms;
	uint64_t estimate;  /* samples that it was thought to look at; 0: few enough not to ask */
	size_t series_read; /* that matched */
	size_t reads;       /* of the store */
	int64_t find_us;    /* what the catalog took */
	int64_t store_us;   /* from asking the store to its answer, without overlaps */
	struct store_read_work work;
};

struct query *query_new(struct query_engine *engine, query_ready *ready, void *owner);

/* ERR_INVALID, ERR_LIMIT: the spec cannot be answered, query->error says why; ERR_BUSY: too many
 * queries wait. Then `ready` does not come. */
int query_start(struct query *query) MUST_CHECK;

/* At most `points_max` of the next points. False: nothing is there now; `ready` comes when there
 * is, unless the query has ended. */
bool query_next(struct query *query, size_t points_max, struct query_chunk *chunk) MUST_CHECK;

/* After the first `ready`: the series that match, or their groups, also those without points. */
const struct catalog_series *query_series(const struct query *query, size_t *count);
/* Likewise: the group that such a row belongs to. With agg it is the row itself, without agg and
 * by_order each series is one. */
size_t query_group_of(const struct query *query, size_t series_index);
/* The next series of a group that a value was found of so far, beginning at *i (0 at first), which
 * moves on; NULL: there are no more. All are known when the points of the group have been taken. */
const struct catalog_series *query_group_next(const struct query *query, size_t group, size_t *i);
/* Likewise: what answers which part of the time, in order of time and side by side. */
const struct query_part *query_parts(const struct query *query, size_t *count);
/* The granularities that the engine knows; NULL: none. */
const struct granularities *query_granularities(const struct query_engine *engine);
/* The time that is looked at: that of the spec, less what retention does not show. */
void query_range(const struct query *query, int64_t *start_ms, int64_t *end_ms);

void query_free(struct query *query);

#endif
