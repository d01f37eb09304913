/* One series: its samples in one segment, and over many. */
#include "store/lmdb/read/read.h"

/* Puts `head` (sorted) and `blocks` (sorted) together, the higher sequence on top. */
static void overlay(struct samples *blocks, struct samples *head, struct samples *out)
{
	if (head->count == 0 || blocks->count == 0) {
		struct samples *only = head->count ? head : blocks;
		struct samples swapped = *out;
		*out = *only;
		*only = swapped;
	} else if (head->sequence > blocks->sequence) {
		samples_merge(blocks, head, out);
	} else {
		samples_merge(head, blocks, out);
	}
}

static int segment_decode(struct reading *r, const struct lookup *lookup, size_t first,
			  int64_t start_ms, struct samples *blocks)
{
	const struct target *t = &lookup->target;
	int err = 0;
	samples_reuse(blocks, t->fields);
	for (size_t i = first; i < lookup->refs.count && !err; i++) {
		const struct block *block = &lookup->refs.list[i].block;
		err = block_append(block, t->first_column - block->meta.first_column, start_ms,
				   t->end_ms, blocks);
		r->read->work.blocks_decoded++;
		r->read->work.rows_decoded += block->meta.rows;
	}
	if (!err)
		samples_sort(blocks);
	return err;
}

/* Leaves only what lies after `ts_ms`. */
static void drop_until(struct samples *samples, int64_t ts_ms)
{
	size_t from = 0;
	while (from < samples->count && samples->ts_ms[from] <= ts_ms)
		from++;
	samples->count -= from;
	if (!from)
		return;
	memmove(samples->ts_ms, samples->ts_ms + from, samples->count * sizeof(*samples->ts_ms));
	for (unsigned f = 0; f < samples->fields; f++) {
		memmove(samples->bits[f], samples->bits[f] + from,
			samples->count * sizeof(uint64_t));
		memmove(samples->types[f], samples->types[f] + from, samples->count);
	}
}

static size_t count_after(const struct samples *samples, int64_t ts_ms)
{
	size_t count = 0;
	while (count < samples->count && samples->ts_ms[samples->count - 1 - count] > ts_ms)
		count++;
	return count;
}

/* Where to begin so that blocks[first ..] and what the head holds after the block before them are
 * likely to be `newest` rows: blocks give fewer where the range cuts them and where they have gaps.
 */
static size_t first_needed(const struct lookup *lookup, size_t newest)
{
	size_t rows = 0, first = lookup->refs.count;
	while (first > 0) {
		const struct block_meta *meta = &lookup->refs.list[first - 1].block.meta;
		if (rows + count_after(&lookup->head, meta->last_ts_ms) >= newest)
			break;
		rows += meta->rows;
		first--;
	}
	return first;
}

/* From the newest backward; with twice the blocks, if those were not enough. */
static int segment_read_newest(struct reading *r, struct lookup *lookup, int64_t start_ms,
			       size_t newest, struct samples *out)
{
	const struct block_refs *refs = &lookup->refs;
	struct samples *blocks = &r->scratch->blocks;
	size_t first = first_needed(lookup, newest);
	for (;;) {
		int err = segment_decode(r, lookup, first, start_ms, blocks);
		if (err)
			return err;
		/* A time may be in both: so many are certain. */
		if (first == 0 || blocks->count >= newest ||
		    count_after(&lookup->head, refs->list[first - 1].block.meta.last_ts_ms) >=
			    newest)
			break;
		size_t twice = 2 * (refs->count - first) + 1;
		first = twice < refs->count ? refs->count - twice : 0;
	}
	r->read->work.blocks_skipped += first;
	if (first > 0)
		drop_until(&lookup->head, refs->list[first - 1].block.meta.last_ts_ms);
	overlay(blocks, &lookup->head, out);
	return 0;
}

int lookup_read(struct reading *r, struct lookup *lookup, int64_t start_ms, size_t newest,
		struct samples *out)
{
	bool disjoint = lookup_blocks_disjoint(lookup);
	if (newest && disjoint)
		return segment_read_newest(r, lookup, start_ms, newest, out);
	if (!disjoint)
		block_refs_by_sequence(&lookup->refs);
	int err = segment_decode(r, lookup, 0, start_ms, &r->scratch->blocks);
	if (!err)
		overlay(&r->scratch->blocks, &lookup->head, out);
	return err;
}

static int read_segment(struct reading *r, const struct segment_id *segment, const struct target *t,
			size_t newest, struct samples *out)
{
	int64_t start_ms = reading_visible_from(r, segment->sheet.retention, t->start_ms);
	struct lookup *lookup = &r->scratch->one;
	if (start_ms >= t->end_ms || !lookup_begin(r, lookup, t))
		return 0;
	int err = reading_lookup(r, segment, lookup, 1, start_ms);
	return err ? err : lookup_read(r, lookup, start_ms, newest, out);
}

int reading_classes(struct reading *r, const struct segment_id *list, size_t count,
		    const struct target *t, size_t newest, struct samples *out)
{
	int err = read_segment(r, &list[0], t, count == 1 ? newest : 0, out);
	for (size_t i = 1; i < count && !err; i++) {
		struct samples other, merged;
		samples_init(&other, t->fields);
		samples_init(&merged, t->fields);
		err = read_segment(r, &list[i], t, 0, &other);
		if (!err) {
			overlay(out, &other, &merged);
			samples_release(out);
			*out = merged;
		}
		samples_release(&other);
	}
	return err;
}

static void samples_append(struct samples *out, const struct samples *samples)
{
	size_t at = out->count, count = samples->count;
	samples_reserve(out, count);
	if (!count)
		return;
	memcpy(out->ts_ms + at, samples->ts_ms, count * sizeof(*samples->ts_ms));
	for (unsigned f = 0; f < samples->fields; f++) {
		memcpy(out->bits[f] + at, samples->bits[f], count * sizeof(*samples->bits[f]));
		memcpy(out->types[f] + at, samples->types[f], count);
	}
	out->count += count;
}

static void samples_append_backward(struct samples *out, const struct samples *samples)
{
	samples_reserve(out, samples->count);
	for (size_t i = samples->count; i-- > 0; out->count++) {
		out->ts_ms[out->count] = samples->ts_ms[i];
		for (unsigned f = 0; f < samples->fields; f++) {
			out->bits[f][out->count] = samples->bits[f][i];
			out->types[f][out->count] = samples->types[f][i];
		}
	}
}

int reading_series(struct reading *r, const struct target *t, size_t segment_count, bool backward,
		   size_t enough, struct samples *out)
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
		struct samples samples;
		if (out->count == 0 && !backward) {
			int err = reading_classes(r, r->segments + first, n, t, 0, out);
			if (err)
				return err;
			continue;
		}
		samples_init(&samples, t->fields);
		int err = reading_classes(r, r->segments + first, n, t,
					  backward ? enough - out->count : 0, &samples);
		if (!err && backward)
			samples_append_backward(out, &samples);
		else if (!err)
			samples_append(out, &samples);
		samples_release(&samples);
		if (err)
			return err;
	}
	return 0;
}
