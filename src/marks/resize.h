/* Marks of slots of one width become marks of slots of another, when the configuration changes it:
 * a series that is marked in a slot is marked in every new slot that shares time with it.
 *
 * Before this process writes anything, and beside no other that works with slots of the old width;
 * waits on the queue for as long as it takes, some seconds for a million marks. Broken off it may
 * be done again: a mark too many is looked at and found to be nothing new. For the same reason
 * several processes may do it at once, and some of them be ready before others: slots of the new
 * width stay as they are. */
#ifndef MARKS_RESIZE_H
#define MARKS_RESIZE_H

#include "base/clock.h"
#include "store/store.h"

int marks_resize(struct store *store, struct task_queue *queue, struct clock *clock,
		 int64_t from_slot_ms, int64_t to_slot_ms, int64_t now_ms,
		 struct slice writer) MUST_CHECK;

#endif
