#include "rollup/stored_settings.h"

#include "base/log.h"
#include "marks/resize.h"
#include "retention/lengthened.h"
#include "rollup/shared_settings.h"
#include "rollup/site.h"
#include "store/wait.h"
#include "wire/number.h"

enum {
	SETTINGS_READ_MAX_BYTES = 1 << 20,
	SETTINGS_WRITE_MAX_BYTES = 1 << 20,
	SUFFIXES_MAX_BYTES = 64 << 10,
	SUFFIXES_SHOWN_BYTES = 1000,
	/* How often what was settled is looked at again because another process was first, or
	 * because it is not known what became of it. */
	TRIES = 20,
};

enum settings_row { ROW_RETENTION_RAW, ROW_ROLLUP_SINCE, ROW_SHARED, SETTINGS_ROWS };

static const struct store_parts settings_rows[SETTINGS_ROWS] = {
	[ROW_RETENTION_RAW] = {{SLICE("retention-raw")}},
	[ROW_ROLLUP_SINCE] = {{SLICE("rollup-since")}},
	[ROW_SHARED] = {{SLICE("settings")}},
};
static const struct slice rebuilt_note = SLICE(" rebuilt"), recount_name = SLICE("recount");

/* ---- Cells ----------------------------------------------------------------------------------- */

/* The settings as they are read, and what becomes of them. */
struct settings_cells {
	struct task_queue *queue;
	struct store_read *read;
	struct store_write *write;
	struct settings_row_cells {
		struct store_request *request;
		struct store_cell *list; /* what they point to lies in the read's memory */
		size_t count;
	} rows[SETTINGS_ROWS];
	bool empty; /* there is no series: nothing was ever written */
	/* Of what is to be written. Another process may have been first. */
	struct store_write_cond **outcomes;
	size_t outcome_count;
};

static bool settings_are_shared(const struct store *store)
{
	return store->engine->can & STORE_SHARED;
}

static void settings_begin(struct settings_cells *c, struct store *store, struct task_queue *queue)
{
	*c = (struct settings_cells){.queue = queue};
	c->read = store_read_new(store, SETTINGS_READ_MAX_BYTES);
	c->write = store_write_new(store, SETTINGS_WRITE_MAX_BYTES);
}

static void settings_end(struct settings_cells *c)
{
	store_read_free(c->read);
	store_write_free(c->write);
	for (size_t i = 0; i < SETTINGS_ROWS; i++)
		mem_free(c->rows[i].list);
	mem_free(c->outcomes);
}

static struct store_request *settings_ask(struct settings_cells *c, int64_t now_ms)
{
	store_read_reset(c->read);
	c->read->now_ms = now_ms;
	struct store_request *list = store_read_add(c->read, STORE_SERIES_LIST);
	ASSERT(list); /* the first of an empty arena */
	list->series_list.limit = 1;
	for (size_t i = 0; i < SETTINGS_ROWS; i++) {
		struct store_request *request = store_read_add(c->read, STORE_CELL_SCAN);
		ASSERT(request);
		request->cell_scan.table = TABLE_LEASES;
		request->cell_scan.key = settings_rows[i];
		c->rows[i].request = request;
		c->rows[i].count = 0;
	}
	return list;
}

/* What the last slice has given. True: there is more. */
static bool settings_take_slice(struct settings_row_cells *row)
{
	const struct store_cell_scan *scan = &row->request->cell_scan;
	row->list = mem_resize_array(row->list, row->count + scan->count + 1, sizeof(*row->list));
	if (scan->count)
		memcpy(row->list + row->count, scan->cells, scan->count * sizeof(*row->list));
	row->count += scan->count;
	return row->request->more;
}

static int settings_read(struct settings_cells *c, int64_t now_ms)
{
	const struct store_request *list = settings_ask(c, now_ms);
	bool asked[SETTINGS_ROWS], more = true;
	memset(asked, true, sizeof(asked));
	c->empty = true;
	while (more) {
		int err = store_read_wait(c->read, c->queue);
		if (err)
			return err;
		c->empty &= list->series_list.count == 0;
		more = c->empty && list->more;
		for (size_t i = 0; i < SETTINGS_ROWS; i++) {
			asked[i] = asked[i] && settings_take_slice(&c->rows[i]);
			more |= asked[i];
		}
	}
	return 0;
}

