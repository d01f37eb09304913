/* The checkpoints are read before the rows: rows are always at least as new as a checkpoint that
 * was there before, so nothing can be missing between the two. Where both have a slot, the computed
 * one is the newer; but not where it begins before the first raw sample of a counter without a
 * state (its checkpoint is damaged), since that may be all that is left of the raw data. */
#include "rate/read.h"

#include "base/mem.h"
#include "rate/checkpoint.h"
#include "rate/feeder.h"
#include "rate/rows.h"

enum { READ_MAX_BYTES = 32 << 20 };

enum read_state { READ_CHECKPOINTS, READ_ROWS, READ_EXTREMES };

struct rate_read {
	struct rate_read_options options;
	const struct rate_table *table;
	struct feeder feeder;
	struct store_read *read;
	struct errbuf error;
	enum read_state state;
	struct checkpoint_row old_row;

	size_t cap, rows;                   /* room in what follows; rows that were gathered */
	struct row_list *stored, *computed; /* by row and column */
	int64_t *first_ms; /* of each counter that began without a state; or FEEDER_BEGINNING */
	bool knows_firsts;
	uint64_t *handles;
	size_t *counters; /* of each handle of a range, its counter */
	struct store_request *request;
	struct store_request asked; /* as it was filled in, for its next slice */
	uint8_t bound[8];           /* of the scan */
};

static void rate_read_on_read(struct store_read *read, int err);
static void rate_read_on_window(struct feeder *feeder, int err);

struct rate_read *rate_read_new(struct store *store, struct executor *executor)
{
	struct rate_read *read = mem_zalloc(sizeof(*read));
	feeder_init(&read->feeder, store, executor, rate_read_on_window, read);
	read->read = store_read_new(store, READ_MAX_BYTES);
	read->read->executor = executor;
	read->read->done = rate_read_on_read;
	read->read->owner = read;
	return read;
}

void rate_read_free(struct rate_read *read)
{
	for (size_t i = 0; i < read->cap; i++) {
		mem_free(read->stored[i].rows);
		mem_free(read->computed[i].rows);
	}
	mem_free(read->stored);
	mem_free(read->computed);
	mem_free(read->first_ms);
	mem_free(read->handles);
	mem_free(read->counters);
	feeder_release(&read->feeder);
	store_read_free(read->read);
	mem_free(read);
}

void *rate_read_owner(const struct rate_read *read)
{
	return read->options.owner;
}

const char *rate_read_error(const struct rate_read *read)
{
	return read->error.text;
}

static size_t counter_count(const struct rate_read *read)
{
	return read->table->row_count * read->table->column_count;
}

static void rate_read_finish(struct rate_read *read, int err)
{
	if (err && !read->error.text[0])
		errbuf_set(&read->error, err, "%s", err_text(err));
	read->options.done(read, err);
}

static void begin_lists(struct rate_read *read)
{
	size_t count = counter_count(read);
	if (count > read->cap) {
		read->stored = mem_resize_array(read->stored, count, sizeof(*read->stored));
		read->computed = mem_resize_array(read->computed, count, sizeof(*read->computed));
		read->first_ms = mem_resize_array(read->first_ms, count, sizeof(*read->first_ms));
		read->handles = mem_resize_array(read->handles, count, sizeof(*read->handles));
		read->counters = mem_resize_array(read->counters, count, sizeof(*read->counters));
		memset(read->stored + read->cap, 0, (count - read->cap) * sizeof(struct row_list));
		memset(read->computed + read->cap, 0,
		       (count - read->cap) * sizeof(struct row_list));
		read->cap = count;
	}
	for (size_t i = 0; i < count; i++) {
		read->stored[i].count = read->computed[i].count = 0;
		read->first_ms[i] = FEEDER_BEGINNING;
	}
	read->rows = 0;
	read->knows_firsts = false;
}

static int list_add(struct rate_read *read, struct row_list *list, const struct counter_row *row)
{
	if (read->rows == read->options.rows_max)
		return errbuf_set(&read->error, ERR_LIMIT, "there are more than %zu rows",
				  read->options.rows_max);
	row_list_add(list, row);
	read->rows++;
	return 0;
}

/* What a request points to belongs to the read once it is submitted: so the next slice is asked for
 * as the first was. */
static int rate_read_submit(struct rate_read *read)
{
	read->asked = *read->request;
	return store_read_submit(read->read);
}

/* ---- Checkpoints ---------------------------------------------------------------------------- */

/* Of one row only its own run's is read: the last that begins at or before its id. */
static int read_checkpoints(struct rate_read *read)
{
	const struct rate_table *table = read->table;
	read->state = READ_CHECKPOINTS;
	store_read_reset(read->read);
	read->read->now_ms = read->options.now_ms;
	read->read->deadline_us = read->options.deadline_us;
	read->request = store_read_add(read->read, STORE_CELL_SCAN);
	if (!read->request)
		return ERR_LIMIT;
	be64_put(read->bound, table->rows[table->row_count - 1].id + 1);
	read->request->cell_scan =
		(struct store_cell_scan){.table = TABLE_RATE_CHECKPOINTS,
					 .key = {{table->device, table->oidset}},
					 .to = {{{(const char *)read->bound, 8}}},
					 .backward = table->row_count == 1,
					 .limit = table->row_count == 1};
	return rate_read_submit(read);
}

