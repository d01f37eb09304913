/* Order of events, per interface and slice of time: the newest sample before the slice, from which
 * its counters are fed until everything that begins in the slice is closed; then, level by level,
 * what is stored of it; then what differs is written. */
#include "rate/recompute.h"

#include "base/mem.h"
#include "rate/feeder.h"
#include "rate/rows.h"

enum { READ_MAX_BYTES = 32 << 20, WRITE_MAX_BYTES = 32 << 20, SLICE_BINS = 2880 };

enum recompute_state { RECOMPUTE_SEEDS, RECOMPUTE_ROWS, RECOMPUTE_EXTREMES };

struct rate_recompute {
	struct rate_recompute_options options;
	const struct rate_table *table;
	struct feeder feeder;
	struct store_read *read;
	struct store_write *write;
	struct store_request *request;
	struct errbuf error;
	struct rate_recompute_result result;
	enum recompute_state state;

	size_t row, level;
	int64_t slice_ms, slice_end_ms;
	uint64_t handles[RATE_COLUMNS_MAX];
	size_t columns[RATE_COLUMNS_MAX], handle_count; /* of each handle its column */
	int64_t first_ms[RATE_COLUMNS_MAX]; /* rows that begin before it are not known */
	struct row_list computed[RATE_COLUMNS_MAX], stored[RATE_COLUMNS_MAX];
};

static void on_read(struct store_read *read, int err);
static void on_window(struct feeder *feeder, int err);
static void on_written(struct store_write *write, int err);

struct rate_recompute *rate_recompute_new(struct store *store, struct executor *executor)
{
	struct rate_recompute *r = mem_zalloc(sizeof(*r));

	feeder_init(&r->feeder, store, executor, on_window, r);
	r->read = store_read_new(store, READ_MAX_BYTES);
	r->read->executor = executor;
	r->read->done = on_read;
	r->read->owner = r;
	r->write = store_write_new(store, WRITE_MAX_BYTES);
	r->write->executor = executor;
	r->write->done = on_written;
	r->write->owner = r;
	return r;
}

void rate_recompute_free(struct rate_recompute *r)
{
	for (size_t c = 0; c < RATE_COLUMNS_MAX; c++) {
		mem_free(r->computed[c].rows);
		mem_free(r->stored[c].rows);
	}
	feeder_release(&r->feeder);
	store_read_free(r->read);
	store_write_free(r->write);
	mem_free(r);
}

void *rate_recompute_owner(const struct rate_recompute *r)
{
	return r->options.owner;
}

const char *rate_recompute_error(const struct rate_recompute *r)
{
	return r->error.text;
}

const struct rate_recompute_result *rate_recompute_result(const struct rate_recompute *r)
{
	return &r->result;
}

static void finish(struct rate_recompute *r, int err)
{
	if (err && !r->error.text[0])
		errbuf_set(&r->error, err, "%s", err_text(err));
	r->options.done(r, err);
}

/* ---- Seeds and feeding ---------------------------------------------------------------------- */

static int add_request(struct rate_recompute *r, enum store_op op)
{
	store_read_reset(r->read);
	r->read->now_ms = r->options.now_ms;
	r->request = store_read_add(r->read, op);
	return r->request ? 0 : ERR_LIMIT;
}

static int read_seeds(struct rate_recompute *r)
{
	int err = add_request(r, STORE_LAST_BEFORE);

	if (err)
		return err;
	r->state = RECOMPUTE_SEEDS;
	r->request->last_before = (struct store_last_before){.table = TABLE_RAW_DATA,
							     .period_ms = r->table->config.base_ms,
							     .handles = r->handles,
							     .handle_count = r->handle_count,
							     .before_ms = r->slice_ms};
	return store_read_submit(r->read);
}

static void take_seeds(struct rate_recompute *r)
{
	for (size_t i = 0; i < r->handle_count; i++) {
		const struct store_points *p = &r->request->last_before.points[i];
		if (!p->count)
			continue;
		r->feeder.from_ms[r->columns[i]] = p->ts_ms[0];
		r->first_ms[r->columns[i]] = r->slice_ms;
	}
}

/* Where everything that begins in the slice has ended. */
static int64_t mark_of(const struct rate_recompute *r)
{
	return r->slice_end_ms + counter_widest_ms(&r->table->config);
}

static void keep_computed(struct rate_recompute *r)
{
	const struct feeder_rows *rows = &r->feeder.rows;

	for (size_t c = 0; c < r->table->column_count; c++) {
		for (size_t i = rows->start[c]; i < rows->start[c + 1]; i++) {
			const struct counter_row *row = &rows->list[i];
			if (row->start_ms >= r->slice_ms && row->start_ms < r->slice_end_ms)
				row_list_add(&r->computed[c], row);
		}
	}
}

