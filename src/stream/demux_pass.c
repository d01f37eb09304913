#include "stream/demux_pass.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "base/utf8.h"
#include "store/wait.h"
#include "stream/heads.h"
#include "stream/line_runs.h"
#include "stream/line_scan.h"

enum {
	PASS_BYTES = 16 << 20,
	PASS_POINTS = 1000, /* that are written at once */
	PASS_VALUES = 4000,
	PASS_NUMBERS = 1 + 3 * DATATYPE_VALUES_MAX, /* of a point, which a bin has */
	PASS_POINTS_MAX_BYTES = 16 << 20,
	PASS_OPEN_MS = 600000, /* so far before the newest line bins stay in memory */
	PASS_AHEAD_MS = 86400000,
	PASS_DERIVED_MAX_BYTES = 32 << 20,
	PASS_LATE_REST_MS = 10000, /* between derivations; or so many times what one took */
	PASS_LATE_REST_TIMES = 20,
	PASS_RECORD_MAX_BYTES = 2 * CHUNK_DATA_MAX_BYTES,
	/* Stop a walk, without an error. */
	PASS_ENOUGH = 1,
	PASS_END = 2,
};

/* A pass over a stream. */
struct pass {
	struct demux_work *work;
	struct demux_stream *stream;
	struct demux_passed *passed;
	struct errbuf *e;
	int64_t stamp_us; /* of the cell; taken before anything is read */
	struct datatype_reader reader;
	struct datatype_record record;
	struct tag fixed[3]; /* host, cluster, name */
	size_t fixed_count;

	/* Of the incarnation that is read. */
	struct demux_read *read;
	uint64_t end;    /* a record that begins there, or behind, is read already */
	uint64_t done;   /* behind the last record that was read */
	uint64_t from;   /* where the range begins that is read */
	bool after_done; /* the byte in front of it is done */
	bool after_hole; /* that byte is not held, and no record was read since */

	struct bins derived;  /* while bins are derived anew */
	size_t derived_count; /* the first so many that wait for that */

	/* The numbers of a point that is made. */
	struct slice metrics[PASS_NUMBERS], units[PASS_NUMBERS];
	struct value values[PASS_NUMBERS];
};

/* ---- Points ---------------------------------------------------------------------------------- */

void demux_work_init(struct demux_work *work)
{
	line_clock_init(&work->clock);
	arena_init(&work->arena, PASS_POINTS_MAX_BYTES);
	work->points = mem_alloc_array(PASS_POINTS, sizeof(*work->points));
	work->point_count = work->value_count = 0;
}

void demux_work_release(struct demux_work *work)
{
	mem_free(work->points);
	arena_release(&work->arena);
	line_clock_release(&work->clock);
}

static bool pass_may_write(const struct demux_work *work)
{
	return clock_wall_ms(work->site->clock) + work->write_max_ms < work->until_ms;
}

static int pass_flush_points(struct pass *p)
{
	struct demux_work *work = p->work;
	int err = 0;
	if (work->point_count && (!pass_may_write(work) || task_queue_is_stopped(work->queue)))
		err = ERR_CANCELLED;
	else if (work->point_count)
		err = work->sink->write(work->sink, work->job, p->stream->tenant, p->stream->rule,
					work->points, work->point_count, p->e);
	work->point_count = work->value_count = 0;
	arena_reset(&work->arena);
	return err;
}

static bool pass_keep_texts(struct arena *arena, const struct slice **list, size_t count)
{
	struct slice *copies = arena_alloc(arena, (count + 1) * sizeof(*copies));
	for (size_t i = 0; copies && i < count; i++) {
		copies[i] = arena_copy(arena, (*list)[i]);
		if (!copies[i].data)
			return false;
	}
	*list = copies;
	return copies != NULL;
}

/* Copies what lies in the line. */
static int pass_keep_point(struct pass *p, struct demux_point *point)
{
	struct arena *arena = &p->work->arena;
	struct value *values = arena_alloc(arena, (point->count + 1) * sizeof(*values));
	if (!values || !pass_keep_texts(arena, &point->metrics, point->count) ||
	    !pass_keep_texts(arena, &point->units, point->count))
		return ERR_LIMIT;
	memcpy(values, point->values, point->count * sizeof(*values));
	point->values = values;
	for (size_t i = p->fixed_count; i < point->tag_count; i++) {
		point->tags[i].value = arena_copy(arena, point->tags[i].value);
		if (!point->tags[i].value.data)
			return ERR_LIMIT;
	}
	return 0;
}