static void rate_read_take_row(struct rate_read *read, const struct checkpoint *c,
			       const size_t *match, size_t row)
{
	struct feeder *f = &read->feeder;
	for (size_t i = 0; i < c->column_count; i++) {
		size_t at;
		if (!(read->old_row.columns >> i & 1) || match[i] == RATE_COLUMNS_MAX)
			continue;
		at = feeder_counter(f, row, match[i]);
		if (f->from_ms[at] == FEEDER_NOTHING)
			continue;
		/* Left behind where a run was divided and the write did not end. */
		if (f->states[at].known &&
		    f->states[at].last.ts_ms > read->old_row.states[i].last.ts_ms)
			continue;
		f->states[at] = read->old_row.states[i];
		counter_convert(&c->config, &read->table->config, &f->states[at]);
		feeder_go_on(f, at);
	}
}

static int take_checkpoint(struct rate_read *read, struct slice bytes)
{
	size_t match[RATE_COLUMNS_MAX], row = 0;
	struct checkpoint c;
	int err = checkpoint_open(bytes, &c);
	if (err || c.config.base_ms != read->table->config.base_ms)
		return err;
	checkpoint_match(&c, read->table, match);
	while (!(err = checkpoint_next(&c, &read->old_row))) {
		while (row < read->table->row_count && read->table->rows[row].id < read->old_row.id)
			row++;
		if (row == read->table->row_count || read->table->rows[row].id != read->old_row.id)
			continue;
		err = checkpoint_states(&c, &read->old_row, NULL);
		if (err)
			return err;
		rate_read_take_row(read, &c, match, row);
	}
	return err == ERR_NOT_FOUND ? 0 : err;
}

static int take_checkpoints(struct rate_read *read)
{
	const struct store_cell_scan *scan = &read->request->cell_scan;
	for (size_t i = 0; i < scan->count; i++) {
		int err = take_checkpoint(read, scan->cells[i].value);
		/* The next job begins again, and so does this. */
		if (err && err != ERR_DAMAGED)
			return errbuf_set(&read->error, err, "a checkpoint cannot be read: %s",
					  err_text(err));
	}
	return 0;
}

/* ---- What is stored ------------------------------------------------------------------------- */

static int rate_read_stored(struct rate_read *read, enum read_state state)
{
	const struct rate_table *table = read->table;
	size_t count = 0;
	read->state = state;
	store_read_reset(read->read);
	read->request = store_read_add(read->read, STORE_RANGE);
	if (!read->request)
		return ERR_LIMIT;
	for (size_t i = 0; i < counter_count(read); i++) {
		uint64_t handle =
			table->rows[i / table->column_count].handles[i % table->column_count];
		if (!handle)
			continue;
		read->counters[count] = i;
		read->handles[count++] = handle;
	}
	read->request->range = (struct store_range){
		.table = state == READ_ROWS ? rate_level_table(read->options.level)
					    : TABLE_STAT_AGGREGATIONS,
		.period_ms = counter_level_ms(&table->config, read->options.level),
		.handles = read->handles,
		.handle_count = count,
		.start_ms = read->options.from_ms,
		.end_ms = read->options.to_ms};
	return rate_read_submit(read);
}

static int rate_read_take_rows(struct rate_read *read, struct row_list *list,
			       const struct store_points *p)
{
	struct counter_row usual = row_usual(&read->table->config, read->options.level);
	int err = 0;
	for (size_t i = 0; !err && i < p->count; i++) {
		struct counter_row row = row_of_points(p, i, &usual);
		err = list_add(read, list, &row);
	}
	return err;
}

static int rate_read_take_slice(struct rate_read *read)
{
	const struct store_range *range = &read->request->range;
	int err = 0;
	for (size_t i = 0; !err && i < range->handle_count; i++) {
		struct row_list *list = &read->stored[read->counters[i]];
		if (read->state == READ_ROWS)
			err = rate_read_take_rows(read, list, &range->points[i]);
		else if (range->points[i].count)
			row_list_extremes(list, &range->points[i]);
	}
	return err;
}

/* ---- What is not ---------------------------------------------------------------------------- */

static int rate_read_keep_computed(struct rate_read *read, size_t row)
{
	const struct feeder_rows *rows = &read->feeder.rows;
	const struct rate_read_options *o = &read->options;
	int err = 0;
	for (size_t c = 0; c < read->table->column_count; c++) {
		struct row_list *list = &read->computed[feeder_counter(&read->feeder, row, c)];
		for (size_t i = rows->start[c]; !err && i < rows->start[c + 1]; i++) {
			const struct counter_row *r = &rows->list[i];
			if (r->level == o->level && r->start_ms >= o->from_ms &&
			    r->start_ms < o->to_ms)
				err = list_add(read, list, r);
		}
	}
	return err;
}

