#include "loop/pool.h"

#include "base/mem.h"

struct pool {
	pthread_mutex_t lock; /* guards all below but the threads */
	pthread_cond_t arrived;
	struct task *first, *last;
	size_t waiting, queue_max;
	bool closing;
	unsigned thread_count;
	pthread_t threads[];
};

/* The next task, or NULL when the pool is closing and nothing is left. */
static struct task *pool_take(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	while (!pool->first && !pool->closing)
		pthread_cond_wait(&pool->arrived, &pool->lock);
	struct task *task = pool->first;
	if (task) {
		pool->first = task->next;
		if (!pool->first)
			pool->last = NULL;
		pool->waiting--;
	}
	pthread_mutex_unlock(&pool->lock);
	return task;
}

static void *pool_work(void *arg)
{
	struct pool *pool = arg;
	for (struct task *task = pool_take(pool); task; task = pool_take(pool))
		task->run(task);
	return NULL;
}

struct pool *pool_new(unsigned threads, size_t queue_max, const char *name)
{
	ASSERT(threads >= 1);
	struct pool *pool = mem_zalloc(sizeof(*pool) + threads * sizeof(pool->threads[0]));
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->arrived, NULL);
	pool->queue_max = queue_max;
	pool->thread_count = threads;
	for (unsigned i = 0; i < threads; i++) {
		char shown[16]; /* what the kernel keeps */
		/* Fails only when the system has no room for a thread at the start: as good as no
		 * memory. */
		ASSERT(pthread_create(&pool->threads[i], NULL, pool_work, pool) == 0);
		snprintf(shown, sizeof(shown), "%.11s-%u", name, i % 1000);
		pthread_setname_np(pool->threads[i], shown);
	}
	return pool;
}

int pool_submit(struct pool *pool, struct task *task)
{
	int err = 0;
	task->next = NULL;
	pthread_mutex_lock(&pool->lock);
	if (pool->closing || pool->waiting >= pool->queue_max) {
		err = ERR_BUSY;
	} else {
		if (pool->last)
			pool->last->next = task;
		else
			pool->first = task;
		pool->last = task;
		pool->waiting++;
		pthread_cond_signal(&pool->arrived);
	}
	pthread_mutex_unlock(&pool->lock);
	return err;
}

void pool_close(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->closing = true;
	pthread_cond_broadcast(&pool->arrived);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned i = 0; i < pool->thread_count; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->arrived);
	pthread_mutex_destroy(&pool->lock);
	mem_free(pool);
}
