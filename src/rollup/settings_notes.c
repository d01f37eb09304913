/* Of stored settings: what changes in them while processes are at work. */
#include "rollup/settings_cells.h"
#include "rollup/shared_settings.h"
#include "rollup/site.h"
#include "wire/number.h"

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
static void settings_take_ended(struct rollup_site *site, const struct settings_cells *c)
{
	const struct granularities *granularities = &site->granularities;
	char width[GRANULARITY_WIDTH_MAX_BYTES];
	for (size_t g = 0; g < granularities->count; g++) {
		struct slice name = settings_width_name(&granularities->list[g], width);
		const struct store_cell *cell = settings_find(c, ROW_ROLLUP_SINCE, name);
		int64_t since_ms = cell ? settings_since_ms(cell->value) : INT64_MAX;
		if (since_ms < atomic_load(&site->settings.since_ms[g]))
			atomic_store(&site->settings.since_ms[g], since_ms);
	}
	if (!settings_find(c, ROW_ROLLUP_SINCE, settings_recount_name))
		atomic_store(&site->settings.recount_is_over, true);
}

/* ---- Backfill -------------------------------------------------------------------------------- */

static unsigned settings_rebuilt(const struct rollup_site *site, const struct settings_cells *c)
{
	const struct granularities *granularities = &site->granularities;
	char width[GRANULARITY_WIDTH_MAX_BYTES];
	unsigned rebuilt = 0;
	for (size_t g = 0; g < granularities->count; g++) {
		struct slice name = settings_width_name(&granularities->list[g], width);
		const struct store_cell *cell = settings_find(c, ROW_ROLLUP_SINCE, name);
		if (cell && slice_ends_with(cell->value, settings_rebuilt_note))
			rebuilt |= 1u << g;
	}
	const struct store_cell *recount =
		settings_find(c, ROW_ROLLUP_SINCE, settings_recount_name);
	struct slice rest = recount ? recount->value : SLICE(""), time;
	if (slice_take_line(&rest, &time) && slice_ends_with(time, settings_rebuilt_note))
		rebuilt |= 1u << granularities->count;
	return rebuilt;
}

int stored_settings_follow(struct rollup_site *site, struct task_queue *queue, unsigned *rebuilt)
{
	struct settings_cells c;
	bool follows = store_is_shared(site->store) && !site->settings.is_unstored;
	settings_begin(&c, site->store, queue);
	int err = settings_read(&c, clock_wall_ms(site->clock));
	if (!err && follows && !settings_are_others(site, &c))
		settings_take_ended(site, &c);
	*rebuilt = err ? 0 : settings_rebuilt(site, &c);
	settings_end(&c);
	return err;
}

/* What this process knows of the cell is what stands there, so what it says of it holds. With `all`
 * it has to stand there, too, that all marks were made: another process may have begun anew. */
static bool settings_note_holds(const struct settings_cells *c, struct slice text, int64_t since_ms,
				bool all)
{
	if (!store_is_shared(c->write->store))
		return true;
	return settings_since_ms(text) == since_ms &&
	       (!all || slice_ends_with(text, settings_rebuilt_note));
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
	buf_init(&value, NUMBER_PRINT_MAX_BYTES + settings_rebuilt_note.len + 1);
	if (all)
		buf_append_char(&value, '0');
	else
		buf_printf(&value, "%lld%s", (long long)settings_since_ms(cell->value),
			   settings_rebuilt_note.data);
	int err = settings_put(c, ROW_ROLLUP_SINCE, name, cell, buf_slice(&value));
	buf_release(&value);
	return err;
}

static int settings_note_recount(struct settings_cells *c, int64_t since_ms, bool all)
{
	const struct store_cell *cell = settings_find(c, ROW_ROLLUP_SINCE, settings_recount_name);
	struct slice rest = cell ? cell->value : SLICE(""), time;
	struct buf value;
	if (!cell)
		return 0;
	if (!slice_take_line(&rest, &time))
		return all ? settings_remove(c, cell) : ERR_DAMAGED;
	if (!settings_note_holds(c, time, since_ms, all))
		return ERR_EXISTS;
	if (all)
		return settings_remove(c, cell);
	buf_init(&value, cell->value.len + settings_rebuilt_note.len);
	buf_printf(&value, "%lld%s\n", (long long)settings_since_ms(time),
		   settings_rebuilt_note.data);
	buf_append(&value, rest.data, rest.len);
	int err = settings_put(c, ROW_ROLLUP_SINCE, settings_recount_name, cell, buf_slice(&value));
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
	for (int tries = 0; tries < SETTINGS_TRIES; tries++) {
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
