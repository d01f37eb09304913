/* Private to the book: its parts. book.c has its life and its passes, book_read.c what is read of
 * the store, positions.c which arrivals it has, book_count.c what arrivals add up to, cursor.c the
 * arrivals in the order of receipt, groups.c questions about groups, book_write.c the checkpoints,
 * seal.c and seal_run.c the sealing of runs, collect.c what goes of them, book_news.c what has come
 * since somebody watches, tell.c what is told of it, minutes.c how many come in each minute,
 * erase.c what goes of one user. All is called with the lock held, but for what says that it is
 * not. */
#ifndef FAULT_BOOK_PRIVATE_H
#define FAULT_BOOK_PRIVATE_H

#include <pthread.h>

#include "base/cursor.h"
#include "base/grow.h"

#include "fault/collect.h"
#include "fault/erase.h"
#include "fault/segment.h"
#include "fault/tables.h"

enum {
	BOOK_HOLES_MAX = 1 << 14, /* of a writer */
	BOOK_UNLISTED_MAX = 100000,
	BOOK_READ_MAX_BYTES = 32 << 20,
	BOOK_LATE_MAX = 4000, /* minutes */
};

/* How far a writer has been read. */
struct book_writer {
	uint64_t writer, next; /* all before `next` but the holes are in the book */
	uint64_t *holes;       /* ascending */
	size_t hole_count, hole_room;
	int64_t began_us, last_us; /* last_us: of the last arrival that is in the book; INT64_MIN */
	char *holder;
	bool ended; /* its cell says so: nothing comes after `end` */
	/* The process says so; `ended` follows when the book has all of it. */
	bool closed;
	int64_t closed_us; /* the stamp of the cell that says so */
	uint64_t end;
	bool kept;           /* the last checkpoint has it */
	uint64_t whole_runs; /* so many of its runs the last checkpoint has as a whole */
	bool ending;         /* the checkpoint to come says that it has ended */
	int64_t dead_ms; /* by the monotonic clock: since when its session is dead; 0: it is not */
};

/* An arrival that is in the book though `oops` did not list it yet. */
struct book_unlisted {
	struct fault_order order;
	struct hash128 digest;
	char *id;
	size_t id_len;
};

/* A day's number, and when something is to be done about it. */
struct book_day {
	int64_t day;
	int64_t due_ms; /* by the monotonic clock */
};
#define BOOK_MINUTE_MAX (UINT64_C(1) << 32) /* in the year 10136 */
#define BOOK_NOT_DUE    INT64_MAX /* not before a checkpoint that has it in its list is whole */
struct book_days {
	struct book_day *list;
	size_t count, room;
};
bool book_days_have(const struct book_days *days, int64_t day);
void book_days_add(struct book_days *days, int64_t day, int64_t due_ms);
void book_days_remove(struct book_days *days, int64_t day);

struct book_late {
	int64_t minute;
	bool counting; /* without the reports that come from now on */
};

/* Which arrivals the book has. */
struct book_positions {
	struct book_writer *writers; /* by number, ascending */
	size_t writer_count, writer_room;
	struct book_unlisted *unlisted;
	size_t unlisted_count, unlisted_room;
};

/* Reports that have been added since somebody watches, by number: the newest of them. Numbers of
 * which none is there are of reports that came while the book was read anew, or long ago. */
struct book_news {
	unsigned watchers;
	uint64_t next;
	struct book_new_report *reports; /* NULL: nobody has watched yet */
	bool begun;                      /* somebody knows a number: `had` are what it knows of */
	bool restoring;                  /* the book is read anew: `had` were in it before */
	int64_t day;                     /* in which it was last looked at */
	struct book_positions had;
};

