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
	if (!news->reports || news->restoring || !book->positions.writer_count)
		return;
	book_positions_copy(&news->had, &book->positions);
	news->restoring = true;
}

void book_news_restored(struct fault_book *book)
{
	struct book_news *news = &book->news;
	for (size_t i = 0; news->restoring && i < book->positions.writer_count; i++) {
		const struct book_writer *writer = &book->positions.writers[i];
		const struct book_writer *had = book_find_writer(&news->had, writer->writer);
		uint64_t next = had ? had->next : 0;
		if (next < writer->next)
			news->next += writer->next - next;
	}
}

void book_news_caught_up(struct fault_book *book)
{
	struct book_news *news = &book->news;
	if (news->restoring)
		book_positions_release(&news->had);
	news->restoring = false;
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
