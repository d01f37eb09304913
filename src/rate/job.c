/* Order of events: load_run reads the checkpoint that covers the next row of the table, and where
 * the following one begins; open_checkpoint takes the states out of it; then window by window the
 * feeder reads, write_window appends row by row and submits when the batch is full or the window
 * done.
 *
 * A run whose checkpoint is damaged begins again with the raw data that is there; so does a counter
 * that the checkpoint does not have, as when its OID was left out of the OIDSet for a time. The
 * oldest raw data may have expired: rows that begin before a counter's first raw sample are then
 * known only in part, so look_for_stored asks which of them are stored, and these stay as they are.
 * Until all of the raw data is fed no checkpoint is written, so that whatever breaks off begins
 * again. */
#include "rate/job.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "rate/checkpoint.h"
#include "rate/feeder.h"
#include "rate/rows.h"

enum {
	WRITE_MAX_BYTES = 32 << 20,
	BINS_LEAST = 4, /* fewer times than these the store gathers row by row */
	CELLS_MAX_BYTES = 2 * CHECKPOINT_READ_MAX_BYTES + (1 << 20),
};

struct rate_job {
	struct store *store;
	struct rate_job_options options;
	const struct rate_table *table;
	struct feeder feeder;
	struct store_read *read; /* the cells of the present run, as long as it runs */
	struct store_write *write;
	struct checkpoint_writer writer;
	struct checkpoint_row old_row;
	struct errbuf error;
	struct rate_job_result result;

	/* The present run. */
	size_t first, last;   /* rows of the table */
	uint64_t first_id;    /* the cell's column */
	struct slice old;     /* the cell as it was; NULL: none */
	int64_t old_until_ms; /* of it */
	uint64_t end_id;      /* where the next run begins; UINT64_MAX: nowhere */
	bool divides;         /* rows from `divide_id` on go to a cell of their own */
	uint64_t divide_id;
	bool old_damaged; /* the old cell cannot be read */
	bool looked;      /* which counters begin is known */
	bool begins;      /* some do, and may have been there before */
	struct stored_starts {
		size_t cap; /* counters */
		/* By counter: the levels whose row before the first sample is stored; 0 of those
		 * that go on. */
		uint8_t *bits;
	} stored;
	struct buf old_kept; /* the old cell, once `read` has been used again */
	bool written;        /* a window of it */
	size_t place;        /* of the window: the feeder's, of the next row to be written */
	bool row_fed;        /* its rows wait in the feeder */
	struct bins {        /* of that row, by column; for append_bins */
		size_t cap;
		int64_t *ts_ms;
		uint64_t *vals;
		struct store_columns columns;
		uint64_t handles[RATE_COLUMNS_MAX];
	} bins;
	bool checkpoint_waits; /* all rows are written, and it found no room behind them */
	size_t rows_added;     /* to the batch */
	/* Of what is written of the present window: so low that whoever read the same raw data
	 * and checkpoint later, and has written by now, is not overwritten. */
	int64_t stamp_us;
};

static void on_cells(struct store_read *read, int err);
static void rate_job_on_window(struct feeder *feeder, int err);
static void rate_job_on_written(struct store_write *write, int err);
static void on_stored(struct rate_job *job, int err);
static void write_window(struct rate_job *job);
static int load_run(struct rate_job *job);

struct rate_job *rate_job_new(struct store *store, struct executor *executor)
{
	struct rate_job *job = mem_zalloc(sizeof(*job));
	job->store = store;
	feeder_init(&job->feeder, store, executor, rate_job_on_window, job);
	job->read = store_read_new(store, CELLS_MAX_BYTES);
	job->read->executor = executor;
	job->read->done = on_cells;
	job->read->owner = job;
	job->write = store_write_new(store, WRITE_MAX_BYTES);
	job->write->executor = executor;
	job->write->done = rate_job_on_written;
	job->write->owner = job;
	job->write->in_runs = true;
	buf_init(&job->writer.bytes, CHECKPOINT_MAX_BYTES);
	buf_init(&job->old_kept, CHECKPOINT_READ_MAX_BYTES);
	return job;
}

