#include "rollup/backfill.h"

#include "base/log.h"
#include "base/mem.h"

struct backfill {
	struct rollup_site *site;
	bool shared; /* other processes roll up, too */

	pthread_mutex_t lock; /* guards the rest */
	bool known;           /* what an earlier process noted has been read */
	/* Bit by item: all its marks have been made. An item is a granularity, or after these all
	 * metrics that became counters or ceased to be. */
	unsigned rebuilt;
	unsigned noted;  /* of these, those that the store knows of */
	uint64_t passes; /* that have begun */
	uint64_t after;  /* the marks were made when so many passes had begun */
	bool passed;     /* the marks are worked on, and these slots were closed by then: */
	int64_t closed_ms[RETENTION_LEVELS_MAX]; /* up to here, by level; 0: none */
	const struct retention_rules *rules;     /* whose levels they are */
	int refused; /* why the store does not take the note, as the log has it; 0: it takes it */
};

/* ---- Items ----------------------------------------------------------------------------------- */

static size_t backfill_items(const struct backfill *b)
{
	return b->site->granularities.count + 1;
}

/* Up to when queries take raw data because of it; 0: at no time. */
static int64_t backfill_since_ms(const struct backfill *b, size_t item)
{
	return item < b->site->granularities.count
		       ? atomic_load(&b->site->settings.since_ms[item])
		       : stored_settings_recount_last_ms(&b->site->settings);
}

/* The last time of which something may be that is not rolled up. */
static int64_t backfill_last_since_ms(const struct backfill *b, unsigned items)
{
	int64_t last_ms = 0;
	for (size_t i = 0; i < backfill_items(b); i++) {
		int64_t since_ms = items >> i & 1 ? backfill_since_ms(b, i) : 0;
		last_ms = since_ms > last_ms ? since_ms : last_ms;
	}
	return last_ms;
}

/* ---- Notes ----------------------------------------------------------------------------------- */

static bool backfill_may_go_later(int err)
{
	return err == ERR_BUSY || err == ERR_TIMEOUT || err == ERR_CANCELLED || err == ERR_RETRY ||
	       err == ERR_UNKNOWN || err == ERR_EXISTS;
}

/* If the store refuses the note for good, it holds all the same until the next start; but where
 * other processes have to know it, it does not. */
static int backfill_note(struct backfill *b, struct task_queue *queue, unsigned items, bool all)
{
	int err = stored_settings_note(b->site, queue, items, all);
	int refused = backfill_may_go_later(err) ? 0 : err;
	if (refused && refused != b->refused)
		log_warn("roll-ups: that %s cannot be stored: %s; %s",
			 all ? "they are made of all raw data" : "all raw data is marked",
			 err_text(err),
			 b->shared ? "it is tried again after each pass"
				   : "the next start does that work again");
	b->refused = refused;
	return refused && !b->shared ? 0 : err;
}

static void backfill_note_rebuilt(struct backfill *b, struct task_queue *queue)
{
	unsigned items = b->rebuilt & ~b->noted;
	if (items && !backfill_note(b, queue, items, false))
		b->noted |= items;
}

static void backfill_read_notes(struct backfill *b, struct task_queue *queue)
{
	unsigned noted;
	if (stored_settings_follow(b->site, queue, &noted))
		return;
	b->noted |= noted;
	b->rebuilt |= noted;
	b->known = true;
}

/* What other processes have noted, and brought to an end. Their marks were made before the note, so
 * whoever looks for marks after this finds them. */
static void backfill_follow(struct backfill *b, struct task_queue *queue)
{
	unsigned noted, over = 0;
	if (stored_settings_follow(b->site, queue, &noted))
		return;
	for (size_t i = 0; i < backfill_items(b); i++)
		over |= (unsigned)!backfill_since_ms(b, i) << i;
	noted &= ~over;
	if (noted & ~b->rebuilt)
		b->passed = false;
	b->rebuilt = noted | (b->rebuilt & ~b->noted & ~over);
	b->noted = noted;
}

/* From now on queries take the roll-ups. */
static void backfill_finish(struct backfill *b, struct task_queue *queue)
{
	if (backfill_note(b, queue, b->rebuilt, true))
		return;
	for (size_t g = 0; g < b->site->granularities.count; g++) {
		if (b->rebuilt >> g & 1)
			atomic_store(&b->site->settings.since_ms[g], 0);
	}
	if (b->rebuilt >> b->site->granularities.count & 1)
		atomic_store(&b->site->settings.recount_is_over, true);
	b->rebuilt = b->noted = 0;
	b->passed = false;
	log_info("roll-ups: they are made of all raw data, also of what is older than their "
		 "granularities or rollup.counter_suffixes");
}

/* ---- Passes ---------------------------------------------------------------------------------- */