struct fault_book {
	const struct fault_site *site; /* this, and the tenant, never change */
	char *tenant_text;
	struct slice tenant;
	_Atomic bool touched;
	pthread_mutex_t lock; /* guards all below */
	bool restored;
	struct fault_version version; /* of the checkpoint that it began with or wrote last */
	/* `version.tenure` is a tenure of this process. Is read without the lock, too. */
	_Atomic bool owned;
	int64_t until_ms; /* by the wall clock: that of the last pass */
	bool changed;     /* since the last checkpoint: positions, or lists of days */
	struct fault_tenures tenures;
	struct book_positions positions;
	struct fault_day **days; /* those in memory: all that are open, and a few that are not */
	size_t day_count, day_room;
	struct book_days open;    /* not closed yet; by the checkpoint and by what came since */
	struct book_days recount; /* to be counted anew */
	struct book_days clear;   /* closed, their rows of volumes are to go */
	/* Minutes since 1970 (minutes.h): before `minutes` they are counted, 0: none is. A report
	 * of a minute before `minutes_closing` makes that minute late: it is to be counted again.
	 */
	int64_t minutes, minutes_closing;
	int64_t minutes_step;   /* so many are counted at once; 0: the preset */
	bool minutes_were_late; /* those that were counted last */
	struct book_late *late;
	size_t late_count, late_room;
	/* Reports of earlier days may be gone, so these days are never recounted. */
	int64_t collected_day;
	/* While there is one only the owner's thread changes it, without the lock but for what
	 * checkpoints do. NULL: nothing is to be collected. */
	struct fault_plan *plan;
	uint64_t recounts; /* so many days were recounted */
	/* Between its passes the owner's thread alone changes it, without the lock. NULL: reports
	 * of nobody are to be removed. */
	struct fault_erasure *erasure;
	uint64_t erasures, erased; /* the numbers of the last one, and of the last that was done */
	int64_t erased_us;         /* the stamp of the last of any process, as others tell of it */
	struct store_read *read;
	struct store_write *write;
	/* Arrivals that were read and are to be added. */
	struct book_arrived *arrived;
	size_t arrived_count, arrived_room;
	struct arena arena; /* of what was read: reset with each round */
	struct book_news news;
	/* Without the lock: the owner's thread alone. NULL: it did not look yet. */
	struct fault_seals *seals;
	struct fault_teller *teller; /* likewise */
	bool causes;                 /* likewise: there may be some that were not looked at */
};

struct book_arrived {
	struct fault_arrival arrival;
	struct fault_place place;
};

static inline struct fault_order book_order_of(const struct book_arrived *arrived)
{
	return (struct fault_order){arrived->arrival.date_us, arrived->place};
}

/* ---- book_read.c ----------------------------------------------------------------------------- */

void book_forget(struct fault_book *book);
/* Forgets everything, and begins with the last checkpoint. */
int book_restore(struct fault_book *book, struct task_queue *queue, struct errbuf *e) MUST_CHECK;
/* Adds all that has arrived. */
int book_catch_up(struct fault_book *book, struct task_queue *queue, struct errbuf *e) MUST_CHECK;
/* Marks a day for a recount, unless some of its reports may be gone. */
void book_recount_later(struct fault_book *book, int64_t day);
/* A day's summary as the checkpoint has it, which stays in memory. */
int book_load_day(struct fault_book *book, struct task_queue *queue, int64_t day,
		  struct fault_day **to, struct errbuf *e) MUST_CHECK;
/* Those of a closed day are not loaded with it. */
int book_load_groups(struct fault_book *book, struct task_queue *queue, struct fault_day *day,
		     struct errbuf *e) MUST_CHECK;
/* Logs that so many cells of a day cannot be read. The next pass counts the day from its reports.
 * False: it cannot, since some of them may be gone. */
bool book_warn_damaged(struct fault_book *book, int64_t day, size_t cells);
struct fault_day *book_find_day(const struct fault_book *book, int64_t day);
void book_forget_day(struct fault_book *book, int64_t day);
/* Which arrivals of each id are listed, and which bugs: to[i] of ids[i], in `arena`. Without the
 * lock. */
struct book_listings {
	struct fault_listing *list;
	size_t count;
	struct fault_oops_bug *bugs;
	size_t bug_count;
};
int book_read_listings(const struct fault_book *book, struct task_queue *queue,
		       const struct slice *ids, size_t count, struct arena *arena,
		       struct book_listings *to, struct errbuf *e) MUST_CHECK;
