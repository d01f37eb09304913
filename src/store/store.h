/* The store contract: what Granary asks of whatever keeps its data.
 *
 * Written against a store that may be far away; the embedded engine merely answers sooner.
 *
 *  - Every call is a batch with one completion on the caller's executor. Nobody blocks and nobody
 *    holds a cursor: results lie in the batch's arena, bounded by points, bytes and deadline, and a
 *    request that stopped at a bound says so and is resumed by its token.
 *  - Success of a write means durable: fsynced, or acknowledged at the configured consistency. A
 *    read submitted after that completion sees the whole batch. Writing the same thing twice is a
 *    no-op.
 *  - A write batch is atomic per row, as long as what a stage puts into the row has not more than
 *    STORE_ROW_WHOLE_BYTES; beyond that it comes in the order of the requests, so that what comes
 *    later is never there without what came before. It may have ordered stages (stage 2 is sent
 *    after stage 1 is durable). Within a batch, the later of two writes of one sample wins.
 *  - A read carries its query's now: what has expired by then is invisible from the first slice to
 *    the last, and is removed at least one query deadline later.
 *  - What a batch points to belongs to the batch: names, keys, columns, handles and values are
 *    copied into its arena, by the adders of a write and by store_read_submit. Whoever asks may go
 *    away at any moment: the batch may be freed at any time, and its memory goes when the engine
 *    has let go of it.
 *  - Two kinds of table (schema.h): samples, addressed by handles, and cells, by key and column.
 *
 * Threads: a batch belongs to its caller until submitted, then to the engine until `done` runs on
 * the executor given. A batch that is submitted is freed on the executor's thread. Different
 * batches may be submitted from different threads.
 *
 * Engines: store/lmdb (embedded), store/cassandra (later), tests/contract/naive (the yardstick).
 * All pass tests/contract. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <math.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/exec.h"
#include "base/mem.h"
#include "model/series.h"
#include "model/value.h"
#include "store/schema.h"

/* The same on every engine. What passes one is refused with ERR_LIMIT when it is added. */
enum {
	STORE_KEY_MAX_BYTES = 4000,   /* a cell's row key, as store_parts_bytes counts it */
	STORE_COLUMN_MAX_BYTES = 400, /* a column likewise; not those of series_sets */
	/* The longest of any table; a table that is shared takes less: schema_value_max_bytes. What
	 * is stored already may have any length up to this. */
	STORE_VALUE_MAX_BYTES = TABLE_OWN_VALUE_MAX_BYTES,
	STORE_ROW_WHOLE_BYTES = 32 << 10, /* keys, columns and values of a row that is written */
	STORE_SET_ELEMENTS_MAX = 64,
	STORE_SET_ELEMENT_MAX_BYTES = 255,
	STORE_BATCH_MAX_BYTES = 64 << 20,
	STORE_HANDLES_MAX = 1 << 20, /* of one read request */
	STORE_WINDOWS_MAX = 1000000, /* of one aggregate: handles times windows */
	STORE_GROUP_MAX = 512,       /* metrics of one series_open; handles of one append */
	STORE_TOKEN_MAX_BYTES = 512,
	STORE_QUERY_DEADLINE_MAX_MS = 300000,
	STORE_DEADLINE_PRESET_MS = 30000, /* of a read that says none */
	/* How long a deleted or expired stamped cell, or a deleted row, goes on winning over lower
	 * stamps, at least. */
	STORE_TOMBSTONE_MS = 86400000,
	/* How long news of a series are kept after it was registered, at least. */
	STORE_NEWS_MS = 86400000,
};

/* Times of samples: any signed 64-bit ms but the two ends. */
#define STORE_TS_MIN (INT64_MIN + 1)
#define STORE_TS_MAX (INT64_MAX - 1)

struct store_engine;

struct store {
	const struct store_engine *engine;
};

/* What an engine offers beyond the contract. Cases of tests/contract name what they need. A request
 * that needs what the engine did not declare is refused with ERR_INVALID and a sentence: when it is
 * submitted, or, of a write, when it is added. doc/store-engines.md says what each engine has. */
enum store_capability {
	STORE_ATOMIC_STAGES = 1 << 0, /* a stage is atomic over all its rows */
	STORE_SNAPSHOTS = 1 << 1,     /* one read batch sees one moment */
	/* The write with the higher stamp wins a sample; without this the write accepted later. */
	STORE_SAMPLE_STAMPS = 1 << 2,
	STORE_SURVIVES_KILL = 1 << 3, /* opens again after its process was killed */
	/* A durable write means that whatever any process submitted before it is durable, except
	 * batches that only remove from logs. */
	STORE_SERIAL_WRITES = 1 << 4,
	STORE_SHARED = 1 << 5, /* other processes write the same store */
	/* A series that has data is never forgotten; of one that is forgotten the handle is dead.
	 */
	STORE_EXACT_FORGETTING = 1 << 6,
	STORE_EXACT_SETS = 1 << 7,  /* a full set takes no more */
	STORE_COUNTS = 1 << 8,      /* STORE_STATS */
	STORE_VERIFIES = 1 << 9,    /* STORE_VERIFY */
	STORE_HAS_SHARES = 1 << 10, /* STORE_SHARES */
	STORE_REKEYS = 1 << 11,     /* store_rekey */
	/* STORE_SERIES_NEWS. Whatever is STORE_SHARED has it; where one process has the store
	 * nobody needs it. */
	STORE_NEWS = 1 << 12,
	STORE_BACKS_UP = 1 << 13, /* store_backup_begin */
};

