#include "rollup/delete.h"

#include "base/fault.h"
#include "base/stats.h"
#include "model/series.h"
#include "rollup/late.h"
#include "rollup/next_sample.h"
#include "rollup/partition.h"
#include "rollup/row.h"
#include "rollup/series_walk.h"

enum {
	GROUP_MAX = 256,   /* series at once */
	WINDOWS_MAX = 256, /* slots at once */
	READ_MAX_BYTES = 64 << 20,
	NAMES_MAX_BYTES = 8 << 20,
	WRITE_MAX_BYTES = 8 << 20,
	/* So many slots without samples are marked and deleted with those around them: a few marks
	 * cost less than a further stretch, for which the store writes a group of series anew. */
	GAP_MAX_SLOTS = 16,
	STRETCHES_MAX = WINDOWS_MAX / (GAP_MAX_SLOTS + 1) + 1, /* of a member */
	/* How many series one write is of follows from what the last one took, so that other
	 * writes wait for some such time and no longer. */
	WRITE_SERIES_MIN = 4,
	WRITE_SHORT_US = 15000,
	WRITE_LONG_US = 40000,
};

/* A piece of what there is of a series. */
struct span {
	enum table table;
	int64_t period_ms;
	unsigned field; /* that every row has */
	int64_t from_ms, to_ms;
	int64_t mark_from_ms; /* of slots that begin earlier none is marked */
	bool by_slots;        /* it is gone through by slots, which are marked */
	bool only_count;      /* and left as it is */
	uint64_t *total;      /* of the result */
};

/* What is deleted at once. Of a span that goes by slots all of its slots are marked. */
struct stretch {
	int64_t from_ms, to_ms;
};

struct member {
	struct slice metric;
	struct series_set series_set;
	uint32_t partition;
	int64_t raw_ms; /* how long its raw data is kept */
	/* In the part of the span at hand. */
	uint64_t count; /* of what there is */
	size_t stretches;
	struct stretch stretch[STRETCHES_MAX];
	size_t first_touch, touches;
};

struct rollup_delete {
	struct rollup_delete_options options;
	struct series_walk *walk;
	struct next_sample *next;
	struct store_read *read;
	struct store_request *request; /* the count */
	struct store_write *write;
	struct arena arena; /* names of the members */
	struct retention_memo memo;
	struct member members[GROUP_MAX];
	uint64_t handles[GROUP_MAX];
	size_t count;
	struct series_part part; /* of members: those at hand */
	/* Granularities that have rows though they are configured no more. */
	struct store_read *periods;
	int64_t *others_ms;
	size_t other_count;
	struct span *spans;
	size_t span_count, span, span_cap;
	int64_t at_ms, part_ms; /* up to where the span is done; where the part at hand ends */
	int64_t next_ms;        /* what there is next */
	size_t counted;         /* of the members at hand */
	struct rollup_touch *touches;
	size_t touch_count;
	size_t written, writing; /* members that are done; and of the write at hand */
	size_t write_series;
	int64_t write_us; /* monotonic, when it was submitted */
	bool forgetting;
	struct rollup_delete_result result, before; /* before: these members */
};

static void begin_group(void *owner);
static void on_found(void *owner, int err, int64_t next_ms);
static void on_counted(struct store_read *read, int err);
static void on_written(struct store_write *write, int err);
static void on_periods(struct store_read *read, int err);
static void next_members(struct rollup_delete *d);
static void find_next(struct rollup_delete *d);
static void count_part(struct rollup_delete *d);
static void write_some(struct rollup_delete *d);
static void end(void *owner, int err);

/* ---- Spans ----------------------------------------------------------------------------------- */

static void add_span(struct rollup_delete *d, struct span span)
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
static void add_cut(struct rollup_delete *d, int64_t width_ms, int64_t bucket_ms,
		    int64_t open_from_ms, uint64_t *kept)
{
	if (open_from_ms == INT64_MAX ||
	    floor_to(bucket_ms, d->options.grains->slot_ms) < open_from_ms)
		add_span(d, (struct span){.table = TABLE_DATA_DOWNSAMPLED,
					  .period_ms = width_ms,
					  .field = ROLLUP_FIRST,
					  .from_ms = bucket_ms,
					  .to_ms = bucket_ms + LATE_ROW_BEHIND_MS,
					  .only_count = true,
					  .total = kept});
}

