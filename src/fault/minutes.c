#include "fault/minutes.h"

#include "base/stats.h"
#include "fault/book_private.h"
#include "base/put.h"

enum {
	MINUTES_AT_ONCE = FAULT_MINUTES_A_DAY,
	MINUTES_FIRST = 30 * FAULT_MINUTES_A_DAY, /* so long ago is begun where none was counted */
	MINUTES_TEXTS_MAX_BYTES = 32 << 20,       /* of one minute */
	MINUTES_NAMES_MAX = 100000,               /* likewise; as many groups */
	MINUTES_KEY_MAX_BYTES = 8 << 10,
};
/* A call reads for so long at most. Arrivals stay readable for longer after they were sealed. */
#define MINUTES_READ_US INT64_C(120000000)

/* A part of what is to be counted, from one minute on and before another one. */
struct minutes_part {
	uint64_t tenure;
	int64_t from, to;
	bool late; /* it is a minute that was counted before */
};

struct minutes_count {
	struct fault_book *book;
	const struct minutes_part *part;
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

static struct book_late *minutes_find_late(struct fault_book *book, int64_t minute)
{
	for (size_t i = 0; i < book->late_count; i++)
		if (book->late[i].minute == minute)
			return &book->late[i];
	return NULL;
}

static void minutes_drop_late(struct fault_book *book, struct book_late *late)
{
	*late = book->late[--book->late_count];
	book->changed = true;
}

void book_add_late(struct fault_book *book, int64_t minute)
{
	struct book_late *late = minutes_find_late(book, minute);
	if (late) {
		late->counting = false;
	} else if (book->late_count < BOOK_LATE_MAX) {
		GROW(book->late, book->late_room, book->late_count + 1);
		book->late[book->late_count++] = (struct book_late){.minute = minute};
	} else {
		stat_add(STAT_fault_late_left_out, 1);
	}
}

void book_note_late(struct fault_book *book, int64_t date_us)
{
	int64_t minute = floor_div(date_us, FAULT_MINUTE_US);
	if (!book->owned || minute >= book->minutes_closing)
		return;
	book_add_late(book, minute);
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

static bool minutes_is_mine(struct fault_book *book, const struct minutes_part *part)
{
	return book->owned && book->version.tenure == part->tenure;
}

/* What another owner has given meanwhile is newer. */
static void minutes_give(struct minutes_count *c)
{
	pthread_mutex_lock(&c->book->lock);
	bool mine = minutes_is_mine(c->book, c->part);
	pthread_mutex_unlock(&c->book->lock);
	if (c->begun && !c->err && !mine)
		c->err = errbuf_set(c->e, ERR_RETRY, "another owner has begun");
	if (c->begun && !c->err)
		c->err = c->taker->take(c->taker->owner, &c->minute, c->e);
	c->begun = false;
}

static struct hash128 minutes_hash(struct minutes_count *c, const struct fault_minute_count *one)
{
	buf_clear(&c->key);
	buf_append_char(&c->key, one->group);
	for (size_t i = 0; i < FAULT_MINUTE_TEXTS; i++)
		buf_put_text(&c->key, one->texts[i]);
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
	/* A report that is struck may have been given before: its name is given again, with 0 if
	 * there is no other, so that the number of before is replaced. */
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

static int minutes_read(struct fault_book *book, struct task_queue *queue,
			const struct fault_minute_taker *taker, const struct minutes_part *part,
			bool *any, struct errbuf *e)
{
	struct clock *clock = book->site->clock;
	struct minutes_count c = {.book = book, .part = part, .taker = taker, .e = e};
	struct fault_order reached;
	const struct fault_list_filter filter = {.from_us = part->from * FAULT_MINUTE_US,
						 .to_us = part->to * FAULT_MINUTE_US,
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

/* Late minutes that are over, but for those of days of which reports may be gone. */
static bool minutes_choose_late(struct fault_book *book, int64_t until, struct minutes_part *part)
{
	for (size_t i = 0; i < book->late_count;) {
		struct book_late *late = &book->late[i];
		if (late->minute / FAULT_MINUTES_A_DAY < book->collected_day) {
			stat_add(STAT_fault_late_left_out, 1);
			minutes_drop_late(book, late);
			continue;
		}
		if (late->minute < until) {
			late->counting = true;
			*part = (struct minutes_part){
				.from = late->minute, .to = late->minute + 1, .late = true};
			return true;
		}
		i++;
	}
	return false;
}

/* Whatever is added from now on is late for minutes before `until`. */
static bool minutes_choose_next(struct fault_book *book, int64_t until, struct minutes_part *part)
{
	int64_t from = book->minutes ? book->minutes : until - MINUTES_FIRST;
	from = larger_of(from, book->collected_day * FAULT_MINUTES_A_DAY);
	if (from >= until)
		return false;
	int64_t step = book->minutes_step ? book->minutes_step : MINUTES_AT_ONCE;
	*part = (struct minutes_part){.from = from, .to = smaller_of(until, from + step)};
	book->minutes_closing = larger_of(book->minutes_closing, part->to);
	return true;
}

/* Late ones and others by turns: what fails of the one does not keep the other. False: there is
 * nothing to count. */
static bool minutes_choose(struct fault_book *book, int64_t until, struct minutes_part *part)
{
	pthread_mutex_lock(&book->lock);
	bool late_first = !book->minutes_were_late, some = false;
	if (book->owned && late_first)
		some = minutes_choose_late(book, until, part);
	if (book->owned && !some)
		some = minutes_choose_next(book, until, part);
	if (book->owned && !some && !late_first)
		some = minutes_choose_late(book, until, part);
	part->tenure = book->version.tenure;
	book->minutes_were_late = some && part->late;
	pthread_mutex_unlock(&book->lock);
	return some;
}

/* It was taken. The next checkpoint says so, of minutes with reports: looking at others again costs
 * less than writing one. Of another tenure the book knows better. */
static void minutes_note_taken(struct fault_book *book, const struct minutes_part *part, bool any)
{
	pthread_mutex_lock(&book->lock);
	if (minutes_is_mine(book, part)) {
		struct book_late *late = minutes_find_late(book, part->from);
		if (part->late && late && late->counting)
			minutes_drop_late(book, late);
		if (!part->late) {
			book->minutes = part->to;
			book->minutes_step =
				smaller_of(2 * (part->to - part->from), MINUTES_AT_ONCE);
			book->changed = book->changed || any;
			if (book->plan) /* it may wait for them */
				fault_book_touch(book);
		}
	}
	pthread_mutex_unlock(&book->lock);
}

/* A late one goes behind the others; of the others fewer are tried where the time was not enough.
 */
static void minutes_note_failed(struct fault_book *book, const struct minutes_part *part, int err)
{
	pthread_mutex_lock(&book->lock);
	struct book_late *late = minutes_find_late(book, part->from);
	if (part->late && late) {
		struct book_late failed = {.minute = late->minute};
		*late = book->late[book->late_count - 1];
		book->late[book->late_count - 1] = failed;
	}
	if (!part->late && err == ERR_TIMEOUT)
		book->minutes_step = larger_of(1, (part->to - part->from) / 2);
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
	int err = minutes_read(book, queue, taker, &part, &any, e);
	if (err)
		minutes_note_failed(book, &part, err);
	else
		minutes_note_taken(book, &part, any);
	return err;
}
