#include "fault/book_private.h"

#include <stdatomic.h>

#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "store/wait.h"

enum {
	/* The store keeps the pages of its largest write: several times its bytes, since the cells
	 * of groups lie apart. */
	WRITE_PRESET_BYTES = 4 << 20,
	ARENA_MAX_BYTES = 128 << 20,
	LIST_CHUNK = 32,
	LIST_ARENA_MAX_BYTES = 16 << 20,
	DAY_MS = 86400000,
	RECOUNT_US = 200000, /* days are recounted for so long in a pass, for an erasure */
};

struct fault_book *fault_book_new(const struct fault_site *site, struct slice tenant)
{
	struct fault_book *book = mem_zalloc(sizeof(*book));
	book->site = site;
	book->tenant_text = mem_copy_text(tenant);
	book->tenant = (struct slice){book->tenant_text, tenant.len};
	book->read = store_read_new(site->store, BOOK_READ_MAX_BYTES);
	book->write = store_write_new(site->store,
				      site->write_bytes ? site->write_bytes : WRITE_PRESET_BYTES);
	arena_init(&book->arena, ARENA_MAX_BYTES);
	pthread_mutex_init(&book->lock, NULL);
	return book;
}

void fault_book_free(struct fault_book *book)
{
	if (!book)
		return;
	book_forget(book);
	book_free_seals(book);
	book_free_teller(book);
	fault_plan_free(book->plan);
	fault_erasure_free(book->erasure);
	book_news_release(&book->news);
	book_positions_release(&book->positions);
	mem_free(book->days);
	mem_free(book->open.list);
	mem_free(book->recount.list);
	mem_free(book->clear.list);
	mem_free(book->late);
	mem_free(book->arrived);
	store_read_free(book->read);
	store_write_free(book->write);
	arena_release(&book->arena);
	pthread_mutex_destroy(&book->lock);
	mem_free(book->tenant_text);
	mem_free(book);
}

struct slice fault_book_tenant(const struct fault_book *book)
{
	return book->tenant;
}

void fault_book_touch(struct fault_book *book)
{
	atomic_store(&book->touched, true);
}

bool fault_book_is_touched(const struct fault_book *book)
{
	return atomic_load(&book->touched);
}

void fault_book_disown(struct fault_book *book)
{
	pthread_mutex_lock(&book->lock);
	book->owned = book->restored = false;
	pthread_mutex_unlock(&book->lock);
}

bool fault_book_is_owned(const struct fault_book *book)
{
	return book->owned;
}

/* ---- A pass of the owner --------------------------------------------------------------------- */

static int book_recount_days(struct fault_book *book, struct task_queue *queue, struct errbuf *e)
{
	struct clock *clock = book->site->clock;
	int64_t until_us = clock->mono_us(clock) + RECOUNT_US;
	while (book->recount.count && !book_erasure_holds_recounts(book)) {
		struct fault_day *day = NULL, *fresh = NULL;
		int64_t number = book->recount.list[0].day;
		int err = book_load_day(book, queue, number, &day, e);
		err = err ? err : book_load_groups(book, queue, day, e);
		err = err ? err
			  : book_count_day(book, &book->positions, queue, number, 0, &fresh, e);
		if (err)
			return err;
		if (book_erase_in_day(book, day, fresh))
			fault_day_free(fresh);
		else
			fault_day_replace(day, &fresh);
		book_days_remove(&book->recount, number);
		book_note_recounted(book, number);
		book->changed = true;
		stat_add(STAT_fault_recounts, 1);
		/* Nobody is answered meanwhile: the rest in the next pass. */
		if (book->erasure && clock->mono_us(clock) >= until_us)
			break;
	}
	return 0;
}

/* When nothing more can come of a day, but what nobody was told to be there. */
static bool book_is_past(const struct fault_book *book, int64_t day)
{
	int64_t late_us = (book->site->write_max_ms + book->site->skew_max_ms) * 1000;
	return book->site->clock->wall_us(book->site->clock) >= (day + 1) * FAULT_DAY_US + late_us;
}

