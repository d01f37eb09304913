/* Tasks and where they run. Modules below loop/ get their completions onto the caller's thread
 * through this, without knowing libuv; tests use the queue below. */
#ifndef BASE_EXEC_H
#define BASE_EXEC_H

#include <pthread.h>

#include "base/base.h"

/* Embedded in what it belongs to; CONTAINER_OF finds the owner. In one queue at a time. */
struct task {
	void (*run)(struct task *task);
	struct task *next;
};

/* A thread that runs tasks. post() may be called from any thread, never blocks and never runs the
 * task itself; tasks posted by one thread run in their order. */
struct executor {
	void (*post)(struct executor *executor, struct task *task);
};

/* Waits for a signal, at most about `timeout_ms` of real time. For threads that also have work of
 * their own from time to time. */
void cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, int timeout_ms);

/* An executor that the owner pumps by hand: for tests, tools and the CLI. */
struct task_queue {
	struct executor executor;
	pthread_mutex_t lock; /* guards first, last */
	pthread_cond_t arrived;
	struct task *first, *last;
};

void task_queue_init(struct task_queue *queue);
void task_queue_release(struct task_queue *queue);
/* Runs what is there; returns how many tasks ran. */
size_t task_queue_run(struct task_queue *queue);
/* Waits until at least one task is there, then as above. */
size_t task_queue_wait(struct task_queue *queue);

#endif
