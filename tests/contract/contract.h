/* One suite for every engine of the store contract. A runner (contract_naive.c, contract_lmdb.c)
 * says how its engine is opened, reopened and settled; the cases know nothing else about it.
 *
 * Each case gets a rig: an empty store of its own on a virtual clock, and calls that submit a batch
 * and wait for its completion. What a case expects is worked out by hand in the case, or by the few
 * obvious lines that stand there. */
#ifndef TESTS_CONTRACT_CONTRACT_H
#define TESTS_CONTRACT_CONTRACT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "store/store.h"

struct contract_engine {
	const char *name;
	void *context; /* the runner's */
	/* A new, empty store. */
	struct store *(*open)(void *context, struct clock *clock);
	/* Closes and opens again. */
	struct store *(*reopen)(void *context, struct store *store, struct clock *clock);
	/* Seals, compacts and expires whatever can be, now. */
	void (*settle)(void *context, struct store *store);
	/* Closes, and removes what lay on disk. */
	void (*close)(void *context, struct store *store);
	/* Closes the store, lets `work` write in another process, which is killed when
	 * `work` returns, and opens the store again. NULL: the engine survives no kill. */
	struct store *(*kill_in)(void *context, struct store *store, struct clock *clock,
				 void (*work)(struct store *store, struct clock *clock));
};

/* 2023-11-14 22:13:20 UTC: where the clock of each case starts. */
#define T0 INT64_C(1700000000000)

enum { SECOND_MS = 1000, HOUR_MS = 3600000, DAY_MS = 86400000 };

struct rig {
	const struct contract_engine *engine;
	struct clock_virtual clock;
	struct task_queue queue;
	struct store *store;
	struct arena keep; /* results that a case holds on to */
};

void rig_open(struct rig *rig, const struct contract_engine *engine);
void rig_close(struct rig *rig);
void rig_reopen(struct rig *rig);
void rig_settle(struct rig *rig);
int64_t rig_now_ms(struct rig *rig);
void rig_advance_ms(struct rig *rig, int64_t by_ms);

/* ---- Writing: *_new gives a batch bound to the rig; rig_write submits, waits, returns done's
 * error (or that of a refused submission). The batch lives until store_write_free. */
struct store_write *rig_write_new(struct rig *rig);
int rig_write(struct rig *rig, struct store_write *write);
/* Submits, asserts success, frees. */
void rig_commit(struct rig *rig, struct store_write *write);

struct store_read *rig_read_new(struct rig *rig);
int rig_read(struct rig *rig, struct store_read *read);

/* ---- Series: tenant "t"; `tags` as text, `k=v,k=v`. */
uint64_t rig_series(struct rig *rig, const char *metric, const char *tags);
void rig_group(struct rig *rig, const char *tenant, const char *const *metrics, size_t count,
	       const char *tags, bool find_only, uint64_t *handles, size_t *created);
uint64_t rig_find(struct rig *rig, const char *tenant, const char *metric, const char *tags);

/* ---- Samples */
struct point {
	int64_t ts_ms;
	struct value values[TABLE_FIELDS_MAX];
};

struct points {
	struct point *list;
	size_t count;
};

#define POINTS(...)                                                                                \
	((struct points){(struct point[]){__VA_ARGS__}, ARRAY_LEN(((struct point[]){__VA_ARGS__}))})
#define NO_POINTS ((struct points){0})

#define RAW ((struct store_target){TABLE_DATA_RAW, RETENTION_EVER})

/* One append in a batch of its own. */
void rig_put(struct rig *rig, struct store_target place, uint64_t handle, int64_t ts_ms,
	     struct value value);
void rig_put_fields(struct rig *rig, struct store_target place, uint64_t handle, int64_t ts_ms,
		    const struct value *values);
/* As many appends as points, in one batch. */
void rig_put_all(struct rig *rig, struct store_target place, uint64_t handle, struct points points);
void rig_delete(struct rig *rig, struct store_target place, uint64_t handle, int64_t start_ms,
		int64_t end_ms);

/* A whole range, however many slices it takes; resumed in both of the ways that store_read_submit
 * describes, in turn. now and deadline are taken from the rig. `points` has handle_count entries.
 */
int rig_range(struct rig *rig, const struct store_range *range, size_t points_max,
	      struct points *points);
int rig_range_at(struct rig *rig, const struct store_range *range, size_t points_max,
		 int64_t now_ms, struct points *points);

/* Asserts that a range of one series gives just these points: forward and backward, at once and
 * point by point, and with each limit. */
void expect_points(struct rig *rig, struct store_target place, uint64_t handle, int64_t start_ms,
		   int64_t end_ms, struct points expected);
