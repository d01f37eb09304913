/* How many reports of a tenant were received in each minute: of each context, exception and
 * release, and of each group. The owner's book says up to which minute they are counted, and which
 * minutes before that have got more reports since. So each minute is given at least once after its
 * last report has come to count, whichever process ends in between; unless reports of its day may
 * have been collected by then.
 *
 * Threads: any that may wait. Catching up waits for the store with the lock of the book, as every
 * reader of the book does; `take` is called without it. */
#ifndef FAULT_MINUTES_H
#define FAULT_MINUTES_H

#include "fault/book.h"

enum { FAULT_MINUTE_TEXTS = 3, FAULT_MINUTES_A_DAY = 1440 };
#define FAULT_MINUTE_US INT64_C(60000000)

/* A slot of a hash table. */
struct fault_minute_count {
	struct hash128 hash;
	bool group; /* texts[0] is a group's name; else context, exception, release */
	struct slice texts[FAULT_MINUTE_TEXTS]; /* len 0: the reports have none */
	uint64_t reports;                       /* may be 0, where there were some before */
};

struct fault_minute {
	int64_t start_us;
	/* All of one minute, in any order. */
	struct hash_table counts;
	/* Reports of names and of groups for which there was no room. */
	uint64_t names_rest, groups_rest;
};

struct fault_minute_taker {
	/* Is given one minute after the other, and may wait. What it has taken is durable, and
	 * replaces what it took of this minute before. The minute is valid during the call. */
	int (*take)(void *owner, const struct fault_minute *minute, struct errbuf *e);
	void *owner;
};

/* Gives minutes that ended at until_us or earlier, at most a day of them. *more: it is to be called
 * again. Nothing is given, and it is no error, where this process does not own the tenant.
 * The error of `take`, or the store's, with a
 * sentence: what was given in this call comes again. */
int fault_book_count_minutes(struct fault_book *book, struct task_queue *queue, int64_t until_us,
			     const struct fault_minute_taker *taker, bool *more,
			     struct errbuf *e) MUST_CHECK;

#endif
