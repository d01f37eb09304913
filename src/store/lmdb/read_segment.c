/* One series: its samples in one segment, and over many. */
#include "store/lmdb/read.h"

enum {
	SNAPSHOT_MAX_US = 50000,
	SEGMENTS_MAX = 65536, /* 50 years of days in each of some classes */
};

/* The time from which data of a class is visible. */
int64_t reading_visible_from(struct reading *r, enum retention_class retention, int64_t start_ms)
{
	int64_t lifetime_ms = retention_class_ms(retention), from;
	if (lifetime_ms == 0 || __builtin_sub_overflow(r->read->now_ms, lifetime_ms, &from))
		return start_ms;
	return from > start_ms ? from : start_ms;
}

/* The head's part, unsorted, and a snapshot that is no older. */
int reading_copy_head(struct reading *r, const struct segment_id *segment, const struct target *t,
		      int64_t start_ms, struct run *run)
{
	struct heads *heads = &r->engine->heads;
	pthread_rwlock_rdlock(&heads->lock);
	const struct head *head =
		heads_find(heads, segment, handle_shape(t->handle), handle_ordinal(t->handle));
	if (head)
		head_copy(head, t->first_column, start_ms, t->end_ms, run);
	bool stale = heads->epoch != r->reader->epoch;
	pthread_rwlock_unlock(&heads->lock);
	int64_t age_us = clock_real()->mono_us(clock_real()) - r->opened_us;
	return stale || age_us > SNAPSHOT_MAX_US ? reading_renew(r) : 0;
}

int reading_find_blocks(struct reading *r, const struct segment_id *segment, const struct target *t,
			int64_t start_ms, struct block_refs *refs)
{
	uint32_t ordinal_in_group;
	struct group_id id = engine_group_of(r->engine, segment, handle_shape(t->handle),
					     handle_ordinal(t->handle), &ordinal_in_group);
	int err = group_find(r->extents, &id, ordinal_in_group, t->first_column, start_ms,
			     t->end_ms, refs);
	r->read->work.extents += refs->extents;
	refs->extents = 0;
	return err;
}

bool reading_disjoint(const struct block_refs *refs)
{
	for (size_t i = 1; i < refs->count; i++) {
		if (refs->list[i].block.meta.first_ts_ms <= refs->list[i - 1].block.meta.last_ts_ms)
			return false;
	}
	return true;
}

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

/* All samples of one series in one segment of one class, sorted; `newest`: at most that many are
 * wanted, from the end (0: all). */
static int read_segment(struct reading *r, const struct segment_id *segment, const struct target *t,
			size_t newest, struct run *out)
{
	int64_t start_ms = reading_visible_from(r, segment->sheet.retention, t->start_ms);
	if (start_ms >= t->end_ms)
		return 0;
	struct run head, blocks;
	struct block_refs refs = {0};
	run_init(&head, t->fields);
	run_init(&blocks, t->fields);
	int err = reading_copy_head(r, segment, t, start_ms, &head);
	run_sort(&head);
	if (!err)
		err = reading_find_blocks(r, segment, t, start_ms, &refs);
	/* From the newest backward, so far as needed, if only the newest are wanted. */
	size_t first = 0;
	if (newest && head.count == 0 && reading_disjoint(&refs)) {
		size_t rows = 0;
		for (first = refs.count; first > 0 && rows < newest; first--) {
			const struct block_meta *meta = &refs.list[first - 1].block.meta;
			/* A block that the range cuts, or with gaps, may give fewer. */
			if (meta->last_ts_ms < t->end_ms && meta->columns == t->fields)
				rows += meta->rows;
		}
	}
	r->read->work.blocks_skipped += first;
	if (!err && !reading_disjoint(&refs))
		block_refs_by_sequence(&refs);
	for (size_t i = first; i < refs.count && !err; i++) {
		const struct block *block = &refs.list[i].block;
		err = block_append(block, t->first_column - block->meta.first_column, start_ms,
				   t->end_ms, &blocks);
		r->read->work.blocks_decoded++;
	}
	if (!err) {
		run_sort(&blocks);
		overlay(&blocks, &head, out);
	}
	block_refs_release(&refs);
	run_release(&head);
	run_release(&blocks);
	return err;
}

/* The same over all classes: list[0 .. count) are the segments of one time. */
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

static int by_segment(const void *a, const void *b)
{
	const struct segment_id *x = a, *y = b;
	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
	return (int)x->sheet.retention - (int)y->sheet.retention;
}

/* The segments of the range, by time. */
int reading_list_segments(struct reading *r, enum table table, int64_t period_ms, int64_t start_ms,
			  int64_t end_ms, size_t *count)
{
	if (!r->segments)
		r->segments = mem_alloc_array(SEGMENTS_MAX, sizeof(*r->segments));
	*count = heads_segments(&r->engine->heads, table, period_ms, start_ms, end_ms, r->segments,
				SEGMENTS_MAX);
	if (*count > SEGMENTS_MAX)
		return ERR_LIMIT;
	qsort(r->segments, *count, sizeof(*r->segments), by_segment);
	return 0;
}

size_t reading_same_segment(const struct segment_id *list, size_t at, size_t count)
{
	size_t n = 1;
	while (at + n < count && list[at + n].segment == list[at].segment)
		n++;
	return n;
}

static void append_run(struct run *out, const struct run *run, bool backward)
{
	run_reserve(out, run->count);
	for (size_t n = 0; n < run->count; n++) {
		size_t i = backward ? run->count - 1 - n : n;
		out->ts_ms[out->count] = run->ts_ms[i];
		for (unsigned f = 0; f < run->fields; f++) {
			out->bits[f][out->count] = run->bits[f][i];
			out->types[f][out->count] = run->types[f][i];
		}
		out->count++;
	}
}

/* Samples of one series, in the order asked for, until there are `enough` (or somewhat more). The
 * segments are in r->segments. */
int reading_series(struct reading *r, const struct target *t, size_t segment_count, bool backward,
		   size_t enough, struct run *out)
{
	unsigned columns = registry_columns(&r->engine->registry, handle_shape(t->handle));
	if (handle_column(t->handle) >= columns)
		return 0;
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
		run_init(&run, t->fields);
		int err = reading_classes(r, r->segments + first, n, t,
					  backward ? enough - out->count : 0, &run);
		if (!err)
			append_run(out, &run, backward);
		run_release(&run);
		if (err)
			return err;
	}
	return 0;
}