/* Where there is no room what waits is written first. */
static int pass_add_point(struct pass *p, const struct demux_point *point)
{
	struct demux_work *work = p->work;
	struct demux_point copy = *point;
	int err = pass_keep_point(p, &copy);
	if (err) {
		err = pass_flush_points(p);
		copy = *point;
		err = err ? err : pass_keep_point(p, &copy);
	}
	if (err)
		return err == ERR_LIMIT ? errbuf_set(p->e, err, "a sample is too large") : err;
	work->points[work->point_count++] = copy;
	work->value_count += copy.count;
	return work->point_count == PASS_POINTS || work->value_count >= PASS_VALUES
		       ? pass_flush_points(p)
		       : 0;
}

/* Adds the numbers that are gathered, of which there may be none. */
static int pass_add_numbers(struct pass *p, struct demux_point *point)
{
	point->metrics = p->metrics;
	point->units = p->units;
	point->values = p->values;
	int err = point->count ? pass_add_point(p, point) : 0;
	point->count = 0;
	return err;
}

/* A label that a line has not is no tag. */
static void pass_set_tags(const struct pass *p, struct demux_point *point,
			  const struct slice *labels)
{
	const struct datatype *rule = p->stream->rule;
	memcpy(point->tags, p->fixed, p->fixed_count * sizeof(*p->fixed));
	point->tag_count = p->fixed_count;
	for (size_t i = 0; labels && i < rule->tag_count; i++)
		if (labels[i].len)
			point->tags[point->tag_count++] =
				(struct tag){rule->tags[i].key, labels[i]};
	if (!labels)
		point->tags[point->tag_count++] = (struct tag){SLICE("rest"), SLICE("true")};
}

/* ---- Series ---------------------------------------------------------------------------------- */

/* Stands for all labels of which there are too many. */
static const struct hash128 pass_rest = {UINT64_MAX, UINT64_MAX};

/* Whether labels have series of their own: the first ones have. */
static bool pass_has_series(struct pass *p, struct hash128 hash)
{
	struct hash_set *known = &p->stream->state.series;
	if (hash_set_has(known, hash))
		return true;
	if (known->table.count >= p->stream->rule->series_max)
		return false;
	return hash_set_add(known, hash, DEMUX_SERIES_MAX);
}

static size_t pass_series(struct pass *p, struct bins *bins, bool *is_rest)
{
	const struct slice *labels = p->record.tags;
	struct hash128 hash = bins_hash(labels, p->stream->rule->tag_count);
	size_t series = bins_find(bins, hash);
	*is_rest = series == SIZE_MAX && !pass_has_series(p, hash);
	if (*is_rest) {
		hash = pass_rest;
		labels = NULL;
		series = bins_find(bins, hash);
	}
	return series == SIZE_MAX ? bins_add_series(bins, hash, labels) : series;
}

/* ---- Records --------------------------------------------------------------------------------- */

static void pass_note_unread(struct pass *p, struct slice line)
{
	struct demux_state *state = &p->stream->state;
	state->counts.unread++;
	state->example_len = utf8_cut(line, DEMUX_EXAMPLE_MAX_BYTES);
	memcpy(state->example, line.data, state->example_len);
}

/* A clock that is ahead does not make the lines of others late. */
static void pass_note_time(struct demux_state *state, int64_t ms, int64_t received_ms)
{
	ms = smaller_of(ms, received_ms);
	if (!state->has_last || ms > state->last_ms)
		state->last_ms = ms;
	state->has_last = true;
}

static int pass_take_sample(struct pass *p, int64_t ms, int64_t received_ms)
{
	const struct datatype_record *record = &p->record;
	struct demux_state *state = &p->stream->state;
	struct demux_point point = {.ms = ms};
	pass_note_time(state, ms, received_ms);
	if (!pass_has_series(p, bins_hash(record->tags, p->stream->rule->tag_count))) {
		state->counts.rest++;
		return 0;
	}
	pass_set_tags(p, &point, record->tags);
	int err = 0;
	for (size_t i = 0; i < record->count && !err; i++) {
		const struct datatype_number *number = &record->numbers[i];
		if (number->value.type == VALUE_NONE)
			continue;
		p->metrics[point.count] = number->metric;
		p->units[point.count] = number->unit;
		p->values[point.count++] = number->value;
		if (point.count == ARRAY_LEN(p->values))
			err = pass_add_numbers(p, &point);
	}
	return err ? err : pass_add_numbers(p, &point);
}

