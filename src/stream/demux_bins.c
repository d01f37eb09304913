/* Bins: those in memory, and those that are derived anew. */
#include <stdlib.h>

#include "base/stats.h"
#include "stream/demux_private.h"
#include "stream/heads.h"
#include "stream/line_runs.h"
#include "stream/line_scan.h"

enum {
	PASS_OPEN_MS = 600000, /* so far before the newest line bins stay in memory */
	PASS_DERIVED_MAX_BYTES = 32 << 20,
	PASS_LATE_REST_MS = 10000, /* between derivations; or so many times what one took */
	PASS_LATE_REST_TIMES = 20,
};

/* ---- Bins ------------------------------------------------------------------------------------ */

void pass_add_to_bin(struct pass *p, struct bins *bins, int64_t bin_ms, size_t series)
{
	for (size_t i = 0; i < p->record.count; i++)
		p->values[i] = p->record.numbers[i].value;
	bins_add(bins, bin_ms, series, p->values);
}

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

int pass_write_bins(struct pass *p, struct bins *bins)
{
	return bins_each_changed(bins, pass_write_bin, p);
}

void pass_trim_bins(struct pass *p)
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

/* A part that is looked at: as a pass has read it, with the rest of its last record, and with what
 * stands in front of its first one. */
struct pass_part {
	struct pass *p;
	const struct line_scan *scan;
	const struct line_part *part;
	uint64_t begin;           /* reading begins there, in front of the part or at it */
	struct line_carry before; /* goes to its first line */
	bool has_before;          /* that is known */
	bool looks_back;          /* what stands in front of the part is read, too */
	bool begun;               /* a line of the part was read */
};

static const struct line_stream *pass_stream_of(const struct pass_part *of)
{
	return &of->scan->streams[of->part->stream];
}

static int pass_see_before(const struct chunk_place *place, struct slice value, void *owner)
{
	struct pass_part *of = owner;
	struct chunk_lines lines;
	if (memcmp(place, &of->part->place, sizeof(*place)))
		return 0;
	arena_reset(&of->p->work->heads);
	int err = chunk_lines_decode(value, &of->p->work->heads, &lines);
	if (!err)
		of->before = lines.before;
	of->has_before = !err && place->sequence_id - place->length == of->part->from;
	return err == ERR_LIMIT ? err : 0;
}

/* The time that goes on to the first line of a block is noted beside the block; for a later line it
 * is noted with the block before. */
static int pass_read_before(struct pass_part *of)
{
	struct pass *p = of->p;
	const struct line_stream *stream = pass_stream_of(of);
	const struct chunk_place *place = &of->part->place;
	int err = 0;
	if (place->length)
		err = chunk_heads_at(p->work->site, p->work->queue, &stream->id, CHUNK_HEAD_LINES,
				     place->sequence_id, pass_see_before, of, p->e);
	if ((err && err != ERR_DAMAGED) || of->has_before)
		return err;
	of->has_before = true;
	return chunk_carry_read(p->work->site, p->work->queue, &stream->id, &stream->known.sealed,
				of->part->from, &of->before, p->e);
}

static void pass_take_derived(struct pass *p, struct slice line, int64_t ms, int64_t received_ms)
{
	int64_t bin_ms = bin_start_ms(ms);
	bool is_rest;
	if (pass_is_derived(p, bin_ms) && ms < received_ms + PASS_AHEAD_MS &&
	    datatype_read(&p->reader, line, &p->record) == DATATYPE_READ)
		pass_add_to_bin(p, &p->derived, bin_ms, pass_series(p, &p->derived, &is_rest));
}

static int pass_see_part_records(struct pass_part *of, const struct line_run *run,
				 struct line_records *records)
{
	struct line_clock *clock = &of->p->work->clock;
	struct receipt_walk receipts = run->receipts;
	while (line_records_next(records)) {
		uint64_t begin = run->begin + records->begin;
		struct slice line = line_records_text(records);
		if (begin >= of->part->to)
			return PASS_END;
		if (begin >= of->part->from && !of->begun)
			clock->carry = of->before;
		of->begun = of->begun || begin >= of->part->from;
		int64_t received_ms = receipt_walk_to(&receipts, records->begin);
		int64_t ms = line_clock_next(clock, line, received_ms);
		if (of->begun)
			pass_take_derived(of->p, line, ms, received_ms);
		else if (of->p->stream->rule->format.kind == FIELDS_COLUMNS) /* of names */
			(void)!datatype_read(&of->p->reader, line, &of->p->record);
	}
	return 0;
}

