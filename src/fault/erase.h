/* Erasure: all reports of a user that have come so far go, whatever collection would keep.
 *
 *     they are looked up -> a checkpoint has their days among those that are recounted
 *     -> each arrival is entered in `fault_erased`, and then each id as erased
 *     -> the days are recounted; days that cannot be lose the name and what their lists say
 *     -> what was written is written once more, since a cell also has what it was before
 *     -> books of other processes are told to begin again
 *     -> the arrivals may go
 *
 * An id that is erased is that of no report from then on: its arrivals count as if another one had
 * come before them (positions.c), and what is sent under it is refused. The arrivals themselves go
 * with their run, whenever collection comes to it (collect.h).
 *
 * If the process ends in the middle, somebody has to ask again: what was entered is looked up once
 * more. Nothing of that goes before an erasure has come to its end. */
#ifndef FAULT_ERASE_H
#define FAULT_ERASE_H

#include "fault/book.h"

enum { FAULT_ERASE_MAX = 100000 }; /* arrivals of one erasure */

struct fault_erasure;

struct fault_erasure_view {
	uint64_t reports; /* that are reports until then */
	size_t days;      /* on which they were received */
	bool more;        /* there are more than FAULT_ERASE_MAX: the same has to be asked again */
};

/* Looks the reports up whose fact `user` is this one. Any thread that may wait. The store's error,
 * with a sentence. */
int fault_erasure_new(struct fault_book *book, struct task_queue *queue, struct slice user,
		      struct fault_erasure **erasure, struct errbuf *e) MUST_CHECK;
struct fault_erasure_view fault_erasure_view(const struct fault_erasure *erasure);
void fault_erasure_free(struct fault_erasure *erasure);

/* The owner carries it out, and frees it; *ticket is for fault_book_erasure_state. ERR_INVALID:
 * this process does not own the tenant; ERR_EXISTS: another one is at work; with a sentence. It
 * stays the caller's then. */
int fault_book_erase(struct fault_book *book, struct fault_erasure *erasure, uint64_t *ticket,
		     struct errbuf *e) MUST_CHECK;

enum fault_erasure_state { FAULT_ERASURE_WORKS, FAULT_ERASURE_DONE, FAULT_ERASURE_LOST };
/* FAULT_ERASURE_LOST: another owner has begun, or another erasure was done since. */
enum fault_erasure_state fault_book_erasure_state(struct fault_book *book, uint64_t ticket);

#endif
