/* Reads, on the pool. Heads are copied first, then a snapshot is opened, then both are merged: what
 * is sealed in between is seen twice and the higher sequence wins. A snapshot serves several series
 * as long as no head has gone since it was opened (heads.epoch), and at most SNAPSHOT_MAX_US. */
#include "base/stats.h"
#include "store/lmdb/engine.h"

enum {
	POINTS_MAX_DEFAULT = 1000000,
	SNAPSHOT_MAX_US = 50000,
	SEGMENTS_MAX = 65536, /* 50 years of days in each of some classes */
	DEADLINE_DEFAULT_US = 30000000,
};

struct reading {
	struct engine *engine;
	struct store_read *read;
	struct reader *reader;
	MDB_cursor *extents;
	size_t budget; /* points that may still be given */
	int64_t opened_us, deadline_us;
	struct segment_id *segments;
};

/* ---- Snapshots ------------------------------------------------------------------------------- */

static struct reader *take_reader(struct engine *engine)
{
	pthread_mutex_lock(&engine->readers_lock);
	struct reader *reader = engine->readers;
	if (reader)
		engine->readers = reader->next;
	pthread_mutex_unlock(&engine->readers_lock);
	if (reader)
		return reader;
	reader = mem_zalloc(sizeof(*reader));
	if (mdb_txn_begin(engine->env.mdb, NULL, MDB_RDONLY, &reader->txn)) {
		mem_free(reader);
		return NULL;
	}
	mdb_txn_reset(reader->txn);
	return reader;
}

static void give_reader(struct engine *engine, struct reader *reader)
{
	mdb_txn_reset(reader->txn);
	pthread_mutex_lock(&engine->readers_lock);
	reader->next = engine->readers;
	engine->readers = reader;
	pthread_mutex_unlock(&engine->readers_lock);
}

void readers_release(struct engine *engine)
{
	while (engine->readers) {
		struct reader *reader = engine->readers;
		engine->readers = reader->next;
		mdb_txn_abort(reader->txn);
		mem_free(reader);
	}
}

int reader_renew(struct engine *engine, struct reader *reader)
{
	pthread_rwlock_rdlock(&engine->heads.lock);
	reader->epoch = engine->heads.epoch;
	pthread_rwlock_unlock(&engine->heads.lock);
	mdb_txn_reset(reader->txn);
	return env_error(mdb_txn_renew(reader->txn));
}

static int64_t now_us(struct reading *r)
{
	return r->engine->options.clock->mono_us(r->engine->options.clock);
}

static int renew(struct reading *r)
{
	if (r->extents) {
		mdb_cursor_close(r->extents);
		r->extents = NULL;
	}
	int err = reader_renew(r->engine, r->reader);
	if (!err)
		err = env_error(mdb_cursor_open(r->reader->txn, r->engine->env.dbi[DB_EXTENTS],
						&r->extents));
	r->opened_us = clock_real()->mono_us(clock_real());
	return err;
}

static int check_time(struct reading *r)
{
	if (r->read->cancelled)
		return ERR_CANCELLED;
	return now_us(r) > r->deadline_us ? ERR_TIMEOUT : 0;
}

/* ---- One series in one segment --------------------------------------------------------------- */

/* What is asked of one series: columns first_column .. + fields of its band. */
struct target {
	uint64_t handle;
	unsigned first_column, fields;
	int64_t start_ms, end_ms;
};

/* The time from which data of a class is visible. */
static int64_t visible_from(struct reading *r, enum retention_class retention, int64_t start_ms)
{
	int64_t lifetime_ms = retention_class_ms(retention), from;
	if (lifetime_ms == 0 || __builtin_sub_overflow(r->read->now_ms, lifetime_ms, &from))
		return start_ms;
	return from > start_ms ? from : start_ms;
}

/* The head's part, unsorted, and a snapshot that is no older. */
static int copy_head(struct reading *r, const struct segment_id *segment, const struct target *t,
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
	return stale || age_us > SNAPSHOT_MAX_US ? renew(r) : 0;
}

