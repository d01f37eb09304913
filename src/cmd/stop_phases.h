/* How a process with a store stops: by phases, each begun when the one before is over; so what has
 * to end at once, whatever the others wait for, comes first. The whole has a bound: what is not
 * over by then is given up, which is no worse than a crash. A failed commit stops the process the
 * same way, with a short bound, since only a restart can tell what is on disk. The loop's thread.
 */
#ifndef CMD_STOP_PHASES_H
#define CMD_STOP_PHASES_H

#include <stdatomic.h>

#include "base/exec.h"
#include "cmd/watchdog.h"
#include "loop/loop.h"

enum { STOP_DEAD_MS = 2000 }; /* for requests that are being answered, after a failed commit */

/* A phase is over when `over` says so, or else when stop_phases_end_phase() was called. */
struct stop_phase {
	const char *name;
	void (*begin)(void *owner); /* NULL: there is nothing to do but to wait */
	bool (*over)(const void *owner);
};

/* The caller fills in the fields up to the blank line. */
struct stop_phases {
	struct loop *loop;
	const struct stop_phase *phases;
	size_t phase_count;
	void *owner;      /* of the phases */
	int64_t bound_ms; /* unless a commit failed */
	int64_t again_ms; /* a signal so long after the first gives up; 0: none does */
	struct watchdog
		*watchdog; /* freed when the stop begins, which has its own bound; or NULL */

	_Atomic int dead_err; /* of the commit that failed */
	struct task dead_task;
	struct loop_signal *signals[3];
	struct loop_timer *timer;
	int64_t begun_ms, give_up_ms; /* 0: it has not begun */
	size_t phase;                 /* how many have begun */
	bool phase_over;
};

/* Before anything is read, and before there are threads: finds the supervisor. SIGHUP waits until
 * it has a handler. A client that has gone, and a file that may not grow, are errors of a write and
 * not the end. */
void stop_phases_begin_process(void);
/* SIGINT and SIGTERM stop; SIGHUP is the owner's. */
int stop_phases_open_signals(struct stop_phases *stop, loop_signal_fn *reload,
			     struct errbuf *e) MUST_CHECK;
/* When the last phase is over, the loop stops. */
void stop_phases_begin(struct stop_phases *stop);
/* Both have the struct stop_phases for owner. The second is for lmdb_options, on any thread. */
void stop_phases_end_phase(void *owner);
void stop_phases_on_dead(void *owner, int err);
/* For lmdb_options, too: the supervisor hears that the start goes on. */
void stop_phases_on_replay(uint64_t pages, uint64_t total);
/* The process is ready: the supervisor hears so, and from now on that it moves. */
void stop_phases_ready(struct stop_phases *stop, const struct watched *watched, size_t count);

#endif