/* Whether other processes write to the same store. */
bool store_is_shared(const struct store *store);

/* ---- Writing ------------------------------------------------------------------------------- */

struct store_write;

/* Runs on the executor. `err` is 0 when every stage is durable; else write->stages_kept says how
 * many are. ERR_UNKNOWN: stage `stages_kept` may be there or not; sending the batch again is safe.
 */
typedef void store_write_done(struct store_write *write, int err);

struct store_write_cond; /* the outcome of a conditional write, below */

struct store_write {
	uint32_t magic; /* store.c's, as of a read */
	struct store *store;
	struct executor *executor;
	store_write_done *done;
	void *owner; /* the caller's */
	struct arena arena;
	size_t stages_kept;
	size_t samples, cells; /* how many values other than NONE, and cell writes, were added */
	/* The stamp of the batch's samples, in microseconds, for engines with STORE_SAMPLE_STAMPS.
	 * A caller who computes samples from other samples takes the stamp (store_stamp) before it
	 * reads those. 0: the first submission takes one. It is kept when the batch is submitted
	 * again; reset clears it. Requests of the batch that meet on a row are ordered: each one's
	 * stamp is one above that of the one before. Of equal stamps a deletion wins, then the
	 * class that keeps the sample, but not for ever, the longer, then the greater value. */
	int64_t stamp_us;
	bool rekeys; /* store.c's: it holds a store_rekey */
	/* A hint, which reset keeps: what is appended are many rows of each series, one after the
	 * other, and more of them do not follow soon. An engine may put such rows at once where
	 * they are to stay, rather than gather them with what comes next. */
	bool in_runs;
	/* A hint, which reset keeps: nobody waits for it, so it may lie for a tenth of a second to
	 * share what it costs to make it durable with what comes then. */
	bool can_wait;
	struct errbuf error;   /* why an adder refused, or what `done` has to say */
	size_t stage_requests; /* how much the present stage holds; store.c's */
	size_t stage_count;    /* stages that hold something; store.c's */
	/* the engine's: encoded requests by stage, in the arena, NULL after new and reset; and the
	 * link while queued */
	struct store_stage *stages, *last_stage;
	struct task task;
	int err;
	bool in_flight, dropped; /* store.c's: submitted; and freed since */
};

/* `max_bytes` bounds the batch's memory, at most STORE_BATCH_MAX_BYTES. An adder that returns an
 * error leaves the batch as it was. */
struct store_write *store_write_new(struct store *store, size_t max_bytes);
/* Before submission or after `done`. Reset keeps memory for the next use, and store, executor, done
 * and owner. */
void store_write_reset(struct store_write *write);
/* At any time. One that was submitted is carried out all the same, but `done` comes no more, and
 * its memory goes when the engine has let go of it. NULL is allowed. */
void store_write_free(struct store_write *write);

/* Where samples of a series lie: which rows, and for how long they are kept. */
struct store_target {
	enum table table;
	enum retention_class retention; /* a deletion does not look at it */
	int64_t period_ms;              /* 0 for tables without one */
};

/* One time of `n` series: values[i * fields + f] is field f of handles[i]; VALUE_NONE leaves a
 * field unwritten. Handles that were opened together and are given in that order are stored
 * together, cheapest. A handle that stands twice takes the later values. A sample written again in
 * another retention class: the later write wins while it lives; whether the earlier one shows once
 * that has expired is the engine's business.
 * ERR_LIMIT: the batch is full, submit it first (or n > STORE_GROUP_MAX). ERR_INVALID: table,
 * period, time or count outside the contract, or a value of a type that schema.h does not have for
 * its field. ERR_NOT_FOUND, here or from `done`: no such handle,
 * or no longer; from `done`, the other rows of that stage may be there or not. Open the series
 * again and repeat the batch. */
int store_append(struct store_write *write, const struct store_target *target, int64_t ts_ms,
		 const uint64_t *handles, size_t n, const struct value *values) MUST_CHECK;

/* The same of some fields, bit f of `fields` for field f, the others left unwritten: values[i *
 * count + k] is of handles[i] the k-th of the `count` fields that are set. ERR_INVALID: none is, or
 * one that the table does not have. */
