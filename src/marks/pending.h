/* What waits to be rolled up: the oldest slots that have marks, and in how many partitions and of
 * how many series each has some.
 *
 * All rows of marks are passed over once, but no more than a number of slots and a number of marks
 * is looked at, the oldest slots first: what was left out is said. It is what was seen while it was
 * looked; others mark and roll up meanwhile.
 *
 * It waits for the store and for Redis, on the thread of its queue. */
#ifndef MARKS_PENDING_H
#define MARKS_PENDING_H

#include "base/clock.h"
#include "marks/marks.h"

struct marks_pending_slot {
	int64_t slot_s;
	size_t partitions; /* that have marks */
	/* Of these series so many are ready for the next pass. A series whose marks are very far
	 * apart may be counted twice. */
	uint64_t series, ready;
	uint64_t unread;  /* marks beside those of these that cannot be read */
	int64_t ready_ms; /* when all of them are, if nothing comes any more */
	int64_t since_ms; /* when the first of those that are ready became so; 0: none is */
	bool counted;     /* else not all of the slot's marks were looked at, or none */
};

struct marks_pending_options {
	struct marks *marks;
	struct clock *clock;
	struct task_queue *queue;
	int64_t slot_ms, quiet_ms;
	size_t slots_max;   /* 1 to MARKS_PENDING_SLOTS_MAX */
	uint64_t marks_max; /* after so many no further part is read */
};

enum { MARKS_PENDING_SLOTS_MAX = 1000 };

struct marks_pending {
	struct marks_pending_slot *slots; /* oldest first */
	size_t count;
	bool cut; /* there are later slots */
};

/* Fills *pending, which is released in any case. After an error it has what was seen by then:
 * ERR_RETRY, Redis could not be asked; ERR_CANCELLED, or the store's. */
int marks_pending_list(const struct marks_pending_options *options,
		       struct marks_pending *pending) MUST_CHECK;
void marks_pending_release(struct marks_pending *pending);

#endif
