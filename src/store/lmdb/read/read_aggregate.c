/* AGGREGATE: windows from the summaries of blocks where a block lies in one window, else from
 * values. Series of one group are looked up together. */
#include <math.h>

#include "base/stats.h"
#include "store/lmdb/read/read.h"

enum {
	TURN_HANDLES = 1024, /* whole before the next, so that a token can say how far it got */
	GROUP_WINDOWS_MAX = 32768, /* that are filled at once, about 160 bytes each */
};

struct folding {
	struct reading *r;
	const struct store_aggregate *in;
	size_t lookups_max;
	size_t segment_count;
};

/* The windows of one series: of `list` those from `first` on. */
struct series_windows {
	struct block_summary *list;
	uint64_t *touched; /* bit by place in `list` */
	size_t first;
};

static void show_summary(const struct block_summary *from, struct store_summary *to)
{
	*to = (struct store_summary){
		.count = from->count,
		.integers = from->integers,
		.sum = from->sum,
		.doubles = store_sum(from->doubles, from->scaled),
		.scaled = isfinite(from->doubles) ? from->doubles * 0x1p-64 : from->scaled,
		.min = from->min,
		.max = from->max,
		.first = from->first,
		.last = from->last,
		.first_ts_ms = from->first_ts_ms,
		.last_ts_ms = from->last_ts_ms,
	};
}

static void add_to_window(const struct series_windows *windows, size_t window,
			  const struct block_summary *later)
{
	size_t at = windows->first + window;
	windows->touched[at / 64] |= UINT64_C(1) << at % 64;
	block_summary_merge(&windows->list[at], later);
}

