#include "rollup/backfill.h"

#include "base/log.h"
#include "rollup/stored_settings.h"
#include "marks/marks.h"

enum { READ_MAX_BYTES = 1 << 20, WRITE_MAX_BYTES = 1 << 20 };

struct backfill {
	struct backfill_options options;
	struct store_read *read;
	struct store_request *cells;
	struct store_write *write;
	bool busy;  /* a read or a write is under way */
	bool known; /* what an earlier process noted has been read */
	/* Bit by item: all its marks have been made anew. An item is a granularity, or behind these
	 * all metrics that became counters or ceased to be. */
	unsigned rebuilt;
	unsigned noted;   /* of these, those that the store knows of */
	unsigned writing; /* what becomes of the cells: these are noted, */
	bool writes_all;  /* or become those of all */
	uint64_t passes;  /* that had begun before the marks were made */
	bool passed;      /* the marks are worked on; of what had been closed by then */
	int64_t closed_ms[RETENTION_LEVELS_MAX]; /* up to here, by level; 0: nothing */
};

/* ---- Items ----------------------------------------------------------------------------------- */

static size_t item_count(const struct backfill *c)
{
	return c->options.granularities->count + 1;
}

/* Up to when queries take raw data on its account; 0: at no time. */
static int64_t item_since_ms(const struct backfill *c, size_t item)
{
	return item < c->options.granularities->count ? c->options.since_ms[item]
						      : rollup_recount_last_ms(c->options.recount);
}

/* ---- The cells ------------------------------------------------------------------------------- */

static void look(struct backfill *c)
{
	store_read_reset(c->read);
	c->cells = store_read_add(c->read, STORE_CELL_SCAN);
	ASSERT(c->cells); /* the first of an empty arena */
	rollup_since_scan(c->cells);
	c->read->now_ms = clock_wall_ms(c->options.clock);
	c->busy = store_read_submit(c->read) == 0;
}

static void take_notes(struct backfill *c)
{
	const struct granularities *granularities = c->options.granularities;
	c->noted = rollup_since_rebuilt(&c->cells->cell_scan, granularities);
	c->rebuilt |= c->noted;
	c->known = true;
}

static const char *what_is_not_kept(const struct backfill *c)
{
	return c->writes_all ? "that they are made of all raw data"
			     : "that their marks were made anew";
}

/* From now on queries take them. */
static void finish(struct backfill *c)
{
	for (size_t g = 0; g < c->options.granularities->count; g++) {
		if (c->writing >> g & 1)
			c->options.since_ms[g] = 0;
	}
	if (c->writing >> c->options.granularities->count & 1)
		buf_clear(c->options.recount);
	c->rebuilt &= ~c->writing;
	c->noted &= ~c->writing;
	c->passed = false;
	log_info("roll-ups: they are made of all raw data, also of what is older than their "
		 "granularities or rollup.counter_suffixes");
}

/* What the store refuses for good is true all the same, until the next start. */
static void on_kept(struct backfill *c, int err)
{
	c->busy = false;
	if (err == ERR_BUSY || err == ERR_TIMEOUT)
		return;
	if (err)
		log_warn("roll-ups: %s is not kept: %s", what_is_not_kept(c), err_text(err));
	c->noted |= c->writing;
	if (c->writes_all)
		finish(c);
}

static void on_written(struct store_write *write, int err)
{
	on_kept(write->owner, err);
}

static void keep(struct backfill *c)
{
	store_write_reset(c->write);
	int err = rollup_since_keep(c->write, &c->cells->cell_scan, c->options.granularities,
				    c->writing, c->writes_all);
	if (!err && c->write->cells)
		err = store_write_submit(c->write);
	if (err || !c->write->cells)
		on_kept(c, err);
}

static void on_looked(struct store_read *read, int err)
{
	struct backfill *c = read->owner;
	if (err) {
		c->busy = false;
	} else if (!c->known) {
		take_notes(c);
		c->busy = false;
	} else {
		keep(c);
	}
}

static void begin_keep(struct backfill *c, unsigned items, bool all)
{
	c->writing = items;
	c->writes_all = all;
	look(c);
}

/* ---- What has come of the marks -------------------------------------------------------------- */