int store_append_fields(struct store_write *write, const struct store_target *target, int64_t ts_ms,
			unsigned fields, const uint64_t *handles, size_t n,
			const struct value *values) MUST_CHECK;

/* The same of several times, by column: values of one type, bits[(i * given + k) * count + t] of
 * handles[i] the k-th of the `given` fields that are set, at ts_ms[t]. The times ascend. For a
 * batch that says in_runs it is much cheaper than a time after the other; any other is given them
 * so, and there an error may leave the first of the times in the batch: repeated they are the same.
 * ERR_INVALID also: no times, or not ascending ones; a type that no value has. */
struct store_columns {
	const int64_t *ts_ms;
	size_t count;
	unsigned fields;
	const uint64_t *handles;
	size_t n;
	enum value_type type;
	const uint64_t *bits;
};
int store_append_columns(struct store_write *write, const struct store_target *target,
			 const struct store_columns *columns) MUST_CHECK;

/* Removes all fields of start <= ts < end, in every retention class. Ordered with the appends of
 * the same batch. An unknown handle has nothing to remove. start == end removes nothing, start >
 * end is ERR_INVALID, here and in reads. */
int store_delete_range(struct store_write *write, const struct store_target *target,
		       const uint64_t *handles, size_t n, int64_t start_ms,
		       int64_t end_ms) MUST_CHECK;

/* Takes samples of start <= ts < end to the target's retention class, whichever other they lie in,
 * so that they stay for as long as it keeps them: those that had not expired by now_ms. In two
 * steps, since reads that are under way must find them: STORE_REKEY_COPY writes them to the class
 * as well; STORE_REKEY_CLEAR, which may come when all reads that began before the first step was
 * done have ended, takes them out of the other classes, also what has expired there. Whatever is
 * written meanwhile is written in this class, else it may be lost. Twice is once.
 *
 * It is alone in its batch, else store_write_submit says ERR_INVALID; ERR_RETRY, from `done`: not
 * now, the same may succeed soon. While such batches come nothing that has expired is removed. An
 * unknown handle has nothing. A batch is one commit, so a caller takes few series that lie together
 * and one segment of their time at once. */
enum store_rekey_step { STORE_REKEY_COPY, STORE_REKEY_CLEAR };
struct store_rekeying {
	struct store_target target;
	enum store_rekey_step step;
	const uint64_t *handles;
	size_t n;
	int64_t start_ms, end_ms, now_ms;
};
int store_rekey(struct store_write *write, const struct store_rekeying *rekeying) MUST_CHECK;

/* The parts of a row key or of a column, as many as the table declares, in its order. A part may be
 * empty but not NULL; a row key may not be empty as a whole. What is put has valid UTF-8 in each
 * PART_TEXT, else ERR_INVALID. What is read, removed or a bound of a range may have any bytes
 * there: older versions stored such. */
struct store_parts {
	struct slice part[TABLE_PARTS_MAX];
};

/* Stamped cells. The higher stamp wins. Of equal stamps a deletion wins over every value, a value
 * that expires over one that never does, the later expiry over the earlier, and the greater value,
 * in byte order, over the smaller. `expires_ms` 0: never; else wall-clock ms from which the value
 * is invisible, yet for STORE_TOMBSTONE_MS still wins. ERR_INVALID: a stamp of INT64_MIN. */
int store_cell_put(struct store_write *write, enum table table, const struct store_parts *key,
		   const struct store_parts *column, struct slice value, int64_t stamp_us,
		   int64_t expires_ms) MUST_CHECK;
int store_cell_delete(struct store_write *write, enum table table, const struct store_parts *key,
		      const struct store_parts *column, int64_t stamp_us) MUST_CHECK;
/* A whole row of stamped cells: each of its cells is gone as if it had been deleted with this
 * stamp, those too that are put later. So of equal stamps the deletion wins, a cell with a higher
 * stamp is seen, and a put with another one is not, for STORE_TOMBSTONE_MS at least. It costs no
 * more than one cell, however many the row has: what they take is given back later, in slices. */
int store_row_delete(struct store_write *write, enum table table, const struct store_parts *key,
		     int64_t stamp_us) MUST_CHECK;

/* Set cells: adds one element, 1 to STORE_SET_ELEMENT_MAX_BYTES. A set that is full leaves it out:
 * then `done` says ERR_LIMIT though everything else of the batch is durable. */
int store_set_add(struct store_write *write, enum table table, const struct store_parts *key,
		  const struct store_parts *column, struct slice element) MUST_CHECK;

/* Conditional cells. `version` 0 means "only if absent" (or expired, by the engine's clock); a
 * version is never used twice for a cell. delete_if of version 0 is ERR_INVALID. After done:
 * `applied` says whether it happened; `version` and `value` are what is there now (version 0:
 * nothing; value NULL where the batch's memory had no room for it). A stage with a refused
 * condition still applies its other requests. The outcome lives until reset. */
