/* Watches a wall clock, since what is removed for its age by a wrong one is gone for good.
 *
 * Beside the wall clock runs a second reckoning, `sure`: where the clock should be. It goes with
 * the steady clock, which counts the time that the machine sleeps, and follows the wall clock by a
 * hundredth of the time that passes, so that a clock that is slewed stays believed. The wall clock
 * is doubted while it is further than CLOCK_TOLERANCE_US from there. Small steps add up: many of
 * them in short time are a jump.
 *
 *   believed --- it jumps, or a start finds it elsewhere ---> doubted
 *   doubted  --- it is back where it should be -------------> believed
 *   doubted  --- it has stood for CLOCK_STANDS_US ----------> believed, as it is
 *   doubted  --- somebody accepts it -----------------------> believed, as it is
 *
 * "Stood": it went with the steady clock since it was first seen where it is. A further jump while
 * it is doubted begins the time once more. A restart continues it from the mark; the time in which
 * nobody watched does not count.
 *
 * How long a stop lasted nobody knows. So a start believes a clock that is at most
 * CLOCK_GAP_US ahead of the mark, and what is left of that also covers a step that comes within
 * CLOCK_SETTLES_US: machines without a battery begin where they went down, and then ask another
 * clock.
 *
 * From any thread; the lock is taken last of all, and held while the clocks are read. */
#ifndef BASE_CLOCK_WATCH_H
#define BASE_CLOCK_WATCH_H

#include <pthread.h>

#include "base/clock.h"

#define CLOCK_TOLERANCE_US (INT64_C(300) * 1000000)
#define CLOCK_GAP_US       (INT64_C(86400) * 1000000)
#define CLOCK_STANDS_US    (INT64_C(86400) * 1000000)
#define CLOCK_SETTLES_US   (INT64_C(600) * 1000000)

/* What is stored, so that a restart continues from there. */
struct clock_mark {
	int64_t sure_us;
	bool doubted;
	int64_t shown_us, stood_us; /* while it is doubted: where it stands, and for how long */
};

struct clock_watch {
	struct clock clock; /* for everybody else: as the one below, with a judgement */
	struct clock *under;
	pthread_mutex_t lock; /* guards what follows */
	struct clock_mark mark;
	int64_t opened_us, looked_us; /* steady clock */
	int64_t gap_us;               /* what is left of CLOCK_GAP_US */
};

/* Believes the clock. */
void clock_watch_init(struct clock_watch *watch, struct clock *under);
/* After a stop, before anybody asks: continues from what was known then. */
void clock_watch_resume(struct clock_watch *watch, const struct clock_mark *known);
void clock_watch_release(struct clock_watch *watch);

/* As of now. */
void clock_watch_mark(struct clock_watch *watch, struct clock_mark *mark);

#endif