/* Stored rows before the first computed one, and those between that nobody computed. */
static void rate_read_merge(struct row_list *stored, struct row_list *computed, int64_t first_ms)
{
	struct row_list out = {NULL, 0, 0};
	size_t s = 0, c = 0;
	if (!computed->count)
		return;
	out.cap = stored->count + computed->count;
	out.rows = mem_alloc_array(out.cap, sizeof(*out.rows));
	while (s < stored->count || c < computed->count) {
		bool take_stored = c == computed->count ||
				   (s < stored->count &&
				    stored->rows[s].start_ms < computed->rows[c].start_ms);
		bool both = !take_stored && s < stored->count &&
			    stored->rows[s].start_ms == computed->rows[c].start_ms;
		if (both && computed->rows[c].start_ms < first_ms)
			computed->rows[c] = stored->rows[s];
		s += both;
		out.rows[out.count++] = take_stored ? stored->rows[s++] : computed->rows[c++];
	}
	mem_free(stored->rows);
	*stored = out;
}

static void finish_rows(struct rate_read *read)
{
	int err = 0;
	for (size_t row = 0; !err && row < read->table->row_count; row++) {
		feeder_row_open(&read->feeder, row);
		err = rate_read_keep_computed(read, row);
	}
	for (size_t i = 0; !err && i < counter_count(read); i++)
		rate_read_merge(&read->stored[i], &read->computed[i], read->first_ms[i]);
	rate_read_finish(read, err);
}

static void rate_read_next_window(struct rate_read *read)
{
	int err = feeder_next(&read->feeder);
	if (err)
		rate_read_finish(read, err);
}

static void rate_read_note_firsts(struct rate_read *read)
{
	for (size_t i = 0; i < counter_count(read); i++)
		if (!read->feeder.states[i].known)
			read->first_ms[i] = read->feeder.from_ms[i];
	read->knows_firsts = true;
}

static void rate_read_on_window(struct feeder *feeder, int err)
{
	struct rate_read *read = feeder->owner;
	if (err == ERR_NOT_FOUND) {
		finish_rows(read);
		return;
	}
	if (!err && !read->knows_firsts)
		rate_read_note_firsts(read);
	if (err)
		errbuf_set(&read->error, err, "%s", store_read_sentence(feeder->read, err));
	for (size_t row = 0; !err && row < read->table->row_count; row++) {
		feeder_row(feeder, row);
		err = rate_read_keep_computed(read, row);
	}
	if (err)
		rate_read_finish(read, err);
	else
		rate_read_next_window(read);
}

/* ---- Order of events ------------------------------------------------------------------------ */

static void rate_read_on_read(struct store_read *store_read, int err)
{
	struct rate_read *read = store_read->owner;
	if (err)
		errbuf_set(&read->error, err, "%s", store_read_sentence(store_read, err));
	else
		err = read->state == READ_CHECKPOINTS ? take_checkpoints(read)
						      : rate_read_take_slice(read);
	if (err) {
		rate_read_finish(read, err);
		return;
	}
	if (read->request->more) {
		read->asked.token = read->request->token;
		store_read_reset(store_read);
		read->request = store_read_add(store_read, read->asked.op);
		ASSERT(read->request);
		*read->request = read->asked; /* the only one */
		err = store_read_submit(store_read);
	} else if (read->state == READ_CHECKPOINTS) {
		err = rate_read_stored(read, READ_ROWS);
	} else if (read->state == READ_ROWS && read->options.level > 0) {
		err = rate_read_stored(read, READ_EXTREMES);
	} else {
		rate_read_next_window(read);
	}
	if (err)
		rate_read_finish(read, err);
}

int rate_read_start(struct rate_read *read, const struct rate_read_options *options)
{
	const struct rate_table *table = options->table;
	read->error.text[0] = 0;
	read->options = *options;
	read->table = table;
	int err = rate_table_check(table, &read->error);
	if (err)
		return err;
	if (!table->row_count || options->level > table->config.period_count ||
	    options->from_ms > options->to_ms)
		return errbuf_set(&read->error, ERR_INVALID, "rates of no rows, level or time");
	begin_lists(read);
	feeder_begin(&read->feeder, table, 0, table->row_count,
		     options->now_ms + RATE_READ_AHEAD_MS, options->now_ms);
	read->feeder.read->deadline_us = options->deadline_us;
	read->feeder.window_ms = COUNTER_TS_MAX; /* all at once, if it fits */
	return read_checkpoints(read);
}

struct rate_series rate_read_series(const struct rate_read *read, size_t row, size_t column)
{
	const struct row_list *list = &read->stored[row * read->table->column_count + column];
	return (struct rate_series){list->rows, list->count};
}
