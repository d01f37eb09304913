/* News of a book: reports that have come to count since somebody watches, each given once.
 *
 * The book may be read anew from a checkpoint at any time. What it had before is no news then; what
 * the checkpoint has besides, since another process has counted it, never passes through here and
 * is missed, which is said. */
#include "fault/book_private.h"

enum { NEWS_ARENA_MAX_BYTES = 16 << 10 }; /* of one report: its id and facts */

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
	if (!news->reports || (news->restoring && book_has(&news->had, arrived->place)))
		return;
	struct book_new_report *report = &news->reports[news->next % FAULT_NEWS_MAX];
	struct fault_arrival kept = arrived->arrival;
	arena_reset(&report->arena);
	report->there = fault_arrival_keep(&kept, &report->arena) == 0;
	report->number = news->next++;
	report->listed = (struct fault_listed){book_order_of(arrived), kept.id, kept.facts};
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

/* How many places the checkpoint has of a writer that the book did not have. */
static uint64_t news_missed_of(const struct book_news *news, const struct fault_book *book,
			       const struct book_writer *writer)
{
	const struct book_writer *had = book_find_writer(&news->had, writer->writer);
	uint64_t next = had ? had->next : 0;
	uint64_t missed = next < writer->next ? writer->next - next : 0;
	for (size_t i = 0; had && i < had->hole_count; i++) {
		const struct fault_place hole = {writer->writer, had->holes[i]};
		missed += book_has(&book->positions, hole);
	}
	return missed;
}

void book_news_restored(struct fault_book *book)
{
	struct book_news *news = &book->news;
	for (size_t i = 0; news->restoring && i < book->positions.writer_count; i++)
		news->next += news_missed_of(news, book, &book->positions.writers[i]);
}

void book_news_caught_up(struct fault_book *book)
{
	struct book_news *news = &book->news;
	if (news->restoring)
		book_positions_release(&news->had);
	news->restoring = false;
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
