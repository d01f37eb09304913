#include "base/exec.h"

#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"

enum { SLEEP_MAX_MS = 3600000 }; /* at a time */

void cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, int timeout_ms)
{
	struct clock *clock = clock_real();
	/* Not the wall clock: a thread must not sleep for as long as that is set back. */
	int64_t until_us = clock->mono_us(clock) + (int64_t)timeout_ms * 1000;
	struct timespec until = {.tv_sec = (time_t)(until_us / 1000000),
				 .tv_nsec = (long)(until_us % 1000000) * 1000};
	pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &until);
}

static void queue_post(struct executor *executor, struct task *task)
{
	struct task_queue *queue = CONTAINER_OF(executor, struct task_queue, executor);
	task->next = NULL;
	pthread_mutex_lock(&queue->lock);
	if (queue->last)
		queue->last->next = task;
	else
		queue->first = task;
	queue->last = task;
	pthread_cond_signal(&queue->arrived);
	pthread_mutex_unlock(&queue->lock);
}

static void queue_wait(struct task_queue *queue)
{
	while (!queue->first)
		pthread_cond_wait(&queue->arrived, &queue->lock);
}

static void run_wake(UNUSED struct task *task)
{
}

void task_queue_init(struct task_queue *queue)
{
	*queue = (struct task_queue){
		.executor = {queue_post}, .wake = {.run = run_wake}, .wait = queue_wait};
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->arrived, NULL);
}

void task_queue_release(struct task_queue *queue)
{
	ASSERT(!queue->first || (queue->first == &queue->wake && queue->last == &queue->wake));
	pthread_mutex_destroy(&queue->lock);
	pthread_cond_destroy(&queue->arrived);
}

/* With the lock held; gives it back. */
static size_t run_all(struct task_queue *queue)
{
	struct task *task = queue->first;
	queue->first = queue->last = NULL;
	pthread_mutex_unlock(&queue->lock);
	size_t ran = 0;
	while (task) {
		struct task *next = task->next;
		task->run(task);
		task = next;
		ran++;
	}
	return ran;
}

size_t task_queue_run(struct task_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	return run_all(queue);
}

size_t task_queue_wait(struct task_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->wait(queue);
	return run_all(queue);
}

void task_queue_stop(struct task_queue *queue)
{
	if (!atomic_exchange(&queue->stopped, true))
		queue_post(&queue->executor, &queue->wake);
}

bool task_queue_is_stopped(const struct task_queue *queue)
{
	return atomic_load(&queue->stopped);
}

int task_queue_sleep(struct task_queue *queue, int64_t ms)
{
	struct clock *clock = clock_real();
	int64_t until_us = clock->mono_us(clock) + ms * 1000, left_us = ms * 1000;
	while (left_us > 0 && !task_queue_is_stopped(queue)) {
		int64_t wait_ms = (left_us + 999) / 1000;
		pthread_mutex_lock(&queue->lock);
		if (!queue->first)
			cond_wait_ms(&queue->arrived, &queue->lock,
				     wait_ms < SLEEP_MAX_MS ? (int)wait_ms : SLEEP_MAX_MS);
		run_all(queue);
		left_us = until_us - clock->mono_us(clock);
	}
	return task_queue_is_stopped(queue) ? ERR_CANCELLED : 0;
}

int task_queue_wait_for(struct task_queue *queue, const struct task_answer *answer)
{
	while (!answer->there)
		task_queue_wait(queue);
	return answer->err;
}
