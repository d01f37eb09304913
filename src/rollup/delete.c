#include "rollup/delete.h"

#include "base/fault.h"
#include "lease/partition.h"
#include "marks/recent.h"
#include "model/series.h"
#include "retention/late.h"
#include "rollup/aggregate_row.h"
#include "store/series_walk.h"
#include "store/wait.h"

enum {
	GROUP_MAX = 256,   /* series at once */
	WINDOWS_MAX = 256, /* slots at once */
	READ_MAX_BYTES = 64 << 20,
	NAMES_MAX_BYTES = 8 << 20,
	WRITE_MAX_BYTES = 8 << 20,
	/* So many slots without samples are marked and deleted with those around them: a few marks
	 * cost less than a further stretch, for which the store writes a group of series again. */
	GAP_MAX_SLOTS = 16,
	STRETCHES_MAX = WINDOWS_MAX / (GAP_MAX_SLOTS + 1) + 1, /* of a member */
	/* How many series one write is of follows from what the last one took, so that other
	 * writes wait for some such time and no longer. */
	WRITE_SERIES_MIN = 4,
	WRITE_SHORT_US = 15000,
	WRITE_LONG_US = 40000,
};

/* A piece of what there is of a series. */
struct delete_span {
	enum table table;
	int64_t period_ms;
	unsigned field; /* that every row has */
	int64_t from_ms, to_ms;
	int64_t mark_from_ms; /* of slots that begin earlier none is marked */
	bool by_slots;        /* it is gone through by slots, which are marked */
	bool only_count;      /* and left as it is */
	bool only_mark;       /* or only marked */
	uint64_t *total;      /* of the result */
};

/* A stretch is deleted at once. If its span goes by slots, all slots of the stretch are marked. */
struct delete_stretch {
	int64_t from_ms, to_ms;
};

struct delete_member {
	struct slice metric;
	struct series_set series_set;
	uint32_t partition;
	int64_t raw_ms; /* how long its raw data is kept */
	/* In the part of the span that was counted last. */
	uint64_t count; /* of what there is */
	size_t stretches;
	struct delete_stretch stretch[STRETCHES_MAX];
	size_t first_touch, touches;
};

struct deleting {
	struct rollup_delete_options options;
	struct series_walk *walk;
	struct store_read *read;
	struct store_write *write;
	struct arena arena; /* names of the members */
	struct retention_memo memo;
	struct delete_member members[GROUP_MAX];
	uint64_t handles[GROUP_MAX];
	size_t count;
	struct series_part part; /* of members: those at work */
	/* Granularities that have rows though they are configured no more. */
	int64_t *others_ms;
	size_t other_count;
	struct delete_span *spans;
	size_t span_count, span_cap;
	struct mark_touch *touches;
	size_t touch_count;
	size_t write_series; /* how many series the next write is of */
	struct rollup_delete_result *result;
};

/* ---- Spans ----------------------------------------------------------------------------------- */

static void delete_add_span(struct deleting *d, struct delete_span span)
{
	if (span.from_ms >= span.to_ms)
		return;
	if (d->span_count == d->span_cap) {
		d->span_cap = d->span_cap ? d->span_cap * 2 : 16;
		d->spans = mem_resize_array(d->spans, d->span_cap, sizeof(*d->spans));
	}
	d->spans[d->span_count++] = span;
}

/* The row of a bucket that the time cuts, if its slot is closed. The row of the bucket's late
 * points, which stands behind it, is made again from the points that are left. */
static void delete_add_cut(struct deleting *d, int64_t width_ms, int64_t bucket_ms,
			   int64_t open_from_ms, uint64_t *kept)
{
	if (open_from_ms == INT64_MAX ||
	    floor_to(bucket_ms, d->options.site->granularities.slot_ms) < open_from_ms)
		delete_add_span(d, (struct delete_span){.table = TABLE_DATA_DOWNSAMPLED,
							.period_ms = width_ms,
							.field = ROLLUP_FIRST,
							.from_ms = bucket_ms,
							.to_ms = bucket_ms + LATE_ROW_BEHIND_MS,
							.only_count = true,
							.total = kept});
}

