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

struct ingest_marked {
	struct ingest_mark *marks;
	size_t count;
	struct mark_touch *touches; /* of all these */
	size_t touch_count;
};

/* ---- Collecting ------------------------------------------------------------------------------ */

static bool ingest_marks_has_handles(const struct group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		if (group->handles[i])
			return true;
	}
	return false;
}

/* A hash of the series that the entry knows: another one when it has learned of a further one, or
 * was made again of others. */
static uint64_t ingest_marks_series_of(const struct cache_entry *entry)
{
	const uint64_t run[2] = {entry->first, entry->count};
	/* A list of two handles may have the bytes of a run. */
	return entry->is_list ? hash64(entry->list, entry->count * sizeof(*entry->list), entry->low)
			      : hash64(run, sizeof(run), ~entry->low);
}

/* By slots first: so mostly touches come in the order in which they are wanted. */
static int ingest_marks_compare_marks(const void *a, const void *b)
{
	const struct ingest_mark *x = a, *y = b;
	if (x->slot_s != y->slot_s)
		return x->slot_s < y->slot_s ? -1 : 1;
	return (x->group->index > y->group->index) - (x->group->index < y->group->index);
}

/* The entry need not: of a group of which not all could be opened none is made. */
static bool ingest_marks_knows_all(const struct cache_entry *entry, const struct group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		size_t at = group->positions ? group->positions[i] : i;
		if (group->handles[i] && cache_handle(entry, at) != group->handles[i])
			return false;
	}
	return true;
}

/* Another round that was opened after its points were looked at has made it. */
static bool ingest_marks_is_made(const struct resolving *resolving, const struct ingest_mark *mark)
{
	const struct cache_entry *entry = resolving_entry(resolving, mark->group);
	return entry && ingest_marks_knows_all(entry, mark->group) &&
	       ingest_marks_touched(resolving->request, entry, mark->slot_s * 1000);
}

static size_t ingest_marks_without_doubles(const struct resolving *resolving,
					   struct ingest_mark *marks, size_t count)
{
	size_t n = 0;
	qsort(marks, count, sizeof(*marks), ingest_marks_compare_marks);
	for (size_t i = 0; i < count; i++) {
		if (n && ingest_marks_compare_marks(&marks[n - 1], &marks[i]) == 0)
			continue;
		if (!ingest_marks_is_made(resolving, &marks[i]))
			marks[n++] = marks[i];
	}
	return n;
}

/* Points of a group mostly come in the order of their times. */
static size_t ingest_marks_list_marks(const struct resolving *resolving, struct ingest_mark *marks)
{
	int64_t slot_ms = resolving->request->r.ingest->options.rollup_slot_ms;
	size_t n = 0;
	for (const struct resolving_point *point = resolving->points; point; point = point->next) {
		if (!point->group || !ingest_marks_has_handles(point->group))
			continue;
		struct ingest_mark mark = {point->group, slot_begin_s(point->ts_ms, slot_ms), false,
					   0};
		if (!n || ingest_marks_compare_marks(&marks[n - 1], &mark) != 0)
			marks[n++] = mark;
	}
	return ingest_marks_without_doubles(resolving, marks, n);
}

static size_t ingest_marks_count_points(const struct resolving *resolving)
{
	size_t n = 0;
	for (const struct resolving_point *point = resolving->points; point; point = point->next)
		n += point->group != NULL;
	return n;
}

/* As series-sets have it. Mostly that is the metric itself. */
static int ingest_marks_encode_metric(struct resolving *resolving, struct slice metric,
				      struct buf *scratch, struct slice *encoded)
{
	*encoded = metric;
	buf_clear(scratch);
	int err = series_set_encode(metric, (struct tags){NULL, 0}, scratch);
	if (err || scratch->len == metric.len)
		return err;
	*encoded = arena_copy(&resolving->arena, buf_slice(scratch));
	return encoded->data ? 0 : ERR_LIMIT;
}

/* Once for all series of a group. */
static int ingest_marks_encode_tags(struct resolving *resolving, const struct group *group,
				    struct buf *scratch, struct slice *encoded)
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
	*encoded = arena_copy(&resolving->arena, buf_slice(scratch));
	return encoded->data ? 0 : ERR_LIMIT;
}

