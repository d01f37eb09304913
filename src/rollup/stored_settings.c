#include "rollup/stored_settings.h"

#include "base/log.h"
#include "marks/resize.h"
#include "retention/lengthened.h"
#include "rollup/settings_cells.h"
#include "rollup/shared_settings.h"
#include "rollup/site.h"
#include "wire/number.h"

enum {
	SUFFIXES_SHOWN_BYTES = 1000,
	/* Changed rules hold that long after they are noted, at most; a disk that stands for longer
	 * stands for all that is written under them, too. */
	SETTINGS_CHANGE_MS = 600000,
};

/* ---- What a change does ---------------------------------------------------------------------- */

struct settling {
	struct rollup_site *site;
	struct retention_rules *rules; /* that are to hold */
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
	int err = retention_lengthened_settle(&value, s->rules, s->now_ms, s->site->ahead_ms, text);
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
	const struct rollup_site *site = s->site;
	int64_t raw_ms = retention_shortest_whole_ms(s->rules, s->now_ms);
	s->rules->late.after_ms =
		s->rules->keeps_late
			? late_samples_after_ms(raw_ms, site->granularities.slot_ms, site->quiet_ms)
			: 0;
	return settle_least(s, name, before, &s->rules->late.after_ms);
}

/* Late samples of an earlier configuration may go earlier: with the class of the store that they
 * were written to, which may be longer than what was configured. */
static int settle_late_kept(struct settling *s, struct slice name, const struct store_cell *before)
{
	int64_t *kept_ms = &s->rules->late.kept_ms, lives_ms = 0;
	if (s->rules->keeps_late && *kept_ms)
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
	while (slice_take_line(&changed, &line) && !names.failed)
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
	const struct store_cell *before =
		settings_find(&s->cells, ROW_ROLLUP_SINCE, settings_recount_name);
	struct buf *recount = &s->site->settings.recount;
	struct slice earlier = before ? before->value : SLICE(""), time;
	if (before && !changed.len)
		buf_append(recount, earlier.data, earlier.len);
	if (!changed.len)
		return 0;
	if (before && !slice_take_line(&earlier, &time))
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
	return settings_put(&s->cells, ROW_ROLLUP_SINCE, settings_recount_name, before,
			    buf_slice(recount));
}

static int settle_counters(struct settling *s, struct slice name, const struct store_cell *before)
{
	const struct rollup_site *site = s->site;
	struct buf suffixes, changed;
	if (!site->granularities.count)
		return 0;
	buf_init(&suffixes, SETTINGS_SUFFIXES_MAX_BYTES);
	buf_init(&changed, 2 * SETTINGS_SUFFIXES_MAX_BYTES);
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
	bool is_of_rules; /* it also changes with rules of retention while the store is open */
} stored_settings[] = {
	{ROW_RETENTION_RAW, SLICE("kept"), "how long raw samples were kept", settle_raw_retention,
	 true},
	{ROW_ROLLUP_SINCE, SLICE("slot"), "how wide slots of roll-ups were", settle_slot},
	{ROW_ROLLUP_SINCE, SLICE("late"), "from which age on samples were late", settle_late, true},
	{ROW_ROLLUP_SINCE, SLICE("late-kept"), "how long late samples were kept", settle_late_kept,
	 true},
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
	bool is = slice_equal(name, settings_recount_name);
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
	int err = shared_settings_find_other(site, s->cells.queue, other);
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
	if (store_is_shared(s->site->store))
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
	struct settling s = {.site = site, .rules = &site->retention, .now_ms = now_ms};
	struct late_samples late = site->retention.late;
	int err = ERR_RETRY;
	memset(&site->settings, 0, sizeof(site->settings));
	buf_init(&site->settings.recount, SETTINGS_SUFFIXES_MAX_BYTES);
	buf_init(&site->settings.shared, SHARED_SETTINGS_MAX_BYTES);
	if (store_is_shared(site->store))
		shared_settings_print(site, &site->settings.shared);
	for (int tries = 0; tries < SETTINGS_TRIES && err; tries++) {
		site->retention.late = late;
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

/* ---- Other rules while it is open --------------------------------------------------------------
 */

static int settle_change(struct settling *s)
{
	struct settings_cells *c = &s->cells;
	int err = settings_read(c, s->now_ms);
	for (size_t i = 0; i < ARRAY_LEN(stored_settings) && !err; i++) {
		const struct stored_setting *setting = &stored_settings[i];
		if (setting->is_of_rules)
			err = setting->settle(s, setting->name,
					      settings_find(c, setting->row, setting->name));
	}
	return err ? err : settings_write(c);
}

int stored_settings_change(struct rollup_site *site, struct retention_rules *rules,
			   struct task_queue *queue, struct errbuf *e)
{
	struct settling s = {.site = site,
			     .rules = rules,
			     .now_ms = clock_sure_ms(site->clock) + SETTINGS_CHANGE_MS};
	ASSERT(!store_is_shared(site->store));
	settings_begin(&s.cells, site->store, queue);
	int err = settle_change(&s);
	settings_end(&s.cells);
	return err ? errbuf_set(e, err, "how long samples were kept cannot be noted: %s",
				err_text(err))
		   : 0;
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
	if (!slice_take_line(&value, &time))
		return 0;
	while (slice_take_line(&value, &suffix)) {
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
	return slice_take_line(&rest, &time) ? settings_since_ms(time) : 0;
}
