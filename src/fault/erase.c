#include "fault/erase.h"

#include "base/log.h"
#include "base/stats.h"
#include "fault/book_private.h"
#include "fault/said.h"
#include "fault/seal_run.h"
#include "store/wait.h"

enum {
	ERASE_AT_ONCE = 500, /* reports that one write enters */
	ERASE_WRITE_MAX_BYTES = 1 << 20,
	ERASE_SAID_MAX_BYTES = 64 << 20,
	ERASE_DAYS_MAX = 3660,  /* so far back days are edited */
	ERASE_PASS_US = 200000, /* so long days are edited in one pass */
};

enum erasure_stage {
	ERASURE_NEW,     /* its days are not among those to be recounted yet */
	ERASURE_NOTED,   /* a checkpoint has them there: the ids may be entered */
	ERASURE_ENTERED, /* all are: days may be recounted */
	ERASURE_COUNTED, /* checkpoints have that: the arrivals may go, and others are told */
};

struct erased_arrival {
	struct slice id;
	struct fault_order order;
	bool struck; /* it was no report */
};

/* A slot of a hash table. */
struct erased_known {
	struct hash128 hash; /* of the place */
	enum fault_erased_state state;
};

struct fault_erasure {
	struct slice user;
	struct erased_arrival *list;
	size_t count, room;
	struct hash_table ids;    /* of reports, as slots of nothing but the hash */
	struct book_days days;    /* likewise */
	struct hash_table groups; /* of these reports, likewise */
	struct hash_table known;  /* arrivals of earlier erasures */
	bool was_begun;           /* some are of an erasure that did not come to its end */
	struct fault_erasure_view view;
	/* The owner's. */
	uint64_t tenure;
	enum erasure_stage stage;
	size_t entered;         /* so many of the list */
	int64_t next_day;       /* to be edited; INT64_MIN: its days were not recounted yet */
	struct book_days again; /* days of this pass that are to be written once more */
};

/* ---- Looking up ------------------------------------------------------------------------------ */

static struct hash128 erasure_group_hash(struct slice group)
{
	return hash128(group.data, group.len, 1);
}

static int erasure_see_known(const struct store_cell *cell, void *owner)
{
	struct fault_erasure *erasure = owner;
	const struct fault_place place = {fault_part_number(cell->column.part[0]),
					  fault_part_number(cell->column.part[1])};
	bool added;
	struct erased_known *known =
		hash_table_add(&erasure->known, fault_place_hash(place), sizeof(*known), &added);
	known->state = fault_erased_is_done(cell) ? FAULT_ERASED_DONE : FAULT_ERASED_ENTERED;
	return 0;
}

/* One that was erased by an owner who did not come to the end is struck, and is erased once more.
 * One that is struck for another one of its id was no report. */
static bool erasure_see(void *owner, const struct fault_listed *report)
{
	struct fault_erasure *erasure = owner;
	const struct erased_known *known =
		hash_table_find(&erasure->known, fault_place_hash(report->order.place));
	bool added;
	if (known && known->state == FAULT_ERASED_DONE)
		return true;
	erasure->view.more = erasure->count == FAULT_ERASE_MAX;
	if (erasure->view.more)
		return false;
	bool struck = report->struck && !known;
	erasure->was_begun = erasure->was_begun || known;
	GROW(erasure->list, erasure->room, erasure->count + 1);
	erasure->list[erasure->count++] =
		(struct erased_arrival){mem_copy_slice(report->id), report->order, struck};
	if (struck)
		return true;
	hash_table_add(&erasure->ids, fault_id_hash(report->id), sizeof(struct hash128), &added);
	hash_table_add(&erasure->groups, erasure_group_hash(report->facts.texts[FAULT_GROUP]),
		       sizeof(struct hash128), &added);
	book_days_add(&erasure->days, fault_day_of(report->order.date_us), 0);
	erasure->view.reports++;
	return true;
}

int fault_erasure_new(struct fault_book *book, struct task_queue *queue, struct slice user,
		      struct fault_erasure **to, struct errbuf *e)
{
	struct fault_erasure *erasure = mem_zalloc(sizeof(*erasure));
	struct fault_list_filter filter = {.from_us = INT64_MIN,
					   .to_us = INT64_MAX,
					   .after = {.date_us = INT64_MAX},
					   .struck = true};
	struct fault_order reached;
	filter.texts[FAULT_USER] = user;
	erasure->user = mem_copy_slice(user);
	erasure->next_day = INT64_MIN;
	const struct store_parts key = {{book->tenant}};
	int err = store_row_wait(book->site->store, queue, clock_wall_ms(book->site->clock),
				 TABLE_FAULT_ERASED, &key, erasure_see_known, erasure, e);
	err = err ? err : fault_book_list(book, queue, &filter, erasure_see, erasure, &reached, e);
	erasure->view.days = erasure->days.count;
	*to = erasure;
	if (err) {
		fault_erasure_free(erasure);
		*to = NULL;
	}
	return err;
}