static int find_blocks(struct reading *r, const struct segment_id *segment, const struct target *t,
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

static bool disjoint(const struct block_refs *refs)
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
	int64_t start_ms = visible_from(r, segment->sheet.retention, t->start_ms);
	if (start_ms >= t->end_ms)
		return 0;
	struct run head, blocks;
	struct block_refs refs = {0};
	run_init(&head, t->fields);
	run_init(&blocks, t->fields);
	int err = copy_head(r, segment, t, start_ms, &head);
	run_sort(&head);
	if (!err)
		err = find_blocks(r, segment, t, start_ms, &refs);
	/* From the newest backward, so far as needed, if only the newest are wanted. */
	size_t first = 0;
	if (newest && head.count == 0 && disjoint(&refs)) {
		size_t rows = 0;
		for (first = refs.count; first > 0 && rows < newest; first--) {
			const struct block_meta *meta = &refs.list[first - 1].block.meta;
			/* A block that the range cuts, or with gaps, may give fewer. */
			if (meta->last_ts_ms < t->end_ms && meta->columns == t->fields)
				rows += meta->rows;
		}
	}
	r->read->work.blocks_skipped += first;
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
static int read_classes(struct reading *r, const struct segment_id *list, size_t count,
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
static int list_segments(struct reading *r, enum table table, int64_t period_ms, int64_t start_ms,
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

static size_t same_segment(const struct segment_id *list, size_t at, size_t count)
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
static int read_series(struct reading *r, const struct target *t, size_t segment_count,
		       bool backward, size_t enough, struct run *out)
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
			n = same_segment(r->segments, at, segment_count);
			at += n;
		}
		struct run run;
		run_init(&run, t->fields);
		int err = read_classes(r, r->segments + first, n, t,
				       backward ? enough - out->count : 0, &run);
		if (!err)
			append_run(out, &run, backward);
		run_release(&run);
		if (err)
			return err;
	}
	return 0;
}

/* ---- RANGE and LAST_BEFORE ------------------------------------------------------------------- */

/* Token of a range: the handle that comes next u32 | points of it given so far u64 | where it goes on
 * i64. */
struct range_place {
	uint32_t handle;
	uint64_t given;
	int64_t from_ms;
};

enum { RANGE_PLACE_BYTES = 4 + 8 + 8 };

static int place_get(const struct store_token *token, const struct store_range *range,
		     struct range_place *place)
{
	*place = (struct range_place){.from_ms = range->backward ? range->end_ms : range->start_ms};
	if (token->len == 0)
		return 0;
	if (token->len != RANGE_PLACE_BYTES)
		return ERR_INVALID;
	memcpy(&place->handle, token->bytes, 4);
	memcpy(&place->given, token->bytes + 4, 8);
	memcpy(&place->from_ms, token->bytes + 12, 8);
	return 0;
}

static void place_put(struct store_token *token, const struct range_place *place)
{
	token->len = RANGE_PLACE_BYTES;
	memcpy(token->bytes, &place->handle, 4);
	memcpy(token->bytes + 4, &place->given, 8);
	memcpy(token->bytes + 12, &place->from_ms, 8);
}

/* The first `count` rows into the arena; the fields in `wanted` (all if 0). */
static int give_points(struct arena *arena, const struct run *run, size_t count, unsigned first,
		       struct store_points *points)
{
	if (count == 0)
		return 0;
	int64_t *ts = arena_alloc(arena, count * sizeof(*ts));
	if (!ts)
		return ERR_LIMIT;
	memcpy(ts, run->ts_ms, count * sizeof(*ts));
	for (unsigned f = 0; f < run->fields; f++) {
		uint64_t *bits = arena_alloc(arena, count * sizeof(*bits));
		uint8_t *types = arena_alloc(arena, count);
		if (!bits || !types)
			return ERR_LIMIT;
		memcpy(bits, run->bits[f], count * sizeof(*bits));
		memcpy(types, run->types[f], count);
		points->bits[first + f] = bits;
		points->types[first + f] = types;
	}
	points->ts_ms = ts;
	points->count = count;
	return 0;
}

/* Rows of so many fields for which the arena still has room. */
static size_t rows_that_fit(const struct arena *arena, unsigned fields)
{
	size_t room = arena->max_bytes - arena->used_bytes;
	return room / (8 + 9 * (size_t)fields);
}