void rate_job_free(struct rate_job *job)
{
	feeder_release(&job->feeder);
	store_read_free(job->read);
	store_write_free(job->write);
	buf_release(&job->writer.bytes);
	buf_release(&job->old_kept);
	mem_free(job->stored.bits);
	mem_free(job->bins.vals);
	mem_free(job->bins.ts_ms);
	mem_free(job);
}

void *rate_job_owner(const struct rate_job *job)
{
	return job->options.owner;
}

const char *rate_job_error(const struct rate_job *job)
{
	return job->error.text;
}

struct rate_job_result rate_job_result(const struct rate_job *job)
{
	return job->result;
}

static void rate_job_finish(struct rate_job *job, int err)
{
	if (err && !job->error.text[0])
		errbuf_set(&job->error, err, "%s", err_text(err));
	if (err)
		errbuf_prefix(&job->error, err, "rates of " SHOWN " " SHOWN,
			      SHOWN_OF(job->table->device), SHOWN_OF(job->table->oidset));
	stat_add(err ? STAT_rate_jobs_failed : STAT_rate_jobs, 1);
	job->options.done(job, err);
}

/* ---- A run ---------------------------------------------------------------------------------- */

static struct store_parts rate_job_key(const struct rate_table *table)
{
	return (struct store_parts){{table->device, table->oidset}};
}

static int rate_job_add_scan(struct rate_job *job, const uint8_t *bound, bool backward)
{
	struct store_request *request = store_read_add(job->read, STORE_CELL_SCAN);
	struct slice part = {(const char *)bound, 8};
	if (!request)
		return ERR_LIMIT;
	request->cell_scan = (struct store_cell_scan){.table = TABLE_RATE_CHECKPOINTS,
						      .key = rate_job_key(job->table),
						      .backward = backward,
						      .limit = 1};
	if (backward)
		request->cell_scan.to.part[0] = part;
	else
		request->cell_scan.from.part[0] = part;
	return 0;
}

/* The cells on both sides of what is just above the row's id: the run that covers it, and the next
 * one. */
static int load_run(struct rate_job *job)
{
	uint64_t id = job->table->rows[job->first].id;
	job->old_damaged = job->looked = job->begins = job->written = false;
	job->stamp_us = store_stamp(job->store) - 1; /* the first window goes on to it */
	buf_release(&job->old_kept);
	store_read_reset(job->read);
	job->read->now_ms = job->options.now_ms;
	uint8_t *bound = arena_alloc(&job->read->arena, 8);
	if (!bound)
		return ERR_LIMIT;
	be64_put(bound, id + 1);
	int err = rate_job_add_scan(job, bound, true);
	if (!err)
		err = rate_job_add_scan(job, bound, false);
	return err ? err : store_read_submit(job->read);
}

static uint64_t rate_job_column_of(const struct store_cell *cell)
{
	return be64_get((const uint8_t *)cell->column.part[0].data);
}

static int take_states(struct rate_job *job, const struct checkpoint *c, const size_t *match,
		       size_t row)
{
	struct counter *places[RATE_COLUMNS_MAX];
	struct feeder *f = &job->feeder;
	for (size_t i = 0; i < c->column_count; i++)
		places[i] = match[i] == RATE_COLUMNS_MAX
				    ? NULL
				    : &f->states[feeder_counter(f, row, match[i])];
	int err = checkpoint_states(c, &job->old_row, places);
	if (err)
		return err;
	for (size_t i = 0; i < c->column_count; i++) {
		size_t at;
		if (!(job->old_row.columns >> i & 1) || !places[i])
			continue;
		at = feeder_counter(f, row, match[i]);
		counter_convert(&c->config, &job->table->config, &f->states[at]);
		feeder_go_on(f, at);
	}
	return 0;
}

/* The states of the checkpoint go to the rows that the table has. */
static int open_checkpoint(struct rate_job *job)
{
	size_t match[RATE_COLUMNS_MAX], row = job->first;
	struct checkpoint c;
	int err = checkpoint_open(job->old, &c);
	if (err)
		return err;
	job->old_until_ms = c.until_ms;
	/* What one job could judge every later one can, though it may have heard of nothing newer.
	 */
	if (c.until_ms > job->feeder.end_ms && c.until_ms <= COUNTER_TS_MAX)
		job->feeder.end_ms = c.until_ms;
	/* Another frequency has raw data of its own, from which everything begins again. */
	if (c.config.base_ms != job->table->config.base_ms) {
		job->old = (struct slice){NULL, 0};
		job->old_until_ms = CHECKPOINT_NEVER;
		return 0;
	}
	checkpoint_match(&c, job->table, match);
	while (!(err = checkpoint_next(&c, &job->old_row))) {
		while (row < job->last && job->table->rows[row].id < job->old_row.id)
			row++;
		if (row == job->last || job->table->rows[row].id != job->old_row.id)
			continue;
		err = take_states(job, &c, match, row);
		if (err)
			return err;
	}
	return err == ERR_NOT_FOUND ? 0 : err;
}

