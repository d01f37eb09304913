/* A job: a function that runs on a thread of its own, in the background, and may wait there.
 *
 * What takes long and answers nobody at once is written as a plain function that loops. It waits
 * for the store by store/wait.h on job_queue(), for its time by job_sleep(), for what belongs to
 * another thread by job_call(). job_stop() ends each of these waits, so that the function returns
 * soon; whoever writes one looks at their errors, and at job_is_stopping() in loops that wait for
 * nothing. */
#ifndef LOOP_JOB_H
#define LOOP_JOB_H

#include "base/exec.h"

enum {
	JOBS_MAX = 48,       /* that run at once in this process */
	JOBS_ALL_OF_MAX = 8, /* threads of one jobs_run_all */
};

struct job;

/* Starts `run` on a thread of its own, of which the kernel shows the first 15 bytes of `name`. When
 * `run` has returned, `done` follows on `executor`. ERR_LIMIT: JOBS_MAX jobs run; then nothing is
 * called. */
int job_start(const char *name, void (*run)(struct job *job, void *owner),
	      void (*done)(void *owner), void *owner, struct executor *executor,
	      struct job **job) MUST_CHECK;
/* From within `done` or later. NULL is allowed. */
void job_free(struct job *job);

/* Asks it to end soon. From any thread, as often as one likes. */
void job_stop(struct job *job);

/* Calls run(queue, owners[i]) for each of `count` owners, all at the same time: the first on the
 * calling thread, the others on threads called `name`; each has a queue of its own to wait on.
 * Returns when all have returned. */
void jobs_run_all(const char *name, void (*run)(struct task_queue *queue, void *owner),
		  void *const *owners, size_t count);

/* ---- For `run`, on the job's thread ---------------------------------------------------------- */

bool job_is_stopping(const struct job *job);
/* On which it waits. */
struct task_queue *job_queue(struct job *job);
/* Rests. ERR_CANCELLED: it was asked to end meanwhile, or before. */
int job_sleep(struct job *job, int64_t ms) MUST_CHECK;
/* Calls fn(argument) on the thread of `executor`, which serves until the job is done, and returns
 * when it has returned; also while the job is stopping. */
void job_call(struct job *job, struct executor *executor, void (*fn)(void *argument),
	      void *argument);

#endif