struct fault_erasure_view fault_erasure_view(const struct fault_erasure *erasure)
{
	return erasure->view;
}

void fault_erasure_free(struct fault_erasure *erasure)
{
	if (!erasure)
		return;
	for (size_t i = 0; i < erasure->count; i++)
		mem_free_slice(erasure->list[i].id);
	mem_free(erasure->list);
	mem_free_slice(erasure->user);
	hash_table_release(&erasure->ids);
	hash_table_release(&erasure->groups);
	hash_table_release(&erasure->known);
	mem_free(erasure->days.list);
	mem_free(erasure->again.list);
	mem_free(erasure);
}

/* ---- Handing over ---------------------------------------------------------------------------- */

static bool erasure_is_mine(const struct fault_book *book)
{
	return book->erasure && book->owned && book->erasure->tenure == book->version.tenure;
}

int fault_book_erase(struct fault_book *book, struct fault_erasure *erasure, uint64_t *ticket,
		     struct errbuf *e)
{
	int err = 0;
	pthread_mutex_lock(&book->lock);
	if (!book->owned)
		err = errbuf_set(e, ERR_INVALID,
				 "this process does not count the reports of tenant " SHOWN,
				 SHOWN_OF(book->tenant));
	else if (book->erasure)
		err = errbuf_set(e, ERR_EXISTS,
				 "an earlier removal of reports of tenant " SHOWN
				 " is at work; try again",
				 SHOWN_OF(book->tenant));
	if (!err) {
		erasure->tenure = book->version.tenure;
		book->erasure = erasure;
		*ticket = ++book->erasures;
	}
	pthread_mutex_unlock(&book->lock);
	if (!err)
		fault_book_touch(book);
	return err;
}

enum fault_erasure_state fault_book_erasure_state(struct fault_book *book, uint64_t ticket)
{
	pthread_mutex_lock(&book->lock);
	enum fault_erasure_state state = FAULT_ERASURE_LOST;
	if (book->erasures == ticket && erasure_is_mine(book))
		state = FAULT_ERASURE_WORKS;
	else if (book->erased == ticket)
		state = FAULT_ERASURE_DONE;
	pthread_mutex_unlock(&book->lock);
	return state;
}

static void erasure_drop(struct fault_book *book)
{
	fault_erasure_free(book->erasure);
	book->erasure = NULL;
}

/* ---- Within a pass --------------------------------------------------------------------------- */

void book_begin_erasure(struct fault_book *book)
{
	struct fault_erasure *erasure = book->erasure;
	if (erasure && erasure->tenure != book->version.tenure) {
		log_warn("faults: the removal of reports of a user of tenant " SHOWN
			 " ends early, since the owner has changed; it has to be asked for again",
			 SHOWN_OF(book->tenant));
		erasure_drop(book);
		return;
	}
	if (!erasure || erasure->stage != ERASURE_NEW)
		return;
	for (size_t i = 0; i < erasure->days.count; i++)
		book_recount_later(book, erasure->days.list[i].day);
	book->changed = true;
}

bool book_erasure_holds_recounts(const struct fault_book *book)
{
	return book->erasure && book->erasure->stage < ERASURE_ENTERED;
}

static int erasure_edit_next(struct fault_book *book, struct task_queue *queue, struct errbuf *e)
{
	struct fault_erasure *erasure = book->erasure;
	struct fault_day *day = NULL;
	bool was_there = book_find_day(book, erasure->next_day);
	int err = book_load_day(book, queue, erasure->next_day, &day, e);
	err = err ? err : book_load_groups(book, queue, day, e);
	if (err)
		return err;
	/* An erasure that was cut off may have written cells of this day once, and not twice. */
	bool was_begun = erasure->was_begun && book_days_have(&erasure->days, day->day);
	if (fault_day_erase(day, erasure->user, &erasure->ids) || was_begun)
		book_days_add(&erasure->again, day->day, 0);
	else if (!was_there && !fault_day_is_dirty(day))
		book_forget_day(book, day->day);
	erasure->next_day++;
	return 0;
}

