#include "rollup/stored_settings.h"

#include "base/buf.h"
#include "base/exec.h"
#include "base/log.h"
#include "marks/resize.h"
#include "store/wait.h"
#include "wire/number.h"

enum {
	READ_MAX_BYTES = 1 << 20,
	WRITE_MAX_BYTES = 1 << 20,
	NUMBER_MAX_BYTES = 24,
	SUFFIXES_MAX_BYTES = 64 << 10,
	SUFFIXES_SHOWN_BYTES = 1000,
};

static const struct store_parts row = {{SLICE("rollup-since")}};
static const struct slice slot_name = SLICE("slot"), late_name = SLICE("late");
static const struct slice late_kept_name = SLICE("late-kept");
static const struct slice rebuilt_mark = SLICE(" rebuilt");
static const struct slice counters_name = SLICE("counters"), recount_name = SLICE("recount");

struct asked {
	struct store *store;
	struct task_queue queue;
	struct store_read *read;
	struct store_write *write;
};

/* ---- What is known --------------------------------------------------------------------------- */

/* The cells, and whether there is any series: without one nothing has been written. */
static int read_cells(struct asked *asked, int64_t now_ms, const struct store_cell_scan **cells,
		      bool *empty)
{
	asked->read->now_ms = now_ms;
	struct store_request *scan = store_read_add(asked->read, STORE_CELL_SCAN);
	struct store_request *list = store_read_add(asked->read, STORE_SERIES_LIST);
	ASSERT(scan && list); /* the first of an empty arena */
	rollup_since_scan(scan);
	list->series_list.limit = 1;
	int err = store_read_wait(asked->read, &asked->queue);
	*cells = &scan->cell_scan;
	*empty = list->series_list.count == 0;
	return err;
}

static struct slice name_of(const struct granularity *granularity,
			    char to[GRANULARITY_WIDTH_MAX_BYTES])
{
	return (struct slice){to, granularity_width_print(to, granularity->width_ms)};
}

static const struct store_cell *cell_of(const struct store_cell_scan *cells, struct slice name)
{
	for (size_t i = 0; i < cells->count; i++) {
		if (slice_equal(cells->cells[i].column.part[0], name))
			return &cells->cells[i];
	}
	return NULL;
}

/* ---- What changes ---------------------------------------------------------------------------- */

/* In the place of `before`, NULL: there is none. */
static int put_text(struct asked *asked, struct slice name, const struct store_cell *before,
		    struct slice text)
{
	struct store_write_cond *outcome;
	struct store_parts column = {{name}};
	return store_cell_put_if(asked->write, TABLE_LEASES, &row, &column,
				 before ? before->version : 0, text, 0, &outcome);
}

static int put(struct asked *asked, struct slice name, const struct store_cell *before, int64_t ms)
{
	char number[NUMBER_MAX_BYTES];
	struct slice text = {number, number_print_u64(number, (uint64_t)ms)};
	return put_text(asked, name, before, text);
}

static int drop_others(struct asked *asked, const struct store_cell_scan *cells,
		       const struct granularities *granularities)
{
	for (size_t i = 0; i < cells->count; i++) {
		const struct store_cell *cell = &cells->cells[i];
		struct store_write_cond *outcome;
		char width[GRANULARITY_WIDTH_MAX_BYTES];
		bool kept = slice_equal(cell->column.part[0], slot_name) ||
			    slice_equal(cell->column.part[0], late_name) ||
			    slice_equal(cell->column.part[0], late_kept_name) ||
			    slice_equal(cell->column.part[0], counters_name) ||
			    slice_equal(cell->column.part[0], recount_name);
		for (size_t g = 0; g < granularities->count; g++)
			kept |= slice_equal(cell->column.part[0],
					    name_of(&granularities->list[g], width));
		int err = kept ? 0
			       : store_cell_delete_if(asked->write, TABLE_LEASES, &row,
						      &cell->column, cell->version, &outcome);
		if (err)
			return err;
	}
	return 0;
}

/* The next line, cut off from `rest`; each ends with its end. */
static bool next_line(struct slice *rest, struct slice *line)
{
	const char *at = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
	if (!at)
		return false;
	*line = (struct slice){rest->data, (size_t)(at - rest->data)};
	*rest = (struct slice){at + 1, rest->len - line->len - 1};
	return true;
}

