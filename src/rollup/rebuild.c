#include "rollup/rebuild.h"

#include "base/fault.h"
#include "base/hash_set.h"
#include "base/stats.h"
#include "model/series.h"
#include "rollup/partition.h"

enum {
	GROUP_MAX = 256,   /* series at once */
	WINDOWS_MAX = 256, /* slots at once */
	READ_MAX_BYTES = 64 << 20,
	NAMES_MAX_BYTES = 8 << 20,
	SERIES_SET_MAX_BYTES = 2 * METRIC_MAX_BYTES + TAGS_TEXT_MAX_BYTES + 1,
	SLOTS_MAX = 1 << 20, /* that are told apart */
};

struct member {
	struct slice tenant, series_set;
	uint32_t partition;
	int64_t open_ms; /* of earlier slots some raw data may have gone */
	bool marked;
};

struct rollup_rebuild {
	struct rollup_rebuild_options options;
	char tenant[TENANT_MAX_BYTES], metric[METRIC_MAX_BYTES];
	struct task begin;
	struct store_read *list, *read;
	struct store_request *listed, *request;
	struct rollup_marking *marking;
	struct arena arena; /* names of the members */
	struct member members[GROUP_MAX];
	uint64_t handles[GROUP_MAX];
	size_t count;
	size_t from, to; /* of members: what is being read */
	bool late;       /* of these, late points, since raw data has been looked through */
	bool one_by_one;
	int64_t at_ms;   /* up to where these are done */
	int64_t next_ms; /* their next sample, as far as it is found */
	size_t counted;  /* of these, those whose slots are known */
	struct rollup_touch *touches;
	size_t touch_count;
	struct hash_set slots;
	struct retention_memo memo;
	struct rollup_rebuild_result result, before; /* before: these members */
	bool cancelled;
};

static void run_begin(struct task *task);
static void on_list(struct store_read *read, int err);
static void on_found(struct store_read *read, int err);
static void on_counted(struct store_read *read, int err);
static void on_marked(void *owner, int err);
static void next_members(struct rollup_rebuild *r);

/* ---- Life ------------------------------------------------------------------------------------ */

static struct store_read *new_read(struct rollup_rebuild *r, store_read_done *done)
{
	struct store_read *read = store_read_new(r->options.store, READ_MAX_BYTES);
	read->executor = r->options.executor;
	read->done = done;
	read->owner = r;
	return read;
}

static struct slice keep(char *to, size_t room, struct slice text)
{
	ASSERT(text.len <= room);
	if (text.len)
		memcpy(to, text.data, text.len);
	return (struct slice){to, text.len};
}

struct rollup_rebuild *rollup_rebuild_start(const struct rollup_rebuild_options *options)
{
	struct rollup_rebuild *r = mem_zalloc(sizeof(*r));
	r->options = *options;
	r->options.tenant = keep(r->tenant, sizeof(r->tenant), options->tenant);
	r->options.metric = keep(r->metric, sizeof(r->metric), options->metric);
	r->list = new_read(r, on_list);
	r->read = new_read(r, on_found);
	r->marking = rollup_marking_new(options->track, options->executor, on_marked, r);
	arena_init(&r->arena, NAMES_MAX_BYTES);
	r->touches = mem_alloc_array(GROUP_MAX * WINDOWS_MAX, sizeof(*r->touches));
	r->result.oldest_slot_s = INT64_MAX;
	r->begin.run = run_begin;
	options->executor->post(options->executor, &r->begin);
	return r;
}

void rollup_rebuild_free(struct rollup_rebuild *r)
{
	store_read_free(r->list);
	store_read_free(r->read);
	rollup_marking_free(r->marking);
	arena_release(&r->arena);
	hash_set_release(&r->slots);
	retention_memo_release(&r->memo);
	mem_free(r->touches);
	mem_free(r);
}

void rollup_rebuild_cancel(struct rollup_rebuild *r)
{
	r->cancelled = true;
}

struct rollup_rebuild_result rollup_rebuild_result(const struct rollup_rebuild *r)
{
	return r->result;
}

static void end(struct rollup_rebuild *r, int err)
{
	r->options.done(r->options.owner, err);
}

static void submit_read(struct rollup_rebuild *r, struct store_read *read)
{
	read->now_ms = clock_wall_ms(r->options.clock);
	int err = r->cancelled ? ERR_CANCELLED : store_read_submit(read);
	if (err)
		end(r, err);
}