static void pass_add_to_bin(struct pass *p, struct bins *bins, int64_t bin_ms, size_t series)
{
	for (size_t i = 0; i < p->record.count; i++)
		p->values[i] = p->record.numbers[i].value;
	bins_add(bins, bin_ms, series, p->values);
}

/* False: its bin is to be derived anew, and there are too many of these already. */
static bool pass_take_event(struct pass *p, int64_t ms, int64_t received_ms)
{
	struct demux_stream *stream = p->stream;
	struct demux_state *state = &stream->state;
	int64_t bin_ms = bin_start_ms(ms);
	if (bin_ms >= stream->open_ms) {
		bool is_rest;
		size_t series = pass_series(p, &stream->bins, &is_rest);
		state->counts.rest += is_rest;
		pass_add_to_bin(p, &stream->bins, bin_ms, series);
	} else if (bin_ms < state->floor_ms || bin_ms < state->last_ms - p->work->late_max_ms) {
		state->counts.late++;
	} else if (!demux_state_add_late(state, bin_ms)) {
		return false;
	}
	pass_note_time(state, ms, received_ms);
	return true;
}

/* PASS_ENOUGH: it is not taken, and the pass is to end. */
static int pass_take(struct pass *p, struct slice line, int64_t ms, int64_t received_ms)
{
	struct demux_counts *counts = &p->stream->state.counts;
	enum datatype_result result = datatype_read(&p->reader, line, &p->record);
	int err = 0;
	if (result == DATATYPE_READ && ms >= received_ms + PASS_AHEAD_MS)
		counts->late++;
	else if (result == DATATYPE_READ && p->stream->rule->kind == DATATYPE_SAMPLES)
		err = pass_take_sample(p, ms, received_ms);
	else if (result == DATATYPE_READ && !pass_take_event(p, ms, received_ms))
		return PASS_ENOUGH;
	else if (result == DATATYPE_NOT)
		pass_note_unread(p, line);
	else if (result == DATATYPE_PASSED)
		counts->passed++;
	counts->lines++;
	return err;
}

static int64_t pass_received_ms(const struct line_run *run, size_t offset)
{
	return run->receipt && offset >= run->receipt->offset ? run->receipt->received_ms
							      : run->received_ms;
}

/* A pass ends where its bins take too much memory, or it has read enough. */
static bool pass_is_full(const struct pass *p)
{
	return p->passed->bytes >= PASS_BYTES ||
	       p->stream->bins.used_bytes >= p->work->bins_max_bytes;
}

static int pass_see_records(struct pass *p, const struct line_run *run,
			    struct line_records *records)
{
	struct line_clock *clock = &p->work->clock;
	while (line_records_next(records)) {
		uint64_t begin = run->begin + records->begin;
		struct slice line = line_records_text(records);
		if (begin >= p->end)
			return PASS_END;
		if (pass_is_full(p))
			return PASS_ENOUGH;
		struct line_carry carry = clock->carry;
		int64_t received_ms = pass_received_ms(run, records->begin);
		int64_t ms = line_clock_next(clock, line, received_ms);
		int err = pass_take(p, line, ms, received_ms);
		if (err) {
			clock->carry = carry;
			return err;
		}
		p->passed->bytes += records->end - records->begin;
		p->done = run->begin + records->end;
	}
	return 0;
}

/* The range that was read is done; another one begins. */
static void pass_end_range(struct pass *p, uint64_t next)
{
	if (p->done > p->from) {
		offsets_add(&p->read->done, p->from, p->done);
		p->stream->changed = true;
	}
	p->from = p->done = next;
}

/* What stands in front of the first whole record behind a hole belongs to a record that began in
 * the hole, and is read when that is filled. */
static int pass_see_run(const struct line_run *run, void *owner)
{
	struct pass *p = owner;
	struct line_clock *clock = &p->work->clock;
	struct line_records records = run->records;
	if (run->begins) {
		bool first = p->done == UINT64_MAX;
		pass_end_range(p, run->begin);
		if (!first)
			clock->carry = (struct line_carry){0, 0};
		p->after_hole = !first || !p->after_done;
	}
	if (run->open && !run->cut)
		return 0;
	line_clock_set_zone(clock, run->zone);
	if (p->after_hole && run->continues && line_records_next(&records))
		p->done = run->begin + records.end;
	p->after_hole = false;
	return pass_see_records(p, run, &records);
}