struct store_write_cond {
	bool applied;
	uint64_t version;
	struct slice value;
};
int store_cell_put_if(struct store_write *write, enum table table, const struct store_parts *key,
		      const struct store_parts *column, uint64_t version, struct slice value,
		      int64_t expires_ms, struct store_write_cond **outcome) MUST_CHECK;
int store_cell_delete_if(struct store_write *write, enum table table, const struct store_parts *key,
			 const struct store_parts *column, uint64_t version,
			 struct store_write_cond **outcome) MUST_CHECK;

/* Log cells: what passes through. A row has one writer at a time, which puts columns above those it
 * put before (a lower one is taken too, but may cost more); what it puts again is overwritten.
 * Removing takes columns from <= column < to, bounds as in a scan, for good: nothing of them stays
 * to be swept, and a put that comes later is seen, so it is for the writer to see to it that a
 * batch of unknown outcome is settled before it goes on. It costs what it removes: an engine may
 * carry a batch that does nothing but remove out in slices, between which others are durable. Then
 * a reader may see some of it gone; `done` comes when all of it is. If it fails, the same again
 * removes the rest. Neither stamps nor expiry. */
int store_log_put(struct store_write *write, enum table table, const struct store_parts *key,
		  const struct store_parts *column, struct slice value) MUST_CHECK;
int store_log_remove(struct store_write *write, enum table table, const struct store_parts *key,
		     const struct store_parts *from, const struct store_parts *to) MUST_CHECK;

/* A series that has no data in any table leaves the registry (and series_sets); one that has data
 * stays, as may one whose data has expired but is not yet removed. Its handle is dead from then on:
 * an append to it fails with ERR_NOT_FOUND. Within a stage forgetting comes after all else. Handles
 * of one call: at most STORE_GROUP_MAX. */
int store_series_forget(struct store_write *write, const uint64_t *handles, size_t n) MUST_CHECK;

/* What is added from here on is sent after what was added before is durable. Without effect while
 * the present stage is empty. */
void store_write_next_stage(struct store_write *write);

/* ERR_BUSY at once when the engine's queue is full, ERR_FULL or ERR_READ_ONLY when it takes no
 * writes: then `done` is not called and the batch is still the caller's. An empty batch succeeds.
 * After `done` the same batch may be submitted again. */
int store_write_submit(struct store_write *write) MUST_CHECK;

/* Microseconds. Set once by the caller and kept on retry.
 *
 * A stamp is above every stamp that this process took before, also after its clock was set back,
 * and above every stamp with which an earlier process of its name stored something. A shared engine
 * knows that from the end of the predecessor's session; then it has to keep its stamps below the
 * end of its own, and within the permitted difference of clocks of the store's clock. Of what
 * processes of other names take at the same time no engine knows anything: two may take the same
 * stamp, and what both put with it is a tie. A stamp that a caller has made himself, ahead of the
 * clock, does not count: a shared engine whose later stamps were above it would run away from the
 * clock. Where one process has the store, as with LMDB, all that was stored before is an earlier
 * process's. */
int64_t store_stamp(struct store *store);

/* ---- Reading ------------------------------------------------------------------------------- */

/* Where a request goes on. Opaque; len 0 is the beginning. */
struct store_token {
	size_t len;
	uint8_t bytes[STORE_TOKEN_MAX_BYTES];
};

enum store_op {
	STORE_RANGE,
	STORE_LAST_BEFORE,
	STORE_AGGREGATE,
	STORE_CELL_GET,
	STORE_CELL_SCAN,
	STORE_ENUMERATE,
	STORE_SERIES_OPEN,
	STORE_SERIES_LIST,
	STORE_SERIES_NEWS,
	STORE_SERIES_DESCRIBE,
	STORE_SHARES,
	STORE_PERIODS,
	STORE_STATS,
	STORE_VERIFY,
};

/* Samples of one series, ascending by time unless read backward. */
struct store_points {
	size_t count;
	const int64_t *ts_ms;
	/* By field, `count` each; NULL for a field not asked for. A type may be VALUE_NONE. */
	const uint64_t *bits[TABLE_FIELDS_MAX];
	const uint8_t *types[TABLE_FIELDS_MAX];
};

/* Samples of start <= ts < end. A time at which none of the wanted fields has a value is left out.
 */
struct store_range {
	enum table table;
	int64_t period_ms;
	const uint64_t *handles;
	size_t handle_count;
	int64_t start_ms, end_ms;
	unsigned fields; /* bit f set: field f wanted; 0 = all */
	bool backward;   /* newest first */
	/* Points per series over all slices (the token remembers); 0 = no limit of its own. A
	 * request that has reached its limit is finished: `more` is not set for it. */
	size_t limit;
	/* Result: by handle, for each slice again. After `more`, those up to the token hold what
	 * was read so far, the others nothing; the next slice gives only the rest, and nothing for
	 * what was given before. An unknown handle has no points. */
	struct store_points *points;
};

