#include "fault/minutes.h"

#include "base/stats.h"
#include "fault/book_private.h"
#include "fault/put.h"

enum {
	MINUTES_LATE_MAX = 4000,
	MINUTES_AT_ONCE = FAULT_MINUTES_A_DAY,
	MINUTES_FIRST = 30 * FAULT_MINUTES_A_DAY, /* so long ago is begun where none was counted */
	MINUTES_TEXTS_MAX_BYTES = 32 << 20,       /* of one minute */
	MINUTES_NAMES_MAX = 100000,               /* likewise; as many groups */
	MINUTES_KEY_MAX_BYTES = 8 << 10,
	MINUTES_WAITING = 0, /* a late minute is to be counted again */
	MINUTES_COUNTING,    /* it is being counted */
};
/* Of one call; a part of how long arrivals stay readable after they were sealed. */
#define MINUTES_READ_US INT64_C(120000000)

struct minutes_count {
	const struct fault_minute_taker *taker;
	struct fault_minute minute;
	bool begun; /* `minute` has reports */
	bool any;   /* some minute was given */
	size_t names, groups;
	struct arena texts;
	struct buf key;
	int err; /* of `take` */
	struct errbuf *e;
};

static struct book_day *minutes_find_late(struct fault_book *book, int64_t minute)
{
	for (size_t i = 0; i < book->late.count; i++)
		if (book->late.list[i].day == minute)
			return &book->late.list[i];
	return NULL;
}

void book_note_late(struct fault_book *book, int64_t date_us)
{
	int64_t minute = floor_div(date_us, FAULT_MINUTE_US);
	if (!book->owned || minute >= book->minutes_closing)
		return;
	struct book_day *late = minutes_find_late(book, minute);
	/* Of a day that is collected nobody knows how many there were. */
	bool counts = fault_day_of(date_us) >= book->collected_day;
	if (late)
		late->due_ms = MINUTES_WAITING;
	else if (counts && book->late.count < MINUTES_LATE_MAX)
		book_days_add(&book->late, minute, MINUTES_WAITING);
	else
		stat_add(STAT_fault_minutes_left, 1);
	book->changed = true;
}

/* ---- Counting -------------------------------------------------------------------------------- */

static void minutes_begin(struct minutes_count *c, int64_t start_us)
{
	hash_table_release(&c->minute.counts);
	arena_reset(&c->texts);
	c->minute = (struct fault_minute){.start_us = start_us};
	c->names = c->groups = 0;
	c->begun = c->any = true;
}

static void minutes_give(struct minutes_count *c)
{
	if (c->begun && !c->err)
		c->err = c->taker->take(c->taker->owner, &c->minute, c->e);
	c->begun = false;
}

static struct hash128 minutes_hash(struct minutes_count *c, const struct fault_minute_count *one)
{
	buf_clear(&c->key);
	buf_append_char(&c->key, one->group);
	for (size_t i = 0; i < FAULT_MINUTE_TEXTS; i++)
		fault_put_text(&c->key, one->texts[i]);
	ASSERT(!c->key.failed); /* facts are short */
	return hash128(c->key.data, c->key.len, 0);
}

/* False: there is no room for one more. */
static bool minutes_add(struct minutes_count *c, struct fault_minute_count one)
{
	struct hash_table *counts = &c->minute.counts;
	size_t *kept = one.group ? &c->groups : &c->names;
	bool added;
	one.hash = minutes_hash(c, &one);
	struct fault_minute_count *slot = hash_table_find(counts, one.hash);
	if (!slot && *kept < MINUTES_NAMES_MAX) {
		for (size_t i = 0; i < FAULT_MINUTE_TEXTS; i++) {
			one.texts[i] = arena_copy(&c->texts, one.texts[i]);
			if (!one.texts[i].data)
				return false;
		}
		slot = hash_table_add(counts, one.hash, sizeof(*slot), &added);
		*slot = one;
		slot->reports = 0;
		++*kept;
	}
	if (slot)
		slot->reports += one.reports;
	return slot != NULL;
}