/* ---- Incarnations ---------------------------------------------------------------------------- */

/* What goes from the line before to the first one of a range: as it was left there, or as it is
 * noted beside a block. */
static int pass_begin_range(struct pass *p, const struct stream_id *id,
			    const struct stream_known *known, uint64_t from)
{
	const struct offsets *done = &p->read->done;
	struct slice header = SLICE("");
	int err = 0;
	p->after_done = from && offsets_meet(done, from - 1, from);
	p->from = p->done = UINT64_MAX;
	if (done->count && done->list[done->count - 1].end == from) {
		p->work->clock.carry = p->read->carry;
		header = p->read->header;
	} else {
		err = chunk_carry_read(p->work->site, p->work->queue, id, &known->sealed, from,
				       &p->work->clock.carry, p->e);
	}
	if (fields_state_take(&p->reader.fields, header)) /* another rule's */
		log_debug("streams: names of columns of `" SHOWN "` are read anew",
			  SHOWN_OF(id->names.name));
	return err;
}

/* Behind the last byte that is done stands the next line. */
static void pass_note_carry(struct pass *p, uint64_t end)
{
	const struct offsets *done = &p->read->done;
	struct buf header;
	if (!done->count || done->list[done->count - 1].end != end)
		return;
	buf_init(&header, FIELDS_STATE_MAX_BYTES);
	fields_state_put(&p->reader.fields, &header);
	mem_free_slice(p->read->header);
	p->read->header = mem_copy_slice(buf_slice(&header));
	p->read->carry = p->work->clock.carry;
	buf_release(&header);
}

/* Reads the records that begin in a range of which nothing is done. */
static int pass_read_range(struct pass *p, const struct stream_id *id,
			   const struct stream_known *known, const struct offset_range *range)
{
	/* The last record may end behind the range, where a hole was filled. */
	uint64_t to = smaller_of(offsets_at(&known->held, range->begin).end,
				 range->end + PASS_RECORD_MAX_BYTES);
	int err = pass_begin_range(p, id, known, range->begin);
	if (err)
		return err;
	p->end = range->end;
	err = line_runs_read(p->work->site, p->work->queue, id, known, range->begin, to,
			     pass_see_run, p, p->e);
	uint64_t end = p->done;
	pass_end_range(p, UINT64_MAX);
	pass_note_carry(p, end);
	return err == PASS_END ? 0 : err;
}

/* The bytes that are held and not done. */
static void pass_list_ranges(const struct stream_known *known, const struct demux_read *read,
			     struct offsets *ranges)
{
	const struct offsets *held = &known->held, *done = &read->done;
	size_t at = 0;
	for (size_t i = 0; i < held->count; i++) {
		uint64_t begin = held->list[i].begin, end = held->list[i].end;
		for (; at < done->count && done->list[at].end <= end; at++) {
			if (begin < done->list[at].begin)
				offsets_add(ranges, begin, done->list[at].begin);
			begin = larger_of(begin, done->list[at].end);
		}
		if (at < done->count && done->list[at].begin < end)
			end = done->list[at].begin;
		if (begin < end)
			offsets_add(ranges, begin, end);
	}
}

/* No bin of before is derived anew. */
static void pass_raise_floor(struct demux_state *state)
{
	state->floor_ms = bin_start_ms(state->last_ms) + BIN_MS;
	state->counts.late += state->late_count; /* of each at least one line */
	state->late_count = 0;
}

/* Of bytes that somebody deleted nobody can count the events again. What is too old went a long
 * time after its bins were open. */
static void pass_note_gone(struct pass *p, const struct stream_known *known)
{
	struct demux_state *state = &p->stream->state;
	if (known->kept_from <= p->read->kept_from)
		return;
	if (known->deleted_to > p->read->kept_from && state->has_last)
		pass_raise_floor(state);
	p->read->kept_from = known->kept_from;
	offsets_cut(&p->read->done, known->kept_from);
	p->stream->changed = true;
}

static int pass_read_incarnation(struct pass *p, uint64_t incarnation)
{
	const struct stream_id id = {p->stream->tenant, p->stream->names, incarnation};
	struct stream_known known = {.made = false};
	struct offsets ranges = {.list = NULL};
	int err = stream_known_read(&known, p->work->site, p->work->queue, &id, 0, p->e);
	p->read = demux_state_read(&p->stream->state, incarnation);
	if (!err) {
		pass_note_gone(p, &known);
		pass_list_ranges(&known, p->read, &ranges);
	}
	for (size_t i = 0; i < ranges.count && !err; i++)
		err = pass_read_range(p, &id, &known, &ranges.list[i]);
	offsets_release(&ranges);
	stream_known_release(&known);
	return err;
}