/* Slots that begin before open_from_ms are closed: nothing makes rows of their buckets. */
static void delete_add_granularity(struct deleting *d, int64_t width_ms, int64_t open_from_ms,
				   uint64_t *rows, uint64_t *kept)
{
	int64_t from_ms = d->options.from_ms, to_ms = d->options.to_ms;
	int64_t first_ms = floor_to(from_ms, width_ms), last_ms = floor_to(to_ms, width_ms);
	bool whole = d->options.whole;
	delete_add_span(
		d, (struct delete_span){.table = TABLE_DATA_DOWNSAMPLED,
					.period_ms = width_ms,
					.field = ROLLUP_SUM,
					.from_ms = whole ? from_ms : ceil_to(from_ms, width_ms),
					.to_ms = whole ? to_ms : last_ms,
					.total = rows});
	if (whole)
		return;
	if (first_ms != from_ms)
		delete_add_cut(d, width_ms, first_ms, open_from_ms, kept);
	if (last_ms != to_ms && (last_ms != first_ms || first_ms == from_ms))
		delete_add_cut(d, width_ms, last_ms, open_from_ms, kept);
}

/* Of series that are to be forgotten nothing is marked where the engine knows which are: an append
 * to one of them fails, so nobody makes rows of what went. Elsewhere a row may come yet, and bring
 * its series back. */
static bool delete_marks_slots(const struct rollup_delete_options *o)
{
	return o->site->granularities.count &&
	       (!o->whole || !(o->site->store->engine->can & STORE_EXACT_FORGETTING));
}

/* Rows come first: one that is made again meanwhile is of samples that go, and mark it, or of some
 * that came since.
 *
 * Slots that are closed but whose raw data is still there are marked, too: what is being made of
 * them now, of marks that they had, is made once more if there is time. Of late points any slot is.
 */
static void delete_list_spans(struct deleting *d, int64_t raw_ms)
{
	const struct rollup_delete_options *o = &d->options;
	int64_t now_ms = clock_age_ms(o->site->clock), open_from_ms = INT64_MAX;
	bool marks = delete_marks_slots(o);
	d->span_count = 0;
	if (marks)
		open_from_ms = rollup_site_open_from_ms(o->site, raw_ms);
	for (size_t g = 0; g < o->site->granularities.count; g++)
		delete_add_granularity(d, o->site->granularities.list[g].width_ms, open_from_ms,
				       &d->result->rows[g], &d->result->kept[g]);
	for (size_t i = 0; i < d->other_count; i++)
		delete_add_granularity(d, d->others_ms[i], INT64_MAX, &d->result->other_rows,
				       &d->result->other_kept);
	delete_add_span(d, (struct delete_span){
				   .table = TABLE_DATA_RAW,
				   .from_ms = o->from_ms,
				   .to_ms = o->to_ms,
				   .mark_from_ms = raw_ms && now_ms > raw_ms ? now_ms - raw_ms : 0,
				   .by_slots = marks,
				   .total = &d->result->samples});
	delete_add_span(d, (struct delete_span){.table = TABLE_DATA_LATE,
						.from_ms = o->from_ms,
						.to_ms = o->to_ms,
						.by_slots = marks,
						.total = &d->result->late});
}

/* ---- Series ---------------------------------------------------------------------------------- */

static int delete_name_member(struct deleting *d, const struct store_series *series,
			      struct tags tags, struct delete_member *m)
{
	const struct rollup_site *site = d->options.site;
	const struct retention_rules *rules = rollup_site_rules(site);
	struct retention_fit fit =
		retention_find(rules, &d->memo, d->options.tenant, series->metric);
	*m = (struct delete_member){.raw_ms = rollup_site_whole_ms(site, rules, fit),
				    .metric = arena_copy(&d->arena, series->metric)};
	if (!m->metric.data)
		return ERR_LIMIT;
	int err = series_walk_name(series, tags, &d->arena, &m->series_set);
	if (!err)
		m->partition = partition_of(d->options.tenant, m->series_set, site->partitions);
	return err;
}

