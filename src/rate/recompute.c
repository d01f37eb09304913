/* Order of events, per interface and slice of time: the newest sample before the slice, from which
 * its counters are fed until everything that begins in the slice is closed; then, level by level,
 * what is stored of it; then what differs is written. */
#include "rate/recompute.h"

#include "base/mem.h"
#include "rate/feeder.h"
#include "rate/rows.h"
#include "store/wait.h"

enum { READ_MAX_BYTES = 32 << 20, WRITE_MAX_BYTES = 32 << 20, SLICE_BINS = 2880 };

struct recomputing {
	const struct rate_recompute_options *options;
	const struct rate_table *table;
	struct rate_recompute_result *result;
	struct errbuf *error;
	struct feeder feeder;
	struct task_answer window; /* of the feeder */
	struct store_read *read;
	struct store_write *write;

	size_t row, level;
	int64_t slice_ms, slice_end_ms;
	int64_t stamp_us; /* of the slice's corrections: from before anything of it was read */
	uint64_t handles[RATE_COLUMNS_MAX];
	size_t columns[RATE_COLUMNS_MAX], handle_count; /* of each handle its column */
	int64_t first_ms[RATE_COLUMNS_MAX]; /* rows that begin before it are not known */
	struct row_list computed[RATE_COLUMNS_MAX], stored[RATE_COLUMNS_MAX];
};

/* ---- Seeds and feeding ---------------------------------------------------------------------- */

static struct store_request *recompute_add(struct recomputing *r, enum store_op op)
{
	store_read_reset(r->read);
	r->read->now_ms = r->options->now_ms;
	struct store_request *request = store_read_add(r->read, op);
	ASSERT(request); /* the first of an empty read */
	return request;
}

/* Reads all of a request, whose slices go to `take` one by one. */
static int recompute_read(struct recomputing *r, const struct store_request *request,
			  void (*take)(struct recomputing *r, const struct store_request *request))
{
	int err = 0;
	for (bool more = true; more && !err; more = request->more) {
		err = store_read_wait(r->read, r->options->queue);
		if (err)
			return errbuf_set(r->error, err, "%s", store_read_sentence(r->read, err));
		take(r, request);
	}
	return err;
}

static void recompute_take_seeds(struct recomputing *r, const struct store_request *request)
{
	for (size_t i = 0; i < r->handle_count; i++) {
		const struct store_points *p = &request->last_before.points[i];
		if (!p->count)
			continue;
		r->feeder.from_ms[r->columns[i]] = p->ts_ms[0];
		r->first_ms[r->columns[i]] = r->slice_ms;
	}
}

static int recompute_read_seeds(struct recomputing *r)
{
	struct store_request *request = recompute_add(r, STORE_LAST_BEFORE);
	request->last_before = (struct store_last_before){
		.table = TABLE_RAW_DATA,
		.period_ms = r->table->config.base_ms,
		.handles = r->handles,
		.handle_count = r->handle_count,
		.before_ms = r->slice_ms,
	};
	return recompute_read(r, request, recompute_take_seeds);
}

/* Where everything that begins in the slice has ended. */
static int64_t recompute_mark_of(const struct recomputing *r)
{
	return r->slice_end_ms + counter_widest_ms(&r->table->config);
}

static void recompute_keep_computed(struct recomputing *r)
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
static bool recompute_pass_marks(struct recomputing *r)
{
	bool waits = false;
	for (size_t c = 0; c < r->table->column_count; c++) {
		const struct counter *state = &r->feeder.states[c];
		if (state->known && state->last.ts_ms >= recompute_mark_of(r))
			r->feeder.from_ms[c] = FEEDER_NOTHING;
		waits |= r->feeder.from_ms[c] != FEEDER_NOTHING;
	}
	return waits;
}

/* Before the first window its beginning is known: without a seed it is the first raw sample. */
static void recompute_note_firsts(struct recomputing *r)
{
	for (size_t c = 0; c < r->table->column_count; c++)
		if (r->first_ms[c] == FEEDER_BEGINNING)
			r->first_ms[c] = r->feeder.from_ms[c];
}

static void recompute_window_read(struct feeder *feeder, int err)
{
	*(struct task_answer *)feeder->owner = (struct task_answer){true, err};
}

/* ERR_NOT_FOUND: all has been fed. */
static int recompute_next_window(struct recomputing *r)
{
	r->window = (struct task_answer){false, 0};
	int err = feeder_next(&r->feeder);
	if (err)
		return err;
	err = task_queue_wait_for(r->options->queue, &r->window);
	if (err && err != ERR_NOT_FOUND)
		errbuf_set(r->error, err, "%s", store_read_sentence(r->feeder.read, err));
	return err;
}

