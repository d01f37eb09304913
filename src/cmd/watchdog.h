/* Feeds the supervisor's watchdog (base/supervisor.h) while the process moves: the loop, on which
 * this runs, and each thread that is watched. A thread that has nothing to do moves, too: it wakes
 * up and looks. Of one that stands longer than its bound the log and the supervisor's status say
 * so, and the supervisor ends and restarts the process when it has had nothing for its time.
 *
 * The loop's thread. */
#ifndef CMD_WATCHDOG_H
#define CMD_WATCHDOG_H

#include "base/base.h"

struct clock;
struct loop;
struct watchdog;

struct watched {
	const char *name;
	int64_t (*moved_ms)(void *owner); /* when it last moved; monotonic */
	void *owner;
	int64_t more_ms; /* it may stand so much longer than the supervisor's time */
};

/* `watched` lives as long. NULL: there is no supervisor with a watchdog. */
struct watchdog *watchdog_new(struct loop *loop, struct clock *clock, const struct watched *watched,
			      size_t count);
void watchdog_free(struct watchdog *watchdog); /* NULL is allowed */

#endif