static int delete_take_series(struct deleting *d, const struct series_group *group)
{
	arena_reset(&d->arena);
	d->count = 0;
	for (size_t i = 0; i < group->count; i++) {
		const struct store_series *series = &group->series[i];
		struct tags tags;
		int err = tags_decode(series->tags_text, &d->arena, &tags);
		if (!err &&
		    !catalog_selectors_match(d->options.selectors, d->options.selector_count, tags))
			continue;
		err = err ? err : delete_name_member(d, series, tags, &d->members[d->count]);
		if (err)
			return err;
		d->handles[d->count++] = series->handle;
	}
	d->result->series += d->count;
	return 0;
}

static int delete_read_periods(struct deleting *d)
{
	struct store_request *request = store_read_add(d->read, STORE_PERIODS);
	ASSERT(request); /* the first of an empty arena */
	request->periods.table = TABLE_DATA_DOWNSAMPLED;
	int err = series_walk_read(d->walk, d->read);
	if (err)
		return err;
	const struct store_periods *periods = &request->periods;
	d->others_ms = mem_alloc_array(periods->count + 1, sizeof(*d->others_ms));
	for (size_t i = 0; i < periods->count; i++) {
		if (!granularity_find(&d->options.site->granularities, periods->periods_ms[i]))
			d->others_ms[d->other_count++] = periods->periods_ms[i];
	}
	return 0;
}

/* ---- What there is --------------------------------------------------------------------------- */

/* A part of a span: all of it, or some slots. Its windows are whole slots, but for one that the
 * span cuts. */
struct delete_part {
	const struct delete_span *span;
	int64_t from_ms, to_ms, window_ms;
};

/* The part of the span from at_ms on, where next_ms is the first time at which there is something.
 */
static struct delete_part delete_choose_part(const struct deleting *d,
					     const struct delete_span *span, int64_t at_ms,
					     int64_t next_ms)
{
	int64_t slot_ms = d->options.site->granularities.slot_ms;
	if (!span->by_slots)
		return (struct delete_part){span, at_ms, span->to_ms, span->to_ms - span->from_ms};
	int64_t first_ms = floor_to(next_ms, slot_ms);
	int64_t end_ms = first_ms + (first_ms < at_ms ? 1 : WINDOWS_MAX) * slot_ms;
	return (struct delete_part){span, first_ms < at_ms ? at_ms : first_ms,
				    end_ms < span->to_ms ? end_ms : span->to_ms, slot_ms};
}

static void delete_add_touch(struct deleting *d, const struct delete_span *span,
			     struct delete_member *m, int64_t slot_ms)
{
	if (slot_ms < 0 || slot_ms < span->mark_from_ms)
		return;
	d->touches[d->touch_count++] = (struct mark_touch){.slot = {slot_ms / 1000, m->partition},
							   .tenant = d->options.tenant,
							   .series_set = m->series_set,
							   .deleted = true};
	m->touches++;
}

/* A window, of a slot or of all of the part, in which there is something. */
static void delete_add_window(struct deleting *d, const struct delete_part *part,
			      struct delete_member *m, int64_t from_ms)
{
	int64_t width_ms = part->window_ms, slot_ms = floor_to(from_ms, width_ms);
	int64_t to_ms = part->to_ms - from_ms < width_ms ? part->to_ms : from_ms + width_ms;
	struct delete_stretch *last = m->stretches ? &m->stretch[m->stretches - 1] : NULL;
	if (!last || from_ms - last->to_ms > GAP_MAX_SLOTS * width_ms) {
		m->stretch[m->stretches++] = (struct delete_stretch){from_ms, to_ms};
	} else {
		slot_ms = last->to_ms;
		last->to_ms = to_ms;
	}
	for (; part->span->by_slots && slot_ms < to_ms; slot_ms += width_ms)
		delete_add_touch(d, part->span, m, slot_ms);
}

/* Takes the windows of the members from *counted on, as far as they have been counted. */
static void delete_take_counts(struct deleting *d, const struct delete_part *part,
			       const struct store_aggregate *answer, size_t *counted)
{
	for (; *counted < answer->next_handle; ++*counted) {
		struct delete_member *m = &d->members[d->part.from + *counted];
		const struct store_windows *windows = &answer->windows[*counted];
		m->count = m->touches = m->stretches = 0;
		m->first_touch = d->touch_count;
		for (size_t i = 0; i < windows->count; i++) {
			int64_t from_ms =
				answer->start_ms + (int64_t)windows->numbers[i] * answer->window_ms;
			m->count += windows->list[i].count;
			delete_add_window(d, part, m, from_ms);
		}
	}
}

