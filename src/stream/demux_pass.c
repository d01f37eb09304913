#include "stream/demux_private.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "base/utf8.h"
#include "store/wait.h"
#include "stream/heads.h"
#include "stream/line_runs.h"

enum {
	PASS_BYTES = 16 << 20,
};

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
	state->ahead_ms = larger_of(state->ahead_ms, ms - received_ms);
	if (!state->has_last || ms > state->top_ms)
		state->top_ms = ms;
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
	err = err ? err : pass_add_numbers(p, &point);
	return err ? err : pass_take_texts(p, &point);
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
		p->late++;
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
		p->late++;
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
	int64_t tags_ms = INT64_MAX; /* the hour of which its tags were taken last */
	struct receipt_walk receipts = run->receipts;
	while (line_records_next(records)) {
		uint64_t begin = run->begin + records->begin;
		struct slice line = line_records_text(records);
		if (begin >= p->end)
			return PASS_END;
		if (pass_is_full(p))
			return PASS_ENOUGH;
		struct line_carry carry = clock->carry;
		int64_t received_ms = receipt_walk_to(&receipts, records->begin);
		int64_t ms = line_clock_next(clock, line, received_ms);
		int err = pass_take(p, line, ms, received_ms);
		if (!err && run->tags.len && ms < received_ms + PASS_AHEAD_MS &&
		    floor_to(ms, PASS_HOUR_MS) != tags_ms) {
			tags_ms = floor_to(ms, PASS_HOUR_MS);
			err = pass_take_chunk_tags(p, run->tags, tags_ms);
		}
		if (err) {
			clock->carry = carry;
			return err;
		}
		p->passed->bytes += records->end - records->begin;
		p->done = run->begin + records->end;
	}
	return 0;
}

/* Behind a range that is done stands the next line, which may come later. */
static void pass_note_end(struct pass *p, uint64_t at)
{
	const struct offsets *done = &p->read->done;
	struct demux_end end = {.at = at, .carry = p->work->clock.carry};
	struct buf header;
	if (!at || !offsets_meet(done, at - 1, at) || offsets_meet(done, at, at + 1))
		return;
	buf_init(&header, FIELDS_STATE_MAX_BYTES);
	fields_state_put(&p->reader.fields, &header);
	end.header = mem_copy_slice(buf_slice(&header));
	demux_read_put_end(p->read, &end);
	buf_release(&header);
}

/* The range that was read is done; another one begins. */
static void pass_end_range(struct pass *p, uint64_t next)
{
	if (p->done > p->from) {
		offsets_add(&p->read->done, p->from, p->done);
		pass_note_end(p, p->done);
		p->stream->changed = true;
	}
	p->from = p->done = next;
}

/* Lost bytes are not looked at again. Lines behind them are read as behind a hole. */
static int pass_see_lost(struct pass *p, const struct line_run *run)
{
	if (run->begin >= p->end)
		return PASS_END;
	p->done = run->begin + run->lost;
	p->lost += run->lost;
	p->work->clock.carry = (struct line_carry){0, 0};
	return 0;
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
	if (run->lost)
		return pass_see_lost(p, run);
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
	const struct demux_end *end = demux_read_end_at(p->read, from);
	struct slice header = end ? end->header : SLICE("");
	int err = 0;
	p->after_done = from && offsets_meet(&p->read->done, from - 1, from);
	p->from = p->done = UINT64_MAX;
	if (end) {
		p->work->clock.carry = end->carry;
	} else {
		err = chunk_carry_read(p->work->site, p->work->queue, id, &known->sealed, from,
				       &p->work->clock.carry, p->e);
	}
	if (fields_state_take(&p->reader.fields, header)) /* another rule's */
		log_debug("streams: names of columns of `" SHOWN "` are read anew",
			  SHOWN_OF(id->names.name));
	return err;
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
	pass_end_range(p, UINT64_MAX);
	return err == PASS_END ? 0 : err;
}

/* Events of bytes that have gone cannot be counted again. Their lines had times up to `ms`: bins up
 * to there are not derived any more, and none is made. */
static void pass_raise_floor(struct demux_stream *stream, int64_t ms)
{
	struct demux_state *state = &stream->state;
	size_t count = 0;
	state->gone_ms = larger_of(state->gone_ms, bin_start_ms(ms) + BIN_MS);
	state->floor_ms = larger_of(state->floor_ms, state->gone_ms);
	while (count < state->late_count && state->late[count] < state->floor_ms)
		count++;
	state->counts.late += count; /* of each at least one line */
	demux_state_remove_late(state, count);
	if (!state->has_last) /* nothing is in memory */
		stream->open_ms = larger_of(stream->open_ms, state->gone_ms);
	stream->changed = true;
}

