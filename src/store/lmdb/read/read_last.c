/* LAST_BEFORE: the newest sample of many series, group by group, from the newest segment backward.
 * What a head holds after every block is the answer without decoding; else the newest block is. */
#include "base/stats.h"
#include "store/lmdb/read/read.h"

enum { TURN_HANDLES = 1024 }; /* whole before the next, so that a token can say how far it got */

static int last_by_handle(const void *a, const void *b, void *handles)
{
	uint64_t x = ((const uint64_t *)handles)[*(const uint32_t *)a];
	uint64_t y = ((const uint64_t *)handles)[*(const uint32_t *)b];
	return (x > y) - (x < y);
}

void reading_order(const uint64_t *handles, size_t first, size_t count, uint32_t *order)
{
	bool ascends = true;
	for (size_t i = 0; i < count; i++) {
		order[i] = (uint32_t)(first + i);
		ascends = ascends && (i == 0 || handles[first + i - 1] <= handles[first + i]);
	}
	if (!ascends)
		qsort_r(order, count, sizeof(*order), last_by_handle, (void *)(uintptr_t)handles);
}

/* The last row of the samples, which are sorted, becomes the point. */
static int last_answer(struct reading *r, const struct samples *samples,
		       struct store_points *points)
{
	struct samples last = *samples;
	if (!samples->count)
		return 0;
	last.count = 1;
	last.ts_ms += samples->count - 1;
	for (unsigned f = 0; f < samples->fields; f++) {
		last.bits[f] += samples->count - 1;
		last.types[f] += samples->count - 1;
	}
	r->read->work.points++;
	return reading_answer_points(&r->read->arena, &last, 1, 0, points);
}

/* From the newest block's summary, where nothing else can be newer: *found says whether that
 * was so. One field only, since each has a newest sample of its own. */
static int last_answer_summarised(struct reading *r, const struct lookup *lookup, int64_t start_ms,
				  struct store_points *points, bool *found)
{
	const struct block_refs *refs = &lookup->refs;
	const struct target *t = &lookup->target;
	struct block_summary summary;
	*found = false;
	if (t->fields != 1 || !refs->count || lookup->head.count || !lookup_blocks_disjoint(lookup))
		return 0;
	const struct block *block = &refs->list[refs->count - 1].block;
	if (block->meta.last_ts_ms >= t->end_ms)
		return 0;
	int err = block_read_summary(block, t->first_column - block->meta.first_column, &summary);
	if (err) {
		stat_add(STAT_store_damaged, 1);
		return err;
	}
	r->read->work.blocks_summarised++;
	if (!summary.count || summary.last_ts_ms < start_ms)
		return 0;
	uint8_t type = (uint8_t)summary.last.type;
	struct samples samples = {.count = 1,
				  .fields = 1,
				  .ts_ms = &summary.last_ts_ms,
				  .bits = {&summary.last.bits},
				  .types = {&type}};
	r->read->work.blocks_skipped += refs->count - 1;
	*found = true;
	return last_answer(r, &samples, points);
}

/* Looks that found nothing stay, in their order. */
static size_t last_filter_open(struct lookup *lookups, size_t count,
			       const struct store_points *points)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (points[lookups[i].index].count)
			continue;
		if (kept != i) {
			struct lookup swapped = lookups[kept];
			lookups[kept] = lookups[i];
			lookups[i] = swapped;
		}
		kept++;
	}
	return kept;
}

static int last_by_reading(struct reading *r, const struct segment_id *segments, size_t classes,
			   struct lookup *lookup, int64_t start_ms, struct store_points *points)
{
	struct samples samples;
	samples_init(&samples, lookup->target.fields);
	int err = classes == 1
			  ? lookup_read(r, lookup, start_ms, 1, &samples)
			  : reading_classes(r, segments, classes, &lookup->target, 0, &samples);
	if (!err)
		err = last_answer(r, &samples, points);
	samples_release(&samples);
	return err;
}

/* The newest samples of the lookups in the segments of one time. */
static int last_in_segment(struct reading *r, const struct segment_id *segments, size_t classes,
			   struct lookup *lookups, size_t count, struct store_points *points)
{
	const struct target *t = &lookups[0].target;
	int64_t start_ms = reading_visible_from(r, segments->sheet.retention, t->start_ms);
	int err = 0;
	if (classes == 1 && start_ms >= t->end_ms)
		return 0;
	if (classes == 1)
		err = reading_lookup(r, segments, lookups, count, start_ms);
	for (size_t i = 0; i < count && !err; i++) {
		bool found = false;
		if (classes == 1)
			err = last_answer_summarised(r, &lookups[i], start_ms,
						     &points[lookups[i].index], &found);
		if (!err && !found)
			err = last_by_reading(r, segments, classes, &lookups[i], start_ms,
					      &points[lookups[i].index]);
	}
	return err;
}