static int delete_count(struct deleting *d, const struct delete_part *part)
{
	size_t counted = 0;
	store_read_reset(d->read);
	struct store_request *request = store_read_add(d->read, STORE_AGGREGATE);
	ASSERT(request); /* the first of an empty arena */
	request->aggregate = (struct store_aggregate){.table = part->span->table,
						      .period_ms = part->span->period_ms,
						      .handles = d->handles + d->part.from,
						      .handle_count = series_part_count(&d->part),
						      .field = part->span->field,
						      .start_ms = part->from_ms,
						      .end_ms = part->to_ms,
						      .window_ms = part->window_ms};
	d->touch_count = 0;
	do {
		int err = series_walk_read(d->walk, d->read);
		if (err)
			return err;
		delete_take_counts(d, part, &request->aggregate, &counted);
	} while (request->more);
	return 0;
}

/* ---- Deleting -------------------------------------------------------------------------------- */

/* Members from `from` to before `to`; of those that are to be written, the handles. */
struct delete_batch {
	size_t from, to;
	uint64_t handles[GROUP_MAX];
	size_t count;
};

/* As many members from batch->to on as one write is to be of: all, or those that have something. */
static void delete_choose_members(struct deleting *d, struct delete_batch *batch, bool all)
{
	batch->from = batch->to;
	batch->count = 0;
	for (; batch->to < d->part.to && batch->count < d->write_series; batch->to++) {
		if (all || d->members[batch->to].count)
			batch->handles[batch->count++] = d->handles[batch->to];
	}
}

/* Marks come first: whoever deletes and dies in between has marked too much, which does no harm. */
static int delete_add_marks(struct deleting *d, const struct delete_part *part,
			    const struct delete_batch *batch)
{
	const struct delete_member *first = &d->members[batch->from];
	const struct delete_member *last = &d->members[batch->to - 1];
	size_t count = last->first_touch + last->touches - first->first_touch, added = 0;
	struct mark_touch *touches = d->touches + first->first_touch;
	if (!part->span->by_slots || !count)
		return 0;
	mark_touches_sort(touches, count);
	int err = marks_touches_add(d->options.site->marks, d->write,
				    clock_wall_ms(d->options.site->clock), touches, count, &added);
	store_write_next_stage(d->write);
	return err;
}

static int delete_add_member(struct deleting *d, const struct delete_span *span, size_t member)
{
	const struct delete_member *m = &d->members[member];
	struct store_target target = {.table = span->table, .period_ms = span->period_ms};
	int err = 0;
	for (size_t i = 0; i < m->stretches && !err; i++)
		err = store_delete_range(d->write, &target, &d->handles[member], 1,
					 m->stretch[i].from_ms, m->stretch[i].to_ms);
	return err;
}

/* A sample that came since the count goes if its slot is marked, else it stays. That it has a mark
 * of its own is not enough: a job that was at work on its slot may have read it, and writes rows of
 * it, which nothing but the mark of a deletion takes away. */
static int delete_add_part(struct deleting *d, const struct delete_part *part,
			   const struct delete_batch *batch)
{
	int err = delete_add_marks(d, part, batch);
	for (size_t i = batch->from; i < batch->to && !err && !part->span->only_mark; i++)
		err = delete_add_member(d, part->span, i);
	return err;
}

/* Samples that came since go with the series: a series that has samples would stay. */
static int delete_add_forgetting(struct deleting *d, const struct delete_batch *batch)
{
	int err = 0;
	for (size_t s = 0; s < d->span_count && !err; s++) {
		struct store_target target = {.table = d->spans[s].table,
					      .period_ms = d->spans[s].period_ms};
		err = store_delete_range(d->write, &target, batch->handles, batch->count,
					 STORE_TS_MIN, STORE_TS_MAX);
	}
	return err ? err : store_series_forget(d->write, batch->handles, batch->count);
}