bool book_erase_in_day(struct fault_book *book, struct fault_day *day,
		       const struct fault_day *fresh)
{
	struct fault_erasure *erasure = book->erasure;
	if (!erasure || erasure->stage != ERASURE_ENTERED)
		return false;
	book_days_add(&erasure->again, day->day, 0);
	if (fresh->lacks)
		fault_day_erase(day, erasure->user, &erasure->ids);
	return fresh->lacks;
}

/* Its days are recounted, but for those that cannot be. */
static void erasure_begin_edit(struct fault_book *book)
{
	struct fault_erasure *erasure = book->erasure;
	for (size_t i = 0; i < erasure->count; i++)
		if (!erasure->list[i].struck)
			book_note_late(book, erasure->list[i].order.date_us);
	book_news_erase(book, &erasure->ids);
	erasure->next_day = book->collected_day ? book->collected_day - ERASE_DAYS_MAX : 0;
}

/* Days of which some reports may be gone, from long ago on. */
int book_edit_erased(struct fault_book *book, struct task_queue *queue, struct errbuf *e)
{
	struct fault_erasure *erasure = book->erasure;
	struct clock *clock = book->site->clock;
	int64_t until_us = clock->mono_us(clock) + ERASE_PASS_US;
	int err = 0;
	if (!erasure || erasure->stage != ERASURE_ENTERED || book->recount.count)
		return 0;
	if (erasure->next_day == INT64_MIN)
		erasure_begin_edit(book);
	while (!err && erasure->next_day < book->collected_day && clock->mono_us(clock) < until_us)
		err = erasure_edit_next(book, queue, e);
	return err;
}

void book_erasure_noted(struct fault_book *book)
{
	struct fault_erasure *erasure = book->erasure;
	if (erasure && erasure->tenure == book->version.tenure && erasure->stage == ERASURE_NEW)
		erasure->stage = ERASURE_NOTED;
}

bool book_write_erased_again(struct fault_book *book)
{
	struct fault_erasure *erasure = book->erasure;
	if (!erasure || !erasure->again.count)
		return false;
	for (size_t i = 0; i < erasure->again.count; i++) {
		struct fault_day *day = book_find_day(book, erasure->again.list[i].day);
		if (day)
			fault_day_write_again(day);
	}
	erasure->again.count = 0;
	return true;
}

void book_erasure_written(struct fault_book *book)
{
	struct fault_erasure *erasure = book->erasure;
	if (erasure && erasure->stage == ERASURE_ENTERED && erasure->next_day != INT64_MIN &&
	    erasure->next_day >= book->collected_day) {
		erasure->stage = ERASURE_COUNTED;
		erasure->entered = 0;
	}
}

/* ---- Entries --------------------------------------------------------------------------------- */

/* One that was no report is in no counts, and its id is another one's: it may go at once, and is
 * not looked up again. */
static int erasure_put_state(struct fault_book *book, const struct erased_arrival *erased,
			     enum fault_erased_state state, int64_t stamp_us,
			     struct store_write *write)
{
	const struct store_parts tenant = {{book->tenant}};
	const char value = (char)(erased->struck ? FAULT_ERASED_DONE : state);
	struct fault_parts column;
	fault_erased_column(&column, erased->order.place);
	return store_cell_put(write, TABLE_FAULT_ERASED, &tenant, &column.parts,
			      (struct slice){&value, 1}, stamp_us, 0);
}

static int erasure_put_entry(struct fault_book *book, const struct erased_arrival *erased,
			     int64_t stamp_us, struct store_write *write)
{
	struct fault_parts key, column;
	uint8_t value[FAULT_LISTING_BYTES];
	fault_listing_encode(&fault_erased_listing, value);
	fault_oops_key(&key, book->tenant, erased->id);
	fault_oops_column(&column, erased->id, fault_erased_listing.order.place);
	return store_cell_put(write, TABLE_OOPS, &key.parts, &column.parts,
			      (struct slice){(char *)value, sizeof(value)}, stamp_us, 0);
}