static int last_of_group(struct reading *r, struct lookup *lookups, size_t count,
			 size_t segment_count, struct store_points *points)
{
	size_t at = segment_count;
	while (at > 0 && count > 0) {
		size_t first = at - 1;
		while (first > 0 && r->segments[first - 1].segment == r->segments[at - 1].segment)
			first--;
		int err =
			last_in_segment(r, r->segments + first, at - first, lookups, count, points);
		if (err)
			return err;
		count = last_filter_open(lookups, count, points);
		at = first;
	}
	return 0;
}

/* The handles at `order` that lie in one group become lookups, at most LOOKUPS_MAX; how many
 * handles that took. */
static size_t last_begin_group(struct reading *r, const struct store_last_before *last,
			       const uint32_t *order, size_t count, int64_t start_ms,
			       size_t *lookups)
{
	unsigned fields = (unsigned)schema[last->table].field_count;
	size_t taken = 0;
	*lookups = 0;
	for (; taken < count && *lookups < LOOKUPS_MAX; taken++) {
		uint64_t handle = last->handles[order[taken]];
		if (taken && !reading_same_group(r, last->handles[order[0]], handle))
			break;
		struct target t = {.handle = handle,
				   .first_column = handle_column(handle) * fields,
				   .fields = fields,
				   .start_ms = start_ms,
				   .end_ms = last->before_ms};
		struct lookup *lookup = &r->scratch->lookups[*lookups];
		if (!lookup_begin(r, lookup, &t))
			continue;
		lookup->index = order[taken];
		++*lookups;
	}
	return taken;
}

/* The handles first .. first + count, all or none: after an error their points are empty. */
static int last_of_turn(struct reading *r, struct store_last_before *last, size_t first,
			size_t count, int64_t start_ms, size_t segment_count)
{
	uint32_t order[TURN_HANDLES];
	int err = 0;
	reading_order(last->handles, first, count, order);
	for (size_t at = 0; at < count && !err;) {
		size_t lookups;
		at += last_begin_group(r, last, order + at, count - at, start_ms, &lookups);
		err = reading_check_time(r);
		if (!err && lookups)
			err = last_of_group(r, r->scratch->lookups, lookups, segment_count,
					    last->points);
	}
	if (err)
		memset(last->points + first, 0, count * sizeof(*last->points));
	return err;
}

static size_t last_turn_handles(const struct reading *r, const struct store_last_before *last,
				size_t next)
{
	size_t count = last->handle_count - next;
	if (count > TURN_HANDLES)
		count = TURN_HANDLES;
	return count < r->budget ? count : r->budget;
}

/* Token: the handle that comes next, u64. */
int reading_last_before(struct reading *r, struct store_request *request)
{
	struct store_last_before *last = &request->last_before;
	int64_t start_ms = INT64_MIN;
	uint64_t next = 0;
	size_t segment_count;
	if (last->look_back_ms &&
	    __builtin_sub_overflow(last->before_ms, last->look_back_ms, &start_ms))
		start_ms = INT64_MIN;
	if (request->token.len == sizeof(next))
		memcpy(&next, request->token.bytes, sizeof(next));
	else if (request->token.len)
		return ERR_INVALID;
	request->more = false;
	last->points =
		arena_zalloc(&r->read->arena, (last->handle_count + 1) * sizeof(*last->points));
	if (!last->points)
		return ERR_LIMIT;
	int err = reading_list_segments(r, last->table, last->period_ms, start_ms, last->before_ms,
					&segment_count);
	uint64_t begun = next;
	while (next < last->handle_count && !err) {
		size_t count = last_turn_handles(r, last, next);
		if (count == 0) {
			request->more = true;
			break;
		}
		err = last_of_turn(r, last, next, count, start_ms, segment_count);
		if (err)
			break;
		next += count;
		r->budget -= count;
	}
	if ((err == ERR_LIMIT || err == ERR_TIMEOUT) && next > begun) {
		request->more = true;
		err = 0;
	}
	request->token.len = sizeof(next);
	memcpy(request->token.bytes, &next, sizeof(next));
	return err;
}