static bool nothing_to_do(const struct rate_job *job)
{
	const struct feeder *f = &job->feeder;
	for (size_t i = 0; i < f->count * job->table->column_count; i++)
		if (f->from_ms[i] < f->end_ms)
			return false;
	return true;
}

/* Which rows are in it: up to the next run, or fewer if they are too many for one cell. */
static void bound_run(struct rate_job *job, const struct store_cell_scan *here,
		      const struct store_cell_scan *next)
{
	const struct rate_table *table = job->table;
	size_t rows_max = RATE_RUN_COUNTERS / table->column_count + 1;
	job->old = here->count ? here->cells[0].value : (struct slice){NULL, 0};
	job->first_id = here->count ? rate_job_column_of(&here->cells[0]) : 0;
	job->end_id = next->count ? rate_job_column_of(&next->cells[0]) : UINT64_MAX;
	job->last = job->first;
	while (job->last < table->row_count && table->rows[job->last].id < job->end_id)
		job->last++;
	job->divides = job->last - job->first > (here->count ? 2 : 1) * rows_max;
	if (job->divides) {
		job->last = job->first + rows_max;
		job->divide_id = table->rows[job->last].id;
	}
}

static void next_run(struct rate_job *job)
{
	job->first = job->last;
	if (job->first == job->table->row_count) {
		rate_job_finish(job, 0);
		return;
	}
	int err = load_run(job);
	if (err)
		rate_job_finish(job, err);
}

/* A window has the stamp after that of the one before it, whose states it goes on from: the run's
 * inputs were read after its first. The store gives one as well, so that the next run's is higher.
 */
static void rate_job_stamp_window(struct rate_job *job)
{
	int64_t now_us = store_stamp(job->store);
	job->stamp_us++;
	ASSERT(job->stamp_us <= now_us);
}

static void rate_job_next_window(struct rate_job *job)
{
	rate_job_stamp_window(job);
	int err = feeder_next(&job->feeder);
	if (err)
		rate_job_finish(job, err);
}

/* Nobody knows any more what was in its bins. */
static int begin_again(struct rate_job *job)
{
	log_warn("rates of " SHOWN ", OIDSet " SHOWN ": a checkpoint cannot be read: its %zu rows "
		 "begin again with the raw data that is there",
		 SHOWN_OF(job->table->device), SHOWN_OF(job->table->oidset),
		 job->last - job->first);
	stat_add(STAT_rate_checkpoints_damaged, 1);
	feeder_begin(&job->feeder, job->table, job->first, job->last - job->first,
		     job->feeder.end_ms, job->options.now_ms);
	job->old = (struct slice){NULL, 0};
	job->old_until_ms = CHECKPOINT_NEVER;
	job->old_damaged = true;
	return 0;
}

static void on_cells(struct store_read *read, int err)
{
	struct rate_job *job = read->owner;
	struct store_request *here = read->requests;
	if (job->begins) {
		on_stored(job, err);
		return;
	}
	if (!err && (here->more || here->next->more))
		err = ERR_LIMIT;
	if (err) {
		rate_job_finish(job, err);
		return;
	}
	bound_run(job, &here->cell_scan, &here->next->cell_scan);
	job->old_until_ms = CHECKPOINT_NEVER;
	feeder_begin(&job->feeder, job->table, job->first, job->last - job->first,
		     job->options.until_ms - feeder_reach_ms(job->table), job->options.now_ms);
	err = job->old.data ? open_checkpoint(job) : 0;
	if (err == ERR_DAMAGED)
		err = begin_again(job);
	if (err) {
		errbuf_set(&job->error, err, "the checkpoint cannot be read: %s", err_text(err));
		rate_job_finish(job, err);
	} else if (nothing_to_do(job)) {
		next_run(job);
	} else {
		rate_job_next_window(job);
	}
}

