#include "rollup/next_sample.h"

struct next_sample {
	struct series_walk *walk;
	next_sample_done *done;
	void *owner;
	struct store_read *read;
	struct store_request *request;
	int64_t ts_ms; /* as far as it is found */
};

static void on_found(struct store_read *read, int err);

struct next_sample *next_sample_new(struct series_walk *walk, next_sample_done *done, void *owner)
{
	struct next_sample *next = mem_zalloc(sizeof(*next));
	next->walk = walk;
	next->done = done;
	next->owner = owner;
	next->read = series_walk_read_new(walk, on_found, next);
	return next;
}

void next_sample_free(struct next_sample *next)
{
	store_read_free(next->read);
	mem_free(next);
}

void next_sample_find(struct next_sample *next, const struct store_range *where)
{
	store_read_reset(next->read);
	next->request = store_read_add(next->read, STORE_RANGE);
	ASSERT(next->request);
	next->request->range = *where;
	next->request->range.limit = 1;
	next->ts_ms = INT64_MAX;
	series_walk_submit(next->walk, next->read);
}

static void on_found(struct store_read *read, int err)
{
	struct next_sample *next = read->owner;
	const struct store_range *range = &next->request->range;
	for (size_t i = 0; i < range->handle_count && !err; i++) {
		if (range->points[i].count && range->points[i].ts_ms[0] < next->ts_ms)
			next->ts_ms = range->points[i].ts_ms[0];
	}
	if (next->request->more && !err)
		series_walk_submit(next->walk, read);
	else
		next->done(next->owner, err, next->ts_ms);
}