/* The time that the last write took says how many series the next one has. */
static void delete_choose_size(struct deleting *d, int64_t took_us)
{
	if (took_us < WRITE_SHORT_US && d->write_series < GROUP_MAX)
		d->write_series *= 2;
	else if (took_us > WRITE_LONG_US && d->write_series > WRITE_SERIES_MIN)
		d->write_series /= 2;
}

/* `part` NULL: the series are forgotten. ERR_LIMIT: they do not fit. */
static int delete_write_once(struct deleting *d, const struct delete_part *part,
			     const struct delete_batch *batch)
{
	struct clock *clock = d->options.site->clock;
	store_write_reset(d->write);
	d->write->stamp_us = d->options.stamp_us;
	int err = fault("rollup_delete");
	if (!err)
		err = part ? delete_add_part(d, part, batch) : delete_add_forgetting(d, batch);
	if (err)
		return err;
	int64_t begun_us = clock->mono_us(clock);
	err = store_write_wait(d->write, d->options.queue);
	if (!err)
		delete_choose_size(d, clock->mono_us(clock) - begun_us);
	return err;
}

/* Whether the write is to be repeated, marks and all. What ended unknown may come at any time; and
 * of what took too long, the marks may have been worked on before the samples went. */
static bool delete_must_repeat(const struct deleting *d, int err, int64_t begun_ms)
{
	const struct rollup_site *site = d->options.site;
	int64_t ago_ms = clock_wall_ms(site->clock) - begun_ms;
	if (site->store->engine->can & STORE_SERIAL_WRITES)
		return false;
	return err == ERR_UNKNOWN ||
	       (!err && ago_ms >= recent_touches_write_max_ms(site->quiet_ms, site->skew_max_ms));
}

static int delete_write(struct deleting *d, const struct delete_part *part,
			const struct delete_batch *batch)
{
	int64_t begun_ms;
	int err;
	do {
		begun_ms = clock_wall_ms(d->options.site->clock);
		err = delete_write_once(d, part, batch);
	} while (delete_must_repeat(d, err, begun_ms) && !task_queue_is_stopped(d->options.queue));
	return err;
}

/* After a write of too many series. False: of fewer there are none. */
static bool delete_write_fewer(struct deleting *d, int err)
{
	if (err != ERR_LIMIT || d->write_series == 1)
		return false;
	d->write_series /= 2;
	return true;
}

/* Counts what is deleted of these members, or would be. */
static void delete_take_totals(struct deleting *d, const struct delete_part *part, size_t from,
			       size_t to)
{
	for (size_t i = from; i < to; i++) {
		*part->span->total += d->members[i].count;
		d->result->marks += d->members[i].touches;
	}
}

/* Deletes what was counted. By members the marks are no longer in order, so where a write was of
 * too many, what is left is counted once more. */
static int delete_counted(struct deleting *d, const struct delete_part *part)
{
	struct delete_batch batch = {.to = d->part.from};
	int err = 0;
	for (;;) {
		delete_choose_members(d, &batch, false);
		if (!batch.count)
			return 0;
		err = delete_write(d, part, &batch);
		if (delete_write_fewer(d, err)) {
			batch.to = d->part.from;
			err = delete_count(d, part);
		} else if (!err) {
			delete_take_totals(d, part, batch.from, batch.to);
		}
		if (err)
			return err;
	}
}

static int delete_forget(struct deleting *d)
{
	struct slice metrics[GROUP_MAX];
	struct delete_batch batch = {.to = d->part.from};
	if (d->options.only_count) {
		d->result->forgotten += series_part_count(&d->part);
		return 0;
	}
	for (;;) {
		delete_choose_members(d, &batch, true);
		if (!batch.count)
			return 0;
		int err = delete_write(d, NULL, &batch);
		if (delete_write_fewer(d, err)) {
			batch.to = batch.from;
			continue;
		}
		if (err)
			return err;
		d->result->forgotten += batch.count;
		for (size_t i = 0; i < batch.count; i++)
			metrics[i] = d->members[batch.from + i].metric;
		if (d->options.forgotten)
			d->options.forgotten(d->options.owner, metrics, batch.count);
	}
}