static void pass_note_gone(struct pass *p, const struct stream_known *known)
{
	struct demux_state *state = &p->stream->state;
	if (known->kept_from <= p->read->kept_from)
		return;
	if (known->deleted_to > p->read->kept_from && state->has_last)
		pass_raise_floor(p->stream, state->top_ms);
	if (known->kept.before_ms)
		pass_raise_floor(p->stream, known->kept.before_ms + state->ahead_ms);
	p->read->kept_from = known->kept_from;
	offsets_cut(&p->read->done, known->kept_from);
	p->stream->changed = true;
}

/* Without the chunks, where one of them cannot be read: it keeps the blocks from nobody. */
static int pass_read_known(struct pass *p, const struct stream_id *id, struct stream_known *known)
{
	const struct demux_work *work = p->work;
	int err = stream_known_read(known, work->site, work->queue, id, 0, p->e);
	if (err != ERR_DAMAGED && err != ERR_VERSION)
		return err;
	p->passed->damaged++;
	return stream_known_read_blocks(known, work->site, work->queue, id, p->e);
}

static int pass_read_incarnation(struct pass *p, uint64_t incarnation)
{
	const struct stream_id id = {p->stream->tenant, p->stream->names, incarnation};
	struct stream_known known = {.made = false};
	struct offsets ranges = {.list = NULL};
	int err = pass_read_known(p, &id, &known);
	p->read = demux_state_read(&p->stream->state, incarnation);
	if (!err) {
		pass_note_gone(p, &known);
		offsets_subtract(&known.held, &p->read->done, &ranges);
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

/* What a pass that is written has read. Lines of bins that it has given up were read before. */
static void pass_count(const struct pass *p, const struct demux_counts *before)
{
	const struct demux_counts *now = &p->stream->state.counts;
	uint64_t passed = now->passed - before->passed, unread = now->unread - before->unread,
		 rest = now->rest - before->rest;
	stat_add(STAT_demux_read,
		 (int64_t)(now->lines - before->lines - passed - unread - p->late - rest));
	stat_add(STAT_demux_passed, (int64_t)passed);
	stat_add(STAT_demux_unread, (int64_t)unread);
	stat_add(STAT_demux_late, (int64_t)(now->late - before->late));
	stat_add(STAT_demux_rest, (int64_t)rest);
}

static void pass_forget_incarnations(struct pass *p, const struct pass_incarnations *there)
{
	uint64_t *list = mem_alloc_array(there->count, sizeof(*list));
	for (size_t i = 0; i < there->count; i++)
		list[i] = there->list[i].incarnation;
	struct demux_state *state = &p->stream->state;
	if (demux_state_keep_reads(state, list, there->count) && state->has_last)
		pass_raise_floor(p->stream, state->top_ms);
	mem_free(list);
}

static int pass_run(struct pass *p, const struct pass_incarnations *incarnations)
{
	struct demux_stream *stream = p->stream;
	int err = stream->loaded ? 0 : pass_load(p, incarnations->list[0].made_ms);
	if (err)
		return err;
	const struct demux_counts before = stream->state.counts;
	pass_set_fixed(p);
	pass_forget_incarnations(p, incarnations);
	err = pass_read_all(p, incarnations);
	stream->state.counts.late += p->late;
	err = err ? err : pass_write_bins(p, &stream->bins);
	err = err ? err : pass_derive(p);
	err = err ? err : pass_flush_points(p);
	err = err ? err : pass_flush_texts(p);
	if (err)
		return err;
	pass_trim_bins(p);
	p->passed->lost = p->lost;
	stat_add(STAT_demux_lost_bytes, (int64_t)p->lost);
	p->passed->waits = stream->state.late_count > 0;
	err = stream->changed ? pass_write_cell(p, false) : 0;
	if (err)
		return err;
	stream->changed = false;
	pass_count(p, &before);
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
	demux_texts_clear(work);
	mem_free(incarnations.list);
	datatype_reader_release(&p.reader);
	return err && !e->text[0] ? errbuf_set(e, err, "%s", err_text(err)) : err;
}

int demux_begin_again(struct demux_work *work, struct demux_stream *stream, struct errbuf *e)
{
	struct pass p = {
		.work = work, .stream = stream, .e = e, .stamp_us = store_stamp(work->site->store)};
	bool found;
	demux_stream_forget(stream);
	int err = pass_read_cell(&p, &found);
	const struct demux_state was = stream->state;
	demux_stream_forget(stream);
	if (err && err != ERR_DAMAGED && err != ERR_VERSION)
		return err;
	/* Bins whose bytes have gone stay as they are stored. */
	stream->state = (struct demux_state){.named = was.named,
					     .floor_ms = was.gone_ms,
					     .gone_ms = was.gone_ms,
					     .ahead_ms = was.ahead_ms};
	err = pass_write_cell(&p, err || !found);
	demux_stream_forget(stream);
	return err;
}

void demux_stream_forget(struct demux_stream *stream)
{
	if (stream->loaded)
		bins_release(&stream->bins);
	demux_state_release(&stream->state);
	stream->loaded = stream->changed = false;
	memset(stream->minutes, 0, sizeof(stream->minutes));
	memset(stream->noted, 0, sizeof(stream->noted));
}
