/* AGGREGATE: windows from the summaries of blocks where a block lies in one window, else from
 * values. */
#include "store/lmdb/read.h"

struct folding {
	const struct store_aggregate *in;
	struct block_summary *windows; /* of the series */
};

static void show_summary(const struct block_summary *from, struct store_summary *to)
{
	if (from->count == 0)
		return;
	*to = (struct store_summary){.count = from->count,
				     .sum = from->sum,
				     .min = from->min,
				     .max = from->max,
				     .first = from->first,
				     .last = from->last,
				     .first_ts_ms = from->first_ts_ms,
				     .last_ts_ms = from->last_ts_ms};
}

static size_t window_of(const struct store_aggregate *in, int64_t ts_ms)
{
	return (size_t)(((uint64_t)ts_ms - (uint64_t)in->start_ms) / (uint64_t)in->window_ms);
}

/* Rows from .. to of a run (one field), window by window. */
static void fold_rows(struct folding *f, const struct run *run, size_t from, size_t to)
{
	while (from < to) {
		size_t window = window_of(f->in, run->ts_ms[from]), end = from + 1;
		while (end < to && window_of(f->in, run->ts_ms[end]) == window)
			end++;
		struct block_summary summary;
		block_summarise(run->ts_ms + from, run->bits[0] + from, run->types[0] + from,
				VALUE_NONE, end - from, &summary);
		block_summary_merge(&f->windows[window], &summary);
		from = end;
	}
}

static int fold_block(struct reading *r, struct folding *f, const struct target *t,
		      int64_t start_ms, const struct block *block)
{
	const struct block_meta *meta = &block->meta;
	unsigned column = t->first_column - meta->first_column;
	if (meta->first_ts_ms >= start_ms && meta->last_ts_ms < t->end_ms &&
	    window_of(f->in, meta->first_ts_ms) == window_of(f->in, meta->last_ts_ms)) {
		struct block_summary summary;
		int err = block_read_summary(block, column, &summary);
		if (!err)
			block_summary_merge(&f->windows[window_of(f->in, meta->first_ts_ms)],
					    &summary);
		r->read->work.blocks_summarised++;
		return err;
	}
	struct run run;
	run_init(&run, 1);
	int err = block_append(block, column, start_ms, t->end_ms, &run);
	if (!err)
		fold_rows(f, &run, 0, run.count);
	r->read->work.blocks_decoded++;
	run_release(&run);
	return err;
}

/* Whether a row of the head lies within a block: then that block must be decoded and merged. */
static bool touches(const struct run *head, const struct block_refs *refs)
{
	for (size_t i = 0, j = 0; i < refs->count; i++) {
		const struct block_meta *meta = &refs->list[i].block.meta;
		while (j < head->count && head->ts_ms[j] < meta->first_ts_ms)
			j++;
		if (j < head->count && head->ts_ms[j] <= meta->last_ts_ms)
			return true;
	}
	return false;
}

/* Blocks and rows of the head in order of time; or everything decoded and merged where they mix. */
static int fold_segment(struct reading *r, struct folding *f, const struct segment_id *segment,
			const struct target *t)
{
	int64_t start_ms = reading_visible_from(r, segment->sheet.retention, t->start_ms);
	if (start_ms >= t->end_ms)
		return 0;
	struct run head;
	struct block_refs refs = {0};
	run_init(&head, 1);
	int err = reading_copy_head(r, segment, t, start_ms, &head);
	run_sort(&head);
	if (!err)
		err = reading_find_blocks(r, segment, t, start_ms, &refs);
	if (!err && reading_disjoint(&refs) && !touches(&head, &refs)) {
		size_t at = 0;
		for (size_t i = 0; i < refs.count && !err; i++) {
			const struct block *block = &refs.list[i].block;
			size_t from = at;
			while (at < head.count && head.ts_ms[at] < block->meta.first_ts_ms)
				at++;
			fold_rows(f, &head, from, at);
			err = fold_block(r, f, t, start_ms, block);
		}
		if (!err)
			fold_rows(f, &head, at, head.count);
	} else if (!err) {
		struct run run;
		run_init(&run, 1);
		err = reading_classes(r, segment, 1, t, 0, &run);
		if (!err)
			fold_rows(f, &run, 0, run.count);
		run_release(&run);
	}
	block_refs_release(&refs);
	run_release(&head);
	return err;
}

static int fold_series(struct reading *r, struct folding *f, const struct target *t,
		       size_t segment_count)
{
	unsigned columns = registry_columns(&r->engine->registry, handle_shape(t->handle));
	int err = 0;
	if (handle_column(t->handle) >= columns)
		return 0;
	for (size_t at = 0; at < segment_count && !err;) {
		size_t n = reading_same_segment(r->segments, at, segment_count);
		if (n == 1) {
			err = fold_segment(r, f, &r->segments[at], t);
		} else {
			struct run run;
			run_init(&run, 1);
			err = reading_classes(r, r->segments + at, n, t, 0, &run);
			if (!err)
				fold_rows(f, &run, 0, run.count);
			run_release(&run);
		}
		at += n;
	}
	return err;
}

/* Token: the handle that comes next, u64. */
int reading_aggregate(struct reading *r, struct store_request *request)
{
	struct store_aggregate *in = &request->aggregate;
	size_t segment_count, total = in->handle_count * in->window_count;
	uint64_t next = 0;
	unsigned fields = (unsigned)schema[in->table].field_count;
	if (request->token.len == sizeof(next))
		memcpy(&next, request->token.bytes, sizeof(next));
	request->more = false;
	in->summaries = arena_zalloc(&r->read->arena, (total + 1) * sizeof(*in->summaries));
	if (!in->summaries)
		return ERR_LIMIT;
	int err = reading_list_segments(r, in->table, in->period_ms, in->start_ms, in->end_ms,
					&segment_count);
	size_t given = 0;
	struct folding f = {in, mem_alloc_array(in->window_count + 1, sizeof(*f.windows))};
	for (; next < in->handle_count && !err; next++) {
		err = reading_check_time(r);
		if ((err == ERR_TIMEOUT && given) || (given && r->budget < in->window_count)) {
			request->more = true;
			err = 0;
			break;
		}
		struct target t = {.handle = in->handles[next],
				   .first_column =
					   handle_column(in->handles[next]) * fields + in->field,
				   .fields = 1,
				   .start_ms = in->start_ms,
				   .end_ms = in->end_ms};
		memset(f.windows, 0, in->window_count * sizeof(*f.windows));
		if (!err)
			err = fold_series(r, &f, &t, segment_count);
		for (size_t w = 0; w < in->window_count && !err; w++)
			show_summary(&f.windows[w], &in->summaries[next * in->window_count + w]);
		r->budget -= r->budget < in->window_count ? r->budget : in->window_count;
		given++;
	}
	mem_free(f.windows);
	in->next_handle = next;
	request->token.len = sizeof(next);
	memcpy(request->token.bytes, &next, sizeof(next));
	return err;
}