/* For each handle the newest sample with before - look_back <= ts < before, all its fields, in
 * points[i] (count 0 or 1); sliced like a range. */
struct store_last_before {
	enum table table;
	int64_t period_ms;
	const uint64_t *handles;
	size_t handle_count;
	int64_t before_ms, look_back_ms; /* look_back 0: without bound */
	struct store_points *points;
};

/* Of the samples of one field in one window: integers are exact in first, last, min and max; sum is
 * a double. NaN counts in `count`, makes the sum NaN and is never min or max (NONE if there is
 * nothing else). Of equal numbers of different type, min and max are any. A window without samples
 * has count 0 and the rest zero, which means nothing.
 *
 * The sum is kept in two parts, so that sums of sums are no less exact: `integers` of the integers,
 * exactly, and `doubles` of the doubles, in any order of addition. (Where a column has values of
 * different types, the integers may be among the doubles.) `sum` is both, of integers alone rounded
 * once.
 *
 * A sum beyond all doubles is infinite; but its mean may be a double, and it may come back to them
 * when more is added. So `scaled` is `doubles` times 2^-64, which no number of doubles can
 * overflow; beside such a sum the integers are nothing. */
struct store_summary {
	uint64_t count;
	__int128 integers;
	double sum, doubles, scaled;
	struct value min, max, first, last;
	int64_t first_ts_ms, last_ts_ms;
};

/* A sum that is kept in these two ways, and the mean of `count` values with that sum: infinite or
 * NaN only if some of the values are. */
static inline double store_sum(double sum, double scaled)
{
	return LIKELY(isfinite(sum)) ? sum : scaled * 0x1p64;
}
double store_mean(double sum, double scaled, uint64_t count);

/* The windows of one series in which there are samples, ascending: list[i] is of window number
 * numbers[i]. */
struct store_windows {
	size_t count;
	const uint32_t *numbers;
	const struct store_summary *list;
};
/* All of them, to[window_count]: a window without samples becomes zero. */
void store_windows_spread(const struct store_windows *windows, size_t window_count,
			  struct store_summary *to);

/* Window number w is [start + w * window, + window), cut at end.
 * window_count = ceil((end - start) / window), STORE_WINDOWS_MAX in all handles together. */
struct store_aggregate {
	enum table table;
	int64_t period_ms;
	const uint64_t *handles;
	size_t handle_count;
	unsigned field;
	int64_t start_ms, end_ms, window_ms;
	size_t window_count; /* set by store_read_submit */
	/* Result by handle, for each slice: those from the last slice's next_handle (0 at first) to
	 * this one's are whole, all others have none. Without `more` next_handle is handle_count.
	 */
	struct store_windows *windows;
	size_t next_handle;
};

struct store_cell {
	struct store_parts column;
	struct slice value; /* of a set: its elements ascending, each as u16 length (LE) and text */
	int64_t stamp_us;   /* stamped cells */
	uint64_t version;   /* conditional cells */
	int64_t expires_ms;
};

struct store_cell_get {
	enum table table;
	struct store_parts key, column;
	bool found;             /* result */
	struct store_cell cell; /* result */
};

/* Columns of one row in byte order, part by part: from <= column < to. A NULL part ends the bound:
 * `from` with only its first part given starts at the first column with that part; `to` likewise
 * ends before it. from/to without parts: the row's ends. The limit holds over all slices, as in a
 * range. */
struct store_cell_scan {
	enum table table;
	struct store_parts key, from, to;
	bool backward;
	size_t limit;             /* 0 = none of its own */
	struct store_cell *cells; /* result */
	size_t count;
};

/* All rows of a table, in any order, each at least once even while others write; rows that exist
 * throughout are never missed; a row whose last data was deleted or has expired may still be given.
 * Samples: handle and period. Cells: key. */
struct store_row {
	uint64_t handle;
	int64_t period_ms;
	struct store_parts key;
};

struct store_enumerate {
	enum table table;
	size_t limit; /* of one slice: `more` is set when rows may be left; 0 = none of its own */
	struct store_row *rows; /* result */
	size_t count;
};

/* Finds the handles of `count` metrics that share tenant and tags, and unless find_only registers
 * those that are new. Order is kept: metrics given together lie together. A registration is durable
 * no later than the first sample that is written with its handle. Handle 0: not found. A metric
 * that stands twice has one handle. The store takes any bytes within the limits of model/series.h;
 * the tags are in the order of tags_sort_and_check. At most STORE_GROUP_MAX metrics, never in
 * slices. */