static bool minutes_add_report(void *owner, const struct fault_listed *report)
{
	struct minutes_count *c = owner;
	const struct slice *texts = report->facts.texts;
	int64_t date_us = report->order.date_us;
	int64_t start_us = floor_div(date_us, FAULT_MINUTE_US) * FAULT_MINUTE_US;
	if (c->begun && c->minute.start_us != start_us)
		minutes_give(c);
	if (!c->begun)
		minutes_begin(c, start_us);
	/* Of a report that is struck it may have been given that there is one. */
	uint64_t reports = !report->struck;
	const struct fault_minute_count name = {
		.reports = reports,
		.texts = {texts[FAULT_CONTEXT], texts[FAULT_EXCEPTION], texts[FAULT_RELEASE]}};
	const struct fault_minute_count group = {
		.reports = reports, .group = true, .texts = {texts[FAULT_GROUP]}};
	c->minute.names_rest += minutes_add(c, name) ? 0 : reports;
	c->minute.groups_rest += minutes_add(c, group) ? 0 : reports;
	return !c->err;
}

/* The minutes from one on and before another one. */
static int minutes_read(struct fault_book *book, struct task_queue *queue,
			const struct fault_minute_taker *taker, int64_t from, int64_t to, bool *any,
			struct errbuf *e)
{
	struct clock *clock = book->site->clock;
	struct minutes_count c = {.taker = taker, .e = e};
	struct fault_order reached;
	const struct fault_list_filter filter = {.from_us = from * FAULT_MINUTE_US,
						 .to_us = to * FAULT_MINUTE_US,
						 .after = {.date_us = INT64_MAX},
						 .struck = true,
						 .deadline_us =
							 clock->mono_us(clock) + MINUTES_READ_US};
	arena_init_small(&c.texts, MINUTES_TEXTS_MAX_BYTES);
	buf_init(&c.key, MINUTES_KEY_MAX_BYTES);
	int err = fault_book_list(book, queue, &filter, minutes_add_report, &c, &reached, e);
	if (!err)
		minutes_give(&c);
	hash_table_release(&c.minute.counts);
	arena_release(&c.texts);
	buf_release(&c.key);
	*any = c.any;
	return err ? err : c.err;
}

/* ---- The owner's book ------------------------------------------------------------------------ */

/* A part of what is to be counted, from one minute on and before another one. */
struct minutes_part {
	uint64_t tenure;
	int64_t from, to;
	bool late; /* it is a minute that was counted before */
};

/* Whatever is added from now on is late for minutes before `until`. False: there is nothing to
 * count. */
static bool minutes_choose(struct fault_book *book, int64_t until, struct minutes_part *part)
{
	bool some = false;
	pthread_mutex_lock(&book->lock);
	part->tenure = book->version.tenure;
	if (book->owned && book->late.count) {
		book->late.list[0].due_ms = MINUTES_COUNTING;
		part->from = book->late.list[0].day;
		part->to = part->from + 1;
		part->late = some = true;
	} else if (book->owned && until > book->minutes) {
		part->from = book->minutes ? book->minutes : until - MINUTES_FIRST;
		part->to = smaller_of(until, part->from + MINUTES_AT_ONCE);
		part->late = false;
		some = true;
		book->minutes_closing = larger_of(book->minutes_closing, part->to);
	}
	pthread_mutex_unlock(&book->lock);
	return some;
}

/* It was taken. The next checkpoint says so, of minutes with reports: to look at others again costs
 * less. Of another tenure the book knows better. */
static void minutes_note_taken(struct fault_book *book, const struct minutes_part *part, bool any)
{
	pthread_mutex_lock(&book->lock);
	bool mine = book->owned && book->version.tenure == part->tenure;
	const struct book_day *late = minutes_find_late(book, part->from);
	if (mine && part->late && late && late->due_ms == MINUTES_COUNTING)
		book_days_remove(&book->late, part->from);
	if (mine && !part->late)
		book->minutes = part->to;
	book->changed = book->changed || (mine && any);
	pthread_mutex_unlock(&book->lock);
}

int fault_book_count_minutes(struct fault_book *book, struct task_queue *queue, int64_t until_us,
			     const struct fault_minute_taker *taker, bool *more, struct errbuf *e)
{
	int64_t until = floor_div(until_us, FAULT_MINUTE_US);
	struct minutes_part part;
	bool any;
	*more = minutes_choose(book, until, &part);
	if (!*more)
		return 0;
	int err = minutes_read(book, queue, taker, part.from, part.to, &any, e);
	/* So much was too much. */
	if (err == ERR_TIMEOUT && part.to > part.from + 1) {
		part.to = part.from + 1;
		err = minutes_read(book, queue, taker, part.from, part.to, &any, e);
	}
	if (!err)
		minutes_note_taken(book, &part, any);
	return err;
}