/* Who finds the entry of an id, finds what it was made for. */
static int erasure_enter_some(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			      struct fault_erasure *erasure, enum fault_erased_state state,
			      struct errbuf *e)
{
	int64_t stamp_us = store_stamp(book->site->store);
	struct store_write *write = store_write_new(book->site->store, ERASE_WRITE_MAX_BYTES);
	size_t end = smaller_of(erasure->count, erasure->entered + ERASE_AT_ONCE);
	int err = 0;
	for (size_t i = erasure->entered; i < end && !err; i++)
		err = erasure_put_state(book, &erasure->list[i], state, stamp_us, write);
	store_write_next_stage(write);
	for (size_t i = erasure->entered; i < end && !err && state == FAULT_ERASED_ENTERED; i++)
		if (!erasure->list[i].struck)
			err = erasure_put_entry(book, &erasure->list[i], stamp_us, write);
	err = seal_send_write(book, queue, until_ms, stamp_us, write, err, e);
	erasure->entered = err ? erasure->entered : end;
	return err;
}

static int erasure_say_uncounted(UNUSED void *owner, struct fault_said *said,
				 UNUSED struct errbuf *e)
{
	if (said->status != FAULT_OPEN)
		said->merged = FAULT_SAID_UNCOUNTED;
	return 0;
}

/* A group that is resolved or muted was given the number of its reports of then. That number is
 * wrong now. */
static int erasure_mark_said(struct fault_book *book, struct task_queue *queue,
			     const struct fault_erasure *erasure, struct errbuf *e)
{
	struct arena arena;
	struct fault_said_list list;
	struct fault_said said;
	arena_init(&arena, ERASE_SAID_MAX_BYTES);
	int err = fault_said_read_all(book->site, queue, book->tenant, &arena, &list, e);
	for (size_t i = 0; !err && i < list.count; i++)
		if (hash_table_find(&erasure->groups, erasure_group_hash(list.list[i].group)))
			err = fault_said_write(book->site, queue, book->tenant, list.list[i].group,
					       erasure_say_uncounted, NULL, &arena, &said, e);
	arena_release(&arena);
	return err;
}

static int erasure_enter(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			 struct fault_erasure *erasure, enum fault_erased_state state,
			 struct errbuf *e)
{
	int err = 0;
	while (!err && erasure->entered < erasure->count)
		err = erasure_enter_some(book, queue, until_ms, erasure, state, e);
	return err;
}

/* Books of other processes begin with the checkpoint then (book_read.c). */
static int erasure_tell(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			struct errbuf *e)
{
	int64_t stamp_us = store_stamp(book->site->store);
	struct store_write *write = store_write_new(book->site->store, ERASE_WRITE_MAX_BYTES);
	struct fault_parts key, column;
	fault_writers_key(&key, book->tenant);
	fault_writers_column(&column, fault_erased_listing.order.place.writer);
	int err = store_cell_put(write, TABLE_REPORT_WRITERS, &key.parts, &column.parts,
				 SLICE("\1"), stamp_us, 0);
	return seal_send_write(book, queue, until_ms, stamp_us, write, err, e);
}

static void erasure_end(struct fault_book *book)
{
	uint64_t reports = book->erasure->view.reports;
	log_info("faults: %llu reports of a user of tenant " SHOWN " were removed",
		 (unsigned long long)reports, SHOWN_OF(book->tenant));
	stat_add(STAT_fault_erased, (int64_t)reports);
	book->erased = book->erasures;
	erasure_drop(book);
}

int book_erase(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
	       struct errbuf *e)
{
	pthread_mutex_lock(&book->lock);
	struct fault_erasure *erasure = book->erasure;
	bool mine = erasure_is_mine(book);
	enum erasure_stage stage = mine ? erasure->stage : ERASURE_NEW;
	pthread_mutex_unlock(&book->lock);
	if (!mine)
		return 0;
	fault_book_touch(book);
	int err = 0;
	if (stage == ERASURE_NOTED)
		err = erasure_mark_said(book, queue, erasure, e);
	if (stage == ERASURE_NOTED && !err)
		err = erasure_enter(book, queue, until_ms, erasure, FAULT_ERASED_ENTERED, e);
	if (stage == ERASURE_COUNTED)
		err = erasure_tell(book, queue, until_ms, e);
	if (stage == ERASURE_COUNTED && !err)
		err = erasure_enter(book, queue, until_ms, erasure, FAULT_ERASED_DONE, e);
	pthread_mutex_lock(&book->lock);
	if (!err && stage == ERASURE_NOTED)
		erasure->stage = ERASURE_ENTERED;
	else if (!err && stage == ERASURE_COUNTED)
		erasure_end(book);
	pthread_mutex_unlock(&book->lock);
	return err;
}