static void add_line(struct buf *to, struct slice line)
{
	buf_append(to, line.data, line.len);
	buf_append_char(to, '\n');
}

static int64_t number_of(struct slice text)
{
	uint64_t number = 0;
	const char *end = number_scan_digits(text.data, text.data + text.len, &number);
	return end == text.data + text.len && number <= INT64_MAX ? (int64_t)number : INT64_MAX;
}

/* Of a granularity's cell, or of the first line of "recount", without what may follow. */
static struct slice time_of(struct slice text)
{
	if (slice_ends_with(text, rebuilt_mark))
		text.len -= rebuilt_mark.len;
	return text;
}

/* A store without room serves what it has. What is not kept is told anew by the next start, as a
 * later time. */
static int keep(struct asked *asked)
{
	int err = store_write_wait(asked->write, &asked->queue);
	if (err != ERR_FULL && err != ERR_READ_ONLY)
		return err;
	log_warn("roll-ups: since when they are made is not kept: %s", err_text(err));
	return 0;
}

static bool is_slot_width(int64_t ms)
{
	return ms >= 1000 && ms % 1000 == 0 && ms <= SLOT_WIDTH_MAX_MS;
}

/* Marks that were left when nothing was rolled up for a while are of that width still. */
static int keep_slot(struct asked *asked, const struct store_cell *cell,
		     const struct granularities *granularities, int64_t now_ms)
{
	int64_t before_ms = cell ? number_of(cell->value) : 0;
	if (!granularities->count || before_ms == granularities->slot_ms)
		return 0;
	if (cell && !is_slot_width(before_ms))
		return ERR_DAMAGED;
	int err = cell ? marks_resize(asked->store, before_ms, granularities->slot_ms, now_ms,
				      SLICE("resize"))
		       : 0;
	return err ? err : put(asked, slot_name, cell, granularities->slot_ms);
}

/* The least that was ever configured stays; of 0 there is nothing to say. */
static int keep_least(struct asked *asked, struct slice name, const struct store_cell *cell,
		      int64_t *ms)
{
	int64_t before_ms = cell ? number_of(cell->value) : 0;
	if (cell && (before_ms < 1 || before_ms == INT64_MAX))
		return ERR_DAMAGED;
	if (cell && (!*ms || before_ms <= *ms)) {
		*ms = before_ms;
		return 0;
	}
	return *ms ? put(asked, name, cell, *ms) : 0;
}

/* Late points that were kept by another configuration may be younger than those of this one, or go
 * earlier: with their class, which may be longer than what was configured. */
static int keep_late(struct asked *asked, const struct store_cell_scan *cells,
		     struct late_samples *late)
{
	int64_t lives_ms = 0;
	if (late->after_ms && late->kept_ms)
		lives_ms = retention_class_ms(retention_class_for(late->kept_ms));
	int err = keep_least(asked, late_name, cell_of(cells, late_name), &late->after_ms);
	if (!err)
		err = keep_least(asked, late_kept_name, cell_of(cells, late_kept_name), &lives_ms);
	if (lives_ms && (!late->kept_ms || lives_ms < late->kept_ms))
		late->kept_ms = lives_ms;
	return err;
}

/* A slot of which something was written before is not whole. */
static int make_all(struct asked *asked, const struct granularities *granularities, int64_t now_ms,
		    int64_t since_ms[GRANULARITIES_MAX], struct late_samples *late)
{
	const struct store_cell_scan *cells;
	char width[GRANULARITY_WIDTH_MAX_BYTES];
	bool empty;
	int err = read_cells(asked, now_ms, &cells, &empty);
	if (!err)
		err = drop_others(asked, cells, granularities);
	if (!err)
		err = keep_slot(asked, cell_of(cells, slot_name), granularities, now_ms);
	if (!err)
		err = keep_late(asked, cells, late);
	for (size_t g = 0; g < granularities->count && !err; g++) {
		struct slice name = name_of(&granularities->list[g], width);
		const struct store_cell *cell = cell_of(cells, name);
		if (cell) {
			since_ms[g] = number_of(time_of(cell->value));
			continue;
		}
		since_ms[g] =
			empty ? 0 : (now_ms / granularities->slot_ms + 1) * granularities->slot_ms;
		err = put(asked, name, NULL, since_ms[g]);
	}
	return err || !asked->write->cells ? err : keep(asked);
}

