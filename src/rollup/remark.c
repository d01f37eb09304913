#include "rollup/remark.h"

#include "base/fault.h"
#include "base/hash_set.h"
#include "base/stats.h"
#include "lease/partition.h"
#include "model/series.h"
#include "store/series_walk.h"

enum {
	GROUP_MAX = 256,   /* series at once */
	WINDOWS_MAX = 256, /* slots at once */
	READ_MAX_BYTES = 64 << 20,
	NAMES_MAX_BYTES = 8 << 20,
	SLOTS_MAX = 1 << 20, /* that are told apart */
};

struct remark_member {
	struct slice tenant;
	struct series_set series_set;
	uint32_t partition;
	int64_t open_ms; /* of earlier slots some raw data may have gone */
	bool marked;
};

struct remarking {
	const struct remark_options *options;
	struct series_walk *walk;
	struct store_read *read;
	struct arena arena; /* names of the members */
	struct remark_member members[GROUP_MAX];
	struct series_group group;
	struct series_part part; /* of members: what is being read */
	struct mark_touch *touches;
	size_t touch_count;
	struct hash_set slots;
	struct retention_memo memo;
	struct remark_result *result;
};

/* ---- Series ---------------------------------------------------------------------------------- */

static int remark_name_member(struct remarking *r, const struct store_series *series,
			      struct remark_member *m)
{
	const struct rollup_site *site = r->options->site;
	struct tags tags;
	const struct retention_rules *rules = rollup_site_rules(site);
	struct retention_fit fit = retention_find(rules, &r->memo, series->tenant, series->metric);
	*m = (struct remark_member){
		.tenant = arena_copy(&r->arena, series->tenant),
		.open_ms = rollup_site_open_from_ms(site, rollup_site_whole_ms(site, rules, fit))};
	int err = m->tenant.data ? tags_decode(series->tags_text, &r->arena, &tags) : ERR_LIMIT;
	err = err ? err : series_walk_name(series, tags, &r->arena, &m->series_set);
	if (!err)
		m->partition = partition_of(m->tenant, m->series_set, site->partitions);
	return err;
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static void remark_add_touch(struct remarking *r, struct remark_member *m, int64_t slot_s)
{
	struct hash128 hash = {.low = (uint64_t)slot_s, .high = 1};
	struct remark_result *result = r->result;
	r->touches[r->touch_count++] = (struct mark_touch){
		.slot = {slot_s, m->partition}, .tenant = m->tenant, .series_set = m->series_set};
	result->marked += !m->marked;
	m->marked = true;
	result->marks++;
	result->slots += hash_set_add(&r->slots, hash, SLOTS_MAX);
	if (slot_s < result->oldest_slot_s)
		result->oldest_slot_s = slot_s;
	if (slot_s > result->newest_slot_s)
		result->newest_slot_s = slot_s;
}

/* Touches of the slots of the members from *counted on, as far as they have been counted. */
static void remark_take_counts(struct remarking *r, const struct store_aggregate *answer,
			       size_t *counted)
{
	for (; *counted < answer->next_handle; ++*counted) {
		const struct store_windows *windows = &answer->windows[*counted];
		struct remark_member *m = &r->members[r->part.from + *counted];
		for (size_t i = 0; i < windows->count; i++) {
			int64_t begin_ms =
				answer->start_ms + (int64_t)windows->numbers[i] * answer->window_ms;
			if (answer->table == TABLE_DATA_LATE || begin_ms >= m->open_ms)
				remark_add_touch(r, m, begin_ms / 1000);
		}
	}
}

/* Counts samples by slots, from start_ms on for some slots, up to *end_ms. */
static int remark_count(struct remarking *r, struct store_range *range, int64_t *end_ms)
{
	int64_t slot_ms = r->options->site->granularities.slot_ms;
	size_t counted = 0;
	*end_ms = range->end_ms;
	if ((*end_ms - range->start_ms) / slot_ms > WINDOWS_MAX)
		*end_ms = range->start_ms + WINDOWS_MAX * slot_ms;
	store_read_reset(r->read);
	struct store_request *request = store_read_add(r->read, STORE_AGGREGATE);
	ASSERT(request); /* the first of an empty arena */
	request->aggregate = (struct store_aggregate){.table = range->table,
						      .handles = range->handles,
						      .handle_count = range->handle_count,
						      .start_ms = range->start_ms,
						      .end_ms = *end_ms,
						      .window_ms = slot_ms};
	r->touch_count = 0;
	do {
		int err = series_walk_read(r->walk, r->read);
		if (err)
			return err;
		remark_take_counts(r, &request->aggregate, &counted);
	} while (request->more);
	return 0;
}

static int remark_mark(struct remarking *r)
{
	const struct remark_options *o = r->options;
	int err = fault("remark");
	if (err || o->only_count || !r->touch_count)
		return err;
	mark_touches_sort(r->touches, r->touch_count);
	err = marks_mark_wait(o->site->marks, o->queue, clock_wall_ms(o->site->clock), r->touches,
			      r->touch_count);
	if (!err)
		stat_add(STAT_rollup_marks_added, (int64_t)r->touch_count);
	return err;
}

/* ---- Walking --------------------------------------------------------------------------------- */

/* Marks the slots that the members of the part have in one table. */
static int remark_table(struct remarking *r, enum table table)
{
	const struct remark_options *o = r->options;
	int64_t slot_ms = o->site->granularities.slot_ms;
	struct store_range range = {.table = table,
				    .handles = r->group.handles + r->part.from,
				    .handle_count = series_part_count(&r->part),
				    .start_ms = o->from_ms,
				    .end_ms = o->to_ms};
	int err = 0;
	while (!err && range.start_ms < range.end_ms) {
		int64_t next_ms;
		err = series_walk_next_sample(r->walk, r->read, &range, &next_ms);
		if (err || next_ms == INT64_MAX)
			return err;
		range.start_ms = next_ms / slot_ms * slot_ms;
		err = remark_count(r, &range, &next_ms);
		err = err ? err : remark_mark(r);
		range.start_ms = next_ms;
	}
	return err;
}

/* Damaged series are left out, the others are marked. */
static int remark_group(struct remarking *r)
{
	int err = 0;
	arena_reset(&r->arena);
	for (size_t i = 0; i < r->group.count && !err; i++)
		err = remark_name_member(r, &r->group.series[i], &r->members[i]);
	r->part = (struct series_part){0};
	while (!err && series_part_next(&r->part, r->group.count)) {
		struct remark_result before = *r->result;
		err = remark_table(r, TABLE_DATA_RAW);
		if (!err && r->options->with_late)
			err = remark_table(r, TABLE_DATA_LATE);
		if (err != ERR_DAMAGED)
			continue;
		*r->result = before;
		if (!series_part_again(&r->part))
			r->result->failed++;
		err = 0;
	}
	return err;
}

int remark(const struct remark_options *options, struct remark_result *result)
{
	struct remarking *r = mem_zalloc(sizeof(*r));
	r->options = options;
	r->result = result;
	*result = (struct remark_result){.oldest_slot_s = INT64_MAX};
	r->walk = series_walk_new(&(struct series_walk_options){.store = options->site->store,
								.clock = options->site->clock,
								.queue = options->queue,
								.tenant = options->tenant,
								.metric = options->metric,
								.group_max = GROUP_MAX,
								.list_max_bytes = READ_MAX_BYTES});
	r->read = store_read_new(options->site->store, READ_MAX_BYTES);
	arena_init(&r->arena, NAMES_MAX_BYTES);
	r->touches = mem_alloc_array(GROUP_MAX * WINDOWS_MAX, sizeof(*r->touches));
	int err = series_walk_next(r->walk, &r->group);
	while (!err && r->group.count) {
		result->series += r->group.count;
		err = remark_group(r);
		err = err ? err : series_walk_next(r->walk, &r->group);
	}
	store_read_free(r->read);
	series_walk_free(r->walk);
	arena_release(&r->arena);
	hash_set_release(&r->slots);
	retention_memo_release(&r->memo);
	mem_free(r->touches);
	mem_free(r);
	return err;
}