/* Slots that begin before open_from_ms are closed: nothing makes rows of their buckets. */
static void add_grain(struct rollup_delete *d, int64_t width_ms, int64_t open_from_ms,
		      uint64_t *rows, uint64_t *kept)
{
	int64_t from_ms = d->options.from_ms, to_ms = d->options.to_ms;
	int64_t first_ms = floor_to(from_ms, width_ms), last_ms = floor_to(to_ms, width_ms);
	bool whole = d->options.whole;
	add_span(d, (struct span){.table = TABLE_DATA_DOWNSAMPLED,
				  .period_ms = width_ms,
				  .field = ROLLUP_SUM,
				  .from_ms = whole ? from_ms : ceil_to(from_ms, width_ms),
				  .to_ms = whole ? to_ms : last_ms,
				  .total = rows});
	if (whole)
		return;
	if (first_ms != from_ms)
		add_cut(d, width_ms, first_ms, open_from_ms, kept);
	if (last_ms != to_ms && (last_ms != first_ms || first_ms == from_ms))
		add_cut(d, width_ms, last_ms, open_from_ms, kept);
}

/* Rows come first: one that is made anew meanwhile is of samples that go, and mark it, or of some
 * that came since.
 *
 * Slots that are closed but whose raw data is still there are marked, too: what is being made of
 * them now, of marks that they had, is made once more if there is time. Of late points any slot is.
 */