struct store_series_open {
	struct slice tenant;
	struct tags tags;
	const struct slice *metrics;
	size_t count;
	bool find_only;
	uint64_t *handles; /* result, by metric */
	size_t created;    /* result: how many are new */
};

struct store_series {
	uint64_t handle;
	struct slice tenant, metric, tags_text; /* tags as tags_encode writes them */
	int64_t first_seen_ms;
};

/* Series of a tenant (empty: of all), of a metric (empty: of all), in any order, resumable, as
 * ENUMERATE promises. A series counts as existing from the completion of the OPEN that registered
 * it, durable or not: a list that begins later has it. */
struct store_series_list {
	struct slice tenant, metric;
	size_t limit; /* as of enumerate; but series that are just being registered may come on top
		       */
	struct store_series *series; /* result */
	size_t count;
};

/* Series of one tenant and metric that were registered since, by whichever process, or registered
 * again after they were forgotten; what is forgotten by now may be left out. In any order, sliced
 * and resumed as a list is. For engines with STORE_NEWS, else store_read_submit says ERR_INVALID.
 *
 * It goes on where the last one ended: `since` is its next_since. A first one has since 0, gives no
 * series, only next_since, in one slice. A series whose handle was in the answer of an OPEN that
 * ended before the news were submitted is in these, or was in the news before them, or was
 * registered before the first ones ended. So the first news, then a list that begins when they have
 * ended, and all later news miss no series. What one answer gives is not in the next, unless it was
 * registered again; what the list gave may be. A since is of use while the store is open, and to no
 * other process.
 *
 * News are kept for STORE_NEWS_MS at least, and need not be for longer. ERR_NOT_FOUND: the since,
 * or the token, is so old that some that came after it may have gone. Then nothing of the answer
 * counts, and whoever asks begins with first news and a list again. */
struct store_series_news {
	struct slice tenant, metric; /* neither may be empty */
	uint64_t since;
	size_t limit;                /* as of a list */
	struct store_series *series; /* result */
	size_t count;
	uint64_t next_since; /* result of the last slice; never 0 */
};

/* series[i] of handles[i]; an unknown one has handle 0. */
struct store_series_describe {
	const uint64_t *handles;
	size_t count;
	struct store_series *series; /* result */
};

/* What lies in a retention class of one series: values other than NONE of all fields, the bytes
 * that they take of blocks or of memory, about, and the time of the oldest. Once what was written
 * again, or in several classes, has not been put together, it may count more than once; what of a
 * block has expired may count until all of it has. */
struct store_share {
	uint64_t samples, bytes;
	int64_t oldest_ms; /* if there are any */
};

/* list[i * RETENTION_CLASSES + c] of handles[i]. An unknown handle has nothing. */
struct store_shares {
	enum table table;
	int64_t period_ms;
	const uint64_t *handles;
	size_t handle_count;
	/* Result, for each slice again, as that of an aggregate. */
	struct store_share *list;
	size_t next_handle;
};

/* The periods of a table of samples under which rows are stored, ascending, each once. The rows of
 * one may have gone since. Never in slices. */
struct store_periods {
	enum table table;
	int64_t *periods_ms; /* result */
	size_t count;
};

/* What is stored, by table. Counted in slices: add up over the slices of one resumed request (the
 * result already holds the running sum that the caller passes in again). */
struct store_table_stats {
	uint64_t rows;    /* series with data, or cell rows */
	uint64_t samples; /* values stored, VALUE_NONE not counted; or cells */
	uint64_t blocks, extents;
	uint64_t payload_bytes; /* encoded values and times */
	uint64_t header_bytes;  /* block and extent headers */
	uint64_t key_bytes;
	uint64_t page_bytes; /* what the pages of all these take beyond: their headers, room not
				filled */
	uint64_t head_samples, head_bytes; /* not yet sealed */
};

struct store_stats {
	struct store_table_stats tables[TABLE_COUNT];
	uint64_t series, registry_bytes;
	uint64_t journal_records, journal_bytes;
	uint64_t file_bytes, used_bytes, free_bytes; /* data file, pages in use, free pages */
	/* Pages of the journal, of long cells, of the database itself. With registry_bytes,
	 * free_bytes and the bytes of all tables they are file_bytes, unless something is written
	 * while they are counted. */
	uint64_t journal_page_bytes, blob_bytes, other_bytes;
	/* Groups of series that will be written once more, denser, when their time has passed. */
	uint64_t unsettled_groups;
};

/* Reads everything, checks each checksum, key order and cross-reference. Sliced like stats. */
struct store_verify {
	uint64_t checked; /* stored values looked at */
	uint64_t problems;
	/* Result of this slice: a sentence each, at most 100. */
	const char **sentences;
	size_t sentence_count;
};

