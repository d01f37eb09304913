/* News of a book: reports that have come to count since somebody watches, each given once.
 *
 * The book may be read anew from a checkpoint at any time. What it had before is no news then. What
 * it has besides when it has caught up is looked for among all arrivals, since some of that may
 * have come with the checkpoint: another process has counted it. */
#include "fault/book_private.h"

enum {
	NEWS_ARENA_MAX_BYTES = 16 << 10, /* of one report: its id and facts */
	NEWS_FIND_MAX_BYTES = 64 << 20,
	NEWS_FIND_US = 1000000,
};
#define NEWS_OLDEST_US FAULT_DAY_US /* that is looked for */

struct book_new_report {
	uint64_t number;
	bool there;
	struct fault_listed listed;
	struct arena arena;
};

void book_news_release(struct book_news *news)
{
	for (size_t i = 0; news->reports && i < FAULT_NEWS_MAX; i++)
		arena_release(&news->reports[i].arena);
	mem_free(news->reports);
	book_positions_release(&news->had);
	*news = (struct book_news){.next = news->next};
}

void fault_book_watch(struct fault_book *book, bool on)
{
	struct book_news *news = &book->news;
	pthread_mutex_lock(&book->lock);
	ASSERT(on || news->watchers);
	news->watchers += on ? 1 : -1u;
	if (!news->watchers) {
		book_news_release(news);
	} else if (!news->reports) {
		news->reports = mem_alloc_array(FAULT_NEWS_MAX, sizeof(*news->reports));
		for (size_t i = 0; i < FAULT_NEWS_MAX; i++) {
			news->reports[i].there = false;
			arena_init_small(&news->reports[i].arena, NEWS_ARENA_MAX_BYTES);
		}
	}
	pthread_mutex_unlock(&book->lock);
}

void book_news_add(struct fault_book *book, const struct book_arrived *arrived)
{
	struct book_news *news = &book->news;
	if (!news->reports || news->restoring)
		return;
	struct book_new_report *report = &news->reports[news->next % FAULT_NEWS_MAX];
	struct fault_arrival kept = arrived->arrival;
	arena_reset(&report->arena);
	report->there = fault_arrival_keep_listed(&kept, &report->arena) == 0;
	report->number = news->next++;
	report->listed = (struct fault_listed){book_order_of(arrived), kept.id, kept.facts, false};
}

/* ---- The book is read anew ------------------------------------------------------------------- */

void book_news_forget(struct fault_book *book)
{
	struct book_news *news = &book->news;
	if (!news->reports || news->restoring)
		return;
	book_positions_copy(&news->had, &book->positions);
	news->restoring = true;
}

/* How many places of a writer the book has that it did not have then. */
static uint64_t news_new_of(const struct fault_book *book, const struct book_writer *writer)
{
	const struct book_writer *had = book_find_writer(&book->news.had, writer->writer);
	uint64_t next = had ? had->next : 0;
	uint64_t count = next < writer->next ? writer->next - next : 0;
	for (size_t i = 0; had && i < had->hole_count; i++) {
		const struct fault_place hole = {writer->writer, had->holes[i]};
		count += book_has(&book->positions, hole);
	}
	return count;
}

static bool news_is_new(void *owner, const struct book_arrived *arrived)
{
	const struct fault_book *book = owner;
	return !book_has(&book->news.had, arrived->place);
}

/* The newest of these many that the book has got. */
static void news_find(struct fault_book *book, struct task_queue *queue, uint64_t wanted,
		      struct arena *arena, struct book_arrived *list, size_t *count,
		      struct errbuf *e)
{
	struct clock *clock = book->site->clock;
	const struct fault_cursor_filter filter = {
		.fits = news_is_new,
		.owner = book,
		.oldest_us = clock->wall_us(clock) - NEWS_OLDEST_US,
		.deadline_us = clock->mono_us(clock) + NEWS_FIND_US,
	};
	const struct book_arrived *arrived = NULL;
	struct fault_cursor *cursor;
	int err = fault_cursor_new(book, &book->positions, queue, INT64_MAX, true, &filter, &cursor,
				   e);
	while (!err && *count < wanted && *count < FAULT_NEWS_MAX) {
		err = fault_cursor_next(cursor, &arrived, e);
		if (err || !arrived)
			break;
		list[*count] = *arrived;
		err = fault_arrival_keep_listed(&list[*count].arrival, arena);
		*count += !err;
	}
	fault_cursor_free(cursor);
}