static size_t window_of(const struct store_aggregate *in, int64_t ts_ms)
{
	return (size_t)(((uint64_t)ts_ms - (uint64_t)in->start_ms) / (uint64_t)in->window_ms);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Sorted samples of one field. ts_ms NULL: their times are first_ts_ms + i * step_ms. fold NULL:
 * their values are bits and types. */
struct aggregate_rows {
	const int64_t *ts_ms;
	int64_t first_ts_ms;
	uint64_t step_ms;
	struct fold *fold;
	const uint64_t *bits;
	const uint8_t *types;
};

/* Times mostly fit 32 bits once they are differences, and then it is much quicker. */
static uint64_t aggregate_quotient(uint64_t n, uint64_t by)
{
	return (n | by) >> 32 ? n / by : (uint32_t)n / (uint32_t)by;
}

static int64_t aggregate_time_of(const struct aggregate_rows *rows, size_t row)
{
	if (rows->ts_ms)
		return rows->ts_ms[row];
	return (int64_t)((uint64_t)rows->first_ts_ms + row * rows->step_ms);
}

/* The first row after `from` whose time is at least `ms` after that of `from`, or `to`. */
static size_t row_after(const struct aggregate_rows *rows, size_t from, size_t to, uint64_t ms)
{
	if (!rows->ts_ms) {
		uint64_t n =
			rows->step_ms ? aggregate_quotient(ms - 1, rows->step_ms) + 1 : to - from;
		return n < to - from ? from + (size_t)n : to;
	}
	uint64_t base = (uint64_t)rows->ts_ms[from];
	size_t low = from + 1, high = to;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if ((uint64_t)rows->ts_ms[middle] - base < ms)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void fold_window(const struct series_windows *windows, size_t window,
			const struct aggregate_rows *rows, size_t from, size_t to)
{
	struct block_summary summary;
	const int64_t *ts_ms = rows->ts_ms ? rows->ts_ms + from : NULL;
	if (rows->fold)
		fold_next(rows->fold, (uint32_t)(to - from), &summary);
	else
		block_summarise(ts_ms, rows->bits + from, rows->types + from, VALUE_NONE, to - from,
				&summary);
	/* A fold has no times. A summary of values whose times were not wanted has none either. */
	if ((rows->fold || !ts_ms) && summary.count) {
		summary.first_ts_ms = aggregate_time_of(rows, from);
		summary.last_ts_ms = aggregate_time_of(rows, to - 1);
	}
	add_to_window(windows, window, &summary);
}

/* Rows from .. to, window by window: mostly the next one, which is found without a division. */
static void fold_rows(const struct store_aggregate *in, const struct series_windows *windows,
		      const struct aggregate_rows *rows, size_t from, size_t to)
{
	uint64_t width = (uint64_t)in->window_ms, begins = 0;
	size_t window = 0;
	for (bool first = true; from < to; first = false) {
		int64_t ts_ms = aggregate_time_of(rows, from);
		uint64_t since = (uint64_t)ts_ms - (uint64_t)in->start_ms;
		bool next = !first && since - begins - width < width;
		window = next ? window + 1 : window_of(in, ts_ms);
		begins = next ? begins + width : window * width;
		size_t end = row_after(rows, from, to, width - (since - begins));
		fold_window(windows, window, rows, from, end);
		from = end;
	}
}

static void fold_samples(const struct store_aggregate *in, const struct series_windows *windows,
			 const struct samples *samples, size_t from, size_t to)
{
	struct aggregate_rows rows = {
		.ts_ms = samples->ts_ms, .bits = samples->bits[0], .types = samples->types[0]};
	fold_rows(in, windows, &rows, from, to);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static bool aggregate_one_type(const uint8_t *types, size_t count)
{
	return types[0] != VALUE_NONE && memcmp(types, types + 1, count - 1) == 0;
}

/* The first row at or after `ts_ms`, or the count. */
static size_t aggregate_row_at(const struct aggregate_rows *rows, size_t count, int64_t ts_ms)
{
	int64_t first_ms = aggregate_time_of(rows, 0);
	if (ts_ms <= first_ms)
		return 0;
	return row_after(rows, 0, count, (uint64_t)ts_ms - (uint64_t)first_ms);
}

/* The column's values, or a fold of it. */
static int decode_values(struct scratch *s, const struct block *block, unsigned number,
			 struct aggregate_rows *rows)
{
	int err = block_open_column(block, number, &s->column);
	*rows = (struct aggregate_rows){.bits = s->bits, .types = s->types};
	if (err || !fold_suits(&s->column))
		return err ? err : column_read(&s->column, s->bits, s->types);
	rows->fold = &s->fold;
	return fold_begin(&s->fold, &s->column, s->bits, s->types);
}

static int aggregate_decode(struct scratch *s, const struct block *block, unsigned column,
			    struct aggregate_rows *rows)
{
	const struct block_meta *meta = &block->meta;
	int err = decode_values(s, block, column, rows);
	if (err)
		return err;
	if (block->regular && (rows->fold || aggregate_one_type(s->types, meta->rows))) {
		uint64_t span = (uint64_t)meta->last_ts_ms - (uint64_t)meta->first_ts_ms;
		rows->first_ts_ms = meta->first_ts_ms;
		rows->step_ms = meta->rows > 1 ? span / (meta->rows - 1) : 0;
		return 0;
	}
	rows->ts_ms = s->ts_ms;
	return block_decode_times(block, s->ts_ms);
}

static int fold_decoded(struct folding *f, const struct series_windows *windows, int64_t start_ms,
			int64_t end_ms, const struct block *block, unsigned column)
{
	struct aggregate_rows rows;
	size_t count = block->meta.rows;
	int err = aggregate_decode(f->r->scratch, block, column, &rows);
	f->r->read->work.blocks_decoded++;
	f->r->read->work.rows_decoded += count;
	if (err)
		return err;
	size_t from = aggregate_row_at(&rows, count, start_ms),
	       to = aggregate_row_at(&rows, count, end_ms);
	if (rows.fold)
		fold_skip(rows.fold, (uint32_t)from);
	fold_rows(f->in, windows, &rows, from, to);
	return 0;
}

static int fold_block(struct folding *f, const struct series_windows *windows,
		      const struct target *t, int64_t start_ms, const struct block *block)
{
	const struct block_meta *meta = &block->meta;
	unsigned column = t->first_column - meta->first_column;
	size_t window = 0;
	bool whole = meta->first_ts_ms >= start_ms && meta->last_ts_ms < t->end_ms;
	if (whole) {
		window = window_of(f->in, meta->first_ts_ms);
		whole = window == window_of(f->in, meta->last_ts_ms);
	}
	struct block_summary summary;
	int err = whole ? block_read_summary(block, column, &summary) : 0;
	if (whole && !err && isfinite(summary.doubles)) {
		add_to_window(windows, window, &summary);
		f->r->read->work.blocks_summarised++;
	} else if (!err) {
		err = fold_decoded(f, windows, start_ms, t->end_ms, block, column);
	}
	if (err)
		stat_add(STAT_store_damaged, 1);
	return err;
}

/* ---- Series ---------------------------------------------------------------------------------- */

/* Whether a row of the head lies within a block: then that block must be decoded and merged. */
static bool touches(const struct samples *head, const struct block_refs *refs)
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

/* Everything decoded and merged. */
static int fold_merged(struct folding *f, const struct series_windows *windows,
		       struct lookup *lookup, int64_t start_ms)
{
	struct samples samples;
	samples_init(&samples, 1);
	int err = lookup_read(f->r, lookup, start_ms, 0, &samples);
	if (!err)
		fold_samples(f->in, windows, &samples, 0, samples.count);
	samples_release(&samples);
	return err;
}

/* Blocks and rows of the head in order of time, where they do not mix. */
static int fold_lookup(struct folding *f, const struct series_windows *windows,
		       struct lookup *lookup, int64_t start_ms)
{
	const struct samples *head = &lookup->head;
	size_t at = 0;
	int err = 0;
	if (!lookup_blocks_disjoint(lookup) || touches(head, &lookup->refs))
		return fold_merged(f, windows, lookup, start_ms);
	for (size_t i = 0; i < lookup->refs.count && !err; i++) {
		const struct block *block = &lookup->refs.list[i].block;
		size_t from = at;
		while (at < head->count && head->ts_ms[at] < block->meta.first_ts_ms)
			at++;
		fold_samples(f->in, windows, head, from, at);
		err = fold_block(f, windows, &lookup->target, start_ms, block);
	}
	if (!err)
		fold_samples(f->in, windows, head, at, head->count);
	f->r->read->work.rows_decoded += head->count;
	return err;
}

static int fold_classes(struct folding *f, const struct series_windows *windows,
			const struct target *t, const struct segment_id *segments, size_t count)
{
	struct samples samples;
	samples_init(&samples, 1);
	int err = reading_classes(f->r, segments, count, t, 0, &samples);
	if (!err)
		fold_samples(f->in, windows, &samples, 0, samples.count);
	samples_release(&samples);
	return err;
}

static struct series_windows windows_of(const struct folding *f, size_t lookup)
{
	const struct scratch *s = f->r->scratch;
	return (struct series_windows){s->windows, s->touched, lookup * f->in->window_count};
}

/* The segments of one time. */
static int fold_segment(struct folding *f, const struct segment_id *segments, size_t classes,
			size_t lookups)
{
	struct reading *r = f->r;
	struct lookup *list = r->scratch->lookups;
	int64_t start_ms =
		reading_visible_from(r, segments->sheet.retention, list[0].target.start_ms);
	int err = 0;
	if (classes == 1 && start_ms >= list[0].target.end_ms)
		return 0;
	if (classes == 1)
		err = reading_lookup(r, segments, list, lookups, start_ms);
	for (size_t i = 0; i < lookups && !err; i++) {
		struct series_windows windows = windows_of(f, i);
		err = classes == 1 ? fold_lookup(f, &windows, &list[i], start_ms)
				   : fold_classes(f, &windows, &list[i].target, segments, classes);
	}
	return err;
}

/* ---- Results --------------------------------------------------------------------------------- */

/* The next touched window from `at` on, or `end`. */
static size_t next_touched(const uint64_t *touched, size_t at, size_t end)
{
	while (at < end) {
		uint64_t word = touched[at / 64] >> at % 64;
		if (word) {
			at += (size_t)__builtin_ctzll(word);
			return at < end ? at : end;
		}
		at = (at / 64 + 1) * 64;
	}
	return end;
}

/* The words at either end of `first` .. `end` also have bits of other windows. */
static size_t count_touched(const uint64_t *touched, size_t first, size_t end)
{
	size_t count = 0;
	for (size_t at = first; at < end; at = (at / 64 + 1) * 64) {
		uint64_t word = touched[at / 64] >> at % 64;
		size_t bits = 64 - at % 64;
		if (end - at < bits)
			word &= (UINT64_C(1) << (end - at)) - 1;
		count += (size_t)__builtin_popcountll(word);
	}
	return count;
}

/* Gives what lies in the windows of a series, and leaves them empty. One that was touched may be
 * empty: what was read of it is NONE. ERR_LIMIT: the arena has no room. */
static int aggregate_answer_windows(struct folding *f, size_t lookup)
{
	const struct series_windows windows = windows_of(f, lookup);
	struct store_windows *out = &f->in->windows[f->r->scratch->lookups[lookup].index];
	size_t end = windows.first + f->in->window_count;
	size_t most = count_touched(windows.touched, windows.first, end);
	size_t list_bytes = most * sizeof(struct store_summary);
	char *room = arena_alloc(&f->r->read->arena, list_bytes + most * sizeof(uint32_t));
	if (!room)
		return ERR_LIMIT;
	struct store_summary *list = (struct store_summary *)room;
	uint32_t *numbers = (uint32_t *)(room + list_bytes);
	*out = (struct store_windows){.numbers = numbers, .list = list};
	for (size_t at = next_touched(windows.touched, windows.first, end); at < end;
	     at = next_touched(windows.touched, at + 1, end)) {
		struct block_summary *window = &windows.list[at];
		if (!window->count)
			continue;
		numbers[out->count] = (uint32_t)(at - windows.first);
		show_summary(window, &list[out->count++]);
		window->count = 0;
	}
	return 0;
}

static void empty_windows(struct folding *f, size_t lookups)
{
	struct scratch *s = f->r->scratch;
	size_t end = lookups * f->in->window_count;
	for (size_t at = next_touched(s->touched, 0, end); at < end;
	     at = next_touched(s->touched, at + 1, end))
		s->windows[at].count = 0;
}

static int fold_group(struct folding *f, size_t lookups)
{
	struct scratch *s = f->r->scratch;
	int err = 0;
	for (size_t at = 0; at < f->segment_count && !err;) {
		size_t n = reading_same_segment(f->r->segments, at, f->segment_count);
		err = fold_segment(f, f->r->segments + at, n, lookups);
		at += n;
	}
	for (size_t i = 0; i < lookups && !err; i++)
		err = aggregate_answer_windows(f, i);
	if (err)
		empty_windows(f, lookups);
	memset(s->touched, 0, (lookups * f->in->window_count + 63) / 64 * sizeof(*s->touched));
	return err;
}

/* The handles at `order` that lie in one group become lookups; how many handles that took. */
static size_t aggregate_begin_group(struct folding *f, const uint32_t *order, size_t count,
				    size_t *lookups)
{
	const struct store_aggregate *in = f->in;
	unsigned fields = (unsigned)schema[in->table].field_count;
	size_t taken = 0;
	*lookups = 0;
	for (; taken < count && *lookups < f->lookups_max; taken++) {
		uint64_t handle = in->handles[order[taken]];
		if (taken && !reading_same_group(f->r, in->handles[order[0]], handle))
			break;
		struct target t = {.handle = handle,
				   .first_column = handle_column(handle) * fields + in->field,
				   .fields = 1,
				   .start_ms = in->start_ms,
				   .end_ms = in->end_ms};
		struct lookup *lookup = &f->r->scratch->lookups[*lookups];
		if (!lookup_begin(f->r, lookup, &t))
			continue;
		lookup->index = order[taken];
		++*lookups;
	}
	return taken;
}

/* The handles first .. first + count, all or none. */
static int fold_turn(struct folding *f, size_t first, size_t count)
{
	const struct store_aggregate *in = f->in;
	uint32_t order[TURN_HANDLES];
	int err = 0;
	reading_order(in->handles, first, count, order);
	for (size_t at = 0; at < count && !err;) {
		size_t lookups;
		at += aggregate_begin_group(f, order + at, count - at, &lookups);
		err = reading_check_time(f->r);
		if (!err && lookups)
			err = fold_group(f, lookups);
	}
	if (err)
		memset(in->windows + first, 0, count * sizeof(*in->windows));
	return err;
}

/* How many handles the budget allows, at least one at first. */
static size_t aggregate_turn_handles(const struct folding *f, size_t next, bool first)
{
	size_t count = f->in->handle_count - next;
	size_t affordable =
		f->in->window_count ? f->r->budget / f->in->window_count : f->in->handle_count;
	if (count > TURN_HANDLES)
		count = TURN_HANDLES;
	if (affordable == 0 && first)
		return 1;
	return count < affordable ? count : affordable;
}

static int fold_all(struct folding *f, struct store_request *request, uint64_t *next)
{
	bool first = true;
	while (*next < f->in->handle_count) {
		size_t count = aggregate_turn_handles(f, *next, first);
		int err = count ? fold_turn(f, *next, count) : 0;
		if (count == 0 || ((err == ERR_TIMEOUT || err == ERR_LIMIT) && !first)) {
			request->more = true;
			return 0;
		}
		if (err)
			return err;
		size_t given = count * f->in->window_count;
		f->r->budget -= f->r->budget < given ? f->r->budget : given;
		*next += count;
		first = false;
	}
	return 0;
}

void scratch_free_windows(struct scratch *scratch)
{
	mem_free(scratch->windows);
	mem_free(scratch->touched);
	scratch->windows = NULL;
	scratch->touched = NULL;
	scratch->windows_cap = 0;
}

/* Room for the windows of as many series as are looked up at once. */
static void aggregate_reserve_windows(struct folding *f)
{
	struct scratch *s = f->r->scratch;
	size_t each = f->in->window_count ? f->in->window_count : 1, max = GROUP_WINDOWS_MAX / each;
	f->lookups_max = max < 1 ? 1 : max > LOOKUPS_MAX ? LOOKUPS_MAX : max;
	if (f->lookups_max > f->in->handle_count)
		f->lookups_max = f->in->handle_count ? f->in->handle_count : 1;
	if (s->windows_cap >= f->lookups_max * each)
		return;
	scratch_free_windows(s);
	s->windows_cap = f->lookups_max * each;
	s->windows = mem_zalloc(s->windows_cap * sizeof(*s->windows));
	s->touched = mem_zalloc((s->windows_cap + 63) / 64 * sizeof(*s->touched));
}

/* Token: the handle that comes next, u64. */
int reading_aggregate(struct reading *r, struct store_request *request)
{
	struct store_aggregate *in = &request->aggregate;
	struct folding f = {.r = r, .in = in};
	uint64_t next = 0;
	if (request->token.len == sizeof(next))
		memcpy(&next, request->token.bytes, sizeof(next));
	if (next > in->handle_count)
		next = in->handle_count;
	request->more = false;
	in->windows = arena_zalloc(&r->read->arena, (in->handle_count + 1) * sizeof(*in->windows));
	if (!in->windows)
		return ERR_LIMIT;
	int err = reading_list_segments(r, in->table, in->period_ms, in->start_ms, in->end_ms,
					&f.segment_count);
	aggregate_reserve_windows(&f);
	if (!err)
		err = fold_all(&f, request, &next);
	/* What a rare request of very many windows took is not kept. */
	if (r->scratch->windows_cap > GROUP_WINDOWS_MAX)
		scratch_free_windows(r->scratch);
	in->next_handle = next;
	request->token.len = sizeof(next);
	memcpy(request->token.bytes, &next, sizeof(next));
	return err;
}