/* Fields that nobody asked for are not shown, and times with none of those asked for left out. */
static void keep_fields(struct run *run, unsigned wanted)
{
	size_t kept = 0;
	for (size_t i = 0; i < run->count; i++) {
		bool any = false;
		for (unsigned f = 0; f < run->fields; f++)
			any = any || ((wanted >> f & 1) && run->types[f][i] != VALUE_NONE);
		if (!any)
			continue;
		run->ts_ms[kept] = run->ts_ms[i];
		for (unsigned f = 0; f < run->fields; f++) {
			run->bits[f][kept] = run->bits[f][i];
			run->types[f][kept] = run->types[f][i];
		}
		kept++;
	}
	run->count = kept;
}

/* How many rows of `run` this slice may give of this series. */
static size_t allowed(const struct reading *r, const struct store_range *range,
		      const struct range_place *place, size_t count)
{
	if (range->limit && count > range->limit - place->given)
		count = range->limit - (size_t)place->given;
	return count < r->budget ? count : r->budget;
}

/* One series of a range. *stopped: a bound was reached; *place says where it goes on. */
static int range_series(struct reading *r, const struct store_range *range, size_t segment_count,
			struct range_place *place, struct store_points *points, bool *stopped)
{
	unsigned fields = (unsigned)schema[range->table].field_count;
	unsigned all = (1u << fields) - 1, wanted = range->fields ? range->fields : all;
	struct target t = {
		.handle = range->handles[place->handle],
		.first_column = handle_column(range->handles[place->handle]) * fields,
		.fields = fields,
		.start_ms = range->backward ? range->start_ms : place->from_ms,
		.end_ms = range->backward ? place->from_ms : range->end_ms,
	};
	size_t enough = r->budget + 1; /* one more says that there is more */
	if (range->limit && range->limit - place->given < enough)
		enough = range->limit - (size_t)place->given;
	if (wanted != all)
		enough = SIZE_MAX;
	struct run run;
	run_init(&run, fields);
	int err = read_series(r, &t, segment_count, range->backward, enough, &run);
	if (!err && wanted != all)
		keep_fields(&run, wanted);
	size_t count = err ? 0 : allowed(r, range, place, run.count);
	if (count > rows_that_fit(&r->read->arena, fields))
		count = rows_that_fit(&r->read->arena, fields);
	if (!err && run.count && count == 0 && r->budget)
		err = ERR_LIMIT;
	if (!err)
		err = give_points(&r->read->arena, &run, count, 0, points);
	if (!err) {
		for (unsigned f = 0; f < fields; f++) {
			if (!(wanted >> f & 1))
				points->bits[f] = NULL, points->types[f] = NULL;
		}
		r->budget -= count;
		place->given += count;
		bool limit_reached = range->limit && place->given >= range->limit;
		*stopped = count < run.count && !limit_reached;
		if (count)
			place->from_ms =
				range->backward ? run.ts_ms[count - 1] : run.ts_ms[count - 1] + 1;
		r->read->work.points += count;
	}
	run_release(&run);
	return err;
}

static int do_range(struct reading *r, struct store_request *request)
{
	struct store_range *range = &request->range;
	struct range_place place;
	size_t segment_count;
	int err = place_get(&request->token, range, &place);
	request->more = false;
	range->points =
		arena_zalloc(&r->read->arena, (range->handle_count + 1) * sizeof(*range->points));
	if (!err && !range->points)
		err = ERR_LIMIT;
	if (!err)
		err = list_segments(r, range->table, range->period_ms, range->start_ms,
				    range->end_ms, &segment_count);
	bool stopped = false, any = false;
	while (!err && !stopped && place.handle < range->handle_count) {
		err = check_time(r);
		if (!err && r->budget == 0) {
			stopped = true;
			break;
		}
		struct store_points *points = &range->points[place.handle];
		if (!err)
			err = range_series(r, range, segment_count, &place, points, &stopped);
		any = any || points->count;
		if ((err == ERR_LIMIT || err == ERR_TIMEOUT) && any) {
			*points = (struct store_points){0};
			stopped = true;
			err = 0;
		}
		if (!err && !stopped) {
			place.handle++;
			place.given = 0;
			place.from_ms = range->backward ? range->end_ms : range->start_ms;
		}
	}
	request->more = stopped;
	if (stopped)
		place_put(&request->token, &place);
	return err;
}