/* Counters that are past the mark need no more raw data. */
static bool pass_marks(struct rate_recompute *r)
{
	bool waits = false;

	for (size_t c = 0; c < r->table->column_count; c++) {
		const struct counter *state = &r->feeder.states[c];
		if (state->known && state->last.ts_ms >= mark_of(r))
			r->feeder.from_ms[c] = FEEDER_NOTHING;
		waits |= r->feeder.from_ms[c] != FEEDER_NOTHING;
	}
	return waits;
}

/* Before the first window its beginning is known: without a seed it is the first raw sample. */
static void note_firsts(struct rate_recompute *r)
{
	for (size_t c = 0; c < r->table->column_count; c++)
		if (r->first_ms[c] == FEEDER_BEGINNING)
			r->first_ms[c] = r->feeder.from_ms[c];
}

static void next_window(struct rate_recompute *r)
{
	int err = feeder_next(&r->feeder);

	if (err)
		finish(r, err);
}

/* ---- What is stored ------------------------------------------------------------------------- */

static int read_stored(struct rate_recompute *r, enum recompute_state state)
{
	int err = add_request(r, STORE_RANGE);

	if (err)
		return err;
	r->state = state;
	r->request->range =
		(struct store_range){.table = state == RECOMPUTE_ROWS ? rate_level_table(r->level)
								      : TABLE_STAT_AGGREGATIONS,
				     .period_ms = counter_level_ms(&r->table->config, r->level),
				     .handles = r->handles,
				     .handle_count = r->handle_count,
				     .start_ms = r->slice_ms,
				     .end_ms = r->slice_end_ms};
	return store_read_submit(r->read);
}

static void begin_level(struct rate_recompute *r)
{
	int err;

	for (size_t c = 0; c < r->table->column_count; c++)
		r->stored[c].count = 0;
	err = read_stored(r, RECOMPUTE_ROWS);
	if (err)
		finish(r, err);
}

static void take_slice(struct rate_recompute *r)
{
	struct counter_row usual = row_usual(&r->table->config, r->level);

	for (size_t i = 0; i < r->handle_count; i++) {
		const struct store_points *p = &r->request->range.points[i];
		struct row_list *list = &r->stored[r->columns[i]];
		if (r->state == RECOMPUTE_EXTREMES && p->count)
			row_list_extremes(list, p);
		for (size_t j = 0; r->state == RECOMPUTE_ROWS && j < p->count; j++) {
			struct counter_row row = row_of_points(p, j, &usual);
			row_list_add(list, &row);
		}
	}
}

/* ---- Comparing ------------------------------------------------------------------------------ */

static int correct(struct rate_recompute *r, size_t column, const struct counter_row *stored,
		   const struct counter_row *computed)
{
	struct rate_difference d = {.row = r->row, .column = column};

	if (stored)
		d.stored = *stored;
	if (computed)
		d.computed = *computed;
	d.was = stored != NULL;
	d.is = computed != NULL;
	r->result.differed += d.was && d.is;
	r->result.missing += !d.was;
	r->result.extra += !d.is;
	if (r->result.list_count < RATE_DIFFERENCES_MAX)
		r->result.list[r->result.list_count++] = d;
	if (r->options.only_report)
		return 0;
	return row_store(r->write, &r->table->config, r->options.retention[r->level],
			 r->table->rows[r->row].handles[column], d.is ? computed : stored, !d.is);
}

/* Of what was computed, the rows of the level; stored rows that nothing is known of, and those that
 * are still open, are passed over. */
static int compare_column(struct rate_recompute *r, size_t c)
{
	const struct row_list *computed = &r->computed[c], *stored = &r->stored[c];
	const struct counter *state = &r->feeder.states[c];
	int64_t open_ms =
		state->known ? state->last.ts_ms - state->last.offset_ms[r->level] : INT64_MIN;
	size_t s = 0;
	int err = 0;

	for (size_t i = 0; !err && i <= computed->count; i++) {
		const struct counter_row *row = i < computed->count ? &computed->rows[i] : NULL;
		int64_t at = row ? row->start_ms : open_ms;
		bool partial;
		if (row && row->level != r->level)
			continue;
		for (; !err && s < stored->count && stored->rows[s].start_ms < at; s++) {
			if (stored->rows[s].start_ms < r->first_ms[c])
				continue;
			r->result.compared++;
			err = correct(r, c, &stored->rows[s], NULL);
		}
		if (err || !row)
			break;
		bool there = s < stored->count && stored->rows[s].start_ms == at;
		const struct counter_row *old = there ? &stored->rows[s++] : NULL;
		partial = at < r->first_ms[c];
		r->result.compared += !(there && partial);
		if (!(there && (partial || rows_equal(old, row))))
			err = correct(r, c, old, row);
	}
	return err;
}