static void list_spans(struct rollup_delete *d, int64_t raw_ms)
{
	const struct rollup_delete_options *o = &d->options;
	int64_t now_ms = clock_age_ms(o->clock), open_from_ms = INT64_MAX;
	bool marks = o->grains->count && !o->whole;
	d->span_count = 0;
	if (marks)
		open_from_ms = rollup_open_from_ms(now_ms, raw_ms, o->grains->slot_ms, o->quiet_ms);
	for (size_t g = 0; g < o->grains->count; g++)
		add_grain(d, o->grains->list[g].width_ms, open_from_ms, &d->result.rows[g],
			  &d->result.kept[g]);
	for (size_t i = 0; i < d->other_count; i++)
		add_grain(d, d->others_ms[i], INT64_MAX, &d->result.other_rows,
			  &d->result.other_kept);
	add_span(d, (struct span){.table = TABLE_DATA_RAW,
				  .from_ms = o->from_ms,
				  .to_ms = o->to_ms,
				  .mark_from_ms = raw_ms && now_ms > raw_ms ? now_ms - raw_ms : 0,
				  .by_slots = marks,
				  .total = &d->result.samples});
	add_span(d, (struct span){.table = TABLE_DATA_LATE,
				  .from_ms = o->from_ms,
				  .to_ms = o->to_ms,
				  .by_slots = marks,
				  .total = &d->result.late});
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct rollup_delete *rollup_delete_start(const struct rollup_delete_options *options)
{
	struct rollup_delete *d = mem_zalloc(sizeof(*d));
	d->options = *options;
	if (options->whole) {
		d->options.from_ms = ROLLUP_DELETE_EARLIEST_MS;
		d->options.to_ms = ROLLUP_DELETE_LATEST_MS;
	}
	d->walk = series_walk_start(&(struct series_walk_options){.store = options->store,
								  .clock = options->clock,
								  .executor = options->executor,
								  .tenant = options->tenant,
								  .metric = options->metric,
								  .group_max = GROUP_MAX,
								  .read_max_bytes = READ_MAX_BYTES,
								  .group = begin_group,
								  .done = end,
								  .owner = d});
	d->next = next_sample_new(d->walk, on_found, d);
	d->read = series_walk_read_new(d->walk, on_counted, d);
	d->periods = series_walk_read_new(d->walk, on_periods, d);
	d->write = store_write_new(options->store, WRITE_MAX_BYTES);
	d->write->executor = options->executor;
	d->write->done = on_written;
	d->write->owner = d;
	d->write_series = WRITE_SERIES_MIN;
	arena_init(&d->arena, NAMES_MAX_BYTES);
	d->touches = mem_alloc_array(GROUP_MAX * WINDOWS_MAX, sizeof(*d->touches));
	return d;
}

void rollup_delete_free(struct rollup_delete *d)
{
	store_read_free(d->read);
	store_read_free(d->periods);
	next_sample_free(d->next);
	series_walk_free(d->walk);
	store_write_free(d->write);
	arena_release(&d->arena);
	retention_memo_release(&d->memo);
	mem_free(d->touches);
	mem_free(d->others_ms);
	mem_free(d->spans);
	mem_free(d);
}

void rollup_delete_cancel(struct rollup_delete *d)
{
	series_walk_cancel(d->walk);
}

struct rollup_delete_result rollup_delete_result(const struct rollup_delete *d)
{
	return d->result;
}

const char *rollup_delete_sentence(const struct rollup_delete *d, int err)
{
	return d->write->error.text[0] ? d->write->error.text : err_text(err);
}

static void end(void *owner, int err)
{
	struct rollup_delete *d = owner;
	d->options.done(d->options.owner, err);
}

/* ---- Series ---------------------------------------------------------------------------------- */

static int64_t raw_ms_of(struct rollup_delete *d, struct slice metric)
{
	const struct rollup_delete_options *o = &d->options;
	struct retention_fit fit = retention_find(o->retention_rules, &d->memo, o->tenant, metric);
	return retention_whole_ms(o->retention_rules, fit.raw, o->raw_retention_ms,
				  clock_age_ms(o->clock));
}

static int name_member(struct rollup_delete *d, const struct store_series *series, struct tags tags,
		       struct member *m)
{
	*m = (struct member){.raw_ms = raw_ms_of(d, series->metric),
			     .metric = arena_copy(&d->arena, series->metric)};
	if (!m->metric.data)
		return ERR_LIMIT;
	int err = series_walk_name(series, tags, &d->arena, &m->series_set);
	if (!err)
		m->partition =
			rollup_partition(d->options.tenant, m->series_set, d->options.partitions);
	return err;
}

static int take_series(struct rollup_delete *d)
{
	struct series_group group = series_walk_group(d->walk);
	arena_reset(&d->arena);
	d->count = 0;
	for (size_t i = 0; i < group.count; i++) {
		const struct store_series *series = &group.series[i];
		struct tags tags;
		int err = tags_decode(series->tags_text, &d->arena, &tags);
		if (!err &&
		    !catalog_selectors_match(d->options.selectors, d->options.selector_count, tags))
			continue;
		err = err ? err : name_member(d, series, tags, &d->members[d->count]);
		if (err)
			return err;
		d->handles[d->count++] = series->handle;
	}
	d->result.series += d->count;
	d->part = (struct series_part){0};
	return 0;
}

static void ask_periods(struct rollup_delete *d)
{
	struct store_request *request = store_read_add(d->periods, STORE_PERIODS);
	ASSERT(request); /* the first of an empty arena */
	request->periods.table = TABLE_DATA_DOWNSAMPLED;
	series_walk_submit(d->walk, d->periods);
}

static bool is_configured(const struct rollup_grains *grains, int64_t width_ms)
{
	for (size_t g = 0; g < grains->count; g++) {
		if (grains->list[g].width_ms == width_ms)
			return true;
	}
	return false;
}

static void on_periods(struct store_read *read, int err)
{
	struct rollup_delete *d = read->owner;
	const struct store_periods *periods = &read->requests->periods;
	if (err) {
		end(d, err);
		return;
	}
	d->others_ms = mem_alloc_array(periods->count + 1, sizeof(*d->others_ms));
	for (size_t i = 0; i < periods->count; i++) {
		if (!is_configured(d->options.grains, periods->periods_ms[i]))
			d->others_ms[d->other_count++] = periods->periods_ms[i];
	}
	next_members(d);
}

static void begin_group(void *owner)
{
	struct rollup_delete *d = owner;
	int err = take_series(d);
	if (err)
		end(d, err);
	else if (d->others_ms)
		next_members(d);
	else
		ask_periods(d);
}

/* ---- Spans of some series -------------------------------------------------------------------- */

static void forget_members(struct rollup_delete *d)
{
	if (d->options.only_count) {
		d->result.forgotten += series_part_count(&d->part);
		next_members(d);
		return;
	}
	d->forgetting = true;
	d->written = d->part.from;
	write_some(d);
}

static void begin_span(struct rollup_delete *d)
{
	if (d->span < d->span_count) {
		d->at_ms = d->spans[d->span].from_ms;
		find_next(d);
	} else if (d->options.whole) {
		forget_members(d);
	} else {
		next_members(d);
	}
}

/* Those that come together: their raw data is kept for as long. */
static void shorten_part(struct rollup_delete *d)
{
	size_t to = d->part.from + 1;
	while (to < d->part.to && d->members[to].raw_ms == d->members[d->part.from].raw_ms)
		to++;
	d->part.to = to;
}

static void next_members(struct rollup_delete *d)
{
	if (!series_part_next(&d->part, d->count)) {
		series_walk_next(d->walk);
		return;
	}
	shorten_part(d);
	list_spans(d, d->members[d->part.from].raw_ms);
	d->before = d->result;
	d->span = 0;
	d->forgetting = false;
	begin_span(d);
}

/* What is damaged is left, and only that. What was deleted of the others by then is. */
static void on_failed(struct rollup_delete *d, int err)
{
	if (err != ERR_DAMAGED) {
		end(d, err);
		return;
	}
	if (d->options.only_count)
		d->result = d->before;
	if (!series_part_again(&d->part))
		d->result.failed++;
	next_members(d);
}

/* ---- What there is --------------------------------------------------------------------------- */

static void find_next(struct rollup_delete *d)
{
	const struct span *span = &d->spans[d->span];
	if (d->at_ms >= span->to_ms) {
		d->span++;
		begin_span(d);
		return;
	}
	next_sample_find(d->next, &(struct store_range){.table = span->table,
							.period_ms = span->period_ms,
							.handles = d->handles + d->part.from,
							.handle_count = series_part_count(&d->part),
							.start_ms = d->at_ms,
							.end_ms = span->to_ms,
							.fields = 1u << span->field});
}

static void on_found(void *owner, int err, int64_t next_ms)
{
	struct rollup_delete *d = owner;
	d->next_ms = next_ms;
	if (err) {
		on_failed(d, err);
	} else if (next_ms == INT64_MAX) {
		d->at_ms = d->spans[d->span].to_ms;
		find_next(d);
	} else {
		count_part(d);
	}
}

/* The part of the span at hand: all of it, or some slots. Its windows are whole slots, but for one
 * that the span cuts. */
static void choose_part(struct rollup_delete *d, int64_t *window_ms)
{
	const struct span *span = &d->spans[d->span];
	int64_t slot_ms = d->options.grains->slot_ms;
	*window_ms = span->to_ms - span->from_ms;
	d->part_ms = span->to_ms;
	if (!span->by_slots)
		return;
	int64_t first_ms = floor_to(d->next_ms, slot_ms);
	int64_t end_ms = first_ms + (first_ms < d->at_ms ? 1 : WINDOWS_MAX) * slot_ms;
	*window_ms = slot_ms;
	d->at_ms = first_ms < d->at_ms ? d->at_ms : first_ms;
	d->part_ms = end_ms < span->to_ms ? end_ms : span->to_ms;
}

static void count_part(struct rollup_delete *d)
{
	const struct span *span = &d->spans[d->span];
	int64_t window_ms;
	choose_part(d, &window_ms);
	store_read_reset(d->read);
	d->request = store_read_add(d->read, STORE_AGGREGATE);
	ASSERT(d->request);
	d->request->aggregate =
		(struct store_aggregate){.table = span->table,
					 .period_ms = span->period_ms,
					 .handles = d->handles + d->part.from,
					 .handle_count = series_part_count(&d->part),
					 .field = span->field,
					 .start_ms = d->at_ms,
					 .end_ms = d->part_ms,
					 .window_ms = window_ms};
	d->counted = d->touch_count = 0;
	series_walk_submit(d->walk, d->read);
}

static void add_touch(struct rollup_delete *d, struct member *m, int64_t slot_ms)
{
	if (slot_ms < 0 || slot_ms < d->spans[d->span].mark_from_ms)
		return;
	d->touches[d->touch_count++] = (struct rollup_touch){.slot = {slot_ms / 1000, m->partition},
							     .tenant = d->options.tenant,
							     .series_set = m->series_set,
							     .deleted = true};
	m->touches++;
}

/* Of a slot, or of all of the part, in which there is something. */
static void add_window(struct rollup_delete *d, struct member *m, int64_t from_ms)
{
	int64_t width_ms = d->request->aggregate.window_ms, slot_ms = floor_to(from_ms, width_ms);
	int64_t to_ms = d->part_ms - from_ms < width_ms ? d->part_ms : from_ms + width_ms;
	struct stretch *last = m->stretches ? &m->stretch[m->stretches - 1] : NULL;
	if (!last || from_ms - last->to_ms > GAP_MAX_SLOTS * width_ms) {
		m->stretch[m->stretches++] = (struct stretch){from_ms, to_ms};
	} else {
		slot_ms = last->to_ms;
		last->to_ms = to_ms;
	}
	for (; d->spans[d->span].by_slots && slot_ms < to_ms; slot_ms += width_ms)
		add_touch(d, m, slot_ms);
}

static void take_counts(struct rollup_delete *d)
{
	const struct store_aggregate *answer = &d->request->aggregate;
	for (; d->counted < answer->next_handle; d->counted++) {
		struct member *m = &d->members[d->part.from + d->counted];
		const struct store_windows *windows = &answer->windows[d->counted];
		m->count = m->touches = m->stretches = 0;
		m->first_touch = d->touch_count;
		for (size_t i = 0; i < windows->count; i++) {
			m->count += windows->list[i].count;
			add_window(d, m,
				   answer->start_ms +
					   (int64_t)windows->numbers[i] * answer->window_ms);
		}
	}
}

/* ---- Deleting -------------------------------------------------------------------------------- */

/* A member's part is done, or would be. */
static void take_total(struct rollup_delete *d, const struct member *m)
{
	*d->spans[d->span].total += m->count;
	d->result.marks += m->touches;
}

static void next_part(struct rollup_delete *d)
{
	d->at_ms = d->part_ms;
	find_next(d);
}

/* Of the members from `written` on that have something, as many as one write is to be of. */
static size_t choose_members(struct rollup_delete *d, uint64_t handles[GROUP_MAX])
{
	size_t n = 0;
	for (d->writing = d->written; d->writing < d->part.to && n < d->write_series;
	     d->writing++) {
		const struct member *m = &d->members[d->writing];
		if (d->forgetting || m->count)
			handles[n++] = d->handles[d->writing];
	}
	return n;
}

/* Marks come first: whoever deletes and dies in between has marked too much, which does no harm. */
static int add_marks(struct rollup_delete *d)
{
	const struct member *first = &d->members[d->written], *last = &d->members[d->writing - 1];
	size_t count = last->first_touch + last->touches - first->first_touch, added = 0;
	struct rollup_touch *touches = d->touches + first->first_touch;
	if (!d->spans[d->span].by_slots || !count)
		return 0;
	rollup_touches_sort(touches, count);
	int err = rollup_touches_add(d->options.track, d->write, clock_wall_ms(d->options.clock),
				     touches, count, &added);
	store_write_next_stage(d->write);
	return err;
}

static int add_member(struct rollup_delete *d, size_t member)
{
	const struct span *span = &d->spans[d->span];
	const struct member *m = &d->members[member];
	int err = 0;
	for (size_t i = 0; i < m->stretches && !err; i++)
		err = store_delete_range(d->write, span->table, span->period_ms,
					 &d->handles[member], 1, m->stretch[i].from_ms,
					 m->stretch[i].to_ms);
	return err;
}

/* A sample that came since the count goes if its slot is marked, else it stays. That it has a mark
 * of its own is not enough: a job that was at work on its slot may have read it, and writes rows of
 * it, which nothing but the mark of a deletion takes away. */
static int add_part(struct rollup_delete *d)
{
	int err = add_marks(d);
	for (size_t i = d->written; i < d->writing && !err; i++)
		err = add_member(d, i);
	return err;
}

/* What came since goes with them: a series that has data would stay. */
static int add_forgetting(struct rollup_delete *d, const uint64_t *handles, size_t n)
{
	int err = 0;
	for (size_t s = 0; s < d->span_count && !err; s++) {
		const struct span *span = &d->spans[s];
		err = store_delete_range(d->write, span->table, span->period_ms, handles, n,
					 STORE_TS_MIN, STORE_TS_MAX);
	}
	return err ? err : store_series_forget(d->write, handles, n);
}

/* By members the marks are no longer in order, so what is left is counted once more. */
static void write_fewer(struct rollup_delete *d)
{
	d->write_series /= 2;
	if (d->forgetting)
		write_some(d);
	else
		count_part(d);
}

static void submit_write(struct rollup_delete *d, const uint64_t *handles, size_t n)
{
	store_write_reset(d->write);
	int err = fault("rollup_delete");
	if (!err)
		err = d->forgetting ? add_forgetting(d, handles, n) : add_part(d);
	d->write_us = d->options.clock->mono_us(d->options.clock);
	if (!err)
		err = store_write_submit(d->write);
	if (err == ERR_LIMIT && d->write_series > 1)
		write_fewer(d);
	else if (err)
		end(d, err);
}

static void write_some(struct rollup_delete *d)
{
	uint64_t handles[GROUP_MAX];
	size_t n = choose_members(d, handles);
	if (series_walk_cancelled(d->walk))
		end(d, ERR_CANCELLED);
	else if (!n && d->forgetting)
		next_members(d);
	else if (!n)
		next_part(d);
	else
		submit_write(d, handles, n);
}

static void choose_size(struct rollup_delete *d)
{
	int64_t took_us = d->options.clock->mono_us(d->options.clock) - d->write_us;
	if (took_us < WRITE_SHORT_US && d->write_series < GROUP_MAX)
		d->write_series *= 2;
	else if (took_us > WRITE_LONG_US && d->write_series > WRITE_SERIES_MIN)
		d->write_series /= 2;
}

static void take_written(struct rollup_delete *d)
{
	for (; d->written < d->writing; d->written++) {
		const struct member *m = &d->members[d->written];
		if (d->forgetting) {
			d->result.forgotten++;
			if (d->options.catalog)
				catalog_forgotten(d->options.catalog, d->options.tenant, m->metric);
		} else {
			take_total(d, m);
		}
	}
}

static void on_written(struct store_write *write, int err)
{
	struct rollup_delete *d = write->owner;
	if (err) {
		on_failed(d, err);
		return;
	}
	choose_size(d);
	take_written(d);
	write_some(d);
}

static void on_counted(struct store_read *read, int err)
{
	struct rollup_delete *d = read->owner;
	if (err) {
		on_failed(d, err);
		return;
	}
	take_counts(d);
	if (d->request->more) {
		series_walk_submit(d->walk, d->read);
		return;
	}
	d->written = d->part.from;
	if (!d->options.only_count && !d->spans[d->span].only_count) {
		write_some(d);
		return;
	}
	for (size_t i = d->part.from; i < d->part.to; i++)
		take_total(d, &d->members[i]);
	next_part(d);
}