static const struct store_cell *settings_find(const struct settings_cells *c, enum settings_row row,
					      struct slice name)
{
	const struct settings_row_cells *cells = &c->rows[row];
	for (size_t i = 0; i < cells->count; i++) {
		if (slice_equal(cells->list[i].column.part[0], name))
			return &cells->list[i];
	}
	return NULL;
}

/* Where the outcome of one more condition is to come. */
static struct store_write_cond **settings_outcome(struct settings_cells *c)
{
	c->outcomes = mem_resize_array(c->outcomes, c->outcome_count + 1, sizeof(*c->outcomes));
	c->outcomes[c->outcome_count] = NULL;
	return &c->outcomes[c->outcome_count++];
}

/* In the place of `before`, NULL: there is none. */
static int settings_replace(struct settings_cells *c, enum settings_row row, struct slice name,
			    const struct store_cell *before, struct slice value)
{
	struct store_parts column = {{name}};
	return store_cell_put_if(c->write, TABLE_LEASES, &settings_rows[row], &column,
				 before ? before->version : 0, value, 0, settings_outcome(c));
}

static int settings_put(struct settings_cells *c, enum settings_row row, struct slice name,
			const struct store_cell *before, struct slice value)
{
	if (before && slice_equal(before->value, value))
		return 0;
	return settings_replace(c, row, name, before, value);
}

static int settings_put_ms(struct settings_cells *c, struct slice name,
			   const struct store_cell *before, int64_t ms)
{
	char number[NUMBER_PRINT_MAX_BYTES];
	struct slice value = {number, number_print_u64(number, (uint64_t)ms)};
	return settings_put(c, ROW_ROLLUP_SINCE, name, before, value);
}

static int settings_remove(struct settings_cells *c, const struct store_cell *cell)
{
	return store_cell_delete_if(c->write, TABLE_LEASES, &settings_rows[ROW_ROLLUP_SINCE],
				    &cell->column, cell->version, settings_outcome(c));
}

/* Writes what there is to be written. ERR_RETRY: another process was first with some of it, and has
 * to be heard. ERR_UNKNOWN, in a store that is shared: it is to be looked at, too. */
static int settings_write(struct settings_cells *c)
{
	int err = c->write->cells ? store_write_wait(c->write, c->queue) : 0;
	for (size_t i = 0; i < c->outcome_count && !err; i++) {
		if (!c->outcomes[i] || !c->outcomes[i]->applied)
			err = ERR_RETRY;
	}
	return err;
}