/* ---- Series ---------------------------------------------------------------------------------- */

static int64_t open_from_ms(struct rollup_rebuild *r, const struct store_series *series)
{
	const struct rollup_rebuild_options *o = &r->options;
	struct retention_fit fit =
		retention_find(o->retention_rules, &r->memo, series->tenant, series->metric);
	int64_t now_ms = clock_wall_ms(o->clock);
	int64_t whole_ms =
		retention_whole_ms(o->retention_rules, fit.raw, o->raw_retention_ms, now_ms);
	return rollup_open_from_ms(now_ms, whole_ms, o->slot_ms, o->quiet_ms);
}

static int name_member(struct rollup_rebuild *r, const struct store_series *series,
		       struct member *m)
{
	struct tags tags;
	struct buf text;
	int err = tags_decode(series->tags_text, &r->arena, &tags);
	buf_init(&text, SERIES_SET_MAX_BYTES);
	if (!err)
		err = series_set_encode(series->metric, tags, &text);
	*m = (struct member){.open_ms = open_from_ms(r, series)};
	if (!err) {
		m->tenant = arena_copy(&r->arena, series->tenant);
		m->series_set = arena_copy(&r->arena, buf_slice(&text));
		if (!m->tenant.data || !m->series_set.data)
			err = ERR_LIMIT;
		else
			m->partition =
				rollup_partition(m->tenant, m->series_set, r->options.partitions);
	}
	buf_release(&text);
	return err;
}

static int take_series(struct rollup_rebuild *r)
{
	const struct store_series_list *list = &r->listed->series_list;
	arena_reset(&r->arena);
	r->count = 0;
	for (size_t i = 0; i < list->count; i++) {
		int err = name_member(r, &list->series[i], &r->members[r->count]);
		if (err)
			return err;
		r->handles[r->count++] = list->series[i].handle;
	}
	r->result.series += r->count;
	r->from = r->to = 0;
	r->one_by_one = false;
	return 0;
}

static void on_list(struct store_read *read, int err)
{
	struct rollup_rebuild *r = read->owner;
	if (!err)
		err = take_series(r);
	if (err)
		end(r, err);
	else
		next_members(r);
}

static void list_series(struct rollup_rebuild *r, struct store_token token)
{
	store_read_reset(r->list);
	r->listed = store_read_add(r->list, STORE_SERIES_LIST);
	ASSERT(r->listed); /* the first of an empty arena */
	r->listed->series_list = (struct store_series_list){
		.tenant = r->options.tenant, .metric = r->options.metric, .limit = GROUP_MAX};
	r->listed->token = token;
	submit_read(r, r->list);
}

static void run_begin(struct task *task)
{
	struct rollup_rebuild *r = CONTAINER_OF(task, struct rollup_rebuild, begin);
	list_series(r, (struct store_token){0});
}

/* ---- Where there is something ---------------------------------------------------------------- */

static enum table table_of(const struct rollup_rebuild *r)
{
	return r->late ? TABLE_DATA_LATE : TABLE_DATA_RAW;
}

static void next_table(struct rollup_rebuild *r);

static void find_sample(struct rollup_rebuild *r)
{
	if (r->at_ms >= r->options.to_ms) {
		next_table(r);
		return;
	}
	store_read_reset(r->read);
	r->read->done = on_found;
	r->request = store_read_add(r->read, STORE_RANGE);
	ASSERT(r->request);
	r->request->range = (struct store_range){.table = table_of(r),
						 .handles = r->handles + r->from,
						 .handle_count = r->to - r->from,
						 .start_ms = r->at_ms,
						 .end_ms = r->options.to_ms,
						 .limit = 1};
	r->next_ms = INT64_MAX;
	submit_read(r, r->read);
}

/* Of these members raw data, then late points, then others. */
static void next_table(struct rollup_rebuild *r)
{
	if (!r->options.with_late || r->late) {
		next_members(r);
		return;
	}
	r->late = true;
	r->at_ms = r->options.from_ms;
	find_sample(r);
}

static void next_members(struct rollup_rebuild *r)
{
	r->late = false;
	r->from = r->to;
	if (r->from < r->count) {
		r->to = r->one_by_one ? r->from + 1 : r->count;
		r->at_ms = r->options.from_ms;
		r->before = r->result;
		find_sample(r);
	} else if (r->listed->more) {
		list_series(r, r->listed->token);
	} else {
		end(r, 0);
	}
}