int book_read_wait(struct fault_book *book, struct task_queue *queue, struct errbuf *e) MUST_CHECK;
struct store_request *book_add_request(struct fault_book *book, enum store_op op);
void book_begin_read(struct fault_book *book);

/* ---- positions.c ----------------------------------------------------------------------------- */

void book_positions_clear(struct book_positions *positions);
void book_positions_release(struct book_positions *positions);
/* A copy, for who reads without the lock. */
void book_positions_copy(struct book_positions *to, const struct book_positions *from);
/* It has ended, and the book has all of it. */
bool book_writer_is_over(const struct book_writer *writer);
/* So many of its runs the book has as a whole. */
uint64_t book_whole_runs(const struct book_writer *writer);
struct book_writer *book_find_writer(const struct book_positions *positions, uint64_t writer);
struct book_writer *book_add_writer(struct book_positions *positions, uint64_t writer);
/* Whether the book has an arrival. */
bool book_has(const struct book_positions *positions, struct fault_place place);
/* Whether an arrival, which the book has, is the report of its id; else *first is. */
bool book_is_first(const struct book_positions *positions, const struct fault_order *order,
		   struct slice id, const struct book_listings *listings,
		   struct fault_order *first);
/* The first of the other arrivals of the id that the book has. False: it has no other. */
bool book_first_other(const struct book_positions *positions, const struct fault_order *order,
		      struct slice id, const struct book_listings *listings,
		      struct fault_order *first);

/* ---- seal.c ---------------------------------------------------------------------------------- */

void book_free_seals(struct fault_book *book);
/* A run was sealed, or sealed again. By the owner's thread, within fault_book_seal. */
void book_note_sealed(struct fault_book *book, struct fault_place place,
		      const struct fault_run_cell *cell);
/* Whether something of a run is still to go. By the same. */
bool book_is_due(const struct fault_book *book, struct fault_place place);

/* ---- tell.c ---------------------------------------------------------------------------------- */

void book_free_teller(struct fault_book *book);

/* ---- collect.c ------------------------------------------------------------------------------- */

/* Called before a checkpoint: the checkpoint then says from which days reports go. Days that wait
 * for a recount come first. */
void book_begin_collection(struct fault_book *book);
/* A day was recounted: its lists may differ from those that the plan was made by. */
void book_note_recounted(struct fault_book *book, int64_t day);
/* It says so: at due_ms, by the monotonic clock, the first may go. */
void book_note_collection(struct fault_book *book, int64_t due_ms);
/* Carries the plan out until busy_ms, by the monotonic clock. *more: it is not done. By the owner's
 * thread, without the lock. */
int book_collect(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
		 int64_t busy_ms, bool *more, struct errbuf *e) MUST_CHECK;

/* ---- erase.c --------------------------------------------------------------------------------- */

/* Before recounts. */
void book_begin_erasure(struct fault_book *book);
/* Ids are not entered yet: a recount would have their reports. */
bool book_erasure_holds_recounts(const struct fault_book *book);
/* A day is recounted: if that is for the erasure it is written once more. Of one that lacks some
 * reports the counts stay, and what is erased is taken out. False: it is to have those of fresh. */
bool book_erase_in_day(struct fault_book *book, struct fault_day *day,
		       const struct fault_day *fresh);
/* After recounts. */
int book_edit_erased(struct fault_book *book, struct task_queue *queue,
		     struct errbuf *e) MUST_CHECK;
/* A checkpoint has its days among those to be recounted. */
void book_erasure_noted(struct fault_book *book);
/* Marks the days that the erasure has changed, to be written once more. False: there are none. */
bool book_write_erased_again(struct fault_book *book);
/* Checkpoints have all that the erasure has changed, if nothing is left to be edited. */
void book_erasure_written(struct fault_book *book);
/* Without the lock, by the owner's thread. */
int book_erase(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
	       struct errbuf *e) MUST_CHECK;

