#include "rollup/series_walk.h"

#include "base/buf.h"

enum { SERIES_SET_MAX_BYTES = 2 * METRIC_MAX_BYTES + TAGS_TEXT_MAX_BYTES + 1 };

struct series_walk {
	struct series_walk_options options;
	char tenant[TENANT_MAX_BYTES], metric[METRIC_MAX_BYTES];
	struct task task; /* begins, or goes on within the list */
	struct store_read *list;
	struct store_request *listed;
	uint64_t *handles;
	/* The group within the list: the store gives more than it was asked for where many series
	 * are being registered. */
	size_t from, count;
	bool cancelled;
};

static void run_begin(struct task *task);
static void on_list(struct store_read *read, int err);

/* ---- Life ------------------------------------------------------------------------------------ */

static struct slice keep(char *to, size_t room, struct slice text)
{
	ASSERT(text.len <= room);
	if (text.len)
		memcpy(to, text.data, text.len);
	return (struct slice){to, text.len};
}

struct series_walk *series_walk_start(const struct series_walk_options *options)
{
	struct series_walk *walk = mem_zalloc(sizeof(*walk));
	walk->options = *options;
	walk->options.tenant = keep(walk->tenant, sizeof(walk->tenant), options->tenant);
	walk->options.metric = keep(walk->metric, sizeof(walk->metric), options->metric);
	walk->list = series_walk_read_new(walk, on_list, walk);
	walk->handles = mem_alloc_array(options->group_max, sizeof(*walk->handles));
	walk->task.run = run_begin;
	options->executor->post(options->executor, &walk->task);
	return walk;
}

void series_walk_free(struct series_walk *walk)
{
	store_read_free(walk->list);
	mem_free(walk->handles);
	mem_free(walk);
}

void series_walk_cancel(struct series_walk *walk)
{
	walk->cancelled = true;
}

bool series_walk_cancelled(const struct series_walk *walk)
{
	return walk->cancelled;
}

static void end(struct series_walk *walk, int err)
{
	walk->options.done(walk->options.owner, err);
}

/* ---- Reads ----------------------------------------------------------------------------------- */

struct store_read *series_walk_read_new(const struct series_walk *walk, store_read_done *done,
					void *owner)
{
	struct store_read *read = store_read_new(walk->options.store, walk->options.read_max_bytes);
	read->executor = walk->options.executor;
	read->done = done;
	read->owner = owner;
	return read;
}

void series_walk_submit(struct series_walk *walk, struct store_read *read)
{
	read->now_ms = clock_age_ms(walk->options.clock);
	int err = walk->cancelled ? ERR_CANCELLED : store_read_submit(read);
	if (err)
		end(walk, err);
}

/* ---- Series ---------------------------------------------------------------------------------- */

static void list_series(struct series_walk *walk, struct store_token token)
{
	const struct series_walk_options *o = &walk->options;
	store_read_reset(walk->list);
	walk->listed = store_read_add(walk->list, STORE_SERIES_LIST);
	ASSERT(walk->listed); /* the first of an empty arena */
	walk->listed->series_list = (struct store_series_list){
		.tenant = o->tenant, .metric = o->metric, .limit = o->group_max};
	walk->listed->token = token;
	series_walk_submit(walk, walk->list);
}

static void run_begin(struct task *task)
{
	list_series(CONTAINER_OF(task, struct series_walk, task), (struct store_token){0});
}

/* The series from `from` on, as many as a group has. */
static void give_group(struct series_walk *walk)
{
	const struct store_series_list *list = &walk->listed->series_list;
	size_t left = list->count - walk->from;
	walk->count = left < walk->options.group_max ? left : walk->options.group_max;
	for (size_t i = 0; i < walk->count; i++)
		walk->handles[i] = list->series[walk->from + i].handle;
	walk->options.group(walk->options.owner);
}

static void run_group(struct task *task)
{
	struct series_walk *walk = CONTAINER_OF(task, struct series_walk, task);
	if (walk->cancelled)
		end(walk, ERR_CANCELLED);
	else
		give_group(walk);
}

void series_walk_next(struct series_walk *walk)
{
	walk->from += walk->count;
	if (walk->from < walk->listed->series_list.count) {
		walk->task.run = run_group;
		walk->options.executor->post(walk->options.executor, &walk->task);
	} else if (walk->listed->more) {
		list_series(walk, walk->listed->token);
	} else {
		end(walk, 0);
	}
}

static void on_list(struct store_read *read, int err)
{
	struct series_walk *walk = read->owner;
	walk->from = walk->count = 0;
	if (err)
		end(walk, err);
	else if (walk->listed->series_list.count)
		give_group(walk);
	else
		series_walk_next(walk);
}

struct series_group series_walk_group(const struct series_walk *walk)
{
	const struct store_series_list *list = &walk->listed->series_list;
	return (struct series_group){list->series + walk->from, walk->handles, walk->count};
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