/* A range of one point each, backward. */
static int do_last_before(struct reading *r, struct store_request *request)
{
	struct store_last_before *last = &request->last_before;
	int64_t start_ms = INT64_MIN;
	if (last->look_back_ms &&
	    __builtin_sub_overflow(last->before_ms, last->look_back_ms, &start_ms))
		start_ms = INT64_MIN;
	struct store_request inner = {.op = STORE_RANGE, .token = request->token};
	inner.range = (struct store_range){
		.table = last->table,
		.period_ms = last->period_ms,
		.handles = last->handles,
		.handle_count = last->handle_count,
		.start_ms = start_ms,
		.end_ms = last->before_ms,
		.backward = true,
		.limit = 1,
	};
	int err = do_range(r, &inner);
	last->points = inner.range.points;
	request->more = inner.more;
	request->token = inner.token;
	return err;
}

/* ---- AGGREGATE ------------------------------------------------------------------------------- */

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
	int64_t start_ms = visible_from(r, segment->sheet.retention, t->start_ms);
	if (start_ms >= t->end_ms)
		return 0;
	struct run head;
	struct block_refs refs = {0};
	run_init(&head, 1);
	int err = copy_head(r, segment, t, start_ms, &head);
	run_sort(&head);
	if (!err)
		err = find_blocks(r, segment, t, start_ms, &refs);
	if (!err && disjoint(&refs) && !touches(&head, &refs)) {
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
		err = read_segment(r, segment, t, 0, &run);
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
		size_t n = same_segment(r->segments, at, segment_count);
		if (n == 1) {
			err = fold_segment(r, f, &r->segments[at], t);
		} else {
			struct run run;
			run_init(&run, 1);
			err = read_classes(r, r->segments + at, n, t, 0, &run);
			if (!err)
				fold_rows(f, &run, 0, run.count);
			run_release(&run);
		}
		at += n;
	}
	return err;
}