/* ---- Beginning again ------------------------------------------------------------------------ */

/* The counter begins with raw data, but may have had rows before. */
static bool counter_begins(const struct rate_job *job, size_t counter)
{
	return (job->old_damaged || job->old.data) && !job->feeder.states[counter].known &&
	       job->feeder.from_ms[counter] != FEEDER_NOTHING;
}

/* Before anything is fed. */
static bool note_beginnings(struct rate_job *job)
{
	size_t counters = job->feeder.count * job->table->column_count;
	if (counters > job->stored.cap) {
		job->stored.bits = mem_resize_array(job->stored.bits, counters, 1);
		job->stored.cap = counters;
	}
	memset(job->stored.bits, 0, counters);
	job->looked = true;
	for (size_t i = 0; i < counters && !job->begins; i++)
		job->begins = counter_begins(job, i);
	return job->begins;
}

/* The row of a level that a counter's first raw sample lies in. */
static int64_t first_start_ms(const struct rate_job *job, size_t counter, size_t level)
{
	int64_t first_ms = job->feeder.from_ms[counter];
	return floor_to(first_ms, counter_level_ms(&job->table->config, level));
}

static int add_level(struct rate_job *job, size_t level, const uint64_t *handles, size_t count,
		     int64_t from_ms, int64_t to_ms)
{
	int64_t width = counter_level_ms(&job->table->config, level);
	struct store_request *request = store_read_add(job->read, STORE_RANGE);
	if (!request)
		return ERR_LIMIT;
	request->range = (struct store_range){.table = rate_level_table(level),
					      .period_ms = width,
					      .handles = handles,
					      .handle_count = count,
					      .start_ms = floor_to(from_ms, width),
					      .end_ms = to_ms};
	return 0;
}

/* The old cell lies in the memory of the read that brought it. */
static int keep_old(struct rate_job *job)
{
	int err = buf_append(&job->old_kept, job->old.data, job->old.len);
	job->old = buf_slice(&job->old_kept);
	return err;
}

/* Reads the counters that begin, in their order; on_stored follows. */
static int look_for_stored(struct rate_job *job)
{
	const struct feeder *f = &job->feeder;
	size_t counters = f->count * job->table->column_count;
	int64_t from_ms = FEEDER_NOTHING, to_ms = FEEDER_BEGINNING;
	uint64_t *handles;
	size_t n = 0;
	int err = job->old.data ? keep_old(job) : 0;
	store_read_reset(job->read);
	handles = arena_alloc(&job->read->arena, counters * sizeof(*handles));
	err = err ? err : handles ? 0 : ERR_LIMIT;
	for (size_t i = 0; !err && i < counters; i++) {
		if (!counter_begins(job, i))
			continue;
		handles[n++] = feeder_handle(f, i);
		from_ms = f->from_ms[i] < from_ms ? f->from_ms[i] : from_ms;
		to_ms = f->from_ms[i] > to_ms ? f->from_ms[i] : to_ms;
	}
	for (size_t level = 0; !err && level <= job->table->config.period_count; level++)
		err = add_level(job, level, handles, n, from_ms, to_ms);
	return err ? err : store_read_submit(job->read);
}

static void take_stored(struct rate_job *job, const struct store_request *request, size_t level)
{
	const struct feeder *f = &job->feeder;
	const struct store_points *p = request->range.points;
	for (size_t i = 0; i < f->count * job->table->column_count; i++) {
		if (!counter_begins(job, i))
			continue;
		for (size_t n = 0; n < p->count; n++)
			if (p->ts_ms[n] == first_start_ms(job, i, level))
				job->stored.bits[i] |= (uint8_t)(1u << level);
		p++;
	}
}

static void on_stored(struct rate_job *job, int err)
{
	const struct store_request *request = job->read->requests;
	bool more = false;
	for (size_t level = 0; !err && request; request = request->next, level++) {
		more |= request->more;
		take_stored(job, request, level);
	}
	if (!err && more)
		err = store_read_submit(job->read);
	if (err) {
		errbuf_set(&job->error, err, "%s", store_read_sentence(job->read, err));
		rate_job_finish(job, err);
	} else if (!more) {
		write_window(job);
	}
}