static int ingest_marks_add_touch(struct resolving *resolving, const struct ingest_mark *mark,
				  struct slice metric, struct slice tags, struct buf *scratch)
{
	struct ingest_marked *marked = resolving->marked;
	const struct group *group = mark->group;
	uint32_t partitions = resolving->request->r.ingest->options.partitions;
	struct series_set series_set = {.tags = tags};
	int err = ingest_marks_encode_metric(resolving, metric, scratch, &series_set.metric);
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
static int ingest_marks_add_touches(struct resolving *resolving, struct ingest_mark *mark,
				    struct buf *scratch)
{
	const struct group *group = mark->group;
	const struct slice *metrics = group->positions ? group->fields->metrics : group->metrics;
	const struct cache_entry *entry = resolving_entry(resolving, group);
	bool known[INGEST_POINTS_MAX] = {false};
	struct slice tags;
	int err = ingest_marks_encode_tags(resolving, group, scratch, &tags);
	mark->remembered = entry != NULL;
	mark->series = entry ? ingest_marks_series_of(entry) : 0;
	for (size_t i = 0; entry && i < entry->count; i++)
		known[i] = cache_handle(entry, i) != 0;
	for (size_t i = 0; i < group->count; i++)
		known[group->positions ? group->positions[i] : i] |= group->handles[i] != 0;
	for (size_t i = 0; i < resolving_key_count(group) && !err; i++) {
		if (known[i])
			err = ingest_marks_add_touch(resolving, mark, metrics[i], tags, scratch);
	}
	return err;
}

static size_t ingest_marks_count_touches(const struct ingest_marked *marked)
{
	size_t n = 0;
	for (size_t i = 0; i < marked->count; i++)
		n += resolving_key_count(marked->marks[i].group);
	return n;
}

int ingest_marks_collect(struct resolving *resolving)
{
	struct buf scratch;
	int err = 0;
	if (!resolving->request->r.ingest->options.partitions)
		return 0;
	struct ingest_marked *marked = arena_zalloc(&resolving->arena, sizeof(*marked));
	struct ingest_mark *marks = arena_alloc(
		&resolving->arena, ingest_marks_count_points(resolving) * sizeof(*marks));
	if (!marked || !marks)
		return ERR_LIMIT;
	resolving->marked = marked;
	marked->marks = marks;
	marked->count = ingest_marks_list_marks(resolving, marks);
	marked->touches = arena_alloc(&resolving->arena, ingest_marks_count_touches(marked) *
								 sizeof(*marked->touches));
	if (!marked->touches)
		return ERR_LIMIT;
	buf_init(&scratch, 1 + TAGS_TEXT_MAX_BYTES);
	for (size_t i = 0; i < marked->count && !err; i++)
		err = ingest_marks_add_touches(resolving, &marks[i], &scratch);
	buf_release(&scratch);
	mark_touches_sort(marked->touches, marked->touch_count);
	return err;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void ingest_marks_begin_marking(struct resolving *resolving, int64_t now_ms)
{
	struct ingest *ingest = resolving->request->r.ingest;
	resolving->marked_ms = now_ms;
	resolving->losses = marks_losses(ingest->options.marks);
	recent_touches_at(&ingest->touches, now_ms);
}

int ingest_marks_add(struct resolving *resolving, struct store_write *write, size_t *at)
{
	const struct ingest_options *options = &resolving->request->r.ingest->options;
	struct ingest_marked *marked = resolving->marked;
	if (!marked || !marks_in_writes(options->marks))
		return 0;
	if (!resolving->marked_ms)
		ingest_marks_begin_marking(resolving, clock_wall_ms(options->clock));
	size_t before = *at;
	int err = marks_touches_add(options->marks, write, resolving->marked_ms, marked->touches,
				    marked->touch_count, at);
	stat_add(STAT_rollup_marks_added, (int64_t)(*at - before));
	return err;
}

static size_t ingest_marks_count_waiting(const struct pending_write *pending)
{
	size_t n = 0;
	for (const struct resolving *resolving = pending->resolvings; resolving;
	     resolving = resolving->next)
		n += resolving->marked ? resolving->marked->touch_count : 0;
	return n;
}

bool ingest_marks_wait(const struct pending_write *pending)
{
	const struct ingest_options *options = &pending->request->r.ingest->options;
	return options->partitions && !marks_in_writes(options->marks) &&
	       ingest_marks_count_waiting(pending);
}

static void ingest_marks_gather_touches(struct pending_write *pending, int64_t now_ms)
{
	struct mark_touch *to = pending->touches;
	for (struct resolving *resolving = pending->resolvings; resolving;
	     resolving = resolving->next) {
		const struct ingest_marked *marked = resolving->marked;
		if (!marked || !marked->touch_count)
			continue;
		memcpy(to, marked->touches, marked->touch_count * sizeof(*to));
		to += marked->touch_count;
		ingest_marks_begin_marking(resolving, now_ms);
	}
}

int ingest_marks_begin(struct pending_write *pending, void (*done)(void *owner, int err))
{
	const struct ingest_options *options = &pending->request->r.ingest->options;
	size_t count = ingest_marks_count_waiting(pending);
	int64_t now_ms = clock_wall_ms(options->clock);
	pending->touches = mem_alloc_array(count, sizeof(*pending->touches));
	ingest_marks_gather_touches(pending, now_ms);
	mark_touches_sort(pending->touches, count);
	stat_add(STAT_rollup_marks_added, (int64_t)count);
	return marks_mark(options->marks, &(struct marks_marking){.executor = options->executor,
								  .done = done,
								  .owner = pending,
								  .now_ms = now_ms,
								  .touches = pending->touches,
								  .count = count});
}

/* A handle that came since, by another round, is marked by that one, maybe in another slot. */
void ingest_marks_remember(const struct resolving *resolving)
{
	struct ingest *ingest = resolving->request->r.ingest;
	const struct ingest_marked *marked = resolving->marked;
	/* They may be lost by now. */
	if (marked && resolving->losses != marks_losses(ingest->options.marks))
		return;
	for (size_t i = 0; marked && i < marked->count; i++) {
		const struct ingest_mark *mark = &marked->marks[i];
		struct cache_entry *entry =
			mark->remembered ? resolving_entry(resolving, mark->group) : NULL;
		if (entry && ingest_marks_series_of(entry) == mark->series)
			entry->slot =
				recent_touches_remember(&ingest->touches, mark->series, entry->slot,
							mark->slot_s, resolving->marked_ms);
	}
}

/* ---- Looking --------------------------------------------------------------------------------- */

bool ingest_marks_touched(struct request *q, const struct cache_entry *entry, int64_t ts_ms)
{
	return recent_touches_has(&q->r.ingest->touches, ingest_marks_series_of(entry), entry->slot,
				  ts_ms, q->r.now_ms);
}
