/* What arrivals add up to: each report of an id once, in the day in which it was received. */
#include "base/grow.h"
#include "base/stats.h"
#include "fault/book_private.h"

enum {
	CHUNK = 500, /* arrivals of a day that are counted anew at a time */
	ARENA_MAX_BYTES = 64 << 20,
};

static bool book_is_listed(const struct book_listings *listings, struct fault_place place)
{
	for (size_t i = 0; i < listings->count; i++)
		if (fault_place_equal(listings->list[i].order.place, place))
			return true;
	return false;
}

/* ---- Arrivals that are not listed yet -------------------------------------------------------- */

static void book_note_unlisted(struct fault_book *book, const struct book_arrived *arrived)
{
	struct book_positions *positions = &book->positions;
	GROW(positions->unlisted, positions->unlisted_room, positions->unlisted_count + 1);
	positions->unlisted[positions->unlisted_count++] = (struct book_unlisted){
		.order = book_order_of(arrived),
		.digest = arrived->arrival.digest,
		.id = mem_copy_text(arrived->arrival.id),
		.id_len = arrived->arrival.id.len,
	};
}

/* Those whose entries have come are forgotten: what is listed is found without them. */
static int book_look_at_unlisted(struct fault_book *book, struct task_queue *queue,
				 struct errbuf *e)
{
	size_t count = book->positions.unlisted_count, left = 0;
	if (!count)
		return 0;
	struct slice *ids = mem_alloc_array(count, sizeof(*ids));
	struct book_listings *listings = mem_alloc_array(count, sizeof(*listings));
	for (size_t i = 0; i < count; i++)
		ids[i] = (struct slice){book->positions.unlisted[i].id,
					book->positions.unlisted[i].id_len};
	int err = book_read_listings(book, queue, ids, count, &book->arena, listings, e);
	for (size_t i = 0; i < count && !err; i++) {
		if (book_is_listed(&listings[i], book->positions.unlisted[i].order.place))
			mem_free(book->positions.unlisted[i].id);
		else
			book->positions.unlisted[left++] = book->positions.unlisted[i];
	}
	if (!err)
		book->positions.unlisted_count = left;
	mem_free(ids);
	mem_free(listings);
	return err;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* A report is added to its day, which is in memory. What the day of another is, that was counted in
 * its place, is known to the book. */
static void book_add(struct fault_book *book, const struct book_arrived *arrived,
		     const struct book_listings *listings)
{
	struct fault_order order = book_order_of(arrived), first;
	struct fault_day *day = book_find_day(book, fault_day_of(order.date_us));
	if (book_first_other(&book->positions, &order, arrived->arrival.id, listings, &first)) {
		stat_add(STAT_fault_arrivals_struck, 1);
		if (fault_order_compare(&first, &order) < 0)
			return;
		book_recount_later(book, fault_day_of(first.date_us));
		book_note_late(book, first.date_us);
	}
	book_note_late(book, order.date_us);
	if (day->unreadable) {
		stat_add(STAT_fault_uncounted, 1);
		return;
	}
	if (!day->closed)
		book_days_add(&book->open, day->day, 0);
	fault_day_add(day, &arrived->arrival);
	book_news_add(book, arrived);
	if (fault_day_is_disordered(day) && day->day < book->collected_day)
		fault_day_settle(day);
	else if (fault_day_is_disordered(day))
		book_recount_later(book, day->day);
}

/* All that has to be read before anything is added. */
static int book_prepare(struct fault_book *book, struct task_queue *queue, struct slice *ids,
			struct book_listings *listings, struct errbuf *e)
{
	size_t count = book->arrived_count;
	int err = 0;
	if (book->positions.unlisted_count + count > BOOK_UNLISTED_MAX)
		return errbuf_set(e, ERR_LIMIT,
				  "more than %d reports of tenant " SHOWN
				  " may have no entry by id (table oops)",
				  BOOK_UNLISTED_MAX, SHOWN_OF(book->tenant));
	for (size_t i = 0; i < count && !err; i++) {
		struct fault_day *day;
		err = book_load_day(book, queue, fault_day_of(book->arrived[i].arrival.date_us),
				    &day, e);
		if (!err && day->day < book->collected_day)
			err = book_load_groups(book, queue, day, e);
		ids[i] = book->arrived[i].arrival.id;
	}
	return err ? err : book_read_listings(book, queue, ids, count, &book->arena, listings, e);
}

int book_count(struct fault_book *book, struct task_queue *queue, struct errbuf *e)
{
	int err = book_look_at_unlisted(book, queue, e);
	size_t count = book->arrived_count;
	if (err || !count)
		return err;
	struct slice *ids = mem_alloc_array(count, sizeof(*ids));
	struct book_listings *listings = mem_alloc_array(count, sizeof(*listings));
	err = book_prepare(book, queue, ids, listings, e);
	for (size_t i = 0; i < count && !err; i++) {
		book_add(book, &book->arrived[i], &listings[i]);
		if (!book_is_listed(&listings[i], book->arrived[i].place))
			book_note_unlisted(book, &book->arrived[i]);
	}
	mem_free(ids);
	mem_free(listings);
	return err;
}

/* ---- A day from nothing ---------------------------------------------------------------------- */

struct book_day_count {
	const struct fault_book *book;
	const struct book_positions *positions;
	struct task_queue *queue;
	struct fault_day *day;
	struct arena arena; /* of the chunk */
	struct book_arrived list[CHUNK];
	struct slice ids[CHUNK];
	struct book_listings listings[CHUNK];
	size_t count;
};

static int book_keep(struct book_day_count *c, const struct book_arrived *arrived)
{
	struct book_arrived *kept = &c->list[c->count];
	*kept = *arrived;
	if (fault_arrival_keep(&kept->arrival, &c->arena))
		return ERR_LIMIT;
	c->ids[c->count++] = kept->arrival.id;
	return 0;
}

static int book_count_chunk(struct book_day_count *c, struct errbuf *e)
{
	int err =
		book_read_listings(c->book, c->queue, c->ids, c->count, &c->arena, c->listings, e);
	for (size_t i = 0; i < c->count && !err; i++) {
		struct fault_order order = book_order_of(&c->list[i]), first;
		if (book_is_first(c->positions, &order, c->ids[i], &c->listings[i], &first))
			fault_day_add(c->day, &c->list[i].arrival);
	}
	arena_reset(&c->arena);
	c->count = 0;
	return err;
}

static int book_count_all(struct book_day_count *c, struct fault_cursor *cursor, struct errbuf *e)
{
	const struct book_arrived *arrived;
	int err = fault_cursor_next(cursor, &arrived, e);
	while (!err && arrived && fault_day_of(arrived->arrival.date_us) == c->day->day) {
		err = book_keep(c, arrived);
		if (!err && c->count == CHUNK)
			err = book_count_chunk(c, e);
		err = err ? err : fault_cursor_next(cursor, &arrived, e);
	}
	return err ? err : book_count_chunk(c, e);
}

int book_count_day(const struct fault_book *book, const struct book_positions *positions,
		   struct task_queue *queue, int64_t day, int64_t deadline_us,
		   struct fault_day **to, struct errbuf *e)
{
	struct book_day_count *c = mem_zalloc(sizeof(*c));
	struct fault_cursor *cursor = NULL;
	c->book = book;
	c->positions = positions;
	c->queue = queue;
	c->day = fault_day_new(day, &book->site->limits);
	arena_init(&c->arena, ARENA_MAX_BYTES);
	const struct fault_cursor_filter filter = {.deadline_us = deadline_us};
	int err = fault_cursor_new(book, positions, queue, day * FAULT_DAY_US, false, &filter,
				   &cursor, e);
	err = err ? err : book_count_all(c, cursor, e);
	c->day->lacks = fault_cursor_lacks(cursor);
	fault_cursor_free(cursor);
	arena_release(&c->arena);
	if (err)
		fault_day_free(c->day);
	else
		*to = c->day;
	mem_free(c);
	return err;
}