struct store_request {
	enum store_op op;
	struct store_request *next;
	int err;                  /* result: of this request alone */
	bool more;                /* result: stopped at a bound; submit again with `token` */
	bool ran, resumed;        /* store.c's: was part of a submission, of one before this */
	bool owned;               /* store.c's: all that it points to lies in the read's arena */
	struct store_token token; /* in and out */
	union {
		struct store_range range;
		struct store_last_before last_before;
		struct store_aggregate aggregate;
		struct store_cell_get cell_get;
		struct store_cell_scan cell_scan;
		struct store_enumerate enumerate;
		struct store_series_open series_open;
		struct store_series_list series_list;
		struct store_series_news series_news;
		struct store_series_describe series_describe;
		struct store_shares shares;
		struct store_periods periods;
		struct store_stats *stats; /* large: store_read_add gives it room */
		struct store_verify verify;
	};
};

struct store_read;
/* Runs on the executor. `err` is 0, or the first request's error. */
typedef void store_read_done(struct store_read *read, int err);

struct store_read_work {
	uint64_t extents, blocks_decoded, blocks_summarised, blocks_skipped, points;
	uint64_t rows_decoded; /* of these blocks and of what is not yet in blocks */
	int64_t took_us;       /* from taking it up to `done`, without what it waited */
};

struct store_read {
	uint32_t magic;
	struct store *store;
	struct executor *executor;
	store_read_done *done;
	void *owner;
	int64_t now_ms;      /* the query's now, wall clock; must be set */
	int64_t deadline_us; /* monotonic; 0 = one default query deadline from submission */
	/* Points, cells, rows and series that one submission gives at most; 0 = 1,000,000. An
	 * aggregate gives windows, also empty ones, but never those of less than one handle. */
	size_t points_max;
	struct arena arena; /* requests and results */
	struct store_request *requests, *last_request;
	struct store_read_work work; /* result: what it took */
	_Atomic bool cancelled;      /* set by store_read_cancel */
	bool in_flight, dropped;     /* store.c's: submitted; and freed since */
	struct task task;            /* the engine's */
	int err;
	struct errbuf error; /* for people: what is damaged, full or busy; else empty */
};

/* `max_bytes` bounds requests, copies of what they point to, and results together. A request that
 * runs into it says `more`, or ERR_LIMIT when not even one result had room. */
struct store_read *store_read_new(struct store *store, size_t max_bytes);
/* Not of a submitted read. Forgets requests, results and a cancellation; the rest stays as it was
 * set. */
void store_read_reset(struct store_read *read);
/* At any time. One that was submitted is cancelled, `done` comes no more, and its memory goes when
 * the engine has let go of it. NULL is allowed. */
void store_read_free(struct store_read *read);

/* A zeroed request to be filled in; NULL when the arena is full. What it points to must stay until
 * store_read_submit, no longer: the copies are in the request then. */
struct store_request *store_read_add(struct store_read *read, enum store_op op) MUST_CHECK;

/* ERR_BUSY: too many reads wait. ERR_INVALID, ERR_LIMIT: a request, whose `err` says so, lies
 * outside the contract, or the arena has no room for what it points to. In both cases `done` is not
 * called and nothing has begun.
 *
 * Two ways to go on after `more`: submit the same read again, which runs just the requests that
 * said `more` (their earlier results go on lying in the arena, and count); or copy the token,
 * reset, and add the request again with it. The fields of a resumed request must be those of the
 * first. A deadline that passes ends what is not finished with ERR_TIMEOUT; `more` and the token
 * stand. */
int store_read_submit(struct store_read *read) MUST_CHECK;
/* What to tell people of an error that a read ended with. */
const char *store_read_sentence(const struct store_read *read, int err);
/* Asks a submitted read to end soon; done then says ERR_CANCELLED, or its result. */
void store_read_cancel(struct store_read *read);

/* ---- Backup --------------------------------------------------------------------------------- */

/* All that is stored at one moment, as bytes that the engine alone understands. What was durable
 * when the backup began is in it, and of what was written later either nothing or all that was
 * written before it. One at a time; it belongs to one thread, which waits for the disk. It is ended
 * before the store is closed. */
struct store_backup {
	struct store *store;
};

/* What it costs: of the space that was freed since it began none is used again before it ends. */
struct store_backup_cost {
	uint64_t bytes; /* how long the backup becomes, at most */
	uint64_t given_bytes;
	uint64_t held_bytes; /* freed, and kept for it */
};

/* `growth_max_bytes`: of what is kept for it. ERR_INVALID: the engine backs nothing up; ERR_BUSY:
 * another backup is at work; or an error of the disk; each with a sentence. */
int store_backup_begin(struct store *store, uint64_t growth_max_bytes, struct store_backup **backup,
		       struct errbuf *e) MUST_CHECK;
/* The next bytes; *bytes is less than max_bytes only at the end. An error with a sentence: what
 * the disk cannot give ends the backup, not the store. */