static void begin(struct asked *asked, struct store *store)
{
	*asked = (struct asked){.store = store};
	task_queue_init(&asked->queue);
	asked->read = store_read_new(store, READ_MAX_BYTES);
	asked->write = store_write_new(store, WRITE_MAX_BYTES);
}

static void end(struct asked *asked)
{
	store_write_free(asked->write);
	store_read_free(asked->read);
	task_queue_release(&asked->queue);
}

int rollup_since_open(struct store *store, const struct granularities *granularities,
		      int64_t now_ms, int64_t since_ms[GRANULARITIES_MAX],
		      struct late_samples *late, struct errbuf *e)
{
	struct asked asked;
	begin(&asked, store);
	int err = make_all(&asked, granularities, now_ms, since_ms, late);
	end(&asked);
	return err ? errbuf_set(e, err, "since when roll-ups are made cannot be told: %s",
				err_text(err))
		   : 0;
}

/* ---- What has been rebuilt ------------------------------------------------------------------- */

void rollup_since_scan(struct store_request *scan)
{
	scan->cell_scan.table = TABLE_LEASES;
	scan->cell_scan.key = row;
}

unsigned rollup_since_rebuilt(const struct store_cell_scan *cells,
			      const struct granularities *granularities)
{
	char width[GRANULARITY_WIDTH_MAX_BYTES];
	unsigned rebuilt = 0;
	for (size_t g = 0; g < granularities->count; g++) {
		const struct store_cell *cell =
			cell_of(cells, name_of(&granularities->list[g], width));
		if (cell && slice_ends_with(cell->value, rebuilt_mark))
			rebuilt |= 1u << g;
	}
	const struct store_cell *recount = cell_of(cells, recount_name);
	struct slice rest = recount ? recount->value : SLICE(""), time;
	if (next_line(&rest, &time) && slice_ends_with(time, rebuilt_mark))
		rebuilt |= 1u << granularities->count;
	return rebuilt;
}

static int keep_recount(struct store_write *write, const struct store_cell *cell, bool all)
{
	struct store_write_cond *outcome;
	struct slice rest = cell->value, time;
	struct buf text;
	if (all)
		return store_cell_delete_if(write, TABLE_LEASES, &row, &cell->column, cell->version,
					    &outcome);
	if (!next_line(&rest, &time))
		return ERR_DAMAGED;
	buf_init(&text, cell->value.len + rebuilt_mark.len);
	time = time_of(time);
	buf_append(&text, time.data, time.len);
	add_line(&text, rebuilt_mark);
	buf_append(&text, rest.data, rest.len);
	int err = store_cell_put_if(write, TABLE_LEASES, &row, &cell->column, cell->version,
				    buf_slice(&text), 0, &outcome);
	buf_release(&text);
	return err;
}

static int keep_cell(struct store_write *write, const struct store_cell *cell, bool all)
{
	struct store_write_cond *outcome;
	struct buf text;
	buf_init(&text, NUMBER_MAX_BYTES + rebuilt_mark.len);
	if (all)
		buf_append_char(&text, '0');
	else
		buf_printf(&text, "%lld%s", (long long)number_of(time_of(cell->value)),
			   rebuilt_mark.data);
	int err = store_cell_put_if(write, TABLE_LEASES, &row, &cell->column, cell->version,
				    buf_slice(&text), 0, &outcome);
	buf_release(&text);
	return err;
}

int rollup_since_keep(struct store_write *write, const struct store_cell_scan *cells,
		      const struct granularities *granularities, unsigned which, bool all)
{
	char width[GRANULARITY_WIDTH_MAX_BYTES];
	int err = 0;
	for (size_t g = 0; g < granularities->count && !err; g++) {
		const struct store_cell *cell =
			cell_of(cells, name_of(&granularities->list[g], width));
		if (cell && which >> g & 1)
			err = keep_cell(write, cell, all);
	}
	const struct store_cell *recount = cell_of(cells, recount_name);
	if (!err && recount && which >> granularities->count & 1)
		err = keep_recount(write, recount, all);
	return err;
}

/* ---- Counters -------------------------------------------------------------------------------- */

static bool has_line(struct slice lines, struct slice wanted)
{
	struct slice line;
	while (next_line(&lines, &line)) {
		if (slice_equal(line, wanted))
			return true;
	}
	return false;
}

