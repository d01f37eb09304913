#include "loop/thread.h"

#include <pthread.h>

#include "base/mem.h"

struct loop_thread {
	pthread_t thread;
	struct loop *loop;
};

static void *loop_thread_serve(void *arg)
{
	struct loop_thread *thread = arg;
	loop_run(thread->loop);
	return NULL;
}

struct loop_thread *loop_thread_new(const char *name)
{
	struct loop_thread *thread = mem_zalloc(sizeof(*thread));
	char shown[16]; /* what the kernel keeps */
	thread->loop = loop_new();
	/* Fails only when the system has no room for a thread: as good as no memory. */
	ASSERT(pthread_create(&thread->thread, NULL, loop_thread_serve, thread) == 0);
	snprintf(shown, sizeof(shown), "%.15s", name);
	pthread_setname_np(thread->thread, shown);
	return thread;
}

struct loop *loop_thread_loop(struct loop_thread *thread)
{
	return thread->loop;
}

void loop_thread_free(struct loop_thread *thread)
{
	loop_stop(thread->loop);
	pthread_join(thread->thread, NULL);
	loop_free(thread->loop);
	mem_free(thread);
}

void loop_thread_abandon(struct loop_thread *thread)
{
	pthread_detach(thread->thread);
}
