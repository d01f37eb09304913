/* Directories whose changes are told (inotify(7)), for a thread that has no event loop and waits in
 * one place.
 *
 * What is told is a hint: whoever must not miss a change also looks from time to time. Never told
 * are changes of what a symbolic link in a directory leads to, writes by a map (mmap), writes by
 * another name of the same file in another directory, what other machines do on a network's file
 * system, and that a directory further up was renamed: this one keeps its watch then, and its path,
 * until it is added again.
 *
 * Add a directory first and list it afterwards: what happens in between is told.
 *
 * Invariants: a path stands for at most one watch of the system, which is of the directory it led
 * to when it was added last. A directory that is reached by several paths (by links) has one watch,
 * and each change is told with each of these paths. No watch is kept without a path.
 *
 * Threads: one, but for watch_wake. */
#ifndef BASE_WATCH_H
#define BASE_WATCH_H

#include "base/base.h"

struct watch;

/* What one watch takes: links can lead to one directory by any number of paths. */
enum { WATCH_PATHS_MAX = 262144 };

/* -errno, with a sentence: the system gives no more instances, or has no inotify. */
int watch_open(struct watch **watch, struct errbuf *e) MUST_CHECK;
void watch_close(struct watch *watch); /* NULL is allowed */

/* Adding a directory again is harmless and cheap, and needed where another one has come in its
 * place: the old watch ends with the old directory. ERR_NOT_FOUND: it is not there, or no
 * directory; ERR_LIMIT: the system gives no more watches (fs.inotify.max_user_watches), or
 * WATCH_PATHS_MAX are there; or -errno. After an error this path is not watched any more. */
int watch_add(struct watch *watch, const char *directory) MUST_CHECK;

/* A directory that is not watched is fine. */
void watch_remove(struct watch *watch, const char *directory);

/* How many paths are watched, a directory with several of them counted for each. */
size_t watch_count(const struct watch *watch);

/* Called for each change in a watched directory: a name in it was made, written to, renamed (the
 * old name and the new one are told), removed, or its mode changed. `directory` is as it was added.
 *
 * name NULL: something happened to the directory itself. It was removed, renamed or unmounted, and
 * its watch has ended; or its mode changed. Add it again if it is still wanted.
 * directory NULL: events were lost (the queue was full), anything may have changed. What was added
 * is watched as before, if it is still there.
 *
 * Adds nothing and does not wait: that comes after watch_wait has returned. */
typedef void watch_fn(void *owner, const char *directory, const char *name);

/* Waits until something is to be told, somebody wakes it, or timeout_ms are over (< 0: no end;
 * else a day at most); then tells all that is there by now, up to a megabyte of it: the next wait
 * goes on from there. */
void watch_wait(struct watch *watch, int64_t timeout_ms, watch_fn *tell, void *owner);

/* The same, but events are left where they are: for a rest after which more of them are told at
 * once. Ends early only by watch_wake, of which the next wait learns too: so nobody who rests
 * before a wait sleeps through one. */
void watch_rest(struct watch *watch, int64_t ms);

/* Ends a wait, or the next one. Any thread, while it is open. */
void watch_wake(struct watch *watch);

#endif