/* Those of them that count; the oldest first. */
static int news_add_found(struct fault_book *book, struct task_queue *queue, struct arena *arena,
			  const struct book_arrived *list, size_t count, struct errbuf *e)
{
	struct slice *ids = mem_alloc_array(count, sizeof(*ids));
	struct book_listings *listings = mem_alloc_array(count, sizeof(*listings));
	for (size_t i = 0; i < count; i++)
		ids[i] = list[i].arrival.id;
	int err = book_read_listings(book, queue, ids, count, arena, listings, e);
	for (size_t i = count; i-- > 0 && !err;) {
		struct fault_order order = book_order_of(&list[i]), first;
		if (book_is_first(&book->positions, &order, ids[i], &listings[i], &first))
			book_news_add(book, &list[i]);
	}
	mem_free(ids);
	mem_free(listings);
	return err;
}

/* What cannot be read of them is missed. */
static void news_add_new(struct fault_book *book, struct task_queue *queue, uint64_t wanted)
{
	struct book_arrived *list = mem_alloc_array(FAULT_NEWS_MAX, sizeof(*list));
	struct arena arena;
	struct errbuf e;
	size_t count = 0;
	arena_init(&arena, NEWS_FIND_MAX_BYTES);
	news_find(book, queue, wanted, &arena, list, &count, &e);
	/* Too many, or too old, or no reports. */
	book->news.next += wanted - count;
	if (count && news_add_found(book, queue, &arena, list, count, &e))
		book->news.next += count;
	arena_release(&arena);
	mem_free(list);
}

void book_news_caught_up(struct fault_book *book, struct task_queue *queue)
{
	struct book_news *news = &book->news;
	uint64_t wanted = 0;
	if (!news->restoring)
		return;
	for (size_t i = 0; i < book->positions.writer_count; i++)
		wanted += news_new_of(book, &book->positions.writers[i]);
	news->restoring = false;
	if (wanted && news->begun)
		news_add_new(book, queue, wanted);
	book_positions_release(&news->had);
}

/* The days that are over only an owner closes and drops, in its own book and in the checkpoint:
 * anybody else begins with that anew, an hour after each. */
static void news_begin_day(struct fault_book *book)
{
	struct clock *clock = book->site->clock;
	int64_t day = fault_day_of(clock->wall_us(clock) - FAULT_HOUR_US);
	if (!book->owned && book->news.day && day > book->news.day)
		book->restored = false;
	book->news.day = day;
}

void book_news_erase(struct fault_book *book, const struct hash_table *ids)
{
	struct book_news *news = &book->news;
	for (size_t i = 0; news->reports && i < FAULT_NEWS_MAX; i++) {
		struct book_new_report *report = &news->reports[i];
		if (report->there &&
		    (!ids || hash_table_find(ids, fault_id_hash(report->listed.id))))
			report->there = false;
	}
}

/* ---- Giving ---------------------------------------------------------------------------------- */

int fault_book_news(struct fault_book *book, struct task_queue *queue, uint64_t *from,
		    void (*each)(void *owner, uint64_t number, const struct fault_listed *report),
		    void *owner, uint64_t *missed, struct errbuf *e)
{
	const struct book_news *news = &book->news;
	*missed = 0;
	pthread_mutex_lock(&book->lock);
	ASSERT(news->reports && *from <= news->next);
	news_begin_day(book);
	int err = book_catch_up(book, queue, e);
	uint64_t kept_from = news->next < FAULT_NEWS_MAX ? 0 : news->next - FAULT_NEWS_MAX;
	if (!err && *from < kept_from) {
		*missed = kept_from - *from;
		*from = kept_from;
	}
	for (; !err && *from < news->next; ++*from) {
		const struct book_new_report *report = &news->reports[*from % FAULT_NEWS_MAX];
		if (report->there && report->number == *from)
			each(owner, *from, &report->listed);
		else
			++*missed;
	}
	pthread_mutex_unlock(&book->lock);
	return err;
}