/* Of the whole of time. */
void expect_all(struct rig *rig, struct store_target place, uint64_t handle,
		struct points expected);
void assert_points(struct points actual, struct points expected, size_t fields);
void assert_value(struct value actual, struct value expected);

/* The newest sample before; false where there is none. */
bool rig_last_before(struct rig *rig, struct store_target place, uint64_t handle, int64_t before_ms,
		     int64_t look_back_ms, struct point *point);

/* summaries of all windows of all handles, in rig->keep. */
struct store_summary *rig_aggregate(struct rig *rig, const struct store_aggregate *aggregate,
				    size_t points_max, size_t *window_count);
/* To the class of the place. */
void rig_rekey(struct rig *rig, struct store_target place, enum store_rekey_step step,
	       const uint64_t *handles, size_t n, int64_t start_ms, int64_t end_ms);
/* By handle and class, likewise; of the place table and period. */
struct store_share *rig_shares(struct rig *rig, struct store_target place, const uint64_t *handles,
			       size_t count, size_t points_max);

/* ---- Cells */
struct cells {
	struct store_cell *list;
	size_t count;
};

#define PARTS(...) (&(struct store_parts){{__VA_ARGS__}})
#define TEXT(t)    ((struct slice){(t), sizeof(t) - 1})

void rig_cell_put(struct rig *rig, enum table table, const struct store_parts *key,
		  const struct store_parts *column, struct slice value, int64_t stamp_us,
		  int64_t expires_ms);
void rig_cell_delete(struct rig *rig, enum table table, const struct store_parts *key,
		     const struct store_parts *column, int64_t stamp_us);
void rig_row_delete(struct rig *rig, enum table table, const struct store_parts *key,
		    int64_t stamp_us);
void rig_log_put(struct rig *rig, enum table table, const struct store_parts *key,
		 const struct store_parts *column, struct slice value);
void rig_log_remove(struct rig *rig, enum table table, const struct store_parts *key,
		    const struct store_parts *from, const struct store_parts *to);
void rig_set_add(struct rig *rig, enum table table, const struct store_parts *key,
		 const struct store_parts *column, const char *element);
/* The outcome is copied; its value lies in rig->keep. */
struct store_write_cond rig_put_if(struct rig *rig, const struct store_parts *key,
				   const struct store_parts *column, uint64_t version,
				   const char *value, int64_t expires_ms);
struct store_write_cond rig_delete_if(struct rig *rig, const struct store_parts *key,
				      const struct store_parts *column, uint64_t version);

bool rig_cell_get(struct rig *rig, enum table table, const struct store_parts *key,
		  const struct store_parts *column, struct store_cell *cell);
struct cells rig_scan(struct rig *rig, const struct store_cell_scan *scan, size_t points_max);
void assert_slice(struct slice actual, struct slice expected);

/* ---- Registry and rows */
struct rows {
	struct store_row *list;
	size_t count;
};
struct rows rig_enumerate(struct rig *rig, enum table table, size_t limit, size_t points_max);

struct series_list {
	struct store_series *list;
	size_t count;
};
struct series_list rig_list(struct rig *rig, const char *tenant, const char *metric, size_t limit,
			    size_t points_max);
/* Since the token, which goes on. */
struct series_list rig_news(struct rig *rig, const char *tenant, const char *metric,
			    uint64_t *since, size_t limit, size_t points_max);
struct store_stats rig_stats(struct rig *rig);
/* Assert what an engine that counts says of a table. */
void rig_expect_samples(struct rig *rig, enum table table, uint64_t samples);
void rig_expect_rows(struct rig *rig, enum table table, uint64_t rows);
/* Asserts that nothing is wrong; how much was looked at. 1 of an engine that does not
 * verify. */
uint64_t rig_verify(struct rig *rig);

/* ---- Cases */
struct contract_case {
	const char *name;
	void (*run)(struct rig *rig);
	unsigned needs; /* enum store_capability: engines without one of these are excused */
};

#define CASE(f) CASE_NEEDS(f, 0)
#define CASE_NEEDS(f, capabilities)                                                                \
	{                                                                                          \
		.name = #f, .run = (f), .needs = (capabilities)                                    \
	}

/* One array per suite_*.c, ended by a NULL name. */
extern const struct contract_case cases_ranges[], cases_values[], cases_retention[],
	cases_aggregate[], cases_cells[], cases_rows[], cases_conditional[], cases_log[],
	cases_series[], cases_batches[];

/* Runs all cases, or those named; the number that failed. With --needs it runs none, and lists for
 * each capability that the engine lacks the cases that it is excused from. */
int contract_run(const struct contract_engine *engine, int argc, char **argv);

#endif
