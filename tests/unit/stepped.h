/* A function that waits on a task queue (store/wait.h), and that a test lets go on a step at a
 * time: from one wait to the next. It has a stack of its own on the test's thread, so that the test
 * decides all that happens between two steps. What it waits for must come from the same thread, or
 * be there before it is given a step. */
#ifndef TESTS_UNIT_STEPPED_H
#define TESTS_UNIT_STEPPED_H

#include <sys/mman.h>
#include <ucontext.h>

#include "base/exec.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

enum { STEPPED_STACK_BYTES = 1 << 20 };

struct stepped {
	struct task_queue queue;
	void (*run)(struct task_queue *queue, void *owner);
	void *owner;
	ucontext_t work, test;
	char *stack;
	bool begun, over;
	/* The sanitizer's: of the function; of the test, and where its stack lies. */
	void *work_fake, *test_fake;
	const void *test_bottom;
	size_t test_size;
};

static inline void stepped_arrived(struct stepped *s)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(s->work_fake, &s->test_bottom, &s->test_size);
#else
	(void)s;
#endif
}

/* On its stack: ends the step, and begins the next one. */
static inline void stepped_yield(struct stepped *s)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(s->over ? NULL : &s->work_fake, s->test_bottom,
				       s->test_size);
#endif
	swapcontext(&s->work, &s->test);
	stepped_arrived(s);
}

static inline void stepped_wait(struct task_queue *queue)
{
	struct stepped *s = CONTAINER_OF(queue, struct stepped, queue);
	do {
		pthread_mutex_unlock(&queue->lock);
		stepped_yield(s);
		pthread_mutex_lock(&queue->lock);
	} while (!queue->first);
}

/* makecontext() hands on ints. */
static inline void stepped_main(unsigned high, unsigned low)
{
	struct stepped *s = (struct stepped *)((uintptr_t)high << 32 | low);
	stepped_arrived(s);
	s->run(&s->queue, s->owner);
	s->over = true;
	stepped_yield(s);
}

/* It begins with the first step. */
static inline void stepped_start(struct stepped *s,
				 void (*run)(struct task_queue *queue, void *owner), void *owner)
{
	char *stack = mmap(NULL, STEPPED_STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	ASSERT(stack != MAP_FAILED);
	*s = (struct stepped){.run = run, .owner = owner, .stack = stack};
	task_queue_init(&s->queue);
	s->queue.wait = stepped_wait;
	getcontext(&s->work);
	s->work.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STEPPED_STACK_BYTES};
	makecontext(&s->work, (void (*)(void))stepped_main, 2, (unsigned)((uintptr_t)s >> 32),
		    (unsigned)(uintptr_t)s);
}

static inline bool stepped_over(const struct stepped *s)
{
	return s->over;
}

/* A step would do something. */
static inline bool stepped_ready(const struct stepped *s)
{
	return !s->over && (!s->begun || s->queue.first);
}

/* False: it was over. */
static inline bool stepped_step(struct stepped *s)
{
	if (s->over)
		return false;
	s->begun = true;
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(&s->test_fake, s->stack, STEPPED_STACK_BYTES);
#endif
	swapcontext(&s->test, &s->work);
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(s->test_fake, NULL, NULL);
#endif
	return true;
}

/* When it is over. */
static inline void stepped_release(struct stepped *s)
{
	ASSERT(s->over);
	munmap(s->stack, STEPPED_STACK_BYTES);
	task_queue_release(&s->queue);
}

#endif
