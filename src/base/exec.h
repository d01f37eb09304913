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

/* An executor whose thread has no loop: it runs the tasks when it asks for them. */
struct task_queue {
	struct executor executor;
	pthread_mutex_t lock; /* guards first, last */
	pthread_cond_t arrived;
	struct task *first, *last;
	struct task wake; /* posted once, by task_queue_stop */
	_Atomic bool stopped;
	/* Waits until a task is there; has the lock, but not while it waits. Tests put in one that
	 * lets others go on first. */
	void (*wait)(struct task_queue *queue);
};

void task_queue_init(struct task_queue *queue);
/* No task is there but that of a stop, and nobody will post one. */
void task_queue_release(struct task_queue *queue);
/* Runs what is there; returns how many tasks ran. */
size_t task_queue_run(struct task_queue *queue);
/* Waits until at least one task is there, then as above. */
size_t task_queue_wait(struct task_queue *queue);

/* Asks the thread to come to an end: whoever waits for something on this queue (store/wait.h) gives
 * it up with ERR_CANCELLED, now and from now on. From any thread. */
void task_queue_stop(struct task_queue *queue);
bool task_queue_is_stopped(const struct task_queue *queue);

/* Waits for some real time. ERR_CANCELLED: the queue was stopped meanwhile, or before. */
int task_queue_sleep(struct task_queue *queue, int64_t ms) MUST_CHECK;

/* What another thread answers, by a task that sets it, to one that waits on its queue. */
struct task_answer {
	bool there;
	int err;
};

/* Waits until it is there; gives its `err`. Stopping does not end it. */
int task_queue_wait_for(struct task_queue *queue, const struct task_answer *answer);

#endif