/* Whether a row is known only in part, and as a whole stored. */
static bool stays_stored(const struct rate_job *job, size_t counter, const struct counter_row *row)
{
	return job->stored.bits[counter] >> row->level & 1 &&
	       row->start_ms < job->feeder.from_ms[counter];
}

/* ---- Rows into the store -------------------------------------------------------------------- */

/* One time of one level, of all columns that have it. */
struct moment {
	size_t count, extremes_count;
	uint64_t handles[RATE_COLUMNS_MAX], extremes_handles[RATE_COLUMNS_MAX];
	const struct counter_row *rows[RATE_COLUMNS_MAX]; /* by handle */
	struct value extremes[RATE_COLUMNS_MAX * ROW_EXTREMES_FIELDS];
};

static void add_to_moment(struct moment *m, uint64_t handle, const struct counter_row *row)
{
	m->rows[m->count] = row;
	m->handles[m->count++] = handle;
	if (!row->has_rate)
		return;
	row_extremes_fields(row, &m->extremes[m->extremes_count * ROW_EXTREMES_FIELDS]);
	m->extremes_handles[m->extremes_count++] = handle;
}

/* Beginning again, a row may be stored with other values. */
static int append_moment(struct rate_job *job, size_t level, int64_t ts_ms, const struct moment *m)
{
	const struct counter_config *config = &job->table->config;
	struct store_target target = {rate_level_table(level), job->options.retention[level],
				      counter_level_ms(config, level)};
	struct value values[RATE_COLUMNS_MAX * ROW_FIELDS];
	unsigned fields = rows_fields(config, m->rows, m->count, job->begins, values);
	int err = store_append_fields(job->write, &target, ts_ms, fields, m->handles, m->count,
				      values);
	if (err)
		return err;
	job->rows_added += m->count;
	if (!m->extremes_count)
		return 0;
	target.table = TABLE_STAT_AGGREGATIONS;
	return store_append(job->write, &target, ts_ms, m->extremes_handles, m->extremes_count,
			    m->extremes);
}

/* The next row of a level that a column has from `at` on, and its time; none: INT64_MAX. */
static inline const struct counter_row *rate_job_find_level(const struct feeder_rows *rows,
							    size_t column,
							    const struct counter_row *at,
							    size_t level, int64_t *ts_ms)
{
	const struct counter_row *end = rows->list + rows->start[column + 1];
	while (at < end && at->level != level)
		at++;
	*ts_ms = at < end ? at->start_ms : INT64_MAX;
	return at;
}

static inline int64_t earliest(const int64_t *ts_ms, size_t count)
{
	int64_t first_ms = INT64_MAX;
	for (size_t i = 0; i < count; i++)
		first_ms = ts_ms[i] < first_ms ? ts_ms[i] : first_ms;
	return first_ms;
}

/* Columns that are polled together have their rows at the same times: these go together. */
static int append_level(struct rate_job *job, size_t row, size_t level)
{
	const struct feeder_rows *rows = &job->feeder.rows;
	const uint64_t *handles = job->table->rows[row].handles;
	const struct counter_row *next[RATE_COLUMNS_MAX];
	size_t columns = job->table->column_count;
	int64_t next_ms[RATE_COLUMNS_MAX];
	struct moment m;
	int err = 0;
	for (size_t c = 0; c < columns; c++)
		next[c] = rate_job_find_level(rows, c, rows->list + rows->start[c], level,
					      &next_ms[c]);
	while (!err) {
		int64_t ts_ms = earliest(next_ms, columns);
		if (ts_ms == INT64_MAX)
			break;
		m.count = m.extremes_count = 0;
		for (size_t c = 0; c < columns; c++) {
			if (next_ms[c] != ts_ms)
				continue;
			if (!stays_stored(job, feeder_counter(&job->feeder, row, c), next[c]))
				add_to_moment(&m, handles[c], next[c]);
			next[c] = rate_job_find_level(rows, c, next[c] + 1, level, &next_ms[c]);
		}
		err = m.count ? append_moment(job, level, ts_ms, &m) : 0;
	}
	return err;
}

/* The bins among the rows of a column, the first such column's times becoming those of all; false:
 * they have other times, or something to be said of them beside how much was counted. */
