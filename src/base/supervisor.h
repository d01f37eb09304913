/* The supervisor of this process: systemd, or whatever else speaks the protocol of sd_notify(3). It
 * names a socket in the environment and takes one datagram for each thing that happens. Where there
 * is none, nothing is told.
 *
 * From any thread, once supervisor_find() has returned. */
#ifndef BASE_SUPERVISOR_H
#define BASE_SUPERVISOR_H

#include "base/base.h"

struct clock;

/* Takes what the supervisor says out of the environment (NOTIFY_SOCKET, WATCHDOG_USEC,
 * WATCHDOG_PID), so that no program that this process runs speaks in its name. Before there are
 * other threads. */
void supervisor_find(void);

/* The process is restarted unless it is fed once in so long. 0: nobody waits for that. */
int64_t supervisor_watchdog_ms(void);

/* One datagram of lines `NAME=VALUE`, as sd_notify(3) lists them. What a supervisor that does not
 * read has no room for is lost, and logged, at once or, where READY, RELOADING or STOPPING stand
 * first, after a second. */
void supervisor_tell(const char *lines, ...) PRINTF_LIKE(1, 2);

/* A reload begins, and ends. */
void supervisor_tell_reload(struct clock *clock);
void supervisor_tell_reloaded(bool changed);

/* A start that takes long is no start that hangs: from now it may take a minute more. `what` is
 * done by so much of so much. */
void supervisor_tell_progress(const char *what, uint64_t done, uint64_t total);

#endif