static void compare_level(struct rate_recompute *r)
{
	int err = 0;

	for (size_t i = 0; !err && i < r->handle_count; i++)
		err = compare_column(r, r->columns[i]);
	if (!err)
		err = store_write_submit(r->write);
	if (err)
		finish(r, err);
}

/* ---- Order of events ------------------------------------------------------------------------ */

static void begin_slice(struct rate_recompute *r)
{
	int64_t width = SLICE_BINS * r->table->config.base_ms;
	int err;

	r->slice_end_ms =
		r->options.to_ms - r->slice_ms > width ? r->slice_ms + width : r->options.to_ms;
	feeder_begin(&r->feeder, r->table, r->row, 1,
		     r->options.until_ms - feeder_reach_ms(r->table), r->options.now_ms);
	r->handle_count = 0;
	for (size_t c = 0; c < r->table->column_count; c++) {
		uint64_t handle = r->table->rows[r->row].handles[c];
		r->computed[c].count = 0;
		r->first_ms[c] = FEEDER_BEGINNING;
		if (!handle)
			continue;
		r->columns[r->handle_count] = c;
		r->handles[r->handle_count++] = handle;
	}
	err = read_seeds(r);
	if (err)
		finish(r, err);
}

static void next_slice(struct rate_recompute *r)
{
	r->slice_ms = r->slice_end_ms;
	if (r->slice_ms >= r->options.to_ms) {
		r->slice_ms = r->options.from_ms;
		r->row++;
	}
	if (r->row == r->table->row_count)
		finish(r, 0);
	else if (r->options.cancelled && *r->options.cancelled)
		finish(r, ERR_CANCELLED);
	else
		begin_slice(r);
}

static void on_window(struct feeder *feeder, int err)
{
	struct rate_recompute *r = feeder->owner;

	note_firsts(r);
	if (err && err != ERR_NOT_FOUND) {
		errbuf_set(&r->error, err, "%s", store_read_sentence(feeder->read, err));
		finish(r, err);
		return;
	}
	if (!err) {
		feeder_row(feeder, r->row);
		keep_computed(r);
	}
	if (!err && pass_marks(r)) {
		next_window(r);
	} else {
		r->level = 0;
		begin_level(r);
	}
}

static void read_ended(struct rate_recompute *r)
{
	int err = 0;

	if (r->state == RECOMPUTE_SEEDS) {
		next_window(r);
	} else if (r->state == RECOMPUTE_ROWS && r->level > 0) {
		err = read_stored(r, RECOMPUTE_EXTREMES);
	} else {
		store_write_reset(r->write);
		compare_level(r);
	}
	if (err)
		finish(r, err);
}

static void on_read(struct store_read *read, int err)
{
	struct rate_recompute *r = read->owner;

	if (err) {
		errbuf_set(&r->error, err, "%s", store_read_sentence(read, err));
		finish(r, err);
		return;
	}
	if (r->state == RECOMPUTE_SEEDS)
		take_seeds(r);
	else
		take_slice(r);
	if (!r->request->more) {
		read_ended(r);
		return;
	}
	err = store_read_submit(read);
	if (err)
		finish(r, err);
}

static void on_written(struct store_write *write, int err)
{
	struct rate_recompute *r = write->owner;

	if (err)
		finish(r, err);
	else if (r->level++ < r->table->config.period_count)
		begin_level(r);
	else
		next_slice(r);
}

int rate_recompute_start(struct rate_recompute *r, const struct rate_recompute_options *options)
{
	const struct rate_table *table = options->table;
	int err;

	r->error.text[0] = 0;
	r->options = *options;
	r->table = table;
	memset(&r->result, 0, sizeof(r->result));
	err = rate_table_check(table, &r->error);
	if (err)
		return err;
	if (!table->row_count || options->from_ms >= options->to_ms ||
	    options->from_ms < -COUNTER_TS_MAX || options->to_ms > COUNTER_TS_MAX)
		return errbuf_set(&r->error, ERR_INVALID, "rates of no rows or time");
	r->row = 0;
	r->slice_ms = options->from_ms;
	begin_slice(r);
	return 0;
}