static bool gather_column(struct bins *bins, const struct counter_row *row,
			  const struct counter_row *end, const struct counter_row *usual)
{
	size_t count = 0, max = bins->columns.n ? bins->columns.count : SIZE_MAX;
	uint64_t *vals = bins->vals + bins->columns.n * bins->columns.count, others = 0;
	for (; row < end; row++) {
		if (row->level)
			continue;
		if (count == max)
			return false;
		if (!bins->columns.n)
			bins->ts_ms[count] = row->start_ms;
		others |= (uint64_t)(row->start_ms ^ bins->ts_ms[count]) | row->unplaced |
			  (row->count ^ usual->count) | (row->covered_ms ^ usual->covered_ms) |
			  row->flags;
		vals[count++] = row->val;
	}
	if (!bins->columns.n)
		bins->columns.count = count;
	return !others && count == bins->columns.count;
}

static void make_room_for_bins(struct bins *bins, size_t rows)
{
	if (rows <= bins->cap)
		return;
	bins->cap = rows;
	bins->ts_ms = mem_resize_array(bins->ts_ms, rows, sizeof(*bins->ts_ms));
	bins->vals = mem_resize_array(bins->vals, rows, sizeof(*bins->vals));
}

/* Whether the bins of the row can go by column, as nearly all do: those of all columns that have
 * any are of the same times, and usual. */
static bool gather_bins(struct rate_job *job, size_t row)
{
	struct counter_row usual = row_usual(&job->table->config, 0);
	const struct feeder_rows *rows = &job->feeder.rows;
	struct bins *bins = &job->bins;
	bins->columns = (struct store_columns){.fields = 1, .type = VALUE_U64};
	make_room_for_bins(bins, rows->count);
	for (size_t c = 0; c < job->table->column_count; c++) {
		const struct counter_row *list = rows->list;
		if (rows->start[c] == rows->start[c + 1])
			continue;
		if (!gather_column(bins, list + rows->start[c], list + rows->start[c + 1], &usual))
			return false;
		bins->handles[bins->columns.n++] = job->table->rows[row].handles[c];
	}
	bins->columns.ts_ms = bins->ts_ms;
	bins->columns.bits = bins->vals;
	bins->columns.handles = bins->handles;
	return bins->columns.count >= BINS_LEAST;
}

static int append_bins(struct rate_job *job, size_t row)
{
	const struct store_columns *columns = &job->bins.columns;
	if (job->begins || !gather_bins(job, row))
		return append_level(job, row, 0);
	struct store_target target = {rate_level_table(0), job->options.retention[0],
				      job->table->config.base_ms};
	int err = store_append_columns(job->write, &target, columns);
	if (!err)
		job->rows_added += columns->n * columns->count;
	return err;
}

static int rate_job_append_row(struct rate_job *job, size_t row)
{
	unsigned levels = job->feeder.rows.levels;
	int err = levels & 1 ? append_bins(job, row) : 0;
	for (size_t level = 1; !err && level <= job->table->config.period_count; level++)
		if (levels >> level & 1)
			err = append_level(job, row, level);
	return err;
}

/* ---- The checkpoint ------------------------------------------------------------------------- */

/* Also with counters of the row that the table has no handle of. */
static void add_fed_row(struct rate_job *job, size_t row)
{
	const struct feeder *f = &job->feeder;
	size_t at = feeder_counter(f, row, 0);
	uint64_t columns = 0;
	for (size_t c = 0; c < job->table->column_count; c++)
		columns |= (uint64_t)f->states[at + c].known << c;
	if (columns)
		checkpoint_add(&job->writer, job->table->rows[row].id, columns, &f->states[at]);
}

/* A row that the table does not have, with its columns under their places in the table. */
static int add_kept_row(struct rate_job *job, const struct checkpoint *c, const size_t *match)
{
	struct counter states[RATE_COLUMNS_MAX];
	uint64_t columns = 0;
	int err = checkpoint_states(c, &job->old_row, NULL);
	if (err)
		return err;
	for (size_t i = 0; i < c->column_count; i++) {
		const struct counter *old = &job->old_row.states[i];
		if (!(job->old_row.columns >> i & 1) || match[i] == RATE_COLUMNS_MAX ||
		    old->last.ts_ms < job->feeder.end_ms - RATE_JOB_SILENT_MS)
			continue;
		states[match[i]] = *old;
		counter_convert(&c->config, &job->table->config, &states[match[i]]);
		columns |= UINT64_C(1) << match[i];
	}
	if (columns)
		checkpoint_add(&job->writer, job->old_row.id, columns, states);
	return 0;
}