/* ---- Walking --------------------------------------------------------------------------------- */

static int delete_span_part(struct deleting *d, const struct delete_part *part)
{
	int err = delete_count(d, part);
	if (err)
		return err;
	if (!d->options.only_count && !part->span->only_count)
		return delete_counted(d, part);
	delete_take_totals(d, part, d->part.from, d->part.to);
	return 0;
}

static int delete_of_span(struct deleting *d, const struct delete_span *span)
{
	int64_t at_ms = span->from_ms, next_ms;
	int err = 0;
	while (!err && at_ms < span->to_ms) {
		err = series_walk_next_sample(
			d->walk, d->read,
			&(struct store_range){.table = span->table,
					      .period_ms = span->period_ms,
					      .handles = d->handles + d->part.from,
					      .handle_count = series_part_count(&d->part),
					      .start_ms = at_ms,
					      .end_ms = span->to_ms,
					      .fields = 1u << span->field},
			&next_ms);
		if (err || next_ms == INT64_MAX)
			return err;
		struct delete_part part = delete_choose_part(d, span, at_ms, next_ms);
		err = delete_span_part(d, &part);
		at_ms = part.to_ms;
	}
	return err;
}

/* ---- What may come yet ----------------------------------------------------------------------- */

/* Slots from from_ms to before open_ms are closed: of these the rows of buckets that are cut stay.
 */
static int delete_sweep_rows(struct deleting *d, int64_t stamp_us, int64_t from_ms, int64_t open_ms,
			     int64_t to_ms)
{
	const struct rollup_delete_options *o = &d->options;
	const struct granularities *granularities = &o->site->granularities;
	int err = 0;
	store_write_reset(d->write);
	d->write->stamp_us = stamp_us;
	for (size_t g = 0; g < granularities->count && !err; g++) {
		int64_t width_ms = granularities->list[g].width_ms;
		int64_t last_ms = floor_to(o->to_ms, width_ms);
		int64_t start_ms = open_ms > from_ms ? ceil_to(o->from_ms, width_ms) : from_ms;
		int64_t end_ms = to_ms == open_ms && last_ms < to_ms ? last_ms : to_ms;
		struct store_target target = {.table = TABLE_DATA_DOWNSAMPLED,
					      .period_ms = width_ms};
		if (start_ms < end_ms)
			err = store_delete_range(d->write, &target, d->handles + d->part.from,
						 series_part_count(&d->part), start_ms, end_ms);
	}
	return err ? err : store_write_wait_known(d->write, d->options.queue);
}

/* Rows that were made before the samples went, and that nothing is sure to correct, go whenever
 * they come: those of closed slots; and those of open ones where the deletion was begun before, or
 * nothing is left of the series, for which no job makes rows again.
 * The stamp is above theirs, since the samples have gone by now, and below those of the rows that
 * are made of these marks, of what was written since the wish. */
static int delete_sweep(struct deleting *d)
{
	const struct rollup_site *site = d->options.site;
	const struct granularities *granularities = &site->granularities;
	int64_t raw_ms = d->members[d->part.from].raw_ms, slot_ms = granularities->slot_ms;
	int64_t now_ms = clock_age_ms(site->clock);
	int64_t from_ms = d->options.from_ms < 0 ? 0 : floor_to(d->options.from_ms, slot_ms);
	int64_t to_ms = ceil_to(d->options.to_ms, slot_ms);
	int64_t open_ms = rollup_site_open_from_ms(site, raw_ms);
	uint64_t marked = 0;
	open_ms = open_ms < from_ms ? from_ms : open_ms > to_ms ? to_ms : open_ms;
	to_ms = d->options.again || d->options.whole ? to_ms : open_ms;
	if (from_ms >= to_ms)
		return 0;
	int64_t stamp_us = store_stamp(site->store) + site->skew_max_ms * 1000;
	const struct delete_span spans[] = {
		{.table = TABLE_DATA_DOWNSAMPLED,
		 .period_ms = granularities->list[0].width_ms,
		 .field = ROLLUP_SUM,
		 .from_ms = from_ms,
		 .to_ms = open_ms},
		{.table = TABLE_DATA_RAW,
		 .from_ms = from_ms,
		 .to_ms = to_ms,
		 .mark_from_ms = raw_ms && now_ms > raw_ms ? now_ms - raw_ms : 0},
		{.table = TABLE_DATA_LATE, .from_ms = from_ms, .to_ms = to_ms}};
	int err = 0;
	for (size_t i = 0; i < ARRAY_LEN(spans) && !err; i++) {
		struct delete_span span = spans[i];
		span.by_slots = span.only_mark = true;
		span.total = &marked;
		err = delete_of_span(d, &span);
	}
	return err ? err : delete_sweep_rows(d, stamp_us, from_ms, open_ms, to_ms);
}