/* Of `from` those that neither `other` nor `to` has. */
static void add_lacking(struct buf *to, struct slice from, struct slice other)
{
	struct slice line;
	while (next_line(&from, &line)) {
		if (!has_line(other, line) && !has_line(buf_slice(to), line))
			add_line(to, line);
	}
}

static void warn_of(struct slice changed)
{
	struct buf names;
	struct slice line;
	buf_init(&names, SUFFIXES_SHOWN_BYTES);
	while (next_line(&changed, &line) && !names.failed)
		buf_printf(&names, "%s*" SHOWN, names.len ? ", " : "", SHOWN_OF(line));
	log_warn("rollup.counter_suffixes has changed for %.*s: what is rolled up of such metrics "
		 "stays as it was made until `granary rollup rebuild` has it made anew, where "
		 "there is raw data still",
		 (int)names.len, names.data);
	buf_release(&names);
}

/* What changed earlier counts on. Where it is too much, any metric may have: the empty end is that
 * of all. */
static int add_changed(struct asked *asked, const struct store_cell *before, struct slice changed,
		       int64_t before_ms, struct buf *recount)
{
	struct slice earlier = before ? before->value : SLICE(""), time;
	char number[NUMBER_MAX_BYTES];
	struct slice now = {number, number_print_u64(number, (uint64_t)before_ms)};
	if (before && !next_line(&earlier, &time))
		return ERR_DAMAGED;
	add_line(recount, now);
	add_lacking(recount, earlier, SLICE(""));
	add_lacking(recount, changed, SLICE(""));
	if (recount->failed) {
		buf_clear(recount);
		add_line(recount, now);
		add_line(recount, SLICE(""));
	}
	return put_text(asked, recount_name, before, buf_slice(recount));
}

/* *recount: `<ms>\n` and the suffixes, or nothing. */
static int compare(struct asked *asked, struct slice suffixes, int64_t slot_ms, int64_t now_ms,
		   struct buf *recount)
{
	const struct store_cell_scan *cells;
	struct buf changed;
	bool empty;
	int err = read_cells(asked, now_ms, &cells, &empty);
	if (err)
		return err;
	const struct store_cell *known = cell_of(cells, counters_name);
	const struct store_cell *before = cell_of(cells, recount_name);
	buf_init(&changed, 2 * SUFFIXES_MAX_BYTES);
	if (known && !empty) {
		add_lacking(&changed, known->value, suffixes);
		add_lacking(&changed, suffixes, known->value);
	}
	if (changed.len) {
		warn_of(buf_slice(&changed));
		err = add_changed(asked, before, buf_slice(&changed),
				  (now_ms / slot_ms + 1) * slot_ms, recount);
	} else if (before) {
		buf_append(recount, before->value.data, before->value.len);
	}
	if (!err && (!known || !slice_equal(known->value, suffixes)))
		err = put_text(asked, counters_name, known, suffixes);
	buf_release(&changed);
	return err || !asked->write->cells ? err : keep(asked);
}

int rollup_recount_open(struct store *store, const char *const *suffixes, size_t count,
			int64_t slot_ms, int64_t now_ms, struct buf *recount, struct errbuf *e)
{
	struct asked asked;
	struct buf lines;
	buf_init(recount, SUFFIXES_MAX_BYTES);
	buf_init(&lines, SUFFIXES_MAX_BYTES);
	for (size_t i = 0; i < count; i++)
		add_line(&lines, slice_of(suffixes[i]));
	begin(&asked, store);
	int err = compare(&asked, buf_slice(&lines), slot_ms, now_ms, recount);
	end(&asked);
	buf_release(&lines);
	return err ? errbuf_set(e, err, "which metrics were counters cannot be told: %s",
				err_text(err))
		   : 0;
}

int64_t rollup_recount_before_ms(const struct buf *recount, struct slice metric)
{
	struct slice rest = buf_slice(recount), time, suffix;
	if (!next_line(&rest, &time))
		return 0;
	while (next_line(&rest, &suffix)) {
		if (slice_ends_with(metric, suffix))
			return number_of(time_of(time));
	}
	return 0;
}

int64_t rollup_recount_last_ms(const struct buf *recount)
{
	struct slice rest = buf_slice(recount), time;
	return next_line(&rest, &time) ? number_of(time_of(time)) : 0;
}
