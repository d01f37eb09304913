/* A function that waits on a task queue (store/wait.h), on a thread of its own that a test lets go
 * on a step at a time: from one wait to the next. Only one of the two runs at any time, so that the
 * test decides all that happens between two steps. */
#ifndef TESTS_UNIT_STEPPED_H
#define TESTS_UNIT_STEPPED_H

#include "base/exec.h"

enum stepped_turn { TURN_TEST, TURN_WORK, TURN_OVER };

struct stepped {
	struct task_queue queue;
	void (*run)(struct task_queue *queue, void *owner);
	void *owner;
	pthread_t thread;
	pthread_mutex_t lock; /* guards the turn */
	pthread_cond_t turned;
	enum stepped_turn turn;
	bool begun;
};

/* Gives the turn away, and takes it back when it comes. */
static inline void stepped_give(struct stepped *s, enum stepped_turn to)
{
	pthread_mutex_lock(&s->lock);
	s->turn = to;
	pthread_cond_broadcast(&s->turned);
	while (to == TURN_TEST && s->turn != TURN_WORK)
		pthread_cond_wait(&s->turned, &s->lock);
	while (to == TURN_WORK && s->turn == TURN_WORK)
		pthread_cond_wait(&s->turned, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static inline void stepped_wait(struct task_queue *queue)
{
	struct stepped *s = CONTAINER_OF(queue, struct stepped, queue);
	do {
		pthread_mutex_unlock(&queue->lock);
		stepped_give(s, TURN_TEST);
		pthread_mutex_lock(&queue->lock);
	} while (!queue->first);
}

static inline void *stepped_main(void *argument)
{
	struct stepped *s = argument;
	pthread_mutex_lock(&s->lock);
	while (s->turn != TURN_WORK)
		pthread_cond_wait(&s->turned, &s->lock);
	pthread_mutex_unlock(&s->lock);
	s->run(&s->queue, s->owner);
	stepped_give(s, TURN_OVER);
	return NULL;
}

/* It begins with the first step. */
static inline void stepped_start(struct stepped *s,
				 void (*run)(struct task_queue *queue, void *owner), void *owner)
{
	*s = (struct stepped){.run = run, .owner = owner, .turn = TURN_TEST};
	task_queue_init(&s->queue);
	s->queue.wait = stepped_wait;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->turned, NULL);
	ASSERT(pthread_create(&s->thread, NULL, stepped_main, s) == 0);
}

/* A step would do something. */
static inline bool stepped_ready(struct stepped *s)
{
	return s->turn != TURN_OVER && (!s->begun || s->queue.first);
}

/* False: it is over. */
static inline bool stepped_step(struct stepped *s)
{
	if (s->turn == TURN_OVER)
		return false;
	s->begun = true;
	stepped_give(s, TURN_WORK);
	return s->turn != TURN_OVER;
}

/* When it is over. */
static inline void stepped_release(struct stepped *s)
{
	ASSERT(s->turn == TURN_OVER);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->turned);
	pthread_mutex_destroy(&s->lock);
	task_queue_release(&s->queue);
}

#endif
