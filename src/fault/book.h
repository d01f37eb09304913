/* The book of a tenant: what its reports add up to, and which arrivals that are.
 *
 * It is a function of the set of arrivals that it has: catching up adds what has come since, from
 * whichever writer, in any order. The owner of the tenant keeps checkpoints of it in the store;
 * everybody else begins with the last one that is whole, and catches up by the same function. So an
 * answer of any process has every report that was acknowledged before it was asked
 * (doc/format-faults.md).
 *
 * An arrival counts if it is the first, by date, writer and sequence, of those of its id that the
 * book has. Which others there are, `oops` lists; an arrival whose own entry there had not come yet
 * when it was added is remembered, so that two are never counted for one. Where it turns out later
 * that another was first, the days of both are counted anew. So are days in which more happened
 * than a summary can take in in another order (day.h), and closed days to which something is added.
 *
 * Order of events in a pass of the owner: a stamp is taken; the book catches up; days are counted
 * anew and closed; a checkpoint is written under that stamp, in two stages. If the outcome of that
 * is not known the tenure ends, and the next pass begins another from what the store has.
 *
 * Threads: any that may wait; each call waits for the store on the thread of the queue that it is
 * given. A lock of the book lets one in at a time. */
#ifndef FAULT_BOOK_H
#define FAULT_BOOK_H

#include "base/exec.h"
#include "fault/merges.h"
#include "fault/search.h"
#include "fault/site.h"

struct fault_book;

/* The site is the caller's; the tenant's name is copied. */
struct fault_book *fault_book_new(const struct fault_site *site, struct slice tenant);
void fault_book_free(struct fault_book *book);
struct slice fault_book_tenant(const struct fault_book *book);

/* What the owner does, again and again: begins a tenure if there is none, and does a pass. The
 * process owns the tenant until until_ms, by the wall clock: nothing is written with a later stamp.
 * Sessions of processes that are dead are those for which `is_dead` says so. ERR_TIMEOUT: the time
 * is over. The store's error with a sentence. */
struct fault_owner_view {
	int64_t until_ms;
	/* Whether the process with this session will write no more. */
	bool (*is_dead)(void *owner, struct slice holder);
	void *owner;
};
int fault_book_pass(struct fault_book *book, struct task_queue *queue,
		    const struct fault_owner_view *view, struct errbuf *e) MUST_CHECK;
/* Seals runs that a checkpoint has as a whole, and removes arrivals of those that were sealed long
 * enough ago (seal.c). By the thread of the passes, after each. */
int fault_book_seal(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
		    struct errbuf *e) MUST_CHECK;
/* Makes the messages that the passes have found causes of (message.h), and counts them in *made. By
 * the thread of the passes, after each. */
int fault_book_tell(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
		    size_t *made, struct errbuf *e) MUST_CHECK;
/* Something was written for the tenant: a pass has something to do. Any thread. */
void fault_book_touch(struct fault_book *book);
/* Whether it was since the last pass began. */
bool fault_book_is_touched(const struct fault_book *book);
/* The process owns the tenant no more, or another begins: what it has is forgotten. */
void fault_book_disown(struct fault_book *book);

/* Whether this process counts the reports of the tenant at the moment. Waits for nobody. */
bool fault_book_is_owned(const struct fault_book *book);

/* The summary of a day, with every report that was acknowledged before. The caller frees it. */
int fault_book_read_day(struct fault_book *book, struct task_queue *queue, int64_t day,
			struct fault_day_view **view, struct errbuf *e) MUST_CHECK;

/* Counts a day anew in the next pass of the owner. ERR_INVALID: this process does not own the
 * tenant. ERR_EXISTS: reports of the day may be gone. */
int fault_book_recount(struct fault_book *book, int64_t day, struct errbuf *e) MUST_CHECK;

/* ---- Arrivals by time ------------------------------------------------------------------------ */

struct fault_listed {
	struct fault_order order;
	struct slice id;
	struct fault_facts facts;
	bool struck; /* it is none: another one of its id was first */
};

struct fault_list_filter {
	int64_t from_us, to_us; /* from <= date < to */
	/* Where it has data, the report's is this one. */
	struct slice texts[FAULT_TEXTS];
	/* What is given has the root of its group, and so has what is compared; or NULL. */
	const struct fault_merges *merges;
	const struct words_query *search; /* NULL: whatever their texts are */
	/* Those that were received before this one; date_us INT64_MAX: from the newest on. */
	struct fault_order after;
	int64_t deadline_us; /* monotonic; 0: none */
	bool struck;         /* those that are struck are given, too */
	/* Where news go on behind the list, for who watches; may be NULL. */
	uint64_t *news;
};

/* Gives reports, newest first, to `each` until it says no or there are none left. What is given is
 * valid during the call. ERR_TIMEOUT: the deadline passed, however few reports there were to give.
 * All that were received after `reached` were given then, and the same question goes on behind it;
 * it is `filter->after` if nothing was looked at. */
int fault_book_list(struct fault_book *book, struct task_queue *queue,
		    const struct fault_list_filter *filter,
		    bool (*each)(void *owner, const struct fault_listed *report), void *owner,
		    struct fault_order *reached, struct errbuf *e) MUST_CHECK;

/* ---- News ------------------------------------------------------------------------------------ */

enum { FAULT_NEWS_MAX = 1024 }; /* reports that are kept for whoever watches */

/* From now on, or no longer, news are kept. Each who watches says so once, and that it has ended.
 */
void fault_book_watch(struct fault_book *book, bool on);
/* Gives reports that have come to count since news were at *from, in the order in which the book
 * met them, which is mostly that of receipt, and moves *from on. *missed: that many more have come
 * and are not kept any more; it may count some that are no reports. What is given is valid during
 * the call, under the lock of the book. After an error *from is where it was. */
int fault_book_news(struct fault_book *book, struct task_queue *queue, uint64_t *from,
		    void (*each)(void *owner, uint64_t number, const struct fault_listed *report),
		    void *owner, uint64_t *missed, struct errbuf *e) MUST_CHECK;

#endif