/* What is damaged is left out, and only that. */
static void on_failed(struct rollup_rebuild *r, int err)
{
	if (err != ERR_DAMAGED) {
		end(r, err);
		return;
	}
	r->result = r->before;
	if (r->to - r->from > 1) {
		r->one_by_one = true;
		r->to = r->from;
	} else {
		r->result.failed++;
	}
	next_members(r);
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static void count_samples(struct rollup_rebuild *r)
{
	int64_t slot_ms = r->options.slot_ms;
	int64_t start_ms = r->next_ms / slot_ms * slot_ms, end_ms = r->options.to_ms;
	if ((end_ms - start_ms) / slot_ms > WINDOWS_MAX)
		end_ms = start_ms + WINDOWS_MAX * slot_ms;
	store_read_reset(r->read);
	r->read->done = on_counted;
	r->request = store_read_add(r->read, STORE_AGGREGATE);
	ASSERT(r->request);
	r->request->aggregate = (struct store_aggregate){.table = table_of(r),
							 .handles = r->handles + r->from,
							 .handle_count = r->to - r->from,
							 .start_ms = start_ms,
							 .end_ms = end_ms,
							 .window_ms = slot_ms};
	r->counted = r->touch_count = 0;
	submit_read(r, r->read);
}

static void on_found(struct store_read *read, int err)
{
	struct rollup_rebuild *r = read->owner;
	const struct store_range *range = &r->request->range;
	if (err) {
		on_failed(r, err);
		return;
	}
	for (size_t i = 0; i < range->handle_count; i++) {
		if (range->points[i].count && range->points[i].ts_ms[0] < r->next_ms)
			r->next_ms = range->points[i].ts_ms[0];
	}
	if (r->request->more)
		submit_read(r, r->read);
	else if (r->next_ms == INT64_MAX)
		next_table(r);
	else
		count_samples(r);
}

static void add_touch(struct rollup_rebuild *r, struct member *m, int64_t slot_s)
{
	struct hash128 hash = {.low = (uint64_t)slot_s, .high = 1};
	r->touches[r->touch_count++] = (struct rollup_touch){
		.slot = {slot_s, m->partition}, .tenant = m->tenant, .series_set = m->series_set};
	r->result.marked += !m->marked;
	m->marked = true;
	r->result.marks++;
	r->result.slots += hash_set_add(&r->slots, hash, SLOTS_MAX);
	if (slot_s < r->result.oldest_slot_s)
		r->result.oldest_slot_s = slot_s;
	if (slot_s > r->result.newest_slot_s)
		r->result.newest_slot_s = slot_s;
}

static void take_counts(struct rollup_rebuild *r)
{
	const struct store_aggregate *answer = &r->request->aggregate;
	for (; r->counted < answer->next_handle; r->counted++) {
		const struct store_summary *sums =
			answer->summaries + r->counted * answer->window_count;
		for (size_t w = 0; w < answer->window_count; w++) {
			int64_t begin_ms = answer->start_ms + (int64_t)w * answer->window_ms;
			struct member *m = &r->members[r->from + r->counted];
			if (sums[w].count && (r->late || begin_ms >= m->open_ms))
				add_touch(r, m, begin_ms / 1000);
		}
	}
}

/* ---- Marks ----------------------------------------------------------------------------------- */

static void go_on(struct rollup_rebuild *r)
{
	r->at_ms = r->request->aggregate.end_ms;
	find_sample(r);
}

static void write_marks(struct rollup_rebuild *r)
{
	int err = r->cancelled ? ERR_CANCELLED : fault("rollup_rebuild");
	if (!err && (r->options.only_count || !r->touch_count)) {
		go_on(r);
		return;
	}
	if (!err)
		err = rollup_marking_begin(r->marking, clock_wall_ms(r->options.clock), r->touches,
					   r->touch_count);
	if (err)
		end(r, err);
}

static void on_counted(struct store_read *read, int err)
{
	struct rollup_rebuild *r = read->owner;
	if (err) {
		on_failed(r, err);
		return;
	}
	take_counts(r);
	if (r->request->more) {
		submit_read(r, r->read);
		return;
	}
	rollup_touches_sort(r->touches, r->touch_count);
	write_marks(r);
}

static void on_marked(void *owner, int err)
{
	struct rollup_rebuild *r = owner;
	if (err) {
		end(r, err);
		return;
	}
	stat_add(STAT_rollup_marks_added, (int64_t)r->touch_count);
	go_on(r);
}