struct pass_incarnation {
	uint64_t incarnation;
	int64_t made_ms;
};

struct pass_incarnations {
	const struct stream_names *names;
	struct pass_incarnation *list; /* in the order in which they were made */
	size_t count, room;
};

static int pass_compare_made(const void *a, const void *b)
{
	const struct pass_incarnation *x = a, *y = b;
	if (x->made_ms != y->made_ms)
		return x->made_ms < y->made_ms ? -1 : 1;
	return (x->incarnation > y->incarnation) - (x->incarnation < y->incarnation);
}

static int pass_see_incarnation(const struct store_cell *cell, void *owner)
{
	struct pass_incarnations *found = owner;
	enum stream_property property;
	struct stream_made made;
	if (!streams_read_property(cell, &property) || property != STREAM_MADE)
		return 0;
	int err = stream_made_decode(cell, &made);
	if (err || !stream_names_equal(&made.id.names, found->names))
		return err;
	GROW(found->list, found->room, found->count + 1);
	found->list[found->count++] = (struct pass_incarnation){made.id.incarnation, made.made_ms};
	return 0;
}

static int pass_list_incarnations(struct pass *p, struct pass_incarnations *found)
{
	struct stream_parts key, from, to;
	streams_key(&key, p->stream->tenant);
	streams_names_bound(&from, &p->stream->names, false);
	streams_names_bound(&to, &p->stream->names, true);
	const struct store_cell_scan scan = {
		.table = TABLE_STREAMS, .key = key.parts, .from = from.parts, .to = to.parts};
	int err = store_cells_wait(p->work->site->store, p->work->queue,
				   clock_wall_ms(p->work->site->clock), &scan, pass_see_incarnation,
				   found, p->e);
	if (found->count)
		qsort(found->list, found->count, sizeof(*found->list), pass_compare_made);
	return err;
}

/* ---- Bins ------------------------------------------------------------------------------------ */

static void pass_put_number(struct pass *p, struct demux_point *point, struct slice metric,
			    struct slice unit, struct value value)
{
	if (value.type == VALUE_NONE)
		return;
	p->metrics[point->count] = metric;
	p->units[point->count] = unit;
	p->values[point->count++] = value;
}

static int pass_write_bin(int64_t ms, const struct bin_series *series, const struct bin *bin,
			  void *owner)
{
	struct pass *p = owner;
	const struct datatype *rule = p->stream->rule;
	struct demux_point point = {.ms = ms};
	pass_set_tags(p, &point, series->labels);
	pass_put_number(p, &point, rule->count, SLICE(""), value_i64((int64_t)bin->count));
	for (size_t i = 0; i < rule->value_count; i++) {
		const struct datatype_value *value = &rule->values[i];
		const struct bin_number *number = &bin->numbers[i];
		pass_put_number(p, &point, value->sum, value->unit.unit, number->sum);
		pass_put_number(p, &point, value->min, value->unit.unit, number->least);
		pass_put_number(p, &point, value->max, value->unit.unit, number->greatest);
	}
	return pass_add_numbers(p, &point);
}

/* What is left of memory are the bins of the last minutes. */
static void pass_trim_bins(struct pass *p)
{
	struct demux_stream *stream = p->stream;
	struct bins *bins = &stream->bins;
	int64_t open_ms = stream->state.has_last
				  ? bin_start_ms(stream->state.last_ms - PASS_OPEN_MS)
				  : INT64_MIN;
	while (bins->slot_count &&
	       (bins_first_ms(bins) < open_ms || bins->used_bytes > p->work->bins_max_bytes / 2)) {
		open_ms = larger_of(open_ms, bins_first_ms(bins) + BIN_MS);
		bins_drop_before(bins, open_ms);
	}
	if (bins->used_bytes > p->work->bins_max_bytes / 2)
		bins_release(bins);
	stream->open_ms = larger_of(stream->open_ms, open_ms);
}

/* ---- Late lines ------------------------------------------------------------------------------ */