static int book_close_days(struct fault_book *book, struct task_queue *queue, struct errbuf *e)
{
	for (size_t i = 0; i < book->open.count;) {
		int64_t number = book->open.list[i].day;
		struct fault_day *day;
		if (!book_is_past(book, number)) {
			i++;
			continue;
		}
		int err = book_load_day(book, queue, number, &day, e);
		if (err)
			return err;
		fault_day_close(day);
		book_days_remove(&book->open, number);
		book_days_add(&book->clear, number, BOOK_NOT_DUE);
		book->changed = true;
	}
	return 0;
}

/* Its process says that nothing comes of it any more, and all of it is here. The cell that says so
 * has a lesser stamp than the one that will say that it has ended. */
static bool book_has_all_of(const struct book_writer *writer, int64_t stamp_us)
{
	return writer->closed && writer->closed_us < stamp_us && writer->next >= writer->end &&
	       !writer->hole_count;
}

/* Writers that are closed, and those of processes that are gone: after a day nothing of them can
 * land any more. Where one process has the store nothing lands of those that were before it. One
 * that no checkpoint has yet waits for the next: else whoever begins with that would take it for
 * one that was counted. */
static void book_look_at_writers(struct fault_book *book, int64_t stamp_us,
				 const struct fault_owner_view *view)
{
	int64_t now_ms = clock_mono_ms(book->site->clock);
	bool shared = store_is_shared(book->site->store);
	for (size_t i = 0; i < book->positions.writer_count; i++) {
		struct book_writer *writer = &book->positions.writers[i];
		if (writer->ended || writer->ending || !writer->kept || !writer->holder)
			continue;
		if (book_has_all_of(writer, stamp_us)) {
			writer->ending = true;
		} else if (!shared) {
			writer->ending = writer->began_us < book->site->started_us;
		} else if (!view->is_dead(view->owner, slice_of(writer->holder))) {
			writer->dead_ms = 0;
		} else {
			writer->dead_ms = writer->dead_ms ? writer->dead_ms : now_ms;
			writer->ending = now_ms - writer->dead_ms > DAY_MS;
		}
		book->changed = book->changed || writer->ending;
	}
}

/* Days that are written and closed are read again when somebody asks. */
static void book_drop_days(struct fault_book *book)
{
	for (size_t i = 0; i < book->day_count;) {
		const struct fault_day *day = book->days[i];
		if (day->closed && !fault_day_is_dirty(day))
			book_forget_day(book, day->day);
		else
			i++;
	}
}

static bool book_is_dirty(const struct fault_book *book)
{
	bool dirty = book->changed;
	for (size_t i = 0; i < book->day_count; i++)
		dirty = dirty || fault_day_is_dirty(book->days[i]);
	return dirty;
}

/* The stamp was taken before anything was read. */
static int book_do_pass(struct fault_book *book, struct task_queue *queue, int64_t stamp_us,
			const struct fault_owner_view *view, struct errbuf *e)
{
	int err = book->owned ? 0 : book_begin_tenure(book, queue, stamp_us, e);
	err = err ? err : book_catch_up(book, queue, e);
	if (!err && !book->owned) /* it had to begin anew meanwhile */
		return errbuf_set(e, ERR_RETRY, "the book was read again");
	if (!err)
		book_begin_erasure(book);
	err = err ? err : book_recount_days(book, queue, e);
	err = err ? err : book_edit_erased(book, queue, e);
	err = err ? err : book_close_days(book, queue, e);
	err = err ? err : book_clear_days(book, queue, stamp_us, e);
	if (err)
		return err;
	book_begin_collection(book);
	book_look_at_writers(book, stamp_us, view);
	if (book_is_dirty(book))
		err = book_write_checkpoint(book, queue, stamp_us, view, e);
	/* It needs a greater stamp: if two values have the same stamp, the store keeps the greater
	 * value, which may be the earlier one. */
	if (!err && book_write_erased_again(book))
		err = book_write_checkpoint(book, queue, stamp_us + 1, view, e);
	if (!err) {
		book_erasure_written(book);
		book_drop_days(book);
	}
	return err;
}