static bool settings_are_to_be_read_again(const struct settings_cells *c, int err)
{
	return err == ERR_RETRY || (err == ERR_UNKNOWN && settings_are_shared(c->write->store));
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* INT64_MAX: it is none. */
static int64_t settings_ms(struct slice text)
{
	uint64_t number = 0;
	const char *end = number_scan_digits(text.data, text.data + text.len, &number);
	return end == text.data + text.len && number <= INT64_MAX ? (int64_t)number : INT64_MAX;
}

/* The time in the cell of a granularity, or in the first line of `recount`. */
static int64_t settings_since_ms(struct slice text)
{
	if (slice_ends_with(text, rebuilt_note))
		text.len -= rebuilt_note.len;
	return settings_ms(text);
}

static struct slice settings_width_name(const struct granularity *granularity,
					char to[GRANULARITY_WIDTH_MAX_BYTES])
{
	return (struct slice){to, granularity_width_print(to, granularity->width_ms)};
}

/* Cuts the next line off from *rest; each has a newline at its end. */
static bool settings_lines_next(struct slice *rest, struct slice *line)
{
	const char *at = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
	if (!at)
		return false;
	*line = (struct slice){rest->data, (size_t)(at - rest->data)};
	*rest = (struct slice){at + 1, rest->len - line->len - 1};
	return true;
}

static void settings_lines_add(struct buf *to, struct slice line)
{
	buf_append(to, line.data, line.len);
	buf_append_char(to, '\n');
}

static bool settings_lines_have(struct slice lines, struct slice wanted)
{
	struct slice line;
	while (settings_lines_next(&lines, &line)) {
		if (slice_equal(line, wanted))
			return true;
	}
	return false;
}

/* Adds the lines of `from` that neither `other` nor `to` has. */
static void settings_lines_add_missing(struct buf *to, struct slice from, struct slice other)
{
	struct slice line;
	while (settings_lines_next(&from, &line)) {
		if (!settings_lines_have(other, line) && !settings_lines_have(buf_slice(to), line))
			settings_lines_add(to, line);
	}
}

/* ---- What a change does ---------------------------------------------------------------------- */

struct settling {
	struct rollup_site *site;
	int64_t now_ms;
	struct settings_cells cells;
	/* Where the store is shared: the settings that all have in common are this process's by
	 * now. */
	bool claimed;
	uint64_t seen_version; /* of the cell that has them, as last changed */
};

/* The slot in which a granularity is configured, or a metric becomes a counter, has samples of
 * before. */
static int64_t settings_next_slot_ms(const struct settling *s)
{
	int64_t slot_ms = s->site->granularities.slot_ms;
	return (s->now_ms / slot_ms + 1) * slot_ms;
}

static int settle_raw_retention(struct settling *s, struct slice name,
				const struct store_cell *before)
{
	char text[LENGTHENED_CELL_MAX_BYTES];
	struct slice value = before ? before->value : SLICE("");
	int err = retention_lengthened_settle(&value, &s->site->retention, s->now_ms,
					      s->site->ahead_ms, text);
	return err ? err : settings_put(&s->cells, ROW_RETENTION_RAW, name, before, value);
}

/* Marks are of the width that was configured when they were made; they stay while nothing is rolled
 * up. */
static int settle_slot(struct settling *s, struct slice name, const struct store_cell *before)
{
	int64_t slot_ms = s->site->granularities.slot_ms;
	int64_t before_ms = before ? settings_ms(before->value) : slot_ms;
	if (!s->site->granularities.count)
		return 0;
	if (before_ms < 1000 || before_ms % 1000 || before_ms > SLOT_WIDTH_MAX_MS)
		return ERR_DAMAGED;
	if (before_ms != slot_ms) {
		int err = marks_resize(s->site->store, s->cells.queue, s->site->clock, before_ms,
				       slot_ms, s->now_ms, SLICE("resize"));
		if (err)
			return err;
	}
	return settings_put_ms(&s->cells, name, before, slot_ms);
}

/* The least value that was ever configured stays; 0 is none. */
static int settle_least(struct settling *s, struct slice name, const struct store_cell *before,
			int64_t *ms)
{
	int64_t before_ms = before ? settings_ms(before->value) : 0;
	if (before && (before_ms < 1 || before_ms == INT64_MAX))
		return ERR_DAMAGED;
	if (before && (!*ms || before_ms <= *ms))
		*ms = before_ms;
	return *ms ? settings_put_ms(&s->cells, name, before, *ms) : 0;
}

/* Late samples of an earlier configuration may be younger than those of this one. */
static int settle_late(struct settling *s, struct slice name, const struct store_cell *before)
{
	struct rollup_site *site = s->site;
	int64_t raw_ms = retention_shortest_whole_ms(&site->retention, s->now_ms);
	site->late.after_ms =
		site->keeps_late
			? late_samples_after_ms(raw_ms, site->granularities.slot_ms, site->quiet_ms)
			: 0;
	return settle_least(s, name, before, &site->late.after_ms);
}

/* Late samples of an earlier configuration may go earlier: with the class of the store that they
 * were written to, which may be longer than what was configured. */
static int settle_late_kept(struct settling *s, struct slice name, const struct store_cell *before)
{
	int64_t *kept_ms = &s->site->late.kept_ms, lives_ms = 0;
	if (s->site->keeps_late && *kept_ms)
		lives_ms = retention_class_ms(retention_class_for(*kept_ms));
	int err = settle_least(s, name, before, &lives_ms);
	if (lives_ms)
		*kept_ms = retention_shorter(*kept_ms, lives_ms);
	return err;
}

static void settings_warn_of_suffixes(struct slice changed)
{
	struct buf names;
	struct slice line;
	buf_init(&names, SUFFIXES_SHOWN_BYTES);
	while (settings_lines_next(&changed, &line) && !names.failed)
		buf_printf(&names, "%s*" SHOWN, names.len ? ", " : "", SHOWN_OF(line));
	log_warn("rollup.counter_suffixes has changed for %.*s: roll-ups of such metrics stay as "
		 "they were made until `granary rollup rebuild` has them made again, where there "
		 "still is raw data",
		 (int)names.len, names.data);
	buf_release(&names);
}

/* Earlier changes still hold. If there are too many, any metric may have changed: the empty suffix
 * is the end of every name. */
static int settle_recount(struct settling *s, struct slice changed)
{
	const struct store_cell *before = settings_find(&s->cells, ROW_ROLLUP_SINCE, recount_name);
	struct buf *recount = &s->site->settings.recount;
	struct slice earlier = before ? before->value : SLICE(""), time;
	if (before && !changed.len)
		buf_append(recount, earlier.data, earlier.len);
	if (!changed.len)
		return 0;
	if (before && !settings_lines_next(&earlier, &time))
		return ERR_DAMAGED;
	char number[NUMBER_PRINT_MAX_BYTES];
	struct slice now = {number, number_print_u64(number, (uint64_t)settings_next_slot_ms(s))};
	settings_lines_add(recount, now);
	settings_lines_add_missing(recount, earlier, SLICE(""));
	settings_lines_add_missing(recount, changed, SLICE(""));
	if (recount->failed) {
		buf_clear(recount);
		settings_lines_add(recount, now);
		settings_lines_add(recount, SLICE(""));
	}
	return settings_put(&s->cells, ROW_ROLLUP_SINCE, recount_name, before, buf_slice(recount));
}

static int settle_counters(struct settling *s, struct slice name, const struct store_cell *before)
{
	const struct rollup_site *site = s->site;
	struct buf suffixes, changed;
	if (!site->granularities.count)
		return 0;
	buf_init(&suffixes, SUFFIXES_MAX_BYTES);
	buf_init(&changed, 2 * SUFFIXES_MAX_BYTES);
	for (size_t i = 0; i < site->counter_suffix_count; i++)
		settings_lines_add(&suffixes, slice_of(site->counter_suffixes[i]));
	if (before && !s->cells.empty) {
		settings_lines_add_missing(&changed, before->value, buf_slice(&suffixes));
		settings_lines_add_missing(&changed, buf_slice(&suffixes), before->value);
	}
	if (changed.len)
		settings_warn_of_suffixes(buf_slice(&changed));
	int err = settle_recount(s, buf_slice(&changed));
	/* If it broke off between the two, `recount` would never be made. */
	if (!(site->store->engine->can & STORE_ATOMIC_STAGES))
		store_write_next_stage(s->cells.write);
	if (!err)
		err = settings_put(&s->cells, ROW_ROLLUP_SINCE, name, before, buf_slice(&suffixes));
	buf_release(&suffixes);
	buf_release(&changed);
	return err;
}

/* ---- The table ------------------------------------------------------------------------------- */

/* In the order in which they are settled: a later one may ask for an earlier one. */
static const struct stored_setting {
	enum settings_row row;
	struct slice name;
	const char *what; /* for sentences */
	int (*settle)(struct settling *s, struct slice name, const struct store_cell *before);
} stored_settings[] = {
	{ROW_RETENTION_RAW, SLICE("kept"), "how long raw samples were kept", settle_raw_retention},
	{ROW_ROLLUP_SINCE, SLICE("slot"), "how wide slots of roll-ups were", settle_slot},
	{ROW_ROLLUP_SINCE, SLICE("late"), "from which age on samples were late", settle_late},
	{ROW_ROLLUP_SINCE, SLICE("late-kept"), "how long late samples were kept", settle_late_kept},
	{ROW_ROLLUP_SINCE, SLICE("counters"), "which metrics were counters", settle_counters},
};

static int settle_all(struct settling *s, struct errbuf *e)
{
	for (size_t i = 0; i < ARRAY_LEN(stored_settings); i++) {
		const struct stored_setting *setting = &stored_settings[i];
		int err = setting->settle(s, setting->name,
					  settings_find(&s->cells, setting->row, setting->name));
		if (err)
			return errbuf_set(
				e, err, "%s (table leases, row " SHOWN ", column " SHOWN "): %s",
				setting->what, SHOWN_OF(settings_rows[setting->row].part[0]),
				SHOWN_OF(setting->name), err_text(err));
	}
	return 0;
}

/* Since when samples are marked for each granularity. */
static int settle_granularities(struct settling *s)
{
	const struct granularities *granularities = &s->site->granularities;
	char width[GRANULARITY_WIDTH_MAX_BYTES];
	int err = 0;
	for (size_t g = 0; g < granularities->count && !err; g++) {
		struct slice name = settings_width_name(&granularities->list[g], width);
		const struct store_cell *cell = settings_find(&s->cells, ROW_ROLLUP_SINCE, name);
		int64_t since_ms = s->cells.empty ? 0 : settings_next_slot_ms(s);
		if (cell)
			since_ms = settings_since_ms(cell->value);
		else
			err = settings_put_ms(&s->cells, name, NULL, since_ms);
		atomic_store(&s->site->settings.since_ms[g], since_ms);
	}
	return err;
}

static bool settings_is_setting(const struct settling *s, struct slice name)
{
	const struct granularities *granularities = &s->site->granularities;
	char width[GRANULARITY_WIDTH_MAX_BYTES];
	bool is = slice_equal(name, recount_name);
	for (size_t i = 0; i < ARRAY_LEN(stored_settings); i++)
		is |= slice_equal(name, stored_settings[i].name);
	for (size_t g = 0; g < granularities->count; g++)
		is |= slice_equal(name, settings_width_name(&granularities->list[g], width));
	return is;
}

/* Cells of granularities that are configured no more. */
static int settings_remove_others(struct settling *s)
{
	const struct settings_row_cells *cells = &s->cells.rows[ROW_ROLLUP_SINCE];
	int err = 0;
	for (size_t i = 0; i < cells->count && !err; i++) {
		if (!settings_is_setting(s, cells->list[i].column.part[0]))
			err = settings_remove(&s->cells, &cells->list[i]);
	}
	return err;
}

/* ---- What all processes have in common --------------------------------------------------------
 */

/* Writes, and reads again. */
static int settings_write_and_read(struct settling *s)
{
	struct settings_cells *c = &s->cells;
	int err = settings_write(c);
	store_write_reset(c->write);
	c->outcome_count = 0;
	return err ? err : settings_read(c, s->now_ms);
}

static bool settings_are_of_new_granularity(const struct settling *s, struct slice before,
					    struct slice name)
{
	const struct granularities *granularities = &s->site->granularities;
	char width[GRANULARITY_WIDTH_MAX_BYTES];
	bool is = false;
	for (size_t g = 0; g < granularities->count; g++)
		is |= slice_equal(name, settings_width_name(&granularities->list[g], width));
	return is && !shared_settings_have_granularity(before, name);
}

/* What an earlier process handed over for one of the cells, and never heard of, comes too late from
 * now on. */
static int settings_renew_all(struct settling *s, struct slice before)
{
	int err = 0;
	for (enum settings_row row = 0; row < ROW_SHARED && !err; row++) {
		const struct settings_row_cells *cells = &s->cells.rows[row];
		for (size_t i = 0; i < cells->count && !err; i++) {
			struct slice name = cells->list[i].column.part[0];
			if (!settings_are_of_new_granularity(s, before, name))
				err = settings_replace(&s->cells, row, name, &cells->list[i],
						       cells->list[i].value);
		}
	}
	return err;
}

/* Until now processes were at work without them. A cell that is there already is of a process that
 * ended before that, and was written later. */
static int settings_begin_granularities(struct settling *s, struct slice before)
{
	const struct granularities *granularities = &s->site->granularities;
	char width[GRANULARITY_WIDTH_MAX_BYTES];
	int err = 0;
	for (size_t g = 0; g < granularities->count && !err; g++) {
		struct slice name = settings_width_name(&granularities->list[g], width);
		if (!shared_settings_have_granularity(before, name))
			err = settings_put_ms(&s->cells, name,
					      settings_find(&s->cells, ROW_ROLLUP_SINCE, name),
					      s->cells.empty ? 0 : settings_next_slot_ms(s));
	}
	return err;
}

/* The settings of before are replaced after this: who starts with the new ones may rely on these
 * cells. Each start changes the version of the settings; so while that is the same nobody else was
 * at work, and what is new begins when it did the first time. */
static int settle_shared_change(struct settling *s, const struct store_cell *before)
{
	if (before->version != s->seen_version)
		s->now_ms = larger_of(s->now_ms, clock_sure_ms(s->site->clock));
	s->seen_version = before->version;
	int err = settings_renew_all(s, before->value);
	err = err ? err : settings_begin_granularities(s, before->value);
	return err ? err : settings_write_and_read(s);
}

/* Nobody else may be at work: what others write, and what they believe of the store, is by what
 * they were started with. */
static int settle_shared_check(const struct settling *s,
			       const struct shared_settings_difference *difference,
			       struct errbuf *e)
{
	const struct rollup_site *site = s->site;
	char other[SHARED_SETTINGS_NAME_MAX_BYTES];
	int err = shared_settings_find_other(site->store, s->cells.queue, slice_of(site->name),
					     clock_sure_ms(site->clock), site->skew_max_ms, other);
	if (err)
		return errbuf_set(e, err, "who else is at work: %s", err_text(err));
	if (other[0])
		return shared_settings_refuse(difference, other, e);
	log_info("%.*s is another one than at the last start: it is changed for all processes that "
		 "share the store; none is at work",
		 (int)difference->option.len, difference->option.data);
	return 0;
}

/* The cell is put also when it stays as it is: what an earlier process handed over for it comes too
 * late then, and who is about to change it sees that somebody has started. */
static int settle_shared_claim(struct settling *s, uint64_t version)
{
	struct settings_cells *c = &s->cells;
	struct slice name = shared_settings_column.part[0];
	const struct store_cell *before = settings_find(c, ROW_SHARED, name);
	if (before ? before->version != version : version)
		return ERR_RETRY;
	int err =
		settings_replace(c, ROW_SHARED, name, before, buf_slice(&s->site->settings.shared));
	err = err ? err : settings_write_and_read(s);
	s->claimed = !err;
	return err;
}

/* Where several processes share the store: they have the same settings, or do not start. A store
 * without room takes no change. */
static int settle_shared(struct settling *s, struct errbuf *e)
{
	struct shared_settings_difference difference;
	const struct buf *own = &s->site->settings.shared;
	const struct store_cell *before =
		settings_find(&s->cells, ROW_SHARED, shared_settings_column.part[0]);
	uint64_t version = before ? before->version : 0;
	int err = 0;
	if (own->failed)
		return errbuf_set(e, ERR_LIMIT,
				  "retention.rules and rollup.counter_suffixes are "
				  "too long for a store that processes share");
	bool changes = before && shared_settings_differ(before->value, buf_slice(own), &difference);
	if (changes) {
		s->claimed = false;
		err = settle_shared_check(s, &difference, e);
		if (err)
			return err;
		err = settle_shared_change(s, before);
	}
	if (!err && !s->claimed)
		err = settle_shared_claim(s, version);
	if ((err == ERR_FULL || err == ERR_READ_ONLY) && version && !changes)
		err = settings_read(&s->cells, s->now_ms);
	return err ? errbuf_set(e, err, "what all processes have in common: %s", err_text(err)) : 0;
}

/* ---- A start --------------------------------------------------------------------------------- */

/* A store without room serves what it has. The next start then finds the same changes, of a later
 * time. */
static int settings_store(struct settling *s)
{
	int err = settings_write(&s->cells);
	if (err != ERR_FULL && err != ERR_READ_ONLY)
		return err;
	s->site->settings.is_unstored = true;
	log_warn("settings of retention and roll-ups cannot be stored: %s; the next start compares "
		 "its configuration with that of the last start that could store it",
		 err_text(err));
	return 0;
}

static int settle_once(struct settling *s, struct errbuf *e)
{
	int err = settings_read(&s->cells, s->now_ms);
	if (err)
		return errbuf_set(e, err, "%s", err_text(err));
	if (settings_are_shared(s->site->store))
		err = settle_shared(s, e);
	err = err ? err : settle_all(s, e);
	if (err)
		return err;
	err = settings_remove_others(s);
	err = err ? err : settle_granularities(s);
	err = err ? err : settings_store(s);
	return err ? errbuf_set(e, err, "%s", err_text(err)) : 0;
}

int stored_settings_settle(struct rollup_site *site, struct task_queue *queue, int64_t now_ms,
			   struct errbuf *e)
{
	struct settling s = {.site = site, .now_ms = now_ms};
	struct late_samples late = site->late;
	int err = ERR_RETRY;
	memset(&site->settings, 0, sizeof(site->settings));
	buf_init(&site->settings.recount, SUFFIXES_MAX_BYTES);
	buf_init(&site->settings.shared, SHARED_SETTINGS_MAX_BYTES);
	if (settings_are_shared(site->store))
		shared_settings_print(site, &site->settings.shared);
	for (int tries = 0; tries < TRIES && err; tries++) {
		site->late = late;
		buf_clear(&site->settings.recount);
		settings_begin(&s.cells, site->store, queue);
		err = settle_once(&s, e);
		bool again = settings_are_to_be_read_again(&s.cells, err);
		settings_end(&s.cells);
		if (!again)
			break;
	}
	if (err == ERR_INVALID)
		return err; /* the sentence says all */
	return err ? errbuf_prefix(e, err, "cannot read or store the settings of the last start")
		   : 0;
}

int stored_settings_open(struct rollup_site *site, int64_t now_ms, struct errbuf *e)
{
	struct task_queue queue;
	task_queue_init(&queue);
	int err = stored_settings_settle(site, &queue, now_ms, e);
	task_queue_release(&queue);
	return err;
}

void stored_settings_release(struct stored_settings *settings)
{
	buf_release(&settings->recount);
	buf_release(&settings->shared);
}

/* ---- Recount --------------------------------------------------------------------------------- */

int64_t recount_before_ms(struct slice value, struct slice metric)
{
	struct slice time, suffix;
	if (!settings_lines_next(&value, &time))
		return 0;
	while (settings_lines_next(&value, &suffix)) {
		if (slice_ends_with(metric, suffix))
			return settings_since_ms(time);
	}
	return 0;
}

int64_t stored_settings_recount_ms(const struct stored_settings *settings, struct slice metric)
{
	if (atomic_load(&settings->recount_is_over))
		return 0;
	return recount_before_ms(buf_slice(&settings->recount), metric);
}

int64_t stored_settings_since_ms(const struct stored_settings *settings, struct slice metric,
				 size_t granularity)
{
	int64_t since_ms = atomic_load(&settings->since_ms[granularity]);
	int64_t recount_ms = stored_settings_recount_ms(settings, metric);
	return recount_ms > since_ms ? recount_ms : since_ms;
}

int64_t stored_settings_recount_last_ms(const struct stored_settings *settings)
{
	struct slice rest = buf_slice(&settings->recount), time;
	if (atomic_load(&settings->recount_is_over))
		return 0;
	return settings_lines_next(&rest, &time) ? settings_since_ms(time) : 0;
}

/* ---- What other processes change --------------------------------------------------------------
 */

static bool settings_are_others(struct rollup_site *site, const struct settings_cells *c)
{
	struct shared_settings_difference difference;
	const struct store_cell *cell =
		settings_find(c, ROW_SHARED, shared_settings_column.part[0]);
	bool others = cell && shared_settings_differ(cell->value, buf_slice(&site->settings.shared),
						     &difference);
	if (others && !atomic_load(&site->settings.are_others))
		shared_settings_complain(&difference);
	atomic_store(&site->settings.are_others, others);
	return others;
}

/* While processes are at work nothing is configured; backfill alone changes what stands there, and
 * it makes times 0 and takes `recount` away. */
int stored_settings_follow(struct rollup_site *site, struct task_queue *queue)
{
	const struct granularities *granularities = &site->granularities;
	char width[GRANULARITY_WIDTH_MAX_BYTES];
	struct settings_cells c;
	if (!settings_are_shared(site->store) || site->settings.is_unstored)
		return 0;
	settings_begin(&c, site->store, queue);
	int err = settings_read(&c, clock_wall_ms(site->clock));
	bool follows = !err && !settings_are_others(site, &c);
	for (size_t g = 0; g < granularities->count && follows; g++) {
		struct slice name = settings_width_name(&granularities->list[g], width);
		const struct store_cell *cell = settings_find(&c, ROW_ROLLUP_SINCE, name);
		int64_t since_ms = cell ? settings_since_ms(cell->value) : INT64_MAX;
		if (since_ms < atomic_load(&site->settings.since_ms[g]))
			atomic_store(&site->settings.since_ms[g], since_ms);
	}
	if (follows && !settings_find(&c, ROW_ROLLUP_SINCE, recount_name))
		atomic_store(&site->settings.recount_is_over, true);
	settings_end(&c);
	return err;
}

/* ---- Backfill -------------------------------------------------------------------------------- */

int stored_settings_rebuilt(const struct rollup_site *site, struct task_queue *queue,
			    unsigned *rebuilt)
{
	const struct granularities *granularities = &site->granularities;
	char width[GRANULARITY_WIDTH_MAX_BYTES];
	struct settings_cells c;
	*rebuilt = 0;
	settings_begin(&c, site->store, queue);
	int err = settings_read(&c, clock_wall_ms(site->clock));
	for (size_t g = 0; g < granularities->count && !err; g++) {
		struct slice name = settings_width_name(&granularities->list[g], width);
		const struct store_cell *cell = settings_find(&c, ROW_ROLLUP_SINCE, name);
		if (cell && slice_ends_with(cell->value, rebuilt_note))
			*rebuilt |= 1u << g;
	}
	const struct store_cell *recount =
		err ? NULL : settings_find(&c, ROW_ROLLUP_SINCE, recount_name);
	struct slice rest = recount ? recount->value : SLICE(""), time;
	if (settings_lines_next(&rest, &time) && slice_ends_with(time, rebuilt_note))
		*rebuilt |= 1u << granularities->count;
	settings_end(&c);
	return err;
}

/* What this process knows of the cell is what stands there, so what it says of it holds. With `all`
 * it has to stand there, too, that all marks were made: another process may have begun anew. */
static bool settings_note_holds(const struct settings_cells *c, struct slice text, int64_t since_ms,
				bool all)
{
	if (!settings_are_shared(c->write->store))
		return true;
	return settings_since_ms(text) == since_ms && (!all || slice_ends_with(text, rebuilt_note));
}

static int settings_note_granularity(struct settings_cells *c, struct slice name, int64_t since_ms,
				     bool all)
{
	const struct store_cell *cell = settings_find(c, ROW_ROLLUP_SINCE, name);
	struct buf value;
	if (!cell || slice_equal(cell->value, SLICE("0")))
		return 0;
	if (!settings_note_holds(c, cell->value, since_ms, all))
		return ERR_EXISTS;
	buf_init(&value, NUMBER_PRINT_MAX_BYTES + rebuilt_note.len + 1);
	if (all)
		buf_append_char(&value, '0');
	else
		buf_printf(&value, "%lld%s", (long long)settings_since_ms(cell->value),
			   rebuilt_note.data);
	int err = settings_put(c, ROW_ROLLUP_SINCE, name, cell, buf_slice(&value));
	buf_release(&value);
	return err;
}

static int settings_note_recount(struct settings_cells *c, int64_t since_ms, bool all)
{
	const struct store_cell *cell = settings_find(c, ROW_ROLLUP_SINCE, recount_name);
	struct slice rest = cell ? cell->value : SLICE(""), time;
	struct buf value;
	if (!cell)
		return 0;
	if (!settings_lines_next(&rest, &time))
		return all ? settings_remove(c, cell) : ERR_DAMAGED;
	if (!settings_note_holds(c, time, since_ms, all))
		return ERR_EXISTS;
	if (all)
		return settings_remove(c, cell);
	buf_init(&value, cell->value.len + rebuilt_note.len);
	buf_printf(&value, "%lld%s\n", (long long)settings_since_ms(time), rebuilt_note.data);
	buf_append(&value, rest.data, rest.len);
	int err = settings_put(c, ROW_ROLLUP_SINCE, recount_name, cell, buf_slice(&value));
	buf_release(&value);
	return err;
}

static int settings_note_once(struct settings_cells *c, const struct rollup_site *site,
			      unsigned which, bool all)
{
	const struct granularities *granularities = &site->granularities;
	char width[GRANULARITY_WIDTH_MAX_BYTES];
	int err = settings_read(c, clock_wall_ms(site->clock));
	for (size_t g = 0; g < granularities->count && !err; g++) {
		if (which >> g & 1)
			err = settings_note_granularity(
				c, settings_width_name(&granularities->list[g], width),
				atomic_load(&site->settings.since_ms[g]), all);
	}
	if (!err && which >> granularities->count & 1)
		err = settings_note_recount(c, stored_settings_recount_last_ms(&site->settings),
					    all);
	return err ? err : settings_write(c);
}

int stored_settings_note(const struct rollup_site *site, struct task_queue *queue, unsigned which,
			 bool all)
{
	int err = ERR_RETRY;
	for (int tries = 0; tries < TRIES; tries++) {
		struct settings_cells c;
		settings_begin(&c, site->store, queue);
		err = settings_note_once(&c, site, which, all);
		bool again = settings_are_to_be_read_again(&c, err);
		settings_end(&c);
		if (!again)
			break;
	}
	return err;
}
