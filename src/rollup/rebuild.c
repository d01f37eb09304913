#include "rollup/rebuild.h"

#include "base/fault.h"
#include "base/hash_set.h"
#include "base/stats.h"
#include "model/series.h"
#include "rollup/next_sample.h"
#include "rollup/partition.h"
#include "rollup/series_walk.h"

enum {
	GROUP_MAX = 256,   /* series at once */
	WINDOWS_MAX = 256, /* slots at once */
	READ_MAX_BYTES = 64 << 20,
	NAMES_MAX_BYTES = 8 << 20,
	SLOTS_MAX = 1 << 20, /* that are told apart */
};

struct member {
	struct slice tenant;
	struct series_set series_set;
	uint32_t partition;
	int64_t open_ms; /* of earlier slots some raw data may have gone */
	bool marked;
};

struct rollup_rebuild {
	struct rollup_rebuild_options options; /* but for tenant and metric, which the walk has */
	struct series_walk *walk;
	struct next_sample *next;
	struct store_read *read;
	struct store_request *request; /* the count */
	struct rollup_marking *marking;
	struct arena arena; /* names of the members */
	struct member members[GROUP_MAX];
	struct series_part part; /* of members: what is being read */
	bool late;               /* of these, late points, since raw data has been looked through */
	int64_t at_ms;           /* up to where these are done */
	size_t counted;          /* of these, those whose slots are known */
	struct rollup_touch *touches;
	size_t touch_count;
	struct hash_set slots;
	struct retention_memo memo;
	struct rollup_rebuild_result result, before; /* before: these members */
};

static void begin_group(void *owner);
static void on_found(void *owner, int err, int64_t next_ms);
static void on_counted(struct store_read *read, int err);
static void on_marked(void *owner, int err);
static void next_members(struct rollup_rebuild *r);
static void end(void *owner, int err);

/* ---- Life ------------------------------------------------------------------------------------ */

struct rollup_rebuild *rollup_rebuild_start(const struct rollup_rebuild_options *options)
{
	struct rollup_rebuild *r = mem_zalloc(sizeof(*r));
	r->options = *options;
	r->walk = series_walk_start(&(struct series_walk_options){.store = options->store,
								  .clock = options->clock,
								  .executor = options->executor,
								  .tenant = options->tenant,
								  .metric = options->metric,
								  .group_max = GROUP_MAX,
								  .read_max_bytes = READ_MAX_BYTES,
								  .group = begin_group,
								  .done = end,
								  .owner = r});
	r->next = next_sample_new(r->walk, on_found, r);
	r->read = series_walk_read_new(r->walk, on_counted, r);
	r->marking = rollup_marking_new(options->track, options->executor, on_marked, r);
	arena_init(&r->arena, NAMES_MAX_BYTES);
	r->touches = mem_alloc_array(GROUP_MAX * WINDOWS_MAX, sizeof(*r->touches));
	r->result.oldest_slot_s = INT64_MAX;
	return r;
}

void rollup_rebuild_free(struct rollup_rebuild *r)
{
	store_read_free(r->read);
	next_sample_free(r->next);
	series_walk_free(r->walk);
	rollup_marking_free(r->marking);
	arena_release(&r->arena);
	hash_set_release(&r->slots);
	retention_memo_release(&r->memo);
	mem_free(r->touches);
	mem_free(r);
}

void rollup_rebuild_cancel(struct rollup_rebuild *r)
{
	series_walk_cancel(r->walk);
}

struct rollup_rebuild_result rollup_rebuild_result(const struct rollup_rebuild *r)
{
	return r->result;
}

static void end(void *owner, int err)
{
	struct rollup_rebuild *r = owner;
	r->options.done(r->options.owner, err);
}

/* ---- Series ---------------------------------------------------------------------------------- */

static int64_t open_from_ms(struct rollup_rebuild *r, const struct store_series *series)
{
	const struct rollup_rebuild_options *o = &r->options;
	struct retention_fit fit =
		retention_find(o->retention_rules, &r->memo, series->tenant, series->metric);
	int64_t now_ms = clock_age_ms(o->clock);
	int64_t whole_ms =
		retention_whole_ms(o->retention_rules, fit.raw, o->raw_retention_ms, now_ms);
	return rollup_open_from_ms(now_ms, whole_ms, o->slot_ms, o->quiet_ms);
}

