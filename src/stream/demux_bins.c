/* Bins: those in memory, and those that are derived anew. */
#include <stdlib.h>

#include "base/stats.h"
#include "stream/demux_private.h"
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

static int pass_see_line(const struct line_seen *seen, void *owner)
{
	struct pass *p = owner;
	int64_t bin_ms = bin_start_ms(seen->ms);
	bool is_rest;
	if (!seen->partial && pass_is_derived(p, bin_ms) &&
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
	int err = pass_scan(p);
	if (!err && p->passed->damaged == damaged)
		err = pass_write_bins(p, &p->derived);
	bins_release(&p->derived);
	if (err)
		return err;
	pass_forget_derived(p, p->passed->damaged > damaged);
	int64_t took_ms = clock_mono_ms(clock) - begun_ms;
	stream->late_at_ms =
		begun_ms + larger_of(PASS_LATE_REST_TIMES * took_ms, (int64_t)PASS_LATE_REST_MS);
	return 0;
}