static int next_old_row(struct rate_job *job, struct checkpoint *c, bool *there)
{
	int err = *there ? checkpoint_next(c, &job->old_row) : 0;
	*there = *there && !err;
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* `fed`: the rows that were fed, and those of the old checkpoint that nobody fed. Else what of the
 * old checkpoint is left behind for the next run. What lies beyond the run was left behind by a
 * write that did not end. */
static int merge_rows(struct rate_job *job, struct checkpoint *c, bool fed)
{
	size_t match[RATE_COLUMNS_MAX], row = fed ? job->first : job->last;
	bool there = job->old.data != NULL;
	int err = 0;
	if (there)
		checkpoint_match(c, job->table, match);
	while (!err && !(err = next_old_row(job, c, &there)) && there) {
		bool behind = job->divides && job->old_row.id >= job->divide_id;
		for (; fed && row < job->last && job->table->rows[row].id < job->old_row.id; row++)
			add_fed_row(job, row);
		if (behind == fed || job->old_row.id >= job->end_id)
			continue;
		if (!fed || row == job->last || job->table->rows[row].id != job->old_row.id)
			err = add_kept_row(job, c, match);
	}
	for (; fed && row < job->last; row++)
		add_fed_row(job, row);
	return err;
}

static int rate_job_put_bytes(struct rate_job *job, uint64_t column_id, struct slice bytes)
{
	uint8_t column[8];
	be64_put(column, column_id);
	struct store_parts key = rate_job_key(job->table), at = {{{(const char *)column, 8}}};
	return store_cell_put(job->write, TABLE_RATE_CHECKPOINTS, &key, &at, bytes, job->stamp_us,
			      0);
}

static int rate_job_put_cell(struct rate_job *job, uint64_t column_id, int64_t until_ms, bool fed)
{
	struct slice columns[RATE_COLUMNS_MAX] = {{NULL, 0}}, bytes;
	struct checkpoint old = {.rows_left = 0};
	int err = job->old.data ? checkpoint_open(job->old, &old) : 0;
	for (size_t c = 0; c < job->table->column_count; c++)
		columns[c] = job->table->columns[c].name;
	checkpoint_begin(&job->writer, &job->table->config, until_ms, columns,
			 job->table->column_count);
	if (!err)
		err = merge_rows(job, &old, fed);
	if (!err)
		err = checkpoint_end(&job->writer, &bytes);
	if (err == ERR_LIMIT)
		errbuf_set(&job->error, err, "a checkpoint of more than %d bytes",
			   CHECKPOINT_MAX_BYTES);
	return err ? err : rate_job_put_bytes(job, column_id, bytes);
}

/* Stage 2. While some counters still catch up with the others, the old checkpoint stays; also while
 * all begin again. What a damaged one leaves behind is damaged, too: an empty cell. */
static int add_checkpoint(struct rate_job *job)
{
	int err = 0;
	if (job->feeder.hi_ms < (job->old_damaged ? job->feeder.end_ms : job->old_until_ms))
		return 0;
	store_write_next_stage(job->write);
	/* The part that is left behind comes first: if the batch is full between the two, both the
	 * old cell and this one are there, and say the same. */
	if (job->divides && job->old_damaged)
		err = rate_job_put_bytes(job, job->divide_id, SLICE(""));
	else if (job->divides)
		err = rate_job_put_cell(job, job->divide_id, job->old_until_ms, false);
	if (!err)
		err = rate_job_put_cell(job, job->first_id, job->feeder.hi_ms, true);
	return err;
}

/* ---- A window ------------------------------------------------------------------------------- */

static void rate_job_submit(struct rate_job *job)
{
	int err = store_write_submit(job->write);
	if (err)
		rate_job_finish(job, err);
}

/* True: the batch is full, and what did not fit goes into the next one. */
static bool rate_job_is_full(const struct rate_job *job, int err)
{
	return err == ERR_LIMIT && job->write->samples + job->write->cells > 0;
}

static void write_window(struct rate_job *job)
{
	int err = 0;
	job->write->stamp_us = job->stamp_us;
	for (; job->place < job->feeder.count; job->place++, job->row_fed = false) {
		size_t row = job->feeder.places[job->place].row;
		if (!job->row_fed) {
			feeder_row(&job->feeder, row);
			job->result.rows += job->feeder.rows.count;
		}
		job->row_fed = true;
		err = rate_job_append_row(job, row);
		if (err)
			break;
	}
	if (!err) {
		err = add_checkpoint(job);
		job->checkpoint_waits = err != 0;
	}
	if (err && !rate_job_is_full(job, err))
		rate_job_finish(job, err);
	else
		rate_job_submit(job);
}

static void take_tally(struct rate_job *job)
{
	const struct feeder *f = &job->feeder;
	job->result.samples += f->outcomes[COUNTER_FIRST] + f->outcomes[COUNTER_COUNTED] +
			       f->outcomes[COUNTER_WRAPPED] + f->outcomes[COUNTER_RESTARTED] +
			       f->outcomes[COUNTER_LOST];
	job->result.wraps += f->outcomes[COUNTER_WRAPPED];
	job->result.restarts += f->outcomes[COUNTER_RESTARTED];
	job->result.lost += f->outcomes[COUNTER_LOST];
	job->result.gaps += f->gaps;
	stat_add(STAT_rate_wraps, (int64_t)f->outcomes[COUNTER_WRAPPED]);
	stat_add(STAT_rate_restarts, (int64_t)f->outcomes[COUNTER_RESTARTED]);
	stat_add(STAT_rate_lost, (int64_t)f->outcomes[COUNTER_LOST]);
	stat_add(STAT_rate_gaps, (int64_t)f->gaps);
}

/* Rows before the first sample are emitted in any window: they are asked about in the first. */
static void begin_window(struct rate_job *job)
{
	int err = 0;
	job->written = true;
	if (!job->looked && note_beginnings(job))
		err = look_for_stored(job);
	else
		write_window(job);
	if (err)
		rate_job_finish(job, err);
}

/* The window has no samples; nor had those before, if it is the last, which a checkpoint has. */
static bool has_nothing(const struct rate_job *job)
{
	const struct feeder *f = &job->feeder;
	return !f->points &&
	       (f->hi_ms < f->end_ms || (!job->written && f->end_ms == job->old_until_ms));
}

static void rate_job_on_window(struct feeder *feeder, int err)
{
	struct rate_job *job = feeder->owner;
	if (err == ERR_NOT_FOUND) {
		take_tally(job);
		next_run(job);
	} else if (err) {
		errbuf_set(&job->error, err, "%s", store_read_sentence(feeder->read, err));
		rate_job_finish(job, err);
	} else if (has_nothing(job)) {
		rate_job_next_window(job);
	} else {
		store_write_reset(job->write);
		job->place = 0;
		job->rows_added = 0;
		job->row_fed = job->checkpoint_waits = false;
		begin_window(job);
	}
}

/* After a batch that was full the window goes on; else the next one is read. */
static void rate_job_on_written(struct store_write *write, int err)
{
	struct rate_job *job = write->owner;
	bool rest = job->place < job->feeder.count || job->checkpoint_waits;
	stat_add(STAT_rate_rows, err ? 0 : (int64_t)job->rows_added);
	job->rows_added = 0;
	if (err) {
		errbuf_set(&job->error, err, "%s",
			   write->error.text[0] ? write->error.text : err_text(err));
		rate_job_finish(job, err);
	} else if (rest) {
		store_write_reset(write);
		write_window(job);
	} else {
		rate_job_next_window(job);
	}
}

int rate_job_start(struct rate_job *job, const struct rate_job_options *options)
{
	job->error.text[0] = 0;
	job->options = *options;
	job->table = options->table;
	job->write->can_wait = !options->awaited;
	job->result = (struct rate_job_result){0};
	int err = rate_table_check(job->table, &job->error);
	if (err)
		return err;
	if (!job->table->row_count)
		return errbuf_set(&job->error, ERR_INVALID, "a table without rows has no rates");
	job->first = job->last = 0;
	return load_run(job);
}