int fault_book_pass(struct fault_book *book, struct task_queue *queue,
		    const struct fault_owner_view *view, struct errbuf *e)
{
	pthread_mutex_lock(&book->lock);
	atomic_store(&book->touched, false);
	int64_t stamp_us = store_stamp(book->site->store);
	int err = 0;
	/* Others may have owned the tenant since the process did so in the last pass. */
	if (clock_wall_ms(book->site->clock) >= book->until_ms)
		book->owned = book->restored = false;
	book->until_ms = view->until_ms;
	if (stamp_us / 1000 >= view->until_ms)
		err = errbuf_set(e, ERR_TIMEOUT, "the time of this owner is over");
	err = err ? err : book_do_pass(book, queue, stamp_us, view, e);
	/* What was answered after the end others may not have seen when they began. */
	if (clock_wall_ms(book->site->clock) >= view->until_ms)
		book->owned = book->restored = false;
	pthread_mutex_unlock(&book->lock);
	if (err)
		fault_book_touch(book);
	return err;
}

int fault_book_recount(struct fault_book *book, int64_t day, struct errbuf *e)
{
	int err = 0;
	pthread_mutex_lock(&book->lock);
	if (book->owned && day < book->collected_day)
		err = errbuf_set(e, ERR_EXISTS,
				 "reports of that day may have been collected: "
				 "the server cannot recount it");
	else if (book->owned) {
		book_recount_later(book, day);
		fault_book_touch(book);
	} else
		err = errbuf_set(e, ERR_INVALID,
				 "this process does not count the reports of tenant " SHOWN,
				 SHOWN_OF(book->tenant));
	pthread_mutex_unlock(&book->lock);
	return err;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Who is not the owner does not know when a day was closed. */
static int book_read_it(struct fault_book *book, struct task_queue *queue, int64_t number,
			struct fault_day_view **view, struct errbuf *e)
{
	struct fault_day *day = NULL, *fresh = NULL;
	if (!book->owned && book_is_past(book, number))
		book->restored = false;
	int err = book_catch_up(book, queue, e);
	err = err ? err : book_load_day(book, queue, number, &day, e);
	if (!err && book_days_have(&book->recount, number)) {
		err = book_count_day(book, &book->positions, queue, number, 0, &fresh, e);
		if (!err && day->closed)
			fault_day_close(fresh);
	}
	*view = err ? NULL : fault_day_view_new(fresh ? fresh : day);
	fault_day_free(fresh);
	if (!err && !day->total && !fault_day_is_dirty(day) && !book_days_have(&book->open, number))
		book_forget_day(book, number);
	return err;
}

int fault_book_read_day(struct fault_book *book, struct task_queue *queue, int64_t day,
			struct fault_day_view **view, struct errbuf *e)
{
	pthread_mutex_lock(&book->lock);
	int err = book_read_it(book, queue, day, view, e);
	for (int i = 0; i < 10 && err == ERR_RETRY; i++) {
		book->owned = book->restored = false;
		err = book_read_it(book, queue, day, view, e);
	}
	pthread_mutex_unlock(&book->lock);
	return err;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

struct book_list {
	const struct fault_book *book;
	struct task_queue *queue;
	const struct fault_list_filter *filter;
	struct book_positions positions;
	struct fault_cursor *cursor;
	struct arena arena; /* of the chunk */
	struct book_arrived list[LIST_CHUNK];
	struct slice ids[LIST_CHUNK];
	struct book_listings listings[LIST_CHUNK];
	size_t count;
	struct fault_search search;
	bool over, late; /* late: since the time was over */
};

static bool book_list_fits(void *owner, const struct book_arrived *arrived)
{
	struct book_list *l = owner;
	const struct fault_list_filter *filter = l->filter;
	struct fault_order order = book_order_of(arrived);
	if (order.date_us < filter->from_us || order.date_us >= filter->to_us ||
	    fault_order_compare(&order, &filter->after) >= 0)
		return false;
	return fault_merges_fit(filter->merges, filter->texts, arrived->arrival.facts.texts);
}

static int book_list_keep(struct book_list *l, const struct book_arrived *arrived)
{
	struct book_arrived *kept = &l->list[l->count];
	*kept = *arrived;
	if (fault_arrival_keep_listed(&kept->arrival, &l->arena))
		return ERR_LIMIT;
	l->ids[l->count++] = kept->arrival.id;
	return 0;
}

/* After the time is over those that were found are still given. */
static int book_list_fill(struct book_list *l, struct errbuf *e)
{
	int err = 0;
	arena_reset(&l->arena);
	l->count = 0;
	while (!err && !l->over && l->count < LIST_CHUNK) {
		const struct book_arrived *arrived;
		err = fault_cursor_next(l->cursor, &arrived, e);
		l->over = err == ERR_TIMEOUT || (!err && !arrived);
		if (!err && !l->over)
			err = book_list_keep(l, arrived);
	}
	l->late = err == ERR_TIMEOUT;
	return err && !l->late ? err
			       : book_read_listings(l->book, l->queue, l->ids, l->count, &l->arena,
						    l->listings, e);
}

/* *enough: `each` wants no more. */
static int book_list_all(struct book_list *l,
			 bool (*each)(void *owner, const struct fault_listed *), void *owner,
			 bool *enough, struct errbuf *e)
{
	*enough = false;
	while (!l->over) {
		int err = book_list_fill(l, e);
		if (err)
			return err;
		for (size_t i = 0; i < l->count; i++) {
			struct fault_order order = book_order_of(&l->list[i]), first;
			bool struck = !book_is_first(&l->positions, &order, l->ids[i],
						     &l->listings[i], &first);
			struct fault_listed listed = {order, l->ids[i], l->list[i].arrival.facts,
						      struck};
			fault_merges_apply(l->filter->merges, &listed.facts);
			*enough = (!struck || l->filter->struck) && !each(owner, &listed);
			if (*enough)
				return 0;
		}
	}
	return 0;
}

static int book_list_run(struct book_list *l, bool (*each)(void *, const struct fault_listed *),
			 void *owner, struct fault_order *reached, struct errbuf *e)
{
	const struct fault_list_filter *filter = l->filter;
	const struct fault_cursor_filter looked = {.fits = book_list_fits,
						   .owner = l,
						   .search = filter->search ? &l->search : NULL,
						   .oldest_us = filter->from_us,
						   .deadline_us = filter->deadline_us};
	int64_t newest_us = smaller_of(filter->to_us, filter->after.date_us);
	bool enough = false;
	int err = fault_cursor_new(l->book, &l->positions, l->queue, newest_us, true, &looked,
				   &l->cursor, e);
	err = err ? err : book_list_all(l, each, owner, &enough, e);
	if (!err && !enough && l->late) {
		err = ERR_TIMEOUT;
		/* Others of the time of `after` may have been looked at only. */
		if (!fault_cursor_reached(l->cursor, reached) ||
		    fault_order_compare(reached, &filter->after) > 0)
			*reached = filter->after;
	}
	fault_cursor_free(l->cursor);
	return err;
}

int fault_book_list(struct fault_book *book, struct task_queue *queue,
		    const struct fault_list_filter *filter,
		    bool (*each)(void *owner, const struct fault_listed *report), void *owner,
		    struct fault_order *reached, struct errbuf *e)
{
	struct book_list *l = mem_zalloc(sizeof(*l));
	l->book = book;
	l->queue = queue;
	l->filter = filter;
	arena_init(&l->arena, LIST_ARENA_MAX_BYTES);
	if (filter->search)
		fault_search_init(&l->search, filter->search);
	*reached = filter->after;
	pthread_mutex_lock(&book->lock);
	int err = book_catch_up(book, queue, e);
	if (!err)
		book_positions_copy(&l->positions, &book->positions);
	if (!err && filter->news) {
		*filter->news = book->news.next;
		book->news.begun = true;
	}
	pthread_mutex_unlock(&book->lock);
	err = err ? err : book_list_run(l, each, owner, reached, e);
	book_positions_release(&l->positions);
	arena_release(&l->arena);
	if (filter->search)
		fault_search_release(&l->search);
	mem_free(l);
	return err;
}
