#include "rollup/apply.h"

#include "base/fault.h"
#include "model/series.h"

enum {
	GROUP_MAX = 64, /* series of one slice: about those that lie in one group of the store */
	PLACES_MAX = 1 + ROLLUP_GRAINS_MAX,
	READ_MAX_BYTES = 8 << 20,
	WRITE_MAX_BYTES = 1 << 20,
};

/* Of one place and series. */
struct elsewhere {
	bool any;
	enum retention_class to;
	int64_t oldest_ms;
};

struct retention_apply {
	struct retention_apply_options options;
	char tenant[TENANT_MAX_BYTES], metric[METRIC_MAX_BYTES];
	struct task begin;
	struct store_read *list, *read;
	struct store_request *listed, *counted[PLACES_MAX];
	struct store_write *write;
	size_t places;           /* raw samples and the granularities */
	size_t have[PLACES_MAX]; /* series whose shares have been taken */
	uint64_t handles[GROUP_MAX];
	size_t count;
	struct elsewhere elsewhere[PLACES_MAX][GROUP_MAX];
	/* What is being moved: those of a place that belong to a class. */
	size_t place;
	int to;
	uint64_t moved[GROUP_MAX];
	size_t moved_count;
	int64_t at_ms;
	struct retention_memo memo;
	uint64_t failed;
	bool cancelled;
};

static void run_begin(struct task *task);
static void on_list(struct store_read *read, int err);
static void on_counted(struct store_read *read, int err);
static void on_moved(struct store_write *write, int err);

/* ---- Life ------------------------------------------------------------------------------------ */

static struct store_read *new_read(struct retention_apply *a, store_read_done *done)
{
	struct store_read *read = store_read_new(a->options.store, READ_MAX_BYTES);
	read->executor = a->options.executor;
	read->done = done;
	read->owner = a;
	return read;
}

static struct slice keep(char *to, size_t room, struct slice text)
{
	ASSERT(text.len <= room);
	if (text.len)
		memcpy(to, text.data, text.len);
	return (struct slice){to, text.len};
}

struct retention_apply *retention_apply_start(const struct retention_apply_options *options)
{
	struct retention_apply *a = mem_zalloc(sizeof(*a));
	a->options = *options;
	a->options.tenant = keep(a->tenant, sizeof(a->tenant), options->tenant);
	a->options.metric = keep(a->metric, sizeof(a->metric), options->metric);
	a->places = 1 + options->grains->count;
	a->list = new_read(a, on_list);
	a->read = new_read(a, on_counted);
	a->write = store_write_new(options->store, WRITE_MAX_BYTES);
	a->write->executor = options->executor;
	a->write->done = on_moved;
	a->write->owner = a;
	a->begin.run = run_begin;
	options->executor->post(options->executor, &a->begin);
	return a;
}

void retention_apply_free(struct retention_apply *a)
{
	store_read_free(a->list);
	store_read_free(a->read);
	store_write_free(a->write);
	retention_memo_release(&a->memo);
	mem_free(a);
}

void retention_apply_cancel(struct retention_apply *a)
{
	a->cancelled = true;
}

uint64_t retention_apply_failed(const struct retention_apply *a)
{
	return a->failed;
}

static void end(struct retention_apply *a, int err)
{
	a->options.done(a->options.owner, err);
}

static void submit(struct retention_apply *a, struct store_read *read)
{
	read->now_ms = clock_wall_ms(a->options.clock);
	int err = a->cancelled ? ERR_CANCELLED : store_read_submit(read);
	if (err)
		end(a, err);
}

/* ---- Series ---------------------------------------------------------------------------------- */

static void list_series(struct retention_apply *a, const struct store_token *token)
{
	struct store_token from = token ? *token : (struct store_token){0};
	store_read_reset(a->list);
	a->listed = store_read_add(a->list, STORE_SERIES_LIST);
	ASSERT(a->listed); /* the first of an empty arena */
	a->listed->series_list = (struct store_series_list){
		.tenant = a->options.tenant, .metric = a->options.metric, .limit = GROUP_MAX};
	a->listed->token = from;
	submit(a, a->list);
}

static void run_begin(struct task *task)
{
	list_series(CONTAINER_OF(task, struct retention_apply, begin), NULL);
}

static void list_next(struct retention_apply *a)
{
	if (a->listed->more)
		list_series(a, &a->listed->token);
	else
		end(a, 0);
}

static enum table table_of(size_t place)
{
	return place ? TABLE_DATA_DOWNSAMPLED : TABLE_DATA_RAW;
}

static int64_t period_of(const struct retention_apply *a, size_t place)
{
	return place ? a->options.grains->list[place - 1].width_ms : 0;
}

