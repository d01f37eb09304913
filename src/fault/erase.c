#include "fault/erase.h"

#include "base/log.h"
#include "base/stats.h"
#include "fault/book_private.h"
#include "fault/seal_run.h"

enum {
	ERASE_AT_ONCE = 500, /* reports that one write enters */
	ERASE_WRITE_MAX_BYTES = 1 << 20,
	ERASE_DAYS_MAX = 3660,  /* so far back days are edited */
	ERASE_PASS_US = 200000, /* so long days are edited in one pass */
};

enum erasure_stage {
	ERASURE_NEW,     /* its days are not among those to be recounted yet */
	ERASURE_NOTED,   /* a checkpoint has them there: the ids may be entered */
	ERASURE_ENTERED, /* all are: days may be recounted */
	ERASURE_COUNTED, /* checkpoints have that: others are told */
};

struct erased_arrival {
	struct slice id;
	struct fault_order order;
	bool struck; /* it was no report anyway */
};

struct fault_erasure {
	struct slice user;
	struct erased_arrival *list;
	size_t count, room;
	struct hash_table ids; /* as slots of nothing but the hash */
	struct book_days days;
	struct fault_erasure_view view;
	/* The owner's. */
	uint64_t tenure;
	enum erasure_stage stage;
	size_t entered;         /* so many of the list */
	int64_t next_day;       /* to be edited; INT64_MIN: its days were not recounted yet */
	struct book_days again; /* days of this pass that are to be written once more */
};

/* ---- Looking up ------------------------------------------------------------------------------ */

static bool erasure_see(void *owner, const struct fault_listed *report)
{
	struct fault_erasure *erasure = owner;
	bool added;
	erasure->view.more = erasure->count == FAULT_ERASE_MAX;
	if (erasure->view.more)
		return false;
	GROW(erasure->list, erasure->room, erasure->count + 1);
	erasure->list[erasure->count++] =
		(struct erased_arrival){mem_copy_slice(report->id), report->order, report->struck};
	/* One that is struck may have been erased by an owner who did not come to the end. */
	hash_table_add(&erasure->ids, fault_id_hash(report->id), sizeof(struct hash128), &added);
	book_days_add(&erasure->days, fault_day_of(report->order.date_us), 0);
	erasure->view.reports += !report->struck;
	return true;
}

int fault_erasure_new(struct fault_book *book, struct task_queue *queue, struct slice user,
		      int64_t deadline_us, struct fault_erasure **to, struct errbuf *e)
{
	struct fault_erasure *erasure = mem_zalloc(sizeof(*erasure));
	struct fault_list_filter filter = {.from_us = INT64_MIN,
					   .to_us = INT64_MAX,
					   .after = {.date_us = INT64_MAX},
					   .struck = true,
					   .deadline_us = deadline_us};
	struct fault_order reached;
	filter.texts[FAULT_USER] = user;
	erasure->user = mem_copy_slice(user);
	erasure->next_day = INT64_MIN;
	int err = fault_book_list(book, queue, &filter, erasure_see, erasure, &reached, e);
	if (err == ERR_TIMEOUT)
		errbuf_set(e, err, "the reports could not be looked through in time");
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
	mem_free(erasure->days.list);
	mem_free(erasure->again.list);
	mem_free(erasure);
}

/* ---- Handing over ---------------------------------------------------------------------------- */

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