static int64_t backfill_whole_ms(const struct backfill *b, uint8_t level)
{
	return retention_whole_ms(b->rules, level, clock_age_ms(b->site->clock));
}

/* The first slot that has marks, in whichever partition; INT64_MAX: none has. 0: it cannot tell. */
static int64_t backfill_first_marked_ms(const struct backfill *b, struct task_queue *queue)
{
	struct partitions all = {{0}, 0};
	struct marks_listing listing = {.marks = b->site->marks, .own = &all, .only_told = true};
	int64_t first_ms = INT64_MAX;
	int err = 0;
	for (uint32_t p = 0; p < b->site->partitions; p++)
		partitions_add(&all, p);
	while (!err && !listing.over) {
		err = marks_list(&listing, queue, clock_wall_ms(b->site->clock));
		for (size_t i = 0; i < listing.count && !err; i++) {
			int64_t slot_ms = listing.slots[i].slot_s * 1000;
			first_ms = slot_ms < first_ms ? slot_ms : first_ms;
		}
	}
	marks_listing_release(&listing);
	return err ? 0 : first_ms;
}

/* Queries take nothing from where marks are left; but marks may yet go because it is too late for
 * them. What passes of other processes have left is looked up; their queries may not know of these
 * marks yet, so none may be left. */
static void backfill_look_at_pass(struct backfill *b, struct task_queue *queue, int64_t before_ms)
{
	bool for_ever = !rollup_site_shortest_ms(b->site) && !b->shared;
	if (b->shared)
		before_ms = backfill_first_marked_ms(b, queue);
	b->passed = b->passes > b->after &&
		    (for_ever || before_ms >= backfill_last_since_ms(b, b->rebuilt));
	b->rules = rollup_site_rules(b->site);
	for (uint8_t level = 0; b->passed && level <= b->rules->last_level; level++)
		b->closed_ms[level] =
			rollup_site_open_from_ms(b->site, backfill_whole_ms(b, level));
}

static bool backfill_closed_are_gone(const struct backfill *b)
{
	int64_t now_ms = clock_age_ms(b->site->clock);
	for (uint8_t level = 0; level <= b->rules->last_level; level++) {
		int64_t raw_ms = backfill_whole_ms(b, level);
		if (b->closed_ms[level] && (!raw_ms || now_ms - raw_ms < b->closed_ms[level]))
			return false;
	}
	return true;
}

void backfill_begin_pass(struct backfill *b)
{
	pthread_mutex_lock(&b->lock);
	b->passes++;
	pthread_mutex_unlock(&b->lock);
}

void backfill_end_pass(struct backfill *b, struct task_queue *queue, int64_t before_ms)
{
	pthread_mutex_lock(&b->lock);
	if (b->shared)
		backfill_follow(b, queue);
	else if (!b->known)
		backfill_read_notes(b, queue);
	backfill_note_rebuilt(b, queue);
	if (b->rules != rollup_site_rules(b->site))
		b->passed = false; /* other slots are closed now */
	if (b->rebuilt && !b->passed && (!b->shared || b->rebuilt == b->noted))
		backfill_look_at_pass(b, queue, before_ms);
	if (b->passed && backfill_closed_are_gone(b))
		backfill_finish(b, queue);
	pthread_mutex_unlock(&b->lock);
}

void backfill_look(struct backfill *b, struct task_queue *queue)
{
	pthread_mutex_lock(&b->lock);
	if (b->shared)
		backfill_follow(b, queue);
	backfill_note_rebuilt(b, queue);
	pthread_mutex_unlock(&b->lock);
}

/* ---- Rebuilds -------------------------------------------------------------------------------- */

bool backfill_is_all(const struct backfill *b, int64_t from_ms, int64_t to_ms)
{
	const struct rollup_site *site = b->site;
	return from_ms <= rollup_site_open_from_ms(site, rollup_site_longest_ms(site)) &&
	       to_ms >= backfill_last_since_ms(b, (1u << backfill_items(b)) - 1);
}

/* An item that was rebuilt before does not wait for another pass. */
void backfill_rebuilt(struct backfill *b, struct task_queue *queue)
{
	pthread_mutex_lock(&b->lock);
	for (size_t i = 0; i < backfill_items(b); i++) {
		if (!backfill_since_ms(b, i) || b->rebuilt >> i & 1)
			continue;
		b->rebuilt |= 1u << i;
		b->passed = false;
		b->after = b->passes;
	}
	backfill_note_rebuilt(b, queue);
	pthread_mutex_unlock(&b->lock);
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct backfill *backfill_new(struct rollup_site *site)
{
	struct backfill *b = mem_zalloc(sizeof(*b));
	b->site = site;
	b->shared = store_is_shared(site->store);
	pthread_mutex_init(&b->lock, NULL);
	return b;
}

void backfill_free(struct backfill *b)
{
	pthread_mutex_destroy(&b->lock);
	mem_free(b);
}
