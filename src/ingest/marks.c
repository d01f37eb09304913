#include "ingest/marks.h"

#include "base/stats.h"
#include "lease/partition.h"
#include "marks/marks.h"

/* A group in a slot of which the round has points. */
struct ingest_mark {
	const struct group *group;
	int64_t slot_s;
	bool remembered; /* there is an entry for it */
	uint64_t series; /* what that entry stood for: all of it is marked */
};

struct marked {
	struct ingest_mark *marks;
	size_t count;
	struct mark_touch *touches; /* of all these */
	size_t touch_count;
};

/* ---- Collecting ------------------------------------------------------------------------------ */

static bool has_handles(const struct group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		if (group->handles[i])
			return true;
	}
	return false;
}

/* A hash of the series that the entry knows: another one when it has learned of a further one, or
 * was made anew of others. */
static uint64_t series_of(const struct cache_entry *entry)
{
	const uint64_t run[2] = {entry->first, entry->count};
	return entry->is_list ? hash64(entry->list, entry->count * sizeof(*entry->list), entry->low)
			      : hash64(run, sizeof(run), entry->low);
}

/* By slots first: so mostly touches come in the order in which they are wanted. */
static int compare_marks(const void *a, const void *b)
{
	const struct ingest_mark *x = a, *y = b;
	if (x->slot_s != y->slot_s)
		return x->slot_s < y->slot_s ? -1 : 1;
	return (x->group->index > y->group->index) - (x->group->index < y->group->index);
}

/* The entry need not: of a group of which not all could be opened none is made. */
static bool knows_all(const struct cache_entry *entry, const struct group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		size_t at = group->positions ? group->positions[i] : i;
		if (group->handles[i] && cache_handle(entry, at) != group->handles[i])
			return false;
	}
	return true;
}

/* Another round that was opened after its points were looked at has made it. */
static bool is_made(const struct round *round, const struct ingest_mark *mark)
{
	const struct cache_entry *entry = round_entry(round, mark->group);
	return entry && knows_all(entry, mark->group) &&
	       marks_touched(round->request, entry, mark->slot_s * 1000);
}

static size_t without_doubles(const struct round *round, struct ingest_mark *marks, size_t count)
{
	size_t n = 0;
	qsort(marks, count, sizeof(*marks), compare_marks);
	for (size_t i = 0; i < count; i++) {
		if (n && compare_marks(&marks[n - 1], &marks[i]) == 0)
			continue;
		if (!is_made(round, &marks[i]))
			marks[n++] = marks[i];
	}
	return n;
}

/* Points of a group mostly come in the order of their times. */
static size_t list_marks(const struct round *round, struct ingest_mark *marks)
{
	int64_t slot_ms = round->request->r.ingest->options.rollup_slot_ms;
	size_t n = 0;
	for (const struct pending *point = round->points; point; point = point->next) {
		if (!point->group || !has_handles(point->group))
			continue;
		struct ingest_mark mark = {point->group, slot_begin_s(point->ts_ms, slot_ms), false,
					   0};
		if (!n || compare_marks(&marks[n - 1], &mark) != 0)
			marks[n++] = mark;
	}
	return without_doubles(round, marks, n);
}

static size_t count_points(const struct round *round)
{
	size_t n = 0;
	for (const struct pending *point = round->points; point; point = point->next)
		n += point->group != NULL;
	return n;
}

/* As series-sets have it. Mostly that is the metric itself. */
static int encode_metric(struct round *round, struct slice metric, struct buf *scratch,
			 struct slice *encoded)
{
	*encoded = metric;
	buf_clear(scratch);
	int err = series_set_encode(metric, (struct tags){NULL, 0}, scratch);
	if (err || scratch->len == metric.len)
		return err;
	*encoded = arena_copy(&round->arena, buf_slice(scratch));
	return encoded->data ? 0 : ERR_LIMIT;
}

/* Once for all series of a group. */
static int encode_tags(struct round *round, const struct group *group, struct buf *scratch,
		       struct slice *encoded)
{
	*encoded = (struct slice){0};
	if (!group->tags.count)
		return 0;
	buf_clear(scratch);
	int err = buf_append_char(scratch, ',');
	if (!err)
		err = tags_encode(group->tags, scratch);
	if (err)
		return err;
	*encoded = arena_copy(&round->arena, buf_slice(scratch));
	return encoded->data ? 0 : ERR_LIMIT;
}

static int add_touch(struct round *round, const struct ingest_mark *mark, struct slice metric,
		     struct slice tags, struct buf *scratch)
{
	struct marked *marked = round->marked;
	const struct group *group = mark->group;
	uint32_t partitions = round->request->r.ingest->options.partitions;
	struct series_set series_set = {.tags = tags};
	int err = encode_metric(round, metric, scratch, &series_set.metric);
	if (err)
		return err;
	marked->touches[marked->touch_count++] = (struct mark_touch){
		.slot = {mark->slot_s, partition_of(group->tenant, series_set, partitions)},
		.tenant = group->tenant,
		.series_set = series_set,
	};
	return 0;
}

/* The metrics that the group asks for and all that its entry in the cache knows, so that what is
 * remembered of the entry holds for whatever a line brings. */