enum fault_erasure_state fault_book_erases(struct fault_book *book, uint64_t ticket)
{
	pthread_mutex_lock(&book->lock);
	enum fault_erasure_state state = FAULT_ERASURE_LOST;
	if (book->erasures == ticket && book->erasure)
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

static void erasure_edit_day(struct fault_erasure *erasure, struct fault_day *day)
{
	if (fault_day_erase(day, erasure->user, &erasure->ids))
		book_days_add(&erasure->again, day->day, 0);
}

static int erasure_edit_next(struct fault_book *book, struct task_queue *queue, struct errbuf *e)
{
	struct fault_erasure *erasure = book->erasure;
	struct fault_day *day = NULL;
	bool was_there = book_find_day(book, erasure->next_day);
	int err = book_load_day(book, queue, erasure->next_day, &day, e);
	if (!err && day->total)
		err = book_load_groups(book, queue, day, e);
	if (err)
		return err;
	if (day->total)
		erasure_edit_day(erasure, day);
	if (!was_there && !fault_day_is_dirty(day))
		book_forget_day(book, day->day);
	erasure->next_day++;
	return 0;
}

/* Its days are recounted, but for those that cannot be. */
static void erasure_begin_edit(struct fault_book *book)
{
	struct fault_erasure *erasure = book->erasure;
	for (size_t i = 0; i < erasure->days.count; i++)
		if (erasure->days.list[i].day >= book->collected_day)
			book_days_add(&erasure->again, erasure->days.list[i].day, 0);
	for (size_t i = 0; i < erasure->count; i++)
		book_note_late(book, erasure->list[i].order.date_us);
	book_news_erase(book, &erasure->ids);
	erasure->next_day = book->collected_day - ERASE_DAYS_MAX;
}

/* Days of which some reports may be gone, from long ago on. */
int book_edit_erased(struct fault_book *book, struct task_queue *queue, struct errbuf *e)
{
	struct fault_erasure *erasure = book->erasure;
	struct clock *clock = book->site->clock;
	int64_t until_us = clock->mono_us(clock) + ERASE_PASS_US;
	int err = 0;
	if (!erasure || erasure->stage != ERASURE_ENTERED)
		return 0;
	if (erasure->next_day == INT64_MIN)
		erasure_begin_edit(book);
	while (!err && erasure->next_day < book->collected_day && clock->mono_us(clock) < until_us)
		err = erasure_edit_next(book, queue, e);
	return err;
}

void book_note_erasure(struct fault_book *book)
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

void book_note_erased(struct fault_book *book)
{
	struct fault_erasure *erasure = book->erasure;
	if (erasure && erasure->stage == ERASURE_ENTERED &&
	    erasure->next_day >= book->collected_day)
		erasure->stage = ERASURE_COUNTED;
}

/* ---- Entries --------------------------------------------------------------------------------- */

static int erasure_enter_one(struct fault_book *book, const struct erased_arrival *erased,
			     int64_t stamp_us, struct store_write *write)
{
	const struct store_parts tenant = {{book->tenant}};
	struct fault_parts key, column;
	fault_erased_column(&column, erased->order.place);
	int err = store_cell_put(write, TABLE_FAULT_ERASED, &tenant, &column.parts, SLICE("\1"),
				 stamp_us, 0);
	if (err || erased->struck)
		return err;
	uint8_t value[FAULT_LISTING_BYTES];
	fault_listing_encode(&fault_erased_listing, value);
	fault_oops_key(&key, book->tenant, erased->id);
	fault_oops_column(&column, erased->id, fault_erased_listing.order.place);
	return store_cell_put(write, TABLE_OOPS, &key.parts, &column.parts,
			      (struct slice){(char *)value, sizeof(value)}, stamp_us, 0);
}

static int erasure_enter_some(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			      struct fault_erasure *erasure, struct errbuf *e)
{
	int64_t stamp_us = store_stamp(book->site->store);
	struct store_write *write = store_write_new(book->site->store, ERASE_WRITE_MAX_BYTES);
	size_t end = smaller_of(erasure->count, erasure->entered + ERASE_AT_ONCE);
	int err = 0;
	for (size_t i = erasure->entered; i < end && !err; i++)
		err = erasure_enter_one(book, &erasure->list[i], stamp_us, write);
	err = seal_send_write(book, queue, until_ms, stamp_us, write, err, e);
	erasure->entered = err ? erasure->entered : end;
	return err;
}

static int erasure_enter(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			 struct fault_erasure *erasure, struct errbuf *e)
{
	int err = 0;
	while (!err && erasure->entered < erasure->count)
		err = erasure_enter_some(book, queue, until_ms, erasure, e);
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
	bool mine = erasure && book->owned && erasure->tenure == book->version.tenure;
	enum erasure_stage stage = mine ? erasure->stage : ERASURE_NEW;
	pthread_mutex_unlock(&book->lock);
	if (!mine)
		return 0;
	fault_book_touch(book);
	int err = 0;
	if (stage == ERASURE_NOTED)
		err = erasure_enter(book, queue, until_ms, erasure, e);
	else if (stage == ERASURE_COUNTED)
		err = erasure_tell(book, queue, until_ms, e);
	pthread_mutex_lock(&book->lock);
	if (!err && stage == ERASURE_NOTED)
		erasure->stage = ERASURE_ENTERED;
	else if (!err && stage == ERASURE_COUNTED)
		erasure_end(book);
	pthread_mutex_unlock(&book->lock);
	return err;
}