static void count_series(struct retention_apply *a)
{
	store_read_reset(a->read);
	for (size_t place = 0; place < a->places; place++) {
		struct store_request *request = store_read_add(a->read, STORE_SHARES);
		ASSERT(request);
		request->shares = (struct store_shares){.table = table_of(place),
							.period_ms = period_of(a, place),
							.handles = a->handles,
							.handle_count = a->count};
		a->counted[place] = request;
		a->have[place] = 0;
	}
	submit(a, a->read);
}

static void on_list(struct store_read *read, int err)
{
	struct retention_apply *a = read->owner;
	const struct store_series_list *list = &a->listed->series_list;
	if (err) {
		end(a, err);
		return;
	}
	a->count = list->count;
	for (size_t i = 0; i < list->count; i++)
		a->handles[i] = list->series[i].handle;
	if (a->count)
		count_series(a);
	else
		list_next(a);
}

/* ---- What lies elsewhere --------------------------------------------------------------------- */

static enum retention_class class_of(struct retention_apply *a, const struct store_series *series,
				     size_t place)
{
	const struct retention_apply_options *o = &a->options;
	struct retention_fit fit =
		retention_find(o->rules, &a->memo, series->tenant, series->metric);
	int64_t preset_ms = place ? o->grains->list[place - 1].retention_ms : o->raw_retention_ms;
	return retention_class_for(
		retention_keep_ms(o->rules, place ? fit.grains[place - 1] : fit.raw, preset_ms));
}

static void take_shares(struct retention_apply *a, size_t i, size_t place,
			const struct store_share *shares)
{
	struct elsewhere *e = &a->elsewhere[place][i];
	*e = (struct elsewhere){.to = class_of(a, &a->listed->series_list.series[i], place)};
	for (size_t c = 0; c < RETENTION_CLASSES; c++) {
		if (c == (size_t)e->to || !shares[c].samples)
			continue;
		if (!e->any || shares[c].oldest_ms < e->oldest_ms)
			e->oldest_ms = shares[c].oldest_ms;
		e->any = true;
	}
}

/* ---- Moving ---------------------------------------------------------------------------------- */

/* The series of the present place and class. */
static void choose(struct retention_apply *a)
{
	int64_t width_ms = schema_segment_ms(table_of(a->place), period_of(a, a->place));
	int64_t oldest_ms = INT64_MAX;
	a->moved_count = 0;
	for (size_t i = 0; i < a->count; i++) {
		const struct elsewhere *e = &a->elsewhere[a->place][i];
		if (!e->any || (int)e->to != a->to)
			continue;
		a->moved[a->moved_count++] = a->handles[i];
		oldest_ms = e->oldest_ms < oldest_ms ? e->oldest_ms : oldest_ms;
	}
	a->at_ms = a->moved_count ? floor_to(oldest_ms, width_ms) : INT64_MAX;
}

/* Up to now by segments, then what lies behind. */
static int add_slice(struct retention_apply *a)
{
	const struct retention_apply_options *o = &a->options;
	int64_t width_ms = schema_segment_ms(table_of(a->place), period_of(a, a->place));
	int64_t start_ms = a->at_ms, end_ms = start_ms + width_ms;
	if (start_ms > o->asof_ms)
		end_ms = STORE_TS_MAX;
	a->at_ms = end_ms == STORE_TS_MAX ? INT64_MAX : end_ms;
	store_write_reset(a->write);
	return store_rekey(a->write, table_of(a->place), period_of(a, a->place),
			   (enum retention_class)a->to, o->step, a->moved, a->moved_count, start_ms,
			   end_ms, o->asof_ms);
}

static void move_next(struct retention_apply *a)
{
	while (a->at_ms == INT64_MAX && a->place < a->places) {
		if (++a->to == RETENTION_CLASSES) {
			a->to = 0;
			a->place++;
		}
		if (a->place < a->places)
			choose(a);
	}
	if (a->place == a->places) {
		list_next(a);
		return;
	}
	int err = a->cancelled ? ERR_CANCELLED : fault("retention_apply");
	err = err ? err : add_slice(a);
	err = err ? err : store_write_submit(a->write);
	if (err)
		end(a, err);
}

static void on_moved(struct store_write *write, int err)
{
	struct retention_apply *a = write->owner;
	a->failed += err == ERR_DAMAGED;
	if (err && err != ERR_DAMAGED)
		end(a, err);
	else
		move_next(a);
}

static void on_counted(struct store_read *read, int err)
{
	struct retention_apply *a = read->owner;
	bool more = false;
	if (err) {
		end(a, err);
		return;
	}
	for (size_t place = 0; place < a->places; place++) {
		const struct store_shares *shares = &a->counted[place]->shares;
		for (size_t *i = &a->have[place]; *i < shares->next_handle; ++*i)
			take_shares(a, *i, place, &shares->list[*i * RETENTION_CLASSES]);
		more |= a->counted[place]->more;
	}
	if (more) {
		submit(a, a->read);
		return;
	}
	a->place = 0;
	a->to = -1;
	a->at_ms = INT64_MAX;
	move_next(a);
}
