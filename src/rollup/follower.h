/* Follows what other processes change in a store that is shared, at once and every half minute:
 * what backfill has brought to an end (backfill.h), and whether the shared settings are still those
 * of this process (shared_settings.h). If they are not, what this process writes is not what others
 * take it for: it has to end. No query waits for any of this.
 *
 * A job (loop/job.h) does that. Everything here belongs to the thread of the executor. */
#ifndef ROLLUP_FOLLOWER_H
#define ROLLUP_FOLLOWER_H

#include "base/exec.h"

struct rollup_site;
struct rollup_follower;

/* The site is open, and the caller's. `others` is called once, if the shared settings have become
 * others; then it is over. NULL where one process has the store: it follows nobody. */
struct rollup_follower *rollup_follower_new(struct rollup_site *site, struct executor *executor,
					    void (*others)(void *owner), void *owner);
/* Of these, NULL is allowed. Free it when it is over. */
void rollup_follower_stop(struct rollup_follower *follower);
bool rollup_follower_is_over(const struct rollup_follower *follower);
void rollup_follower_free(struct rollup_follower *follower);

#endif