static int64_t whole_ms(const struct backfill *c, uint8_t level)
{
	const struct backfill_options *o = &c->options;
	return retention_level_whole_ms(o->retention_rules, level,
					level ? o->retention_rules->levels_ms[level]
					      : o->raw_retention_ms,
					clock_age_ms(o->clock));
}

static uint8_t level_count(const struct backfill *c)
{
	const struct retention_rules *rules = c->options.retention_rules;
	return rules && rules->level_count ? (uint8_t)rules->level_count : 1;
}

/* The last time of which something may be that is not rolled up. */
static int64_t last_since_ms(const struct backfill *c, unsigned items)
{
	int64_t ms = 0;
	for (size_t i = 0; i < item_count(c); i++) {
		if (items >> i & 1 && item_since_ms(c, i) > ms)
			ms = item_since_ms(c, i);
	}
	return ms;
}

/* Queries take nothing from where marks are left; but marks may yet go, since it is too late for
 * them. */
static void look_at_passes(struct backfill *c)
{
	const struct backfill_options *o = &c->options;
	struct rollup_progress progress = o->progress(o->owner);
	int64_t now_ms = clock_age_ms(o->clock);
	bool stays = !retention_shortest_whole_ms(o->retention_rules, o->raw_retention_ms, now_ms);
	c->passed = progress.over > c->passes &&
		    (stays || progress.before_ms >= last_since_ms(c, c->rebuilt));
	for (uint8_t level = 0; c->passed && level < level_count(c); level++)
		c->closed_ms[level] = slot_open_from_ms(now_ms, whole_ms(c, level),
							o->granularities->slot_ms, o->quiet_ms);
}

static bool closed_are_gone(const struct backfill *c)
{
	int64_t now_ms = clock_age_ms(c->options.clock);
	for (uint8_t level = 0; level < level_count(c); level++) {
		int64_t raw_ms = whole_ms(c, level);
		if (c->closed_ms[level] && (!raw_ms || now_ms - raw_ms < c->closed_ms[level]))
			return false;
	}
	return true;
}

void backfill_tick(struct backfill *c)
{
	if (c->busy)
		return;
	if (!c->known) {
		look(c);
		return;
	}
	if (c->rebuilt & ~c->noted) {
		begin_keep(c, c->rebuilt, false);
		return;
	}
	if (c->rebuilt && !c->passed)
		look_at_passes(c);
	if (c->passed && closed_are_gone(c))
		begin_keep(c, c->rebuilt, true);
}

/* ---- Rebuilds -------------------------------------------------------------------------------- */

static unsigned all_items(const struct backfill *c)
{
	return (1u << item_count(c)) - 1;
}

bool backfill_is_all(const struct backfill *c, int64_t from_ms, int64_t to_ms)
{
	const struct backfill_options *o = &c->options;
	int64_t now_ms = clock_age_ms(o->clock);
	int64_t longest_ms =
		retention_longest_whole_ms(o->retention_rules, o->raw_retention_ms, now_ms);
	return from_ms <= slot_open_from_ms(now_ms, longest_ms, o->granularities->slot_ms,
					    o->quiet_ms) &&
	       to_ms >= last_since_ms(c, all_items(c));
}

/* One that is noted already is as good. */
void backfill_rebuilt(struct backfill *c)
{
	const struct backfill_options *o = &c->options;
	for (size_t i = 0; i < item_count(c); i++) {
		if (!item_since_ms(c, i) || c->rebuilt >> i & 1)
			continue;
		c->rebuilt |= 1u << i;
		c->passed = false;
		c->passes = o->progress(o->owner).begun;
	}
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct backfill *backfill_new(const struct backfill_options *options)
{
	struct backfill *c = mem_zalloc(sizeof(*c));
	c->options = *options;
	c->read = store_read_new(options->store, READ_MAX_BYTES);
	c->read->executor = options->executor;
	c->read->done = on_looked;
	c->read->owner = c;
	c->write = store_write_new(options->store, WRITE_MAX_BYTES);
	c->write->executor = options->executor;
	c->write->done = on_written;
	c->write->owner = c;
	return c;
}

bool backfill_idle(const struct backfill *c)
{
	return !c->busy;
}

void backfill_free(struct backfill *c)
{
	ASSERT(!c->busy);
	store_read_free(c->read);
	store_write_free(c->write);
	mem_free(c);
}