/* Token: the handle that comes next, u64. */
static int do_aggregate(struct reading *r, struct store_request *request)
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
	int err = list_segments(r, in->table, in->period_ms, in->start_ms, in->end_ms,
				&segment_count);
	size_t given = 0;
	struct folding f = {in, mem_alloc_array(in->window_count + 1, sizeof(*f.windows))};
	for (; next < in->handle_count && !err; next++) {
		err = check_time(r);
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

/* ---- ENUMERATE of samples -------------------------------------------------------------------- */

static bool add_row(struct reading *r, struct store_enumerate *out, uint64_t handle,
		    int64_t period_ms, size_t *cap)
{
	if (out->count == *cap) {
		size_t more = *cap ? *cap * 2 : 256;
		struct store_row *grown = arena_alloc(&r->read->arena, more * sizeof(*grown));
		if (!grown)
			return false;
		if (out->count)
			memcpy(grown, out->rows, out->count * sizeof(*grown));
		out->rows = grown;
		*cap = more;
	}
	out->rows[out->count++] = (struct store_row){.handle = handle, .period_ms = period_ms};
	return true;
}

/* The periods of a table that have segments, ascending, each once. */
static size_t list_periods(struct reading *r, enum table table, int64_t *periods, size_t max)
{
	struct heads *heads = &r->engine->heads;
	size_t count = 0;
	pthread_rwlock_rdlock(&heads->lock);
	for (size_t i = 0; i < heads->directory_count; i++) {
		const struct sheet *sheet = &heads->directory[i].sheet;
		if (sheet->table == table && count < max &&
		    (count == 0 || periods[count - 1] != sheet->period_ms))
			periods[count++] = sheet->period_ms;
	}
	pthread_rwlock_unlock(&heads->lock);
	return count;
}

static int has_samples(struct reading *r, enum table table, int64_t period_ms, uint64_t handle,
		       bool *has)
{
	unsigned fields = (unsigned)schema[table].field_count;
	struct target t = {.handle = handle,
			   .first_column = handle_column(handle) * fields,
			   .fields = fields,
			   .start_ms = INT64_MIN,
			   .end_ms = INT64_MAX};
	size_t segment_count;
	struct run run;
	int err = list_segments(r, table, period_ms, INT64_MIN, INT64_MAX, &segment_count);
	run_init(&run, fields);
	if (!err)
		err = read_series(r, &t, segment_count, true, 1, &run);
	*has = run.count > 0;
	run_release(&run);
	return err;
}

enum { PERIODS_MAX = 1024, LIST_SLICE = 256 };

/* An enumeration of samples: by series of the registry, then by period. Token: the registry's for
 * the series that comes next, then its next period i64. */
struct enumeration {
	struct reading *r;
	struct store_request *request;
	int64_t *periods;
	size_t period_count, max, cap;
	int64_t from_period; /* of the first series of this slice */
};

/* The rows of one series. *stopped: a bound was reached; the token says where. */
static int enumerate_series(struct enumeration *n, uint64_t handle, bool *stopped)
{
	struct store_enumerate *out = &n->request->enumerate;
	for (size_t p = 0; p < n->period_count; p++) {
		bool has = false;
		if (n->periods[p] < n->from_period)
			continue;
		int err = check_time(n->r);
		if (!err)
			err = has_samples(n->r, out->table, n->periods[p], handle, &has);
		*stopped = err == ERR_TIMEOUT && out->count;
		if (!err && has)
			*stopped = out->count == n->max ||
				   !add_row(n->r, out, handle, n->periods[p], &n->cap);
		if (*stopped) {
			struct store_token *token = &n->request->token;
			registry_list_token(handle, token);
			memcpy(token->bytes + token->len, &n->periods[p], 8);
			token->len += 8;
			return out->count || n->max == 0 ? 0 : ERR_LIMIT;
		}
		if (err)
			return err;
	}
	n->from_period = INT64_MIN;
	return 0;
}

static int enumerate_slices(struct enumeration *n, struct arena *arena)
{
	struct reading *r = n->r;
	struct store_token *token = &n->request->token;
	struct store_request list = {.op = STORE_SERIES_LIST};
	int err = 0;
	bool stopped = false;
	n->from_period = INT64_MIN;
	if (token->len > 8) {
		memcpy(&n->from_period, token->bytes + token->len - 8, 8);
		list.token = *token;
		list.token.len -= 8;
	}
	do {
		arena_reset(arena);
		list.series_list.limit = LIST_SLICE;
		err = registry_series_list(&r->engine->registry, r->reader->txn, &list, arena);
		if (!err)
			err = renew(r);
		for (size_t i = 0; i < list.series_list.count && !err && !stopped; i++)
			err = enumerate_series(n, list.series_list.series[i].handle, &stopped);
	} while (list.more && !err && !stopped);
	n->request->more = stopped;
	return err;
}

static int enumerate_samples(struct reading *r, struct store_request *request)
{
	struct store_enumerate *out = &request->enumerate;
	struct enumeration n = {.r = r, .request = request};
	struct arena arena;
	arena_init(&arena, 64 << 20);
	n.periods = mem_alloc_array(PERIODS_MAX, sizeof(*n.periods));
	n.period_count = list_periods(r, out->table, n.periods, PERIODS_MAX);
	n.max = out->limit && out->limit < r->budget ? out->limit : r->budget;
	out->rows = NULL;
	out->count = 0;
	request->more = false;
	int err = enumerate_slices(&n, &arena);
	r->budget -= out->count;
	arena_release(&arena);
	mem_free(n.periods);
	return err;
}

/* ---- Requests -------------------------------------------------------------------------------- */

static int do_enumerate(struct reading *r, struct store_request *request)
{
	enum table table = request->enumerate.table;
	if (schema[table].kind == TABLE_SAMPLES)
		return enumerate_samples(r, request);
	if (schema[table].cell_kind == CELL_SERIES)
		return registry_series_set_rows(&r->engine->registry, r->reader->txn, request,
						&r->read->arena, &r->budget);
	return cells_enumerate(r->engine, r->reader->txn, r->read, request, &r->budget);
}

static int series_list(struct reading *r, struct store_request *request)
{
	struct store_series_list *list = &request->series_list;
	size_t limit = list->limit;
	if (r->budget == 0) {
		list->count = 0;
		request->more = true;
		return 0;
	}
	if (limit == 0 || limit > r->budget)
		list->limit = r->budget;
	int err = registry_series_list(&r->engine->registry, r->reader->txn, request,
				       &r->read->arena);
	list->limit = limit;
	r->budget -= list->count < r->budget ? list->count : r->budget;
	return err;
}

/* Lists show what is registered, durable or not: so what is pending becomes durable first. */
static bool needs_flush(const struct store_request *request)
{
	switch (request->op) {
	case STORE_SERIES_LIST:
		return true;
	case STORE_CELL_GET:
		return schema[request->cell_get.table].cell_kind == CELL_SERIES;
	case STORE_CELL_SCAN:
		return schema[request->cell_scan.table].cell_kind == CELL_SERIES;
	case STORE_ENUMERATE:
		return schema[request->enumerate.table].kind == TABLE_SAMPLES ||
		       schema[request->enumerate.table].cell_kind == CELL_SERIES;
	default:
		return false;
	}
}

static void flush_registry(struct engine *engine)
{
	if (__atomic_load_n(&engine->registry.pending_count, __ATOMIC_RELAXED) == 0)
		return;
	pthread_mutex_lock(&engine->queue_lock);
	pthread_cond_signal(&engine->queue_arrived);
	pthread_mutex_unlock(&engine->queue_lock);
	registry_flush(&engine->registry);
}

static int do_request(struct reading *r, struct store_request *request)
{
	struct engine *engine = r->engine;
	switch (request->op) {
	case STORE_RANGE:
		return do_range(r, request);
	case STORE_LAST_BEFORE:
		return do_last_before(r, request);
	case STORE_AGGREGATE:
		return do_aggregate(r, request);
	case STORE_CELL_GET:
		return cells_get(engine, r->reader->txn, r->read, &request->cell_get);
	case STORE_CELL_SCAN:
		return cells_scan(engine, r->reader->txn, r->read, request, &r->budget);
	case STORE_ENUMERATE:
		return do_enumerate(r, request);
	case STORE_SERIES_OPEN:
		return registry_series_open(&engine->registry, r->reader->txn,
					    &request->series_open, &r->read->arena,
					    clock_wall_ms(engine->options.clock));
	case STORE_SERIES_LIST:
		return series_list(r, request);
	case STORE_SERIES_DESCRIBE:
		return registry_series_describe(&engine->registry, r->reader->txn,
						&request->series_describe, &r->read->arena);
	case STORE_STATS:
		return inspect_stats(engine, r->reader, request);
	case STORE_VERIFY:
		return inspect_verify(engine, r->reader, r->read, request);
	}
	return ERR_INVALID;
}

static void post_done(struct task *task)
{
	struct store_read *read = CONTAINER_OF(task, struct store_read, task);
	read->done(read, read->err);
}

static void run_read(struct task *task)
{
	struct store_read *read = CONTAINER_OF(task, struct store_read, task);
	struct engine *engine = engine_of(read->store);
	struct reading r = {.engine = engine, .read = read, .deadline_us = read->deadline_us};
	r.budget = read->points_max ? read->points_max : POINTS_MAX_DEFAULT;
	if (!r.deadline_us)
		r.deadline_us = now_us(&r) + DEADLINE_DEFAULT_US;
	r.reader = take_reader(engine);
	int err = r.reader ? 0 : ERR_BUSY;
	read->err = err;
	for (struct store_request *q = read->requests; q && r.reader; q = q->next) {
		q->err = check_time(&r);
		q->more = q->err != 0;
		if (!q->err && needs_flush(q))
			flush_registry(engine);
		if (!q->err)
			q->err = renew(&r);
		if (!q->err)
			q->err = do_request(&r, q);
		if (q->err && !read->err)
			read->err = q->err;
	}
	if (r.extents)
		mdb_cursor_close(r.extents);
	if (r.reader)
		give_reader(engine, r.reader);
	mem_free(r.segments);
	read->task.run = post_done;
	read->executor->post(read->executor, &read->task);
}

int read_submit(struct store_read *read)
{
	struct engine *engine = engine_of(read->store);
	read->task.run = run_read;
	return pool_submit(engine->pool, &read->task);
}