int store_backup_read(struct store_backup *backup, void *to, size_t max_bytes, size_t *bytes,
		      struct errbuf *e) MUST_CHECK;
/* To be called about every second, also while nothing is read. ERR_FULL with a sentence: it has
 * come to cost more than it may, and is to be ended. */
int store_backup_look(struct store_backup *backup, struct store_backup_cost *cost,
		      struct errbuf *e) MUST_CHECK;
/* At any time. NULL is allowed. */
void store_backup_end(struct store_backup *backup);

/* ---- Life ---------------------------------------------------------------------------------- */

/* Finishes what was accepted, then closes; blocks. No batch may be submitted any more. */
void store_close(struct store *store);

/* Rises whenever a handle may have died (series_forget): caches of handles are then emptied. What
 * other processes forget need not raise it, on an engine whose handles live on. */
uint64_t store_series_generation(struct store *store);

/* A cell request, checked and flat: what store.c hands to the engine. The bytes are the caller's:
 * the engine copies what it keeps. */
enum cell_action {
	CELL_PUT,
	CELL_DELETE,
	CELL_ROW_DELETE, /* without a column */
	CELL_ADD,
	CELL_PUT_IF,
	CELL_DELETE_IF,
	CELL_LOG_PUT,
	CELL_LOG_REMOVE, /* from `column`, to `to` */
};

struct store_cell_write {
	enum cell_action action;
	enum table table;
	struct slice key;    /* store_parts_encode of the row key */
	struct slice column; /* store_parts_encode of the column */
	struct slice to;     /* likewise */
	bool to_end;         /* to the row's end, instead */
	struct slice value;  /* or the set's element */
	int64_t stamp_us, expires_ms;
	uint64_t version;
	struct store_write_cond *outcome; /* conditional only; in the write's arena */
};

/* The parts as one byte string whose order is theirs, part by part: each part but the last with 00
 * written as 00 ff and closed by 00 01; the last as it is. `count` parts; a NULL part ends early
 * (for the bounds of a scan). Decoding gives slices into `arena` or `bytes`; ERR_DAMAGED for bytes
 * that no encoder wrote, ERR_LIMIT for a full arena. */
size_t store_parts_bytes(const struct store_parts *parts, size_t count);
int store_parts_encode(const struct store_parts *parts, size_t count, struct buf *out);
/* The same into `to`, which has room for store_parts_bytes. */
struct slice store_parts_put(char *to, const struct store_parts *parts, size_t count);
int store_parts_decode(struct slice bytes, size_t count, struct arena *arena,
		       struct store_parts *parts) MUST_CHECK;

/* How an engine ends a submission, on the executor: with the batch's `err`. Nothing of the batch
 * may be touched afterwards. */
void store_write_end(struct store_write *write);
void store_read_end(struct store_read *read);

/* One table per engine. `append` and the other adders encode at once into the write's arena, on the
 * caller's thread; when the arena is full they return ERR_LIMIT and the batch is as before. store.c
 * checks limits and arguments, of reads too, before it calls any of these; it never hands on an
 * empty batch, an empty read, or a request that was finished by an earlier submission. read_submit
 * finds `err` 0 and `more` false in each request. */
struct store_engine {
	const char *name;
	unsigned can; /* enum store_capability */
	int (*append)(struct store_write *write, const struct store_target *target, int64_t ts_ms,
		      unsigned fields, const uint64_t *handles, size_t n,
		      const struct value *values);
	/* For a batch in runs; NULL: the engine appends one time after the other. */
	int (*append_columns)(struct store_write *write, const struct store_target *target,
			      const struct store_columns *columns);
	int (*add_delete_range)(struct store_write *write, const struct store_target *target,
				const uint64_t *handles, size_t n, int64_t start_ms,
				int64_t end_ms);
	int (*add_cell)(struct store_write *write, const struct store_cell_write *cell);
	int (*add_forget)(struct store_write *write, const uint64_t *handles, size_t n);
	int (*add_rekey)(struct store_write *write, const struct store_rekeying *rekeying);
	void (*next_stage)(struct store_write *write);
	int (*write_submit)(struct store_write *write);
	int (*read_submit)(struct store_read *read);
	int64_t (*stamp)(struct store *store);
	uint64_t (*series_generation)(struct store *store);
	/* With STORE_BACKS_UP. What begins is a struct store_backup with `store` set. */
	int (*backup_begin)(struct store *store, uint64_t growth_max_bytes,
			    struct store_backup **backup, struct errbuf *e);
	int (*backup_read)(struct store_backup *backup, void *to, size_t max_bytes, size_t *bytes,
			   struct errbuf *e);
	int (*backup_look)(struct store_backup *backup, struct store_backup_cost *cost,
			   struct errbuf *e);
	void (*backup_end)(struct store_backup *backup);
	void (*close)(struct store *store);
};

#endif
