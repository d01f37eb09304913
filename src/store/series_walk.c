#include "store/series_walk.h"

#include "base/buf.h"
#include "store/wait.h"

enum { SERIES_SET_MAX_BYTES = 2 * METRIC_MAX_BYTES + TAGS_TEXT_MAX_BYTES + 1 };

struct series_walk {
	struct series_walk_options options;
	struct store_read *list;
	struct store_request *listed; /* NULL: no list was read */
	uint64_t *handles;
	/* The group within the list: the store gives more than it was asked for where many series
	 * are being registered. */
	size_t from, count;
};

struct series_walk *series_walk_new(const struct series_walk_options *options)
{
	struct series_walk *walk = mem_zalloc(sizeof(*walk));
	walk->options = *options;
	walk->list = store_read_new(options->store, options->list_max_bytes);
	walk->handles = mem_alloc_array(options->group_max, sizeof(*walk->handles));
	return walk;
}

void series_walk_free(struct series_walk *walk)
{
	store_read_free(walk->list);
	mem_free(walk->handles);
	mem_free(walk);
}

int series_walk_read(const struct series_walk *walk, struct store_read *read)
{
	read->now_ms = clock_age_ms(walk->options.clock);
	return store_read_wait(read, walk->options.queue);
}

/* The list after the last one, or the first. */
static int series_walk_list(struct series_walk *walk)
{
	const struct series_walk_options *o = &walk->options;
	struct store_token token = walk->listed ? walk->listed->token : (struct store_token){0};
	store_read_reset(walk->list);
	walk->listed = store_read_add(walk->list, STORE_SERIES_LIST);
	ASSERT(walk->listed); /* the first of an empty arena */
	walk->listed->series_list = (struct store_series_list){
		.tenant = o->tenant, .metric = o->metric, .limit = o->group_max};
	walk->listed->token = token;
	walk->from = walk->count = 0;
	return series_walk_read(walk, walk->list);
}

int series_walk_next(struct series_walk *walk, struct series_group *group)
{
	walk->from += walk->count;
	walk->count = 0;
	while (!walk->listed ||
	       (walk->from == walk->listed->series_list.count && walk->listed->more)) {
		int err = series_walk_list(walk);
		if (err)
			return err;
	}
	const struct store_series_list *list = &walk->listed->series_list;
	size_t left = list->count - walk->from;
	walk->count = left < walk->options.group_max ? left : walk->options.group_max;
	for (size_t i = 0; i < walk->count; i++)
		walk->handles[i] = list->series[walk->from + i].handle;
	*group = (struct series_group){list->series + walk->from, walk->handles, walk->count};
	return 0;
}

int series_walk_next_sample(const struct series_walk *walk, struct store_read *read,
			    const struct store_range *range, int64_t *ts_ms)
{
	store_read_reset(read);
	struct store_request *request = store_read_add(read, STORE_RANGE);
	ASSERT(request); /* the first of an empty arena */
	request->range = *range;
	request->range.limit = 1;
	*ts_ms = INT64_MAX;
	do {
		int err = series_walk_read(walk, read);
		if (err)
			return err;
		for (size_t i = 0; i < range->handle_count; i++) {
			const struct store_points *points = &request->range.points[i];
			if (points->count && points->ts_ms[0] < *ts_ms)
				*ts_ms = points->ts_ms[0];
		}
	} while (request->more);
	return 0;
}

int series_walk_name(const struct store_series *series, struct tags tags, struct arena *arena,
		     struct series_set *to)
{
	struct buf text;
	buf_init(&text, SERIES_SET_MAX_BYTES);
	int err = series_set_encode(series->metric, tags, &text);
	struct slice copy = arena_copy(arena, buf_slice(&text));
	if (!err && !copy.data)
		err = ERR_LIMIT;
	*to = series_set_split(copy);
	buf_release(&text);
	return err;
}
