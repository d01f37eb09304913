#include "wire/zstd_thread.h"

#include <pthread.h>

#include "base/mem.h"

static pthread_key_t zstd_threads;
static pthread_once_t zstd_threads_once = PTHREAD_ONCE_INIT;

static void zstd_thread_free(void *owner)
{
	struct zstd_thread *thread = owner;
	for (size_t i = 0; i < PACKINGS; i++)
		ZSTD_freeCCtx(thread->packing[i]);
	ZSTD_freeDCtx(thread->unpacking);
	mem_free(thread);
}

static void zstd_threads_init(void)
{
	int err = pthread_key_create(&zstd_threads, zstd_thread_free);
	ASSERT(!err);
}

struct zstd_thread *zstd_of_thread(void)
{
	pthread_once(&zstd_threads_once, zstd_threads_init);
	struct zstd_thread *thread = pthread_getspecific(zstd_threads);
	if (thread)
		return thread;
	thread = mem_zalloc(sizeof(*thread));
	thread->unpacking = ZSTD_createDCtx();
	ASSERT(thread->unpacking && !pthread_setspecific(zstd_threads, thread));
	return thread;
}