/* The first record may have begun in front of the part. */
static int pass_see_part_run(const struct line_run *run, void *owner)
{
	struct pass_part *of = owner;
	struct line_clock *clock = &of->p->work->clock;
	struct line_records records = run->records;
	if (run->lost && run->begin < of->part->to && run->begin + run->lost > of->part->from)
		of->p->passed->damaged++;
	if (run->lost || (run->open && !run->cut))
		return 0;
	if (run->begins && run->begin == of->part->from && run->continues && !of->looks_back)
		return PASS_BACK;
	if (run->begins && run->begin != of->begin)
		clock->carry = (struct line_carry){0, 0};
	line_clock_set_zone(clock, run->zone);
	if (run->begins && run->continues && run->begin >= of->part->from)
		(void)!line_records_next(&records);
	return pass_see_part_records(of, run, &records);
}

static int pass_read_part(struct pass_part *of)
{
	struct pass *p = of->p;
	const struct line_stream *stream = pass_stream_of(of);
	const struct offset_range held = offsets_at(&stream->known.held, of->part->from);
	uint64_t begin = of->part->from;
	if (of->looks_back)
		begin = begin - held.begin > LINE_RECORD_MAX_BYTES ? begin - LINE_RECORD_MAX_BYTES
								   : held.begin;
	int err = fields_state_take(&p->reader.fields, SLICE(""));
	ASSERT(!err); /* nothing is a state */
	of->begin = begin;
	of->begun = false;
	p->work->clock.carry = (struct line_carry){0, 0};
	return line_runs_read(p->work->site, p->work->queue, &stream->id, &stream->known, begin,
			      smaller_of(held.end, of->part->to + PASS_RECORD_MAX_BYTES),
			      pass_see_part_run, of, p->e);
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

/* Names of columns are those of the part, and of what stands in front of it. */
static int pass_look_at_part(struct pass *p, struct line_scan *scan, const struct line_part *part)
{
	struct pass_part of = {.p = p,
			       .scan = scan,
			       .part = part,
			       .looks_back = p->stream->rule->format.kind == FIELDS_COLUMNS};
	int err = pass_read_before(&of);
	err = err ? err : pass_read_part(&of);
	if (err == PASS_BACK) {
		of.looks_back = true;
		err = pass_read_part(&of);
	}
	if (err == ERR_DAMAGED || err == ERR_VERSION) {
		p->passed->damaged++;
		err = 0;
	}
	return err == PASS_END ? 0 : err;
}

/* Whether bytes have gone that are not noted yet: then the next pass notes it. */
static bool pass_has_gone(struct pass *p, const struct line_scan *scan)
{
	for (size_t i = 0; i < scan->stream_count; i++) {
		const struct line_stream *stream = &scan->streams[i];
		if (demux_state_read(&p->stream->state, stream->id.incarnation)->kept_from <
		    stream->known.kept_from)
			return true;
	}
	return false;
}

static int pass_scan(struct pass *p, bool *gone)
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
	*gone = !err && pass_has_gone(p, &scan);
	for (size_t i = 0; i < scan.part_count && !err && !*gone; i++)
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
	demux_state_remove_late(state, p->derived_count);
	p->stream->changed = true;
}

int pass_derive(struct pass *p)
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
	bool gone;
	int err = pass_scan(p, &gone);
	if (!err && !gone && p->passed->damaged == damaged)
		err = pass_write_bins(p, &p->derived);
	bins_release(&p->derived);
	if (err)
		return err;
	if (!gone)
		pass_forget_derived(p, p->passed->damaged > damaged);
	int64_t took_ms = clock_mono_ms(clock) - begun_ms;
	stream->late_at_ms =
		begun_ms + larger_of(PASS_LATE_REST_TIMES * took_ms, (int64_t)PASS_LATE_REST_MS);
	return 0;
}