static bool delete_must_sweep(const struct deleting *d)
{
	const struct rollup_delete_options *o = &d->options;
	return !o->only_count && o->site->granularities.count &&
	       !(o->site->store->engine->can & STORE_SERIAL_WRITES);
}

/* Members whose raw data is kept for as long are at work together. Damaged series are left, the
 * others are deleted. */
static int delete_group(struct deleting *d)
{
	int err = 0;
	d->part = (struct series_part){0};
	while (!err && series_part_next(&d->part, d->count)) {
		struct rollup_delete_result before = *d->result;
		size_t to = d->part.from + 1;
		while (to < d->part.to && d->members[to].raw_ms == d->members[d->part.from].raw_ms)
			to++;
		d->part.to = to;
		delete_list_spans(d, d->members[d->part.from].raw_ms);
		for (size_t s = 0; s < d->span_count && !err; s++)
			err = delete_of_span(d, &d->spans[s]);
		if (!err && delete_must_sweep(d))
			err = delete_sweep(d);
		if (!err && d->options.whole)
			err = delete_forget(d);
		if (err != ERR_DAMAGED)
			continue;
		if (d->options.only_count)
			*d->result = before;
		if (!series_part_again(&d->part))
			d->result->failed++;
		err = 0;
	}
	return err;
}

static int delete_all(struct deleting *d)
{
	struct series_group group;
	int err = delete_read_periods(d);
	err = err ? err : series_walk_next(d->walk, &group);
	while (!err && group.count) {
		err = delete_take_series(d, &group);
		err = err ? err : delete_group(d);
		err = err ? err : series_walk_next(d->walk, &group);
	}
	return err;
}

int rollup_delete(const struct rollup_delete_options *options, struct rollup_delete_result *result,
		  struct errbuf *e)
{
	struct deleting *d = mem_zalloc(sizeof(*d));
	d->options = *options;
	if (options->whole) {
		d->options.from_ms = ROLLUP_DELETE_EARLIEST_MS;
		d->options.to_ms = ROLLUP_DELETE_LATEST_MS;
	}
	if (!d->options.stamp_us)
		d->options.stamp_us = store_stamp(options->site->store);
	*result = (struct rollup_delete_result){0};
	d->result = result;
	d->walk = series_walk_new(&(struct series_walk_options){.store = options->site->store,
								.clock = options->site->clock,
								.queue = options->queue,
								.tenant = options->tenant,
								.metric = options->metric,
								.group_max = GROUP_MAX,
								.list_max_bytes = READ_MAX_BYTES});
	d->read = store_read_new(options->site->store, READ_MAX_BYTES);
	d->write = store_write_new(options->site->store, WRITE_MAX_BYTES);
	d->write_series = WRITE_SERIES_MIN;
	arena_init(&d->arena, NAMES_MAX_BYTES);
	d->touches = mem_alloc_array(GROUP_MAX * WINDOWS_MAX, sizeof(*d->touches));
	int err = delete_all(d);
	if (err)
		errbuf_set(e, err, "%s",
			   d->write->error.text[0] ? d->write->error.text : err_text(err));
	store_read_free(d->read);
	series_walk_free(d->walk);
	store_write_free(d->write);
	arena_release(&d->arena);
	retention_memo_release(&d->memo);
	mem_free(d->touches);
	mem_free(d->others_ms);
	mem_free(d->spans);
	mem_free(d);
	return err;
}