static int name_member(struct rollup_rebuild *r, const struct store_series *series,
		       struct member *m)
{
	struct tags tags;
	*m = (struct member){.tenant = arena_copy(&r->arena, series->tenant),
			     .open_ms = open_from_ms(r, series)};
	int err = m->tenant.data ? tags_decode(series->tags_text, &r->arena, &tags) : ERR_LIMIT;
	err = err ? err : series_walk_name(series, tags, &r->arena, &m->series_set);
	if (!err)
		m->partition = rollup_partition(m->tenant, m->series_set, r->options.partitions);
	return err;
}

static int name_members(struct rollup_rebuild *r, struct series_group group)
{
	int err = 0;
	arena_reset(&r->arena);
	for (size_t i = 0; i < group.count && !err; i++)
		err = name_member(r, &group.series[i], &r->members[i]);
	return err;
}

static void begin_group(void *owner)
{
	struct rollup_rebuild *r = owner;
	struct series_group group = series_walk_group(r->walk);
	int err = name_members(r, group);
	if (err) {
		end(r, err);
		return;
	}
	r->result.series += group.count;
	r->part = (struct series_part){0};
	next_members(r);
}

/* ---- Where there is something ---------------------------------------------------------------- */

static enum table table_of(const struct rollup_rebuild *r)
{
	return r->late ? TABLE_DATA_LATE : TABLE_DATA_RAW;
}

static const uint64_t *handles_of(const struct rollup_rebuild *r)
{
	return series_walk_group(r->walk).handles + r->part.from;
}

static void next_table(struct rollup_rebuild *r);

static void find_sample(struct rollup_rebuild *r)
{
	if (r->at_ms >= r->options.to_ms) {
		next_table(r);
		return;
	}
	next_sample_find(r->next, &(struct store_range){.table = table_of(r),
							.handles = handles_of(r),
							.handle_count = series_part_count(&r->part),
							.start_ms = r->at_ms,
							.end_ms = r->options.to_ms});
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
	size_t count = series_walk_group(r->walk).count;
	r->late = false;
	if (!series_part_next(&r->part, count)) {
		series_walk_next(r->walk);
		return;
	}
	r->at_ms = r->options.from_ms;
	r->before = r->result;
	find_sample(r);
}

/* What is damaged is left out, and only that. */
static void on_failed(struct rollup_rebuild *r, int err)
{
	if (err != ERR_DAMAGED) {
		end(r, err);
		return;
	}
	r->result = r->before;
	if (!series_part_again(&r->part))
		r->result.failed++;
	next_members(r);
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static void count_samples(struct rollup_rebuild *r, int64_t next_ms)
{
	int64_t slot_ms = r->options.slot_ms;
	int64_t start_ms = next_ms / slot_ms * slot_ms, end_ms = r->options.to_ms;
	if ((end_ms - start_ms) / slot_ms > WINDOWS_MAX)
		end_ms = start_ms + WINDOWS_MAX * slot_ms;
	store_read_reset(r->read);
	r->request = store_read_add(r->read, STORE_AGGREGATE);
	ASSERT(r->request);
	r->request->aggregate =
		(struct store_aggregate){.table = table_of(r),
					 .handles = handles_of(r),
					 .handle_count = series_part_count(&r->part),
					 .start_ms = start_ms,
					 .end_ms = end_ms,
					 .window_ms = slot_ms};
	r->counted = r->touch_count = 0;
	series_walk_submit(r->walk, r->read);
}

static void on_found(void *owner, int err, int64_t next_ms)
{
	struct rollup_rebuild *r = owner;
	if (err)
		on_failed(r, err);
	else if (next_ms == INT64_MAX)
		next_table(r);
	else
		count_samples(r, next_ms);
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
		const struct store_windows *windows = &answer->windows[r->counted];
		for (size_t i = 0; i < windows->count; i++) {
			int64_t begin_ms =
				answer->start_ms + (int64_t)windows->numbers[i] * answer->window_ms;
			struct member *m = &r->members[r->part.from + r->counted];
			if (r->late || begin_ms >= m->open_ms)
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
	int err = series_walk_cancelled(r->walk) ? ERR_CANCELLED : fault("rollup_rebuild");
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
		series_walk_submit(r->walk, r->read);
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