/* Feeds until everything that begins in the slice is closed, or there is no more raw data. */
static int recompute_feed(struct recomputing *r)
{
	int err = 0;
	for (bool waits = true; waits && !err;) {
		err = recompute_next_window(r);
		recompute_note_firsts(r);
		if (err)
			break;
		feeder_row(&r->feeder, r->row);
		recompute_keep_computed(r);
		waits = recompute_pass_marks(r);
	}
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* ---- What is stored ------------------------------------------------------------------------- */

static void recompute_take_rows(struct recomputing *r, const struct store_request *request)
{
	struct counter_row usual = row_usual(&r->table->config, r->level);
	for (size_t i = 0; i < r->handle_count; i++) {
		const struct store_points *p = &request->range.points[i];
		for (size_t j = 0; j < p->count; j++) {
			struct counter_row row = row_of_points(p, j, &usual);
			row_list_add(&r->stored[r->columns[i]], &row);
		}
	}
}

static void recompute_take_extremes(struct recomputing *r, const struct store_request *request)
{
	for (size_t i = 0; i < r->handle_count; i++) {
		const struct store_points *p = &request->range.points[i];
		if (p->count)
			row_list_extremes(&r->stored[r->columns[i]], p);
	}
}

static int recompute_read_stored(struct recomputing *r, enum table table,
				 void (*take)(struct recomputing *r,
					      const struct store_request *request))
{
	struct store_request *request = recompute_add(r, STORE_RANGE);
	request->range = (struct store_range){
		.table = table,
		.period_ms = counter_level_ms(&r->table->config, r->level),
		.handles = r->handles,
		.handle_count = r->handle_count,
		.start_ms = r->slice_ms,
		.end_ms = r->slice_end_ms,
	};
	return recompute_read(r, request, take);
}

static int recompute_read_level(struct recomputing *r)
{
	for (size_t c = 0; c < r->table->column_count; c++)
		r->stored[c].count = 0;
	int err = recompute_read_stored(r, rate_level_table(r->level), recompute_take_rows);
	if (!err && r->level > 0)
		err = recompute_read_stored(r, TABLE_STAT_AGGREGATIONS, recompute_take_extremes);
	return err;
}

/* ---- Comparing ------------------------------------------------------------------------------ */

static int recompute_correct(struct recomputing *r, size_t column, const struct counter_row *stored,
			     const struct counter_row *computed)
{
	struct rate_difference d = {
		.row = r->row, .column = column, .was = stored != NULL, .is = computed != NULL};
	if (stored)
		d.stored = *stored;
	if (computed)
		d.computed = *computed;
	r->result->differed += d.was && d.is;
	r->result->missing += !d.was;
	r->result->extra += !d.is;
	if (r->result->list_count < RATE_DIFFERENCES_MAX)
		r->result->list[r->result->list_count++] = d;
	if (r->options->only_report)
		return 0;
	return row_store(r->write, &r->table->config, r->options->retention[r->level],
			 r->table->rows[r->row].handles[column], d.is ? computed : stored, !d.is);
}

/* Of what was computed, the rows of the level; stored rows that nothing is known of, and those that
 * are still open, are passed over. */
static int recompute_compare_column(struct recomputing *r, size_t c)
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
			r->result->compared++;
			err = recompute_correct(r, c, &stored->rows[s], NULL);
		}
		if (err || !row)
			break;
		bool there = s < stored->count && stored->rows[s].start_ms == at;
		const struct counter_row *old = there ? &stored->rows[s++] : NULL;
		partial = at < r->first_ms[c];
		r->result->compared += !(there && partial);
		if (!(there && (partial || rows_equal(old, row))))
			err = recompute_correct(r, c, old, row);
	}
	return err;
}

static int recompute_compare_level(struct recomputing *r)
{
	int err = 0;
	store_write_reset(r->write);
	r->write->stamp_us = r->stamp_us;
	for (size_t i = 0; !err && i < r->handle_count; i++)
		err = recompute_compare_column(r, r->columns[i]);
	return err ? err : store_write_wait(r->write, r->options->queue);
}

/* ---- Order of events ------------------------------------------------------------------------ */

static void recompute_begin_slice(struct recomputing *r)
{
	const struct rate_recompute_options *o = r->options;
	feeder_begin(&r->feeder, r->table, r->row, 1, o->until_ms - feeder_reach_ms(r->table),
		     o->now_ms);
	r->stamp_us = store_stamp(o->store);
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
}

static int recompute_slice(struct recomputing *r)
{
	recompute_begin_slice(r);
	int err = recompute_read_seeds(r);
	err = err ? err : recompute_feed(r);
	for (r->level = 0; !err && r->level <= r->table->config.period_count; r->level++) {
		err = recompute_read_level(r);
		err = err ? err : recompute_compare_level(r);
	}
	return err;
}

static int recompute_row(struct recomputing *r)
{
	int64_t width_ms = SLICE_BINS * r->table->config.base_ms, to_ms = r->options->to_ms;
	int err = 0;
	for (r->slice_ms = r->options->from_ms; r->slice_ms < to_ms && !err;
	     r->slice_ms = r->slice_end_ms) {
		r->slice_end_ms = to_ms - r->slice_ms > width_ms ? r->slice_ms + width_ms : to_ms;
		err = recompute_slice(r);
	}
	return err;
}

static struct recomputing *recomputing_new(const struct rate_recompute_options *options,
					   struct rate_recompute_result *result, struct errbuf *e)
{
	struct recomputing *r = mem_zalloc(sizeof(*r));
	r->options = options;
	r->table = options->table;
	r->result = result;
	r->error = e;
	feeder_init(&r->feeder, options->store, &options->queue->executor, recompute_window_read,
		    &r->window);
	r->read = store_read_new(options->store, READ_MAX_BYTES);
	r->write = store_write_new(options->store, WRITE_MAX_BYTES);
	return r;
}

static void recomputing_free(struct recomputing *r)
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

int rate_recompute(const struct rate_recompute_options *options,
		   struct rate_recompute_result *result, struct errbuf *e)
{
	const struct rate_table *table = options->table;
	*result = (struct rate_recompute_result){0};
	e->text[0] = 0;
	int err = rate_table_check(table, e);
	if (err)
		return err;
	if (!table->row_count || options->from_ms >= options->to_ms ||
	    options->from_ms < -COUNTER_TS_MAX || options->to_ms > COUNTER_TS_MAX)
		return errbuf_set(e, ERR_INVALID, "rates of no rows or time");
	struct recomputing *r = recomputing_new(options, result, e);
	for (; r->row < table->row_count && !err; r->row++)
		err = recompute_row(r);
	recomputing_free(r);
	return err && !e->text[0] ? errbuf_set(e, err, "%s", err_text(err)) : err;
}