/* ---- minutes.c ------------------------------------------------------------------------------- */

/* A report of this time was added, or is none any more. */
void book_note_late(struct fault_book *book, int64_t date_us);
void book_add_late(struct fault_book *book, int64_t minute);

/* ---- book_news.c ----------------------------------------------------------------------------- */

void book_news_release(struct book_news *news);
/* A report was added. */
void book_news_add(struct fault_book *book, const struct book_arrived *arrived);
/* The book is about to be forgotten; has all that has arrived. */
void book_news_forget(struct fault_book *book);
void book_news_caught_up(struct fault_book *book, struct task_queue *queue);
/* Reports whose ids are in the table (fault_id_hash) are none any more; NULL: any may be. */
void book_news_erase(struct fault_book *book, const struct hash_table *ids);

/* ---- book_count.c ---------------------------------------------------------------------------- */

/* What was read of arrivals is in the book from then on. */
int book_count(struct fault_book *book, struct task_queue *queue, struct errbuf *e) MUST_CHECK;
/* A day from nothing, by the arrivals of the positions. Without the lock, unless the positions are
 * the book's. deadline_us: monotonic, 0: there is none. ERR_TIMEOUT. */
int book_count_day(const struct fault_book *book, const struct book_positions *positions,
		   struct task_queue *queue, int64_t day, int64_t deadline_us,
		   struct fault_day **to, struct errbuf *e) MUST_CHECK;

/* ---- book_write.c ---------------------------------------------------------------------------- */

int book_begin_tenure(struct fault_book *book, struct task_queue *queue, int64_t stamp_us,
		      struct errbuf *e) MUST_CHECK;
int book_write_checkpoint(struct fault_book *book, struct task_queue *queue, int64_t stamp_us,
			  const struct fault_owner_view *view, struct errbuf *e) MUST_CHECK;
/* Rows of volumes of closed days that nobody reads any more. */
int book_clear_days(struct fault_book *book, struct task_queue *queue, int64_t stamp_us,
		    struct errbuf *e) MUST_CHECK;

/* A cell of `fault_books`. */
struct book_cell {
	uint64_t checkpoint;
	bool whole; /* the rest is there */
	struct cursor rest;
};
int book_cell_begin(struct slice value, struct book_cell *cell) MUST_CHECK;
int book_cell_take(struct fault_book *book, struct book_cell *cell) MUST_CHECK;

/* ---- cursor.c -------------------------------------------------------------------------------- */

/* The arrivals of the positions, in the order of receipt: forward from a time on, or backward from
 * that time on. Voids are left out. What is given is without its body. Without the lock, unless the
 * positions are the book's. It is to be freed also after an error. */
struct fault_cursor_filter {
	/* Whether an arrival is to be given. NULL: all are. */
	bool (*fits)(void *owner, const struct book_arrived *arrived);
	void *owner;
	struct fault_search *search; /* NULL: whatever is in them */
	int64_t oldest_us;           /* backward: of those that are older none is looked at */
	int64_t deadline_us;         /* monotonic; 0: none */
};
struct fault_cursor;
int fault_cursor_new(const struct fault_book *book, const struct book_positions *positions,
		     struct task_queue *queue, int64_t from_us, bool backward,
		     const struct fault_cursor_filter *filter, struct fault_cursor **cursor,
		     struct errbuf *e) MUST_CHECK;
/* NULL in *arrived: there are no more. Valid until the next call. ERR_TIMEOUT: the deadline passed.
 */
int fault_cursor_next(struct fault_cursor *cursor, const struct book_arrived **arrived,
		      struct errbuf *e) MUST_CHECK;
/* How far a backward cursor has come when it ends with ERR_TIMEOUT. It has given all fitting
 * arrivals that were received later than `reached`, and no other. False: it looked at nothing. */
bool fault_cursor_reached(const struct fault_cursor *cursor, struct fault_order *reached);
/* Whether something could not be read. */
bool fault_cursor_lacks(const struct fault_cursor *cursor);
void fault_cursor_free(struct fault_cursor *cursor);

#endif