static int add_touches(struct round *round, struct ingest_mark *mark, struct buf *scratch)
{
	const struct group *group = mark->group;
	const struct slice *metrics = group->positions ? group->shape->metrics : group->metrics;
	const struct cache_entry *entry = round_entry(round, group);
	bool known[INGEST_POINTS_MAX] = {false};
	struct slice tags;
	int err = encode_tags(round, group, scratch, &tags);
	mark->remembered = entry != NULL;
	mark->series = entry ? series_of(entry) : 0;
	for (size_t i = 0; entry && i < entry->count; i++)
		known[i] = cache_handle(entry, i) != 0;
	for (size_t i = 0; i < group->count; i++)
		known[group->positions ? group->positions[i] : i] |= group->handles[i] != 0;
	for (size_t i = 0; i < round_key_count(group) && !err; i++) {
		if (known[i])
			err = add_touch(round, mark, metrics[i], tags, scratch);
	}
	return err;
}

static size_t count_touches(const struct marked *marked)
{
	size_t n = 0;
	for (size_t i = 0; i < marked->count; i++)
		n += round_key_count(marked->marks[i].group);
	return n;
}

int marks_collect(struct round *round)
{
	struct buf scratch;
	int err = 0;
	if (!round->request->r.ingest->options.partitions)
		return 0;
	struct marked *marked = arena_zalloc(&round->arena, sizeof(*marked));
	struct ingest_mark *marks =
		arena_alloc(&round->arena, count_points(round) * sizeof(*marks));
	if (!marked || !marks)
		return ERR_LIMIT;
	round->marked = marked;
	marked->marks = marks;
	marked->count = list_marks(round, marks);
	marked->touches =
		arena_alloc(&round->arena, count_touches(marked) * sizeof(*marked->touches));
	if (!marked->touches)
		return ERR_LIMIT;
	buf_init(&scratch, 1 + TAGS_TEXT_MAX_BYTES);
	for (size_t i = 0; i < marked->count && !err; i++)
		err = add_touches(round, &marks[i], &scratch);
	buf_release(&scratch);
	mark_touches_sort(marked->touches, marked->touch_count);
	return err;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void begin_marking(struct round *round, int64_t now_ms)
{
	struct ingest *ingest = round->request->r.ingest;
	round->marked_ms = now_ms;
	round->losses = marks_losses(ingest->options.marks);
	recent_touches_at(&ingest->touches, now_ms);
}

int marks_add(struct round *round, struct store_write *write, size_t *at)
{
	const struct ingest_options *options = &round->request->r.ingest->options;
	struct marked *marked = round->marked;
	if (!marked || !marks_in_writes(options->marks))
		return 0;
	if (!round->marked_ms)
		begin_marking(round, clock_wall_ms(options->clock));
	size_t before = *at;
	int err = marks_touches_add(options->marks, write, round->marked_ms, marked->touches,
				    marked->touch_count, at);
	stat_add(STAT_rollup_marks_added, (int64_t)(*at - before));
	return err;
}

static size_t count_waiting(const struct flight *flight)
{
	size_t n = 0;
	for (const struct round *round = flight->rounds; round; round = round->next)
		n += round->marked ? round->marked->touch_count : 0;
	return n;
}

bool marks_wait(const struct flight *flight)
{
	const struct ingest_options *options = &flight->request->r.ingest->options;
	return options->partitions && !marks_in_writes(options->marks) && count_waiting(flight);
}

static void gather_touches(struct flight *flight, int64_t now_ms)
{
	struct mark_touch *to = flight->touches;
	for (struct round *round = flight->rounds; round; round = round->next) {
		const struct marked *marked = round->marked;
		if (!marked || !marked->touch_count)
			continue;
		memcpy(to, marked->touches, marked->touch_count * sizeof(*to));
		to += marked->touch_count;
		begin_marking(round, now_ms);
	}
}

int marks_begin(struct flight *flight, marks_marking_done *done)
{
	const struct ingest_options *options = &flight->request->r.ingest->options;
	size_t count = count_waiting(flight);
	int64_t now_ms = clock_wall_ms(options->clock);
	flight->touches = mem_alloc_array(count, sizeof(*flight->touches));
	gather_touches(flight, now_ms);
	mark_touches_sort(flight->touches, count);
	flight->marking = marks_marking_new(options->marks, options->executor, done, flight);
	stat_add(STAT_rollup_marks_added, (int64_t)count);
	return marks_marking_begin(flight->marking, now_ms, flight->touches, count);
}

void marks_end(struct flight *flight)
{
	if (flight->marking)
		marks_marking_free(flight->marking);
	mem_free(flight->touches);
}

/* A handle that came since, by another round, is marked by that one, maybe in another slot. */
void marks_remember(const struct round *round)
{
	struct ingest *ingest = round->request->r.ingest;
	const struct marked *marked = round->marked;
	/* They may be lost by now. */
	if (marked && round->losses != marks_losses(ingest->options.marks))
		return;
	for (size_t i = 0; marked && i < marked->count; i++) {
		const struct ingest_mark *mark = &marked->marks[i];
		struct cache_entry *entry =
			mark->remembered ? round_entry(round, mark->group) : NULL;
		if (entry && series_of(entry) == mark->series)
			entry->slot =
				recent_touches_remember(&ingest->touches, mark->series, entry->slot,
							mark->slot_s, round->marked_ms);
	}
}

/* ---- Looking --------------------------------------------------------------------------------- */

bool marks_touched(struct request *q, const struct cache_entry *entry, int64_t ts_ms)
{
	return recent_touches_has(&q->r.ingest->touches, series_of(entry), entry->slot, ts_ms,
				  q->r.now_ms);
}