static int pass_compare_ms(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Whether a bin is among those that are derived. */
static bool pass_is_derived(const struct pass *p, int64_t bin_ms)
{
	return bsearch(&bin_ms, p->stream->state.late, p->derived_count, sizeof(bin_ms),
		       pass_compare_ms);
}

static int pass_see_line(const struct line_seen *seen, void *owner)
{
	struct pass *p = owner;
	int64_t bin_ms = bin_start_ms(seen->ms);
	bool is_rest;
	if (pass_is_derived(p, bin_ms) &&
	    datatype_read(&p->reader, seen->text, &p->record) == DATATYPE_READ)
		pass_add_to_bin(p, &p->derived, bin_ms, pass_series(p, &p->derived, &is_rest));
	return 0;
}

/* Whether one of the bins may have lines of a part. */
static bool pass_needs_part(const struct pass *p, const struct line_part *part)
{
	const int64_t *late = p->stream->state.late;
	for (size_t i = 0; i < p->derived_count; i++)
		if (late[i] <= part->last_ms && part->first_ms < late[i] + BIN_MS)
			return true;
	return false;
}

/* Names of columns are those of the part. */
static int pass_look_at_part(struct pass *p, struct line_scan *scan, const struct line_part *part)
{
	int err = fields_state_take(&p->reader.fields, SLICE(""));
	ASSERT(!err); /* nothing is a state */
	return line_scan_look(scan, part, pass_see_line, p);
}

static int pass_scan(struct pass *p)
{
	const struct demux_state *state = &p->stream->state;
	struct line_query query = {.terms = NULL};
	const struct line_scan_rules rules = {.tenant = p->stream->tenant,
					      .names = p->stream->names,
					      .from_ms = state->late[0],
					      .to_ms = state->late[p->derived_count - 1] + BIN_MS,
					      .query = &query};
	struct line_scan scan;
	int err = line_scan_open(&scan, p->work->site, p->work->queue, &rules, p->e);
	for (size_t i = 0; i < scan.part_count && !err; i++)
		if (pass_needs_part(p, &scan.parts[i]))
			err = pass_look_at_part(p, &scan, &scan.parts[i]);
	p->passed->damaged += err ? 0 : scan.work.damaged;
	line_scan_close(&scan);
	return err;
}

/* So many of the bins that wait are derived at once: a few MB of them. */
static size_t pass_count_derived(const struct pass *p)
{
	const struct demux_state *state = &p->stream->state;
	size_t bin_bytes =
		sizeof(struct bin) + p->stream->rule->value_count * sizeof(struct bin_number);
	size_t count = PASS_DERIVED_MAX_BYTES / (bin_bytes * (state->series.table.count + 2));
	return smaller_of(larger_of(count, (size_t)1), state->late_count);
}

/* What was written of bins that cannot be read whole stays as it is. */
static void pass_forget_derived(struct pass *p, bool damaged)
{
	struct demux_state *state = &p->stream->state;
	if (damaged)
		state->counts.late += p->derived_count; /* of each at least one line */
	else
		stat_add(STAT_demux_derived, (int64_t)p->derived_count);
	state->late_count -= p->derived_count;
	memmove(state->late, state->late + p->derived_count,
		state->late_count * sizeof(*state->late));
	p->stream->changed = true;
}

/* Bins of which a part is in no memory are made of all lines of their time. */
static int pass_derive(struct pass *p)
{
	struct demux_stream *stream = p->stream;
	struct clock *clock = p->work->site->clock;
	int64_t begun_ms = clock_mono_ms(clock);
	if (!stream->state.late_count ||
	    (begun_ms < stream->late_at_ms && stream->state.late_count < DEMUX_LATE_MAX))
		return 0;
	const uint64_t damaged = p->passed->damaged;
	p->derived_count = pass_count_derived(p);
	bins_init(&p->derived, stream->rule->tag_count, stream->rule->value_count);
	int err = pass_scan(p);
	if (!err && p->passed->damaged == damaged)
		err = bins_each_changed(&p->derived, pass_write_bin, p);
	bins_release(&p->derived);
	if (err)
		return err;
	pass_forget_derived(p, p->passed->damaged > damaged);
	int64_t took_ms = clock_mono_ms(clock) - begun_ms;
	stream->late_at_ms =
		begun_ms + larger_of(PASS_LATE_REST_TIMES * took_ms, (int64_t)PASS_LATE_REST_MS);
	return 0;
}

/* ---- The cell -------------------------------------------------------------------------------- */

struct pass_cell {
	struct demux_stream *stream;
	bool found;
};

static int pass_see_cell(const struct store_cell *cell, void *owner)
{
	struct pass_cell *of = owner;
	struct stream_parts column;
	struct stream_names names;
	demux_column(&column, &of->stream->names);
	if (!slice_equal(cell->column.part[0], column.parts.part[0]))
		return 0;
	of->found = true;
	int err = demux_state_decode(cell->value, &of->stream->state, &names);
	return err ? err : stream_names_equal(&names, &of->stream->names) ? 0 : ERR_DAMAGED;
}

struct pass_named {
	const struct stream_names *names;
	int64_t made_ms;
	bool named;
};

/* The first of the streams of a source that have one datatype needs no name in its series. */
static int pass_see_other(const struct stream_made *made, void *owner)
{
	struct pass_named *of = owner;
	const struct stream_names group = {
		of->names->source, of->names->cluster, of->names->datatype, {NULL, 0}};
	if (!stream_names_fit(&group, &made->id.names))
		return PASS_ENOUGH;
	if (slice_equal(made->id.names.name, of->names->name))
		return 0;
	of->named = made->made_ms < of->made_ms ||
		    (made->made_ms == of->made_ms &&
		     slice_compare(made->id.names.name, of->names->name) < 0);
	return of->named ? PASS_ENOUGH : 0;
}

static int pass_find_named(struct pass *p, int64_t made_ms)
{
	struct pass_named of = {&p->stream->names, made_ms, false};
	struct stream_id before = {.tenant = p->stream->tenant, .names = p->stream->names};
	before.names.name = SLICE("");
	int err = stream_each(p->work->site, p->work->queue, p->stream->tenant, &before,
			      pass_see_other, &of, p->e);
	p->stream->state.named = of.named;
	return err == PASS_ENOUGH ? 0 : err;
}

/* Another rule makes other samples: of what is done it makes none. */
static void pass_take_rule(struct demux_stream *stream)
{
	struct demux_state *state = &stream->state;
	if (state->rule == stream->rule->hash)
		return;
	state->rule = stream->rule->hash;
	state->late_count = 0;
	hash_set_release(&state->series);
	if (state->has_last)
		state->floor_ms = bin_start_ms(state->last_ms) + BIN_MS;
	stream->changed = true;
}

static int pass_load(struct pass *p, const struct pass_incarnations *incarnations)
{
	struct demux_stream *stream = p->stream;
	struct pass_cell of = {.stream = stream};
	struct stream_parts key, column;
	demux_key(&key, stream->tenant);
	demux_column(&column, &stream->names);
	const struct store_cell_scan scan = {
		.table = TABLE_DEMUX, .key = key.parts, .from = column.parts, .limit = 1};
	int err = store_cells_wait(p->work->site->store, p->work->queue,
				   clock_wall_ms(p->work->site->clock), &scan, pass_see_cell, &of,
				   p->e);
	if (err == ERR_DAMAGED || err == ERR_VERSION)
		return errbuf_set(p->e, err, "how far it is read cannot be read: %s",
				  err_text(err));
	if (!err && !of.found) {
		stream->state.floor_ms = INT64_MIN;
		err = pass_find_named(p, incarnations->list[0].made_ms);
	}
	if (err)
		return err;
	bins_init(&stream->bins, stream->rule->tag_count, stream->rule->value_count);
	pass_take_rule(stream);
	stream->open_ms =
		stream->state.has_last ? bin_start_ms(stream->state.last_ms) + BIN_MS : INT64_MIN;
	stream->late_at_ms = 0;
	stream->loaded = true;
	return 0;
}

static int pass_write_cell(struct pass *p, bool gone)
{
	struct demux_work *work = p->work;
	struct stream_parts key, column;
	struct buf value;
	int err = 0;
	struct store_write *write = store_write_new(work->site->store, DEMUX_STATE_MAX_BYTES * 2);
	demux_key(&key, p->stream->tenant);
	demux_column(&column, &p->stream->names);
	buf_init(&value, DEMUX_STATE_MAX_BYTES);
	if (gone)
		err = store_cell_delete(write, TABLE_DEMUX, &key.parts, &column.parts, p->stamp_us);
	else if (demux_state_encode(&p->stream->state, &p->stream->names, &value))
		err = errbuf_set(p->e, ERR_LIMIT, "it has too many holes");
	else
		err = store_cell_put(write, TABLE_DEMUX, &key.parts, &column.parts,
				     buf_slice(&value), p->stamp_us, 0);
	if (!err && !pass_may_write(work))
		err = ERR_CANCELLED;
	err = err ? err : store_write_wait_known(write, work->queue);
	buf_release(&value);
	store_write_free(write);
	return err;
}

/* ---- A pass ---------------------------------------------------------------------------------- */

static void pass_set_fixed(struct pass *p)
{
	const struct stream_names *names = &p->stream->names;
	p->fixed_count = 0;
	p->fixed[p->fixed_count++] = (struct tag){SLICE("host"), names->source};
	p->fixed[p->fixed_count++] = (struct tag){SLICE("cluster"), names->cluster};
	if (p->stream->state.named && names->name.len)
		p->fixed[p->fixed_count++] = (struct tag){SLICE("name"), names->name};
}

static int pass_read_all(struct pass *p, const struct pass_incarnations *incarnations)
{
	int err = 0;
	for (size_t i = 0; i < incarnations->count && !err; i++)
		err = pass_read_incarnation(p, incarnations->list[i].incarnation);
	p->passed->more = err == PASS_ENOUGH;
	return err == PASS_ENOUGH ? 0 : err;
}

/* What a pass that is written has read. */
static void pass_count(const struct demux_counts *before, const struct demux_counts *now)
{
	uint64_t passed = now->passed - before->passed, unread = now->unread - before->unread,
		 late = now->late - before->late, rest = now->rest - before->rest;
	stat_add(STAT_demux_read,
		 (int64_t)(now->lines - before->lines - passed - unread - late - rest));
	stat_add(STAT_demux_passed, (int64_t)passed);
	stat_add(STAT_demux_unread, (int64_t)unread);
	stat_add(STAT_demux_late, (int64_t)late);
	stat_add(STAT_demux_rest, (int64_t)rest);
}

static void pass_forget_incarnations(struct pass *p, const struct pass_incarnations *there)
{
	uint64_t *list = mem_alloc_array(there->count, sizeof(*list));
	for (size_t i = 0; i < there->count; i++)
		list[i] = there->list[i].incarnation;
	demux_state_keep_reads(&p->stream->state, list, there->count);
	mem_free(list);
}

static int pass_run(struct pass *p, const struct pass_incarnations *incarnations)
{
	struct demux_stream *stream = p->stream;
	int err = stream->loaded ? 0 : pass_load(p, incarnations);
	if (err)
		return err;
	const struct demux_counts before = stream->state.counts;
	pass_set_fixed(p);
	pass_forget_incarnations(p, incarnations);
	err = pass_read_all(p, incarnations);
	err = err ? err : bins_each_changed(&stream->bins, pass_write_bin, p);
	err = err ? err : pass_derive(p);
	err = err ? err : pass_flush_points(p);
	if (err)
		return err;
	pass_trim_bins(p);
	p->passed->waits = stream->state.late_count > 0;
	err = stream->changed ? pass_write_cell(p, false) : 0;
	if (err)
		return err;
	stream->changed = false;
	pass_count(&before, &stream->state.counts);
	return 0;
}

int demux_pass(struct demux_work *work, struct demux_stream *stream, struct demux_passed *passed,
	       struct errbuf *e)
{
	struct pass p = {.work = work,
			 .stream = stream,
			 .passed = passed,
			 .e = e,
			 .stamp_us = store_stamp(work->site->store)};
	struct pass_incarnations incarnations = {.names = &stream->names};
	*passed = (struct demux_passed){.bytes = 0};
	datatype_reader_init(&p.reader, stream->rule);
	int err = pass_list_incarnations(&p, &incarnations);
	if (!err && incarnations.count)
		err = pass_run(&p, &incarnations);
	else if (!err)
		err = pass_write_cell(&p, true);
	if (err || !incarnations.count)
		demux_stream_forget(stream);
	work->point_count = work->value_count = 0;
	arena_reset(&work->arena);
	mem_free(incarnations.list);
	datatype_reader_release(&p.reader);
	return err && !e->text[0] ? errbuf_set(e, err, "%s", err_text(err)) : err;
}

int demux_begin_again(struct demux_work *work, struct demux_stream *stream, struct errbuf *e)
{
	struct pass p = {
		.work = work, .stream = stream, .e = e, .stamp_us = store_stamp(work->site->store)};
	demux_stream_forget(stream);
	return pass_write_cell(&p, true);
}

void demux_stream_forget(struct demux_stream *stream)
{
	if (stream->loaded)
		bins_release(&stream->bins);
	demux_state_release(&stream->state);
	stream->loaded = stream->changed = false;
}
