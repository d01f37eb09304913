/* Worker threads for what would hold up a loop: reading the store, encoding, compressing.
 *
 * Tasks run in the order of submission, each on some worker; the result travels back by posting to
 * the caller's executor. The lock of a pool is taken by its own functions only and never held while
 * a task runs, so a task may submit. */
#ifndef LOOP_POOL_H
#define LOOP_POOL_H

#include "base/base.h"
#include "base/exec.h"

struct pool;

/* `threads` workers (>= 1), at most `queue_max` tasks that wait. The threads are called `name`-N
 * (at most 11 bytes of it are shown). */
struct pool *pool_new(unsigned threads, size_t queue_max, const char *name);

/* From any thread. ERR_BUSY when the queue is full: the task is still the caller's. */
int pool_submit(struct pool *pool, struct task *task) MUST_CHECK;

/* Finishes what was accepted, joins the threads, frees the pool. No submission may race with it,
 * except from tasks of the pool itself, which then get ERR_BUSY. */
void pool_close(struct pool *pool);

#endif
