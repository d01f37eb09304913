/* A store asked by a thread that has nothing else to do: calls that wait for their completion, for
 * programs that test and measure. `die` is told what went wrong and does not return. */
#ifndef TOOLS_STORE_WAIT_H
#define TOOLS_STORE_WAIT_H

#include "base/clock.h"
#include "base/exec.h"
#include "base/mem.h"
#include "store/wait.h"

struct store_waiter {
	struct store *store;
	struct task_queue *queue;
	struct clock *clock;
	void (*die)(const char *what, int err);
};

static inline struct store_read *store_wait_new(const struct store_waiter *waiter, size_t max_bytes)
{
	struct store_read *read = store_read_new(waiter->store, max_bytes);

	read->now_ms = clock_wall_ms(waiter->clock);
	return read;
}

static inline void store_wait(const struct store_waiter *waiter, struct store_read *read)
{
	int err = store_read_wait(read, waiter->queue);
	if (err)
		waiter->die("read", err);
}

/* Of those from `first` on as many as one read takes; returns how many. */
static inline size_t store_wait_some_series(const struct store_waiter *waiter, const char *key,
					    const char *prefix, size_t first, size_t count,
					    const struct slice *metrics, size_t metric_count,
					    uint64_t *handles)
{
	enum { SERIES_MAX = 5000 };
	struct store_read *read = store_wait_new(waiter, 64 << 20);
	size_t added = 0;

	for (; added < count && added < SERIES_MAX; added++) {
		struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
		struct tag *tag = arena_zalloc(&read->arena, sizeof(*tag));
		char *name = arena_printf(&read->arena, "%s%zu", prefix, first + added);
		ASSERT(request && tag && name);
		*tag = (struct tag){slice_of(key), slice_of(name)};
		request->series_open = (struct store_series_open){.tenant = SLICE("default"),
								  .tags = {tag, 1},
								  .metrics = metrics,
								  .count = metric_count};
	}
	store_wait(waiter, read);
	for (struct store_request *r = read->requests; r; r = r->next, handles += metric_count)
		memcpy(handles, r->series_open.handles, metric_count * sizeof(*handles));
	store_read_free(read);
	return added;
}

/* Series of these metrics with one tag, `key` from 0 to count - 1 behind `prefix`; their handles
 * lie in handles[tag * metric_count + metric]. */
static inline void store_wait_series(const struct store_waiter *waiter, const char *key,
				     const char *prefix, size_t count, const struct slice *metrics,
				     size_t metric_count, uint64_t *handles)
{
	for (size_t i = 0; i < count;)
		i += store_wait_some_series(waiter, key, prefix, i, count - i, metrics,
					    metric_count, handles + i * metric_count);
}

#endif
