/* One series: its samples in one segment, and over many. */
#include "store/lmdb/read/read.h"

/* Puts `head` (sorted) and `blocks` (sorted) together, the higher sequence on top. */
static void overlay(struct run *blocks, struct run *head, struct run *out)
{
	if (head->count == 0 || blocks->count == 0) {
		struct run *only = head->count ? head : blocks;
		struct run swapped = *out;
		*out = *only;
		*only = swapped;
	} else if (head->sequence > blocks->sequence) {
		run_merge(blocks, head, out);
	} else {
		run_merge(head, blocks, out);
	}
}

static int segment_decode(struct reading *r, const struct look *look, size_t first,
			  int64_t start_ms, struct run *blocks)
{
	const struct target *t = &look->target;
	int err = 0;
	run_reuse(blocks, t->fields);
	for (size_t i = first; i < look->refs.count && !err; i++) {
		const struct block *block = &look->refs.list[i].block;
		err = block_append(block, t->first_column - block->meta.first_column, start_ms,
				   t->end_ms, blocks);
		r->read->work.blocks_decoded++;
		r->read->work.rows_decoded += block->meta.rows;
	}
	if (!err)
		run_sort(blocks);
	return err;
}

/* Leaves only what lies behind `ts_ms`. */
static void drop_until(struct run *run, int64_t ts_ms)
{
	size_t from = 0;
	while (from < run->count && run->ts_ms[from] <= ts_ms)
		from++;
	run->count -= from;
	if (!from)
		return;
	memmove(run->ts_ms, run->ts_ms + from, run->count * sizeof(*run->ts_ms));
	for (unsigned f = 0; f < run->fields; f++) {
		memmove(run->bits[f], run->bits[f] + from, run->count * sizeof(uint64_t));
		memmove(run->types[f], run->types[f] + from, run->count);
	}
}

static size_t count_after(const struct run *run, int64_t ts_ms)
{
	size_t count = 0;
	while (count < run->count && run->ts_ms[run->count - 1 - count] > ts_ms)
		count++;
	return count;
}

/* Where to begin so that blocks[first ..] and what the head holds behind the block before them are
 * likely to be `newest` rows: blocks give fewer where the range cuts them and where they have gaps.
 */
static size_t first_needed(const struct look *look, size_t newest)
{
	size_t rows = 0, first = look->refs.count;
	while (first > 0) {
		const struct block_meta *meta = &look->refs.list[first - 1].block.meta;
		if (rows + count_after(&look->head, meta->last_ts_ms) >= newest)
			break;
		rows += meta->rows;
		first--;
	}
	return first;
}

/* From the newest backward; with twice the blocks, if those were not enough. */
static int segment_read_newest(struct reading *r, struct look *look, int64_t start_ms,
			       size_t newest, struct run *out)
{
	const struct block_refs *refs = &look->refs;
	struct run *blocks = &r->scratch->blocks;
	size_t first = first_needed(look, newest);
	for (;;) {
		int err = segment_decode(r, look, first, start_ms, blocks);
		if (err)
			return err;
		/* A time may be in both: so many are certain. */
		if (first == 0 || blocks->count >= newest ||
		    count_after(&look->head, refs->list[first - 1].block.meta.last_ts_ms) >= newest)
			break;
		size_t twice = 2 * (refs->count - first) + 1;
		first = twice < refs->count ? refs->count - twice : 0;
	}
	r->read->work.blocks_skipped += first;
	if (first > 0)
		drop_until(&look->head, refs->list[first - 1].block.meta.last_ts_ms);
	overlay(blocks, &look->head, out);
	return 0;
}

int look_read(struct reading *r, struct look *look, int64_t start_ms, size_t newest,
	      struct run *out)
{
	bool disjoint = look_blocks_disjoint(look);
	if (newest && disjoint)
		return segment_read_newest(r, look, start_ms, newest, out);
	if (!disjoint)
		block_refs_by_sequence(&look->refs);
	int err = segment_decode(r, look, 0, start_ms, &r->scratch->blocks);
	if (!err)
		overlay(&r->scratch->blocks, &look->head, out);
	return err;
}

static int read_segment(struct reading *r, const struct segment_id *segment, const struct target *t,
			size_t newest, struct run *out)
{
	int64_t start_ms = reading_visible_from(r, segment->sheet.retention, t->start_ms);
	struct look *look = &r->scratch->one;
	if (start_ms >= t->end_ms || !look_begin(r, look, t))
		return 0;
	int err = reading_lookup(r, segment, look, 1, start_ms);
	return err ? err : look_read(r, look, start_ms, newest, out);
}

int reading_classes(struct reading *r, const struct segment_id *list, size_t count,
		    const struct target *t, size_t newest, struct run *out)
{
	int err = read_segment(r, &list[0], t, count == 1 ? newest : 0, out);
	for (size_t i = 1; i < count && !err; i++) {
		struct run other, merged;
		run_init(&other, t->fields);
		run_init(&merged, t->fields);
		err = read_segment(r, &list[i], t, 0, &other);
		if (!err) {
			overlay(out, &other, &merged);
			run_release(out);
			*out = merged;
		}
		run_release(&other);
	}
	return err;
}

static void append_run(struct run *out, const struct run *run)
{
	size_t at = out->count, count = run->count;
	run_reserve(out, count);
	if (!count)
		return;
	memcpy(out->ts_ms + at, run->ts_ms, count * sizeof(*run->ts_ms));
	for (unsigned f = 0; f < run->fields; f++) {
		memcpy(out->bits[f] + at, run->bits[f], count * sizeof(*run->bits[f]));
		memcpy(out->types[f] + at, run->types[f], count);
	}
	out->count += count;
}

static void append_backward(struct run *out, const struct run *run)
{
	run_reserve(out, run->count);
	for (size_t i = run->count; i-- > 0; out->count++) {
		out->ts_ms[out->count] = run->ts_ms[i];
		for (unsigned f = 0; f < run->fields; f++) {
			out->bits[f][out->count] = run->bits[f][i];
			out->types[f][out->count] = run->types[f][i];
		}
	}
}

int reading_series(struct reading *r, const struct target *t, size_t segment_count, bool backward,
		   size_t enough, struct run *out)
{
	size_t at = backward ? segment_count : 0;
	while (out->count < enough && (backward ? at > 0 : at < segment_count)) {
		size_t first = at, n;
		if (backward) {
			first--;
			while (first > 0 &&
			       r->segments[first - 1].segment == r->segments[at - 1].segment)
				first--;
			n = at - first;
			at = first;
		} else {
			n = reading_same_segment(r->segments, at, segment_count);
			at += n;
		}
		struct run run;
		if (out->count == 0 && !backward) {
			int err = reading_classes(r, r->segments + first, n, t, 0, out);
			if (err)
				return err;
			continue;
		}
		run_init(&run, t->fields);
		int err = reading_classes(r, r->segments + first, n, t,
					  backward ? enough - out->count : 0, &run);
		if (!err && backward)
			append_backward(out, &run);
		else if (!err)
			append_run(out, &run);
		run_release(&run);
		if (err)
			return err;
	}
	return 0;
}
